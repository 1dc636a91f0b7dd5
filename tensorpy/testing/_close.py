"""assert_close: whether two values are close, and in words where they are not."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._utils import unravel

# (rtol, atol) that a dtype's rounding calls for; all other dtypes are compared exactly.
_TOLERANCES = {
    _C.float16: (1e-3, 1e-5),
    _C.bfloat16: (1.6e-2, 1e-5),
    _C.float32: (1.3e-6, 1e-5),
    _C.float64: (1e-7, 1e-7),
    _C.complex32: (1e-3, 1e-5),
    _C.complex64: (1.3e-6, 1e-5),
    _C.complex128: (1e-7, 1e-7),
}


def default_tolerances(*tensors: Tensor) -> tuple[float, float]:
    """The largest of the dtypes' default (rtol, atol).

    Returns: two floats.

    Example:
        >>> tp.testing.default_tolerances(tp.ones(1), tp.ones(1))
        (1.3e-06, 1e-05)
    """
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


def _difference(a: Any, b: Any) -> float:
    try:
        return abs(a - b)
    except OverflowError:
        return math.inf


def _allowed(rtol: float, atol: float) -> tuple[str, tuple[str, str]]:
    """What was asked, and how far apart values may be: absolutely and in proportion."""
    if rtol == atol == 0:
        return "equal", ("", "")
    return "close", (f" (up to {atol} allowed)", f" (up to {rtol} allowed)")


def _apart(actual: Any, expected: Any, rtol: float, atol: float) -> str:
    """That two numbers are not close."""
    kind, (absolute, proportional) = _allowed(rtol, atol)
    gap = _difference(actual, expected)
    ratio = gap / abs(expected) if expected else math.inf
    return (
        f"Scalars are not {kind}!\n\nExpected {expected} but got {actual}.\n"
        f"Absolute difference: {gap}{absolute}\nRelative difference: {ratio}{proportional}"
    )


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
        return _apart(a.item(), b.item(), rtol, atol)
    largest, relative = _worst(a, b, bad)
    got, wanted = a[largest].item(), b[largest].item()
    gap, scale = _difference(a[relative].item(), b[relative].item()), b[relative].item()
    ratio = gap / abs(scale) if scale else math.inf
    kind, (absolute, proportional) = _allowed(rtol, atol)
    lines = [
        f"Tensor-likes are not {kind}!",
        "",
        f"Mismatched elements: {count} / {a.numel()} ({100 * count / a.numel():.1f}%)",
        f"Greatest absolute difference: {_difference(got, wanted)} at index {unravel(largest, shape)}{absolute}"
        f": got {got}, expected {wanted}",
        f"Greatest relative difference: {ratio} at index {unravel(relative, shape)}{proportional}",
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
    if actual._nnz() != expected._nnz():
        counts = f"{actual._nnz()} != {expected._nnz()}"
        return f"The number of specified values in sparse {kind} tensors does not match: {counts}"
    x, y = (actual, expected) if rows else (actual.coalesce(), expected.coalesce())
    for name, tolerances in [*((n, (0.0, 0.0)) for n in names), ("values", (rtol, atol))]:
        problem = _mismatch(getattr(x, name)(), getattr(y, name)(), *tolerances, equal_nan)
        if problem:
            return problem.replace("Tensor-likes", f"Sparse {kind} {name}", 1)
    return None


def _compare(actual: Any, expected: Any, options: Mapping[str, Any], where: str) -> str | None:
    """None if the two are close, else what is wrong. Raises TypeError for a pair that is none of numbers, tensors (and
    what they are made from), sequences and mappings."""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        problem = _compare_keys(actual, expected)
        pairs = [(f"{where}[{k!r}]", actual[k], expected[k]) for k in actual] if problem is None else []
    elif _is_sequence(actual) and _is_sequence(expected):
        same = len(actual) == len(expected)
        problem = None if same else f"The length of the sequences mismatch: {len(actual)} != {len(expected)}"
        pairs = [(f"{where}[{i}]", a, b) for i, (a, b) in enumerate(zip(actual, expected, strict=True))] if same else []
    else:
        problem, pairs = _compare_values(actual, expected, options), []
    if problem:
        return problem + (f"\n\nThe failure occurred for item {where}" if where else "")
    return next(filter(None, (_compare(a, b, options, at) for at, a, b in pairs)), None)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _compare_keys(actual: Mapping[Any, Any], expected: Mapping[Any, Any]) -> str | None:
    missing = sorted(map(repr, expected.keys() - actual.keys()))
    added = sorted(map(repr, actual.keys() - expected.keys()))
    if not missing and not added:
        return None
    return (
        "The keys of the mappings do not match:\n"
        f"Missing keys in the actual mapping: [{', '.join(missing)}]\n"
        f"Additional keys in the actual mapping: [{', '.join(added)}]"
    )


def _compare_values(actual: Any, expected: Any, options: Mapping[str, Any]) -> str | None:
    if actual is None or expected is None:
        return None if actual is expected else f"None mismatch: {actual} is not {expected}"
    if _is_bool(actual) and _is_bool(expected):
        return None if bool(actual) == bool(expected) else f"Booleans mismatch: {actual} is not {expected}"
    if _is_number(actual) and _is_number(expected):
        return _compare_numbers(actual, expected, options)
    a, b = type(actual), type(expected)
    related = isinstance(actual, b) or isinstance(expected, a) if options["allow_subclasses"] else a is b
    tensors = (_tensor(actual), _tensor(expected)) if related else None
    if tensors is None or tensors[0] is None or tensors[1] is None:
        raise TypeError(f"No comparison pair was able to handle inputs of type {a} and {b}.")
    return _compare_tensors(tensors[0], tensors[1], options)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool) or type(value).__name__ in ("bool_", "bool")


def _is_number(value: Any) -> bool:
    """Python's numbers, and NumPy's, which know no more than their kind."""
    return isinstance(value, (int, float, complex)) or (hasattr(type(value), "dtype") and not hasattr(value, "__len__"))


def _compare_numbers(actual: Any, expected: Any, options: Mapping[str, Any]) -> str | None:
    actual, expected = (getattr(x, "item", lambda x=x: x)() for x in (actual, expected))
    if options["check_dtype"] and type(actual) is not type(expected):
        return f"The (d)types do not match: {type(actual)} != {type(expected)}."
    rtol, atol = options["rtol"], options["atol"]
    if rtol is None:
        inexact = isinstance(actual, (float, complex)) or isinstance(expected, (float, complex))
        rtol, atol = _TOLERANCES[_C.float64] if inexact else (0.0, 0.0)
    close = (
        actual == expected
        or (options["equal_nan"] and actual != actual and expected != expected)
        or (_is_finite(actual) and _is_finite(expected) and abs(actual - expected) <= atol + rtol * abs(expected))
    )
    return None if close else _apart(actual, expected, rtol, atol)


def _is_finite(number: complex) -> bool:
    return isinstance(number, int) or cmath.isfinite(number)


def _tensor(value: Any) -> Tensor | None:
    """A tensor over what is one, or can be read as one."""
    if isinstance(value, Tensor):
        return value
    try:
        return _C.as_tensor(value)
    except Exception:
        return None


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
    sequences and mappings of them. Without tolerances, those of the dtypes are taken.

    Arguments:
        actual: what came out
        expected: what is wanted
        allow_subclasses: whether subclasses are equal to Tensor
        rtol: the relative tolerance
        atol: the absolute tolerance
        equal_nan: whether two NaN are equal
        check_device: whether devices are compared
        check_dtype: whether dtypes are compared
        check_layout: whether layouts are compared
        check_stride: whether strides are compared
        msg: a message, or a function of the usual one

    Example:
        >>> tp.testing.assert_close(tp.tensor([1.0]), tp.tensor([1.0 + 1e-7]))
    """
    if (rtol is None) != (atol is None):
        missing = "rtol" if rtol is None else "atol"
        raise ValueError(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.")
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
