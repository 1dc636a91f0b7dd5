"""A module that runs a graph, written as Python; saved and loaded by the names of its operators."""

from __future__ import annotations

import operator
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.fx._state import decode, encode
from tensorpy.fx.graph import Graph, attribute_of
from tensorpy.nn import Module, Parameter
from tensorpy.utils._pytree import tree_flatten, tree_unflatten


class GraphModule(Module):
    """Runs a graph. `root` is a module, or a dictionary of paths, that has what the graph's get_attr and call_module
    nodes name. After a change of the graph `recompile()` writes the code anew.
    """

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        self._class_name = class_name
        for node in graph.nodes:
            if node.op in ("get_attr", "call_module"):
                found = root[node.target] if isinstance(root, dict) else attribute_of(root, node.target)
                self._adopt(node.target, found)
        self.graph = graph

    def _adopt(self, path: str, value: Any) -> None:
        """Parameters and modules as such; other tensors as buffers."""
        *folders, name = path.split(".")
        owner: Module = self
        for folder in folders:
            if not hasattr(owner, folder):
                owner.add_module(folder, Module())
            owner = getattr(owner, folder)
        if isinstance(value, Tensor) and not isinstance(value, Parameter):
            owner.register_buffer(name, value)
        else:
            setattr(owner, name, value)

    @property
    def graph(self) -> Graph:
        return self._graph

    @graph.setter
    def graph(self, graph: Graph) -> None:
        self._graph = graph
        graph.owning_module = self
        self.recompile()

    # ---- running ----

    def recompile(self) -> str:
        """Writes the code of the graph as it is now, and gives it."""
        import tensorpy

        self._code = self._graph.python_code()
        names: dict[str, Any] = {"tensorpy": tensorpy, "operator": operator}
        exec(compile(self._code, f"<{self._class_name}>", "exec"), names)
        self._forward = names["forward"]
        self._switches = self._graph.switches_grad_mode()
        self._functions = {n.name: n.target for n in self._graph.nodes if n.op == "call_function"}
        return self._code

    @property
    def code(self) -> str:
        """The Python that runs."""
        return self._code

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if not self._switches:
            return self._forward(self, *args, **kwargs)
        before = _C.is_grad_enabled()
        try:
            return self._forward(self, *args, **kwargs)
        finally:
            _C._set_grad_enabled(before)

    def _function_of(self, name: str) -> Any:
        return self._functions[name]

    def _attribute(self, path: str) -> Any:
        return attribute_of(self, path)

    def _take(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The placeholders' values; TypeError or ValueError if the arguments are not what was recorded."""
        leaves, spec = tree_flatten((args, kwargs))
        graph = self._graph
        if spec != graph.in_spec:
            raise TypeError(f"the graph was recorded for arguments like {graph.in_spec}, not {spec}")
        for place, expected in graph.static_inputs.items():
            given = leaves[place]
            if given is not expected and (type(given) is not type(expected) or given != expected):
                raise ValueError(f"the graph was recorded with {expected!r}, which is a part of it, not with {given!r}")
        return [leaf for place, leaf in enumerate(leaves) if place not in graph.static_inputs]

    def _give(self, leaves: list[Any]) -> Any:
        assert self._graph.out_spec is not None
        return tree_unflatten(leaves, self._graph.out_spec)

    # ---- looking ----

    def print_readable(self, print_output: bool = True) -> str:
        """The code as a class."""
        text = f"class {self._class_name}(tensorpy.nn.Module):\n"
        text += "".join(f"    {line}\n" for line in self._code.rstrip("\n").split("\n"))
        if print_output:
            print(text)
        return text

    def __str__(self) -> str:
        return f"{super().__repr__()}\n\n{self._code}"

    def _repr_svg_(self) -> str:
        return self._graph._repr_svg_()

    # ---- copies and files ----

    def __deepcopy__(self, memo: Any) -> GraphModule:
        from copy import deepcopy

        root = {name: deepcopy(attribute_of(self, name), memo) for name in self._names()}
        return GraphModule(root, deepcopy(self._graph, memo), self._class_name)

    def _names(self) -> list[str]:
        return sorted({n.target for n in self._graph.nodes if n.op in ("get_attr", "call_module")})

    def __reduce_ex__(self, protocol: Any) -> Any:
        constants = {name: attribute_of(self, name) for name in self._names()}
        return rebuild, (encode(self._graph), constants, self._class_name)


def rebuild(state: Any, constants: dict[str, Any], class_name: str, trusted: bool = True) -> GraphModule:
    """From a file: every name in it is checked, as the graph becomes code. One that is not trusted calls operators,
    and nothing else."""
    if not isinstance(class_name, str) or not isinstance(constants, dict):
        raise TypeError("a saved graph is broken")
    if not all(isinstance(n, str) and all(p.isidentifier() for p in n.split(".")) for n in constants):
        raise TypeError("a saved graph names a constant that is no name")
    return GraphModule(constants, decode(state, trusted), class_name)
