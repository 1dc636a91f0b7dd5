"""What tests ask of CUDA: it is not here."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

__all__ = ["TEST_CUDA", "TEST_CUDNN", "TEST_MULTIGPU", "tf32_off", "tf32_on_and_off", "with_tf32_off"]

TEST_CUDA = TEST_MULTIGPU = TEST_CUDNN = TEST_MAGMA = TEST_BF16 = TEST_CUSPARSE_GENERIC = False
SM53OrLater = SM60OrLater = SM70OrLater = SM75OrLater = SM80OrLater = SM89OrLater = SM90OrLater = False
SM100OrLater = SM120OrLater = IS_THOR = IS_JETSON = IS_SM89 = IS_SM90 = False
PLATFORM_SUPPORTS_FLASH_ATTENTION = PLATFORM_SUPPORTS_MEM_EFF_ATTENTION = PLATFORM_SUPPORTS_FUSED_ATTENTION = False
PLATFORM_SUPPORTS_CUDNN_ATTENTION = PLATFORM_SUPPORTS_BF16 = PLATFORM_SUPPORTS_FP8 = False
TEST_CUDNN_VERSION = 0
CUDA_DEVICE = None


@contextmanager
def tf32_off() -> Any:
    """A context without TensorFloat32, which is not here."""
    yield


def tf32_on_and_off(*args: Any, **options: Any) -> Callable[[Any], Any]:
    """Runs a test with TensorFloat32 and without it: once, as it is not here."""
    return lambda fn: fn


def with_tf32_off(f: Any) -> Any:
    """Runs a test without TensorFloat32, which is not here."""
    return f


def _get_torch_cuda_version() -> tuple[int, int]:
    return 0, 0


_get_torch_rocm_version = _get_torch_hipblaslt_version = _get_magma_version = _get_torch_cuda_version
TEST_HIPSPARSE_GENERIC = False


def initialize_cuda_context_rng() -> None:
    """Makes generators for devices that are not here: none."""
