"""Functions that a backend of the program's compiles: `compile(f, backend=my)`.

`my(graph_module, example_inputs)` is called with the operators that a call of f made (make_fx), and what it gives is
called with tensors from then on: for arguments of the same kind, while the surroundings of f are as they were
(surroundings.py). Its inputs are the tensors among the arguments, and then those that f has from elsewhere.

The call that is recorded is f's own. Where it cannot be a graph (it asks for a value, it changes Python's state, it
runs backward) it simply goes on, and its result is the call's: the function *follows* its program from then on. Where
it can, what it has written is put back, and random numbers too, and the backend's function is called the first time.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import logging
import os
import pickle
import random
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from tensorpy import _C, _compile
from tensorpy._C import Tensor
from tensorpy._package.symbols import SymBool, SymFloat, SymInt
from tensorpy._subclasses.fake_tensor import FakeTensorMode
from tensorpy.fx.experimental.control_flow import FunctionRecorder
from tensorpy.fx.experimental.proxy_tensor import with_symbols
from tensorpy.fx.experimental.recorder import DataDependentError, _tracer, elements_of
from tensorpy.fx.graph_module import GraphModule
from tensorpy.fx.node import Node, overload
from tensorpy.fx.passes.split_module import split_module
from tensorpy.nn import Module
from tensorpy.nn.modules import _hooks as hooks_of_all
from tensorpy.random import get_rng_state, set_rng_state
from tensorpy.utils._pytree import tree_flatten, tree_unflatten

from . import config
from .dynamic import MUST_VARY, Seen, Sizes, difference, marked, new_symbols, symbolic, without_sizes
from .exc import BackendCompilerFailed, FailOnRecompileLimitHit, RecompileError, Unsupported
from .printed import watched
from .surroundings import _PLAIN, Place, Surroundings
from .utils import counters

recompiles = logging.getLogger("tensorpy._dynamo.recompiles")  # _logging.set_logs(recompiles=True)

_SCALARS = (*_PLAIN, _C.dtype, _C.device, _C.layout, _C.memory_format)

# Whether a call that is no graph is an error, as with fullgraph=True: what error_on_graph_break says; None: nothing.
breaks_are_errors: ContextVar[bool | None] = ContextVar("breaks_are_errors", default=None)


# ---- the recording ----


@dataclass(frozen=True)
class GraphCompileReason:
    """Why a graph ends, or why there is none.

    Arguments:
        reason: in words
        user_stack: where the program was, as `traceback` gives it: the line that asked is the last
        graph_break: whether the rest of the function may be another graph

    Example:
        >>> reasons = tp._dynamo.explain(lambda x: x * 2 if x.sum() > 0 else x)(tp.ones(2)).break_reasons
        >>> reasons[0].reason
        'item() asks for the values of a tensor'
    """

    reason: str
    user_stack: list[traceback.FrameSummary] = field(default_factory=list)
    graph_break: bool = True

    @property
    def place(self) -> str:
        """The line that asked, in parentheses; nothing where it is not known."""
        return f" ({self.user_stack[-1].filename}:{self.user_stack[-1].lineno})" if self.user_stack else ""

    def __str__(self) -> str:
        return self.reason + self.place


def _stack_of_program() -> list[traceback.FrameSummary]:
    """The program's frames from the compiled function on, without those of the library between them."""
    frames = traceback.extract_stack()
    recorded = (i for i, frame in enumerate(frames) if (frame.filename, frame.name) == (__file__, "record"))
    first = max(recorded, default=0)
    return [frame for frame in frames[first:] if not frame.filename.startswith(_LIBRARY)]


_LIBRARY = os.path.dirname(os.path.dirname(__file__)) + os.sep
_NO_GRAPH = "compile(fullgraph=True): the function is no graph"
_STATISTICS = ("running_mean", "running_var")  # written by batch norms, whose schemas do not say it


_FAILED = "it goes on where an operator has failed"


def _tensors(values: Any) -> list[Tensor]:
    return [leaf for leaf in tree_flatten(list(values))[0] if isinstance(leaf, Tensor)]


def _version(tensor: Tensor) -> int | None:
    """How often a tensor was written; None for one of inference mode, which does not count."""
    return None if tensor.is_inference() else tensor._version


class GraphRecorder(FunctionRecorder):
    """Records a call until it turns out to be no graph; keeps what the call writes from outside.

    Arguments:
        surroundings: where tensors come from that are no arguments
        whole: whether control flow is a node, with a graph for each branch. Both branches run then, which a program
            that may go on without a graph would see
        fakes: the mode of the fake tensors that are the arguments, whose sizes are symbols

    Example:
        >>> tp._dynamo.graphs.GraphRecorder.__name__
        'GraphRecorder'
    """

    def __init__(self, surroundings: Surroundings, whole: bool = False, fakes: FakeTensorMode | None = None) -> None:
        super().__init__(grad_modes=True, fakes=fakes)
        self.surroundings, self.takes_functions = surroundings, whole
        self.inference, self.default_dtype = _C.is_inference_mode_enabled(), _C.get_default_dtype()
        self.why: GraphCompileReason | None = None  # this is no graph
        self.breaks: list[GraphCompileReason] = []  # calls of graph_break(),
        self.cuts: set[Node] = set()  # and the nodes before them
        self._first_mode = _C.is_grad_enabled()
        self.lifted: list[tuple[Place, Tensor]] = []
        # by memory from outside: a tensor, its version, a copy
        self.written: dict[int, tuple[Tensor, int | None, Any]] = {}
        self._made: set[int] = set()
        self._elements: dict[Node, Any] = {}  # of each node: which they are
        self._applies = False  # a node of control flow, whose gradient is a Function
        self._runs = False  # an operator, which has not ended yet

    def refuse(self, why: str) -> None:
        self.why = self.why or GraphCompileReason(why, _stack_of_program())
        self.takes_functions, self.checks_values = False, True

    def happens(self, what: str) -> None:
        if not self._applies:
            self.refuse(what)

    def control(self, op: Any, args: tuple[Any, ...]) -> Any:
        self._applies = True
        try:
            return super().control(op, args)
        except DataDependentError as error:
            raise Unsupported(f"{_NO_GRAPH}: {error}") from error
        finally:
            self._applies = False

    def inside(self, what: str) -> None:
        self.refuse(what)

    def cut(self, why: str) -> None:
        """The graph ends here, and another one begins, each in the grad mode in which the function is called."""
        self.breaks.append(GraphCompileReason(why, _stack_of_program()))
        self.follow_grad_mode(self._first_mode)
        last = next(iter(reversed(self.graph.nodes)), None)
        if last is not None:
            self.cuts.add(last)

    def know(self, tensor: Tensor, node: Node, depends: bool) -> None:
        super().know(tensor, node, depends)
        self._elements[node] = elements_of(tensor)

    def calls(self) -> list[Any]:
        """The graph's calls with their numbers and words, but for views of all elements as they are."""

        def said(value: Any) -> Any:
            return "a node" if isinstance(value, Node) else repr(value)

        def is_alias(node: Node) -> bool:
            elements = self._elements.get(node)
            same = elements is not None and node.args and elements == self._elements.get(node.args[0])
            return bool(same) and not node.target._schema.is_mutable

        calls = (node for node in self.graph.nodes if node.op.startswith("call_") and not is_alias(node))
        return [(node.target, *map(said, tree_flatten((node.args, node.kwargs))[0])) for node in calls]

    def depends(self, tensor: Tensor) -> bool:
        return super().depends(tensor) or id(tensor) in self.surroundings.tensors

    def reads(self, tensor: Tensor, what: str) -> None:
        if self.depends(tensor):
            self.refuse(f"{what} asks for the values of a tensor")

    def _constant(self, value: Any) -> Node:
        place = self.surroundings.tensors.get(id(value)) if isinstance(value, Tensor) else None
        if place is None:
            if isinstance(value, _C.Generator):
                self.refuse("a generator of random numbers is given")
            return super()._constant(value)
        before = next((n for n in self.graph.nodes if n.op != "placeholder"), None)
        with self.graph.inserting_before(before or self.graph._root):
            node = self.graph.placeholder(place.key if isinstance(place.key, str) else "outer")
            node.target = node.name
        self.know(value, node, depends=True)
        self.lifted.append((place, value))
        return node

    def enter(self, name: str, args: tuple[Any, ...]) -> Any:
        if self.why is None and _C._current_graph_task_id() != -1:
            self.refuse("backward runs inside")
        if _C.is_inference_mode_enabled() != self.inference:
            self.refuse("inference mode is switched")
        if _C.get_default_dtype() is not self.default_dtype:
            self.refuse("the default dtype is set")
        if any(self._is_own_leaf(t) for t in _tensors(args)):
            self.refuse("a tensor is made that requires grad")
        if self._runs:
            self.refuse(_FAILED)
        if self.why is not None:
            return None
        token = super().enter(name, args)
        outside = [t for t in _tensors(args) if _tracer.memory(t) not in self._made]
        if outside:
            self._keep_written(name, args)
        self._runs = True
        return token, [(t, _version(t)) for t in outside if _tracer.memory(t) not in self.written]

    def _is_own_leaf(self, tensor: Tensor) -> bool:
        """Whether gradients add up in a tensor that the call has made, which no operator shows."""
        return tensor.requires_grad and tensor.is_leaf and _tracer.memory(tensor) in self._made

    def leave(self, token: Any, results: list[Any]) -> None:
        self._runs = False
        if self.why is not None:
            return
        inner, outside = token
        if any(_version(t) != version for t, version in outside):
            self.refuse("a tensor from outside has changed")
        if any(t.layout is not _C.strided for t in _tensors(results)):
            self.refuse("a tensor of another layout is made")
            return
        super().leave(inner, results)
        given = [t if self.fakes is None else self.fakes.from_tensor(t) for t in _tensors(inner[2])]
        self._made |= set(map(_tracer.memory, _tensors(results))) - set(map(_tracer.memory, given))

    def _keep_written(self, name: str, args: tuple[Any, ...]) -> None:
        op = overload(name)
        wants_grad = _C.is_grad_enabled() and any(t.requires_grad for t in _tensors(args))
        for row, value in zip(_tracer.arguments(op._own_name), args, strict=True):
            if not row[3] and row[0] not in _STATISTICS:
                continue
            for tensor in _tensors([value]):
                if _tracer.memory(tensor) in self._made:
                    continue
                if (row[3] and wants_grad) or "inplace_view" in op.tags or not tensor.is_cpu:
                    self.refuse(f"{name} changes a tensor from outside")
                elif _tracer.memory(tensor) not in self.written:
                    copied = None if self.fakes is not None else tensor.untyped_storage().clone()
                    self.written[_tracer.memory(tensor)] = tensor, _version(tensor), copied

    def put_back(self) -> None:
        """Memory from outside as it was before the call, and its versions, which what is saved of it looks at."""
        for tensor, version, before in self.written.values():
            tensor.untyped_storage().copy_(before)
            if version is not None:
                _tracer.set_version(tensor, version)


# ---- a graph ----


def _kind(leaf: Any, first: dict[int, int], place: int) -> Any:
    if isinstance(leaf, Tensor):
        same = first.setdefault(id(leaf), place)
        about = leaf.dtype, leaf.shape, leaf.stride() if leaf.layout is _C.strided else leaf.layout, leaf.device
        return type(leaf), *about, leaf.requires_grad, same
    if isinstance(leaf, float):
        return float, leaf.hex()  # 0.0 is not -0.0
    return (type(leaf), leaf) if isinstance(leaf, _SCALARS) else (id(leaf),)


def _kinds(leaves: list[Any]) -> list[Any]:
    """What a graph depends on of the arguments."""
    first: dict[int, int] = {}
    return [_kind(leaf, first, place) for place, leaf in enumerate(leaves)]


def _autocasts(leaves: list[Any]) -> tuple[Any, ...]:
    """(device type, enabled, dtype, whether casts are kept) of the devices that a call has to do with."""
    types = {"cpu", *(leaf.device.type for leaf in leaves if isinstance(leaf, Tensor))}
    return tuple((one, *_C._autocast_get(one)) for one in sorted(types) if _C._autocast_available(one))


def _modes(leaves: list[Any]) -> tuple[Any, ...]:
    gradients = _C.is_grad_enabled(), _C.is_inference_mode_enabled()
    return *gradients, _C.get_default_dtype(), _C._determinism(), _autocasts(leaves)


@contextlib.contextmanager
def _casts_are_made(modes: tuple[Any, ...]) -> Iterator[None]:
    """Without autocast, in which a graph was recorded: its casts are calls of the graph."""
    before = [one for one in modes[-1] if one[1]]
    for device_type, _, dtype, keeps in before:
        _C._autocast_set(device_type, False, dtype, keeps)
    try:
        yield
    finally:
        for device_type, enabled, dtype, keeps in before:
            _C._autocast_set(device_type, enabled, dtype, keeps)


def _why_no_graph(leaf: Any) -> str | None:
    if isinstance(leaf, Tensor) and leaf.layout is not _C.strided:
        return f"a tensor of the layout {leaf.layout} is given"
    return None


def _other_random_numbers() -> Any:
    """Where the generators of Python and NumPy stand."""
    numpy = sys.modules.get("numpy.random")
    return random.getstate(), pickle.dumps(numpy.get_state(legacy=False)) if numpy else None


class Entry:
    """One call that was recorded: a graph and what the backend made of it, or why there is none."""

    function: Callable[..., Any]
    sizes: Sizes | None = None  # where some of the arguments' are symbols

    def __init__(
        self, key: tuple[Any, ...], leaves: list[Any], names: list[str], roots: list[Any], symbols: list[Any]
    ) -> None:
        self.key, self.names, self.symbols = key, names, symbols
        self.marks = [frozenset(marked(leaf, MUST_VARY)) for leaf in leaves]
        self.feeds: list[str | int] = []  # the graph's inputs among the arguments: a symbol, or an argument's number
        self.others = [leaf for leaf in leaves if not isinstance(leaf, (Tensor, *_SCALARS))]
        self.surroundings = Surroundings([*roots, *self.others, *hooks_of_all.CALLED])
        too_large = self.surroundings.is_too_large()
        words = "it sees too much" if too_large else next(filter(None, map(_why_no_graph, leaves)), None)
        self.why = GraphCompileReason(words) if words else None
        self.lifted: list[tuple[Place, Any]] = []
        self.breaks: list[GraphCompileReason] = []

    def fits(self, key: tuple[Any, ...], leaves: list[Any]) -> dict[str, int] | None:
        """What the symbols are in a call that it is for; None for other calls."""
        if self._without_symbols(key) != self._without_symbols(self.key) or not self._has_marks(leaves):
            return None
        if self.why is not None:
            return {}
        if self.surroundings.changed() or self._kinds_of_lifted() != [kind for _, kind in self.lifted]:
            return None
        try:
            return self.numbers(leaves)
        except ValueError:
            return None

    def why_not(self, key: tuple[Any, ...], leaves: list[Any]) -> str:
        """Why it does not fit a call."""
        if key[-1] != self.key[-1]:
            return "gradients, autocast or another mode are set otherwise"
        theirs, ours = self._without_symbols(key)[0], self._without_symbols(self.key)[0]
        for name, now, before in zip(self.names, theirs, ours, strict=False):
            if now != before:
                return difference(name, now, before)
        if changed := self.surroundings.changed():
            return f"{changed} is another one"
        try:
            self.numbers(leaves)
        except ValueError as error:
            return str(error)
        return "a mark, or a tensor from elsewhere, is another one"

    def _without_symbols(self, key: tuple[Any, ...]) -> tuple[Any, ...]:
        if self.sizes is None and self.why is None:
            return key
        kinds, *others = key
        return list(map(without_sizes, kinds, self.symbols)), *others

    def _has_marks(self, leaves: list[Any]) -> bool:
        """Whether no size is said to vary that was not when the graph was recorded."""
        return all(marks.issuperset(marked(leaf, MUST_VARY)) for marks, leaf in zip(self.marks, leaves, strict=True))

    def _kinds_of_lifted(self) -> list[Any]:
        return _kinds([place.read() for place, _ in self.lifted])

    def numbers(self, leaves: list[Any]) -> dict[str, int]:
        """What the symbols are in a call; ValueError where the graph is for other sizes."""
        if self.sizes is None:
            return {}
        found = self.sizes.of(leaves)
        with _casts_are_made(self.key[-1]):
            self.sizes.check(self.inputs(leaves, found), found)
        return found

    def inputs(self, leaves: list[Any], found: dict[str, int]) -> list[Any]:
        given = [found[feed] if isinstance(feed, str) else leaves[feed] for feed in self.feeds]
        return given + [place.read() for place, _ in self.lifted]

    def record(
        self,
        f: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        leaves: list[Any],
        whole: bool,
    ) -> tuple[Entry, Any]:
        """Calls f; the entry, one with symbols where there are any, and the result. `graph` is there afterwards, or
        `why` not."""
        recorder = GraphRecorder(self.surroundings, whole)
        self._take(recorder, leaves)
        state, others = get_rng_state(), _other_random_numbers()
        result = _recorded(recorder, f, args, kwargs)
        self.breaks = recorder.breaks
        if _other_random_numbers() != others:
            recorder.refuse("random numbers of Python or NumPy are drawn")
        self._finish(recorder, result, leaves)
        entry = self
        if self.why is None:
            recorder.put_back()
            entry = self._varied(f, leaves, whole, recorder.calls()) or self
            set_rng_state(state)
        return entry, result

    def _varied(self, f: Callable[..., Any], leaves: list[Any], whole: bool, calls: list[Any]) -> Entry | None:
        """The same call with symbols for sizes; None where the graph is for these sizes alone."""
        shapes = [list(symbols) for symbols in self.symbols if symbols is not None]
        if not shapes:
            return None
        other = copy.copy(self)

        def recorded(mode: FakeTensorMode) -> None:
            recorder = GraphRecorder(self.surroundings, whole, mode)
            fakes = [symbolic(mode, *one) for one in zip(leaves, self.names, self.symbols, strict=True)]
            other.sizes, other.feeds = Sizes(mode.shape_env, fakes, leaves), []
            other._take(recorder, fakes)
            args, kwargs = tree_unflatten(fakes, self.key[1])
            with mode:
                result = _recorded(recorder, f, args, kwargs)
                other._finish(recorder, result, fakes)

        try:
            with_symbols(shapes, recorded, static_shapes=True)
        except Exception as error:
            counters["static"][f"{type(error).__name__}: {error}"] += 1
            return None
        assert other.sizes is not None
        other.sizes.check_marks(zip(self.names, leaves, strict=True))
        if other.why is not None:
            counters["static"][str(other.why)] += 1
            return None
        other.sizes.keep(other.graph)
        return other if other._calls(calls, leaves, whole) else None

    def _calls(self, calls: list[Any], leaves: list[Any], whole: bool) -> bool:
        """Whether it calls for the recorded arguments what the recording without symbols called. It need not: a program
        may see a symbol where it looks for an int, and go another way."""
        assert self.sizes is not None
        try:
            inputs = self.inputs(leaves, self.numbers(leaves))
        except ValueError:
            return False
        recorder = GraphRecorder(self.surroundings, whole)
        for leaf in inputs:
            if isinstance(leaf, Tensor):
                recorder.know(leaf, recorder.graph.placeholder("given"), depends=True)
        with _casts_are_made(self.key[-1]):
            _recorded(recorder, self.sizes.module.forward, tuple(inputs), {})
        recorder.follow_grad_mode(_C.is_grad_enabled())
        recorder.put_back()
        return recorder.why is None and recorder.calls() == calls

    def _take(self, recorder: GraphRecorder, leaves: list[Any]) -> None:
        """The graph's inputs among the arguments: tensors, and before each the symbols that it brings."""
        known: set[str] = set()

        def placeholder(name: str, value: Any, feed: str | int) -> Node:
            node: Node = recorder.graph.placeholder(name)
            node.target = node.name
            self.feeds.append(feed)
            if isinstance(value, SymInt):
                node.meta["val"] = value
                recorder.take_size(value.expr, node)
            return node

        for place, (leaf, name) in enumerate(zip(leaves, self.names, strict=True)):
            for symbol in new_symbols(recorder.env, leaf, known):
                placeholder(str(symbol), symbol, str(symbol))
            if isinstance(leaf, SymInt):
                placeholder(name, leaf, place)
            elif isinstance(leaf, Tensor):
                recorder.know(leaf, placeholder(name, leaf, place), depends=True)

    def _finish(self, recorder: GraphRecorder, result: Any, leaves: list[Any]) -> None:
        if recorder._runs:
            recorder.refuse(_FAILED)
        recorder.follow_grad_mode(_C.is_grad_enabled())
        outputs, self.out_spec = tree_flatten(result)
        given = {id(leaf): place for place, leaf in enumerate(leaves) if isinstance(leaf, Tensor)}
        self.outputs: list[tuple[str, Any]] = []  # "made": of the graph's; "given": of the leaves'; "number": of
        # symbols; "plain": itself
        made: list[Node] = []
        for leaf in outputs:
            if isinstance(leaf, Tensor) and recorder._is_own_leaf(leaf):
                recorder.refuse("a tensor is made that requires grad")
            if isinstance(leaf, Tensor) and id(leaf) not in given:
                self.outputs.append(("made", len(made)))
                made.append(recorder.node_of(leaf))
            elif isinstance(leaf, Tensor):
                self.outputs.append(("given", given[id(leaf)]))
            elif isinstance(leaf, (SymInt, SymFloat)):
                self.outputs.append(("number", leaf.expr))
            elif isinstance(leaf, (*_SCALARS, SymBool)):
                self.outputs.append(("plain", bool(leaf) if isinstance(leaf, SymBool) else leaf))
            else:
                recorder.refuse(f"it returns an object of class {type(leaf).__name__}")
        changed = self.surroundings.changed(tensors=True)
        if changed:
            recorder.refuse(f"it changes {changed}")
        self.why = recorder.why
        if self.why is not None:
            return
        recorder.graph.output(tuple(made))
        self.lifted = [(place, kind) for (place, _), kind in zip(recorder.lifted, _kinds_of(recorder), strict=True)]
        self.graph = GraphModule(recorder.constants, recorder.graph)
        self.part_of = _parts(recorder)

    def call(self, leaves: list[Any], numbers: dict[str, int]) -> Any:
        with _casts_are_made(self.key[-1]):
            made = self.function(*self.inputs(leaves, numbers))
        made = [made] if isinstance(made, Tensor) else made
        find = {
            "made": made.__getitem__,
            "given": leaves.__getitem__,
            "number": lambda expr: expr.evaluate(numbers.__getitem__),
            "plain": lambda value: value,
        }
        return tree_unflatten([find[kind](which) for kind, which in self.outputs], self.out_spec)


def _recorded(recorder: GraphRecorder, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What f gives while a recorder sees its calls, and all casts among them: none is of before, and none stays."""
    _C.clear_autocast_cache()
    before, compiled = _tracer.set(recorder), _C._set_code_is_compiled(True)
    hooks = _C._set_saved_hooks(None)  # which see what the graph's calls save
    try:
        with watched(lambda: recorder.refuse("text is printed")):
            return f(*args, **kwargs)
    finally:
        _C._set_saved_hooks(hooks)
        _C.clear_autocast_cache()
        _tracer.set(before)
        _C._set_code_is_compiled(compiled)


def _parts(recorder: GraphRecorder) -> dict[Node, int]:
    """The number of the part that each call is in. A part has operators: what else there is belongs to one before."""
    parts: dict[Node, int] = {}
    part, works = 0, False
    for node in recorder.graph.nodes:
        is_call = node.op.startswith("call_")
        if is_call:
            parts[node] = part
            works |= node.target is not _C._set_grad_enabled and not _is_number(node)
        if node in recorder.cuts and works:
            part, works = part + 1, False
    return parts if works or not part else {node: min(at, part - 1) for node, at in parts.items()}


def _is_number(node: Node) -> bool:
    """Whether it computes a size."""
    return isinstance(node.meta.get("val"), (SymInt, SymFloat, SymBool))


class _Part(Module):
    """A part of a graph, which is compiled when it is called first.

    Arguments:
        part: its graph
        build: what the backend makes of that and its inputs

    Example:
        >>> tp._dynamo.graphs._Part.__name__
        '_Part'
    """

    def __init__(self, part: Any, build: Callable[[GraphModule, list[Any]], Callable[..., Any]]) -> None:
        super().__init__()
        self.part, self._build = part, build
        self._built: Any = None

    def forward(self, *inputs: Any) -> Any:
        if self._built is None:
            self._built = self._build(self.part, list(inputs))
        return self._built(*inputs)


def _kinds_of(recorder: GraphRecorder) -> list[Any]:
    return _kinds([tensor for _, tensor in recorder.lifted])


def _names_of_leaves(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """A name for each leaf of the arguments: its parameter's, with a number where that holds several."""
    owner = getattr(f, "__self__", None)
    try:
        bound = inspect.signature(owner.forward if isinstance(owner, Module) else f).bind(*args).arguments
        flat = {id(value): name for name, value in bound.items()}
    except (TypeError, ValueError):
        flat = {}
    names = []
    for i, (name, value) in enumerate([*((None, a) for a in args), *kwargs.items()]):
        stem = name or flat.get(id(value), f"arg{i}")
        count = len(tree_flatten(value)[0])
        names += [stem] if count == 1 else [f"{stem}_{k}" for k in range(count)]
    return names


# ---- a function ----


class GraphFunction:
    """A function of which a backend compiles graphs, one for each kind of arguments.

    Arguments:
        function: of tensors
        backend: called with a GraphModule and its inputs, and `options` by name; gives a function of these inputs
        follow: the same function, compiled by following
        fullgraph: whether a call that is no graph is an error
        options: what the backend is given by name
        dynamic: whether sizes are symbols; None: those that differ

    Example:
        >>> def backend(graph, inputs):
        ...     print(graph.code.strip().splitlines()[0])
        ...     return graph.forward
        >>> tp.compile(lambda x: x * 2, backend=backend)(tp.ones(2))
        def forward(self, x):
        tensor([2., 2.])
    """

    def __init__(
        self,
        function: Callable[..., Any],
        backend: Callable[..., Any],
        follow: Callable[..., Any],
        fullgraph: bool,
        options: dict[str, Any],
        dynamic: bool | None = None,
    ) -> None:
        self.seen = Seen(dynamic)
        self.function, self.backend, self.follow = function, backend, follow
        self.fullgraph, self.options = fullgraph, options
        self.entries: list[Entry] = []
        self.is_new = True  # no stance has left a call of it alone
        self.generation = _generation

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _C._is_watched() or config.disable or _C._vmap_levels():  # whose batches a graph does not know
            return self.function(*args, **kwargs)
        if self.generation != _generation:
            self.entries, self.generation, self.seen = [], _generation, Seen(self.seen.dynamic)
        leaves, spec = tree_flatten((args, kwargs))
        key = _kinds(leaves), spec, _modes(leaves)
        for i, entry in enumerate(self.entries):
            if (numbers := entry.fits(key, leaves)) is not None:
                if i:
                    self.entries.insert(0, self.entries.pop(i))
                return entry.call(leaves, numbers) if entry.why is None else self.follow(*args, **kwargs)
        if _compile.stance in ("eager_on_recompile", "eager_then_compile") and self._is_left(_compile.stance):
            return self.function(*args, **kwargs)
        reason = self.entries[0].why_not(key, leaves) if self.entries else "there is none"
        self._refuse_another(reason)
        if self.entries:
            recompiles.info("another graph of %s: %s", self._name(), reason)
        if len(self.entries) >= config.recompile_limit:
            return self._give_up(reason, args, kwargs)
        names = _names_of_leaves(self.function, args, kwargs)
        entry = Entry(key, leaves, names, [self.function], self.seen.symbols(zip(names, leaves, strict=True)))
        whole = self.fullgraph or bool(breaks_are_errors.get())
        result = None
        if entry.why is None:
            entry, result = entry.record(self.function, args, kwargs, leaves, whole)
        if whole:
            why = entry.why or (next(iter(entry.breaks), None) if self.fullgraph else None)
            if why is not None:
                raise Unsupported(f"{_NO_GRAPH}: {why}")
        self.entries.insert(0, entry)
        counters["frames"]["total"] += 1
        if entry.why is not None:
            counters["graph_break"][entry.why.reason] += 1
            return result if hasattr(entry, "outputs") else self.follow(*args, **kwargs)
        numbers = entry.numbers(leaves)
        self._compile(entry, entry.inputs(leaves, numbers))
        return entry.call(leaves, numbers)

    def _is_left(self, stance: str) -> bool:
        """Whether a stance has a call that fits no graph run as it is written."""
        first, self.is_new = self.is_new, False
        return first or stance == "eager_on_recompile"

    def _name(self) -> str:
        return getattr(self.function, "__qualname__", type(self.function).__name__)

    def _refuse_another(self, why: str) -> None:
        """An error where no more graphs are to be made."""
        if _compile.stance == "fail_on_recompile":
            said = f"{self._name()} needs a graph that is not there, and the stance is 'fail_on_recompile'"
            raise RuntimeError(f"{said}: {why}")
        if config.error_on_recompile and self.entries:
            raise RecompileError(f"{self._name()} needs another graph, and error_on_recompile is set: {why}")

    def _compile(self, entry: Entry, inputs: list[Any]) -> None:
        count = len(set(entry.part_of.values()))
        if not count:
            entry.function = entry.graph.forward  # there is nothing to compile
            return
        if count > 1:
            whole = split_module(entry.graph, None, entry.part_of.__getitem__, None, True, True, tuple_return=True)
            for name, part in list(whole.named_children()):
                setattr(whole, name, _Part(part, functools.partial(self._build, entry)))
            entry.function = whole
            return
        with _casts_are_made(entry.key[-1]):
            examples = entry.sizes.examples_of(inputs) if entry.sizes else inputs
            entry.function = self._build(entry, entry.graph, examples)

    def _build(self, entry: Entry, graph: GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        """What the backend makes of a graph; the graph's own calls where it raises and errors are to be suppressed."""
        try:
            made: Callable[..., Any] = self.backend(graph, inputs, **self.options)
            if not callable(made):
                raise AssertionError("the backend did not return a callable")
        except Exception as error:
            if not config.suppress_errors:
                if entry in self.entries:
                    self.entries.remove(entry)
                raise BackendCompilerFailed(self.backend, error) from error
            counters["graph_break"][f"its backend raised {type(error).__name__}: {error}"] += 1
            return graph.forward
        counters["frames"]["ok"] += 1
        counters["stats"]["unique_graphs"] += 1
        return made

    def _give_up(self, why: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        graphs = f"{self._name()} has {len(self.entries)} graphs, as many as recompile_limit allows"
        said = f"{graphs}; the last one does not fit: {why}"
        if self.fullgraph or config.fail_on_recompile_limit_hit:
            raise FailOnRecompileLimitHit(said)
        warnings.warn(f"{said}. Other calls run as they are written", stacklevel=3)
        return self.follow(*args, **kwargs)


_generation = 0


def reset() -> None:
    """All functions forget their graphs."""
    global _generation
    _generation += 1


__all__ = ["GraphCompileReason", "GraphFunction", "GraphRecorder", "reset"]
