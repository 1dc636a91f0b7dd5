"""What is spread over processes or left to each: states of optimizers, steps on their own, dtypes of gradients."""

from __future__ import annotations

import copy
import warnings
from pathlib import Path
from typing import Any

import pytest
from ranks import needs_mpi, where, world
from test_ddp import alike, batch, flat, net, share

import tensorpy as tp
import tensorpy.nn.functional as F
from tensorpy import distributed as dist
from tensorpy import nn
from tensorpy.distributed.algorithms.ddp_comm_hooks import default_hooks
from tensorpy.distributed.algorithms.ddp_comm_hooks.ddp_zero_hook import (
    hook_with_zero_step,
    hook_with_zero_step_interleaved,
)
from tensorpy.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import PostLocalSGDState, post_localSGD_hook
from tensorpy.distributed.algorithms.join import Join
from tensorpy.distributed.algorithms.model_averaging import averagers, utils
from tensorpy.distributed.algorithms.model_averaging.hierarchical_model_averager import HierarchicalModelAverager
from tensorpy.distributed.optim import PostLocalSGDOptimizer, ZeroRedundancyOptimizer, as_functional_optim
from tensorpy.distributed.optim.utils import functional_optim_map, register_functional_optim
from tensorpy.nn.parallel import DistributedDataParallel as DDP
from tensorpy.nn.parallel.distributed import _MixedPrecision

pytestmark = needs_mpi

OPTIMIZERS: list[tuple[Any, dict[str, Any]]] = [
    (tp.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
    (tp.optim.Adam, {"lr": 0.01}),
    (tp.optim.AdamW, {"lr": 0.01, "weight_decay": 0.1}),
]


def same(a: Any, b: Any) -> bool:
    """Whether two states are the same to the bit."""
    if isinstance(a, tp.Tensor):
        return bool(tp.equal(a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def step(model: Any, optimizer: Any, rank: int, size: int, number: int) -> None:
    x, y = batch(number)
    optimizer.zero_grad()
    F.cross_entropy(model(share(rank, size, x)), share(rank, size, y)).backward()
    optimizer.step()


def groups_of(model: nn.Module) -> list[dict[str, Any]]:
    parameters = list(model.parameters())
    return [{"params": parameters[:3]}, {"params": parameters[3:], "lr": 0.003}]


# ---- ZeroRedundancyOptimizer ----


def stepped_by_hook(rank: int, size: int) -> None:
    """Steps of the hook are those of an optimizer behind backward, from the third pass on (the fourth)."""
    for kind, settings in OPTIMIZERS:
        for static, made in ((False, hook_with_zero_step), (True, hook_with_zero_step_interleaved)):
            options = {"bucket_cap_mb": 0.001, "static_graph": static}
            plain, hooked = DDP(net(), **options), DDP(net(), **options)
            whole = kind(plain.parameters(), **settings)
            zero = ZeroRedundancyOptimizer(hooked.parameters(), kind, overlap_with_ddp=True, **settings)
            plain.register_comm_hook(None, default_hooks.allreduce_hook)
            hooked.register_comm_hook(None, made(default_hooks.allreduce_hook, hooked, zero))
            first = flat(hooked)
            for number in range(6):
                if number >= 2 + static:
                    whole.param_groups[0]["lr"] = zero.param_groups[0]["lr"] = 0.1 / (1 + number)
                    step(plain, whole, rank, size, number)
                step(hooked, zero, rank, size, number)
                assert tp.equal(flat(hooked), first) == (number < 2 + static)
                assert tp.equal(flat(plain), flat(hooked)), (kind, number)
            assert alike(flat(hooked))
            gradients = [p.grad for p in hooked.parameters()]
            assert same(gradients, [p.grad for p in plain.parameters()])
    with pytest.raises(ValueError, match="must be constructed with `overlap_with_ddp=True`"):
        hook_with_zero_step(
            default_hooks.allreduce_hook, hooked, ZeroRedundancyOptimizer(hooked.parameters(), tp.optim.SGD, lr=0.1)
        )


def test_optimizers_that_are_given_gradients() -> None:
    for kind, settings in [*OPTIMIZERS, (tp.optim.Rprop, {}), (tp.optim.Adagrad, {"lr": 0.1})]:
        plain, given = [tp.ones(3), tp.ones(2, 2)], [tp.ones(3), tp.ones(2, 2)]
        whole, made = kind(plain, **settings), as_functional_optim(kind, **settings)
        made.param_group["params"] = given
        for number in range(3):
            gradients = [tp.full((3,), 1.0 + number), None if number == 1 else tp.full((2, 2), -2.0)]
            for p, grad in zip(plain, gradients, strict=True):
                p.grad = grad
            whole.step()
            made.step(gradients)
            assert same(plain, given) and all(p.grad is None for p in given)
        made.step_param(given[0], tp.ones(3))
        plain[0].grad, plain[1].grad = tp.ones(3), None
        whole.step()
        assert same(plain, given) and len(made.state) == 2
    with pytest.raises(ValueError, match="functional counterpart"):
        as_functional_optim(tp.optim.LBFGS)
    made = functional_optim_map[tp.optim.SGD]([], 0.5, _allow_empty_param_list=True)
    x = tp.ones(1)
    made.step_param(x, tp.ones(1))
    assert x.item() == 0.5
    with pytest.raises(ValueError, match="empty parameter list"):
        functional_optim_map[tp.optim.SGD]([], 0.5)
    register_functional_optim("of a test", tp.optim.SGD)
    assert functional_optim_map.pop("of a test") is tp.optim.SGD


@pytest.mark.parametrize("size", [2, 3])
def test_a_hook_that_steps(size: int, tmp_path: Path) -> None:
    world(stepped_by_hook, size, where("file", tmp_path))


def spread(rank: int, size: int) -> None:
    for kind, settings in OPTIMIZERS:
        for views in (False, True):
            plain, zero = DDP(net()), DDP(net())
            whole = kind(groups_of(plain.module), **settings)
            parts = ZeroRedundancyOptimizer(groups_of(zero.module), kind, parameters_as_bucket_view=views, **settings)
            with pytest.raises(RuntimeError, match="has not been consolidated on this rank"):
                parts.state_dict()
            schedules = [tp.optim.lr_scheduler.StepLR(o, 2) for o in (whole, parts)]
            for number in range(4):
                step(plain, whole, rank, size, number)
                step(zero, parts, rank, size, number)
                for schedule in schedules:
                    schedule.step()
                assert tp.equal(flat(plain), flat(zero)), (kind, views, number)
            # each process has the states of its own part, and all parts together are the whole
            assert parts.optim is not None
            mine = sum(p.numel() for g in parts.optim.param_groups for p in g["params"])
            kept = sum(s["momentum_buffer" if kind is tp.optim.SGD else "exp_avg"].numel()
                       for s in parts.optim.state.values())  # fmt: skip
            counts: list[Any] = [None] * size
            dist.all_gather_object(counts, (mine, kept))
            assert kept == mine < flat(zero).numel()
            assert sum(n for n, _ in counts) == flat(zero).numel()
            # the whole state is that of the optimizer of one process, on the process that wants it
            parts.consolidate_state_dict(to=size - 1)
            expected = whole.state_dict()
            if rank == size - 1:
                found = parts.state_dict()
                assert same(found["state"], expected["state"])
                assert same(found["param_groups"], expected["param_groups"])
            # and it goes on from one
            again = ZeroRedundancyOptimizer(groups_of(zero.module), kind, **settings)
            again.load_state_dict(copy.deepcopy(expected))
            step(plain, whole, rank, size, 9)
            step(zero, again, rank, size, 9)
            assert tp.equal(flat(plain), flat(zero)), (kind, views)


@pytest.mark.parametrize("size", [2, 4])
def test_states_are_spread_over_processes(size: int, tmp_path: Path) -> None:
    world(spread, size, where("file", tmp_path))


def grown(rank: int, size: int) -> None:
    plain, zero = net(), net()
    first = [list(m.parameters())[:2] for m in (plain, zero)]
    rest = [list(m.parameters())[2:] for m in (plain, zero)]
    whole = tp.optim.Adam(first[0], lr=0.01)
    parts = ZeroRedundancyOptimizer(first[1], tp.optim.Adam, lr=0.01, parameters_as_bucket_view=True)
    for number in range(4):
        if number == 2:
            whole.add_param_group({"params": rest[0], "lr": 0.1})
            parts.add_param_group({"params": rest[1], "lr": 0.1})
        for model, optimizer in ((plain, whole), (zero, parts)):
            x, y = batch(number)
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        assert tp.equal(flat(plain), flat(zero)), number
    # closures, and processes with unlike numbers of batches
    assert parts.step(lambda: tp.tensor(3.0)).item() == 3.0
    ddp = DDP(net())
    parts = ZeroRedundancyOptimizer(ddp.parameters(), tp.optim.SGD, lr=0.1)
    with Join([ddp, parts]):
        for number in range(3 + rank):
            step(ddp, parts, rank, size, number)
    assert alike(flat(ddp))


def test_groups_that_come_later_and_processes_that_end_sooner(tmp_path: Path) -> None:
    world(grown, 2, where("file", tmp_path))


def test_what_is_no_list_of_parameters() -> None:
    dist.init_process_group(rank=0, world_size=1)
    try:
        p = nn.Parameter(tp.ones(2))
        for given, error in ((p, TypeError), (3, TypeError), ([], ValueError), ([p, {"params": [p]}], TypeError)):
            with pytest.raises(error):
                ZeroRedundancyOptimizer(given, tp.optim.SGD, lr=0.1)
        parts = ZeroRedundancyOptimizer([p], tp.optim.SGD, lr=0.1)
        with pytest.raises(ValueError, match="other groups of parameters"):
            parts.load_state_dict({"state": {}, "param_groups": []})
    finally:
        dist.destroy_process_group()


# ---- averages ----


def averaged(rank: int, size: int) -> None:
    values = [nn.Parameter(tp.full((3,), float(rank))), nn.Parameter(tp.full((2, 2), rank * 2.0, dtype=tp.float64))]
    still = nn.Parameter(tp.full((2,), float(rank)))  # without a gradient
    for p in values:
        p.grad = tp.zeros_like(p)
    mean = (size - 1) / 2
    averager = averagers.PeriodicModelAverager(period=3, warmup_steps=2)
    for number in range(7):
        with tp.no_grad():
            values[0].fill_(rank)
            values[1].fill_(rank * 2)
        averager.average_parameters([*values, still] if number % 2 else [{"params": values}, {"params": [still]}])
        is_time = number in (2, 5)
        assert values[0].tolist() == [mean if is_time else rank] * 3
        assert values[1].tolist() == [[2 * mean if is_time else 2.0 * rank] * 2] * 2
        assert still.tolist() == [rank] * 2
    assert averager.step == 7
    with pytest.raises(NotImplementedError, match="Parameter input of type"):
        utils.get_params_to_average([3])  # type: ignore[list-item]
    for wrong in ({"period": 0}, {"period": 2, "warmup_steps": -1}):
        with pytest.raises(ValueError):
            averagers.PeriodicModelAverager(**wrong)
    with pytest.raises(ValueError, match="must be equal to the size"):
        HierarchicalModelAverager({2: size + 1})
    with pytest.raises(ValueError, match="must not be empty"):
        HierarchicalModelAverager({})
    levels = HierarchicalModelAverager({2: 2, 4: size}, warmup_steps=1)
    for number in range(6):
        with tp.no_grad():
            values[0].fill_(rank)
        levels.average_parameters(values)
        neighbours = (rank // 2 * 2 + 0.5) if number == 2 else mean if number == 4 else rank
        assert values[0].tolist() == [neighbours] * 3, number


def test_parameters_are_averaged_every_few_steps(tmp_path: Path) -> None:
    world(averaged, 4, where("file", tmp_path))


def local_steps(rank: int, size: int) -> None:
    pair, _ = dist.new_subgroups(2)
    for after in (True, False):
        model, reference = DDP(net()), net()
        model.register_comm_hook(PostLocalSGDState(None, pair, 2, after), post_localSGD_hook)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            optimizer = PostLocalSGDOptimizer(
                tp.optim.SGD(model.parameters(), lr=0.1), averagers.PeriodicModelAverager(period=2, warmup_steps=3)
            )
        seen = []
        for number in range(6):
            step(model, optimizer, rank, size, number)
            seen.append(alike(flat(model)))
        assert seen == [True, True, False, True, False, True], (after, seen)
        step(model, optimizer, rank, size, 6)  # a step on their own: neighbours go together if they average gradients
        everyone = [tp.empty_like(flat(model)) for _ in range(size)]
        dist.all_gather(everyone, flat(model))
        assert bool((everyone[rank] == everyone[rank ^ 1]).all()) == after
        assert not bool((everyone[rank] == everyone[(rank + 2) % size]).all())
        # the count of steps is in the state
        saved = optimizer.state_dict()
        assert saved["step"] == 7 and repr(optimizer).startswith("SGD")
        fresh = PostLocalSGDOptimizer(
            tp.optim.SGD(reference.parameters(), lr=0.3), averagers.PeriodicModelAverager(period=2)
        )
        fresh.load_state_dict(saved)
        assert fresh.averager.step == 7 and fresh.param_groups[0]["lr"] == 0.1
        del saved["step"]
        with pytest.warns(UserWarning, match="begins at 0"):
            fresh.load_state_dict(saved)
        assert fresh.averager.step == 0


def test_steps_of_their_own_between_averages(tmp_path: Path) -> None:
    world(local_steps, 4, where("file", tmp_path))


# ---- mixed precision ----


def mixed(rank: int, size: int) -> None:
    half, bfloat = tp.float16, tp.bfloat16
    for dtype, reduced in ((bfloat, None), (half, tp.float32), (bfloat, half), (None, half)):
        model, alone = DDP(net(), mixed_precision=_MixedPrecision(dtype, reduced)), net()
        names = [type(m).__name__ for m in model.modules()]
        x, y = batch(0)
        out = model(share(rank, size, x))
        assert out.dtype == (dtype or tp.float32)
        F.cross_entropy(out.float(), share(rank, size, y)).backward()
        copied = {n: p.detach().to(dtype or tp.float32).requires_grad_() for n, p in alone.named_parameters()}
        given = share(rank, size, x).to(dtype or tp.float32)
        F.cross_entropy(
            tp.func.functional_call(alone, copied, given).float(), share(rank, size, y)
        ).backward()  # fmt: skip
        for name, p in model.module.named_parameters():
            travels = reduced or dtype
            part = copied[name].grad.float().to(travels).div_(size)
            dist.all_reduce(part)
            assert p.dtype == tp.float32 and p.grad is not None and p.grad.dtype == tp.float32
            assert tp.equal(p.grad, part.float()), (dtype, reduced, name)
        assert {t.dtype for t in model.state_dict().values()} == {tp.float32}
        assert names == [type(m).__name__ for m in model.modules()]
        with pytest.raises(RuntimeError, match="can only be called once"):
            model.register_comm_hook(None, post_localSGD_hook)
    counted = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    model = DDP(counted, mixed_precision=_MixedPrecision(buffer_dtype=tp.float64))
    assert counted[1].running_mean.dtype == tp.float64 and counted[1].num_batches_tracked.dtype == tp.int64
    optimizer = tp.optim.SGD(model.parameters(), lr=0.1)
    assert optimizer.param_groups[0]["params"][0].dtype == tp.float32
    # training in 16 bits goes where that in 32 does, roughly
    ends = []
    for precision in (None, _MixedPrecision(tp.bfloat16, tp.float32)):
        model = DDP(net(), mixed_precision=precision, gradient_as_bucket_view=True)
        optimizer = tp.optim.SGD(model.parameters(), lr=0.1)
        for number in range(10):
            step(model, optimizer, rank, size, number)
        assert alike(flat(model))
        ends.append(flat(model))
    assert 0 < float((ends[0] - ends[1]).abs().max()) < 0.02


def test_gradients_of_another_dtype(tmp_path: Path) -> None:
    world(mixed, 2, where("file", tmp_path))


def test_dtypes_of_mixed_precision() -> None:
    with pytest.raises(ValueError, match="reduce_dtype is a dtype of real numbers, not"):
        _MixedPrecision(reduce_dtype=tp.int32)
