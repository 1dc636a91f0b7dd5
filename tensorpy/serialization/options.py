"""Settings of load and save, and questions about storages: names of torch.serialization that programs ask for."""

from __future__ import annotations

import mmap
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

from tensorpy.utils.serialization import config

__all__ = [
    "LoadEndianness", "SourceChangeWarning", "check_module_version_greater_or_equal", "get_crc32_options",
    "get_default_load_endianness", "get_default_mmap_options", "mkdtemp", "set_crc32_options",
    "set_default_load_endianness", "set_default_mmap_options", "skip_data",
]  # fmt: skip


class SourceChangeWarning(Warning):
    """The source of a class is not what it was when an object of it was saved; files have no sources in them."""


class LoadEndianness(Enum):
    """The order of the bytes of a file that does not say it.

    Example:
        >>> tp.serialization.LoadEndianness.LITTLE.name
        'LITTLE'
    """

    NATIVE = 1
    LITTLE = 2
    BIG = 3


def get_default_load_endianness() -> LoadEndianness | None:
    """What a file that does not say its order of bytes is taken for; None: for little-endian.

    Returns: a LoadEndianness, or None.

    Example:
        >>> value = tp.serialization.get_default_load_endianness()
    """
    endianness: LoadEndianness | None = config.load.endianness
    return endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Sets the order of bytes that `load` takes where a file does not say its own.

    Arguments:
        endianness: the order of bytes; None for the file's own

    Example:
        >>> tp.serialization.set_default_load_endianness(None)
    """
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    config.load.endianness = endianness


def get_crc32_options() -> bool:
    """Whether records of files have checksums, as far as anybody asked.

    Returns: bool.

    Example:
        >>> value = tp.serialization.get_crc32_options()
    """
    return bool(config.save.compute_crc32)


def set_crc32_options(compute_crc32: bool) -> None:
    """Says that files may do without checksums: they are written all the same, which PyTorch reads either way.

    Arguments:
        compute_crc32: whether checksums are computed

    Example:
        >>> tp.serialization.set_crc32_options(True)
    """
    config.save.compute_crc32 = compute_crc32


def get_default_mmap_options() -> int:
    """How `load(mmap=True)` maps a file: with mmap.MAP_PRIVATE what is written to it stays in memory.

    Returns: int.

    Example:
        >>> value = tp.serialization.get_default_mmap_options()
    """
    return int(config.load.mmap_flags)


class set_default_mmap_options:
    """Sets it, or as a context for its length: with MAP_SHARED what is written to a tensor is written to its file.

    Arguments:
        flags: MAP_PRIVATE or MAP_SHARED of mmap

    Raises: ValueError for another flag than mmap.MAP_PRIVATE or mmap.MAP_SHARED.

    Example:
        >>> import mmap
        >>> with tp.serialization.set_default_mmap_options(mmap.MAP_PRIVATE):
        ...     pass
    """

    before: int

    def __init__(self, flags: int) -> None:
        if flags not in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, "
                f"but got {flags}"
            )
        self.before, config.load.mmap_flags = config.load.mmap_flags, flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, *unused: object) -> None:
        config.load.mmap_flags = self.before


class _Skipping(threading.local):
    """What save() of this thread leaves out."""

    skip_data = materialize_fake_tensors = False


_serialization_tls = _Skipping()


class skip_data:
    """Files that are saved in a `with` have no elements, only their room: a program may write them later.

    Arguments:
        materialize_fake_tensors: whether fake tensors are saved as tensors of their devices

    Example:
        >>> with tp.serialization.skip_data():
        ...     tp.save(tp.ones(2), "model.pt")
        >>> tp.load("model.pt")
        tensor([0., 0.])
    """

    materialize_fake_tensors: bool

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        here = _serialization_tls
        self.before = here.skip_data, here.materialize_fake_tensors
        here.skip_data, here.materialize_fake_tensors = True, self.materialize_fake_tensors

    def __exit__(self, *unused: object) -> None:
        _serialization_tls.skip_data, _serialization_tls.materialize_fake_tensors = self.before


def check_module_version_greater_or_equal(
    module: Any, req_version_tuple: tuple[int, ...], error_if_malformed: bool = True
) -> bool:
    """Whether a module's `__version__` is at least this one.

    Arguments:
        module: the module
        req_version_tuple: the least version, as numbers
        error_if_malformed: whether a version that cannot be read is an error

    Returns: bool.

    Raises: RuntimeError for a version of another form, unless error_if_malformed is False.

    Example:
        >>> import types
        >>> module = types.SimpleNamespace(__name__="m", __version__="2.1")
        >>> tp.serialization.check_module_version_greater_or_equal(module, (2, 0))
        True
    """
    try:
        found = tuple(int(part) for part in module.__version__.split(".")[: len(req_version_tuple)])
    except (AttributeError, ValueError) as error:
        if error_if_malformed:
            raise RuntimeError(f"{module.__name__} has no version of the form of {req_version_tuple}") from error
        return True
    return found >= tuple(req_version_tuple)


@contextmanager
def mkdtemp() -> Iterator[str]:
    """A folder that is gone at the end.

    Returns: a context manager, as a str.

    Example:
        >>> import os
        >>> with tp.serialization.mkdtemp() as folder:
        ...     print(os.path.isdir(folder))
        True
    """
    path = tempfile.mkdtemp()
    try:
        yield path
    finally:
        shutil.rmtree(path)
