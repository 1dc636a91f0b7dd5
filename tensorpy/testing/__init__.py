"""Comparing and making tensors in tests: assert_close and make_tensor."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._types import finfo, iinfo

# (rtol, atol) that a dtype's rounding calls for; all other dtypes are compared exactly.
_TOLERANCES = {
    _C.float16: (1e-3, 1e-5),
    _C.bfloat16: (1.6e-2, 1e-5),
    _C.float32: (1.3e-6, 1e-5),
    _C.float64: (1e-7, 1e-7),
    _C.complex64: (1.3e-6, 1e-5),
    _C.complex128: (1e-7, 1e-7),
}


def default_tolerances(*tensors: Tensor) -> tuple[float, float]:
    """The largest of the dtypes' default (rtol, atol)."""
    pairs = [_TOLERANCES.get(t.dtype, (0.0, 0.0)) for t in tensors]
    return max(p[0] for p in pairs), max(p[1] for p in pairs)


def _far(a: Tensor, b: Tensor, rtol: float, atol: float, equal_nan: bool) -> Tensor:
    """Where |a - b| <= atol + rtol * |b| does not hold; an infinity is close to itself only."""
    wide = _wide(a, b)
    x, y = a.to(wide), b.to(wide)
    far = x != y
    if a.is_floating_point() or a.is_complex() or b.is_floating_point() or b.is_complex() or rtol or atol:
        finite = x.isfinite() & y.isfinite()
        far = far & ~(finite & ((x - y).abs() <= atol + rtol * y.abs()))
        far = far & ~(x.isnan() & y.isnan()) if equal_nan else far
    elif wide is _C.float64:  # whole numbers that may be too large for it
        far = far | (a != b)
    return far


def _wide(a: Tensor, b: Tensor) -> Any:
    return _C.complex128 if a.is_complex() or b.is_complex() else _C.float64


def _unravel(index: int, shape: Sequence[int]) -> tuple[int, ...]:
    place = []
    for size in reversed(shape):
        place.append(index % size)
        index //= size
    return tuple(reversed(place))


def _difference(a: Any, b: Any) -> float:
    try:
        gap = abs(a - b)
    except OverflowError:
        return math.inf
    return math.inf if gap != gap else gap


def _mismatch(actual: Tensor, expected: Tensor, rtol: float, atol: float, equal_nan: bool) -> str | None:
    a, b = actual.detach(), expected.detach()
    if a.dtype == b.dtype and a.device == b.device:
        if _C.equal(a, b) or (a.is_floating_point() and bool(_C.isclose(a, b, rtol, atol, equal_nan).all())):
            return None
    a, b = a.cpu().reshape(-1), b.cpu().reshape(-1)
    bad = _far(a, b, rtol, atol, equal_nan)
    count = int(bad.sum())
    if not count:
        return None
    shape = tuple(actual.shape)
    if not shape:
        kind = "Scalars are not" + (" equal" if rtol == atol == 0 else " close")
        allowed = "" if rtol == atol == 0 else f" (up to atol={atol}, rtol={rtol} allowed)"
        x, y = a.item(), b.item()
        return f"{kind}!\n\nExpected {y} but got {x}.\nAbsolute difference: {_difference(x, y)}{allowed}"
    largest, relative = _worst(a, b, bad)
    got, wanted = a[largest].item(), b[largest].item()
    gap, scale = _difference(a[relative].item(), b[relative].item()), b[relative].item()
    ratio = gap / abs(scale) if scale else math.inf
    lines = [
        f"Tensor-likes are not {'equal' if rtol == atol == 0 else 'close'}!",
        "",
        f"Mismatched elements: {count} / {a.numel()} ({100 * count / a.numel():.1f}%)",
        f"Greatest absolute difference: {_difference(got, wanted)} at index {_unravel(largest, shape)}"
        f" (up to {atol} allowed): got {got}, expected {wanted}",
        f"Greatest relative difference: {ratio} at index {_unravel(relative, shape)} (up to {rtol} allowed)",
    ]
    return "\n".join(lines)


def _worst(a: Tensor, b: Tensor, bad: Tensor) -> tuple[int, int]:
    """Where the difference is greatest, and where it is in proportion: of what is bad, the first."""
    wide = _wide(a, b)
    gap = (a.to(wide) - b.to(wide)).abs()
    gap = gap.masked_fill(gap.isnan(), math.inf)
    scale = b.to(wide).abs()
    ratio = (gap / scale).masked_fill((scale == 0) | scale.isnan(), math.inf)
    ratio = ratio.masked_fill(ratio.isnan(), math.inf)
    first, second = (int(g.masked_fill(~bad, -1.0).argmax()) for g in (gap, ratio))
    return first, second


def _compare_sparse(actual: Any, expected: Any, rtol: float, atol: float, equal_nan: bool) -> str | None:
    """Part by part, where both have one layout; as dense tensors otherwise."""
    if actual.layout is not expected.layout:
        return _mismatch(actual.to_dense(), expected.to_dense(), rtol, atol, equal_nan)
    rows = actual.layout is _C.sparse_csr
    kind, names = ("CSR", ("crow_indices", "col_indices")) if rows else ("COO", ("indices",))
    x, y = (actual, expected) if rows else (actual.coalesce(), expected.coalesce())
    if x._nnz() != y._nnz():
        counts = f"{actual._nnz()} != {expected._nnz()}"
        return f"The number of specified values in sparse {kind} tensors does not match: {counts}"
    for name, tolerances in [*((n, (0.0, 0.0)) for n in names), ("values", (rtol, atol))]:
        problem = _mismatch(getattr(x, name)(), getattr(y, name)(), *tolerances, equal_nan)
        if problem:
            return problem.replace("Tensor-likes", f"Sparse {kind} {name}", 1)
    return None


def _compare(actual: Any, expected: Any, options: Mapping[str, Any], where: str) -> str | None:
    """None if the two are close, else what is wrong."""
    at = f"\n\nThe failure occurred for item {where}" if where else ""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if actual.keys() != expected.keys():
            return f"The keys of the mappings do not match: {sorted(actual)} and {sorted(expected)}{at}"
        return next(filter(None, (_compare(actual[k], expected[k], options, f"{where}[{k!r}]") for k in actual)), None)
    if isinstance(actual, (list, tuple)) and isinstance(expected, (list, tuple)):
        if len(actual) != len(expected):
            return f"The length of the sequences mismatch: {len(actual)} != {len(expected)}{at}"
        pairs = enumerate(zip(actual, expected, strict=True))
        return next(filter(None, (_compare(a, b, options, f"{where}[{i}]") for i, (a, b) in pairs)), None)
    if actual is None and expected is None:
        return None
    if not isinstance(actual, Tensor) and not isinstance(expected, Tensor):
        if isinstance(actual, (bool, int, float, complex)) and isinstance(expected, (bool, int, float, complex)):
            actual, expected = _C.tensor(actual, dtype=_kind(actual)), _C.tensor(expected, dtype=_kind(expected))
        elif hasattr(actual, "__array__") and hasattr(expected, "__array__"):
            actual, expected = _C.as_tensor(actual), _C.as_tensor(expected)
        else:
            return None if actual == expected else f"Object comparison failed: {actual!r} != {expected!r}{at}"
    elif not (isinstance(actual, Tensor) and isinstance(expected, Tensor)):
        if options["allow_subclasses"] and hasattr(actual, "__array__") and hasattr(expected, "__array__"):
            actual, expected = _C.as_tensor(actual), _C.as_tensor(expected)
        else:
            return f"Expected two tensors, got {type(actual).__name__} and {type(expected).__name__}{at}"
    problem = _compare_tensors(actual, expected, options)
    return problem and problem + at


def _kind(number: Any) -> Any:
    for kind, dtype in ((bool, _C.bool), (int, _C.int64), (float, _C.float64)):
        if isinstance(number, kind):
            return dtype
    return _C.complex128


def _compare_tensors(actual: Tensor, expected: Tensor, options: Mapping[str, Any]) -> str | None:
    if actual.shape != expected.shape:
        return f"The values for attribute 'shape' do not match: {actual.shape} != {expected.shape}."
    if options["check_device"] and actual.device != expected.device:
        return f"The values for attribute 'device' do not match: {actual.device} != {expected.device}."
    if options["check_dtype"] and actual.dtype != expected.dtype:
        return f"The values for attribute 'dtype' do not match: {actual.dtype} != {expected.dtype}."
    if options["check_layout"] and actual.layout != expected.layout:
        return f"The values for attribute 'layout' do not match: {actual.layout} != {expected.layout}."
    if (
        options["check_stride"]
        and actual.layout is expected.layout is _C.strided
        and actual.stride() != expected.stride()
    ):
        return f"The values for attribute 'stride()' do not match: {actual.stride()} != {expected.stride()}."
    rtol, atol = options["rtol"], options["atol"]
    if rtol is None:
        rtol, atol = default_tolerances(actual, expected)
    if actual.layout is not _C.strided or expected.layout is not _C.strided:
        return _compare_sparse(actual, expected, rtol, atol, options["equal_nan"])
    return _mismatch(actual, expected, rtol, atol, options["equal_nan"])


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Asserts that |actual - expected| <= atol + rtol * |expected| everywhere, for tensors, numbers, arrays, and
    sequences and mappings of them. Without tolerances, those of the dtypes are taken."""
    if (rtol is None) != (atol is None):
        raise ValueError(
            f"assert_close takes rtol and atol together, or neither: {'rtol' if rtol is None else 'atol'} is missing"
        )
    options = {
        "allow_subclasses": allow_subclasses,
        "rtol": rtol,
        "atol": atol,
        "equal_nan": equal_nan,
        "check_device": check_device,
        "check_dtype": check_dtype,
        "check_layout": check_layout,
        "check_stride": check_stride,
    }
    problem = _compare(actual, expected, options, "")
    if problem:
        raise AssertionError(problem if msg is None else msg(problem) if callable(msg) else msg)


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
    """Deprecated: assert_close with wider tolerances, where NaN equals NaN and dtypes and devices may differ."""
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
    """
    sizes = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    floating = dtype.is_floating_point or dtype.is_complex
    if low is None:
        low = 0 if dtype == _C.bool or (not floating and not dtype.is_signed) else -9
    if high is None:
        high = 2 if dtype == _C.bool else 10 if not floating else 9
    low, high = _interval(dtype, low, high)
    if noncontiguous and memory_format is not None:
        raise ValueError("The parameters `noncontiguous` and `memory_format` are mutually exclusive: give one of them")
    drawn = (*sizes[:-1], 2 * sizes[-1]) if noncontiguous and sizes else sizes
    if dtype.is_complex:
        part = _C.float32 if dtype == _C.complex64 else _C.float64
        result = _C.view_as_complex(_C.empty((*drawn, 2), dtype=part).uniform_(low, high))
    elif floating:
        result = _C.empty(drawn, dtype=_C.float64).uniform_(low, high).to(dtype)
    else:
        result = _C.empty(drawn, dtype=_C.int64).random_(math.ceil(low), math.ceil(high)).to(dtype)
    if exclude_zero:
        result = result.masked_fill(result == 0, 1)
    if noncontiguous and sizes:
        result = result[..., ::2]
    elif memory_format is not None:
        result = result.contiguous(memory_format=memory_format)
    result = result.to(device=device)
    return result.requires_grad_() if requires_grad and floating else result


def __getattr__(name: str) -> Any:
    """What few tests ask for is imported at first use."""
    if name == "FileCheck":
        from tensorpy.testing._file_check import FileCheck

        return FileCheck
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


__all__ = ["assert_allclose", "assert_close", "default_tolerances", "make_tensor"]
