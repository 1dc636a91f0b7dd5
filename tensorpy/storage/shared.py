"""Memory that processes share, and how storages and tensors are sent to another process.

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
from tensorpy.storage.methods import bytes_of

SMALL = 1 << 15  # bytes up to which a DataLoader's worker sends a storage as it is: cheaper than to map memory
_copies, _as_bytes = False, 0  # whether this process sends copies, and up to how many bytes as bytes
_FOLDER = "/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir()


def get_all_sharing_strategies() -> set[str]:
    """The ways to send memory to another process: by its descriptor, which the sender keeps until it is received, or by
    the name of a file, which serves one receiver."""
    return {"file_descriptor", "file_system"}


def get_sharing_strategy() -> str:
    """The way in use."""
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Chooses the way."""
    global _strategy
    if new_strategy not in get_all_sharing_strategies():
        raise AssertionError(f"there is no sharing strategy {new_strategy!r}")
    _strategy = new_strategy


_strategy = "file_descriptor"


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
        storage._adopt(_new_shared(nbytes, named=get_sharing_strategy() == "file_system"))
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
