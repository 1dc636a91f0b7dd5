"""A pass: takes a graph module, gives one, and says whether it changed anything."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

__all__ = ["PassBase", "PassResult"]


class PassResult(NamedTuple):
    """What a pass gives."""

    graph_module: Any
    modified: bool


class PassBase(ABC):
    """Subclasses have `call`; `requires` and `ensures` look at the module before and afterwards, and may raise."""

    def __call__(self, graph_module: Any) -> PassResult | None:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abstractmethod
    def call(self, graph_module: Any) -> PassResult | None:
        """The pass itself."""

    def requires(self, graph_module: Any) -> None:  # noqa: B027
        """Looks at the module before the pass."""

    def ensures(self, graph_module: Any) -> None:  # noqa: B027
        """Looks at the module after the pass."""
