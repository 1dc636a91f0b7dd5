"""A node of a graph: one call, one input, one constant, or the output."""

from __future__ import annotations

import keyword
import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import tensorpy
from tensorpy import _C, ops
from tensorpy._library.effects import effect_of
from tensorpy._package.settings import _assert
from tensorpy.fx.immutable_collections import immutable_dict, immutable_list
from tensorpy.fx.operator_schemas import is_of_c, normalize_function, normalize_module

if TYPE_CHECKING:
    from tensorpy.fx.graph import Graph

Target = Callable[..., Any] | str  # what a node calls: a function, or the name of a method, module or attribute
Argument = Any  # a node, a constant, or a container of them
OpOverload: Any = _C.OpOverload
base_types: tuple[Any, ...] = (
    str, int, float, bool, complex, _C.dtype, _C.Tensor, _C.device, type(_C.preserve_format), type(_C.strided),
    OpOverload,
)  # fmt: skip
KINDS = ("placeholder", "get_attr", "call_function", "call_method", "call_module", "output")
_overloads: dict[str, Any] = {}


def overload(name: str) -> Any:
    """The one object of an operator: tensorpy.ops.aten.add.Tensor of "add.Tensor"."""
    if name not in _overloads:
        space, _, rest = name.rpartition("::")
        stem, _, which = rest.partition(".")
        found = getattr(getattr(getattr(ops, space or "aten"), stem), which or "default")
        if not isinstance(found, OpOverload):  # a module of this package has other attributes too
            raise AttributeError(f"there is no operator {name!r}")
        _overloads[name] = found
    return _overloads[name]


def map_arg(argument: Any, fn: Callable[[Node], Any]) -> Any:
    """An argument with fn of each node in it, however deep in lists, tuples, dictionaries and slices.

    Returns: what was given, with the results.

    Example:
        >>> tp.fx.node.map_arg((1, [2]), lambda node: node)
        (1, [2])
    """
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


def map_aggregate(argument: Any, fn: Callable[[Any], Any]) -> Any:
    """An argument with fn of each leaf, however deep in lists, tuples, dictionaries and slices; immutable ones."""
    if isinstance(argument, tuple):
        mapped = [map_aggregate(a, fn) for a in argument]
        return type(argument)(*mapped) if hasattr(argument, "_fields") else tuple(mapped)
    if isinstance(argument, list):
        return immutable_list([map_aggregate(a, fn) for a in argument])
    if isinstance(argument, dict):
        return immutable_dict({key: map_aggregate(value, fn) for key, value in argument.items()})
    if isinstance(argument, slice):
        return slice(*(map_aggregate(a, fn) for a in (argument.start, argument.stop, argument.step)))
    return fn(argument)


def called() -> str:
    """The name that the package goes by: tensorpy, or torch where it stands for that."""
    return repr(_C.float32).partition(".")[0]


def at_path(path: str) -> Any:
    """What "tensorpy.nn.functional.relu" names; None: nothing."""
    first, *rest = path.split(".")
    found: Any = tensorpy if first in ("tensorpy", "torch") else None
    for part in rest:
        found = getattr(found, part, None)
    return found


def target_name(target: Any) -> str:
    """As code names it: "tensorpy.ops.aten.add.Tensor", "operator.getitem", "tensorpy.nn.functional.relu"."""
    if isinstance(target, str):
        return target
    name = _own_name(target)
    return called() + name.removeprefix("tensorpy") if name.startswith("tensorpy.") else name


def _own_name(target: Any) -> str:
    if isinstance(target, OpOverload):
        space, _, rest = target._own_name.rpartition("::")
        stem, _, which = rest.partition(".")
        return f"tensorpy.ops.{space or 'aten'}.{stem}.{which or 'default'}"
    if isinstance(target, ops.OpOverloadPacket):
        return f"tensorpy.ops.{target}"
    name = str(getattr(target, "__qualname__", None) or getattr(target, "__name__", repr(target)))
    module = getattr(target, "__module__", None) or ""
    if not module and getattr(target, "__objclass__", None) is _C.Tensor:
        return f"tensorpy.Tensor.{getattr(target, '__name__', name)}"
    if module.partition(".")[0] == called():
        module = "tensorpy" + module[len(called()) :]
    if module.startswith("tensorpy."):
        own, functional = f"{module}.{name}", f"tensorpy.nn.functional.{name}"
        is_public = module != "tensorpy._C" and (module.startswith("tensorpy._C.") or "._" not in module)
        paths = (own, functional) if is_public else (f"tensorpy.{name}", functional)
        return next((path for path in paths if at_path(path) is target), own)
    module = "operator" if module == "_operator" else module
    return f"{module}.{name}" if module and module != "builtins" else name


class Node:
    """One step of a graph.

    `op` is one of KINDS; `target` is what is called (an operator, a function, the name of a method or module), or
    the name of an attribute or input; `args` and `kwargs` hold constants and other nodes. `users` are the nodes that
    hold this one.

    Arguments:
        graph: the graph; None takes the module's
        name: the name
        op: what kind of step it is: "call_function", "placeholder", ...
        target: what is wanted, of the input's shape
        args: the arguments by position
        kwargs: the keyword arguments
        return_type: the type of the result, if it is known

    Example:
        >>> module = tp.fx.symbolic_trace(lambda x: x.relu() + 1)
        >>> next(iter(module.graph.nodes)).op
        'placeholder'
    """

    graph: Graph
    name: Any
    target: Any
    type: Any

    def __init__(
        self, graph: Graph, name: str, op: str, target: Any, args: Any, kwargs: Any, return_type: Any = None
    ) -> None:
        if op not in KINDS:
            raise AssertionError(f"op {op!r} is not in _legal_ops: a node is one of {', '.join(KINDS)}, not {op!r}")
        if op == "call_function" and not callable(target):
            raise ValueError(f"Node {name}: the target {target!r} of a call_function has to be a Callable")
        if not name.isidentifier() or keyword.iskeyword(name):
            raise ValueError(f"{name!r} is no name of a node")
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
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

        def keep(value: Any) -> Any:
            return note(value) if isinstance(value, Node) else value

        args, kwargs = map_aggregate(args, keep), map_aggregate(kwargs, keep)
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

    def __lt__(self, other: Node) -> bool:
        """Whether it stands before another node of its graph."""
        node = self.next
        while node is not other and node is not self.graph._root:
            node = node.next
        return node is other

    def __gt__(self, other: Node) -> bool:
        return other < self

    def __le__(self, other: Node) -> bool:
        return self is other or self < other

    def __ge__(self, other: Node) -> bool:
        return other <= self

    @property
    def stack_trace(self) -> str | None:
        """Where the program made the call, if a tracer recorded it."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    @property
    def _input_nodes(self) -> dict[Node, None]:
        return self._inputs

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among its arguments, each once."""
        return list(self._inputs)

    def update_arg(self, idx: int, arg: Any) -> None:
        """Another positional argument in the place of one."""
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Any) -> None:
        """One more positional argument in front of the one at `idx`."""
        if not 0 <= idx <= len(self._args):
            raise IndexError(f"insert_arg(): the place {idx} is not among {len(self._args)} arguments")
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """A keyword argument, new or in the place of one."""
        self.kwargs = {**self._kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Takes another node wherever it took `old_input`."""
        self._set(
            map_arg(self._args, lambda n: new_input if n is old_input else n),
            map_arg(self._kwargs, lambda n: new_input if n is old_input else n),
        )

    def _rename(self, candidate: str) -> None:
        """Another name, or the next one that is free."""
        if candidate != self.name:
            self.name = self.graph._graph_namespace.create_name(candidate)

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] = lambda user: True,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Puts another node in this one's place for its users; those for which `delete_user_cb` is false keep it.

        Gives the users that changed.
        """
        if propagate_meta:
            replace_with.meta.update(self.meta)
        changed = [user for user in self.users if delete_user_cb(user)]
        for hook in getattr(self.graph.owning_module, "_replace_hooks", ()):
            for user in changed:
                hook(old=self, new=replace_with.name, user=user)
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
        if not isinstance(x, Node):
            raise TypeError(f"prepend() takes a node, not a {type(x).__name__}")
        if x.graph is not self.graph:
            raise ValueError("prepend(): the node is of another graph")
        if x is self:
            return
        x._unlink()
        x._prev, x._next = self._prev, self
        self._prev._next = self._prev = x

    def append(self, x: Node) -> None:
        """Puts a node of the graph after this one."""
        if x is not self:
            self._next.prepend(x)

    # ---- what it is ----

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether more than its result comes of it: an operator that writes, draws random numbers, sends to other
        processes or was registered with an effect, a function that is known to do more (`has_side_effect`), inputs and
        outputs. Methods and modules count for their results only."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_module":
            owner = self.graph.owning_module
            called = None if owner is None else owner.get_submodule(self.target)
            return bool(getattr(called, "_is_impure", False))
        if self.op != "call_function":
            return False
        if self.target in _side_effectful_functions or (impure_random and _is_random(self.target)):
            return True
        if isinstance(self.target, ops.OpOverloadPacket):
            return all(acts(getattr(self.target, name)) for name in self.target.overloads())
        if not isinstance(self.target, OpOverload):
            return False
        op = self.target
        return acts(op) or "collective" in op.tags or effect_of(op._name) is not None

    def normalized_arguments(
        self,
        root: Any,
        arg_types: Any = None,
        kwarg_types: Any = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> Any:
        """The node's arguments by the signature of what it calls: (args, kwargs); None if that has none.

        Returns: a named tuple (args, kwargs), or None.
        """
        only = normalize_to_only_use_kwargs
        if self.op == "call_function":
            return normalize_function(self.target, self.args, self.kwargs, arg_types, kwarg_types, only)
        if self.op == "call_module":
            return normalize_module(root, self.target, self.args, self.kwargs, only)
        return None

    def format_node(self, *unused: Any, **also_unused: Any) -> str:
        """One line of the printed graph."""
        users = f"[num_users={len(self.users)}]"
        if self.op == "placeholder":
            kind = f" : {type_name(self.type)}" if self.type is not None else ""
            default = f"(default={self._args[0]})" if self._args else ""
            return f"%{self.name}{kind or ' :'} {users} = placeholder[target={self.target}]{default}"
        if self.op == "output":
            return f"return {self._args[0] if self._args else None}"
        kind = f" : {type_name(self.type)}" if self.type is not None else " :"
        target = target_name(self.target)
        if self.op == "call_function" and getattr(self.target, "__module__", None) == "builtins":
            target = f"builtins.{target}"
        head = f"%{self.name}{kind} {users} = {self.op}[target={target}]"
        if self.op == "get_attr":
            return head
        kwargs = ", ".join(f"{key}: {_text(value)}" for key, value in self._kwargs.items())
        return f"{head}(args = {_text(self._args)}, kwargs = {{{kwargs}}})"

    def __repr__(self) -> str:
        return self.name

    def __iter__(self) -> Iterator[Node]:
        raise TypeError("a node is no sequence; operator.getitem nodes take results apart")


_side_effectful_functions: set[Any] = {operator.setitem, _C._set_grad_enabled, _assert}


def _is_random(target: Any) -> bool:
    """Whether an operator draws random numbers; a function of tensorpy that calls operators of its name as well."""
    if isinstance(target, OpOverload):
        return "nondeterministic_seeded" in target.tags
    if not is_of_c(target):
        return False
    packet = getattr(ops.aten, target.__name__, None)
    overloads = [] if packet is None else [getattr(packet, name) for name in packet.overloads()]
    return any("nondeterministic_seeded" in overload.tags for overload in overloads)


def acts(op: Any) -> bool:
    """Whether a call of an operator does more than give results: it writes, or gives nothing and refuses values.

    Arguments:
        op: the operator

    Returns: bool.

    Example:
        >>> tp.fx.node.acts(tp.ops.aten._assert_async.msg), tp.fx.node.acts(tp.ops.aten.all.default)
        (True, False)
    """
    return "!" in op._schema or op._schema.endswith("-> ()")


def has_side_effect(fn: Any) -> Any:
    """Marks a function as one that does more than give a result, so that a call of it is never dead; a decorator.

    Arguments:
        fn: the function

    Returns: the function.

    Example:
        >>> tp.fx.has_side_effect(print) is print
        True
    """
    _side_effectful_functions.add(fn)
    return fn


def type_name(kind: Any) -> str:
    """An annotation as code writes it."""
    if kind is None or kind is type(None):
        return "None"
    if isinstance(kind, str):
        return repr(kind)
    if isinstance(kind, type) and not hasattr(kind, "__origin__"):
        name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
        return next((p for p in (f"{called()}.{kind.__name__}",) if at_path(p) is kind), name)
    return repr(kind)


def _type_repr(obj: Any) -> str:
    """A type as a message names it: of builtins the name alone."""
    if isinstance(obj, type) and not isinstance(obj, type(list[int])):
        return obj.__qualname__ if obj.__module__ == "builtins" else f"{obj.__module__}.{obj.__qualname__}"
    return "..." if obj is ... else getattr(obj, "__name__", repr(obj))


def _get_qualified_name(func: Any) -> str:
    """The path of a function."""
    if getattr(func, "__module__", None) == "_operator":
        return f"_operator.{func.__name__}"
    return target_name(func)


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
    if isinstance(argument, str):
        return argument
    return container_text(argument, _text, str) or str(argument)
