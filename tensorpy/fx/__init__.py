"""Programs as graphs: what a function calls, recorded, looked at, changed, run again.

    from tensorpy.fx.experimental.proxy_tensor import make_fx

    gm = make_fx(f)(x)         calls f and records the operators below it
    gm = symbolic_trace(m)     runs m's Python on proxies and records functions, methods and modules as it calls them
    print(gm.graph)            or gm.code, gm.graph.print_tabular(); a notebook draws it
    gm(y)                      the same with another input, differentiable

The first comes from calls (the dispatch key Tracer, csrc/python/tracer.c), the second from `__torch_function__`
(proxy.py); graphs are built by hand as well. There is one kind of graph for all of them.
"""

from __future__ import annotations

from tensorpy._package import parts as _parts
from tensorpy.fx import immutable_collections as immutable_collections
from tensorpy.fx._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap
from tensorpy.fx.graph import CodeGen, Graph
from tensorpy.fx.graph_module import GraphModule
from tensorpy.fx.interpreter import Interpreter, Transformer
from tensorpy.fx.node import Node, has_side_effect, map_arg
from tensorpy.fx.proxy import Proxy
from tensorpy.fx.subgraph_rewriter import replace_pattern

__all__ = [
    "PH", "CodeGen", "Graph", "GraphModule", "Interpreter", "Node", "Proxy", "ProxyableClassMeta", "Tracer",
    "Transformer", "has_side_effect", "map_arg", "replace_pattern", "symbolic_trace", "wrap",
]  # fmt: skip


TYPE_CHECKING = False
if TYPE_CHECKING:  # what __getattr__ gives at first use
    from tensorpy.fx import experimental as experimental
    from tensorpy.fx import operator_schemas as operator_schemas
    from tensorpy.fx import passes as passes
else:
    __getattr__ = _parts(__name__, ("experimental", "operator_schemas", "passes"))
