"""Orders against NumPy: stable, NaN last, every dtype."""

from __future__ import annotations

import numpy as np
import pytest
from programs import LESSER, on_lesser_cpu

import tensorpy as tp

rng = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int8", "uint8", "bool"])
@pytest.mark.parametrize("dim", [0, 1])
def test_sort(dtype, dim):
    x = rng.integers(0, 50, (7, 90)).astype(dtype)
    t = tp.tensor(x.tolist(), dtype=getattr(tp, dtype))
    values, indices = tp.sort(t, dim=dim, stable=True)
    np.testing.assert_array_equal(np.asarray(values), np.sort(x, dim))
    np.testing.assert_array_equal(np.asarray(indices), np.argsort(x, dim, kind="stable"))
    down = np.asarray(tp.sort(t, dim, descending=True)[0])
    np.testing.assert_array_equal(down, np.flip(np.sort(x, dim), dim))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint32", "int16", "int64"])
@pytest.mark.parametrize("n", [1, 2, 15, 24, 25, 48, 49, 64, 65, 255, 257, 1000, 70001])
@pytest.mark.parametrize("descending", [False, True])
def test_places_of_lines(dtype, n, descending):
    """Short and long lines go different ways: stably among equals, NaN, zeros of both signs, and the extremes."""
    x = (rng.standard_normal((3, n)) * 20).astype(dtype)
    x[1] = (
        rng.standard_normal(n).astype(dtype) if dtype.startswith("f") else rng.integers(0, 2**31 - 1, n).astype(dtype)
    )
    if dtype.startswith("f"):
        x[0, ::7], x[0, 1::7], x[2, ::5], x[2, 3::11], x[2, 4::13] = 0.0, -0.0, np.nan, np.inf, -np.inf
        keys = np.where(np.isnan(x), np.inf, x)  # NaN behind infinity: lexsort's last key counts first
        order = [np.lexsort((k, np.isnan(row))) for k, row in zip(keys, x, strict=True)]
        if descending:
            order = [np.lexsort((-k, ~np.isnan(row))) for k, row in zip(keys, x, strict=True)]
    else:
        info = np.iinfo(dtype)
        x[0, ::7], x[0, 1::7] = info.min, info.max
        order = [np.argsort([-int(v) for v in row] if descending else row, kind="stable") for row in x]
    values, places = tp.sort(tp.from_numpy(x), dim=1, descending=descending)
    np.testing.assert_array_equal(places.numpy(), order)
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, np.array(order), 1))
    np.testing.assert_array_equal(np.signbit(values.numpy()), np.signbit(np.take_along_axis(x, np.array(order), 1)))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint32", "uint64", "int8", "bool"])
@pytest.mark.parametrize("n", [1, 2, 16, 63, 64, 65, 256, 257, 1024, 1025, 5000])
@pytest.mark.parametrize("lines", [1, 7, 8, 33])
def test_many_lines(dtype, n, lines):
    """Lines that lie side by side, whole rows of them and the rest; values alone, places alone, and both."""
    x = (rng.standard_normal((lines, n)) * 40).astype(np.int64 if dtype.startswith("u") else dtype).astype(dtype)
    if dtype.startswith("f"):
        x[:, ::5], x[:, 1::9], x[:, 2::31], x[:, 3::37] = -0.0, 0.0, np.nan, -np.inf
    t = tp.from_numpy(x)
    values, places = tp.sort(t, dim=1, stable=True)
    np.testing.assert_array_equal(places.numpy(), np.argsort(x, 1, kind="stable"))
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, places.numpy(), 1))
    np.testing.assert_array_equal(tp.argsort(t, 1).numpy(), places.numpy())
    alone = tp.msort(t.T).T
    np.testing.assert_array_equal(alone.numpy(), np.sort(x, 1))
    if dtype.startswith("f"):
        assert (alone.signbit() & (alone == 0)).sum(1).tolist() == (np.signbit(x) & (x == 0)).sum(1).tolist()


ORDERS = {
    "in order": lambda n: np.arange(n),
    "from the end": lambda n: np.arange(n)[::-1],
    "equal": lambda n: np.full(n, 7),
    "two": lambda n: np.arange(n) % 2,
    "the largest": lambda n: np.full(n, 2**31 - 1),
    "largest and smallest": lambda n: np.where(np.arange(n) % 3, 2**31 - 1, -(2**31)),
    "up and down": lambda n: np.minimum(np.arange(n), n - np.arange(n)),
    "saw": lambda n: np.arange(n) % 17,
    "smallest in each sample": lambda n: np.where(np.arange(n) % max(n // 16, 1) == max(n // 32, 0), 0, np.arange(n)),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", ["int32", "float32", "int64"])
def test_lines_in_some_order(order, dtype):
    """Values alone and with places, of lengths around blocks and parts: no order makes a pivot useless."""
    for n in (100, 127, 128, 129, 255, 256, 257, 272, 511, 1000, 4097, 20000):
        x = ORDERS[order](n).astype(dtype)
        values, places = tp.sort(tp.from_numpy(x.copy()), stable=True)
        np.testing.assert_array_equal(places.numpy(), np.argsort(x, kind="stable"))
        np.testing.assert_array_equal(values.numpy(), np.sort(x))
        np.testing.assert_array_equal(tp.msort(tp.from_numpy(x.copy())).numpy(), np.sort(x))


WIDE = {
    "few that differ below": lambda n: (np.int64(1) << 61) * (np.arange(n) % 3 - 1) + rng.permutation(n) // 3,
    "many that differ below": lambda n: (np.int64(1) << 62) * (np.arange(n) % 2) + rng.permutation(n) % 500,
    "the whole range": lambda n: rng.integers(-(2**63), 2**63 - 1, n),
    "with both ends": lambda n: np.where(np.arange(n) % 5, rng.integers(0, 9, n), np.iinfo(np.int64).min),
    "floats of many sizes": lambda n: rng.standard_normal(n) * 10.0 ** rng.integers(-300, 300, n),
    "floats beside each other": lambda n: np.where(np.arange(n) % 9, 1 + rng.integers(0, 40, n) * 2.0**-52, -1e300),
}


@pytest.mark.parametrize("kind", WIDE)
@pytest.mark.parametrize("n", [2, 20, 33, 100, 300, 5000])
@pytest.mark.parametrize("descending", [False, True])
def test_wide_keys_of_lines(kind, n, descending):
    """64 bits do not fit beside a place: keys that are equal as far as they fit come in order too."""
    x = np.stack([WIDE[kind](n) for _ in range(40 if n < 100 else 2)])
    values, places = tp.sort(tp.from_numpy(x.copy()), dim=-1, descending=descending, stable=True)
    turned = n - 1 - np.argsort(x[:, ::-1], -1, kind="stable")[:, ::-1]
    wanted = turned if descending else np.argsort(x, -1, kind="stable")
    np.testing.assert_array_equal(places.numpy(), wanted)
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, wanted, -1))


@pytest.mark.parametrize("capability", LESSER)
def test_on_lesser_cpus(capability):
    on_lesser_cpu(capability, __file__, "lines and not lesser")


def test_msort_has_the_gradient_of_sort():
    x = rng.standard_normal((40, 3))
    weights = tp.from_numpy(rng.standard_normal((40, 3)))
    a, b = (tp.tensor(x, requires_grad=True) for _ in range(2))
    (tp.msort(a) * weights).sum().backward()
    (tp.sort(b, 0).values * weights).sum().backward()
    assert tp.equal(a.grad, b.grad)


def test_nan_is_greatest():
    t = tp.tensor([1.0, float("nan"), -0.0, 0.0, float("-inf")])
    assert tp.argsort(t, stable=True).tolist() == [4, 2, 3, 0, 1]
    assert tp.topk(t, 2)[1].tolist() == [1, 0]


def test_selection_and_gradient():
    t = tp.tensor([3.0, 1.0, 2.0], requires_grad=True)
    assert tp.kthvalue(t, 2)[0].item() == 2.0
    t.topk(2)[0].sum().backward()
    assert t.grad.tolist() == [1.0, 0.0, 1.0]
    with pytest.raises(RuntimeError, match="out of range"):
        t.topk(4)


def test_unique_and_search():
    x = rng.integers(0, 9, 40)
    values, inverse, counts = tp._C._unique2(tp.tensor(x.tolist()), True, True, True)
    for got, expected in zip(
        (values, inverse, counts), np.unique(x, return_inverse=True, return_counts=True), strict=True
    ):
        np.testing.assert_array_equal(np.asarray(got), expected)
    s = np.sort(x)
    for right in (False, True):
        found = tp.searchsorted(tp.tensor(s.tolist()), tp.tensor([0, 4, 9]), right=right)
        np.testing.assert_array_equal(np.asarray(found), np.searchsorted(s, [0, 4, 9], "right" if right else "left"))
    np.testing.assert_array_equal(np.asarray(tp.bincount(tp.tensor(x.tolist()))), np.bincount(x))
