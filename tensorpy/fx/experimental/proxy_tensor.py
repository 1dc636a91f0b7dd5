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
from tensorpy._package.symbols import Expr, SymInt, number
from tensorpy._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from tensorpy.autograd import no_grad
from tensorpy.fx.experimental.control_flow import FunctionRecorder
from tensorpy.fx.experimental.recorder import DataDependentError, Recorder, _tracer  # noqa: F401
from tensorpy.fx.experimental.symbolic_shapes import Restart, ShapeEnv
from tensorpy.fx.graph import Graph
from tensorpy.fx.graph_module import GraphModule
from tensorpy.fx.interpreter import Interpreter
from tensorpy.utils._python_dispatch import _disable_current_modes
from tensorpy.utils._pytree import TreeSpec, tree_flatten, tree_map, tree_unflatten

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
        bound.pop(name, None)  # one value may be given twice
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


def _returned_type(f: Any) -> Any:
    """What a function says that it returns; nothing of one that takes any arguments, whose graph takes those given."""
    code = getattr(inspect.unwrap(f), "__code__", None)
    if code is None or code.co_flags & inspect.CO_VARARGS:
        return None
    return getattr(f, "__annotations__", {}).get("return")


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
        if isinstance(leaf, SymInt):
            given = graph.placeholder(name)
            given.target, given.meta["val"] = given.name, leaf
            recorder.take_size(leaf.expr, given)
        elif isinstance(leaf, Tensor):
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
    graph.output(written, type_expr=_returned_type(f))
    return GraphModule(recorder.constants, graph, getattr(f, "__name__", type(f).__name__))


class SizeChecks:
    """A hook of modules whose sizes are symbols: ValueError for sizes of which a guard does not hold, or for which an
    operator of the graph gives other sizes than what was read of the recorded ones.

    Arguments:
        env: the shape environment
        expected: the arguments' expressions, by `expressions_of`
        module: the module

    Example:
        >>> from tensorpy.fx.experimental.proxy_tensor import make_fx
        >>> make_fx(lambda x: x[:3] * 2, tracing_mode="symbolic")(tp.ones(8))(tp.ones(2))
        Traceback (most recent call last):
            ...
        ValueError: the graph was recorded for sizes of which slice_1.size()[0] is 3, not 2
    """

    def __init__(self, env: Any, expected: list[Any], module: GraphModule) -> None:
        self.env, self.code, self.expected = env, module.code, expected
        self.nodes = {
            node.name: [env.read(size) for size in Tensor.size(value)]
            for node in module.graph.nodes
            if isinstance(value := node.meta.get("val"), FakeTensor)
        }
        self.seen: set[tuple[tuple[str, int], ...]] = {tuple(sorted(env.var_to_val.items()))}

    def values(self, leaves: list[Any]) -> dict[str, Any]:
        """The symbols' numbers for arguments.

        Arguments:
            leaves: the arguments

        Returns: dict.

        Raises: ValueError for a size that is a number, and is another.
        """
        found: dict[str, Any] = {}
        pairs = []
        for place, (exprs, leaf) in enumerate(zip(self.expected, leaves, strict=False)):
            if isinstance(exprs, Expr):
                pairs.append((exprs, leaf, f"argument {place}"))
            elif exprs is not None and isinstance(leaf, Tensor):
                if len(exprs) != leaf.dim():
                    raise ValueError(
                        f"the graph was recorded for a tensor of {len(exprs)} dimensions, not {leaf.dim()}"
                    )
                pairs += [
                    (e, n, f"size {d} of argument {place}")
                    for d, (e, n) in enumerate(zip(exprs, leaf.shape, strict=True))
                ]
        for expr, value, _ in pairs:
            if expr is not None and (name := expr.symbol()) is not None:
                found.setdefault(name, value)
        for expr, value, what in pairs:
            if expr is not None and (wanted := expr.evaluate(found.__getitem__)) != value:
                raise ValueError(
                    f"the graph was recorded for sizes of which {what} is {self.env.described(expr)}, {wanted}, "
                    f"not {value}{self._reason(expr)}"
                )
        return found

    def _reason(self, expr: Expr) -> str:
        reasons = [r for name, r in self.env.reasons.items() if self.env.bound[name] == expr]
        return f": {reasons[0]}" if reasons else ""

    def __call__(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.check(module, args, kwargs, self.values(tree_flatten((args, kwargs))[0]))

    def check(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], found: dict[str, Any]) -> bool:
        """Whether the graph runs with these arguments, as far as sizes tell.

        Arguments:
            module: the module
            args: its positional arguments
            kwargs: its named arguments
            found: the symbols' numbers

        Returns: bool.

        Raises: ValueError where the graph is not for these sizes.
        """
        leaves = tree_flatten((args, kwargs))[0]
        self.env.check_sizes(found)
        key = tuple(sorted(found.items(), key=str))
        if key in self.seen or any(isinstance(leaf, FakeTensor) for leaf in leaves):
            return True
        if module.code == self.code and all(type(leaf) is not Tensor or not _special(leaf) for leaf in leaves):
            if not self._try(module, args, kwargs, found):
                return False
        self.seen.add(key)
        return True

    def _try(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], found: dict[str, Any]) -> bool:
        """Runs the graph on fake tensors of these sizes; whether no operator failed."""
        mode = FakeTensorMode(allow_non_fake_inputs=True)
        before = _tracer.swap(None)
        try:
            with _disable_current_modes():
                args, kwargs = tree_map(lambda t: _faked(mode, t), (args, kwargs))
                with mode, no_grad():
                    return _Sizes(module, self, found).run_given(args, kwargs)
        finally:
            _tracer.swap(before)


class _Sizes(Interpreter):
    """Compares the sizes of each node with what they were read as."""

    def __init__(self, module: Any, checks: SizeChecks, found: dict[str, Any]) -> None:
        super().__init__(module)
        self.checks, self.found = checks, found

    def run_given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Runs the graph; whether no operator failed, whose own error is left to the module."""
        with suppress(_Failed):
            self.run(*args, **kwargs)
            return True
        return False

    def run_node(self, n: Any) -> Any:
        """What a node gives."""
        try:
            result = super().run_node(n)
        except Exception as error:
            raise _Failed from error
        exprs = self.checks.nodes.get(n.name)
        if exprs is None or not isinstance(result, Tensor) or len(exprs) != result.dim():
            return result
        for dim, (expr, size) in enumerate(zip(exprs, Tensor.size(result), strict=True)):
            if expr is None:
                continue
            name = expr.symbol()
            wanted = self.found.setdefault(name, size) if name else expr.evaluate(self.found.__getitem__)
            if wanted != size:
                raise ValueError(
                    f"the graph was recorded for sizes of which {n.name}.size()[{dim}] is "
                    f"{self.checks.env.described(expr)}, not {size}"
                )
        return result


class _Failed(Exception):
    pass


def _faked(mode: FakeTensorMode, leaf: Any) -> Any:
    return mode.from_tensor(leaf) if isinstance(leaf, Tensor) else leaf


def _special(tensor: Tensor) -> bool:
    return tensor.layout is not _C.strided or bool(tensor.is_quantized)


def expressions_of(env: Any, leaves: list[Any]) -> list[Any]:
    """The sizes of fake arguments as expressions, and symbolic ints.

    Arguments:
        env: the shape environment
        leaves: the arguments

    Returns: a list.

    Example:
        >>> from tensorpy.fx.experimental.proxy_tensor import expressions_of
        >>> expressions_of(None, [3])
        [None]
    """
    return [
        [env.read(size) for size in Tensor.size(leaf)]
        if isinstance(leaf, Tensor)
        else leaf.expr
        if isinstance(leaf, SymInt)
        else None
        for leaf in leaves
    ]


def with_symbols(
    shapes: list[Any], call: Callable[[FakeTensorMode], Any], static_shapes: bool | None = None
) -> tuple[ShapeEnv, Any]:
    """What is called in a mode whose sizes are symbols, and again where one of them turns out to be a number.

    Arguments:
        shapes: of each tensor the sizes that become symbols
        call: is given the mode, and enters it
        static_shapes: whether sizes are numbers where from_tensor() is told nothing else

    Returns: the shape environment and the result.

    Example:
        >>> from tensorpy.fx.experimental.proxy_tensor import with_symbols
        >>> env, shape = with_symbols([(8,)], lambda mode: mode.from_tensor(tp.ones(8)).shape)
        >>> shape
        tensorpy.Size([s0])
    """
    env = ShapeEnv()
    env.expect(max(map(len, [*shapes, {size for shape in shapes for size in shape}])))
    env.restarts = True
    while True:
        env.clear()
        try:
            result = call(FakeTensorMode(allow_non_fake_inputs=True, shape_env=env, static_shapes=static_shapes))
        except Restart:
            continue
        env.restarts = False
        return env, result


def _symbolic(
    f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], pre_dispatch: bool, decompositions: Any
) -> GraphModule:
    """The graph of a call whose sizes are symbols."""
    leaves, spec = tree_flatten((args, kwargs))
    names = _input_names(f, args, kwargs)

    def recorded(mode: FakeTensorMode) -> tuple[list[Any], GraphModule]:
        fakes = [_symbolic_leaf(mode, leaf, name) for leaf, name in zip(leaves, names, strict=True)]
        expected = expressions_of(mode.shape_env, fakes)
        given, named = tree_unflatten(fakes, spec)
        with mode:
            return expected, _record(f, given, named, pre_dispatch, decompositions, mode, spec)

    shapes = [[size for size in leaf.shape if size > 1] for leaf in leaves if isinstance(leaf, Tensor)]
    env, (expected, module) = with_symbols(shapes, recorded)
    module.shape_env = env
    module.register_forward_pre_hook(SizeChecks(env, expected, module), with_kwargs=True)
    return module


def _symbolic_leaf(mode: FakeTensorMode, leaf: Any, name: str) -> Any:
    if isinstance(leaf, Tensor):
        return mode.from_tensor(leaf, source=name)
    if type(leaf) is int and leaf > 1:
        return number(mode.shape_env, mode.shape_env.create_symbol(leaf, name, key=("number", name)))
    return leaf


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
    they are in the nodes' `meta["val"]`. With 'symbolic' sizes of arguments, and ints among these, are symbols: a size
    that f asks for is a node, so is what it computes of it. Where f branches on one, the example's answer is a guard
    (`module.shape_env.guards`), and where f, or an operator, wants the number, f is called again with a size that is
    one. The module raises ValueError for sizes of which a guard does not hold.

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
        if tracing_mode == "symbolic" and not any(isinstance(leaf, FakeTensor) for leaf in leaves):
            return _symbolic(function, args, kwargs, pre_dispatch, decomposition_table)
        modes = (leaf.fake_mode for leaf in leaves if isinstance(leaf, FakeTensor))
        mode = next(modes, None) or FakeTensorMode(allow_non_fake_inputs=True)

        def faked(leaf: Any) -> Any:
            return mode.from_tensor(leaf) if isinstance(leaf, Tensor) else leaf

        fakes = tree_map(faked, args), tree_map(faked, kwargs)
        expected = None if mode.shape_env is None else expressions_of(mode.shape_env, tree_flatten(fakes)[0])
        with mode:
            module = _record(function, *fakes, pre_dispatch, decomposition_table, mode, spec)
        if expected is not None:
            module.shape_env = mode.shape_env
            checks = SizeChecks(mode.shape_env, expected, module)
            module.register_forward_pre_hook(checks, with_kwargs=True)
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
