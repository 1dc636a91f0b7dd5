"""Reductions against NumPy: values, dtypes, shapes, NaN, empty and strided tensors, gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorpy as tp

SHAPES = [(), (1,), (5,), (7, 5), (3, 1, 4), (2, 3, 4, 5), (33, 70), (130, 3), (2, 5000)]
DTYPES = ["uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float32", "float64"]
PAIRS = {"sum": "sum", "prod": "prod", "amax": "max", "amin": "min", "argmax": "argmax", "argmin": "argmin"}


def sample(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape) * (3 if "int" in dtype else 1)
    return np.asarray(np.abs(x) if dtype.startswith("u") else x).astype(dtype)


def layouts(x):
    """The same values contiguous, transposed, and with steps."""
    t = tp.tensor(x)
    yield x, t
    if x.ndim >= 2:
        yield x.swapaxes(0, -1), t.transpose(0, -1)
        yield x[..., ::2], t[..., ::2]


def close(mine, theirs, rtol):
    np.testing.assert_allclose(mine.numpy(), theirs, rtol=rtol, atol=rtol)
    assert tuple(mine.shape) == np.shape(theirs)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_against_numpy(name, dtype):
    rtol = 1e-4 if dtype == "float32" else 1e-10
    kwargs = {"dtype": np.int64} if name in ("sum", "prod") and "int" in dtype else {}
    for shape in SHAPES:
        for x, t in layouts(sample(shape, dtype)):
            with np.errstate(over="ignore"):
                close(getattr(tp, name)(t), getattr(np, PAIRS[name])(x, **kwargs), rtol)
                for axis in range(-x.ndim, x.ndim):
                    for keepdim in (False, True):
                        theirs = getattr(np, PAIRS[name])(x, axis, keepdims=keepdim, **kwargs)
                        close(getattr(tp, name)(t, axis, keepdim), theirs, rtol)


@pytest.mark.parametrize("name", ["mean", "var", "std"])
def test_moments(name):
    for dtype, rtol in (("float32", 1e-5), ("float64", 1e-12), ("complex64", 1e-5), ("complex128", 1e-12)):
        for shape in SHAPES[1:]:
            whole = sample(shape, "float64", 1) + (1j * sample(shape, "float64", 2) if "complex" in dtype else 0)
            for x, t in layouts(whole.astype(dtype)):
                kwargs = {} if name == "mean" else {"correction": 0}
                close(getattr(tp, name)(t, **kwargs), getattr(np, name)(x.astype(whole.dtype)), rtol)
                for axis in range(x.ndim):
                    close(getattr(tp, name)(t, axis, **kwargs), getattr(np, name)(x.astype(whole.dtype), axis), rtol)


def test_variance_far_from_zero():
    x = np.random.default_rng(0).standard_normal(100_000).astype(np.float32) + np.float32(10_000)
    assert abs(tp.var(tp.tensor(x)).item() / x.astype(np.float64).var(ddof=1) - 1) < 1e-6


def test_pairs_of_results():
    x = sample((6, 50), "float64")
    t = tp.tensor(x)
    var, mean = tp.var_mean(t, dim=1, correction=0)
    std, _ = tp.std_mean(t, dim=1, correction=0)
    close(var, x.var(1), 1e-12)
    close(mean, x.mean(1), 1e-12)
    close(std, x.std(1), 1e-12)
    low, high = tp.aminmax(t, dim=0)
    close(low, x.min(0), 0)
    close(high, x.max(0), 0)


@pytest.mark.parametrize("name", ["max", "min"])
def test_values_and_places(name):
    for dtype in [*DTYPES, "bool"]:
        for shape in SHAPES[1:]:
            for x, t in layouts(sample(shape, dtype)):
                for axis in range(x.ndim):
                    values, indices = getattr(tp, name)(t, axis)
                    assert values.dtype == t.dtype and indices.dtype == tp.int64
                    close(values, getattr(np, name)(x, axis), 0)
                    close(indices, getattr(np, "arg" + name)(x, axis), 0)


def test_names_of_results():
    r = tp.max(tp.tensor([[1.0, 3.0], [2.0, 0.0]]), 1)
    assert r.values.tolist() == [3.0, 2.0] and r.indices.tolist() == [1, 0]
    assert tp.aminmax(tp.tensor([1.0, 2.0])).max.item() == 2.0
    assert repr(r) == "tensorpy.return_types.max(\nvalues=tensor([3., 2.]),\nindices=tensor([1, 0]))"
    values, places = tp.empty(0), tp.empty(0, dtype=tp.int64)
    r = tp.max(tp.tensor([[1.0, 3.0], [2.0, 0.0]]), 1, out=[values, places])
    assert r.values is values and r.indices is places
    pair = tp.ops.aten.var_mean.correction_out(tp.tensor([1.0, 3.0]), [0], out0=values, out1=tp.empty(0))
    assert type(pair) is tuple and pair[0] is values


@pytest.mark.parametrize("n", [3, 100, 5000, 70000])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nan_wins_and_the_first_counts(n, dtype):
    for at in (0, n // 2, n - 1):
        x = sample((n,), dtype)
        x[at::7] = np.nan
        t = tp.tensor(x)
        for name in ("argmax", "argmin"):
            assert getattr(tp, name)(t).item() == at
            assert getattr(tp, name)(t.reshape(1, n).t(), 0).item() == at
        for name in ("amax", "amin", "max", "min", "sum", "mean", "prod"):
            assert np.isnan(getattr(tp, name)(t).item())
        assert tp.nansum(t).item() == pytest.approx(np.nansum(x.astype(np.float64)), rel=1e-4, abs=1e-3)
        assert tp.nanmean(t).item() == pytest.approx(np.nanmean(x.astype(np.float64)), rel=1e-4, abs=1e-3)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int8"])
@pytest.mark.parametrize("n", [31, 255, 4095, 4097, 32768, 32801, 65535, 65537, 200003])
def test_wherever_it_lies(n, dtype):
    """The largest, the smallest, one of several and a NaN, in and around the borders of blocks, pieces and leaves."""
    places = {0, 1, n - 1, n - 2, n // 2, *(p + k for p in (64, 128, 1024, 4096, 65536) for k in (-1, 0, 1))}
    x = (sample((n,), dtype) % 100).astype(dtype)
    for place in sorted(p for p in places if p < n):
        y = x.copy()
        y[place] = 120
        y[place + 1 :: 97] = 120
        t = tp.tensor(y)
        assert (t.max().item(), t.argmax().item(), t.max(0).indices.item()) == (120, place, place)
        assert (-t.double()).argmin().item() == place
        np.testing.assert_allclose(t.sum().item(), y.sum(dtype=np.float64), rtol=1e-5)
        if dtype.startswith("float"):
            y[place] = np.nan
            t = tp.tensor(y)
            assert t.argmax().item() == t.argmin().item() == place
            assert np.isnan([t.max().item(), t.min().item(), t.amax().item(), t.sum().item()]).all()


@pytest.mark.parametrize("shape", [(1000, 100), (100, 1000), (37, 3), (3, 37), (5, 1500), (1500, 5), (700, 1)])
def test_what_is_converted_first(shape):
    """Bools, and sums of other dtypes, go through a block in which several short rows or runs lie."""
    x = np.random.default_rng(0).integers(0, 5, shape)
    small, odd = tp.tensor(x.astype(np.int8)), tp.tensor((x * 50).astype(np.uint8)).view(tp.bool)
    for dim in (0, 1):
        np.testing.assert_array_equal(small.sum(dim).numpy(), x.sum(dim))
        np.testing.assert_allclose(small.to(tp.float16).sum(dim).float().numpy(), x.sum(dim), rtol=1e-3)
        for name, numpy_name in (("max", "argmax"), ("min", "argmin")):
            values, indices = getattr(odd, name)(dim)
            np.testing.assert_array_equal(indices.numpy(), getattr(x != 0, numpy_name)(dim))
            np.testing.assert_array_equal(values.numpy(), getattr(x != 0, name)(dim))


def test_ties_take_the_first_place():
    t = tp.ones(1000, 70)
    assert tp.argmax(t).item() == 0 and tp.argmin(t).item() == 0
    assert tp.argmax(t, 0).sum().item() == 0 and tp.argmax(t, 1).sum().item() == 0


def test_any_all_count():
    for dtype in [*DTYPES, "bool", "float16", "complex64"]:
        for shape in [(5,), (33, 70), (300, 5), (2, 5000)]:
            for x, t in layouts((np.random.default_rng(3).random(shape) > 0.7).astype(dtype)):
                kind = tp.uint8 if dtype == "uint8" else tp.bool
                assert tp.any(t).dtype == kind
                assert bool(tp.any(t)) == x.any() and bool(tp.all(t)) == x.all()
                assert tp.count_nonzero(t).item() == np.count_nonzero(x)
                for axis in range(x.ndim):
                    assert tp.any(t, axis).tolist() == x.any(axis).tolist()
                    assert tp.all(t, axis).tolist() == x.all(axis).tolist()
                    assert tp.count_nonzero(t, axis).tolist() == np.count_nonzero(x, axis).tolist()
    assert tp.any(tp.tensor([0.0, float("nan")])).item() and not tp.any(tp.tensor([-0.0])).item()
    assert tp.any(tp.ones(2, 3), dim=[]).shape == (2, 3)


def test_empty():
    e = tp.empty(0, 3)
    assert tp.sum(e).item() == 0 and tp.prod(e).item() == 1 and np.isnan(tp.mean(e).item())
    assert not tp.any(e).item() and tp.all(e).item()
    assert tp.amax(e, 1).shape == (0,) and tp.sum(e, 0).tolist() == [0, 0, 0]
    for name in ("amax", "amin", "max", "min", "aminmax"):
        with pytest.raises(RuntimeError):
            getattr(tp, name)(e)
    for name in ("argmax", "argmin"):
        with pytest.raises(IndexError, match="Expected reduction dim"):
            getattr(tp, name)(e)
    for name in ("amax", "amin", "max", "min", "argmax", "argmin"):
        with pytest.raises(IndexError, match="non-zero size"):
            getattr(tp, name)(e, 0)


def test_errors():
    with pytest.raises(RuntimeError, match="could not infer output dtype"):
        tp.mean(tp.tensor([1, 2]))
    with pytest.raises(RuntimeError, match="std and var only support"):
        tp.var(tp.tensor([1, 2]))
    with pytest.raises(RuntimeError, match="appears multiple times"):
        tp.sum(tp.ones(2, 2), (0, 0))
    with pytest.raises(IndexError):
        tp.amax(tp.ones(2, 2), 2)


def test_dtype_and_out():
    t = tp.tensor([[1.5, 2.5], [3.5, 4.5]])
    assert tp.sum(t, dtype=tp.float64).dtype == tp.float64
    assert tp.prod(t, 0, dtype=tp.int64).tolist() == [3, 8]
    assert tp.mean(tp.tensor([1, 2]), dtype=tp.float32).item() == 1.5
    out = tp.empty(0)
    assert tp.mean(t, 0, out=out) is out and out.tolist() == [2.5, 3.5]
    values, indices = tp.empty(0), tp.empty(0, dtype=tp.int64)
    tp.max(t, 0, out=(values, indices))
    assert values.tolist() == [3.5, 4.5] and indices.tolist() == [1, 1]


@pytest.mark.parametrize("dtype", [tp.float16, tp.bfloat16])
def test_half_accumulates_in_float(dtype):
    t = tp.ones(100, 600, dtype=dtype)
    assert tp.sum(t).item() == (60000 if dtype == tp.float16 else tp.tensor(60000.0).to(dtype).item())
    assert tp.mean(t).item() == 1 and tp.mean(t, 0).sum().item() == 600 and tp.var(t).item() == 0
    assert tp.argmax(tp.arange(5).to(dtype)).item() == 4


def test_large_sums():
    x = np.random.default_rng(0).random(1 << 20).astype(np.float32)
    exact = x.astype(np.float64).sum()
    assert abs(tp.sum(tp.tensor(x)).item() / exact - 1) < 2e-7
    assert abs(tp.sum(tp.tensor(x.reshape(-1, 4)), 0).sum().item() / exact - 1) < 4e-7


def test_threads_do_not_matter():
    t = tp.tensor(np.random.default_rng(0).standard_normal((700, 900)).astype(np.float32))
    before = tp.get_num_threads()
    seen = []
    for n in (1, 2, 3):
        tp.set_num_threads(n)
        seen.append([getattr(tp, f)(t, *a).tolist() for f in ("sum", "prod", "var") for a in ((), (0,), (1,))])
    tp.set_num_threads(before)
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize("p", [0, 1, 2, 3, 0.5, -1, float("inf"), -float("inf")])
def test_norms(p):
    x = sample((6, 50), "float64")
    t = tp.tensor(x)
    close(tp.linalg.vector_norm(t, p, dim=1), np.linalg.norm(x, p, 1), 1e-12)
    close(tp.norm(t, p, dim=0, keepdim=True), np.linalg.norm(x, p, 0, keepdims=True), 1e-12)
    close(tp.norm(t, p), np.linalg.norm(x.ravel(), p), 1e-12)


def test_logsumexp_and_comparisons():
    x = sample((6, 50), "float64") * 500
    high = x.max(1, keepdims=True)
    close(tp.logsumexp(tp.tensor(x), 1), (high + np.log(np.exp(x - high).sum(1, keepdims=True)))[:, 0], 1e-12)
    assert tp.logsumexp(tp.full((3,), -float("inf")), 0).item() == -float("inf")
    a, b = tp.tensor([1.0, float("nan"), float("inf")]), tp.tensor([1.0 + 1e-7, float("nan"), float("inf")])
    assert tp.isclose(a, b).tolist() == [True, False, True] and tp.allclose(a, b, equal_nan=True)
    assert tp.equal(tp.ones(3), tp.ones(3)) and not tp.equal(tp.ones(3), tp.ones(1))
    assert tp.dist(tp.zeros(4), tp.ones(4)).item() == 2


FUNCTIONS = {
    "mean": lambda t: t.mean(0),
    "prod": lambda t: t.prod(1),
    "prod, all": lambda t: t.prod(),
    "amax": lambda t: t.amax(1),
    "min": lambda t: t.min(0)[0],
    "aminmax": lambda t: tp.aminmax(t, dim=1)[0] * tp.aminmax(t, dim=1)[1],
    "var": lambda t: t.var(1),
    "std": lambda t: t.std(0, keepdim=True),
    "var_mean": lambda t: tp.var_mean(t, dim=1)[0] * tp.var_mean(t, dim=1)[1],
    "norm": lambda t: t.norm(3, 1),
    "vector_norm": lambda t: tp.linalg.vector_norm(t, dim=0),
    "logsumexp": lambda t: t.logsumexp(1),
    "nansum": lambda t: t.nansum(1) ** 2,
}


def check_gradient(f, x):
    """Central differences in float64 of the results' sum under random weights."""
    rng = np.random.default_rng(0)
    t = tp.tensor(x, requires_grad=True)
    y = f(t)
    w = rng.standard_normal(tuple(y.shape))
    (y * tp.tensor(w)).sum().backward()
    mine, step = t.grad.numpy(), 1e-6
    for i in np.ndindex(*x.shape):
        up, down = x.copy(), x.copy()
        up[i] += step
        down[i] -= step
        slope = ((f(tp.tensor(up)).numpy() - f(tp.tensor(down)).numpy()) * w).sum() / (2 * step)
        assert mine[i] == pytest.approx(slope, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients(name):
    check_gradient(FUNCTIONS[name], np.random.default_rng(5).standard_normal((3, 4)))


def test_gradient_of_a_product_with_zeros():
    check_gradient(lambda t: t.prod(1), np.array([[0.0, 2, 3], [0, 0, 2], [1, 2, 3]]))


def test_trapezoids_of_samples_with_more_dimensions() -> None:
    """The dimension is one of y's, also where x has more and the last one of it is another."""
    y, x = np.arange(6.0) ** 2, np.linspace(0, 3, 6)[:, None]
    areas = (y[1:] + y[:-1]) / 2 * np.diff(x, axis=0)
    np.testing.assert_allclose(tp.trapezoid(tp.tensor(y), tp.tensor(x)).numpy(), areas.sum(0))
    np.testing.assert_allclose(tp.cumulative_trapezoid(tp.tensor(y), tp.tensor(x)).numpy(), areas.cumsum(0))


@pytest.mark.parametrize("dtype", (tp.float32, tp.float64, tp.int64))
def test_hash_of_negatives(dtype: Any) -> None:
    """The bits are those of the elements, not of the memory that is read as their negatives."""
    x = tp.tensor([1, -2, 3, 5]).to(dtype)
    assert tp.hash_tensor(tp._neg_view(x)).equal(tp.hash_tensor(-x))


@pytest.mark.parametrize("dtype", [tp.bool, tp.uint8, tp.int16, tp.int64, tp.bfloat16, tp.float32, tp.float64])
@pytest.mark.parametrize("length", [1, 15, 16, 1023, 1024, 1025, 3000])
def test_elements_with_gaps_reduce_as_those_side_by_side(dtype: tp.dtype, length: int) -> None:
    """Folds lay them side by side: a block at a time, in each place of a row, from one element again and again."""
    x = tp.randint(1 if length % 2 else 0, 3, (3, length, 2)).to(dtype)
    if dtype.is_floating_point and length > 20:
        x[0, length // 2, 0] = tp.nan
    places = () if dtype == tp.bool else (tp.argmax, tp.argmin)
    views = x[..., 0], x[..., 1], x[1, :, 0], x[:, :1, 0].expand(3, length)
    for view in views:
        same = view.contiguous()
        for function in (tp.amax, tp.amin, *places, tp.count_nonzero, tp.any, tp.all):
            for dim in (None, -1):
                found, wanted = (function(v) if dim is None else function(v, dim=dim) for v in (view, same))
                assert tp.equal(found.nan_to_num(7), wanted.nan_to_num(7)), function
        for function in (tp.max, tp.min):
            found, wanted = function(view, -1), function(same, -1)
            assert tp.equal(found.indices, wanted.indices)
            assert tp.equal(found.values.nan_to_num(7), wanted.values.nan_to_num(7))
        if not dtype.is_floating_point:
            assert tp.equal(view.prod(-1), same.prod(-1))
