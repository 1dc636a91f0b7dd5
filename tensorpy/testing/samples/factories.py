"""Samples of operators that make tensors: from sizes, numbers or in the likeness of another tensor."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .table import ARITHMETIC, FLOATS, LEAF_OF, LEAVES, Make, round_to, samples

SIZES = ((2, 3), (), (0, 3), (3, 0, 2), (4,), (2, 1, 3), (5, 5))


def numpy_dtype(dtype: str | None) -> Any:
    return np.float64 if dtype is None or dtype == "bfloat16" else np.dtype(dtype)


# ---- by size ----


@samples("zeros", reference=lambda size, dtype=None: np.zeros(size, numpy_dtype(dtype)))
@samples("ones", reference=lambda size, dtype=None: np.ones(size, numpy_dtype(dtype)))
@samples("empty.memory_format", unset=True)
def by_size(make: Make) -> Iterator[Any]:
    for size in SIZES:
        yield size, {"dtype": make.given}
    yield [3, 2], {"dtype": make.given}


@samples("full", reference=lambda size, value, dtype=None: np.full(size, value, numpy_dtype(dtype)))
def full(make: Make) -> Iterator[Any]:
    for size, value in itertools.product(SIZES, (1, True)):
        yield size, value, {"dtype": make.given}
    if make.leaf == "float":
        yield (2, 2), 0.5, {"dtype": make.given}
        yield (2, 2), float("nan"), {"dtype": make.given}
        yield (2,), -float("inf"), {"dtype": make.given}


@samples("scalar_tensor", reference=lambda value, dtype=None: np.array(value, numpy_dtype(dtype)))
def scalar_tensor(make: Make) -> Iterator[Any]:
    for value in (0, 1, True, 7):
        yield value, {"dtype": make.given}


@samples("empty_strided", unset=True)
def empty_strided(make: Make) -> Iterator[Any]:
    for size, stride in (
        ((2, 3), (3, 1)), ((2, 3), (1, 2)), ((2, 3), (8, 2)), ((), ()), ((0, 3), (3, 1)), ((3, 3), (0, 1)),
    ):  # fmt: skip
        yield size, stride, {"dtype": make.given}


@samples("empty_permuted", unset=True)
def empty_permuted(make: Make) -> Iterator[Any]:
    for size in ((), (3,), (2, 3), (2, 3, 4), (0, 2, 3), (2, 1, 3, 2)):
        for order in itertools.permutations(range(len(size))):
            yield size, order, {"dtype": make.given}


# ---- in the likeness ----


@samples("zeros_like", reference=lambda x, dtype=None: np.zeros_like(x, numpy_dtype(dtype) if dtype else None))
@samples("ones_like", reference=lambda x, dtype=None: np.ones_like(x, numpy_dtype(dtype) if dtype else None))
@samples("empty_like", unset=True)
def like(make: Make) -> Iterator[Any]:
    for size in SIZES:
        yield (make(size),)
    yield make(2, 3), {"dtype": make.given}
    yield make(2, 3, dtype="int32"), {"dtype": make.given}


@samples("full_like", reference=lambda x, value, dtype=None: np.full_like(x, value, dtype and numpy_dtype(dtype)))
def full_like(make: Make) -> Iterator[Any]:
    for size in SIZES:
        yield make(size), 1
    yield make(2, 3), True
    yield make(2, 3, dtype="int32"), 7, {"dtype": make.given}


@samples("new_zeros", reference=lambda x, size, dtype=None: np.zeros(size, dtype and numpy_dtype(dtype)))
@samples("new_ones", reference=lambda x, size, dtype=None: np.ones(size, dtype and numpy_dtype(dtype)))
@samples("new_empty", unset=True)
def new(make: Make) -> Iterator[Any]:
    for size in SIZES:
        yield make(2), size
    yield make(0), (2, 3), {"dtype": make.given}
    yield make(2, dtype="int32"), [2, 3], {"dtype": make.given}


@samples("new_full", reference=lambda x, size, value, dtype=None: np.full(size, value))
def new_full(make: Make) -> Iterator[Any]:
    for size in SIZES:
        yield make(2), size, 1
    yield make(2, dtype="int32"), (2, 3), 1, {"dtype": make.given}


@samples("new_empty_strided", unset=True)
def new_empty_strided(make: Make) -> Iterator[Any]:
    for size, stride in (
        ((2, 3), (3, 1)), ((2, 3), (1, 2)), ((2, 3), (8, 2)), ((), ()), ((0, 3), (3, 1)), ((3, 3), (0, 1)),
        ((4,), (3,)),
    ):  # fmt: skip
        yield make(2), size, stride


# ---- sequences ----


def _arange(*bounds: Any, dtype: str) -> np.ndarray:
    """Integers take whole bounds and steps; all but int64 count the numbers between the bounds as given."""
    start, end, step = ((0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1))[:3]
    if LEAF_OF[dtype] not in ("uint", "sint"):
        return np.arange(start, end, step, dtype=np.float64)
    if dtype == "int64":
        start, end, step = int(start), int(end), int(step)
    return int(start) + int(step) * np.arange(max(0, math.ceil((end - start) / step)))


RANGED = tuple(d for d in ARITHMETIC if d not in LEAVES["complex"])


@samples("arange", reference=_arange, dtypes=RANGED)
def arange(make: Make) -> Iterator[Any]:
    for end in (0, 1, 5, 100, 5.5, 0.25, 6.0):
        yield end, {"dtype": make.given}


@samples("arange.start", reference=_arange, dtypes=RANGED)
def arange_start(make: Make) -> Iterator[Any]:
    for start, end in ((0, 3), (2, 2), (1, 6), (0.5, 3.25), (1, 4.5), (1.5, 4), (3, 120)):
        yield start, end, {"dtype": make.given}
    if make.leaf != "uint":
        yield -5, 2, {"dtype": make.given}
        yield -2.5, 2.5, {"dtype": make.given}


@samples("arange.start_step", reference=_arange, dtypes=RANGED)
def arange_step(make: Make) -> Iterator[Any]:
    for start, end, step in ((0, 7, 2), (0, 1, 3), (5, 0, -1), (9, 1, -3), (4, 4, 1), (4, 4, -1), (1, 100, 7)):
        yield start, end, step, {"dtype": make.given}
    if make.leaf == "float":
        for start, end, step in ((0, 1, 0.25), (-1, 1, 0.5), (2.0, -1.0, -0.75), (0.5, 0.5, 0.5)):
            yield start, end, step, {"dtype": make.given}


def _truncated(values: np.ndarray, dtype: str) -> np.ndarray:
    return round_to(values, dtype) if LEAF_OF[dtype] in ("uint", "sint") else values


def _linspace(start: Any, end: Any, steps: int, dtype: str) -> np.ndarray:
    whole = LEAF_OF[dtype] in ("uint", "sint")
    start, end = (int(v) if whole else np.asarray(v)[()] for v in (start, end))
    return _truncated(np.linspace(start, end, steps), dtype)


def _logspace(start: Any, end: Any, steps: int, base: float = 10.0, dtype: str = "") -> np.ndarray:
    return np.power(base, np.linspace(np.asarray(start), np.asarray(end), steps))


def _kinds(make: Make, start: float, end: float, kind: str) -> tuple[Any, Any]:
    """Bounds as numbers or as tensors without dimensions; of an operator without a kind both are numbers."""
    first, _, second = (kind or "Scalar_Scalar").partition("_")
    return tuple(make.array(v, "float64") if k == "Tensor" else v for v, k in ((start, first), (end, second)))  # type: ignore[return-value]


def _spaced(kind: str) -> Callable[[Make], Iterator[Any]]:
    def generate(make: Make) -> Iterator[Any]:
        starts, ends = ((-2, 0, 1, 1.5, 4), (-3, 0, 2.25, 5)) if make.leaf != "sint" else ((-2, 0, 3), (-6, 2, 9))
        for start, end, steps in itertools.product(starts, ends, (0, 1, 4, 50)):
            yield *_kinds(make, start, end, kind), steps, {"dtype": make.given}

    return generate


def _log_spaced(kind: str) -> Callable[[Make], Iterator[Any]]:
    def generate(make: Make) -> Iterator[Any]:
        bounds = (-2, 0, 1, 1.5, 3), (-1, 0, 0.75, 2, 4)
        for start, end, steps, base in itertools.product(*bounds, (0, 1, 2, 5, 9), (2.0, 1.0, 10.0)):
            yield *_kinds(make, start, end, kind), steps, base, {"dtype": make.given}
        yield *_kinds(make, 0, 2, kind), 3, {"dtype": make.given}

    return generate


for _kind in ("", "Tensor_Tensor", "Tensor_Scalar", "Scalar_Tensor"):
    _dot = f".{_kind}" if _kind else ""
    samples(f"linspace{_dot}", reference=_linspace, dtypes=(*FLOATS, "int64"), gradcheck=False)(_spaced(_kind))
    samples(f"logspace{_dot}", reference=_logspace, dtypes=FLOATS, gradcheck=False,
            tolerances={"float32": (1e-5, 1e-6), "float16": (4e-3, 1e-3)})(_log_spaced(_kind))  # fmt: skip


# ---- matrices ----


@samples("eye", reference=lambda n, dtype: np.eye(n))
def eye(make: Make) -> Iterator[Any]:
    for n in (*range(8), 11, 20):
        yield n, {"dtype": make.given}


@samples("eye.m", reference=lambda n, m, dtype: np.eye(n, m))
def eye_m(make: Make) -> Iterator[Any]:
    for n, m in itertools.product((0, 1, 2, 3, 4, 5, 6, 7, 10), repeat=2):
        yield n, m, {"dtype": make.given}


def _triangle(of: Callable[..., Any]) -> Callable[..., Any]:
    return lambda row, col, offset=0, dtype="": np.stack(of(row, offset, col))


@samples("tril_indices", reference=_triangle(np.tril_indices), dtypes=("int32", "int64"))
@samples("triu_indices", reference=_triangle(np.triu_indices), dtypes=("int32", "int64"))
def triangle(make: Make) -> Iterator[Any]:
    for row, col in ((3, 4), (4, 3), (1, 1), (0, 3), (3, 0)):
        yield row, col, {"dtype": make.given}
        for offset in (0, 1, -1, 7, -7):
            yield row, col, offset, {"dtype": make.given}


@samples("vander", reference=lambda x, N=None, increasing=False: np.vander(x, N, increasing), dtypes=ARITHMETIC)
def vander(make: Make) -> Iterator[Any]:
    x = make(4, low=-2, high=3)
    for options in ({}, {"N": 3}, {"N": 0}, {"increasing": True}, {"N": 5, "increasing": True}):
        yield x, options
