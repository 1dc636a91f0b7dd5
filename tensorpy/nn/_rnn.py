"""Recurrent networks as functions: what `nn.RNN`, `nn.LSTM`, `nn.GRU` and their cells compute.

`forward` is the one place where a stack of layers over a sequence is computed. It takes what an operator would take:
the sequence, the states, the weights as one flat list, layer by layer and direction by direction, in the order in which
the modules keep them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.nn import functional as F

GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}
State = tuple[Tensor, ...]  # h, and with LSTM c

# ---- one step ----


def _simple(activation: Callable[[Tensor], Tensor]) -> Callable[..., State]:
    def step(from_input: Tensor, state: State, w_hh: Tensor, b_hh: Tensor | None, w_hr: Tensor | None) -> State:
        return (activation(from_input + F.linear(state[0], w_hh, b_hh)),)

    return step


def _lstm(from_input: Tensor, state: State, w_hh: Tensor, b_hh: Tensor | None, w_hr: Tensor | None) -> State:
    hidden, cell = state
    into, forget, new, out = (from_input + F.linear(hidden, w_hh, b_hh)).chunk(4, -1)
    cell = forget.sigmoid() * cell + into.sigmoid() * new.tanh()
    hidden = out.sigmoid() * cell.tanh()
    return (hidden if w_hr is None else F.linear(hidden, w_hr)), cell


def _gru(from_input: Tensor, state: State, w_hh: Tensor, b_hh: Tensor | None, w_hr: Tensor | None) -> State:
    hidden = state[0]
    input_reset, input_update, input_new = from_input.chunk(3, -1)
    reset, update, new = F.linear(hidden, w_hh, b_hh).chunk(3, -1)
    keep = (input_update + update).sigmoid()
    candidate = (input_new + (input_reset + reset).sigmoid() * new).tanh()
    return (candidate + keep * (hidden - candidate),)


STEPS: dict[str, Callable[..., State]] = {
    "RNN_TANH": _simple(_C.tanh),
    "RNN_RELU": _simple(_C.relu),
    "LSTM": _lstm,
    "GRU": _gru,
}


def cell(
    mode: str,
    input: Tensor,
    state: State,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> State:
    """One step of one cell."""
    return STEPS[mode](F.linear(input, w_ih, b_ih), state, w_hh, b_hh, None)


# ---- one direction of one layer ----


def _over_steps(
    step: Callable[..., State], steps: Sequence[Tensor], state: State, weights: Any, sizes: list[int] | None
) -> tuple[list[Tensor], State]:
    """Runs a cell over steps in time. With sizes, step t has the first sizes[t] sequences, the longest first; when
    sequences end, or begin (from the end), the others' states wait aside."""
    w_hh, b_hh, w_hr = weights
    outputs: list[Tensor] = []
    if sizes is None:
        for from_input in steps:
            state = step(from_input, state, w_hh, b_hh, w_hr)
            outputs.append(state[0])
        return outputs, state
    done: list[State] = []
    forwards = sizes[0] >= sizes[-1]
    initial, now = state, tuple(s[: sizes[0]] for s in state)
    for from_input, size in zip(steps, sizes, strict=True):
        have = now[0].shape[0]
        if size < have:
            done.append(tuple(s[size:] for s in now))
            now = tuple(s[:size] for s in now)
        elif size > have:
            now = tuple(_C.cat([s, i[have:size]]) for s, i in zip(now, initial, strict=True))
        now = step(from_input, now, w_hh, b_hh, w_hr)
        outputs.append(now[0])
    if forwards and done:
        now = tuple(_C.cat([part[i] for part in (now, *reversed(done))]) for i in range(len(now)))
    return outputs, now


def _direction(
    mode: str, input: Tensor, state: State, weights: Sequence[Any], biased: bool, sizes: list[int] | None, back: bool
) -> tuple[Tensor, State]:
    w_ih, w_hh = weights[:2]
    b_ih, b_hh = weights[2:4] if biased else (None, None)
    w_hr = weights[-1] if len(weights) % 2 else None
    from_input = F.linear(input, w_ih, b_ih)  # of all steps at once
    steps = list(from_input.unbind(0) if sizes is None else from_input.split(sizes, 0))
    order = None if sizes is None else sizes[::-1] if back else sizes
    if back:
        steps.reverse()
    outputs, state = _over_steps(STEPS[mode], steps, state, (w_hh, b_hh, w_hr), order)
    if back:
        outputs.reverse()
    return (_C.stack(outputs) if sizes is None else _C.cat(outputs)), state


# ---- layers ----


def forward(
    mode: str,
    input: Tensor,
    state: State,
    weights: Sequence[Tensor],
    biased: bool,
    num_layers: int,
    dropout: float,
    training: bool,
    bidirectional: bool,
    batch_sizes: Tensor | None = None,
) -> tuple[Tensor, State]:
    """The outputs of the last layer and the states of all, of a sequence (time, batch, features), or of a packed one
    (rows, features) with its batch sizes."""
    directions = 2 if bidirectional else 1
    per = len(weights) // (num_layers * directions)
    sizes = None if batch_sizes is None else batch_sizes.tolist()
    finals: list[State] = []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            i = layer * directions + direction
            own, start = weights[i * per : (i + 1) * per], tuple(s[i] for s in state)
            output, final = _direction(mode, input, start, own, biased, sizes, direction == 1)
            outputs.append(output)
            finals.append(final)
        input = outputs[0] if directions == 1 else _C.cat(outputs, -1)
        if dropout and training and layer < num_layers - 1:
            input = F.dropout(input, dropout, True)
    return input, tuple(_C.stack(parts) for parts in zip(*finals, strict=True))
