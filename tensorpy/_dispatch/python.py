"""Scopes that PyTorch's Python dispatcher has: operators run the same in them, by the same tables."""

from __future__ import annotations

from contextlib import nullcontext

__all__ = ["enable_crossref_functionalize", "enable_python_dispatcher", "no_python_dispatcher"]


class _Scope(nullcontext):  # type: ignore[type-arg]
    """A scope that changes nothing."""


class enable_python_dispatcher(_Scope):
    """A scope in which what a program registered in Python is found, as it is anywhere.

    Example:
        >>> from tensorpy._dispatch.python import enable_python_dispatcher
        >>> with enable_python_dispatcher():
        ...     tp.ones(1)
        tensor([1.])
    """


class no_python_dispatcher(_Scope):
    """The scope of enable_python_dispatcher with nothing to leave out.

    Example:
        >>> from tensorpy._dispatch.python import no_python_dispatcher
        >>> with no_python_dispatcher():
        ...     tp.ones(1)
        tensor([1.])
    """


class enable_crossref_functionalize(_Scope):
    """A scope in which stand-ins of functionalize have the sizes and strides that operators give, as they always do.

    Example:
        >>> from tensorpy._dispatch.python import enable_crossref_functionalize
        >>> with enable_crossref_functionalize():
        ...     tp.func.functionalize(lambda x: x.add_(1))(tp.ones(1))
        tensor([2.])
    """
