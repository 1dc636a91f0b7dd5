"""What an operator gets after it is declared: kernels, gradients and rules for each layer."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tensorpy import _C, dispatch
from tensorpy._C import Tensor
from tensorpy._library.effects import EffectType, register_effect
from tensorpy._library.fake_impl import told
from tensorpy._library.libraries import Library
from tensorpy._library.registration import (
    Owner,
    add_kernel,
    backend_key,
    definitions,
    keys_of,
    name_of,
    overload_of,
    registered,
    wait_for,
)
from tensorpy._library.rules import autograd_kernel, keyword_tensors
from tensorpy.func.custom import batch_number, call_rule


def register_kernel(
    op: Any,
    device_types: str | Sequence[str] | None,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
) -> Any:
    """Gives an operator a kernel for device types; None: for all that have none of their own. Also a decorator.

    Arguments:
        op: the operator, or its name
        device_types: one or several types of device; None for all
        func: the kernel
        lib: a Library that the registration lives with; None keeps it

    Returns: the function, or without one a decorator.

    Example:
        >>> @tp.library.custom_op("help_kernel::triple", mutates_args=(), device_types="meta")
        ... def triple(x: tp.Tensor) -> tp.Tensor:
        ...     return tp.empty_like(x)
        >>> @tp.library.register_kernel("help_kernel::triple", "cpu")
        ... def _(x):
        ...     return x * 3
        >>> triple(tp.ones(2))
        tensor([3., 3.])
    """

    made = definitions.get(name_of(op)) if lib is None else None
    if made is not None:
        return made.register_kernel(device_types, func)
    keys = keys_of(device_types)

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        for key in keys:
            add_kernel(op, key, fn, lib)
        return fn

    return register if func is None else register(func)


def register_fake(
    op: Any,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
    _stacklevel: int = 1,
    allow_override: bool = True,
) -> Any:
    """Gives an operator what it does on Meta: tensors of the right shape, without values. Also a decorator.

    Arguments:
        op: the operator, or its name
        func: the kernel
        lib: a Library that the registration lives with; None keeps it
        allow_override: whether one that is there is replaced; else it is a RuntimeError

    Returns: the function, or without one a decorator.

    Raises: RuntimeError for an operator that is not declared, or whose shapes follow from those of others.

    Example:
        >>> @tp.library.custom_op("help_fake::triple", mutates_args=())
        ... def triple(x: tp.Tensor) -> tp.Tensor:
        ...     return x * 3
        >>> @tp.library.register_fake("help_fake::triple")
        ... def _(x):
        ...     return tp.empty_like(x)
        >>> triple(tp.ones(2, device="meta")).shape
        tensorpy.Size([2])
    """

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        name = name_of(op)
        if name.removeprefix("aten::") not in _C._operators():
            raise RuntimeError(f"register_fake: operator {name} does not exist: declare it first")
        if (name, "CompositeImplicitAutograd") in registered:
            raise RuntimeError(
                f"register_fake: {name} has a kernel for CompositeImplicitAutograd, which makes it of other operators: "
                "what it does on Meta follows from theirs"
            )
        there = registered.get((name, "Meta"))
        if there is not None and not allow_override:
            raise RuntimeError(
                f"register_fake: {name} already has a fake kernel or a Meta implementation, registered from "
                f"{there.where}"
            )
        add_kernel(op, "Meta", told(name, fn), lib)
        return fn

    return register if func is None else register(func)


def impl_abstract(qualname: Any, func: Any = None, *, lib: Library | None = None, _stacklevel: int = 1) -> Any:
    """The older name of register_fake.

    Arguments:
        qualname: the operator's name with its namespace: 'mine::op'
        func: the kernel
        lib: a Library that the registration lives with; None keeps it

    Returns: the function, or without one a decorator.

    Example:
        >>> lib = tp.library.Library("help_abstract", "DEF")
        >>> name = lib.define("triple(Tensor x) -> Tensor")
        >>> kernel = tp.library.impl_abstract("help_abstract::triple", tp.empty_like, lib=lib)
        >>> tp.ops.help_abstract.triple(tp.ones(2, device="meta")).shape
        tensorpy.Size([2])
    """
    warnings.warn("impl_abstract is called register_fake now", FutureWarning, stacklevel=2)
    return register_fake(qualname, func, lib=lib)


def register_autograd(
    op: Any,
    backward: Callable[..., Any],
    /,
    *,
    setup_context: Callable[..., Any] | None = None,
    lib: Library | None = None,
) -> None:
    """Gives an operator a gradient: `backward(ctx, *grads)` gives one per argument, None where there is none.

    `setup_context(ctx, inputs, output)` keeps what backward needs (ctx.save_for_backward, attributes); an operator with
    keyword-only arguments gets them as `keyword_only_inputs`.

    Arguments:
        op: the operator, or its name
        lib: a Library that the registration lives with; None keeps it

    Example:
        >>> @tp.library.custom_op("help_grad::triple", mutates_args=())
        ... def triple(x: tp.Tensor) -> tp.Tensor:
        ...     return x * 3
        >>> tp.library.register_autograd("help_grad::triple", lambda ctx, grad: grad * 3)
        >>> x = tp.ones(2, requires_grad=True)
        >>> triple(x).sum().backward()
        >>> x.grad
        tensor([3., 3.])
    """
    overload = overload_of(op)
    if "!" in overload._schema:
        raise RuntimeError(
            f"register_autograd: {overload._own_name} writes its arguments, and a gradient is for operators that give "
            "new results: wrap it in one"
        )
    if keyword_tensors(overload._schema):
        raise NotImplementedError(
            f"register_autograd: {overload._own_name} has tensors that are given by keyword alone: gradients are for "
            "positional ones"
        )
    add_kernel(op, "Autograd", autograd_kernel(overload, backward, setup_context), lib, with_keyset=True, records=True)


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Library | None = None) -> None:
    """Under autocast on that device type, floating tensors are cast to `cast_inputs` before the operator runs.

    Arguments:
        op: the operator, or its name
        device_type: the type of device: 'cpu', 'opencl', ...
        lib: a Library that the registration lives with; None keeps it

    Example:
        >>> @tp.library.custom_op("help_cast::triple", mutates_args=())
        ... def triple(x: tp.Tensor) -> tp.Tensor:
        ...     return x * 3
        >>> tp.library.register_autocast("help_cast::triple", "cpu", tp.bfloat16)
        >>> with tp.autocast("cpu"):
        ...     print(triple(tp.ones(2)).dtype)
        tensorpy.bfloat16
    """
    overload = overload_of(op)
    below = dispatch.below("AutocastCPU")

    def cast(value: Any) -> Any:
        if isinstance(value, Tensor) and value.is_floating_point() and value.dtype != _C.float64:
            return value.to(dtype=cast_inputs)
        return [cast(v) for v in value] if isinstance(value, list) else value

    def kernel(keyset: int, *args: Any, **kwargs: Any) -> Any:
        kwargs = {name: cast(value) for name, value in kwargs.items()}
        return overload.redispatch(keyset & below, *map(cast, args), **kwargs)

    if not isinstance(device_type, str):
        raise ValueError(f"register_autocast: a type of device is a str, not {type(device_type).__name__}")
    backend = backend_key(device_type)
    if backend is not None:
        add_kernel(op, f"Autocast{backend}", kernel, lib, with_keyset=True)


def _register_rule(op: Any, torch_dispatch_class: type, fn: Callable[..., Any], lib: Owner | None) -> None:
    key = (overload_of(op), torch_dispatch_class)
    _C._dispatch_rules[key] = fn
    if lib is not None:
        lib._rules.append((key, fn))


def _register_effectful_op(op: Any, effect: EffectType | None, *, lib: Library | None = None) -> None:
    """Says that an operator has an effect that its schema does not say; None: that it has none."""
    if lib is None:
        register_effect(name_of(op), effect)
    else:
        lib._register_effectful_op(name_of(op), effect)


def register_torch_dispatch(
    op: Any, torch_dispatch_class: type, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None
) -> Any:
    """What an operator does for a class that has a `__torch_dispatch__`, or in the scope of a mode's class.

    `func(cls, operator, types, args, kwargs)` for a class of tensors, `func(mode, ...)` for a mode, goes before the
    class's own `__torch_dispatch__`. Also a decorator.

    Arguments:
        op: the operator, or its name
        torch_dispatch_class: the class of tensors, or mode
        func: the kernel
        lib: a Library that the registration lives with; None keeps it

    Returns: the function, or without one a decorator.

    Raises: TypeError for a class without `__torch_dispatch__`.

    Example:
        >>> tp.library.register_torch_dispatch("mine::op", Mode, rule)  # doctest: +SKIP
    """
    if not hasattr(torch_dispatch_class, "__torch_dispatch__"):
        raise TypeError(f"register_torch_dispatch: {torch_dispatch_class!r} has no __torch_dispatch__")

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        if isinstance(op, str) and name_of(op).removeprefix("aten::") not in _C._operators():
            wait_for(op, lib, partial(_register_rule, op, torch_dispatch_class, fn))
            return fn
        _register_rule(op, torch_dispatch_class, fn, lib)
        return fn

    return register if func is None else register(func)


def register_vmap(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None) -> Any:
    """Says how an operator is computed for a batch: `func(info, in_dims, *args)` gets the arguments with the dimensions
    that count the samples (None: shared), and returns the outputs and their out_dims. Without one vmap calls the
    operator for each sample.

    Arguments:
        op: the operator, or its name
        func: the kernel
        lib: a Library that the registration lives with; None keeps it

    Returns: the function, or without one a decorator.

    Raises: NotImplementedError for tensors that are given by keyword alone.

    Example:
        >>> @tp.library.custom_op("help_vmap::triple", mutates_args=())
        ... def triple(x: tp.Tensor) -> tp.Tensor:
        ...     return x * 3
        >>> @tp.library.register_vmap("help_vmap::triple")
        ... def _(info, in_dims, x):
        ...     return triple(x), in_dims[0]
        >>> tp.vmap(triple)(tp.ones(2))
        tensor([3., 3.])
    """
    if func is None:
        return lambda given: register_vmap(op, given, lib=lib)
    overload = overload_of(op)
    if keyword_tensors(overload._schema):
        raise NotImplementedError(
            f"register_vmap: {overload._own_name} has tensors that are given by keyword alone: a rule is told of "
            "positional ones"
        )
    below = dispatch.below("Batched")

    def kernel(keyset: int, *args: Any, **kwargs: Any) -> Any:
        if not batch_number(args):
            return overload.redispatch(keyset & below, *args, **kwargs)

        def rule(info: Any, in_dims: Any, *physical: Any) -> Any:
            return func(info, in_dims, *physical, **kwargs)

        return call_rule(overload._own_name, rule, args)

    add_kernel(op, "Batched", kernel, lib, with_keyset=True)
    return func
