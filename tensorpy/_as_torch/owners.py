"""Classes and functions say that they are of torch's modules, as programs that look at `x.__module__` expect."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import tensorpy
from tensorpy import _C
from tensorpy._as_torch.finder import watch
from tensorpy._as_torch.names import is_module, modules

_HEAP_TYPE = 1 << 9  # among a type's flags: made by a class statement


# Modules that are tensorpy's alone, by how their names begin -> where PyTorch has their public functions.
_ELSEWHERE = {"tensorpy._package.": "torch", "tensorpy.sparse._make": "torch", "tensorpy.nn._": "torch.nn.functional"}


def _home(own: str, name: str) -> str:
    """The module of torch's that has a function of one of tensorpy's modules."""
    there = next((home for start, home in _ELSEWHERE.items() if own.startswith(start)), "")
    return there if name in modules().get(there, ()) else "torch" + own[len("tensorpy") :]


def _call(module: ModuleType, own: str) -> None:
    """Renames the home of the classes and functions that a module made, and has the module be there under that name: a
    class's hints are looked up in its module. Types of C are renamed by C. A package is there for its modules' sake."""
    name, found = "torch" + own[len("tensorpy") :], False
    for key, value in list(vars(module).items()):
        if isinstance(value, type) and value.__module__ == own and value.__flags__ & _HEAP_TYPE:
            value.__module__, found = name, True
        elif isinstance(value, (FunctionType, _C._overridable)) and value.__module__ == own:
            value.__module__ = _home(own, key)
    if not found and not (hasattr(module, "__path__") and is_module(name)):
        return
    # An import gives the package the module's name, which may be a function's there (torch.autograd.gradcheck).
    whole, _, last = own.rpartition(".")
    there = vars(sys.modules[whole]).get(last) if whole in sys.modules else None
    importlib.import_module(name)
    if there is not None and there is not module:
        setattr(sys.modules[whole], last, there)


class _Loader(importlib.abc.Loader):
    """Loads a module of tensorpy's as its own loader does, and renames the home of its classes."""

    def __init__(self, spec: importlib.machinery.ModuleSpec) -> None:
        self.spec, self.loader = spec, spec.loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(self.spec) if self.loader is not None else None

    def exec_module(self, module: ModuleType) -> None:
        assert self.loader is not None
        self.loader.exec_module(module)
        module.__loader__, module.__spec__ = self.loader, self.spec
        _call(module, self.spec.name)
        name = "torch" + self.spec.name[len("tensorpy") :]
        if sys.modules.get(name) is module:  # a part of it was asked for before it had its own __getattr__
            watch(module, name)


class OwnFinder(importlib.abc.MetaPathFinder):
    """Finds tensorpy's own modules, so that their classes are renamed when they are made."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if not name.startswith("tensorpy."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or not isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            return spec
        found = importlib.machinery.ModuleSpec(name, _Loader(spec), origin=spec.origin)
        found.submodule_search_locations = spec.submodule_search_locations
        found.has_location, found.cached = spec.has_location, spec.cached
        return found


def _call_builtins() -> None:
    """Functions of C are torch's where the package has them, else of the part of torch._C that has them."""
    parts = {f"torch._C.{name}": part for name, part in vars(_C).items() if isinstance(part, ModuleType)}
    sys.modules.update(parts)
    for home, module in {"torch._C": _C, **parts}.items():
        for name, value in vars(module).items():
            if isinstance(value, BuiltinFunctionType):
                value.__module__ = "torch" if module is _C and vars(tensorpy).get(name) is value else home


def install() -> None:
    """For the modules that are loaded and those that come."""
    _call_builtins()
    for name, module in list(sys.modules.items()):
        if name.startswith("tensorpy.") or name == "tensorpy":
            _call(module, name)
    for kind in vars(_C.return_types).values():
        if isinstance(kind, type):
            kind.__module__ = "torch.return_types"
    sys.meta_path.insert(0, OwnFinder())
