"""FullyShardedDataParallel: steps, states and names are those of the plain model and one process."""

from __future__ import annotations

import copy
import functools
from pathlib import Path
from typing import Any

import pytest
from ranks import needs_mpi, where, world

import tensorpy as tp
from tensorpy import distributed as dist
from tensorpy import nn
from tensorpy.distributed import checkpoint
from tensorpy.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict
from tensorpy.distributed.fsdp import (
    FullStateDictConfig,
    MixedPrecision,
    OptimStateKeyType,
    ShardingStrategy,
    StateDictType,
)
from tensorpy.distributed.fsdp import FullyShardedDataParallel as FSDP
from tensorpy.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler
from tensorpy.distributed.fsdp.wrap import (
    CustomPolicy,
    ModuleWrapPolicy,
    lambda_auto_wrap_policy,
    size_based_auto_wrap_policy,
)
from tensorpy.distributed.tensor import DTensor

POLICIES: dict[str, Any] = {
    "none": None,
    "classes": ModuleWrapPolicy({nn.Linear}),
    "size": functools.partial(size_based_auto_wrap_policy, min_num_params=60),
}


def net() -> nn.Sequential:
    tp.manual_seed(3)
    inside = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU())
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), inside, nn.Linear(8, 3)).eval()


def steps(model: Any, x: Any, count: int = 3) -> tuple[Any, Any]:
    optimizer = tp.optim.AdamW(model.parameters(), lr=0.1)
    norm = None
    for _ in range(count):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        clip = getattr(model, "clip_grad_norm_", None) or functools.partial(
            nn.utils.clip_grad_norm_, list(model.parameters())
        )
        norm = clip(0.5)
        optimizer.step()
    return optimizer, norm


def trains(rank: int, size: int, policy: str, strategy: ShardingStrategy) -> None:
    x = tp.randn(8, 6, generator=tp.Generator().manual_seed(1))
    plain = net()
    _, expected = steps(plain, x)
    mine = x.chunk(size)[rank]
    model = FSDP(net(), None, strategy, auto_wrap_policy=POLICIES[policy], sync_module_states=True)
    optimizer, norm = steps(model, mine)
    assert tp.allclose(norm, expected, atol=1e-5)
    state = model.state_dict()
    assert list(state) == list(plain.state_dict())
    for name, value in plain.state_dict().items():
        assert type(state[name]) is tp.Tensor and tp.allclose(state[name], value, atol=1e-5), name
    assert [n for n, _ in model.named_parameters()] == [n for n, _ in plain.named_parameters()]
    assert model.check_is_root() and model.fsdp_modules(model)[0] is model
    # another model goes on from the states
    saved = copy.deepcopy(FSDP.optim_state_dict(model, optimizer))
    assert set(saved["state"]) == {n for n, _ in plain.named_parameters()}
    other = FSDP(net(), None, strategy, auto_wrap_policy=POLICIES[policy])
    again = tp.optim.AdamW(other.parameters(), lr=0.1)
    other.load_state_dict(state)
    again.load_state_dict(FSDP.optim_state_dict_to_load(other, again, saved))
    for each, its in ((model, optimizer), (other, again)):
        its.zero_grad()
        each(mine).square().mean().backward()
        its.step()
    ours, theirs = model.state_dict(), other.state_dict()
    assert all(tp.equal(ours[name], theirs[name]) for name in ours)


def states(rank: int, size: int) -> None:
    model = FSDP(net(), auto_wrap_policy=POLICIES["classes"])
    with FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        parts = {n for n, value in model.state_dict().items() if type(value) is DTensor}
        assert parts == {n for n, _ in model.named_parameters()}
    only = FullStateDictConfig(offload_to_cpu=True, rank0_only=True)
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, only):
        assert bool(model.state_dict()) == (rank == 0)
    kept = get_model_state_dict(model)
    assert list(kept) == list(net().state_dict()) and type(kept["0.weight"]) is DTensor
    set_model_state_dict(model, kept)
    with FSDP.summon_full_params(model), tp.no_grad():
        assert model[0].weight.shape == (8, 6)
        model[0].weight.fill_(2.5)
    assert float(model.state_dict()["0.weight"].min()) == 2.5
    with FSDP.summon_full_params(model, writeback=False), tp.no_grad():
        model[0].weight.fill_(1)
    assert float(model.state_dict()["0.weight"].min()) == 2.5
    # a wrapper somewhere in a plain model
    outer = nn.Sequential(nn.Linear(2, 6), FSDP(net()))
    assert "1.0.weight" in outer.state_dict()
    outer.load_state_dict(nn.Sequential(nn.Linear(2, 6), net()).state_dict())


def hybrid(rank: int, size: int) -> None:
    """Two copies, each in two parts: by a tuple of groups, and by a mesh."""
    rows, columns = dist.new_subgroups(2)[0], [dist.new_group([r, r + 2]) for r in (0, 1)][rank % 2]
    tp.manual_seed(rank)  # the first process's parameters are all processes'
    options: Any = {"sync_module_states": True, "auto_wrap_policy": POLICIES["classes"]}
    by_groups = FSDP(net(), (rows, columns), ShardingStrategy.HYBRID_SHARD, **options)
    assert by_groups[0].weight.device_mesh.mesh.tolist() == [[0, 1], [2, 3]]
    tp.manual_seed(rank)
    mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicas", "parts"))
    by_mesh = FSDP(net(), None, ShardingStrategy.HYBRID_SHARD, device_mesh=mesh, **options)
    mine = tp.randn(8, 6, generator=tp.Generator().manual_seed(1)).chunk(size)[rank]
    steps(by_groups, mine)
    steps(by_mesh, mine)
    ours, theirs = by_groups.state_dict(), by_mesh.state_dict()
    assert all(tp.equal(ours[name], theirs[name]) for name in ours)
    everyone: list[Any] = [None] * size
    dist.all_gather_object(everyone, ours["0.weight"])
    assert all(tp.equal(each, everyone[0]) for each in everyone)


def whole_gradients(rank: int, size: int) -> None:
    plain, model = net(), FSDP(net(), auto_wrap_policy=POLICIES["classes"])
    plain.load_state_dict(model.state_dict())
    x = tp.randn(8, 6, generator=tp.Generator().manual_seed(1))
    model.eval(), plain.eval()
    model(x.chunk(size)[rank]).sum().backward()
    (plain(x).sum() / size).backward()
    with FSDP.summon_full_params(model):
        assert all(p.grad is None for p in model.parameters())
    with FSDP.summon_full_params(model, with_grads=True):
        for (name, p), q in zip(model.named_parameters(), plain.parameters(), strict=True):
            assert type(p.grad) is tp.Tensor and tp.allclose(p.grad, q.grad, atol=1e-5), name
        model[0].weight.grad.fill_(3)
        model[0].bias.grad = None
    assert model[0].weight.grad.full_tensor().unique().tolist() == [3] and model[0].bias.grad is None
    with FSDP.summon_full_params(model, with_grads=True, writeback=False):
        model[0].weight.grad.fill_(5)
    assert model[0].weight.grad.full_tensor().unique().tolist() == [3]
    model(x.chunk(size)[rank]).sum().backward()  # adds to what is there
    expected = plain[0].weight.grad + 3
    assert tp.allclose(model[0].weight.grad.full_tensor(), expected, atol=1e-5)


def new_keys(rank: int, size: int) -> None:
    """A cut model's optimizer state goes on in a plain model, and back."""
    model, plain = FSDP(net()), net()
    optimizer, whole = tp.optim.AdamW(model.parameters(), lr=0.1), tp.optim.AdamW(plain.parameters(), lr=0.1)
    x = tp.ones(4, 6)
    model(x).sum().backward()
    optimizer.step()
    named = FSDP.full_optim_state_dict(model, optimizer)
    numbered = FSDP.rekey_optim_state_dict(named, OptimStateKeyType.PARAM_ID, plain)
    whole.load_state_dict(numbered)
    names = [n for n, _ in plain.named_parameters()]
    for i, name in enumerate(names):
        assert tp.equal(whole.state_dict()["state"][i]["exp_avg"], named["state"][name]["exp_avg"])
    back = FSDP.rekey_optim_state_dict(whole.state_dict(), OptimStateKeyType.PARAM_NAME, plain, optim=whole)
    assert list(back["state"]) == names == back["param_groups"][0]["params"]
    assert FSDP.rekey_optim_state_dict(back, OptimStateKeyType.PARAM_NAME, plain) is back
    FSDP.optim_state_dict_to_load(model, optimizer, back)
    with pytest.raises(ValueError, match="Invalid parameter keys"):
        FSDP.rekey_optim_state_dict({"state": {0: {}, "a": {}}, "param_groups": []}, OptimStateKeyType.PARAM_ID, plain)


def cut_state(rank: int, size: int, folder: str) -> None:
    """An optimizer without a step goes on where a checkpoint ends."""
    x = tp.ones(4, 6)
    model, other = FSDP(net()), FSDP(net())
    optimizer, again = tp.optim.AdamW(model.parameters(), lr=0.1), tp.optim.AdamW(other.parameters(), lr=0.3)
    with FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        model(x).sum().backward()
        optimizer.step()
        saved = {"model": model.state_dict(), "optimizer": FSDP.optim_state_dict(model, optimizer)}
        checkpoint.save(saved, checkpoint_id=folder)
    with FSDP.state_dict_type(other, StateDictType.SHARDED_STATE_DICT):
        read = {"model": other.state_dict()}
        checkpoint.load(read, checkpoint_id=folder)
        other.load_state_dict(read["model"])
        reader = checkpoint.FileSystemReader(folder)
        found = checkpoint.load_sharded_optimizer_state_dict(read["model"], "optimizer", reader)
        assert type(found["optimizer"]["state"]["0.weight"]["exp_avg"]) is DTensor
        again.load_state_dict(FSDP.optim_state_dict_to_load(other, again, found["optimizer"]))
    assert again.param_groups[0]["lr"] == 0.1
    for each, its in ((model, optimizer), (other, again)):
        its.zero_grad()
        each(x).square().mean().backward()
        its.step()
    ours, theirs = model.state_dict(), other.state_dict()
    assert all(tp.equal(ours[name], theirs[name]) for name in ours)
    with pytest.raises(KeyError, match="nothing under"):
        checkpoint.load_sharded_optimizer_state_dict(read["model"], "optimiser", reader)


def gradients(rank: int, size: int) -> None:
    x = tp.randn(8, 6, generator=tp.Generator().manual_seed(1)).chunk(size)[rank]
    once, twice = FSDP(net()), FSDP(net())
    with once.no_sync():
        once(x[:2]).sum().backward()
    once(x[2:]).sum().backward()
    twice(x).sum().backward()
    for one, two in zip(once.parameters(), twice.parameters(), strict=True):
        assert tp.allclose(one.grad.full_tensor(), two.grad.full_tensor(), atol=1e-5)
    half = FSDP(net(), mixed_precision=MixedPrecision(param_dtype=tp.bfloat16, buffer_dtype=tp.bfloat16))
    assert half(x).dtype == tp.bfloat16 and half[0].weight.dtype == tp.float32
    # one process's infinity stops all
    scaler = ShardedGradScaler("cpu", init_scale=2.0)
    optimizer = tp.optim.SGD(once.parameters(), lr=1.0)
    before = once.state_dict()["0.bias"]
    optimizer.zero_grad()
    scaler.scale(once(x).sum() * (float("inf") if rank == 0 else 1.0)).backward()
    scaler.step(optimizer)
    scaler.update()
    assert tp.equal(once.state_dict()["0.bias"], before) and scaler.get_scale() == 1.0


@needs_mpi
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("strategy", ["FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD"])
def test_steps(policy: str, strategy: str, tmp_path: Path) -> None:
    world(trains, 2, where("file", tmp_path), policy, ShardingStrategy[strategy])


@needs_mpi
def test_a_state_in_parts_is_read(tmp_path: Path) -> None:
    world(cut_state, 2, where("file", tmp_path), str(tmp_path / "checkpoint"))


@needs_mpi
def test_hybrid_by_groups(tmp_path: Path) -> None:
    world(hybrid, 4, where("file", tmp_path))


@needs_mpi
@pytest.mark.parametrize("part", [states, gradients, whole_gradients, new_keys])
def test_processes(part: Any, tmp_path: Path) -> None:
    world(part, 2, where("file", tmp_path))


@pytest.fixture
def alone() -> Any:
    dist.init_process_group(rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_which_modules_are_wrapped(alone: Any) -> None:
    def wrapped(policy: Any) -> list[str]:
        made = FSDP(net(), auto_wrap_policy=policy)
        return [n.replace("_fsdp_wrapped_module", "*") for n, m in made.named_modules() if isinstance(m, FSDP)][1:]

    assert wrapped(POLICIES["none"]) == []
    assert wrapped(POLICIES["classes"]) == ["*.0", "*.2.0", "*.3"]
    assert wrapped(POLICIES["size"]) == ["*.2.0"]
    assert wrapped(functools.partial(lambda_auto_wrap_policy, lambda_fn=lambda m: len(list(m.children())) == 3)) == [
        "*.2"
    ]
    assert wrapped(CustomPolicy(lambda m: isinstance(m, nn.BatchNorm1d))) == ["*.2.1"]


def test_what_is_refused(alone: Any) -> None:
    with pytest.raises(ValueError, match="one is enough"):
        FSDP(FSDP(nn.Linear(1, 1)))
    with pytest.raises(ValueError, match="device_mesh of two dimensions"):
        FSDP(nn.Linear(1, 1), sharding_strategy=ShardingStrategy.HYBRID_SHARD)
    kept = nn.Linear(2, 2)
    assert not isinstance(FSDP(nn.Sequential(kept, nn.Linear(2, 2)), ignored_modules=[kept])[0].weight, DTensor)
    with tp.device("meta"):
        later = nn.Linear(2, 2)
    made = FSDP(later, param_init_fn=lambda m: m.to_empty(device="cpu").reset_parameters())
    assert made(tp.ones(1, 2)).shape == (1, 2)
