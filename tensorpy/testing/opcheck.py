"""opcheck: whether an operator does what its schema and its registrations say, on given arguments."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

from tensorpy import _C, dispatch, opencl
from tensorpy._C import Tensor
from tensorpy._library.fake_impl import DynamicSize
from tensorpy._library.rules import RECORDED, autograd_fallback_mode, set_autograd_fallback_mode
from tensorpy.amp import autocast
from tensorpy.autograd import grad
from tensorpy.autograd.grad_mode import no_grad
from tensorpy.autograd.gradcheck import gradcheck
from tensorpy.func.vmap import vmap
from tensorpy.fx.experimental.proxy_tensor import make_fx
from tensorpy.testing import assert_close


class OpCheckError(AssertionError):
    """What an operator does and what it is said to do differ."""


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


def _mapped(value: Any, change: Callable[[Tensor], Any]) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, (list, tuple)):
        return [_mapped(item, change) for item in value]
    return value


def _copies(args: Sequence[Any], kwargs: dict[str, Any], change: Callable[[Tensor], Any]) -> Any:
    return _mapped(args, change), {name: _mapped(value, change) for name, value in kwargs.items()}


def _run(op: Any, args: Sequence[Any], kwargs: dict[str, Any], change: Callable[[Tensor], Any]) -> Any:
    """The operator on the arguments with their tensors changed."""
    run_args, run_kwargs = _copies(args, kwargs, change)
    return op(*run_args, **run_kwargs)


def _fresh(t: Tensor) -> Tensor:
    copy = t.detach().clone()
    return copy.requires_grad_() if t.requires_grad else copy


def _bytes(t: Tensor) -> bytes:
    dense = t.detach().cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
    return bytes(dense.view(_C.uint8).numpy().tobytes())  # NumPy has not every dtype


def _is_same(a: Tensor, b: Tensor) -> bool:
    """To the byte, NaN being itself."""
    return a.shape == b.shape and _bytes(a) == _bytes(b)


# How far apart results may be: atol and rtol of the call that checks, None for what their dtype says.
_tolerance: ContextVar[dict[str, Any]] = ContextVar("tolerance")


def _close(a: Tensor, b: Tensor) -> None:
    assert_close(a, b, equal_nan=True, check_stride=False, **_tolerance.get())


def _draws(op: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether two calls give different numbers: one that draws them is not compared."""
    first, second = (list(_tensors([_run(op, args, kwargs, _fresh)])) for _ in range(2))
    return not all(map(_is_same, first, second))


def _arguments_of(op: Any) -> list[tuple[str, str]]:
    """(name, type with its annotation) of each argument, in order."""
    inside = op._schema.partition("(")[2].rpartition("->")[0].rstrip().removesuffix(")")
    parts = [part.strip() for part in inside.split(",") if part.strip() and part.strip() != "*"]
    return [(part.partition("=")[0].split()[-1], part) for part in parts if " " in part]


def _given(op: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    for (name, text), value in zip(_arguments_of(op), args, strict=False):
        yield name, text, value
    types = dict(_arguments_of(op))
    for name, value in kwargs.items():
        yield name, types.get(name, ""), value


def _schema(op: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """What is not annotated is not written, and a result that is new shares no memory with an argument."""
    run_args, run_kwargs = _copies(args, kwargs, _fresh)
    with no_grad():
        made = op(*run_args, **run_kwargs)
    before = {name: value for name, _, value in _given(op, args, kwargs)}
    memory: dict[int, str] = {}
    for name, text, value in _given(op, run_args, run_kwargs):
        if "(" in text:
            continue
        for now, was in zip(_tensors(value), _tensors(before[name]), strict=True):
            memory[now.untyped_storage().data_ptr()] = name
            if not _is_same(now, was):
                raise OpCheckError(
                    f"{op._own_name} wrote its argument '{name}', which the schema does not say: annotate it, "
                    f"'Tensor(a!) {name}', or name it in mutates_args"
                )
    if "(" in op._schema.rpartition("->")[2].strip("() "):
        return
    for result in _tensors(made):
        shared = memory.get(result.untyped_storage().data_ptr())
        if shared is not None and result.numel():
            raise OpCheckError(
                f"Argument {shared} is not defined to alias output but was aliasing: {op._own_name} returned its "
                "memory, return a clone"
            )


def _gives_numbers(op: Any) -> bool:
    """No tensor comes out: there is nothing to differentiate, and no shape to foretell."""
    return "Tensor" not in op._schema.rpartition("->")[2]


def _not_below(op: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """A kernel of a device makes no graph: layers above it would not know."""
    before = autograd_fallback_mode()
    set_autograd_fallback_mode("nothing")
    try:
        made = _run(op, args, kwargs, _fresh)
    finally:
        set_autograd_fallback_mode(before)
    if any(t.requires_grad and not t.is_leaf for t in _tensors([made])):
        raise OpCheckError(
            f"{op._own_name}: at least one output of this operator has requires_grad=True but the operator does not "
            "have an autograd kernel defined at an autograd key: what its device's kernel records is out of sight of "
            "vmap, fake tensors and compilers. Register the kernel as 'CompositeImplicitAutograd' if it is made of "
            "operators, an autograd.Function at 'Autograd', or a formula by "
            f"tensorpy.library.register_autograd('{op._own_name}', backward)"
        )


def _autograd(op: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """What wants a gradient gets one, and it is right."""
    wanting = [t for t in _tensors([list(args), list(kwargs.values())]) if t.requires_grad]
    if not wanting or _gives_numbers(op):
        return
    kernel = next((e for e in dispatch.table(op._own_name) if e.key == "AutogradCPU"), None)
    if kernel is None or kernel.source == "no derivative is registered":
        raise OpCheckError(
            f"{op._own_name} has no derivative, and an argument requires grad: give it one with "
            f"tensorpy.library.register_autograd('{op._own_name}', backward)"
        )
    if kernel.source == RECORDED and "!" not in op._schema:
        _not_below(op, args, kwargs)
    elif all(t.dtype in (_C.float64, _C.complex128) for t in wanting):
        copies = [_fresh(t) for t in wanting]

        def call(*inputs: Tensor) -> Any:
            rest = (t.clone() if "!" in op._schema else t for t in inputs)  # what is written may be no leaf
            return _run(op, args, kwargs, lambda t: next(rest) if t.requires_grad else t)

        gradcheck(call, copies)


def _meta(op: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """On Meta it gives shapes, strides and dtypes as it does with values."""
    if _gives_numbers(op):
        return
    with no_grad():
        made = list(_tensors([_run(op, args, kwargs, _fresh)]))
        with suppress(DynamicSize):
            _compare_meta(op, args, kwargs, made)


def _compare_meta(op: Any, args: Sequence[Any], kwargs: dict[str, Any], made: list[Tensor]) -> None:
    with no_grad():
        try:
            told = list(_tensors([_run(op, args, kwargs, lambda t: t.detach().to(device="meta"))]))
        except NotImplementedError as error:
            raise OpCheckError(
                f"{op._own_name} does nothing on Meta tensors: register what shape it gives with "
                f"tensorpy.library.register_fake('{op._own_name}', fn)"
            ) from error
    for i, (real, meta) in enumerate(zip(made, told, strict=True)):
        for what in ("shape", "dtype"):
            if getattr(real, what) != getattr(meta, what):
                raise OpCheckError(
                    f"{op._own_name}: result {i} has {what} {getattr(real, what)}, and on Meta {getattr(meta, what)}: "
                    "mend what register_fake was given"
                )
        if real.stride() != meta.stride() and real.numel() > 1:
            raise OpCheckError(f"{op._own_name}: result {i} has strides {real.stride()}, and on Meta {meta.stride()}")


def _autocast(op: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Under autocast it takes what it takes without."""
    with no_grad(), autocast("cpu", dtype=_C.bfloat16):
        try:
            _run(op, args, kwargs, _fresh)
        except RuntimeError as error:
            raise OpCheckError(
                f"{op._own_name} fails under autocast: {error}; register_autocast casts for it"
            ) from error


def _deterministic(op: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """The same arguments give the same results, laid out otherwise too."""

    def strided(t: Tensor) -> Tensor:
        return _C.stack([t.detach(), t.detach()], -1)[..., 0] if t.dim() else t.detach()

    with no_grad():
        if _draws(op, args, kwargs):
            return
        first = _run(op, args, kwargs, _fresh)
        second = _run(op, args, kwargs, strided)
    for a, b in zip(_tensors([first]), _tensors([second]), strict=True):
        try:
            _close(b, a)
        except AssertionError as error:
            raise OpCheckError(f"{op._own_name} gives something else for arguments with strides: {error}") from error


def _vmap(op: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Under vmap each sample gets what it gets alone, or a NotImplementedError of its rule."""
    tensors = [t.detach() for t in _tensors([list(args), list(kwargs.values())])]
    if not tensors or "!" in op._schema or _gives_numbers(op):
        return
    other = [t.flip(0) if t.dim() and t.is_floating_point() else t for t in tensors]

    def call(*inputs: Tensor) -> Any:
        rest = iter(inputs)
        return tuple(_tensors([_run(op, args, kwargs, lambda t: next(rest))]))

    with no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of one that runs for each sample by itself
        if _draws(op, args, kwargs):
            return
        alone = [call(*tensors), call(*other)]
        try:
            together = vmap(call)(*(_C.stack([a, b]) for a, b in zip(tensors, other, strict=True)))
        except NotImplementedError:
            return
    for i, found in enumerate(together):
        for k in range(2):
            try:
                _close(found[k], alone[k][i])
            except AssertionError as error:
                raise OpCheckError(
                    f"{op._own_name}: result {i} of sample {k} under vmap is not what the sample gives alone: {error}; "
                    "mend what register_vmap was given"
                ) from error


def _device(op: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """On every other device that it has a kernel for it gives what it gives on the CPU."""
    entries = {e.key: e for e in dispatch.table(op._own_name)}
    kernel = entries.get("OpenCL")
    if kernel is None or kernel.kind == "fallback" or not opencl.is_available():
        return
    with no_grad():
        if _draws(op, args, kwargs):
            return
        here = list(_tensors([_run(op, args, kwargs, _fresh)]))
        there = list(_tensors([_run(op, args, kwargs, lambda t: t.detach().to(device="opencl"))]))
    for i, (a, b) in enumerate(zip(here, there, strict=True)):
        if b.device.type != "opencl":
            raise OpCheckError(f"{op._own_name}: result {i} of its kernel for OpenCL is on {b.device}")
        try:
            _close(b.cpu(), a)
        except AssertionError as error:
            raise OpCheckError(f"{op._own_name}: result {i} differs between OpenCL and the CPU: {error}") from error


def _traced(op: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Recorded as a graph it gives what it gives, and backward through it gives gradients of the right shapes."""
    tensors = list(_tensors([list(args), list(kwargs.values())]))
    if not tensors or _gives_numbers(op):
        return

    def call(*inputs: Tensor) -> Any:
        rest = iter(inputs)
        return tuple(_tensors([_run(op, args, kwargs, lambda t: next(rest))]))

    with no_grad():
        graph = make_fx(call)(*map(_fresh, tensors))
        found, expected = (f(*map(_fresh, tensors)) for f in (graph, call))
        if not _draws(op, args, kwargs):
            for a, b in zip(found, expected, strict=True):
                _close(a, b)
    if "!" not in op._schema:
        leaves = [_fresh(t) for t in tensors]
        made = [t for t in call(*leaves) if t.requires_grad]
        if made:  # autograd compares the shapes
            grad(made, [t for t in leaves if t.requires_grad], [t.detach() for t in made], allow_unused=True)


CHECKS: dict[str, Callable[[Any, Sequence[Any], dict[str, Any]], None]] = {
    "test_schema": _schema,
    "test_autograd_registration": _autograd,
    "test_faketensor": _meta,
    "test_aot_dispatch_dynamic": _traced,
    "test_autocast": _autocast,
    "test_strides": _deterministic,
    "test_vmap": _vmap,
    "test_device": _device,
}


def opcheck(
    op: Any,
    args: Sequence[Any],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = tuple(CHECKS),
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, str | Exception]:
    """Checks an operator on arguments: schema against behaviour, derivative, Meta, autocast, layouts, vmap, devices.

    Gives "SUCCESS" per check. A failure is an OpCheckError that says how to mend it, or with `raise_exception` false
    stands in the result.

    Arguments:
        op: the operator, or its name
        args: the arguments of a call
        kwargs: the keyword arguments of a call
        test_utils: which checks run; a name or several
        raise_exception: whether a difference raises, instead of giving False
        atol: how far results may be apart that are compared, with rtol; by default what their dtype says
        rtol: how far results may be apart, as a part of them

    Returns: a dict of "SUCCESS" or the exception, by the check's name.

    Raises: ValueError for an unknown check; what a check found, unless raise_exception is False.

    Example:
        >>> @tp.library.custom_op("help_check::triple", mutates_args=())
        ... def triple(x: tp.Tensor) -> tp.Tensor:
        ...     return x * 3
        >>> results = tp.library.opcheck(triple, (tp.ones(2),), test_utils="test_schema")
        >>> results
        {'test_schema': 'SUCCESS'}
    """
    if (atol is None) != (rtol is None):
        raise ValueError(f"opcheck: atol and rtol are given together, not {atol} and {rtol}")
    overload = getattr(op, "_op", op)
    if isinstance(overload, str):
        overload = _C._op_overload(overload)
    overload = getattr(overload, "default", overload)  # of the overloads of a name
    if not hasattr(overload, "_schema"):
        raise ValueError(f"opcheck: op must be an OpOverload, as ops.aten.sin.default, not {type(op)}")
    wanted = [test_utils] if isinstance(test_utils, str) else list(test_utils)
    if unknown := [name for name in wanted if name not in CHECKS]:
        raise ValueError(
            f"opcheck: expected test_utils to be subset of {', '.join(CHECKS)}, but got {', '.join(unknown)}"
        )
    results: dict[str, str | Exception] = {}
    before = _tolerance.set({} if atol is None else {"atol": atol, "rtol": rtol})
    try:
        for name in wanted:
            try:
                CHECKS[name](overload, tuple(args), dict(kwargs or {}))
                results[name] = "SUCCESS"
            except Exception as error:
                if raise_exception and isinstance(error, OpCheckError):
                    raise
                if raise_exception:
                    raise OpCheckError(f"opcheck: {name} failed with {error}") from error
                results[name] = error
    finally:
        _tolerance.reset(before)
    return results
