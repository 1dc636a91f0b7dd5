"""Backends that find out where a difference comes from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorpy._dynamo import ExplainOutput, testing

from .registry import lookup_backend

eager = eager_noexcept = lookup_backend("eager")
aot_eager = lookup_backend("aot_eager")


class ExplainWithBackend:
    """A backend that keeps its graphs, for output() to tell about them.

    Arguments:
        backend: what compiles them: a function, or a name

    Example:
        >>> from tensorpy._dynamo.backends.debugging import ExplainWithBackend
        >>> backend = ExplainWithBackend("eager")
        >>> _ = tp.compile(lambda x: x * 2, backend=backend)(tp.ones(1))
        >>> backend.output().graph_count
        1
    """

    def __init__(self, backend: Any) -> None:
        self._counter = testing.CompileCounterWithBackend(backend)

    def __call__(self, gm: Any, example_inputs: Any) -> Callable[..., Any]:
        return self._counter(gm, example_inputs)

    def output(self) -> ExplainOutput:
        """What the graphs are so far."""
        graphs = self._counter.graphs
        ops = [[n.target for n in g.graph.nodes if n.op.startswith("call_")] for g in graphs]
        return ExplainOutput(list(graphs), [], ops)


__all__ = ["ExplainWithBackend", "aot_eager", "eager", "eager_noexcept"]
