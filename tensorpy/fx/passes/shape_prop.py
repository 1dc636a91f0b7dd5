"""ShapeProp: runs a graph, and notes at each node what its tensors look like."""

from __future__ import annotations

from typing import Any, NamedTuple

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.fx.interpreter import Interpreter
from tensorpy.fx.node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What a tensor looks like.

    Arguments:
        shape: the sizes
        dtype: the dtype; None takes the usual one
        requires_grad: whether autograd records what is done with the tensor
        stride: how far the window moves: one number for all dimensions, or one for each
        memory_format: how the result lies in memory
        is_quantized: whether it is quantised
        qparams: how it is quantised

    Example:
        >>> from tensorpy.fx.passes.shape_prop import ShapeProp
        >>> module = tp.fx.symbolic_trace(lambda x: x.sum(1))
        >>> y = ShapeProp(module).propagate(tp.ones(2, 3))
        >>> [node.meta["tensor_meta"].shape for node in module.graph.nodes][0]
        tensorpy.Size([2, 3])
    """

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    """What is known of one tensor without its elements."""
    formats = (_C.contiguous_format, _C.channels_last, _C.channels_last_3d) if include_contiguity else ()
    fits = [f for f in formats if f is _C.contiguous_format or result.dim() == (4 if f is _C.channels_last else 5)]
    found = next((f for f in fits if result.is_contiguous(memory_format=f)), None)
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, result.stride(), found, False, {})


class ShapeProp(Interpreter):
    """`ShapeProp(gm).propagate(*args)` runs the graph; `node.meta["tensor_meta"]` and `node.meta["type"]` are set.

    Arguments:
        module: the module
        garbage_collect_values: whether values are dropped behind their last use
        graph: the graph; None takes the module's

    Example:
        >>> from tensorpy.fx.passes.shape_prop import ShapeProp
        >>> module = tp.fx.symbolic_trace(lambda x: x.sum(1))
        >>> y = ShapeProp(module).propagate(tp.ones(2, 3))
        >>> [node.meta["tensor_meta"].shape for node in module.graph.nodes][0]
        tensorpy.Size([2, 3])
    """

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        found = False

        def describe(leaf: Any) -> Any:
            nonlocal found
            if not isinstance(leaf, Tensor):
                return leaf
            found = True
            return _extract_tensor_metadata(leaf)

        meta = map_aggregate(result, describe)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Runs the graph; its result.

        Returns: what the graph gives.
        """
        return super().run(*args)
