"""Hooks: handles that take them out again, and what calls a module's backward hooks.

A module's full backward hooks see its gradients on their way through two identities: one after its outputs, whose
backward keeps the gradients of the outputs, and one before its inputs, whose backward has the gradients of the inputs
and calls the hooks with both.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

from tensorpy._C import Tensor, is_grad_enabled
from tensorpy._tensor.methods import RemovableHandle
from tensorpy.autograd.function import Function

__all__ = ["BackwardHook", "RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]


def unserializable_hook(f: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a hook that pickle leaves out without a warning.

    Arguments:
        f: the hook

    Returns: the function.

    Example:
        >>> hook = tp.utils.hooks.unserializable_hook(lambda grad: grad)
    """
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]  # pyright: ignore[reportFunctionMemberAccess]
    return f


def warn_if_has_hooks(tensor: Tensor) -> None:
    """Warns where a tensor's hooks will not be pickled.

    Example:
        >>> tp.utils.hooks.warn_if_has_hooks(tp.ones(2))
    """
    for hook in (getattr(tensor, "_backward_hooks", None) or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(f"backward hook {hook!r} on tensor will not be serialized", stacklevel=2)


class _Passing(Function):
    """The identity, whose backward hands the gradients to a function on their way; it may return others."""

    _takes_transforms = True

    @staticmethod
    def forward(ctx: Any, function: Callable[[tuple[Any, ...]], tuple[Any, ...]], *tensors: Tensor) -> Any:
        ctx.function = function
        ctx.set_materialize_grads(False)
        passed = tuple(t.view_as(t) for t in tensors)
        ctx.mark_non_differentiable(*(p for p, t in zip(passed, tensors, strict=True) if not t.requires_grad))
        return passed

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None, *ctx.function(grads))


def _check_changed(hook: Any, was: tuple[Any, ...], now: tuple[Any, ...]) -> None:
    """What a hook puts in a gradient's place has its sizes, dtype and device."""
    for a, b in zip(was, now, strict=True):
        if b is not None and not isinstance(b, Tensor):
            raise TypeError(f"hook {hook!r} must return Tensors or None, not {type(b).__name__}")
        if a is None or b is None or (a.shape, a.dtype, a.device) == (b.shape, b.dtype, b.device):
            continue
        what = "type" if a.shape == b.shape else "size"
        raise RuntimeError(
            f"hook {hook!r} has changed the {what} of value: from {a.dtype} on {a.device} of sizes {list(a.shape)} "
            f"to {b.dtype} on {b.device} of sizes {list(b.shape)}"
        )


def _tupled(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


class BackwardHook:
    """The calls of one module's backward hooks for one call of its forward.

    Arguments:
        module: the module
        user_hooks: the hooks
        user_pre_hooks: the hooks that run before

    Example:
        >>> tp.utils.hooks.BackwardHook(nn.ReLU(), [], []).__class__.__name__
        'BackwardHook'
    """

    input_places: Any
    n_inputs: int
    n_outputs: int
    output_places: Any
    user_hooks: list[Any]
    user_pre_hooks: list[Any]

    def __init__(self, module: Any, user_hooks: Iterable[Any], user_pre_hooks: Iterable[Any]) -> None:
        self.module = module
        self.user_hooks, self.user_pre_hooks = list(user_hooks), list(user_pre_hooks)
        self.grad_outputs: tuple[Any, ...] | None = None
        self.n_inputs, self.input_places = 0, list[int]()
        self.n_outputs, self.output_places = 0, list[int]()

    def _pass_through(self, args: Any, function: Callable[..., Any]) -> tuple[Any, list[int]]:
        """The arguments with their tensors led through an identity, and where these are; none if no gradient flows."""
        places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        if not (is_grad_enabled() and any(args[i].requires_grad for i in places)):
            return args, []
        values = list(args)
        for i, passed in zip(places, _Passing.apply(function, *(args[i] for i in places)), strict=True):
            values[i] = passed
        rebuilt = type(args)(*values) if hasattr(args, "_fields") else type(args)(values)
        return rebuilt, places

    def setup_input_hook(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments of forward, so that the hooks are called when their gradients are there."""

        def at_inputs(grads: tuple[Any, ...]) -> tuple[Any, ...]:
            if self.grad_outputs is None:  # backward has not come by the outputs
                return grads
            full: list[Any] = [None] * self.n_inputs
            for i, grad in zip(self.input_places, grads, strict=True):
                full[i] = grad
            result = self._call(tuple(full))
            self.grad_outputs = None
            return tuple(result[i] for i in self.input_places)

        self.n_inputs = len(args)
        args, self.input_places = self._pass_through(args, at_inputs)
        return args

    def _call(self, grad_input: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in self.user_hooks:
            changed = hook(self.module, grad_input, self.grad_outputs)
            if changed is None:
                continue
            changed = _tupled(changed)
            if len(changed) != len(grad_input):
                raise RuntimeError(
                    f"Backward hook returned an invalid number of grad_input, got {len(changed)}, but expected "
                    f"{len(grad_input)}"
                )
            _check_changed(hook, grad_input, changed)
            grad_input = changed
        return grad_input

    def setup_output_hook(self, result: Any) -> Any:
        """What forward returned, so that its gradients are kept and the pre-hooks called.

        Returns: what forward returned.
        """

        def at_outputs(grads: tuple[Any, ...]) -> tuple[Any, ...]:
            full: list[Any] = [None] * self.n_outputs
            for i, grad in zip(self.output_places, grads, strict=True):
                full[i] = grad
            given = tuple(full)
            for hook in self.user_pre_hooks:
                changed = hook(self.module, given)
                if changed is None:
                    continue
                if len(_tupled(changed)) != len(given):
                    raise RuntimeError(
                        f"Backward pre hook returned an invalid number of grad_output, got {len(_tupled(changed))}, "
                        f"but expected {len(given)}"
                    )
                _check_changed(hook, given, _tupled(changed))
                given = _tupled(changed)
            self.grad_outputs = given
            if not self.input_places:  # no gradient goes to the inputs: this is the place to call the hooks
                nothing = self._call((None,) * self.n_inputs)
                if any(grad is not None for grad in nothing):
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient should always return None or "
                        "None for all gradients."
                    )
                self.grad_outputs = None
            return tuple(given[i] for i in self.output_places)

        single = not isinstance(result, tuple)
        values = (result,) if single else result
        self.n_outputs = len(values)
        values, self.output_places = self._pass_through(values, at_outputs)
        return values[0] if single else values
