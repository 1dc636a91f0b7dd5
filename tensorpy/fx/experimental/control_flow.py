"""Control flow while make_fx records: a call is one node, and the operator's functions are graphs beside it."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._compile import UncapturedHigherOrderOpError
from tensorpy._subclasses.fake_tensor import FakeTensor
from tensorpy.autograd import Function, no_grad
from tensorpy.fx.experimental.recorder import Recorder, _tracer, parameters
from tensorpy.fx.graph_module import GraphModule
from tensorpy.fx.node import Node, overload
from tensorpy.fx.traceback import mark
from tensorpy.utils._pytree import tree_flatten, tree_map

_layer: Any = _C._functionalize  # that of func.functionalize: recorders see what its stand-ins stand for


def _tensors(value: Any) -> list[Tensor]:
    return [leaf for leaf in tree_flatten(value)[0] if isinstance(leaf, Tensor)]


def _value(value: Any) -> Any:
    return _layer.value(value) if isinstance(value, Tensor) and _layer.is_of(value, 0) else value


class FunctionRecorder(Recorder):
    """A recorder to which functions that operators take are graphs."""

    takes_functions = True
    checks_values = False

    def control(self, op: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """A call of control flow becomes one node, and its functions graphs: attributes of the graph's module.

        Arguments:
            op: the operator, of tensorpy.ops.higher_order
            args: its arguments

        Returns: the results.
        """
        return Control(self, op, args).run()

    def inside(self, what: str) -> None:
        """What Python does in a function that becomes a graph, and no operator shows."""


class _Part(FunctionRecorder):
    """What a function becomes: a graph of its own, whose inputs are the tensors that the operator gives it and, after
    them, those that the functions of the call have from elsewhere (`lifted`, which grows)."""

    def __init__(self, parent: Recorder, given: list[Tensor], lifted: list[Tensor]) -> None:
        super().__init__(False, parent.decompositions, parent.fakes)
        self.parent, self.given, self.lifted = parent, given, lifted
        self.inputs: list[Node] = []
        self.outside: set[int] = set()
        self.made: set[int] = set()
        self.take_rest()

    def take_rest(self) -> None:
        """Placeholders for the inputs that have none yet."""
        for tensor in [*self.given, *self.lifted][len(self.inputs) :]:
            first = next((node for node in self.graph.nodes if node.op != "placeholder"), self.graph._root)
            with self.graph.inserting_before(first):
                node = self.graph.placeholder(f"arg{len(self.inputs)}_1")
            node.target = node.name
            self.inputs.append(node)
            self.outside.add(_tracer.memory(tensor))
            self.know(tensor, node, depends=True)

    def depends(self, tensor: Tensor) -> bool:
        return super().depends(tensor) or self.parent.depends(tensor)

    def happens(self, what: str) -> None:
        self.inside(what)

    def skips_gradient(self, what: str) -> None:
        self.inside(what)  # the mode is off while it is recorded, and may be on when the graph runs

    def inside(self, what: str) -> None:
        if isinstance(self.parent, FunctionRecorder):
            self.parent.inside(what)

    def _constant(self, value: Any) -> Node:
        if not isinstance(value, Tensor):
            return super()._constant(value)
        self.lifted.append(value)
        self.take_rest()
        return self.inputs[-1]

    def enter(self, name: str, args: tuple[Any, ...]) -> Any:
        for row, value in zip(parameters(overload(name)._own_name), args, strict=True):
            if row[3] and any(_tracer.memory(tensor) not in self.made for tensor in _tensors(value)):
                raise UncapturedHigherOrderOpError(
                    f"a function of control flow writes to a tensor from outside of it ({name}), which a graph of its "
                    "own cannot do: give the new value as a result"
                )
        return super().enter(name, args)

    def leave(self, token: Any, results: list[Any]) -> None:
        super().leave(token, results)
        if isinstance(token, tuple):
            taken = set(map(_tracer.memory, _tensors(list(token[2])))) - self.made
            self.made |= set(map(_tracer.memory, _tensors(results))) - taken

    def finish(self, made: list[Any], gives: Any) -> GraphModule:
        """The graph, when the later functions have lifted what they need."""
        self.take_rest()
        nodes = [self.node_of(tensor) for tensor in made]
        self.graph.output(nodes[0] if gives is None else gives(nodes))
        return GraphModule(self.constants, self.graph)


class Control:
    """One call while a recorder listens. Each function runs once, on the tensors that the operator gives it; the
    results are those of the operator's own run on the graphs, or fake ones.

    Arguments:
        recorder: who listens
        op: the operator
        args: its arguments
    """

    def __init__(self, recorder: Recorder, op: Any, args: tuple[Any, ...]) -> None:
        self.recorder: Recorder = recorder
        self.op: Any = op
        self.lead: Any
        self.functions: Any
        self.groups: Any
        self.lead, self.functions, self.groups = op.split(args)
        self.lifted: list[Tensor] = []

    def run(self) -> tuple[Tensor, ...]:
        """Writes the node.

        Returns: the results.
        """
        before = _tracer.swap(None)
        try:
            with no_grad():
                results = self._record()
            self._tell(results)
        finally:
            _tracer.swap(before)
        inputs = [*_tensors(self.groups), *self.lifted]
        if any(_layer.is_of(tensor, 0) for tensor in inputs):
            results = [_layer.wrap(result) for result in results]
        if _C.is_grad_enabled() and any(tensor.requires_grad for tensor in inputs):
            return tuple(_Differentiated.apply(self, results, *inputs))
        return tuple(results)

    def extended(self, lifted: list[Any]) -> tuple[Any, ...]:
        """The tensors after the functions, and behind the last of them those that were lifted."""
        *first, last = self.groups
        return *first, type(last)([*last, *lifted])

    # ---- the functions ----

    def _record(self) -> list[Tensor]:
        given = list(self.op.inputs(*self.lead, *self.functions, *self.groups))
        pairs = [self._part(function, given) for function in self.functions]
        made = [results for _, results in pairs]
        self.op.alike((*self.lead, *self.functions, *self.groups), made)
        made = [[_value(result) for result in results] for results in made]
        self.graphs: list[Any] = [
            part.finish(results, gives) for (part, _), results, gives in zip(pairs, made, self.op.gives, strict=True)
        ]
        args = tree_map(_value, (*self.lead, *self.graphs, *self.extended(self.lifted)))
        if self.op.like is not None and any(isinstance(leaf, FakeTensor) for leaf in _tensors([args, made])):
            return made[self.op.like]
        return list(self.op.run(*args))

    def _part(self, function: Callable[..., Any], given: list[Tensor]) -> tuple[_Part, list[Tensor]]:
        inner = [_value(tensor) for tensor in given]
        stand_ins = [new if new is old else _layer.wrap(new) for new, old in zip(inner, given, strict=True)]
        part = _Part(self.recorder, inner, self.lifted)
        _tracer.swap(part)
        try:
            results = function(*stand_ins)
        finally:
            _tracer.swap(None)
        results = list(results) if isinstance(results, (list, tuple)) else [results]
        name = self.op.opname
        if not all(isinstance(result, Tensor) for result in results):
            raise UncapturedHigherOrderOpError(f"{name}: a function that becomes a graph gives tensors, not {results}")
        if any(_C._is_wrapper(_value(result)) for result in results):
            raise UncapturedHigherOrderOpError(f"{name}: inside of vmap and grad control flow is no node of a graph")
        if any(map(_is_written, stand_ins, inner)):
            raise UncapturedHigherOrderOpError(f"{name}: a function that becomes a graph writes to its arguments")
        if any(_tracer.memory(_value(result)) in part.outside for result in results):
            raise UncapturedHigherOrderOpError(
                f"{name}: a function gives a tensor that it takes, or a view of it. Give a clone() of it"
            )
        return part, results

    # ---- the node ----

    def _tell(self, results: list[Tensor]) -> None:
        to, name = self.recorder, self.op.opname
        to.follow_grad_mode(_C.is_grad_enabled())
        lead = [to.argument(_value(value)) for value in self.lead]
        graphs = [to.attribute(prefix, graph) for prefix, graph in zip(self.op.prefixes, self.graphs, strict=True)]
        groups = [type(group)(to.argument(_value(t)) for t in group) for group in self.extended(self.lifted)]
        node = to.graph.create_node("call_function", self.op, (*lead, *graphs, *groups), {}, name)
        mark(node)
        for place, result in enumerate(results):
            to.know(result, to.graph.call_function(operator.getitem, (node, place)), depends=True)
        if all(isinstance(result, FakeTensor) for result in results):
            node.meta["val"] = tuple(result.detach() for result in results)


def _is_written(stand_in: Tensor, inner: Tensor) -> bool:
    return stand_in is not inner and _tracer.memory(_layer.value(stand_in)) != _tracer.memory(inner)


class _Differentiated(Function):
    """Results of a node as functions of its inputs. Their gradients are a node again."""

    _takes_transforms = True

    @staticmethod
    def forward(ctx: Any, call: Control, results: list[Tensor], *inputs: Tensor) -> tuple[Tensor, ...]:
        ctx.call = call
        ctx.save_for_backward(*inputs)
        ctx.mark_non_differentiable(*(r for r in results if not (r.is_floating_point() or r.is_complex())))
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        call, inputs = ctx.call, list(ctx.saved_tensors)
        if call.op.backward is None:
            raise RuntimeError(
                f"{call.op.opname}: make_fx records no gradient of it. Record the function without its gradient, and "
                "differentiate what the graph gives"
            )
        rest = iter(inputs)
        groups = tuple([next(rest) for _ in group] for group in call.extended(call.lifted))
        wanted = [i for i, need in enumerate(ctx.needs_input_grad[2:]) if need]
        found = dict(zip(wanted, call.op.backward((*call.lead, *call.graphs, *groups), wanted, grads), strict=True))
        return None, None, *(found.get(i) for i in range(len(inputs)))
