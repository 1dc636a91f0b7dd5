"""compile(): for scripts that call it. There is nothing to compile: functions and modules run as they are."""

from __future__ import annotations

from typing import Any


def compile(model: Any = None, **options: Any) -> Any:
    """The function or module itself, whatever the options; without one, a decorator that does the same."""
    return model if model is not None else lambda function: function
