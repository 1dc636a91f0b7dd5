"""Starts a function, or a program, as several processes: what torchrun does, from Python.

A function runs on this machine, and what each process returned comes back. A program goes to torchrun's own agent.
"""

from __future__ import annotations

import os
import socket
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tensorpy.distributed import run
from tensorpy.distributed.elastic.multiprocessing import errors

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]


@dataclass
class LaunchConfig:
    """How processes are started.

    Arguments:
        min_nodes: how many machines at least
        max_nodes: how many at most
        nproc_per_node: how many processes on each
        logs_specs: is taken
        run_id: the job's name
        role: is taken
        rdzv_endpoint: host:port where machines meet
        rdzv_backend: static or c10d
        rdzv_configs: rank of this machine; join_timeout and last_call_timeout, in seconds
        rdzv_timeout: is taken
        max_restarts: how often all are started again after one failed
        monitor_interval: seconds between looks at the processes
        start_method: spawn, fork or forkserver, of a function
        log_line_prefix_template: is taken
        metrics_cfg: is taken
        local_addr: is taken
        event_log_handler: is taken
        numa_options: is taken
        signals_to_handle: is taken
        duplicate_stdout_filters: is taken
        duplicate_stderr_filters: is taken
        virtual_local_rank: is taken
        shutdown_timeout: is taken

    Example:
        >>> from tensorpy.distributed.launcher.api import LaunchConfig
        >>> LaunchConfig(1, 1, 2).max_restarts
        3
    """

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    logs_specs: Any = None
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "static"
    rdzv_configs: dict[str, Any] = field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_line_prefix_template: str | None = None
    metrics_cfg: dict[str, str] = field(default_factory=dict)
    local_addr: str | None = None
    event_log_handler: str = "null"
    numa_options: Any = None
    signals_to_handle: str = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
    duplicate_stdout_filters: list[str] | None = None
    duplicate_stderr_filters: list[str] | None = None
    virtual_local_rank: bool = False
    shutdown_timeout: int | None = None


class elastic_launch:
    """Runs a function, or a program, as several processes: `elastic_launch(config, fn)(*args)`.

    Arguments:
        config: a LaunchConfig
        entrypoint: the function, or the program's path

    Example:
        >>> from tensorpy.distributed.launcher.api import LaunchConfig, elastic_launch
        >>> launch = elastic_launch(LaunchConfig(1, 1, 2), max)  # launch(1, 2): {0: 2, 1: 2}
    """

    def __init__(self, config: LaunchConfig, entrypoint: Callable[..., Any] | str | None) -> None:
        self._config, self._entrypoint = config, entrypoint

    def __call__(self, *args: Any) -> dict[int, Any]:
        return launch_agent(self._config, self._entrypoint, list(args))


def launch_agent(config: LaunchConfig, entrypoint: Callable[..., Any] | str | None, args: list[Any]) -> dict[int, Any]:
    """What each process returned, by its rank; ChildFailedError where one failed, and was not to start again.

    Arguments:
        config: a LaunchConfig
        entrypoint: the function, or the program's path
        args: its arguments

    Example:
        >>> from tensorpy.distributed.launcher.api import LaunchConfig, launch_agent
        >>> launch_agent(LaunchConfig(1, 1, 2, start_method="fork"), max, [1, 2])
        {0: 2, 1: 2}
    """
    if entrypoint is None:
        raise ValueError("elastic_launch: there is nothing to run")
    if isinstance(entrypoint, str):
        _run_program(config, entrypoint, args)
        return {}
    if config.max_nodes > 1:
        raise ValueError("elastic_launch: a function runs on one machine; a program on several, by torchrun")
    name = getattr(entrypoint, "__qualname__", type(entrypoint).__name__)
    failures: dict[int, errors.ProcessFailure] = {}
    for attempt in range(max(config.max_restarts, 0) + 1):
        with tempfile.TemporaryDirectory(prefix="elastic_launch_") as folder:
            failures, results = _run_once(config, entrypoint, args, attempt, folder)
        if not failures:
            return results
    raise errors.ChildFailedError(name, failures)


def _run_program(config: LaunchConfig, path: str, args: list[Any]) -> None:
    settings = dict(config.rdzv_configs)
    said = [
        f"--nnodes={config.min_nodes}:{config.max_nodes}", f"--nproc-per-node={config.nproc_per_node}",
        f"--rdzv-backend={config.rdzv_backend}", f"--rdzv-endpoint={config.rdzv_endpoint}",
        f"--rdzv-id={config.run_id or 'none'}", f"--max-restarts={config.max_restarts}",
        f"--monitor-interval={config.monitor_interval}",
    ]  # fmt: skip
    if "rank" in settings:
        said.append(f"--node-rank={settings.pop('rank')}")
    if settings:
        said.append("--rdzv-conf=" + ",".join(f"{k}={v}" for k, v in settings.items()))
    try:
        run.run(run.parse_args([*said, path, *map(str, args)]))
    except SystemExit as end:
        raise errors.ChildFailedError(path, {}) from end


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def _run_once(
    config: LaunchConfig, entrypoint: Callable[..., Any], args: list[Any], attempt: int, folder: str
) -> tuple[dict[int, errors.ProcessFailure], dict[int, Any]]:
    import multiprocessing

    size = config.nproc_per_node
    context: Any = multiprocessing.get_context(config.start_method)
    shared = {
        "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size, "ROLE_WORLD_SIZE": size, "GROUP_RANK": 0, "GROUP_WORLD_SIZE": 1,
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": _free_port(), "ROLE_NAME": config.role,
        "TORCHELASTIC_RESTART_COUNT": attempt, "TORCHELASTIC_MAX_RESTARTS": config.max_restarts,
        "TORCHELASTIC_RUN_ID": config.run_id or "none",
    }  # fmt: skip
    ends, processes = [], []
    for rank in range(size):
        mine, theirs = context.Pipe(duplex=False)
        own = dict.fromkeys(("RANK", "LOCAL_RANK", "ROLE_RANK"), rank) | {errors.VARIABLE: f"{folder}/{rank}.json"}
        process = context.Process(
            target=_run_one, args=(entrypoint, args, {k: str(v) for k, v in (shared | own).items()}, theirs)
        )
        process.start()
        theirs.close()
        ends.append(mine)
        processes.append(process)
    results: dict[int, Any] = {}
    try:
        while any(p.is_alive() for p in processes) and not any(p.exitcode for p in processes):
            _collect(ends, results)
            time.sleep(min(config.monitor_interval, 0.1))
        _collect(ends, results)
        failed = {r: p for r, p in enumerate(processes) if p.exitcode}
    finally:
        for process in processes:
            process.kill()
            process.join()
    found = {r: errors.ProcessFailure(r, p.pid, p.exitcode, str(Path(folder, f"{r}.json"))) for r, p in failed.items()}
    return found, results


def _collect(ends: list[Any], results: dict[int, Any]) -> None:
    """Takes what processes returned."""
    for rank, end in enumerate(ends):
        try:
            if rank not in results and end.poll():
                results[rank] = end.recv()
        except EOFError:
            pass


def _run_one(entrypoint: Callable[..., Any], args: list[Any], environment: dict[str, str], answers: Any) -> None:
    os.environ.update(environment)
    result = errors.record(entrypoint)(*args)
    answers.send(result)
