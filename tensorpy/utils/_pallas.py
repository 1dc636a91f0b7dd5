"""Whether there is Pallas, a compiler of kernels for TPUs and GPUs: tensorpy uses none."""

from __future__ import annotations


def has_pallas_package() -> bool:
    """Whether it would be used if it is installed."""
    return False


has_jax_package = has_pallas = has_tpu_pallas = has_cpu_pallas = has_cuda_pallas = has_pallas_package
