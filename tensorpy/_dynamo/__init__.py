"""The names of torch's compiler below torch.compiler: backends of the program's (graphs.py), and what does nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tensorpy._compile import compile, list_backends, register_backend
from tensorpy.compiler import is_compiling, reset
from tensorpy.fx._sources import NotedSources
from tensorpy.fx.experimental.proxy_tensor import make_fx
from tensorpy.fx.experimental.recorder import DataDependentError
from tensorpy.fx.traceback import preserve_node_meta
from tensorpy.nn.modules.compiled import OptimizedModule

from . import backends, compiled_autograd, config, eval_frame, exc, graphs, testing, utils
from .backends.registry import lookup_backend
from .decorators import (
    allow_in_graph,
    assume_constant_result,
    disable,
    disable_nested_graph_breaks,
    error_on_graph_break,
    graph_break,
    is_dynamo_disable_recursive,
    mark_dynamic,
    mark_static,
    nonstrict_trace,
    override_cudagraphs,
    patch_dynamo_config,
    run,
    set_recursion_limit,
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
from .graphs import GraphCompileReason


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
    break_reasons: list[GraphCompileReason] = field(default_factory=list)
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
        for i, why in enumerate(self.break_reasons, 1):
            lines += [f"Break Reason {i}:", f"  Reason: {why.reason}", "  User Stack:"]
            lines += [f"    {frame}" for frame in why.user_stack]
        for i, ops in enumerate(self.ops_per_graph, 1):
            lines += [f"Ops {i}:", *(f"    {op}" for op in ops)]
        return "\n".join(lines)


class ExportResult(NamedTuple):
    """What export() gives: a GraphModule, and what would be looked at before it is called: nothing."""

    graph_module: Any
    guards: list[Any]


def export(f: Callable[..., Any], *, aten_graph: bool = False, tracing_mode: str = "real", **options: Any) -> Any:
    """`export(f)(*args)` gives a graph of the operators that a call of f makes, called as f.

    tensorpy.export has names of inputs, sizes that may vary, and files.

    Arguments:
        f: a function or module
        aten_graph: the graph is one of operators in any case
        tracing_mode: 'real', 'fake' or 'symbolic', as make_fx() takes it
        options: PyTorch's, which change nothing

    Returns: a function that gives an ExportResult.

    Raises: UserError where f asks for values of its arguments.

    Example:
        >>> graph, _ = tp._dynamo.export(lambda x: (x.sin(), x + 1))(tp.zeros(2))
        >>> graph(tp.ones(1))[1]
        tensor([2.])
    """

    def exported(*args: Any, **kwargs: Any) -> ExportResult:
        try:
            with preserve_node_meta(), NotedSources(f, True):
                module = make_fx(f, tracing_mode=tracing_mode)(*args, **kwargs)
        except DataDependentError as error:
            raise exc.UserError(exc.UserErrorType.DYNAMIC_CONTROL_FLOW, str(error)) from error
        return ExportResult(module, [])

    return exported


def explain(f: Callable[..., Any], *extra_args: Any, **extra_kwargs: Any) -> Any:
    """`explain(f)(*args)` calls f, and says whether a backend would be given a graph of the call, and which.

    compiler.explain says what compile() makes of a function without a backend of the program's.

    Arguments:
        f: a function or module

    Example:
        >>> print(tp._dynamo.explain(lambda x: x * 2 if x.sum() > 0 else x)(tp.ones(2)))  # doctest: +ELLIPSIS
        Graph Count: 0
        Graph Break Count: 1
        Op Count: 0
        Break Reason 1:
          Reason: item() asks for the values of a tensor
          User Stack:
            <FrameSummary file ..., line 1 in <lambda>>
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
__all__ += ["compiled_autograd", "disable_nested_graph_breaks", "export", "is_dynamo_disable_recursive"]
__all__ += ["override_cudagraphs", "set_recursion_limit"]
__all__ += ["explain", "graph_break", "is_compiling", "list_backends", "lookup_backend", "mark_dynamic", "mark_static"]
__all__ += ["optimize", "optimize_assert", "register_backend", "reset", "run", "set_stance", "substitute_in_graph"]
__all__ += ["backends", "testing", "utils"]
