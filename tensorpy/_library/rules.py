"""What stands around functions that are kernels or gradients of operators from Python: lists of tensors spread for
autograd and gathered again, results that have to be new, and the device of a call without tensors."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tensorpy import _C, dispatch
from tensorpy._C import Tensor
from tensorpy._library.function_schema import FunctionSchema
from tensorpy.autograd.function import Function

_BELOW_AUTOGRAD = dispatch.below("AutogradOther")


def keyword_tensors(schema: FunctionSchema) -> bool:
    """Whether a tensor is given by keyword alone: what rules of gradients and of batches do not see."""
    return any(a.kwarg_only and "Tensor" in a.type for a in schema.arguments)


def _flatten(values: Sequence[Any]) -> tuple[list[Any], list[int]]:
    """Lists of tensors spread out, so that each has its gradient; -1: not a list, else its length."""
    flat: list[Any] = []
    lengths: list[int] = []
    for value in values:
        spread = isinstance(value, (list, tuple)) and any(isinstance(v, Tensor) for v in value)
        lengths.append(len(value) if spread else -1)
        flat += value if spread else [value]
    return flat, lengths


def _unflatten(flat: Sequence[Any], lengths: list[int]) -> list[Any]:
    values: list[Any] = []
    at = 0
    for length in lengths:
        values.append(flat[at] if length < 0 else list(flat[at : at + length]))
        at += max(length, 1) if length < 0 else length
    return values


def _given(schema: FunctionSchema, args: Sequence[Any]) -> int:
    """How many positional arguments a call has that leaves out what is its default."""
    n = len(args)
    while n and (a := schema.arguments[n - 1]).has_default_value() and not isinstance(args[n - 1], Tensor):
        if args[n - 1] != a.default_value:
            break
        n -= 1
    return n


_OWN = 3  # arguments of forward() below that are not the operator's


def _needs_input_grad(ctx: Any) -> tuple[Any, ...]:
    """For each argument of the operator whether its gradient is wanted; for a list of tensors a list."""
    marks: Any = _C.FunctionCtx.needs_input_grad  # the attribute of C, which the class of ctx hides
    wanted = marks.__get__(ctx)
    return tuple(_unflatten(wanted[_OWN:], ctx._lengths))


def autograd_kernel(op: Any, backward: Callable[..., Any], setup_context: Callable[..., Any] | None) -> Any:
    """The kernel for Autograd: records a call whose backward is Python's."""
    has_keywords = any(a.kwarg_only for a in op._schema.arguments)
    several = len(op._schema.returns) > 1 or op._schema.returns[0].type.startswith("Tuple")

    def forward(ctx: Any, keyset: int, kwargs: dict[str, Any], lengths: list[int], *flat: Any) -> Any:
        args = _unflatten(flat, lengths)
        output = op.redispatch(keyset & _BELOW_AUTOGRAD, *args, **kwargs)
        if not several and isinstance(output, tuple):  # a list, to a program
            output = list(output)
        ctx._lengths, ctx._given = list(lengths), _given(op._schema, args)
        if setup_context is not None:
            if has_keywords:
                setup_context(ctx=ctx, inputs=tuple(args), keyword_only_inputs=kwargs, output=output)
            else:
                setup_context(ctx, tuple(args), output)
        made, lengths[:] = _flatten(output if several else [output])
        ctx._made = list(lengths)
        return made[0] if lengths == [-1] else tuple(made)

    def run_backward(ctx: Any, *grads: Any) -> Any:
        made = backward(ctx, *_unflatten(grads, ctx._made))
        made = list(made) if isinstance(made, tuple) or (isinstance(made, list) and len(ctx._lengths) > 1) else [made]
        if len(made) == ctx._given:
            made += [None] * (len(ctx._lengths) - len(made))
        if len(made) != len(ctx._lengths):
            raise RuntimeError(
                f"{op._own_name}: its backward returned {len(made)} gradients for {len(ctx._lengths)} arguments"
            )
        flat: list[Any] = []
        for grad, length in zip(made, ctx._lengths, strict=True):
            flat += [grad] if length < 0 else list(grad) if grad is not None else [None] * length
        return (*[None] * _OWN, *flat)

    name = op._own_name.replace("::", "_").replace(".", "_")
    methods = {"forward": staticmethod(forward), "backward": staticmethod(run_backward), "_takes_transforms": True}
    recorded: Any = type(name, (Function,), methods)
    recorded._backward_cls.needs_input_grad = property(_needs_input_grad)

    def kernel(keyset: int, *args: Any, **kwargs: Any) -> Any:
        flat, lengths = _flatten(args)
        made = recorded.apply(keyset, kwargs, lengths, *flat)
        values = _unflatten(made if isinstance(made, tuple) else (made,), lengths)
        return tuple(values) if several else values[0]

    return kernel


# ---- operators without a gradient of their own ----

_fallback = "warn"

# Where dispatch.table() says that recording_kernel() comes from: an operator's own registration names a file.
RECORDED = "no derivative is registered: what its kernel calls is recorded"


def autograd_fallback_mode() -> str:
    """What becomes of a gradient that runs through an operator without one: "nothing", or "warn" for a warning."""
    return _fallback


def set_autograd_fallback_mode(mode: str) -> None:
    global _fallback
    if mode not in ("nothing", "warn"):
        raise RuntimeError(f"the autograd fallback mode is 'nothing' or 'warn', not {mode!r}")
    _fallback = mode


class _Ends(Function):
    """What a kernel made out of autograd's sight: its gradient is nothing, and a warning."""

    @staticmethod
    def forward(ctx: Any, name: str, made: list[Any], *inputs: Any) -> Any:
        ctx.name = name
        return tuple(made)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        _warn_of_backward(ctx.name)
        return (None,) * len(ctx.needs_input_grad)


def _warn_of_backward(name: str, _: Any = None) -> None:
    warnings.warn(
        f"{name}: an autograd kernel was not registered, and backward runs along what its kernel calls; what "
        f'the kernel does by other means has none. Give it one by library.register_autograd("{name}", backward), or '
        'register it as "CompositeImplicitAutograd" if it is made of differentiable operators',
        stacklevel=2,
    )


def recording_kernel(op: Any) -> Callable[..., Any]:
    """The kernel for Autograd of an operator that has no gradient of its own: what its kernel calls is recorded, and
    backward warns."""
    name = op._own_name
    writes = [r.is_write for r in op._schema.returns]

    def kernel(keyset: int, *args: Any, **kwargs: Any) -> Any:
        result = op.redispatch(keyset & _BELOW_AUTOGRAD, *args, **kwargs)
        if _fallback == "nothing":
            return result
        inputs = [t for t in _flatten([*args, *kwargs.values()])[0] if isinstance(t, Tensor)]
        each = list(result) if isinstance(result, tuple) and len(writes) > 1 else [result]
        made, lengths = _flatten(each)
        marks = [mark for mark, length in zip(writes, lengths, strict=False) for _ in range(max(length, 1))]
        ends = []
        for at, value in enumerate(made):
            if not isinstance(value, Tensor):
                continue
            if value.requires_grad:
                value.register_hook(functools.partial(_warn_of_backward, name))
            elif not marks[at] and _may_have_gradient(value):
                ends.append(at)
        if ends:
            ended = _Ends.apply(name, [made[at] for at in ends], *inputs)
            for at, value in zip(ends, ended, strict=True):
                made[at] = value
        values = _unflatten(made, lengths)
        return tuple(values) if len(writes) > 1 else values[0]

    return kernel


def _may_have_gradient(value: Tensor) -> bool:
    return value.is_floating_point() or value.is_complex()


# ---- results that are new ----


def _memory(values: Any) -> Iterator[Any]:
    """The storages of tensors in lists of lists; nothing for those that have none, or no bytes."""
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _memory(value)
        elif isinstance(value, Tensor) and _C._has_storage(value) and value.layout is _C.strided and value.numel():
            yield value.untyped_storage()


def giving_new(name: str, schema: FunctionSchema, fn: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel whose results may be no views of its arguments, nor of each other, where its schema says that they are
    new: autograd and versions would go wrong in silence."""
    if any(result.alias_info for result in schema.returns) or not any("Tensor" in r.type for r in schema.returns):
        return fn

    @functools.wraps(fn)
    def checked(*args: Any, **kwargs: Any) -> Any:
        made = fn(*args, **kwargs)
        seen = list(_memory([*args, *kwargs.values()]))
        for storage in _memory([made]):
            if any(storage is other for other in seen):
                raise RuntimeError(
                    f"{name}: a result may not alias an argument, nor another result: it shares memory with one; "
                    "return a clone (custom_op)"
                )
            seen.append(storage)
        return made

    return checked


def giving_written(name: str, schema: FunctionSchema, fn: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel of an operator with the tag inplace or out, which has to return what it writes to."""
    written = [(i, a) for i, a in enumerate(schema.arguments) if a.is_write]

    @functools.wraps(fn)
    def checked(*args: Any, **kwargs: Any) -> Any:
        made = fn(*args, **kwargs)
        results = made if isinstance(made, tuple) else (made,)
        given = [kwargs[a.name] if a.name in kwargs else args[i] for i, a in written]
        if len(results) != len(given) or any(r is not g for r, g in zip(results, given, strict=True)):
            raise RuntimeError(
                f"{name}: with the tag inplace or out it returns the tensors that it writes to (custom_op)"
            )
        return made

    return checked


def without_fake(name: str, schema: FunctionSchema) -> Callable[..., Any]:
    """What an operator of a function does on Meta until it has a fake kernel: the function may read elements, which are
    not there. An operator that returns nothing does nothing."""
    returns = any(result.type for result in schema.returns)

    def kernel(*_: Any, **__: Any) -> None:
        if returns:
            raise RuntimeError(
                f"There was no fake impl registered for {name}: what it gives on Meta, or to a tracer, is unknown; "
                f'register_fake(fn) of the operator says it, or library.register_fake("{name}", fn)'
            )

    return kernel


# ---- operators that are called without tensors ----


class ByDevice:
    """The kernel of an operator without arguments that are tensors: its argument `device` says which it is."""

    def __init__(self, name: str, schema: FunctionSchema) -> None:
        self.name = name
        self.kernels: dict[str, Callable[..., Any]] = {}
        self.default: Callable[..., Any] | None = None
        self.at = next((i for i, a in enumerate(schema.arguments) if a.name == "device"), -1)
        if self.at < 0:
            raise ValueError(
                f"{name}: kernels for types of devices are chosen by where the tensors are; an operator without "
                "tensors has to have an argument `device: torch.device`"
            )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        device = kwargs["device"] if "device" in kwargs else args[self.at] if self.at < len(args) else None
        kind = _C.device(device if device is not None else _C.get_default_device()).type
        kernel = self.kernels.get(kind, self.default)
        if kernel is None:
            raise RuntimeError(
                f"{self.name} does not have a kernel registered for {kind}: register_kernel('{kind}') gives it one"
            )
        return kernel(*args, **kwargs)
