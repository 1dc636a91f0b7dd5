"""The state of an optimizer of a model that is cut, read without one that has steps behind it."""

from __future__ import annotations

from typing import Any

import tensorpy as tp
from tensorpy.distributed.checkpoint import nested
from tensorpy.distributed.checkpoint.metadata import TensorStorageMetadata
from tensorpy.distributed.checkpoint.planner import LoadPlanner
from tensorpy.distributed.checkpoint.state_dict_loader import load
from tensorpy.distributed.checkpoint.storage import StorageReader

__all__ = ["load_sharded_optimizer_state_dict"]


def load_sharded_optimizer_state_dict(
    model_state_dict: dict[str, Any],
    optimizer_key: str,
    storage_reader: StorageReader,
    planner: LoadPlanner | None = None,
) -> dict[str, Any]:
    """Reads an optimizer's state, each tensor cut as the parameter that it belongs to. All ranks call it.

    Arguments:
        model_state_dict: parameters by name; those that are DTensors say how states are cut
        optimizer_key: where the state lies in the checkpoint
        storage_reader: the storage
        planner: other plans

    Returns: {optimizer_key: the state}, as FullyShardedDataParallel.optim_state_dict gives it.

    Raises: KeyError where the checkpoint has nothing there.

    Example:
        >>> from tensorpy.distributed import checkpoint
        >>> saved = {"optimizer": {"state": {"w": {"exp_avg": tp.ones(2)}}}}
        >>> _ = checkpoint.save(saved, checkpoint_id="checkpoint", no_dist=True)
        >>> reader = checkpoint.FileSystemReader("checkpoint")
        >>> checkpoint.load_sharded_optimizer_state_dict({"w": tp.zeros(2)}, "optimizer", reader)
        {'optimizer': {'state': {'w': {'exp_avg': tensor([1., 1.])}}}}
    """
    metadata = storage_reader.read_metadata()
    ways: dict[str, nested.Way] = metadata.planner_data or {}
    found: dict[str, Any] = {}
    for key, entry in metadata.state_dict_metadata.items():
        way = ways.get(key, (key,))
        if way[0] != optimizer_key:
            continue
        value = None
        if isinstance(entry, TensorStorageMetadata):
            alike = [model_state_dict[step] for step in way[1:] if step in model_state_dict]
            if alike and alike[0].shape == entry.size:
                value = tp.zeros_like(alike[0].detach(), dtype=entry.properties.dtype)
            else:
                value = tp.zeros(entry.size, dtype=entry.properties.dtype)
        nested.put(found, way, value)
    if not found:
        raise KeyError(f"the checkpoint has nothing under {optimizer_key!r}")
    load(found, storage_reader=storage_reader, planner=planner)
    return found
