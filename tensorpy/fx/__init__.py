"""Programs as graphs: what a function calls, recorded, looked at, changed, run again.

    from tensorpy.fx.experimental.proxy_tensor import make_fx

    gm = make_fx(f)(x)      calls f and records the operators below it
    print(gm.graph)         or gm.code, gm.graph.print_tabular(); a notebook draws it
    gm(y)                   the same operators with another input, differentiable

Graphs come from calls (the dispatch key Tracer, csrc/python/tracer.c) or are built by hand; Python is not traced.
"""

from __future__ import annotations

from typing import Any

from tensorpy._absent import absent, absent_class
from tensorpy.fx.graph import Graph
from tensorpy.fx.graph_module import GraphModule
from tensorpy.fx.interpreter import Interpreter
from tensorpy.fx.node import Node, map_arg

__all__ = ["Graph", "GraphModule", "Interpreter", "Node", "map_arg", "wrap"]

Proxy = absent_class(__name__, "Proxy")
Tracer = absent_class(__name__, "Tracer")
Transformer = absent_class(__name__, "Transformer")
replace_pattern = absent(__name__, "replace_pattern")
symbolic_trace = absent(__name__, "symbolic_trace")


def wrap(fn_or_name: Any) -> Any:
    """The function, or its name, as it came: there is no tracer to keep out of it."""
    return fn_or_name


def __getattr__(name: str) -> Any:
    """The module of the tracer's names is imported at first use."""
    if name in ("proxy", "experimental"):
        import importlib

        return importlib.import_module(f"tensorpy.fx.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
