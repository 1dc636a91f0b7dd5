"""The names that compile(backend=) takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorpy import _compile
from tensorpy._compile import InvalidBackend, list_backends, register_backend

CompilerFn = Callable[..., Callable[..., Any]]


def lookup_backend(compiler_fn: Any) -> Any:
    """The function of a graph and its inputs that a backend's name stands for; a function is its own.

    Arguments:
        compiler_fn: the name, or a function

    Raises: InvalidBackend for a name that is none.

    Example:
        >>> from tensorpy._dynamo.backends.registry import lookup_backend
        >>> graph = tp.fx.symbolic_trace(lambda x: x * 2)
        >>> lookup_backend("eager")(graph, [tp.ones(1)])(tp.ones(1))
        tensor([2.])
    """
    found = _compile.lookup_backend(compiler_fn)
    if not isinstance(found, str):
        return found
    return lambda gm, example_inputs, **words: _compile.compile(gm.forward, backend=found)


__all__ = ["CompilerFn", "InvalidBackend", "list_backends", "lookup_backend", "register_backend"]
