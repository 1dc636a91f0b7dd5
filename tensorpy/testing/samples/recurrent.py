"""Samples of recurrent networks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .table import LEAVES, LOOSE, Make, samples

REAL: dict[str, Any] = {
    "dtypes": LEAVES["float"],
    "tolerances": {**LOOSE, "float16": (1e-2, 1e-2), "bfloat16": (8e-2, 8e-2), "float32": (1e-4, 1e-5)},
}
GATES = {"lstm": 4, "gru": 3, "tanh": 1, "relu": 1}
SIZES = ([2, 2, 2], [3, 2, 1])  # rows of each step: as many in all, and sequences that end

# ---- by their definitions ----


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _step(cell: str, x: Any, h: Any, c: Any, weight: Any, extra: Any) -> tuple[Any, Any, Any]:
    """The state, the cell and what is kept, after one step."""
    hidden = h @ weight.T
    if cell == "lstm":
        i, f, g, o = np.split(x + hidden, 4, 1)
        i, f, g, o = _sigmoid(i), _sigmoid(f), np.tanh(g), _sigmoid(o)
        after = f * c + i * g
        out = o * np.tanh(after)
        return (out if extra is None else out @ extra.T), after, np.concatenate([i, f, g, o, c], 1)
    if cell == "gru":
        hidden = hidden if extra is None else hidden + extra
        (xr, xz, xn), (hr, hz, hn) = np.split(x, 3, 1), np.split(hidden, 3, 1)
        r, z = _sigmoid(xr + hr), _sigmoid(xz + hz)
        n = np.tanh(xn + r * hn)
        return (1 - z) * n + z * h, None, np.concatenate([r, z, n, hn], 1)
    out = np.tanh(x + hidden) if cell == "tanh" else np.maximum(x + hidden, 0)
    return out, None, out


def _layer(
    cell: str, gates: Any, hx: Any, cx: Any, weight: Any, extra: Any, sizes: list[int], reverse: bool, keep: bool = True
) -> tuple[Any, ...]:
    h, c = hx.copy(), None if cx is None else cx.copy()
    starts = np.cumsum([0, *sizes])
    output = [None] * len(sizes)
    saved, before = list(output), list(output)
    for t in reversed(range(len(sizes))) if reverse else range(len(sizes)):
        n = sizes[t]
        before[t] = h[:n].copy()
        made, cells, saved[t] = _step(
            cell, gates[starts[t] : starts[t + 1]], h[:n], None if c is None else c[:n], weight, extra
        )
        h[:n] = output[t] = made
        if c is not None:
            c[:n] = cells
    width = weight.shape[0] // GATES[cell] * {"lstm": 5, "gru": 4}.get(cell, 1)
    kept = (np.concatenate(saved), np.concatenate(before)) if keep else (np.zeros((0, width)), hx[:0])
    return np.concatenate(output), h, (np.zeros((0, 0)) if c is None else c), *kept


def _network(cell: str) -> Callable[..., Any]:
    def reference(
        x: Any, hx: Any, params: Any, biased: bool, layers: int, dropout: float, train: bool, both: bool, first: bool
    ) -> Any:
        states = hx if isinstance(hx, (list, tuple)) else [hx, None]
        x = x.swapaxes(0, 1) if first else x
        steps, batch = x.shape[:2]
        rows, directions = x.reshape(steps * batch, -1), 1 + both
        per = len(params) // (layers * directions)
        finals = []
        for layer in range(layers):
            outputs = []
            for i in range(layer * directions, (layer + 1) * directions):
                own, given = params[i * per : (i + 1) * per], [None if s is None else s[i] for s in states]
                made = _direction(cell, rows, given, own, biased, [batch] * steps, i % directions == 1)
                outputs.append(made[0])
                finals.append(made[1:3])
            rows = np.concatenate(outputs, 1)
        output = rows.reshape(steps, batch, -1)
        output = output.swapaxes(0, 1) if first else output
        h, c = (np.stack(part) for part in zip(*finals, strict=True))
        return (output, h, c) if cell == "lstm" else (output, h)

    return reference


def _packed(cell: str) -> Callable[..., Any]:
    def reference(data: Any, sizes: Any, hx: Any, params: Any, biased: bool, *_: Any) -> Any:
        states = hx if isinstance(hx, (list, tuple)) else [hx, None]
        made = _direction(cell, data, [None if s is None else s[0] for s in states], params, biased, list(sizes), False)
        h, c = made[1][None], made[2][None]
        return (made[0], h, c) if cell == "lstm" else (made[0], h)

    return reference


def _direction(cell: str, x: Any, states: Any, params: Any, biased: bool, sizes: list[int], reverse: bool) -> Any:
    w_ih, w_hh = params[:2]
    gates, extra = x @ w_ih.T, params[-1] if len(params) % 2 else None
    if biased:
        gates = gates + params[2]
        if cell == "gru":
            extra = params[3]
        else:
            gates = gates + params[3]
    return _layer(cell, gates, *states, w_hh, extra, sizes, reverse)


# ---- samples ----


def _params(
    make: Make, cell: str, features: int, biased: bool, layers: int = 1, both: bool = False, proj: int = 0
) -> list[Any]:
    gates, state, found = GATES[cell] * 3, proj or 3, []
    for i in range(layers * (1 + both)):
        found += [make(gates, features if i <= both else state * (1 + both)), make(gates, state)]
        found += [make(gates), make(gates)] if biased else []
        found += [make(proj, 3)] if proj else []
    return found


def _states(make: Make, cell: str, count: int, batch: int, proj: int = 0) -> Any:
    h = make(count, batch, proj or 3)
    return [h, make(count, batch, 3)] if cell == "lstm" else h


def _network_samples(cell: str) -> Callable[[Make], Iterator[Any]]:
    def generate(make: Make) -> Iterator[Any]:
        for biased, layers, both, first in ((True, 1, False, False), (False, 2, True, True), (True, 2, False, True)):
            params = _params(make, cell, 4, biased, layers, both)
            hx = _states(make, cell, layers * (1 + both), 2)
            yield make(*((2, 3, 4) if first else (3, 2, 4))), hx, params, biased, layers, 0.0, True, both, first
        if cell == "lstm":
            params = _params(make, cell, 4, True, 1, True, 2)
            yield make(3, 2, 4), _states(make, cell, 2, 2, 2), params, True, 1, 0.0, False, True, False

    return generate


def _packed_samples(cell: str) -> Callable[[Make], Iterator[Any]]:
    def generate(make: Make) -> Iterator[Any]:
        for sizes in SIZES:
            hx = _states(make, cell, 1, sizes[0])
            params = _params(make, cell, 4, True)
            yield make(sum(sizes), 4), make.array(sizes), hx, params, True, 1, 0.0, False, False

    return generate


def _cell_reference(cell: str) -> Callable[..., Any]:
    def reference(x: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
        params = [w_ih, w_hh] if b_ih is None else [w_ih, w_hh, b_ih, b_hh]
        states = hx if isinstance(hx, (list, tuple)) else [hx, None]
        made = _direction(cell, x, states, params, b_ih is not None, [len(x)], False)
        return made[1:3] if cell == "lstm" else made[1]

    return reference


def _cell_samples(cell: str) -> Callable[[Make], Iterator[Any]]:
    def generate(make: Make) -> Iterator[Any]:
        for biased in (False, True):
            h = make(2, 3)
            hx = [h, make(2, 3)] if cell == "lstm" else h
            yield make(2, 4), hx, *_params(make, cell, 4, biased)

    return generate


for _op, _cell in (("lstm", "lstm"), ("gru", "gru"), ("rnn_tanh", "tanh"), ("rnn_relu", "relu")):
    samples(f"{_op}.input", reference=_network(_cell), **REAL)(_network_samples(_cell))
    samples(f"{_op}.data", reference=_packed(_cell), **REAL)(_packed_samples(_cell))
    samples(f"{_op}_cell", reference=_cell_reference(_cell), **REAL)(_cell_samples(_cell))


def _layers(make: Make) -> Iterator[tuple[Any, ...]]:
    """Arguments of _recurrent_layer but the last, for each cell."""
    for cell, sizes, reverse in (
        ("lstm", 0, False),
        ("lstm", 1, True),
        ("gru", 1, False),
        ("tanh", 1, True),
        ("relu", 0, False),
    ):
        n, gates = SIZES[sizes][0], GATES[cell] * 3
        state = 2 if cell == "lstm" and reverse else 3
        extra = make(gates) if cell == "gru" else make(2, 3) if state == 2 else None
        cx = make(n, 3) if cell == "lstm" else None
        yield cell, make(6, gates), make(n, state), cx, make(gates, state), extra, SIZES[sizes], reverse


@samples("_recurrent_layer", reference=_layer, **REAL)
def layer(make: Make) -> Iterator[Any]:
    for args in _layers(make):
        yield *args, True


# ---- steps of cells ----


def _fused_lstm(gates: Any, hidden: Any, c: Any, *biases: Any) -> Any:
    i, f, g, o = np.split(gates + hidden + sum(biases), 4, 1)
    i, f, g, o = _sigmoid(i), _sigmoid(f), np.tanh(g), _sigmoid(o)
    after = f * c + i * g
    return o * np.tanh(after), after, np.concatenate([i, f, g, o], 1)


def _fused_gru(gates: Any, hidden: Any, h: Any, *biases: Any) -> Any:
    (xr, xz, xn), (hr, hz, hn) = (
        np.split(x + (biases[k] if biases else 0), 3, 1) for k, x in enumerate((gates, hidden))
    )
    r, z = _sigmoid(xr + hr), _sigmoid(xz + hz)
    n = np.tanh(xn + r * hn)
    return (1 - z) * n + z * h, np.concatenate([r, z, n, h, hn], 1)


@samples("_thnn_fused_lstm_cell", reference=_fused_lstm, **REAL)
def _fused_lstm_cell(make: Make) -> Iterator[Any]:
    for rows, n in ((3, 2), (1, 4), (0, 2)):
        yield make(rows, 4 * n), make(rows, 4 * n), make(rows, n)
        yield make(rows, 4 * n), make(rows, 4 * n), make(rows, n), make(4 * n), make(4 * n)


@samples("_thnn_fused_gru_cell", reference=_fused_gru, **REAL)
def _fused_gru_cell(make: Make) -> Iterator[Any]:
    for rows, n in ((3, 2), (1, 4), (0, 2)):
        yield make(rows, 3 * n), make(rows, 3 * n), make(rows, n)
        yield make(rows, 3 * n), make(rows, 3 * n), make(rows, n), make(3 * n), make(3 * n)
