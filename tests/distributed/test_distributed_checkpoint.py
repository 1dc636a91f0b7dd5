"""Checkpoints: by one rank and by several, read by another number of them; by PyTorch and for it; killed writers."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ranks import SECONDS, join, needs_mpi, where, world

import tensorpy as tp
from tensorpy import distributed as dist
from tensorpy import nn
from tensorpy.distributed import checkpoint
from tensorpy.distributed.checkpoint import filesystem
from tensorpy.distributed.checkpoint.api import CheckpointException
from tensorpy.distributed.checkpoint.format_utils import dcp_to_torch_save, torch_save_to_dcp
from tensorpy.distributed.checkpoint.planner import WriteItemType
from tensorpy.distributed.checkpoint.state_dict_loader import _load_state_dict_from_keys

ALONE: Any = {"no_dist": True}


def model_of(seed: int) -> Any:
    tp.manual_seed(seed)
    return nn.Sequential(nn.Linear(7, 5), nn.BatchNorm1d(5), nn.Linear(5, 3))


class Counter:
    """An object that has a state dictionary."""

    def __init__(self, count: int) -> None:
        self.count, self.loaded = count, 0

    def state_dict(self) -> dict[str, Any]:
        return {"count": self.count, "grown": tp.full((2,), self.count)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.count = state_dict["count"]
        self.loaded += 1


def everything(seed: int) -> dict[str, Any]:
    numbers = tp.Generator().manual_seed(seed)
    dtypes = [tp.float32, tp.float64, tp.bfloat16, tp.float16, tp.int8, tp.int64, tp.uint8, tp.bool, tp.complex64]
    return {
        "dtypes": {str(d): tp.randint(0, 2, (3, 4), generator=numbers).to(d) for d in dtypes},
        "scalar": tp.rand((), generator=numbers),
        "empty": tp.zeros(0, 3),
        "view": tp.rand(9, 9, generator=numbers)[2:5, ::2].t(),
        "wide": tp.rand(1, 4, generator=numbers).expand(3, 4),
        "list": [seed, tp.rand(2, generator=numbers), {"inside": [tp.rand(1, generator=numbers), "text"]}],
        "plain": {"a": 1.5, "b": None, "c": (1, "x"), "d": [1, 2], "e": {"f": b"bytes"}},
        "parameter": nn.Parameter(tp.rand(2, generator=numbers)),
        5: {7: tp.rand(1, generator=numbers), "deep": {8: seed}},
    }


def same(a: Any, b: Any) -> bool:
    if isinstance(a, tp.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and bool(tp.equal(a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and bool(a == b)


def parts(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


# ---- one process ----


@pytest.mark.parametrize("options", [{}, {"thread_count": 3}, {"single_file_per_rank": False}, {"sync_files": False}])
def test_what_was_saved_is_loaded(tmp_path: Path, options: dict[str, Any]) -> None:
    saved, into = everything(1), everything(2)
    kept, into["wide"] = into["view"], tp.zeros(3, 4)  # elements that share memory cannot be loaded into
    checkpoint.save({"all": saved}, storage_writer=checkpoint.FileSystemWriter(tmp_path, **options), **ALONE)
    state = {"all": into}
    checkpoint.load(state, checkpoint_id=tmp_path, **ALONE)
    assert same(state["all"], saved) and state["all"]["view"] is kept
    files = parts(tmp_path)
    assert files[0] == ".metadata" and (len(files) == 2) == (options.keys() <= {"sync_files"})


def test_objects_with_a_state(tmp_path: Path) -> None:
    model, counter = model_of(1), Counter(3)
    optimizer = tp.optim.AdamW(model.parameters())
    model(tp.rand(4, 7)).sum().backward()
    optimizer.step()
    checkpoint.save({"model": model, "optimizer": optimizer, "counter": counter}, checkpoint_id=tmp_path, **ALONE)
    other, fresh = model_of(2), Counter(0)
    its = tp.optim.AdamW(other.parameters())
    other(tp.rand(4, 7)).sum().backward()
    its.step()
    state: dict[str, Any] = {"model": other, "optimizer": its, "counter": fresh}
    checkpoint.load(state, checkpoint_id=tmp_path, **ALONE)
    assert same(dict(other.state_dict()), dict(model.state_dict())) and state["model"] is other
    assert same(its.state_dict(), optimizer.state_dict())
    assert fresh.count == 3 and fresh.loaded == 1


def test_tensors_without_memory_are_given_some(tmp_path: Path) -> None:
    checkpoint.save({"x": {"w": nn.Parameter(tp.ones(2)), "v": tp.ones(3)}}, checkpoint_id=tmp_path, **ALONE)
    state: Any = {"x": {"w": nn.Parameter(tp.empty(2, device="meta")), "v": tp.empty(3, device="meta")}}
    checkpoint.load(state, checkpoint_id=tmp_path, **ALONE)
    assert type(state["x"]["w"]) is nn.Parameter and state["x"]["w"].tolist() == [1, 1]
    assert state["x"]["v"].tolist() == [1, 1, 1]


def test_errors(tmp_path: Path) -> None:
    checkpoint.save({"x": tp.ones(2), "n": 3}, checkpoint_id=tmp_path / "a", **ALONE)

    def fails(state: dict[str, Any], match: str, folder: str = "a", **options: Any) -> None:
        with pytest.raises(CheckpointException, match=match) as raised:
            checkpoint.load(state, checkpoint_id=tmp_path / folder, **ALONE, **options)
        assert list(raised.value.failures) == [0]

    fails({"y": tp.ones(2)}, "Missing key in checkpoint state_dict: y")
    fails({"x": tp.ones(3)}, r"Size mismatch between saved .*\[2\].* and current: .*\[3\].* for x")
    fails({"x": 1}, "'x' is a tensor in the checkpoint, and int where it is loaded into")
    fails({"x": tp.ones(2)}, "has no checkpoint that was written whole", "b")
    state = {"x": tp.zeros(2), "y": tp.zeros(2)}
    planner = checkpoint.DefaultLoadPlanner(allow_partial_load=True)
    checkpoint.load(state, checkpoint_id=tmp_path / "a", planner=planner, **ALONE)
    assert state["x"].tolist() == [1, 1] and state["y"].tolist() == [0, 0]
    with pytest.raises(CheckpointException, match=r"'a\.b'"):
        checkpoint.save({"a": {"b": 1}, "a.b": 2}, checkpoint_id=tmp_path / "c", **ALONE)
    with pytest.raises(CheckpointException, match="Checkpoint already exists"):
        writer = checkpoint.FileSystemWriter(tmp_path / "a", overwrite=False)
        checkpoint.save({"x": tp.ones(2)}, storage_writer=writer, **ALONE)
    with pytest.raises(RuntimeError, match="`checkpoint_id` must be specified"):
        checkpoint.save({}, **ALONE)
    with pytest.raises(RuntimeError, match="no folder that can be made"):
        checkpoint.save({}, checkpoint_id="s3://somewhere", **ALONE)
    with pytest.warns(UserWarning, match="in a single process"):
        checkpoint.save({}, checkpoint_id=tmp_path / "d")


class Odd:
    """What no file may name."""


def test_objects_of_other_classes_are_asked_for(tmp_path: Path) -> None:
    checkpoint.save({"x": Odd()}, checkpoint_id=tmp_path, **ALONE)
    with pytest.raises(CheckpointException, match="Unsupported global"):
        checkpoint.load({"x": None}, checkpoint_id=tmp_path, **ALONE)
    state: dict[str, Any] = {"x": None}
    with tp.serialization.safe_globals([Odd]):
        checkpoint.load(state, checkpoint_id=tmp_path, **ALONE)
    assert type(state["x"]) is Odd


def test_a_new_checkpoint_takes_the_place_of_the_old(tmp_path: Path) -> None:
    for number in range(4):
        checkpoint.save({"x": tp.full((10,), number)}, checkpoint_id=tmp_path, **ALONE)
        state = {"x": tp.zeros(10, dtype=tp.int64)}
        checkpoint.load(state, checkpoint_id=tmp_path, **ALONE)
        assert state["x"].tolist() == [number] * 10
        assert len(parts(tmp_path)) == 2  # nothing of the older ones is left


def test_a_folder_keeps_what_is_not_the_checkpoints(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "__0_a.distcp").write_text("mine")
    for _ in range(2):
        checkpoint.save({"x": tp.ones(1)}, checkpoint_id=tmp_path, **ALONE)
    assert (tmp_path / "notes.txt").read_text() == (tmp_path / "__0_a.distcp").read_text() == "mine"


def test_files_of_save_both_ways(tmp_path: Path) -> None:
    saved = {"model": dict(model_of(1).state_dict()), "step": 7}
    checkpoint.save(saved, checkpoint_id=tmp_path / "a", **ALONE)
    dcp_to_torch_save(tmp_path / "a", tmp_path / "a.pt")
    assert same(tp.load(tmp_path / "a.pt"), saved)
    torch_save_to_dcp(tmp_path / "a.pt", tmp_path / "b")
    with pytest.warns(UserWarning):
        assert same(_load_state_dict_from_keys(checkpoint_id=tmp_path / "b"), saved)
        only = _load_state_dict_from_keys({"model.0.weight", "step"}, checkpoint_id=tmp_path / "b")
    assert only.keys() == {"model", "step"} and only["model"].keys() == {"0.weight"}


def test_async_save_is_a_copy(tmp_path: Path) -> None:
    x, listed = tp.ones(1000), [1]
    writer = checkpoint.FileSystemWriter(tmp_path / "kept", cache_staged_state_dict=True)
    for number in (1, 2):
        x.fill_(number)
        first = checkpoint.async_save({"x": x, "l": listed}, checkpoint_id=tmp_path / "a", **ALONE)
        second = checkpoint.async_save({"x": x, "l": listed}, storage_writer=writer, **ALONE)
        x.fill_(-1)
        listed[0] = -1
        first.result(SECONDS)
        second.result(SECONDS)
        for folder in ("a", "kept"):
            state = {"x": tp.zeros(1000), "l": []}
            checkpoint.load(state, checkpoint_id=tmp_path / folder, **ALONE)
            assert state["x"].min() == number == state["x"].max() and state["l"] == [1]
        listed[0] = 1
    with pytest.raises(CheckpointException, match=r"'a\.b'"):
        checkpoint.async_save({"a": {"b": 1}, "a.b": 2}, checkpoint_id=tmp_path, **ALONE).result(SECONDS)
    with pytest.raises(ValueError, match="in a thread"):
        kind = sys.modules["tensorpy.distributed.checkpoint.state_dict_saver"].AsyncCheckpointerType.PROCESS
        checkpoint.async_save({}, checkpoint_id=tmp_path, async_checkpointer_type=kind, **ALONE)


# ---- several ranks ----


def mine(rank: int) -> dict[str, Any]:
    return {f"of {rank}": tp.full((rank + 1,), rank), "model": model_of(3).state_dict(), "step": 12}


def writes(rank: int, size: int, folder: str) -> list[str]:
    found = checkpoint.save(mine(rank), checkpoint_id=folder)
    dist.barrier()
    (own,) = Path(folder).glob(f"__{rank}_*.distcp")
    return [*found.state_dict_metadata, str(own.stat().st_size)]


def reads(rank: int, size: int, folder: str, written_by: int) -> None:
    model = model_of(rank)
    others = {f"of {r}": tp.zeros(r + 1, dtype=tp.int64) for r in range(written_by)}
    state: dict[str, Any] = {"model": model, "step": 0, **others}
    checkpoint.load(state, checkpoint_id=folder)
    assert same(dict(model.state_dict()), dict(model_of(3).state_dict())) and state["step"] == 12
    assert all(state[f"of {r}"].tolist() == [r] * (r + 1) for r in range(written_by))


@needs_mpi
def test_written_by_four_and_read_by_two_and_one(tmp_path: Path) -> None:
    folder = str(tmp_path / "checkpoint")
    said = world(writes, 4, where("file", tmp_path), folder)
    assert all(each[:-1] == said[0][:-1] for each in said) and len(said[0]) == 4 + 9 + 1 + 1
    assert parts(Path(folder)) == [".metadata", *(f"__{r}_0.distcp" for r in range(4))]
    assert all(int(each[-1]) > 0 for each in said)  # all of them wrote something
    world(reads, 2, where("two", tmp_path), folder, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reads(0, 1, folder, 4)
    metadata = checkpoint.FileSystemReader(folder).read_metadata()
    assert len({(i.fqn, i.offset) for i in metadata.storage_data}) == len(metadata.storage_data) == 14
    world(writes, 2, where("again", tmp_path), folder)  # what the other two wrote goes
    assert len(parts(Path(folder))) == 3
    reads_of_two = {f"of {r}": tp.zeros(r + 1, dtype=tp.int64) for r in range(2)}
    checkpoint.load(reads_of_two, checkpoint_id=folder, **ALONE)


def alone_in_one_folder(rank: int, size: int, folder: str) -> None:
    checkpoint.save({"x": tp.full((2,), rank)}, checkpoint_id=folder, use_collectives=False)
    dist.barrier()
    state = {"x": tp.zeros(2, dtype=tp.int64)}
    checkpoint.load(state, checkpoint_id=folder)
    assert state["x"].tolist() == [rank] * 2


class Bad:
    """What cannot be pickled."""

    def __reduce__(self) -> Any:
        raise RuntimeError("this is not to be saved")


def fails_together(rank: int, size: int, folder: str) -> None:
    def fails(state: dict[str, Any], match: str, ranks: list[int]) -> None:
        with pytest.raises(CheckpointException, match=match) as raised:
            checkpoint.save(state, checkpoint_id=folder)
        assert sorted(raised.value.failures) == ranks

    fails({"x": tp.ones(rank + 1)}, r"'x' is a tensor of \[1\], .*float32 on rank 0, and a tensor of \[2\]", [0])
    fails({"x": 1 if rank else tp.ones(1)}, "'x' is a tensor of .* on rank 0, and an object on rank 1", [0])
    fails({"x": 1, f"y{rank}": Bad() if rank else 1}, "rank 1: RuntimeError: this is not to be saved", [1])
    with pytest.raises(CheckpointException, match="written whole") as raised:
        checkpoint.load({"x": 1}, checkpoint_id=folder)
    assert sorted(raised.value.failures) == [0, 1]
    checkpoint.save({"x": 1}, checkpoint_id=folder)
    with pytest.raises(CheckpointException, match=r"rank 1: RuntimeError: Missing key in checkpoint state_dict: z"):
        checkpoint.load({"x": 1, **({"z": 1} if rank else {})}, checkpoint_id=folder)


def goes_on(rank: int, size: int, folder: str) -> None:
    """A checkpoint is written while the program sends messages in the same world."""
    x, futures = tp.zeros(5000), []
    for step in range(6):
        x += 1
        futures.append(checkpoint.async_save({"x": x, "step": step}, checkpoint_id=f"{folder}/{step}"))
        for _ in range(20):
            total = tp.full((100,), float(step))
            dist.all_reduce(total)
            assert total.tolist() == [size * step] * 100
    for step, future in enumerate(futures):
        future.result(SECONDS)
        state = {"x": tp.zeros(5000), "step": -1}
        checkpoint.load(state, checkpoint_id=f"{folder}/{step}")
        assert state["step"] == step and state["x"].min() == step + 1 == state["x"].max()


def in_a_group(rank: int, size: int, folder: str) -> None:
    group = dist.new_group([1, 2])
    if rank in (1, 2):
        checkpoint.save({f"of {rank}": rank}, checkpoint_id=folder, process_group=group)
        state = {"of 1": 0, "of 2": 0}
        checkpoint.load(state, checkpoint_id=folder, process_group=group)
        assert state == {"of 1": 1, "of 2": 2}
    dist.barrier()


@needs_mpi
@pytest.mark.parametrize("program", [alone_in_one_folder, fails_together, goes_on, in_a_group])
def test_ranks(tmp_path: Path, program: Any) -> None:
    world(program, 3 if program is in_a_group else 2, where("file", tmp_path), str(tmp_path / "checkpoint"))


# ---- PyTorch ----


def torch_shards(rank: int, method: str, folder: str) -> None:
    """PyTorch writes tensors in parts: by rows, by columns, whole."""
    import torch
    import torch.distributed as theirs
    from torch.distributed import checkpoint as their_checkpoint
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    theirs.init_process_group("gloo", init_method=method, rank=rank, world_size=2)
    mesh = theirs.init_device_mesh("cpu", (2,))
    whole = torch.arange(35.0).reshape(5, 7)
    state = {
        "rows": distribute_tensor(whole, mesh, [Shard(0)]), "columns": distribute_tensor(whole, mesh, [Shard(1)]),
        "whole": distribute_tensor(whole, mesh, [Replicate()]), "plain": {"a": torch.ones(2), "b": [1, "x"]},
    }  # fmt: skip
    their_checkpoint.save(state, checkpoint_id=folder)
    theirs.destroy_process_group()


def test_shards_that_torch_wrote(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    context = multiprocessing.get_context("spawn")
    folder, method = tmp_path / "checkpoint", f"file://{tmp_path}/store"
    processes = [context.Process(target=torch_shards, args=(r, method, str(folder))) for r in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(SECONDS)
    assert [process.exitcode for process in processes] == [0, 0]
    whole = tp.arange(35.0).reshape(5, 7)
    state: Any = {name: tp.zeros(5, 7) for name in ("rows", "columns", "whole")}
    state["plain"] = {"a": tp.zeros(2), "b": None}
    checkpoint.load(state, checkpoint_id=folder, **ALONE)
    assert all(tp.equal(state[name], whole) for name in ("rows", "columns", "whole"))
    assert state["plain"]["a"].tolist() == [1, 1] and state["plain"]["b"] == [1, "x"]
    metadata = checkpoint.FileSystemReader(folder).read_metadata()
    assert {name: len(metadata.state_dict_metadata[name].chunks) for name in ("rows", "columns", "whole")} == {
        "rows": 2, "columns": 2, "whole": 1,
    }  # fmt: skip


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def test_torch_reads_and_writes_the_same(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from torch.distributed import checkpoint as theirs
    from torch.distributed.checkpoint.state_dict_loader import _load_state_dict_from_keys as their_all

    saved = {key: value for key, value in everything(4).items() if key != 5}
    with quiet():
        checkpoint.save(saved, checkpoint_id=tmp_path / "ours", **ALONE)
        found = their_all(checkpoint_id=tmp_path / "ours")
        theirs.save(found, checkpoint_id=tmp_path / "theirs")
        back = _load_state_dict_from_keys(checkpoint_id=tmp_path / "theirs")
        assert same({**back, "parameter": saved["parameter"]}, saved)
        assert same(back["parameter"], saved["parameter"].detach())
        into = {"x": torch.zeros(2), "n": 0, "l": [torch.zeros(1), 0]}
        checkpoint.save({"x": tp.ones(2), "n": 3, "l": [tp.ones(1), 4]}, checkpoint_id=tmp_path / "more", **ALONE)
        theirs.load(into, checkpoint_id=tmp_path / "more")
    assert into["x"].tolist() == [1, 1] and into["n"] == 3 and into["l"][0].item() == 1 and into["l"][1] == 4
    metadata = theirs.FileSystemReader(tmp_path / "more").read_metadata()
    assert type(metadata).__module__.startswith("torch.") and metadata.version == "1.0.0"


# ---- killed writers ----

KILLED = 9


def killed_at(count: int, folder: str, value: int) -> None:
    """Saves, and ends as by SIGKILL at the count-th time that something is written, renamed or removed."""
    left = itertools.count(count, -1)

    def counted(function: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            if next(left) == 0:
                os._exit(KILLED)
            return function(*args, **kwargs)

        return call

    for owner, name in [
        (checkpoint.DefaultSavePlanner, "resolve_data"), (filesystem, "_sync"), (filesystem, "_sync_folder"),
        (filesystem.metadata_file, "dump"), (Path, "replace"), (Path, "unlink"),
    ]:  # fmt: skip
        setattr(owner, name, counted(getattr(owner, name)))
    checkpoint.save(state_of(value), checkpoint_id=folder, **ALONE)


def state_of(value: int) -> dict[str, Any]:
    return {"x": tp.full((300,), value), "y": tp.full((4, 4), value), "n": value}


def test_a_killed_writer_leaves_one_or_the_other(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    seen: set[int] = set()
    for count in range(40):
        folder = tmp_path / f"{count}"
        if count % 2:
            checkpoint.save(state_of(1), checkpoint_id=folder, **ALONE)
        process = context.Process(target=killed_at, args=(count, str(folder), 2))
        process.start()
        process.join(SECONDS)
        state = state_of(0)
        try:
            checkpoint.load(state, checkpoint_id=folder, **ALONE)
        except CheckpointException as error:
            assert isinstance(error.failures[0][0], FileNotFoundError) and not count % 2  # there was none before
            continue
        value = state["n"]
        assert same(state, state_of(value)) and value in (1, 2)
        seen.add(value)
        checkpoint.save(state_of(3), checkpoint_id=folder, **ALONE)  # and what was left is no hindrance
        assert len(parts(folder)) == 2
        if process.exitcode == 0:
            break
    assert process.exitcode == 0 and seen == {1, 2} and count > 8


class Slow(checkpoint.DefaultSavePlanner):
    """A planner whose rank 1 ends while it writes."""

    def resolve_data(self, write_item: Any) -> Any:
        if dist.get_rank() == 1 and write_item.type is not WriteItemType.BYTE_IO:
            os._exit(KILLED)
        return super().resolve_data(write_item)


def survives(rank: int, folder: str, method: str, said: Any) -> None:
    join(method, rank, 3, 10)
    checkpoint.save({f"{r}": tp.full((3,), 1) for r in range(6)}, checkpoint_id=folder)
    try:
        checkpoint.save({f"{r}": tp.full((3,), 2) for r in range(6)}, checkpoint_id=folder, planner=Slow())
    except dist.DistBackendError as error:
        said.put((rank, str(error)))


@needs_mpi
def test_a_rank_that_ends_while_it_writes_is_named(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    folder, said = tmp_path / "checkpoint", context.Queue()
    args = (str(folder), where("file", tmp_path), said)
    processes = [context.Process(target=survives, args=(r, *args)) for r in range(3)]
    for process in processes:
        process.start()
    came = dict(said.get(timeout=SECONDS) for _ in range(2))
    for process in processes:
        process.join(SECONDS)
    assert came.keys() == {0, 2} and all("rank 1" in text and "ended" in text for text in came.values())
    state = {f"{r}": tp.zeros(3, dtype=tp.int64) for r in range(6)}
    checkpoint.load(state, checkpoint_id=folder, **ALONE)
    assert all(each.tolist() == [1, 1, 1] for each in state.values())
