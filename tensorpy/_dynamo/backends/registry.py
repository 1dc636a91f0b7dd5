"""The names that compile(backend=) takes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tensorpy import _compile
from tensorpy._compile import InvalidBackend, list_backends, register_backend

CompilerFn = Callable[..., Callable[..., Any]]


@functools.cache
def _of_graph(name: str) -> CompilerFn:
    """What makes a function of a graph as tensorpy's own backend of that name makes one of a function."""

    def backend(gm: Any, example_inputs: Any, **words: Any) -> Callable[..., Any]:
        compiled: Callable[..., Any] = _compile.compile(gm.forward, backend=name)
        return compiled

    backend.__name__ = backend.__qualname__ = name
    return backend


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
    return _of_graph(found) if isinstance(found, str) else found


__all__ = ["CompilerFn", "InvalidBackend", "list_backends", "lookup_backend", "register_backend"]
