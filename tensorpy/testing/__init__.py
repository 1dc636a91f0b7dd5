"""Comparing and making tensors in tests: assert_close and make_tensor."""

from __future__ import annotations

import math
import warnings
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._tensor.dtypes import finfo, iinfo
from tensorpy.testing._comparison import assert_close, default_tolerances

# (rtol, atol) of assert_allclose, which is older than assert_close.
_OLD_TOLERANCES = {_C.float16: (1e-3, 1e-3), _C.float32: (1e-4, 1e-5), _C.float64: (1e-5, 1e-8)}


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """Deprecated: assert_close with wider tolerances, where NaN equals NaN and dtypes and devices may differ.

    Arguments:
        actual: what came out
        expected: what is wanted
        rtol: the relative tolerance
        atol: the absolute tolerance
        equal_nan: whether two NaN are equal
        msg: a message, or a function of the usual one

    Example:
        >>> tp.testing.assert_allclose(tp.ones(2), [1.0, 1.0])
    """
    warnings.warn("assert_allclose is deprecated: use assert_close", FutureWarning, stacklevel=2)
    actual, expected = _C.as_tensor(actual), _C.as_tensor(expected)
    if rtol is None and atol is None:
        pairs = [_OLD_TOLERANCES.get(t.dtype, (0.0, 0.0)) for t in (actual, expected)]
        rtol, atol = max(p[0] for p in pairs), max(p[1] for p in pairs)
    assert_close(
        actual,
        expected,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=False,
        check_dtype=False,
        msg=msg or None,
    )


def _interval(dtype: Any, low: float, high: float) -> tuple[float, float]:
    """The part of [low, high) that a dtype has numbers in."""
    if math.isnan(low) or math.isnan(high):
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={low} and high={high}")
    floating = dtype.is_floating_point or dtype.is_complex
    if low > high or (low == high and not floating):
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    if low == high:
        warnings.warn("Passing `low==high` to make_tensor for floats is deprecated", FutureWarning, 3)
    if dtype == _C.bool:
        lowest, highest = 0.0, 2.0
    elif floating:
        limits = finfo(dtype)
        lowest, highest = limits.min, limits.max
    else:
        lowest, highest = iinfo(dtype).min, iinfo(dtype).max + 1
    if (low < lowest and high < lowest) or (low >= highest and high >= highest and low != high):
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only supports "
            f"[{lowest}, {highest})"
        )
    return max(low, lowest), min(high, highest)


def make_tensor(
    *shape: Any,
    dtype: Any,
    device: Any = "cpu",
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of random numbers, evenly spread over [low, high).

    By default over [-9, 9) for floating, complex and signed dtypes, [0, 10) for unsigned ones, {False, True} for bool.

    Arguments:
        dtype: the dtype; None takes the usual one
        device: where the elements are: a device or its name; None takes the default
        low: the lower bound
        high: the upper bound
        requires_grad: whether autograd records what is done with the tensor
        noncontiguous: whether the tensor has gaps
        exclude_zero: whether zeros are replaced
        memory_format: how the result lies in memory

    Returns: a tensor.

    Raises: TypeError for what is no dtype, ValueError for a gradient of integers, or low above high.

    Example:
        >>> tp.testing.make_tensor((2, 3), dtype=tp.int64, device="cpu", low=0, high=5).shape
        tensorpy.Size([2, 3])
    """
    sizes = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    if not isinstance(dtype, _C.dtype):
        raise TypeError(f"The requested dtype '{dtype}' is not supported by torch.testing.make_tensor()")
    floating = dtype.is_floating_point or dtype.is_complex
    if requires_grad and not floating:
        raise ValueError(
            f"`requires_grad=True` is not supported for boolean and integral dtypes, but got dtype={dtype}"
        )
    if low is None:
        low = 0 if dtype == _C.bool or (not floating and not dtype.is_signed) else -9
    if high is None:
        high = 2 if dtype == _C.bool else 10 if not floating else 9
    low, high = _interval(dtype, low, high)
    if noncontiguous and memory_format is not None:
        raise ValueError("The parameters `noncontiguous` and `memory_format` are mutually exclusive: give one of them")
    noncontiguous = noncontiguous and math.prod(sizes) > 1
    drawn = (*sizes[:-1], 2 * sizes[-1]) if noncontiguous else sizes
    if dtype.is_complex:
        part = _C.float64 if dtype == _C.complex128 else _C.float32
        result = _C.view_as_complex(_C.empty((*drawn, 2), dtype=part).uniform_(low, high)).to(dtype, copy=True)
    elif floating:
        result = _C.empty(drawn, dtype=_C.float64).uniform_(low, high).to(dtype)
    else:
        result = _C.empty(drawn, dtype=_C.int64).random_(math.ceil(low), math.ceil(high)).to(dtype)
    if exclude_zero:
        result = result.masked_fill(result == 0, 1)
    if noncontiguous:
        result = result[..., ::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    result = result.to(device=device)
    return result.requires_grad_() if requires_grad else result


TYPE_CHECKING = False
if TYPE_CHECKING:  # what __getattr__ gives at first use
    from tensorpy.testing._file_check import FileCheck as FileCheck
else:

    def __getattr__(name: str) -> Any:
        """What few tests ask for is imported at first use."""
        if name == "FileCheck":
            from tensorpy.testing._file_check import FileCheck

            return FileCheck
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


__all__ = ["assert_allclose", "assert_close", "default_tolerances", "make_tensor"]
