"""Groups that read slices and expanded tensors where they lie: the bits of the calls one by one."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

import tensorpy as tp
from tensorpy.testing.checks import bits

Function = Callable[..., Any]
DTYPES = [tp.float32, tp.float64, tp.bfloat16, tp.int16, tp.uint8, tp.complex64]
# Lines that are shorter and longer than a block, that end where blocks do and elsewhere.
LENGTHS = [16, 17, 100, 128, 130, 512, 513, 3000]


def compiled(f: Function) -> Any:
    return tp.compile(f, options={"smallest": 0})


def numbers(*sizes: int, dtype: tp.dtype = tp.float32) -> tp.Tensor:
    return tp.randn(sizes, generator=tp.Generator().manual_seed(len(sizes))).mul(3).to(dtype)


def check(f: Function, *x: tp.Tensor, groups: int | None = 1) -> None:
    for threads in (1, 2):
        tp.set_num_threads(threads)
        for ours, theirs in zip(compiled(f)(*x), f(*x), strict=True):
            assert bits(ours) == bits(theirs) and ours.stride() == theirs.stride() and ours.dtype == theirs.dtype
    if groups is not None:
        assert len(tp.compiler.explain(compiled(f))(*x).groups) == groups


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_halves_of_rows(length: int, dtype: tp.dtype) -> None:
    def gated(x: tp.Tensor) -> Any:
        a, b = x.chunk(2, -1)
        return (a * b + a) * 2, b - a

    check(gated, numbers(40, 2 * length, dtype=dtype))


@pytest.mark.parametrize(("first", "second"), [*itertools.combinations(LENGTHS, 2)])
def test_lines_of_two_lengths(first: int, second: int) -> None:
    """One slice has lines of `first` elements, the other of `first` times `second`, as an expanded one has."""

    def f(a: tp.Tensor, b: tp.Tensor, c: tp.Tensor) -> Any:
        return ((a[:, :, 1:] + b[:, 1:, :]) * c,)

    a, b = numbers(3, second, first + 1), numbers(3, second + 1, first)
    check(f, a, b, numbers(3, 1, first).expand(3, second, first))


def test_what_is_expanded_and_sliced() -> None:
    def f(x: tp.Tensor, y: tp.Tensor) -> Any:
        return ((x.expand(6, 30, 40)[:, 3:, 2:] + y[:, :, None].expand(6, 27, 38)) * 2,)

    check(f, numbers(30, 40), numbers(6, 54)[:, ::2])


def test_copies_among_them() -> None:
    def f(x: tp.Tensor) -> Any:
        a, b, c = x.chunk(3, -1)
        return a.contiguous() + b, c.to(tp.float64) * 2, a.to(tp.bfloat16) + 1

    check(f, numbers(64, 300), groups=None)
    expanded = numbers(64, 1).expand(64, 100)
    check(lambda x: (x[:, 20:].contiguous() + 1, x[:, :30].to(tp.float64) * 2), expanded, groups=None)


@pytest.mark.parametrize("length", [20, 130, 5000])
def test_into_reductions(length: int) -> None:
    def f(x: tp.Tensor) -> Any:
        a, b = x.chunk(2, -1)
        return (a * b).sum(), (a - b).mean(0), (a + b).sum(1)

    check(f, numbers(50, 2 * length), groups=None)


def test_a_slice_of_what_is_written() -> None:
    def f(x: tp.Tensor) -> Any:
        y = x * 2
        y[:, :100].add_(1)
        z = y[:, :100] + y[:, 100:]
        y.mul_(3)
        return z * y[:, 50:150], y

    check(f, numbers(30, 200), groups=None)


def test_gradients() -> None:
    def f(x: tp.Tensor) -> Any:
        a, b, c = x.chunk(3, 1)
        y = a.sigmoid() * b.tanh() + c
        return y, *tp.autograd.grad(y.sum(), x)

    check(f, numbers(40, 384).requires_grad_(), groups=None)


def test_lines_that_are_too_short_are_read_by_the_call_itself() -> None:
    def f(x: tp.Tensor) -> Any:
        a, b = x.chunk(2, -1)
        return (a * b + a,)

    check(f, numbers(3000, 10), groups=0)


def test_a_memory_that_is_read_by_other_sizes_than_it_is_written() -> None:
    """The group has the sizes of what it writes."""

    def function(x: tp.Tensor, z: tp.Tensor) -> tp.Tensor:
        y = z + x
        x.view(1, -1).mul_(z)
        return y * tp.mul(x, z, out=z.view(-1).view(1, 40)) + z

    given = [tp.arange(40.0), tp.full((1, 40), 2.0)]
    other = [g.clone() for g in given]
    assert tp.compile(function, options={"smallest": 0})(*given).equal(function(*other))
    number = [tp.tensor(2.0), tp.tensor([3.0])]
    made = tp.compile(lambda x, y: tp.mul(y + x, 2, out=x.view(1)) * y, options={"smallest": 0})(*number)
    assert made.tolist() == [30.0] and number[0].item() == 10.0


def test_replayed() -> None:
    def f(x: tp.Tensor) -> tp.Tensor:
        a, b = x.chunk(2, -1)
        return (a * b + a).exp()

    fast = tp.compile(f, mode="reduce-overhead")
    x = numbers(300, 600)
    for _ in range(6):
        assert bits(fast(x)) == bits(f(x))
    assert fast._replays()["replayed"] > 0
