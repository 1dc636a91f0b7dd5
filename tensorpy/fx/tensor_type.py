"""Types of tensors by their shapes, some sizes of which are not known (`Dyn`)."""

from __future__ import annotations

from typing import Any

__all__ = ["Dyn", "TensorType", "is_consistent", "is_more_precise"]


class TensorType:
    """`TensorType((1, 2, Dyn))` is the type of tensors of three dimensions, the last of any size."""

    def __init__(self, dim: Any) -> None:
        self.__origin__, self.__args__ = TensorType, dim

    def __repr__(self) -> str:
        return f"TensorType[{self.__args__}]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorType) and list(self.__args__) == list(other.__args__)

    def __hash__(self) -> int:
        return hash(tuple(self.__args__))

    def __class_getitem__(cls, *args: Any) -> TensorType:
        return TensorType(tuple(args[0] if len(args) == 1 and isinstance(args[0], tuple) else args))


class _DynType:
    """The size or type of which nothing is known."""

    __name__ = "_DynType"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _DynType)

    def __hash__(self) -> int:
        return hash("Dyn")

    def __repr__(self) -> str:
        return "Dyn"


Dyn: _DynType = _DynType()


def _each(first: Any, second: Any, agrees: Any) -> bool:
    if not (isinstance(first, TensorType) and isinstance(second, TensorType)):
        return False
    a, b = first.__args__, second.__args__
    return len(a) == len(b) and all(agrees(x, y) for x, y in zip(a, b, strict=True))


def is_consistent(t1: Any, t2: Any) -> bool:
    """Whether a value may be of both types."""
    return bool(t1 == t2) or t1 == Dyn or t2 == Dyn or _each(t1, t2, is_consistent)


def is_more_precise(t1: Any, t2: Any) -> bool:
    """Whether all that is of the first type is of the second."""
    return bool(t1 == t2) or t2 == Dyn or _each(t1, t2, is_more_precise)
