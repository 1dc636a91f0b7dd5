"""Pointwise calls that are reduced as they are made: the bits of what lies in memory, in every order of dimensions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tensorpy as tp
from tensorpy.testing.checks import bits

SHAPES = [
    (70000,),
    (30, 1000),
    (1000, 30),
    (3, 20000),
    (20000, 3),
    (20, 30, 40),
    (40, 1, 300),
    (4097, 2),
    (2, 5, 3, 7, 100),
]
FLOATS = [tp.float32, tp.float64, tp.float16, tp.bfloat16]
Fold = Callable[[tp.Tensor, tuple[int, ...]], tp.Tensor]
FOLDS: dict[str, tuple[Fold, list[tp.dtype]]] = {
    "sum": (lambda v, d: v.sum(d), [*FLOATS, tp.complex64, tp.int64, tp.int32, tp.uint8]),
    "mean": (lambda v, d: v.mean(d), [*FLOATS, tp.complex64]),
    "nansum": (lambda v, d: tp.nansum(v, d), FLOATS),
    "any": (lambda v, d: (v > 7).any(d), [tp.float32, tp.bfloat16, tp.int64]),
    "all": (lambda v, d: (v > -7).all(d), [tp.float32, tp.uint8]),
    "count": (lambda v, d: v.count_nonzero(d), [tp.float32, tp.float16, tp.uint8]),
    "amax": (lambda v, d: v.amax(d), [*FLOATS, tp.int32]),
    "amin": (lambda v, d: v.amin(d), [tp.float32, tp.int64]),
    "length": (lambda v, d: tp.linalg.vector_norm(v, 2, d), [*FLOATS, tp.complex64]),
    "program": (lambda v, d: tp.linalg.vector_norm(v, 1, d), FLOATS),
}


def compiled(f: Callable[..., Any]) -> Any:
    return tp.compile(f, options={"smallest": 0})


def same_bits(f: Callable[..., tuple[tp.Tensor, ...]], *x: tp.Tensor) -> bool:
    return all(
        bits(a) == bits(b) and a.stride() == b.stride() and a.dtype == b.dtype
        for a, b in zip(compiled(f)(*x), f(*x), strict=True)
    )


@pytest.mark.parametrize("fold", FOLDS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_bits(fold: str, shape: tuple[int, ...]) -> None:
    function, dtypes = FOLDS[fold]
    dims = [d for n in range(1, len(shape) + 1) for d in itertools.combinations(range(len(shape)), n)]
    for dtype, threads in itertools.product(dtypes, (1, 2)):
        tp.set_num_threads(threads)
        a, b = (tp.randn(shape, generator=tp.Generator().manual_seed(seed)).mul(3).to(dtype) for seed in (1, 2))
        for dim in dims[:9]:
            assert same_bits(lambda a, b, dim=dim: (function(a * b + a, dim),), a, b), (dtype, dim)
            assert same_bits(lambda a, b, dim=dim: (v := a * b + a, function(v, dim)), a, b), (dtype, dim)


@pytest.fixture(autouse=True)
def threads_as_before() -> Iterator[None]:
    before = tp.get_num_threads()
    yield
    tp.set_num_threads(before)


def test_what_is_made_once() -> None:
    """A value that is written in place is read once for its element, whatever settles the reduction before the end."""

    def f(a: tp.Tensor) -> tuple[tp.Tensor, ...]:
        a = a.clone()
        a.mul_(2).add_(1)
        return a, (a > 0).any(), a.view(-1).sum(), a.amax(1)

    assert same_bits(f, tp.randn(300, 400))


def test_other_sizes() -> None:
    """What is reduced may be a view of what was made, of which a row or a column was broadcast."""
    x, row, column = tp.randn(80, 90), tp.randn(90), tp.randn(80, 1)
    for view in ((-1,), (8, 10, 90), (40, 180), (7200, 1)):
        assert same_bits(lambda x, r, c, view=view: ((x * r + c).view(view).sum(-1),), x, row, column)
        assert same_bits(lambda x, r, c, view=view: (v := x * r + c, v.view(view).amax(0)), x, row, column)


def test_one_call_is_enough() -> None:
    """A single pointwise call and its reduction run as one."""
    x, f = tp.randn(50_000), compiled(lambda x: x.exp().sum())
    assert bits(f(x)) == bits(x.exp().sum())
    assert f._report()["groups"] == 1 and f._report()["fused"] == 2


@pytest.mark.parametrize("shape", [(200, 500), (7, 20000), (20000, 7)])
def test_failing_allocations(shape: tuple[int, int]) -> None:
    """Each block that cannot be had is an error, and the next call is right."""
    x, f = tp.randn(shape), compiled(lambda x: (x * 2 + 1).sum(0))
    right, failed, reached = bits((x * 2 + 1).sum(0)), 0, True
    for n in range(200):
        tp._C._fail_allocation_after(n)
        try:
            assert bits(f(x)) == right
        except MemoryError:
            failed += 1
        finally:
            reached = not tp._C._fail_allocation_after(-1)
        if not reached:
            break
    assert not reached and failed > 5
    assert bits(f(x)) == right
