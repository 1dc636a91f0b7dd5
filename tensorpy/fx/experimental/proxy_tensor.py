"""make_fx: calls a function, and records every operator below it as a graph.

The recorder stands under the dispatch key Tracer (csrc/python/tracer.c). It sees operators, not Python: loops are
unrolled, branches are the ones taken, and what Python computes from a tensor's values would be a constant, so to ask
for these is an error.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._subclasses.fake_tensor import DataDependentOutputException, FakeTensor, FakeTensorMode
from tensorpy.fx.code import is_written
from tensorpy.fx.graph import Graph
from tensorpy.fx.graph_module import GraphModule
from tensorpy.fx.interpreter import Interpreter
from tensorpy.fx.node import Node, overload
from tensorpy.fx.traceback import mark
from tensorpy.nn import Parameter
from tensorpy.utils._pytree import TreeSpec, tree_flatten, tree_map

_tracer: Any = _C._tracer


class DataDependentError(DataDependentOutputException):
    """A function asked for the value of a tensor that depends on its inputs."""


@cache
def _parameters(name: str) -> list[tuple[str, str, bool, bool, bool, Any]]:
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
    parameters = _parameters(op._own_name)
    positional = [not row[2] for row in parameters]
    kept = [not (row[4] and _is_default(value, row[5])) for row, value in zip(parameters, values, strict=True)]
    for i, (name, value) in enumerate(zip((row[0] for row in parameters), values, strict=True)):
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
        >>> tp.fx.experimental.proxy_tensor.Recorder.__name__
        'Recorder'
    """

    graph: Any

    def __init__(self, grad_modes: bool = False, decompositions: Any = None, fakes: Any = None) -> None:
        self.graph = Graph()
        self.fakes: FakeTensorMode | None = fakes
        self.decompositions = dict(decompositions or {})
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
        places = {row[0]: place for place, row in enumerate(_parameters(op._own_name))}
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
        for (_, _, _, written, _, _), value in zip(_parameters(op._own_name), args, strict=True):
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

    def reads(self, tensor: Tensor, what: str) -> None:
        """A value leaves the graph."""
        if self.depends(tensor):
            raise DataDependentError(
                f"make_fx: {what} asks for the values of a tensor that depends on the inputs, which is data-dependent "
                "control flow. A graph has no values: they would become constants of it. Compute with the tensor "
                "instead (where, masks), or ask outside of what is recorded."
            )


# ---- make_fx ----


def _input_names(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """A name for each leaf: the parameter's, with a number."""
    bound: dict[str, Any] = {}
    with suppress(TypeError, ValueError):
        bound = dict(inspect.signature(f).bind(*args, **kwargs).arguments)
    flat = [*args, *kwargs.values()]
    names = []
    for i, value in enumerate(flat):
        name = next((n for n, v in bound.items() if v is value), f"arg{i}")
        count = len(tree_flatten(value)[0])
        names += [f"{name}_{k}" for k in range(1, count + 1)]
    return names


def _is_plain(spec: TreeSpec) -> bool:
    """Positional leaves only."""
    args, kwargs = spec.children_specs
    return not kwargs.children_specs and all(child.is_leaf() for child in args.children_specs)


def _as_written(result: Any, leaf: Callable[[Any], Any]) -> Any:
    """A result of tuples, lists and dictionaries, which a graph's code has as they are; NotImplemented for others."""
    if isinstance(result, tuple) and (type(result) is tuple or hasattr(result, "n_sequence_fields")):
        parts = [_as_written(item, leaf) for item in result]
        return NotImplemented if any(p is NotImplemented for p in parts) else tuple(parts)
    if type(result) is list:
        parts = [_as_written(item, leaf) for item in result]
        return NotImplemented if any(p is NotImplemented for p in parts) else parts
    return leaf(result) if tree_flatten(result)[1].is_leaf() else NotImplemented


def _record(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    grad_modes: bool,
    decompositions: Any = None,
    fakes: FakeTensorMode | None = None,
    spec: TreeSpec | None = None,
) -> GraphModule:
    recorder = Recorder(grad_modes, decompositions, fakes)
    graph = recorder.graph
    leaves, own_spec = tree_flatten((args, kwargs))
    spec = spec or own_spec
    for i, (leaf, name) in enumerate(zip(leaves, _input_names(f, args, kwargs), strict=True)):
        if isinstance(leaf, Tensor):
            given = graph.placeholder(name)
            given.target = given.name  # in the code a parameter's name must not be that of something else there
            recorder.know(leaf, given, depends=True)
        else:
            graph.static_inputs[i] = leaf
    if graph.static_inputs or not _is_plain(spec):
        graph.in_spec = spec
    before = _tracer.set(recorder)
    try:
        result = f(*args, **kwargs)
    finally:
        _tracer.set(before)
    recorder.follow_grad_mode(_C.is_grad_enabled())
    written = _as_written(result, recorder.argument) if graph.in_spec is None else NotImplemented
    if written is NotImplemented:
        outputs, graph.out_spec = tree_flatten(result)
        written = [recorder.argument(leaf) if not isinstance(leaf, (list, tuple)) else leaf for leaf in outputs]
        if graph.out_spec.is_leaf():
            graph.out_spec, written = None, written[0]
    graph.output(written)
    return GraphModule(recorder.constants, graph, getattr(f, "__name__", type(f).__name__))


class _SameSizes:
    """A hook of modules: RuntimeError where a tensor has not the sizes of the recorded one, which are in the graph."""

    def __init__(self, leaves: list[Any]) -> None:
        self.sizes = [tuple(leaf.shape) if isinstance(leaf, Tensor) else None for leaf in leaves]

    def __call__(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        given = tree_flatten((args, kwargs))[0]
        for size, leaf in zip(self.sizes, given, strict=False):
            if size is not None and isinstance(leaf, Tensor) and tuple(leaf.shape) != size:
                raise ValueError(
                    f"the graph was recorded for sizes {size}, which are a part of it, not for {tuple(leaf.shape)}"
                )


def make_fx(
    f: Callable[..., Any],
    decomposition_table: Any = None,
    tracing_mode: str = "real",
    _allow_non_fake_inputs: bool = False,
    *,
    pre_dispatch: bool = False,
) -> Callable[..., GraphModule]:
    """`make_fx(f)(*args)` calls f with these arguments and gives the graph of the operators that it called.

    Composite operators are their parts; calls of backward and grad inside f are the operators that they called. The
    graph takes other tensors than the recorded ones, nested alike; what is no tensor among the arguments is a part of
    it. Tensors that f has from elsewhere are its constants. With `pre_dispatch` the graph switches grad modes where f
    does (no_grad, and a backward without create_graph), so that a whole training step runs again; without, a replay
    records all of it for backward where its arguments require grad.

    With the modes 'fake' and 'symbolic' nothing is computed: f gets fake tensors for its arguments, which are left as
    they are in the nodes' `meta["val"]`. Sizes are numbers in these modes too, so the module of 'symbolic' takes the
    sizes that it was recorded with, and raises ValueError for others.

    Arguments:
        f: the function, or a GraphModule
        decomposition_table: functions that run in operators' places, by overload
        tracing_mode: 'real', 'fake' or 'symbolic'

    Returns: a function that gives a GraphModule.

    Raises: AssertionError for an unknown tracing_mode.

    Example:
        >>> from tensorpy.fx.experimental.proxy_tensor import make_fx
        >>> module = make_fx(lambda x: x * 2)(tp.ones(2))
        >>> module(tp.tensor([5.0]))
        tensor([10.])
    """
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise AssertionError(f"make_fx: tracing_mode is 'real', 'fake' or 'symbolic', not {tracing_mode!r}")

    def wrapped(*args: Any, **kwargs: Any) -> GraphModule:
        function = f.forward if isinstance(f, GraphModule) else f
        if tracing_mode == "real":
            return _record(function, args, kwargs, pre_dispatch, decomposition_table)
        leaves, spec = tree_flatten((args, kwargs))
        modes = (leaf.fake_mode for leaf in leaves if isinstance(leaf, FakeTensor))
        mode = next(modes, None) or FakeTensorMode(allow_non_fake_inputs=True)

        def faked(leaf: Any) -> Any:
            return mode.from_tensor(leaf) if isinstance(leaf, Tensor) else leaf

        fakes = tree_map(faked, args), tree_map(faked, kwargs)
        with mode:
            module = _record(function, *fakes, pre_dispatch, decomposition_table, mode, spec)
        if tracing_mode == "symbolic":
            module.register_forward_pre_hook(_SameSizes(leaves), with_kwargs=True)
        return module

    return wrapped


class DecompositionInterpreter(Interpreter):
    """An interpreter that also writes a graph in which functions stand in operators' places: `run(*args)`.

    Arguments:
        module: the module
        new_graph: the graph, an empty one
        decomposition_table: the functions, by overload

    Example:
        >>> from tensorpy.fx.experimental.proxy_tensor import DecompositionInterpreter, make_fx
        >>> module, graph = make_fx(tp.nn.functional.silu)(tp.ones(2)), tp.fx.Graph()
        >>> table = {tp.ops.aten.silu.default: lambda x: x * x.sigmoid()}
        >>> result = DecompositionInterpreter(module, graph, table).run(tp.ones(2))
        >>> [node.name for node in graph.nodes]
        ['arg0_1', 'sigmoid', 'mul', 'output']
    """

    def __init__(self, module: Any, new_graph: Graph, decomposition_table: Any = None, **options: Any) -> None:
        super().__init__(module, **options)
        self.new_graph, self.decomposition_table = new_graph, decomposition_table or {}

    def run(self, *args: Any, **options: Any) -> Any:
        """What the module gives; writes the graph.

        Arguments:
            args: the module's arguments

        Returns: the result.
        """
        recorded = make_fx(super().run, self.decomposition_table)(*args, **options)
        for name, value in vars(recorded).items():
            if isinstance(value, Tensor):
                setattr(self.module, name, value)
        copied = self.new_graph.graph_copy(recorded.graph, {})
        self.new_graph.output(copied)
        return super().run(*args, **options)


def get_isolated_graphmodule(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    tracing_mode: str = "real",
    decomposition_table: Any = None,
) -> GraphModule:
    """The graph of a call, recorded by itself, also where another recording is under way.

    Arguments:
        func: the function
        args: its positional arguments
        kwargs: its named arguments
        tracing_mode: 'real', 'fake' or 'symbolic'
        decomposition_table: functions that run in operators' places, by overload

    Returns: a GraphModule.

    Example:
        >>> from tensorpy.fx.experimental.proxy_tensor import get_isolated_graphmodule
        >>> get_isolated_graphmodule(tp.sin, (tp.zeros(1),), {})(tp.zeros(1))
        tensor([0.])
    """
    before = _tracer.set(None)
    try:
        return make_fx(func, decomposition_table, tracing_mode)(*args, **kwargs)
    finally:
        _tracer.set(before)


def get_proxy_mode() -> None:
    """The mode that traces symbolically: there is none.

    Example:
        >>> tp.fx.experimental.proxy_tensor.get_proxy_mode() is None
        True
    """
