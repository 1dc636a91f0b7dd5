"""Samples of factorizations, of what is solved with them, and of norms of matrices."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from .table import Array, Make, samples

DTYPES = ("float32", "float64", "complex64", "complex128")
NEAR = {"float32": (2e-3, 2e-3), "complex64": (2e-3, 2e-3), "float64": (1e-8, 1e-8), "complex128": (1e-8, 1e-8)}
OPTIONS: dict[str, Any] = {"dtypes": DTYPES, "tolerances": NEAR}
SQUARE = ((3, 3), (1, 1), (2, 3, 3), (0, 3, 3), (0, 0), (2, 0, 0), (2, 1, 4, 4), (2, 2))
TALL_AND_WIDE = ((3, 3), (4, 3), (3, 5), (2, 4, 2), (2, 2, 4), (0, 3, 2), (1, 1), (5, 1))


def mirrored(x: Any) -> Any:
    return np.conj(np.swapaxes(x, -1, -2))


def well(make: Make, *shape: int) -> Array:
    """Square matrices far from singular."""
    made = make(*shape, low=-1, high=1)
    return make.own(made.values + 3 * np.eye(shape[-1]))


def positive(make: Make, *shape: int) -> Array:
    """Hermitian, positive-definite ones."""
    made = make(*shape, low=-1, high=1).values
    return make.own(made @ mirrored(made) + 2 * np.eye(shape[-1]))


def upright(make: Make, *shape: int) -> Array:
    """Matrices of full rank, with singular values that differ clearly."""
    made = make(*shape, low=-0.3, high=0.3).values
    k = min(shape[-2:])
    line = np.zeros(shape[-2:])
    line[np.arange(k), np.arange(k)] = np.arange(1, k + 1) * 1.5
    return make.own(made + line)


def triangle(make: Make, upper: bool, *shape: int) -> Array:
    made = well(make, *shape).values
    return make.own(np.triu(made) if upper else np.tril(made))


# ---- cholesky ----


def _cholesky(a: Any, upper: bool = False, check_errors: bool = False) -> Any:
    lower = np.linalg.cholesky(a) if a.size else a
    return mirrored(lower) if upper else lower


@samples("linalg_cholesky", reference=_cholesky, gradcheck=False, **OPTIONS)
@samples("linalg_cholesky_ex", reference=lambda *a, **k: (_cholesky(*a, **k), np.zeros(a[0].shape[:-2], np.int32)),
         gradcheck=False, **OPTIONS)  # fmt: skip
def cholesky_of(make: Make) -> Iterator[Any]:
    for shape, upper in itertools.product(SQUARE, (False, True)):
        yield positive(make, *shape), {"upper": upper}


@samples("cholesky", reference=_cholesky, gradcheck=False, **OPTIONS)
def cholesky(make: Make) -> Iterator[Any]:
    for shape, upper in itertools.product(SQUARE, (False, True)):
        yield positive(make, *shape), upper


def _from_factor(factor: Any, upper: bool) -> Any:
    return mirrored(factor) @ factor if upper else factor @ mirrored(factor)


def _half(factor: Any, upper: bool = False) -> Any:
    return factor.triu() if upper else factor.tril()


@samples("cholesky_inverse", reference=lambda a, upper=False: np.linalg.inv(_from_factor(a, upper)),
         kept=lambda a, *upper: (_half(a, *upper), *upper), **OPTIONS)  # fmt: skip
def cholesky_inverse(make: Make) -> Iterator[Any]:
    for shape, upper in itertools.product(SQUARE, (False, True)):
        yield triangle(make, upper, *shape), upper


@samples("cholesky_solve", reference=lambda b, a, upper=False: np.linalg.solve(_from_factor(a, upper), b),
         kept=lambda b, a, *upper: (b, _half(a, *upper), *upper), **OPTIONS)  # fmt: skip
def cholesky_solve(make: Make) -> Iterator[Any]:
    for shape, upper in itertools.product(SQUARE, (False, True)):
        yield make(*shape[:-1], 2), triangle(make, upper, *shape), upper
    yield make(2, 3, 2), triangle(make, False, 3, 3)


# ---- triangles ----


def _triangular(a: Any, b: Any, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    half = np.triu(a) if upper else np.tril(a)
    n = a.shape[-1]
    if unitriangular:
        half = half * (1 - np.eye(n)) + np.eye(n)
    return np.linalg.solve(half, b) if left else np.swapaxes(
        np.linalg.solve(np.swapaxes(half, -1, -2), np.swapaxes(b, -1, -2)), -1, -2
    )  # fmt: skip


@samples("linalg_solve_triangular", reference=_triangular, **OPTIONS)
def solve_triangular(make: Make) -> Iterator[Any]:
    for upper, left, unit in itertools.product((False, True), repeat=3):
        options = {"upper": upper, "left": left, "unitriangular": unit}
        for a, b in (((3, 3), (2,)), ((2, 3, 3), (2,)), ((0, 0), (2,)), ((0, 3, 3), (1,))):
            shape = (*a[:-1], *b) if left else (*a[:-2], *b, a[-1])
            yield well(make, *a), make(*shape), options
        yield well(make, 3, 3), make(*((2, 3, 2) if left else (2, 2, 3))), options
        yield well(make, 2, 1, 3, 3), make(3, 3), options


def _triangular_solve(b: Any, a: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False) -> Any:
    half = np.triu(a) if upper else np.tril(a)
    if unitriangular:
        half = half * (1 - np.eye(a.shape[-1])) + np.eye(a.shape[-1])
    return np.linalg.solve(np.swapaxes(half, -1, -2) if transpose else half, b), a


@samples("triangular_solve", reference=_triangular_solve, **OPTIONS)
def triangular_solve(make: Make) -> Iterator[Any]:
    for upper, transpose, unit in itertools.product((False, True), repeat=3):
        yield make(2, 3, 2), well(make, 2, 3, 3), upper, transpose, unit
    yield make(3, 1), well(make, 3, 3)


# ---- lu, ldl ----


def _lu(a: Any) -> Any:
    """P, L, U and the swaps, of one matrix or a batch."""
    *batch, m, n = a.shape
    k = min(m, n)
    whole, swaps = np.array(a), np.zeros((*batch, k), np.int32)
    order = np.broadcast_to(np.arange(m), (*batch, m)).copy()
    for at in np.ndindex(*batch):
        x = whole[at]
        for i in range(k):
            best = i + int(np.argmax(np.abs(x[i:, i].real) + np.abs(x[i:, i].imag)))
            swaps[(*at, i)] = best + 1
            x[[i, best]] = x[[best, i]]
            order[at][[i, best]] = order[at][[best, i]]
            x[i + 1 :, i] /= x[i, i]
            x[i + 1 :, i + 1 :] -= np.outer(x[i + 1 :, i], x[i, i + 1 :])
    lower = np.tril(whole[..., :, :k], -1) + np.eye(m, k)
    upper = np.triu(whole[..., :k, :])
    return np.swapaxes(np.eye(m)[order], -1, -2).astype(a.dtype), lower, upper, whole, swaps


def _packed(a: Any, pivot: bool = True, check_errors: bool = False) -> Any:
    return (*_lu(a)[3:], np.zeros(a.shape[:-2], np.int32))


@samples("linalg_lu_factor_ex", reference=_packed, **OPTIONS)
@samples("_lu_with_info", reference=_packed, **OPTIONS)
@samples("linalg_lu_factor", reference=lambda a: _lu(a)[3:], **OPTIONS)
@samples("linalg_lu", reference=lambda a: _lu(a)[:3], **OPTIONS)
def lu(make: Make) -> Iterator[Any]:
    for shape in TALL_AND_WIDE:
        yield make(*shape)


@samples("lu_unpack", reference=lambda lu, pivots, data=True, swaps=True: _unpacked(lu, pivots), **OPTIONS)
def lu_unpack(make: Make) -> Iterator[Any]:
    for shape in TALL_AND_WIDE:
        _, _, _, whole, swaps = _lu(make(*shape).values)
        yield make.own(whole), make.array(swaps, "int32")


def _unpacked(whole: Any, swaps: Any) -> Any:
    m, k = whole.shape[-2], min(whole.shape[-2:])
    order = np.broadcast_to(np.arange(m), (*whole.shape[:-2], m)).copy()
    for at in np.ndindex(*whole.shape[:-2]):
        for i in range(k):
            other = swaps[(*at, i)] - 1
            order[at][[i, other]] = order[at][[other, i]]
    lower = np.tril(whole[..., :, :k], -1) + np.eye(m, k)
    return np.swapaxes(np.eye(m)[order], -1, -2).astype(whole.dtype), lower, np.triu(whole[..., :k, :])


def _lu_solved(lu: Any, pivots: Any, b: Any, left: bool = True, adjoint: bool = False) -> Any:
    p, lower, upper = _unpacked(lu, pivots)
    a = p @ lower @ upper
    a = mirrored(a) if adjoint else a
    return np.linalg.solve(a, b) if left else mirrored(np.linalg.solve(mirrored(a), mirrored(b)))


@samples("linalg_lu_solve", reference=_lu_solved, **OPTIONS)
def lu_solve_by(make: Make) -> Iterator[Any]:
    for left, adjoint in itertools.product((True, False), repeat=2):
        for shape, b in (((3, 3), (3, 3)), ((2, 3, 3), (2, 3, 3)), ((2, 3, 3), (3, 3)), ((3, 3), (2, 3, 3))):
            *_, whole, swaps = _lu(well(make, *shape).values)
            yield make.own(whole), make.array(swaps, "int32"), make(*b), {"left": left, "adjoint": adjoint}


@samples("lu_solve", reference=lambda b, lu, pivots: _lu_solved(lu, pivots, b), **OPTIONS)
def lu_solve(make: Make) -> Iterator[Any]:
    for batch, n, columns in itertools.product(((), (2,)), (3, 1), (1, 2)):
        *_, whole, swaps = _lu(well(make, *batch, n, n).values)
        yield make(*batch, n, columns), make.own(whole), make.array(swaps, "int32")


BY_PRODUCTS = "tests/operators/test_linalg.py multiplies the factors"


@samples("linalg_ldl_factor", "linalg_ldl_factor_ex", without_reference=BY_PRODUCTS, gradcheck=False, **OPTIONS)
def ldl(make: Make) -> Iterator[Any]:
    for shape, hermitian in itertools.product(SQUARE, (False, True)):
        yield positive(make, *shape), {"hermitian": hermitian}


@samples("linalg_ldl_solve", without_reference=BY_PRODUCTS, gradcheck=False, **OPTIONS)
def ldl_solve(make: Make) -> Iterator[Any]:
    for batch, columns, more in itertools.product(((), (2,)), (1, 2), ((), (2,))):
        shape, b = (*batch, 3, 3), (*(batch or more), 3, columns)
        whole = make.own(np.tril(well(make, *shape).values))
        yield whole, make.array(np.broadcast_to(np.arange(1, 4), shape[:-1]), "int32"), make(*b)


# ---- systems, inverses, determinants ----


def _solve(a: Any, b: Any, left: bool = True, check_errors: bool = False) -> Any:
    vector = b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1])
    b = b[..., None] if vector else b
    x = np.linalg.solve(a, b) if left else mirrored(np.linalg.solve(mirrored(a), mirrored(b)))
    return x[..., 0] if vector else x


@samples("linalg_solve", reference=_solve, **OPTIONS)
@samples("linalg_solve_ex", reference=lambda a, *rest, **k: (_solve(a, *rest, **k), np.zeros(a.shape[:-2], np.int32)),
         **OPTIONS)  # fmt: skip
def solve(make: Make) -> Iterator[Any]:
    for shape in SQUARE:
        yield well(make, *shape), make(*shape[:-1], 2)
        yield well(make, *shape), make(*shape[:-2], 2, shape[-1]), {"left": False}
    yield well(make, 3, 3), make(3)
    yield well(make, 2, 3, 3), make(2, 3)
    yield well(make, 2, 3, 3), make(3, 1)
    yield well(make, 3, 3), make(2, 3, 1)


@samples("linalg_inv", "inverse", reference=np.linalg.inv, **OPTIONS)
@samples("linalg_inv_ex", reference=lambda a: (np.linalg.inv(a), np.zeros(a.shape[:-2], np.int32)), **OPTIONS)
@samples("linalg_det", "det", reference=np.linalg.det, **OPTIONS)
@samples("linalg_slogdet", "slogdet", reference=lambda a: tuple(np.linalg.slogdet(a)), **OPTIONS)
@samples("logdet", reference=lambda a: np.log(np.linalg.det(a)), **OPTIONS)
@samples("linalg_matrix_exp", "matrix_exp", reference=lambda a: _exponential(a), **OPTIONS)
def of_square(make: Make) -> Iterator[Any]:
    for shape in SQUARE:
        yield well(make, *shape)


def _exponential(a: Any) -> Any:
    small, result = a / 1024, np.broadcast_to(np.eye(a.shape[-1]), a.shape).astype(a.dtype)
    term = result
    for k in range(1, 16):
        term = term @ small / k
        result = result + term
    for _ in range(10):
        result = result @ result
    return result
