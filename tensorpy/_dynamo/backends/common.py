"""Backends that are given forward and backward as graphs of operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tensorpy._C import Tensor, device
from tensorpy._functorch.aot_autograd import aot_module_simplified


def aot_autograd(**words: Any) -> Callable[..., Any]:
    """A backend that compiles a graph's forward and backward: aot_module_simplified() with these words.

    Arguments:
        fw_compiler: called with the graph of forward and its inputs; gives a function of these inputs
        bw_compiler: the same for backward; the same function, unless said

    Returns: a backend, as compile() takes it.

    Example:
        >>> from tensorpy._dynamo.backends.common import aot_autograd
        >>> backend = aot_autograd(fw_compiler=lambda graph, inputs: graph.forward)
        >>> tp.compile(lambda x: x * 2, backend=backend)(tp.ones(2))
        tensor([2., 2.])
    """

    def backend(gm: Any, example_inputs: Any, **more: Any) -> Callable[..., Any]:
        return aot_module_simplified(gm, example_inputs, **words)

    return backend


def device_from_inputs(example_inputs: Iterable[Any]) -> device:
    """The device of the first tensor, or the CPU.

    Returns: a device.

    Example:
        >>> from tensorpy._dynamo.backends.common import device_from_inputs
        >>> device_from_inputs([3, tp.ones(1)])
        device(type='cpu')
    """
    return next((x.device for x in example_inputs if isinstance(x, Tensor)), device("cpu"))


__all__ = ["aot_autograd", "device_from_inputs"]
