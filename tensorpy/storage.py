"""What storages can do beside being shared by tensors: bytes and parts of them, files, memory shared by processes.

Memory that processes share is a file of /dev/shm that has no name any more, mapped by each of them. `share_memory_`
moves a storage there in place, so that all its tensors follow. A storage that is sent to another process (a queue, a
pipe, the arguments of Process) travels as a handle to such memory: get_sharing_strategy() says which; small ones as
bytes.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from multiprocessing import reduction
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor, UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]

SMALL = 1 << 15  # bytes up to which a storage is sent as it is: cheaper than to map memory
_FOLDER = "/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir()


def bytes_of(storage: Any) -> Tensor:
    """All bytes of a storage as a row of uint8 that shares its memory."""
    from tensorpy.serialization.archive import bytes_tensor

    return bytes_tensor(storage)


def _item(storage: Any, index: Any) -> Any:
    """storage[3] is a number, storage[2:5] a storage of the same memory."""
    row: Any = bytes_of(storage)
    if not isinstance(index, slice):
        return int(row[index])
    part = memoryview(row)[index]
    if not part.contiguous:
        raise TypeError("a part of a storage has no step")
    return _C.frombuffer(part, dtype=_C.uint8).untyped_storage() if len(part) else _C.empty(0).untyped_storage()


# ---- memory that processes share ----


class _Block(mmap.mmap):
    """Mapped memory, its descriptor, and its file's name as long as it has one."""

    descriptor: int
    name: str | None

    def __del__(self) -> None:
        os.close(self.descriptor)


_blocks: weakref.WeakValueDictionary[int, _Block] = weakref.WeakValueDictionary()  # by address


def _map(descriptor: int, nbytes: int, name: str | None) -> Any:
    """The storage of a block whose descriptor is taken over."""
    block = _Block(descriptor, nbytes)
    block.descriptor, block.name = descriptor, name
    storage = _C.frombuffer(block, dtype=_C.uint8).untyped_storage()
    _blocks[storage.data_ptr()] = block
    return storage


def _new_shared(nbytes: int, named: bool = False) -> Any:
    """A storage in memory that processes share."""
    descriptor, name = tempfile.mkstemp(prefix=f"tensorpy-{os.getpid()}-", dir=_FOLDER)
    try:
        os.ftruncate(descriptor, nbytes)
        if not named:
            os.unlink(name)
    except OSError:
        os.close(descriptor)
        os.unlink(name)
        raise
    return _map(descriptor, nbytes, name if named else None)


def _block_of(storage: Any) -> _Block | None:
    return _blocks.get(storage.data_ptr()) if storage.nbytes() and storage.device.type == "cpu" else None


def is_shared(self: Any) -> bool:
    """Whether other processes can see the memory; that of a device can be sent, and counts as such."""
    return self.device.type != "cpu" or not self.nbytes() or _block_of(self) is not None


def share_memory_(self: Any) -> Any:
    """Moves the bytes to memory that processes share, for all tensors of the storage."""
    if not is_shared(self):
        self._adopt(_new_shared(self.nbytes()))
    return self


def _receive(handle: Any, nbytes: int) -> Any:
    return _map(handle.detach(), nbytes, None)


def _receive_named(name: str, nbytes: int) -> Any:
    """Of memory that one process sends to one: its name has served then."""
    descriptor = os.open(name, os.O_RDWR)
    os.unlink(name)
    return _map(descriptor, nbytes, None)


def _send(storage: Any) -> Any:
    """How a storage is sent to another process."""
    from tensorpy import multiprocessing

    nbytes, block = storage.nbytes(), _block_of(storage)
    if block is not None and block.name is not None:
        name, block.name = block.name, None
        return _receive_named, (name, nbytes)
    if block is None and (nbytes <= SMALL or storage.device.type != "cpu"):
        return storage.__reduce__()
    if block is None and multiprocessing.get_sharing_strategy() == "file_system":
        shared = _new_shared(nbytes, named=True)
        bytes_of(shared).copy_(bytes_of(storage))
        return _send(shared)
    share_memory_(storage)
    block = _block_of(storage)
    assert block is not None
    return _receive, (reduction.DupFd(block.descriptor), nbytes)


def forget_of(pid: int) -> None:
    """Removes memory that a process that has ended sent and nobody received."""
    for name in os.listdir(_FOLDER):
        if name.startswith(f"tensorpy-{pid}-"):
            os.unlink(os.path.join(_FOLDER, name))


reduction.ForkingPickler.register(UntypedStorage, _send)


# ---- files ----


def from_file(filename: str | os.PathLike[str], shared: bool = False, nbytes: int = 0) -> Any:
    """A storage whose memory is a file's first bytes; with `shared` it grows to nbytes and sees what is written."""
    descriptor = os.open(filename, os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY)
    try:
        size = os.fstat(descriptor).st_size
        if shared and size < nbytes:
            os.ftruncate(descriptor, nbytes)
        elif nbytes > size:
            raise RuntimeError(f"the file {os.fspath(filename)!r} has {size} bytes, not {nbytes}")
        if nbytes == 0:
            return _C.empty(0).untyped_storage()
        access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
        return _C.frombuffer(mmap.mmap(descriptor, nbytes, access=access), dtype=_C.uint8).untyped_storage()
    finally:
        os.close(descriptor)


# ---- other methods ----


def untyped(self: Any) -> Any:
    """The storage itself."""
    return self


def tolist(self: Any) -> list[int]:
    """The bytes as numbers."""
    return [int(byte) for byte in bytes_of(self).tolist()]


def clone(self: Any) -> Any:
    """A storage with the same bytes."""
    return bytes_of(self).clone().untyped_storage()


def cpu(self: Any) -> Any:
    """The storage, or a copy of it, on the CPU."""
    return self if self.device.type == "cpu" else bytes_of(self).cpu().untyped_storage()


def copy_(self: Any, source: Any, non_blocking: bool = False) -> Any:
    """Takes over another storage's bytes."""
    bytes_of(self).copy_(bytes_of(source))
    return self


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


class TypedStorage:
    """A storage whose elements have a dtype: `tensor.storage()`."""

    is_cuda = False

    def __init__(self, *, wrap_storage: Any, dtype: _C.dtype, _internal: bool = False) -> None:
        self._untyped_storage, self.dtype = wrap_storage, dtype

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
            return TypedStorage(wrap_storage=self._row[index].clone().untyped_storage(), dtype=self.dtype)
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

    def __repr__(self) -> str:
        return (
            " "
            + "\n ".join(map(str, self.tolist()))
            + f"\n[{type(self).__name__}(dtype={self.dtype}, device={self.device}) of size {len(self)}]"
        )
