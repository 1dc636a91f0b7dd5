"""elastic_launch: functions and programs as several processes, restarts, and what failed."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from ranks import needs_mpi

import tensorpy as tp
from tensorpy import distributed as dist
from tensorpy.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
from tensorpy.distributed.launcher.api import LaunchConfig, elastic_launch


def add(number: int) -> float:
    dist.init_process_group()
    total = tp.tensor([float(dist.get_rank() + number)])
    dist.all_reduce(total)
    dist.destroy_process_group()
    return total.item()


def sometimes(always: bool) -> str:
    if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" or always:
        if os.environ["RANK"] == "1":
            raise ValueError("an odd one")
        time.sleep(60)
    return os.environ["RANK"]


@needs_mpi
@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_what_a_function_returns(method: str) -> None:
    assert elastic_launch(LaunchConfig(1, 1, 2, start_method=method), add)(1) == {0: 3.0, 1: 3.0}


def test_failures_and_restarts() -> None:
    began = time.monotonic()
    assert elastic_launch(LaunchConfig(1, 1, 2, max_restarts=1), sometimes)(False) == {0: "0", 1: "1"}
    with pytest.raises(ChildFailedError, match=r"sometimes failed; first rank 1 .*ValueError: an odd one") as caught:
        elastic_launch(LaunchConfig(1, 1, 2, max_restarts=0), sometimes)(True)
    rank, failure = caught.value.get_first_failure()
    assert rank == failure.local_rank == 1 and failure.exitcode == 1
    assert time.monotonic() - began < 50  # nobody slept to the end


def test_programs(tmp_path: Path, capfd: Any) -> None:
    path = tmp_path / "program.py"
    path.write_text("import os, sys; print('rank', os.environ['RANK']); sys.exit(int(sys.argv[1]))")
    assert elastic_launch(LaunchConfig(1, 1, 2, max_restarts=0), str(path))("0") == {}
    assert {"rank 0", "rank 1"} <= set(capfd.readouterr().out.splitlines())
    with pytest.raises(ChildFailedError, match=r"program\.py failed"):
        elastic_launch(LaunchConfig(1, 1, 1, max_restarts=0), str(path))("3")
    with pytest.raises(ValueError, match="nothing to run"):
        elastic_launch(LaunchConfig(1, 1, 1), None)()
    with pytest.raises(ValueError, match="on one machine"):
        elastic_launch(LaunchConfig(2, 2, 1), add)(1)


def test_how_a_process_failed(tmp_path: Path) -> None:
    killed = ProcessFailure(0, 7, -9, str(tmp_path / "none"))
    assert killed.signal_name() == "SIGKILL" and "Signal 9 (SIGKILL) received by PID 7" in killed.message
    said = tmp_path / "error.json"
    said.write_text('{"message": {"message": "KeyError: 1", "extraInfo": {"timestamp": "5"}}}')
    first = ProcessFailure(1, 8, 1, str(said))
    assert first.message == "KeyError: 1" and first.timestamp == 5
    assert ChildFailedError("x", {0: killed, 1: first}).get_first_failure() == (1, first)
