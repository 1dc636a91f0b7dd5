"""What storages can do beside being shared by tensors: bytes and parts of them, files, memory shared by processes.

Memory that processes share is a file of /dev/shm that has no name any more, mapped by each of them. `share_memory_`
moves a storage there in place, so that all its tensors follow; arrays and buffers over the old memory keep that. The
space is reserved first: memory that is not there is an error here, and no signal later. A storage that is sent to
another process (a queue, a pipe, the arguments of Process) moves there too and travels as a handle, of the kind that
get_sharing_strategy() says. Each process maps a block of shared memory once, however often it receives the block.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import tempfile
import warnings
import weakref
from multiprocessing import reduction
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor, UntypedStorage
from tensorpy.nn.parameter import Parameter

__all__ = ["TypedStorage", "UntypedStorage"]

SMALL = 1 << 15  # bytes up to which a DataLoader's worker sends a storage as it is: cheaper than to map memory
_copies, _as_bytes = False, 0  # whether this process sends copies, and up to how many bytes as bytes
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


def _set_item(storage: Any, index: Any, value: Any) -> None:
    bytes_of(storage)[index] = value


def _new(size: Any = 0, *, device: Any = None) -> Any:
    """A storage of so many bytes, or of the bytes of a sequence."""
    row = _C.empty(size, dtype=_C.uint8) if isinstance(size, int) else _C.tensor(list(size), dtype=_C.uint8)
    return row.to(device=device or "cpu").untyped_storage()


# ---- memory that processes share ----


class _Block(mmap.mmap):
    """Mapped memory, its descriptor, and its file's name as long as nobody has received it."""

    descriptor: int
    name: str | None


_by_file: weakref.WeakValueDictionary[tuple[int, int], _Block] = weakref.WeakValueDictionary()
_blocks: weakref.WeakValueDictionary[int, _Block] = weakref.WeakValueDictionary()  # by address


def _file_of(descriptor: int) -> tuple[int, int]:
    about = os.fstat(descriptor)
    return about.st_dev, about.st_ino


def _map(descriptor: int, nbytes: int, name: str | None) -> Any:
    """The storage of a block whose descriptor is taken over."""
    try:
        block = _Block(descriptor, nbytes)
    except (OSError, ValueError) as error:
        os.close(descriptor)
        raise RuntimeError(f"{nbytes} bytes of shared memory cannot be mapped: {error}") from error
    block.descriptor, block.name = descriptor, name
    # No __del__: while that runs, another thread could still take the block from a table of weak references.
    weakref.finalize(block, os.close, descriptor).atexit = False
    storage = _C.frombuffer(block, dtype=_C.uint8).untyped_storage()
    _blocks[storage.data_ptr()] = _by_file[_file_of(descriptor)] = block
    return storage


def _reserve(descriptor: int, nbytes: int) -> None:
    """Gives a file its space: one that only has its size kills whoever writes where the file system is full."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, nbytes)
    else:
        os.ftruncate(descriptor, nbytes)


def _new_shared(nbytes: int, named: bool = False, folder: str | None = None) -> Any:
    """A storage in memory that processes share; RuntimeError where there is no space for it."""
    try:
        descriptor, name = tempfile.mkstemp(prefix=f"tensorpy-{os.getpid()}-", dir=folder or _FOLDER)
        try:
            _reserve(descriptor, nbytes)
            if not named:
                os.unlink(name)
        except OSError:
            os.close(descriptor)
            os.unlink(name)
            raise
    except OSError as error:
        raise RuntimeError(
            f"unable to allocate {nbytes} bytes of shared memory in {folder or _FOLDER}: {error}"
        ) from error
    return _map(descriptor, nbytes, name if named else None)


def _new_named(nbytes: int) -> Any:
    """A storage in a file with a name: of memory, or of a disk where the memory that processes share is full."""
    try:
        return _new_shared(nbytes, named=True)
    except RuntimeError:
        if os.path.realpath(tempfile.gettempdir()) == os.path.realpath(_FOLDER):
            raise
        return _new_shared(nbytes, named=True, folder=tempfile.gettempdir())


def _block_of(storage: Any) -> _Block | None:
    return _blocks.get(storage.data_ptr()) if storage.nbytes() and storage.device.type == "cpu" else None


def send_copies() -> None:
    """From now on this process sends copies of what is not shared, for one receiver each: a DataLoader's worker."""
    global _copies, _as_bytes
    _copies, _as_bytes = True, SMALL


def is_shared(self: Any) -> bool:
    """Whether other processes can see the memory; that of a device can be sent, and counts as such."""
    return self.device.type != "cpu" or not self.nbytes() or _block_of(self) is not None


def share_memory_(self: Any) -> Any:
    """Moves the bytes to memory that processes share, for all tensors of the storage."""
    if not is_shared(self):
        self._adopt(_new_shared(self.nbytes()))
    return self


def _received(descriptor: int, nbytes: int) -> Any:
    """The storage of a block from another process, which is mapped once here."""
    block = _by_file.get(_file_of(descriptor))
    if block is None or len(block) < nbytes:
        return _map(descriptor, nbytes, None)
    os.close(descriptor)
    return _C.frombuffer(block, dtype=_C.uint8, count=nbytes).untyped_storage()


def _receive(handle: Any, nbytes: int) -> Any:
    return _received(handle.detach(), nbytes)


def _receive_named(name: str, nbytes: int) -> Any:
    """Opens memory that one process sends to one, and removes its name, which has served."""
    if os.path.dirname(name) != _FOLDER:
        warnings.warn(
            f"{_FOLDER} is full: tensors come through files in {os.path.dirname(name)}, which is slower", stacklevel=2
        )
    descriptor = os.open(name, os.O_RDWR)
    os.unlink(name)
    return _received(descriptor, nbytes)


def _send(storage: Any) -> Any:
    """How a storage is sent to another process."""
    from tensorpy import multiprocessing

    nbytes, block = storage.nbytes(), _block_of(storage)
    if block is not None and block.name is not None:
        name, block.name = block.name, None
        return _receive_named, (name, nbytes)
    if storage.device.type != "cpu" or not nbytes or (block is None and nbytes <= _as_bytes):
        return storage.__reduce__()
    if block is None and _copies:
        shared = _new_named(nbytes)
        bytes_of(shared).copy_(bytes_of(storage))
        return _send(shared)
    if block is None:
        storage._adopt(_new_shared(nbytes, named=multiprocessing.get_sharing_strategy() == "file_system"))
        return _send(storage)
    return _receive, (reduction.DupFd(block.descriptor), nbytes)


def forget_of(pid: int) -> None:
    """Removes memory that a process that has ended sent and nobody received."""
    for folder in {_FOLDER, tempfile.gettempdir()}:
        for name in os.listdir(folder):
            if name.startswith(f"tensorpy-{pid}-"):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(folder, name))


def _send_tensor(tensor: Tensor) -> Any:
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad: its history stays in this process. "
            "Call detach() on it to send its values alone."
        )
    return tensor.__reduce_ex__(2)


reduction.ForkingPickler.register(UntypedStorage, _send)
reduction.ForkingPickler.register(Tensor, _send_tensor)
reduction.ForkingPickler.register(Parameter, _send_tensor)


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

    def __init__(
        self,
        content: Any = 0,
        *,
        wrap_storage: Any = None,
        dtype: _C.dtype | None = None,
        device: Any = None,
        _internal: bool = False,
    ) -> None:
        self.dtype = dtype or _C.get_default_dtype()
        if wrap_storage is None:
            row = (
                _C.empty(content, dtype=self.dtype)
                if isinstance(content, int)
                else _C.tensor(list(content), dtype=self.dtype)
            )
            wrap_storage = row.to(device=device or "cpu").untyped_storage()
        self._untyped_storage = wrap_storage

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
    from tensorpy.serialization.names import STORAGES

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


def __getattr__(name: str) -> Any:
    """FloatStorage, ByteStorage, ...: each class is made when it is asked for."""
    if name == "Storage":
        return globals().get("FloatStorage") or __getattr__("FloatStorage")
    dtype = _storage_type_to_dtype_map().get(name) if name.endswith("Storage") else None
    if dtype is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = globals()[name] = _OfOneDtype(name, (), {"dtype": dtype, "__module__": "tensorpy"})
    return made
