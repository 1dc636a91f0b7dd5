"""Modules that compile() makes of modules."""

from __future__ import annotations

from typing import Any

from tensorpy._compile import Compiler

from .module import Module


class OptimizedModule(Module):
    """A module whose calls are compiled; everything else is the module's own, which is `_orig_mod`."""

    _own = frozenset({"_orig_mod", "forward", "_compiler", "__dict__"})

    def __init__(self, mod: Module, compiler: Compiler) -> None:
        super().__init__()
        self._modules["_orig_mod"] = mod
        object.__setattr__(self, "_compiler", compiler)
        self._renew()

    def _renew(self) -> None:
        """Module.__call__ calls `forward` where an instance has one."""
        self.__dict__["forward"] = self._compiler(self._modules["_orig_mod"].__call__)

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        return getattr(self._orig_mod, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_orig_mod":
            self._modules["_orig_mod"] = value
            self._renew()
        elif name == "training" and "_modules" in self.__dict__ and "_orig_mod" in self._modules:
            self._orig_mod.training = value
            self.__dict__["training"] = value
        elif name in self._own or "_modules" not in self.__dict__ or "_orig_mod" not in self._modules:
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        if name in self._own:
            super().__delattr__(name)
        else:
            delattr(self._orig_mod, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state.pop("forward", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._renew()


Module._compiled_as = OptimizedModule

__all__ = ["OptimizedModule"]
