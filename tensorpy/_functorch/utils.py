"""What rules of transforms call before they apply a Function of theirs."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

__all__ = ["enable_single_level_autograd_function"]


def enable_single_level_autograd_function() -> AbstractContextManager[None]:
    """A scope in which a Function runs as it is inside of one transform, as it does anywhere.

    Returns: the context.

    Example:
        >>> from tensorpy._functorch.utils import enable_single_level_autograd_function
        >>> with enable_single_level_autograd_function():
        ...     tp.ones(1)
        tensor([1.])
    """
    return nullcontext()
