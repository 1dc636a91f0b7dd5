"""Random messages beside torch's gloo, in the same processes: kind, dtype, shape, operation, group, async, order.

A run takes a seed that stays; `python tests/distributed/test_against_gloo.py SEED COUNT RANKS` takes others, and more.
"""

from __future__ import annotations

import importlib.util
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from ranks import needs_mpi, where, world

import tensorpy as tp
from tensorpy import distributed as ours

DTYPES = ["float32", "float64", "int32", "int64", "uint8", "int8", "float16", "bfloat16"]
OPS = ["SUM", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"]
LONG = 3000  # times as long as others are some messages
KINDS = [
    "all_reduce", "reduce", "broadcast", "all_gather", "all_gather_into_tensor", "gather", "scatter", "reduce_scatter",
    "all_to_all_single", "isend",
]  # fmt: skip


def draw(numbers: random.Random, size: int) -> dict[str, Any]:
    """What all processes are to do next: the same in all, as they draw from one seed."""
    dtype = numbers.choice(DTYPES)
    whole = not dtype.startswith(("float", "bfloat"))
    return {
        "kind": numbers.choice(KINDS),
        "dtype": dtype,
        "shape": tuple(numbers.choice([1, 2, 3, 5]) for _ in range(numbers.randrange(1, 4))),
        "long": numbers.random() < 0.1,
        "op": numbers.choice(OPS if whole else OPS[:4]),
        "root": numbers.randrange(size),
        "pair": numbers.random() < 0.3,
        "async": numbers.random() < 0.5,
        "seed": numbers.randrange(1 << 30),
    }


def values(call: dict[str, Any], rank: int) -> list[int]:
    numbers = random.Random(call["seed"] + rank)
    n = 1
    for length in call["shape"]:
        n *= length
    return [numbers.randrange(0, 3) for _ in range(n)] * (LONG if call["long"] else 1)


def perform(lib: Any, dist: Any, call: dict[str, Any], rank: int, size: int, group: Any) -> tuple[Any, list[Any]]:
    """Begins a message in one library: its Work, or None, and the tensors that come."""
    shape = (*call["shape"][:-1], call["shape"][-1] * (LONG if call["long"] else 1))
    dtype = getattr(lib, call["dtype"])
    mine = lib.tensor(values(call, rank), dtype=lib.int64).to(dtype).reshape(shape)
    op, root, options = getattr(dist.ReduceOp, call["op"]), call["root"] % size, {"async_op": call["async"]}
    if group is not None:
        options["group"] = group
    kind = call["kind"]
    empties = [lib.zeros(shape, dtype=dtype) for _ in range(size)]
    if kind == "all_reduce":
        return dist.all_reduce(mine, op, **options), [mine]
    if kind == "reduce":
        return dist.reduce(mine, root, op, **options), [mine] if rank == root else []
    if kind == "broadcast":
        return dist.broadcast(mine, root, **options), [mine]
    if kind == "all_gather":
        return dist.all_gather(empties, mine, **options), empties
    if kind == "all_gather_into_tensor":
        out = lib.zeros((size * shape[0], *shape[1:]), dtype=dtype)
        return dist.all_gather_into_tensor(out, mine, **options), [out]
    if kind == "gather":
        return dist.gather(mine, empties if rank == root else None, root, **options), empties if rank == root else []
    if kind == "scatter":
        parts = [mine + i for i in range(size)] if rank == root else None
        return dist.scatter(empties[0], parts, root, **options), empties[:1]
    if kind == "reduce_scatter":
        return dist.reduce_scatter(empties[0], [mine + i for i in range(size)], op, **options), empties[:1]
    if kind == "all_to_all_single":
        rows = lib.cat([mine.reshape(-1)] * size)
        out = lib.zeros_like(rows)
        return dist.all_to_all_single(out, rows, **options), [out]
    to, source = (rank + 1) % size, (rank - 1) % size
    extra = {} if group is None else {"group": group}
    sent, came = dist.isend(mine, to, **extra), dist.irecv(empties[0], source, **extra)
    sent.wait()
    return came, empties[:1]


def compare(rank: int, size: int, method: str, seed: int, count: int) -> int:
    import torch
    import torch.distributed as theirs

    torch.set_num_threads(1)
    theirs.init_process_group("gloo", init_method=method, rank=rank, world_size=size)
    pairs = [None] if size == 2 else [(ours.new_group([0, 1]), theirs.new_group([0, 1]))]
    numbers = random.Random(seed)
    waiting: list[tuple[Any, ...]] = []

    def settle() -> None:
        for call, *libraries in waiting:
            results = []
            for work, outputs in libraries:
                if work is not None:
                    work.wait()
                results.append([t.tolist() for t in outputs])
            assert results[0] == results[1], (call, results)
        waiting.clear()

    for _ in range(count):
        call = draw(numbers, size)
        groups = pairs[0] if call["pair"] and pairs[0] is not None else None
        inside = rank < 2 or groups is None
        settles = numbers.random() < 0.4  # drawn by all, as whatever else
        if groups is not None and not inside:
            continue
        n = 2 if groups is not None else size
        both = (tp, ours), (torch, theirs)
        waiting.append(
            (call, *(perform(*lib, call, rank, n, None if groups is None else groups[i]) for i, lib in enumerate(both)))
        )
        if settles:
            settle()
    settle()
    ours.barrier()
    theirs.destroy_process_group()
    return count


@needs_mpi
@pytest.mark.parametrize(("size", "count"), [(2, 100)])
def test_random_messages(size: int, count: int, tmp_path: Path) -> None:
    if importlib.util.find_spec("torch") is None:  # to import it here as well would take as long as the test
        pytest.skip("torch is not installed")
    done = world(compare, size, where("file", tmp_path), where("gloo", tmp_path), 7, count)
    assert done == [count] * size


if __name__ == "__main__":
    seed, count, size = (int(a) for a in sys.argv[1:4])
    with tempfile.TemporaryDirectory() as folder:
        print(world(compare, size, where("file", Path(folder)), where("gloo", Path(folder)), seed, count))
