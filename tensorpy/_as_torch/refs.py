"""torch._refs: what PyTorch writes a second time in Python. Here its names are the operators themselves."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import sys
from types import ModuleType
from typing import Any

from tensorpy import _C
from tensorpy._as_torch import finder

# Where the names of each module are: in a module of tensorpy's, or else among the methods of tensors.
_MODULES = {
    "torch._refs": "tensorpy",
    "torch._refs._conversions": "tensorpy",
    "torch._refs.fft": "tensorpy.fft",
    "torch._refs.linalg": "tensorpy.linalg",
    "torch._refs.nn": "tensorpy.nn",
    "torch._refs.nn.functional": "tensorpy.nn.functional",
    "torch._refs.special": "tensorpy.special",
}


def _function_of(value: Any) -> Any:
    """A function, what reads an attribute of tensors, or None: `torch.float` and classes are none."""
    if inspect.isgetsetdescriptor(value):
        return value.__get__
    return value if callable(value) and not isinstance(value, (type, _C.dtype)) else None


def _refs_of(name: str, own: str) -> ModuleType:
    """A module whose names are the functions of another one, and the methods of tensors that have no function."""
    module = ModuleType(name, "The operators by the names of PyTorch's references.")
    module.__path__ = []

    def find(attribute: str) -> Any:
        if attribute == "__all__":
            there = importlib.import_module(own)
            return sorted(
                n for n in dir(there) if not n.startswith("_") and _function_of(getattr(there, n)) is not None
            )
        if not attribute.startswith("__"):
            for place in (importlib.import_module(own), _C.Tensor):
                value = _function_of(getattr(place, attribute, None))
                if value is not None:
                    return value
        raise AttributeError(f"module {name!r} has no attribute {attribute!r}", name=attribute, obj=module)

    setattr(module, "__getattr__", find)  # noqa: B010
    finder.watch(module, name)
    return module


class TorchRefsMode(contextlib.nullcontext):  # type: ignore[type-arg]
    """A scope in which functions of torch are their references: these are the functions themselves."""

    def __init__(self, strict: bool = False, should_fallback_fn: Any = None, prims_mode_cls: Any = None) -> None:
        super().__init__()


def _maybe_remove_out_wrapper(fn: Any) -> Any:
    """A reference without what handles `out=`: the operator."""
    return fn


_BESIDE: dict[str, Any] = {
    "torch._prims.context": TorchRefsMode,
    "torch._prims_common.wrappers": _maybe_remove_out_wrapper,
}


def install() -> None:
    """Makes them importable."""
    for name, value in _BESIDE.items():
        module = ModuleType(name, value.__doc__)
        setattr(module, value.__name__, value)
        finder.watch(module, name)
        sys.modules[name] = sys.modules["tensorpy" + name[len("torch") :]] = module
    for name, own in _MODULES.items():
        sys.modules[name] = sys.modules["tensorpy" + name[len("torch") :]] = module = _refs_of(name, own)
        package, _, last = name.rpartition(".")
        setattr(sys.modules[package], last, module)
