"""replicate and checkpoint in place, and CommDebugMode's counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ranks import needs_mpi, where, world

import tensorpy as tp
from tensorpy import distributed as dist
from tensorpy import nn
from tensorpy.distributed import _functional_collectives as funcol
from tensorpy.distributed._composable import checkpoint, contract, fully_shard, replicate
from tensorpy.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from tensorpy.distributed.tensor.debug import CommDebugMode

OLDER = tp.ops.c10d_functional


def net() -> nn.Sequential:
    tp.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.Linear(4, 4), nn.ReLU()), nn.Linear(4, 2))


def averages(rank: int, size: int) -> None:
    x = tp.arange(12.0).reshape(4, 3) / 12
    plain, model, kept = net(), net(), net()
    plain(x).square().mean().backward()
    replicate(model)
    assert type(model).__name__ == "DDPSequential" and list(model.state_dict()) == list(plain.state_dict())
    model(x.chunk(size)[rank]).square().mean().backward()
    for p, q in zip(plain.parameters(), model.parameters(), strict=True):
        assert tp.allclose(p.grad, q.grad, atol=1e-6)
    model.zero_grad()
    model.set_requires_gradient_sync(False)
    model(x.chunk(size)[rank]).square().mean().backward()
    mine = model[0].weight.grad.clone()
    assert not tp.allclose(mine, plain[0].weight.grad, atol=1e-6)
    replicate(kept, ignored_modules=[kept[0]])
    kept(x.chunk(size)[rank]).square().mean().backward()
    assert tp.equal(kept[0].weight.grad, mine)
    assert tp.allclose(kept[2].weight.grad, plain[2].weight.grad, atol=1e-6)
    with pytest.raises(AssertionError, match="was called on this"):
        replicate(model)
    both = net()
    checkpoint(both[1])
    fully_shard(both[1])
    fully_shard(both)
    both(x.chunk(size)[rank]).square().mean().backward()
    for p, q in zip(plain.parameters(), both.parameters(), strict=True):
        assert tp.allclose(p.grad, q.grad.full_tensor(), atol=1e-6)


def counts(rank: int, size: int) -> None:
    mesh = dist.init_device_mesh("cpu", (size,))
    whole = distribute_tensor(tp.arange(8.0).reshape(4, 2), mesh, [Shard(0)])
    with CommDebugMode() as mode:
        whole.redistribute(placements=[Replicate()])
        whole.sum().full_tensor()
        assert type(whole * 2) is DTensor
    assert mode.get_comm_counts() == {OLDER.all_gather_into_tensor: 1, OLDER.all_reduce: 1}
    assert mode.get_total_counts() == 2
    with mode:
        funcol.wait_tensor(funcol.all_reduce(tp.ones(2), "sum", mesh))
    assert mode.get_comm_counts() == {tp.ops._c10d_functional.all_reduce: 1}
    assert mode.generate_comm_debug_tracing_table().splitlines()[1] == "  *_c10d_functional::all_reduce: 1"


@needs_mpi
@pytest.mark.parametrize("part", [averages, counts])
def test_processes(part: Any, tmp_path: Path) -> None:
    world(part, 2, where("file", tmp_path))


def test_checkpoint_runs_forward_again() -> None:
    runs: list[int] = []

    class Noted(nn.Linear):
        def forward(self, x: Any) -> Any:
            runs.append(1)
            return super().forward(x)

    tp.manual_seed(0)
    net = Noted(2, 2)
    x = tp.ones(1, 2, requires_grad=True)
    assert checkpoint(net) is net and isinstance(net, Noted) and checkpoint.state(net) is not None
    net(x).sum().backward()
    assert len(runs) == 2 and tp.equal(x.grad, net.weight.sum(0, keepdim=True))
    with pytest.raises(AssertionError, match="was called on this"):
        checkpoint(net)
    with pytest.raises(NotImplementedError, match="use_reentrant"):
        checkpoint(nn.Linear(1, 1), use_reentrant=True)


def test_contract() -> None:
    @contract()
    def other(module: Any) -> Any:
        return nn.Linear(1, 1)

    with pytest.raises(RuntimeError, match="returned another module"):
        other(nn.Linear(2, 2))
