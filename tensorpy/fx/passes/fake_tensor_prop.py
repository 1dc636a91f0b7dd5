"""FakeTensorProp: runs a graph on fake tensors, and notes in each node what stands for its value."""

from __future__ import annotations

from typing import Any

from tensorpy._C import Tensor
from tensorpy._subclasses.fake_tensor import FakeTensorMode
from tensorpy.fx.interpreter import Interpreter
from tensorpy.fx.node import Node
from tensorpy.utils._pytree import tree_map

__all__ = ["FakeTensorProp"]


class FakeTensorProp(Interpreter):
    """An interpreter that computes nothing: what stands for a node's value is its `meta["val"]`.

    Arguments:
        module: the module of the graph
        mode: the mode that makes the fake tensors; None makes one

    Example:
        >>> from tensorpy.fx.passes.fake_tensor_prop import FakeTensorProp
        >>> module = tp.fx.symbolic_trace(lambda x: x.reshape(-1).sin())
        >>> FakeTensorProp(module).propagate(tp.ones(2, 3)).shape
        tensorpy.Size([6])
        >>> [tuple(node.meta["val"].shape) for node in module.graph.nodes]
        [(2, 3), (6,), (6,), (6,)]
    """

    def __init__(self, module: Any, mode: FakeTensorMode | None = None) -> None:
        super().__init__(module)
        self._mode = mode or FakeTensorMode(allow_non_fake_inputs=True)

    def run_node(self, n: Node) -> Any:
        """As any interpreter's, with what came of it noted."""
        result = super().run_node(n)
        if any(isinstance(leaf, Tensor) for leaf in _leaves(result)):
            n.meta["val"] = result
        return result

    def _fake(self, value: Any) -> Any:
        return self._mode.from_tensor(value) if isinstance(value, Tensor) else value

    def propagate(self, *args: Any) -> Any:
        """Runs the graph on what stands for the arguments, and gives what stands for its result."""
        return self.propagate_dont_convert_inputs(*tree_map(self._fake, args))

    def propagate_dont_convert_inputs(self, *args: Any) -> Any:
        """The same of arguments that are fake already."""
        with self._mode:
            return super().run(*args)


def _leaves(value: Any) -> list[Any]:
    found: list[Any] = []
    tree_map(found.append, value)
    return found
