"""The file `.metadata`: a pickle under PyTorch's names, which is written here, and read without running it.

The file comes from anybody. The machine that reads state dictionaries (serialization/unpickler.py) reads it, with the
classes of metadata.py as data beside the names that it knows: an object of them is made empty and given fields that the
class has. What was read is checked as a whole before anything believes it: kinds of values, boxes inside their tensors,
names of files that stay in the folder, the ways into a state dictionary.
"""

from __future__ import annotations

import io
import itertools
import math
import pickle
from dataclasses import fields
from pathlib import PurePosixPath
from typing import Any

import tensorpy as tp
from tensorpy._C import Size
from tensorpy.distributed.checkpoint.metadata import (
    _MEM_FORMAT_ENCODING,
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
    _StorageInfo,
)
from tensorpy.serialization.pickler import Pickler
from tensorpy.serialization.unpickler import Unpickler

_PROTOCOL = 2
_LARGEST = 1 << 62  # bytes of a tensor
_PACKAGE = "torch.distributed.checkpoint"
_DATA = (
    BytesStorageMetadata, ChunkStorageMetadata, Metadata, MetadataIndex, StorageMeta, TensorProperties,
    TensorStorageMetadata,
)  # fmt: skip
_NAMES: dict[Any, tuple[str, str]] = {
    **{cls: (f"{_PACKAGE}.metadata", cls.__name__) for cls in (*_DATA, _MEM_FORMAT_ENCODING)},
    _StorageInfo: (f"{_PACKAGE}.filesystem", "_StorageInfo"),
}
_FIELDS = {cls: frozenset(each.name for each in fields(cls)) for cls in (*_DATA, _StorageInfo)}
_PATHS = frozenset((module, name) for module in ("pathlib", "pathlib._local") for name in ("PosixPath", "WindowsPath"))


# ---- writing ----


class _Writer(Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, type) and obj in _NAMES:
            return _NAMES[obj][1]
        return super().reducer_override(obj)

    def save_global(self, obj: Any, name: str | None = None) -> None:
        if not isinstance(obj, type) or obj not in _NAMES:
            super().save_global(obj, name)
            return
        module, name = _NAMES[obj]
        self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
        self.memoize(obj)


def dump(metadata: Metadata) -> bytes:
    """The text of the file."""
    file = io.BytesIO()
    _Writer(file, _PROTOCOL).dump(metadata)
    return file.getvalue()


# ---- reading ----


def _path(*parts: Any) -> str:
    if not all(type(part) is str for part in parts):
        raise TypeError("a path in the file is no text")
    return str(PurePosixPath(*parts))


def _no_storage(entry: Any) -> Any:
    raise pickle.UnpicklingError("the metadata of a checkpoint has no tensors of its own")


class _Reader(Unpickler):
    def __init__(self, data: bytes) -> None:
        super().__init__(data, _no_storage)
        self.named = {name: cls for cls, name in _NAMES.items()} | dict.fromkeys(_PATHS, _path)
        self.calls.update({id(each): each for each in (_MEM_FORMAT_ENCODING, _path)})

    def find(self, module: str, name: str) -> None:
        if (module, name) in self.named:
            self.push(self.named[module, name])
        else:
            super().find(module, name)

    def new(self) -> None:
        cls, arguments = self.last(2)
        if isinstance(cls, type) and cls in _FIELDS:
            if arguments != ():
                raise TypeError(f"a {cls.__name__} in the file is given arguments")
            self.push(object.__new__(cls))
        else:
            self.stack += [cls, arguments]
            super().new()

    def build(self) -> None:
        target = self.stack[-2]
        if type(target) not in _FIELDS:
            super().build()
            return
        (state,) = self.account.copied((self.pop(),))
        if type(target) is TensorProperties:
            target.__setstate__(state)
        elif type(state) is not dict or not _FIELDS[type(target)].issuperset(state):
            raise TypeError(f"a {type(target).__name__} in the file has fields that it should not")
        else:
            target.__dict__.update(state)


def load(data: bytes) -> Metadata:
    """The metadata in a file's text; UnpicklingError where it is damaged, or says what cannot be."""
    found = _Reader(data).load()
    try:
        _check(found)
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        raise pickle.UnpicklingError(f"the metadata of the checkpoint is damaged: {error}") from error
    return found


# ---- what was read ----


def _expect(good: bool, what: str) -> None:
    if not good:
        raise ValueError(what)


def _box(values: Any) -> bool:
    return type(values) is Size and all(type(n) is int and 0 <= n < _LARGEST for n in values)


def _check_tensor(key: str, tensor: TensorStorageMetadata) -> None:
    properties, size, chunks = tensor.properties, tensor.size, tensor.chunks
    _expect(type(properties) is TensorProperties and isinstance(properties.dtype, tp.dtype), f"{key!r} has no dtype")
    _expect(_box(size) and type(chunks) is list, f"{key!r} has no shape or parts")
    _expect(math.prod(size) * properties.dtype.itemsize < _LARGEST, f"{key!r} is larger than any memory")
    for chunk in chunks:
        good = type(chunk) is ChunkStorageMetadata and _box(chunk.offsets) and _box(chunk.sizes)
        _expect(good and len(chunk.offsets) == len(chunk.sizes) == len(size), f"a part of {key!r} is no box")
        inside = all(o + s <= n for o, s, n in zip(chunk.offsets, chunk.sizes, size, strict=True))
        _expect(inside, f"a part of {key!r} reaches out of it")


def _check_place(index: Any, info: Any) -> None:
    _expect(type(index) is MetadataIndex and type(index.fqn) is str, "an entry of the storage has no key")
    _expect(index.offset is None or _box(index.offset), f"{index.fqn!r} lies at no offset")
    _expect(type(info) is _StorageInfo and type(info.relative_path) is str, f"{index.fqn!r} has no file")
    path = info.relative_path
    parts = PurePosixPath(path.replace("\\", "/")).parts
    good = bool(parts) and not parts[0].startswith("/") and ".." not in parts and not {"\0", ":"} & set(path)
    _expect(good, f"{index.fqn!r} lies outside of the checkpoint: {path[:100]!r}")
    for n in (info.offset, info.length):
        _expect(type(n) is int and 0 <= n < _LARGEST, f"{index.fqn!r} lies at no bytes of its file")
    words = info.transform_descriptors
    _expect(words is None or all(type(w) is str for w in words), f"{index.fqn!r} was changed in unknown ways")


def _check_bytes(metadata: Metadata) -> None:
    """Parts share no bytes of a file, and a box has at least those of its elements: so what is made for a checkpoint is
    not larger than its files."""
    for key, entry in metadata.state_dict_metadata.items():
        if not isinstance(entry, TensorStorageMetadata):
            continue
        for box in entry.chunks:
            info = metadata.storage_data.get(MetadataIndex(key, box.offsets))
            _expect(info is not None, f"{key!r} does not say where it lies")
            needed = math.prod(box.sizes) * entry.properties.dtype.itemsize
            changed = bool(info.transform_descriptors)
            _expect(changed or info.length >= needed, f"{key!r} has {info.length} bytes, and needs {needed}")
    by_file: dict[str, list[tuple[int, int]]] = {}
    for info in metadata.storage_data.values():
        by_file.setdefault(info.relative_path, []).append((info.offset, info.offset + info.length))
    for name, places in by_file.items():
        places.sort()
        for (_, end), (begin, _) in itertools.pairwise(places):
            _expect(end <= begin, f"two parts have the same bytes of {name}")


def _check_ways(ways: dict[Any, Any]) -> None:
    """A number in a way is a place in a list, whose places all have keys of their own."""
    for key, way in ways.items():
        good = type(key) is str and type(way) is tuple and len(way) > 0 and type(way[0]) is str
        _expect(good, "a way into the state dictionary is none")
        for step in way:
            good = type(step) is str or (type(step) is int and 0 <= step < len(ways))
            _expect(good, f"the way to {key!r} goes over a place that is not there")


def _check_which(meta: StorageMeta) -> None:
    _expect(type(meta) is StorageMeta, "it does not say which checkpoint it is")
    for name in ("checkpoint_id", "save_id", "load_id"):
        _expect(isinstance(getattr(meta, name), (str, type(None))), f"its {name} is no text")


def _check(metadata: Any) -> None:
    _expect(type(metadata) is Metadata, f"it is {type(metadata).__name__}, no metadata")
    _expect(type(metadata.state_dict_metadata) is dict, "it has no keys")
    for key, entry in metadata.state_dict_metadata.items():
        _expect(type(key) is str, "a key is no text")
        if type(entry) is TensorStorageMetadata:
            _check_tensor(key, entry)
        else:
            _expect(type(entry) is BytesStorageMetadata, f"{key!r} is neither a tensor nor an object")
    _expect(type(metadata.storage_data) is dict, "it does not say where anything lies")
    for index, info in metadata.storage_data.items():
        _check_place(index, info)
    _check_bytes(metadata)
    if type(metadata.planner_data) is dict:
        _check_ways(metadata.planner_data)
    if metadata.storage_meta is not None:
        _check_which(metadata.storage_meta)
    _expect(isinstance(metadata.version, (str, type(None))), "its version is no text")
