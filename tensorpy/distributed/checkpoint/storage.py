"""Storages: what a place for checkpoints has to do."""

from __future__ import annotations

import abc
import os
from dataclasses import dataclass
from typing import Any

from tensorpy.distributed.checkpoint.metadata import Metadata, MetadataIndex, StorageMeta
from tensorpy.distributed.checkpoint.planner import LoadPlan, LoadPlanner, SavePlan, SavePlanner
from tensorpy.futures import Future


@dataclass(frozen=True)
class WriteResult:
    """A part that was written.

    Arguments:
        index: its name
        size_in_bytes: its bytes in the storage
        storage_data: where it lies, in the storage's words
    """

    index: MetadataIndex
    size_in_bytes: int
    storage_data: Any


class StorageWriter(abc.ABC):
    """Writes a checkpoint. Its methods are called in the order of this class.

    Example:
        >>> from tensorpy.distributed import checkpoint
        >>> writer = checkpoint.FileSystemWriter("saved")  # a StorageWriter of files
        >>> _ = checkpoint.save({"x": tp.ones(2)}, storage_writer=writer)
        >>> isinstance(writer, checkpoint.StorageWriter)
        True
    """

    @abc.abstractmethod
    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Another checkpoint begins.

        Arguments:
            checkpoint_id: where it goes; None: where the one before went
        """

    @abc.abstractmethod
    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """All ranks: which one this is.

        Arguments:
            is_coordinator: whether this rank makes the plans fit
        """

    @abc.abstractmethod
    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """All ranks: adds to the plan what the storage has to say.

        Arguments:
            plan: what this rank has
        """

    @abc.abstractmethod
    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """The coordinator: the same of all plans.

        Arguments:
            plans: what each rank writes
        """

    @abc.abstractmethod
    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """All ranks: writes.

        Arguments:
            plan: what this rank writes
            planner: finds it
        """

    @abc.abstractmethod
    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """The coordinator: all parts are written; from now on this is a checkpoint.

        Arguments:
            metadata: what it says of itself
            results: what each rank has written
        """

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether this storage can write there.

        Arguments:
            checkpoint_id: where a checkpoint is to go
        """

    def storage_meta(self) -> StorageMeta | None:
        """Which checkpoint is written."""
        return None


class StorageReader(abc.ABC):
    """Reads a checkpoint. Its methods are called in the order of this class.

    Example:
        >>> from tensorpy.distributed import checkpoint
        >>> _ = checkpoint.save({"x": tp.ones(2)}, checkpoint_id="saved")
        >>> reader = checkpoint.FileSystemReader("saved")  # a StorageReader of files
        >>> sorted(reader.read_metadata().state_dict_metadata)
        ['x']
    """

    @abc.abstractmethod
    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Another checkpoint is read.

        Arguments:
            checkpoint_id: where it is; None: where the one before was
        """

    @abc.abstractmethod
    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """All ranks: what the checkpoint says of itself."""

    @abc.abstractmethod
    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """All ranks: which one this is.

        Arguments:
            metadata: what the checkpoint says of itself
            is_coordinator: whether this rank makes the plans fit
        """

    @abc.abstractmethod
    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """All ranks: adds to the plan what the storage has to say.

        Arguments:
            plan: what this rank wants
        """

    @abc.abstractmethod
    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """The coordinator: the same of all plans.

        Arguments:
            plans: what each rank reads
        """

    @abc.abstractmethod
    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """All ranks: reads.

        Arguments:
            plan: what this rank reads
            planner: says where it goes
        """

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether this storage can read there.

        Arguments:
            checkpoint_id: where a checkpoint is
        """
