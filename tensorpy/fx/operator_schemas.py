"""Arguments of calls by the names of the signatures."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

__all__ = ["ArgsKwargsPair", "normalize_function", "normalize_module"]


class ArgsKwargsPair(NamedTuple):
    """Arguments of a call."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def _by_signature(function: Any, args: Any, kwargs: Any, only_kwargs: bool) -> ArgsKwargsPair | None:
    """Defaults are filled in; keyword-only parameters, or all of them, are given by name. None without a signature."""
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return None
    bound.apply_defaults()
    if not only_kwargs:
        return ArgsKwargsPair(bound.args, bound.kwargs)
    named: dict[str, Any] = {}
    for name, parameter in bound.signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            return None
        given = bound.arguments[name]
        named |= given if parameter.kind is inspect.Parameter.VAR_KEYWORD else {name: given}
    return ArgsKwargsPair((), named)


def normalize_function(
    target: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    arg_types: Any = None,
    kwarg_types: Any = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments of a function's call."""
    return _by_signature(target, args, kwargs or {}, normalize_to_only_use_kwargs)


def normalize_module(
    root: Any,
    target: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments of a call of a module inside the root."""
    forward = root.get_submodule(target).forward
    return _by_signature(forward, args, kwargs or {}, normalize_to_only_use_kwargs)
