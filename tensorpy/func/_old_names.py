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
            "We've integrated functorch into PyTorch. As the final step of the integration, "
            f"`functorch.{name}` is deprecated as of PyTorch 2.0: please use `{where}` instead.",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    return wrapper
