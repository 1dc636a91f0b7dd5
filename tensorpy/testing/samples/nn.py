"""Samples of what networks are made of beside convolutions: softmax, losses, norms, embedding, attention."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from . import references_nn as nn
from .table import FLOATS, LOOSE, Array, Dtype, Make, samples

ROUGH = {**LOOSE, "float16": (1e-2, 2e-2), "bfloat16": (6e-2, 1e-1), "float32": (1e-4, 1e-5)}
REAL: dict[str, Any] = {"dtypes": FLOATS, "tolerances": ROUGH}
WAYS = (0, 1, 2)  # none, mean, sum


# ---- softmax ----


@samples("softmax.int", reference=nn.softmax, **REAL)
@samples("log_softmax.int", reference=nn.log_softmax, **REAL)
def softmax(make: Make) -> Iterator[Any]:
    for shape in ((5,), (3, 4), (2, 3, 2), (), (1, 40), (0, 3)):
        for dim in (0, -1) if shape else (0,):
            if shape and not shape[dim]:
                continue
            yield make(shape), dim
            yield make(shape), dim, make.given
    if make.dtype == "float32":
        yield make(3, 4), 1, Dtype("float64")


# ---- losses ----


def _targets(make: Make, classes: int, *shape: int, ignored: int | None = None) -> Array:
    values = make.rng.randint(0, classes, shape)
    if ignored is not None and values.size > 1:
        values.flat[0] = ignored
    return make.array(values)


@samples("nll_loss_forward", reference=lambda *a: nn.nll(*a), constant=("weight",), **REAL)
def nll_forward(make: Make) -> Iterator[Any]:
    for (shape, weighted), reduction, ignored in itertools.product(
        (((6, 4), False), ((6, 4), True), ((4,), False), ((4,), True)), WAYS, (-100, 2)
    ):
        weight = make(4, low=0.2, high=1) if weighted else None
        target = make.array([*(0, 1, 3, 3, 1, 0)][: shape[0]]) if len(shape) > 1 else make.array(1)
        yield make(shape), target, weight, reduction, ignored


@samples("nll_loss", reference=lambda *a: nn.nll(*a)[0], constant=("weight",), **REAL)
def nll(make: Make) -> Iterator[Any]:
    for n, weighted, reduction, ignored in itertools.product((6, 1, 3, 4, 5), (False, True), WAYS, (-100, 2)):
        weight = make(4, low=0.2, high=1) if weighted else None
        yield make(n, 4), make.array([*(0, 1, 3, 2, 1, 0)][:n]), weight, reduction, ignored
    for reduction in WAYS:
        yield make(4), make.array(3), None, reduction
    yield make(6, 4), _targets(make, 4, 6)


@samples("nll_loss2d", reference=lambda *a: nn.nll(*a)[0], constant=("weight",), **REAL)
def nll2d(make: Make) -> Iterator[Any]:
    for weighted, reduction, ignored in itertools.product((False, True), WAYS, (None, 1)):
        weight = make(4, low=0.2, high=1) if weighted else None
        target = _targets(make, 4, 2, 3, 2, ignored=ignored)
        yield make(2, 4, 3, 2), target, weight, reduction, -100 if ignored is None else ignored


@samples("nll_loss_nd", reference=lambda *a: nn.nll(*a)[0], constant=("weight",), **REAL)
def nll_of_any(make: Make) -> Iterator[Any]:
    yield from nll(make)
    yield from nll2d(make)
    for reduction in WAYS:
        yield make(2, 4, 3), _targets(make, 4, 2, 3), None, reduction
        yield make(2, 4, 2, 1, 3), _targets(make, 4, 2, 2, 1, 3), None, reduction


@samples("cross_entropy_loss", reference=nn.cross_entropy, constant=("weight",), **REAL)
def cross_entropy(make: Make) -> Iterator[Any]:
    for shape, weighted, reduction, smoothing in itertools.product(
        ((6, 4), (4,), (2, 4, 3)), (False, True), WAYS, (0.0, 0.2)
    ):
        weight = make(4, low=0.2, high=1) if weighted else None
        target = _targets(make, 4, *shape[:1], *shape[2:]) if len(shape) > 1 else make.array(1)
        yield make(shape), target, weight, reduction, -100, smoothing
        if len(shape) == 2:
            yield make(shape), _targets(make, 4, 6, ignored=3), weight, reduction, 3, smoothing
        probabilities = nn.softmax(make(shape).values, 1 if len(shape) > 1 else 0)
        yield make(shape), make.own(probabilities), weight, reduction, -100, smoothing


@samples("mse_loss", reference=lambda x, y, r=1: nn.reduced((x - y) ** 2, r), **REAL)
@samples("l1_loss", reference=lambda x, y, r=1: nn.reduced(np.abs(x - y), r), **REAL)
def distances(make: Make) -> Iterator[Any]:
    for shape, reduction in itertools.product(((3, 4), (), (2, 3, 2)), WAYS):
        yield make(shape), make(shape), reduction
    yield make(3, 4), make(4), 1
    yield make(3, 4), make(3, 4)


@samples("smooth_l1_loss", reference=nn.rounded_distance, **REAL)
def smooth_l1(make: Make) -> Iterator[Any]:
    for shape, reduction, beta in itertools.product(((3, 4), ()), WAYS, (1.0, 0.3, 5.0)):
        yield make(shape), make(shape), reduction, beta


@samples("huber_loss", reference=nn.huber, **REAL)
def huber(make: Make) -> Iterator[Any]:
    yield from smooth_l1(make)


@samples("binary_cross_entropy", reference=nn.bce, **REAL)
def bce(make: Make) -> Iterator[Any]:
    for shape, weighted, reduction in itertools.product(((3, 4), (5,)), (False, True), WAYS):
        weight = make(shape, low=0.2, high=1) if weighted else None
        yield make(shape, low=0.1, high=0.9), make(shape, low=0.1, high=0.9), weight, reduction
    yield make(3, 4, low=0.1, high=0.9), make(3, 4, low=0.1, high=0.9)


@samples("binary_cross_entropy_with_logits", reference=nn.bce_with_logits, **REAL)
def bce_with_logits(make: Make) -> Iterator[Any]:
    for shape, weighted, positive, reduction in itertools.product(((3, 4), (5,)), (False, True), (False, True), WAYS):
        weight = make(shape, low=0.2, high=1) if weighted else None
        factor = make(shape[-1], low=0.2, high=2) if positive else None
        yield make(shape), make(shape, low=0, high=1), weight, factor, reduction
    for shape in ((3, 4), (5,), ()):
        yield make(shape), make(shape, low=0, high=1)


@samples("kl_div", reference=nn.kl_div, **REAL)
def kl_div(make: Make) -> Iterator[Any]:
    for shape, reduction, logs in itertools.product(((3, 4), (5,), ()), WAYS, (False, True)):
        target = make(shape, low=-2, high=0) if logs else make(shape, low=0.1, high=1)
        yield make(shape, low=-2, high=0), target, reduction, {"log_target": logs}


def _cosine(x: Any, y: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    x, y = np.broadcast_arrays(x, y)
    length = np.maximum(np.sqrt((x * x).sum(dim)), eps) * np.maximum(np.sqrt((y * y).sum(dim)), eps)
    return (x * y).sum(dim) / length


@samples("cosine_similarity", reference=_cosine, **REAL)
def cosine_similarity(make: Make) -> Iterator[Any]:
    for shape, dim in (((3, 4), 1), ((3, 4), 0), ((2, 3, 4), -1), ((2, 3, 4), 1), ((5,), 0)):
        yield make(shape), make(shape), dim
        yield make(shape), make(shape), dim, 0.5
    yield make(3, 4), make(1, 4)


# ---- norms ----


def _statistics(x: Any, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return nn.layer_norm(x, shape, weight, bias, eps), mean, 1 / np.sqrt(var + eps)


def _layers(make: Make, required: bool) -> Iterator[Any]:
    for (shape, own), weighted, biased, eps in itertools.product(
        (((3, 4), (4,)), ((2, 3, 4), (3, 4)), ((5,), (5,))), (True, False), (True, False), (1e-5, 0.5)
    ):
        yield make(shape), own, make(own) if weighted else None, make(own) if biased else None, eps
    if not required:
        yield make(3, 4), [4]


@samples("layer_norm", reference=nn.layer_norm, **REAL)
def layer_norm(make: Make) -> Iterator[Any]:
    yield from _layers(make, required=False)


# the mean and the spread that it gives besides are not differentiated
@samples("native_layer_norm", reference=_statistics, gradcheck=False, dtypes=("float32", "float64"), tolerances=ROUGH)
def native_layer_norm(make: Make) -> Iterator[Any]:
    yield from _layers(make, required=True)


@samples("rms_norm", reference=nn.rms_norm, dtypes=("float32", "float64"), tolerances=ROUGH)
def rms_norm(make: Make) -> Iterator[Any]:
    for (shape, own), weighted, eps in itertools.product(
        (((3, 4), (4,)), ((2, 3, 4), (3, 4)), ((5,), (5,))), (True, False), (1e-3, 0.5)
    ):
        yield make(shape), own, make(own) if weighted else None, eps


@samples("group_norm", reference=nn.group_norm, **REAL)
def group_norm(make: Make) -> Iterator[Any]:
    for shape, groups, weighted in itertools.product(((2, 6), (2, 6, 3), (1, 6, 2, 3)), (1, 2, 3, 6), (True, False)):
        if groups < 6 or len(shape) > 2:  # one element has no spread
            yield make(shape), groups, make(6) if weighted else None, make(6) if weighted else None, 1e-3


@samples("batch_norm", reference=nn.batch_norm, writes=True, constant=("running_mean", "running_var"), **REAL)
def batch_norm(make: Make) -> Iterator[Any]:
    for shape, weighted, training in itertools.product(((4, 3), (4, 3, 5), (2, 3, 2, 3)), (True, False), (True, False)):
        weight, bias = (make(3), make(3)) if weighted else (None, None)
        yield make(shape), weight, bias, None if training else make(3), (
            None if training else make(3, low=0.5)), training, 0.1, 1e-3, False  # fmt: skip


# ---- embedding, attention ----


@samples("embedding", reference=lambda table, index, *_: table[index], dtypes=FLOATS)
def embedding(make: Make) -> Iterator[Any]:
    for shape in ((), (4,), (2, 3), (0,)):
        yield make(7, 3), make.index(7, *shape)
        yield make(7, 3), make.index(7, *shape), 6
        yield make(7, 3), make.index(7, *shape), -1, True
    yield make(7, 3), make.array([[1, 1], [1, 2]])


@samples("scaled_dot_product_attention", reference=nn.attention, dtypes=("float32", "float64"), tolerances=ROUGH)
def attention(make: Make) -> Iterator[Any]:
    for lead, causal, scale in itertools.product(((), (2,), (2, 3)), (False, True), (None, 0.7)):
        yield make(*lead, 4, 3), make(*lead, 5, 3), make(*lead, 5, 6), {"is_causal": causal, "scale": scale}
    for lead in ((2,), (2, 3)):
        q, k, v = make(*lead, 4, 3), make(*lead, 5, 3), make(*lead, 5, 6)
        yield q, k, v, make(4, 5)
        yield q, k, v, make(*lead, 4, 5)
        yield q, k, v, make.array(np.tril(np.ones((4, 5), bool), 1), "bool")
        yield q, k, v, make.array(np.tril(np.ones((4, 5), bool), 2), "bool"), 0.0, False, {"scale": 0.5}
    yield make(2, 4, 4, 3), make(2, 2, 5, 3), make(2, 2, 5, 3), {"enable_gqa": True}
    yield make(1, 1, 1, 2), make(1, 1, 1, 2), make(1, 1, 1, 2)
    for heads in (1, 4):
        yield make(1, heads, 9, 8), make(1, heads, 9, 8), make(1, heads, 9, 8)
        yield make(1, heads, 9, 8), make(1, heads, 9, 8), make(1, heads, 9, 8), {"is_causal": True}


def _flash_reference(
    q: Any, k: Any, v: Any, dropout_p: float = 0.0, causal: bool = False, *, attn_mask: Any = None, scale: Any = None
) -> Any:
    scores = q @ k.swapaxes(-1, -2) * (scale or q.shape[-1] ** -0.5)
    scores = scores if attn_mask is None else scores + attn_mask
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    shares = np.exp(scores - top)
    total = shares.sum(-1, keepdims=True)
    return shares / total @ v, (top + np.log(total))[..., 0]


@samples(
    "_scaled_dot_product_flash_attention_for_cpu",
    reference=_flash_reference,
    gradcheck=False,  # of float32 only: tests/operators/test_attention.py
    dtypes=("float32", "float64"),
    tolerances=ROUGH,
)
def flash_attention(make: Make) -> Iterator[Any]:
    for causal, scale in itertools.product((False, True), (None, 0.7)):
        yield make(2, 2, 4, 3), make(2, 2, 5, 3), make(2, 2, 5, 6), 0.0, causal, {"scale": scale}
    yield make(1, 2, 70, 8), make(1, 2, 600, 8), make(1, 2, 600, 8)
    yield make(1, 1, 130, 4), make(1, 1, 130, 4), make(1, 1, 130, 4), 0.0, True
    yield make(2, 2, 4, 3), make(2, 2, 5, 3), make(2, 2, 5, 3), {"attn_mask": make(4, 5)}
    yield make(2, 2, 4, 3), make(2, 2, 5, 3), make(2, 2, 5, 3), {"attn_mask": make(2, 1, 1, 5)}
