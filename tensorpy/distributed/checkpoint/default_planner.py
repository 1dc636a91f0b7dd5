"""The plans of `save` and `load`: what several ranks have is written once; what is read may have been cut otherwise."""

from __future__ import annotations

import dataclasses
import io
import math
from collections.abc import Iterator
from typing import Any

import tensorpy as tp
from tensorpy._C import Size, Tensor
from tensorpy.distributed.checkpoint import nested
from tensorpy.distributed.checkpoint.metadata import (
    STATE_DICT_TYPE,
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from tensorpy.distributed.checkpoint.planner import (
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    TensorWriteData,
    WriteItem,
    WriteItemType,
)
from tensorpy.nn import Parameter

# ---- saving ----


def _boxes_of(value: Tensor) -> list[ChunkStorageMetadata]:
    """What a rank has of a tensor: tensors that are one of many processes say it themselves, by PyTorch's protocol."""
    own = getattr(value, "__create_chunk_list__", None)
    if own is None:
        return [ChunkStorageMetadata(offsets=Size([0] * value.dim()), sizes=value.size())]
    return [box for box in own() if math.prod(box.sizes) or not value.numel()]


def _part_of(value: Any, index: MetadataIndex) -> Any:
    """The elements of a box."""
    own = getattr(value, "__get_tensor_shard__", None)
    return value if own is None else own(index)


def _write_items(key: str, value: Any) -> Iterator[WriteItem]:
    if not isinstance(value, Tensor):
        yield WriteItem(MetadataIndex(key), WriteItemType.BYTE_IO)
        return
    kind = WriteItemType.SHARD if hasattr(value, "__create_chunk_list__") else WriteItemType.TENSOR
    for box in _boxes_of(value):
        properties = TensorProperties.create_from_tensor(_part_of(value, MetadataIndex(key, box.offsets)))
        data = TensorWriteData(box, properties, value.size())
        yield WriteItem(MetadataIndex(key, box.offsets), kind, tensor_data=data)


def create_default_local_save_plan(state_dict: dict[str, Any], is_coordinator: bool) -> SavePlan:
    """Everything that a rank has: whoever makes the plans fit chooses among those who have the same.

    Arguments:
        state_dict: its values, by their long keys
        is_coordinator: is taken: all ranks say what they have
    """
    return SavePlan([item for key, value in state_dict.items() for item in _write_items(key, value)])


def _without_copies(plans: list[SavePlan], lowest: bool) -> list[SavePlan]:
    """One rank writes what several have: that which has least to write so far, or the lowest."""
    holders: dict[MetadataIndex, list[int]] = {}
    sizes: dict[MetadataIndex, int] = {}
    for rank, plan in enumerate(plans):
        for item in plan.items:
            holders.setdefault(item.index, []).append(rank)
            sizes[item.index] = item.tensor_storage_size() or 1
    load = [0] * len(plans)
    writer: dict[MetadataIndex, int] = {}
    for index, ranks in holders.items():
        writer[index] = chosen = ranks[0] if lowest else min(ranks, key=lambda rank: load[rank])
        load[chosen] += sizes[index]
    return [
        dataclasses.replace(plan, items=[item for item in plan.items if writer[item.index] == rank])
        for rank, plan in enumerate(plans)
    ]


def _same_everywhere(plans: list[SavePlan]) -> None:
    """What ranks call alike is alike: else each would load what another has."""
    first: dict[str, tuple[int, Any]] = {}
    for rank, plan in enumerate(plans):
        for item in plan.items:
            data = item.tensor_data
            said = None if data is None else (tuple(data.size), str(data.properties.dtype))
            other, before = first.setdefault(item.index.fqn, (rank, said))
            if before != said:
                what = [("an object" if s is None else f"a tensor of {list(s[0])}, {s[1]}") for s in (before, said)]
                raise ValueError(f"{item.index.fqn!r} is {what[0]} on rank {other}, and {what[1]} on rank {rank}")


def create_default_global_save_plan(all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
    """The plans with the places of boxes in their names, and what the checkpoint says of itself.

    Arguments:
        all_plans: what each rank writes
    """
    found: dict[str, Any] = {}
    plans = []
    for plan in all_plans:
        items = []
        for item in plan.items:
            data = item.tensor_data
            if data is None:
                found[item.index.fqn] = BytesStorageMetadata()
                items.append(item)
                continue
            entry = found.setdefault(item.index.fqn, TensorStorageMetadata(data.properties, data.size, []))
            items.append(dataclasses.replace(item, index=dataclasses.replace(item.index, index=len(entry.chunks))))
            entry.chunks.append(data.chunk)
        plans.append(dataclasses.replace(plan, items=items))
    return plans, Metadata(found)


def _meet(a: ChunkStorageMetadata, b: ChunkStorageMetadata) -> tuple[list[int], list[int]] | None:
    """Where two boxes lie in each other: the first element and the shape; None: they share nothing."""
    begins = [max(x, y) for x, y in zip(a.offsets, b.offsets, strict=True)]
    ends = [min(x + m, y + n) for x, m, y, n in zip(a.offsets, a.sizes, b.offsets, b.sizes, strict=True)]
    lengths = [end - begin for begin, end in zip(begins, ends, strict=True)]
    return None if any(n <= 0 for n in lengths) else (begins, lengths)


def _check_boxes(metadata: Metadata) -> None:
    """Boxes of a tensor fill it, each element once."""
    for key, entry in metadata.state_dict_metadata.items():
        if not isinstance(entry, TensorStorageMetadata):
            continue
        if sum(math.prod(box.sizes) for box in entry.chunks) != math.prod(entry.size):
            raise ValueError(f"{key!r}: the parts that ranks write do not make up {list(entry.size)}")
        for place, box in enumerate(entry.chunks):
            if any(o + s > n for o, s, n in zip(box.offsets, box.sizes, entry.size, strict=True)):
                raise ValueError(f"{key!r}: a part reaches out of {list(entry.size)}")
            if any(_meet(box, other) for other in entry.chunks[:place]):
                raise ValueError(f"{key!r}: two ranks write the same elements")


class DefaultSavePlanner(SavePlanner):
    """What several ranks have is written by one of them, so that all write about as much.

    Arguments:
        flatten_state_dict: whether dictionaries in dictionaries are taken apart
        flatten_sharded_tensors: is taken
        dedup_replicated_tensors: is taken: they are always written once
        dedup_save_to_lowest_rank: whether the lowest rank that has something writes it
        enable_plan_caching: is taken: plans are made anew

    Example:
        >>> from tensorpy.distributed import checkpoint
        >>> planner = checkpoint.DefaultSavePlanner()
        >>> metadata = checkpoint.save({"x": tp.ones(2)}, checkpoint_id="saved", planner=planner)
        >>> sorted(metadata.state_dict_metadata)
        ['x']
    """

    flatten_state_dict: bool
    dedup_save_to_lowest_rank: bool
    is_coordinator: bool

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        dedup_replicated_tensors: bool | None = None,
        dedup_save_to_lowest_rank: bool = False,
        enable_plan_caching: bool = False,
    ) -> None:
        self.flatten_state_dict, self.dedup_save_to_lowest_rank = flatten_state_dict, dedup_save_to_lowest_rank
        self.state_dict: STATE_DICT_TYPE = {}
        self.mappings: dict[str, nested.Way] = {}
        self.is_coordinator = False

    def set_up_planner(
        self, state_dict: STATE_DICT_TYPE, storage_meta: StorageMeta | None = None, is_coordinator: bool = False
    ) -> None:
        """All ranks: what is to be saved.

        Arguments:
            state_dict: it
            storage_meta: which checkpoint it will be
            is_coordinator: whether this rank makes the plans fit
        """
        if self.flatten_state_dict:
            state_dict, _, self.mappings = nested.flatten(state_dict)
        self.state_dict, self.is_coordinator = state_dict, is_coordinator

    def create_local_plan(self) -> SavePlan:
        """All ranks: what this rank has."""
        plan = create_default_local_save_plan(self.state_dict, self.is_coordinator)
        return dataclasses.replace(plan, planner_data=self.mappings) if self.flatten_state_dict else plan

    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """The coordinator: what each rank writes, and what the checkpoint says of itself.

        Arguments:
            all_plans: what each rank has
        """
        _same_everywhere(all_plans)
        plans, metadata = create_default_global_save_plan(_without_copies(all_plans, self.dedup_save_to_lowest_rank))
        if self.flatten_state_dict:
            metadata.planner_data = {key: way for plan in plans for key, way in plan.planner_data.items()}
        _check_boxes(metadata)
        return plans, metadata

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """All ranks: the plan that is written.

        Arguments:
            new_plan: this rank's part of the coordinator's
        """
        return new_plan

    def resolve_data(self, write_item: WriteItem) -> Tensor | io.BytesIO:
        """What an item names.

        Arguments:
            write_item: the item
        """
        return self.transform_object(write_item, self.lookup_object(write_item.index))

    def lookup_object(self, index: MetadataIndex) -> Any:
        """What has a name: for planners that look elsewhere.

        Arguments:
            index: the name

        Returns: an object.
        """
        return _part_of(self.state_dict[index.fqn], index)

    def transform_object(self, write_item: WriteItem, object: Any) -> Any:
        """What is written of it: for planners that change it.

        Arguments:
            write_item: the item
            object: what it names

        Returns: an object.
        """
        if write_item.type is not WriteItemType.BYTE_IO:
            return object
        file = io.BytesIO()
        tp.save(object, file)
        return file


# ---- loading ----


def _apart(begins: list[int], box: ChunkStorageMetadata) -> Size:
    """Where an element lies in a box."""
    return Size([b - o for b, o in zip(begins, box.offsets, strict=True)])


def _boxes(key: str, entry: TensorStorageMetadata, value: Tensor) -> Iterator[ReadItem]:
    """What has to be read of a tensor's boxes to fill another of its shape; ValueError where something is missing."""
    for mine in _boxes_of(value):
        count = math.prod(mine.sizes)
        found = 0
        for place, box in enumerate(entry.chunks):
            shared = _meet(box, mine) if count else (list(mine.offsets), list(mine.sizes))
            if shared is None:
                continue
            begins, lengths = shared
            found += math.prod(lengths)
            yield ReadItem(
                LoadItemType.TENSOR, MetadataIndex(key, mine.offsets), _apart(begins, mine),
                MetadataIndex(key, box.offsets, place), _apart(begins, box), Size(lengths),
            )  # fmt: skip
            if not count:
                return
        if found < count:
            raise ValueError(f"{key!r} has only {found} of its {count} elements in the checkpoint")


def _read_items(key: str, entry: Any, value: Any) -> Iterator[ReadItem]:
    if not isinstance(entry, TensorStorageMetadata):
        name, none = MetadataIndex(key), Size((0,))
        yield ReadItem(LoadItemType.BYTE_IO, name, none, name, none, none)
        return
    if not isinstance(value, Tensor):
        raise ValueError(f"{key!r} is a tensor in the checkpoint, and {type(value).__name__} where it is loaded into")
    if value.size() != entry.size:
        raise ValueError(f"Size mismatch between saved {entry.size} and current: {value.size()} for {key}")
    yield from _boxes(key, entry, value)


def create_default_local_load_plan(state_dict: dict[str, Any], metadata: Metadata, strict: bool = True) -> LoadPlan:
    """What has to be read to fill a state dictionary.

    Arguments:
        state_dict: its values, by their long keys
        metadata: what the checkpoint has
        strict: whether a key that the checkpoint lacks is an error
    """
    items: list[ReadItem] = []
    for key, value in state_dict.items():
        entry = metadata.state_dict_metadata.get(key)
        if entry is not None:
            items += _read_items(key, entry, value)
        elif strict:
            raise RuntimeError(f"Missing key in checkpoint state_dict: {key}.")
    return LoadPlan(items)


def create_default_global_load_plan(all_plans: list[LoadPlan]) -> list[LoadPlan]:
    """The plans: each rank reads what it wants.

    Arguments:
        all_plans: what each rank wants
    """
    return all_plans


def _on_the_host(value: Any) -> Any:
    """A tensor with memory in the place of one on the Meta device."""
    if not isinstance(value, Tensor) or value.device.type != "meta":
        return value
    made = tp.empty_like(value, device="cpu", requires_grad=False)
    return Parameter(made, value.requires_grad) if isinstance(value, Parameter) else made


class DefaultLoadPlanner(LoadPlanner):
    """Fills the tensors of a state dictionary, and sets what else it has.

    Arguments:
        flatten_state_dict: whether dictionaries in dictionaries are taken apart
        flatten_sharded_tensors: is taken
        allow_partial_load: whether keys that the checkpoint lacks stay as they are; False: an error

    Example:
        >>> from tensorpy.distributed import checkpoint
        >>> _ = checkpoint.save({"x": tp.ones(2)}, checkpoint_id="saved")
        >>> state = {"x": tp.zeros(2), "new": tp.zeros(1)}
        >>> planner = checkpoint.DefaultLoadPlanner(allow_partial_load=True)
        >>> checkpoint.load(state, checkpoint_id="saved", planner=planner)
        >>> state
        {'x': tensor([1., 1.]), 'new': tensor([0.])}
    """

    flatten_state_dict: bool
    allow_partial_load: bool
    is_coordinator: bool

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        allow_partial_load: bool = False,
    ) -> None:
        self.flatten_state_dict, self.allow_partial_load = flatten_state_dict, allow_partial_load
        self.original_state_dict: STATE_DICT_TYPE = {}
        self.state_dict: STATE_DICT_TYPE = {}
        self.mappings: dict[str, nested.Way] = {}
        self.metadata: Metadata | None = None
        self.is_coordinator = False

    def set_up_planner(
        self, state_dict: STATE_DICT_TYPE, metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        """All ranks: what is to be loaded.

        Arguments:
            state_dict: where it goes
            metadata: what the checkpoint has
            is_coordinator: whether this rank makes the plans fit
        """
        self.original_state_dict, self.metadata, self.is_coordinator = state_dict, metadata, is_coordinator
        if self.flatten_state_dict:
            self.state_dict, self.mappings, _ = nested.flatten(state_dict)
        else:
            self.state_dict, self.mappings = dict(state_dict), {key: (key,) for key in state_dict}
        for key, value in self.state_dict.items():
            made = _on_the_host(value)
            if made is not value:
                self._set(key, made)

    def _set(self, key: str, value: Any) -> None:
        self.state_dict[key] = value
        nested.put(self.original_state_dict, self.mappings[key], value)

    def create_local_plan(self) -> LoadPlan:
        """All ranks: what this rank reads."""
        if self.metadata is None:
            raise AssertionError("set_up_planner was given no metadata")
        return create_default_local_load_plan(self.state_dict, self.metadata, not self.allow_partial_load)

    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """The coordinator: what each rank reads.

        Arguments:
            global_plan: what each rank wants
        """
        return create_default_global_load_plan(global_plan)

    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """All ranks: the plan that is read.

        Arguments:
            central_plan: this rank's part of the coordinator's
        """
        return central_plan

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Sets an object: plain values, and what `add_safe_globals` allows.

        Arguments:
            read_item: which
            value: its bytes
        """
        self._set(read_item.dest_index.fqn, tp.load(value, weights_only=True))

    def resolve_tensor(self, read_item: ReadItem) -> Tensor:
        """Where a box goes.

        Arguments:
            read_item: which
        """
        return self.transform_tensor(read_item, self.lookup_tensor(read_item.dest_index))

    def commit_tensor(self, read_item: ReadItem, tensor: Tensor) -> None:
        """A box has been written.

        Arguments:
            read_item: which
            tensor: where
        """

    def lookup_tensor(self, index: MetadataIndex) -> Tensor:
        """The tensor that has a name: for planners that look elsewhere.

        Arguments:
            index: the name
        """
        return _part_of(self.state_dict[index.fqn], index)

    def transform_tensor(self, read_item: ReadItem, tensor: Tensor) -> Tensor:
        """The part of it that is written: for planners that change it.

        Arguments:
            read_item: which part
            tensor: the tensor
        """
        for dim, (begin, length) in enumerate(zip(read_item.dest_offsets, read_item.lengths, strict=True)):
            tensor = tensor.narrow(dim, begin, length)
        return tensor


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Fills an empty dictionary with all that the checkpoint has, or what lies under some keys."""

    def __init__(self, keys: set[str] | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.keys = keys

    def _is_wanted(self, key: str, way: nested.Way) -> bool:
        if self.keys is None or key in self.keys:
            return True
        return any(".".join(map(str, way[:n])) in self.keys for n in range(1, len(way)))

    def set_up_planner(
        self, state_dict: STATE_DICT_TYPE, metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        if state_dict or metadata is None:
            raise AssertionError("what is filled is an empty dictionary")
        ways = metadata.planner_data if isinstance(metadata.planner_data, dict) else {}
        for key, entry in metadata.state_dict_metadata.items():
            way = ways.get(key, (key,))
            if not self._is_wanted(key, way):
                continue
            value = None
            if isinstance(entry, TensorStorageMetadata):
                value = tp.empty(entry.size, dtype=entry.properties.dtype, device="meta")
            nested.put(state_dict, way, value)
        super().set_up_planner(state_dict, metadata, is_coordinator)
