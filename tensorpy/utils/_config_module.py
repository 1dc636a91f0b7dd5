"""Modules of settings: a name that is not there is an error, and `patch` changes some for a while.

A table of settings has a value and the names that have it at first on each line: `False = debug triton.cudagraphs`. A
name with a dot is a setting of a group.
"""

from __future__ import annotations

import sys
from contextlib import ContextDecorator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any


class Settings(ModuleType):
    """A module of settings: one that is not there can be neither read nor set."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{self.__name__}.{name} does not exist", name=name, obj=self)

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_") and not hasattr(self, name):
            raise AttributeError(f"{self.__name__}.{name} does not exist", name=name, obj=self)
        super().__setattr__(name, value)


class Group:
    """Settings below one name of a module of settings."""

    def __init__(self, name: str, **settings: Any) -> None:
        self.__dict__.update(settings, __name__=name)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{self.__dict__['__name__']}.{name} does not exist", name=name, obj=self)

    def __setattr__(self, name: str, value: Any) -> None:
        getattr(self, name)
        self.__dict__[name] = value


def read(table: str) -> dict[str, Any]:
    """The settings of a table, names with their dots."""
    from ast import literal_eval

    found = {}
    for line in table.strip().splitlines():
        value, _, names = line.strip().partition(" = ")
        found.update({name: literal_eval(value) for name in names.split()})
    return found


@cache
def inductor_settings() -> dict[str, Any]:
    """The settings of PyTorch's code generator, which compile(options=) takes as well."""
    return read((Path(__file__).parents[1] / "_inductor" / "settings.txt").read_text())


def install(module: str, settings: dict[str, Any], kind: type[Settings] = Settings) -> None:
    """Makes a module one of settings, and puts some into it."""
    place = sys.modules[module]
    for name, value in settings.items():
        group, _, own = name.rpartition(".")
        if group:
            vars(vars(place).setdefault(group, Group(f"{module}.{group}")))[own] = value
        else:
            vars(place)[own] = value
    place.__class__ = kind


class patch(ContextDecorator):
    """Settings for a while: in a with block, or while a function runs. A name may have dots.

    Each module of settings has a class of its own made from this one, which knows the module by where it stands.

    Example:
        >>> from tensorpy.utils.serialization import config
        >>> with config.patch("load.mmap", True):
        ...     config.load.mmap
        True
    """

    def __init__(self, settings: Any = None, value: Any = None, **more: Any) -> None:
        given = {settings: value} if isinstance(settings, str) else dict(settings or {})
        self.settings = given | more
        self._before: list[dict[str, Any]] = []

    def _place(self, name: str) -> tuple[Any, str]:
        """The object that has a setting, and its name there."""
        place: Any = sys.modules[type(self).__module__]
        *groups, last = name.split(".")
        for group in groups:
            place = getattr(place, group)
        return place, last

    def __enter__(self) -> None:
        self._before.append({name: getattr(*self._place(name)) for name in self.settings})
        for name, value in self.settings.items():
            setattr(*self._place(name), value)

    def __exit__(self, *error: Any) -> None:
        for name, value in self._before.pop().items():
            setattr(*self._place(name), value)
