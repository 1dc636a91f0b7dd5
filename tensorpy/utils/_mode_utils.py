"""What tests and tools ask of modes under PyTorch's name: a scope in which none is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorpy.utils._python_dispatch import no_dispatch as no_dispatch


def all_same_mode(modes: Sequence[Any]) -> bool:
    """Whether the modes are one and the same."""
    return all(mode == modes[0] for mode in modes)
