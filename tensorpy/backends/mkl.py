"""Whether there is MKL: tensorpy computes with kernels of its own and OpenBLAS."""

from __future__ import annotations


def is_available() -> bool:
    """Whether there is MKL: there is not."""
    return False
