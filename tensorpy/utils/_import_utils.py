"""Which optional modules there are, and dill's."""

from __future__ import annotations

import functools
import importlib
import importlib.util
from types import ModuleType


def _check_module_exists(name: str) -> bool:
    """Whether a module can be found; what holds it is imported, it is not."""
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False


@functools.lru_cache
def dill_available() -> bool:
    """Whether dill, which pickles functions, is installed."""
    return _check_module_exists("dill")


@functools.lru_cache
def import_dill() -> ModuleType | None:
    """dill without its extensions, so that pickle stays as it is; None if it is not installed."""
    if not dill_available():
        return None
    dill = importlib.import_module("dill")
    dill.extend(use_dill=False)
    return dill
