"""A graph: nodes in the order in which they run; built, changed, checked, printed, and written as Python."""

from __future__ import annotations

import keyword
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from tensorpy import _C
from tensorpy.fx.node import Node, OpOverload, container_text, map_arg, target_name
from tensorpy.utils._pytree import TreeSpec


class Graph:
    """Nodes from the inputs to the output.

    `in_spec` and `out_spec` say how arguments and results are nested (utils._pytree): with them a module of this graph
    takes and gives trees, whose leaves are the placeholders and what the output node holds; None: as they are.
    """

    def __init__(self, owning_module: Any = None) -> None:
        self._root = Node(self, "root", "output", "root", (), {}, None)
        self._insert_before = self._root
        self._names: set[str] = set()
        self.owning_module = owning_module
        self.in_spec: TreeSpec | None = None
        self.out_spec: TreeSpec | None = None
        self.static_inputs: dict[int, Any] = {}  # leaves of in_spec that are no placeholders, by their places

    # ---- nodes ----

    def switches_grad_mode(self) -> bool:
        """Whether calls of one run are recorded for backward and others not."""
        return any(node.target is _C._set_grad_enabled for node in self.nodes)

    @property
    def nodes(self) -> NodeList:
        """All nodes in order; reversed() goes backwards, len() counts."""
        return NodeList(self)

    def _unused(self, wanted: str) -> str:
        stem = re.sub(r"\W", "_", wanted) or "_"
        stem = re.sub(r"_\d+$", "", stem) if stem in self._names else stem
        stem = f"_{stem}" if stem[0].isdigit() else stem
        name, count = stem, 0
        while name in self._names or name in RESERVED or keyword.iskeyword(name):
            count += 1
            name = f"{stem}_{count}"
        self._names.add(name)
        return name

    def _name_for(self, op: str, target: Any) -> str:
        if isinstance(target, OpOverload):
            return str(target.__name__).rpartition("::")[2].partition(".")[0]
        if isinstance(target, str):
            return target.rpartition(".")[2].lstrip("*")
        return getattr(target, "__name__", op).lower()

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
        if op == "output":
            name = name or "output"
        made = Node(self, self._unused(name or self._name_for(op, target)), op, target, (), {}, type_expr)
        for given in _nodes_in((args or (), kwargs or {})):
            if given.graph is not self:
                raise ValueError(f"the argument {given} of {made.name} is a node of another graph")
        made._set(tuple(args or ()), dict(kwargs or {}))
        self._insert_before.prepend(made)
        return made

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = None) -> Node:
        """An input. A default value makes it optional."""
        args = () if default_value is None else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """A parameter, buffer or constant of the module."""
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
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

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
        """Copies all nodes of another graph to the end of this one; what its output holds, in terms of this one."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                value = map_arg(node.args[0], val_map.__getitem__)
                return (value, node) if return_output_node else value
            val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    def __deepcopy__(self, memo: Any = None) -> Graph:
        made = Graph()
        made.in_spec, made.out_spec, made.static_inputs = self.in_spec, self.out_spec, dict(self.static_inputs)
        copied: dict[Node, Node] = {}
        for node in self.nodes:
            copied[node] = made.node_copy(node, copied.__getitem__)
        return made

    # ---- changing ----

    @contextmanager
    def inserting_before(self, n: Node | None = None) -> Iterator[None]:
        """Nodes that are made inside stand in front of one; None: at the beginning."""
        before, self._insert_before = self._insert_before, n or self._root.next
        try:
            yield
        finally:
            self._insert_before = before

    @contextmanager
    def inserting_after(self, n: Node | None = None) -> Iterator[None]:
        """Nodes that are made inside stand behind one; None: at the end."""
        before, self._insert_before = self._insert_before, n.next if n else self._root
        try:
            yield
        finally:
            self._insert_before = before

    def erase_node(self, to_erase: Node) -> None:
        """Takes a node out that nothing uses."""
        if to_erase.users:
            raise RuntimeError(f"{to_erase} cannot be erased: {', '.join(map(str, to_erase.users))} use it")
        if to_erase.graph is not self or to_erase._erased:
            raise RuntimeError(f"{to_erase} is not of this graph")
        if self._insert_before is to_erase:
            self._insert_before = to_erase.next
        to_erase._set((), {})
        to_erase._unlink()
        to_erase._erased = True

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Erases what nothing uses and nothing else comes of; whether there was any."""
        impure = is_impure_node or Node.is_impure
        found = False
        for node in reversed(self.nodes):
            if not node.users and not impure(node):
                self.erase_node(node)
                found = True
        return found

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """The nodes of a kind, and of a target if one is given."""
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    def lint(self) -> None:
        """RuntimeError unless each node stands behind what it takes, names differ, and users are right."""
        seen: dict[Node, None] = {}
        names: set[str] = set()
        for node in self.nodes:
            if node.graph is not self or node.name in names:
                raise RuntimeError(f"{node} is of another graph, or its name is another node's")
            for given in _nodes_in((node.args, node.kwargs)):
                if given not in seen:
                    raise RuntimeError(f"{node} takes {given}, which does not come before it")
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

    def python_code(self) -> str:
        """The function `forward` that runs the graph; `self` has its constants."""
        placeholders = [n for n in self.nodes if n.op == "placeholder"]
        names = [n.name + (f" = {_code(n.args[0])}" if n.args else "") for n in placeholders]
        if self.in_spec is None:
            lines = [f"def forward({', '.join(['self', *names])}):"]
        else:
            unpacked = "".join(f"{n.name}, " for n in placeholders)
            lines = ["def forward(self, *args, **kwargs):", f"    {unpacked or '_ '}= self._take(args, kwargs)"]
        last = {given: node for node in self.nodes for given in node.all_input_nodes}
        for node in self.nodes:
            if node.op == "placeholder":
                continue
            gone = [n.name for n in node.all_input_nodes if last[n] is node and node.op != "output"]
            if not node.users and node.op != "output":
                gone.append(node.name)
            lines.append("    " + _statement(node, self.out_spec) + "".join(f";  {n} = None" for n in gone))
        return "\n".join(lines) + "\n"


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


# ---- as Python ----

RESERVED = frozenset("self tensorpy operator float complex slice inf nan device args kwargs root _".split())


def _code(argument: Any) -> str:
    """An argument as an expression; what Python cannot write has been made an attribute (GraphModule)."""
    if isinstance(argument, Node):
        return argument.name
    if (nested := container_text(argument, _code, repr)) is not None:
        return nested
    if isinstance(argument, slice):
        return f"slice({_code(argument.start)}, {_code(argument.stop)}, {_code(argument.step)})"
    if isinstance(argument, float) and not math.isfinite(argument):
        return f"float('{argument}')"
    if isinstance(argument, complex):
        return f"complex({_code(argument.real)}, {_code(argument.imag)})"
    if isinstance(argument, _C.device):
        return f"tensorpy.device({str(argument)!r})"
    if is_written(argument):
        return repr(argument)
    raise TypeError(f"a graph's code cannot hold {type(argument).__name__}; make it an attribute of the module")


_WRITTEN = (bool, int, float, str, bytes, type(None), type(...), _C.dtype, type(_C.strided), type(_C.preserve_format))


def is_written(argument: Any) -> bool:
    """Whether code can hold a constant."""
    return type(argument) in _WRITTEN or isinstance(argument, (complex, _C.device))


def _attribute(path: str) -> str:
    plain = all(part.isidentifier() for part in path.split("."))
    return f"self.{path}" if plain else f"self._attribute({path!r})"


def _has_keyword(path: str) -> bool:
    """tensorpy.ops.aten.random.from"""
    return any(map(keyword.iskeyword, path.split(".")))


def _statement(node: Node, out_spec: TreeSpec | None) -> str:
    if node.op == "output":
        value = _code(node.args[0])
        return f"return {value if out_spec is None else f'self._give({value})'}"
    if node.op == "get_attr":
        return f"{node.name} = {_attribute(node.target)}"
    args = [_code(a) for a in node.args]
    keywords = [f"{key} = {_code(value)}" for key, value in node.kwargs.items()]
    if node.op == "call_method":
        return f"{node.name} = {args[0]}.{node.target}({', '.join([*args[1:], *keywords])})"
    if node.op == "call_module":
        return f"{node.name} = {_attribute(node.target)}({', '.join([*args, *keywords])})"
    callee = target_name(node.target)
    known = isinstance(node.target, OpOverload) or node.target in (operator.getitem, _C._set_grad_enabled)
    if not known or _has_keyword(callee):
        callee = f"self._function_of({node.name!r})"
    if callee == "operator.getitem":
        return f"{node.name} = {args[0]}[{args[1]}]"
    return f"{node.name} = {callee}({', '.join([*args, *keywords])})"
