"""What processes of a world send each other: functions, dtypes, operations, groups, Work, at 2 and 4 ranks."""

from __future__ import annotations

import functools
import itertools
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from ranks import needs_mpi, where, world

import tensorpy as tp
from tensorpy import distributed as dist
from tensorpy.distributed import ReduceOp

pytestmark = needs_mpi

INTEGERS = [tp.uint8, tp.int8, tp.int16, tp.uint16, tp.int32, tp.uint32, tp.int64, tp.uint64]
FLOATS = [tp.float16, tp.bfloat16, tp.float32, tp.float64]
COMPLEX = [tp.complex64, tp.complex128]
STORED = [tp.float8_e4m3fn, tp.complex32]
BITS = {1: tp.uint8, 2: tp.int16, 4: tp.int32, 8: tp.int64}


def bits(t: Any) -> list[int]:
    """The bytes of a tensor's values."""
    return list(bytes(memoryview(t.contiguous().reshape(-1).view(tp.uint8)))) if t.numel() else []


def given(rank: int, dtype: Any, n: int = 12) -> Any:
    """Small whole numbers, of which sums and products are exact in every dtype."""
    values = [(7 * i + 3 * rank) % 3 for i in range(n)]
    return tp.tensor(values, dtype=tp.int64).to(dtype)


def one_of(op: Any, parts: list[Any]) -> Any:
    wide = [p if p.dtype in COMPLEX or p.dtype == tp.float64 else p.to(tp.int64) for p in parts]
    steps = {
        ReduceOp.SUM: lambda a, b: a + b,
        ReduceOp.PRODUCT: lambda a, b: a * b,
        ReduceOp.MIN: lambda a, b: tp.minimum(a, b),
        ReduceOp.MAX: lambda a, b: tp.maximum(a, b),
        ReduceOp.BAND: lambda a, b: a & b,
        ReduceOp.BOR: lambda a, b: a | b,
        ReduceOp.BXOR: lambda a, b: a ^ b,
    }
    return functools.reduce(steps[op], wide).to(parts[0].dtype)


ARITHMETIC = [ReduceOp.SUM, ReduceOp.PRODUCT, ReduceOp.MIN, ReduceOp.MAX]
BITWISE = [ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR]


def reductions(rank: int, size: int) -> None:
    for dtype in [*INTEGERS, *FLOATS, *COMPLEX, tp.bool]:
        parts = [given(r, dtype) for r in range(size)]
        for op in [*ARITHMETIC, *BITWISE, ReduceOp.AVG]:
            fits = not (dtype in COMPLEX and op not in (ReduceOp.SUM, ReduceOp.AVG))
            fits = fits and not (dtype in FLOATS and op in BITWISE) and not (dtype == tp.bool and op is ReduceOp.AVG)
            mine = parts[rank].clone()
            if not fits:
                said = "all_reduce does not support" if dtype in COMPLEX else f"ReduceOp.{op.name} is no operation of"
                with pytest.raises((RuntimeError, ValueError), match=said):
                    dist.all_reduce(mine, op)
                continue
            if op is ReduceOp.AVG:
                total = one_of(ReduceOp.SUM, parts)
                exact = dtype in FLOATS or dtype in COMPLEX
                expected = total / size if exact else total.div(size, rounding_mode="trunc")
                expected = expected.to(dtype)
            else:
                expected = one_of(op, parts)
            assert dist.all_reduce(mine, op) is None
            assert mine.dtype == dtype and mine.tolist() == expected.tolist(), (dtype, op)
            mine = parts[rank].clone()
            dist.reduce(mine, size - 1, op)
            assert mine.tolist() == (expected if rank == size - 1 else parts[rank]).tolist(), (dtype, op)
            # each process's part is its own column of what all give
            lists = [[given(r + c, dtype, 5) for c in range(size)] for r in range(size)]
            out = tp.empty(5, dtype=dtype)
            dist.reduce_scatter(out, lists[rank], op)
            whole = tp.empty(5, dtype=dtype)
            dist.reduce_scatter_tensor(whole, tp.cat(lists[rank]), op)
            assert whole.tolist() == out.tolist()
            if op is not ReduceOp.AVG:
                assert out.tolist() == one_of(op, [lists[r][rank] for r in range(size)]).tolist(), (dtype, op)
    for dtype in STORED:
        with pytest.raises(RuntimeError, match="is no operation of"):
            dist.all_reduce(tp.zeros(2, dtype=dtype))
    weighed = tp.full((3,), 2.0)
    dist.all_reduce(weighed, dist.distributed_c10d._make_nccl_premul_sum(0.5))
    assert weighed.tolist() == [float(size)] * 3
    with pytest.raises(ValueError, match="PREMUL_SUM needs a factor"):
        dist.all_reduce(weighed, ReduceOp.PREMUL_SUM)


def equal_to_the_bit(rank: int, size: int) -> None:
    """Replicas that add their gradients must not drift apart: the same bits in all, for every size and dtype."""
    for dtype in [*FLOATS, *COMPLEX]:
        for n in (1, 7, 1000, 40_000, 3_000_001) if dtype == tp.float32 else (1, 1000, 40_000):
            tp.manual_seed(100 * rank + n)
            mine = tp.randn(n, dtype=tp.float32).to(dtype)
            mine[: n // 10] *= 1000
            exact = mine.to(tp.complex128 if dtype in COMPLEX else tp.float64)
            dist.all_reduce(exact)
            dist.all_reduce(mine)
            others = [tp.empty_like(mine) for _ in range(size)]
            dist.all_gather(others, mine)
            itemsize = mine.element_size()
            words = [o.view(tp.int64 if dtype in COMPLEX else BITS[itemsize]) for o in others]
            assert all(tp.equal(w, words[0]) for w in words), (dtype, n)
            error = (mine.to(exact.dtype) - exact).abs().max().item()
            assert error <= exact.abs().max().item() * size * float(tp.finfo(mine.dtype).eps), (dtype, n)
    for dtype in FLOATS:
        odd = [[0.0, -0.0, float("nan"), 1.0, float("inf")], [-0.0, 0.0, 1.0, float("nan"), float("-inf")]]
        for op in (ReduceOp.MIN, ReduceOp.MAX):
            mine = tp.tensor(odd[rank % 2], dtype=dtype)
            dist.all_reduce(mine, op)
            others = [tp.empty_like(mine) for _ in range(size)]
            dist.all_gather(others, mine)
            assert len({tuple(bits(o)) for o in others}) == 1
            assert mine[2].isnan() and mine[3].isnan() and mine[0].signbit().item() == (op is ReduceOp.MIN)


def moves(rank: int, size: int) -> None:
    for dtype in [*INTEGERS, *FLOATS, *COMPLEX, *STORED, tp.bool]:
        for shape in ((6,), (), (2, 3), (0,)):
            n = functools.reduce(lambda a, b: a * b, shape, 1)

            def of(r: int, dtype: Any = dtype, n: int = n, shape: Any = shape) -> Any:
                return given(r, tp.float32, n).to(dtype).reshape(shape)

            mine = of(rank).clone()
            dist.broadcast(mine, size - 1)
            assert bits(mine) == bits(of(size - 1))
            others = [tp.empty_like(mine) for _ in range(size)]
            dist.all_gather(others, of(rank))
            assert [bits(o) for o in others] == [bits(of(r)) for r in range(size)]
            together = tp.empty((size, *shape), dtype=dtype)
            dist.all_gather_into_tensor(together, of(rank))
            assert bits(together) == [b for r in range(size) for b in bits(of(r))]
            others = [tp.empty_like(mine) for _ in range(size)]
            dist.gather(of(rank), others if rank == 1 else None, 1)
            if rank == 1:
                assert [bits(o) for o in others] == [bits(of(r)) for r in range(size)]
            part = tp.empty(shape, dtype=dtype)
            dist.scatter(part, [of(r + 5) for r in range(size)] if rank == 1 else None, 1)
            assert bits(part) == bits(of(rank + 5))
            gotten = [tp.empty(r + 1, dtype=dtype) for r in range(size)]
            dist.all_to_all(gotten, [given(10 * rank + r, tp.float32, rank + 1).to(dtype) for r in range(size)])
            for r, got in enumerate(gotten):
                assert bits(got) == bits(given(10 * r + rank, tp.float32, r + 1).to(dtype))


def exchanges(rank: int, size: int) -> None:
    rows = tp.arange(size * 2 * 3).reshape(size * 2, 3) + 100 * rank
    out = tp.empty_like(rows)
    dist.all_to_all_single(out, rows)
    expected = [100 * r + (2 * rank + i) * 3 + c for r in range(size) for i in range(2) for c in range(3)]
    assert out.reshape(-1).tolist() == expected
    # rank r sends r + p + 1 rows to rank p
    given_sizes, gotten_sizes = [rank + p + 1 for p in range(size)], [p + rank + 1 for p in range(size)]
    rows = tp.full((sum(given_sizes), 2), float(rank))
    out = tp.empty(sum(gotten_sizes), 2)
    dist.all_to_all_single(out, rows, gotten_sizes, given_sizes)
    assert out[:, 0].tolist() == [float(p) for p in range(size) for _ in range(p + rank + 1)]
    with pytest.raises(ValueError, match="no sizes of"):
        dist.all_to_all_single(out, rows, [1] * size, given_sizes)


def layouts(rank: int, size: int) -> None:
    """Memory with gaps, transposed, conjugated, on another layout: packed, and copied back."""
    base = tp.zeros(4, 6)
    part = base[:, ::2]
    part.fill_(rank + 1.0)
    total = size * (size + 1) / 2
    dist.all_reduce(part)
    assert part.tolist() == [[total] * 3] * 4 and base[:, 1].tolist() == [0.0] * 4
    work = dist.all_reduce(part.T, async_op=True)
    work.wait()
    assert part.tolist() == [[total * size] * 3] * 4
    c = tp.tensor([1 + 2j]).conj()
    others = [tp.empty(1, dtype=tp.complex64) for _ in range(size)]
    dist.all_gather(others, c)
    assert [o.item() for o in others] == [1 - 2j] * size
    images = tp.ones(2, 3, 4, 4).to(memory_format=tp.channels_last)
    dist.all_reduce(images)
    assert images.is_contiguous(memory_format=tp.channels_last) and images.sum().item() == 96 * size
    with pytest.raises(NotImplementedError, match="layout"):
        dist.all_reduce(tp.eye(2).to_sparse_csr())
    leaf = tp.ones(2, requires_grad=True)
    twice = leaf * 2
    dist.all_reduce(twice)
    assert twice.tolist() == [2.0 * size] * 2
    saved = (x := tp.ones(2, requires_grad=True)).exp()
    y = saved * saved
    dist.all_reduce(saved)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    assert x.grad is None


def works(rank: int, size: int) -> None:
    many = [tp.full((1000,), float(i + rank)) for i in range(20)]
    begun = [dist.all_reduce(t, async_op=True) for t in many]
    for i in reversed(range(20)):
        assert begun[i].wait() is True and begun[i].is_completed() and begun[i].is_success()
        assert many[i][0].item() == sum(i + r for r in range(size)) and begun[i].exception() is None
    several = [tp.ones(2), tp.full((3,), float(rank))]
    dist.all_reduce_coalesced(several)
    assert several[0].tolist() == [size] * 2 and several[1][0].item() == size * (size - 1) / 2
    lists = [[tp.zeros(1), tp.zeros(2)] for _ in range(size)]
    together = dist.all_gather_coalesced(lists, [tp.full((1,), float(rank)), tp.full((2,), -1.0)], async_op=True)
    assert together.wait() and together.is_completed()
    assert [[t.tolist() for t in pair] for pair in lists] == [[[float(r)], [-1.0, -1.0]] for r in range(size)]
    work = dist.all_reduce(tp.ones(2), async_op=True)
    future = work.get_future().then(lambda f: f.value()[0] / size)
    assert future.wait().tolist() == [1.0, 1.0] and work.result()[0].tolist() == [float(size)] * 2
    dist.all_reduce(tp.ones(500_000), async_op=True)  # a Work that nobody keeps
    dist.barrier()
    assert dist.barrier(async_op=True).wait()
    dist.monitored_barrier(wait_all_ranks=True)


def objects(rank: int, size: int) -> None:
    mine = {"rank": rank, "data": list(range(rank * 100)), "t": tp.full((rank,), 1.0)}
    got: list[Any] = [None] * size
    dist.all_gather_object(got, mine)
    assert [g["rank"] for g in got] == list(range(size)) and len(got[1]["data"]) == 100
    got = [None] * size
    dist.gather_object(mine, got if rank == 1 else None, 1)
    assert rank != 1 or [g["t"].numel() for g in got] == list(range(size))
    both = ["a" * 1000, {1, 2}] if rank == 0 else [None, None]
    dist.broadcast_object_list(both, 0)
    assert both == ["a" * 1000, {1, 2}]
    got = [None]
    dist.scatter_object_list(got, [f"for {r}" * (r + 1) for r in range(size)] if rank == 1 else None, 1)
    assert got == [f"for {rank}" * (rank + 1)]
    if rank == 0:
        dist.send_object_list(["x", (1, 2)], 1)
    elif rank == 1:
        got = [None, None]
        assert dist.recv_object_list(got, 0) == 0 and got == ["x", (1, 2)]


def two(rank: int, size: int) -> None:
    """Point to point: a ring, any source, tags, several at once, what does not fit."""
    right, left = (rank + 1) % size, (rank - 1) % size
    there, back = tp.full((200_000,), float(rank)), tp.empty(200_000)
    begun = dist.batch_isend_irecv([dist.P2POp(dist.isend, there, right), dist.P2POp(dist.irecv, back, left)])
    assert all(work.wait() for work in begun) and back[-1].item() == left
    if rank == 0:
        seen = set()
        for _ in range(size - 1):
            t = tp.empty(3, dtype=tp.bfloat16)
            source = dist.recv(t)
            assert t.tolist() == [float(source)] * 3
            seen.add(source)
        assert seen == set(range(1, size))
        gaps = tp.zeros(4)
        work = dist.irecv(gaps[::2], 1, tag=7)
        dist.recv(gaps[1:2], 1, tag=8)
        work.wait()
        assert gaps.tolist() == [1.0, 3.0, 2.0, 0.0] and work.source_rank() == 1
        with pytest.raises(dist.DistBackendError, match="8 bytes came from rank 1, the tensor has 16 bytes"):
            dist.recv(tp.empty(4), 1, tag=9)
        with pytest.raises(dist.DistBackendError, match="with rank 1 in group 0: the message that came is longer"):
            dist.recv(tp.empty(1), 1, tag=9)
    else:
        dist.send(tp.full((3,), float(rank)).to(tp.bfloat16), 0)
    if rank == 1:
        dist.send(tp.tensor([3.0]), 0, tag=8)
        dist.send(tp.tensor([1.0, 2.0]), 0, tag=7)
        dist.send(tp.ones(2), 0, tag=9)
        dist.send(tp.ones(2), 0, tag=9)
    for wrong in (lambda: dist.send(there, rank), lambda: dist.send(there, size), lambda: dist.send(there)):
        with pytest.raises(ValueError):
            wrong()


def groups(rank: int, size: int) -> None:
    evens = dist.new_group(list(range(0, size, 2)))
    pair = dist.new_group([1, 0])
    mine, every = dist.new_subgroups(2)
    if rank < 2:
        t = tp.tensor([float(rank)])
        dist.all_reduce(t, group=pair)
        assert t.item() == 1 and dist.get_rank(pair) == rank and dist.get_process_group_ranks(pair) == [0, 1]
        dist.broadcast(t.fill_(rank), group=pair, group_src=1)
        assert t.item() == 1
    else:
        assert pair is dist.GroupMember.NON_GROUP_MEMBER and dist.get_rank(pair) == -1
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert dist.all_reduce(tp.ones(1), group=pair) is None
        assert "does not belong to the given group" in str(caught[0].message)
    if rank % 2 == 0:
        t = tp.tensor([1.0])
        dist.all_reduce(t, group=evens)  # a group of one process at two ranks
        assert t.item() == (size + 1) // 2
        assert dist.get_global_rank(evens, dist.get_rank(evens)) == rank
    assert len(every) == size // 2 and dist.get_process_group_ranks(mine) == [rank // 2 * 2, rank // 2 * 2 + 1]
    x, y = tp.tensor([1.0]), tp.tensor([1.0])
    first, second = dist.all_reduce(x, group=mine, async_op=True), dist.all_reduce(y, async_op=True)
    second.wait()
    first.wait()
    assert (x.item(), y.item()) == (2.0, float(size))
    dist.destroy_process_group(mine)
    local = dist.new_group([rank // 2 * 2, rank // 2 * 2 + 1], use_local_synchronization=True)
    dist.all_reduce(x, group=local)
    assert x.item() == 4.0
    with pytest.raises(dist.DistBackendError, match="destroyed"):
        dist.all_reduce(x, group=mine)
    turned = dist.new_group([1, 0], sort_ranks=False)
    if rank < 2:
        assert dist.get_rank(turned) == 1 - rank
        dist.broadcast(y.fill_(rank), group=turned, group_src=0)
        assert y.item() == 1
    part = dist.split_group(split_ranks=[list(range(size // 2)), list(range(size // 2, size))])
    assert dist.get_world_size(part) == size // 2
    for wrong in ([0, 0], [size], [-1]):
        with pytest.raises(ValueError):
            dist.new_group(wrong)


def mistakes(rank: int, size: int) -> None:
    t = tp.ones(2)
    for wrong, text in (
        (lambda: dist.all_gather([t], t), f"expected a list of {size}"),
        (lambda: dist.all_gather([t] * size, tp.ones(3)), "tensor 0 of the list"),
        (lambda: dist.all_gather([t] * size, tp.ones(2, dtype=tp.int32)), "int32"),
        (lambda: dist.all_gather_into_tensor(tp.ones(3), t), "a part for each process"),
        (lambda: dist.reduce_scatter_tensor(t, t), "a part for each process"),
        (lambda: dist.broadcast(t), "must specify"),
        (lambda: dist.broadcast(t, 0, group_src=0), "both"),
        (lambda: dist.broadcast(t, size), "not part of group"),
        (lambda: dist.scatter(t, [t] * size if rank else None), "scatter_list"),
        (lambda: dist.gather(t, [t] * size if rank else None), "gather_list"),
        (lambda: dist.all_to_all([t], [t]), "expected lists of"),
        (lambda: dist.all_gather_object([None], 1), "expected a list of"),
    ):
        with pytest.raises((ValueError, RuntimeError), match=text):
            wrong()
    with pytest.raises(TypeError, match="expected a tensor"):
        dist.all_reduce([1])
    with pytest.raises(RuntimeError, match="meta"):
        dist.all_reduce(tp.ones(2, device="meta"))
    dist.all_reduce(t)  # and the world goes on
    assert t.tolist() == [float(size)] * 2


def compared(rank: int, size: int) -> None:
    """TORCH_DISTRIBUTED_DEBUG=DETAIL: processes that do not begin the same message say so, and go on."""
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    t = tp.ones(2)
    dist.all_reduce(t)
    for wrong, text in (
        (lambda: dist.all_reduce(tp.ones(rank + 1)), r"rank 1: all_reduce of tensorpy.float32\[2\] by SUM"),
        (lambda: dist.all_reduce(tp.ones(1)) if rank else dist.barrier(), "rank 0: barrier; rank 1: all_reduce"),
        (
            lambda: dist.all_reduce(tp.ones(1, dtype=tp.float64 if rank else tp.float32)),
            "rank 1: all_reduce of .*float64",
        ),
        (lambda: dist.broadcast(t, rank % 2), "with root 1"),
    ):
        with pytest.raises(dist.DistBackendError, match=text):
            wrong()
    with pytest.raises(dist.DistBackendError, match="elements, where this rank expects"):
        dist.all_to_all_single(tp.ones(3 * size), tp.ones(2 * size), [3] * size, [2] * size)
    dist.all_reduce(t)
    dist.set_debug_level(dist.DebugLevel.OFF)
    assert t.tolist() == [float(size * size)] * 2


PROGRAMS = [
    reductions, equal_to_the_bit, moves, exchanges, layouts, works, objects, two, groups, mistakes, compared,
]  # fmt: skip


def every_program(rank: int, size: int) -> None:
    assert (dist.get_rank(), dist.get_world_size()) == (rank, size)
    for program in PROGRAMS:
        program(rank, size)
        dist.barrier()


@pytest.mark.parametrize(("size", "store"), [(2, "tcp"), (4, "file")])
def test_all_of_it(size: int, store: str, tmp_path: Path) -> None:
    world(every_program, size, where(store, tmp_path))


def unlike_parts(rank: int, size: int) -> None:
    """reduce_scatter of parts of unlike shapes, each process's own."""
    for async_op in (False, True):
        found = tp.zeros(rank + 1, 3)
        work = dist.reduce_scatter(
            found, [tp.full((r + 1, 3), float(rank + 1)) for r in range(size)], async_op=async_op
        )
        if async_op:
            work.wait()
        assert found.tolist() == [[size * (size + 1) / 2] * 3] * (rank + 1)
    with pytest.raises(ValueError, match="out of range"):
        dist.new_group([0, size])
    with pytest.raises(ValueError, match="must not exceed"):
        dist.new_subgroups(size + 1)
    x = tp.ones(2)
    with dist._coalescing_manager(async_ops=True) as together:
        dist.all_reduce(x)
    together.wait()
    assert x.tolist() == [size] * 2


def test_parts_of_unlike_shapes(tmp_path: Path) -> None:
    world(unlike_parts, 2, where("file", tmp_path))


def new_pages(rank: int, size: int) -> list[int]:
    """How many pages the kernel gave this process for each of some sums."""
    import resource

    t, seen = tp.ones(4 << 20), [0]
    for _ in range(5):
        dist.all_reduce(t)
        seen.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
    return [after - before for before, after in itertools.pairwise(seen[2:])]


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's way with memory")
def test_memory_of_a_sum_is_kept(tmp_path: Path) -> None:
    for pages in world(new_pages, 2, where("file", tmp_path)):
        assert max(pages) < 500, pages  # of 4 KiB: MPI's own memory alone is 2,000
