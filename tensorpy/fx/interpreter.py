"""Runs a graph node by node: subclasses look at what comes by, or do something else."""

from __future__ import annotations

from typing import Any

from tensorpy.fx.graph import NO_DEFAULT, Graph, attribute_of
from tensorpy.fx.graph_module import GraphModule
from tensorpy.fx.node import Node, map_aggregate, map_arg
from tensorpy.fx.proxy import GraphAppendingTracer, Proxy
from tensorpy.fx.traceback import set_current_meta


class Interpreter:
    """`Interpreter(gm).run(*args)` gives what `gm(*args)` does. Overridden methods see each node's value on its way.

    Arguments:
        module: the module
        garbage_collect_values: whether values are dropped behind their last use
        graph: the graph; None takes the module's

    Example:
        >>> module = tp.fx.symbolic_trace(lambda x: x.relu() + 1)
        >>> tp.fx.Interpreter(module).run(tp.tensor([-1.0]))
        tensor([1.])
    """

    args_iter: Any
    graph: Any
    submodules: Any

    def __init__(self, module: Any, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        self.module = module
        self.graph = graph or module.graph
        self.submodules = dict(module.named_modules()) if hasattr(module, "named_modules") else {}
        self.garbage_collect_values = garbage_collect_values
        self.env: dict[Node, Any] = {}

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """Runs the graph. Values in `initial_env` are taken, and their nodes not run.

        Returns: what the graph gives.
        """
        self.env = dict(initial_env or {})
        if enable_io_processing:
            nested = self.graph.in_spec is not None
            args = tuple(self.module._take(args, {})) if nested else self.graph.process_inputs(*args)
        self.args_iter = iter(args)
        last = {given: node for node in self.graph.nodes for given in node.all_input_nodes}
        for node in self.graph.nodes:
            if node not in self.env:
                self.env[node] = self.run_node(node)
            if self.garbage_collect_values:
                for given in node.all_input_nodes:
                    if last[given] is node:
                        self.env.pop(given, None)
            if node.op == "output":
                value = self.env[node]
                if not enable_io_processing:
                    return value
                return self.module._give(value) if self.graph.out_spec else self.graph.process_outputs(value)
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """Runs it with the arguments of a list, which is emptied: nobody else has to hold them.

        Returns: what the graph gives.
        """
        given = tuple(args_list)
        args_list.clear()
        return self.run(*given, enable_io_processing=False)

    def run_node(self, n: Node) -> Any:
        """The value of a node.

        Returns: a value.
        """
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        with set_current_meta(n):
            return getattr(self, n.op)(n.target, args, kwargs)

    def fetch_attr(self, target: str) -> Any:
        """A parameter, buffer, constant or module of the module.

        Returns: a value.
        """
        return attribute_of(self.module, target)

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """A node's arguments with values in the nodes' places."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """The same for any argument.

        Returns: the argument with values.
        """

        def value_of(given: Node) -> Any:
            if given not in self.env:
                raise RuntimeError(f"node {n} takes {given}, which has no value")
            return self.env[given]

        return map_arg(args, value_of)

    # ---- by kind ----

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The next argument, or its default; all that are left, or none by name, of a *args and a **kwargs.

        Returns: a value.
        """
        if target.startswith("*"):
            return {} if target.startswith("**") else list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from None

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The attribute of the module that a node names.

        Returns: a value.
        """
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls the function of a node.

        Returns: what the function gives.
        """
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls the method of a node on its first argument.

        Returns: what the method gives.
        """
        self_obj, *rest = args
        return getattr(self_obj, target)(*rest, **kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls the submodule of a node.

        Returns: what the module gives.
        """
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the graph returns.

        Returns: a value.
        """
        return args[0]


class _TransformerTracer(GraphAppendingTracer):
    """Puts what a Transformer's methods do into its new graph; every module is one node."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.tensor_attrs: dict[Any, str] = {}
        self.root: Any = None

    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        return True


class Transformer(Interpreter):
    """An interpreter whose methods are given proxies, so that running it makes a graph: `transform()` gives its module.
    Overridden methods say what becomes of each node.

    Example:
        >>> module = tp.fx.symbolic_trace(lambda x: x.relu() + 1)
        >>> tp.fx.Transformer(module).transform()(tp.tensor([-1.0]))
        tensor([1.])
    """

    new_graph: Any
    tracer: Any

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        self.tracer = _TransformerTracer(self.new_graph)
        self.tracer.root = module

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        default = args[0] if args else NO_DEFAULT
        return Proxy(self.new_graph.placeholder(target, default_value=default), self.tracer)

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A node of the new graph for an attribute.

        Returns: a proxy.
        """
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A node of the new graph for a submodule's call.

        Returns: a proxy.
        """
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A node of the new graph for a function's call.

        Returns: a proxy.
        """
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def run_node(self, n: Node) -> Any:
        root = self.new_graph._root
        last = root.prev
        made = super().run_node(n)
        while last.next is not root:
            last = last.next
            last.meta, last.type = {**n.meta, **last.meta}, last.type or n.type
        return made

    def transform(self) -> GraphModule:
        """The module of the new graph."""
        result = self.run(enable_io_processing=False)
        if result is not None:
            self.new_graph._nested_as(self.module.graph)
            self.new_graph.output(map_aggregate(result, lambda leaf: leaf.node if isinstance(leaf, Proxy) else leaf))
        return GraphModule(self.module, self.new_graph)
