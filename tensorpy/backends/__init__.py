"""Devices that are built outside of tensorpy: libraries with a TENSORPY_BACKEND (tensorpy/backend.h).

tensorpy.testing.device runs the whole table of operators on one; docs/backends.md walks through an example. The modules
beside this one are the switches of libraries that torch may be built with, imported at first use.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tensorpy import _C, ops
from tensorpy._package import parts as _parts
from tensorpy._package import precision as _precisions
from tensorpy.backends._switches import disable_global_flags as disable_global_flags
from tensorpy.backends._switches import flags_frozen as flags_frozen
from tensorpy.backends._switches import freezable as _freezable
from tensorpy.backends._switches import precision as _precision

if TYPE_CHECKING:
    from tensorpy.backends._report import Report


def load(library: str | os.PathLike[str]) -> None:
    """Loads a backend's library, which registers its device type; it stays loaded. As ops.load_library.

    Example:
        >>> backends = tp.backends.load
    """
    ops.load_library(library)


def include() -> str:
    """The folder to give the compiler (-I) for tensorpy/library.h.

    Returns: str.

    Example:
        >>> tp.backends.include().endswith("include")
        True
    """
    package = Path(__file__).resolve().parents[1]
    beside = package.parent / "csrc" / "include"
    return str(beside if beside.is_dir() else package / "include")


def fallback_calls(device: str) -> int:
    """How many calls of a device's operators the CPU has computed so far, for want of a kernel.

    Returns: int.

    Example:
        >>> calls = tp.backends.fallback_calls("mine")  # doctest: +SKIP
    """
    return sum(_C._host_calls(device).values())


def report(device: str) -> Report:
    """What a device computes itself, and what would take the most off the CPU: see Report.

    Returns: a Report.

    Example:
        >>> print(tp.backends.report("mine"))  # doctest: +SKIP
    """
    from tensorpy.backends._report import make

    return make(device)


_SWITCHES = frozenset({"fp32_precision"})
_freezable(__name__, fp32_precision=_precision("generic"))


def set_flags(_fp32_precision: str | None = "none") -> tuple[str]:
    """Sets how exactly float32 is to be computed, unless it is None; gives what it was.

    Returns: a tuple of one str.

    Example:
        >>> tp.backends.set_flags("none")
        ('none',)
    """
    before = _precisions.get("generic", "all")
    if _fp32_precision is not None:
        _precisions.put("generic", "all", _fp32_precision)
    return (before,)


@contextmanager
def flags(fp32_precision: str = "none") -> Iterator[None]:
    """A context in which float32 is to be computed so exactly: "ieee", "tf32", "bf16", or "none", which says nothing.

    Arguments:
        fp32_precision: kept for the programs that ask; float32 is always computed as float32

    Returns: a context.

    Example:
        >>> with tp.backends.flags(fp32_precision="tf32"):
        ...     tp.backends.mkldnn.conv.fp32_precision
        'tf32'
    """
    before = set_flags(fp32_precision)
    try:
        yield
    finally:
        set_flags(*before)


if TYPE_CHECKING:  # what __getattr__ gives at first use
    from tensorpy.backends import cpu as cpu
    from tensorpy.backends import cuda as cuda
    from tensorpy.backends import cudnn as cudnn
    from tensorpy.backends import mkl as mkl
    from tensorpy.backends import mkldnn as mkldnn
    from tensorpy.backends import mps as mps
    from tensorpy.backends import openmp as openmp
    from tensorpy.backends import opt_einsum as opt_einsum
    from tensorpy.backends import quantized as quantized
    from tensorpy.backends import xnnpack as xnnpack
else:
    # The switches of libraries.
    __getattr__ = _parts(
        __name__, ("cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum", "quantized", "xnnpack")
    )
