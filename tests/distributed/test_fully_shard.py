"""fully_shard: the steps of many processes, each with its part of parameters and batch, are those of one with all."""

from __future__ import annotations

import copy
import importlib
import importlib.util
from pathlib import Path
from typing import Any

import pytest
from ranks import needs_mpi, where, world

import tensorpy as tp
import tensorpy.nn.functional as F
from tensorpy import distributed as dist
from tensorpy import nn
from tensorpy.distributed import checkpoint
from tensorpy.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_state_dict,
)
from tensorpy.distributed.fsdp import (
    FSDPModule,
    MixedPrecisionPolicy,
    fully_shard,
    register_fsdp_forward_method,
)
from tensorpy.distributed.tensor import DTensor, Replicate, Shard
from tensorpy.utils.checkpoint import checkpoint as recomputed


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 13), nn.Linear(13, width)

    def forward(self, x: Any) -> Any:
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Net(nn.Module):
    """A table whose weight is the last layer's, too, blocks, a parameter of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(11, 7)
        self.blocks = nn.ModuleList([Block(7) for _ in range(3)])
        self.last = nn.Linear(7, 11, bias=False)
        self.last.weight = self.table.weight
        self.shift = nn.Parameter(tp.zeros(1))

    def forward(self, words: Any) -> Any:
        x = self.table(words)
        for block in self.blocks:
            x = block(x)
        return self.last(x) * (1 + self.shift)

    def score(self, words: Any) -> Any:
        return self(words).logsumexp(-1)


def plain_net() -> Any:
    tp.manual_seed(7)
    return Net()


def sharded_net(**options: Any) -> Any:
    model = plain_net()
    for block in model.blocks:
        fully_shard(block, **options)
    return fully_shard(model, **options)


def batch(step: int) -> tuple[Any, Any]:
    tp.manual_seed(100 + step)
    return tp.randint(0, 11, (8, 5)), tp.randint(0, 11, (8, 5))


def loss_of(model: Any, words: Any, targets: Any) -> Any:
    return F.cross_entropy(model(words).reshape(-1, 11), targets.reshape(-1))


def whole_steps(count: int, optimizer: Any, parts: int = 1) -> tuple[Any, Any, list[float]]:
    model = plain_net()
    made = optimizer(model.parameters())
    losses = []
    for step in range(count):
        words, targets = batch(step)
        total = 0.0
        for some, wanted in zip(words.chunk(parts), targets.chunk(parts), strict=True):
            loss = loss_of(model, some, wanted) / parts
            loss.backward()
            total += loss.item()
        losses += [total, nn.utils.clip_grad_norm_(model.parameters(), 0.4).item()]
        made.step()
        made.zero_grad()
    return model, made, losses


def step_on_parts(model: Any, made: Any, step: int, rank: int, size: int, reshards: bool = False) -> list[float]:
    """`reshards`: of a model that keeps whole parameters behind backward."""
    words, targets = (t.chunk(size)[rank] for t in batch(step))
    loss = loss_of(model, words, targets)
    loss.backward()
    for each in model.modules() if reshards else ():
        if isinstance(each, FSDPModule):
            each.reshard()
    loss = loss.detach()
    dist.all_reduce(loss, dist.ReduceOp.AVG)
    total = nn.utils.clip_grad_norm_(model.parameters(), 0.4).full_tensor()
    made.step()
    made.zero_grad()
    return [loss.item(), total.item()]


def close(model: Any, plain: Any, atol: float = 2e-5) -> None:
    expected = plain.state_dict()
    found = model.state_dict()
    assert list(found) == list(expected)
    for name, value in found.items():
        assert isinstance(value, DTensor)
        assert tp.allclose(value.full_tensor(), expected[name], atol=atol), name


ADAM: Any = lambda p: tp.optim.AdamW(p, lr=0.01)  # noqa: E731
SGD: Any = lambda p: tp.optim.SGD(p, lr=0.1, momentum=0.9)  # noqa: E731


def training(rank: int, size: int, mesh_shape: tuple[int, ...]) -> None:
    names = ("replicas", "parts")[-len(mesh_shape) :]
    mesh = dist.init_device_mesh("cpu", mesh_shape, mesh_dim_names=names)
    chosen = {
        "as it is": {},
        "stays": {"reshard_after_forward": False},
        "always goes": {"reshard_after_forward": True},
        "as many": {"reshard_after_forward": mesh.shape[-1]},
        "by columns": {"shard_placement_fn": lambda p: Shard(p.ndim - 1)},
    }
    for optimizer, (what, options) in [(SGD, ("SGD", {})), *[(ADAM, each) for each in chosen.items()]]:
        plain, _, expected = whole_steps(3, optimizer)
        model = sharded_net(mesh=mesh, **options)
        made = optimizer(model.parameters())
        found = [number for step in range(3) for number in step_on_parts(model, made, step, rank, size)]
        assert found == pytest.approx(expected, rel=1e-4), what
        close(model, plain)
        replicas = [None] * size
        mine = {name: value.full_tensor().tolist() for name, value in model.state_dict().items()}
        dist.all_gather_object(replicas, mine)
        assert all(other == mine for other in replicas)  # to the bit


def units(rank: int, size: int) -> None:
    """What is whole when, names of classes, gradients that wait, prefetches."""
    model = sharded_net()
    assert type(model).__name__ == "FSDPNet" and isinstance(model, FSDPModule) and isinstance(model, Net)
    assert isinstance(model.blocks[0], FSDPModule) and not isinstance(model.blocks[0].up, FSDPModule)
    for parameter in model.parameters():
        assert isinstance(parameter, DTensor) and isinstance(parameter, nn.Parameter)
        assert parameter.placements == (Shard(0),), parameter
    assert model.table.weight is model.last.weight
    words, targets = (t.chunk(size)[rank] for t in batch(0))
    loss = loss_of(model, words, targets)
    assert isinstance(model.blocks[0].up.weight, DTensor) and not isinstance(model.table.weight, DTensor)
    whole = model.blocks[0]._fsdp_unit.group.parameters[2].whole
    assert whole.untyped_storage().nbytes() == 4 and whole.shape == (13, 7)  # nobody keeps its elements
    loss.backward()
    assert all(isinstance(p, DTensor) and isinstance(p.grad, DTensor) for p in model.parameters())
    with pytest.raises(AssertionError, match="deepcopy"):
        copy.deepcopy(model)
    # gradients add up without messages, and go with the last
    plain, _, expected = whole_steps(2, SGD, parts=2)
    model = sharded_net()
    made = SGD(model.parameters())
    found: list[float] = []
    for step in range(2):
        words, targets = batch(step)
        for part, last in ((0, False), (1, True)):
            model.set_requires_gradient_sync(last)
            some, wanted = (t.chunk(2)[part].chunk(size)[rank] for t in (words, targets))
            (loss_of(model, some, wanted) / 2).backward()
            assert all((p.grad is not None) == last for p in model.parameters())
        nn.utils.clip_grad_norm_(model.parameters(), 0.4)
        made.step()
        made.zero_grad()
    close(model, plain)
    # by hand, and in another order
    model = sharded_net()
    made = SGD(model.parameters())
    first, second, third = model.blocks
    first.set_modules_to_forward_prefetch([second, third])
    third.set_modules_to_backward_prefetch([second, first])
    model.set_reshard_after_backward(False)
    for step in range(2):
        handle = model.unshard(async_op=True)
        second.unshard()
        assert not isinstance(second.up.weight, DTensor)
        handle.wait()
        assert not isinstance(model.table.weight, DTensor)
        found = step_on_parts(model, made, step, rank, size, reshards=True)
    plain, _, expected = whole_steps(2, SGD)
    assert found == pytest.approx(expected[-2:], rel=1e-4)
    close(model, plain)
    with tp.no_grad():
        before = plain(batch(5)[0])
        assert tp.allclose(model(batch(5)[0]), before, atol=1e-4)
        register_fsdp_forward_method(model, "score")
        assert tp.allclose(model.score(batch(5)[0]), plain.score(batch(5)[0]), atol=1e-4)
    close(model, plain)  # states are of parts, whatever ran before
    for error, match, call in (
        (ValueError, "containers without a forward", lambda: fully_shard(nn.ModuleList([nn.Linear(2, 2)]))),
        (ValueError, "not called on before", lambda: fully_shard(model)),
        (ValueError, "how many processes", lambda: fully_shard(nn.Linear(2, 2), reshard_after_forward=7)),
        (ValueError, "returns Shard", lambda: fully_shard(nn.Linear(2, 2), shard_placement_fn=lambda p: Replicate())),
        (ValueError, "names no dimension", lambda: fully_shard(nn.Linear(2, 2), shard_placement_fn=lambda p: Shard(3))),
        (ValueError, "Expects FSDPModule", lambda: model.set_modules_to_forward_prefetch([nn.Linear(1, 1)])),
    ):
        with pytest.raises(error, match=match):
            call()
    # an error on the way, and on
    with pytest.raises(IndexError):
        model(tp.full((1, 1), 99))
    model.reset_iter_state()
    step_on_parts(model, made, 3, rank, size, reshards=True)
    # some parameters stay as they are; two modules are one unit
    layers = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 1))
    kept = layers[2].weight
    pair = fully_shard([layers[0], layers[1]])
    fully_shard(layers, ignored_params={kept})
    assert pair[0] is layers[0] and layers[2].weight is kept
    layers(tp.ones(2, 3)).sum().backward()
    assert type(kept.grad) is tp.Tensor and isinstance(layers[0].weight.grad, DTensor)


def same_gradients(sharded: Any, plain: Any, what: Any) -> None:
    for (name, mine), other in zip(sharded.named_parameters(), plain.parameters(), strict=True):
        assert (mine.grad is None) == (other.grad is None), (what, name)
        if other.grad is not None:
            assert tp.allclose(mine.grad.full_tensor(), other.grad, atol=1e-5), (what, name)


def through_checkpoints(model: Any, words: Any, reentrant: bool) -> Any:
    x = model.table(words)
    for block in model.blocks:
        x = recomputed(block, x, use_reentrant=reentrant)
    return model.last(x) * (1 + model.shift)


def passes(rank: int, size: int) -> None:
    """Frozen parameters, several forwards, checkpoints, a graph that is kept, units that a pass leaves out."""
    words, targets = batch(0)
    mine = words.chunk(size)[rank], targets.chunk(size)[rank]
    block = [f"blocks.0.{n}.{kind}" for n in ("norm", "up", "down") for kind in ("weight", "bias")]
    for frozen in (["blocks.1.up.weight"], ["table.weight"], block):
        plain, model = plain_net(), plain_net()
        for name, parameter in [*plain.named_parameters(), *model.named_parameters()]:
            parameter.requires_grad_(name not in frozen)
        for each in model.blocks:
            fully_shard(each)
        fully_shard(model)
        for _ in range(2):
            loss_of(plain, words, targets).backward()
            loss_of(model, *mine).backward()
        same_gradients(model, plain, frozen)
    plain, model = plain_net(), sharded_net()
    (loss_of(plain, words, targets) + 2 * loss_of(plain, words.flip(1), targets)).backward()
    (loss_of(model, *mine) + 2 * loss_of(model, mine[0].flip(1), mine[1])).backward()
    same_gradients(model, plain, "two forwards")
    for reentrant in (False, True):
        plain, model = plain_net(), sharded_net()
        model.score = lambda w, model=model, reentrant=reentrant: through_checkpoints(model, w, reentrant)
        register_fsdp_forward_method(model, "score")
        out = through_checkpoints(plain, words, reentrant)
        F.cross_entropy(out.reshape(-1, 11), targets.reshape(-1)).backward()
        F.cross_entropy(model.score(mine[0]).reshape(-1, 11), mine[1].reshape(-1)).backward()
        same_gradients(model, plain, reentrant)
    plain, model = plain_net(), sharded_net()
    for loss in (loss_of(plain, words, targets), loss_of(model, *mine)):
        loss.backward(retain_graph=True)
        loss.backward()
    same_gradients(model, plain, "twice")
    plain, model = plain_net(), sharded_net()
    model.score = lambda w: model.blocks[0](model.table(w))
    register_fsdp_forward_method(model, "score")
    F.cross_entropy(plain.blocks[0](plain.table(words)).reshape(-1, 7), targets.reshape(-1) % 7).backward()
    F.cross_entropy(model.score(mine[0]).reshape(-1, 7), mine[1].reshape(-1) % 7).backward()
    same_gradients(model, plain, "some units")


def dtypes(rank: int, size: int) -> None:
    policy = MixedPrecisionPolicy(param_dtype=tp.bfloat16, reduce_dtype=tp.float32, output_dtype=tp.float32)
    seen: list[Any] = []
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))
    model[0].register_forward_hook(lambda module, inputs, out: seen.append((inputs[0].dtype, out.dtype)))
    model[2].register_forward_pre_hook(lambda module, inputs: seen.append(module.weight.dtype))
    fully_shard(model, mp_policy=policy)
    out = model(tp.ones(3, 4))
    assert seen == [(tp.bfloat16, tp.bfloat16), tp.bfloat16] and out.dtype == tp.float32
    out.sum().backward()
    assert all(p.dtype == p.grad.dtype == tp.float32 for p in model.parameters())


def states(rank: int, size: int, folder: str) -> None:
    """Checkpoints in parts, whole states, models that begin on the Meta device."""
    plain, _, _ = whole_steps(2, ADAM)
    model = sharded_net()
    made = ADAM(model.parameters())
    for step in range(2):
        step_on_parts(model, made, step, rank, size)
    of_model, of_optimizer = get_state_dict(model, made)
    checkpoint.save({"model": of_model, "optimizer": of_optimizer}, checkpoint_id=f"{folder}/ours")
    metadata = checkpoint.FileSystemReader(f"{folder}/ours").read_metadata()
    entry = metadata.state_dict_metadata["model.blocks.0.up.weight"]
    assert sum(box.sizes[0] for box in entry.chunks) == 13 and len(entry.chunks) == size
    with tp.device("meta"):
        other = sharded_net()
    assert all(p.device.type == "meta" for p in other.parameters())
    with pytest.raises(RuntimeError, match="on the Meta device"):
        other(batch(0)[0])
    other.reset_iter_state()
    other.to_empty(device="cpu")
    later = ADAM(other.parameters())
    of_model, of_optimizer = get_state_dict(other, later)
    checkpoint.load({"model": of_model, "optimizer": of_optimizer}, checkpoint_id=f"{folder}/ours")
    set_state_dict(other, later, model_state_dict=of_model, optim_state_dict=of_optimizer)
    for step in (2, 3):
        assert step_on_parts(other, later, step, rank, size) == step_on_parts(model, made, step, rank, size)
    # whole states, of one process and for one
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    of_model, of_optimizer = get_state_dict(model, made, options=options)
    assert bool(of_model) == (rank == 0)
    if rank == 0:
        single = plain_net()
        single.load_state_dict(of_model)
        assert all(type(v) is tp.Tensor for v in of_model.values())
    fresh = sharded_net()
    its = ADAM(fresh.parameters())
    given = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    set_state_dict(fresh, its, model_state_dict=of_model, optim_state_dict=of_optimizer, options=given)
    assert step_on_parts(fresh, its, 5, rank, size) == step_on_parts(model, made, 5, rank, size)
    # parameters that are drawn in parts are those that are drawn whole
    with tp.device("meta"):
        empty = fully_shard(nn.Linear(5, 9))
    empty.to_empty(device="cpu")
    tp.manual_seed(3)
    empty.reset_parameters()
    tp.manual_seed(3)
    assert tp.equal(empty.weight.full_tensor(), nn.Linear(5, 9).weight)
    assert set(get_model_state_dict(model)) == set(plain.state_dict())
    set_model_state_dict(model, get_model_state_dict(fresh))


def read_by_others(rank: int, size: int, folder: str, expected: list[float]) -> None:
    """What four processes wrote, two read, and one has whole."""
    model = sharded_net()
    made = ADAM(model.parameters())
    of_model, of_optimizer = get_state_dict(model, made)
    checkpoint.load({"model": of_model, "optimizer": of_optimizer}, checkpoint_id=f"{folder}/ours")
    set_state_dict(model, made, model_state_dict=of_model, optim_state_dict=of_optimizer)
    found = [number for step in (2, 3) for number in step_on_parts(model, made, step, rank, size)]
    assert found == pytest.approx(expected, rel=1e-4)


def with_two(rank: int, size: int) -> None:
    training(rank, size, (size,))
    units(rank, size)
    passes(rank, size)
    dtypes(rank, size)


def with_four(rank: int, size: int, folder: str) -> None:
    training(rank, size, (2, 2))
    states(rank, size, folder)


@needs_mpi
def test_two(tmp_path: Path) -> None:
    world(with_two, 2, where("file", tmp_path))


@needs_mpi
def test_four_write_and_two_read(tmp_path: Path) -> None:
    world(with_four, 4, where("file", tmp_path), str(tmp_path))
    _, _, numbers = whole_steps(4, ADAM)
    world(read_by_others, 2, where("tcp", tmp_path), str(tmp_path), numbers[4:])
    whole: dict[str, Any] = {"model": plain_net().state_dict()}
    checkpoint.load(whole, checkpoint_id=str(tmp_path / "ours"), no_dist=True)
    plain, _, _ = whole_steps(2, ADAM)
    for name, value in plain.state_dict().items():
        assert tp.allclose(whole["model"][name], value, atol=2e-5), name
    if importlib.util.find_spec("torch") is not None:
        torch: Any = importlib.import_module("torch")
        theirs = importlib.import_module("torch.distributed.checkpoint")
        into = {"model": {name: torch.zeros(tuple(value.shape)) for name, value in plain.state_dict().items()}}
        theirs.load(into, checkpoint_id=str(tmp_path / "ours"), no_dist=True)
        for name, value in whole["model"].items():
            assert into["model"][name].tolist() == value.tolist(), name
