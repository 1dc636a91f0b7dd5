"""Compilers of graphs that compile nothing: the graph runs as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorpy._functorch.aot_autograd import aot_function, aot_module, make_boxed_func
from tensorpy._functorch.partitioners import draw_graph, min_cut_rematerialization_partition
from tensorpy.fx.graph_module import GraphModule
from tensorpy.nn import Module

default_decompositions: dict[Any, Any] = {}  # operators are compiled as they are


def nop(fx_g: GraphModule, _: Any) -> Callable[..., Any]:
    """The graph, as it is.

    Example:
        >>> from tensorpy.fx.experimental.proxy_tensor import make_fx
        >>> tp._functorch.compilers.nop(make_fx(tp.sin)(tp.ones(1)), ())([tp.zeros(1)])
        tensor([0.])
    """
    return make_boxed_func(fx_g.forward)


ts_compile = simple_ts_compile = nop  # there is no TorchScript


def print_compile(fx_g: GraphModule, _: Any) -> Callable[..., Any]:
    """The graph, as it is, whose code is printed."""
    print(fx_g.code)
    return make_boxed_func(fx_g.forward)


def debug_compile(fx_g: GraphModule, inps: Any) -> Callable[..., Any]:
    """The graph, as it is, whose code and inputs' shapes are printed."""
    print(fx_g.code, [tuple(getattr(i, "shape", ())) for i in inps])
    return make_boxed_func(fx_g.forward)


def draw_graph_compile(name: str) -> Callable[..., Any]:
    """A compiler that draws the graph into a file and runs it as it is."""

    def compiler(fx_g: GraphModule, _: Any) -> Callable[..., Any]:
        draw_graph(fx_g, f"{name}.svg", name)
        return make_boxed_func(fx_g.forward)

    return compiler


def memory_efficient_fusion(fn: Any, **kwargs: Any) -> Any:
    """A function or module, compiled ahead."""
    words: dict[str, Any] = {"partition_fn": min_cut_rematerialization_partition, **kwargs}
    return aot_module(fn, nop, **words) if isinstance(fn, Module) else aot_function(fn, nop, **words)


def nnc_jit(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function, compiled ahead."""
    return aot_function(f, nop)


__all__ = ["memory_efficient_fusion", "nop", "print_compile", "ts_compile"]
