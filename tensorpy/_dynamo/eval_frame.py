"""Where programs look for the class of compiled modules."""

from __future__ import annotations

from typing import Any

from tensorpy._dynamo.decorators import graph_break
from tensorpy.compiler import disable
from tensorpy.nn.modules.compiled import OptimizedModule

__all__ = ["OptimizedModule", "disable", "is_dynamo_supported", "unsupported"]


def is_dynamo_supported() -> bool:
    """Whether functions can be compiled: always."""
    return True


def unsupported(first: Any, second: Any, /) -> Any:
    """Gives the second value, as what no graph has: a graph ends before it.

    Example:
        >>> tp._dynamo.eval_frame.unsupported(1, 2)
        2
    """
    graph_break("unsupported() is called")
    return second
