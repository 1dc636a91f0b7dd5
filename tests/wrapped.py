"""What tests of modes and classes share: a mode that writes down operators, a class that wraps tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import tensorpy as tp
from tensorpy.utils._python_dispatch import TorchDispatchMode, get_alias_info, return_and_correct_aliasing


class Recorder(TorchDispatchMode):
    """Writes down each operator with its arguments, and runs it."""

    def __init__(self, key: str | None = None) -> None:
        super().__init__(key)
        self.calls: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []

    @property
    def names(self) -> list[str]:
        return [func._own_name for func, _, _ in self.calls]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls.append((func, args, kwargs))
        return func(*args, **kwargs)


def writes(func: Any) -> bool:
    return any(a.is_write for a in get_alias_info(func).args)


def changed(value: Any, change: Callable[[Any], Any]) -> Any:
    """With each tensor in it replaced."""
    if isinstance(value, tp.Tensor):
        return change(value)
    if isinstance(value, (list, tuple)) and not isinstance(value, tp.Size):
        items = [changed(v, change) for v in value]
        return type(value)(items) if type(value) in (list, tuple) else tuple(items)
    if isinstance(value, dict):
        return {k: changed(v, change) for k, v in value.items()}
    return value


class Wrapped(tp.Tensor):
    """Answers each operator with that operator on the tensor that it holds."""

    inner: tp.Tensor
    seen: ClassVar[list[str]] = []
    __torch_function__ = tp._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls: Any, inner: tp.Tensor, requires_grad: bool = False) -> Any:
        return tp.Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=inner.device,
            requires_grad=requires_grad,
        )

    def __init__(self, inner: tp.Tensor, requires_grad: bool = False) -> None:
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        Wrapped.seen.append(func._own_name)
        out = func(*changed(args, unwrapped), **changed(kwargs, unwrapped))
        return return_and_correct_aliasing(func, args, kwargs, changed(out, cls))

    def __tensor_flatten__(self) -> Any:
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(inner: Any, context: Any, size: Any, stride: Any) -> Any:
        return Wrapped(inner["inner"])


def unwrapped(t: tp.Tensor) -> tp.Tensor:
    return t.inner if isinstance(t, Wrapped) else t
