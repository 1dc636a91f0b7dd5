"""Functions that are compiled once for all their calls: there is nothing to say for it."""

from __future__ import annotations

from tensorpy.compiler import nested_compile_region

mark_compile_region = nested_compile_region

__all__ = ["mark_compile_region"]
