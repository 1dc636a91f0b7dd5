"""The types that compiled programs would give values: `infer(value)`."""

from __future__ import annotations

from collections.abc import Iterable
from types import UnionType
from typing import Any, get_args, get_origin

from tensorpy import _C
from tensorpy._package.absent import absent_class

_PLAIN = {bool: bool, int: int, float: float, complex: complex, str: str, type(None): type(None)}

# What functions that write ONNX say they take, in their annotations.
Graph = absent_class("torch._C", "Graph")
Value = absent_class("torch._C", "Value")


def _written(hint: Any) -> str:
    """A hint as a compiled program writes it: `List[Optional[int]]`."""
    origin, inner = get_origin(hint), [each for each in get_args(hint) if each is not type(None)]
    if origin is None:
        return str(hint.__name__)
    if origin is UnionType:
        return f"Optional[{_written(inner[0])}]"
    return f"{origin.__name__.title()}[{', '.join(map(_written, get_args(hint))) or '()'}]"


class JitType:
    """A type: `str()` and `annotation_str` are how a compiled program writes it, `hint` is what Python calls it."""

    def __init__(self, hint: Any) -> None:
        self.hint = hint

    @property
    def annotation_str(self) -> str:
        """As an annotation."""
        return _written(self.hint)

    def __str__(self) -> str:
        return self.annotation_str

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JitType) and self.hint == other.hint

    def __hash__(self) -> int:
        return hash(self.hint)


def _one_of(hints: Iterable[Any], what: str) -> Any:
    """The type that all have, or Optional of it where some are None; TypeError if they have two."""
    different = list(dict.fromkeys(hints))
    without = [hint for hint in different if hint is not type(None)]
    if len(without) > 1:
        raise TypeError(f"{what}. Found {JitType(without[0])} and {JitType(without[1])}")
    if len(different) == 2:
        return without[0] | None
    return different[0]


def _hint(value: Any) -> Any:
    """The type of a value; TypeError for one that a compiled program would not take."""
    if type(value) in _PLAIN:
        return _PLAIN[type(value)]
    for kind, hint in ((_C.Tensor, _C.Tensor), (_C.dtype, int), (_C.layout, int), (_C.device, _C.device)):
        if isinstance(value, kind):
            return hint
    if isinstance(value, _C.Generator):
        return _C.Generator
    if isinstance(value, tuple):
        return tuple[tuple(map(_hint, value))]  # type: ignore[misc]
    if isinstance(value, list):
        if not value:
            raise TypeError("List trace inputs must have elements")
        words = "List inputs to traced functions must have consistent element type"
        return list[_one_of(map(_hint, value), words)]  # type: ignore[misc]
    if isinstance(value, dict):
        if not value:
            raise TypeError("Dictionary inputs must have entries")
        words = "Dictionary inputs to traced functions must have consistent type"
        return dict[_one_of(map(_hint, value), words), _one_of(map(_hint, value.values()), words)]  # type: ignore[misc]
    raise TypeError(
        "Only tensors and (possibly nested) tuples of tensors, lists, or dicts are supported as inputs or outputs of "
        f"traced functions, but instead got value of type {type(value).__name__}."
    )


class InferredType:
    """What `infer` found: a type, or why there is none."""

    def __init__(self, hint: Any, why: str = "") -> None:
        self.hint, self.why = hint, why

    def success(self) -> bool:
        """Whether there is a type."""
        return not self.why

    def type(self) -> JitType:
        """The type; RuntimeError if there is none."""
        if self.why:
            raise RuntimeError(f"Tried to get the type of a value that has none: {self.why}")
        return JitType(self.hint)

    def reason(self) -> str:
        """Why there is no type."""
        return self.why


def infer(value: Any) -> InferredType:
    """The type that a compiled program would give a value, or why none."""
    try:
        return InferredType(_hint(value))
    except TypeError as error:
        return InferredType(None, str(error))


_jit_try_infer_type = infer
