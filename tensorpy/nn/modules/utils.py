"""Sizes that are given once for every dimension."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """A function, called `name`, that makes an n-tuple of one number, and a tuple of n numbers as they are."""

    def tupled(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else (x,) * n

    tupled.__name__ = name
    return tupled


_single, _pair = _ntuple(1, "_single"), _ntuple(2, "_pair")
_triple, _quadruple = _ntuple(3, "_triple"), _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: Iterable[Any], n: int) -> tuple[Any, ...]:
    """Each value n times, the last first: what pad takes."""
    return tuple(value for value in reversed(tuple(t)) for _ in range(n))


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Takes a prefix off the names that begin with it, in a state_dict and its metadata; they come last then.

    Arguments:
        state_dict: the state_dict, which is changed
        prefix: the prefix, such as "module." of parallel models

    Example:
        >>> state = {"module.weight": 1, "bias": 2}
        >>> consume_prefix_in_state_dict_if_present(state, "module.")
        >>> state
        {'bias': 2, 'weight': 1}
    """
    for name in [name for name in state_dict if name.startswith(prefix)]:
        state_dict[name.removeprefix(prefix)] = state_dict.pop(name)
    metadata = getattr(state_dict, "_metadata", {})
    for name in [name for name in metadata if name and f"{name}.".startswith(prefix)]:
        metadata[f"{name}.".removeprefix(prefix).removesuffix(".")] = metadata.pop(name)
