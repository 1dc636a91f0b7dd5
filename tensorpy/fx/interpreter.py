"""Runs a graph node by node: subclasses look at what comes by, or do something else."""

from __future__ import annotations

from typing import Any

from tensorpy.fx.graph import Graph, attribute_of
from tensorpy.fx.node import Node, map_arg


class Interpreter:
    """`Interpreter(gm).run(*args)` gives what `gm(*args)` does. Overridden methods see each node's value on its way."""

    def __init__(self, module: Any, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        self.module = module
        self.graph = graph or module.graph
        self.garbage_collect_values = garbage_collect_values
        self.env: dict[Node, Any] = {}

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """Runs the graph. Values in `initial_env` are taken, and their nodes not run."""
        self.env = dict(initial_env or {})
        nested = enable_io_processing and self.graph.in_spec is not None
        self.args_iter = iter(self.module._take(args, {}) if nested else args)
        last = {given: node for node in self.graph.nodes for given in node.all_input_nodes}
        for node in self.graph.nodes:
            if node not in self.env:
                self.env[node] = self.run_node(node)
            if node.op == "output":
                value = self.env[node]
                return self.module._give(value) if enable_io_processing and self.graph.out_spec else value
            if self.garbage_collect_values:
                for given in node.all_input_nodes:
                    if last[given] is node:
                        self.env.pop(given, None)
        return None

    def run_node(self, n: Node) -> Any:
        """The value of a node."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def fetch_attr(self, target: str) -> Any:
        """A parameter, buffer, constant or module of the module."""
        return attribute_of(self.module, target)

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """A node's arguments with values in the nodes' places."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """The same for any argument."""

        def value_of(given: Node) -> Any:
            if given not in self.env:
                raise RuntimeError(f"node {n} takes {given}, which has no value")
            return self.env[given]

        return map_arg(args, value_of)

    # ---- by kind ----

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The next argument, or its default."""
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise TypeError(f"the graph takes an argument '{target}' that was not given") from None

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self_obj, *rest = args
        return getattr(self_obj, target)(*rest, **kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return args[0]
