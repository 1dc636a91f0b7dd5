"""What a program says of the sizes of its inputs: which vary, between which numbers, and which are alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tensorpy._C import Tensor
from tensorpy._dynamo.exc import UserError, UserErrorType
from tensorpy.utils._pytree import tree_flatten, tree_is_leaf

__all__ = ["Dim", "dims"]

_STATIC, _AUTO, _DYNAMIC = "STATIC", "AUTO", "DYNAMIC"


@dataclass(frozen=True)
class _Hint:
    """A word for a dimension: Dim.AUTO, Dim.DYNAMIC, Dim.STATIC; called, the same between two numbers."""

    word: str
    min: int | None = None
    max: int | None = None

    def __call__(self, min: int | None = None, max: int | None = None) -> _Hint:
        if self.word == _STATIC:
            raise TypeError("Dim.STATIC has no range")
        return _Hint(self.word, min, max)

    def __repr__(self) -> str:
        return f"Dim.{self.word}"


class Dim:
    """A size that varies, by a name: dimensions with one name are alike.

    Dim.AUTO is a size that varies if the program lets it; Dim.DYNAMIC one that varies, or it is an error; Dim.STATIC a
    number. `2 * dim + 1` is a size that follows from another.

    Arguments:
        name: a Python identifier
        min: the least size; None: 0
        max: the largest; None: any

    Raises: ValueError for a name that is none, or a range without numbers.

    Example:
        >>> batch = tp.export.Dim("batch", min=2, max=64)
        >>> tp.export.export(nn.ReLU(), (tp.ones(4, 3),), dynamic_shapes=({0: batch},)).range_constraints
        {s0: VR[2, 64]}
    """

    AUTO = _Hint(_AUTO)
    DYNAMIC = _Hint(_DYNAMIC)
    STATIC = _Hint(_STATIC)

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(f"Dim(): the name is an identifier, not {name!r}")
        self.min, self.max = 0 if min is None else min, max
        if max is not None and max < self.min:
            raise ValueError(f"Dim({name!r}): no size is at least {self.min} and at most {max}")
        self.__name__ = name

    def __mul__(self, other: int) -> _Derived:
        return _Derived(self, other, 0)

    __rmul__ = __mul__

    def __add__(self, other: int) -> _Derived:
        return _Derived(self, 1, other)

    __radd__ = __add__

    def __sub__(self, other: int) -> _Derived:
        return _Derived(self, 1, -other)

    def __repr__(self) -> str:
        return f"Dim('{self.__name__}', min={self.min}{'' if self.max is None else f', max={self.max}'})"


@dataclass(frozen=True)
class _Derived:
    """A size that is `factor * root + offset`."""

    root: Dim
    factor: int
    offset: int

    def __post_init__(self) -> None:
        if type(self.factor) is not int or type(self.offset) is not int or self.factor < 1:
            raise TypeError("a size follows from a Dim by a positive whole number times it, and a whole number more")

    def __mul__(self, other: int) -> _Derived:
        return _Derived(self.root, self.factor * other, self.offset * other)

    __rmul__ = __mul__

    def __add__(self, other: int) -> _Derived:
        return _Derived(self.root, self.factor, self.offset + other)

    __radd__ = __add__

    def __sub__(self, other: int) -> _Derived:
        return self + -other

    @property
    def __name__(self) -> str:
        times = self.root.__name__ if self.factor == 1 else f"{self.factor}*{self.root.__name__}"
        return times if not self.offset else f"{times} {'+' if self.offset > 0 else '-'} {abs(self.offset)}"


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Several sizes that vary.

    Arguments:
        names: their names
        min: the least size of each; None: 0
        max: the largest; None: any

    Returns: a tuple of Dim.

    Example:
        >>> height, width = tp.export.dims("height", "width", min=8)
        >>> width
        Dim('width', min=8)
    """
    return tuple(Dim(name, min=min, max=max) for name in names)


def _wrong(why: str) -> UserError:
    return UserError(UserErrorType.INVALID_INPUT, f"export(dynamic_shapes=): {why}")


def by_leaf(shapes: Any, given: dict[str, Any]) -> list[dict[int, Any] | None]:
    """What is said of each tensor or other leaf of a program's arguments, by dimension; None for nothing.

    Arguments:
        shapes: what export() was given
        given: the arguments by name

    Returns: a list.

    Raises: UserError where it is not nested as the arguments are.

    Example:
        >>> tp.export.dynamic_shapes.by_leaf(({0: tp.export.Dim.AUTO},), {"x": tp.ones(2)})
        [{0: Dim.AUTO}]
    """
    if shapes is None:
        shapes = [None] * len(given)
    if isinstance(shapes, dict):
        if set(shapes) != set(given):
            raise _wrong(f"its keys are the arguments' names, {list(given)}, not {list(shapes)}")
        shapes = [shapes[name] for name in given]
    if not isinstance(shapes, (tuple, list)) or len(shapes) != len(given):
        raise _wrong(f"a dict or tuple with something for each of the arguments {list(given)} is expected")
    found: list[dict[int, Any] | None] = []
    for name, value, said in zip(given, given.values(), shapes, strict=True):
        _walk(value, said, name, found)
    return found


def _walk(value: Any, said: Any, where: str, found: list[dict[int, Any] | None]) -> None:
    if isinstance(value, dict):
        if said is not None and (not isinstance(said, dict) or set(said) != set(value)):
            raise _wrong(f"{where} is a dict with the keys {list(value)}")
        for key, item in value.items():
            _walk(item, None if said is None else said[key], f"{where}[{key!r}]", found)
    elif isinstance(value, (tuple, list)):
        if said is not None and (not isinstance(said, (tuple, list)) or len(said) != len(value)):
            raise _wrong(f"{where} has {len(value)} items")
        for place, item in enumerate(value):
            _walk(item, None if said is None else said[place], f"{where}[{place}]", found)
    elif not tree_is_leaf(value):
        items, given = one_level(value), said
        if given is not None and not isinstance(given, (tuple, list)):
            given = list(one_level(given).values()) if type(given) is type(value) else [given]
        if given is not None and len(given) != len(items):
            raise _wrong(f"{where} has {len(items)} parts")
        for place, (name, item) in enumerate(items.items()):
            _walk(item, None if given is None else given[place], f"{where}.{name}", found)
    else:
        found.append(_of_leaf(value, said, where))


def one_level(value: Any) -> dict[str, Any]:
    """The parts of a container that a class has registered, by the names of its fields, or by numbers.

    Arguments:
        value: the container

    Returns: a dict.

    Example:
        >>> from collections import deque
        >>> tp.export.dynamic_shapes.one_level(deque([5]))
        {'0': 5}
    """
    parts, spec = tree_flatten(value, lambda part: part is not value)
    names = spec.context if type(spec.context) is list and len(spec.context) == len(parts) else range(len(parts))
    return {str(name): part for name, part in zip(names, parts, strict=True)}


def _of_leaf(value: Any, said: Any, where: str) -> dict[int, Any] | None:
    if said is None:
        return None
    if not isinstance(value, Tensor):
        raise _wrong(f"{where} is no tensor, and has no sizes: None is expected, not {said!r}")
    if isinstance(said, (tuple, list)):
        if len(said) != value.dim():
            raise _wrong(f"{where} has {value.dim()} dimensions, not {len(said)}")
        said = dict(enumerate(said))
    if not isinstance(said, dict):
        raise _wrong(f"of {where} a dict of dimensions is expected, not {said!r}")
    out: dict[int, Any] = {}
    for dim, what in said.items():
        if type(dim) is not int or not -value.dim() <= dim < value.dim():
            raise _wrong(f"{where} has no dimension {dim!r}")
        if not (what is None or isinstance(what, (int, Dim, _Derived, _Hint))):
            raise _wrong(f"of dimension {dim} of {where} a Dim, an int or None is expected, not {what!r}")
        if type(what) is int and what != value.shape[dim]:
            raise _wrong(f"dimension {dim} of {where} has the size {value.shape[dim]}, not {what}")
        out[dim % value.dim()] = what
    return out
