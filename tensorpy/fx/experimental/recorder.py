"""What the calls of a thread become: a graph of its operators.

The recorder stands under the dispatch key Tracer (csrc/python/tracer.c). It sees operators, not Python: loops are
unrolled, branches are the ones taken, and what Python computes from a tensor's values would be a constant, so to ask
for these is an error.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from functools import cache
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._subclasses.fake_tensor import DataDependentOutputException, FakeTensor, FakeTensorMode
from tensorpy.fx.code import is_written
from tensorpy.fx.graph import Graph
from tensorpy.fx.node import Node, overload
from tensorpy.fx.traceback import mark
from tensorpy.nn import Parameter
from tensorpy.utils._pytree import tree_flatten

_tracer: Any = _C._tracer


class DataDependentError(DataDependentOutputException):
    """A function asked for the value of a tensor that depends on its inputs."""

    __module__ = "tensorpy.fx.experimental.proxy_tensor"


@cache
def parameters(name: str) -> list[tuple[str, str, bool, bool, bool, Any]]:
    """(name, type, keyword-only, written, has a default, default) of an operator's arguments."""
    return [tuple(row) for row in _tracer.arguments(name)]


def _is_default(value: Any, default: Any) -> bool:
    """Not for tensors and nodes, which compare element by element or not at all."""
    return type(value) is type(default) and not isinstance(value, (Tensor, Node)) and bool(value == default)


def _where(tensor: Tensor) -> tuple[Any, ...]:
    """What tensors share that are the same elements, seen alike."""
    return (
        _tracer.memory(tensor), tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype,
    )  # fmt: skip


def _passed(op: Any, values: list[Any]) -> tuple[list[Any], dict[str, Any]]:
    """An operator's values as a call passes them: those at the end that are their defaults are left out."""
    args, kwargs = [], {}
    rows = parameters(op._own_name)
    positional = [not row[2] for row in rows]
    kept = [not (row[4] and _is_default(value, row[5])) for row, value in zip(rows, values, strict=True)]
    for i, (name, value) in enumerate(zip((row[0] for row in rows), values, strict=True)):
        if positional[i] and any(k for k, p in zip(kept[i:], positional[i:], strict=True) if p):
            args.append(value)
        elif not positional[i] and kept[i]:
            kwargs[name] = value
    return args, kwargs


class Recorder:
    """What the calls of a thread become.

    Tensors are known by their objects, which are kept; those that autograd makes of saved ones by their elements. Where
    the values of a storage depend on the inputs is noted by storage, since views are written too.

    Arguments:
        grad_modes: whether switches of autograd are recorded
        decompositions: functions that run in operators' places, by overload
        fakes: the mode of the fake tensors that are the arguments

    Example:
        >>> tp.fx.experimental.recorder.Recorder.__name__
        'Recorder'
    """

    graph: Any
    takes_functions = False  # whether control flow is one node (control_flow.py)

    def __init__(self, grad_modes: bool = False, decompositions: Any = None, fakes: Any = None) -> None:
        self.graph = Graph()
        self.fakes: FakeTensorMode | None = fakes
        self.decompositions: dict[Any, Any] = dict(decompositions or {})
        self._declined: Any = None
        self.grad_mode = _C.is_grad_enabled() if grad_modes else None  # as the graph has it; None: not recorded
        self.constants: dict[str, Any] = {}
        self._kept: dict[int, tuple[Tensor, Node]] = {}
        self._seen: dict[tuple[Any, ...], int] = {}
        self._depends: set[int] = set()

    # ---- tensors ----

    def know(self, tensor: Tensor, node: Node, depends: bool) -> None:
        """From here on the tensor is what a node gives."""
        self._kept[id(tensor)] = tensor, node
        if isinstance(tensor, FakeTensor):
            node.meta["val"] = tensor.detach()  # whose shape stays when the tensor's is changed in place
        self._seen.setdefault(_where(tensor), id(tensor))
        if depends:
            self._depends.add(_tracer.memory(tensor))

    def depends(self, tensor: Tensor) -> bool:
        """Whether a value comes of the traced inputs."""
        return _tracer.memory(tensor) in self._depends

    def node_of(self, tensor: Tensor) -> Node:
        """The node of a tensor; a constant, if the graph has not made it."""
        known = self._kept.get(id(tensor)) or self._kept.get(self._seen.get(_where(tensor), 0))
        if known is None:
            return self._constant(tensor)
        return known[1]

    def _constant(self, value: Any) -> Node:
        kind = "param" if isinstance(value, Parameter) else "tensor" if isinstance(value, Tensor) else "object"
        name = f"_{kind}_constant{sum(c.startswith(f'_{kind}_') for c in self.constants)}"
        self.constants[name] = value
        node = self.graph.get_attr(name)
        if isinstance(value, Tensor):
            self.know(value, node, depends=False)
        return node

    def attribute(self, prefix: str, value: Any) -> Node:
        """The node of an attribute with a new name: the prefix and a number."""
        name = next(name for name in map(f"{prefix}_{{}}".format, itertools.count()) if name not in self.constants)
        self.constants[name] = value
        return self.graph.get_attr(name)

    def argument(self, value: Any) -> Any:
        """A call's argument as a node's.

        Returns: a node, or the value.
        """
        if isinstance(value, Tensor):
            return self.node_of(value)
        if isinstance(value, (list, tuple)):
            return [self.argument(v) for v in value]
        return value if is_written(value) else self._constant(value)

    # ---- calls: what csrc/python/tracer.c asks ----

    def enter(self, name: str, args: tuple[Any, ...]) -> Any:
        """A call begins: its name, nodes of its arguments, whether these depend on the inputs.

        Returns: what leave is given.
        """
        tensors = [leaf for leaf in tree_flatten(list(args))[0] if isinstance(leaf, Tensor)]
        op = overload(name)
        if op in self.decompositions and self._declined is not op:
            return self._in_its_place(op, args)
        self._declined = None
        if "data_dependent_output" in op.tags:
            for tensor in tensors:
                self.reads(tensor, "item()" if op._schema.endswith("-> Scalar") else name)
        self.follow_grad_mode(_C.is_grad_enabled())
        random = "nondeterministic_seeded" in op.tags
        nodes = [self.argument(a) for a in args]
        if self.fakes is not None and not any(isinstance(tensor, FakeTensor) for tensor in tensors):
            self._say_device(op, nodes)
        return op, nodes, args, random or any(map(self.depends, tensors))

    def _say_device(self, op: Any, nodes: list[Any]) -> None:
        """The device of a factory that a composite calls, or of a table that it sends: it sees Meta tensors where there
        are fake ones."""
        places = {row[0]: place for place, row in enumerate(parameters(op._own_name))}
        if "device" in places and "pin_memory" in places and nodes[places["pin_memory"]] is None:
            assert self.fakes is not None
            given = nodes[places["device"]]
            nodes[places["device"]] = given if given is None else self.fakes.said(given)

    def _in_its_place(self, op: Any, args: tuple[Any, ...]) -> Callable[[], Any]:
        """The call of a decomposition."""
        given, named = _passed(op, list(args))

        def run() -> Any:
            result = self.decompositions[op](*given, **named)
            self._declined = op if result is NotImplemented else None
            return result

        return run

    def leave(self, token: Any, results: list[Any]) -> None:
        """It has ended, with these results."""
        op, nodes, args, depends = token
        if not any(isinstance(leaf, Tensor) for leaf in tree_flatten(results)[0]) and "!" not in op._schema:
            return  # what it gives is a property, or a constant's value
        node = self._call(op, nodes)
        for (_, _, _, written, _, _), value in zip(parameters(op._own_name), args, strict=True):
            for tensor in value if isinstance(value, list) else [value]:
                if written and isinstance(tensor, Tensor) and depends:
                    self._depends.add(_tracer.memory(tensor))
        is_list = len(results) == 1 and isinstance(results[0], list)
        several = len(results) != 1 or is_list or "-> ((" in op._schema  # a tuple of one
        flat = results[0] if is_list else results
        for place, result in enumerate(flat):
            if isinstance(result, Tensor):
                one = self.graph.call_function(operator.getitem, (node, place)) if several else node
                self.know(result, one, depends)
        if several and flat and all(isinstance(result, FakeTensor) for result in flat):
            node.meta["val"] = (list if is_list else tuple)(result.detach() for result in flat)

    def _call(self, op: Any, nodes: list[Any]) -> Node:
        args, kwargs = _passed(op, nodes)
        node = self.graph.create_node("call_function", op, tuple(args), kwargs, op._opname.rpartition("::")[2])
        mark(node)
        return node

    def follow_grad_mode(self, enabled: bool) -> None:
        """Whether calls are recorded for backward from here on."""
        if self.grad_mode is not None and enabled != self.grad_mode:
            self.graph.call_function(_C._set_grad_enabled, (enabled,))
            self.grad_mode = enabled

    def happens(self, what: str) -> None:
        """The program does something that no call shows, like seeding a generator: it is not in the graph."""

    def skips_gradient(self, what: str) -> None:
        """A gradient of the program's own is not wanted, since the grad mode is off: what it is of is in the graph."""

    def reads(self, tensor: Tensor, what: str) -> None:
        """A value leaves the graph."""
        if self.depends(tensor):
            raise DataDependentError(
                f"make_fx: {what} asks for the values of a tensor that depends on the inputs, which is data-dependent "
                "control flow. A graph has no values: they would become constants of it. Compute with the tensor "
                "instead (where, masks), branch by tp.cond, or ask outside of what is recorded."
            )
