"""Samples of matrix products and what is made of them: addmm, bmm, dot, tensordot, einsum, linear."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from .table import ARITHMETIC, FLOATS, LOOSE, Make, samples

OPTIONS: dict[str, Any] = {"dtypes": ARITHMETIC, "tolerances": LOOSE}
# beta and alpha; with beta zero the first argument is not read
SCALES: tuple[dict[str, Any], ...] = ({}, {"beta": 2}, {"alpha": 3}, {"beta": 0, "alpha": 2}, {"beta": 2, "alpha": 3})


def _scaled(product: Any) -> Any:
    def reference(x: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        return (0 if beta == 0 else beta * x) + alpha * product(a, b)

    return reference


@samples("mm", reference=np.matmul, **OPTIONS)
def mm(make: Make) -> Iterator[Any]:
    for n, k, m in ((2, 3, 4), (1, 3, 1), (2, 0, 4), (0, 3, 2), (5, 7, 0), (3, 1, 3), (17, 9, 13)):
        yield make(n, k), make(k, m)


@samples("matmul", reference=np.matmul, **OPTIONS)
def matmul(make: Make) -> Iterator[Any]:
    for left, right in (
        ((3,), (3,)), ((3,), (3, 4)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((2, 3), (5, 3, 4)), ((5, 2, 3), (3,)),
        ((5, 2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4)), ((2, 1, 2, 3), (4, 3, 2)), ((3,), (5, 3, 4)), ((0,), (0,)),
        ((2, 0), (0, 4)), ((0, 2, 3), (0, 3, 4)), ((1, 2, 3), (4, 3, 2)), ((2, 3), (1, 2, 3, 2)), ((4, 0, 3), (3, 2)),
    ):  # fmt: skip
        yield make(left), make(right)


@samples("bmm", reference=np.matmul, **OPTIONS)
def bmm(make: Make) -> Iterator[Any]:
    for b, n, k, m in itertools.product((0, 1, 3), (1, 4), (0, 1, 5), (1, 2)):
        yield make(b, n, k), make(b, k, m)


@samples("mv", reference=np.matmul, **OPTIONS)
def mv(make: Make) -> Iterator[Any]:
    for n, k in ((2, 3), (1, 4), (0, 3), (3, 0)):
        yield make(n, k), make(k)


@samples("dot", reference=np.dot, **OPTIONS)
@samples("vdot", reference=lambda a, b: np.sum(np.conj(a) * b), **OPTIONS)
def dot(make: Make) -> Iterator[Any]:
    for n in (5, 1, 0, 33):
        yield make(n), make(n)


@samples("inner", reference=np.inner, **OPTIONS)
def inner(make: Make) -> Iterator[Any]:
    for left, right in (((3,), (3,)), ((2, 3), (3,)), ((2, 3), (4, 3)), ((2, 1, 3), (3,)), ((), ()), ((2, 3), ())):
        yield make(left), make(right)


@samples("outer", "ger", reference=np.outer, dtypes=ARITHMETIC)
def outer(make: Make) -> Iterator[Any]:
    for n, m in ((3, 4), (1, 1), (0, 3), (3, 0)):
        yield make(n), make(m)


@samples("addmm", reference=_scaled(np.matmul), **OPTIONS)
def addmm(make: Make) -> Iterator[Any]:
    for scales, added in itertools.product(SCALES, ((2, 4), (4,), (2, 1), ())):
        yield make(added), make(2, 3), make(3, 4), scales
    yield make(2, 4), make(2, 0), make(0, 4), {"beta": 2}


@samples("addmv", reference=_scaled(np.matmul), **OPTIONS)
def addmv(make: Make) -> Iterator[Any]:
    for scales, added in itertools.product(SCALES, ((2,), (1,))):
        yield make(added), make(2, 3), make(3), scales
    yield make(2), make(2, 0), make(0), {"beta": 2}


@samples("baddbmm", reference=_scaled(np.matmul), **OPTIONS)
def baddbmm(make: Make) -> Iterator[Any]:
    for scales, added in itertools.product(SCALES, ((2, 3, 5), (3, 5), (2, 1, 1))):
        yield make(added), make(2, 3, 4), make(2, 4, 5), scales


@samples("addbmm", reference=_scaled(lambda a, b: np.matmul(a, b).sum(0)), **OPTIONS)
def addbmm(make: Make) -> Iterator[Any]:
    for scales, added in itertools.product(SCALES, ((3, 5), (5,), ())):
        yield make(added), make(2, 3, 4), make(2, 4, 5), scales


@samples("linear", reference=lambda x, w, b=0: np.matmul(x, w.T) + b, **OPTIONS)
def linear(make: Make) -> Iterator[Any]:
    for shape, with_bias in itertools.product(((3,), (2, 3), (2, 4, 3), (0, 3), (1, 1, 2, 3)), (True, False)):
        bias = (make(5),) if with_bias else ()
        yield make(*shape), make(5, 3), *bias
        yield make(*shape), make(1, 3), *((make(1),) if with_bias else ())
    yield make(2, 3), make(3)


@samples("tensordot", reference=lambda a, b, left, right: np.tensordot(a, b, (left, right)), **OPTIONS)
def tensordot(make: Make) -> Iterator[Any]:
    yield make(2, 3, 4), make(3, 4, 5), [1, 2], [0, 1]
    yield make(2, 3, 4), make(4, 3, 2), [0, 1], [2, 1]
    yield make(2, 3), make(4), [], []
    yield make(2, 3), make(3, 2), [-1], [0]
    yield make(2, 0), make(0, 3), [1], [0]


@samples("einsum", reference=lambda equation, operands: np.einsum(equation, *operands), **OPTIONS)
def einsum(make: Make) -> Iterator[Any]:
    yield "i->i", [make(4)]
    yield "ij->ji", [make(2, 3)]
    yield "ij->", [make(2, 3)]
    yield "ii->i", [make(3, 3)]
    yield "ii", [make(3, 3)]
    yield "i,i->", [make(4), make(4)]
    yield "i,j->ij", [make(3), make(4)]
    yield "ij,jk", [make(2, 3), make(3, 4)]
    yield "bij,bjk->bik", [make(2, 3, 4), make(2, 4, 2)]
    yield "...ij,...jk->...ik", [make(2, 1, 2, 3), make(4, 3, 2)]
    yield "ij,jk,kl->il", [make(2, 3), make(3, 4), make(4, 2)]
    yield "ba,ca->abc", [make(2, 3), make(4, 3)]
    yield "i...->...", [make(2, 3, 2)]


def _vector_distance(x: Any, y: Any, p: float = 2) -> Any:
    d = np.abs(x - y).ravel()
    if p == 0:
        return np.count_nonzero(d).astype(float) if d.size else 0.0
    if np.isinf(p):
        return (d.max() if p > 0 else d.min()) if d.size else 0.0
    return (d**p).sum() ** (1 / p)


@samples("dist", reference=_vector_distance, dtypes=("float32", "float64", "complex64", "complex128"), tolerances=LOOSE)
def dist(make: Make) -> Iterator[Any]:
    shapes = (((2, 3), (2, 3)), ((2, 3), (3,)), ((3, 1), (1, 4)), ((), (3,)), ((), ()))
    for p, (left, right) in itertools.product((2, 1, 3, 0.5, 0, float("inf"), 4, 1.5, 2.5, 7), shapes):
        yield make(left), make(right), p
    yield make(2, 3), make(2, 3)


def _by_groups(a: Any, b: Any, offs: Any = None) -> Any:
    if offs is None:
        return np.matmul(a, b)
    runs = [slice(begin, end) for begin, end in itertools.pairwise([0, *offs])]
    if a.ndim == b.ndim == 2:
        return np.stack([a[:, run] @ b[run] for run in runs])
    made = np.zeros((a.shape[-2], b.shape[-1]))
    for i, run in enumerate(runs):
        made[(run, slice(None)) if a.ndim == 2 else (slice(None), run)] = (
            a[run] @ b[i] if a.ndim == 2 else a[i] @ b[:, run]
        )
    return made


@samples("_grouped_mm", reference=_by_groups, dtypes=FLOATS, tolerances=LOOSE)
def _grouped_mm(make: Make) -> Iterator[Any]:
    for ends in ([2, 2, 6], [0, 3, 7], [7, 7, 7], [1, 1, 1]):
        offs = make.array(ends, "int32")
        yield make(7, 4), make(3, 4, 5), offs
        yield make(3, 5, 4), make(4, 7), offs
        yield make(5, 7), make(7, 4), offs
    yield make(3, 2, 4), make(3, 4, 5)
    yield make(0, 4), make(1, 4, 2), make.array([0], "int32")
    yield make(2, 0), make(0, 3), make.array([0, 0], "int32")
