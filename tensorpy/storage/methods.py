"""The methods of storages that are written in Python: their bytes, parts and copies."""

from __future__ import annotations

from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._utils import bytes_tensor


def bytes_of(storage: Any) -> Tensor:
    """All bytes of a storage as a row of uint8 that shares its memory."""
    return bytes_tensor(storage)


def check_values(storage: Any) -> None:
    """NotImplementedError on the device of tensors without values."""
    if storage.device.type == "meta":
        raise NotImplementedError("Not available for 'meta' device type")


def _item(storage: Any, index: Any) -> Any:
    """storage[3] is a number, storage[2:5] a storage of the same memory."""
    check_values(storage)
    row: Any = bytes_of(storage)
    if not isinstance(index, slice):
        return int(row[index])
    part = memoryview(row)[index]
    if not part.contiguous:
        raise TypeError("a part of a storage has no step")
    return _C.frombuffer(part, dtype=_C.uint8).untyped_storage() if len(part) else _C.empty(0).untyped_storage()


def _set_item(storage: Any, index: Any, value: Any) -> None:
    bytes_of(storage)[index] = value


def _new(size: Any = 0, *, device: Any = None) -> Any:
    """A storage of so many bytes, or of the bytes of a sequence."""
    row = _C.empty(size, dtype=_C.uint8) if isinstance(size, int) else _C.tensor(list(size), dtype=_C.uint8)
    return row.to(device=device or "cpu").untyped_storage()


def name_of_type(storage: Any) -> str:
    """The name of a storage's class where programs find it."""
    return f"{type(storage).__module__.partition('.')[0]}.storage.{type(storage).__name__}"


def described(storage: Any, **facts: Any) -> str:
    """The elements, one a line, and what the storage is; what has no values shows dots."""
    told = ", ".join(f"{name}={value}" for name, value in facts.items())
    elements = "..." if storage.device.type == "meta" else " " + "\n ".join(map(str, storage.tolist()))
    return f"{elements}\n[{name_of_type(storage)}({told}) of size {len(storage)}]"


def _text(storage: Any) -> str:
    return described(storage, device=storage.device)


def new(self: Any) -> Any:
    """A storage without bytes on the same device."""
    return _new(0, device=self.device)


def get_device(self: Any) -> int:
    """The number of the device; -1 on the CPU."""
    return bytes_of(self).get_device()


def untyped(self: Any) -> Any:
    """The storage itself."""
    return self


def tolist(self: Any) -> list[int]:
    """The bytes as numbers."""
    check_values(self)
    return [int(byte) for byte in bytes_of(self).tolist()]


def clone(self: Any) -> Any:
    """A storage with the same bytes."""
    return bytes_of(self).clone().untyped_storage()


def check_readable(storage: Any) -> None:
    if storage.device.type == "meta":
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")


def __copy__(self: Any) -> Any:
    """What copy.copy makes of it: a storage with the same bytes."""
    return clone(self)


def cpu(self: Any) -> Any:
    """The storage, or a copy of it, on the CPU."""
    check_readable(self)
    return self if self.device.type == "cpu" else bytes_of(self).cpu().untyped_storage()


def copy_(self: Any, source: Any, non_blocking: bool = False) -> Any:
    """Takes over another storage's bytes."""
    if self.device.type != "meta":
        check_readable(source)
    bytes_of(self).copy_(bytes_of(source))
    return self


def byteswap(self: Any, dtype: _C.dtype) -> None:
    """Turns the bytes of each element around; of a complex one those of each part."""
    size = dtype.itemsize // (2 if dtype.is_complex else 1)
    if self.nbytes() % dtype.itemsize:
        raise RuntimeError(f"{self.nbytes()} bytes are no elements of {dtype}")
    if size > 1:
        row = bytes_of(self).view(-1, size)
        row.copy_(row.flip(1))


def __sizeof__(self: Any) -> int:
    """The object and its bytes."""
    return object.__sizeof__(self) + int(self.nbytes())


def resize_(self: Any, size: int) -> None:
    """Gives it memory for more bytes, for all its tensors; those that it has stay."""
    if size < self.nbytes():
        raise RuntimeError(f"resize_: a storage only grows, and this one has {self.nbytes()} bytes, not {size}")
    bytes_of(self).resize_(size)


def fill_(self: Any, value: int) -> Any:
    """Sets every byte."""
    bytes_of(self).fill_(value)
    return self


def __dlpack__(self: Any, **options: Any) -> Any:
    """The bytes for other libraries, and for tensorpy.asarray."""
    return bytes_of(self).__dlpack__(**options)


def __dlpack_device__(self: Any) -> Any:
    """Where the bytes are, in DLPack's words."""
    return bytes_of(self).__dlpack_device__()


def element_size(self: Any) -> int:
    """Bytes of an element: 1."""
    return 1
