"""Operators of masked elements: what the mask leaves out is replaced by the operator's identity, then it runs.

A mask is of bool, True where an element counts, and broadcasts to the input. Where nothing is selected, a result is the
identity itself (0 of a sum, infinity of amin) or what computing with it gives (NaN of a mean).
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._tensor.dtypes import iinfo

_NARROW = (_C.bool, _C.uint8, _C.int8, _C.int16, _C.int32)  # which sums and products compute in int64

# What an operator's unselected elements become: a number, or the lowest or highest of the dtype.
_NUMBERS = {"sum": 0, "cumsum": 0, "prod": 1, "cumprod": 1, "norm": 0, "mean": None, "var": None, "std": None}
_LOWEST = ("amax", "argmax", "logaddexp", "logsumexp")
_HIGHEST = ("amin", "argmin")
_SCANS = ("cumsum", "cumprod", "softmax", "log_softmax", "softmin", "normalize")


# ---- masks ----


def _canonical_dim(dim: Any, ndim: int) -> tuple[int, ...]:
    """The dimensions that an argument `dim` means, none of them negative, in order."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    size, found = builtins.max(ndim, 1), []
    for d in (dim,) if isinstance(dim, int) else dim:
        if not -size <= d < size:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-size}, {size - 1}], but got {d})")
        if d % size in found:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        found.append(d % size)
    return tuple(sorted(found))


def _extreme(name: str, dtype: Any, sign: int) -> Any:
    if dtype.is_floating_point:
        return sign * math.inf
    if dtype.is_complex and name.startswith("log"):
        return -math.inf
    if dtype == _C.bool or dtype.is_complex:
        raise NotImplementedError(f"identity of {name} on {dtype} input")
    return iinfo(dtype).max if sign > 0 else iinfo(dtype).min


def _reduction_identity(op_name: str, input: Tensor, *args: Any) -> Tensor | None:
    """The value that an operator's result does not depend on, a tensor without dimensions; None where there is none."""
    name = op_name.rpartition(".")[2]
    value: Any
    if name == "norm" and args and args[0] == -math.inf:
        value = math.inf
    elif name in _NUMBERS:
        value = _NUMBERS[name]
    elif name in _LOWEST or name in _HIGHEST:
        value = _extreme(name, input.dtype, 1 if name in _HIGHEST else -1)
    elif name == "median":
        dtype = input.dtype if input.is_floating_point() else _C.get_default_dtype()
        return _C.tensor(math.nan, dtype=dtype, device=input.device)
    else:
        raise NotImplementedError(f"identity of {op_name} on {input.dtype} input")
    return None if value is None else _C.tensor(value, dtype=input.dtype, device=input.device)


def _strided(t: Tensor) -> Tensor:
    return t if t.layout == _C.strided else t.to_dense()


def _input_mask(input: Tensor, *args: Any, mask: Tensor | None = None, **kwargs: Any) -> Tensor:
    """The mask in the shape of the input."""
    if mask is None:
        raise ValueError("_input_mask requires explicit mask")
    if mask.ndim > input.ndim:
        raise IndexError(
            "_input_mask expected broadcastable mask (got mask dimensionality higher than of the input): "
            f"{mask.ndim} > {input.ndim}"
        )
    return _C.broadcast_to(_strided(mask), input.shape).to(_C.bool)


def _output_mask(op: Callable[..., Any], input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Where a result is of at least one element that was selected."""
    name = getattr(op, "__name__", "")
    mask = _input_mask(input, mask=kwargs.get("mask"))
    if name in _SCANS:
        return mask
    at = 1 if name == "norm" else 0
    dims = _canonical_dim(args[at] if len(args) > at else kwargs.get("dim"), input.ndim)
    if name == "median" and len(args) <= at and "dim" not in kwargs:
        dims = _canonical_dim(-1, input.ndim)
    return mask.any(dims, bool(kwargs.get("keepdim", False))) if input.ndim else mask


def _where(mask: Tensor, input: Tensor, fill_value: Tensor) -> Tensor:
    """The input where the mask is True, else the value."""
    return _C.where(mask, input, fill_value)


def _combine_input_and_mask(op: Any, input: Tensor, mask: Tensor | None, *args: Any) -> Tensor:
    """The input with the identity of an operator where the mask is False. Nothing flows back to what is left out."""
    input = _strided(input)
    if mask is None:
        return input
    fill = _reduction_identity(op if isinstance(op, str) else op.__name__, input, *args)
    assert fill is not None
    return _where(_input_mask(input, mask=mask), input, fill.to(input.dtype))


# ---- reductions ----


def _summed_dtype(input: Tensor, dtype: Any) -> Any:
    if dtype is not None:
        return dtype
    return _C.int64 if input.dtype in _NARROW else input.dtype


def sum(
    input: Tensor, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The sum of the elements that the mask selects; 0 of none.

    Arguments:
        input: the tensor
        dim: the dimension; a negative one counts from the last
        keepdim: whether reduced dimensions stay, with size 1
        dtype: the dtype; None takes the usual one
        mask: bool: which elements count

    Example:
        >>> tp.masked.sum(tp.tensor([1.0, 2.0, 9.0]), mask=tp.tensor([True, True, False]))
        tensor(3.)
    """
    dims = _canonical_dim(dim, input.ndim)
    dtype = _summed_dtype(input, dtype)
    return _C.sum(_combine_input_and_mask("sum", input, mask), dims, bool(keepdim), dtype=dtype)


def prod(
    input: Tensor, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The product of the elements that the mask selects; 1 of none.

    Arguments:
        input: the tensor
        dim: the dimension; a negative one counts from the last
        keepdim: whether reduced dimensions stay, with size 1
        dtype: the dtype; None takes the usual one
        mask: bool: which elements count

    Example:
        >>> tp.masked.prod(tp.tensor([1.0, 2.0, 9.0]), mask=tp.tensor([True, True, False]))
        tensor(2.)
    """
    dtype = _summed_dtype(input, dtype)
    result = _combine_input_and_mask("prod", input, mask)
    for d in reversed(_canonical_dim(dim, input.ndim)):
        result = result.prod(d, bool(keepdim), dtype=dtype)
    return result.to(dtype)


def _extreme_of(
    name: str, op: Callable[..., Tensor], input: Tensor, dim: Any, keepdim: Any, dtype: Any, mask: Any
) -> Tensor:
    filled = _combine_input_and_mask(name, input, mask)
    return op(filled, dim, bool(keepdim)).to(input.dtype if dtype is None else dtype)


def amax(
    input: Tensor, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The largest element that the mask selects; the lowest value of the dtype of none.

    Arguments:
        input: the tensor
        dim: the dimension; a negative one counts from the last
        keepdim: whether reduced dimensions stay, with size 1
        dtype: the dtype; None takes the usual one
        mask: bool: which elements count

    Example:
        >>> tp.masked.amax(tp.tensor([1.0, 2.0, 9.0]), mask=tp.tensor([True, True, False]))
        tensor(2.)
    """
    return _extreme_of("amax", _C.amax, input, _canonical_dim(dim, input.ndim), keepdim, dtype, mask)


def amin(
    input: Tensor, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The smallest element that the mask selects; the highest value of the dtype of none.

    Arguments:
        input: the tensor
        dim: the dimension; a negative one counts from the last
        keepdim: whether reduced dimensions stay, with size 1
        dtype: the dtype; None takes the usual one
        mask: bool: which elements count

    Example:
        >>> tp.masked.amin(tp.tensor([1.0, 2.0, 9.0]), mask=tp.tensor([True, True, False]))
        tensor(1.)
    """
    return _extreme_of("amin", _C.amin, input, _canonical_dim(dim, input.ndim), keepdim, dtype, mask)


def argmax(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Where the largest element is that the mask selects, in the input's dtype.

    Arguments:
        input: the tensor
        dim: the dimension; a negative one counts from the last
        keepdim: whether reduced dimensions stay, with size 1
        dtype: the dtype; None takes the usual one
        mask: bool: which elements count

    Example:
        >>> tp.masked.argmax(tp.tensor([1.0, 2.0, 9.0]), 0, mask=tp.tensor([True, True, False]))
        tensor(1.)
    """
    return _extreme_of("argmax", _C.argmax, input, dim, keepdim, dtype, mask)


def argmin(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Where the smallest element is that the mask selects, in the input's dtype.

    Arguments:
        input: the tensor
        dim: the dimension; a negative one counts from the last
        keepdim: whether reduced dimensions stay, with size 1
        dtype: the dtype; None takes the usual one
        mask: bool: which elements count

    Example:
        >>> tp.masked.argmin(tp.tensor([1.0, 2.0, 9.0]), 0, mask=tp.tensor([True, True, False]))
        tensor(0.)
    """
    return _extreme_of("argmin", _C.argmin, input, dim, keepdim, dtype, mask)


def logsumexp(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """log(sum(exp)) of the elements that the mask selects; minus infinity of none.

    Arguments:
        input: the tensor
        dim: the dimension; a negative one counts from the last
        keepdim: whether reduced dimensions stay, with size 1
        dtype: the dtype; None takes the usual one
        mask: bool: which elements count

    Example:
        >>> tp.masked.logsumexp(tp.tensor([1.0, 2.0, 9.0]), 0, mask=tp.tensor([True, True, False]))
        tensor(2.3133)
    """
    return _extreme_of("logsumexp", _C.logsumexp, input, _canonical_dim(dim, input.ndim), keepdim, dtype, mask)


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: Any = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """log(exp(input) + exp(other)) of the elements that the masks select of each.

    Arguments:
        input: the tensor
        other: the other tensor
        dtype: the dtype; None takes the usual one
        input_mask: bool: which elements of the input count
        other_mask: bool: which elements of the other tensor count

    Example:
        >>> x, mask = tp.tensor([0.0, 1.0]), tp.tensor([True, True])
        >>> tp.masked.logaddexp(x, x, input_mask=mask, other_mask=mask)
        tensor([0.6931, 1.6931])
    """
    first = _combine_input_and_mask("logaddexp", input, input_mask)
    second = _combine_input_and_mask("logaddexp", other, other_mask)
    return _C.logaddexp(first, second).to(input.dtype if dtype is None else dtype)


def _selected(input: Tensor, mask: Tensor | None) -> Tensor:
    """1 for an element that counts, in int64."""
    whole = _C.ones(input.shape, dtype=_C.int64, device=input.device)
    return whole if mask is None else whole * _input_mask(input, mask=mask)


def mean(
    input: Tensor, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The mean of the elements that the mask selects; NaN of none.

    Arguments:
        input: the tensor
        dim: the dimension; a negative one counts from the last
        keepdim: whether reduced dimensions stay, with size 1
        dtype: the dtype; None takes the usual one
        mask: bool: which elements count

    Example:
        >>> tp.masked.mean(tp.tensor([1.0, 2.0, 9.0]), mask=tp.tensor([True, True, False]))
        tensor(1.5000)
    """
    dtype = input.dtype if dtype is None else dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(
            "mean(): Could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
            f"Got: {dtype}"
        )
    count = sum(_selected(input, mask), dim, keepdim=keepdim)
    return sum(input, dim, keepdim=keepdim, dtype=dtype, mask=mask) / count


def median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The median of the elements that the mask selects; NaN of none, a ValueError where the dtype has no NaN.

    Arguments:
        input: the tensor
        dim: the dimension; a negative one counts from the last
        keepdim: whether reduced dimensions stay, with size 1
        dtype: the dtype; None takes the usual one
        mask: bool: which elements count

    Example:
        >>> tp.masked.median(tp.tensor([1.0, 2.0, 9.0]), 0, mask=tp.tensor([True, True, False]))
        tensor(1.)
    """
    dtype = input.dtype if dtype is None else dtype
    d = _canonical_dim(dim, input.ndim)[0]
    smooth = input.is_floating_point()
    found = _C.nanmedian(
        _combine_input_and_mask("median", input if smooth else input.to(_C.float32), mask), d, keepdim
    )[0]
    if smooth:
        return found
    if bool(found.isnan().any()):
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return found.to(dtype)


def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: Any = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The vector norm of the elements that the mask selects.

    Arguments:
        input: the tensor
        ord: the order of the norm
        dim: the dimension; a negative one counts from the last
        keepdim: whether reduced dimensions stay, with size 1
        dtype: the dtype; None takes the usual one
        mask: bool: which elements count

    Example:
        >>> tp.masked.norm(tp.tensor([1.0, 2.0, 9.0]), 2.0, mask=tp.tensor([True, True, False]))
        tensor(2.2361)
    """
    dims = _canonical_dim(dim, input.ndim)
    filled = _combine_input_and_mask("norm", input, mask, ord)

    return _C._linalg.linalg_vector_norm(filled, ord, dims, bool(keepdim), dtype=dtype)


def _correction(unbiased: bool | None, correction: float | None) -> float:
    """What is taken off the number of elements; one by default."""
    if unbiased is not None and correction is not None:
        raise RuntimeError("Only one of unbiased and correction may be given")
    return (1 if unbiased is None else int(unbiased)) if correction is None else correction


def _variance(input: Tensor, dim: Any, correction: float, keepdim: Any, dtype: Any, mask: Any) -> tuple[Tensor, Any]:
    """The variance, in the dtype that it is computed in, and the result's dtype."""
    dtype = input.dtype if dtype is None else dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        dtype = _C.float32
    count = sum(_selected(input, mask), dim, keepdim=True)
    middle = sum(input, dim, keepdim=True, dtype=dtype, mask=mask) / count
    away = input - middle
    total = sum(away * away.conj(), dim, keepdim=keepdim, dtype=dtype, mask=mask)
    count = count if keepdim else count.reshape(total.shape)
    count = (count - correction).clamp(min=0)
    return (total / count).to(dtype), dtype


def var(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The variance of the elements that the mask selects; NaN of none.

    Arguments:
        input: the tensor
        dim: the dimension; a negative one counts from the last
        unbiased: whether the divisor is the number of elements less one
        correction: what is subtracted from the number of elements in the divisor
        keepdim: whether reduced dimensions stay, with size 1
        dtype: the dtype; None takes the usual one
        mask: bool: which elements count

    Example:
        >>> tp.masked.var(tp.tensor([1.0, 2.0, 9.0]), 0, True, mask=tp.tensor([True, True, False]))
        tensor(0.5000)
    """
    return _variance(input, dim, _correction(unbiased, correction), keepdim, dtype, mask)[0]


def std(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The standard deviation of the elements that the mask selects; NaN of none.

    Arguments:
        input: the tensor
        dim: the dimension; a negative one counts from the last
        unbiased: whether the divisor is the number of elements less one
        correction: what is subtracted from the number of elements in the divisor
        keepdim: whether reduced dimensions stay, with size 1
        dtype: the dtype; None takes the usual one
        mask: bool: which elements count

    Example:
        >>> tp.masked.std(tp.tensor([1.0, 2.0, 9.0]), 0, True, mask=tp.tensor([True, True, False]))
        tensor(0.7071)
    """
    found, dtype = _variance(input, dim, _correction(unbiased, correction), keepdim, dtype, mask)
    return found.sqrt().to(dtype)


# ---- scans and normalisations ----


def cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The sums up to each element, of those that the mask selects.

    Arguments:
        input: the tensor
        dim: the dimension; a negative one counts from the last
        dtype: the dtype; None takes the usual one
        mask: bool: which elements count

    Example:
        >>> tp.masked.cumsum(tp.tensor([1.0, 2.0, 9.0]), 0, mask=tp.tensor([True, True, False]))
        tensor([1., 3., 3.])
    """
    dtype = input.dtype if dtype is None else dtype
    d = _canonical_dim(dim, input.ndim)[0]
    return _C.cumsum(_combine_input_and_mask("sum", input, mask), d, dtype=dtype).to(dtype)


def cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The products up to each element, of those that the mask selects.

    Arguments:
        input: the tensor
        dim: the dimension; a negative one counts from the last
        dtype: the dtype; None takes the usual one
        mask: bool: which elements count

    Example:
        >>> tp.masked.cumprod(tp.tensor([1.0, 2.0, 9.0]), 0, mask=tp.tensor([True, True, False]))
        tensor([1., 2., 2.])
    """
    dtype = input.dtype if dtype is None else dtype
    d = _canonical_dim(dim, input.ndim)[0]
    return _C.cumprod(_combine_input_and_mask("prod", input, mask), d, dtype=dtype).to(dtype)


def softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """softmax over the elements that the mask selects; NaN where there are none.

    Arguments:
        input: the tensor
        dim: the dimension; a negative one counts from the last
        dtype: the dtype; None takes the usual one
        mask: bool: which elements count

    Example:
        >>> tp.masked.softmax(tp.tensor([1.0, 2.0, 9.0]), 0, mask=tp.tensor([True, True, False]))
        tensor([0.2689, 0.7311, 0.0000])
    """
    dtype = input.dtype if dtype is None else dtype
    d = _canonical_dim(dim, input.ndim)[0]
    return _C.softmax(_combine_input_and_mask("amax", input, mask), d, dtype=dtype)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """log(softmax) over the elements that the mask selects; NaN where there are none.

    Arguments:
        input: the tensor
        dim: the dimension; a negative one counts from the last
        dtype: the dtype; None takes the usual one
        mask: bool: which elements count

    Example:
        >>> tp.masked.log_softmax(tp.tensor([1.0, 2.0, 9.0]), 0, mask=tp.tensor([True, True, False]))
        tensor([-1.3133, -0.3133,    -inf])
    """
    dtype = input.dtype if dtype is None else dtype
    d = _canonical_dim(dim, input.ndim)[0]
    return _C.log_softmax(_combine_input_and_mask("amax", input, mask), d, dtype=dtype)


def softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """softmax of the negative over the elements that the mask selects; NaN where there are none.

    Arguments:
        input: the tensor
        dim: the dimension; a negative one counts from the last
        dtype: the dtype; None takes the usual one
        mask: bool: which elements count

    Example:
        >>> tp.masked.softmin(tp.tensor([1.0, 2.0, 9.0]), 0, mask=tp.tensor([True, True, False]))
        tensor([0.7311, 0.2689, 0.0000])
    """
    dtype = input.dtype if dtype is None else dtype
    d = _canonical_dim(dim, input.ndim)[0]
    return _C.softmax(-_combine_input_and_mask("amin", input, mask), d, dtype=dtype)


def normalize(
    input: Tensor,
    ord: float,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The elements over the norm of those that the mask selects, or over `eps` where that is more.

    Arguments:
        input: the tensor
        ord: which norm
        dim: the dimension; a negative one counts from the last
        eps: a small number that keeps divisions in range
        dtype: the dtype; None takes the usual one
        mask: bool: which elements count

    Example:
        >>> tp.masked.normalize(tp.tensor([3.0, 4.0, 9.0]), 2.0, 0, mask=tp.tensor([True, True, False]))
        tensor([0.6000, 0.8000, 0.0000])
    """
    size = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _combine_input_and_mask("sum", input, mask) / _C.maximum(size, size.new_full((), eps))
