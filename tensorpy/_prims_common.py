"""Questions about dtypes and shapes that libraries ask under these names."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import reduce
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor

_REAL_OF = {_C.complex32: _C.float16, _C.complex64: _C.float32, _C.complex128: _C.float64}
_COMPLEX_OF = {real: own for own, real in _REAL_OF.items()} | {_C.bfloat16: _C.complex64}
_INTEGERS = (_C.uint8, _C.uint16, _C.uint32, _C.uint64, _C.int8, _C.int16, _C.int32, _C.int64)
_LOW = (_C.bfloat16, _C.float16)
_COMPUTED_IN = {_C.bfloat16: _C.float32, _C.float16: _C.float32, _C.complex32: _C.complex64}


def is_boolean_dtype(dtype: Any) -> bool:
    """Whether it is bool."""
    return dtype is _C.bool


def is_integer_dtype(dtype: Any) -> bool:
    """Whether it is of whole numbers; bool is not."""
    return dtype in _INTEGERS


def is_float_dtype(dtype: Any) -> bool:
    """Whether it is of real floats."""
    return bool(dtype.is_floating_point)


def is_complex_dtype(dtype: Any) -> bool:
    """Whether it is complex."""
    return bool(dtype.is_complex)


def is_low_precision_dtype(dtype: Any) -> bool:
    """Whether it is a float of 16 bits."""
    return dtype in _LOW


def is_grad_dtype(dtype: Any) -> bool:
    """Whether tensors of it have gradients."""
    return bool(dtype.is_floating_point or dtype.is_complex)


def corresponding_real_dtype(dtype: Any) -> Any:
    """That of the real and the imaginary part."""
    return _REAL_OF[dtype]


def corresponding_complex_dtype(dtype: Any) -> Any:
    """That whose parts are of this one."""
    return _COMPLEX_OF[dtype]


def dtype_to_type(dtype: Any) -> type:
    """The Python number that elements become."""
    if dtype is _C.bool:
        return bool
    if is_integer_dtype(dtype):
        return int
    return float if is_float_dtype(dtype) else complex


def type_to_dtype(kind: type) -> Any:
    """The dtype that a Python number has as a tensor."""
    dtypes = {bool: _C.bool, int: _C.int64, float: _C.get_default_dtype()}
    if kind in dtypes:
        return dtypes[kind]
    if kind is complex:
        return _COMPLEX_OF.get(_C.get_default_dtype(), _C.complex64)
    raise ValueError(f"Invalid type {kind}!")


class ELEMENTWISE_TYPE_PROMOTION_KIND(Enum):
    """What a pointwise operator makes of the dtype that its operands promote to."""

    DEFAULT = (0,)
    NO_OPMATH = (1,)
    INT_TO_FLOAT = (2,)
    ALWAYS_BOOL = (3,)
    COMPLEX_TO_FLOAT = (4,)
    BOOL_TO_LONG = (5,)


def _category(dtype: Any) -> int:
    """Bool, whole numbers, floats and complex numbers, in this order."""
    return 3 if dtype.is_complex else 2 if dtype.is_floating_point else 0 if dtype is _C.bool else 1


def _promoted(operands: Sequence[Any]) -> Any:
    """The dtype of tensors and numbers together: one without dimensions, or a number, only lifts the category."""
    ranks: tuple[list[Any], ...] = ([], [], [])  # with dimensions, without any, numbers
    for operand in operands:
        if isinstance(operand, Tensor):
            ranks[0 if operand.dim() else 1].append(operand.dtype)
        elif operand is not None:
            ranks[2].append(_C.get_default_dtype() if isinstance(operand, float) else type_to_dtype(type(operand)))
    found = None
    for dtypes in ranks:
        for dtype in [reduce(_C.promote_types, dtypes)] if dtypes else []:
            if found is None:
                found = dtype
            elif _category(dtype) > _category(found):
                found = _COMPLEX_OF[found] if found.is_floating_point else dtype
    return _C.bool if found is None else found


def elementwise_dtypes(*_args: Any, type_promotion_kind: ELEMENTWISE_TYPE_PROMOTION_KIND) -> tuple[Any, Any]:
    """The dtypes that a pointwise operator computes in and gives, for tensors and numbers.

    Arguments:
        _args: the operands; None counts as none
        type_promotion_kind: what becomes of the dtype that they promote to

    Returns: (dtype, dtype); without operands they promote to bool.

    Example:
        >>> from tensorpy import _prims_common as utils
        >>> kind = utils.ELEMENTWISE_TYPE_PROMOTION_KIND.INT_TO_FLOAT
        >>> utils.elementwise_dtypes(tp.ones(2, dtype=tp.int32), 3, type_promotion_kind=kind)
        (tensorpy.float32, tensorpy.float32)
    """
    kind, kinds = type_promotion_kind, ELEMENTWISE_TYPE_PROMOTION_KIND
    dtype = _promoted(_args)
    if kind is kinds.BOOL_TO_LONG and dtype is _C.bool:
        dtype = _C.int64
    if kind is kinds.INT_TO_FLOAT and _category(dtype) < 2:
        dtype = _C.get_default_dtype()
    computed = dtype if kind is kinds.NO_OPMATH else _COMPUTED_IN.get(dtype, dtype)
    if kind is kinds.COMPLEX_TO_FLOAT and dtype.is_complex:
        return computed, corresponding_real_dtype(dtype)
    return computed, _C.bool if kind is kinds.ALWAYS_BOOL else dtype


def make_contiguous_strides_for(shape: Sequence[int], row_major: bool = True) -> tuple[int, ...]:
    """The strides of a tensor without gaps; row_major=False: its last two dimensions are the other way round."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    found = tuple(reversed(strides))
    if row_major or len(shape) < 2:
        return found
    return (*found[:-2], 1, max(shape[-2], 1))


def canonicalize_dim(rank: int, idx: int, wrap_scalar: bool = True) -> int:
    """A dimension as a number that is not negative."""
    if rank < 0:
        raise IndexError(f"Rank cannot be negative but got {rank}")
    if rank == 0:
        if not wrap_scalar:
            raise IndexError(f"Dimension specified as {idx} but tensor has no dimensions")
        rank = 1
    if not -rank <= idx < rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {idx})")
    return idx % rank


def canonicalize_dims(rank: int, indices: Any, wrap_scalar: bool = True) -> Any:
    """The same of one, or of several."""
    if isinstance(indices, int):
        return canonicalize_dim(rank, indices, wrap_scalar)
    return tuple(canonicalize_dim(rank, i, wrap_scalar) for i in indices)


def is_same_shape(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether two shapes are one."""
    return tuple(a) == tuple(b)


def is_contiguous(a: Tensor) -> bool:
    """Whether the elements are one after another, the last dimension the fastest."""
    return a.is_contiguous()


class MetadataMismatchError(RuntimeError):
    """Two tensors do not say the same of themselves."""


def _first_other(a: Tensor, b: Tensor, only_cuda: bool, significant: bool) -> tuple[bool, int | None]:
    if a.numel() == 0 or (only_cuda and not (a.is_cuda or b.is_cuda)):
        return True, None
    for i, (one, other, size) in enumerate(zip(a.stride(), b.stride(), a.shape, strict=False)):
        if one != other and not (significant and size < 2):
            return False, i
    return True, None


def check_significant_strides(
    a: Tensor, b: Tensor, *, only_cuda: bool = True, allow_rhs_unbacked: bool = False
) -> tuple[bool, int | None]:
    """Whether two tensors of one shape have the same strides where that says where an element is, and the first
    dimension in which they have not; True where neither is on a CUDA device, unless that is not asked."""
    return _first_other(a, b, only_cuda, True)


def check_all_strides(a: Tensor, b: Tensor, *, only_cuda: bool = True) -> tuple[bool, int | None]:
    """The same of all strides."""
    return _first_other(a, b, only_cuda, False)


def compare_tensor_meta(
    a: Tensor,
    b: Tensor,
    check_sizes: bool = True,
    check_strides: bool = False,
    *,
    allow_rhs_unbacked: bool = False,
    check_conj: bool = True,
) -> None:
    """MetadataMismatchError where two tensors have other shapes, dtypes, devices or strides, or are read otherwise."""
    for t, name in ((a, "a"), (b, "b")):
        if not isinstance(t, Tensor):
            raise AssertionError(f"{name} must be TensorLike, got {type(t)}")
    if check_sizes and not is_same_shape(a.shape, b.shape):
        raise MetadataMismatchError(f"Shapes {a.shape} and {b.shape} are not equal!")
    if a.dtype != b.dtype:
        raise MetadataMismatchError(f"Dtypes {a.dtype} and {b.dtype} are not equal!")
    if a.device != b.device:
        raise MetadataMismatchError(f"Devices {a.device} and {b.device} are not equal!")
    same, dim = check_significant_strides(a, b, only_cuda=False) if check_strides else (True, None)
    if not same:
        raise MetadataMismatchError(
            f"Stride mismatch! Strides are {a.stride()} and {b.stride()} (mismatched at {dim})!"
        )
    if check_conj and a.is_conj() != b.is_conj():
        raise MetadataMismatchError(f"Conj mismatch! is_conj is set to {a.is_conj()} and {b.is_conj()}")
    if a.is_neg() != b.is_neg():
        raise MetadataMismatchError(f"Neg mismatch! is_neg is set to {a.is_neg()} and {b.is_neg()}")


def suggest_memory_format(x: Tensor) -> Any:
    """The memory format that a tensor's strides are of."""
    if x.layout is _C.strided and not x.is_contiguous():
        for dims, found in ((4, _C.channels_last), (5, _C.channels_last_3d)):
            if x.dim() == dims and x.is_contiguous(memory_format=found):
                return found
    return _C.contiguous_format
