"""State dictionaries in each other, as one of long keys and back.

A key is the way to a value, joined by dots. Dictionaries are always gone into; lists where a tensor or a dictionary is
in them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from tensorpy._C import Tensor

Way: TypeAlias = "tuple[Any, ...]"


def _is_whole(value: Any) -> bool:
    """Whether a value is saved as one."""
    if isinstance(value, Mapping):
        return False
    if not isinstance(value, list):
        return True
    return not any(isinstance(e, Tensor) or (isinstance(e, (Mapping, list)) and not _is_whole(e)) for e in value)


def _visit(way: Way, said: Way, value: Any, see: Callable[[Way, Way, Any], None]) -> None:
    if isinstance(value, Mapping):
        for key, each in value.items():
            _visit((*way, key), (*said, str(key)), each, see)
    elif _is_whole(value):
        see(way, said, value)
    else:
        for place, each in enumerate(value):
            _visit((*way, place), (*said, place), each, see)


def flatten(state_dict: Mapping[Any, Any]) -> tuple[dict[str, Any], dict[str, Way], dict[str, Way]]:
    """The values by their long keys, the way to each, and the same as files have it: the keys of dictionaries are text
    there, the places in lists numbers."""
    flat: dict[str, Any] = {}
    ways: dict[str, Way] = {}
    written: dict[str, Way] = {}

    def see(way: Way, said: Way, value: Any) -> None:
        key = ".".join(map(str, way))
        if key in flat:
            raise ValueError(f"two values of the state dictionary have the key {key!r}")
        flat[key], ways[key], written[key] = value, way, said

    _visit((), (), state_dict, see)
    return flat, ways, written


def put(state_dict: dict[Any, Any], way: Way, value: Any) -> None:
    """Sets the value at the end of a way; what is missing on it is made: a list where a number is next."""
    inside: Any = state_dict
    for step, then in itertools.pairwise(way):
        inside = _at(inside, step, [] if type(then) is int else {})
    if isinstance(inside, list):
        inside.extend([None] * (way[-1] + 1 - len(inside)))
    inside[way[-1]] = value


def _at(container: Any, step: Any, otherwise: Any) -> Any:
    if isinstance(container, list):
        container.extend([None] * (step + 1 - len(container)))
        if container[step] is None:
            container[step] = otherwise
        return container[step]
    return container.setdefault(step, otherwise)
