"""What modules and functions of nn refuse: the class of the error and the beginning of its message are PyTorch's."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import tensorpy as tp

CALLS = [
    "nn.BatchNorm1d(3)(t.ones(1, 3))", "F.group_norm(t.ones(1, 2), 2)", "F.group_norm(t.ones(0, 2), 2)",
    "F.instance_norm(t.ones(2, 3, 1))", "F.interpolate(t.ones(1, 1, 2, 2))",
    "F.interpolate(t.ones(1, 1, 2, 2), size=2, scale_factor=2)",
    "F.interpolate(t.ones(1, 1, 2, 2), scale_factor=(1, 2, 3))",
    "F.binary_cross_entropy(t.tensor([0.5]), t.tensor([[1.0]]))",
    "F.binary_cross_entropy_with_logits(t.ones(2), t.ones(3))",
    "F.margin_ranking_loss(t.ones(2), t.ones(2), t.ones(2, 2))",
    "F.nll_loss(t.ones(2, 3), t.tensor([0, 1]), reduction='x')",
    "F.hardtanh(t.ones(2), 2, 1)", "F.rrelu(t.ones(2), 0.5, 0.1)", "F.pad(t.ones(2, 2), (1,))", "nn.Unflatten(1, 5)",
    "nn.utils.rnn.pad_sequence(5)", "nn.utils.rnn.PackedSequence(t.ones(3), None)",
    "type('M', (nn.Module,), {'__init__': lambda self: setattr(self, 'x', nn.Parameter(t.ones(1)))})()",
    "type('M', (nn.Module,), {'__init__': lambda self: self.register_parameter('x', None)})()",
    "F.soft_margin_loss(t.ones(2), t.ones(2, 1))", "F.poisson_nll_loss(t.ones(2), t.ones(2), reduction='x')",
]  # fmt: skip


def outcome(t: Any, call: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return repr(eval(call, {"t": t, "F": t.nn.functional, "nn": t.nn}))
        except Exception as error:
            return type(error).__name__, str(error).replace("tensorpy", "torch")[:36]


@pytest.mark.parametrize("call", CALLS)
def test_calls_are_refused_as_pytorchs(call: str) -> None:
    torch = pytest.importorskip("torch")
    assert outcome(tp, call) == outcome(torch, call)


def pooled(t: Any, place: int) -> Any:
    return t.nn.functional.max_unpool2d(t.ones(1, 1, 2, 2), t.full((1, 1, 2, 2), place), 2)


@pytest.mark.parametrize("place", [-1, 16, 99])
def test_places_outside_of_what_is_unpooled_are_refused(place: int) -> None:
    with pytest.raises(RuntimeError, match="Found an invalid max index: "):
        pooled(tp, place)


def test_what_needs_no_gradient_comes_through_a_backward_hook_without() -> None:
    class Parts(tp.nn.Module):
        def forward(self, a: tp.Tensor, b: tp.Tensor) -> tuple[tp.Tensor, tp.Tensor]:
            assert a.requires_grad and not b.requires_grad
            return a + 1, b

    parts = Parts()
    parts.register_full_backward_hook(lambda module, grad_input, grad_output: None)
    a, b = parts(tp.ones(2, requires_grad=True), tp.ones(2))
    assert a.requires_grad and not b.requires_grad


def test_hooks_return_as_many_gradients_as_there_are() -> None:
    linear = tp.nn.Linear(2, 2)
    linear.register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0],) * 2)
    with pytest.raises(RuntimeError, match="invalid number of grad_input, got 2, but expected 1"):
        linear(tp.ones(1, 2, requires_grad=True)).sum().backward()
