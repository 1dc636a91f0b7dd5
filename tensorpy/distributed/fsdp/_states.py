"""What states of wrapped modules have: names of the plain model, and in a scope the parts that lie here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tensorpy.nn import Module

INSIDE = "_fsdp_wrapped_module"
_scopes = 0


class Wrapper(Module):
    """A module around another, which its state does not name."""


@contextmanager
def in_parts() -> Iterator[None]:
    """States have the parts in this scope, whatever a model says."""
    global _scopes
    _scopes += 1
    try:
        yield
    finally:
        _scopes -= 1


def are_parts() -> bool:
    """Whether a scope of in_parts is open."""
    return _scopes > 0
