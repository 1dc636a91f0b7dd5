"""What is said of all pipes behind a pipe: whether they shuffle, by which seeds, which share they read."""

from __future__ import annotations

import warnings
from inspect import signature
from typing import Any

from tensorpy import _C, distributed
from tensorpy._C import Generator
from tensorpy.utils.data.datapipes.datapipe import IterDataPipe
from tensorpy.utils.data.datapipes.iter.sharding import SHARDING_PRIORITIES
from tensorpy.utils.data.graph import traverse_dps
from tensorpy.utils.data.sampler import drawn_seed

__all__ = ["apply_random_seed", "apply_sharding", "apply_shuffle_settings", "get_all_graph_pipes"]


def get_all_graph_pipes(graph: dict[int, Any]) -> list[Any]:
    """The pipes of a graph of `traverse_dps`, each once.

    Example:
        >>> from tensorpy.utils.data.datapipes.iter import IterableWrapper
        >>> len(tp.utils.data.graph_settings.get_all_graph_pipes(traverse_dps(IterableWrapper([1]).batch(2))))
        2
    """
    found: dict[int, Any] = {}
    for number, (pipe, beneath) in graph.items():
        found.setdefault(number, pipe)
        for other in get_all_graph_pipes(beneath):
            found.setdefault(id(other), other)
    return list(found.values())


def _all_pipes(pipe: Any) -> list[Any]:
    """A pipe and those behind it, each once."""
    return get_all_graph_pipes(traverse_dps(pipe))


def apply_shuffle_settings(datapipe: Any, shuffle: bool | None = None) -> Any:
    """Switches shuffling of all pipes that have `set_shuffle` and `set_seed`, and gives the pipe.

    Arguments:
        datapipe: the last pipe
        shuffle: whether they shuffle; None leaves them as they are. True adds a Shuffler where there is none

    Example:
        >>> from tensorpy.utils.data.datapipes.iter import IterableWrapper
        >>> list(tp.utils.data.graph_settings.apply_shuffle_settings(IterableWrapper(range(3)).shuffle(), False))
        [0, 1, 2]
    """
    if shuffle is None:
        return datapipe
    shufflers = [p for p in _all_pipes(datapipe) if hasattr(p, "set_shuffle") and hasattr(p, "set_seed")]
    if shuffle and not shufflers:
        warnings.warn(
            "`shuffle=True` was set, but the datapipe does not contain a `Shuffler`: one is added at the end, with a "
            "buffer of its default size.",
            stacklevel=3,
        )
        datapipe = datapipe.shuffle()
        shufflers = [datapipe]
    for pipe in shufflers:
        pipe.set_shuffle(shuffle)
    return datapipe


def apply_random_seed(datapipe: Any, rng: Generator) -> Any:
    """Gives every pipe that has `set_seed` a seed from the generator, and gives the pipe.

    Arguments:
        datapipe: the last pipe
        rng: where the seeds come from

    Example:
        >>> from tensorpy.utils.data.datapipes.iter import IterableWrapper
        >>> pipe = IterableWrapper(range(9)).shuffle()
        >>> one, two = (list(tp.utils.data.graph_settings.apply_random_seed(pipe, tp.Generator())) for _ in range(2))
        >>> one == two
        True
    """
    for pipe in _all_pipes(datapipe):
        if hasattr(pipe, "set_seed"):
            pipe.set_seed(drawn_seed(rng))
    return datapipe


def apply_sharding(
    datapipe: Any, num_of_instances: int, instance_id: int, sharding_group: Any = SHARDING_PRIORITIES.DEFAULT
) -> Any:
    """Gives every pipe that has `apply_sharding` its share, and gives the pipe.

    Arguments:
        datapipe: the last pipe
        num_of_instances: how many shares there are
        instance_id: which of them
        sharding_group: whose shares these are

    Raises: RuntimeError where a pipe and one that it reads both have shares.

    Example:
        >>> from tensorpy.utils.data.datapipes.iter import IterableWrapper
        >>> list(tp.utils.data.graph_settings.apply_sharding(IterableWrapper(range(5)).sharding_filter(), 2, 1))
        [1, 3]
    """
    _share(traverse_dps(datapipe), None, (num_of_instances, instance_id), sharding_group)
    return datapipe


def _share(graph: dict[int, Any], shared: Any, share: tuple[int, int], group: Any) -> None:
    """Gives the pipes of a graph their share, where none above them, `shared`, has been given it."""
    for pipe, beneath in graph.values():
        takes = getattr(pipe, "apply_sharding", None)
        if takes is not None and shared is not None:
            raise RuntimeError(
                "Sharding twice on a single pipeline is likely unintended and will cause data loss. Sharding already "
                f"applied to {shared} while trying to apply to {pipe}"
            )
        if takes is not None:
            takes(*share, **({"sharding_group": group} if len(signature(takes).parameters) > 2 else {}))
        _share(beneath, shared if takes is None else pipe, share, group)


def share_of_process() -> tuple[int, int]:
    """How many processes a job has, and which of them this is: (1, 0) without one."""
    joined = distributed.is_available() and distributed.is_initialized()
    return (distributed.get_world_size(), distributed.get_rank()) if joined else (1, 0)


def drawn_for_pipes(dataset: Any, generator: Generator | None) -> int | None:
    """What an epoch's pipes draw their seeds by, drawn and applied here; None without pipes. All processes of a job get
    what the first one draws: their shares are of one order.
    """
    if not isinstance(dataset, IterDataPipe):
        return None
    seed = drawn_seed(generator)
    if share_of_process()[0] > 1:
        said = _C.tensor(seed)
        distributed.broadcast(said, 0)
        seed = int(said)
    reseed(dataset, seed)
    return seed


def reseed(dataset: Any, seed: int | None) -> None:
    """Applies what `drawn_for_pipes` drew."""
    if seed is not None:
        apply_random_seed(dataset, Generator().manual_seed(seed))
