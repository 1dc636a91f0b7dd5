"""Samples of margin losses and of what undoes pooling."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from . import references_nn as nn
from .table import FLOATS, LOOSE, Make, samples

REAL: dict[str, Any] = {"dtypes": FLOATS[2:], "tolerances": LOOSE}


def _row_margin(x: Any, target: int, p: int, margin: float, weight: Any) -> float:
    lacking = [max(0.0, margin - x[target] + x[i]) ** p for i in range(len(x)) if i != target]
    return sum(lacking) * (1 if weight is None else weight[target]) / len(x)


def multi_margin(x: Any, target: Any, p: int = 1, margin: float = 1, weight: Any = None, reduction: int = 1) -> Any:
    rows = x.reshape(-1, x.shape[-1])
    losses = [_row_margin(r, t, p, margin, weight) for r, t in zip(rows, target.reshape(-1), strict=True)]
    return nn.reduced(np.array(losses).reshape(target.shape), reduction)


@samples("multi_margin_loss", reference=multi_margin, constant=("weight",), **REAL)
def multi_margins(make: Make) -> Iterator[Any]:
    for p, reduction, weighted in itertools.product((1, 2), (0, 1, 2), (False, True)):
        weight = make(4, low=0.2, high=1) if weighted else None
        yield make.distinct(3, 4), make.index(4, 3), p, 0.75, weight, reduction
    yield make.distinct(4), make.array(2)
    yield make.distinct(4), make.array([2]), 2, 1.3, None, 0


def _row_labels(x: Any, target: Any) -> tuple[float, Any]:
    named = list(itertools.takewhile(lambda c: c >= 0, target.tolist()))
    others = [i for i in range(len(x)) if i not in named]
    loss = sum(max(0.0, 1 - x[t] + x[i]) for t in named for i in others) / len(x)
    return loss, np.isin(np.arange(len(x)), named)


def multilabel_margin(x: Any, target: Any, reduction: int = 1) -> Any:
    rows = [_row_labels(r, t) for r, t in zip(np.atleast_2d(x), np.atleast_2d(target), strict=True)]
    loss = np.array([r for r, _ in rows])
    own = np.array([o for _, o in rows]).reshape(target.shape).astype(x.dtype)
    return nn.reduced(loss if x.ndim == 2 else loss.reshape(()), reduction), own


@samples("multilabel_margin_loss_forward", reference=multilabel_margin, **REAL)
@samples("multilabel_margin_loss", reference=lambda *a: multilabel_margin(*a)[0], **REAL)
def multilabel_margins(make: Make) -> Iterator[Any]:
    for reduction in (0, 1, 2):
        yield make.distinct(4, 3), make.array([[1, -1, 0], [2, 1, 0], [-1, 1, 1], [1, 1, -1]]), reduction
        yield make.distinct(4), make.array([3, 0, -1, 1]), reduction


def unpooled(x: Any, indices: Any, size: Any, *_: Any) -> Any:
    lead = x.shape[: -len(size)]
    result = np.zeros((*lead, int(np.prod(size))))
    np.put_along_axis(result, indices.reshape(*lead, -1), x.reshape(*lead, -1), -1)
    return result.reshape(*lead, *size)


def _places(make: Make, count: int, *shape: int) -> Any:
    """Places in planes of `count`, none of them twice."""
    planes, wanted = int(np.prod(shape[:2])), int(np.prod(shape[2:]))
    found = [make.rng.permutation(count)[:wanted] for _ in range(planes)]
    return make.array(np.array(found).reshape(shape))


@samples("max_unpool2d", reference=unpooled, **REAL)
def unpools_2d(make: Make) -> Iterator[Any]:
    yield make(2, 3, 2, 2), _places(make, 20, 2, 3, 2, 2), [4, 5]
    for sizes in (3, 2, 2), (1, 3, 1), (2, 1, 4), (4, 1, 1), (1, 2, 3), (2, 3, 2), (5, 1, 2):
        yield make(sizes), make.array(_places(make, 16, 1, *sizes).values[0]), [4, 4]


@samples("max_unpool3d", reference=unpooled, **REAL)
def unpools_3d(make: Make) -> Iterator[Any]:
    yield make(2, 2, 2, 1, 2), _places(make, 24, 2, 2, 2, 1, 2), [4, 2, 3], [2, 2, 2], [0, 0, 0]
    for sizes in (2, 2, 1, 2), (1, 1, 1, 1), (3, 1, 2, 1), (1, 2, 2, 2), (2, 1, 1, 3), (1, 4, 1, 1), (2, 1, 2, 2):
        places = make.array(_places(make, 32, 1, *sizes).values[0])
        yield make(sizes), places, [4, 2, 4], [2, 2, 2], [0, 0, 0]
