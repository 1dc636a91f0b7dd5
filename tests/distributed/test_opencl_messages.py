"""Tensors on OpenCL devices are sent over the host's memory: every kind of message, gradients, buckets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ranks import needs_mpi, where, world

import tensorpy as tp
from tensorpy import distributed as dist
from tensorpy import nn
from tensorpy.distributed import _functional_collectives as funcol
from tensorpy.nn.parallel import DistributedDataParallel as DDP

DEVICE = "opencl"


def reductions(rank: int, size: int) -> None:
    for dtype in (tp.float32, tp.float16, tp.int64, tp.bool, tp.complex64):
        for shape in ((), (3,), (300_000,), (4, 5)):
            here = (tp.arange(tp.Size(shape).numel()).reshape(shape) % 7 + rank).to(dtype)
            there = here.to(DEVICE)
            op = dist.ReduceOp.MAX if dtype is tp.bool else dist.ReduceOp.SUM
            dist.all_reduce(here, op)
            assert dist.all_reduce(there, op, async_op=True).wait()
            assert there.device.type == DEVICE and tp.equal(there.cpu(), here), (dtype, shape)
    turned = tp.arange(12.0, device=DEVICE).reshape(3, 4).t()
    dist.all_reduce(turned)
    assert tp.equal(turned.cpu(), tp.arange(12.0).reshape(3, 4).t() * size)
    part = tp.empty(2, device=DEVICE)
    dist.reduce_scatter_tensor(part, tp.arange(2.0 * size, device=DEVICE))
    assert part.tolist() == [size * 2 * rank, size * (2 * rank + 1)]


def copies(rank: int, size: int) -> None:
    mine = tp.full((2,), float(rank), device=DEVICE)
    everyone = [tp.empty(2, device=DEVICE) for _ in range(size)]
    dist.all_gather(everyone, mine)
    assert [t.tolist() for t in everyone] == [[r, r] for r in range(size)]
    swapped = tp.empty(size, device=DEVICE)
    dist.all_to_all_single(swapped, tp.full((size,), float(rank), device=DEVICE))
    assert swapped.tolist() == list(range(size))
    if rank == 0:
        dist.send(tp.ones(3, device=DEVICE), 1)
    elif rank == 1:
        room = tp.zeros(3, device=DEVICE)
        dist.recv(room, 0)
        assert room.tolist() == [1, 1, 1]
    dist.broadcast(mine, 1)
    assert mine.tolist() == [1, 1]


def operators(rank: int, size: int) -> None:
    x = tp.ones(3, device=DEVICE, requires_grad=True)
    summed = funcol.all_reduce(x * 2, "sum", "0")
    summed.sum().backward()
    assert summed.device.type == DEVICE and x.grad is not None and x.grad.tolist() == [2.0 * size] * 3
    whole = funcol.all_gather_tensor(tp.full((2,), float(rank), device=DEVICE), 0, "0")
    assert whole.device.type == DEVICE and whole.tolist() == [r for r in range(size) for _ in range(2)]


def buckets(rank: int, size: int) -> None:
    tp.manual_seed(0)
    host = nn.Linear(4, 2)
    device = nn.Linear(4, 2)
    device.load_state_dict(host.state_dict())
    device.to(DEVICE)
    x = tp.randn(5, 4) + rank
    DDP(host)(x).square().sum().backward()
    DDP(device)(x.to(DEVICE)).square().sum().backward()
    assert host.weight.grad is not None and device.weight.grad is not None
    assert device.weight.grad.device.type == DEVICE
    assert tp.allclose(host.weight.grad, device.weight.grad.cpu(), atol=1e-4)


@needs_mpi
@pytest.mark.skipif(not tp.opencl.is_available(), reason="no OpenCL")
@pytest.mark.parametrize("part", [reductions, copies, operators, buckets])
def test_processes(part: Any, tmp_path: Path) -> None:
    world(part, 2, where("file", tmp_path))
