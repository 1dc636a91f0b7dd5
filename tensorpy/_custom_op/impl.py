"""What a function that computes shapes asks for sizes that depend on values."""

from __future__ import annotations

from tensorpy.library import get_ctx

__all__ = ["get_ctx"]
