"""Backends that count and keep what they are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorpy._compile import lookup_backend


def _ops(graph: Any) -> int:
    return sum(node.op.startswith("call_") for node in graph.graph.nodes)


class CompileCounter:
    """Runs graphs as they are; counts them and their operators.

    Example:
        >>> counter = tp._dynamo.testing.CompileCounter()
        >>> _ = tp.compile(lambda x: (x * 2).sin(), backend=counter)(tp.ones(2))
        >>> counter.frame_count, counter.op_count
        (1, 2)
    """

    def __init__(self) -> None:
        self.__name__ = type(self).__name__
        self.clear()

    def clear(self) -> None:
        self.frame_count = self.op_count = 0
        self.graphs: list[Any] = []

    def __call__(self, gm: Any, example_inputs: list[Any]) -> Callable[..., Any]:
        self.frame_count += 1
        self.op_count += _ops(gm)
        self.graphs.append(gm)
        return gm.forward


class EagerAndRecordGraphs(CompileCounter):
    """The same, for its graphs."""


class CompileCounterWithBackend(CompileCounter):
    """The same, with another backend behind it.

    Arguments:
        backend: a function, or a name; graphs run as they are where it is one of tensorpy's own
    """

    def __init__(self, backend: Any) -> None:
        super().__init__()
        self.backend = backend

    def __call__(self, gm: Any, example_inputs: list[Any]) -> Callable[..., Any]:
        forward, backend = super().__call__(gm, example_inputs), lookup_backend(self.backend)
        if isinstance(backend, str):
            return forward
        made: Callable[..., Any] = backend(gm, example_inputs)
        return made


__all__ = ["CompileCounter", "CompileCounterWithBackend", "EagerAndRecordGraphs"]
