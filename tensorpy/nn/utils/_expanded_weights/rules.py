"""What functions do with expanded weights: they run on the whole batch, and their gradients are mapped over samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor, stack
from tensorpy.autograd import Function
from tensorpy.func import vjp, vmap
from tensorpy.nn import functional as F
from tensorpy.nn.utils._expanded_weights.expanded_weights_impl import HANDLED, ExpandedWeight
from tensorpy.nn.utils._expanded_weights.expanded_weights_utils import (
    check_batch,
    set_grad_sample_if_exists,
    unpack_expanded_weight_or_tensor,
)


@dataclass(frozen=True)
class _Call:
    """A call of values in a row, the first `samples` of which have the batch in dimension `dim`, as its results have.

    run: the function of these values
    again: the same function, as backward calls it for one sample: it writes to none of them
    in_turn: its operators have no batching rule, so that backward calls it for one sample after another
    """

    run: Callable[..., Any]
    again: Callable[..., Any]
    samples: int = 1
    dim: int = 0
    in_turn: bool = False

    def gradients(self, values: Sequence[Any], wanted: Sequence[int], grads: Sequence[Tensor]) -> Sequence[Tensor]:
        """Those of each sample, stacked, of the wanted values."""

        def of_one(samples: Sequence[Tensor], grads: Sequence[Tensor]) -> Any:
            def call(*points: Tensor) -> Any:
                given = [*(s.unsqueeze(self.dim) for s in samples), *values[self.samples :]]
                for i, point in zip(wanted, points, strict=True):
                    given[i] = point.unsqueeze(self.dim) if i < self.samples else point
                made = self.again(*given)
                return tuple(made) if isinstance(made, (tuple, list)) else (made,)

            points = [samples[i] if i < self.samples else values[i] for i in wanted]
            return vjp(call, *points)[1](tuple(g.unsqueeze(self.dim) for g in grads))

        given = [value.detach() for value in values[: self.samples]]
        if self.in_turn:
            rows = zip(*(value.unbind(self.dim) for value in given), strict=True)
            columns = zip(*map(of_one, rows, zip(*(g.unbind(self.dim) for g in grads), strict=True)), strict=True)
            return [stack(list(column)) for column in columns]
        found: Sequence[Tensor] = vmap(of_one, in_dims=self.dim)(given, list(grads))
        return found


def _grads_of(grads: Tensor, weight: Tensor) -> Tensor:
    return grads


class _PerSample(Function):
    """Runs a call on the batch; backward gives weights their samples' gradients, and inputs theirs."""

    @staticmethod
    def forward(ctx: Any, call: _Call, *values: Any) -> Any:
        ctx.call, ctx.values = call, values
        plain = [v.orig_weight.detach() if isinstance(v, ExpandedWeight) else v for v in values]
        return call.run(*plain)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        call, values = ctx.call, ctx.values
        weights = [i for i, value in enumerate(values) if isinstance(value, ExpandedWeight)]
        wanted = [i for i in range(call.samples) if ctx.needs_input_grad[1 + i]] + weights
        plain = [unpack_expanded_weight_or_tensor(v) if i in weights else v for i, v in enumerate(values)]
        plain = [value.detach() if isinstance(value, Tensor) else value for value in plain]
        found = dict(zip(wanted, call.gradients(plain, wanted, grads), strict=True))
        for i in weights:
            set_grad_sample_if_exists(values[i], partial(_grads_of, found[i]))
        inputs = [found[i].movedim(0, call.dim) if i in found else None for i in range(call.samples)]
        return (None, *inputs, *(None for _ in values[call.samples :]))


# ---- functions of an input and named weights ----


def _no_batch(func: Any, x: Tensor, least: int) -> RuntimeError:
    return RuntimeError(
        f"Input does not have a batch dimension. Expanded Weights expected input of {func.__name__} of at least rank "
        f"{least}, got of rank {x.ndim}"
    )


def _check_linear(func: Any, x: Tensor, given: dict[str, Any]) -> None:
    if x.ndim < 2:
        raise _no_batch(func, x, 2)


def _check_convolution(func: Any, x: Tensor, given: dict[str, Any]) -> None:
    if x.ndim != given["weight"].ndim:
        raise RuntimeError(
            f"Expanded Weights only support convolution with batched input, got {func.__name__} with an unbatched "
            f"input of dim {x.ndim}, expected input of dim {given['weight'].ndim}"
        )


def _check_embedding(func: Any, x: Tensor, given: dict[str, Any]) -> None:
    if x.ndim == 1:
        raise RuntimeError(f"Expanded Weights needs an input with a batch size, got a 1D tensor, {x}")


def _check_layer_norm(func: Any, x: Tensor, given: dict[str, Any]) -> None:
    if tuple(given["normalized_shape"]) == tuple(x.shape):
        raise RuntimeError(
            "Expanded Weights: Layer norm should not normalize over batch dimension for per sample gradient "
            f"computations but got that normalized shape, {tuple(given['normalized_shape'])}, matched input shape."
        )


def _no_check(func: Any, x: Tensor, given: dict[str, Any]) -> None:
    """Any input will do."""


@dataclass(frozen=True)
class _Weighted:
    """The rule of a function of an input: the names of its arguments, and what backward calls it with instead."""

    names: str
    check: Callable[[Any, Tensor, dict[str, Any]], None] = _no_check
    instead: Callable[[dict[str, Any]], dict[str, Any]] = dict
    in_turn: str = ""  # an argument with which it has no batching rule

    def __call__(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given = dict(zip(self.names.split(), args, strict=False)) | kwargs
        x, rest = given.pop("input"), given
        dim = check_batch(func, (x,), rest)
        self.check(func, x, rest)
        for value in rest.values():
            unpack_expanded_weight_or_tensor(value)  # refuses weights that are not expanded

        def run(x: Tensor, *values: Any) -> Any:
            return func(x, **dict(zip(rest, values, strict=True)))

        def again(x: Tensor, *values: Any) -> Any:
            return func(x, **self.instead(dict(zip(rest, values, strict=True))))

        return _PerSample.apply(_Call(run, again, 1, dim, bool(rest.get(self.in_turn))), x, *rest.values())


def _without_writes(given: dict[str, Any]) -> dict[str, Any]:
    """Rows were made short already, and a sample's gradient is dense."""
    return {name: value for name, value in given.items() if name not in ("max_norm", "sparse")}


def _own_statistics(given: dict[str, Any]) -> dict[str, Any]:
    """Running statistics were changed already, if they are."""
    unread = ("running_mean", "running_var") if given.get("use_input_stats", True) else ()
    return {name: value for name, value in given.items() if name not in unread}


_CONVOLUTION = _Weighted("input weight bias stride padding dilation groups", _check_convolution)
HANDLED.update(
    {
        F.linear: _Weighted("input weight bias", _check_linear),
        F.conv1d: _CONVOLUTION,
        F.conv2d: _CONVOLUTION,
        F.conv3d: _CONVOLUTION,
        F.embedding: _Weighted(
            "input weight padding_idx max_norm norm_type scale_grad_by_freq sparse",
            _check_embedding,
            _without_writes,
            in_turn="scale_grad_by_freq",
        ),
        F.group_norm: _Weighted("input num_groups weight bias eps"),
        F.instance_norm: _Weighted(
            "input running_mean running_var weight bias use_input_stats momentum eps", instead=_own_statistics
        ),
        F.layer_norm: _Weighted("input normalized_shape weight bias eps", _check_layer_norm),
    }
)


# ---- recurrent networks ----


def _recurrent(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What nn.RNN and its kin call: input, states, weights, has_biases, layers, dropout, train, ..."""
    if kwargs or len(args) != 9 or not isinstance(args[2], (tuple, list)):
        raise RuntimeError(f"Expanded Weights encountered but cannot handle packed sequences in {func.__name__}")
    x, states, weights, *rest = args
    if rest[2] and rest[3]:
        raise RuntimeError(f"Expanded Weights encountered but cannot handle dropout in {func.__name__}")
    several = isinstance(states, (tuple, list))
    begins = tuple(states) if several else (states,)
    check_batch(func, (x, *weights), {}, 1)

    def run(x: Tensor, *values: Any) -> Any:
        states, weights = values[: len(begins)], list(values[len(begins) :])
        return func(x, states if several else states[0], weights, *rest)

    return _PerSample.apply(_Call(run, run, 1 + len(begins), 1, in_turn=True), x, *begins, *weights)


HANDLED.update(dict.fromkeys((_C.lstm, _C.gru, _C.rnn_tanh, _C.rnn_relu), _recurrent))
