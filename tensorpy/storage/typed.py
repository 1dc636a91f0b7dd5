"""Storages whose elements have a dtype: TypedStorage, and FloatStorage and its kin."""

from __future__ import annotations

from functools import cache
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._tensor.dtypes import STORAGES
from tensorpy.storage.methods import bytes_of


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
    is_cuda = False

    def __init__(
        self,
        content: Any = 0,
        *,
        wrap_storage: Any = None,
        dtype: _C.dtype | None = None,
        device: Any = None,
        _internal: bool = False,
    ) -> None:
        self.dtype: _C.dtype = dtype or _C.get_default_dtype()
        if wrap_storage is None:
            row = (
                _C.empty(content, dtype=self.dtype)
                if isinstance(content, int)
                else _C.tensor(list(content), dtype=self.dtype)
            )
            wrap_storage = row.to(device=device or "cpu").untyped_storage()
        self._untyped_storage: _C.UntypedStorage = wrap_storage

    @property
    def _row(self) -> Tensor:
        return bytes_of(self._untyped_storage).view(self.dtype)

    @property
    def device(self) -> _C.device:
        """Where the memory is."""
        where: _C.device = self._untyped_storage.device
        return where

    def untyped(self) -> Any:
        """The bytes."""
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
        return list(self._row.tolist())

    def __iter__(self) -> Any:
        return iter(self.tolist())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__: tolist() gives all elements")
        return self._row[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._row[index] = value

    def fill_(self, value: Any) -> TypedStorage:
        """Sets every element."""
        self._row.fill_(value)
        return self

    def copy_(self, source: Any, non_blocking: bool = False) -> TypedStorage:
        """Takes over another storage's elements."""
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
        self._untyped_storage.share_memory_()
        return self

    def _typed_storage(self) -> TypedStorage:
        return self

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def type(self, dtype: Any = None) -> Any:
        """The name of the type of storages of this dtype; with a dtype a copy in that."""
        if dtype is None:
            return f"{str(self.dtype).rpartition('.')[0]}.{self.pickle_storage_type()}"
        return TypedStorage(wrap_storage=self._row.to(dtype).clone().untyped_storage(), dtype=dtype)

    def _to(self, dtype: _C.dtype) -> TypedStorage:
        row = self._row.to(dtype)
        return self if dtype is self.dtype else TypedStorage(wrap_storage=row.untyped_storage(), dtype=dtype)

    def pickle_storage_type(self) -> str:
        """The name that files have for the type."""
        return _dtype_to_storage_type_map()[self.dtype]

    def __repr__(self) -> str:
        kind = f"{type(self).__module__}.{type(self).__name__}"
        return (
            " "
            + "\n ".join(map(str, self.tolist()))
            + f"\n[{kind}(dtype={self.dtype}, device={self.device}) of size {len(self)}]"
        )


def _cast(name: str, dtype: _C.dtype) -> Any:
    def method(self: TypedStorage) -> TypedStorage:
        return self._to(dtype)

    method.__name__, method.__doc__ = name, f"The elements as {dtype}; the storage itself if they are that."
    return method


_CONVERSIONS = {"char": "int8", "byte": "uint8", "complex_double": "complex128", "complex_float": "complex64"}

for _name in ("double float half bfloat16 long int short bool".split()) + list(_CONVERSIONS):
    setattr(TypedStorage, _name, _cast(_name, getattr(_C, _CONVERSIONS.get(_name, _name))))


def _dtype_to_storage_type_map() -> dict[_C.dtype, str]:
    """The names of the types of storages, by dtype."""
    return {dtype: f"{name}Storage" for name, dtype in STORAGES.items()}


def _storage_type_to_dtype_map() -> dict[str, _C.dtype]:
    return {name: dtype for dtype, name in _dtype_to_storage_type_map().items()}


class _OfOneDtype(type):
    """FloatStorage and its kin: they make a TypedStorage of their dtype, and each such is one of them."""

    dtype: _C.dtype

    def __call__(cls, *arguments: Any, **options: Any) -> TypedStorage:
        return TypedStorage(*arguments, dtype=cls.dtype, **options)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, TypedStorage) and instance.dtype is cls.dtype


@cache
def of_one_dtype(name: str) -> type | None:
    """FloatStorage, ByteStorage, ...: each class is made when it is asked for; None where the name is not one's."""
    if name == "Storage":
        return of_one_dtype("FloatStorage")
    dtype = _storage_type_to_dtype_map().get(name)
    doc = f"""Memory as elements of {dtype}: a TypedStorage of that dtype, which takes the same arguments.

    Example:
        >>> tp.{name}([1, 0, 1]).size()
        3
    """
    return None if dtype is None else _OfOneDtype(name, (), {"dtype": dtype, "__module__": "tensorpy", "__doc__": doc})
