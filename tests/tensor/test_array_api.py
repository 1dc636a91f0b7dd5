"""tensorpy.array_api beside NumPy's own namespace, which follows the same standard: values, dtypes and shapes.

Arguments are drawn; each function of the standard has a row that says of what kind they are, and a function without a
row fails.
"""

from __future__ import annotations

import inspect
import itertools
import math
import operator
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorpy as tp
import tensorpy.array_api as xp

DTYPES = {name: getattr(np, name) for name in xp.__array_namespace_info__().dtypes() if name != "bool"} | {
    "bool": np.bool_
}
BOOL, SIGNED, UNSIGNED = ["bool"], ["int8", "int16", "int32", "int64"], ["uint8", "uint16", "uint32", "uint64"]
REAL, COMPLEX = ["float32", "float64"], ["complex64", "complex128"]
INTEGERS, FLOATS = SIGNED + UNSIGNED, REAL + COMPLEX
NUMERIC, ORDERED = INTEGERS + FLOATS, INTEGERS + REAL

UNARY = {
    "abs": NUMERIC, "acos": FLOATS, "acosh": FLOATS, "asin": FLOATS, "asinh": FLOATS, "atan": FLOATS, "atanh": FLOATS,
    "bitwise_invert": BOOL + INTEGERS, "ceil": ORDERED, "conj": NUMERIC, "cos": FLOATS, "cosh": FLOATS, "exp": FLOATS,
    "expm1": FLOATS, "floor": ORDERED, "imag": COMPLEX, "isfinite": NUMERIC, "isinf": NUMERIC, "isnan": NUMERIC,
    "log": FLOATS, "log10": FLOATS, "log1p": FLOATS, "log2": FLOATS, "logical_not": BOOL, "negative": NUMERIC,
    "positive": NUMERIC, "real": FLOATS, "reciprocal": FLOATS, "round": NUMERIC, "sign": NUMERIC, "signbit": REAL,
    "sin": FLOATS, "sinh": FLOATS, "sqrt": FLOATS, "square": NUMERIC, "tan": FLOATS, "tanh": FLOATS, "trunc": ORDERED,
}  # fmt: skip
BINARY = {
    "add": NUMERIC, "atan2": REAL, "bitwise_and": BOOL + INTEGERS, "bitwise_left_shift": INTEGERS,
    "bitwise_or": BOOL + INTEGERS, "bitwise_right_shift": INTEGERS, "bitwise_xor": BOOL + INTEGERS, "copysign": REAL,
    "divide": FLOATS, "equal": BOOL + NUMERIC, "floor_divide": ORDERED, "greater": ORDERED, "greater_equal": ORDERED,
    "hypot": REAL, "less": ORDERED, "less_equal": ORDERED, "logaddexp": REAL, "logical_and": BOOL, "logical_or": BOOL,
    "logical_xor": BOOL, "maximum": ORDERED, "minimum": ORDERED, "multiply": NUMERIC, "nextafter": REAL,
    "not_equal": BOOL + NUMERIC, "pow": NUMERIC, "remainder": ORDERED, "subtract": NUMERIC,
}  # fmt: skip
REDUCED = {
    "all": BOOL + NUMERIC, "any": BOOL + NUMERIC, "count_nonzero": BOOL + NUMERIC, "max": ORDERED, "mean": FLOATS,
    "min": ORDERED, "prod": NUMERIC, "std": REAL, "sum": NUMERIC, "var": REAL,
}  # fmt: skip
# Functions whose calls are written out below.
WRITTEN = set(
    """
    ArrayNamespaceInfo __array_namespace_info__ arange argmax argmin argsort asarray astype broadcast_arrays
    broadcast_shapes broadcast_to can_cast clip concat cumulative_prod cumulative_sum diff empty empty_like
    expand_dims eye finfo flip from_dlpack full full_like iinfo isdtype isin linspace matmul matrix_transpose
    meshgrid moveaxis nonzero ones ones_like permute_dims repeat reshape result_type roll searchsorted sort squeeze
    stack take take_along_axis tensordot tile tril triu unique_all unique_counts unique_inverse unique_values
    unstack vecdot where zeros zeros_like
    """.split()
)


def numbers(dtype: str, size: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, size).astype(bool)
    if dtype in UNSIGNED:
        return rng.integers(0, 9, size).astype(dtype)
    if dtype in SIGNED:
        return rng.integers(-8, 9, size).astype(dtype)
    drawn = rng.standard_normal(size) * 3
    if dtype in COMPLEX:
        return (drawn + 1j * rng.standard_normal(size)).astype(dtype)
    drawn[rng.random(size) < 0.1] = rng.choice([np.inf, -np.inf, np.nan, 0.0, -0.0])
    return drawn.astype(dtype)


def drawn(dtype: str, shape: tuple[int, ...], seed: int) -> tuple[np.ndarray, tp.Tensor]:
    array = numbers(dtype, math.prod(shape), seed).reshape(shape)
    return array, tp.asarray(array.copy())


def same(ours: Any, theirs: Any, what: object, rtol: float = 0.0) -> None:
    if isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs), what
        for one, other in zip(ours, theirs, strict=True):
            same(one, other, what, rtol)
        return
    theirs = np.asarray(theirs)
    assert isinstance(ours, tp.Tensor), what
    assert str(ours.dtype) == f"tensorpy.{theirs.dtype.name}", (what, ours.dtype, theirs.dtype)
    assert tuple(ours.shape) == theirs.shape, (what, ours.shape, theirs.shape)
    loose = 2e-6 if theirs.dtype.name in ("float32", "complex64") else 1e-13
    np.testing.assert_allclose(
        ours.resolve_conj().numpy(), theirs, rtol=max(rtol, loose), atol=max(rtol, loose), err_msg=str(what)
    )


def kinds(dtypes: list[str]) -> list[list[str]]:
    """The dtypes by what promotes among itself."""
    groups = [[d for d in dtypes if d in kind] for kind in (BOOL, INTEGERS, FLOATS)]
    return [group for group in groups if group]


shapes = st.lists(st.integers(0, 3), max_size=3).map(tuple)
seeds = st.integers(0, 10**6)


def test_every_function_of_the_standard_is_called_here() -> None:
    functions = {name for name in xp.__all__ if callable(getattr(xp, name)) and not name.endswith("Result")}
    assert functions == {*UNARY, *BINARY, *REDUCED, *WRITTEN}
    text = Path(__file__).read_text()
    assert {name for name in WRITTEN if f"{name}(" not in text} == {"ArrayNamespaceInfo"}


@pytest.mark.parametrize("name", UNARY)
@settings(max_examples=30, deadline=None)
@given(data=st.data(), shape=shapes, seed=seeds)
def test_functions_of_one_array(name: str, data: st.DataObject, shape: tuple[int, ...], seed: int) -> None:
    dtype = data.draw(st.sampled_from(UNARY[name]))
    array, tensor = drawn(dtype, shape, seed)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(array)
    if dtype in INTEGERS and name in ("ceil", "floor", "round", "trunc"):
        expected = expected.astype(array.dtype)
    same(getattr(xp, name)(tensor), expected, (name, array), rtol=2e-5)


@pytest.mark.parametrize("name", BINARY)
@settings(max_examples=40, deadline=None)
@given(data=st.data(), shape=shapes, seed=seeds)
def test_functions_of_two_arrays(name: str, data: st.DataObject, shape: tuple[int, ...], seed: int) -> None:
    """With arrays of two dtypes and without dimensions, and numbers in place of one."""
    group = data.draw(st.sampled_from(kinds(BINARY[name])))
    first, second = data.draw(st.sampled_from(group)), data.draw(st.sampled_from(group))
    if "uint64" in (first, second) and {first, second} & set(SIGNED):
        with pytest.raises(TypeError, match="no common dtype"):
            getattr(xp, name)(drawn(first, shape, seed)[1], drawn(second, shape, seed)[1])
        return
    (a, x), (b, y) = drawn(first, shape, seed), drawn(second, data.draw(st.sampled_from([shape, ()])), seed + 1)
    if name in ("bitwise_left_shift", "bitwise_right_shift", "pow") and second in INTEGERS:
        b = np.abs(b) % 5
        y = tp.asarray(b)
    if name in ("floor_divide", "remainder") and second in INTEGERS:
        b = np.where(b == 0, np.asarray(3, b.dtype), b)
        y = tp.asarray(b)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(a, b)
        if name in ("floor_divide", "remainder"):  # NumPy's answers at infinity are left open by the standard
            expected = np.where(np.isfinite(a) & np.isfinite(b) & (b != 0), expected, expected.dtype.type(1))
    ours = getattr(xp, name)(x, y)
    if name in ("floor_divide", "remainder"):
        ours = tp.where(x.isfinite() & y.isfinite() & (y != 0), ours, tp.ones_like(ours))
    same(ours, expected, (name, a, b), rtol=2e-5)
    if first == second and b.ndim == 0:
        with np.errstate(all="ignore"):
            scalar = b.item()
            assert str(getattr(xp, name)(x, scalar).dtype) == f"tensorpy.{getattr(np, name)(a, scalar).dtype.name}"


@pytest.mark.parametrize("name", REDUCED)
@settings(max_examples=40, deadline=None)
@given(data=st.data(), shape=st.lists(st.integers(1, 3), max_size=3).map(tuple), seed=seeds, keepdims=st.booleans())
def test_reductions(name: str, data: st.DataObject, shape: tuple[int, ...], seed: int, keepdims: bool) -> None:
    dtype = data.draw(st.sampled_from(REDUCED[name]))
    array, tensor = drawn(dtype, shape, seed)
    axes = st.sets(st.integers(0, len(shape) - 1)).map(tuple) if shape else st.just(())
    axis = data.draw(st.one_of(st.none(), axes, st.integers(-len(shape), len(shape) - 1) if shape else st.none()))
    with np.errstate(all="ignore"):
        if name == "count_nonzero":
            expected = np.sum(array != 0, axis=axis, keepdims=keepdims, dtype=np.int64)
        else:
            expected = getattr(np, name)(array, axis=axis, keepdims=keepdims)
    same(getattr(xp, name)(tensor, axis=axis, keepdims=keepdims), expected, (name, array, axis), rtol=1e-4)


def test_promotion_is_numpys() -> None:
    """Of every pair of dtypes of one kind, arrays without dimensions among them."""
    for first, second in itertools.product(DTYPES, repeat=2):
        if not any(first in kind and second in kind for kind in (BOOL, INTEGERS, FLOATS)):
            continue
        if "uint64" in (first, second) and {first, second} & set(SIGNED):
            with pytest.raises(TypeError, match="no common dtype"):
                xp.result_type(getattr(xp, first), getattr(xp, second))
            assert not xp.can_cast(getattr(xp, first), getattr(xp, second))
            continue
        expected = np.result_type(DTYPES[first], DTYPES[second]).name
        assert str(xp.result_type(getattr(xp, first), xp.ones((), dtype=getattr(xp, second)))) == f"tensorpy.{expected}"
        assert xp.can_cast(getattr(xp, first), getattr(xp, second)) == (expected == second)
    assert xp.result_type(xp.int8, 5, xp.ones(1, dtype=xp.int8)) == xp.int8
    assert xp.result_type(xp.float32, 1j) == xp.complex64
    with pytest.raises(ValueError, match="at least one array"):
        xp.result_type(1, 2.0)


pytest.importorskip("numpy", "2.1", reason="NumPy's own namespace follows the standard since then")

Call = Callable[[Any, Any], Any]
A = np.arange(24.0).reshape(2, 3, 4)
S = np.asarray([[3, 1, 2, 1], [0, 5, 5, 4]])
Z = np.asarray([[1 + 2j, 1 - 2j, complex(0.0, 1), 1 + 2j], [complex(-0.0, 1), 5, -5, 1 - 2j]])
CALLS: dict[str, Call] = {
    "arange": lambda n, f: (
        n.arange(5),
        n.arange(1, 2, 0.25, dtype=n.float32),
        n.arange(5, 0, -2),
        n.arange(5, 0),
        n.arange(0, 5, -1),
    ),
    "linspace": lambda n, f: (
        n.linspace(0, 1, 5, dtype=n.float64),
        n.linspace(0, 1, 4, endpoint=False, dtype=n.float64),
    ),
    "eye": lambda n, f: (n.eye(3, dtype=n.float32), n.eye(2, 3, k=1, dtype=n.int8), n.eye(2, 3, k=-5, dtype=n.int8)),
    "full": lambda n, f: (n.full(2, 3), n.full((2, 1), 1.5, dtype=n.float32), n.full((), True)),
    "zeros": lambda n, f: (n.zeros(2, dtype=n.float32), n.ones((2, 0), dtype=n.int8), n.zeros_like(f(S))),
    "ones_like": lambda n, f: (n.ones_like(f(A), dtype=n.int8), n.full_like(f(S), 4)),
    "tril": lambda n, f: (n.tril(f(A)), n.triu(f(A), k=1), n.tril(f(S), k=-1)),
    "meshgrid": lambda n, f: (*n.meshgrid(f(S)[0], f(S)[1]), *n.meshgrid(f(S)[0], f(S)[1], indexing="ij")),
    "astype": lambda n, f: (n.astype(f(A), n.int32), n.astype(f(S), n.bool)),
    "broadcast_to": lambda n, f: (n.broadcast_to(f(A), (2, 2, 3, 4)), *n.broadcast_arrays(f(A), f(S)[0])),
    "concat": lambda n, f: (n.concat([f(S), f(S)]), n.concat([f(A), f(S)], axis=None), n.concat((f(S), f(S)), axis=-1)),
    "stack": lambda n, f: (n.stack([f(S), f(S)], axis=1), *n.unstack(f(A), axis=2)),
    "expand_dims": lambda n, f: (n.expand_dims(f(S), axis=0), n.expand_dims(f(S), axis=(0, -1))),
    "squeeze": lambda n, f: (n.squeeze(f(A)[:1], axis=0), n.squeeze(f(A)[:1, :1], axis=(0, 1))),
    "flip": lambda n, f: (n.flip(f(A)), n.flip(f(A), axis=1), n.flip(f(A), axis=(0, -1))),
    "moveaxis": lambda n, f: (
        n.moveaxis(f(A), 0, 2),
        n.moveaxis(f(A), (0, 1), (2, 0)),
        n.permute_dims(f(A), (2, 0, 1)),
    ),
    "matrix_transpose": lambda n, f: n.matrix_transpose(f(A)),
    "reshape": lambda n, f: (
        n.reshape(f(A), (4, -1)),
        n.reshape(f(A), (6, 4), copy=True),
        n.reshape(f(A), (24,), copy=False),
    ),
    "roll": lambda n, f: (
        n.roll(f(A), 5),
        n.roll(f(A), (1, -2), axis=(0, 2)),
        n.roll(f(S), 1, axis=0),
        n.roll(f(A), -1, axis=(2, 0)),
    ),
    "repeat": lambda n, f: (n.repeat(f(S), 2), n.repeat(f(S), f(np.asarray([2, 0])), axis=0), n.tile(f(S), (2, 1, 2))),
    "take": lambda n, f: (n.take(f(A), f(np.asarray([1, 0])), axis=1), n.take(f(S)[0], f(np.asarray([0, -1])))),
    "take_along_axis": lambda n, f: n.take_along_axis(f(S), f(np.asarray([[0], [-1]])), axis=1),
    "diff": lambda n, f: (n.diff(f(S)), n.diff(f(A), n=2, axis=0), n.diff(f(S), axis=0, prepend=f(S)[:1])),
    "argmax": lambda n, f: (
        n.argmax(f(S)),
        n.argmin(f(S), axis=1),
        n.argmax(f(S), keepdims=True),
        n.argmin(f(S), axis=0, keepdims=True),
    ),
    "nonzero": lambda n, f: n.nonzero(f(S)),
    "searchsorted": lambda n, f: (n.searchsorted(f(A)[0, 0], f(S)), n.searchsorted(f(A)[0, 0], f(S), side="right")),
    "where": lambda n, f: (n.where(f(S) > 2, f(S), 0), n.where(f(S) > 2, f(S), f(S)[0])),
    "isin": lambda n, f: (
        n.isin(f(S), f(np.asarray([1, 5]))),
        n.isin(f(S), f(np.asarray([[3], [2]])), invert=True),
        n.isin(f(A + 1j), f(np.asarray([2 + 1j, 3.0]))),
        n.isin(f(S > 2), f(np.asarray([True]))),
        n.isin(f(np.asarray([np.nan, 1.0])), f(np.asarray([np.nan]))),
        n.isin(f(S), 5),
        n.isin(5, f(S)),
    ),
    "sort": lambda n, f: (n.sort(f(S)), n.sort(f(S), axis=0)),
    "argsort": lambda n, f: n.argsort(f(S), stable=True),
    "unique_all": lambda n, f: (
        tuple(n.unique_all(f(S))),
        tuple(n.unique_counts(f(S))),
        tuple(n.unique_inverse(f(S))),
        n.sort(n.unique_values(f(S))),
    ),
    "unique of complex numbers": lambda n, f: (
        *n.unique_all(f(Z))[1:],
        *n.unique_counts(f(Z)),
        *n.unique_inverse(f(Z)),
        n.sort(n.real(n.unique_values(f(Z)))),
        n.unique_values(f(Z[:0])),
    ),
    "cumulative_sum": lambda n, f: (
        n.cumulative_sum(f(S), axis=1),
        n.cumulative_sum(f(S)[0], include_initial=True),
        n.cumulative_prod(f(S), axis=0),
    ),
    "clip": lambda n, f: (n.clip(f(S), 1, 3), n.clip(f(S), f(S)[0], None), n.clip(f(A), max=2.5)),
    "matmul": lambda n, f: (
        n.matmul(f(A), f(A)[0].T),
        n.matmul(f(S)[0], f(S)[1]),
        n.tensordot(f(A), f(A), axes=([2], [2])),
    ),
    "vecdot": lambda n, f: (n.vecdot(f(A), f(A)), n.vecdot(f(A + 1j * A[::-1]), f(A)), n.vecdot(f(S), f(S), axis=0)),
    "asarray": lambda n, f: (n.asarray([[1, 2], [3, 4]]), n.asarray(f(S), dtype=n.float32), n.asarray(True)),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_beside_numpy(name: str) -> None:
    same(CALLS[name](xp, lambda a: tp.asarray(a.copy())), CALLS[name](np, lambda a: a.copy()), name)


SQUARE = np.asarray([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]])
LINALG: dict[str, Call] = {
    "cholesky": lambda n, f: n.linalg.cholesky(f(SQUARE)),
    "cross": lambda n, f: n.linalg.cross(f(A)[:, :, 0], f(SQUARE)[0]),
    "det": lambda n, f: (n.linalg.det(f(SQUARE)), tuple(n.linalg.slogdet(f(SQUARE)))),
    "diagonal": lambda n, f: (
        n.linalg.diagonal(f(A)),
        n.linalg.diagonal(f(A), offset=1),
        n.linalg.trace(f(S[:, :2].astype(np.int8))),
    ),
    "eig": lambda n, f: (
        n.sort(n.real(n.linalg.eigvals(f(SQUARE + np.eye(3, k=1))))),
        n.sort(n.real(n.linalg.eig(f(SQUARE)).eigenvalues)),
    ),
    "eigh": lambda n, f: (n.linalg.eigh(f(SQUARE)).eigenvalues, n.linalg.eigvalsh(f(SQUARE))),
    "inv": lambda n, f: (n.linalg.inv(f(SQUARE)), n.linalg.pinv(f(A)), n.linalg.matrix_power(f(SQUARE), -2)),
    "matrix_norm": lambda n, f: (
        n.linalg.matrix_norm(f(A)),
        n.linalg.matrix_norm(f(A), ord="nuc", keepdims=True),
        n.linalg.matrix_norm(f(A), ord=-2),
    ),
    "vector_norm": lambda n, f: (
        n.linalg.vector_norm(f(A)),
        n.linalg.vector_norm(f(A), axis=(0, 1), ord=3),
        n.linalg.vector_norm(f(A), keepdims=True),
    ),
    "matrix_rank": lambda n, f: (n.linalg.matrix_rank(f(A)), n.linalg.outer(f(S)[0], f(S)[1])),
    "qr": lambda n, f: (abs(n.linalg.qr(f(A)).R), n.linalg.svdvals(f(A)), n.linalg.svd(f(A), full_matrices=False).S),
    "solve": lambda n, f: (
        n.linalg.solve(f(SQUARE), f(SQUARE)[0]),
        n.linalg.solve(f(np.stack([SQUARE] * 3)), f(SQUARE)),
    ),
    "fft": lambda n, f: (
        n.fft.fft(f(A)),
        n.fft.ifft(f(A), n=3, axis=0),
        n.fft.rfft(f(A), norm="ortho"),
        n.fft.irfft(f(A) + 0j),
        n.fft.hfft(f(A) + 0j),
        n.fft.ihfft(f(A)),
    ),
    "fftn": lambda n, f: (
        n.fft.fftn(f(A)),
        n.fft.ifftn(f(A), axes=(0, 1)),
        n.fft.rfftn(f(A), s=(3, 2), axes=(1, 2)),
        n.fft.irfftn(f(A) + 0j, axes=(1, 2)),
    ),
    "fftshift": lambda n, f: (
        n.fft.fftshift(f(A)),
        n.fft.ifftshift(f(S), axes=1),
        n.astype(n.fft.fftfreq(5, d=0.5), n.float32),
        n.astype(n.fft.rfftfreq(4), n.float32),
    ),
}


@pytest.mark.parametrize("name", LINALG)
def test_extensions_beside_numpy(name: str) -> None:
    same(LINALG[name](xp, lambda a: tp.asarray(a.copy())), LINALG[name](np, lambda a: a.copy()), name, rtol=1e-10)


def test_eigenvectors_are_of_the_eigenvalues() -> None:
    for dtype in (xp.float32, xp.float64, xp.complex64, xp.complex128):
        x = xp.astype(xp.asarray([[[0.0, 1.0], [-2.0, 3.0]], [[0.0, -1.0], [1.0, 0.0]]]), dtype)
        values, vectors = xp.linalg.eig(x)
        assert values.dtype == vectors.dtype == xp.result_type(dtype, xp.complex64)
        assert xp.linalg.eig(x)._fields == ("eigenvalues", "eigenvectors")
        np.testing.assert_allclose(
            (xp.astype(x, values.dtype) @ vectors).numpy(), (vectors * values[:, None]).numpy(), atol=1e-5
        )
        np.testing.assert_allclose(np.sort(xp.linalg.eigvals(x).numpy()), np.sort(values.numpy()), atol=1e-5)


def test_sorts_from_the_largest() -> None:
    x = tp.asarray(S)
    same(xp.sort(x, descending=True), np.flip(np.sort(S), axis=1), "sort")
    assert xp.argsort(tp.tensor([1, 2, 1, 2]), descending=True).tolist() == [1, 3, 0, 2]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_indices_are_integers_of_any_dtype(dtype: str) -> None:
    """uint8 too, which PyTorch's indexing takes for a mask."""
    places = np.asarray([1, 0, 1], dtype) if dtype in UNSIGNED else np.asarray([1, -1, -2], dtype)
    order = np.asarray([2, 0, 1], dtype)
    x, values = tp.asarray(A.copy()), np.asarray([5.0, 9.0, 1.0])
    same(xp.take(x, tp.asarray(places), axis=1), np.take(A, places.astype(int), axis=1), dtype)
    along = np.broadcast_to(places[None, :, None], (2, 3, 1)).copy()
    same(xp.take_along_axis(x, tp.asarray(along), axis=2), np.take_along_axis(A, along.astype(int), axis=2), dtype)
    same(xp.repeat(x, tp.asarray(order), axis=1), np.repeat(A, order.astype(int), axis=1), dtype)
    found = xp.searchsorted(tp.asarray(values), tp.asarray([2.0, 6.0]), sorter=tp.asarray(order))
    assert found.tolist() == [1, 2]


def test_zeros_of_a_remainder_have_the_sign_of_the_divisor() -> None:
    """And each other remainder is Python's."""
    numbers = [0.0, -0.0, 1.0, -1.0, 3.5, -3.5, math.inf, -math.inf]
    for dtype, a, b in itertools.product((xp.float32, xp.float64), numbers, numbers):
        ours = xp.remainder(xp.asarray([a], dtype=dtype), xp.asarray([b], dtype=dtype)).item()
        expected = math.nan if b == 0 or math.isinf(a) else a % b
        assert str(ours) == str(expected), (a, b)
    assert xp.remainder(xp.asarray([-7, 7]), 7).tolist() == [0, 0]


@pytest.mark.parametrize("dtype", [xp.complex64, xp.complex128], ids=str)
def test_signs_of_special_complex_numbers(dtype: tp.dtype) -> None:
    """A zero of whatever signs has +0, what is partly NaN is wholly so."""
    for a, b in itertools.product((0.0, -0.0), repeat=2):
        assert str(xp.sign(xp.asarray(complex(a, b), dtype=dtype)).item()) == "0j"
    for a, b in ((math.nan, 1.0), (-0.0, math.nan), (math.inf, math.nan), (math.nan, math.nan)):
        assert str(xp.sign(xp.asarray(complex(a, b), dtype=dtype)).item()) == "(nan+nanj)"
    assert str(xp.sign(xp.asarray([-0.0, 2.0, math.nan])).tolist()) == "[0.0, 1.0, nan]"


POSITIONAL = inspect.Parameter.POSITIONAL_ONLY
# Parameters with a default that may stand without their names.
FREE = {"stop", "step", "n_cols", "min", "max"}


def test_signatures_are_the_standards() -> None:
    """Arrays are positional only, options go by name only; functions of one and two arrays have nothing else."""
    for space in (xp, xp.linalg, xp.fft):
        for name in space.__all__:
            function = getattr(space, name)
            if not inspect.isfunction(function):
                continue
            parameters = inspect.signature(function).parameters.values()
            if name in UNARY:
                assert [(p.name, p.kind) for p in parameters] == [("x", POSITIONAL)], name
            if name in BINARY:
                assert [(p.name, p.kind) for p in parameters] == [("x1", POSITIONAL), ("x2", POSITIONAL)], name
            for p in parameters:
                assert p.name not in ("x", "x1", "x2", "arrays") or p.kind in (POSITIONAL, p.VAR_POSITIONAL), name
                assert p.default is p.empty or p.name in FREE or p.kind == p.KEYWORD_ONLY, (name, p.name)
    for tensor in (tp.Tensor, tp.ones(1)):
        bound = tensor is not tp.Tensor
        assert list(inspect.signature(tensor.__array_namespace__).parameters) == ["self", "api_version"][bound:]
        assert list(inspect.signature(tensor.to_device).parameters) == ["self", "device", "stream"][bound:]


def test_the_array_has_the_standards_methods() -> None:
    two = "add and floordiv lshift matmul mod mul or pow rshift sub truediv xor".split()
    names = [f"__{how}{name}__" for name in two for how in ("", "r", "i") if (how, name) != ("i", "matmul")]
    names += [
        f"__{name}__" for name in "abs bool complex dlpack dlpack_device eq float ge getitem gt index int".split()
    ]
    names += [f"__{name}__" for name in "invert le lt ne neg pos setitem array_namespace".split()]
    assert [
        name
        for name in [*names, *"dtype device mT ndim shape size T to_device".split()]
        if not hasattr(tp.Tensor, name)
    ] == []
    x = xp.asarray([[1, 2], [3, 4]])
    assert operator.imatmul(x, x).tolist() == [[7, 10], [15, 22]]


def test_kinds_that_are_mixed() -> None:
    """The standard leaves them open: each pair has an answer, and an operation of them no other dtype."""
    for first, second in itertools.product(DTYPES, repeat=2):
        a, b = getattr(xp, first), getattr(xp, second)
        if "uint64" in (first, second) and {first, second} & set(SIGNED):
            continue
        common = xp.result_type(a, b)
        assert (
            common in (a, b)
            or (xp.isdtype(common, "integral") and xp.isdtype(a, "integral"))
            or (common == xp.complex128 and {a, b} == {xp.float64, xp.complex64})
        )
        assert xp.can_cast(a, b) == (common == b)
        assert xp.equal(xp.ones(2, dtype=a), xp.ones((), dtype=b)).tolist() == [True, True]
    assert xp.astype(xp.asarray([0j, 1j, 2.0, complex(math.nan, 0)]), xp.bool).tolist() == [False, True, True, True]


def test_what_is_computed_is_a_new_array() -> None:
    for x in (xp.asarray([1, 2]), xp.asarray([1.0, 2.0]), xp.asarray([1j, 2.0])):
        for name in UNARY:
            if str(x.dtype).partition(".")[2] in UNARY[name] and name not in ("real", "imag"):
                assert getattr(xp, name)(x).data_ptr() != x.data_ptr(), name
    conjugated = xp.conj(xp.asarray([1j, 2.0]))
    np.testing.assert_array_equal(np.from_dlpack(conjugated), [-1j, 2.0])


def test_memory_is_shared_as_it_is_said() -> None:
    x = xp.arange(4)
    assert xp.asarray(x) is x and xp.asarray(x, copy=True).data_ptr() != x.data_ptr()
    assert xp.reshape(x, (2, 2), copy=False).data_ptr() == x.data_ptr()
    assert xp.reshape(x, (2, 2), copy=True).data_ptr() != x.data_ptr()
    with pytest.raises(ValueError, match="copy=False"):
        xp.reshape(xp.reshape(x, (2, 2)).T, (4,), copy=False)
    assert xp.astype(x, xp.int64, copy=False) is x and xp.astype(x, xp.int64).data_ptr() != x.data_ptr()
    array = np.arange(3.0)
    assert xp.from_dlpack(array).data_ptr() == array.ctypes.data
    assert xp.from_dlpack(array, copy=True).data_ptr() != array.ctypes.data
    assert xp.empty_like(x, dtype=xp.int8).dtype == xp.int8 and xp.empty((2, 3)).shape == (2, 3)
    for whole in (xp.ceil, xp.floor, xp.round, xp.trunc):
        assert whole(x).data_ptr() != x.data_ptr()


def test_the_namespace_of_a_tensor() -> None:
    x = tp.ones(2, 2)
    assert x.__array_namespace__() is xp and x.__array_namespace__(api_version="2023.12") is xp
    assert x.to_device("cpu").device == x.device
    with pytest.raises(ValueError, match="no array API 1999"):
        x.__array_namespace__(api_version="1999.12")
    with pytest.raises(ValueError, match="stream"):
        x.to_device("cpu", stream=1)
    assert x.__array_namespace__(api_version="2025.12").__array_api_version__ == "2025.12"
    info = xp.__array_namespace_info__()
    assert isinstance(info.devices(), tuple)
    assert isinstance(info, xp.ArrayNamespaceInfo) and info.default_device() in info.devices()
    assert set(info.default_dtypes()) == {"real floating", "complex floating", "integral", "indexing"}
    assert set(info.dtypes(kind=("signed integer", "bool"))) == {*SIGNED, "bool"}
    assert info.capabilities()["max dimensions"] == 64
    with pytest.raises(ValueError, match="no kind"):
        info.dtypes(kind="integer")
    assert xp.finfo(x).smallest_normal == np.finfo(np.float32).smallest_normal and xp.iinfo(xp.int8).max == 127
    for dtype, real in ((xp.float64, xp.float64), (xp.complex64, xp.float32)):
        assert xp.finfo(dtype).dtype is real and xp.finfo(xp.ones(1, dtype=dtype)) == xp.finfo(real)
        limits = np.finfo(str(real).partition(".")[2])
        assert xp.finfo(dtype)[:5] == (limits.bits, limits.eps, limits.max, limits.min, limits.smallest_normal)
    assert all(xp.iinfo(getattr(xp, name)).dtype is getattr(xp, name) for name in INTEGERS)
    assert xp.isdtype(xp.int8, "integral") and not xp.isdtype(xp.float32, ("bool", xp.float64))
    with pytest.raises(ValueError, match="no kind"):
        xp.isdtype(xp.int8, "integer")


ERRORS: dict[str, tuple[type[Exception], Callable[[], object]]] = {
    "squeeze": (ValueError, lambda: xp.squeeze(tp.ones(2, 1), 0)),
    "expand_dims": (IndexError, lambda: xp.expand_dims(tp.ones(2), 3)),
    "expand_dims twice": (ValueError, lambda: xp.expand_dims(tp.ones(2), (0, 0))),
    "matrix_transpose": (ValueError, lambda: xp.matrix_transpose(tp.ones(2))),
    "matmul": (ValueError, lambda: xp.matmul(tp.ones(()), tp.ones(2))),
    "nonzero": (ValueError, lambda: xp.nonzero(tp.ones(()))),
    "take": (ValueError, lambda: xp.take(tp.ones(2, 2), tp.tensor([0]))),
    "take out of range": (IndexError, lambda: xp.take(tp.ones(2), tp.tensor([2]))),
    "cumulative_sum": (ValueError, lambda: xp.cumulative_sum(tp.ones(2, 2))),
    "arange": (ValueError, lambda: xp.arange(0, 5, 0)),
    "meshgrid": (ValueError, lambda: xp.meshgrid(tp.ones(2), indexing="yx")),
    "searchsorted": (ValueError, lambda: xp.searchsorted(tp.ones(2), tp.ones(2), side="middle")),
    "vecdot": (ValueError, lambda: xp.vecdot(tp.ones(2), tp.ones(3))),
    "cross": (ValueError, lambda: xp.linalg.cross(tp.ones(2), tp.ones(2))),
    "astype": (TypeError, lambda: xp.astype(tp.ones(2, dtype=tp.complex64), tp.float32)),
    "from_dlpack of a list": (AttributeError, lambda: xp.from_dlpack([1])),
    "numbers alone": (TypeError, lambda: xp.add(1, 2)),
    "from_dlpack": (ValueError, lambda: xp.from_dlpack(tp.ones(2), device="meta", copy=False)),
}


@pytest.mark.parametrize("name", ERRORS)
def test_bad_arguments(name: str) -> None:
    kind, call = ERRORS[name]
    with pytest.raises(kind):
        call()


def test_shapes_broadcast() -> None:
    assert xp.broadcast_shapes() == () and xp.broadcast_shapes((2, 1), (1, 0), (0,)) == (2, 0)
    with pytest.raises(ValueError, match="must match"):
        xp.broadcast_shapes((2,), (3,))


def test_gradients_pass_through() -> None:
    x = tp.tensor([1.0, 2.0], requires_grad=True)
    xp.sum(xp.multiply(xp.clip(x, max=1.5), x)).backward()
    assert x.grad is not None and x.grad.tolist() == [2.0, 1.5]


SCIPY = """
import numpy as np, tensorpy as tp
from scipy import fft, integrate, signal, stats
from scipy.special import logsumexp

x = np.random.default_rng(0).random((20, 3))
t = tp.asarray(x.copy())
calls = {
    "logsumexp": lambda a: logsumexp(a, axis=0),
    "fft": lambda a: fft.rfft(a, axis=0),
    "zscore": stats.zscore,
    "skew": stats.skew,
    "ttest": lambda a: stats.ttest_1samp(a, 0.5).statistic,
    "pearsonr": lambda a: stats.pearsonr(a[:, 0], a[:, 1]).statistic,
    "detrend": lambda a: signal.detrend(a, axis=0),
    "trapezoid": lambda a: integrate.trapezoid(a, axis=0),
}
for name, call in calls.items():
    ours, theirs = call(t), call(x)
    assert isinstance(ours, tp.Tensor), name
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-12, atol=1e-12, err_msg=name)
print(len(calls), "functions")
"""


def test_scipy_computes_with_tensors() -> None:
    pytest.importorskip("scipy", "1.15")
    done = subprocess.run(
        [sys.executable, "-c", SCIPY], env=os.environ | {"SCIPY_ARRAY_API": "1"}, capture_output=True, text=True
    )
    assert done.stdout == "8 functions\n", done.stderr
