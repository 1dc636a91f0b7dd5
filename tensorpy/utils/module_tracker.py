"""Which modules a program is in, in forward."""

from __future__ import annotations

from typing import Any

from tensorpy.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook


class ModuleTracker:
    """In its scope `parents` are the names of the modules that are being called, "Global" among them.

    Example:
        >>> from tensorpy.utils.module_tracker import ModuleTracker
        >>> with ModuleTracker() as tracker:
        ...     tracker.parents
        {'Global'}
    """

    parents: set[str]

    def __init__(self) -> None:
        self.parents = {"Global"}
        self._known: dict[int, str] = {}
        self._calls: list[str] = []
        self._handles: list[Any] = []

    def _name(self, module: Any) -> str:
        """The path of a module in the first one that was called; of that, its class."""
        if id(module) not in self._known:
            root = type(module).__name__
            self._known.update((id(m), f"{root}.{n}" if n else root) for n, m in module.named_modules())
        return self._known[id(module)]

    def _before(self, module: Any, args: Any) -> None:
        self._calls.append(self._name(module))
        self.parents = {"Global", *self._calls}

    def _after(self, module: Any, args: Any, result: Any) -> None:
        self._calls.pop()
        self.parents = {"Global", *self._calls}

    @property
    def is_bw(self) -> bool:
        """Whether a backward pass runs: modules are followed in forward alone."""
        return False

    def __enter__(self) -> ModuleTracker:
        before = register_module_forward_pre_hook(self._before)
        self._handles = [before, register_module_forward_hook(self._after, always_call=True)]
        return self

    def __exit__(self, *unused: object) -> None:
        for handle in self._handles:
            handle.remove()


__all__ = ["ModuleTracker"]
