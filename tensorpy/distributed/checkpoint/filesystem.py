"""Checkpoints in a folder: a file `__<rank>_<n>.distcp` for what each rank writes, and `.metadata`.

A part is an archive as `tensorpy.save` writes it, one after the other in a file. `.metadata` names the files and the
bytes of each part; it is written last, beside its name, and renamed: what a folder has before is a checkpoint until
then, and what it has after is. So a new checkpoint overwrites no file of an older one: it takes numbers that are free,
and what no `.metadata` names any more is removed at the end. A folder takes one `save` at a time.
"""

from __future__ import annotations

import dataclasses
import io
import os
import pickle
import re
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

import tensorpy as tp
from tensorpy._C import Tensor
from tensorpy.distributed.checkpoint import metadata_file
from tensorpy.distributed.checkpoint.metadata import Metadata, StorageMeta, _StorageInfo
from tensorpy.distributed.checkpoint.planner import (
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    WriteItem,
    WriteItemType,
)
from tensorpy.distributed.checkpoint.staging import BlockingAsyncStager
from tensorpy.distributed.checkpoint.storage import StorageReader, StorageWriter, WriteResult
from tensorpy.futures import Future

CURRENT_DCP_VERSION = "1.0.0"
_METADATA = ".metadata"
_PART = re.compile(r"__\d+_\d+\.distcp")


@dataclasses.dataclass
class _StoragePrefix:
    """How the names of a rank's files begin."""

    prefix: str


def _metadata_name(rank: int | None) -> str:
    return _METADATA if rank is None else f"__{rank}{_METADATA}"


def _done(value: Any) -> Future[Any]:
    made: Future[Any] = Future()
    made.set_result(value)
    return made


# ---- writing ----


def _buckets(count: int, items: list[WriteItem]) -> list[list[WriteItem]]:
    """As many lists of about the same number of bytes, the largest tensors first."""
    made: list[list[WriteItem]] = [[] for _ in range(count)]
    sizes = [0] * count
    for item in sorted(items, key=lambda i: -(i.tensor_storage_size() or 0)):
        least = sizes.index(min(sizes))
        made[least].append(item)
        sizes[least] += item.tensor_storage_size() or 1
    return made


def _alone(tensor: Tensor) -> Tensor:
    """A tensor on the host whose memory has nothing else."""
    plain = tensor.detach().cpu()
    whole = plain.untyped_storage().nbytes() == plain.nbytes and plain.is_contiguous()
    return plain if whole else plain.clone(memory_format=tp.contiguous_format)


def _sync(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    """A file that was renamed is found under its name after a loss of power, too."""
    if os.name == "posix":
        folder = os.open(path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


class _Folder:
    """What a writer and a reader know of a checkpoint's folder."""

    path: Any

    @property
    def checkpoint_id(self) -> str | os.PathLike[str]:
        """The folder."""
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether this is a path whose folder is there, or may be made.

        Arguments:
            checkpoint_id: where a checkpoint is, or is to go
        """
        if isinstance(checkpoint_id, Path):
            return True
        return "://" not in str(checkpoint_id) and any(
            p.exists() and os.access(p, os.W_OK) for p in Path(checkpoint_id).absolute().parents
        )


class FileSystemWriter(_Folder, BlockingAsyncStager, StorageWriter):
    """Writes checkpoints into a folder, which is made where it is missing.

    Arguments:
        path: the folder
        single_file_per_rank: whether a rank writes one file for each thread, not one for each part
        sync_files: whether files are on the disk before the checkpoint counts
        thread_count: how many threads write
        per_thread_copy_ahead: is taken; tensors are copied one after the other
        cache_staged_state_dict: whether async_save keeps its copy's memory for the next time
        overwrite: whether a checkpoint that is there is replaced; False: an error

    Raises: ValueError for a thread_count below 1.

    Example:
        >>> from tensorpy.distributed.checkpoint import FileSystemWriter, save
        >>> found = save({"x": tp.ones(2)}, storage_writer=FileSystemWriter("checkpoint"), no_dist=True)
        >>> list(found.state_dict_metadata)
        ['x']
    """

    path: Any
    single_file_per_rank: bool
    sync_files: bool
    thread_count: int
    save_id: str

    def __init__(
        self,
        path: str | os.PathLike[str],
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000,
        cache_staged_state_dict: bool = False,
        overwrite: bool = True,
    ) -> None:
        super().__init__(cache_staged_state_dict)
        if thread_count < 1:
            raise ValueError(f"thread_count is {thread_count}: at least one thread writes")
        self.path = Path(path)
        self.single_file_per_rank, self.sync_files, self.thread_count = single_file_per_rank, sync_files, thread_count
        self.overwrite = overwrite
        self.rank: int | None = None  # of a checkpoint that has a `.metadata` for each rank
        self.save_id = str(uuid.uuid4())
        self._older: set[str] = set()

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Another checkpoint begins.

        Arguments:
            checkpoint_id: its folder; None: that of the one before
        """
        if checkpoint_id:
            self.path = Path(checkpoint_id)
        self.save_id = str(uuid.uuid4())

    def storage_meta(self) -> StorageMeta | None:
        """Which checkpoint is written."""
        return StorageMeta(checkpoint_id=os.fspath(self.path), save_id=self.save_id)

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """All ranks: which one this is.

        Arguments:
            is_coordinator: whether this rank makes the plans fit
        """
        self.rank = None if kwargs.get("use_collectives", True) else kwargs.get("rank")

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """All ranks: makes the folder.

        Arguments:
            plan: what this rank has
        """
        self.path.mkdir(parents=True, exist_ok=True)
        if not self.overwrite and (self.path / _metadata_name(self.rank)).exists():
            raise RuntimeError(f"Checkpoint already exists and self.overwrite={self.overwrite!r}.")
        if self.rank is not None:
            plan = dataclasses.replace(plan, storage_data=_StoragePrefix(f"__{self.rank}_"))
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """The coordinator: how the names of each rank's files begin.

        Arguments:
            plans: what each rank writes
        """
        beginning = "__" if self.rank is None else f"__{self.rank}_"
        found = (p.name for p in self.path.iterdir())
        self._older = {name for name in found if name.startswith(beginning) and _PART.fullmatch(name)}
        return [
            dataclasses.replace(plan, storage_data=_StoragePrefix(f"__{i}_")) if plan.storage_data is None else plan
            for i, plan in enumerate(plans)
        ]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """All ranks: writes.

        Arguments:
            plan: what this rank writes
            planner: finds it
        """
        count = min(self.thread_count, max(len(plan.items), 1))
        buckets = _buckets(count, plan.items) if self.single_file_per_rank else [[item] for item in plan.items]

        def write(bucket: list[WriteItem]) -> list[WriteResult]:
            return self._write_file(plan.storage_data.prefix, bucket, planner)

        if count == 1:
            return _done([result for bucket in buckets for result in write(bucket)])
        with ThreadPoolExecutor(count) as pool:
            return _done([result for results in pool.map(write, buckets) for result in results])

    def _free(self, prefix: str) -> tuple[str, IO[bytes]]:
        """A new file whose name no other has."""
        number = 0
        while True:
            name = f"{prefix}{number}.distcp"
            try:
                return name, (self.path / name).open("xb")
            except FileExistsError:
                number += 1

    def _write_file(self, prefix: str, items: list[WriteItem], planner: SavePlanner) -> list[WriteResult]:
        name, file = self._free(prefix)
        results = []
        with file:
            for item in items:
                begin = file.tell()
                data: Any = planner.resolve_data(item)
                if item.type is WriteItemType.BYTE_IO:
                    file.write(data.getbuffer())
                else:
                    tp.save(_alone(data), file)
                length = file.tell() - begin
                results.append(WriteResult(item.index, length, _StorageInfo(name, begin, length)))
            if self.sync_files:
                _sync(file)
        return results

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """The coordinator: writes `.metadata`, and removes what it does not name.

        Arguments:
            metadata: what the checkpoint says of itself
            results: what each rank has written
        """
        metadata.version = CURRENT_DCP_VERSION
        metadata.storage_data = {result.index: result.storage_data for each in results for result in each}
        metadata.storage_meta = self.storage_meta()
        place = self.path / _metadata_name(self.rank)
        beside = place.with_name(place.name + ".tmp")
        with beside.open("wb") as file:
            file.write(metadata_file.dump(metadata))
            if self.sync_files:
                _sync(file)
        if self.sync_files:
            _sync_folder(self.path)
        beside.replace(place)
        if self.sync_files:
            _sync_folder(self.path)
        for name in self._older - {info.relative_path for info in metadata.storage_data.values()}:
            (self.path / name).unlink(missing_ok=True)


# ---- reading ----


class _View(io.RawIOBase):
    """Some bytes of a file, as a file."""

    def __init__(self, file: IO[bytes], begin: int, length: int) -> None:
        self.file, self.begin, self.length, self.at = file, begin, length, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self.at, os.SEEK_END: self.length}[whence]
        if base + offset < 0:
            raise ValueError("a file has no place before its beginning")
        self.at = base + offset
        return self.at

    def readinto(self, room: Any) -> int:
        given = memoryview(room).cast("B")
        count = max(min(len(given), self.length - self.at), 0)
        self.file.seek(self.begin + self.at)
        data = self.file.read(count)
        given[: len(data)] = data
        self.at += len(data)
        return len(data)


def _part_of(file: IO[bytes], info: _StorageInfo, key: str) -> _View:
    if info.transform_descriptors:
        raise RuntimeError(f"{key!r} was written through {', '.join(info.transform_descriptors)}, which is not read")
    return _View(file, info.offset, info.length)


def _box_of(tensor: Any, item: ReadItem) -> Tensor:
    """The part of a tensor that was asked for."""
    if not isinstance(tensor, Tensor) or len(tensor.shape) != len(item.lengths):
        raise RuntimeError(f"{item.storage_index.fqn!r} is no tensor of its shape: the checkpoint is damaged")
    for dim, (begin, length) in enumerate(zip(item.storage_offsets, item.lengths, strict=True)):
        if begin + length > tensor.shape[dim]:
            raise RuntimeError(
                f"{item.storage_index.fqn!r} has the shape {list(tensor.shape)} in its file, and less than was said: "
                "the checkpoint is damaged"
            )
        tensor = tensor.narrow(dim, begin, length)
    return tensor


class FileSystemReader(_Folder, StorageReader):
    """Reads checkpoints from a folder. What is no tensor is read as `tensorpy.load` reads with weights_only=True.

    Arguments:
        path: the folder

    Example:
        >>> from tensorpy.distributed import checkpoint
        >>> found = checkpoint.save({"x": tp.ones(2)}, checkpoint_id="checkpoint", no_dist=True)
        >>> checkpoint.FileSystemReader("checkpoint").read_metadata().state_dict_metadata["x"].size
        tensorpy.Size([2])
    """

    path: Any
    load_id: str

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.storage_data: dict[Any, Any] = {}
        self.load_id = str(uuid.uuid4())

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Another checkpoint is read.

        Arguments:
            checkpoint_id: its folder; None: that of the one before
        """
        self.storage_data = {}
        if checkpoint_id:
            self.path = Path(checkpoint_id)
        self.load_id = str(uuid.uuid4())

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """What the checkpoint says of itself, checked. `rank=` asks for that of one rank, which wrote alone."""
        path = self.path / _metadata_name(kwargs.get("rank"))
        try:
            found = metadata_file.load(path.read_bytes())
        except FileNotFoundError:
            raise FileNotFoundError(
                f"{path} is not there: the folder has no checkpoint that was written whole"
            ) from None
        except pickle.UnpicklingError as error:
            raise pickle.UnpicklingError(f"{path}: {error}") from error
        for info in found.storage_data.values():
            self._check(info)
        found.storage_meta = found.storage_meta or StorageMeta()
        found.storage_meta.load_id = self.load_id
        return found

    def _check(self, info: _StorageInfo) -> None:
        """What a file is said to have, it has; where it is not on this machine, another rank may read it."""
        path, end = self.path / info.relative_path, info.offset + info.length
        if path.exists() and end > (size := path.stat().st_size):
            raise RuntimeError(
                f"{path} has {size} bytes, of which the checkpoint names those up to {end}: it is damaged"
            )

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """All ranks: where parts lie.

        Arguments:
            metadata: what the checkpoint says of itself
            is_coordinator: whether this rank makes the plans fit
        """
        self.storage_data = metadata.storage_data

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """The plan.

        Arguments:
            plan: what this rank wants
        """
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """The plans.

        Arguments:
            plans: what each rank reads
        """
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """All ranks: reads, each file once.

        Arguments:
            plan: what this rank reads
            planner: says where it goes
        """
        by_file: dict[str, list[tuple[int, ReadItem]]] = {}
        for item in plan.items:
            info = self.storage_data.get(item.storage_index)
            if info is None:
                raise RuntimeError(f"the checkpoint does not say where {item.storage_index.fqn!r} lies")
            by_file.setdefault(info.relative_path, []).append((info.offset, item))
        for name, items in by_file.items():
            with (self.path / name).open("rb") as file:
                for _, item in sorted(items, key=lambda pair: pair[0]):
                    self._read(file, item, planner)
        return _done(None)

    def _read(self, file: IO[bytes], item: ReadItem, planner: LoadPlanner) -> None:
        view = _part_of(file, self.storage_data[item.storage_index], item.storage_index.fqn)
        if item.type is LoadItemType.BYTE_IO:
            planner.load_bytes(item, io.BytesIO(view.read()))
            return
        stored: Any = view
        self._give(item, _box_of(tp.load(stored, map_location="cpu", weights_only=True), item), planner)

    def _give(self, item: ReadItem, part: Tensor, planner: LoadPlanner) -> None:
        target = planner.resolve_tensor(item).detach()
        if target.shape != part.shape:
            raise RuntimeError(f"{item.dest_index.fqn!r} has room for {list(target.shape)}, not {list(part.shape)}")
        target.copy_(part)
        planner.commit_tensor(item, target)
