"""compile(): for scripts that call it. There is nothing to compile: functions and modules run as they are."""

from __future__ import annotations

from typing import Any


def compile(model: Any = None, **options: Any) -> Any:
    """The function or module itself, whatever the options; without one, a decorator that does the same.

    Arguments:
        model: the function or module; None makes a decorator

    Example:
        >>> square = tp.compile(lambda x: x * x)
        >>> square(tp.tensor([2.0, 3.0]))
        tensor([4., 9.])
    """
    return model if model is not None else lambda function: function
