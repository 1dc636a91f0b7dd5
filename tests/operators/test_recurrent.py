"""Recurrent networks over many steps, where weights are laid out in panels, and what their operators refuse."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import pytest

import tensorpy as tp

STEPS, BATCH, FEATURES = 11, 19, 5  # enough of both for panels; the rows are no multiple of those that go together
OPS = {"LSTM": tp.lstm, "GRU": tp.gru}


def _arguments(kind: str, hidden: int, dtype: Any, packed: bool, both: bool) -> tuple[list[Any], list[Any]]:
    """Of the operator, and the tensors among them that have gradients."""
    tp.manual_seed(0)
    model = getattr(tp.nn, kind)(FEATURES, hidden, 1, bidirectional=both)
    params = [p.detach().to(dtype).requires_grad_() for p in model.parameters()]
    states = [tp.randn(1 + both, BATCH, hidden).to(dtype).requires_grad_() for _ in range(2 if kind == "LSTM" else 1)]
    x = tp.randn(STEPS, BATCH, FEATURES)
    lengths = sorted([1 + i % STEPS for i in range(BATCH - 1)] + [STEPS], reverse=True)
    sizes = tp.tensor([sum(n > t for n in lengths) for t in range(STEPS)])
    data = tp.cat([x[t, : int(n)] for t, n in enumerate(sizes)]) if packed else x
    data = data.to(dtype).requires_grad_()
    given = states if kind == "LSTM" else states[0]
    front = [data, sizes] if packed else [data]
    back = [params, True, 1, 0.0, True, both, *([] if packed else [False])]
    return [*front, given, *back], [data, *states, *params]


@pytest.mark.parametrize(("packed", "both"), list(itertools.product((False, True), repeat=2)))
@pytest.mark.parametrize("hidden", [32, 64, 7])
@pytest.mark.parametrize("kind", list(OPS))
def test_single_and_double_precision_agree(kind: str, hidden: int, packed: bool, both: bool) -> None:
    found = []
    for dtype in (tp.float32, tp.float64):
        args, leaves = _arguments(kind, hidden, dtype, packed, both)
        results = OPS[kind](*args)
        loss = sum((r * r).sum() for r in results)
        twice = tp.autograd.grad(loss, leaves, create_graph=True)
        found.append([*results, *tp.autograd.grad(loss, leaves), *twice])
    for a, b in zip(*found, strict=True):
        assert (a.double() - b).abs().max() <= 2e-5 * max(1.0, float(b.abs().max()))


def test_nothing_is_kept_without_gradients() -> None:
    args, _ = _arguments("LSTM", 32, tp.float32, False, False)
    with tp.no_grad(), tp.dispatch.trace() as trace:
        tp.lstm(*args)
    assert sum(event.op == "_recurrent_layer" and event.key == "CPU" for event in trace) == 1  # not one for each step
    gates, state = tp.randn(6, 12), tp.randn(2, 3)
    layer: Any = tp._C._recurrent_layer
    kept = layer("lstm", gates, state, state, tp.randn(12, 3), None, [2, 2, 2], False, False)[3:]
    assert [t.shape[0] for t in kept] == [0, 0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"input": (3, 2, 9)}, "inconsistent input_size: got 9 expected 4"),
        ({"input": (0, 2, 4)}, "larger than 0"),
        ({"input": (2, 4)}, "3 dimensions"),
        ({"state": (1, 3, 5)}, "expected hx"),
        ({"state": (1, 2, 6)}, "inconsistent hidden_size: got 6, expected 5"),
        ({"params": 3}, "expected 4 parameters, but got 3"),
    ],
    ids=str,
)
def test_refusals(change: dict[str, Any], message: str) -> None:
    params = [*tp.nn.GRU(4, 5).parameters()][: change.get("params", 4)]
    x, h = tp.randn(*change.get("input", (3, 2, 4))), tp.randn(*change.get("state", (1, 2, 5)))
    with pytest.raises(RuntimeError, match=message):
        tp.gru(x, h, params, True, 1, 0.0, False, False, False)


def test_a_cell_takes_as_many_states_as_it_has() -> None:
    weights = [*tp.nn.LSTMCell(4, 5).parameters()]
    with pytest.raises(RuntimeError, match="two hidden states"):
        tp.lstm_cell(tp.randn(2, 4), [tp.randn(2, 5)], *weights)
    with pytest.raises(RuntimeError, match="hidden1 batch size 3"):
        tp.lstm_cell(tp.randn(2, 4), [tp.randn(2, 5), tp.randn(3, 5)], *weights)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_the_list_of_weights_is_set(kind: str) -> None:
    """The list is what a call computes with, until a parameter is set anew or all of them are converted."""
    layer, x = getattr(tp.nn, kind)(2, 3), tp.ones(4, 1, 2)
    own = [*layer.parameters()]
    expected = layer(x)[0]
    layer._flat_weights = [w * 2 for w in layer._flat_weights]
    assert all(a is b for a, b in zip(layer.parameters(), own, strict=True))
    assert not tp.allclose(layer(x)[0], expected)
    layer(x)[0].sum().backward()
    assert all(p.grad is not None for p in own)
    layer._flat_weights = [w.detach() * 0 for w in layer._flat_weights]
    assert not layer(x)[0].any() and not copy.deepcopy(layer)(x)[0].any()
    layer.weight_ih_l0 = tp.nn.Parameter(own[0].detach())
    assert layer._flat_weights[0] is layer.weight_ih_l0 and not layer._flat_weights[1].any()
    layer.double()
    assert tp.allclose(layer(x.double())[0].float(), expected, atol=1e-6)
    with pytest.raises(ValueError, match="4 weights are needed, got 0"):
        layer._flat_weights = []


# ---- steps of cells ----


@pytest.mark.parametrize("with_bias", [False, True])
def test_a_fused_step_is_the_cells(device: str, with_bias: bool) -> None:
    """Values beside nn's cells, which multiply too; gradients by name beside those of the step."""
    ops = tp.ops.aten
    for cell, n, kind in (("lstm", 4, tp.nn.LSTMCell), ("gru", 3, tp.nn.GRUCell)):
        step, backward = getattr(ops, f"_thnn_fused_{cell}_cell"), getattr(ops, f"_thnn_fused_{cell}_cell_backward")
        module = kind(3, 2, bias=with_bias).to(device)
        x, h, c = tp.randn(5, 3, device=device), tp.randn(5, 2, device=device), tp.randn(5, 2, device=device)
        gates = [(x @ module.weight_ih.mT).detach(), (h @ module.weight_hh.mT).detach(), c if n == 4 else h]
        biases = [module.bias_ih.detach(), module.bias_hh.detach()] if with_bias else []
        given = [t.clone().requires_grad_() for t in (*gates, *biases)]
        made, state = step(*given), (h, c) if n == 4 else h
        expected = module(x, state) if n == 4 else (module(x, state),)
        for ours, theirs in zip(made, expected, strict=False):
            tp.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
        grads = [tp.randn(5, 2, device=device) for _ in expected]
        found = tp.autograd.grad(made[: len(grads)], given, grads)
        detached = [t.detach() for t in made]
        extra = (c, detached[1]) if n == 4 else ()
        by_name = backward(*grads, *extra, detached[-1], with_bias)
        order = (0, 1, 2, 3, 4)[: len(given)]
        for ours, theirs in zip([by_name[i] for i in order], found, strict=True):
            tp.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
        assert (by_name[3] is None) == (not with_bias)
        with pytest.raises(RuntimeError, match="for each number of the state"):
            step(gates[0][:, 1:], gates[1][:, 1:], gates[2])
