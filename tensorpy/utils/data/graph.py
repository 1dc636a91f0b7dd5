"""What a pipe is made of, as a graph: {id(pipe): (pipe, the graph of those that it reads)}."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

from tensorpy.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = ["traverse", "traverse_dps"]


def is_pipe(dataset: Any) -> bool:
    """Whether a dataset is a pipe."""
    return isinstance(dataset, (IterDataPipe, MapDataPipe))


def _sources(value: Any) -> Iterator[Any]:
    """The pipes that a pipe's attribute holds."""
    if is_pipe(value):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _sources(one)
    elif isinstance(value, dict):
        yield from _sources(list(value.values()))


def _graph(pipe: Any, above: frozenset[int]) -> dict[int, Any]:
    """A pipe's graph without the pipes `above` it, which it may refer to."""
    if id(pipe) in above:
        return {}
    beneath: dict[int, Any] = {}
    for source in _sources(vars(pipe)):
        beneath |= _graph(source, above | {id(pipe)})
    return {id(pipe): (pipe, beneath)}


def traverse_dps(datapipe: Any) -> dict[int, Any]:
    """The graph of a pipe, by its attributes and the lists, tuples and dicts in them.

    Arguments:
        datapipe: the last pipe

    Returns: {id(pipe): (pipe, graph)}, where the graph holds the pipes that it reads.

    Raises: RuntimeError for what is no pipe.

    Example:
        >>> from tensorpy.utils.data.datapipes.iter import IterableWrapper
        >>> source = IterableWrapper([1, 2])
        >>> batches = source.batch(2)
        >>> tp.utils.data.graph.traverse_dps(batches) == {id(batches): (batches, {id(source): (source, {})})}
        True
    """
    if not is_pipe(datapipe):
        raise RuntimeError(f"Expected `IterDataPipe` or `MapDataPipe`, but {type(datapipe)} is found")
    return _graph(datapipe, frozenset())


def traverse(datapipe: Any, only_datapipe: bool | None = None) -> dict[int, Any]:
    """Deprecated: `traverse_dps`, which it is whatever only_datapipe says.

    Example:
        >>> len(tp.utils.data.graph.traverse(tp.utils.data.datapipes.iter.IterableWrapper([1]), only_datapipe=True))
        1
    """
    if not only_datapipe:
        warnings.warn("`traverse` looks at pipes only: `traverse_dps` says so", FutureWarning, stacklevel=2)
    return traverse_dps(datapipe)
