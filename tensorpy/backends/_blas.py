"""Finds the BLAS library that the package scipy-openblas32 brings; called by the C core at the first matrix product."""

from __future__ import annotations

import importlib.util
from pathlib import Path


def locate() -> str | None:
    """The path of the shared library, or None where the package is not installed."""
    spec = importlib.util.find_spec("scipy_openblas32")
    if spec is None or not spec.submodule_search_locations:
        return None
    for folder in spec.submodule_search_locations:
        for pattern in ("libscipy_openblas*.so", "libscipy_openblas*.dylib"):
            for path in sorted(Path(folder, "lib").glob(pattern)):
                return str(path)
    return None
