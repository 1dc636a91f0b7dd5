"""Switches of products and attention on NVIDIA's devices: kept for the programs that set them, and without effect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorpy._package import precision as precisions


def is_built() -> bool:
    """Whether tensorpy is built for such devices: it is not."""
    return False


class _Matmul(precisions.Operator):
    """The switches of matrix products; TF32 is the other name of a precision below "highest"."""

    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True
    allow_fp16_accumulation = False

    @property
    def allow_tf32(self) -> bool:
        return precisions.get_cuda_tf32()

    @allow_tf32.setter
    def allow_tf32(self, allow: bool) -> None:
        precisions.put_cuda_tf32(allow)


matmul: Any = _Matmul("cuda", "matmul")
_attention = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True, "reduced": False}


def flash_sdp_enabled() -> bool:
    """What enable_flash_sdp was told."""
    return _attention["flash"]


def mem_efficient_sdp_enabled() -> bool:
    """What enable_mem_efficient_sdp was told."""
    return _attention["mem_efficient"]


def math_sdp_enabled() -> bool:
    """What enable_math_sdp was told."""
    return _attention["math"]


def cudnn_sdp_enabled() -> bool:
    """What enable_cudnn_sdp was told."""
    return _attention["cudnn"]


def enable_flash_sdp(enabled: bool) -> None:
    """Whether attention may use one of its kernels."""
    _attention["flash"] = enabled


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Whether attention may use one of its kernels."""
    _attention["mem_efficient"] = enabled


def enable_math_sdp(enabled: bool) -> None:
    """Whether attention may use one of its kernels."""
    _attention["math"] = enabled


def enable_cudnn_sdp(enabled: bool) -> None:
    """Whether attention may use one of its kernels."""
    _attention["cudnn"] = enabled


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """What allow_fp16_bf16_reduction_math_sdp was told."""
    return _attention["reduced"]


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Whether attention may sum in the dtype of half precision."""
    _attention["reduced"] = enabled


def can_use_flash_attention(params: Any, debug: bool = False) -> bool:
    """Whether attention on such a device can use the kernel: it can use none."""
    return False


can_use_efficient_attention = can_use_cudnn_attention = can_use_flash_attention


def is_flash_attention_available() -> bool:
    """Whether attention on such a device has the kernel: it has none."""
    return False


is_ck_sdpa_available = is_flash_attention_available

#: The words that each kind of library may be set to without such a device, the first from the start, and those refused.
_LIBRARIES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "linalg": (("default",), ("cusolver", "magma")),
    "blas": (("default", "cublas", "hipblas"), ("cublaslt", "hipblaslt", "ck")),
    "rocm_fa": (("default", "aotriton"), ("ck",)),
}
_chosen: dict[str, str] = {}


def _preferred(kind: str, backend: str | None) -> str:
    allowed, refused = _LIBRARIES[kind]
    if backend is not None:
        if backend not in allowed + refused:
            raise RuntimeError(f"Unknown input value. Choose from: {', '.join(allowed + refused)}; got {backend!r}")
        if backend in refused:
            raise RuntimeError(f"Cannot set preferred backend to {backend}: tensorpy is not built for such devices")
        _chosen[kind] = backend
    return _chosen.get(kind, allowed[0])


def preferred_linalg_library(backend: str | None = None) -> str:
    """Which library linear algebra on such a device is asked of: a word that is kept; None asks."""
    return _preferred("linalg", backend)


def preferred_blas_library(backend: str | None = None) -> str:
    """Which library products on such a device are asked of: a word that is kept; None asks."""
    return _preferred("blas", backend)


def preferred_rocm_fa_library(backend: str | None = None) -> str:
    """Which library attention on such a device is asked of: a word that is kept; None asks."""
    return _preferred("rocm_fa", backend)


@contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Iterator[dict[str, Any]]:
    """A context in which the switches of attention are set."""
    before = dict(_attention)
    _attention.update(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn)
    try:
        yield {}
    finally:
        _attention.update(before)
