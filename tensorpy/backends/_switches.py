"""Modules of switches, which may be frozen: then a switch is set inside a module's `flags()` alone."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

from tensorpy._package import precision as precisions

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


def freezable(module: str, **computed: tuple[Callable[[], Any], Callable[[Any], None]]) -> None:
    """Makes a module's switches freezable; the module calls it once it has `_SWITCHES`.

    computed: switches whose value is kept elsewhere: how it is asked for, and set.
    """

    def made(get: Callable[[], Any], put: Callable[[Any], None]) -> property:
        return property(lambda _: get(), lambda _, value: put(value))

    kept = {name: made(get, put) for name, (get, put) in computed.items()}
    sys.modules[module].__class__ = type("Switches", (Switches,), kept)


def precision(backend: str, operator: str = "all") -> tuple[Callable[[], str], Callable[[str], None]]:
    """A switch `fp32_precision`."""
    return partial(precisions.get, backend, operator), partial(precisions.put, backend, operator)
