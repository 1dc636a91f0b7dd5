"""Tensors, state dictionaries and whole objects in files: PyTorch's `.pt` format, written and read.

A file is a zip archive (archive.py) of one pickle and the bytes of each storage, so that tensors that share memory
still do. The pickle speaks of tensors under PyTorch's names (names.py), which pickler.py writes. It comes from anybody:
unpickler.py reads it and calls nothing that it was not told to; only weights_only=False hands it to Python's own.
location.py says on which device a storage ends up. legacy.py has the format before PyTorch 1.6.
"""

from __future__ import annotations

import importlib
import io
import os
import pickle
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from mmap import MAP_SHARED
from pathlib import PurePath
from typing import IO, Any, TypeAlias

import tensorpy
from tensorpy import _C
from tensorpy.serialization import legacy, names, options
from tensorpy.serialization.account import Account
from tensorpy.serialization.archive import Reader, Writer, is_archive
from tensorpy.serialization.location import (
    Restore,
    default_restore_location,
    location_tag,
    register_package,
    restorer,
)
from tensorpy.serialization.location import (
    _package_registry as _package_registry,
)
from tensorpy.serialization.options import *  # noqa: F403
from tensorpy.serialization.options import LoadEndianness, get_default_load_endianness, get_default_mmap_options
from tensorpy.serialization.options import _serialization_tls as _serialization_tls
from tensorpy.serialization.pickler import content_of, dump
from tensorpy.serialization.unpickler import Unpickler, allowed, unsafe_globals
from tensorpy.utils._python_dispatch import _disable_current_modes
from tensorpy.utils.serialization import config

__all__ = [
    "add_safe_globals",
    "clear_safe_globals",
    "default_restore_location",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "normalize_storage_type",
    "register_package",
    "safe_globals",
    "save",
    "storage_to_tensor_type",
    "validate_cuda_device",
    *options.__all__,
]

DEFAULT_PROTOCOL = 2
_ON = ("1", "y", "yes", "true")  # what switches something on in the environment
_is_zipfile = is_archive
File: TypeAlias = "str | os.PathLike[str] | IO[bytes]"
MAP_LOCATION: TypeAlias = "Callable[[Any, str], Any] | Any | dict[str, str] | None"  # what load() takes

# ---- globals that a file may name ----


def _entries(globals: Any) -> dict[str, tuple[Any, Any]]:
    found: dict[str, tuple[Any, Any]] = {}
    for entry in globals:
        value, name = entry if isinstance(entry, tuple) else (entry, None)
        if not callable(value) or not isinstance(name, (str, type(None))):
            raise TypeError(f"a safe global is a class or function, or a tuple of one and its name, not {entry!r}")
        module = "" if value.__module__ == "builtins" else f"{value.__module__}."
        found[name or f"{module}{value.__qualname__}"] = value, entry
    return found


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Allows files that are read with weights_only=True to name these classes and functions, and to call them.

    Arguments:
        safe_globals: classes that files may name

    Example:
        >>> class Point:
        ...     pass
        >>> with tp.serialization.safe_globals([Point]):
        ...     print(len(tp.serialization.get_safe_globals()))
        1
    """
    allowed.update(_entries(safe_globals))


def get_safe_globals() -> list[Any]:
    """The classes and functions that were added.

    Returns: a list of classes and functions.

    Example:
        >>> class Point:
        ...     pass
        >>> with tp.serialization.safe_globals([Point]):
        ...     print(len(tp.serialization.get_safe_globals()))
        1
    """
    return [given for _, given in allowed.values()]


def clear_safe_globals() -> None:
    """Takes back what was added.

    Example:
        >>> class Point:
        ...     pass
        >>> with tp.serialization.safe_globals([Point]):
        ...     print(len(tp.serialization.get_safe_globals()))
        1
    """
    allowed.clear()


class safe_globals:
    """Allows classes and functions inside a `with`.

    Arguments:
        safe_globals: classes that files may name

    Example:
        >>> class Point:
        ...     pass
        >>> with tp.serialization.safe_globals([Point]):
        ...     print(len(tp.serialization.get_safe_globals()))
        1
    """

    entries: Any

    def __init__(self, safe_globals: list[Any]) -> None:
        self.entries = _entries(safe_globals)
        self.before: dict[str, tuple[Any, Any]] = {}

    def __enter__(self) -> None:
        self.before = dict(allowed)
        allowed.update(self.entries)

    def __exit__(self, *unused: object) -> None:
        allowed.clear()
        allowed.update(self.before)


# ---- save ----


def save(
    obj: object,
    f: File,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Writes an object to a file, or to what has a `write` method; PyTorch reads it, and so does `load`.

    The memory of a tensor is written whole, and once for all tensors that share it: clone a small view of a large
    tensor first.

    Arguments:
        obj: what is saved: tensors, containers, numbers, modules' state_dicts
        f: a path or a file object
        pickle_module: is taken; other modules than pickle are refused
        pickle_protocol: the protocol of pickle: 2

    Example:
        >>> tp.save({"weight": tp.ones(2)}, "model.pt")
        >>> tp.load("model.pt")
        {'weight': tensor([1., 1.])}
    """
    if pickle_module is not pickle:
        raise NotImplementedError("save(): tensors are written by Python's own pickle; there is no other pickle_module")
    if not isinstance(f, (str, os.PathLike)) and not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    path = os.fspath(f) if isinstance(f, (str, os.PathLike)) else None
    if path is not None and not os.path.isdir(os.path.dirname(path) or "."):
        raise RuntimeError(f"Parent directory {os.path.dirname(path)} does not exist.")
    if not _use_new_zipfile_serialization:
        parts = legacy.parts(obj, pickle_protocol)
        with _opened(f) as file:
            for part in parts:
                file.write(part)
            getattr(file, "flush", lambda: None)()
        return
    program, storages = dump(obj, pickle_protocol)
    root = PurePath(path).stem if path else ""
    with _opened(f) as file:
        _write(file, root or "archive", program, storages, not _disable_byteorder_record)


def _opened(f: Any) -> Any:
    return open(f, "wb") if isinstance(f, (str, os.PathLike)) else nullcontext(f)


def _write(file: Any, root: str, program: bytes, storages: list[tuple[str, Any]], byteorder: bool) -> None:
    with Writer(file, root) as archive:
        archive.record("data.pkl", program)
        archive.record(".format_version", b"1")
        archive.record(".storage_alignment", str(config.save.storage_alignment).encode())
        if byteorder:
            archive.record("byteorder", b"little")
        for key, storage in storages:
            archive.record(f"data/{key}", content_of(storage))
        archive.record("version", b"3\n")
        archive.record(".data/serialization_id", archive.serialization_id())


class _open_zipfile_writer:
    """The archive of a file that is written, by path or as an object; closed at the end of a `with`."""

    def __init__(self, name_or_buffer: File) -> None:
        self.opened = _opened(name_or_buffer)
        path = isinstance(name_or_buffer, (str, os.PathLike))
        self.root = PurePath(os.fspath(name_or_buffer)).stem if path else "archive"  # type: ignore[arg-type]

    def __enter__(self) -> Writer:
        self.writer = Writer(self.opened.__enter__(), self.root)
        return self.writer

    def __exit__(self, *error: Any) -> None:
        self.writer.__exit__(*error)
        self.opened.__exit__(*error)


class _open_zipfile_reader:
    """The records of a file that is read, by path or as an object."""

    def __init__(self, name_or_buffer: Any) -> None:
        path = isinstance(name_or_buffer, (str, os.PathLike))
        self.opened: Any = open(name_or_buffer, "rb") if path else nullcontext(name_or_buffer)

    def __enter__(self) -> Reader:
        return Reader(self.opened.__enter__())

    def __exit__(self, *error: Any) -> None:
        self.opened.__exit__(*error)


# ---- storages ----


def normalize_storage_type(storage_type: Any) -> Any:
    """A type of storages, by the name that files have for it.

    Arguments:
        storage_type: the type

    Returns: a class.

    Example:
        >>> tp.serialization.normalize_storage_type(tp.FloatStorage).__name__
        'FloatStorage'
    """
    return storage_type


def storage_to_tensor_type(storage: Any) -> Any:
    """The typed tensor of a typed storage: FloatTensor of one of float32.

    Returns: a class.

    Example:
        >>> tp.serialization.storage_to_tensor_type(tp.FloatStorage([1.0])).__name__
        'FloatTensor'
    """
    name = next(name for name, dtype in names.STORAGES.items() if dtype is storage.dtype)
    return getattr(tensorpy, f"{name}Tensor")


def validate_cuda_device(location: Any) -> int:
    """The index of "cuda:1", if there is such a device; RuntimeError if not.

    Arguments:
        location: the name of a device

    Returns: int.

    Raises: RuntimeError where there is no such device.

    Example:
        >>> tp.serialization.validate_cuda_device("cuda:0")  # doctest: +SKIP
    """
    from tensorpy import cuda

    index = 0 if str(location) == "cuda" else int(str(location).rpartition(":")[2])
    if not cuda.is_available():
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. Use "
            "map_location=tensorpy.device('cpu') to map your storages to the CPU."
        )
    if index >= cuda.device_count():
        raise RuntimeError(f"Attempting to deserialize object on CUDA device {index}: there are {cuda.device_count()}")
    return index


# ---- load ----


def load(
    f: File,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Reads what `save`, or PyTorch's, has written.

    map_location: the device of all tensors, its name, a dictionary of names, or a function (storage, location) ->
    storage; by default each goes to the device that it was saved from. weights_only: whether nothing but tensors, plain
    values and what `add_safe_globals` allows is made; False imports and calls whatever the file names. mmap: whether
    tensors stay in the file, which has to be given by path, until they are written to.

    Arguments:
        f: a path, or a file object that can be read and sought
        map_location: where tensors go: a device, a dict or a function
        pickle_module: is taken; other modules than pickle are refused
        weights_only: whether only tensors and plain data are read

    Returns: what was saved: mostly a dict of tensors.

    Raises: pickle.UnpicklingError for a file with classes that weights_only=True refuses, ValueError for mmap=True
        without a path.

    Example:
        >>> tp.save({"weight": tp.ones(2)}, "model.pt")
        >>> tp.load("model.pt")
        {'weight': tensor([1., 1.])}
    """
    if mmap is None:
        mmap = config.load.mmap and isinstance(f, (str, os.PathLike))
    if os.environ.get("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "0").lower() in _ON:
        weights_only = True
    elif weights_only is None and os.environ.get("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "0").lower() in _ON:
        warnings.warn(
            "Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD is set, forcing weights_only=False: what the file "
            "names is imported and called",
            UserWarning,
            stacklevel=2,
        )
        weights_only = False
    if weights_only is None:
        weights_only = pickle_module is None
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if isinstance(f, (str, os.PathLike)):
        shared = mmap and get_default_mmap_options() == MAP_SHARED
        with open(f, "r+b" if shared else "rb") as file:
            return _load_file(
                file, map_location, None if weights_only else pickle_module or pickle, mmap, pickle_load_args
            )
    if mmap:
        raise ValueError("f must be a file path in order to use the mmap argument")
    if not all(hasattr(f, name) for name in ("seek", "tell", "read")):
        raise AttributeError(
            f"{type(f).__name__!r} object cannot be read. You can only torch.load from a file that is seekable. "
            "Please pre-load the data into a buffer like io.BytesIO and try to load from it instead."
        )
    return _load_file(f, map_location, None if weights_only else pickle_module or pickle, False, pickle_load_args)


def _load_file(file: Any, map_location: Any, module: Any, mapped: bool | None, arguments: dict[str, Any]) -> Any:
    restore = restorer(map_location)
    if not is_archive(file):
        return _load_other(file, restore, module, mapped, arguments)
    archive = Reader(file, bool(mapped))
    if "constants.pkl" in archive:
        raise RuntimeError("the file is a TorchScript archive, and tensorpy has no JIT: save the state_dict instead")
    order = archive.read("byteorder") if "byteorder" in archive else None
    if order not in (None, b"little", b"big"):
        raise ValueError(f"Unknown endianness type: {order[:20]!r}")
    is_big = order == b"big" or (order is None and get_default_load_endianness() is LoadEndianness.BIG)
    program, storages = archive.read("data.pkl"), _Storages(archive, restore, is_big)
    with nullcontext() if storages.fake is None else _disable_current_modes():
        if module is None:
            machine = Unpickler(program, storages.load, account=storages.account)
            machine.encoding = arguments.get("encoding", "utf-8")
            return machine.load()
        return _trusting(module, program, storages.load, arguments)


def _fake_mode() -> Any:
    """The FakeTensorMode that is active; None if none is."""
    modes: list[Any] = _C._dispatch_modes()
    return next((mode for mode in reversed(modes) if hasattr(mode, "fake_tensor_converter")), None)


def _load_other(file: Any, restore: Restore, module: Any, mapped: bool | None, arguments: dict[str, Any]) -> Any:
    """PyTorch's format before 1.6; a stream may have several objects."""
    start = file.tell()
    data = _rest(file)
    if not data:
        raise EOFError("Ran out of input")
    if not legacy.is_legacy(data):
        what = (
            "a pickle that torch.save has not written" if data[:1] == b"\x80" else "neither a .pt archive nor a pickle"
        )
        raise pickle.UnpicklingError(f"the file is {what}")
    if mapped:
        raise RuntimeError(
            "mmap can only be used with files saved with `torch.save(_use_new_zipfile_serialization=True)`: as archives"
        )
    run = None if module is None else lambda program, load: _trusting(module, program, load, arguments)
    obj, end = legacy.read(data, restore, run, arguments.get("encoding", "utf-8"))
    file.seek(start + end)
    return obj


def _rest(file: Any) -> bytes:
    """What follows in a file, by its `readinto` if it has one."""
    if not hasattr(file, "readinto"):
        return bytes(file.read())
    data, room = io.BytesIO(), memoryview(bytearray(1 << 20))
    while count := file.readinto(room):
        data.write(room[:count])
    return data.getvalue()


class _Storages:
    """The storages of an archive, each made once."""

    def __init__(self, archive: Reader, restore: Restore, is_big: bool) -> None:
        self.archive, self.restore, self.is_big = archive, restore, is_big
        self.made: dict[str, Any] = {}
        self.fake = _fake_mode()
        stored = sum(size for _, size in archive.places.values())
        self.account = Account(archive.size("data.pkl"), stored)

    def load(self, entry: Any) -> Any:
        """What an entry ("storage", type, key, location, length) of the pickle stands for."""
        if not isinstance(entry, tuple) or len(entry) != 5 or entry[0] != "storage":
            raise pickle.UnpicklingError(f"the file speaks of {names.shown(entry)} where a storage should be")
        _, kind, key, location, count = entry
        untyped = kind is names.UNTYPED
        if not (untyped or isinstance(kind, names.StorageType)) or not (type(key) is type(location) is str):
            raise pickle.UnpicklingError("an entry of the file has no type of a storage, key or location")
        size = self.archive.size(f"data/{key}")
        if type(count) is not int or count * (1 if untyped else kind.dtype.itemsize) != size:
            raise RuntimeError(f"storage {key} has {size} bytes in the file, which are not {count} elements")
        if key not in self.made:
            if self.fake is not None:
                return self.made.setdefault(key, names.FakeStorage(kind.dtype, size, self.fake, location))
            storage = self.archive.storage(f"data/{key}")
            if self.is_big and untyped and size > 1:
                raise RuntimeError(
                    f"storage {key} of a big-endian file has no dtype: the order of its bytes is unknown"
                )
            if self.is_big:
                storage.byteswap(_C.uint8 if untyped else kind.dtype)
            self.made[key] = self.restore(storage, location)
        as_made = untyped or self.fake is not None
        return self.made[key] if as_made else names.typed(self.made[key], kind.dtype)


def _trusting(module: Any, program: bytes, persistent_load: Callable[[Any], Any], arguments: dict[str, Any]) -> Any:
    """By Python's own machine, which imports and calls what the file names."""

    class Trusting(module.Unpickler):  # type: ignore[misc]
        def find_class(self, module: str, name: str) -> Any:
            if (module, name) in names.TABLE:
                return names.TABLE[module, name]
            return super().find_class(_counterpart(module, name), name)

        def persistent_load(self, pid: Any) -> Any:
            return persistent_load(pid)

    return Trusting(io.BytesIO(program), **{"encoding": "utf-8", **arguments}).load()


def _counterpart(module: str, name: str) -> str:
    """Where tensorpy has what PyTorch has in this module; else the module."""
    if module.split(".")[0] != "torch":
        return module
    ours = "tensorpy" + module[len("torch") :]
    try:
        return ours if hasattr(importlib.import_module(ours), name) else module
    except ImportError:
        return module


def get_unsafe_globals_in_checkpoint(f: File) -> list[str]:
    """The names in a file that weights_only=True refuses: its pickle is run without a call and without its storages.

    Arguments:
        f: a path or a file object

    Returns: a list of str.

    Raises: ValueError for a file that save has not written.

    Example:
        >>> tp.save({"a": tp.ones(2)}, "model.pt")
        >>> tp.serialization.get_unsafe_globals_in_checkpoint("model.pt")
        []
    """
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            return get_unsafe_globals_in_checkpoint(file)
    if not is_archive(f):
        raise ValueError("Expected input to be a checkpoint returned by `save`, and no file from before PyTorch 1.6")
    start = f.tell()
    try:
        return unsafe_globals(Reader(f).read("data.pkl"))
    finally:
        f.seek(start)
