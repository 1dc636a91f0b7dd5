"""What a checkpoint says of itself: for each key of the state dictionary its shape and parts, and where they lie.

Written to the file `.metadata` and read from it by metadata_file.py, under PyTorch's names.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

import tensorpy as tp
from tensorpy._C import Size, Tensor

STATE_DICT_TYPE: TypeAlias = "dict[str, Any]"


@dataclass
class ChunkStorageMetadata:
    """A box of a tensor: where it begins, and how large it is.

    Arguments:
        offsets: its first element
        sizes: its shape

    Example:
        >>> from tensorpy.distributed import checkpoint
        >>> metadata = checkpoint.save({"x": tp.ones(2)}, checkpoint_id="saved")
        >>> [(c.offsets, c.sizes) for c in metadata.state_dict_metadata["x"].chunks]
        [(tensorpy.Size([0]), tensorpy.Size([2]))]
    """

    offsets: Size
    sizes: Size


class _MEM_FORMAT_ENCODING(Enum):
    """What files have for a memory format, which no pickle speaks of."""

    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


_FORMATS: dict[Any, _MEM_FORMAT_ENCODING] = {
    tp.contiguous_format: _MEM_FORMAT_ENCODING.TORCH_CONTIGUOUS_FORMAT,
    tp.channels_last: _MEM_FORMAT_ENCODING.TORCH_CHANNELS_LAST,
    tp.preserve_format: _MEM_FORMAT_ENCODING.TORCH_PRESERVE_FORMAT,
}


@dataclass
class TensorProperties:
    """What a tensor is beside its shape. Only the dtype is asked for where a checkpoint is read.

    Arguments:
        dtype: the type of its elements
        layout: strided
        requires_grad: whether gradients were wanted
        memory_format: the order of its elements
        pin_memory: whether its memory was pinned
    """

    dtype: Any = field(default_factory=tp.get_default_dtype)
    layout: Any = tp.strided
    requires_grad: bool = False
    memory_format: Any = tp.contiguous_format
    pin_memory: bool = False

    def __getstate__(self) -> tuple[Any, ...]:
        found = _FORMATS.get(self.memory_format)
        if found is None:
            raise RuntimeError(f"a checkpoint has no word for {self.memory_format}")
        return self.dtype, self.layout, self.requires_grad, found, self.pin_memory

    def __setstate__(self, state: Any) -> None:
        self.dtype, self.layout, self.requires_grad, word, self.pin_memory = state
        if not isinstance(word, _MEM_FORMAT_ENCODING):
            raise TypeError("a tensor's memory format in the file is none")
        self.memory_format = {known: format for format, known in _FORMATS.items()}[word]

    @staticmethod
    def create_from_tensor(tensor: Tensor) -> TensorProperties:
        """Those of a tensor, whose elements are written in order.

        Arguments:
            tensor: the tensor
        """
        return TensorProperties(
            dtype=tensor.dtype, layout=tensor.layout, requires_grad=tensor.requires_grad, pin_memory=tensor.is_pinned()
        )


@dataclass
class TensorStorageMetadata:
    """A tensor of a checkpoint, and the boxes in which it was written.

    Arguments:
        properties: its dtype, and what else was known
        size: its shape
        chunks: its boxes

    Example:
        >>> from tensorpy.distributed import checkpoint
        >>> metadata = checkpoint.save({"x": tp.ones(2)}, checkpoint_id="saved")
        >>> told = metadata.state_dict_metadata["x"]
        >>> isinstance(told, checkpoint.TensorStorageMetadata), told.size
        (True, tensorpy.Size([2]))
    """

    properties: TensorProperties
    size: Size
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """What is no tensor: an object that was saved.

    Example:
        >>> from tensorpy.distributed import checkpoint
        >>> metadata = checkpoint.save({"step": 3}, checkpoint_id="saved")
        >>> metadata.state_dict_metadata["step"]
        BytesStorageMetadata()
    """


@dataclass
class StorageMeta:
    """Which checkpoint this is.

    Arguments:
        checkpoint_id: where it was written
        save_id: tells it from what was saved there before
        load_id: tells one reading from another
        modules: modules that have to be imported to read it
    """

    checkpoint_id: str | os.PathLike[str] | None = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)


@dataclass
class Metadata:
    """A checkpoint: its keys, and what planner and storage know of them.

    Arguments:
        state_dict_metadata: what lies under each key
        planner_data: by key, the way to it in the state dictionary
        storage_data: by MetadataIndex, where it lies
        storage_meta: which checkpoint this is
        version: of the format

    Example:
        >>> from tensorpy.distributed import checkpoint
        >>> metadata = checkpoint.save({"x": tp.ones(2), "step": 3}, checkpoint_id="saved")
        >>> isinstance(metadata, checkpoint.Metadata), sorted(metadata.state_dict_metadata)
        (True, ['step', 'x'])
    """

    state_dict_metadata: dict[str, TensorStorageMetadata | BytesStorageMetadata]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None


@dataclass(frozen=True)
class MetadataIndex:
    """Names a part of a checkpoint: a key, and for a tensor the first element of a box.

    Arguments:
        fqn: the key
        offset: the first element of the box
        index: the place of the box among the key's, where it is known
    """

    fqn: str
    offset: Size | None = None
    index: int | None = field(hash=False, compare=False, default=None)

    def __init__(self, fqn: str, offset: Sequence[int] | None = None, index: int | None = None) -> None:
        object.__setattr__(self, "fqn", fqn)
        object.__setattr__(self, "offset", None if offset is None else Size(offset))
        object.__setattr__(self, "index", index)


@dataclass
class _StorageInfo:
    """Where a part of a checkpoint lies: a file beside `.metadata`, and which of its bytes."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: Sequence[str] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if value is not None}
