"""What the package tensorpy itself is: the table of its names, names with nothing to run, switches, older calls.

`names` says what `tensorpy.X` is and which module has it; `absent` makes the names of what is not here; `settings` has
the switches and questions of the package; `deprecated` takes calls in older orders of arguments; `nearby` proposes what
stands for a name that is not there.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from typing import Any, NoReturn


def parts(package: str, names: Collection[str]) -> Callable[[str], Any]:
    """A package's `__getattr__` by which modules of it, the `names`, are imported at first use; proposes for others."""

    def __getattr__(name: str) -> Any:
        if name in names:
            import importlib

            return importlib.import_module(f"{package}.{name}")
        there = [*names, *vars(sys.modules[package])]
        return proposing(package.removeprefix("tensorpy."), there)(name)

    return __getattr__


def proposing(module: str, there: Iterable[str]) -> Callable[[str], NoReturn]:
    """The `__getattr__` of `tensorpy.<module>`, which has the names `there`: names what stands for one that is not."""

    def __getattr__(name: str) -> NoReturn:
        from tensorpy._package.nearby import ending

        raise AttributeError(f"module 'tensorpy.{module}' has no attribute '{name}'{ending(module, name, there)}")

    return __getattr__
