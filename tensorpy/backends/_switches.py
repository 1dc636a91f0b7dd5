"""Modules of switches, which may be frozen: then a switch is set inside a module's `flags()` alone."""

from __future__ import annotations

import sys
from types import ModuleType

_frozen = False


def disable_global_flags() -> None:
    """From now on an assignment to a switch is a RuntimeError: `flags()`, a context, sets it for a scope.

    Tests call it, so that none leaves a switch set for those after it.

    Example:
        >>> tp.backends.disable_global_flags()  # doctest: +SKIP
    """
    global _frozen
    _frozen = True


def flags_frozen() -> bool:
    """Whether disable_global_flags() was called.

    Returns: bool.

    Example:
        >>> tp.backends.flags_frozen()
        False
    """
    return _frozen


class Switches(ModuleType):
    """A module whose `_SWITCHES` are the names that disable_global_flags() freezes."""

    _SWITCHES: frozenset[str]

    def __setattr__(self, name: str, value: object) -> None:
        if _frozen and name in self._SWITCHES:
            raise RuntimeError(
                f"not allowed to set {self.__name__} flags after disable_global_flags; "
                "please use flags() context manager instead"
            )
        super().__setattr__(name, value)


def freezable(module: str) -> None:
    """Makes a module's switches freezable; the module calls it once it has `_SWITCHES`."""
    sys.modules[module].__class__ = Switches
