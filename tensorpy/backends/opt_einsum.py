"""Whether einsum asks the package opt_einsum for the order of its products: it does not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

enabled = False
strategy: str | None = None


def is_available() -> bool:
    """Whether the package is used: it is not."""
    return False


def set_flags(_enabled: bool | None = None, _strategy: str | None = None) -> tuple[bool, str | None]:
    """Sets what is not None; gives what it was."""
    global enabled, strategy
    before = enabled, strategy
    if _enabled:
        raise RuntimeError("opt_einsum is not used: einsum takes its operands from left to right")
    strategy = strategy if _strategy is None else _strategy
    return before


@contextmanager
def flags(enabled: bool | None = None, strategy: str | None = None) -> Iterator[None]:
    """Settings for a scope."""
    before = set_flags(enabled, strategy)
    try:
        yield
    finally:
        set_flags(*before)
