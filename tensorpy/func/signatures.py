"""What transforms take, for type checkers: a lambda of up to three arguments is one of tensors."""
# pyright: reportOverlappingOverload=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar, overload

from tensorpy._C import Tensor

__all__ = ["OfTensors", "T"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class _Function(Protocol[T_co]):
    """Any function. It has two overloads, so that a checker does not read a lambda's arguments from here."""

    @overload
    def __call__(self, *args: Any, **kwargs: Any) -> T_co: ...
    @overload
    def __call__(self, *args: Any, **kwargs: Any) -> T_co: ...  # type: ignore[overload-cannot-match]


OfTensors = Callable[[Tensor], T] | Callable[[Tensor, Tensor], T] | Callable[[Tensor, Tensor, Tensor], T] | _Function[T]
