"""Whether there is oneDNN: tensorpy computes with kernels of its own and OpenBLAS."""

from __future__ import annotations


def is_available() -> bool:
    """Whether there is oneDNN: there is not."""
    return False


enabled = True  # a switch without effect
