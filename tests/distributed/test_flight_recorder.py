"""What a process keeps of its last messages, what a time-out says of them, and PyTorch's tool that reads them."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from ranks import needs_mpi, where, world

import tensorpy as tp
from tensorpy import distributed as dist
from tensorpy.distributed import flight_recorder

pytestmark = needs_mpi


def several(rank: int, size: int, folder: str) -> list[Any]:
    t = tp.ones(10)
    dist.all_reduce(t)
    group = dist.new_group([0, 1], group_desc="pair")
    dist.all_gather_into_tensor(tp.empty(20), t, group=group)
    dist.reduce_scatter_tensor(tp.empty(5), t)
    dist.all_to_all_single(tp.empty(2, dtype=tp.int64), tp.ones(2, dtype=tp.int64))
    (dist.send if rank == 0 else dist.recv)(t, 1 - rank)
    work = dist.all_reduce(t, async_op=True) if rank == 0 else None
    flight_recorder.dump(f"{folder}/trace_{rank}")
    whole = flight_recorder.trace()
    assert {**json.loads(flight_recorder._dump_fr_trace_json()), "entries": whole["entries"]} == whole
    active = flight_recorder.trace(only_active=True)["entries"]
    store = dist.distributed_c10d._get_default_store()
    if work is None:
        store.wait(["looked"])  # the other looks while the sum waits for this process
        dist.all_reduce(t)
    else:
        assert [e["collective_seq_id"] for e in active] == [4] and active[0]["state"] == "started"
        assert whole["pg_status"]["0"] == {
            "last_enqueued_collective": 4, "last_started_collective": 4, "last_completed_collective": 3,
        }  # fmt: skip
        store.set("looked", "1")
        work.wait()
        assert not flight_recorder.trace(only_active=True)["entries"]
    found = pickle.loads(Path(folder, f"trace_{rank}").read_bytes())
    keys = ("profiling_name", "process_group", "input_sizes", "output_sizes", "input_dtypes", "state")
    return [tuple(e[key] for key in keys) for e in found["entries"]]


def test_what_is_kept(tmp_path: Path) -> None:
    first, second = world(several, 2, where("file", tmp_path / ""), str(tmp_path))
    everyone, pair, floats = ("0", "default_pg"), ("1", "pair"), ["Float"]
    assert first == [
        ("gloo:barrier", everyone, [], [], [], "completed"),
        ("gloo:all_reduce", everyone, [[10]], [[10]], floats, "completed"),
        ("gloo:all_gather", pair, [[10]], [[20]], floats, "completed"),
        ("gloo:reduce_scatter", everyone, [[10]], [[5]], floats, "completed"),
        ("gloo:all_to_all", everyone, [[2]], [[2]], ["Long"], "completed"),
        ("gloo:send 0->1", everyone, [[10]], [[10]], floats, "completed"),
        ("gloo:all_reduce", everyone, [[10]], [[10]], floats, "started"),
    ]
    assert second == [*first[:5], ("gloo:recv 1<-0", *first[5][1:])]
    pytest.importorskip("torch.distributed.flight_recorder")
    folder = tmp_path / "traces"
    folder.mkdir()
    for rank in range(2):
        (tmp_path / f"trace_{rank}").rename(folder / f"trace_{rank}")
    tool = [sys.executable, "-m", "torch.distributed.flight_recorder.fr_trace", str(folder), "-p", "trace_"]
    said = subprocess.run(tool, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert said.returncode == 0 and "missing ranks: {1}" in said.stdout + said.stderr, said


def many(rank: int, size: int) -> tuple[int, int]:
    for _ in range(20):
        dist.all_reduce(tp.ones(1))
    found = flight_recorder.trace()["entries"]
    return len(found), found[-1]["record_id"] if found else -1


@pytest.mark.parametrize("name", ["TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"])
@pytest.mark.parametrize(("room", "kept"), [("7", (7, 20)), ("0", (0, -1))])
def test_as_many_as_a_variable_says(
    name: str, room: str, kept: tuple[int, int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(name, room)
    assert world(many, 2, where("file", tmp_path)) == [kept, kept]


def late(rank: int, size: int) -> str:
    group = dist.new_group([0, 1], timeout=timedelta(seconds=1))
    dist.all_reduce(tp.ones(1))
    dist.barrier(group=group)
    if rank == 1:
        with pytest.raises(dist.DistBackendError):
            dist.recv(tp.ones(1), 0)
        return ""
    with pytest.raises(dist.DistBackendError) as caught:
        dist.all_reduce(tp.ones(3), group=group)
    assert flight_recorder.trace(only_active=True)["entries"][-1]["state"] == "started"
    return str(caught.value)


def test_a_time_out_says_what_was_before(tmp_path: Path) -> None:
    said, _ = world(late, 2, where("file", tmp_path))
    late_ones = "rank 1 has not entered it, its last was barrier #0"
    before = "barrier #0 of group 1 (done), all_reduce #1 of group 0 (done), init_process_group #0 of group 0 (done)"
    assert said == f"all_reduce #1 of group 1: Timed out after 1 s; {late_ones}; before it here: {before}"


def test_without_a_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="a path, or a variable"):
        flight_recorder.dump()
    dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    monkeypatch.setenv("TORCH_NCCL_DEBUG_INFO_TEMP_FILE", str(tmp_path / "last_"))
    try:
        assert flight_recorder.dump() == str(tmp_path / "last_0")
    finally:
        dist.destroy_process_group()
