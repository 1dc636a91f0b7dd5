"""Calls of arithmetic on one value, which stays in registers: the bits of the calls one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tensorpy as tp
from tensorpy.testing.checks import bits

Function = Callable[..., Any]
# Short ones are no chains; vectors, groups of eight and blocks of 512 elements end within the others or with them.
SIZES = [1, 255, 256, 257, 319, 512, 520, 1027, 70000]


def kept(a: tp.Tensor, b: tp.Tensor) -> Any:
    first = a * b
    second = first + a
    third = second / b
    return first, third - second, second


def in_place(a: tp.Tensor, b: tp.Tensor) -> Any:
    a.mul_(0.9).add_(b * 0.1)
    b.mul_(0.99).add_(a * a * 0.01)
    return a.sub_(b / ((b * 3).abs().sqrt() + 1e-8) * 1e-3)


def later(a: tp.Tensor, b: tp.Tensor) -> Any:
    """Values that are read after other calls, which write what was read before."""
    first, other = a * b, (b + 1).tanh()
    b.mul_(0.5).add_(a)
    second = first / 3 - a
    a.sub_(b * first)
    return (second * other + first) * b, other - a


# Each with a value that the next call takes: at the left, at the right, at both sides, and again later.
CHAINS: dict[str, Function] = {
    "left": lambda a, b: ((a + b) * a - b) / a + 0.5,
    "right": lambda a, b: 2 - (b / (1 - (a - b))),
    "itself": lambda a, b: (lambda x: (lambda y: y + y)(x * x))(a - b),
    "powers": lambda a, b: ((a - b) ** 2 * a) ** 2 + b,
    "roots": lambda a, b: (((a * a).sqrt() + 1e-3).reciprocal() * -b).neg().square(),
    "alphas": lambda a, b: tp.sub(tp.add(a, b, alpha=0.3), a * b, alpha=-2) * 0.1,
    "of_three": lambda a, b: tp.addcmul(a * 2, b, a, value=0.7) - tp.addcdiv(b, a, b + 30, value=-1.5),
    "numbers": lambda a, b: 1 / (3 - (7 * (a + 1e-9) - 2) * 1e9) * b,
    "others_between": lambda a, b: (a * b + a).exp() * 0.25 + (a * b - b).tanh() - b,
    "truths": lambda a, b: (a * b + a - b) > 0,
    "halves": lambda a, b: ((a * b).bfloat16() + 1).float() * a - b,
    "folded": lambda a, b: ((a - b) * 2 + a).sum(),
    "folded_squares": lambda a, b: ((a - b) ** 2).mean(),
    "folded_and_kept": lambda a, b: (lambda x: (x, x.amax()))((a * b + a) * 0.5),
    "kept": kept,
    "later": later,
    "in_place": in_place,
}


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = tp.get_num_threads()
    yield
    tp.set_num_threads(before)


def numbers(*sizes: int, seed: int, dtype: tp.dtype = tp.float32) -> tp.Tensor:
    made = tp.randn(sizes, generator=tp.Generator().manual_seed(seed)).mul(3)
    special = tp.tensor([0.0, -0.0, float("inf"), float("-inf"), 1e-42, -1e38]).roll(seed)
    made.view(-1)[3::37][:6] = special[: made.view(-1)[3::37][:6].numel()]
    return made.to(dtype)


def without_signs_of_nans(t: tp.Tensor) -> bytes:
    return bits(t.where(~t.isnan(), tp.nan) if t.dtype.is_floating_point else t)


def check(f: Function, *x: tp.Tensor) -> None:
    given, again = ([t.clone() for t in x] for _ in range(2))
    made, wanted = tp.compile(f, options={"smallest": 0})(*given), f(*again)
    made, wanted = (r if isinstance(r, tuple) else (r,) for r in (made, wanted))
    for a, b in zip((*made, *given), (*wanted, *again), strict=True):
        assert a.dtype == b.dtype and a.stride() == b.stride()
        assert without_signs_of_nans(a) == without_signs_of_nans(b)


CASES = [(name, dtype) for name in CHAINS for dtype in (tp.float32, tp.float64, tp.bfloat16)]
CASES += [(name, dtype) for name in ("left", "right", "itself", "powers", "kept") for dtype in (tp.int32, tp.complex64)]


@pytest.mark.parametrize(("name", "dtype"), CASES, ids=str)
def test_bits(name: str, dtype: tp.dtype) -> None:
    for size in SIZES:
        for count in (1, 2):
            tp.set_num_threads(count)
            check(CHAINS[name], *(numbers(size, seed=s, dtype=dtype) for s in (1, 2)))


@pytest.mark.parametrize("shape", [(300,), (7, 300), (5, 3, 128), (1, 1000), (4, 33)], ids=str)
def test_rows_and_columns(shape: tuple[int, ...]) -> None:
    x = numbers(9, *shape, seed=3)
    column = numbers(9, *[1] * len(shape), seed=5)
    for row in (numbers(*shape, seed=4), numbers(shape[-1], seed=6), numbers(1, seed=7), tp.tensor(0.5)):
        check(lambda x, r, c: ((x - c) * r + r) * c - x, x, row, column)
        check(lambda x, r, c: c / (r - (r * c + x)), x, row, column)


def test_slices() -> None:
    wide, narrow = numbers(40, 400, seed=8), numbers(20, 380, seed=9)
    check(lambda w, n: (w[::2, 10:390] * n + w[1::2, :380]) * 0.5 - n, wide, narrow)
    check(lambda w, n: (n * w[3, :380] - w[:20, 0].unsqueeze(1)) * n, wide, narrow)


def test_long_chains() -> None:
    """More links than a group's chains may have."""

    def f(a: tp.Tensor, b: tp.Tensor) -> tp.Tensor:
        for k in range(60):
            a = tp.addcmul(a, a, b, value=1e-3) * 0.99 - k
        return a

    check(f, numbers(1000, seed=1), numbers(1000, seed=2))


def test_gradients() -> None:
    def f(a: tp.Tensor, b: tp.Tensor) -> tp.Tensor:
        (((a * b + a) / (b * b + 1) - b) * a).sum().backward()
        assert a.grad is not None and b.grad is not None
        return tp.stack([a.grad, b.grad])

    x = [tp.randn(3000, generator=tp.Generator().manual_seed(s)) for s in (1, 2)]
    made, wanted = (g(*(t.clone().requires_grad_() for t in x)) for g in (tp.compile(f, options={"smallest": 0}), f))
    assert bits(made) == bits(wanted)
