"""A node of a graph: one call, one input, one constant, or the output."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from tensorpy import _C, ops

if TYPE_CHECKING:
    from tensorpy.fx.graph import Graph

Target = Callable[..., Any] | str  # what a node calls: a function, or the name of a method, module or attribute
Argument = Any  # a node, a constant, or a container of them
KINDS = ("placeholder", "get_attr", "call_function", "call_method", "call_module", "output")
OpOverload: Any = _C.OpOverload
_overloads: dict[str, Any] = {}


def overload(name: str) -> Any:
    """The one object of an operator: tensorpy.ops.aten.add.Tensor of "add.Tensor"."""
    if name not in _overloads:
        space, _, rest = name.rpartition("::")
        stem, _, which = rest.partition(".")
        _overloads[name] = getattr(getattr(getattr(ops, space or "aten"), stem), which or "default")
    return _overloads[name]


def map_arg(argument: Any, fn: Callable[[Node], Any]) -> Any:
    """An argument with fn of each node in it, however deep in lists, tuples, dictionaries and slices."""
    if isinstance(argument, Node):
        return fn(argument)
    if isinstance(argument, tuple):
        mapped = [map_arg(a, fn) for a in argument]
        return type(argument)(*mapped) if hasattr(argument, "_fields") else tuple(mapped)
    if isinstance(argument, list):
        return [map_arg(a, fn) for a in argument]
    if isinstance(argument, dict):
        return {key: map_arg(value, fn) for key, value in argument.items()}
    if isinstance(argument, slice):
        return slice(*(map_arg(a, fn) for a in (argument.start, argument.stop, argument.step)))
    return argument


def target_name(target: Any) -> str:
    """As code names it: "tensorpy.ops.aten.add.Tensor", "operator.getitem"."""
    if isinstance(target, str):
        return target
    if isinstance(target, OpOverload):
        space, _, rest = target.__name__.rpartition("::")
        stem, _, which = rest.partition(".")
        return f"tensorpy.ops.{space or 'aten'}.{stem}.{which or 'default'}"
    module = (getattr(target, "__module__", "") or "").removeprefix("_")
    name = getattr(target, "__qualname__", None) or getattr(target, "__name__", repr(target))
    return f"{module}.{name}" if module and module != "builtins" else str(name)


class Node:
    """One step of a graph.

    `op` is one of KINDS; `target` is what is called (an operator, a function, the name of a method or module), or
    the name of an attribute or input; `args` and `kwargs` hold constants and other nodes. `users` are the nodes that
    hold this one.
    """

    def __init__(self, graph: Graph, name: str, op: str, target: Any, args: Any, kwargs: Any, type_expr: Any) -> None:
        if op not in KINDS:
            raise ValueError(f"a node is one of {', '.join(KINDS)}, not {op!r}")
        if not name.isidentifier() or keyword.iskeyword(name):
            raise ValueError(f"{name!r} is no name of a node")
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, type_expr
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._args: tuple[Any, ...] = ()
        self._kwargs: dict[str, Any] = {}
        self._inputs: dict[Node, None] = {}
        self._prev = self._next = self
        self._erased = False
        self._set(tuple(args), dict(kwargs))

    # ---- what it takes ----

    def _set(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        found: dict[Node, None] = {}

        def note(node: Node) -> Node:
            found[node] = None
            return node

        args, kwargs = map_arg(args, note), map_arg(kwargs, note)
        for node in self._inputs:
            node.users.pop(self, None)
        for node in found:
            node.users[self] = None
        self._args, self._kwargs, self._inputs = args, kwargs, found

    @property
    def args(self) -> tuple[Any, ...]:
        return self._args

    @args.setter
    def args(self, args: tuple[Any, ...]) -> None:
        self._set(tuple(args), self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Any]) -> None:
        self._set(self._args, dict(kwargs))

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among its arguments, each once."""
        return list(self._inputs)

    def update_arg(self, idx: int, arg: Any) -> None:
        """Another positional argument in the place of one."""
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def update_kwarg(self, key: str, arg: Any) -> None:
        """A keyword argument, new or in the place of one."""
        self.kwargs = {**self._kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Takes another node wherever it took `old_input`."""
        self._set(
            map_arg(self._args, lambda n: new_input if n is old_input else n),
            map_arg(self._kwargs, lambda n: new_input if n is old_input else n),
        )

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] = lambda user: True,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Its users take another node in its place; those for which `delete_user_cb` is false keep it. The users that
        changed."""
        if propagate_meta:
            replace_with.meta.update(self.meta)
        changed = [user for user in self.users if delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    # ---- where it stands ----

    @property
    def next(self) -> Node:
        return self._next

    @property
    def prev(self) -> Node:
        return self._prev

    def _unlink(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev
        self._prev = self._next = self

    def prepend(self, x: Node) -> None:
        """Puts a node of the graph in front of this one."""
        if x.graph is not self.graph:
            raise ValueError("prepend(): the node is of another graph")
        if x is self:
            return
        x._unlink()
        x._prev, x._next = self._prev, self
        self._prev._next = self._prev = x

    def append(self, x: Node) -> None:
        """Puts a node of the graph behind this one."""
        if x is not self:
            self._next.prepend(x)

    # ---- what it is ----

    def is_impure(self) -> bool:
        """Whether more than its result comes of it: it writes, or draws random numbers; inputs and outputs too."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op != "call_function":
            return self.op in ("call_module", "call_method")
        if not isinstance(self.target, OpOverload):
            return self.target not in _PURE
        return "!" in self.target._schema or "nondeterministic_seeded" in self.target.tags

    def format_node(self) -> str:
        """One line of the printed graph."""
        if self.op == "placeholder":
            return f"%{self.name} : [num_users={len(self.users)}] = placeholder[target={self.target}]"
        if self.op == "output":
            return f"return {_text(self._args[0] if self._args else None)}"
        head = f"%{self.name} : [num_users={len(self.users)}] = {self.op}[target={target_name(self.target)}]"
        if self.op == "get_attr":
            return head
        kwargs = ", ".join(f"{key}: {_text(value)}" for key, value in self._kwargs.items())
        return f"{head}(args = {_text(self._args)}, kwargs = {{{kwargs}}})"

    def __repr__(self) -> str:
        return self.name

    def __iter__(self) -> Iterator[Node]:
        raise TypeError("a node is no sequence; operator.getitem nodes take results apart")


def _getitem() -> Any:
    import operator

    return operator.getitem


_PURE = frozenset({_getitem()})


def container_text(argument: Any, text: Callable[[Any], str], key: Callable[[Any], str]) -> str | None:
    """A tuple, list or dict with what is in it written by `text` and `key`; None for anything else."""
    if isinstance(argument, tuple):
        return f"({', '.join(map(text, argument))}{',' if len(argument) == 1 else ''})"
    if isinstance(argument, list):
        return f"[{', '.join(map(text, argument))}]"
    if isinstance(argument, dict):
        return f"{{{', '.join(f'{key(name)}: {text(value)}' for name, value in argument.items())}}}"
    return None


def _text(argument: Any) -> str:
    """An argument with nodes as %names."""
    if isinstance(argument, Node):
        return f"%{argument.name}"
    return container_text(argument, _text, str) or repr(argument)
