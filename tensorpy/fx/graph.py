"""A graph: nodes in the order in which they run; built, changed, checked, printed, and written as Python."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from tensorpy import _C
from tensorpy.fx._namespace import Namespace, name_of_target
from tensorpy.fx.code import CodeGen, PythonCode, TransformCodeFunc
from tensorpy.fx.node import Node, map_arg, target_name
from tensorpy.utils._pytree import TreeSpec

__all__ = ["CodeGen", "Graph", "NodeList", "PythonCode", "attribute_of"]


NO_DEFAULT: Any = inspect.Signature.empty


class InsertPoint:
    """Where a graph's nodes are made: from the call on, and where it is used in `with`, up to the block's end."""

    def __init__(self, graph: Graph, insert: Callable[[Node], None]) -> None:
        self._graph, self._before = graph, graph._insert
        graph._insert = insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        self._graph._insert = self._before


class Graph:
    """Nodes from the inputs to the output.

    `in_spec` and `out_spec` say how arguments and results are nested (utils._pytree): with them a module of this graph
    takes and gives trees, whose leaves are the placeholders and what the output node holds; None: as they are.

    Arguments:
        owning_module: the module that it belongs to
        tracer_cls: the tracer that made it
        tracer_extras: what the tracer needs to go on

    Example:
        >>> module = tp.fx.symbolic_trace(lambda x: x.relu() + 1)
        >>> [node.op for node in module.graph.nodes]
        ['placeholder', 'call_method', 'call_function', 'output']
    """

    def __init__(self, owning_module: Any = None, tracer_cls: Any = None, tracer_extras: Any = None) -> None:
        self._root = Node(self, "root", "output", "root", (), {}, None)
        self._insert: Callable[[Node], None] = self._root.prepend
        self._graph_namespace = Namespace()
        self._codegen = CodeGen()
        self._co_fields: dict[str, Any] = {}  # where the function is that was traced
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras
        self.owning_module = owning_module
        self.in_spec: TreeSpec | None = None
        self.out_spec: TreeSpec | None = None
        self.in_names: list[str] | None = None  # of the parameters, where these are trees; None: *args, **kwargs
        self.static_inputs: dict[int, Any] = {}  # leaves of in_spec that are no placeholders, by their places

    def _nested_as(self, other: Graph) -> None:
        """Arguments and results are nested as another graph's."""
        self.in_spec, self.out_spec, self.in_names = other.in_spec, other.out_spec, other.in_names
        self.static_inputs = dict(other.static_inputs)

    # ---- nodes ----

    def switches_grad_mode(self) -> bool:
        """Whether calls of one run are recorded for backward and others not."""
        return any(node.target is _C._set_grad_enabled for node in self.nodes)

    @property
    def nodes(self) -> NodeList:
        """All nodes in order; reversed() goes backwards, len() counts."""
        return NodeList(self)

    def create_node(
        self,
        op: str,
        target: Any,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A node at the place of insertion: the end, or what inserting_before and inserting_after say."""
        unique = self._graph_namespace.create_name(name or name_of_target(target))
        made = Node(self, unique, op, target, (), {}, type_expr)
        made._set(tuple(args or ()), dict(kwargs or {}))
        self._insert(made)
        for hook in getattr(self.owning_module, "_create_node_hooks", ()):
            hook(made)
        return made

    def _target_to_str(self, target: Any) -> str:
        """What a node that calls this is named after."""
        return name_of_target(target)

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = NO_DEFAULT) -> Node:
        """An input. A default value makes it optional."""
        args = () if default_value is NO_DEFAULT else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """A parameter, buffer or constant of the module."""
        self._warn_unless_there("get_attr", qualified_name)
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A call of an operator or of any function."""
        return self.create_node("call_function", the_function, args, kwargs, type_expr=type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A call of a module inside the module."""
        self._warn_unless_there("call_module", module_name)
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def _warn_unless_there(self, kind: str, path: str) -> None:
        module = self.owning_module
        for part in path.split(".") if module is not None else ():
            if not hasattr(module, part):
                warnings.warn(
                    f"Attempted to insert a {kind} Node with no underlying reference in the owning GraphModule! "
                    f"GraphModule.add_submodule or nn.Module.register_buffer put something at {path!r}",
                    stacklevel=3,
                )
                return
            module = getattr(module, part)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """What the graph gives: the last node."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def output_node(self) -> Node:
        """The output."""
        return next(node for node in reversed(self.nodes) if node.op == "output")

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda node: node) -> Node:
        """A copy of a node of another graph, whose arguments `arg_transform` maps to nodes of this one."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = dict(node.meta)
        return made

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Copies all nodes of another graph to the end of this one; what its output holds, in terms of this one.

        Returns: a node or a structure of nodes; with return_output_node the output node too.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                value = map_arg(node.args[0], val_map.__getitem__)
                return (value, node) if return_output_node else value
            val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    def __deepcopy__(self, memo: Any = None) -> Graph:
        made = Graph(tracer_cls=self._tracer_cls, tracer_extras=self._tracer_extras)
        made._codegen = self._codegen
        made._nested_as(self)
        copied: dict[Node, Node] = {}
        for node in self.nodes:
            copied[node] = made.node_copy(node, copied.__getitem__)
        return made

    # ---- changing ----

    def inserting_before(self, n: Node | None = None) -> InsertPoint:
        """Nodes that are made from now on, or inside of `with`, stand in front of one; None: at the beginning."""
        return InsertPoint(self, n.prepend if n else self._root.append)

    def inserting_after(self, n: Node | None = None) -> InsertPoint:
        """Each node that is made from now on, or inside of `with`, stands right after one; None: at the end, in order.

        The last of several comes first then."""
        return InsertPoint(self, n.append if n else self._root.prepend)

    def erase_node(self, to_erase: Node) -> None:
        """Takes a node out that nothing uses."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: "
                f"{list(to_erase.users)}: it cannot be erased"
            )
        if to_erase.graph is not self or to_erase._erased:
            raise RuntimeError(f"{to_erase} is not of this graph")
        if self._insert == to_erase.prepend:
            self._insert = to_erase.next.prepend
        elif self._insert == to_erase.append:
            self._insert = to_erase.prev.append
        for hook in getattr(self.owning_module, "_erase_node_hooks", ()):
            hook(to_erase)
        to_erase._set((), {})
        to_erase._unlink()
        to_erase._erased = True

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Erases what nothing uses and nothing else comes of, in graphs that it names as well; whether there was any.

        Raises: RuntimeError where the graph is not right (`lint`): what stands after its user would be erased.
        """
        self.lint()
        impure = is_impure_node or Node.is_impure
        found = False
        for node in reversed(self.nodes):
            if not node.users and not impure(node):
                self.erase_node(node)
                found = True
        inner = {node.target for node in self.find_nodes(op="get_attr")}
        for name, child in self.owning_module.named_children() if self.owning_module is not None else ():
            if name in inner and isinstance(getattr(child, "graph", None), Graph):
                found |= child.graph.eliminate_dead_code()
                child.recompile()
        return found

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """The nodes of a kind, and of a target if one is given."""
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    def lint(self) -> None:
        """RuntimeError unless each node stands after what it takes, names differ, and users are right."""
        seen: dict[Node, None] = {}
        names: set[str] = set()
        for node in self.nodes:
            if node.graph is not self or node.name in names:
                raise RuntimeError(f"{node} is of another graph, or its name is another node's")
            for given in _nodes_in((node.args, node.kwargs)):
                if given.graph is not self:
                    raise RuntimeError(
                        f"Argument '{given}' of Node '{node}' does not belong to this Graph, "
                        "but was used as an argument!"
                    )
                if given not in seen:
                    raise RuntimeError(
                        f"Argument '{given}' of Node '{node}' was used before it has been defined! Each node stands "
                        "after what it takes"
                    )
                if node not in given.users:
                    raise RuntimeError(f"{node} takes {given}, which does not know of it")
            if node.op in ("get_attr", "call_module") and self.owning_module is not None:
                attribute_of(self.owning_module, node.target)
            seen[node] = None
            names.add(node.name)

    # ---- looking ----

    def __str__(self) -> str:
        return "\n    ".join(["graph():", *(node.format_node() for node in self.nodes)])

    def print_tabular(self) -> None:
        """Prints a table of the nodes."""
        rows = [["opcode", "name", "target", "args", "kwargs"]]
        rows += [[n.op, n.name, target_name(n.target), str(n.args), str(n.kwargs)] for n in self.nodes]
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        rows.insert(1, ["-" * w for w in widths])
        for row in rows:
            print("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip())

    def to_dot(self) -> str:
        """The text that Graphviz draws."""
        from tensorpy.fx._draw import dot

        return dot(self)

    def _repr_svg_(self) -> str:
        from tensorpy.fx._draw import svg

        return svg(self)

    # ---- as Python ----

    def python_code(self, root_module: str = "self", *, verbose: bool = False, **unused: Any) -> PythonCode:
        """The function `forward` that runs the graph; `root_module` names the module with its attributes."""
        namespace = Namespace()
        for node in self.nodes:
            namespace.create_name(node.name)
        return self._codegen._gen_python_code(self, root_module, namespace, verbose=verbose)

    def set_codegen(self, codegen: CodeGen) -> None:
        """Who writes the code."""
        self._codegen = codegen

    def on_generate_code(self, make_transformer: Callable[[TransformCodeFunc | None], TransformCodeFunc]) -> Any:
        """Changes the lines of the code whenever it is written: `make_transformer` is given what changed them before,
        and gives what does from now on. As a context: until its end.

        Returns: a context manager that takes the change back.
        """
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)
        return self._until(before)

    @contextmanager
    def _until(self, before: TransformCodeFunc | None) -> Iterator[None]:
        try:
            yield
        finally:
            self._codegen._body_transformer = before

    def process_inputs(self, *args: Any) -> Any:
        """The placeholders' values, of the arguments of the code.

        Returns: a tuple of values.
        """
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """The result of the code, of what the output node holds.

        Returns: what a call of the code gives.
        """
        return self._codegen.process_outputs(out)


class NodeList:
    """The nodes of a graph in their order; one may be erased while they are walked."""

    def __init__(self, graph: Graph, backwards: bool = False) -> None:
        self._graph, self._backwards = graph, backwards

    def __iter__(self) -> Iterator[Node]:
        root = self._graph._root
        node = root.prev if self._backwards else root.next
        while node is not root:
            after = node.prev if self._backwards else node.next
            yield node
            node = after if node._erased or after is root else (node.prev if self._backwards else node.next)

    def __reversed__(self) -> NodeList:
        return NodeList(self._graph, not self._backwards)

    def __getitem__(self, place: int) -> Node:
        return list(self)[place]

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _nodes_in(argument: Any) -> Iterable[Node]:
    found: list[Node] = []
    map_arg(argument, lambda n: found.append(n) or n)  # type: ignore[func-returns-value]
    return found


def attribute_of(module: Any, path: str) -> Any:
    """What "layers.0.weight" names in a module."""
    for part in path.split("."):
        if not hasattr(module, part):
            raise RuntimeError(f"the graph names '{path}', and the module has no '{part}'")
        module = getattr(module, part)
    return module
