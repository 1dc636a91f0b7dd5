"""What this tensorpy computes with."""

from __future__ import annotations

import platform
from pathlib import Path

from tensorpy import _C, __version__
from tensorpy.backends import _blas


def show() -> str:
    """The version, the CPU kernels in use, the BLAS library and the threads, a line each."""
    blas = _blas.locate()
    return "\n".join(
        [
            f"tensorpy {__version__} on {platform.python_implementation()} {platform.python_version()}:",
            f"  - Machine: {platform.system()} {platform.machine()}",
            f"  - CPU capability: {_C._cpu_capability()}",
            f"  - BLAS: {Path(blas).name if blas else 'none'}",
            f"  - Threads: {_C.get_num_threads()}",
            "",
        ]
    )


def _cxx_flags() -> str:
    """The flags of the C++ compiler: there is none."""
    return ""


def parallel_info() -> str:
    """How many threads a call may use."""
    return f"tensorpy.get_num_threads() : {_C.get_num_threads()}\nOpenMP\n"
