"""PyTorch's switch for backward as a graph of its own. Backward of what a compiled function has made is compiled here
without it: its calls are noted and run together, wherever backward() is called."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

compiled_autograd_enabled = False


@contextmanager
def _enable(compiler_fn: Callable[..., Any], dynamic: bool = True, **options: Any) -> Iterator[None]:
    """Nothing: backward in the block is compiled as ever, and the function is given no graph of it.

    Arguments:
        compiler_fn: is not called
        dynamic: sizes may be any
        options: nobody reads them

    Returns: a context.

    Example:
        >>> x = tp.ones(2, requires_grad=True)
        >>> with tp._dynamo.compiled_autograd._enable(tp.compile):
        ...     tp.compile(tp.sin)(x).sum().backward()
    """
    yield


@contextmanager
def _disable() -> Iterator[None]:
    """Nothing: backward of what a compiled function has made is compiled as ever.

    Returns: a context.

    Example:
        >>> with tp._dynamo.compiled_autograd._disable():
        ...     tp.compile(tp.sin)(tp.zeros(1))
        tensor([0.])
    """
    yield


__all__ = ["compiled_autograd_enabled"]
