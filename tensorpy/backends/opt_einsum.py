"""Whether einsum asks the package opt_einsum for the order of its products: it does not."""

from __future__ import annotations

enabled = False
strategy: str | None = None


def is_available() -> bool:
    """Whether the package is used: it is not."""
    return False
