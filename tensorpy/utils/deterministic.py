"""What use_deterministic_algorithms does to memory that an operator leaves unset, such as that of `empty`.

`fill_uninitialized_memory` is True from the start: while the mode is on, elements that nobody has written are NaN, the
largest integer or True, so that a program which reads them gives the same from run to run.
"""

from __future__ import annotations

import sys
from types import ModuleType

from tensorpy import _C


class _Deterministic(ModuleType):
    """The module's class: an attribute of a module cannot be a property otherwise."""

    @property
    def fill_uninitialized_memory(self) -> bool:
        return _C._get_deterministic_fill_uninitialized_memory()

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise RuntimeError(f"expected a bool, but got {type(mode).__name__}")
        _C._set_deterministic_fill_uninitialized_memory(mode)


sys.modules[__name__].__class__ = _Deterministic
