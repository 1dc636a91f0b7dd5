"""tensorpy.testing itself."""

from __future__ import annotations

import math

import pytest

import tensorpy as tp
from tensorpy.testing import assert_allclose, assert_close, make_tensor


def test_close():
    assert_close(tp.tensor([1.0, 2.0]), tp.tensor([1.0, 2.000001]))
    assert_close([tp.ones(2), 1.0], [tp.ones(2), 1.0])
    assert_close({"a": 1}, {"a": 1})
    assert_close(tp.tensor(float("nan")), tp.tensor(float("nan")), equal_nan=True)
    assert_close(tp.tensor([float("inf")]), tp.tensor([float("inf")]))


@pytest.mark.parametrize(
    ("a", "b", "options", "text"),
    [
        (tp.ones(2), tp.ones(3), {}, "'shape'"),
        (tp.ones(2), tp.ones(2, dtype=tp.float64), {}, "'dtype'"),
        (tp.ones(2, 2), tp.ones(2, 2).t(), {"check_stride": True}, "'stride"),
        (tp.tensor([1, 2]), tp.tensor([1, 3]), {}, "not equal"),
        (tp.tensor([[1.0, 2.0]]), tp.tensor([[1.0, 2.5]]), {}, r"1 / 2 \(50.0%\)"),
        (tp.tensor([[1.0, 2.0]]), tp.tensor([[1.0, 2.5]]), {}, r"0.5 at index \(0, 1\)"),
        (tp.tensor(float("nan")), tp.tensor(float("nan")), {}, "not close"),
        ([tp.ones(1)], [tp.ones(1), tp.ones(1)], {}, "length"),
        ([tp.ones(1)], [tp.zeros(1)], {}, r"item \[0\]"),
        (1.0, 1.1, {}, r"Relative difference: 0.0909090909090909\d \(up to 1e-07 allowed\)"),
        (1j, 2j, {}, "Expected 2j but got 1j"),
        (2**70, 2**70 + 1, {}, "Absolute difference: 1\n"),
        (float("inf"), 1.0, {}, "Scalars are not close"),
        (1, 1.0, {}, r"The \(d\)types do not match: <class 'int'> != <class 'float'>"),
        (True, False, {}, "Booleans mismatch: True is not False"),
        (None, 1, {}, "None mismatch: None is not 1"),
        ({"a": 1}, {"b": 1}, {}, r"Missing keys in the actual mapping: \['b'\]"),
        ({"a": [1, {"b": 2.0}]}, {"a": [1, {"b": 3.0}]}, {}, r"item \['a'\]\[1\]\['b'\]"),
    ],
)
def test_not_close(a, b, options, text):
    with pytest.raises(AssertionError, match=text):
        assert_close(a, b, **options)


@pytest.mark.parametrize(
    ("a", "b", "options"),
    [
        (tp.ones(1), 1.0, {}),
        (tp.ones(2), tp.ones(2).numpy(), {}),
        ([tp.ones(1)], tp.ones(1), {}),
        ("a", "a", {}),
        (tp.ones(1), tp.nn.Parameter(tp.ones(1)), {"allow_subclasses": False}),
    ],
)
def test_pairs_that_are_not_compared(a, b, options):
    with pytest.raises(TypeError, match="No comparison pair was able to handle inputs of type"):
        assert_close(a, b, **options)


def test_options():
    assert_close(tp.tensor([1.0]), tp.tensor([1.1]), rtol=0, atol=0.2)
    assert_close(tp.ones(2), tp.ones(2, dtype=tp.float64), check_dtype=False)
    with pytest.raises(ValueError, match="rtol"):
        assert_close(tp.ones(1), tp.ones(1), rtol=1)
    with pytest.raises(AssertionError, match="mine"):
        assert_close(tp.ones(1), tp.zeros(1), msg="mine")
    with pytest.raises(AssertionError, match="before: Tensor-likes"):
        assert_close(tp.ones(1), tp.zeros(1), msg=lambda m: "before: " + m)


@pytest.mark.parametrize(
    "dtype", [tp.float32, tp.bfloat16, tp.complex64, tp.complex32, tp.complex128, tp.int16, tp.uint8, tp.bool]
)
def test_make_tensor(dtype):
    t = make_tensor(3, 4, dtype=dtype)
    assert t.shape == (3, 4) and t.dtype == dtype and not t._is_view()
    t = make_tensor((3, 4), dtype=dtype, noncontiguous=True)
    assert not t.is_contiguous()
    if dtype != tp.bool:
        t = make_tensor(100, dtype=dtype, low=2, high=4)
        if not dtype.is_complex:
            assert all(2 <= v <= 4 for v in t.tolist())
    with pytest.raises(ValueError, match="low"):
        make_tensor(1, dtype=dtype, low=2, high=1)


@pytest.mark.parametrize("dtype", [tp.float16, tp.float32, tp.float64])
def test_assert_allclose(dtype):
    with pytest.warns(FutureWarning):
        assert_allclose(tp.ones(2, dtype=dtype), [1.0, 1 + 9e-6])
    with pytest.warns(FutureWarning), pytest.raises(AssertionError, match="not close"):
        assert_allclose(tp.ones(2, dtype=dtype), tp.full((2,), 1.01))
    with pytest.warns(FutureWarning), pytest.raises(AssertionError, match="mine"):
        assert_allclose(tp.ones(2), tp.zeros(2), msg="mine")
    with pytest.warns(FutureWarning):
        assert_allclose(tp.tensor([math.nan]), tp.tensor([math.nan]))


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "int8", "bool", "complex64"])
@pytest.mark.parametrize("low, high", [(2, 1), (3.0, 1), (float("nan"), 1), (1, float("nan")), (-500, -400), (0, 0)])
def test_make_tensor_refuses_intervals_as_torch(dtype: str, low: float, high: float) -> None:
    torch = pytest.importorskip("torch")
    from torch.testing import make_tensor as theirs

    said = []
    for make, lib in ((tp.testing.make_tensor, tp), (theirs, torch)):
        try:
            make((2,), dtype=getattr(lib, dtype), device="cpu", low=low, high=high)
            said.append("")
        except ValueError as error:
            said.append(str(error).partition(",")[0])
    assert said[0] == said[1]


def test_make_tensor_refuses_and_takes_formats_as_pytorchs() -> None:
    make = tp.testing.make_tensor
    with pytest.raises(ValueError, match="`requires_grad=True` is not supported for boolean and integral dtypes"):
        make(2, dtype=tp.int64, requires_grad=True)
    assert make(2, 3, dtype=tp.float32, memory_format=tp.preserve_format).is_contiguous()
    assert make(1, 1, dtype=tp.float32, noncontiguous=True).is_contiguous()
    assert not make(2, 1, dtype=tp.float32, noncontiguous=True).is_contiguous()


def test_sparse_tensors_of_more_specified_values_differ() -> None:
    twice = tp.sparse_coo_tensor([[0, 0, 1]], [1.0, 2.0, 4.0], (2,))
    once = tp.sparse_coo_tensor([[0, 1]], [3.0, 4.0], (2,))
    with pytest.raises(AssertionError, match="number of specified values in sparse COO tensors does not match: 3 != 2"):
        tp.testing.assert_close(twice, once)
    with pytest.raises(AssertionError, match="does not match: 3 != 2"):
        tp.testing.assert_close(twice, once.coalesce())
    tp.testing.assert_close(twice.coalesce(), once)


def test_mappings_may_have_tensors_for_keys():
    """They have no order that is a number of truth."""
    keys = [tp.arange(3), tp.arange(3)]
    tp.testing.assert_close({keys[0]: 1.0, keys[1]: 2.0}, {keys[1]: 2.0, keys[0]: 1.0})
    with pytest.raises(AssertionError, match="not close"):
        tp.testing.assert_close(dict.fromkeys(keys, 1.0), dict.fromkeys(keys, 2.0))
