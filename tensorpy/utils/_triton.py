"""Whether there is Triton, a compiler of kernels for GPUs: tensorpy uses none."""

from __future__ import annotations


def has_triton() -> bool:
    """Whether there is a device that it compiles for."""
    return False


def has_triton_package() -> bool:
    """Whether it would be used if it is installed."""
    return False


has_triton_tma = has_triton_tma_device = has_triton_experimental_host_tma = has_triton_stable_tma_api = has_triton
