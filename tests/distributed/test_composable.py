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
from tensorpy.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointImpl,
    apply_activation_checkpointing,
    checkpoint_wrapper,
    offload_wrapper,
)
from tensorpy.distributed.fsdp import FullyShardedDataParallel
from tensorpy.distributed.fsdp.wrap import ModuleWrapPolicy, enable_wrap, wrap
from tensorpy.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from tensorpy.distributed.tensor.debug import CommDebugMode
from tensorpy.utils.checkpoint import checkpoint as plain_checkpoint

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


class Noted(nn.Module):
    """A block that counts its runs; with `inner` a checkpoint of its own."""

    runs = 0

    def __init__(self, inner: bool) -> None:
        super().__init__()
        self.up, self.down, self.inner = nn.Linear(3, 5), nn.Linear(5, 3), inner

    def once(self, x: Any) -> Any:
        Noted.runs += 1
        return x + self.down(self.up(x).tanh())

    def forward(self, x: Any) -> Any:
        return plain_checkpoint(self.once, x, use_reentrant=False) if self.inner else self.once(x)


def blocks(inner: bool = False) -> list[nn.Module]:
    tp.manual_seed(0)
    return [Noted(inner) for _ in range(2)]


def in_units() -> list[tuple[str, nn.Module]]:
    """Checkpoints inside of what fully_shard cuts, around it, and as wrappers in both orders."""
    inner, cut, outer, wrapped = blocks(True), blocks(), blocks(), [checkpoint_wrapper(b) for b in blocks()]
    for each in (*inner, *cut, *outer, *wrapped):
        fully_shard(each)
    made = [
        ("inside", nn.Sequential(*inner)),
        ("around", nn.Sequential(*(checkpoint(b) for b in cut))),
        ("wrapper around", nn.Sequential(*(checkpoint_wrapper(b) for b in outer))),
        ("wrapper cut", nn.Sequential(*wrapped)),
    ]
    for _, model in made:
        fully_shard(model)
    fsdp = nn.Sequential(*blocks())
    apply_activation_checkpointing(fsdp, check_fn=lambda m: isinstance(m, Noted))
    return [*made, ("FSDP", FullyShardedDataParallel(fsdp, auto_wrap_policy=ModuleWrapPolicy({Noted})))]


def checkpoints(rank: int, size: int) -> None:
    x = tp.arange(12.0).reshape(4, 3) / 12
    plain = nn.Sequential(*blocks())
    plain(x).square().mean().backward()
    for name, model in in_units():
        assert set(model.state_dict()) == set(plain.state_dict()), name
        for _ in range(2):
            model.zero_grad()
            Noted.runs = 0
            model(x.chunk(size)[rank].clone().requires_grad_()).square().mean().backward()
            assert Noted.runs == 4, name  # each block twice
            for p, q in zip(plain.parameters(), model.parameters(), strict=True):
                assert tp.allclose(p.grad, q.grad.full_tensor(), atol=1e-6), name
        model.load_state_dict(model.state_dict())


@needs_mpi
@pytest.mark.parametrize("part", [averages, counts, checkpoints])
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


@pytest.mark.parametrize("how", list(CheckpointImpl))
def test_wrappers_have_the_names_of_the_plain_model(how: CheckpointImpl) -> None:
    class Scaled(nn.Linear):
        def forward(self, x: Any, *, by: Any) -> Any:
            return super().forward(x) * by

    tp.manual_seed(0)
    plain = Scaled(2, 2)
    model = nn.Sequential(checkpoint_wrapper(Scaled(2, 2), how), offload_wrapper(nn.ReLU()))
    model[0].load_state_dict(plain.state_dict())
    assert model[0].in_features == 2 and list(model.state_dict()) == ["0.weight", "0.bias"]
    assert [name for name, _ in model[0].named_parameters()] == ["weight", "bias"]
    x, by = tp.ones(1, 2, requires_grad=True), tp.tensor(3.0)
    assert tp.equal(model[1](model[0](x, by=by)), plain(x, by=by).relu())
    model[0](x, by=by).sum().backward()
    plain(x, by=by).sum().backward()
    assert tp.equal(model[0].weight.grad, plain.weight.grad)


def test_wrap_wraps_where_it_is_enabled() -> None:
    with enable_wrap(wrapper_cls=checkpoint_wrapper, checkpoint_impl=CheckpointImpl.REENTRANT):
        outer = wrap(nn.ReLU())
        with enable_wrap(wrapper_cls=nn.Sequential):
            assert type(wrap(nn.ReLU())) is nn.Sequential
        other = wrap(nn.ReLU(), checkpoint_impl=CheckpointImpl.NO_REENTRANT)
    assert (outer.checkpoint_impl, other.checkpoint_impl) == (CheckpointImpl.REENTRANT, CheckpointImpl.NO_REENTRANT)
    assert type(wrap(nn.ReLU())) is nn.ReLU


def test_contract() -> None:
    @contract()
    def other(module: Any) -> Any:
        return nn.Linear(1, 1)

    with pytest.raises(RuntimeError, match="returned another module"):
        other(nn.Linear(2, 2))
