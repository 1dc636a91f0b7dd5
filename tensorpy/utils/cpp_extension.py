"""Names of torch's builds of C++ and CUDA code, which is PyTorch's own: a call says so.

Operators in C are built by tensorpy.utils.extension.
"""

from __future__ import annotations

import shutil
from typing import Any

from tensorpy._package.absent import absent, absent_class

__all__ = [
    "CUDA_HOME", "BuildExtension", "CUDAExtension", "CppExtension", "SyclExtension", "include_paths",
    "is_ninja_available", "library_paths", "load", "load_inline", "verify_ninja_availability",
]  # fmt: skip

CUDA_HOME = ROCM_HOME = CUDNN_HOME = None
IS_HIP_EXTENSION = IS_WINDOWS = False
BuildExtension: Any = absent_class(__name__, "BuildExtension")
CppExtension: Any = absent(__name__, "CppExtension")
CUDAExtension: Any = absent(__name__, "CUDAExtension")
SyclExtension: Any = absent(__name__, "SyclExtension")
load: Any = absent(__name__, "load")
load_inline: Any = absent(__name__, "load_inline")


def include_paths(device_type: str = "cpu", torch_include_dirs: bool = True) -> list[str]:
    """Where PyTorch's headers for C++ are: there are none.

    Arguments:
        device_type: the type of device: 'cpu', 'opencl', ...
        torch_include_dirs: is taken, and changes nothing

    Returns: an empty list.

    Example:
        >>> len(tp.utils.cpp_extension.include_paths()) > 0
        False
    """
    return []


library_paths = include_paths


def is_ninja_available() -> bool:
    """Whether the build tool is installed.

    Returns: bool.

    Example:
        >>> isinstance(tp.utils.cpp_extension.is_ninja_available(), bool)
        True
    """
    return shutil.which("ninja") is not None


def verify_ninja_availability() -> None:
    """RuntimeError if it is not.

    Example:
        >>> tp.utils.cpp_extension.verify_ninja_availability()
    """
    if not is_ninja_available():
        raise RuntimeError("Ninja is required to load C++ extensions (pip install ninja to get it)")
