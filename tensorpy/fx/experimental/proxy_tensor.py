"""make_fx: calls a function, and records every operator below it as a graph.

The recorder is in recorder.py; control flow as nodes (tensorpy._higher_order_ops) in control_flow.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from tensorpy.fx.experimental.control_flow import FunctionRecorder
from tensorpy.fx.experimental.recorder import DataDependentError, Recorder, _tracer  # noqa: F401
from tensorpy.fx.graph import Graph
from tensorpy.fx.graph_module import GraphModule
from tensorpy.fx.interpreter import Interpreter
from tensorpy.utils._pytree import TreeSpec, tree_flatten, tree_map

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
    recorder = FunctionRecorder(grad_modes, decompositions, fakes)
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
        self.new_graph: Graph = new_graph
        self.decomposition_table: Any = decomposition_table or {}

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
