"""Graph modules whose code is written when it is first asked for; a switch has those of fx be such."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorpy.fx.graph_module import GraphModule

_use_lazy_graph_module_flag = False
_force_skip_lazy_graph_module_flag = False


@contextmanager
def _use_lazy_graph_module(should_use: bool) -> Iterator[None]:
    """Whether graph modules that fx makes in this scope write their code late."""
    global _use_lazy_graph_module_flag
    before = _use_lazy_graph_module_flag
    _use_lazy_graph_module_flag = should_use and not _force_skip_lazy_graph_module_flag
    try:
        yield
    finally:
        _use_lazy_graph_module_flag = before


@contextmanager
def _force_skip_lazy_graph_module() -> Iterator[None]:
    """In its scope none do, whatever the switch says."""
    global _force_skip_lazy_graph_module_flag
    before = _force_skip_lazy_graph_module_flag
    _force_skip_lazy_graph_module_flag = True
    try:
        with _use_lazy_graph_module(False):
            yield
    finally:
        _force_skip_lazy_graph_module_flag = before


def _get_graph_module_cls() -> type[GraphModule]:
    """The class of the graph modules that are made now."""
    return _LazyGraphModule if _use_lazy_graph_module_flag else GraphModule


def _make_graph_module(*args: Any, graph_module_cls: type[GraphModule] | None = None, **kwargs: Any) -> GraphModule:
    """A graph module of that class."""
    return (graph_module_cls or _get_graph_module_cls())(*args, **kwargs)


class _LazyGraphModule(GraphModule):
    """A graph module that writes its code when it is called, printed or asked for it."""

    @classmethod
    def from_graphmodule(cls, gm: GraphModule) -> GraphModule:
        """One of a graph module's graph; itself where it is one."""
        return gm if isinstance(gm, _LazyGraphModule) else cls(gm, gm.graph)

    @staticmethod
    def force_recompile(gm: Any) -> None:
        """Has one that is late write its code now; others have theirs."""
        if isinstance(gm, _LazyGraphModule):
            gm.real_recompile()

    def recompile(self) -> Any:
        """Notes that the code is to be written."""
        type(self).forward = _LazyGraphModule._lazy_forward

    def real_recompile(self) -> None:
        """Writes the code if it is not there."""
        if self._needs_recompile():
            super().recompile()

    def _needs_recompile(self) -> bool:
        return type(self).forward is _LazyGraphModule._lazy_forward

    def _lazy_forward(self, *args: Any, **kwargs: Any) -> Any:
        self.real_recompile()
        return self(*args, **kwargs)

    forward = _lazy_forward

    @property
    def code(self) -> str:
        """The Python that runs."""
        self.real_recompile()
        return super().code

    def __reduce__(self) -> Any:
        self.real_recompile()
        return super().__reduce__()

    def __str__(self) -> str:
        self.real_recompile()
        return super().__str__()
