"""Tables of numbers that operators ask the host for, by name (csrc/python/tables.c)."""

from __future__ import annotations

import importlib
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor


def sobol(dimensions: int) -> Tensor:
    """The direction numbers of a Sobol' sequence, 30 for each dimension: those of Joe and Kuo, which SciPy has."""
    try:
        qmc: Any = importlib.import_module("scipy.stats.qmc")
    except ImportError as error:
        raise ImportError("SobolEngine: SciPy has the direction numbers, and it is not installed") from error
    numbers = qmc.Sobol(max(dimensions, 1), scramble=False, bits=30)._sv
    return _C.from_numpy(numbers[:dimensions].astype("int64"))
