"""Operands whose dimensions lie in any order, in rows of a few elements: copies and pointwise calls against NumPy, and
lines of one element against what they say."""

from __future__ import annotations

import random
from collections.abc import Iterator
from math import prod

import numpy as np
import pytest

import tensorpy as tp

SIZES = (1, 2, 3, 4, 5, 8, 16, 17, 33, 64, 130)
DTYPES = ("float32", "uint8", "int16", "float64", "complex64", "complex128")
MOST = 150_000  # elements


def shape_of(draw: random.Random) -> list[int]:
    while True:
        sizes = [draw.choice(SIZES) for _ in range(draw.randint(2, 5))]
        if 1000 <= prod(sizes) <= MOST:
            return sizes


def permuted(draw: random.Random, rng: np.random.Generator, dtype: str) -> tuple[tp.Tensor, np.ndarray]:
    """A tensor and an array of the same numbers and layout, in some cases with gaps."""
    given = rng.integers(0, 11, shape_of(draw)).astype(dtype)
    order = draw.sample(range(given.ndim), given.ndim)
    t, array = tp.tensor(given).permute(order), given.transpose(order)
    dim = draw.randrange(given.ndim)
    if draw.random() < 0.3 and array.shape[dim] > 1:
        cut = (slice(None),) * dim + (slice(draw.choice((0, 1)), None, 2),)
        t, array = t[cut], array[cut]
    return t, array


def drawn(
    dtype: str, seed: int, count: int
) -> Iterator[tuple[random.Random, np.random.Generator, tp.Tensor, np.ndarray]]:
    draw, rng = random.Random(f"{dtype} {seed}"), np.random.default_rng(seed)
    for _ in range(count):
        yield draw, rng, *permuted(draw, rng, dtype)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("dtype", DTYPES)
def test_copies(dtype: str, seed: int) -> None:
    for draw, _, t, array in drawn(dtype, seed, 12):
        assert np.array_equal(t.contiguous().numpy(), array), (t.shape, t.stride())
        order = draw.sample(range(t.dim()), t.dim())
        back = [order.index(d) for d in range(t.dim())]
        out = tp.empty([array.shape[d] for d in order], dtype=t.dtype).permute(back)
        assert np.array_equal(out.copy_(t).numpy(), array), (t.shape, t.stride(), out.stride())
        joined = tp.cat([t, t[..., :1]], -1)
        assert np.array_equal(joined.numpy(), np.concatenate([array, array[..., :1]], -1)), (t.shape, t.stride())


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("dtype", DTYPES)
def test_pointwise(dtype: str, seed: int) -> None:
    """With a contiguous operand, one that is broadcast over any dimension, and one of another dtype."""
    for draw, rng, t, array in drawn(dtype, seed, 8):
        beside = rng.integers(0, 11, array.shape).astype(dtype)
        spread = beside.max(draw.randrange(array.ndim), keepdims=True)
        what = (t.shape, t.stride(), spread.shape)
        assert np.array_equal((t + tp.tensor(beside)).numpy(), array + beside), what
        assert np.array_equal((t * tp.tensor(spread)).numpy(), array * spread), what
        assert np.array_equal(tp.addcmul(tp.tensor(spread), t, tp.tensor(beside)).numpy(), spread + array * beside), (
            what
        )
        assert np.array_equal(tp.tensor(beside).mul_(t).numpy(), beside * array), what
        short = (t.to(tp.complex64) if t.is_complex() else t.to(tp.bfloat16)) + tp.tensor(beside)
        assert np.array_equal((short if short.is_complex() else short.double()).numpy(), array + beside), what


@pytest.mark.parametrize("dtype", (tp.float32, tp.bfloat16, tp.int64, tp.uint8))
@pytest.mark.parametrize(("shape", "dim"), [((300, 1), 1), ((1, 300), 0), ((20, 1, 30), 1), ((20, 30, 1), -1)])
def test_lines_of_one(shape: tuple[int, ...], dim: int, dtype: tp.dtype) -> None:
    """Along a dimension of one element everything is what it was, at place 0."""
    given = (tp.randn(*shape) * 9).to(dtype)
    for x in (given, given.transpose(0, -1).contiguous().transpose(0, -1), tp.stack([given, given], -1)[..., 1]):
        one, flat = x.contiguous(), x.squeeze(dim)
        zeros = tp.zeros(shape, dtype=tp.int64)
        for name in ("cumsum", "cumprod"):
            assert getattr(tp, name)(x, dim, dtype=dtype).equal(one), name
        for name in ("cummax", "cummin", "sort"):
            values, places = getattr(tp, name)(x, dim)
            assert values.equal(one) and places.equal(zeros), name
        for name in ("max", "min", "median", "mode"):
            values, places = getattr(tp, name)(x, dim)
            assert values.equal(flat) and places.equal(zeros.squeeze(dim)), name
            assert getattr(tp, name)(x, dim, keepdim=True)[0].equal(one), name
        for values, places in (tp.kthvalue(x, 1, dim, keepdim=True), tp.topk(x, 1, dim)):
            assert values.equal(one) and places.equal(zeros)
        assert tp.argmax(x, dim).equal(zeros.squeeze(dim)) and tp.argmin(x, dim, keepdim=True).equal(zeros)
        assert tp.gather(x, dim, zeros).equal(one) and tp.index_select(x, dim, tp.tensor([0])).equal(one)
        assert tp.scatter(tp.zeros_like(x), dim, zeros, x).equal(one)
        assert tp.scatter_add(x, dim, zeros, x).equal(x + x)


@pytest.mark.parametrize("name", ("gather", "scatter", "scatter_add", "index_add"))
@pytest.mark.parametrize(
    ("shape", "dim"), [((4000, 2), 1), ((2, 4000), 0), ((3, 900, 4), 2), ((40, 3, 50, 1), 1), ((1, 70, 60, 1), 1)]
)
def test_short_lines_of_places(name: str, shape: tuple[int, ...], dim: int) -> None:
    rng = np.random.default_rng(3)
    x, source = rng.integers(-50, 50, shape), rng.integers(-50, 50, shape)
    at = np.argsort(rng.random(shape), dim) if name == "scatter" else rng.integers(0, shape[dim], shape)
    expected = x.copy()
    if name == "index_add":
        line = rng.integers(0, shape[dim], shape[dim])
        at = np.broadcast_to(line.reshape([-1 if d == dim else 1 for d in range(x.ndim)]), shape)
    if name == "gather":
        expected = np.take_along_axis(x, at, dim)
    elif name == "scatter":
        np.put_along_axis(expected, at, source, dim)
    else:
        places = list(np.indices(shape))
        places[dim] = at
        np.add.at(expected, tuple(places), source)
    for threads in (1, 2):
        before = tp.get_num_threads()
        tp.set_num_threads(threads)
        try:
            index = tp.tensor(line) if name == "index_add" else tp.tensor(np.ascontiguousarray(at))
            args = (index,) if name == "gather" else (index, tp.tensor(source))
            for t in (tp.tensor(x), tp.tensor(x).transpose(0, -1).contiguous().transpose(0, -1)):
                assert np.array_equal(getattr(tp, name)(t, dim, *args).numpy(), expected)
        finally:
            tp.set_num_threads(before)
