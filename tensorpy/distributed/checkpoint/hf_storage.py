"""Checkpoints as Hugging Face's libraries read and write them: a folder of files in the format safetensors.

Such a file is eight bytes that say how long its header is, the header, and the tensors' bytes. The header is JSON: by
name a tensor's dtype, its shape, and where its bytes begin and end. Nothing of a file is believed before it is compared
with the file's size, and a file runs nothing. Where each rank writes its parts, a file says of each tensor where in the
whole it begins (`DCP_SHARDING_INFO`, as PyTorch has it).
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import tensorpy as tp
from tensorpy._C import Size, Tensor
from tensorpy.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter, _alone, _box_of, _done, _sync
from tensorpy.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
    _StorageInfo,
)
from tensorpy.distributed.checkpoint.planner import (
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    WriteItem,
    WriteItemType,
)
from tensorpy.distributed.checkpoint.storage import WriteResult
from tensorpy.futures import Future

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]

_DTYPES = {
    "BOOL": tp.bool, "U8": tp.uint8, "I8": tp.int8, "U16": tp.uint16, "I16": tp.int16, "U32": tp.uint32,
    "I32": tp.int32, "U64": tp.uint64, "I64": tp.int64, "F16": tp.float16, "BF16": tp.bfloat16, "F32": tp.float32,
    "F64": tp.float64, "C64": tp.complex64, "F8_E5M2": tp.float8_e5m2, "F8_E4M3": tp.float8_e4m3fn,
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_INDEX, _SHARDS = "model.safetensors.index.json", "sharded"
_OWN, _SHARDING, _OFFSETS = "__metadata__", "DCP_SHARDING_INFO", "saved_offsets"
_FILE = re.compile(r"(shard-\d{5,}-)?model-\d{5,}-of-\d{5,}\.safetensors")
_MOST_HEADER = 100 << 20


@dataclasses.dataclass
class _Entry:
    """A tensor of a file: where its bytes lie, what they are, and where it begins in the whole tensor."""

    relative_path: str
    offset: int
    dtype: Any
    shape: tuple[int, ...]
    place: tuple[int, ...]

    @property
    def row(self) -> int:
        """How many bytes one of its first dimension has."""
        return math.prod(self.shape[1:]) * int(self.dtype.itemsize)


# ---- files ----


def _file_name(number: int, of: int, shard: int | None) -> str:
    return f"{'' if shard is None else f'shard-{shard:05}-'}model-{number:05}-of-{of:05}.safetensors"


def _write(path: Path, kinds: dict[str, Any], give: Callable[[str], Tensor], said: dict[str, str], sync: bool) -> None:
    """A file of tensors, whose dtypes and shapes are known; each is given when its turn comes."""
    header: dict[str, Any] = {_OWN: {"format": "pt", **said}}
    order, end = sorted(kinds, key=lambda name: (-kinds[name][0].itemsize, name)), 0
    for name in order:
        dtype, shape = kinds[name]
        if dtype not in _NAMES:
            raise RuntimeError(f"{name!r} is {dtype}, for which safetensors has no word")
        begin, end = end, end + math.prod(shape) * dtype.itemsize
        header[name] = {"dtype": _NAMES[dtype], "shape": list(shape), "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    beside = path.with_name(path.name + ".tmp")
    with beside.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            row: Any = _alone(give(name)).reshape(-1)
            if row.numel():
                file.write(memoryview(row.view(tp.uint8)))
        if sync:
            _sync(file)
    beside.replace(path)


def _damaged(path: Path, why: str) -> RuntimeError:
    return RuntimeError(f"{path}: {why}: it is no file of safetensors, or damaged")


def _numbers(given: Any, n: int | None = None) -> tuple[int, ...] | None:
    whole = isinstance(given, list) and all(type(i) is int and 0 <= i < 1 << 62 for i in given)
    return tuple(given) if whole and n in (None, len(given)) else None


def _header(path: Path) -> tuple[dict[str, Any], int, int]:
    """What a file says of itself, where its tensors begin, and where it ends."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, _MOST_HEADER):
            raise _damaged(path, f"a header of {length} bytes in a file of {size}")
        try:
            found = json.loads(file.read(length))
        except (ValueError, RecursionError):
            raise _damaged(path, "the header is not JSON") from None
    if not isinstance(found, dict):
        raise _damaged(path, "the header names no tensors")
    return found, 8 + length, size


def _places(path: Path, header: dict[str, Any]) -> dict[str, Any]:
    """Where the tensors of one rank's file begin in the whole ones."""
    said = header.pop(_OWN, None)
    text = said.get(_SHARDING) if isinstance(said, dict) else None
    try:
        found = json.loads(text) if isinstance(text, str) else {}
    except (ValueError, RecursionError):
        raise _damaged(path, "what it says of parts is not JSON") from None
    return found if isinstance(found, dict) else {}


def _entries(path: Path) -> Iterator[tuple[str, _Entry]]:
    """The tensors of a file, checked."""
    header, first, size = _header(path)
    places = _places(path, header)
    for name, said in header.items():
        said = said if isinstance(said, dict) else {}
        shape, lies = _numbers(said.get("shape")), _numbers(said.get("data_offsets"), 2)
        dtype = _DTYPES.get(str(said.get("dtype")))
        if dtype is None:
            raise _damaged(path, f"{name!r} is of the dtype {said.get('dtype')!r}")
        if shape is None or lies is None or not lies[0] <= lies[1] <= size - first:
            raise _damaged(path, f"{name!r} does not lie in the file")
        if math.prod(shape) * dtype.itemsize != lies[1] - lies[0]:
            raise _damaged(path, f"{name!r} has not as many bytes as its shape {list(shape)} takes")
        part = places.get(name)
        place = _numbers(part.get(_OFFSETS), len(shape)) if isinstance(part, dict) else (0,) * len(shape)
        if place is None:
            raise _damaged(path, f"{name!r} begins nowhere")
        yield name, _Entry(path.name, first + lies[0], dtype, shape, place)


def _rows(file: IO[bytes], entry: _Entry, begin: int, count: int) -> Tensor:
    """Some of a tensor's first dimension; of a number, it."""
    shape = (count, *entry.shape[1:]) if entry.shape else ()
    file.seek(entry.offset + begin * entry.row)
    data = file.read(math.prod(shape) * entry.dtype.itemsize)
    if not data:
        return tp.empty(shape, dtype=entry.dtype)
    raw = tp.frombuffer(bytearray(data), dtype=tp.uint8)
    return (raw != 0 if entry.dtype is tp.bool else raw.view(entry.dtype)).reshape(shape)


# ---- writing ----


class HuggingFaceStorageWriter(FileSystemWriter):
    """Writes checkpoints of tensors as files of safetensors, which Hugging Face's libraries read.

    Arguments:
        path: the folder
        fqn_to_index_mapping: by key the number of the file that it goes to, from 1 on; all in one if nothing is said
        thread_count: is taken; files are written one after the other
        save_distributed: whether each rank writes files of its parts; else one rank has it all
        enable_consolidation: whether whole tensors are written at the end, and the parts into the folder `sharded`
        thread_count_consolidation: is taken

    Example:
        >>> from tensorpy.distributed import checkpoint
        >>> writer = checkpoint.HuggingFaceStorageWriter("hugging")
        >>> _ = checkpoint.save({"x": tp.ones(2)}, storage_writer=writer, no_dist=True)
        >>> x = {"x": tp.zeros(2)}
        >>> checkpoint.load(x, storage_reader=checkpoint.HuggingFaceStorageReader("hugging"), no_dist=True)
        >>> x["x"]
        tensor([1., 1.])
    """

    fqn_to_index_mapping: dict[str, int] | None
    save_distributed: bool
    enable_consolidation: bool

    def __init__(
        self,
        path: str | os.PathLike[str],
        fqn_to_index_mapping: dict[str, int] | None = None,
        thread_count: int = 1,
        save_distributed: bool = False,
        enable_consolidation: bool = False,
        thread_count_consolidation: int = 1,
    ) -> None:
        super().__init__(path, thread_count=thread_count)
        self.fqn_to_index_mapping = fqn_to_index_mapping
        self.save_distributed, self.enable_consolidation = save_distributed, enable_consolidation
        self._whole = self.path
        if enable_consolidation:
            self.path = self.path / _SHARDS

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """The coordinator: the number of each rank's files.

        Arguments:
            plans: what each rank writes
        """
        told = {} if self.fqn_to_index_mapping is None else {"fqn_to_index_mapping": self.fqn_to_index_mapping}
        return [
            dataclasses.replace(plan, storage_data={**told, "shard_index": i} if self.save_distributed else told)
            for i, plan in enumerate(plans, 1)
        ]

    def _number_of(self, key: str) -> int:
        if self.fqn_to_index_mapping is None:
            return 1
        if key not in self.fqn_to_index_mapping:
            raise RuntimeError(f"fqn_to_index_mapping does not say which file {key!r} goes to")
        return self.fqn_to_index_mapping[key]

    def _count(self) -> int:
        return max((self.fqn_to_index_mapping or {"": 1}).values())

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """All ranks: writes.

        Arguments:
            plan: what this rank writes
            planner: finds it
        """
        by_file: dict[int, dict[str, WriteItem]] = {}
        for item in plan.items:
            if item.type is WriteItemType.BYTE_IO:
                raise RuntimeError(f"{item.index.fqn!r} is no tensor, and safetensors has nothing else")
            among = by_file.setdefault(self._number_of(item.index.fqn), {})
            if among.setdefault(item.index.fqn, item) is not item:
                raise RuntimeError(f"this rank has two parts of {item.index.fqn!r}: a file has one of a key")
        results, shard = [], plan.storage_data.get("shard_index")
        for number, items in by_file.items():
            name = _file_name(number, self._count(), shard)
            results += self._write_items(name, items, planner, shard is not None)
        return _done(results)

    def _write_items(self, name: str, items: dict[str, WriteItem], planner: SavePlanner, parts: bool) -> Any:
        tensors: dict[str, Any] = {key: planner.resolve_data(item) for key, item in items.items()}
        boxes: dict[str, Any] = {key: item.tensor_data for key, item in items.items()}
        places = {key: {_OFFSETS: list(box.chunk.offsets)} for key, box in boxes.items()}
        said = {_SHARDING: json.dumps(places), "DCP_VERSION": "1.0"} if parts else {}
        kinds = {key: (t.dtype, tuple(t.shape)) for key, t in tensors.items()}
        _write(self.path / name, kinds, tensors.__getitem__, said, self.sync_files)
        return [
            WriteResult(item.index, tensors[key].nbytes, _StorageInfo(name, 0, tensors[key].nbytes))
            for key, item in items.items()
        ]

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """The coordinator: writes whole tensors where that was asked for, and says which file has which key.

        Arguments:
            metadata: what the checkpoint says of itself
            results: what each rank has written
        """
        written = [result for each in results for result in each]
        for name in {path.name for path in self.path.iterdir()} - {r.storage_data.relative_path for r in written}:
            if _FILE.fullmatch(name):  # of a checkpoint that was here before: a reader would take it, too
                (self.path / name).unlink()
        if self.save_distributed and not self.enable_consolidation:
            return
        sizes: dict[str, int] = {}
        for result in written:
            sizes[result.index.fqn] = sizes.get(result.index.fqn, 0) + result.size_in_bytes
        files = {result.index.fqn: result.storage_data.relative_path for result in written}
        if self.enable_consolidation:
            files = {key: _file_name(self._number_of(key), self._count(), None) for key in sizes}
            self._join(files)
        index = {"metadata": {"total_size": sum(sizes.values())}, "weight_map": files}
        (self._whole / _INDEX).write_text(json.dumps(index, indent=2))

    def _join(self, files: dict[str, str]) -> None:
        """Whole tensors, of the parts that all ranks wrote."""
        reader = HuggingFaceStorageReader(self.path)
        known = reader.read_metadata()
        for name in dict.fromkeys(files.values()):
            kinds = {}
            for key in (key for key in files if files[key] == name):
                found: Any = known.state_dict_metadata[key]
                kinds[key] = (found.properties.dtype, tuple(found.size))
            _write(self._whole / name, kinds, reader.whole, {}, self.sync_files)


# ---- reading ----


class HuggingFaceStorageReader(FileSystemReader):
    """Reads checkpoints of tensors from a folder of files of safetensors: whole ones, or parts that ranks wrote.

    Arguments:
        path: the folder
        thread_count: is taken; files are read one after the other

    Example:
        >>> from tensorpy.distributed import checkpoint
        >>> writer = checkpoint.HuggingFaceStorageWriter("hugging")
        >>> _ = checkpoint.save({"x": tp.ones(2)}, storage_writer=writer, no_dist=True)
        >>> checkpoint.HuggingFaceStorageReader("hugging").read_metadata().state_dict_metadata["x"].size
        tensorpy.Size([2])
    """

    thread_count: int

    def __init__(self, path: str | os.PathLike[str], thread_count: int = 1) -> None:
        super().__init__(path)
        self.thread_count = thread_count

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """What the files say of themselves, checked."""
        parts: dict[str, list[_Entry]] = {}
        for path in sorted(self.path.glob("*.safetensors")):
            for key, entry in _entries(path):
                parts.setdefault(key, []).append(entry)
        if not parts:
            raise FileNotFoundError(f"{self.path} has no files of safetensors with tensors")
        self.storage_data = {MetadataIndex(key, e.place): e for key, of in parts.items() for e in of}
        return Metadata(
            {key: self._tensor(key, of) for key, of in parts.items()},
            storage_data=self.storage_data,
            storage_meta=StorageMeta(load_id=self.load_id),
        )

    def _tensor(self, key: str, parts: list[_Entry]) -> TensorStorageMetadata:
        first = parts[0]
        if any(p.dtype is not first.dtype or len(p.shape) != len(first.shape) for p in parts):
            raise RuntimeError(f"the parts of {key!r} are not of one dtype and number of dimensions")
        size = Size(max(p.place[d] + p.shape[d] for p in parts) for d in range(len(first.shape)))
        if sum(math.prod(p.shape) for p in {p.place: p for p in parts}.values()) < math.prod(size):
            raise RuntimeError(f"parts of {key!r} are missing in {self.path}: those that are here are not all of it")
        boxes = [ChunkStorageMetadata(Size(p.place), Size(p.shape)) for p in parts]
        return TensorStorageMetadata(TensorProperties(dtype=first.dtype), size, boxes)

    def whole(self, key: str) -> Tensor:
        """A whole tensor, of all its parts.

        Arguments:
            key: its name
        """
        parts: list[Any] = [e for index, e in self.storage_data.items() if index.fqn == key]
        made = tp.empty(self._tensor(key, parts).size, dtype=parts[0].dtype)
        for part in parts:
            box = made
            for dim, (begin, length) in enumerate(zip(part.place, part.shape, strict=True)):
                box = box.narrow(dim, begin, length)
            with (self.path / part.relative_path).open("rb") as file:
                box.copy_(_rows(file, part, 0, part.shape[0] if part.shape else 1))
        return made

    def _read(self, file: IO[bytes], item: ReadItem, planner: LoadPlanner) -> None:
        entry: Any = self.storage_data[item.storage_index]
        begin, count = (item.storage_offsets[0], item.lengths[0]) if entry.shape else (0, 1)
        rows = _rows(file, entry, begin, count)
        rest = dataclasses.replace(item, storage_offsets=Size([0, *item.storage_offsets[1:]][: len(entry.shape)]))
        self._give(item, _box_of(rows, rest), planner)
