"""Storages whose elements have a dtype: TypedStorage, and FloatStorage and its kin."""

from __future__ import annotations

import os
import sys
from copy import deepcopy
from functools import cache
from operator import index
from typing import Any, cast

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._tensor.dtypes import STORAGES
from tensorpy._tensor.quantized import INTEGERS
from tensorpy.storage.files import storage_from_file
from tensorpy.storage.methods import bytes_of, byteswap, check_readable, check_values, described

_QUANTIZED = {
    "QUInt8": _C.quint8,
    "QInt8": _C.qint8,
    "QInt32": _C.qint32,
    "QUInt4x2": _C.quint4x2,
    "QUInt2x4": _C.quint2x4,
}


def _unfit(kind: type[Exception], why: str) -> Exception:
    return kind(f"TypedStorage received an invalid combination of arguments: {why}")


def _check_wrapped(content: tuple[Any, ...], storage: Any, dtype: _C.dtype | None, device: Any) -> None:
    """What is shown has its memory, so neither elements nor a device go with it, and a dtype has to."""
    if content:
        raise _unfit(RuntimeError, "No positional arguments should be given when using 'wrap_storage'")
    if dtype is None:
        raise _unfit(RuntimeError, "Argument 'dtype' must be specified with 'wrap_storage'")
    if device is not None:
        raise _unfit(RuntimeError, "Argument 'device' should not be specified when 'wrap_storage' is given")
    if not isinstance(storage, _C.UntypedStorage):
        raise _unfit(TypeError, f"Argument 'wrap_storage' must be UntypedStorage, not {type(storage)}")


def _filled(content: tuple[Any, ...], dtype: _C.dtype, device: Any) -> Any:
    """Memory of the given elements, or of so many."""
    if len(content) > 1:
        raise _unfit(RuntimeError, f"Too many positional arguments: {len(content)}, where there is one at most")
    given = content[0] if content else 0
    if hasattr(type(given), "__index__") and not isinstance(given, Tensor):
        given = index(given)
    if isinstance(given, Tensor):
        raise _unfit(TypeError, f"Argument type not recognized: {type(given)}; Tensor.storage() gives its memory")
    if isinstance(given, str):
        raise TypeError(f"invalid data type '{type(given).__name__}': elements are numbers")
    elements, dtype = given if isinstance(given, int) else list(given), INTEGERS.get(dtype, dtype)
    row = _C.empty(given, dtype=dtype) if isinstance(given, int) else _C.tensor(elements, dtype=dtype)
    return row.to(device=device or "cpu").untyped_storage()


class TypedStorage:
    """A storage whose elements have a dtype: `tensor.storage()`.

    Arguments:
        content: the elements, or their number
        wrap_storage: an untyped storage to be shown
        dtype: the dtype; None takes the usual one
        device: where the elements are: a device or its name; None takes the default

    Example:
        >>> tp.TypedStorage([1, 2, 3], dtype=tp.int64).size()
        3
    """

    __module__ = "tensorpy.storage"  # where PyTorch has the class, which messages and programs name
    is_cuda = is_hpu = is_sparse = False

    def __init__(
        self,
        *content: Any,
        wrap_storage: Any = None,
        dtype: _C.dtype | None = None,
        device: Any = None,
        _internal: bool = False,
    ) -> None:
        if dtype is not None and not isinstance(dtype, _C.dtype):
            raise _unfit(TypeError, f"Argument 'dtype' must be torch.dtype, not {type(dtype)}")
        if wrap_storage is not None:
            _check_wrapped(content, wrap_storage, dtype, device)
        self.dtype: _C.dtype = dtype or _C.get_default_dtype()
        self._untyped_storage: _C.UntypedStorage = wrap_storage or _filled(content, self.dtype, device)

    @property
    def _row(self) -> Tensor:
        return bytes_of(self._untyped_storage).view(INTEGERS.get(self.dtype, self.dtype))

    @property
    def _dtype(self) -> _C.dtype:
        return self.dtype

    @property
    def device(self) -> _C.device:
        """Where the memory is."""
        where: _C.device = self._untyped_storage.device
        return where

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata  # the same for all that show one memory

    def untyped(self) -> Any:
        """The bytes.

        Returns: an UntypedStorage.
        """
        return self._untyped_storage

    def __len__(self) -> int:
        return self.size()

    def size(self) -> int:
        """How many elements there are."""
        return self.nbytes() // self.element_size()

    def nbytes(self) -> int:
        """How many bytes there are."""
        return int(self._untyped_storage.nbytes())

    def element_size(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return int(self._untyped_storage.data_ptr())

    def tolist(self) -> list[Any]:
        """The elements as numbers."""
        check_values(self)
        return list(self._row.tolist())

    def __iter__(self) -> Any:
        return iter(self.tolist())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__: tolist() gives all elements")
        if not isinstance(index, int):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        check_values(self)
        return self._row[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(index, (int, slice)):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        if isinstance(value, TypedStorage):
            raise RuntimeError(f"cannot set item with value type {type(value)}; copy_() takes a storage")
        self._row[index] = value

    def fill_(self, value: Any) -> TypedStorage:
        """Sets every element."""
        self[:] = value
        return self

    def resize_(self, size: int) -> None:
        """Gives it memory for so many elements; those that it has stay."""
        self._untyped_storage.resize_(size * self.element_size())

    def get_device(self) -> int:
        """The number of the device; -1 on the CPU."""
        return self._row.get_device()

    def copy_(self, source: Any, non_blocking: bool = False) -> TypedStorage:
        """Takes over another storage's elements."""
        if self.device.type != "meta":
            check_readable(source)
        self._row.copy_(source._row)
        return self

    def clone(self) -> TypedStorage:
        """A storage with the same elements."""
        return TypedStorage(wrap_storage=self._untyped_storage.clone(), dtype=self.dtype)

    def cpu(self) -> TypedStorage:
        """The storage, or a copy of it, on the CPU."""
        return TypedStorage(wrap_storage=self._untyped_storage.cpu(), dtype=self.dtype)

    def is_shared(self) -> bool:
        """Whether other processes can see the memory."""
        return bool(self._untyped_storage.is_shared())

    def share_memory_(self) -> TypedStorage:
        """Moves it to memory that processes share."""
        if self.device.type != "cpu":
            raise RuntimeError(f"share_memory_: only available on CPU, not on {self.device}")
        self._untyped_storage.share_memory_()
        return self

    def _share_fd_cpu_(self, *args: Any, **options: Any) -> Any:
        self.share_memory_()
        return self._untyped_storage

    _share_filename_cpu_ = _share_fd_cpu_

    def _write_file(self, file: Any, is_real_file: bool, save_size: bool, element_size: int) -> None:
        """Writes the elements to an open file, after their number if that is wanted."""
        check_readable(self)
        if save_size:
            file.write(self.size().to_bytes(8, sys.byteorder))
        file.write(memoryview(cast(Any, bytes_of(self._untyped_storage))))

    def _typed_storage(self) -> TypedStorage:
        return self

    def _deepcopy(self, memo: dict[int, Any]) -> TypedStorage:
        return deepcopy(self, memo)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def type(self, dtype: Any = None) -> Any:
        """The name of the type of storages of this dtype; with a dtype a copy in that.

        Returns: a str, or with dtype a TypedStorage.
        """
        if dtype is None:
            return f"{str(self.dtype).rpartition('.')[0]}.{self.pickle_storage_type()}"
        return TypedStorage(wrap_storage=self._row.to(dtype).clone().untyped_storage(), dtype=dtype)

    def _to(self, dtype: _C.dtype) -> TypedStorage:
        row = self._row.to(dtype)
        return self if dtype is self.dtype else TypedStorage(wrap_storage=row.untyped_storage(), dtype=dtype)

    def pickle_storage_type(self) -> str:
        """The name that files have for the type."""
        return _dtype_to_storage_type_map()[self.dtype]

    # What PyTorch's own code calls, where the public name warns.
    _resize_, _size, _element_size, _data_ptr, _nbytes = resize_, size, element_size, data_ptr, nbytes
    _is_shared, _share_memory_, _pickle_storage_type, _setitem = (
        is_shared,
        share_memory_,
        pickle_storage_type,
        __setitem__,
    )

    def __repr__(self) -> str:
        return described(self, dtype=self.dtype, device=self.device)


def _cast(name: str, dtype: _C.dtype) -> Any:
    def method(self: TypedStorage) -> TypedStorage:
        return self._to(dtype)

    method.__name__, method.__doc__ = name, f"The elements as {dtype}; the storage itself if they are that."
    return method


def converted(storage: _C.UntypedStorage, dtype: _C.dtype) -> TypedStorage:
    """The bytes, each a number, as elements of a dtype: in new memory."""
    return TypedStorage(wrap_storage=bytes_of(storage).to(dtype, copy=True).untyped_storage(), dtype=dtype)


for _name, _method in vars(_C.UntypedStorage).items():
    if hasattr(_method, "dtype"):  # one that converts
        setattr(TypedStorage, _name, _cast(_name, _method.dtype))


def _dtype_to_storage_type_map() -> dict[_C.dtype, str]:
    """The names of the types of storages, by dtype."""
    return {dtype: f"{name}Storage" for name, dtype in {**STORAGES, **_QUANTIZED}.items()}


def _storage_type_to_dtype_map() -> dict[str, _C.dtype]:
    return {name: dtype for dtype, name in _dtype_to_storage_type_map().items()}


class _OfOneDtype(type):
    """FloatStorage and its kin: they make a TypedStorage of their dtype, and each such is one of them."""

    dtype: _C.dtype

    def __call__(cls, *content: Any, wrap_storage: Any = None, **options: Any) -> TypedStorage:
        for name in ("device", "dtype"):
            if name in options:
                raise _unfit(RuntimeError, f"'{name}' cannot be specified: {cls.__name__} has its own")
        return TypedStorage(*content, wrap_storage=wrap_storage, dtype=cls.dtype, **options)

    @property
    def _dtype(cls) -> _C.dtype:
        return cls.dtype

    def from_file(cls, filename: str | os.PathLike[str], shared: bool = False, size: int = 0) -> TypedStorage:
        """The first `size` elements of a file; with `shared` what is written reaches it."""
        return cls(wrap_storage=storage_from_file(filename, shared, size * cls.dtype.itemsize))

    def from_buffer(cls, buffer: Any, byte_order: str | None = None, count: int = -1, offset: int = 0) -> TypedStorage:
        """The elements of a buffer from an offset in bytes on, copied; `byte_order` is that of the buffer."""
        data, size = memoryview(buffer).cast("B"), cls.dtype.itemsize
        if byte_order not in ("big", "little", "native") and (byte_order is not None or size > 1):
            raise ValueError(f"invalid byte_order {byte_order!r} (expected 'big', 'little', or 'native')")
        if not 0 <= offset <= len(data):
            raise ValueError(f"offset must be non-negative and no greater than buffer length ({len(data)}): {offset}")
        if count < 0 and (len(data) - offset) % size:
            raise ValueError(f"buffer size ({len(data) - offset}) must be a multiple of element size ({size})")
        count = (len(data) - offset) // size if count < 0 else count
        if count * size > len(data) - offset:
            raise ValueError(f"buffer has only {len(data) - offset} bytes after offset {offset}, not {count} elements")
        stored = _C.tensor(list(data[offset : offset + count * size]), dtype=_C.uint8).untyped_storage()
        if byte_order not in ("native", sys.byteorder, None):
            byteswap(stored, cls.dtype)
        made = cls(wrap_storage=stored)
        return cls([bool(byte) for byte in stored.tolist()]) if cls.dtype is _C.bool else made

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, TypedStorage) and instance.dtype is cls.dtype


@cache
def of_one_dtype(name: str) -> type | None:
    """FloatStorage, ByteStorage, ...: each class is made when it is asked for; None where the name is not one's."""
    if name == "Storage":
        return of_one_dtype("FloatStorage")
    dtype = _storage_type_to_dtype_map().get(name)
    doc = f"""Memory as elements of {dtype}: a TypedStorage of that dtype, which takes the same arguments.

    Arguments:
        wrap_storage: an untyped storage to be shown, instead of elements or their number

    Example:
        >>> tp.{name}([1, 0, 1]).size()
        3
    """
    return None if dtype is None else _OfOneDtype(name, (), {"dtype": dtype, "__module__": "tensorpy", "__doc__": doc})
