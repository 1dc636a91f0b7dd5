"""What the calls of a thread become: a graph of its operators.

The recorder stands under the dispatch key Tracer (csrc/python/tracer.c). It sees operators, not Python: loops are
unrolled, branches are the ones taken, and what Python computes from a tensor's values would be a constant, so to ask
for these is an error.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._package.sizes import sym_float, sym_max, sym_min, sym_sqrt
from tensorpy._package.symbols import COMPARISONS, OPERATIONS, Atom, Expr, SymBool, SymFloat, SymInt, number
from tensorpy._subclasses.fake_tensor import DataDependentOutputException, FakeTensor, FakeTensorMode
from tensorpy.fx.code import is_written
from tensorpy.fx.graph import Graph
from tensorpy.fx.node import Node, acts, overload
from tensorpy.fx.traceback import mark
from tensorpy.nn import Parameter
from tensorpy.utils._python_dispatch import no_dispatch
from tensorpy.utils._pytree import tree_flatten, tree_map, tree_unflatten

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


def elements_of(tensor: Tensor) -> tuple[Any, ...]:
    """What tensors share that are the same elements, seen alike."""
    return (
        _tracer.memory(tensor), Tensor.storage_offset(tensor), tuple(Tensor.size(tensor)), tuple(Tensor.stride(tensor)),
        tensor.dtype,
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
    checks_values = True  # whether checks that only raise (of distributions' arguments) are made: they read values

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
        self.env: Any = None if fakes is None else fakes.shape_env
        self._sources: dict[str, tuple[Node, int | None]] = {}  # symbols: of which node's dimension they are the size
        self._size_nodes: dict[Expr, Node] = {}
        if self.env is not None:
            self.keeps_whole = self._keeps_whole

    # ---- tensors ----

    def know(self, tensor: Tensor, node: Node, depends: bool) -> None:
        """From here on the tensor is what a node gives."""
        self._kept[id(tensor)] = tensor, node
        if isinstance(tensor, FakeTensor):
            node.meta["val"] = tensor.detach()  # whose shape stays when the tensor's is changed in place
            self._take_sizes(tensor, node)
        self._seen.setdefault(elements_of(tensor), id(tensor))
        if depends:
            self._depends.add(_tracer.memory(tensor))

    def depends(self, tensor: Tensor) -> bool:
        """Whether a value comes of the traced inputs."""
        return _tracer.memory(tensor) in self._depends

    def node_of(self, tensor: Tensor) -> Node:
        """The node of a tensor; a constant, if the graph has not made it."""
        known = self._kept.get(id(tensor)) or self._kept.get(self._seen.get(elements_of(tensor), 0))
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
        if isinstance(value, (SymInt, SymFloat)):
            return self.size_node(value.expr)
        if isinstance(value, SymBool):
            return self._condition(value)
        if self.env is not None and type(value) in (int, float) and (expr := self.env.read(value)) is not None:
            return value if type(value) is float and not expr.symbols() else self.size_node(expr)
        return value if is_written(value) else self._constant(value)

    # ---- sizes ----

    def _take_sizes(self, tensor: Tensor, node: Node) -> None:
        """Notes of which sizes of a tensor symbols are."""
        if self.env is None:
            return
        for dim, size in enumerate(Tensor.size(tensor)):
            expr = self.env.read(size)
            name = expr.symbol() if expr is not None else None
            if name is not None:
                self._sources.setdefault(name, (node, dim))

    def take_size(self, expr: Expr, node: Node) -> None:
        """An expression is what a node gives.

        Arguments:
            expr: the expression
            node: the node
        """
        if (name := expr.symbol()) is not None:
            self._sources[name] = (node, None)

    def size_node(self, expr: Expr) -> Any:
        """The node of an expression, and before it those of what it is made of.

        Arguments:
            expr: the expression

        Returns: a node; an int where no symbols are in it.
        """
        constant = None if expr.is_float else expr.constant()
        if constant is not None:
            return constant
        made = self._size_nodes.get(expr)
        if made is None:
            made = self._polynomial(expr)
            if isinstance(made, Node):
                made.meta["val"] = number(self.env, expr)
                self._size_nodes[expr] = made
        return made

    def _polynomial(self, expr: Expr) -> Any:
        total: Any = None
        for monomial, factor in sorted(expr.terms.items(), key=lambda item: (not item[0], str(item[0]))):
            product: Any = None
            for atom in monomial:
                value = self._atom(atom)
                product = value if product is None else self._operation("mul", product, value)
            if product is None or abs(factor) != 1:
                product = abs(factor) if product is None else self._operation("mul", product, abs(factor))
            if total is None:
                total = product if factor > 0 else self._operation("neg", product)
            else:
                total = self._operation("add" if factor > 0 else "sub", total, product)
        return total

    def _operation(self, op: str, *values: Any) -> Any:
        functions = {f.__name__.removeprefix("sym_"): f for f in (sym_max, sym_min, sym_sqrt, sym_float)}
        target: Any = functions.get(op) or {**OPERATIONS, **COMPARISONS}[op]
        if not any(isinstance(value, Node) for value in values):
            return target(*values)
        node = self.graph.create_node("call_function", target, values, {}, f"sym_{op}" if op in functions else op)
        node.meta["val"] = target(*(value.meta["val"] if isinstance(value, Node) else value for value in values))
        return node

    def _atom(self, atom: Atom) -> Any:
        if atom.op == "symbol":
            return self._symbol(atom)
        return self._operation(atom.op, *(self.size_node(a) if isinstance(a, Expr) else a for a in atom.args))

    def _symbol(self, atom: Atom) -> Any:
        (name,) = atom.args
        expr = Expr.of(atom)
        if expr in self._size_nodes:
            return self._size_nodes[expr]
        source = self._sources.get(name)
        if source is None:
            return self.env.specialise(expr)
        node, dim = source
        if dim is not None:
            after = node
            while after.next.op == "placeholder" or after.next.target is overload("sym_size.int"):
                after = after.next
            with self.graph.inserting_after(after):
                node = self.graph.create_node(
                    "call_function", overload("sym_size.int"), (node, dim), {}, "sym_size_int"
                )
            mark(node)
            node.meta["val"] = number(self.env, expr)
        self._size_nodes[expr] = node
        return node

    def _condition(self, value: SymBool) -> Any:
        if value.op in ("and", "or"):
            sides = self._condition(value.a), self._condition(value.b)
            return self.graph.call_function(operator.and_ if value.op == "and" else operator.or_, sides)
        return self._operation(value.op, self.size_node(value.a), self.size_node(value.b))

    def _as_size(self, value: Any) -> Any:
        """A number of an operator as the program sees it."""
        return self.env.size_of(value) if type(value) is int else value

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

    def _keeps_whole(self, name: str, args: tuple[Any, ...]) -> bool:
        """Whether a composite is one call: where its parts for the example are not those for the stand-ins, which the
        numbers that it computes of sizes may cause.

        Arguments:
            name: the operator
            args: its arguments

        Returns: bool.
        """
        whole = self._differs(overload(name), args, overload(name))
        if whole:
            self._declined = overload(name)
        return whole

    def _differs(self, op: Any, args: tuple[Any, ...], call: Callable[..., Any]) -> bool:
        """Whether a composite computes numbers of sizes that are for some sizes alone. Where these are no function's
        that could be recorded whole, the sizes become numbers."""
        before = _tracer.swap(None)
        try:
            leaves, spec = tree_flatten(list(args))
            assert self.fakes is not None
            leaves = [self.fakes._taken(op, leaf) for leaf in leaves]
            symbols = self.fakes._symbols(leaves)
            if not symbols:
                return False
            sizes = (self.env.hint_of, self.env.stand_in_of, self.env.other_of)
            example, stand_in, other = (_Trial(op, call, self.fakes, leaves, spec, of) for of in sizes)
            if example.calls is not None and stand_in.calls is None:
                self.fakes._unite(op, *tree_flatten(_passed(op, tree_unflatten(leaves, spec))))
                self.env.settle(symbols, f"{op} is for these sizes alone")
        finally:
            _tracer.swap(before)
        if example.calls is None:
            return False
        agree = other.calls is None or other.agrees(stand_in, self.env, sizes[2])
        if agree and example.agrees(stand_in, self.env, sizes[0]):
            return False
        if _C.is_grad_enabled() and any(isinstance(leaf, Tensor) and leaf.requires_grad for leaf in leaves):
            # what its parts keep for a gradient would be unknown: parts for all but small sizes, or for the example's
            if not agree or other.calls is None:
                self.env.settle(symbols, f"{op} computes numbers of them, and has a gradient")
            return False
        if not self.fakes.agree(str(op), stand_in.results, example.results, symbols, False):
            self.env.settle(symbols, f"{op} is for these sizes alone")
        return True

    def _say_device(self, op: Any, nodes: list[Any]) -> None:
        """The device of a factory that a composite calls, or of a table that it sends: it sees Meta tensors where there
        are fake ones."""
        assert self.fakes is not None
        places = {row[0]: place for place, row in enumerate(parameters(op._own_name))}
        if (
            "device" in places
            and "pin_memory" in places
            and (nodes[places["pin_memory"]] is None or self.fakes.is_inside)
        ):
            given = nodes[places["device"]]
            nodes[places["device"]] = given if given is None else self.fakes.said(given)

    def _scope(self, op: Any, args: list[Any], function: Any) -> Any:
        if self.fakes is None or not getattr(function, "is_derived", False):
            return nullcontext()
        said = [value for row, value in zip(parameters(op._own_name), args, strict=True) if row[0] == "device"]
        return self.fakes.inside_of(said[0] if said else None, tree_flatten(args)[0])

    def _is_made(self, value: Any) -> bool:
        """Whether a node of the graph gives a result, or it is a constant."""
        return not isinstance(value, Tensor) or id(value) in self._kept

    def _forget_since(self, last: Node | None) -> None:
        """Takes nodes out that nothing will use."""
        for node in reversed(self.graph.nodes):
            if node is last or node.op == "placeholder":
                break
            if not node.users and not (isinstance(node.target, _C.OpOverload) and acts(node.target)):
                self._size_nodes = {expr: made for expr, made in self._size_nodes.items() if made is not node}
                self.graph.erase_node(node)

    def _in_its_place(self, op: Any, args: tuple[Any, ...]) -> Callable[[], Any]:
        """The call of a decomposition."""
        values = list(args) if self.env is None else tree_map(self._as_size, list(args))
        if self.fakes is not None and not any(isinstance(leaf, FakeTensor) for leaf in tree_flatten(values)[0]):
            self._say_device(op, values)
        given, named = _passed(op, values)

        def run() -> Any:
            function = self.decompositions[op]
            if self.env is not None and getattr(function, "is_derived", False) and self._differs(op, args, function):
                self._declined = op
                return NotImplemented
            last = next(iter(reversed(self.graph.nodes)), None)
            with self._scope(op, values, function):
                result = function(*given, **named)
            if getattr(function, "is_derived", False) and not all(map(self._is_made, tree_flatten(result)[0])):
                self._forget_since(last)  # the kernel computes by itself: it has no parts
                result = NotImplemented
            self._declined = op if result is NotImplemented else None
            return result

        return run

    def leave(self, token: Any, results: list[Any]) -> None:
        """It has ended, with these results."""
        op, nodes, args, depends = token
        effect = acts(op) and (depends or "!" in op._schema)  # what refuses a constant has not done so
        if not effect and not any(isinstance(leaf, Tensor) for leaf in tree_flatten(results)[0]):
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


# ---- the parts of a composite ----


def _bare(fakes: Any, value: Any, value_of: Callable[[str], Any]) -> Any:
    """A tensor of Meta that stands for an argument."""
    made = fakes._with_sizes(value, value_of)
    if isinstance(value, Tensor) and value.requires_grad and made is not value:
        with no_dispatch():
            made.requires_grad_()
    return made


class _Trial:
    """What a composite calls, with which numbers, where its arguments have other sizes; `calls` is None where it
    fails."""

    def __init__(
        self,
        op: Any,
        call: Callable[..., Any],
        fakes: Any,
        leaves: list[Any],
        spec: Any,
        value_of: Callable[[str], Any],
    ) -> None:
        args = tree_unflatten([_bare(fakes, leaf, value_of) for leaf in leaves], spec)
        self.calls: list[tuple[str, list[Any]]] | None = []
        self.results: Any = None
        self.memory = {_tracer.memory(leaf) for leaf in tree_flatten(args)[0] if isinstance(leaf, Tensor)}
        given, named = _passed(op, args)
        before = _tracer.swap(self)
        try:
            with no_dispatch():
                self.results = call(*given, **named)
        except Exception:  # the call itself will say so
            self.calls = None
        finally:
            _tracer.swap(before)

    def enter(self, name: str, args: tuple[Any, ...]) -> Any:
        """A part begins."""
        leaves = tree_flatten(list(args))[0]
        foreign = any(isinstance(leaf, Tensor) and _tracer.memory(leaf) not in self.memory for leaf in leaves)
        assert self.calls is not None
        self.calls.append((name, ["a table", *leaves] if foreign else leaves))
        return name

    def leave(self, token: Any, results: list[Any]) -> None:
        """It has ended."""
        self.memory |= {_tracer.memory(leaf) for leaf in tree_flatten(results)[0] if isinstance(leaf, Tensor)}

    def reads(self, tensor: Tensor, what: str) -> None:
        """A value leaves the graph."""

    happens = reads

    def agrees(self, other: _Trial, env: Any, value_of: Callable[[str], Any]) -> bool:
        """Whether the calls are those of stand-ins, but for numbers that read as these."""
        if self.calls is None or other.calls is None or len(self.calls) != len(other.calls):
            return False
        for (name, ours), (second, theirs) in zip(self.calls, other.calls, strict=True):
            if name != second or len(ours) != len(theirs) or "a table" in ours[:1]:
                return False
            for a, b in zip(ours, theirs, strict=True):
                if type(a) is not type(b):
                    return False
                if type(a) in (int, float) and a != b:
                    expr = env.read(b)
                    if expr is None or not math.isclose(expr.evaluate(value_of), a, rel_tol=1e-12):
                        return False
        return True
