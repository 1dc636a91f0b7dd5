"""What a function can see beside its arguments: the tensors, which become inputs of its graph, and the Python values,
which must be as they were for the graph to be the function's.

Seen are closures, defaults, the globals that the code names and the modules that it imports, and what these hold:
attributes and slots of objects, items of containers, elements of arrays, functions that they name in turn. A place is a
dict, list, tuple, deque, cell or object and a key in it.
Not seen: attributes that a property computes, where an iterator stands, what only a library holds (the environment).
"""

from __future__ import annotations

import functools
import sys
from collections import deque
from types import CellType, CodeType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any, NamedTuple

from tensorpy._C import Tensor

MOST_PLACES = 50_000
_NOTHING = object()
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


class Place(NamedTuple):
    """Where a value is found."""

    holder: Any
    key: Any

    def read(self) -> Any:
        try:
            if isinstance(self.key, MemberDescriptorType):
                return self.key.__get__(self.holder)
            return self.holder.cell_contents if type(self.holder) is CellType else self.holder[self.key]
        except (LookupError, ValueError, AttributeError):  # of an empty cell or slot
            return _NOTHING

    def __str__(self) -> str:
        return "a variable of an outer function" if type(self.holder) is CellType else f"{self.key!r}"


def same(a: Any, b: Any) -> bool:
    """The same object, or the same plain value."""
    if a is b or type(a) is not type(b):
        return a is b
    return a.hex() == b.hex() if isinstance(a, float) else isinstance(a, _PLAIN) and bool(a == b)


def _is_array(thing: Any) -> bool:
    return type(thing).__module__ in ("numpy", "array") and hasattr(thing, "tobytes")


def _extent(holder: Any) -> Any:
    """A container's keys or length; what stands in a set or an array."""
    if isinstance(holder, dict):
        return list(holder)
    if isinstance(holder, (set, frozenset)):
        return {item if isinstance(item, _PLAIN) else id(item) for item in holder}
    return holder.tobytes() if _is_array(holder) else len(holder)


def _is_ours(thing: Any) -> bool:
    root = (getattr(thing, "__module__", None) or "").split(".")[0]
    return root in ("tensorpy", "torch", "builtins") or root in sys.stdlib_module_names


def _names(code: CodeType) -> set[str]:
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    return set(code.co_names).union(*map(_names, inner))


class Surroundings:
    """What was found from some objects on.

    Arguments:
        roots: what is called, and objects among its arguments

    Example:
        >>> from tensorpy._dynamo.surroundings import Surroundings
        >>> scale = tp.ones(2)
        >>> seen = Surroundings([lambda x: x * scale])
        >>> id(scale) in seen.tensors, seen.changed()
        (True, None)
    """

    def __init__(self, roots: list[Any]) -> None:
        self.tensors: dict[int, Place] = {}
        self.values: list[tuple[Place, Any]] = []  # tensors: the objects, which may be others of their kind later
        self.sizes: list[tuple[Any, Any]] = []  # containers and their extents
        self._seen: dict[int, Any] = {}  # kept, so that no other object gets the number
        self._classes: set[type] = set()
        self._of_modules: set[tuple[int, str]] = set()
        self._waiting: list[tuple[Any, frozenset[str]]] = [(root, frozenset()) for root in roots]
        while self._waiting and not self.is_too_large():
            self._look(*self._waiting.pop())

    def is_too_large(self) -> bool:
        return len(self.values) > MOST_PLACES

    def changed(self, tensors: bool = False) -> str | None:
        """Where a value is another one than it was; `tensors`: also where it is another tensor."""
        for place, value in self.values:
            now = place.read()
            if now is value or same(now, value):
                continue
            if tensors or not (isinstance(value, Tensor) and type(now) is type(value)):
                return str(place)
        for holder, size in self.sizes:
            if _extent(holder) != size:
                return f"the keys {size}" if isinstance(holder, dict) else f"a {type(holder).__name__}"
        return None

    # ---- the walk ----

    def _find(self, holder: Any, key: Any, names: frozenset[str] = frozenset()) -> None:
        place = Place(holder, key)
        value = place.read()
        self.values.append((place, value))
        if isinstance(value, Tensor):
            self.tensors.setdefault(id(value), place)
        elif not isinstance(value, _PLAIN) and value is not _NOTHING:
            self._waiting.append((value, names))

    def _look(self, value: Any, names: frozenset[str]) -> None:
        if id(value) in self._seen and not isinstance(value, ModuleType):
            return
        self._seen[id(value)] = value
        if isinstance(value, MethodType):
            self._waiting += [(value.__self__, names), (value.__func__, names)]
        elif isinstance(value, FunctionType):
            self._look_at_function(value)
        elif isinstance(value, ModuleType):
            self._look_at_module(value, names)
        elif isinstance(value, dict):
            self._look_at_items(value, list(value))
        elif isinstance(value, (list, tuple, deque)):
            self._look_at_items(value, range(len(value)))
        elif isinstance(value, (set, frozenset)) or _is_array(value):
            self.sizes.append((value, _extent(value)))
        elif isinstance(value, type):
            self._look_at_class(value)
        else:
            self._look_at_object(value)

    def _look_at_items(self, holder: Any, keys: Any) -> None:
        self.sizes.append((holder, _extent(holder)))
        for key in keys:
            self._find(holder, key)

    def _look_at_function(self, function: FunctionType) -> None:
        inner = getattr(function, "__wrapped__", None)
        if inner is not None:
            self._waiting.append((inner, frozenset()))
        for cell in function.__closure__ or ():
            self._find(cell, None)
        if _is_ours(function):
            return
        self._waiting.append((function.__dict__, frozenset()))
        names = frozenset(_names(function.__code__))
        for given in (function.__defaults__, function.__kwdefaults__):
            if given:
                self._waiting.append((given, frozenset()))
        for name in sorted(names & function.__globals__.keys()):
            self._find(function.__globals__, name, names)
        for name in sorted((names & sys.modules.keys()) - function.__globals__.keys()):
            self._waiting.append((sys.modules[name], names))

    def _look_at_module(self, module: ModuleType, names: frozenset[str]) -> None:
        """A module's variables, of those that the code names."""
        root = module.__name__.split(".")[0]
        if root in ("tensorpy", "torch", "numpy") or root in sys.stdlib_module_names:
            return
        for name in sorted(names & vars(module).keys()):
            if (id(module), name) not in self._of_modules:
                self._of_modules.add((id(module), name))
                self._find(vars(module), name, names)

    def _look_at_object(self, value: Any) -> None:
        for name in ("__func__", "fget", "func", "args", "keywords"):  # of static methods, properties and partials
            if isinstance(value, (staticmethod, classmethod, property, functools.partial)) and hasattr(value, name):
                self._waiting.append((getattr(value, name), frozenset()))
        state = getattr(value, "__dict__", None)
        if isinstance(state, dict):
            self._look(state, frozenset())
        for kind in type(value).__mro__:
            if not _is_ours(kind):
                for slot in (s for s in vars(kind).values() if isinstance(s, MemberDescriptorType)):
                    self._find(value, slot)
        self._look_at_class(type(value))

    def _look_at_class(self, kind: type) -> None:
        for each in kind.__mro__:
            if not _is_ours(each) and each not in self._classes:
                self._classes.add(each)
                for name in vars(each):
                    self._find(vars(each), name)
