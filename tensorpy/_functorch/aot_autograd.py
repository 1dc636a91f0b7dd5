"""Functions compiled ahead: a graph of the function and one of its gradient, each given to a compiler of the program's.

The graphs are recorded with fake tensors, so that nothing is computed or drawn twice. A tensor among the arguments that
the function writes is copied first in the graph, which gives its new value as one more result; that is copied back
behind it. A result that is an argument, or a view of one, is made of the argument when the graph has run.
Arguments of another kind (shapes, dtypes, numbers, which of them require grad) have graphs of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._functorch.partitioners import default_partition
from tensorpy._package.absent import absent
from tensorpy._subclasses.fake_tensor import FakeTensorMode
from tensorpy.autograd import Function, no_grad
from tensorpy.autograd import grad as gradient_of
from tensorpy.func import functional_call
from tensorpy.fx.experimental.proxy_tensor import make_fx
from tensorpy.fx.graph_module import GraphModule
from tensorpy.nn import Module
from tensorpy.utils._pytree import tree_flatten, tree_unflatten

Compiler = Callable[[GraphModule, Any], Callable[..., Any]]
_names: list[str] = []  # of the graphs that are being compiled


def get_aot_compilation_context() -> tuple[list[str], str, int]:
    """The graphs that are being compiled, the model's name, and the number of the graph."""
    return list(_names), "model", 0


def get_aot_graph_name() -> str:
    """The name of the graph that is being compiled."""
    return f"model__{'_'.join(_names)}_0"


get_graph_being_compiled = get_aot_graph_name


def make_boxed_func(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function of one list of arguments, from a function of these arguments.

    Example:
        >>> tp._functorch.aot_autograd.make_boxed_func(lambda a, b: a - b)([3, 1])
        2
    """

    def g(args: Any) -> Any:
        return f(*args)

    vars(g)["_boxed_call"] = True
    return g


def make_boxed_compiler(compiler: Compiler) -> Compiler:
    """A compiler whose functions take one list of arguments, from one whose functions take the arguments."""

    @wraps(compiler)
    def f(fx_g: GraphModule, inps: Any) -> Any:
        return make_boxed_func(compiler(fx_g, inps))

    return f


def _call(compiled: Callable[..., Any], args: list[Any]) -> list[Any]:
    out = compiled(list(args)) if getattr(compiled, "_boxed_call", False) else compiled(*args)
    return list(out) if isinstance(out, (list, tuple)) else [out]


@contextmanager
def _compiling(name: str) -> Iterator[None]:
    _names[:] = [name]
    try:
        yield
    finally:
        _names.clear()


# ---- what a function does to its arguments ----


@dataclass
class _Result:
    """Where a leaf of the results comes from: the graph, an argument, a view of one, or it is no tensor."""

    value: Any = None
    argument: int | None = None
    view: tuple[Any, ...] | None = None  # sizes, strides, offset
    made: bool = False
    differentiable: bool = False


@dataclass
class _Plan:
    """What is known of a function for arguments of one kind."""

    spec: Any
    results: list[_Result]
    written: list[int]
    differentiable: list[bool]  # of the graph's outputs
    moved: dict[int, tuple[Any, ...]]  # of those that are written: how they lie then, where it is another way


def _memory(t: Tensor) -> Any:
    return None if t.layout is not _C.strided else _C._tracer.memory(t)


def _reach(t: Tensor) -> range:
    """The bytes of its storage between the tensor's first and last element."""
    first = t.storage_offset() * t.element_size()
    last = sum((size - 1) * stride for size, stride in zip(t.shape, t.stride(), strict=True))
    return range(first, first + (last + 1) * t.element_size() if t.numel() else first)


def _overlap(a: Tensor, b: Tensor) -> bool:
    """Whether a write to one tensor may be seen in the other."""
    if _memory(a) is None or _memory(a) != _memory(b):
        return False
    one, other = _reach(a), _reach(b)
    return max(one.start, other.start) < min(one.stop, other.stop)


def _geometry(t: Tensor) -> tuple[Any, ...]:
    return () if t.layout is not _C.strided else (t.shape, t.stride(), t.storage_offset())


def _result(leaf: Any, args: list[Tensor]) -> _Result:
    if not isinstance(leaf, Tensor):
        return _Result(leaf)
    for place, arg in enumerate(args):
        if leaf is arg:
            return _Result(argument=place)
    same = [place for place, arg in enumerate(args) if _memory(arg) is not None and _memory(arg) == _memory(leaf)]
    if same and leaf.dtype == args[same[0]].dtype and leaf.requires_grad == args[same[0]].requires_grad:
        return _Result(argument=same[0], view=(leaf.shape, leaf.stride(), leaf.storage_offset()))
    return _Result(made=True, differentiable=leaf.requires_grad)


def _examined(f: Callable[..., Any], primals: list[Tensor]) -> _Plan:
    """The function is called once, with fake tensors that are no leaves, since it may write them."""
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        args = [_stand_in(mode.from_tensor(p), p) for p in primals]
        before, lay = [arg._version for arg in args], list(map(_geometry, args))
        leaves, spec = tree_flatten(f(*args))
        moved = {place: now for place, arg in enumerate(args) if (now := _geometry(arg)) != lay[place]}
        written = [place for place, arg in enumerate(args) if arg._version != before[place] or place in moved]
        results = [_result(leaf, args) for leaf in leaves]
        differentiable = [args[place].requires_grad for place in written]
    return _Plan(spec, results, written, differentiable + [r.differentiable for r in results if r.made], moved)


def _stand_in(t: Tensor, p: Tensor) -> Tensor:
    """A copy that may be written, of a leaf that requires grad where the argument does."""
    leaf = t.detach().requires_grad_(p.requires_grad)
    if p.layout is not _C.strided or 0 in p.stride():
        return leaf.clone()
    memory = _C.empty(p.untyped_storage().nbytes() // p.element_size(), dtype=p.dtype, device=p.device)
    return memory.as_strided(p.shape, p.stride(), p.storage_offset()).copy_(leaf)


def _copied(t: Tensor) -> Tensor:
    """A copy of the same strides, which views of it depend on, where it can have them."""
    copy = t.clone()
    if t.layout is not _C.strided or copy.stride() == t.stride() or 0 in t.stride():
        return copy
    return _C.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device).copy_(t)


def _outputs(f: Callable[..., Any], plan: _Plan, primals: list[Tensor]) -> list[Tensor]:
    """What the graph gives: the new values of the arguments that are written, and the results that it makes."""
    args = [_copied(p) if place in plan.written else p for place, p in enumerate(primals)]
    leaves = tree_flatten(f(*args))[0]
    made = [leaf for leaf, result in zip(leaves, plan.results, strict=True) if result.made]
    return [args[place] for place in plan.written] + made


def _joint(f: Callable[..., Any], plan: _Plan) -> Callable[..., Any]:
    """The function and its gradient."""

    def joint(primals: list[Tensor], tangents: list[Tensor]) -> list[Any]:
        leaves = [p.detach().requires_grad_(p.requires_grad) for p in primals]
        outputs = _outputs(f, plan, leaves)
        roots = [out for out, wanted in zip(outputs, plan.differentiable, strict=True) if wanted]
        wanted = [leaf for leaf in leaves if leaf.requires_grad]
        found = iter(gradient_of(roots, wanted, tangents, allow_unused=True))
        return [*outputs, *(next(found) if leaf.requires_grad else None for leaf in leaves)]

    return joint


# ---- graphs that are compiled ----


def _function(forward: Any, backward: Any, plan: _Plan) -> Callable[..., Any]:
    """The two graphs as one function, whose gradient is the second."""
    count = len(plan.differentiable)

    class CompiledFunction(Function):
        @staticmethod
        def forward(ctx: Any, *primals: Tensor) -> Any:
            everything = _call(forward, list(primals))
            outputs, kept = everything[:count], everything[count:]
            ctx.save_for_backward(*(k for k in kept if isinstance(k, Tensor)))
            ctx.others = [None if isinstance(k, Tensor) else k for k in kept]
            ctx.tensors = [isinstance(k, Tensor) for k in kept]
            ctx.mark_non_differentiable(*(o for o, d in zip(outputs, plan.differentiable, strict=True) if not d))
            return tuple(outputs)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            saved = iter(ctx.saved_tensors)
            kept = [next(saved) if t else other for t, other in zip(ctx.tensors, ctx.others, strict=True)]
            tangents = [g for g, d in zip(grads, plan.differentiable, strict=True) if d]
            return tuple(_call(backward, [*kept, *tangents]))

    return CompiledFunction.apply


def _recorded(function: Callable[..., Any], decompositions: Any, *args: Any) -> GraphModule:
    module = make_fx(function, decompositions, "fake", _allow_non_fake_inputs=True)(*args)
    module.graph.in_spec = module.graph.out_spec = None  # the parameters are the leaves
    module.recompile()
    return module


class _Compiled:
    """A function of tensors, compiled for arguments of one kind."""

    def __init__(self, f: Callable[..., Any], primals: list[Tensor], options: _Options) -> None:
        self.plan = plan = _examined(f, primals)
        if _C.is_grad_enabled() and any(plan.differentiable):
            tangents = self._tangents(f, primals)
            joint = _recorded(_joint(f, plan), options.decompositions, list(primals), tangents)
            forward, backward = options.partition(joint, (primals, tangents), num_fwd_outputs=len(plan.differentiable))
            kept = [n.meta.get("val") for n in backward.graph.nodes if n.op == "placeholder"]
            with _compiling("forward"):
                first = options.forward(forward, list(primals))
            with _compiling("backward"):
                second = options.backward(backward, kept)
            self.run = _function(first, second, plan)
        else:
            graph = _recorded(lambda given: _outputs(f, plan, given), options.decompositions, list(primals))
            with _compiling("inference"):
                compiled = options.inference(graph, list(primals))

            def run(*args: Tensor) -> list[Any]:
                with no_grad():
                    return _call(compiled, list(args))

            self.run = run

    def _tangents(self, f: Callable[..., Any], primals: list[Tensor]) -> list[Tensor]:
        """Fake tensors like the outputs that have gradients."""
        with FakeTensorMode(allow_non_fake_inputs=True) as mode:
            args = [mode.from_tensor(p).detach().requires_grad_(p.requires_grad) for p in primals]
            outputs = _outputs(f, self.plan, args)
            wanted = [o for o, d in zip(outputs, self.plan.differentiable, strict=True) if d]
            return [_C.ones_like(o.detach()) for o in wanted]

    def holds_for(self, primals: list[Tensor]) -> bool:
        """Whether the graph, whose arguments are each in memory of their own, gives the function's numbers."""
        pairs = ((w, other) for w in self.plan.written for other in range(len(primals)) if other != w)
        return not any(_overlap(primals[w], primals[other]) for w, other in pairs)

    def __call__(self, primals: list[Tensor]) -> Any:
        outputs = iter(self.run(*primals))
        for place in self.plan.written:
            if place in self.plan.moved:
                primals[place].as_strided_(*self.plan.moved[place])
            primals[place].copy_(next(outputs))
        leaves = [self._leaf(result, primals, outputs) for result in self.plan.results]
        return tree_unflatten(leaves, self.plan.spec)

    @staticmethod
    def _leaf(result: _Result, primals: list[Tensor], outputs: Iterator[Any]) -> Any:
        if result.made:
            return next(outputs)
        if result.argument is None:
            return result.value
        argument = primals[result.argument]
        return argument if result.view is None else argument.as_strided(*result.view)


@dataclass
class _Options:
    """Who compiles what."""

    forward: Compiler
    backward: Compiler
    inference: Compiler
    partition: Callable[..., Any]
    decompositions: Any


def _kind(leaf: Any) -> Any:
    if isinstance(leaf, Tensor):
        strides = (*leaf.stride(), leaf.storage_offset()) if leaf.layout is _C.strided else leaf.layout
        return type(leaf), tuple(leaf.shape), strides, leaf.dtype, leaf.device, leaf.requires_grad
    return type(leaf), leaf if leaf.__hash__ else id(leaf)


def aot_function(
    fn: Callable[..., Any],
    fw_compiler: Compiler,
    bw_compiler: Compiler | None = None,
    partition_fn: Callable[..., Any] = default_partition,
    decompositions: Any = None,
    num_params_buffers: int = 0,
    keep_inference_input_mutations: bool = False,
    inference_compiler: Compiler | None = None,
    *,
    dynamic: bool = False,
    enable_log: bool = True,
    disable_functionalization: bool = False,
) -> Callable[..., Any]:
    """The function, whose graph is compiled by `fw_compiler` and whose gradient's by `bw_compiler`.

    A compiler gets a graph module and examples of its inputs, and gives a function of these inputs. Where the function
    writes to an argument that another argument overlaps, the function itself is called.

    Arguments:
        fn: the function, of tensors and of what may hold them
        fw_compiler: compiles the graph that gives the results and what the gradient needs
        bw_compiler: compiles the gradient's graph; None takes fw_compiler
        partition_fn: makes the two graphs of one
        decompositions: functions that run in operators' places, by overload
        num_params_buffers: is taken
        keep_inference_input_mutations: is taken: tensors that are written get their values when the graph has run
        inference_compiler: compiles the graph where no gradient is wanted; None takes fw_compiler
        dynamic: is taken: other sizes have graphs of their own
        enable_log: is taken
        disable_functionalization: is taken

    Example:
        >>> from tensorpy._functorch.aot_autograd import aot_function
        >>> from tensorpy._functorch.compilers import nop
        >>> x = tp.tensor([2.0], requires_grad=True)
        >>> aot_function(lambda x: x**3, nop)(x).backward()
        >>> x.grad
        tensor([12.])
    """
    backward = bw_compiler or fw_compiler
    options = _Options(fw_compiler, backward, inference_compiler or fw_compiler, partition_fn, decompositions)
    known: dict[Any, _Compiled] = {}

    @wraps(fn)
    def returned_function(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = tree_flatten((args, kwargs))
        places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
        unique = list({id(leaves[place]): place for place in reversed(places)}.values())[::-1]  # each tensor once
        primals = [leaves[place] for place in unique]
        which = {place: next(i for i, u in enumerate(unique) if leaves[u] is leaves[place]) for place in places}

        def of_tensors(*tensors: Tensor) -> Any:
            given = [tensors[which[place]] if place in which else leaf for place, leaf in enumerate(leaves)]
            args, kwargs = tree_unflatten(given, spec)
            return fn(*args, **kwargs)

        key = (str(spec), _C.is_grad_enabled(), tuple(map(_kind, leaves)), tuple(which.items()))
        if key not in known:
            known[key] = _Compiled(of_tensors, primals, options)
        return known[key](primals) if known[key].holds_for(primals) else of_tensors(*primals)

    return returned_function


compiled_function = aot_function


class AOTModule(Module):
    """A module whose forward is compiled ahead; its parameters and buffers are inputs of the graphs."""

    def __init__(self, mod: Module, compiled: Callable[..., Any]) -> None:
        super().__init__()
        self.orig_module = mod
        self._compiled = compiled

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's forward."""
        state = {**dict(self.orig_module.named_parameters()), **dict(self.orig_module.named_buffers())}
        return self._compiled(state, args, kwargs)


def aot_module(mod: Module, *args: Any, **kwargs: Any) -> AOTModule:
    """The module, compiled ahead: see aot_function, whose arguments these are.

    Example:
        >>> from tensorpy._functorch.compilers import nop
        >>> model = tp._functorch.aot_autograd.aot_module(tp.nn.Linear(2, 1), nop)
        >>> model(tp.ones(3, 2)).shape
        Size([3, 1])
    """

    def called(state: Any, args: Any, kwargs: Any) -> Any:
        return functional_call(mod, state, args, kwargs)

    return AOTModule(mod, aot_function(called, *args, **kwargs))


compiled_module = aot_module


def aot_module_simplified(
    mod: Module,
    args: Any,
    fw_compiler: Compiler,
    bw_compiler: Compiler | None = None,
    partition_fn: Callable[..., Any] = default_partition,
    decompositions: Any = None,
    keep_inference_input_mutations: bool = False,
    inference_compiler: Compiler | None = None,
    **unused: Any,
) -> Callable[..., Any]:
    """The forward of a module of flat arguments, compiled for `args`: see aot_function."""
    compiled = aot_module(
        mod, fw_compiler, bw_compiler, partition_fn, decompositions, inference_compiler=inference_compiler
    )

    def forward(*runtime_args: Any) -> Any:
        return compiled(*runtime_args)

    names = ("zero_grad", "named_parameters", "named_buffers")
    vars(forward).update({name: getattr(mod, name) for name in names})
    return forward


aot_export_module = absent("tensorpy._functorch.aot_autograd", "aot_export_module")
aot_export_joint_simple = absent("tensorpy._functorch.aot_autograd", "aot_export_joint_simple")

__all__ = ["aot_function", "aot_module", "aot_module_simplified", "make_boxed_compiler", "make_boxed_func"]
