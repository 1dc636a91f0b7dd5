"""gather, scatter and the index_* operators against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tensorpy as tp

rng = np.random.default_rng(0)
X = rng.standard_normal((4, 5, 6))


def values(t):
    return np.asarray(t.detach())


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_gather_and_scatter(dim):
    shape = list(X.shape)
    shape[dim] = 3
    index = np.argsort(rng.standard_normal(X.shape), dim).take(range(3), dim)
    src = rng.standard_normal(shape)
    x, i, s = (
        tp.tensor(X.tolist(), dtype=tp.float64),
        tp.tensor(index.tolist()),
        tp.tensor(src.tolist(), dtype=tp.float64),
    )
    np.testing.assert_array_equal(values(x.gather(dim, i)), np.take_along_axis(X, index, dim))
    put = X.copy()
    np.put_along_axis(put, index, src, dim)
    np.testing.assert_array_equal(values(x.scatter(dim, i, s)), put)
    np.put_along_axis(put, index, np.take_along_axis(X, index, dim) + src, dim)
    np.testing.assert_allclose(values(x.scatter_add(dim, i, s)), put)


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
def test_scatter_reduce(reduce):
    x, i = tp.tensor([1.0, 2.0, 3.0]), tp.tensor([0, 0, 2])
    s = tp.tensor([4.0, 6.0, 8.0])
    fold = {"sum": np.sum, "prod": np.prod, "mean": np.mean, "amax": np.max, "amin": np.min}[reduce]
    np.testing.assert_allclose(values(x.scatter_reduce(0, i, s, reduce)), [fold([1, 4, 6]), 2, fold([3, 8])])
    np.testing.assert_allclose(values(x.scatter_reduce(0, i, s, reduce, include_self=False)), [fold([4, 6]), 2, 8])


def test_index_family():
    x, i = tp.tensor(X.tolist(), dtype=tp.float64), tp.tensor([3, 1])
    np.testing.assert_array_equal(values(x.index_select(1, i)), X[:, [3, 1]])
    added = X.copy()
    added[:, [3, 1]] += 2 * X[:, :2]
    np.testing.assert_allclose(values(x.index_add(1, i, x[:, :2], alpha=2)), added)
    filled = X.copy()
    filled[:, [3, 1]] = 7
    np.testing.assert_array_equal(values(x.index_fill(1, i, 7)), filled)


@pytest.mark.parametrize("operation", ["gather", "scatter", "index_select", "index_copy"])
def test_out_of_range_writes_nothing(operation):
    x, before = tp.zeros(3), np.zeros(3)
    i = tp.tensor([0, 3])
    calls = {
        "gather": lambda: x.gather(0, i),
        "scatter": lambda: x.scatter_(0, i, 1.0),
        "index_select": lambda: x.index_select(0, i),
        "index_copy": lambda: x.index_copy_(0, i, tp.ones(2)),
    }
    with pytest.raises((RuntimeError, IndexError), match="3 is out of bounds for dimension 0 with size 3"):
        calls[operation]()
    np.testing.assert_array_equal(values(x), before)


def test_gradients():
    x = tp.tensor([1.0, 2.0, 3.0], requires_grad=True)
    x.gather(0, tp.tensor([0, 0, 2])).sum().backward()
    np.testing.assert_array_equal(values(x.grad), [2, 0, 1])


def test_an_index_that_is_written_over() -> None:
    """What is written shares memory with the index: refused, as in PyTorch, and nothing is written."""
    other = tp.tensor([10, 11, 12])
    for call in (
        lambda x: x.put_(x, other),
        lambda x: x.scatter_(0, x, other),
        lambda x: x.index_copy_(0, x, other),
        lambda x: x.index_fill_(0, x[:2], 10**13),
        lambda x: x.scatter_add_(0, x, other),
    ):
        x = tp.tensor([1, 2, 0])
        with pytest.raises(RuntimeError, match="refer to a single memory location"):
            call(x)
        assert x.tolist() == [1, 2, 0]


def test_index_add_cuts_its_factor_to_the_dtype():
    whole, at = tp.ones(3, dtype=tp.int64), tp.tensor([0, 2])
    assert whole.index_add(0, at, tp.full((2,), 5), alpha=1.9).tolist() == [6, 1, 6]
    assert whole.index_add(0, at, tp.full((2,), 5), alpha=True).tolist() == [6, 1, 6]
    false = tp.zeros(3, dtype=tp.bool)
    assert false.index_add(0, at, tp.ones(2, dtype=tp.bool), alpha=2).tolist() == [True, False, True]
    with pytest.raises(RuntimeError, match="overflow"):
        tp.ones(3, dtype=tp.int8).index_add(0, at, tp.ones(2, dtype=tp.int8), alpha=300)


@pytest.mark.parametrize("shape", [(), (1,), (3,)])
@pytest.mark.parametrize("of_index", [(), (1,)])
@pytest.mark.parametrize("of_source", [(), (1,)])
def test_numbers_beside_lines(shape, of_index, of_source):
    """A number counts as a line of one element, whichever of the tensors it is."""
    last = (shape[0] if shape else 1) - 1
    self, index = tp.arange(float(last + 1)).reshape(shape), tp.full(of_index, last)
    source = tp.full(of_source, 9.0)
    assert tp.equal(tp.gather(self, 0, index), tp.full(of_index, float(last)))
    changed = np.arange(last + 1, dtype=np.float32)
    changed[last] = 9
    assert tp.equal(self.scatter(0, index, source), tp.tensor(changed).reshape(shape))
    assert tp.equal(self.scatter(0, index, 9.0), tp.tensor(changed).reshape(shape))
    changed[last] = last + 9
    for f in (lambda: self.scatter_add(0, index, source), lambda: self.scatter_reduce(0, index, source, "sum")):
        assert tp.equal(f(), tp.tensor(changed).reshape(shape))
    x = self.clone().requires_grad_()
    tp.gather(x, 0, index).sum().backward()
    assert tp.equal(x.grad, tp.zeros(shape).scatter(0, index, 1.0))
    rows = tp.vmap(lambda a: tp.gather(a, 0, index))(tp.stack([self, self + 1]))
    assert tp.equal(rows, tp.stack([tp.gather(self, 0, index), tp.gather(self + 1, 0, index)]))
