"""DistributedDataParallel: many processes with a part of the batch each do what one does with the whole batch."""

from __future__ import annotations

import copy
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from ranks import join, needs_mpi, where, world

import tensorpy as tp
import tensorpy.nn.functional as F
from tensorpy import distributed as dist
from tensorpy import multiprocessing as mp
from tensorpy import nn
from tensorpy.distributed.algorithms.ddp_comm_hooks import DDPCommHookType, register_ddp_comm_hook
from tensorpy.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
from tensorpy.distributed.algorithms.join import Join
from tensorpy.nn.parallel import DistributedDataParallel as DDP
from tensorpy.nn.parallel import distributed

pytestmark = needs_mpi


def net(seed: int = 0) -> nn.Module:
    tp.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 40), nn.Tanh(), nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 3))


def batch(step: int, rows: int = 8) -> tuple[tp.Tensor, tp.Tensor]:
    g = tp.Generator().manual_seed(step)
    return tp.randn(rows, 6, generator=g), tp.randint(3, (rows,), generator=g)


def share(rank: int, size: int, t: tp.Tensor) -> tp.Tensor:
    return t.chunk(size)[rank]


def flat(model: nn.Module) -> tp.Tensor:
    return tp.cat([p.detach().reshape(-1) for p in model.parameters()])


def alike(t: tp.Tensor) -> bool:
    """Whether a tensor has the same bits in all processes."""
    everyone = [tp.empty_like(t) for _ in range(dist.get_world_size())]
    dist.all_gather(everyone, t)
    bits = [e.view(tp.int32) for e in everyone]
    return all(bool((b == bits[0]).all()) for b in bits)


def train(model: nn.Module, alone: nn.Module, rank: int, size: int, steps: int = 6) -> float:
    """The greatest difference to one process with the whole batch."""
    a, b = (tp.optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for m in (model, alone))
    for step in range(steps):
        x, y = batch(step)
        for m, o, part in ((model, a, True), (alone, b, False)):
            o.zero_grad()
            data = (share(rank, size, x), share(rank, size, y)) if part else (x, y)
            F.cross_entropy(m(data[0]), data[1]).backward()
            o.step()
    assert alike(flat(model))
    return float((flat(model) - flat(alone)).abs().max())


def ways(rank: int, size: int) -> list[float]:
    options: list[dict[str, Any]] = [
        {},
        {"gradient_as_bucket_view": True},
        {"bucket_cap_mb": 0.001},
        {"bucket_cap_mb": 0.001, "gradient_as_bucket_view": True},
        {"bucket_cap_mb_list": [0.0001, 0.01]},
        {"find_unused_parameters": True},
        {"find_unused_parameters": True, "gradient_as_bucket_view": True, "bucket_cap_mb": 0.002},
        {"static_graph": True},
        {"static_graph": True, "gradient_as_bucket_view": True, "bucket_cap_mb": 0.001},
    ]
    found = []
    for each in options:
        alone = net()
        model = DDP(net(seed=rank), **each)  # the first process's parameters are all processes'
        found.append(train(model, alone, rank, size))
    return found


@pytest.mark.parametrize("size", [2, 4])
def test_equals_one_process_with_the_whole_batch(size: int, tmp_path: Path) -> None:
    for found in world(ways, size, where("file", tmp_path)):
        assert max(found) < 2e-6


# ---- what is summed, and when ----


def accumulation(rank: int, size: int) -> None:
    for options in ({}, {"gradient_as_bucket_view": True}, {"static_graph": True}):
        alone, model = net(), DDP(net(), bucket_cap_mb=0.001, **options)
        for step in range(3):
            alone.zero_grad(set_to_none=step % 2 == 0)
            model.zero_grad(set_to_none=step % 2 == 0)
            for part in range(3):
                x, y = batch(10 * step + part)
                F.cross_entropy(alone(x), y).backward()
                if part < 2:
                    with model.no_sync():
                        F.cross_entropy(model(share(rank, size, x)), share(rank, size, y)).backward()
                else:
                    F.cross_entropy(model(share(rank, size, x)), share(rank, size, y)).backward()
            for p, q in zip(model.parameters(), alone.parameters(), strict=True):
                assert alike(p.grad) and tp.allclose(p.grad, q.grad, atol=1e-6), (options, step)


def test_gradients_accumulate_without_messages_in_no_sync(tmp_path: Path) -> None:
    world(accumulation, 2, where("file", tmp_path))


class Branches(nn.Module):
    """Uses one of two layers, or both."""

    def __init__(self) -> None:
        super().__init__()
        tp.manual_seed(1)
        self.left, self.right, self.last = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 1)

    def forward(self, x: tp.Tensor, which: str) -> Any:
        left = self.left(x) if "l" in which else None
        right = self.right(x) if "r" in which else None
        both = [t for t in (left, right) if t is not None]
        return self.last(sum(both)), left


def unused(rank: int, size: int) -> None:
    for as_view in (False, True):
        model = DDP(Branches(), find_unused_parameters=True, gradient_as_bucket_view=as_view)
        x = tp.ones(2, 4) * (rank + 1)
        # each process uses another layer: both have gradients, halved
        model(x, "l" if rank == 0 else "r")[0].sum().backward()
        assert model.module.left.weight.grad is not None and model.module.right.weight.grad is not None
        assert all(alike(p.grad) for p in model.parameters())
        # nobody uses the right one: its gradient stays None, or what it was
        model.zero_grad()
        model(x, "l")[0].sum().backward()
        assert model.module.right.weight.grad is None
        model.module.right.weight.grad = tp.full((4, 4), 7.0)
        model.module.left.weight.grad = None
        model(x, "l")[0].sum().backward()
        assert (model.module.right.weight.grad == 7).all()
        # an output that the loss does not use
        model.zero_grad()
        model(x, "lr")[1].sum().backward()
        assert model.module.last.weight.grad is None and alike(model.module.left.weight.grad)


def test_parameters_without_a_gradient(tmp_path: Path) -> None:
    world(unused, 2, where("file", tmp_path))


def refused(rank: int, size: int) -> None:
    x = tp.ones(2, 4)
    model = DDP(Branches())
    model(x, "l")[0].sum().backward()
    with pytest.raises(RuntimeError, match=r"Expected to have finished reduction.*right\.weight, right\.bias"):
        model(x, "l")
    model(x, "lr")[0].sum().backward()  # and goes on
    assert all(alike(p.grad) for p in model.parameters())
    out = model(x, "lr")[0].sum()
    out.backward(retain_graph=True)
    out.backward()  # nobody asked for another round: it is added here, and not averaged
    shared = DDP(nn.Linear(4, 4))
    y = shared(shared.module(x)).sum() * 1  # a parameter that is used outside of forward, too
    y.backward()  # one gradient, for the two uses
    static = DDP(Branches(), static_graph=True)
    static(x, "l")[0].sum().backward()
    static(x, "l")[0].sum().backward()
    with pytest.raises(RuntimeError, match=r"Your training graph has changed.*right"):
        static(x, "lr")[0].sum().backward()
    with pytest.raises(RuntimeError, match="doesn't have any parameter that requires a gradient"):
        DDP(nn.ReLU())
    with pytest.raises(ValueError, match="device_ids"):
        DDP(nn.Linear(1, 1), device_ids=[0])
    with pytest.raises(RuntimeError, match="uninitialized parameters"):
        DDP(nn.LazyLinear(3))
    dist.barrier()


def test_what_is_refused_says_why(tmp_path: Path) -> None:
    world(refused, 2, where("file", tmp_path))


def differing(rank: int, size: int) -> list[str]:
    said = []
    cases: list[Any] = [
        lambda: DDP(nn.Linear(3, 4 if rank == 2 else 5)),
        lambda: DDP(nn.Linear(3, 4, bias=rank != 1)),
        lambda: DDP(nn.Linear(3, 4), bucket_cap_mb=1 if rank == 1 else 2),
        lambda: DDP(nn.Linear(3, 4), find_unused_parameters=rank == 2),
        lambda: DDP(nn.BatchNorm1d(3), bucket_cap_mb=1).module if rank else DDP(nn.BatchNorm1d(3, False)),
    ]
    for case in cases:
        with pytest.raises(RuntimeError, match="the module is not the same in all processes") as caught:
            case()
        said.append(str(caught.value))
    return said


def test_a_process_whose_module_differs_is_named(tmp_path: Path) -> None:
    for said in world(differing, 3, where("file", tmp_path)):
        assert "rank 2 has weight: tensorpy.float32[4, 3], not weight: tensorpy.float32[5, 3]" in said[0]
        assert "rank 1 has 1 parameters that require a gradient, not 2" in said[1]
        assert "rank 1 has buckets of 1048576 bytes, not buckets of 2097152 bytes" in said[2]
        assert "rank 2 has find_unused_parameters, not no find_unused_parameters" in said[3]
        assert "rank 1 has" in said[4] and "rank 2 has" in said[4]


# ---- a long run, kinds of modules ----


def thousand(rank: int, size: int) -> str:
    """Replicas after 1,000 steps with other data in each process."""
    tp.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(6, 20), nn.BatchNorm1d(20), nn.ReLU(), nn.Linear(20, 3)), bucket_cap_mb=0.0005)
    optimizer = tp.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(1000):
        x, y = batch(step * size + rank)
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    model(x)  # gives the first process's buffers to all; the statistics of this call are each one's
    assert alike(flat(model))
    return str(flat(model).double().sum().item())


@pytest.mark.parametrize("size", [2, 4])
def test_replicas_have_the_same_bits_after_a_thousand_steps(size: int, tmp_path: Path) -> None:
    assert len(set(world(thousand, size, where("tcp", tmp_path)))) == 1


def kinds(rank: int, size: int) -> None:
    # several dtypes, strides, no elements, a parameter of no dimension, one that is used twice
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            tp.manual_seed(3)
            self.a = nn.Parameter(tp.randn(3, 4).t())
            self.b = nn.Parameter(tp.randn(4, dtype=tp.float64))
            self.c = nn.Parameter(tp.tensor(2.0))
            self.d = nn.Parameter(tp.randn(2, 3).to(tp.bfloat16))
            self.e = nn.Parameter(tp.empty(0, 3))
            self.z = nn.Parameter(tp.randn(3, dtype=tp.complex64))
            self.images = nn.Parameter(tp.randn(2, 3, 2, 2).to(memory_format=tp.channels_last))

        def forward(self, x: tp.Tensor) -> tp.Tensor:
            y = (x @ self.a @ self.a.t()).double() * self.b * self.c
            return y.sum() + self.d.float().sum() * self.c + self.e.sum() + self.z.abs().sum() + (self.images**2).sum()

    for options in ({}, {"gradient_as_bucket_view": True}, {"static_graph": True}):
        alone, model = Odd(), DDP(Odd(), **options)
        for step in range(3):
            model.zero_grad()
            alone.zero_grad()
            xs = [tp.randn(2, 4, generator=tp.Generator().manual_seed(10 * step + r)) for r in range(size)]
            model(xs[rank]).backward()
            (sum(alone(x) for x in xs) / size).backward()
            for (name, p), q in zip(model.named_parameters(), alone.parameters(), strict=True):
                assert p.grad.dtype == p.dtype and p.grad.stride() == p.stride(), name
                assert tp.allclose(p.grad.abs().double(), q.grad.abs().double(), rtol=1e-2, atol=1e-3), name
    embedding = DDP(nn.Embedding(10, 3, sparse=True))
    alone = nn.Embedding(10, 3)
    alone.load_state_dict(embedding.module.state_dict())
    ids = tp.tensor([[1, 2, 2], [5, 1, 9]])[rank]
    embedding(ids).pow(2).sum().backward()
    (alone(tp.tensor([[1, 2, 2], [5, 1, 9]])).pow(2).sum() / 2).backward()
    assert embedding.module.weight.grad.is_sparse
    assert tp.allclose(embedding.module.weight.grad.to_dense(), alone.weight.grad)


def test_parameters_of_every_kind(tmp_path: Path) -> None:
    world(kinds, 2, where("file", tmp_path))


def rules(rank: int, size: int) -> None:
    from tensorpy.utils.checkpoint import checkpoint

    # checkpoints: forward runs again inside of backward
    class Checked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            tp.manual_seed(5)
            self.a, self.b = nn.Linear(6, 6), nn.Linear(6, 3)

        def forward(self, x: tp.Tensor, reentrant: bool) -> tp.Tensor:
            return self.b(checkpoint(lambda t: self.a(t).tanh(), x, use_reentrant=reentrant))

    for reentrant in (False, True):
        for options in ({}, {"static_graph": True}):
            model, alone = DDP(Checked(), **options), Checked()
            for step in range(3):
                x, y = batch(step)
                model.zero_grad()
                alone.zero_grad()
                mine = share(rank, size, x).requires_grad_()
                F.cross_entropy(model(mine, reentrant), share(rank, size, y)).backward()
                F.cross_entropy(alone(x, False), y).backward()
                for p, q in zip(model.parameters(), alone.parameters(), strict=True):
                    assert tp.allclose(p.grad, q.grad, atol=1e-6)
    # a state dict, a copy, evaluation
    model = DDP(net())
    assert next(iter(model.state_dict())) == "module.0.weight"
    model.load_state_dict(copy.deepcopy(model.state_dict()))
    with tp.no_grad():
        assert model(tp.ones(2, 6)).shape == (2, 3)
    # parameters that are left alone
    part = net()
    DDP._set_params_and_buffers_to_ignore_for_model(part, ["0.weight"])
    model = DDP(part)
    F.cross_entropy(model(tp.ones(2, 6) * rank), tp.tensor([0, 1])).backward()
    assert not alike(part[0].weight.grad) and alike(part[0].bias.grad)
    # some gradients by themselves
    part = net()
    named = [("0.weight", part[0].weight), ("0.bias", part[0].bias)]
    model = DDP(part, delay_all_reduce_named_params=named, param_to_hook_all_reduce=part[0].weight)
    F.cross_entropy(model(tp.ones(2, 6) * (rank + 1)), tp.tensor([0, 1])).backward()
    assert all(alike(p.grad) for p in part.parameters())
    # a group of some
    one = dist.new_group([0])
    if rank == 0:
        model = DDP(net(), process_group=one)
        F.cross_entropy(model(tp.ones(2, 6)), tp.tensor([0, 1])).backward()
    data = DDP(net())._get_ddp_logging_data()
    assert data["dtypes"] == "float" and data["output_device"] == -1 and data["device_ids"] == ""
    assert data["torch_distributed_debug"] == "N/A" and not data["has_sync_bn"] and data["iteration"] == 0
    assert data["world_size"] == size and data["bucket_cap_bytes"] == 25 << 20


def times(rank: int, size: int) -> None:
    """The first ten rounds are noted, then one in each `rate`; a part of a step is no longer than the whole."""
    model = DDP(net())
    model._set_ddp_runtime_logging_sample_rate(4)
    for step in range(14):
        F.cross_entropy(model(tp.ones(2, 6)), tp.tensor([0, 1])).backward()
        data = model._get_ddp_logging_data()
        assert data["iteration"] == (step if step < 10 or step % 4 == 0 else max(9, step // 4 * 4)), step
        overlap = data["backward_compute_comm_overlap_time"]
        assert 0 < overlap <= min(data["backward_compute_time"], data["backward_comm_time"])
        assert 0 < data["forward_compute_time_start"] < data["backward_compute_time_start"]
        assert data["backward_comm_time_start"] < data["backward_compute_time_end"] < data["backward_comm_time_end"]
        assert data["avg_forward_compute_time"] > 0
    fixed = nn.Linear(2, 2)
    fixed.bias.requires_grad_(False)  # is none of those that travel
    said = DDP(fixed)._get_ddp_logging_data()
    assert said["num_parameter_tensors"] == 1 and said["total_parameter_size_bytes"] == 16
    model = DDP(net(), bucket_cap_mb_list=[1, 2])
    assert "comm_hook" not in model._get_ddp_logging_data() and model.bucket_bytes_cap_list == [1 << 20, 2 << 20]
    model._register_builtin_comm_hook(dist.BuiltinCommHookType.FP16_COMPRESS)
    model(tp.ones(2, 6)).sum().backward()
    assert model._get_ddp_logging_data()["comm_hook"] == "BuiltinCommHookType.FP16_COMPRESS"
    count = len(list(model.parameters()))
    order = [str(i) for i in range(count - 1, -1, -1)]
    assert data["prev_iteration_grad_ready_order_indices"] == ", ".join(order)
    assert data["rebuilt_per_bucket_param_indices"] == " ".join(order)
    with pytest.raises(RuntimeError, match="equal or greater than 1"):
        model._set_ddp_runtime_logging_sample_rate(0)


def test_what_is_told_of_times(tmp_path: Path, capsys: Any) -> None:
    world(times, 2, where("file", tmp_path))
    distributed._dump_DDP_relevant_env_vars()
    assert "env:NCCL_TOPO_DUMP_FILE=N/A" in capsys.readouterr().out.splitlines()


def test_rules_of_programs(tmp_path: Path) -> None:
    world(rules, 2, where("file", tmp_path))


# ---- buffers ----


def buffers(rank: int, size: int) -> None:
    model = DDP(nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4)))
    for step in range(3):
        model(batch(step * size + rank)[0]).sum().backward()
    mean = model.module[1].running_mean
    assert not alike(mean)  # each one's statistics of the last batch
    model.eval()
    model(tp.ones(2, 6))
    assert alike(mean)
    own = DDP(nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4)), broadcast_buffers=False)
    for step in range(2):
        own(batch(step * size + rank)[0]).sum().backward()
    own(batch(9)[0])
    assert not alike(own.module[1].running_mean)
    # two forwards before a backward
    twice = DDP(nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4)).eval())
    (twice(tp.ones(2, 6)) + twice(tp.zeros(2, 6))).sum().backward()


def test_buffers_are_the_first_process_s(tmp_path: Path) -> None:
    world(buffers, 2, where("file", tmp_path))


# ---- join ----


def joined(rank: int, size: int) -> list[float]:
    found = []
    for initial in (True, False):
        for options in ({}, {"find_unused_parameters": True}, {"bucket_cap_mb": 0.001}):
            tp.manual_seed(2)
            model = DDP(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1)), **options)
            optimizer = tp.optim.SGD(model.parameters(), lr=0.1)
            with model.join(divide_by_initial_world_size=initial):
                for step in range(2 + 2 * rank):
                    optimizer.zero_grad()
                    model(tp.randn(4, 2, generator=tp.Generator().manual_seed(step))).sum().backward()
                    optimizer.step()
            assert alike(flat(model)) and alike(model.module[1].running_mean)
            found.append(float(flat(model).sum()))
    model = DDP(nn.Linear(1, 1))
    with pytest.raises(RuntimeError, match=r"exhausted all inputs|exhausted inputs"):
        with Join([model], throw_on_early_termination=True):
            for _ in range(1 + rank):
                model(tp.ones(1, 1)).sum().backward()
    return found


def test_join_ends_unlike_numbers_of_batches(tmp_path: Path) -> None:
    first, *others = world(joined, 3, where("file", tmp_path))
    assert all(first == other for other in others)
    assert first[0] != first[3]  # divided by three processes, or by those that have a batch


# ---- hooks ----


def hooks(rank: int, size: int) -> dict[str, float]:
    far = {}
    quantized = ("QUANTIZE_PER_TENSOR", "QUANTIZE_PER_CHANNEL")
    for name in ("ALLREDUCE", "FP16_COMPRESS", "BF16_COMPRESS", *quantized, "POWER_SGD", "NOOP"):
        model = DDP(net(), bucket_cap_mb=0.001)
        register_ddp_comm_hook(DDPCommHookType[name], model)
        if name == "NOOP":
            x, y = batch(rank)
            F.cross_entropy(model(x), y).backward()
            assert not alike(model.module[0].weight.grad)
            continue
        far[name] = train(model, net(), rank, size)
    with pytest.raises(RuntimeError, match="only be called once"):
        model.register_comm_hook(None, lambda state, bucket: None)
    with pytest.raises(TypeError, match="must be callable"):
        DDP(net()).register_comm_hook(None, 3)
    with pytest.raises(TypeError, match="returns a Future"):
        wrong = DDP(net())
        wrong.register_comm_hook(None, lambda state, bucket: bucket.buffer())
        wrong(tp.ones(1, 6)).sum().backward()
    seen: list[Any] = []

    def look(state: Any, bucket: dist.GradBucket) -> Any:
        parts = bucket.gradients()
        assert bucket.buffer().numel() == sum(p.numel() for p in parts) and len(parts) == len(bucket.parameters())
        assert all(p.shape == g.shape for p, g in zip(bucket.parameters(), parts, strict=True))
        state.append((bucket.index(), bucket.is_last()))
        return dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(lambda f: f.value()[0] / size)

    model = DDP(net(), bucket_cap_mb=0.001)
    model.register_comm_hook(seen, look)
    far["own"] = train(model, net(), rank, size)
    assert seen[0] == (0, False) and any(last for _, last in seen)
    return far


def test_hooks_carry_gradients(tmp_path: Path) -> None:
    for far in world(hooks, 2, where("file", tmp_path)):
        assert far["ALLREDUCE"] < 2e-6 and far["own"] < 2e-6 and far["POWER_SGD"] < 2e-6  # not compressed yet
        assert 0 < far["FP16_COMPRESS"] < 2e-3 and 0 < far["BF16_COMPRESS"] < 2e-2
        assert 0 < far["QUANTIZE_PER_TENSOR"] < 2e-2 and 0 < far["QUANTIZE_PER_CHANNEL"] < 2e-2


def power(rank: int, size: int) -> None:
    from tensorpy.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import batched_powerSGD_hook

    for hook in (powerSGD_hook, batched_powerSGD_hook):
        for warm in (True, False):
            model = DDP(net(), bucket_cap_mb=0.004)
            state = PowerSGDState(None, 2, start_powerSGD_iter=2, min_compression_rate=1, warm_start=warm)
            model.register_comm_hook(state, hook)
            optimizer = tp.optim.SGD(model.parameters(), lr=0.05)
            losses = []
            for _ in range(60):
                x, y = batch(0, rows=16)
                optimizer.zero_grad()
                loss = F.cross_entropy(model(share(rank, size, x)), share(rank, size, y))
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            assert alike(flat(model)) and losses[-1] < 0.8 * losses[0], losses[::10]
            assert state.compression_stats()[0] > 1.2
    # a gradient of rank one comes back whole
    tp.manual_seed(0)
    model = DDP(nn.Linear(30, 20, bias=False))
    model.register_comm_hook(PowerSGDState(None, 1, start_powerSGD_iter=2), powerSGD_hook)
    x = tp.linspace(-1, 1, 30).reshape(1, 30) * (rank + 1)
    for _ in range(4):
        model.zero_grad()
        model(x).sum().backward()
    mean = tp.linspace(-1, 1, 30) * (1 + size) / 2
    assert tp.allclose(model.module.weight.grad, mean.expand(20, 30), atol=1e-5)


def test_power_sgd_compresses(tmp_path: Path) -> None:
    world(power, 2, where("file", tmp_path))


# ---- faults ----


def dies(rank: int, size: int, method: str, answers: str) -> None:
    join(method, rank, size)
    tp.manual_seed(0)
    model = DDP(nn.Sequential(*[nn.Linear(64, 64) for _ in range(6)]), bucket_cap_mb=0.01)

    def die(_: tp.Tensor) -> None:
        Path(answers, "killed").write_text(repr(time.time()))
        os.kill(os.getpid(), signal.SIGKILL)

    for step in range(6):
        if rank == 1 and step == 4:
            model.module[2].weight.register_hook(die)  # in the middle of a backward pass
        try:
            model(tp.ones(2, 64)).sum().backward()
        except dist.DistBackendError as error:
            Path(answers, str(rank)).write_text(f"{time.time()!r} {error}")
            return


def test_a_process_that_dies_in_backward_is_named_by_all_others(tmp_path: Path) -> None:
    context = mp.get_context("spawn")
    method = where("file", tmp_path)
    processes = [context.Process(target=dies, args=(r, 4, method, str(tmp_path))) for r in range(4)]
    for p in processes:
        p.start()
    for p in processes:
        p.join(60)
    assert [p.exitcode for p in processes] == [0, -signal.SIGKILL, 0, 0]
    killed = float((tmp_path / "killed").read_text())
    for r in (0, 2, 3):
        when, _, said = (tmp_path / str(r)).read_text().partition(" ")
        assert float(when) - killed < 5, said
        assert "all_reduce #" in said and "of group 0: rank 1 (" in said and "ended" in said


# ---- one process ----


def test_one_process() -> None:
    with pytest.raises(ValueError, match="process group has not been initialized"):
        DDP(nn.Linear(1, 1))
    dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    try:
        for option in (None, "gradient_as_bucket_view", "find_unused_parameters", "static_graph"):
            options: dict[str, Any] = {option: True} if option else {}
            model, alone = DDP(net(), **options), net()
            for step in range(3):
                x, y = batch(step)
                F.cross_entropy(model(x), y).backward()
                F.cross_entropy(alone(x), y).backward()
            for p, q in zip(model.parameters(), alone.parameters(), strict=True):
                assert tp.equal(p.grad, q.grad), options
        with model.join():
            model(x).sum().backward()
        copied = copy.deepcopy(model)
        copied(x).sum().backward()
    finally:
        dist.destroy_process_group()


def test_a_module_outlives_its_wrapper() -> None:
    """Hooks know the wrapper weakly, and go with it."""
    import gc
    import weakref

    dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    try:
        inner = nn.Linear(2, 2)
        model = DDP(inner)
        model(tp.ones(1, 2)).sum().backward()
        gone = weakref.ref(model.reducer)
        del model
        gc.collect()
        assert gone() is None
        inner(tp.ones(1, 2)).sum().backward()
    finally:
        dist.destroy_process_group()


# ---- SyncBatchNorm ----


def synchronized(rank: int, size: int) -> None:
    for shape in ((8, 3), (8, 3, 5), (8, 3, 4, 4)):
        for dtype in (tp.float32, tp.float64, tp.bfloat16):
            tp.manual_seed(4)
            alone = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d}[len(shape)](3).to(dtype)
            with tp.no_grad():
                alone.weight.uniform_()
                alone.bias.uniform_()
            made = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(copy.deepcopy(alone)))
            assert isinstance(made[0], nn.SyncBatchNorm)
            whole = tp.randn(*shape, generator=tp.Generator().manual_seed(7)).to(dtype)
            weigh = tp.randn(*shape, generator=tp.Generator().manual_seed(8)).to(dtype)
            cuts = [0, 3, 8] if size == 2 else [0, 1, 4, 4, 8]  # unlike parts, and an empty one
            mine = slice(cuts[rank], cuts[rank + 1])
            x, y = whole[mine].clone().requires_grad_(), whole.clone().requires_grad_()
            out, expected = made(x), alone(y)
            (out * weigh[mine]).sum().backward()
            (expected * weigh).sum().backward()
            for p in made.parameters():
                dist.all_reduce(p.grad)
            near = {"rtol": 2e-2, "atol": 5e-2} if dtype == tp.bfloat16 else {"rtol": 1e-5, "atol": 1e-5}
            assert out.dtype == dtype and tp.allclose(out, expected[mine], **near)
            assert tp.allclose(x.grad, y.grad[mine], **near)
            assert tp.allclose(made[0].weight.grad, alone.weight.grad, **near)
            assert tp.allclose(made[0].bias.grad, alone.bias.grad, **near)
            assert tp.allclose(made[0].running_mean, alone.running_mean, **near)
            assert tp.allclose(made[0].running_var, alone.running_var, **near)
            made.eval()
            alone.eval()
            assert tp.allclose(made(x), alone(x), **near)
    # inside of DistributedDataParallel, which then equals one process with the whole batch
    base = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    dist.broadcast(base[0].weight.data, 0)
    model = DDP(nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(base)))
    alone = copy.deepcopy(model.module)
    alone[1] = nn.BatchNorm1d(8)
    assert train(model, alone, rank, size) < 1e-5


@pytest.mark.parametrize("size", [2, 4])
def test_batch_norm_over_all_processes(size: int, tmp_path: Path) -> None:
    world(synchronized, size, where("file", tmp_path))


class Turns(nn.Module):
    """Each process uses one of its branches, another one in each pass."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.branches = nn.ModuleList([nn.Linear(1, 1) for _ in range(2 * size)])
        self.passes = 0

    def forward(self, x: tp.Tensor, rank: int) -> tp.Tensor:
        self.passes += 1
        branch: tp.Tensor = self.branches[2 * rank + (self.passes - 1) % 2](x)
        return branch


def unused_after_no_sync(rank: int, size: int) -> None:
    """What a pass under no_sync used is averaged by the pass behind it, which uses something else."""
    for views in (False, True):
        tp.manual_seed(1)
        model = DDP(Turns(size), find_unused_parameters=True, gradient_as_bucket_view=views)
        for rounds in range(2):
            with model.no_sync():
                model(tp.full((1,), rank + 1.0), rank).sum().backward()
            model(tp.full((1,), 2.0 * (rank + 1)), rank).sum().backward()
            for r in range(size):
                for turn in range(2):
                    grad = model.module.branches[2 * r + turn].weight.grad
                    assert grad.item() == (r + 1.0) * (turn + 1) / size, (views, rounds, r, turn)
            model.zero_grad()
        model(tp.ones(1), rank).sum().backward()  # what nobody used since keeps what it had
        assert all(model.module.branches[2 * r + 1].weight.grad is None for r in range(size))


@pytest.mark.parametrize("size", [2, 4])
def test_unused_after_no_sync(size: int, tmp_path: Path) -> None:
    world(unused_after_no_sync, size, where("tcp", tmp_path))


def late_static_graph(rank: int, size: int) -> None:
    model = DDP(nn.Linear(2, 2))
    model(tp.ones(1, 2)).sum().backward()
    with pytest.raises(RuntimeError, match="should be called before training loop starts"):
        model._set_static_graph()
    assert "before training loop" in model._get_ddp_logging_data()["error"]


def test_late_static_graph(tmp_path: Path) -> None:
    world(late_static_graph, 2, where("tcp", tmp_path))


def divisors(rank: int, size: int) -> None:
    """join(divide_by_initial_world_size=False) says by how many sums are divided in its context, and nowhere else."""
    model = DDP(nn.Linear(2, 2, bias=False))
    x, weight = tp.full((1, 2), 6.0), model.module.weight
    for initial, rows in ((False, 2 + rank), (True, 1 + rank), (False, 1)):
        with model.join(divide_by_initial_world_size=initial):
            for i in range(rows):
                model.zero_grad()
                model(x).sum().backward()
                there = size if i < rows - rank else size - i + rows - rank - 1
                expected = 6.0 * there / size if initial else 6.0
                assert tp.allclose(weight.grad, tp.full((2, 2), expected)), (initial, i)
    model.zero_grad()
    model(x).sum().backward()
    assert weight.grad.unique().tolist() == [6.0]


@pytest.mark.parametrize("size", [2, 4])
def test_divisors(size: int, tmp_path: Path) -> None:
    world(divisors, size, where("tcp", tmp_path))


def profiled(rank: int, size: int) -> None:
    for options in ({}, {"find_unused_parameters": True}, {"bucket_cap_mb": 0.001}):
        model = DDP(net(), **options)
        with tp.profiler.profile(record_shapes=True) as p:
            for step in range(3):
                model(batch(step)[0]).sum().backward()
        sums = [e for e in p.events() if e.name == "gloo:all_reduce" and e.is_async and e.input_dtypes == ["float32"]]
        each = model.reducer.bucket_sizes()
        assert len(sums) >= 3 * len(each) and all(e.cpu_time > 0 for e in sums)
        assert sorted(e.input_shapes[0][0] * 4 for e in sums[-len(each) :]) == sorted(each)
        searches = [e for e in p.events() if e.name == "search_unused_parameters"]
        assert len(searches) == 3 * ("find_unused_parameters" in options)
        model(batch(0)[0]).sum().backward()  # nothing is noted without a profile
        assert not model.reducer._events


def test_buckets_in_profiles(tmp_path: Path) -> None:
    world(profiled, 2, where("tcp", tmp_path))


def noted_errors(rank: int, size: int) -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.left, self.right = nn.Linear(2, 2), nn.Linear(2, 2, bias=False)

        def forward(self, x: tp.Tensor) -> tp.Tensor:
            found: tp.Tensor = self.left(x)
            return found

    for finds, advice in ((False, "passing the keyword argument `find_unused_parameters=True`"), (True, "is enabled")):
        model = DDP(Two(), find_unused_parameters=finds)
        assert "has_error" not in model._get_ddp_logging_data()
        if finds:
            model(tp.ones(1, 2))  # and no backward pass
            model.reducer.started = True
        else:
            model(tp.ones(1, 2)).sum().backward()
        with pytest.raises(RuntimeError, match="did not receive grad for rank") as caught:
            model(tp.ones(1, 2))
        assert advice in str(caught.value) and model._get_ddp_logging_data()["error"] == str(caught.value)
        if not finds:
            assert f"for rank {rank}: 2." in str(caught.value)
    with pytest.raises(TypeError, match="must be callable"):
        model.register_comm_hook(None, 3)  # type: ignore[arg-type]
    assert "must be callable" in model._get_ddp_logging_data()["error"]


def test_noted_errors(tmp_path: Path) -> None:
    world(noted_errors, 2, where("tcp", tmp_path))


def by_hand(rank: int, size: int) -> None:
    """As programs do that run forward and backward themselves: the round begins by the reducer's own methods."""
    x, y = batch(0)
    for static in (False, True):
        alone, model = net(), DDP(net(), static_graph=static)
        for _ in range(2):
            model.zero_grad()
            with model.no_sync():
                loss = F.cross_entropy(model(share(rank, size, x)), share(rank, size, y))
            assert not model.reducer._rebuild_buckets()
            model.reducer.prepare_for_forward()
            model.reducer.prepare_for_backward([])
            loss.backward()
            model.reducer._delay_all_reduce()
            alone.zero_grad()
            F.cross_entropy(alone(x), y).backward()
            for p, q in zip(alone.parameters(), model.parameters(), strict=True):
                assert tp.allclose(p.grad, q.grad, atol=1e-6)


def test_rounds_by_hand(tmp_path: Path) -> None:
    world(by_hand, 2, where("file", tmp_path))
