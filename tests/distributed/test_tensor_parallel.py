"""Layers that are cut by rule compute what the whole ones do, on two and four processes."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from ranks import needs_mpi, where, world

import tensorpy as tp
import tensorpy.nn.functional as F
from tensorpy import distributed as dist
from tensorpy import nn
from tensorpy.distributed.tensor import DTensor, Replicate, Shard
from tensorpy.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

WIDTH, HEADS = 8, 4


class Block(nn.Module):
    """Attention and a network for each place; `parts` processes have some of the heads each."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.proj = nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def heads(self, x: Any) -> Any:
        return x.unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2)

    def attention(self, x: Any) -> Any:
        q, k, v = (self.heads(layer(x)) for layer in (self.q, self.k, self.v))
        return self.proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))

    def forward(self, x: Any) -> Any:
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(12, WIDTH)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.norm = nn.LayerNorm(WIDTH)
        self.scores = nn.Linear(WIDTH, 12, bias=False)

    def forward(self, words: Any) -> Any:
        x = self.table(words)
        for block in self.blocks:
            x = block(x)
        return self.scores(self.norm(x))


PLAIN = {
    "table": RowwiseParallel(input_layouts=Replicate()),
    **{f"blocks.*.{name}": ColwiseParallel() for name in ("q", "k", "v", "up")},
    "blocks.*.proj": RowwiseParallel(),
    "blocks.*.down": RowwiseParallel(),
    "scores": ColwiseParallel(output_layouts=Replicate()),
}
# between the layers each process has some of the places
SEQUENCE = {
    "table": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
    "blocks.*.norm1": SequenceParallel(),
    "blocks.*.norm2": SequenceParallel(use_local_output=True),
    **{f"blocks.*.{name}": ColwiseParallel(input_layouts=Shard(1)) for name in ("q", "k", "v", "up")},
    "blocks.*.proj": RowwiseParallel(output_layouts=Shard(1)),
    "blocks.*.down": RowwiseParallel(output_layouts=Shard(1)),
    "norm": SequenceParallel(),
    "scores": ColwiseParallel(output_layouts=Replicate()),
}


def steps(model: Any, count: int = 3) -> list[float]:
    made = tp.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    losses = []
    for step in range(count):
        tp.manual_seed(step)
        words, targets = tp.randint(0, 12, (3, 8)), tp.randint(0, 12, (3, 8))
        loss = F.cross_entropy(model(words).flatten(0, 1), targets.flatten())
        loss.backward()
        made.step()
        made.zero_grad()
        losses.append(loss.item())
    return losses


def layers(rank: int, size: int) -> None:
    mesh = dist.init_device_mesh("cpu", (size,))
    for plan in (PLAIN, SEQUENCE):
        tp.manual_seed(0)
        plain = Net()
        model = parallelize_module(copy.deepcopy(plain), mesh, plan)
        assert model.blocks[1].up.weight.placements == (Shard(0),)
        assert model.blocks[1].down.weight.placements == (Shard(1),)
        assert steps(model) == pytest.approx(steps(plain), rel=1e-4)
        for name, value in model.state_dict().items():
            whole = value.full_tensor() if isinstance(value, DTensor) else value
            assert tp.allclose(whole, plain.state_dict()[name], atol=2e-5), name


def styles(rank: int, size: int) -> None:
    mesh = dist.init_device_mesh("cpu", (size,))
    table = parallelize_module(nn.Embedding(6, 4 * size), mesh, ColwiseParallel(use_local_output=False))
    assert table(tp.tensor([1, 2])).placements == (Shard(1),) and table.weight.placements == (Shard(1),)
    linear = nn.Linear(3, 2 * size)
    if rank:
        nn.init.zeros_(linear.weight)
    parallelize_module(linear, mesh, {"": ColwiseParallel()})
    assert linear.weight.full_tensor().any(1).all().item()  # the first process's
    seen: list[Any] = []

    class Pair(nn.Module):
        def forward(self, x: Any, y: Any, *, z: Any = None) -> Any:
            seen.append((x.placements, type(y), None if z is None else z.placements))
            return x + 1, y

    pair = parallelize_module(Pair(), mesh, PrepareModuleInput(
        input_layouts=(Shard(0), None), desired_input_layouts=(Replicate(), None),
        input_kwarg_layouts={"z": Replicate()}, desired_input_kwarg_layouts={"z": Shard(0)},
    ))  # fmt: skip
    out = pair(tp.ones(2, 3), tp.ones(1), z=tp.ones(size, 1))
    assert seen == [((Replicate(),), tp.Tensor, (Shard(0),))] and out[0].shape == (2 * size, 3)
    both = parallelize_module(Pair(), mesh, PrepareModuleInputOutput(
        input_layouts=(Shard(0), None), desired_input_layouts=(Replicate(), None),
        output_layouts=(Replicate(), None), desired_output_layouts=(Shard(1), None),
    ))  # fmt: skip
    assert both(tp.ones(2, size), tp.ones(1))[0].shape == (2 * size, 1)
    leaving = PrepareModuleOutput(output_layouts=Shard(0), desired_output_layouts=Replicate())
    one = parallelize_module(nn.ReLU(), mesh, leaving)
    assert one(tp.ones(2, 2)).shape == (2 * size, 2)
    wide = dist.init_device_mesh("cpu", (1, size))
    for error, match, call in (
        (NotImplementedError, "only support nn.Linear", lambda: parallelize_module(nn.ReLU(), mesh, RowwiseParallel())),
        (TypeError, "Expect Union", lambda: parallelize_module(nn.ReLU(), mesh, "columns")),
        (ValueError, "one dimension", lambda: parallelize_module(nn.ReLU(), wide, RowwiseParallel())),
        (ValueError, "same length", lambda: pair(tp.ones(2))),
        (ValueError, "to be a Tensor", lambda: parallelize_module(nn.ReLU(), mesh, SequenceParallel())("x")),
        (AssertionError, "same length", lambda: PrepareModuleInput(input_layouts=None, desired_input_layouts=())),
    ):  # fmt: skip
        with pytest.raises(error, match=match):
            call()
    with pytest.warns(UserWarning, match="no submodule is named"):
        parallelize_module(nn.ReLU(), mesh, {"there.is": RowwiseParallel()})


def programs(rank: int, size: int) -> None:
    layers(rank, size)
    styles(rank, size)


@needs_mpi
@pytest.mark.parametrize("size", [2, 4])
def test_layers(size: int, tmp_path: Path) -> None:
    world(programs, size, where("file", tmp_path))
