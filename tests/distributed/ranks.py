"""Worlds of several processes for the tests: a function runs as every rank, and what one raises the test raises."""

from __future__ import annotations

import multiprocessing
import socket
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tensorpy import distributed as dist

needs_mpi = pytest.mark.skipif(not dist.is_mpi_available(), reason="no library of MPI: pip install mpich")
SECONDS = 60


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def where(kind: str, folder: Path) -> str:
    """An init_method of a kind of store."""
    return f"tcp://127.0.0.1:{free_port()}" if kind == "tcp" else f"file://{folder}/{kind}"


def join(method: str, rank: int, size: int, seconds: float = SECONDS) -> None:
    dist.init_process_group("gloo", init_method=method, rank=rank, world_size=size, timeout=timedelta(seconds=seconds))


def _rank(rank: int, fn: Callable[..., Any], size: int, method: str, args: tuple[Any, ...], answers: Any) -> None:
    try:
        join(method, rank, size)
        answer = fn(rank, size, *args)
        dist.destroy_process_group()
        answers.put((rank, answer, ""))
    except BaseException:
        import traceback

        answers.put((rank, None, traceback.format_exc()))
        raise


def world(fn: Callable[..., Any], size: int, method: str, *args: Any) -> list[Any]:
    """Runs fn(rank, size, *args) as each rank of a world; what each returned."""
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    processes = [context.Process(target=_rank, args=(r, fn, size, method, args, answers)) for r in range(size)]
    for process in processes:
        process.start()
    came = sorted((answers.get(timeout=2 * SECONDS) for _ in processes), key=lambda each: each[0])
    for process in processes:
        process.join(SECONDS)
    failed = [text for _, _, text in came if text]
    assert not failed, "\n".join(failed)
    assert [process.exitcode for process in processes] == [0] * size
    return [answer for _, answer, _ in came]
