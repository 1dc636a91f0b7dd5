"""Stand-ins of func.functionalize under the names by which PyTorch's compilers make them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.func.functionalize import (
    disable,
    enable,
    from_functional_tensor,
    is_functional_tensor,
    sync,
    to_functional_tensor,
)
from tensorpy.utils._pytree import tree_map

__all__ = ["FunctionalTensor", "FunctionalTensorMode", "dispatch_functionalize"]


class _Kind(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return is_functional_tensor(instance)


class FunctionalTensor(metaclass=_Kind):
    """A stand-in: `isinstance(t, FunctionalTensor)` tells whether a tensor is one."""

    to_functional = staticmethod(to_functional_tensor)
    from_functional = staticmethod(from_functional_tensor)
    sync = staticmethod(sync)


class FunctionalTensorMode:
    """A scope in which operators work on stand-ins.

    Arguments:
        pre_dispatch, export: what PyTorch's mode is told; nothing differs by them

    Example:
        >>> from tensorpy._subclasses.functional_tensor import FunctionalTensor, FunctionalTensorMode
        >>> x = tp.ones(2)
        >>> with FunctionalTensorMode():
        ...     t = FunctionalTensor.to_functional(x)
        ...     made = FunctionalTensor.from_functional(t.add_(1))
        >>> made
        tensor([2., 2.])
    """

    def __init__(self, pre_dispatch: bool = False, export: bool = False, **options: Any) -> None:
        self.pre_dispatch, self.export = pre_dispatch, export
        self._before: list[tuple[int, int]] = []

    def __enter__(self) -> FunctionalTensorMode:
        include, exclude = _C._get_dispatch_sets()
        self._before.append((include, exclude))
        _C._set_dispatch_sets(include, exclude & ~_C._KEYS["Functionalize"])  # which such scopes exclude for PyTorch's
        enable(reapply_views=True)
        return self

    def __exit__(self, *error: object) -> None:
        disable()
        _C._set_dispatch_sets(*self._before.pop())


def dispatch_functionalize(func: Callable[..., Any], mode: FunctionalTensorMode | None = None) -> Callable[..., Any]:
    """The function without writes: as func.functionalize, but what it writes to arguments stays inside.

    Arguments:
        func: the function
        mode: the scope in which it is called

    Returns: a function of the same arguments.

    Example:
        >>> from tensorpy._subclasses.functional_tensor import dispatch_functionalize
        >>> x = tp.ones(2)
        >>> dispatch_functionalize(lambda t: t.add_(1))(x), x
        (tensor([2., 2.]), tensor([1., 1.]))
    """

    def wrap(value: Any) -> Any:
        return to_functional_tensor(value) if isinstance(value, Tensor) else value

    def unwrap(value: Any) -> Any:
        return from_functional_tensor(value) if is_functional_tensor(value) else value

    def inner(*args: Any, **kwargs: Any) -> Any:
        with mode or FunctionalTensorMode():
            made = func(*tree_map(wrap, args), **tree_map(wrap, kwargs))
            return tree_map(unwrap, made)

    return inner
