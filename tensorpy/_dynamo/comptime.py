"""What a program has run while it is being compiled: never, since Python runs at every call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def comptime(fn: Callable[..., Any], fallback_fn: Callable[[], Any] | None = None) -> Any:
    """`fallback_fn()` where there is one, else nothing.

    Arguments:
        fn: would be called by a compiler
        fallback_fn: is called instead

    Example:
        >>> from tensorpy._dynamo.comptime import comptime
        >>> comptime(print, lambda: "as it is written")
        'as it is written'
    """
    return fallback_fn() if fallback_fn is not None else None


__all__ = ["comptime"]
