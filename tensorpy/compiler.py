"""torch.compiler's names: there is nothing to compile, so functions are given back and the answers are no."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from tensorpy._compile import compile


def is_compiling() -> bool:
    """Whether this is being compiled: never."""
    return False


def is_dynamo_compiling() -> bool:
    """Whether this is being compiled: never."""
    return False


def is_exporting() -> bool:
    """Whether this is being exported: never."""
    return False


class _Nothing(nullcontext[None]):
    """A context and a decorator that change nothing."""

    def __call__(self, fn: Any) -> Any:
        return fn


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """The function itself; without one, a context and decorator that change nothing."""
    return _Nothing() if fn is None else fn


def set_stance(stance: str = "default", **options: Any) -> Any:
    """A context that changes nothing."""
    return _Nothing()


def allow_in_graph(fn: Any) -> Any:
    """The function itself."""
    return fn


def assume_constant_result(fn: Any) -> Any:
    """The function itself."""
    return fn


def substitute_in_graph(original_fn: Any, **options: Any) -> Any:
    """A decorator that gives the function itself."""
    return lambda fn: fn


def cudagraph_mark_step_begin() -> None:
    """Nothing: there are no recorded graphs."""


def reset() -> None:
    """Forgets what was compiled: nothing was."""


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """The compilers there are: none."""
    return []


__all__ = ["compile"]
