"""Proxies: what stands for a value while Python runs on it, and makes a node of each thing that is done to it."""

from __future__ import annotations

import dis
import enum
import operator
import sys
import traceback
from collections.abc import Iterator
from copy import copy, deepcopy
from dataclasses import fields, is_dataclass
from types import FrameType
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.functional import einsum
from tensorpy.fx.code import BINARY
from tensorpy.fx.graph import Graph
from tensorpy.fx.node import Node, map_aggregate
from tensorpy.fx.operator_schemas import check_for_mutable_operation
from tensorpy.fx.traceback import mark
from tensorpy.overrides import is_tensor_method_or_property

__all__ = [
    "Attribute", "GraphAppendingTracer", "ParameterProxy", "Proxy", "Scope", "ScopeContextManager", "TraceError",
    "TracerBase",
]  # fmt: skip

_CONSTANTS = (
    bool, int, float, complex, str, bytes, type(None), type(...), range, enum.Enum, _C.dtype, _C.device,
    type(_C.strided), type(_C.preserve_format),
)  # fmt: skip
_FILE = __file__


class TraceError(ValueError):
    """Something that tracing cannot follow, as a branch that depends on a value."""


class Scope:
    """Which module's forward runs: its path and its class."""

    module_path: str
    module_type: Any

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path, self.module_type = module_path, module_type


class ScopeContextManager:
    """Another scope, as long as it lasts."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._scope, self._current, self._before = scope, current_scope, copy(scope)

    def __enter__(self) -> Scope:
        self._set(self._current)
        return self._scope

    def __exit__(self, *unused: object) -> None:
        self._set(self._before)

    def _set(self, to: Scope) -> None:
        self._scope.module_path, self._scope.module_type = to.module_path, to.module_type


class TracerBase:
    """Makes nodes of what is done to proxies. `graph` is where they go."""

    graph: Graph
    record_stack_traces: bool = False
    check_mutable_operations: bool = False
    trace_asserts: bool = False
    proxy_buffer_attributes: bool = False
    traced_func_name: str = "forward"
    scope: Scope
    module_stack: dict[str, Any]
    node_name_to_scope: dict[str, tuple[str, type]]

    def create_node(
        self, kind: str, target: Any, args: Any, kwargs: Any, name: str | None = None, type_expr: Any = None
    ) -> Node:
        """A node at the end of the graph, which knows which modules were being called."""
        if kind == "call_function" and self.check_mutable_operations:
            check_for_mutable_operation(target, args, kwargs)
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        if getattr(self, "scope", None) is not None:
            self.node_name_to_scope[node.name] = (self.scope.module_path, self.scope.module_type)
        if getattr(self, "module_stack", None):
            node.meta["nn_module_stack"] = dict(self.module_stack)
        mark(node)
        return node

    def proxy(self, node: Node) -> Proxy:
        """What stands for a node's value."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Any,
        args: Any,
        kwargs: Any,
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Any = None,
    ) -> Any:
        """A node of these arguments, and what stands for its value."""
        args_, kwargs_ = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node(kind, target, args_, kwargs_, name, type_expr)
        proxy = proxy_factory_fn(node) if proxy_factory_fn else self.proxy(node)
        if self.record_stack_traces and not node.meta.get("stack_trace"):
            node.stack_trace = _trace_of_program()
        return proxy

    def create_arg(self, a: Any) -> Any:
        """An argument as a node holds it: nodes in the place of proxies. NotImplementedError for what code cannot
        write."""
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, _C.Size):
            return tuple(map(self.create_arg, a))
        if isinstance(a, tuple):
            items = [self.create_arg(item) for item in a]
            return type(a)(*items) if hasattr(a, "_fields") else type(a)(items)
        if isinstance(a, list):
            return [self.create_arg(item) for item in a]
        if isinstance(a, dict):
            return {self._create_key(key): self.create_arg(value) for key, value in a.items()}
        if isinstance(a, slice):
            return slice(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, range):
            return range(*(self.create_arg(n) for n in (a.start, a.stop, a.step)))
        if is_dataclass(a) and not isinstance(a, type):
            kwargs = {field.name: self.create_arg(getattr(a, field.name)) for field in fields(a)}
            return self.create_node("call_function", type(a), (), kwargs)
        if isinstance(a, (*_CONSTANTS, Node)) or callable(a):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _create_key(self, key: Any) -> Any:
        """Keys are constants: a dictionary's shape is a part of the graph."""
        key = self.create_arg(key)
        found: list[Node] = []
        map_aggregate(key, lambda leaf: found.append(leaf) if isinstance(leaf, Node) else None)
        if found:
            raise RuntimeError(
                "Keys for dictionaries used as an argument cannot contain a Node, which depends on the inputs. "
                f"Got: {key}"
            )
        return key

    # ---- what has no node: subclasses may answer ----

    def to_bool(self, obj: Proxy) -> bool:
        """Which branch is taken. There are no values to decide by."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """What a loop walks over. How much that is is not known."""
        raise TraceError(
            "Proxy object cannot be iterated: how many items it has is not known while tracing. Loops over it, "
            "`*args` and `**kwargs` of it are of this kind; `a, b = it` is not"
        )

    def keys(self, obj: Any) -> Any:
        """What `**it` asks for."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """For proxies of a graph that is built by hand."""

    module_stack: Any
    node_name_to_scope: Any
    scope: Any

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = {}
        self.node_name_to_scope = {}


def _trace_of_program() -> str:
    """The stack without fx's own frames."""
    folder = _FILE.rpartition("proxy.py")[0]
    frames = [f for f in traceback.extract_stack() if not f.filename.startswith(folder)]
    return "".join(traceback.format_list(frames)).strip()


# ---- proxies ----


def _unpacked(frame: FrameType | None) -> int:
    """How many names an `a, b = it` that a frame is at has; 0: it is at something else."""
    if frame is None:
        return 0
    for instruction in dis.get_instructions(frame.f_code):
        if instruction.offset == frame.f_lasti:
            return (instruction.argval or 0) if instruction.opname == "UNPACK_SEQUENCE" else 0
    return 0


def _tracer_of(*trees: Any) -> TracerBase:
    """The tracer of the proxies in arguments: it is one."""
    found: dict[int, TracerBase] = {}

    def look(leaf: Any) -> None:
        if isinstance(leaf, Proxy):
            found[id(leaf.tracer)] = leaf.tracer

    map_aggregate(trees, look)
    if len(found) > 1:
        raise RuntimeError("proxies of several tracers meet in one call: graphs are traced one at a time")
    return next(iter(found.values()))


class Proxy:
    """Stands for the value of a node. Operators, methods, attributes, indices and functions of tensorpy that are used
    on it become nodes, with a proxy as the result.

    Arguments:
        tracer: the tracer that records

    Example:
        >>> kinds = set()
        >>> module = tp.fx.symbolic_trace(lambda x: kinds.add(type(x).__name__) or x)
        >>> kinds
        {'Proxy'}
    """

    tracer: Any

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.node = node
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Any:
        """A node only if it is used as a value; a method's call is one node."""
        if k in ("node", "tracer"):  # of a proxy that copy or pickle has not filled in yet
            raise AttributeError(k)
        return Attribute(self, k)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state

    def __deepcopy__(self, memo: Any) -> Proxy:
        made: Proxy = object.__new__(type(self))
        made.__dict__ = dict(self.__dict__)
        memo[id(self)] = made
        graph = memo.get(id(self.node.graph)) or deepcopy(self.node.graph, memo)
        memo[id(self.node.graph)] = graph
        made.__dict__["node"] = next(node for node in graph.nodes if node.name == self.node.name)
        made.__dict__["tracer"] = deepcopy(self.tracer, memo)
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        count = _unpacked(sys._getframe().f_back)
        items: Any = self
        return (items[i] for i in range(count)) if count else self.tracer.iter(self)

    def __abs__(self) -> Any:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default: Python wants a number from it. With "
            "`torch.fx.wrap('len')` at the top level of the module the call is recorded"
        )

    def keys(self) -> Any:
        """What `**it` asks for.

        Returns: a node.
        """
        return self.tracer.keys(self)

    @classmethod
    def __torch_function__(cls, orig_method: Any, types: Any, args: Any = None, kwargs: Any = None) -> Any:
        args, kwargs = args or (), kwargs or {}
        tracer = _tracer_of(args, kwargs)
        if orig_method is einsum and len(args) == 2 and isinstance(args[1], (list, tuple)):
            args = (args[0], *args[1])  # operands in a list are an older form of the same
        if is_tensor_method_or_property(orig_method):
            return tracer.create_proxy("call_method", orig_method.__name__, args, kwargs)
        return tracer.create_proxy("call_function", orig_method, args, kwargs)


class Attribute(Proxy):
    """An attribute of what a proxy stands for: a node where it is used, but a method where it is called."""

    attr: str
    root: Proxy
    tracer: Any

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        node = self._node
        if node is None:
            node = self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """Stands for a parameter, and answers what its shape says from the parameter itself."""

    name: str
    param: Tensor

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Tensor) -> None:
        super().__init__(node, tracer)
        self.param, self.name = param, name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        return self.param.shape

    def size(self, *args: Any) -> Any:
        return self.param.size(*args)

    def dim(self) -> int:
        return self.param.dim()

    @property
    def ndim(self) -> int:
        return self.param.ndim

    def numel(self) -> int:
        return self.param.numel()

    def nelement(self) -> int:
        return self.param.numel()


# ---- operators ----


def _recording(function: Any, swapped: bool = False) -> Any:
    def method(self: Proxy, other: Any = None) -> Any:
        args = (other, self) if swapped else (self, other)
        return self.tracer.create_proxy("call_function", function, args, {})

    return method


def _recording_unary(function: Any) -> Any:
    def method(self: Proxy) -> Any:
        return self.tracer.create_proxy("call_function", function, (self,), {})

    return method


_COMPARISONS = ("eq", "ne", "lt", "gt", "le", "ge")

for _function in [*BINARY, operator.getitem]:
    _name = _function.__name__.strip("_")
    setattr(Proxy, f"__{_name}__", _recording(_function))
    if _name not in (*_COMPARISONS, "getitem"):
        setattr(Proxy, f"__r{_name}__", _recording(_function, swapped=True))
for _function in (operator.neg, operator.pos, operator.invert):
    setattr(Proxy, f"__{_function.__name__}__", _recording_unary(_function))
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]
