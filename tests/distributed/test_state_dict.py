"""State dictionaries under the names of the plain model: beside PyTorch's, over wrappers, from one rank to others."""

from __future__ import annotations

import copy
import warnings
from pathlib import Path
from typing import Any

import pytest
from ranks import needs_mpi, where, world

import tensorpy as tp
from tensorpy import distributed as dist
from tensorpy import nn
from tensorpy.distributed import checkpoint
from tensorpy.distributed.checkpoint import state_dict as ours
from tensorpy.distributed.checkpoint.state_dict import StateDictOptions
from tensorpy.nn.parallel import DistributedDataParallel

OPTIMIZERS = {
    "sgd": lambda lib, groups: lib.optim.SGD(groups, lr=0.1, momentum=0.9),
    "plain": lambda lib, groups: lib.optim.SGD(groups, lr=0.1),
    "adamw": lambda lib, groups: lib.optim.AdamW(groups, lr=0.01),
    "rprop": lambda lib, groups: lib.optim.Rprop(groups, lr=0.01),
}


def model_of(lib: Any, kind: str = "") -> Any:
    lib.manual_seed(3)
    first = lib.nn.Linear(4, 3, bias=False)  # in front of a norm a bias has a gradient of rounding errors alone
    made = lib.nn.Sequential(first, lib.nn.BatchNorm1d(3), lib.nn.Linear(3, 3), lib.nn.Linear(3, 3))
    if kind == "shared":
        made[3].weight = made[2].weight
    if kind == "frozen":
        made[2].weight.requires_grad_(False)
    return made


def groups_of(model: Any) -> list[dict[str, Any]]:
    """The parameters in another order than the model's, with settings of their own."""
    return [{"params": [*model[2].parameters()], "lr": 0.5}, {"params": [*model[0].parameters()]}]


def step(lib: Any, model: Any, optimizer: Any, value: float = 1.0) -> None:
    optimizer.zero_grad()
    rows = (lib.arange(20.0) * value).cos().reshape(5, 4)
    (model(rows) ** 3).sum().backward()
    optimizer.step()


def told(value: Any) -> Any:
    """Names and shapes of what either library says."""
    if isinstance(value, dict):
        return {key: told(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [told(each) for each in value]
    return ("tensor", tuple(value.shape)) if hasattr(value, "shape") else value


def same(a: Any, b: Any) -> bool:
    if isinstance(a, tp.Tensor):
        return bool(tp.equal(a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


@pytest.mark.parametrize("kind", ["", "shared", "frozen"])
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("steps", [0, 1])
@pytest.mark.parametrize("options", [{}, {"flatten_optimizer_state_dict": True}, {"ignore_frozen_params": True}])
def test_as_torch(kind: str, name: str, steps: int, options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    from torch.distributed.checkpoint import state_dict as theirs

    found = []
    for lib, module in ((torch, theirs), (tp, ours)):
        model = model_of(lib, kind)
        optimizer = OPTIMIZERS[name](lib, groups_of(model))
        for _ in range(steps):
            step(lib, model, optimizer)
        before = [p.detach().clone() for p in model.parameters()]
        found.append(module.get_state_dict(model, optimizer, options=module.StateDictOptions(**options)))
        assert all(bool((p == q).all()) for p, q in zip(model.parameters(), before, strict=True))
    assert told(found[0][0]) == told(found[1][0])
    for their_value, our_value in [(found[0][1], found[1][1])]:
        skip = {"decoupled_weight_decay", "foreach", "fused", "differentiable", "maximize", "capturable"}
        assert _less(told(their_value), skip) == _less(told(our_value), skip)


def _less(value: Any, names: set[str]) -> Any:
    if isinstance(value, dict):
        return {k: _less(v, names) for k, v in value.items() if str(k).rpartition(".")[2] not in names}
    return [_less(v, names) for v in value] if isinstance(value, list) else value


@pytest.mark.parametrize("kind", ["", "shared", "frozen"])
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("flat", [False, True])
def test_what_was_got_is_set(kind: str, name: str, flat: bool) -> None:
    """Another optimizer, whose groups and order are others, goes on as the one whose state it took."""
    options = StateDictOptions(flatten_optimizer_state_dict=flat)
    model, other = model_of(tp, kind), model_of(tp, kind)
    first = OPTIMIZERS[name](tp, groups_of(model))
    second = OPTIMIZERS[name](tp, groups_of(other)[::-1])
    step(tp, model, first)
    got = copy.deepcopy(ours.get_state_dict(model, first, options=options))  # it shares the optimizer's tensors
    kept = copy.deepcopy(got)
    result = ours.set_state_dict(
        other, second, model_state_dict=got[0], optim_state_dict=got[1], options=options
    )  # fmt: skip
    assert result.missing_keys == result.unexpected_keys == []
    assert same(list(got), list(kept))  # nothing of what was given has changed
    for _ in range(2):
        step(tp, model, first, 2.0)
        step(tp, other, second, 2.0)
    assert same(dict(model.state_dict()), dict(other.state_dict()))
    assert same(second.param_groups[1]["lr"], 0.5)


def test_through_a_checkpoint_and_several_optimizers(tmp_path: Path) -> None:
    model, other = model_of(tp), model_of(tp)
    pair = [tp.optim.Adam(model[0].parameters()), tp.optim.SGD(model[2].parameters(), lr=0.1, momentum=0.5)]
    fresh = [tp.optim.Adam(other[0].parameters()), tp.optim.SGD(other[2].parameters(), lr=0.3, momentum=0.5)]
    for optimizer in pair:
        step(tp, model, optimizer)
    of_model, of_optimizers = ours.get_state_dict(model, pair)
    checkpoint.save({"model": of_model, "optimizer": of_optimizers}, checkpoint_id=tmp_path, no_dist=True)
    of_model, of_optimizers = ours.get_state_dict(other, fresh)
    state = {"model": of_model, "optimizer": of_optimizers}
    checkpoint.load(state, checkpoint_id=tmp_path, no_dist=True)
    ours.set_state_dict(other, fresh, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    for mine, its in zip(pair, fresh, strict=True):
        step(tp, model, mine, 2.0)
        step(tp, other, its, 2.0)
    assert same(dict(model.state_dict()), dict(other.state_dict())) and fresh[1].param_groups[0]["lr"] == 0.1


def test_training_goes_on_where_torch_left_it(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from torch.distributed import checkpoint as their_checkpoint
    from torch.distributed.checkpoint import state_dict as theirs

    model = model_of(torch)
    optimizer = OPTIMIZERS["adamw"](torch, groups_of(model))
    step(torch, model, optimizer)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        said = dict(zip(("model", "optimizer"), theirs.get_state_dict(model, optimizer), strict=True))
        their_checkpoint.save(said, checkpoint_id=tmp_path)
    mine = model_of(tp)
    its = OPTIMIZERS["adamw"](tp, groups_of(mine))
    state = dict(zip(("model", "optimizer"), ours.get_state_dict(mine, its), strict=True))
    checkpoint.load(state, checkpoint_id=tmp_path, no_dist=True)
    ours.set_state_dict(mine, its, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    for _ in range(3):
        step(torch, model, optimizer, 0.5)
        step(tp, mine, its, 0.5)
    for name, value in model.state_dict().items():
        assert tp.allclose(mine.state_dict()[name].double(), tp.tensor(value.tolist(), dtype=tp.float64), atol=1e-6)


def test_compiled_and_submodules() -> None:
    model = model_of(tp)
    assert ours.get_model_state_dict(tp.compile(model)).keys() == model.state_dict().keys()
    with pytest.warns(FutureWarning, match="submodules only"):
        found = ours.get_model_state_dict(model, submodules={model[2]})
    assert list(found) == ["2.weight", "2.bias"]
    with pytest.warns(FutureWarning):
        options = StateDictOptions(keep_submodule_prefixes=False)
        found = ours.get_model_state_dict(model, submodules={model[2]}, options=options)
    assert list(found) == ["weight", "bias"]
    given = {model[2]: {"weight": tp.zeros(3, 3)}}
    result = ours.set_model_state_dict(model, given, options=StateDictOptions(strict=False))
    assert model[2].weight.abs().sum().item() == 0 and "0.weight" in result.missing_keys


def test_errors() -> None:
    model = model_of(tp)
    optimizer = tp.optim.Adam(groups_of(model))
    with pytest.raises(ValueError, match="full_state_dict must be True"):
        ours.get_model_state_dict(model, options=StateDictOptions(broadcast_from_rank0=True))
    with pytest.raises(RuntimeError, match="Optimizers are not passed in"):
        ours.get_optimizer_state_dict(model, [])
    with pytest.raises(RuntimeError, match="it is empty"):
        ours.set_model_state_dict(model, {})
    with pytest.raises(RuntimeError, match="it is empty"):
        ours.set_optimizer_state_dict(model, optimizer, {})
    with pytest.raises(RuntimeError, match="Missing key"):
        ours.set_model_state_dict(model, {"0.weight": model[0].weight})
    with pytest.raises(ValueError, match="2 parameters that the model has not"):
        ours.get_optimizer_state_dict(model, tp.optim.Adam(nn.Linear(2, 2).parameters()))
    found = ours.get_optimizer_state_dict(model, optimizer)
    del found["state"]["2.weight"]
    with pytest.raises(RuntimeError, match=r"Missing optimizer state for parameter '2\.weight'"):
        ours.set_optimizer_state_dict(model, optimizer, found)
    ours.set_optimizer_state_dict(model, optimizer, found, options=StateDictOptions(strict=False))
    flat = StateDictOptions(flatten_optimizer_state_dict=True)
    found = ours.get_optimizer_state_dict(model, tp.optim.Adam(groups_of(model)), options=flat)
    with pytest.raises(RuntimeError, match=r"same saved param_group value\. But lr of"):
        ours.set_optimizer_state_dict(
            model, tp.optim.Adam(groups_of(model)), {**found, "param_groups.2.bias.lr": 7.0}, options=flat
        )  # fmt: skip
    del found["state.2.bias.exp_avg"]
    with pytest.raises(RuntimeError, match=r"Missing key .* state\.2\.bias\.exp_avg"):
        ours.set_optimizer_state_dict(model, tp.optim.Adam(groups_of(model)), found, options=flat)


# ---- several ranks ----


def wrapped(rank: int, size: int, folder: str) -> None:
    plain = model_of(tp)
    model = DistributedDataParallel(plain)
    optimizer = OPTIMIZERS["adamw"](tp, groups_of(plain))
    step(tp, model, optimizer, rank + 1.0)
    of_model, of_optimizer = ours.get_state_dict(model, optimizer)
    assert of_model.keys() == plain.state_dict().keys()
    assert of_optimizer["param_groups"][0]["params"] == ["2.weight", "2.bias"]
    checkpoint.save({"model": of_model, "optimizer": of_optimizer}, checkpoint_id=folder)
    other = DistributedDataParallel(model_of(tp))
    its = OPTIMIZERS["adamw"](tp, groups_of(other.module))
    of_model, of_optimizer = ours.get_state_dict(other, its)
    state = {"model": of_model, "optimizer": of_optimizer}
    checkpoint.load(state, checkpoint_id=folder)
    result = ours.set_state_dict(other, its, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    assert result.missing_keys == []
    for _ in range(2):
        step(tp, model, optimizer, rank + 2.0)
        step(tp, other, its, rank + 2.0)
    assert same(dict(model.named_parameters()), dict(other.named_parameters()))  # buffers are each rank's own


def from_rank0(rank: int, size: int, folder: str) -> None:
    options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    for kind in ("cpu", "meta"):
        model, given = model_of(tp), model_of(tp)
        optimizer = OPTIMIZERS["adamw"](tp, groups_of(given))
        step(tp, given, optimizer, 3.0)
        whole = StateDictOptions(full_state_dict=True, cpu_offload=True)
        full = copy.deepcopy(ours.get_state_dict(given, optimizer, options=whole))
        assert bool(full[0]) == bool(full[1]) == (rank == 0)
        with tp.no_grad():
            for p in model.parameters():
                p.fill_(rank)
        if kind == "meta":
            model = model.to("meta")
        ours.set_model_state_dict(model, full[0], options=options)
        assert same(dict(model.state_dict()), dict(given.state_dict()))
        its = OPTIMIZERS["adamw"](tp, groups_of(model))
        ours.set_optimizer_state_dict(model, its, full[1], options=options)
        step(tp, given, optimizer, 2.0)
        step(tp, model, its, 2.0)
        assert same(dict(model.state_dict()), dict(given.state_dict()))
    assert dist.get_world_size() == size


@needs_mpi
@pytest.mark.parametrize("program", [wrapped, from_rank0])
def test_ranks(tmp_path: Path, program: Any) -> None:
    world(program, 2, where("file", tmp_path), str(tmp_path / "checkpoint"))
