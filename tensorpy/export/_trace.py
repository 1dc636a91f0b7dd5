"""The call of a program becomes a graph whose inputs are parameters, buffers, constants and arguments."""

from __future__ import annotations

import builtins
import inspect
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tensorpy import ops
from tensorpy._C import Tensor
from tensorpy._dynamo.exc import UserError, UserErrorType
from tensorpy._package.symbols import Expr, SymInt
from tensorpy._subclasses.fake_tensor import DataDependentOutputException, FakeTensor, FakeTensorMode
from tensorpy.compiler import _as_exported
from tensorpy.export.dynamic_shapes import Dim, _Derived, _Hint, by_leaf, one_level
from tensorpy.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)
from tensorpy.func import functionalize
from tensorpy.fx._sources import NotedSources
from tensorpy.fx.experimental.control_flow import FunctionRecorder
from tensorpy.fx.experimental.recorder import _tracer
from tensorpy.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode, Restart, ShapeEnv
from tensorpy.fx.interpreter import Interpreter
from tensorpy.fx.node import Node, overload
from tensorpy.fx.traceback import preserve_node_meta
from tensorpy.nn.utils.stateless import _reparametrize_module
from tensorpy.utils._pytree import tree_flatten, tree_is_leaf, tree_unflatten


@dataclass(frozen=True)
class ValueRanges:
    """Between which numbers a size lies.

    Arguments:
        lower: the least
        upper: the largest; math.inf for any

    Example:
        >>> from tensorpy.export._trace import ValueRanges
        >>> ValueRanges(2, 64)
        VR[2, 64]
    """

    lower: int
    upper: float

    def __repr__(self) -> str:
        return f"VR[{self.lower}, {'int_oo' if self.upper == math.inf else self.upper}]"


@dataclass
class Lifted:
    """A tensor of the module that is an input of the graph.

    Arguments:
        name: the input's name
        target: the module's
        kind: what it is
        value: the tensor
        persistent: whether a buffer is in the state_dict

    Example:
        >>> from tensorpy.export._trace import Lifted
        >>> Lifted.__name__
        'Lifted'
    """

    name: str
    target: str
    kind: InputKind
    value: Tensor
    persistent: bool | None = None


@dataclass
class Size:
    """A size of an argument, as it was said.

    Arguments:
        leaf: the argument's number
        dim: the dimension
        said: a Dim, a hint, or None for a number
        source: what it is called
        expr: what it is

    Example:
        >>> from tensorpy.export._trace import Size
        >>> Size(0, 1, None, "x.size()[1]", None).source
        'x.size()[1]'
    """

    leaf: int
    dim: int
    said: Any
    source: str
    expr: Any


@dataclass
class Traced:
    """What a call has become.

    Arguments:
        graph: the graph
        env: the shape environment
        in_spec: how (args, kwargs) are nested
        out_spec: how the result is
        argument_names: the arguments' names
        leaf_names: the inputs' names, one for each leaf of the arguments
        sizes: the arguments' sizes
        values: the arguments that are no tensors, by leaf
        state: parameters and persistent buffers by name
        constants: other tensors by name
        example_inputs: (args, kwargs)
        module_names: the names of the module's modules
        attributes: graphs of functions that control flow takes, by name
        module_aliases: further names that modules have, with the first one of each

    Example:
        >>> from tensorpy.export._trace import Traced
        >>> Traced.__name__
        'Traced'
    """

    graph: Any
    env: Any
    in_spec: Any
    out_spec: Any
    argument_names: list[str]
    leaf_names: list[str]
    sizes: list[Size]
    values: dict[int, Any]
    state: dict[str, Any]
    constants: dict[str, Any]
    example_inputs: Any
    module_names: list[str] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)
    module_aliases: dict[str, str] = field(default_factory=dict)

    def ranges(self) -> dict[Any, ValueRanges]:
        """Between which numbers sizes lie that vary, by symbol.

        Returns: a dict.
        """
        found: dict[Any, ValueRanges] = {}
        for size in self.sizes:
            name = size.expr.symbol()
            if name is not None:
                symbol = self.env.symbols[name]
                found.setdefault(size.expr, ValueRanges(int(symbol.low), symbol.high))
        return found

    def check(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Whether the graph is for these arguments.

        Arguments:
            args: the positional ones
            kwargs: the named ones

        Raises: ValueError for others; AssertionError for sizes, and values, for which it is not.
        """
        leaves = self.leaves_of(args, kwargs)
        for place, value in self.values.items():
            if leaves[place] != value or type(leaves[place]) is not type(value):
                raise AssertionError(f"Guard failed: {self.leaf_names[place]} == {value!r}")
        found: dict[str, int] = {}
        for size in self.sizes:
            if not isinstance(leaves[size.leaf], Tensor):
                raise AssertionError(f"Guard failed: {self.leaf_names[size.leaf]} is a tensor")
            if leaves[size.leaf].dim() <= size.dim:
                raise AssertionError(f"Guard failed: {self.leaf_names[size.leaf]} has more than {size.dim} dimensions")
            if (name := size.expr.symbol()) is not None:
                found.setdefault(name, leaves[size.leaf].shape[size.dim])
        for size in self.sizes:
            actual = leaves[size.leaf].shape[size.dim]
            wanted = size.expr.evaluate(found.__getitem__) if size.expr.symbols() <= found.keys() else actual
            if wanted != actual:
                text = self.env.described(size.expr)
                raise AssertionError(f"Guard failed: {size.source} == {text}")
            if (name := size.expr.symbol()) is not None:
                self._check_range(size, name, actual)
        for guard in self.env.guards:
            if guard.condition.symbols() <= found.keys() and not guard.condition.evaluate(found.__getitem__):
                raise AssertionError(f"Guard failed: {self.env.described(guard.condition)}")

    def _check_range(self, size: Size, name: str, actual: int) -> None:
        symbol = self.env.symbols[name]
        if symbol.low > 2 and actual < symbol.low:
            raise AssertionError(f"Guard failed: {size.source} >= {int(symbol.low)}")
        if actual > symbol.high:
            raise AssertionError(f"Guard failed: {size.source} <= {int(symbol.high)}")

    def leaves_of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The arguments' leaves.

        Arguments:
            args: the positional ones
            kwargs: the named ones

        Returns: a list.

        Raises: ValueError where they are nested in another way than the example's.
        """
        leaves, spec = tree_flatten((args, kwargs))
        if spec != self.in_spec:
            raise ValueError(f"the program was exported for arguments like {self.in_spec}, not {spec}")
        return leaves


# ---- names ----


def _identifier(text: str) -> str:
    return re.sub(r"\W+", "_", text).strip("_") or "arg"


def _named(forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments by their parameters' names, in the order in which they are given."""
    found: dict[str, Any] = {}
    bound = list(inspect.signature(forward).parameters.values())
    positional = [p for p in bound if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((p.name for p in bound if p.kind is p.VAR_POSITIONAL), "args")
    for place, value in enumerate(args[: len(positional)]):
        found[positional[place].name] = value
    if len(args) > len(positional):
        found[rest] = args[len(positional) :]
    return {**found, **kwargs}


def _leaf_names(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaf_names(f"{name}_{_identifier(str(key))}", item)
    elif isinstance(value, (tuple, list)):
        for place, item in enumerate(value):
            yield from _leaf_names(f"{name}_{place}", item)
    elif not tree_is_leaf(value):
        for part, item in one_level(value).items():
            yield from _leaf_names(f"{name}_{_identifier(part)}", item)
    else:
        yield name


def _lifted(module: Any) -> list[Lifted]:
    """Parameters and buffers, each tensor once."""
    found: dict[int, Lifted] = {}
    for name, value in module.named_parameters():
        found[id(value)] = Lifted(f"p_{_identifier(name)}", name, InputKind.PARAMETER, value)
    state = module.state_dict(keep_vars=True)
    for name, value in module.named_buffers():
        found.setdefault(id(value), Lifted(f"b_{_identifier(name)}", name, InputKind.BUFFER, value, name in state))
    return list(found.values())


def _all_names(module: Any) -> dict[str, Any]:
    pairs = [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]
    return dict(pairs)


def _attributes(module: Any) -> dict[int, str]:
    """The names of tensors that are attributes, and neither parameters nor buffers."""
    found: dict[int, str] = {}
    for prefix, part in module.named_modules():
        for name, value in vars(part).items():
            if isinstance(value, Tensor):
                found.setdefault(id(value), f"{prefix}.{name}" if prefix else name)
    return found


def _aliases(module: Any) -> dict[str, str]:
    """The further names of modules that have several; not of those in them, which follow."""
    first: dict[int, str] = {}
    found: dict[str, str] = {}
    for name, part in module.named_modules(remove_duplicate=False):
        if first.setdefault(id(part), name) != name and name.rpartition(".")[0] not in found:
            found[name] = first[id(part)]
    return {name: of for name, of in found.items() if not any(name.startswith(f"{other}.") for other in found)}


# ---- sizes ----


def _violated(names: str, why: str) -> UserError:
    return UserError(UserErrorType.CONSTRAINT_VIOLATION, f"Constraints violated ({names})! {why}")


def _option(said: Any, size: int, leaf: int, dim: int, source: str) -> dict[str, Any] | None:
    """What ShapeEnv.create_symbol takes for a size."""
    if said is None or type(said) is int or (isinstance(said, _Hint) and said.word == "STATIC"):
        return None
    if isinstance(said, _Hint):
        if size < 2:
            if said.word == "DYNAMIC":
                raise _violated(source, f"it was said to vary, and is {size} in the example, which is a number")
            return None
        least, high, key = said.min, said.max, f"size {dim} of {leaf}"
    elif isinstance(said, _Derived):
        least, high, key = None, None, f"derived {said.__name__}"
    else:
        least, high, key = said.min, said.max, f"dim {said.__name__}"
    low, most = max(2, least or 0), math.inf if high is None else high
    if not low <= size <= most and not (size < 2 and isinstance(said, (Dim, _Derived))):
        raise _violated(source, f"{size} is not in the range [{low}, {most}]")
    if size < 2:
        raise _violated(source, f"{said!r} was said to vary, and is {size} in the example, which is a number")
    return {"key": key, "low": low, "high": most}


def _check_alike(sizes: list[tuple[Any, int, str]]) -> None:
    """One Dim is one number in the example, and what follows from it follows."""
    known: dict[str, tuple[int, str]] = {}
    for said, size, source in sizes:
        if isinstance(said, _Derived):
            name, rest = said.root.__name__, size - said.offset
            if rest % said.factor:
                raise _violated(source, f"{size} is no {said.__name__}")
            size = rest // said.factor
        elif isinstance(said, Dim):
            name = said.__name__
        else:
            continue
        before = known.setdefault(name, (size, source))
        if before[0] != size:
            raise _violated(name, f"it is {before[0]} in {before[1]} and {size} in {source}")


class _Shapes:
    """What was said of sizes, and what they are in a shape environment."""

    def __init__(self, leaves: list[Any], names: list[str], said: list[dict[int, Any] | None]) -> None:
        self.leaves, self.names = leaves, names
        self.said = [{} if s is None else s for s in said]
        every = [
            (self.said[i].get(d), leaf.shape[d], f"{names[i]}.size()[{d}]")
            for i, leaf in enumerate(leaves)
            if isinstance(leaf, Tensor)
            for d in range(leaf.dim())
        ]
        _check_alike(every)

    def context(self, leaf: int) -> dict[int, Any]:
        """What FakeTensorMode.from_tensor takes for an argument."""
        shape = self.leaves[leaf].shape
        name = self.names[leaf]
        return {
            d: option
            for d in range(len(shape))
            if (option := _option(self.said[leaf].get(d), shape[d], leaf, d, f"{name}.size()[{d}]")) is not None
        }

    def sizes(self, env: Any, fakes: list[Any]) -> list[Size]:
        """The sizes, as the environment has them."""
        return [
            Size(i, d, self.said[i].get(d), f"{self.names[i]}.size()[{d}]", env.read(size))
            for i, fake in enumerate(fakes)
            if isinstance(fake, Tensor)
            for d, size in enumerate(Tensor.size(fake))
        ]

    def unite(self, env: Any, sizes: list[Size]) -> None:
        """Sizes that follow from a Dim do so in the environment: a restart, the first time."""
        roots = {s.said.__name__: s.expr for s in sizes if isinstance(s.said, Dim)}
        found = {}
        for size in sizes:
            if not isinstance(size.said, _Derived) or (name := size.expr.symbol()) is None:
                continue
            root = roots.get(size.said.root.__name__)
            if root is None:
                raise UserError(
                    UserErrorType.INVALID_INPUT,
                    f"export(dynamic_shapes=): {size.source} follows from {size.said.root!r}, which is no size itself",
                )
            wanted = root * Expr.of(size.said.factor) + Expr.of(size.said.offset)
            if wanted != size.expr:
                found[name] = wanted
        if found:
            env.unite(**found)

    def check(self, env: Any, sizes: list[Size]) -> None:
        """UserError for sizes that were said to vary and do not, or not as far as was said."""
        named: dict[str, str] = {}
        for size in sizes:
            wants = isinstance(size.said, Dim) or (isinstance(size.said, _Hint) and size.said.word == "DYNAMIC")
            if not wants:
                continue
            name = size.said.__name__ if isinstance(size.said, Dim) else size.source
            symbol = size.expr.symbol()
            if symbol is None:
                why = next((env.reasons[n] for n, s in env._sources.items() if s == size.source), "")
                raise _violated(
                    name,
                    f"{size.source} was said to vary, and the program is for {env.described(size.expr)} alone"
                    f"{f': {why}' if why else ''}. Suggested fixes: {name} = {env.described(size.expr)}",
                )
            if isinstance(size.said, Dim) and named.setdefault(symbol, name) != name:
                raise _violated(
                    f"{named[symbol]}, {name}",
                    f"the values of both are the same in the program. Suggested fixes: {name} = {named[symbol]}",
                )
            named.setdefault(symbol, name)
        for guard in env.guards:
            of = sorted({named[s] for s in guard.condition.symbols() & named.keys()})
            if of and env.known(guard.condition) is not True:
                raise _violated(
                    ", ".join(of),
                    f"not all sizes that were said satisfy {env.described(guard.condition)}, which the program asks at "
                    f"{guard.line or 'an operator'}",
                )


# ---- the call ----


class _Recorder(FunctionRecorder):
    """Records composites as they are called."""

    def _keeps_whole(self, name: str, args: tuple[Any, ...]) -> bool:
        self._declined = overload(name)
        return True


def _line_of(error: BaseException) -> str:
    """The program's line that an error came from."""
    found, at = "", error.__traceback__
    while at is not None:
        if str(at.tb_frame.f_globals.get("__name__", "")).partition(".")[0] != "tensorpy":
            found = f"{at.tb_frame.f_code.co_filename}:{at.tb_lineno}"
        at = at.tb_next
    return found


def _note_all(graph: Any) -> None:
    """Parts of results, and sizes, belong to the module of the node before them."""
    stack: Any = None
    for node in graph.nodes:
        if node.op == "call_function" or (node.op == "get_attr" and stack):
            stack = node.meta.setdefault("nn_module_stack", dict(stack or {}))


def _call(module: Any, fakes: dict[str, Any], args: Any, kwargs: Any, mode: Any, sources: NotedSources) -> Any:
    """The program's result; a buffer that it puts another tensor in is written."""
    with mode, _reparametrize_module(module, fakes), preserve_node_meta(), sources, _as_exported():
        result = module(*args, **kwargs)
        for name, fake in fakes.items():
            *above, last = name.split(".")
            owner = module.get_submodule(".".join(above))
            now = getattr(owner, last)
            if now is not fake:
                fake.copy_(now)
                setattr(owner, last, fake)
    return result


def _lift_constants(recorder: Any, module: Any, first: Any, lifted: list[Lifted]) -> None:
    """Tensors that the program has from elsewhere become inputs, before its own."""
    names, graph, count = _attributes(module), recorder.graph, 0
    for node in [n for n in graph.nodes if n.op == "get_attr"]:
        value = recorder.constants.get(node.target)
        if not isinstance(value, Tensor):
            continue
        target = names.get(id(value))
        if target is None:
            target, count = f"lifted_tensor_{count}", count + 1
        known = next((each for each in lifted if each.value is value), None)
        if known is None:
            known = Lifted(f"c_{_identifier(target)}", target, InputKind.CONSTANT_TENSOR, value)
            lifted.append(known)
            with graph.inserting_before(first or next(n for n in graph.nodes if n.op != "placeholder")):
                made = graph.placeholder(known.name)
            made.target = made.name
            made.meta["val"] = recorder.fakes.from_tensor(value, static_shapes=True)
            known.name = made.name
        else:
            made = next(n for n in graph.nodes if n.name == known.name)
        node.replace_all_uses_with(made)
        graph.erase_node(node)
        del recorder.constants[node.target]


def trace(
    module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any, strict: bool = False
) -> tuple[Traced, ExportGraphSignature]:
    """The graph of a module's call.

    Arguments:
        module: the module
        args: its positional arguments
        kwargs: its named ones
        shapes: what is said of sizes
        strict: whether nodes have `source_fn_stack`

    Returns: (Traced, ExportGraphSignature).

    Raises: UserError where sizes do not vary as was said; GuardOnDataDependentSymNode for a branch on a value.

    Example:
        >>> from tensorpy.export._trace import trace
        >>> traced, signature = trace(nn.ReLU(), (tp.ones(2),), {}, None)
        >>> [node.op for node in traced.graph.nodes]
        ['placeholder', 'call_function', 'output']
    """
    given = _named(module.forward, args, kwargs)
    leaves, in_spec = tree_flatten((args, kwargs))
    names = [_identifier(n) for name, value in given.items() for n in _leaf_names(name, value)]
    said = _Shapes(leaves, names, by_leaf(shapes, given))
    env = ShapeEnv(duck_shape=False)
    env.restarts = True
    while True:
        env.clear()
        try:
            return _trace_once(module, leaves, in_spec, list(given), names, said, env, strict)
        except Restart:
            continue
        except DataDependentOutputException as error:
            line = _line_of(error)
            raise GuardOnDataDependentSymNode(
                f"the program goes one way or the other by a value that depends on its inputs, at {line or 'a line'}: "
                f"{error}. cond(), where() and the like are operators"
            ) from error


def _trace_once(
    module: Any,
    leaves: list[Any],
    in_spec: Any,
    given: list[str],
    names: list[str],
    said: _Shapes,
    env: Any,
    strict: bool,
) -> tuple[Traced, ExportGraphSignature]:
    mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=env)
    recorder = _Recorder(False, None, mode)
    graph, lifted = recorder.graph, _lifted(module)
    for each in lifted:
        each.name = _take(recorder, each.name, mode.from_tensor(each.value, static_shapes=True))
    fakes: list[Any] = []
    inputs = []
    for place, (leaf, name) in enumerate(zip(leaves, names, strict=True)):
        if isinstance(leaf, Tensor):
            leaf = mode.from_tensor(leaf, source=name, symbolic_context=said.context(place))
        fakes.append(leaf)
        inputs.append(_take(recorder, name, leaf))
    first = next((n for n in graph.nodes if inputs and n.name == inputs[0]), None)
    sizes = said.sizes(env, fakes)
    said.unite(env, sizes)
    args, kwargs = tree_unflatten(fakes, in_spec)
    known = {name: mode.from_tensor(value) for name, value in _all_names(module).items()}
    before = _tracer.set(recorder)
    try:
        result = _call(module, known, args, kwargs, mode, NotedSources(module, strict))
    finally:
        _tracer.set(before)
    outputs, out_spec = tree_flatten(result)
    written = [recorder.argument(leaf) for leaf in outputs]
    _lift_constants(recorder, module, first, lifted)
    graph.output(tuple(written))
    said.check(env, sizes)
    env.restarts = False
    specs = [InputSpec(e.kind, TensorArgument(e.name), e.target, e.persistent) for e in lifted]
    for name, leaf in zip(inputs, leaves, strict=True):
        arg = TensorArgument(name) if isinstance(leaf, Tensor) else ConstantArgument(name, leaf)
        specs.append(InputSpec(InputKind.USER_INPUT, arg, None))
    order = [n.name for n in graph.nodes if n.op == "placeholder"]
    specs.sort(key=lambda spec: order.index(spec.arg.name))
    ends = [OutputSpec(OutputKind.USER_OUTPUT, argument_of(value), None) for value in written]
    kept = module.state_dict(keep_vars=True)
    state = {name: value for name, value in _all_names(module).items() if name in kept}
    constants = {e.target: e.value for e in lifted if e.target not in state}
    values = {i: leaf for i, leaf in enumerate(leaves) if not isinstance(leaf, Tensor)}
    modules = [name for name, _ in module.named_modules() if name]
    example = tree_unflatten(leaves, in_spec)
    _note_all(graph)
    traced = Traced(
        graph, env, in_spec, out_spec, given, inputs, sizes, values, state, constants, example, modules,
        dict(recorder.constants), _aliases(module),
    )  # fmt: skip
    return traced, ExportGraphSignature(specs, ends)


def _take(recorder: Any, name: str, leaf: Any) -> str:
    """A placeholder; its name."""
    node = recorder.graph.placeholder(name)
    if hasattr(builtins, name) and all(other.name != name for other in recorder.graph.nodes):
        node.name = name  # which hides nothing that a graph's code uses
    node.target = node.name
    if isinstance(leaf, Tensor):
        recorder.know(leaf, node, depends=True)
    else:
        node.meta["val"] = leaf
    return str(node.name)


def argument_of(value: Any) -> Any:
    """What an output of a graph is.

    Arguments:
        value: a node, or a value

    Returns: TensorArgument, SymIntArgument or ConstantArgument.

    Example:
        >>> from tensorpy.export._trace import argument_of
        >>> argument_of(3)
        ConstantArgument(name='', value=3)
    """
    if not isinstance(value, Node):
        return ConstantArgument("", value)
    return SymIntArgument(value.name) if isinstance(value.meta.get("val"), SymInt) else TensorArgument(value.name)


# ---- without writes ----


class _Functional(FunctionRecorder):
    """Keeps the batch norm that gives running statistics as it is: it is made of the one that writes them."""

    def _keeps_whole(self, name: str, args: tuple[Any, ...]) -> bool:
        if overload(name) is not ops.aten._native_batch_norm_legit_functional.default:
            return super()._keeps_whole(name, args)
        self._declined = overload(name)
        return True


def _with_statistics(
    input: Tensor, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: Any, eps: Any
) -> Any:
    """The batch norm whose schema does not say that it writes running statistics, from the one that gives them."""
    if not training or running_mean is None or running_var is None:
        return NotImplemented
    norm = ops.aten._native_batch_norm_legit_functional.default
    *results, mean, var = norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
    running_mean.copy_(mean)
    running_var.copy_(var)
    return tuple(results)


def _alike(a: Any, b: Any) -> bool:
    return isinstance(a, Tensor) and isinstance(b, Tensor) and a.dtype == b.dtype and str(a.shape) == str(b.shape)


def _ends(graph: Any) -> list[tuple[str, Any]]:
    """The inputs' names that are written at the end, and the new values' nodes; the copies go. One that is made of a
    clone is the value that it gets, or the operator copy()."""
    written = []
    for node in [n for n in graph.nodes if n.target is ops.aten.copy_.default]:
        target, value = node.args[:2]
        if target.op == "placeholder":
            written.append((target.name, value))
        elif not _alike(target.meta.get("val"), getattr(value, "meta", {}).get("val")):
            with graph.inserting_before(node):
                made = graph.call_function(ops.aten.copy.default, (target, value))
            made.meta, value = dict(node.meta), made
        node.replace_all_uses_with(value)
        written = [(name, value if new is node else new) for name, new in written]
        graph.erase_node(node)
    return written


def functional(program: Any, table: dict[Any, Any]) -> tuple[Traced, list[tuple[str, Any]]]:
    """The program's graph with other operators and without writes.

    Arguments:
        program: an ExportedProgram
        table: functions that run in operators' places, by overload

    Returns: the graph, and the names of inputs that were written with the nodes of their new values, which are its
    first outputs.

    Example:
        >>> from tensorpy.export._trace import functional
        >>> program = tp.export.export(nn.ReLU(), (tp.ones(2),))
        >>> functional(program, {})[1]
        []
    """
    old: Traced = program._traced
    env = old.env
    nodes = [n for n in old.graph.nodes if n.op == "placeholder"]
    values = [n.meta.get("val") for n in nodes]
    mode = next((v.fake_mode for v in values if isinstance(v, FakeTensor)), FakeTensorMode(shape_env=env))
    table = {ops.aten.native_batch_norm.default: _with_statistics, **table}
    recorder = _Functional(False, table, mode)
    given = [v.detach() if isinstance(v, Tensor) else v for v in values]
    for node, value in zip(nodes, given, strict=True):
        _take(recorder, node.name, value)
    module = program.graph_module
    before = _tracer.set(recorder)
    try:
        with mode, preserve_node_meta():
            result = functionalize(lambda *inputs: Interpreter(module).run(*inputs))(*given)
    finally:
        _tracer.set(before)
    graph = recorder.graph
    written = _ends(graph)
    own = [recorder.argument(leaf) for leaf in tree_flatten(result)[0]]
    by_copy = dict(written)
    own = [by_copy.get(getattr(leaf, "name", ""), leaf) for leaf in own]
    graph.output((*(value for _, value in written), *own))
    graph.eliminate_dead_code()
    _note_all(graph)
    made = Traced(
        graph, env, old.in_spec, old.out_spec, old.argument_names, old.leaf_names, old.sizes, old.values, old.state,
        old.constants, old.example_inputs, old.module_names, dict(recorder.constants), old.module_aliases,
    )  # fmt: skip
    return made, written
