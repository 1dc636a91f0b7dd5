"""Pictures of graph modules, of modules of graphs inside as well."""

from __future__ import annotations

from typing import Any

from tensorpy.fx._draw import dot, svg
from tensorpy.fx.graph_module import GraphModule

__all__ = ["FxGraphDrawer"]


class Drawing:
    """The text that Graphviz draws, and the picture that tensorpy draws itself."""

    def __init__(self, graph: Any) -> None:
        self._graph = graph

    def to_string(self) -> str:
        """The text."""
        return dot(self._graph)

    create_dot: Any
    __str__ = create_dot = to_string

    def create_svg(self) -> bytes:
        """The picture."""
        return svg(self._graph).encode()

    def write_svg(self, path: str) -> None:
        """The picture, in a file."""
        with open(path, "wb") as file:
            file.write(self.create_svg())

    def _repr_svg_(self) -> str:
        return svg(self._graph)


class FxGraphDrawer:
    """`FxGraphDrawer(module, "name").get_dot_graph().write_svg("name.svg")`."""

    def __init__(self, graph_module: GraphModule, name: str, **unused: Any) -> None:
        self._name = name
        self._drawings = {name: Drawing(graph_module.graph)}
        for path, child in graph_module.named_modules():
            if path and isinstance(child, GraphModule):
                self._drawings[f"{name}_{path.replace('.', '_')}"] = Drawing(child.graph)

    def get_dot_graph(self, submod_name: str | None = None) -> Drawing:
        """The picture of the module, or of one inside."""
        return self._drawings[self._name if submod_name is None else f"{self._name}_{submod_name}"]

    def get_main_dot_graph(self) -> Drawing:
        """The picture of the module."""
        return self._drawings[self._name]

    def get_submod_dot_graph(self, submod_name: str) -> Drawing:
        """The picture of a module inside."""
        return self._drawings[f"{self._name}_{submod_name}"]

    def get_all_dot_graphs(self) -> dict[str, Drawing]:
        """All of them by name."""
        return dict(self._drawings)
