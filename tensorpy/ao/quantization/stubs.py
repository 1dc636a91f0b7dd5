"""Where numbers become integers in a model, and integers numbers again."""

from __future__ import annotations

from typing import Any

from tensorpy import nn
from tensorpy._C import Tensor

__all__ = ["DeQuantStub", "QuantStub", "QuantWrapper"]


class _Stub(nn.Module):
    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        """Returns the tensor."""
        return x


class QuantStub(_Stub):
    """Returns its input, whose observer `prepare` adds; `convert` makes it quantize.

    Arguments:
        qconfig: the configuration; None takes that of the module around it

    Example:
        >>> tp.ao.quantization.QuantStub()(tp.tensor([1.0]))
        tensor([1.])
    """


class DeQuantStub(_Stub):
    """Returns its input; `convert` makes it read the integers.

    Arguments:
        qconfig: the configuration; None takes that of the module around it

    Example:
        >>> tp.ao.quantization.DeQuantStub()(tp.tensor([1.0]))
        tensor([1.])
    """


class QuantWrapper(nn.Module):
    """A module between a QuantStub and a DeQuantStub.

    Arguments:
        module: the module

    Example:
        >>> tp.ao.quantization.QuantWrapper(nn.ReLU())(tp.tensor([-1.0, 1.0]))
        tensor([0., 1.])
    """

    quant: Any
    dequant: Any
    module: Any

    def __init__(self, module: Any) -> None:
        super().__init__()
        qconfig = getattr(module, "qconfig", None)
        self.add_module("quant", QuantStub(qconfig))
        self.add_module("dequant", DeQuantStub(qconfig))
        self.add_module("module", module)
        self.train(module.training)

    def forward(self, X: Tensor) -> Tensor:
        """The module's output, in numbers."""
        return self.dequant(self.module(self.quant(X)))
