"""What a graph computes of parameters and constants alone is computed once."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

from tensorpy._C import Tensor
from tensorpy.fx._symbolic_trace import symbolic_trace
from tensorpy.fx.graph import Graph
from tensorpy.fx.graph_module import GraphModule
from tensorpy.fx.node import Node
from tensorpy.nn import Module, Parameter, ParameterList

__all__ = ["FoldedGraphModule", "get_unique_attr_name_in_module", "split_const_subgraphs"]

_NAME = "_FX_CONST_FOLDED_ATTRS"


class FoldedGraphModule(GraphModule):
    """A graph module that has the constant part in a module of its own, which runs before the first call."""

    const_subgraph_module: Any
    has_folding_been_run: bool

    def __init__(
        self,
        root: Module,
        graph: Graph,
        const_subgraph: Graph | None = None,
        fx_const_folded_attrs_name: str | None = None,
        device_for_folded_attrs: str = "cuda",
    ) -> None:
        super().__init__(root, graph)
        self.const_subgraph_module = None if const_subgraph is None else GraphModule(root, const_subgraph)
        self.has_folding_been_run = False
        self.fx_const_folded_attrs_name = fx_const_folded_attrs_name
        self.device_for_folded_attrs = device_for_folded_attrs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args, **kwargs)

    def run_folding(self) -> None:
        """Computes the constant part, once."""
        if self.const_subgraph_module is None or self.fx_const_folded_attrs_name is None:
            return
        if self.has_folding_been_run:
            raise AssertionError("the constant part has been computed already")
        self.has_folding_been_run = True
        found = self.const_subgraph_module()

        def kept(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            return value if isinstance(value, Parameter) else Parameter(value.detach(), value.requires_grad)

        made: Any = ParameterList(map(kept, found)) if isinstance(found, tuple) else kept(found)
        self._buffers.pop(self.fx_const_folded_attrs_name, None)
        self._parameters.pop(self.fx_const_folded_attrs_name, None)
        setattr(self, self.fx_const_folded_attrs_name, made)


def get_unique_attr_name_in_module(mod_traced: Any, name: str) -> str:
    """The name as an identifier that the module does not have."""
    name = re.sub(r"[^0-9a-zA-Z_]+", "_", name)
    name = f"_{name}" if name[0].isdigit() else name
    while hasattr(mod_traced, name):
        match = re.fullmatch(r"(.*)_(\d+)", name)
        name = f"{name}_1" if match is None else f"{match[1]}_{int(match[2]) + 1}"
    return name


def split_const_subgraphs(
    module: Module,
    skip_folding_node_fn: Callable[[Node], bool] | None = None,
    device_for_folded_attrs: str = "cpu",
) -> FoldedGraphModule:
    """The module with its constant part apart. Nodes for which `skip_folding_node_fn` is true are not of that part, nor
    is what follows from them."""
    traced = module if isinstance(module, GraphModule) else symbolic_trace(module)
    constant: dict[Node, None] = {}
    for node in traced.graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        if node.op != "get_attr" and not (node.all_input_nodes and constant.keys() >= set(node.all_input_nodes)):
            continue
        if (skip_folding_node_fn is not None and skip_folding_node_fn(node)) or _is_impure(node):
            continue
        constant[node] = None
    folded = [node for node in constant if node.op != "get_attr" and any(user not in constant for user in node.users)]
    if not folded:
        return FoldedGraphModule(traced, traced.graph)
    part = Graph()
    values: dict[Node, Node] = {}
    for node in constant:
        values[node] = part.node_copy(node, values.__getitem__)
    results = tuple(values[node] for node in folded)
    part.output(results[0] if len(results) == 1 else results)
    part.eliminate_dead_code()
    name = get_unique_attr_name_in_module(traced, _NAME)
    setattr(traced, name, ParameterList() if len(folded) > 1 else Parameter())
    _read_instead(traced, folded, name)
    return FoldedGraphModule(traced, traced.graph, part, name, device_for_folded_attrs)


def _is_impure(node: Node) -> bool:
    """Modules with graphs may hold what does more than give a result."""
    if node.is_impure():
        return True
    owner = node.graph.owning_module
    called = owner.get_submodule(node.target) if node.op == "call_module" and owner is not None else None
    return isinstance(called, GraphModule) and any(
        n.is_impure() for n in called.graph.nodes if n.op not in ("placeholder", "output")
    )


def _read_instead(traced: GraphModule, folded: list[Node], name: str) -> None:
    first = folded[0]
    with traced.graph.inserting_before(first):
        read = traced.graph.get_attr(name)
    for i, node in enumerate(folded):
        new = read
        if len(folded) > 1:
            with traced.graph.inserting_before(node):
                new = traced.graph.call_function(operator.getitem, (read, i))
        new.meta = node.meta.copy()
        node.replace_all_uses_with(new)
    traced.graph.eliminate_dead_code()
    traced.graph.lint()
    traced.recompile()
