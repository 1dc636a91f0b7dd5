"""Medians, quantiles, distinct elements, masks and views replaced: what the table of samples does not show."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorpy as tp
from tensorpy.autograd import gradcheck

NAN = math.nan


def refused(cls: type[Exception], phrase: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    with pytest.raises(cls, match=phrase):
        function(*args, **kwargs)


# ---- NaN, ties, nothing ----


def test_median_and_nan() -> None:
    x = tp.tensor([[NAN, 2.0], [1.0, NAN], [3.0, 4.0]])
    assert math.isnan(x.median().item())
    assert x.nanmedian().item() == 2.0
    values, indices = x.median(1)
    assert np.isnan(values[:2].numpy()).all() and values[2].item() == 3.0
    assert indices.tolist() == [0, 1, 0]
    values, indices = x.nanmedian(1)
    assert values.tolist() == [2.0, 1.0, 3.0] and indices.tolist() == [1, 0, 0]
    assert math.isnan(tp.tensor([NAN, NAN]).nanmedian().item())


def test_median_of_nothing() -> None:
    assert math.isnan(tp.median(tp.empty(0)).item())
    assert tp.median(tp.empty(0, dtype=tp.int64)).item() == -(2**63)
    assert tp.median(tp.empty(0, 3), 1).values.shape == (0,)
    for name in ("median", "nanmedian", "mode"):
        refused(IndexError, "Expected reduction dim 0 to have non-zero size", getattr(tp, name), tp.empty(0, 3), 0)
    refused(NotImplementedError, "median_cpu.*Bool", tp.median, tp.tensor([True]))
    refused(NotImplementedError, "mode_cpu.*ComplexFloat", tp.mode, tp.tensor([1j]))


def test_the_lowest_index_of_equal_elements() -> None:
    x = tp.zeros(1000, dtype=tp.int64)
    assert x.median(0).indices.item() == 499
    assert x.kthvalue(7).indices.item() == 6
    assert x.topk(5).indices.tolist() == [0, 1, 2, 3, 4]
    assert tp.tensor([1, 3, 3, 2, 3]).topk(2).indices.tolist() == [1, 2]
    assert tp.tensor([3, 1, 1, 2, 1]).mode().indices.item() == 4


@pytest.mark.parametrize("k", [0, 1, 7, 400, 1000])
@pytest.mark.parametrize("largest", [True, False])
def test_topk_is_the_beginning_of_the_order(k: int, largest: bool) -> None:
    x = tp.tensor(np.random.RandomState(0).randint(0, 50, (3, 1000)).astype(np.float32))
    x[0, 5], x[1, 7], x[2, 9] = NAN, math.inf, -0.0
    values, indices = x.topk(k, largest=largest)
    ordered, places = x.sort(-1, largest)
    assert np.array_equal(values.numpy(), ordered[:, :k].numpy(), equal_nan=True)
    assert np.array_equal(indices.numpy(), places[:, :k].numpy())


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float64"])
def test_topk_and_kthvalue_of_every_dtype(dtype: str) -> None:
    x = tp.tensor(np.random.RandomState(1).permutation(120)).to(getattr(tp, dtype)).reshape(2, 60).t()
    assert x.topk(3, 0).values.double().tolist() == x.sort(0, True)[0][:3].double().tolist()
    assert x.kthvalue(11, 0).values.double().tolist() == x.sort(0)[0][10].double().tolist()


def test_bounds_of_k() -> None:
    refused(RuntimeError, "selected index k out of range", tp.topk, tp.ones(3), 4)
    refused(RuntimeError, "selected number k out of range for dimension 0", tp.kthvalue, tp.ones(3), 0)
    refused(NotImplementedError, "kthvalue_cpu.*Bool", tp.kthvalue, tp.tensor([True]), 1)


# ---- quantiles ----


def test_quantiles_of_rows_with_nan() -> None:
    x = tp.tensor([[1.0, NAN, 3.0], [1.0, 2.0, 3.0]])
    q = tp.tensor([0.0, 0.5])
    found = tp.quantile(x, q, 1, keepdim=True)
    assert found.shape == (2, 2, 1) and np.isnan(found[:, 0].numpy()).all() and found[1, 1, 0].item() == 2.0
    assert tp.nanquantile(x, q, 1).tolist() == [[1.0, 1.0], [2.0, 2.0]]
    assert tp.quantile(tp.tensor([1.0, 2.0, 3.0, 4.0]), 0.5, interpolation="nearest").item() == 3.0


def test_quantile_refuses() -> None:
    x = tp.ones(2, 3)
    refused(RuntimeError, "either float or double dtype", tp.quantile, tp.ones(2, dtype=tp.int64), 0.5)
    refused(RuntimeError, "must be non-empty", tp.quantile, x[:0], 0.5)
    refused(RuntimeError, r"range \[0, 1\] but got 1.5", tp.quantile, x, 1.5)
    refused(RuntimeError, r"q values must be in the range", tp.quantile, x, tp.tensor([NAN]))
    refused(RuntimeError, "scalar or 1D", tp.quantile, x, tp.ones(1, 1))
    refused(RuntimeError, "same dtype", tp.quantile, x, tp.ones(1, dtype=tp.float64))
    refused(RuntimeError, "must be one of linear", tp.quantile, x, 0.5, interpolation="best")


# ---- distinct elements ----


def test_unique_gives_what_is_asked_for() -> None:
    x = tp.tensor([[3, 1], [1, 3]])
    assert tp.unique(x).tolist() == [1, 3]
    values, counts = x.unique(return_counts=True)
    assert values.tolist() == [1, 3] and counts.tolist() == [2, 2]
    values, inverse, counts = tp.unique(x, True, True, True)
    assert inverse.tolist() == [[1, 0], [0, 1]] and values[inverse].tolist() == x.tolist()
    rows, inverse = tp.unique(tp.tensor([[2, 1], [1, 2], [2, 1]]), dim=0, return_inverse=True)
    assert rows.tolist() == [[1, 2], [2, 1]] and inverse.tolist() == [1, 0, 1]
    assert tp.unique(tp.tensor([NAN, NAN])).shape == (2,)
    refused(IndexError, "Dimension out of range", tp.unique, x, dim=5)
    refused(NotImplementedError, "unique.*ComplexFloat", tp.unique, tp.tensor([1j]))


def test_unique_consecutive() -> None:
    x = tp.tensor([1, 1, 2, 2, 2, 1])
    assert x.unique_consecutive().tolist() == [1, 2, 1]
    values, inverse, counts = tp.unique_consecutive(x, True, True)
    assert inverse.tolist() == [0, 0, 1, 1, 1, 2] and counts.tolist() == [2, 3, 1] and values[inverse].equal(x)
    columns = tp.unique_consecutive(tp.tensor([[1, 1, 0], [2, 2, 5]]), dim=1)
    assert columns.tolist() == [[1, 0], [2, 5]]
    assert tp.empty(0).unique_consecutive().shape == (0,)
    for dtype in (tp.bool, tp.uint8, tp.int64, tp.bfloat16, tp.float64):
        long = (tp.arange(5000) // 7 % 5 % 2).to(dtype).view(50, 100).t()
        values, inverse, counts = tp.unique_consecutive(long, True, True)
        line = long.reshape(-1).tolist()
        assert values.tolist() == [v for i, v in enumerate(line) if i == 0 or v != line[i - 1]]
        assert inverse.shape == long.shape and values[inverse].equal(long)
        assert values.repeat_interleave(counts).tolist() == line
    assert len(tp.tensor([tp.nan, tp.nan, 0.0, -0.0]).unique_consecutive()) == 3
    refused(RuntimeError, "0 sized dimensions", tp.unique, tp.empty(3, 0), dim=0)
    assert tp.unique(tp.empty(0, 3), dim=0).shape == (0, 3)


def test_isin_of_mixed_dtypes() -> None:
    assert tp.isin(tp.tensor([1, 2]), tp.tensor([1.5, 2.0])).tolist() == [False, True]
    assert tp.isin(tp.tensor([NAN]), tp.tensor([NAN])).tolist() == [False]
    assert tp.isin(2, tp.tensor([[1, 2]])).item() is True
    assert tp.isin(tp.tensor([[1], [2]]), 2, invert=True).tolist() == [[True], [False]]
    refused(RuntimeError, "Unsupported input type encountered for isin", tp.isin, tp.tensor([True]), tp.tensor([True]))


# ---- masks and places ----


def test_masks_are_bool_and_fit() -> None:
    x = tp.ones(2, 3)
    refused(RuntimeError, "expected BoolTensor for mask", tp.masked_select, x, x)
    refused(RuntimeError, "must match the size", tp.masked_select, x, tp.ones(4, dtype=tp.bool))
    mask = tp.ones(2, 3, dtype=tp.bool)
    refused(RuntimeError, "Number of elements of source < number of ones", x.masked_scatter_, mask, tp.ones(5))
    refused(RuntimeError, "same dtypes", x.masked_scatter_, mask, tp.ones(6, dtype=tp.float64))
    refused(RuntimeError, "only supports boolean masks", x.masked_scatter_, x, tp.ones(6))
    assert x.equal(tp.ones(2, 3))


def test_masked_scatter_through_strides() -> None:
    x = tp.zeros(3, 2)
    x.t().masked_scatter_(tp.tensor([[True, False, True]]), tp.tensor([1.0, 2.0, 3.0, 4.0]))
    assert x.tolist() == [[1.0, 3.0], [0.0, 0.0], [2.0, 4.0]]


def test_put_refuses() -> None:
    x = tp.zeros(2, 3)
    one = tp.ones(1)
    refused(IndexError, "same number of elements", x.put_, tp.tensor([1]), tp.ones(2))
    refused(RuntimeError, "Expected a long tensor for index", x.put_, tp.tensor([1], dtype=tp.int32), one)
    refused(IndexError, "index 6 is out of bounds", x.put_, tp.tensor([6]), one)
    refused(RuntimeError, "expected to have the same dtype", x.put_, tp.tensor([1]), tp.tensor([1]))
    x.t().put_(tp.tensor([1]), one)
    assert x.tolist() == [[0, 0, 0], [1, 0, 0]]


def test_view_scatter_refuses_other_sizes() -> None:
    x = tp.zeros(2, 3)
    for call in (
        lambda: x.select_scatter(tp.ones(2), 0, 0),
        lambda: x.slice_scatter(tp.ones(2), 0, 0),
        lambda: x.diagonal_scatter(tp.ones(3)),
        lambda: x.as_strided_scatter(tp.ones(3), (2,), (1,)),
    ):
        refused(RuntimeError, "expected src to have a size equal to the slice of self", call)


def test_as_strided_scatter() -> None:
    x = tp.arange(6.0).reshape(2, 3)
    assert x.as_strided_scatter(tp.zeros(2), (2,), (4,)).tolist() == [[0, 1, 2], [3, 0, 5]]
    assert x[1].as_strided_scatter(tp.zeros(2), (2,), (1,), 4).tolist() == [3, 0, 0]
    x = tp.randn(2, 3, dtype=tp.float64, requires_grad=True)
    src = tp.randn(2, dtype=tp.float64, requires_grad=True)
    assert gradcheck(lambda a, b: a.as_strided_scatter(b, (2,), (4,)), (x, src))


def test_fill_diagonal() -> None:
    for shape, wrap in (((7, 3), True), ((7, 3), False), ((3, 5), True), ((4, 4), False), ((3, 3, 3), False)):
        expected = np.zeros(shape)
        np.fill_diagonal(expected, 2.0, wrap)
        assert tp.zeros(shape).fill_diagonal_(2.0, wrap).tolist() == expected.tolist()
    refused(RuntimeError, "dimensions must larger than 1", tp.ones(3).fill_diagonal_, 1)
    refused(RuntimeError, "equal length", tp.ones(3, 3, 4).fill_diagonal_, 1)


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_gradient_of_scatter_reduce(reduce: str, include_self: bool) -> None:
    tp.manual_seed(3)
    x = tp.randn(3, 4, dtype=tp.float64, requires_grad=True)
    src = tp.randn(3, 4, dtype=tp.float64, requires_grad=True)
    index = tp.tensor([[0, 1, 1, 3], [2, 2, 2, 2], [3, 0, 1, 0]])
    assert gradcheck(lambda a, b: a.scatter_reduce(1, index, b, reduce, include_self=include_self), (x, src))


# ---- forms of arguments ----


def test_tensors_one_by_one_or_as_a_list() -> None:
    a, b = tp.arange(2), tp.arange(3)
    for grid in (tp.meshgrid(a, b, indexing="xy"), tp.meshgrid([a, b], indexing="xy")):
        assert [g.shape for g in grid] == [(3, 2), (3, 2)]
    assert [g.shape for g in tp.meshgrid(a, b)] == [(2, 3), (2, 3)]
    assert [t.shape for t in tp.broadcast_tensors(a.reshape(2, 1), b)] == [(2, 3), (2, 3)]
    same, wider = tp.broadcast_tensors(b, tp.ones(1))
    assert same is b and wider.shape == (3,)  # what has the shape already stays what it is
    assert tp.cartesian_prod(a, b).shape == (6, 2) and tp.block_diag(a, b).shape == (2, 5)
    refused(TypeError, "expected Tensor as element", tp.meshgrid, a, 3)
    matrices = tp.ones(2, 3), tp.ones(3, 4), tp.ones(4, 1)
    for product in (tp.chain_matmul(*matrices), tp.chain_matmul(matrices), tp.chain_matmul(*matrices, out=tp.empty(0))):
        assert product.tolist() == [[12.0], [12.0]]
    for n, function in enumerate((tp.atleast_1d, tp.atleast_2d, tp.atleast_3d), 1):
        one = tp.tensor(1.0)
        assert function(one).ndim == n and [t.ndim for t in function([one])] == [n]
        for several in (function(one, tp.ones(2)), function((one, tp.ones(2)))):
            assert type(several) is tuple and [t.ndim for t in several] == [n, n]


def test_nonzero_as_tuple() -> None:
    x = tp.tensor([[0, 1], [2, 0]])
    assert tp.nonzero(x).tolist() == [[0, 1], [1, 0]]
    assert [t.tolist() for t in x.nonzero(as_tuple=True)] == [[0, 1], [1, 0]]
    assert [t.tolist() for t in tp.nonzero(tp.tensor(3), as_tuple=True)] == [[0]]


def test_unbiased_by_position() -> None:
    x = tp.arange(6.0).reshape(2, 3)
    assert x.var(False).item() == pytest.approx(np.var(x.numpy()))
    assert x.std(unbiased=True).item() == pytest.approx(np.std(x.numpy(), ddof=1))
    assert x.var(1, False).tolist() == pytest.approx(np.var(x.numpy(), 1).tolist())
    assert tp.var_mean(x, False)[1].item() == 2.5
    refused(TypeError, "bool", tp.sum, x, True)


def test_norms_by_name() -> None:
    x = tp.tensor([[3.0, 4.0], [0.0, 0.0]])
    assert x.norm().item() == x.norm("fro").item() == tp.norm(x, p="fro", dim=(0, 1)).item() == 5.0
    assert tp.norm(x, "fro", dtype=tp.float64).dtype is tp.float64
    assert tp.norm(x, 1, 1, True).tolist() == [[7.0], [0.0]]
    assert abs(tp.norm(x, "nuc").item() - 5) < 1e-5 and tp.norm(x.double(), "nuc", (0, 1), True).shape == (1, 1)
    refused(RuntimeError, "not supported", tp.norm, x, "best")


def test_questions() -> None:
    x = tp.ones(2)
    assert tp.is_floating_point(x) and not tp.is_complex(x) and tp.is_signed(x) and tp.numel(x) == 2
    assert not x.is_conj() and not tp.is_neg(x) and not tp.is_inference(x)
    assert x.is_set_to(x[:]) and not x.is_set_to(x[1:]) and not x.is_set_to(x.clone())
    assert tp.result_type(x, 2) is tp.float32 and tp.result_type(1, 2.0) is tp.float32
    assert tp.result_type(tp.tensor([1], dtype=tp.int8), 300) is tp.int8
    assert tp.result_type(2, x) is tp.float32 and tp.result_type(x, tp.ones(1, dtype=tp.float64)) is tp.float64
    assert tp.ops.aten.result_type.Tensor(x, x) is tp.float32


def test_methods_with_python_functions() -> None:
    x, y = tp.arange(3.0), tp.full((3,), 2.0)
    assert x.apply_(lambda v: v + 1).tolist() == [1.0, 2.0, 3.0]
    assert x.map_(y, lambda a, b: a * b).tolist() == [2.0, 4.0, 6.0]
    assert x.map2_(y, y, lambda a, b, c: a - b - c).tolist() == [-2.0, 0.0, 2.0]
    assert x.new_tensor([1, 2]).dtype is tp.float32 and x.new_tensor([1], dtype=tp.int8).dtype is tp.int8
    assert y.type_as(tp.tensor([1])).dtype is tp.int64


def test_detach_in_place() -> None:
    x = tp.ones(3, requires_grad=True)
    y = x * 2
    assert y.detach_() is y and y.grad_fn is None and not y.requires_grad
    refused(RuntimeError, "Can't detach views in-place", (x * 2)[0].detach_)


def test_printoptions() -> None:
    with tp.printoptions(precision=2):
        assert tp.get_printoptions()["precision"] == 2
        assert "0.33" in repr(tp.tensor([1 / 3])) and "0.333" not in repr(tp.tensor([1 / 3]))
    assert tp.get_printoptions()["precision"] == 4


# ---- whole numbers in ranges; small products ----


def test_bounds_are_whole_for_whole_dtypes() -> None:
    assert tp.arange(0.9, -4.5, -1, dtype=tp.int64).tolist() == [0, -1, -2, -3]
    assert tp.arange(0.5, 5, 1.5, dtype=tp.int32).tolist() == [0, 1, 2]
    assert tp.linspace(0.9, -4.5, 5, dtype=tp.int32).tolist() == [0, -1, -2, -3, -4]
    assert tp.logspace(0, 1.2, 2, dtype=tp.int64).tolist() == [1, 10]
    refused(ValueError, "step must be nonzero", tp.arange, 0.5, 3, 0.5, dtype=tp.int64)


def test_small_products_refuse() -> None:
    x = tp.ones(2, 2)
    refused(RuntimeError, "no dimension of size 3", tp.cross, x, x)
    refused(RuntimeError, "must have length 3. Got 2 and 2", tp.linalg.cross, x, x)
    refused(RuntimeError, "1-D", tp.addr, x, x, tp.ones(2))
    refused(RuntimeError, "non-negative number", tp.combinations, tp.ones(3), -1)
    refused(RuntimeError, "1D vector", tp.cartesian_prod, x)
    assert tp.combinations(tp.ones(2), 3).shape == (0, 3) and tp.combinations(tp.ones(3), 0).shape == (0,)
    assert x.addr_(tp.ones(2), tp.ones(2), alpha=2).tolist() == [[3.0, 3.0], [3.0, 3.0]]


def test_the_first_none_of_a_number_is_the_number():
    for k in (0, 1):
        values, indices = tp.tensor(5.0).topk(k)
        assert (values.item(), indices.item()) == (5.0, 0)
