"""`save` and `async_save`: all ranks write one checkpoint."""

from __future__ import annotations

import inspect
import os
import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from enum import Enum
from typing import Any

from tensorpy import distributed as dist
from tensorpy.distributed import groups
from tensorpy.distributed.checkpoint.agreement import Ranks
from tensorpy.distributed.checkpoint.default_planner import DefaultSavePlanner
from tensorpy.distributed.checkpoint.filesystem import FileSystemWriter
from tensorpy.distributed.checkpoint.metadata import STATE_DICT_TYPE, Metadata
from tensorpy.distributed.checkpoint.planner import SavePlan, SavePlanner
from tensorpy.distributed.checkpoint.staging import AsyncStager, BlockingAsyncStager
from tensorpy.distributed.checkpoint.stateful import Stateful
from tensorpy.distributed.checkpoint.storage import StorageWriter, WriteResult


class AsyncCheckpointerType(Enum):
    """Who writes for async_save: a thread. Another process is refused."""

    THREAD = "thread"
    PROCESS = "process"


def _alone(no_dist: bool, what: str) -> bool:
    """Whether one process saves or loads for itself."""
    if no_dist or not dist.is_initialized():
        if not no_dist:
            warnings.warn(
                "torch.distributed is disabled, unavailable or uninitialized, assuming the intent is to "
                f"{what} in a single process.",
                stacklevel=3,
            )
        return True
    return False


def _storage(writer: StorageWriter | None, checkpoint_id: str | os.PathLike[str] | None) -> StorageWriter:
    if writer is not None:
        if checkpoint_id is not None:
            writer.reset(checkpoint_id)
        return writer
    if not checkpoint_id:
        raise RuntimeError("`checkpoint_id` must be specified if storage_reader/storage_writer is None.")
    if not FileSystemWriter.validate_checkpoint_id(checkpoint_id):
        raise RuntimeError(f"{str(checkpoint_id)!r} is no folder that can be made: give a storage_writer for it")
    return FileSystemWriter(checkpoint_id)


def _states(state_dict: STATE_DICT_TYPE) -> STATE_DICT_TYPE:
    return {key: each.state_dict() if isinstance(each, Stateful) else each for key, each in state_dict.items()}


def takes_keywords(method: Any) -> bool:
    """Whether a storage's method hears of more than its first arguments."""
    return "kwargs" in inspect.signature(method).parameters


class _Save:
    """One checkpoint: the steps of a rank."""

    def __init__(self, state_dict: STATE_DICT_TYPE, writer: StorageWriter, planner: SavePlanner, ranks: Ranks) -> None:
        self.state_dict, self.writer, self.planner, self.ranks = state_dict, writer, planner, ranks
        self.metadata: Metadata | None = None

    def plan(self, use_collectives: bool) -> SavePlan:
        leads = self.ranks.is_coordinator
        self.planner.set_up_planner(self.state_dict, self.writer.storage_meta(), leads)
        more = {"rank": self.ranks.rank, "use_collectives": use_collectives}
        keywords = more if takes_keywords(self.writer.set_up_storage_writer) else {}
        self.writer.set_up_storage_writer(leads, **keywords)
        return self.writer.prepare_local_plan(self.planner.create_local_plan())

    def fit(self, plans: list[SavePlan]) -> list[SavePlan]:
        made, self.metadata = self.planner.create_global_plan(plans)
        return self.writer.prepare_global_plan(made)

    def write(self, plan: SavePlan) -> list[WriteResult]:
        return self.writer.write_data(self.planner.finish_plan(plan), self.planner).wait()

    def finish(self, results: list[list[WriteResult]]) -> Metadata:
        if self.metadata is None:
            raise AssertionError("plans that nobody made are finished")
        self.writer.finish(self.metadata, results)
        return self.metadata


def _save(
    state_dict: STATE_DICT_TYPE,
    writer: StorageWriter,
    planner: SavePlanner | None,
    ranks: Ranks,
    use_collectives: bool = True,
) -> Metadata:
    job = _Save(state_dict, writer, planner or DefaultSavePlanner(), ranks)
    if use_collectives:
        plan = ranks.reduce_scatter("plan", lambda: job.plan(True), job.fit)
        return ranks.all_reduce("write", lambda: job.write(plan), job.finish)
    (plan,) = job.fit([job.plan(False)])
    return job.finish([job.write(plan)])


def save(
    state_dict: STATE_DICT_TYPE,
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: StorageWriter | None = None,
    planner: SavePlanner | None = None,
    process_group: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Metadata:
    """Writes one checkpoint of what all ranks have: what several have under a key is written once.

    Arguments:
        state_dict: tensors, plain values, dictionaries and lists of them, objects with a `state_dict`
        checkpoint_id: the folder
        storage_writer: another storage
        planner: other plans
        process_group: the ranks; None takes all
        no_dist: whether this process saves for itself
        use_collectives: whether ranks make one checkpoint; False: each one of its own, in the same folder

    Returns: a Metadata.

    Example:
        >>> from tensorpy.distributed import checkpoint
        >>> model = tp.nn.Linear(2, 2)
        >>> found = checkpoint.save({"model": model.state_dict(), "step": 3}, checkpoint_id="checkpoint", no_dist=True)
        >>> list(found.state_dict_metadata)
        ['model.weight', 'model.bias', 'step']
    """
    ranks = Ranks(process_group, not _alone(no_dist, "save"))
    return _save(_states(state_dict), _storage(storage_writer, checkpoint_id), planner, ranks, use_collectives)


def save_state_dict(
    state_dict: STATE_DICT_TYPE,
    storage_writer: StorageWriter,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: SavePlanner | None = None,
) -> Metadata:
    """`save` under an older name, for state dictionaries alone.

    Arguments:
        state_dict: what is saved
        storage_writer: the storage
        process_group: the ranks; None takes all
        coordinator_rank: the rank that makes the plans fit
        no_dist: whether this process saves for itself
        planner: other plans

    Returns: a Metadata.

    Example:
        >>> from tensorpy.distributed import checkpoint
        >>> metadata = checkpoint.save_state_dict({"x": tp.ones(2)}, checkpoint.FileSystemWriter("saved"))
        >>> sorted(metadata.state_dict_metadata)
        ['x']
    """
    warnings.warn(
        "`save_state_dict` is deprecated and will be removed in future versions. Please use `save` instead.",
        FutureWarning,
        stacklevel=2,
    )
    storage_writer.reset()
    return _save(state_dict, storage_writer, planner, Ranks(process_group, not no_dist, coordinator_rank))


# ---- while the program goes on ----

_thread: ThreadPoolExecutor | None = None  # one, so that checkpoints are written in the order of calls
_group: tuple[Any, Any] = None, None  # the world, and the group of its ranks in which only checkpoints are agreed on


def _group_of_its_own() -> Any:
    """All ranks once more: what the thread sends does not meet what the program sends meanwhile."""
    global _group
    world = groups.group.WORLD
    if _group[0] is not world:
        _group = world, dist.new_group() if dist.get_world_size() > 1 else world
    return _group[1]


def async_save(
    state_dict: STATE_DICT_TYPE,
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: StorageWriter | None = None,
    planner: SavePlanner | None = None,
    process_group: Any = None,
    async_checkpointer_type: AsyncCheckpointerType = AsyncCheckpointerType.THREAD,
    async_stager: AsyncStager | None = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Future[Any]:
    """The same as `save`, by a thread: all is copied before this returns, and written while the program goes on.

    All ranks call it. The future's result is what `save` returns.

    Arguments:
        state_dict: what is saved
        checkpoint_id: the folder
        storage_writer: another storage
        planner: other plans
        process_group: the ranks; a group in which nothing else is sent meanwhile. None takes all, in a group of its own
        async_checkpointer_type: a thread
        async_stager: makes the copy
        no_dist: whether this process saves for itself
        use_collectives: whether ranks make one checkpoint

    Returns: a Future.

    Raises: ValueError for another process in place of a thread.

    Example:
        >>> from tensorpy.distributed import checkpoint
        >>> future = checkpoint.async_save({"x": tp.ones(2)}, checkpoint_id="checkpoint", no_dist=True)
        >>> list(future.result().state_dict_metadata)
        ['x']
    """
    global _thread
    if async_checkpointer_type is not AsyncCheckpointerType.THREAD:
        raise ValueError("async_save writes in a thread: a process that it starts could not join the group")
    alone = _alone(no_dist, "save")
    group = None if alone else process_group or _group_of_its_own()
    ranks, writer = Ranks(group, not alone), _storage(storage_writer, checkpoint_id)
    stager = async_stager or (writer if isinstance(writer, AsyncStager) else BlockingAsyncStager())
    copied = stager.stage(_states(state_dict))
    if _thread is None:
        _thread = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
    future = _thread.submit(_save, copied, writer, planner, ranks, use_collectives)
    if stager.should_synchronize_after_execute:
        stager.synchronize_staging()
    return future
