"""Modules of torch's: each is tensorpy's of the same name, the same object, and says what of torch it does not have.

A name of torch that tensorpy lacks is an AttributeError. One exception: `from torch.x import Name` where nothing
catches an ImportError gives a class that stands for the name and raises when it is called, so that a program which
imports more than it uses runs. Where something catches it (`try: ... except ImportError:`) the program has an answer of
its own, and gets the error. The same holds for modules.
"""

from __future__ import annotations

import dis
import importlib
import importlib.abc
import importlib.machinery
import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from types import CodeType, FrameType, ModuleType
from typing import Any

from tensorpy._as_torch import names
from tensorpy._package.absent import absent, absent_class

asked: Counter[str] = Counter()  # names of torch that were asked for and are not there

_IMPORTS = {dis.opmap["IMPORT_FROM"], dis.opmap["IMPORT_NAME"]}
_NAMING = _IMPORTS | {dis.opmap[name] for name in ("LOAD_ATTR", "LOAD_METHOD") if name in dis.opmap}


def _is_caught(code: CodeType, offset: int) -> bool:
    """Whether an exception at an instruction has a handler in its function (known from Python 3.11 on)."""
    table = iter(getattr(code, "co_exceptiontable", b""))

    def number() -> int:  # six bits a byte, the highest first; 64: another one follows
        byte = next(table)
        value = byte & 63
        while byte & 64:
            byte = next(table)
            value = value << 6 | byte & 63
        return value

    try:
        while True:
            start, length, _, _ = (number() for _ in range(4))
            if 2 * start <= offset < 2 * (start + length):
                return True
    except (StopIteration, RuntimeError):
        return False


def _asks_in_passing(frame: FrameType | None, modules: bool = True) -> bool:
    """Whether a frame is at an import statement whose failure nothing would catch.

    modules: False where `from package import name` may ask for a name that is no module.
    """
    while frame is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
        if frame.f_code.co_name == "_handle_fromlist" and not modules:
            return False  # looks whether a name is a module: `_missing` answers for names
        frame = frame.f_back
    if frame is None or frame.f_code.co_code[frame.f_lasti] not in _IMPORTS:
        return False
    return not _is_caught(frame.f_code, frame.f_lasti)


@cache
def _standing_for(module: str, name: str) -> Any:
    """A class's instances raise when they are used, a function when it is called."""
    return absent_class(module, name) if name.lstrip("_")[:1].isupper() else absent(module, name)


def _missing(module: str, name: str, own: AttributeError, frame: FrameType) -> Any:
    """What a name of torch's that is not there is: an error, or what stands for it."""
    imported = frame.f_code.co_code[frame.f_lasti] == dis.opmap["IMPORT_FROM"]
    if name.startswith("__") or not (names.has(module, name) or (imported and name.startswith("_"))):
        raise own
    if name.startswith("_") and frame.f_code.co_code[frame.f_lasti] not in _NAMING:
        raise own  # a function asks, as tools do of any object: getattr(what, "_mock_name", None)
    if not frame.f_code.co_filename.startswith("<frozen importlib"):  # which looks whether it is a module
        asked[f"{module}.{name}"] += 1
    if imported and _asks_in_passing(frame):
        return _standing_for(module, name)
    from tensorpy._package.nearby import ending

    nearest = ending(module.partition(".")[2], name, dir(sys.modules[module]))
    raise AttributeError(
        f"module '{module}' has no attribute '{name}': PyTorch has it, tensorpy does not{nearest}",
        name=name,
        obj=sys.modules[module],
    )


def _part(module: str, name: str) -> ModuleType | None:
    """A module that PyTorch loads with the one it is part of, and tensorpy when it is asked for."""
    whole = f"{module}.{name}"
    if name.startswith("__") or not names.is_module(whole):
        return None
    own = "tensorpy" + whole[len("torch") :]
    try:
        importlib.import_module(own)
    except ModuleNotFoundError as error:
        if error.name is None or not own.startswith(error.name):
            raise
        return None
    return importlib.import_module(whole)


def watch(module: ModuleType, name: str) -> None:
    """Has a module of tensorpy's say so when a name of torch's is asked for that it does not have."""
    own: Callable[[str], Any] | None = module.__dict__.get("__getattr__")
    if getattr(own, "watches", None) is not None:
        return

    def __getattr__(attribute: str) -> Any:
        try:
            if own is not None:
                return own(attribute)
            raise AttributeError(f"module '{name}' has no attribute '{attribute}'", name=attribute, obj=module)
        except AttributeError as error:
            part = _part(name, attribute)
            return _missing(name, attribute, error, sys._getframe(1)) if part is None else part

    vars(__getattr__)["watches"] = name
    setattr(module, "__getattr__", __getattr__)  # noqa: B010
    module.__name__ = name  # which programs compare


def _keep_what_hides(package: ModuleType, name: str) -> None:
    """Has an import of a part of a package leave what the package calls by the part's name: `scan.scan` as `scan`.

    An import sets the part as an attribute of its package after it was loaded, which it was before under its own name.
    """
    for part, value in list(vars(package).items()):
        module = sys.modules.get(f"{package.__spec__.name if package.__spec__ else ''}.{part}")
        if module is not None and module is not value:
            watch(module, f"{name}.{part}")
            sys.modules[f"{name}.{part}"] = module


class _Loader(importlib.abc.Loader):
    """Gives a module that is there already; importing it under its second name changes nothing of it."""

    def __init__(self, module: ModuleType) -> None:
        self.module, self.spec = module, module.__spec__

    def create_module(self, spec: Any) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec  # importlib has set the second one

    def get_code(self, name: str) -> CodeType | None:
        """The module's code, for `python -m`."""
        loader: Any = self.spec.loader if self.spec else None
        code: CodeType | None = loader.get_code(self.spec.name) if self.spec and loader else None
        return code


class Finder(importlib.abc.MetaPathFinder):
    """Finds "torch.x" as "tensorpy.x"; of what torch has and tensorpy has not, a module without names."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name != "torch" and not name.startswith("torch."):
            return None
        whole, _, last = name.rpartition(".")
        module = self._module(whole if last == "__main__" else name)
        if module is None:
            return None
        if last == "__main__":  # `python -m torch.x`, which takes every module of torch for a package
            return importlib.machinery.ModuleSpec(name, _Loader(module), origin=getattr(module, "__file__", None))
        watch(module, name)
        _keep_what_hides(module, name)
        sys.modules.pop(name, None)  # from the loading just now (owners.py); the import would load what it names anew
        spec = importlib.machinery.ModuleSpec(name, _Loader(module), origin=getattr(module, "__file__", None))
        spec.submodule_search_locations = list(getattr(module, "__path__", ()))
        return spec

    def _module(self, name: str) -> ModuleType | None:
        own = "tensorpy" + name[len("torch") :]
        try:
            return importlib.import_module(own)
        except ModuleNotFoundError as error:
            if error.name is None or not own.startswith(error.name):
                raise
        if not names.is_module(name):
            return None
        listed = name in names.modules()
        if listed:
            asked[name] += 1
        if not _asks_in_passing(sys._getframe(2), listed):
            return None
        module = ModuleType(name, "A module of PyTorch's that tensorpy does not have: its names raise.")
        module.__path__ = []
        if "is_available" in names.modules().get(name, ()):
            setattr(module, "is_available", lambda: False)  # noqa: B010
        return module
