"""Samples of QR, eigenvalues, singular values, least squares, and of norms and products of matrices."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from .linalg import BY_PRODUCTS, DTYPES, NEAR, OPTIONS, SQUARE, TALL_AND_WIDE, mirrored, positive, upright, well
from .table import LOOSE, Make, samples

UNSIGNED: dict[str, Any] = {**OPTIONS, "gradcheck": False, "without_reference": BY_PRODUCTS}


# ---- qr ----


@samples("linalg_qr", **UNSIGNED)
def qr(make: Make) -> Iterator[Any]:
    for shape, mode in itertools.product(TALL_AND_WIDE, ("reduced", "complete", "r")):
        yield upright(make, *shape), mode


@samples("qr", **UNSIGNED)
def old_qr(make: Make) -> Iterator[Any]:
    for shape, some in itertools.product(TALL_AND_WIDE, (True, False)):
        yield upright(make, *shape), some


@samples("geqrf", **UNSIGNED)
def geqrf(make: Make) -> Iterator[Any]:
    for shape in TALL_AND_WIDE:
        yield upright(make, *shape)


def _reflected(a: Any, tau: Any) -> Any:
    """The product of the reflections, whole."""
    *batch, m, _ = a.shape
    product = np.broadcast_to(np.eye(m), (*batch, m, m)).astype(a.dtype)
    for i in range(tau.shape[-1]):
        v = np.tril(a, -1)[..., :, i : i + 1] + np.eye(m)[:, i : i + 1]
        product = product - tau[..., i, None, None] * (product @ v) @ mirrored(v)
    return product


@samples("linalg_householder_product", "orgqr", reference=lambda a, tau: _reflected(a, tau)[..., : a.shape[-1]],
         **OPTIONS)  # fmt: skip
def householder(make: Make) -> Iterator[Any]:
    shapes = (4, 3), (4, 3), (2, 3, 3), (3, 3), (0, 3, 2), (2, 4, 2), (1, 1), (5, 2)
    for shape, k in zip(shapes, (3, 2, 3, 0, 2, 1, 1, 2), strict=True):
        yield make(*shape, low=-1, high=1), make(*shape[:-2], k, low=-1, high=1)


def _ormqr(a: Any, tau: Any, c: Any, left: bool = True, transpose: bool = False) -> Any:
    q = _reflected(a, tau)
    q = mirrored(q) if transpose else q
    return q @ c if left else c @ q


@samples("ormqr", reference=_ormqr, gradgradcheck=False, **OPTIONS)
def ormqr(make: Make) -> Iterator[Any]:
    for left, transpose in itertools.product((True, False), repeat=2):
        for batch in ((), (2,)):
            a, tau = _reflections(make, *batch, 4, 3)
            yield a, tau, make(*batch, *((4, 2) if left else (2, 4))), left, transpose


def _reflections(make: Make, *shape: int) -> Any:
    """Reflections of a QR factorization: of others the adjoint is no inverse, and LAPACK blocks are no products."""
    m, n = shape[-2:]
    below = make(*shape, low=-1, high=1).values
    vectors = np.tril(below, -1) + np.eye(m, n)
    return make.own(below), make.own(2 / np.sum(np.abs(vectors) ** 2, -2))


# ---- eigenvalues, singular values ----


@samples("linalg_eigh", **UNSIGNED)
def eigh(make: Make) -> Iterator[Any]:
    for shape, uplo in itertools.product(SQUARE, ("L", "U")):
        yield positive(make, *shape), uplo


@samples("linalg_eigvalsh", reference=lambda a, uplo="L": np.linalg.eigvalsh(a, uplo), gradcheck=False, **OPTIONS)
def eigvalsh(make: Make) -> Iterator[Any]:
    for shape, uplo in itertools.product(SQUARE, ("L", "U")):
        yield positive(make, *shape), uplo


@samples("linalg_eig", "linalg_eigvals", **UNSIGNED)
def eig(make: Make) -> Iterator[Any]:
    for shape in SQUARE:
        yield well(make, *shape)


@samples("linalg_svd", **UNSIGNED)
def svd(make: Make) -> Iterator[Any]:
    for shape, full in itertools.product(TALL_AND_WIDE, (True, False)):
        yield upright(make, *shape), full


@samples("svd", **UNSIGNED)
def old_svd(make: Make) -> Iterator[Any]:
    for shape, some, both in itertools.product(TALL_AND_WIDE, (True, False), (True, False)):
        yield upright(make, *shape), some, both


def _values(a: Any) -> Any:
    return np.linalg.svd(a, compute_uv=False)


def _rank(a: Any, tol: Any = None) -> Any:
    return np.linalg.matrix_rank(a, tol) if a.size else np.zeros(a.shape[:-2], np.int64)


@samples("linalg_svdvals", reference=_values, **OPTIONS)
@samples("nuclear_norm", reference=lambda a: np.sum(_values(a), -1), **OPTIONS)
@samples("linalg_matrix_rank.atol_rtol_float", "linalg_matrix_rank.atol_rtol_tensor", reference=_rank, **OPTIONS)
def of_any(make: Make) -> Iterator[Any]:
    for shape in TALL_AND_WIDE:
        yield upright(make, *shape)


@samples("linalg_matrix_rank", reference=_rank, **OPTIONS)
def rank_above(make: Make) -> Iterator[Any]:
    for shape, tol in itertools.product(TALL_AND_WIDE, (0.0, 0.5)):
        yield upright(make, *shape), tol


@samples("linalg_matrix_rank.tol_tensor", reference=_rank, **OPTIONS)
def rank_above_tensor(make: Make) -> Iterator[Any]:
    for shape, tol in itertools.product(TALL_AND_WIDE, (0.0, 0.5)):
        yield upright(make, *shape), make.array(tol, dtype="float64")


# ---- least squares ----


def _pinv(a: Any) -> Any:
    return np.linalg.pinv(a, rcond=1e-15)


@samples("linalg_pinv.atol_rtol_tensor", "linalg_pinv.atol_rtol_float", "pinverse", reference=_pinv, **OPTIONS)
def pinv(make: Make) -> Iterator[Any]:
    for shape in TALL_AND_WIDE:
        yield upright(make, *shape)


@samples("linalg_pinv", reference=lambda a, rcond: _pinv(a), **OPTIONS)
def pinv_by_number(make: Make) -> Iterator[Any]:
    for shape in TALL_AND_WIDE[:5]:
        yield upright(make, *shape), 1e-3


@samples("linalg_pinv.rcond_tensor", reference=lambda a, rcond: _pinv(a), constant=("rcond",), **OPTIONS)
def pinv_by_tensor(make: Make) -> Iterator[Any]:
    for shape in TALL_AND_WIDE[:5]:
        yield upright(make, *shape), make.array(1e-3, "float64")


@samples("linalg_lstsq", **UNSIGNED)
def lstsq(make: Make) -> Iterator[Any]:
    for shape, driver in itertools.product(TALL_AND_WIDE[:5], (None, "gels", "gelsd", "gelss")):
        yield upright(make, *shape), make(*shape[:-1], 2), {"driver": driver}
    yield upright(make, 4, 3), make(4)


# ---- norms ----

NUMBERS = (1, -1, 2, -2, float("inf"), -float("inf"))


def _matrix_norm(a: Any, order: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False) -> Any:
    return np.linalg.norm(a, order, tuple(dim), keepdim)


@samples("linalg_matrix_norm", reference=_matrix_norm, **OPTIONS)
def matrix_norm(make: Make) -> Iterator[Any]:
    for order, shape in itertools.product(NUMBERS, ((3, 3), (2, 4, 2))):
        yield upright(make, *shape), order
        yield upright(make, *shape), order, [-1, -2], True
    yield upright(make, 2, 4, 3), 1, [0, 2]


@samples("linalg_matrix_norm.str_ord", reference=_matrix_norm, **OPTIONS)
def matrix_norm_by_name(make: Make) -> Iterator[Any]:
    for order, shape in itertools.product(("fro", "nuc"), ((3, 3), (2, 4, 2))):
        yield upright(make, *shape), order
        yield upright(make, *shape), order, [-1, -2], True


@samples("nuclear_norm.dim", reference=lambda a, dim, keepdim=False: np.linalg.norm(a, "nuc", tuple(dim), keepdim),
         **OPTIONS)  # fmt: skip
def nuclear_norm(make: Make) -> Iterator[Any]:
    yield upright(make, 4, 3), [0, 1]
    yield upright(make, 2, 4, 3), [1, 2], True


def _norm(a: Any, order: Any = None, dim: Any = None, keepdim: bool = False) -> Any:
    if dim is None and order is None:
        return np.reshape(np.linalg.norm(np.ravel(a)), (1,) * a.ndim if keepdim else ())
    return np.linalg.norm(a, order, None if dim is None else tuple(dim) if len(dim) > 1 else dim[0], keepdim)


@samples("linalg_norm", reference=_norm, **OPTIONS)
def norm(make: Make) -> Iterator[Any]:
    yield make(2, 3, 2)
    yield make(2, 3, 2), None, None, True
    for order in NUMBERS:
        yield upright(make, 4, 3), order
        yield upright(make, 2, 4, 3), order, [1, 2], True
        yield make.own(np.arange(1, 6) * 0.5), order
        yield make.own(np.arange(1, 11).reshape(2, 5) * 0.5), order, [1]
    yield make(2, 3), None, [0, 1]


@samples("linalg_norm.ord_str", reference=_norm, **OPTIONS)
def norm_by_name(make: Make) -> Iterator[Any]:
    for order in ("fro", "nuc"):
        yield upright(make, 4, 3), order
        yield upright(make, 2, 4, 3), order, [1, 2], True


@samples("linalg_cond", reference=lambda a, p=None: np.linalg.cond(a, p), gradgradcheck=False, **OPTIONS)
def cond(make: Make) -> Iterator[Any]:
    for order in (None, *NUMBERS):
        yield upright(make, 3, 3), order
    yield upright(make, 2, 4, 3)


@samples("linalg_cond.p_str", reference=lambda a, p: np.linalg.norm(a, p, (-2, -1)) * np.linalg.norm(
    np.linalg.inv(a), p, (-2, -1)), gradgradcheck=False, **OPTIONS)  # fmt: skip
def cond_by_name(make: Make) -> Iterator[Any]:
    for order in ("fro", "nuc"):
        yield upright(make, 3, 3), order


# ---- products ----


@samples("linalg_matmul", reference=np.matmul, dtypes=DTYPES, tolerances=LOOSE)
def matmul(make: Make) -> Iterator[Any]:
    yield make(2, 3), make(3, 4)
    yield make(5, 2, 3), make(3)


@samples("linalg_vecdot", reference=lambda x, y, dim=-1: np.sum(np.conj(x) * y, dim), dtypes=DTYPES, tolerances=LOOSE)
def vecdot(make: Make) -> Iterator[Any]:
    yield make(2, 3), make(2, 3)
    yield make(2, 3), make(3)
    for x, y in (((2, 3), (2, 3)), ((2, 1, 3), (4, 3)), ((0, 3), (0, 3)), ((3, 0), (3, 0)), ((2, 3), (1, 3))):
        yield make(*x), make(*y), {"dim": -2}
    yield make(4), make(4)


@samples("linalg_diagonal", reference=lambda a, offset=0, dim1=-2, dim2=-1: np.diagonal(a, offset, dim1, dim2))
def diagonal(make: Make) -> Iterator[Any]:
    yield make(3, 3)
    for offset, (dim1, dim2) in itertools.product((0, 1, -1), ((-2, -1), (0, 2), (2, 1))):
        yield make(2, 3, 4), {"offset": offset, "dim1": dim1, "dim2": dim2}


@samples("linalg_matrix_power", "matrix_power", reference=np.linalg.matrix_power, **OPTIONS)
def matrix_power(make: Make) -> Iterator[Any]:
    for n in (0, 1, 2, 3, 5, -1, -2):
        yield well(make, 3, 3), n
    yield well(make, 2, 3, 3), 3
    yield make(0, 0), 2


@samples("linalg_vander", reference=lambda x, N=None: x[..., None] ** np.arange(N or x.shape[-1]),
         dtypes=("int64", *DTYPES), tolerances=NEAR)  # fmt: skip
def vander(make: Make) -> Iterator[Any]:
    yield make(3, low=-2, high=3)
    for shape, n in itertools.product(((3,), (2, 3), (0, 2), (1,)), (2, 4)):
        yield make(*shape, low=-2, high=3), {"N": n}


@samples("linalg_multi_dot", reference=np.linalg.multi_dot, **OPTIONS)
def multi_dot(make: Make) -> Iterator[Any]:
    yield [make(2, 3), make(3, 4)]
    yield [make(2, 3), make(3, 1), make(1, 4), make(4, 2)]
    yield [make(3), make(3, 2), make(2)]
    yield [make(3), make(3, 2)]
    yield [make(2, 3), make(3)]
    yield [make(4, 2), make(2, 0), make(0, 3)]
    yield [make(5, 1), make(1, 6), make(6, 2), make(2, 3), make(3)]


@samples("chain_matmul", reference=lambda m: np.linalg.multi_dot(m) if len(m) > 1 else m[0], **OPTIONS)
def chain_matmul(make: Make) -> Iterator[Any]:
    yield [make(2, 3), make(3, 4), make(4, 1)]
    yield [make(2, 3)]


@samples("linalg_tensorinv", reference=np.linalg.tensorinv, **OPTIONS)
def tensorinv(make: Make) -> Iterator[Any]:
    whole = well(make, 6, 6).values
    yield make.own(whole.reshape(2, 3, 6))
    yield make.own(whole.reshape(6, 3, 2)), 1


@samples("linalg_tensorsolve", reference=np.linalg.tensorsolve, **OPTIONS)
def tensorsolve(make: Make) -> Iterator[Any]:
    yield make.own(well(make, 6, 6).values.reshape(2, 3, 6)), make(2, 3)
    yield make.own(well(make, 6, 6).values.reshape(6, 3, 2)), make(6)
    yield make.own(well(make, 6, 6).values.reshape(2, 6, 3)), make(2, 3), [1]
    yield make.own(well(make, 4, 4).values.reshape(2, 2, 4)), make(2, 2)
