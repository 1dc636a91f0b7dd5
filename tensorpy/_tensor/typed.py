"""Types of tensors from before there were dtypes: FloatTensor, LongTensor and their like, and Tensor.new.

A type stands for the CPU's tensors of one dtype. It is no class of them: isinstance asks the tensor's dtype, and a call
makes a Tensor, of sizes without values, of data, or of the same elements as another.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

from tensorpy import _C
from tensorpy._C import Size, Tensor
from tensorpy._C import device as _device
from tensorpy._C import dtype as _dtype
from tensorpy._tensor.dtypes import STORAGES


def build(name: str, dtype: _dtype, device: _device, args: tuple[Any, ...], size: Any, where: Any) -> Tensor:
    """What a type, or `new` of a tensor of a dtype and device, makes of its arguments."""
    if where is not None and _C.device(where).type != device.type:
        raise RuntimeError(
            f"legacy constructor expects device type: {device.type} but device type: {_C.device(where).type} was "
            f"passed: {name}() makes tensors on {device.type}"
        )
    if size is not None:
        args = tuple(size)
    first = args[0] if args else None
    if len(args) == 1 and isinstance(first, Tensor):
        if first.dtype != dtype or first.device.type != device.type:
            raise TypeError(
                f"{name}(): expected a tensor of {dtype} on {device.type}, got one of {first.dtype} on {first.device}"
            )
        return first.view_as(first)
    if len(args) == 1 and isinstance(getattr(first, "_untyped_storage", first), _C.UntypedStorage):
        return _of_storage(dtype, first)
    if len(args) == 1 and isinstance(first, Size):
        return _C.empty(first, dtype=dtype, device=device)
    if all(isinstance(number, Integral) and not isinstance(number, bool) for number in args):
        return _C.empty([int(number) for number in args] or [0], dtype=dtype, device=device)
    if len(args) == 1 and not isinstance(first, (str, bytes)) and (isinstance(first, Sequence) or _is_array(first)):
        return _C.tensor(first, dtype=dtype, device=device)
    raise TypeError(
        f"{name}(): expected sizes, a sequence or a tensor (got {', '.join(type(a).__name__ for a in args)})"
    )


def _of_storage(dtype: _dtype, storage: Any) -> Tensor:
    """A tensor over all of a storage, whose elements have the dtype."""
    if not isinstance(storage, _C.UntypedStorage):
        if storage.dtype != dtype:
            words = {of: word for word, of in STORAGES.items()}
            raise RuntimeError(
                f"Expected a Storage of type {words[dtype]} or an UntypedStorage, but got type "
                f"{words[storage.dtype]} for argument 1 'storage'"
            )
        storage = storage.untyped()
    return _C.empty(0, dtype=dtype, device=storage.device).set_(storage)


def _is_array(value: object) -> bool:
    return hasattr(value, "__array_interface__")


class TensorType(type):
    """The type of FloatTensor and its like; one of an absent device has no tensors."""

    dtype: _dtype
    missing: str | None
    is_sparse = False

    def __new__(cls, name: str, bases: tuple[type, ...], space: dict[str, Any]) -> TensorType:
        """A type that is made here; another type of tensors is no base."""
        if bases:
            package = str(_C.float32).rpartition(".")[0]
            raise TypeError(f"type '{package}.{bases[0].__name__}' is not an acceptable base type")
        return super().__new__(cls, name, bases, space)

    def __instancecheck__(cls, instance: object) -> bool:
        return (
            cls.missing is None
            and isinstance(instance, Tensor)
            and instance.dtype == cls.dtype
            and instance.device.type == "cpu"
        )

    def __call__(cls, *args: Any, size: Any = None, device: Any = None) -> Tensor:
        if cls.missing is not None:
            raise TypeError(f"type {cls.__qualname__} not available: Torch not compiled with {cls.missing} enabled")
        return build(cls.__name__, cls.dtype, _C.device("cpu"), args, size, device)


def _tensor_type(name: str, dtype: _dtype, missing: str | None = None) -> TensorType:
    space = {
        "dtype": dtype,
        "missing": missing,
        "is_cuda": missing == "CUDA",
        "layout": _C.strided,
        "is_xpu": missing == "XPU",
    }
    where = "tensorpy" if missing is None else f"tensorpy.{missing.lower()}"
    doc = f"""Tensors of {dtype}: for isinstance, and to make one of sizes or data.

    Arguments:
        args: sizes, whose elements have no values; or a sequence, an array, a tensor or a storage
        size: the sizes, by name
        device: the CPU, or None

    Example:
        >>> tp.{name}([1, 0]).dtype, isinstance(tp.ones(1, dtype=tp.{str(dtype).rpartition(".")[2]}), tp.{name})
        ({dtype}, True)
    """
    return TensorType(name, (), {**space, "__module__": where, "__doc__": doc})


BFloat16Tensor: TensorType = _tensor_type("BFloat16Tensor", _C.bfloat16)
BoolTensor: TensorType = _tensor_type("BoolTensor", _C.bool)
ByteTensor: TensorType = _tensor_type("ByteTensor", _C.uint8)
CharTensor: TensorType = _tensor_type("CharTensor", _C.int8)
DoubleTensor: TensorType = _tensor_type("DoubleTensor", _C.float64)
FloatTensor: TensorType = _tensor_type("FloatTensor", _C.float32)
HalfTensor: TensorType = _tensor_type("HalfTensor", _C.float16)
IntTensor: TensorType = _tensor_type("IntTensor", _C.int32)
LongTensor: TensorType = _tensor_type("LongTensor", _C.int64)
ShortTensor: TensorType = _tensor_type("ShortTensor", _C.int16)


_tensor_classes = {kind for kind in vars().copy().values() if isinstance(kind, TensorType)}


def named(name: str) -> TensorType | None:
    """The type of a name, after "torch." or "tensorpy." or without either; None where there is none."""
    found = globals().get(name.rpartition(".")[2])
    return found if isinstance(found, TensorType) else None


def on_absent_device(name: str, missing: str) -> TensorType:
    """A type of tensors on a device that is not here."""
    here = named(name)
    if here is None:
        raise AttributeError(f"there is no type of tensors '{name}'")
    return _tensor_type(name, here.dtype, missing)
