"""Marks of what stays as it is: kept for programs that ask for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_BACK_COMPAT_OBJECTS: dict[Any, None] = {}
_MARKED_WITH_COMPATIBILITY: dict[Any, None] = {}


def compatibility(is_backward_compatible: bool) -> Callable[[Any], Any]:
    """A decorator that notes its function or class."""

    def mark(obj: Any) -> Any:
        _MARKED_WITH_COMPATIBILITY.setdefault(obj)
        if is_backward_compatible:
            _BACK_COMPAT_OBJECTS.setdefault(obj)
        return obj

    return mark
