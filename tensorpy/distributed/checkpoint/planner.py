"""Plans: which rank writes or reads which parts of a checkpoint, and what those have to do who make plans.

Each rank makes a plan of its own, one rank (the coordinator) makes all of them fit, each rank finishes its own.
"""

from __future__ import annotations

import abc
import io
import math
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from tensorpy._C import Size, Tensor
from tensorpy.distributed.checkpoint.metadata import (
    STATE_DICT_TYPE,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
)


class WriteItemType(Enum):
    """What is written: a whole tensor, a box of one, the bytes of an object."""

    TENSOR = auto()
    SHARD = auto()
    BYTE_IO = auto()


class LoadItemType(Enum):
    """What is read: a box of a tensor, the bytes of an object."""

    TENSOR = auto()
    BYTE_IO = auto()


@dataclass(frozen=True)
class BytesIOWriteData:
    """How many bytes an object has.

    Arguments:
        nbytes: their number
    """

    nbytes: int


@dataclass(frozen=True)
class TensorWriteData:
    """The box of a tensor that is written.

    Arguments:
        chunk: the box
        properties: the tensor's dtype, and what else is known
        size: the shape of the whole tensor
    """

    chunk: ChunkStorageMetadata
    properties: TensorProperties
    size: Size


@dataclass(frozen=True)
class WriteItem:
    """A part that is written.

    Arguments:
        index: its name
        type: what it is
        bytes_io_data: of an object
        tensor_data: of a tensor

    Example:
        >>> from tensorpy.distributed import checkpoint
        >>> class Telling(checkpoint.DefaultSavePlanner):
        ...     def create_local_plan(self):
        ...         plan = super().create_local_plan()
        ...         print([(item.index.fqn, item.tensor_storage_size()) for item in plan.items])
        ...         return plan
        >>> _ = checkpoint.save({"x": tp.ones(2)}, checkpoint_id="saved", planner=Telling())
        [('x', 8)]
    """

    index: MetadataIndex
    type: WriteItemType
    bytes_io_data: BytesIOWriteData | None = None
    tensor_data: TensorWriteData | None = None

    def tensor_storage_size(self) -> int | None:
        """The bytes of the whole tensor; None of an object."""
        if self.tensor_data is None:
            return None
        return math.prod(self.tensor_data.size) * int(self.tensor_data.properties.dtype.itemsize)


@dataclass(frozen=True)
class ReadItem:
    """A part that is read.

    Arguments:
        type: what it is
        dest_index: where it goes
        dest_offsets: its first element there
        storage_index: where it comes from
        storage_offsets: its first element there
        lengths: its shape

    Example:
        >>> from tensorpy.distributed import checkpoint
        >>> _ = checkpoint.save({"x": tp.ones(2)}, checkpoint_id="saved")
        >>> class Telling(checkpoint.DefaultLoadPlanner):
        ...     def create_local_plan(self):
        ...         plan = super().create_local_plan()
        ...         print([(item.dest_index.fqn, item.lengths) for item in plan.items])
        ...         return plan
        >>> checkpoint.load({"x": tp.zeros(2)}, checkpoint_id="saved", planner=Telling())
        [('x', tensorpy.Size([2]))]
    """

    type: LoadItemType
    dest_index: MetadataIndex
    dest_offsets: Size
    storage_index: MetadataIndex
    storage_offsets: Size
    lengths: Size


@dataclass(frozen=True)
class SavePlan:
    """What a rank writes.

    Arguments:
        items: the parts
        storage_data: what the storage adds
        planner_data: what the planner adds
        usable: False where the plan of the time before is meant

    Example:
        >>> from tensorpy.distributed import checkpoint
        >>> class Counting(checkpoint.DefaultSavePlanner):
        ...     def create_local_plan(self):
        ...         plan = super().create_local_plan()
        ...         print(len(plan.items), "to write")
        ...         return plan
        >>> _ = checkpoint.save({"x": tp.ones(2), "y": tp.ones(1)}, checkpoint_id="saved", planner=Counting())
        2 to write
    """

    items: list[WriteItem]
    storage_data: Any = None
    planner_data: Any = None
    usable: bool = True


@dataclass
class LoadPlan:
    """What a rank reads.

    Arguments:
        items: the parts
        storage_data: what the storage adds
        planner_data: what the planner adds

    Example:
        >>> from tensorpy.distributed import checkpoint
        >>> class Counting(checkpoint.DefaultLoadPlanner):
        ...     def create_local_plan(self):
        ...         plan = super().create_local_plan()
        ...         print(len(plan.items), "to read")
        ...         return plan
        >>> _ = checkpoint.save({"x": tp.ones(2), "y": tp.ones(1)}, checkpoint_id="saved")
        >>> checkpoint.load({"x": tp.zeros(2)}, checkpoint_id="saved", planner=Counting())
        1 to read
    """

    items: list[ReadItem]
    storage_data: Any = None
    planner_data: Any = None


class SavePlanner(abc.ABC):
    """Makes the plans of one `save`, and finds what they name. Its methods are called in the order of this class.

    Example:
        >>> from tensorpy.distributed import checkpoint
        >>> class Halved(checkpoint.DefaultSavePlanner):  # which is a SavePlanner
        ...     def transform_object(self, write_item, object):
        ...         return super().transform_object(write_item, object)
        >>> _ = checkpoint.save({"x": tp.ones(2)}, checkpoint_id="saved", planner=Halved())
    """

    @abc.abstractmethod
    def set_up_planner(
        self, state_dict: STATE_DICT_TYPE, storage_meta: StorageMeta | None = None, is_coordinator: bool = False
    ) -> None:
        """All ranks: what is to be saved.

        Arguments:
            state_dict: it
            storage_meta: which checkpoint it will be
            is_coordinator: whether this rank makes the plans fit
        """

    @abc.abstractmethod
    def create_local_plan(self) -> SavePlan:
        """All ranks: what this rank has."""

    @abc.abstractmethod
    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """The coordinator: what each rank writes, and what the checkpoint says of itself.

        Arguments:
            all_plans: what each rank has
        """

    @abc.abstractmethod
    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """All ranks: the plan that is written.

        Arguments:
            new_plan: this rank's part of the coordinator's
        """

    @abc.abstractmethod
    def resolve_data(self, write_item: WriteItem) -> Tensor | io.BytesIO:
        """What an item names: a tensor, or the bytes of an object. Threads may ask at a time.

        Arguments:
            write_item: the item
        """


class LoadPlanner(abc.ABC):
    """Makes the plans of one `load`, and says where what is read goes.

    Example:
        >>> from tensorpy.distributed import checkpoint
        >>> _ = checkpoint.save({"x": tp.ones(2)}, checkpoint_id="saved")
        >>> class Telling(checkpoint.DefaultLoadPlanner):  # which is a LoadPlanner
        ...     def commit_tensor(self, read_item, tensor):
        ...         print("read", read_item.dest_index.fqn)
        >>> checkpoint.load({"x": tp.zeros(2)}, checkpoint_id="saved", planner=Telling())
        read x
    """

    @abc.abstractmethod
    def set_up_planner(
        self, state_dict: STATE_DICT_TYPE, metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        """All ranks: what is to be loaded.

        Arguments:
            state_dict: where it goes
            metadata: what the checkpoint has
            is_coordinator: whether this rank makes the plans fit
        """

    @abc.abstractmethod
    def create_local_plan(self) -> LoadPlan:
        """All ranks: what this rank reads."""

    @abc.abstractmethod
    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """The coordinator: what each rank reads.

        Arguments:
            global_plan: what each rank wants
        """

    @abc.abstractmethod
    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """All ranks: the plan that is read.

        Arguments:
            central_plan: this rank's part of the coordinator's
        """

    @abc.abstractmethod
    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Takes the bytes of an object.

        Arguments:
            read_item: which
            value: its bytes
        """

    def resolve_bytes(self, read_item: ReadItem) -> io.BytesIO:
        """Where the bytes of an object go, for storages that fill it.

        Arguments:
            read_item: which
        """
        raise NotImplementedError("LoadPlanner.resolve_bytes is not implemented")

    @abc.abstractmethod
    def resolve_tensor(self, read_item: ReadItem) -> Tensor:
        """Where a box goes: memory of its shape, which is then written.

        Arguments:
            read_item: which
        """

    @abc.abstractmethod
    def commit_tensor(self, read_item: ReadItem, tensor: Tensor) -> None:
        """A box has been written.

        Arguments:
            read_item: which
            tensor: what resolve_tensor gave
        """
