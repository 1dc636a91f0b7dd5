"""autograd.Function: operators whose gradient is written in Python."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

from tensorpy import _C
from tensorpy._C import FunctionCtx, Tensor
from tensorpy.autograd import forward_ad
from tensorpy.autograd.grad_mode import no_grad


def _no_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    """Fills in ctx after forward() when forward() takes no ctx itself."""
    raise NotImplementedError("setup_context is not implemented")


def _saved_variables(ctx: FunctionCtx) -> tuple[Tensor, ...]:
    """What saved_tensors was called once."""
    warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
    return ctx.saved_tensors


class FunctionMeta(type):
    """Gives each Function the class of its contexts, which is also the name of its nodes: `<Class>Backward`.

    Inside of grad and its kin nodes have the name `<Class>GeneratedBackward`.
    """

    _backward_cls: type[FunctionCtx]
    _generated: type[FunctionCtx] | None

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> None:
        super().__init__(name, bases, namespace)
        cls._generated = None
        own = {"_forward_cls": cls, "__module__": cls.__module__, "saved_variables": property(_saved_variables)}
        cls._backward_cls = type(name + "Backward", (FunctionCtx,), own)


def _two_backwards(*args: Any) -> Any:
    raise RuntimeError("Implementing both 'backward' and 'vjp' for a custom Function is not allowed.")


class Function(metaclass=FunctionMeta):
    """An operator with a gradient of its own: subclass it, write `forward` and `backward` as static methods, and call
    `apply`.

    `forward(ctx, *args)` computes; it may keep tensors with `ctx.save_for_backward` and anything else as attributes of
    ctx. Or `forward(*args)` only computes and `setup_context(ctx, inputs, output)` keeps. `backward(ctx, *grads)`
    gets one
    gradient per output and returns one per argument of forward, None for those that have none. What backward computes
    with operators is itself differentiable.

    Example:
        >>> class Cube(tp.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x**3
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         (x,) = ctx.saved_tensors
        ...         return grad * 3 * x**2
        >>> x = tp.tensor([2.0], requires_grad=True)
        >>> Cube.apply(x).backward()
        >>> x.grad
        tensor([12.])
    """

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Computes the outputs.

        Returns: a tensor, or a tuple of what may be tensors.
        """
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    setup_context: Any = staticmethod(_no_setup_context)

    @staticmethod
    def backward(*args: Any, **kwargs: Any) -> Any:
        """Computes the gradients of the arguments from those of the outputs.

        Returns: a gradient for each argument, None where there is none.
        """
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD: as a static method."
        )

    vjp = backward
    generate_vmap_rule = False
    _takes_transforms = False  # whether a forward() that takes ctx is fine inside of vmap, grad and their kin

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """Computes the tangents of the outputs from those of the arguments, zeros where one has none and None for what
        is no tensor.

        Returns: a tangent for each output, None where there is none.
        """
        raise NotImplementedError("a Function that is differentiated forward defines jvp as a static method")

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """Computes the outputs for a batch of arguments, whose samples are counted in the dimensions in_dims, and says
        in which dimensions of the outputs: (outputs, out_dims). Without one `generate_vmap_rule = True` has apply()
        called for each sample.

        Returns: the outputs, and for each the dimension that counts the samples.
        """
        raise NotImplementedError("a Function that is called under vmap defines vmap, or generate_vmap_rule = True")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Calls forward and records the call for backward.

        Returns: what forward gives.
        """
        with_setup = cls._has_setup_context()
        if with_setup or kwargs:
            args, kwargs = cls._bound(with_setup, args, kwargs)
        if _C._transform(0):
            cls._check_transformed(with_setup, kwargs)
        if kwargs:
            raise TypeError(f"{cls.__name__}.apply() takes no keyword-only arguments, got {', '.join(kwargs)}")
        if _C._vmap_levels():
            from tensorpy.func.custom import batch_number

            if batch_number(args):
                return cls._apply_batched(args)
        if _C._forward_levels() and forward_ad.has_tangents(args):
            if cls.jvp is Function.jvp:
                raise NotImplementedError(
                    "You must implement the jvp function for custom autograd.Function: "
                    f"{cls.__name__} defines no static method jvp(ctx, *tangents), which forward mode calls"
                )
            return forward_ad.apply_function(cls, args)
        return _C._apply_function(cls, cls._named_ctx_class(), with_setup, *args)

    @classmethod
    def _bound(cls, with_setup: bool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The arguments in forward's order, and those that it takes by name only."""
        if with_setup:
            bound = inspect.signature(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            return bound.args, bound.kwargs
        bound = inspect.signature(cls.forward).bind(None, *args, **kwargs)
        return bound.args[1:], bound.kwargs

    @classmethod
    def _named_ctx_class(cls) -> type[FunctionCtx]:
        """The class of contexts, under the name that nodes have where the call is."""
        if not _C._transform(0):
            return cls._backward_cls
        if cls._generated is None:
            cls._generated = type(
                f"{cls.__name__}GeneratedBackward", (cls._backward_cls,), {"__module__": cls.__module__}
            )
        return cls._generated

    @classmethod
    def _has_setup_context(cls) -> bool:
        return cls.setup_context is not _no_setup_context

    @classmethod
    def _check_transformed(cls, with_setup: bool, kwargs: dict[str, Any]) -> None:
        """A call inside of a transform: its context is filled in from outputs that the transform has seen."""
        if not with_setup and not cls._takes_transforms:
            raise RuntimeError(
                "In order to use an autograd.Function with functorch transforms, it must override the setup_context "
                f"staticmethod: {cls.__name__} fills in its context in forward()"
            )
        if kwargs:
            raise NotImplementedError(
                "Run vmap on autograd.Function with kwarg-only Tensor args. "
                f"NYI: {cls.__name__}.apply() takes no keyword arguments inside of a transform, got {', '.join(kwargs)}"
            )

    @classmethod
    def _apply_batched(cls, args: tuple[Any, ...]) -> Any:
        from tensorpy.func.custom import call_rule, sample_by_sample

        own = cls.vmap is not Function.vmap
        if own and cls.generate_vmap_rule:
            raise RuntimeError(
                f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overridden "
                "vmap staticmethod: one of them says how"
            )
        if own:
            return call_rule(cls.__name__, cls.vmap, args)
        if not cls.generate_vmap_rule:
            raise RuntimeError(
                f"You tried to vmap over {cls.__name__}, but it does not have vmap support: a Function has a static "
                "method vmap(info, in_dims, *args), or sets generate_vmap_rule=True"
            )
        return call_rule(cls.__name__, sample_by_sample(cls.apply), args)

    def __init_subclass__(cls) -> None:
        if "vjp" in cls.__dict__:
            both = "backward" in cls.__dict__
            cls.backward = staticmethod(_two_backwards) if both else cls.vjp  # type: ignore[method-assign]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
            f"function with static forward method: {type(self).__name__}.apply(...)"
        )


class _SingleLevelFunction(Function):
    """A Function for rules of transforms: it may be called inside of them, and fills in its context in forward()."""

    _takes_transforms = True
    generate_vmap_rule = True


class NestedIOFunction(Function):
    """A Function over nested arguments, of before Functions took any; nobody calls its instances, in PyTorch too.

    Example:
        >>> issubclass(tp.autograd.function.NestedIOFunction, tp.autograd.Function)
        True
    """


class InplaceFunction(Function):
    """A Function with a switch for working in place, of before Functions took arguments for it."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class _NotTwice(Function):
    """Passes gradients on and refuses to be differentiated."""

    _takes_transforms = True

    @staticmethod
    def forward(ctx: Any, *grads: Tensor) -> tuple[Tensor, ...]:
        return tuple(g.detach() for g in grads)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


def once_differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a backward() that is not itself differentiable: a second backward through it is an error, not wrong."""

    @functools.wraps(function)
    def wrapper(ctx: Any, *args: Any) -> Any:
        with no_grad():
            outputs = function(ctx, *args)
        wanted = any(isinstance(a, Tensor) and a.requires_grad for a in args)
        if not (_C.is_grad_enabled() and wanted):
            return outputs
        single = not isinstance(outputs, tuple)
        values = (outputs,) if single else outputs
        floating = [v for v in values if isinstance(v, Tensor) and (v.is_floating_point() or v.is_complex())]
        marked = iter(_NotTwice.apply(*(_C._want_gradient(v.detach()) for v in floating)) if floating else ())
        result = tuple(next(marked) if any(v is f for f in floating) else v for v in values)
        return result[0] if single else result

    return wrapper


BackwardCFunction = FunctionCtx

__all__ = ["Function", "FunctionCtx", "FunctionMeta", "InplaceFunction", "NestedIOFunction", "once_differentiable"]
