"""functorch's names: the same functions, which say where they are now."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any


def deprecated(function: Callable[..., Any], now: str | None = None) -> Callable[..., Any]:
    """The function, whose calls warn; now: what to call, if not torch.func's of the name."""
    name = getattr(function, "__name__", "")
    where = now or f"torch.func.{name}"

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            f"We've integrated functorch into PyTorch: `functorch.{name}` is an old name, deprecated as of PyTorch "
            f"2.0. Please use `{where}` instead.",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    return wrapper
