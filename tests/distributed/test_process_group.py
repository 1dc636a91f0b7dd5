"""Groups as objects: their methods, sparse sums, what profiles have of messages, refusals, at 2 and 4 ranks."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from ranks import needs_mpi, where, world

import tensorpy as tp
from tensorpy import distributed as dist
from tensorpy._package import async_events
from tensorpy.distributed import ReduceOp
from tensorpy.distributed import distributed_c10d as c10d

pytestmark = needs_mpi


def methods(rank: int, size: int) -> None:
    group = dist.group.WORLD
    one, two = tp.full((3,), float(rank)), tp.full((2,), rank + 1.0)
    total = float(sum(range(size)))
    assert group.allreduce([one]).wait() and one.tolist() == [total] * 3
    assert group.allreduce(tp.ones(1), ReduceOp.MAX).get_future().wait()[0].tolist() == [1.0]
    options = c10d.AllreduceOptions(reduceOp=ReduceOp.MAX, timeout=timedelta(seconds=9))
    work = group.allreduce([two], options)
    assert work.wait() and work._seconds == 9 and two.tolist() == [float(size)] * 2
    pair = [tp.ones(2), tp.ones(3)]
    group.allreduce_coalesced(pair).wait()
    assert [t.tolist() for t in pair] == [[float(size)] * 2, [float(size)] * 3]

    sent = tp.tensor([rank])
    group.broadcast([sent], opts=c10d.BroadcastOptions(rootRank=size - 1)).wait()
    assert sent.tolist() == [size - 1]
    group.broadcast(sent := tp.tensor([rank]), 1).wait()
    assert sent.tolist() == [1]
    group.reduce([sent := tp.tensor([rank])], 1, ReduceOp.SUM).wait()
    assert sent.tolist() == ([int(total)] if rank == 1 else [rank])

    everyone = [tp.zeros(1, dtype=tp.int64) for _ in range(size)]
    group.allgather([everyone], [tp.tensor([rank])]).wait()
    assert [int(t) for t in everyone] == list(range(size))
    group.allgather(everyone, tp.tensor([2 * rank])).wait()
    assert [int(t) for t in everyone] == list(range(0, 2 * size, 2))
    whole = tp.zeros(size, dtype=tp.int64)
    group._allgather_base(whole, tp.tensor([rank])).wait()
    assert whole.tolist() == list(range(size))
    group.allgather_into_tensor_coalesced([whole], [tp.tensor([-rank])]).wait()
    assert whole.tolist() == [-r for r in range(size)]
    columns = [[tp.zeros(1), tp.zeros(2)] for _ in range(size)]
    group.allgather_coalesced(columns, [tp.full((1,), float(rank)), tp.full((2,), float(rank))]).wait()
    assert [[t.tolist() for t in c] for c in columns] == [[[float(r)], [float(r)] * 2] for r in range(size)]

    row = [tp.zeros(1) for _ in range(size)]
    group.gather([row] if rank == 1 else [], [tp.tensor([float(rank)])], c10d.GatherOptions(rootRank=1)).wait()
    assert [float(t) for t in row] == ([float(r) for r in range(size)] if rank == 1 else [0.0] * size)
    part = tp.zeros(1)
    group.scatter(part, [tp.tensor([float(r)]) for r in range(size)] if rank == 0 else [], 0).wait()
    assert float(part) == rank
    group.reduce_scatter([part], [[tp.tensor([float(r)]) for r in range(size)]]).wait()
    assert float(part) == rank * size
    group._reduce_scatter_base(part, tp.arange(float(size))).wait()
    assert float(part) == rank * size
    group.reduce_scatter_tensor_coalesced([part], [tp.arange(float(size))]).wait()
    assert float(part) == rank * size

    group.alltoall_base(whole, tp.full((size,), rank), [], []).wait()
    assert whole.tolist() == list(range(size))
    group.alltoall(row, [tp.full((1,), float(rank)) for _ in range(size)]).wait()
    assert [float(t) for t in row] == [float(r) for r in range(size)]
    if rank == 0:
        group.send([tp.tensor([7])], 1, 3).wait()
        work = group.recv_anysource([sent], 4)
        assert work.wait() and work._source_rank() == 1 and sent.tolist() == [8]
    elif rank == 1:
        assert group.recv([sent], 0, 3).wait() and sent.tolist() == [7]
        group.send(tp.tensor([8]), 0, 4).wait()
    group.barrier(opts=c10d.BarrierOptions()).wait()
    group.monitored_barrier(timedelta(seconds=30))
    for wrong in ([], [one, one]):
        with pytest.raises(RuntimeError, match="requires a single-element tensor list"):
            group.allreduce(wrong)
    with c10d._coalescing_manager(async_ops=True) as several:
        row = [tp.full((2,), rank + 1.0) for _ in range(2)]
        dist.all_reduce(row[0])
        several.append(dist.all_reduce(row[1], async_op=True))
    several.wait()
    assert [t.tolist() for t in row] == [[size * (size + 1) / 2] * 2] * 2
    options = c10d.BroadcastOptions()
    for options.rootRank in (-1, size):
        with pytest.raises(RuntimeError, match="invalid root rank"):
            group.broadcast([one], opts=options)
    made = dist.new_group(group_desc="all of them")
    assert (group.group_desc, made.group_desc, group.bound_device_id) == ("default_pg", "all of them", None)
    with pytest.raises(TypeError, match="timeout is a datetime"):
        dist.new_group(timeout=5)
    with pytest.raises(ValueError, match="one list of tensors"):
        group.allgather([everyone, everyone], [tp.tensor([rank])])


@pytest.mark.parametrize("size", [2, 4])
def test_methods(size: int, tmp_path: Path) -> None:
    world(methods, size, where("tcp", tmp_path))


def generated(rank: int, size: int, sparse: int, dense: int) -> Any:
    indices = tp.zeros(sparse, rank + 1, dtype=tp.int64)
    indices[0] = tp.arange(rank + 1) % size
    return tp.sparse_coo_tensor(indices, tp.ones(rank + 1, *[2] * dense) * (rank + 1), [size] * sparse + [2] * dense)


def sparse(rank: int, size: int) -> None:
    for dims in ((1, 0), (2, 0), (3, 0), (1, 1), (1, 2), (2, 2)):
        for async_op in (False, True):
            mine = generated(rank, size, *dims)
            work = dist.all_reduce(mine, async_op=async_op)
            assert work is None or work.wait()
            expected = sum(generated(r, size, *dims).to_dense() for r in range(size))
            assert mine.is_coalesced() and tp.equal(mine.to_dense(), expected), dims
    nothing = tp.sparse_coo_tensor(tp.zeros(1, 0, dtype=tp.int64), tp.zeros(0), [3])
    mine = tp.sparse_coo_tensor([[2]], [5.0], [3]) if rank == 1 else nothing
    dist.all_reduce(mine)
    assert mine.to_dense().tolist() == [0.0, 0.0, 5.0]
    with pytest.raises(RuntimeError, match="sums alone"):
        dist.all_reduce(mine, ReduceOp.MAX)
    differing = tp.sparse_coo_tensor([[0]], [1.0], [3 + rank])
    with pytest.raises(RuntimeError, match="of all processes are of one shape"):
        dist.all_reduce(differing)
    with pytest.raises(RuntimeError, match="of all processes are of one shape"):
        dist.all_reduce(generated(0, 2, 1, 1) if rank == 0 else generated(0, 2, 2, 0))
    with pytest.raises(NotImplementedError, match="sparse_csr"):
        dist.all_reduce(tp.eye(2).to_sparse_csr())


@pytest.mark.parametrize("size", [2, 4])
def test_sparse_sums(size: int, tmp_path: Path) -> None:
    world(sparse, size, where("tcp", tmp_path))


def profiled(rank: int, size: int) -> None:
    with tp.autograd.profiler.profile(record_shapes=True) as p:
        dist.all_reduce(tp.ones(2, 3))
        dist.all_reduce(tp.ones(4, dtype=tp.complex64), async_op=True).wait()
        dist.all_reduce_coalesced([tp.ones(1), tp.ones(5)])
        dist.all_gather_coalesced([[tp.ones(1), tp.ones(5)] for _ in range(size)], [tp.ones(1), tp.ones(5)])
        dist.all_reduce(tp.eye(2).to_sparse())
        if rank == 0:
            dist.send(tp.ones(6), 1)
        elif rank == 1:
            dist.recv(tp.ones(6))
    seen = [(e.name, e.input_shapes) for e in p.function_events if e.is_async]
    expected = [
        ("gloo:all_reduce", [[2, 3]]),
        ("gloo:all_reduce", [[4, 2]]),
        ("gloo:all_reduce", [[1], [5]]),
        ("gloo:all_gather", [[1], [5]]),
        ("gloo:sparse_all_reduce", [[2, 2]]),
    ]
    last = [("gloo:send", [[6]])] if rank == 0 else [("gloo:recvAnySource", [[6]])] if rank == 1 else []
    assert seen == expected + last
    for event in p.function_events:
        if event.is_async:
            assert event.cpu_time >= 0 and event.self_cpu_time_total == 0
            assert event.cpu_parent is None and not event.cpu_children
    assert "gloo:all_reduce" in p.key_averages().table() and "messages" in p._repr_html_()
    path = f"trace_of_{rank}.json"
    p.export_chrome_trace(path)
    import json

    with open(path) as file:
        trace = [e for e in json.load(file)["traceEvents"] if e.get("cat") == "message"]
    assert sorted(e["ph"] for e in trace) == sorted("be" * len(seen))
    with tp.profiler.profile() as outer:  # shapes were not asked for
        begun = dist.all_reduce(tp.ones(2), async_op=True)
    begun.wait()
    (event,) = (e for e in outer.events() if e.is_async)
    assert event.input_shapes == []
    dist.barrier()
    assert not async_events.recording


@pytest.mark.parametrize("size", [2, 4])
def test_messages_in_profiles(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    world(profiled, size, where("tcp", tmp_path))


def refusals(rank: int, size: int) -> None:
    with pytest.raises(ValueError, match=r"all_reduce does not support ReduceOp.MAX on complex tensors"):
        dist.all_reduce(tp.ones(1, dtype=tp.complex64), ReduceOp.MAX)
    with pytest.raises(ValueError, match="all_reduce does not support"):
        dist.all_reduce_coalesced([tp.ones(1, dtype=tp.complex64)], ReduceOp.PRODUCT)
    for tag in (-1, -(2**31), 2**31, 2**40):  # -1 means any, and higher bits are lost, in a library of MPI
        for sends in (dist.send, dist.isend, dist.recv, dist.irecv):
            with pytest.raises(ValueError, match=f"Tag must be nonnegative.* not {tag}"):
                sends(tp.ones(1), (rank + 1) % size, tag=tag)
    group = dist.new_group([0, 1])
    assert dist._rank_not_in_group(group) == (rank > 1) and not dist._rank_not_in_group(None)
    if rank > 1:
        with pytest.raises(ValueError, match="Invalid process group specified"):
            dist.get_backend(group)
    elif rank == 0:
        begin = time.monotonic()
        with pytest.raises(RuntimeError, match="Rank 0 timed out in monitoredBarrier"):
            group.monitored_barrier(timedelta(0))
        assert time.monotonic() - begin < 5
    dist.barrier()
    dist.destroy_process_group(group)  # nothing in who is not in it
    if rank == 0:
        with pytest.raises(RuntimeError, match=r"Ranks? 1.* failed to pass monitoredBarrier"):
            dist.monitored_barrier(timeout=timedelta(seconds=2))
    elif rank > 1:
        said = f"Rank {rank} successfully reached monitoredBarrier, but received errors"
        with pytest.raises(RuntimeError, match=said):
            dist.monitored_barrier(timeout=timedelta(seconds=2))


@pytest.mark.parametrize("size", [2, 4])
def test_refusals(size: int, tmp_path: Path) -> None:
    world(refusals, size, where("tcp", tmp_path))


def test_names_of_backends() -> None:
    for wrong in (None, 3, ["gloo"]):
        with pytest.raises(ValueError, match="Backend name must be a string"):
            dist.Backend(wrong)  # type: ignore[arg-type]


def a_breakpoint(rank: int, size: int, folder: str) -> int:
    """Rank 1 stops, where a debugger's commands come from a file; the others wait for it."""
    import sys

    Path(folder, "commands").write_text("up\np 'rank', dist.get_rank()\ncontinue\n")
    if rank == 1:
        sys.stdin = Path(folder, "commands").open()
        sys.stdout = Path(folder, "said").open("w")
    dist.breakpoint(1, skip=5)
    dist.breakpoint(1, timeout_s=float("inf"))
    if rank == 1:
        sys.stdout.flush()
        sys.stdout = sys.__stdout__
    dist.barrier(dist.new_group())  # which has for ever, too
    return int("('rank', 1)" in Path(folder, "said").read_text())


@needs_mpi
def test_a_breakpoint_in_one_process(tmp_path: Path) -> None:
    assert world(a_breakpoint, 2, where("file", tmp_path), str(tmp_path)) == [1, 1]


def less_one(rank: int, size: int) -> list[float]:
    from tensorpy.distributed import _functional_collectives as funcol

    with tp.profiler.profile() as p, dist.record_comm("mine"):
        dist.all_reduce(tp.ones(3))
    assert any(e.name == "mine" for e in p.events())
    y = tp.empty(size)
    funcol.all_gather_tensor_inplace(y, tp.tensor([float(rank)]))
    assert y.tolist() == [float(r) for r in range(size)]
    part = tp.empty(1)
    funcol.reduce_scatter_tensor_inplace(part, y)
    assert part.item() == size * rank
    turned = funcol.all_to_all_inplace(tp.empty(size), y + 10 * rank)
    assert turned.tolist() == [10.0 * r + rank for r in range(size)]
    several = [tp.empty(r + 1) for r in range(size)]
    funcol.all_gather_inplace(several, tp.full((rank + 1,), float(rank)))
    assert [t.tolist() for t in several] == [[float(r)] * (r + 1) for r in range(size)]
    if rank == 1:
        return []
    left = dist.shrink_group([1])
    return funcol.all_reduce_inplace(tp.tensor([float(rank)]), group=left).tolist()


@needs_mpi
def test_names_in_profiles_what_writes_and_a_group_without_one(tmp_path: Path) -> None:
    assert world(less_one, 3, where("file", tmp_path)) == [[2.0], [], [2.0]]


def by_store(rank: int, size: int, folder: str) -> None:
    """Groups over stores, beside the world: all of it, and its last two the other way round."""
    group = dist.ProcessGroupGloo(dist.FileStore(folder + "/all", size), rank, size, timedelta(seconds=30))
    assert (group.rank(), group.size(), group._seconds) == (rank, size, 30)
    x = tp.full((3,), float(rank))
    assert group.allreduce([x]).wait() and x.tolist() == [float(sum(range(size)))] * 3
    place = size - 1 - rank
    if place > 1:
        return
    two = dist.ProcessGroupGloo(dist.FileStore(folder + "/two", 2), place, 2)
    y = tp.tensor([rank])
    two.broadcast([y]).wait()
    assert y.item() == size - 1 and dist.get_process_group_ranks(two) == [size - 1, size - 2]
    dist.all_reduce(y, group=two)
    assert y.item() == 2 * (size - 1)


def by_store_alone(rank: int, folder: str) -> None:
    store = dist.FileStore(folder + "/alone", 2)
    groups = [dist.ProcessGroupGloo(dist.PrefixStore(str(i), store), rank, 2) for i in range(2)]
    for group in groups:
        x = tp.tensor([rank + 1])
        group.allreduce([x]).wait()
        assert x.item() == 3 and not dist.is_initialized()


@needs_mpi
def test_groups_over_stores(tmp_path: Path) -> None:
    from tensorpy import multiprocessing as mp

    world(by_store, 3, where("file", tmp_path), str(tmp_path))
    mp.spawn(by_store_alone, (str(tmp_path),), nprocs=2)
    with pytest.raises(ValueError, match="rank 2 of 2"):
        dist.ProcessGroupGloo(dist.HashStore(), 2, 2)
