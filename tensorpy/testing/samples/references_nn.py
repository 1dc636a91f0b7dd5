"""Networks in plain NumPy, by their definitions: convolution, pooling, normalisation, losses, attention."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np


def tuple_of(value: Any, n: int) -> tuple[int, ...]:
    if isinstance(value, int):
        return (value,) * n
    return tuple(value) * n if len(value) == 1 else tuple(value)


# ---- convolution ----


def correlate(x: Any, w: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    """x (batch, channels, *space), w (out, channels / groups, *kernel): one einsum for each place in the kernel."""
    n = w.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)])
    space = [(x.shape[2 + d] - dilation[d] * (w.shape[2 + d] - 1) - 1) // stride[d] + 1 for d in range(n)]
    out = np.zeros((x.shape[0], groups, w.shape[0] // groups, *space), np.result_type(x, w))
    x = x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])
    w = w.reshape(groups, -1, *w.shape[1:])
    for at in np.ndindex(*w.shape[3:]):
        windows = tuple(slice(k * dl, k * dl + (m - 1) * s + 1, s)
                        for k, dl, m, s in zip(at, dilation, space, stride, strict=True))  # fmt: skip
        out += np.einsum("bgc...,goc->bgo...", x[(slice(None),) * 3 + windows], w[(slice(None),) * 3 + at])
    return out.reshape(out.shape[0], groups * out.shape[2], *space)


def spread(x: Any, w: Any, stride: Any, padding: Any, dilation: Any, output_padding: Any, groups: int) -> Any:
    """The transposed convolution: w (channels, out / groups, *kernel); each element is spread over the kernel."""
    n = w.ndim - 2
    space = [(x.shape[2 + d] - 1) * stride[d] + dilation[d] * (w.shape[2 + d] - 1) + 1 + output_padding[d]
             for d in range(n)]  # fmt: skip
    out = np.zeros((x.shape[0], groups, w.shape[1], *space), np.result_type(x, w))
    size = x.shape[2:]
    x = x.reshape(x.shape[0], groups, x.shape[1] // groups, *size)
    w = w.reshape(groups, -1, *w.shape[1:])
    for at in np.ndindex(*w.shape[3:]):
        windows = tuple(slice(k * dl, k * dl + (m - 1) * s + 1, s)
                        for k, dl, m, s in zip(at, dilation, size, stride, strict=True))  # fmt: skip
        out[(slice(None),) * 3 + windows] += np.einsum("bgc...,gco->bgo...", x, w[(slice(None),) * 3 + at])
    kept = tuple(slice(p, m - p) for p, m in zip(padding, space, strict=True))
    return out.reshape(out.shape[0], groups * out.shape[2], *space)[(slice(None),) * 2 + kept]


def convolution(
    x: Any, w: Any, b: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, output_padding: Any, groups: int
) -> Any:
    n = w.ndim - 2
    batched = x if x.ndim == n + 2 else x[None]
    stride, padding, dilation = (tuple_of(v, n) for v in (stride, padding, dilation))
    if transposed:
        out = spread(batched, w, stride, padding, dilation, tuple_of(output_padding, n), groups)
    else:
        out = correlate(batched, w, stride, padding, dilation, groups)
    if b is not None:
        out = out + b.reshape(-1, *(1,) * n)
    return out if x.ndim == n + 2 else out[0]


def conv(x: Any, w: Any, b: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Any:
    n = w.ndim - 2
    if padding == "valid":
        padding = 0
    elif padding == "same":  # of an odd width the greater half lies after
        total = [d * (k - 1) for d, k in zip(tuple_of(dilation, n), w.shape[2:], strict=True)]
        x = np.pad(x, [(0, 0)] * (x.ndim - n) + [(t // 2, t - t // 2) for t in total])
        padding = 0
    return convolution(x, w, b, stride, padding, dilation, False, 0, groups)


def conv_transpose(
    x: Any, w: Any, b: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: int = 1,
    dilation: Any = 1,
) -> Any:  # fmt: skip
    return convolution(x, w, b, stride, padding, dilation, True, output_padding, groups)


# ---- pooling ----


def pooled_size(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    reach = size + 2 * padding - dilation * (kernel - 1) - 1
    n = (-(-reach // stride) if ceil_mode else reach // stride) + 1
    return n - 1 if ceil_mode and (n - 1) * stride >= size + padding else n  # a window begins inside or before the data


def windows_of(
    x: Any, dims: int, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> tuple[list[int], list[list[list[int]]]]:
    """The pooled sizes, and per dimension and window the places inside of the data."""
    kernel = tuple_of(kernel, dims)
    stride = tuple_of(stride, dims) if isinstance(stride, int) or len(stride) else kernel
    padding, dilation = tuple_of(padding, dims), tuple_of(dilation, dims)
    sizes, places = [], []
    for d in range(dims):
        size = x.shape[x.ndim - dims + d]
        n = pooled_size(size, kernel[d], stride[d], padding[d], dilation[d], ceil_mode)
        starts = [i * stride[d] - padding[d] for i in range(n)]
        sizes.append(n)
        places.append(
            [[p for p in range(s, s + dilation[d] * kernel[d], dilation[d]) if 0 <= p < size] for s in starts]
        )
    return sizes, places


def max_pool(dims: int) -> Callable[..., Any]:
    """The largest of each window and its place in the plane; of equal ones the first, and NaN above all."""

    def reference(
        x: Any, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
    ) -> Any:
        sizes, places = windows_of(x, dims, kernel, stride, padding, dilation, ceil_mode)
        space, lead = x.shape[x.ndim - dims :], x.shape[: x.ndim - dims]
        values, indices = np.zeros((*lead, *sizes), x.dtype), np.zeros((*lead, *sizes), np.int64)
        for at in np.ndindex(*sizes):
            inside = np.ix_(*(places[d][i] for d, i in enumerate(at)))
            flat = np.ravel_multi_index(inside, space).ravel()
            window = x.reshape(*lead, math.prod(space))[..., flat]
            best = np.argmax(window, -1)
            values[(..., *at)] = np.take_along_axis(window, best[..., None], -1)[..., 0]
            indices[(..., *at)] = flat[best]
        return values, indices

    return reference


def avg_pool(dims: int) -> Callable[..., Any]:
    def reference(
        x: Any, kernel: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> Any:  # fmt: skip
        sizes, places = windows_of(x, dims, kernel, stride, padding, 1, ceil_mode)
        kernel = tuple_of(kernel, dims)
        stride = tuple_of(stride, dims) if isinstance(stride, int) or len(stride) else kernel
        padding = tuple_of(padding, dims)
        out = np.zeros((*x.shape[: x.ndim - dims], *sizes), x.dtype)
        for at in np.ndindex(*sizes):
            inside = np.ix_(*(places[d][i] for d, i in enumerate(at)))
            window = x[(..., *inside)]
            window = window.reshape(*out.shape[: x.ndim - dims], math.prod(window.shape[x.ndim - dims :]))
            count = window.shape[-1]
            if count_include_pad:  # what lies beyond the padding does not count
                count = math.prod(
                    min(i * s - p + k, x.shape[x.ndim - dims + d] + p) - (i * s - p)
                    for d, (i, s, p, k) in enumerate(zip(at, stride, padding, kernel, strict=True))
                )
            total = window.sum(-1)
            out[(..., *at)] = total / (divisor_override or count) if x.dtype.kind in "fc" else total // (
                divisor_override or count)  # fmt: skip
        return out

    return reference


def adaptive_avg_pool(dims: int) -> Callable[..., Any]:
    def reference(x: Any, output_size: Any) -> Any:
        sizes = tuple_of(output_size, dims)
        space = x.shape[x.ndim - dims :]
        out = np.zeros((*x.shape[: x.ndim - dims], *sizes), x.dtype)
        for at in np.ndindex(*sizes):
            parts = tuple(slice(i * m // n, -(-(i + 1) * m // n)) for i, n, m in zip(at, sizes, space, strict=True))
            out[(..., *at)] = x[(..., *parts)].mean(tuple(range(x.ndim - dims, x.ndim)))
        return out

    return reference


# ---- losses ----


def reduced(values: Any, reduction: int) -> Any:
    return (values, np.mean(values), np.sum(values))[reduction]


def softmax(x: Any, dim: int, dtype: str | None = None) -> Any:
    e = np.exp(x - x.max(dim, keepdims=True)) if x.ndim and x.size else np.ones_like(x)
    return e / e.sum(dim, keepdims=True) if x.ndim else e


def log_softmax(x: Any, dim: int, dtype: str | None = None) -> Any:
    return np.log(softmax(x, dim))


def nll(x: Any, target: Any, weight: Any = None, reduction: int = 1, ignore_index: int = -100) -> Any:
    """The loss and the sum of the weights that counted."""
    batched = x if x.ndim > 1 else x[None]
    t = target if x.ndim > 1 else np.reshape(target, (1,))
    weight = np.ones(batched.shape[1]) if weight is None else weight
    kept = t != ignore_index
    safe = np.where(kept, t, 0).astype(np.int64)
    weights = np.where(kept, weight[safe], 0)
    losses = -np.take_along_axis(batched, safe[:, None], 1)[:, 0] * weights
    total = weights.sum()
    if reduction == 0:
        return (losses if x.ndim > 1 else losses[0]), np.float64(0)
    return (losses.sum() if reduction == 2 else losses.sum() / total), total


def cross_entropy(
    x: Any, target: Any, weight: Any = None, reduction: int = 1, ignore_index: int = -100, label_smoothing: float = 0.0
) -> Any:
    dim = 1 if x.ndim > 1 else 0
    logs, classes = log_softmax(x, dim), x.shape[dim]
    weights = np.ones(classes) if weight is None else weight
    column = weights.reshape(-1, *(1,) * (x.ndim - 2)) if x.ndim > 1 else weights
    if target.dtype.kind == "f":  # probabilities
        smoothed = target * (1 - label_smoothing) + label_smoothing / classes
        losses = -(logs * smoothed * column).sum(dim)
        if reduction == 1:
            return losses.sum() / (losses.size if x.ndim > 1 else 1)
        return reduced(losses, reduction)
    hard, _ = nll(logs, target, weight, 0 if reduction == 0 else 2, ignore_index)
    kept = target != ignore_index
    counted = np.where(kept, weights[np.where(kept, target, 0)], 0).sum()
    soft = np.where(kept, -(logs * column).sum(dim), 0)
    losses = (1 - label_smoothing) * hard + label_smoothing / classes * (soft if reduction == 0 else soft.sum())
    return losses / counted if reduction == 1 else losses


def bce(x: Any, t: Any, weight: Any = None, reduction: int = 1) -> Any:
    losses = -(t * np.maximum(np.log(x), -100) + (1 - t) * np.maximum(np.log1p(-x), -100))
    return reduced(losses * (1 if weight is None else weight), reduction)


def bce_with_logits(x: Any, t: Any, weight: Any = None, pos_weight: Any = None, reduction: int = 1) -> Any:
    factor = 1 + (np.asarray(1 if pos_weight is None else pos_weight) - 1) * t
    losses = (1 - t) * x + factor * np.logaddexp(0, -x)
    return reduced(losses * (1 if weight is None else weight), reduction)


def kl_div(x: Any, t: Any, reduction: int = 1, log_target: bool = False) -> Any:
    if log_target:
        return reduced(np.exp(t) * (t - x), reduction)
    return reduced(np.where(t == 0, 0, t * (np.log(np.where(t == 0, 1, t)) - x)), reduction)


def rounded_distance(x: Any, y: Any, reduction: int = 1, beta: float = 1.0) -> Any:
    d = np.abs(x - y)
    return reduced(np.where(d < beta, d * d / 2 / (beta or 1), d - beta / 2), reduction)


def huber(x: Any, y: Any, reduction: int = 1, delta: float = 1.0) -> Any:
    return rounded_distance(x, y, reduction, delta) * delta


# ---- norms, attention ----


def normalised(x: Any, axes: Any, eps: float) -> Any:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def layer_norm(x: Any, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5, *_: Any) -> Any:
    out = normalised(x, tuple(range(x.ndim - len(shape), x.ndim)), eps)
    return out * (1 if weight is None else weight) + (0 if bias is None else bias)


def group_norm(x: Any, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, *_: Any) -> Any:
    out = normalised(x.reshape(x.shape[0], groups, -1), 2, eps).reshape(x.shape)
    weight, bias = (None if v is None else v.reshape(-1, *(1,) * (x.ndim - 2)) for v in (weight, bias))
    return out * (1 if weight is None else weight) + (0 if bias is None else bias)


def batch_norm(
    x: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float, eps: float, *_: Any
) -> Any:
    axes = (0, *range(2, x.ndim))
    if training:
        mean, var = x.mean(axes), x.var(axes)
    mean, var, weight, bias = (None if v is None else v.reshape(-1, *(1,) * (x.ndim - 2))
                               for v in (mean, var, weight, bias))  # fmt: skip
    return (x - mean) / np.sqrt(var + eps) * (1 if weight is None else weight) + (0 if bias is None else bias)


def rms_norm(x: Any, shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    eps = float(np.finfo(np.float32).eps) if eps is None else eps
    return x / np.sqrt((x * x).mean(axes, keepdims=True) + eps) * (1 if weight is None else weight)


def attention(
    q: Any, k: Any, v: Any, mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
    scale: float | None = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    if enable_gqa:
        k, v = (np.repeat(a, q.shape[-3] // a.shape[-3], -3) for a in (k, v))
    scores = q @ np.swapaxes(k, -1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if is_causal:
        mask = np.tril(np.ones(scores.shape[-2:], bool))
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    return softmax(scores, -1) @ v


def each_way(**choices: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Every combination of keyword arguments."""
    return [dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())]
