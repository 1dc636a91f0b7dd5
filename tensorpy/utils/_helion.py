"""Whether there is Helion, a compiler of kernels for GPUs: tensorpy uses none."""

from __future__ import annotations


def has_helion() -> bool:
    """Whether it is used."""
    return False
