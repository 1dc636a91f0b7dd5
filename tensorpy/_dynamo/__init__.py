"""The names of torch's compiler below torch.compiler: backends of the program's (graphs.py), and what does nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tensorpy._compile import compile, list_backends, register_backend
from tensorpy._package.absent import absent
from tensorpy.compiler import is_compiling, reset
from tensorpy.nn.modules.compiled import OptimizedModule

from . import backends, config, eval_frame, exc, graphs, testing, utils
from .backends.registry import lookup_backend
from .decorators import (
    allow_in_graph,
    assume_constant_result,
    disable,
    error_on_graph_break,
    graph_break,
    mark_dynamic,
    mark_static,
    nonstrict_trace,
    patch_dynamo_config,
    run,
    set_stance,
    skip,
    substitute_in_graph,
)
from .decorators import disallow_in_graph as disallow_in_graph
from .decorators import dont_skip_tracing as dont_skip_tracing
from .decorators import forbid_in_graph as forbid_in_graph
from .decorators import mark_static_address as mark_static_address
from .decorators import mark_unbacked as mark_unbacked
from .decorators import maybe_mark_dynamic as maybe_mark_dynamic
from .decorators import skip_frame as skip_frame

export = absent(__name__, "export")


def optimize(backend: Any = "inductor", *, nopython: bool = False, disable: bool = False, **words: Any) -> Any:
    """A decorator that compiles a function or module: compile() with `nopython` for `fullgraph`.

    Arguments:
        backend: as compile() takes it
        nopython: whether a call that is not one graph is an error
        disable: whether the function is given back as it is

    Example:
        >>> tp._dynamo.optimize("eager")(len)([1, 2])
        2
    """
    return compile(backend=backend, fullgraph=nopython, disable=disable)


def optimize_assert(backend: Any, **words: Any) -> Any:
    """optimize() with nopython=True."""
    return optimize(backend, nopython=True)


def is_dynamo_supported() -> bool:
    """Whether functions can be compiled: yes."""
    return True


is_inductor_supported = is_dynamo_supported
reset_code_caches = reset


@dataclass
class ExplainOutput:
    """What became of a call: the graphs that a backend would be given, or why there is none."""

    graphs: list[Any] = field(default_factory=list)
    break_reasons: list[str] = field(default_factory=list)
    ops_per_graph: list[list[Any]] = field(default_factory=list)
    out_guards: list[Any] = field(default_factory=list)  # what is looked at has no objects of its own
    compile_times: str = ""

    @property
    def graph_count(self) -> int:
        return len(self.graphs)

    @property
    def graph_break_count(self) -> int:
        return len(self.break_reasons)

    @property
    def op_count(self) -> int:
        return sum(map(len, self.ops_per_graph))

    def __str__(self) -> str:
        lines = [f"Graph Count: {self.graph_count}", f"Graph Break Count: {self.graph_break_count}"]
        lines.append(f"Op Count: {self.op_count}")
        lines += [f"Break Reason {i}: {reason}" for i, reason in enumerate(self.break_reasons, 1)]
        for i, ops in enumerate(self.ops_per_graph, 1):
            lines += [f"Ops {i}:", *(f"    {op}" for op in ops)]
        return "\n".join(lines)


def explain(f: Callable[..., Any], *extra_args: Any, **extra_kwargs: Any) -> Any:
    """`explain(f)(*args)` calls f, and says whether a backend would be given a graph of the call, and which.

    compiler.explain says what compile() makes of a function without a backend of the program's.

    Arguments:
        f: a function or module

    Example:
        >>> print(tp._dynamo.explain(lambda x: x * 2 if x.sum() > 0 else x)(tp.ones(2)))
        Graph Count: 0
        Graph Break Count: 1
        Op Count: 0
        Break Reason 1: item() asks for the values of a tensor
    """

    def explained(*args: Any, **kwargs: Any) -> ExplainOutput:
        counter = testing.EagerAndRecordGraphs()
        function = graphs.GraphFunction(f, counter, f, False, {})
        function(*args, **kwargs)
        reasons = [why for entry in function.entries for why in ([entry.why] if entry.why else entry.breaks)]
        ops = [[n.target for n in g.graph.nodes if n.op.startswith("call_")] for g in counter.graphs]
        return ExplainOutput(counter.graphs, reasons, ops)

    return explained(*extra_args, **extra_kwargs) if extra_args or extra_kwargs else explained


__all__ = ["OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable"]
__all__ += ["error_on_graph_break", "eval_frame", "exc", "nonstrict_trace", "patch_dynamo_config", "skip"]
__all__ += ["explain", "graph_break", "is_compiling", "list_backends", "lookup_backend", "mark_dynamic", "mark_static"]
__all__ += ["optimize", "optimize_assert", "register_backend", "reset", "run", "set_stance", "substitute_in_graph"]
__all__ += ["backends", "testing", "utils"]
