"""`load`: all ranks read a checkpoint into what they have."""

from __future__ import annotations

import os
import warnings
from typing import Any

from tensorpy.distributed.checkpoint.agreement import Ranks
from tensorpy.distributed.checkpoint.default_planner import DefaultLoadPlanner, _EmptyStateDictLoadPlanner
from tensorpy.distributed.checkpoint.filesystem import FileSystemReader
from tensorpy.distributed.checkpoint.metadata import Metadata
from tensorpy.distributed.checkpoint.planner import LoadPlan, LoadPlanner
from tensorpy.distributed.checkpoint.state_dict_saver import _alone, takes_keywords
from tensorpy.distributed.checkpoint.stateful import Stateful
from tensorpy.distributed.checkpoint.storage import StorageReader


def _storage(reader: StorageReader | None, checkpoint_id: str | os.PathLike[str] | None) -> StorageReader:
    if reader is not None:
        if checkpoint_id is not None:
            reader.reset(checkpoint_id)
        return reader
    if not checkpoint_id:
        raise RuntimeError("`checkpoint_id` must be specified if storage_reader/storage_writer is None.")
    if not FileSystemReader.validate_checkpoint_id(checkpoint_id):
        raise RuntimeError(f"{str(checkpoint_id)!r} is no folder: give a storage_reader for it")
    return FileSystemReader(checkpoint_id)


def _metadata(reader: StorageReader, rank: int) -> Metadata:
    """What the checkpoint says of itself: one for all ranks, or where there is none, this rank's own."""
    try:
        return reader.read_metadata()
    except FileNotFoundError:
        if not takes_keywords(reader.read_metadata):
            raise
        try:
            return reader.read_metadata(rank=rank)
        except FileNotFoundError:
            pass
        raise


def _load(state_dict: dict[str, Any], reader: StorageReader, planner: LoadPlanner | None, ranks: Ranks) -> None:
    chosen = planner or DefaultLoadPlanner()

    def plan() -> LoadPlan:
        metadata = _metadata(reader, ranks.rank)
        chosen.set_up_planner(state_dict, metadata, ranks.is_coordinator)
        keywords = {"rank": ranks.rank} if takes_keywords(reader.set_up_storage_reader) else {}
        reader.set_up_storage_reader(metadata, ranks.is_coordinator, **keywords)
        return reader.prepare_local_plan(chosen.create_local_plan())

    def fit(plans: list[LoadPlan]) -> list[LoadPlan]:
        return reader.prepare_global_plan(chosen.create_global_plan(plans))

    mine = ranks.reduce_scatter("plan", plan, fit)
    ranks.all_gather("read", lambda: reader.read_data(chosen.finish_plan(mine), chosen).wait())


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_reader: StorageReader | None = None,
    planner: LoadPlanner | None = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Reads a checkpoint into a state dictionary: its tensors are written, all else in it is set.

    Another number of ranks may have written it. All ranks call it, with the same keys. What is no tensor is plain data,
    or of a class that `serialization.add_safe_globals` allows.

    Arguments:
        state_dict: what is filled; objects with a `load_state_dict` are given what was read for them
        checkpoint_id: the folder
        storage_reader: another storage
        planner: other plans
        process_group: the ranks; None takes all
        no_dist: whether this process loads for itself

    Example:
        >>> from tensorpy.distributed import checkpoint
        >>> found = checkpoint.save({"x": tp.ones(2), "step": 3}, checkpoint_id="checkpoint", no_dist=True)
        >>> state = {"x": tp.zeros(2), "step": 0}
        >>> checkpoint.load(state, checkpoint_id="checkpoint", no_dist=True)
        >>> state
        {'x': tensor([1., 1.]), 'step': 3}
    """
    ranks, reader = Ranks(process_group, not _alone(no_dist, "load")), _storage(storage_reader, checkpoint_id)
    keys = sorted(state_dict)
    states = {key: each.state_dict() if isinstance(each := state_dict[key], Stateful) else each for key in keys}
    _load(states, reader, planner, ranks)
    for key in keys:
        each = state_dict[key]
        if isinstance(each, Stateful):
            each.load_state_dict(states[key])
        else:
            state_dict[key] = states[key]


def load_state_dict(
    state_dict: dict[str, Any],
    storage_reader: StorageReader,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: LoadPlanner | None = None,
) -> None:
    """`load` under an older name, for state dictionaries alone.

    Arguments:
        state_dict: what is filled
        storage_reader: the storage
        process_group: the ranks; None takes all
        coordinator_rank: the rank that makes the plans fit
        no_dist: whether this process loads for itself
        planner: other plans

    Example:
        >>> from tensorpy.distributed import checkpoint
        >>> _ = checkpoint.save({"x": tp.ones(2)}, checkpoint_id="saved")
        >>> state = {"x": tp.zeros(2)}
        >>> checkpoint.load_state_dict(state, checkpoint.FileSystemReader("saved"))
        >>> state
        {'x': tensor([1., 1.])}
    """
    warnings.warn(
        "`load_state_dict` is deprecated and will be removed in future versions. Please use `load` instead.",
        FutureWarning,
        stacklevel=2,
    )
    storage_reader.reset()
    _load(state_dict, storage_reader, planner, Ranks(process_group, not no_dist, coordinator_rank))


def _load_state_dict_from_keys(
    keys: set[str] | str | None = None,
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_reader: StorageReader | None = None,
    process_group: Any = None,
) -> dict[str, Any]:
    """All that a checkpoint has, or what lies under some keys, in a new dictionary."""
    ranks, made = Ranks(process_group, not _alone(False, "load")), {}  # type: ignore[var-annotated]
    wanted = {keys} if isinstance(keys, str) else keys
    _load(made, _storage(storage_reader, checkpoint_id), _EmptyStateDictLoadPlanner(wanted), ranks)
    return made
