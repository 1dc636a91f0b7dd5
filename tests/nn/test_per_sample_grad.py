"""Gradients of each sample: call_for_per_sample_grads and the weights that it calls modules with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tensorpy as tp
from tensorpy import nn
from tensorpy.nn import functional as F
from tensorpy.nn.utils._expanded_weights import ExpandedWeight
from tensorpy.nn.utils._per_sample_grad import call_for_per_sample_grads

MODULES: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "linear": (lambda: nn.Linear(3, 4), (5, 3)),
    "linear of sequences": (lambda: nn.Linear(3, 4, bias=False), (5, 2, 3)),
    "conv1d": (lambda: nn.Conv1d(4, 6, 3, padding=1, groups=2), (3, 4, 7)),
    "conv2d": (lambda: nn.Conv2d(2, 4, 3, stride=2, padding="valid"), (3, 2, 6, 6)),
    "conv2d same": (lambda: nn.Conv2d(2, 4, 3, padding="same"), (3, 2, 6, 6)),
    "conv2d circular": (lambda: nn.Conv2d(2, 4, 3, padding=1, padding_mode="circular"), (3, 2, 6, 6)),
    "conv3d": (lambda: nn.Conv3d(2, 3, 2), (2, 2, 3, 4, 5)),
    "group norm": (lambda: nn.GroupNorm(2, 4), (3, 4, 5)),
    "instance norm": (lambda: nn.InstanceNorm1d(4, affine=True, track_running_stats=True), (3, 4, 5)),
    "layer norm": (lambda: nn.LayerNorm((4, 5)), (3, 4, 5)),
    "embedding": (lambda: nn.Embedding(7, 3, padding_idx=1, max_norm=1.0, scale_grad_by_freq=True), (3, 4)),
    "several": (lambda: nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(32, 3)), (4, 1, 6, 6)),
    "LSTM": (lambda: nn.LSTM(3, 4, 2, bidirectional=True, batch_first=True), (3, 5, 3)),
    "GRU": (lambda: nn.GRU(3, 4), (5, 2, 3)),
    "RNN": (lambda: nn.RNN(3, 4, nonlinearity="relu"), (5, 2, 3)),
}


def one_by_one(module: Any, x: tp.Tensor, dim: int) -> list[tp.Tensor]:
    rows = []
    for i in range(x.shape[dim]):
        made = module(x.narrow(dim, i, 1))
        rows.append(tp.autograd.grad(result(made).sum(), list(module.parameters())))
    return [tp.stack(column) for column in zip(*rows, strict=True)]


def result(made: Any) -> tp.Tensor:
    found: tp.Tensor = made[0] if isinstance(made, tuple) else made
    return found


@pytest.mark.parametrize("name", MODULES)
def test_gradients_are_those_of_each_sample_alone(name: str) -> None:
    tp.manual_seed(0)
    make, shape = MODULES[name]
    module = make()
    x = tp.randint(0, 7, shape) if name == "embedding" else tp.randn(shape, requires_grad=True)
    dim = 1 if name in ("GRU", "RNN") else 0
    expected = one_by_one(module, x, dim)
    (of_input,) = tp.autograd.grad(result(module(x)).sum(), x) if x.requires_grad else (None,)
    made = result(call_for_per_sample_grads(module, batch_first=dim == 0)(x))
    assert made.allclose(result(module(x)), atol=1e-6)
    made.sum().backward()
    for p, grads in zip(module.parameters(), expected, strict=True):
        assert p.grad is None and p.grad_sample.shape == grads.shape and p.grad_sample.allclose(grads, atol=1e-5)
    assert of_input is None or (x.grad is not None and x.grad.allclose(of_input, atol=1e-5))


def test_calls_of_one_weight_add_up_and_a_mean_is_undone() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x: tp.Tensor) -> tp.Tensor:
            twice: tp.Tensor = self.layer(x) + self.layer(x)
            return twice

    net, x = Twice(), tp.randn(3, 2)
    weight: Any = net.layer.weight
    call_for_per_sample_grads(net, loss_reduction="mean")(x).sum(1).mean().backward()
    assert weight.grad_sample.allclose(2 * x[:, None, :].expand(3, 2, 2))
    with pytest.raises(RuntimeError, match="incorrect for multiple calls"):
        call_for_per_sample_grads(net)(x)
    assert net(x).shape == (3, 2)  # the module has its own parameters again


def test_smaller_batches_have_zeros_for_the_rest() -> None:
    original: Any = tp.randn(4, 3, requires_grad=True)
    weight = ExpandedWeight(original, 5)
    weight.set_allow_smaller_batches(True)
    F.linear(tp.ones(2, 3), weight).sum().backward()
    assert original.grad_sample[:2].eq(1).all() and original.grad_sample[2:].eq(0).all()


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "no module": (lambda: call_for_per_sample_grads("fail"), "must be nn.Module"),  # type: ignore[arg-type]
    "float": (lambda: call_for_per_sample_grads(nn.Linear(2, 2), batch_size=6.4), "an integer"),  # type: ignore[arg-type]
    "negative": (lambda: call_for_per_sample_grads(nn.Linear(2, 2), batch_size=-6), "must be positive"),
    "reduction": (lambda: call_for_per_sample_grads(nn.Linear(2, 2), loss_reduction="max"), "sum or mean"),
    "other count": (lambda: call_for_per_sample_grads(nn.Linear(2, 2), batch_size=3)(tp.ones(2, 2)), "batch size of 2"),
    "no tensor": (lambda: call_for_per_sample_grads(nn.Linear(2, 2))(), "Unable to find a tensor"),
    "counts differ": (
        lambda: call_for_per_sample_grads(nn.Bilinear(2, 2, 2))(tp.ones(2, 2), tp.ones(3, 2)),
        "batch size 2 and one with batch size 3",
    ),
    "batch norm": (lambda: call_for_per_sample_grads(nn.BatchNorm1d(2))(tp.ones(2, 2)), "function batch_norm"),
    "add": (lambda: tp.ones(3) + expanded(3), "function add"),
    "vector": (lambda: F.linear(tp.ones(3), expanded(4, 3)), "batch dimension"),
    "unbatched": (lambda: F.conv1d(tp.ones(3, 5), expanded(4, 3, 2)), "batched input"),
    "row of places": (lambda: F.embedding(tp.tensor([1, 2, 0]), expanded(4, 3)), "1D tensor"),
    "whole norm": (lambda: F.layer_norm(tp.ones(3), (3,), expanded(3)), "normalize over batch"),
    "no samples": (lambda: F.linear(tp.ones(0, 3), expanded(4, 3)), "0 is not a valid batch size"),
    "mixture": (lambda: F.linear(tp.ones(3, 3), expanded(4, 3), tp.ones(4, requires_grad=True)), "mixture"),
    "input": (lambda: F.linear(expanded(3, 3), tp.ones(4, 3)), "inputs that are also ExpandedWeights"),
    "dropout": (lambda: call_for_per_sample_grads(nn.LSTM(2, 2, 2, dropout=0.5))(tp.ones(3, 3, 2)), "dropout in lstm"),
    "of nothing": (lambda: ExpandedWeight(3, 2), "of Tensors"),
    "without gradient": (lambda: ExpandedWeight(tp.ones(3), 2), "requires_grad"),
}


def expanded(*shape: int) -> ExpandedWeight:
    return ExpandedWeight(tp.ones(shape, requires_grad=True), 3)


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    call, words = REFUSED[name]
    with pytest.raises(RuntimeError, match=words):
        call()
