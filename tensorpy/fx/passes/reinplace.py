"""reinplace: a graph without writes becomes one that writes where nobody sees it.

A call `b = op(a)` becomes `op_(a)` if nothing reads the memory of a later. A call `whole = select_scatter(base, part)`
puts a part back: it becomes a view and a copy, or goes away where `part` was written in its place already. What shares
memory is seen by running the graph once on fake tensors.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

from tensorpy import _C, ops
from tensorpy._C import Tensor
from tensorpy._subclasses.fake_tensor import FakeTensorMode
from tensorpy.fx.graph_module import GraphModule
from tensorpy.fx.interpreter import Interpreter
from tensorpy.fx.node import Node
from tensorpy.utils._pytree import tree_leaves, tree_map

__all__ = ["reinplace"]

_VIEW_OF_SCATTER = {
    ops.aten.diagonal_scatter.default: ops.aten.diagonal.default,
    ops.aten.select_scatter.default: ops.aten.select.int,
    ops.aten.slice_scatter.default: ops.aten.slice.Tensor,
    ops.aten.as_strided_scatter.default: ops.aten.as_strided.default,
}


def _first(target: Any) -> Any:
    """What the schema of an operator says of its first argument; None for what is no operator, or takes nothing."""
    arguments = target._schema.arguments if isinstance(target, _C.OpOverload) else ()
    return arguments[0] if arguments else None


def _is_view(target: Any) -> bool:
    first = _first(target)
    return first is not None and first.alias_info is not None and not first.is_write


def _memory(t: Tensor) -> int:
    return t.untyped_storage()._cdata


class _Run(Interpreter):
    """Notes in each node its result of fake tensors, its number, and the node that it is a view of."""

    count = -1

    def run_node(self, n: Node) -> Any:
        self.count += 1
        result = n.meta["fake_result"] = super().run_node(n)
        n.meta["node_idx"] = self.count
        if base := self._base(n):
            n.meta["view_of"] = base
        return result

    def _base(self, n: Node) -> Any:
        if n.op != "call_function" or not n.args:
            return None
        base: Any = n.args[0]
        if n.target is operator.getitem:
            return base.args[0] if _is_view(base.target) else None
        return base if _is_view(n.target) and isinstance(n.meta["fake_result"], Tensor) else None


class _Aliases:
    """Which nodes have results in the same memory."""

    def __init__(self, nodes: Any) -> None:
        self._nodes: dict[int, set[Node]] = {}
        for node in nodes:
            for t in self._tensors(node):
                self._nodes.setdefault(_memory(t), set()).add(node)

    @staticmethod
    def _tensors(node: Node) -> Iterator[Tensor]:
        return (t for t in tree_leaves(node.meta.get("fake_result")) if isinstance(t, Tensor))

    def of(self, node: Node) -> set[Node]:
        """Those of a node's first tensor."""
        return self._nodes[_memory(next(self._tensors(node)))]

    def join(self, a: Node, b: Node) -> None:
        """What one writes the other shows from now on."""
        both = self.of(a) | self.of(b)
        for node in both:
            for t in self._tensors(node):
                self._nodes[_memory(t)] = both


def _readers(aliases: set[Node], behind: int) -> set[Node]:
    """Nodes behind a number that use one of the aliases, but for those that are aliases themselves."""
    found = {user for alias in aliases for user in alias.users if user.meta.get("node_idx", -1) > behind}
    return {n for n in found if n not in aliases or not (_first(n.target) or n.target is operator.getitem)}


def _geometry(t: Tensor) -> tuple[Any, ...]:
    return t.size(), t.stride(), t.storage_offset()


def _puts_back(scatter: Node, alias: Node) -> bool:
    """Whether a scatter writes a part to where the alias shows it: its view of the alias's base is the alias."""
    base, whole = alias.meta.get("view_of"), scatter.args[0]
    if base is None or not isinstance(whole, Node):
        return False
    if _geometry(base.meta["fake_result"]) != _geometry(whole.meta["fake_result"]):
        return False
    try:
        view = _VIEW_OF_SCATTER[scatter.target](base.meta["fake_result"], *scatter.args[2:], **scatter.kwargs)
    except (RuntimeError, IndexError, TypeError, ValueError):  # no view of this base
        return False
    return _geometry(view) == _geometry(alias.meta["fake_result"])


def _in_place(target: Any) -> Any:
    """The operator that writes the result to its first argument, of the same arguments; None without one."""
    if _is_view(target):
        return None
    packet = getattr(getattr(ops, target.namespace), f"{target.overloadpacket.__name__}_", None)
    types = [argument.type for argument in target._schema.arguments]
    for name in packet.overloads() if packet is not None else ():
        found = getattr(packet, name)
        if [argument.type for argument in found._schema.arguments] == types:
            return found
    return None


def _can_hold(base: Node, node: Node) -> bool:
    """Whether the first argument's memory is such as the result needs."""
    if node.target is ops.aten.resize.default:
        return True
    pairs = zip(tree_leaves(base.meta["fake_result"]), tree_leaves(node.meta["fake_result"]), strict=False)
    return all(
        a.numel() == b.numel() and a.dtype == b.dtype and _C._debug_has_internal_overlap(a) != 1 for a, b in pairs
    )


class _Pass:
    def __init__(self, module: GraphModule) -> None:
        self.graph = module.graph
        self.aliases = _Aliases(self.graph.nodes)
        inputs = (node.meta["fake_result"] for node in self.graph.nodes if node.op == "placeholder")
        self.inputs = {_memory(t) for t in inputs if isinstance(t, Tensor)}
        self.gone: set[Node] = set()

    def visit(self, node: Node) -> None:
        """Lets a node write its first argument, if nobody reads that later."""
        first = _first(node.target) if node.op == "call_function" else None
        if first is None or first.type != "Tensor" or not isinstance(base := node.args[0], Node):
            return
        alone = sum(argument is base for argument in node.args) == 1
        if not alone or not _can_hold(base, node) or _memory(base.meta["fake_result"]) in self.inputs:
            return
        aliases = self.aliases.of(base)
        readers = _readers(aliases, node.meta["node_idx"])
        undone = {n for n in readers if n.target in _VIEW_OF_SCATTER and any(_puts_back(n, a) for a in aliases)}
        if readers == undone and self._write(node, base):
            self.aliases.join(base, node)
            self.gone |= undone
            for old in (node, *sorted(undone, key=lambda n: n.meta["node_idx"])):
                self._forward(old, behind=node.meta["node_idx"])

    def _write(self, node: Node, base: Node) -> bool:
        """Whether the node writes now."""
        view = None if node in self.gone else _VIEW_OF_SCATTER.get(node.target)
        if view is None:
            written = _in_place(node.target)
            node.target = written or node.target
            return written is not None
        with self.graph.inserting_before(node):
            part = self.graph.call_function(view, (base, *node.args[2:]), dict(node.kwargs))
            self.graph.call_function(ops.aten.copy_.default, (part, node.args[1]))
        self.gone.add(node)
        return True

    def _forward(self, old: Node, behind: int) -> None:
        """Who uses a node's result uses its first argument."""
        new = old.args[0]
        for user in [n for n in old.users if n.meta.get("node_idx", -1) > behind]:
            user.args, user.kwargs = tree_map(lambda leaf: new if leaf is old else leaf, (user.args, user.kwargs))
            if user.meta.get("view_of") is old:
                self.aliases.join(new, user)


def reinplace(gm: GraphModule, *sample_args: Any) -> GraphModule:
    """Changes a graph of functional operators so that its calls write where nobody sees it.

    `b = add(a, 1)` becomes `add_(a, 1)` if a is not an argument of the graph and nothing reads its memory later.

    Arguments:
        gm: the module of the graph, as `make_fx(functionalize(f))` gives it; it is changed
        sample_args: arguments for it, which say what shares memory

    Returns: the module.

    Raises: what the graph raises for these arguments.

    Example:
        >>> from tensorpy.fx.experimental.proxy_tensor import make_fx
        >>> from tensorpy.fx.passes.reinplace import reinplace
        >>> module = reinplace(make_fx(lambda x: x.clone().add(1))(tp.ones(2)), tp.ones(2))
        >>> [str(node.target) for node in module.graph.nodes if node.op == "call_function"]
        ['aten.clone.default', 'aten.add_.Tensor']
    """
    with FakeTensorMode() as mode:
        _Run(gm).run(*(mode.from_tensor(a) if isinstance(a, Tensor) else a for a in sample_args))
        work = _Pass(gm)
        for node in list(gm.graph.nodes):
            work.visit(node)
    for node in work.gone:
        gm.graph.erase_node(node)
    gm.recompile()
    return gm
