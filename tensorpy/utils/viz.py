"""Pictures of what autograd recorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from tensorpy import _C
from tensorpy.utils import _layers

__all__ = ["AutogradGraph", "graph"]


class AutogradGraph:
    """A picture of an autograd graph: notebooks show it, `save` writes it, `str` gives the SVG's text.

    Arguments:
        boxes: the boxes

    Example:
        >>> picture = tp.utils.viz.graph((tp.ones(2, requires_grad=True) * 2).sum())
        >>> type(picture).__name__
        'AutogradGraph'
    """

    def __init__(self, boxes: list[_layers.Box]) -> None:
        self._boxes = boxes

    def __repr__(self) -> str:
        leaves = sum(not box.takes for box in self._boxes)
        return f"AutogradGraph(nodes={len(self._boxes) - leaves}, leaves={leaves})"

    def __str__(self) -> str:
        return self._repr_svg_()

    def _repr_svg_(self) -> str:
        return _layers.svg(self._boxes)

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the SVG to a file."""
        Path(path).write_text(self._repr_svg_(), encoding="utf-8")


def _inputs_first(roots: list[_C.Node]) -> list[_C.Node]:
    """The nodes that lead to `roots`, each after those that it took from. Without recursion: graphs are deep."""
    order: list[_C.Node] = []
    seen: set[_C.Node] = set()
    stack = [(node, False) for node in reversed(roots)]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack += [(given, False) for given, _ in reversed(node.next_functions) if given is not None]
    return order


def _names(params: Any) -> dict[int, str]:
    """id of a tensor -> its name."""
    if params is None:
        return {}
    if hasattr(params, "named_parameters"):
        params = params.named_parameters()
    pairs = params.items() if isinstance(params, Mapping) else params
    return {id(tensor): name for name, tensor in pairs}


def _leaf(tensor: _C.Tensor, names: Mapping[int, str]) -> _layers.Box:
    text = f"{names.get(id(tensor), 'leaf')} {tuple(tensor.shape)}"
    return _layers.Box(text, f"{tensor.dtype} on {tensor.device}", _layers.INPUT, ())


def graph(tensors: _C.Tensor | Iterable[_C.Tensor], params: Any = None) -> AutogradGraph:
    """The graph that backward() would walk from a tensor, or from several: leaves above, the tensors below.

    params: what to call the leaves: a Module, a dict, or (name, tensor) pairs such as named_parameters() gives.
    ValueError if a tensor has no graph, since nothing that it was made from requires a gradient.

    Returns: an AutogradGraph, which notebooks draw.

    Raises: ValueError for tensors without a graph.

    Example:
        >>> picture = tp.utils.viz.graph((tp.ones(2, requires_grad=True) * 2).sum())
        >>> type(picture).__name__
        'AutogradGraph'
    """
    given = [tensors] if isinstance(tensors, _C.Tensor) else list(tensors)
    if not all(tensor.requires_grad for tensor in given):
        raise ValueError("graph: a tensor has no graph, since nothing that it was made from requires a gradient")
    names = _names(params)
    boxes: list[_layers.Box] = []
    number: dict[Any, int] = {}  # of a node, or of a leaf by its id
    for node in _inputs_first([tensor.grad_fn for tensor in given if tensor.grad_fn is not None]):
        if (leaf := getattr(node, "variable", None)) is not None:
            number[node] = number[id(leaf)] = len(boxes)
            boxes.append(_leaf(leaf, names))
            continue
        takes = [number[taken] for taken, _ in node.next_functions if taken is not None]
        number[node] = len(boxes)
        boxes.append(_layers.Box(node.name(), f"{node.name()}, call {node._sequence_nr()}", _layers.CALL, takes))
    for tensor in given:
        if tensor.grad_fn is not None:
            text = f"{names.get(id(tensor), 'output')} {tuple(tensor.shape)}"
            title = f"{tensor.dtype} on {tensor.device}"
            boxes.append(_layers.Box(text, title, _layers.OUTPUT, (number[tensor.grad_fn],)))
        elif id(tensor) not in number:
            number[id(tensor)] = len(boxes)
            boxes.append(_leaf(tensor, names))
    return AutogradGraph(boxes)
