"""What libraries import of torch._jit_internal: marks for a compiler of Python that is not here."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _copy_to_script_wrapper(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a method that a scripted module would have as well; nothing scripts modules, so the method is as it was."""
    return fn
