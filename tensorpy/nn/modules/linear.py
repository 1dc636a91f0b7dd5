"""Linear maps."""

from __future__ import annotations

import math
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.autograd.grad_mode import no_grad
from tensorpy.nn import functional as F
from tensorpy.nn import init
from tensorpy.nn.modules.lazy import LazyModuleMixin
from tensorpy.nn.modules.module import Module
from tensorpy.nn.parameter import Parameter, UninitializedParameter

__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear"]


class Identity(Module):
    """Returns its input; takes and forgets any arguments.

    Input of any kind, output the same object.

    Example:
        >>> nn.Identity()(tp.tensor([1, 2]))
        tensor([1, 2])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """x @ weight.T + bias.

    Input (*, in_features), output (*, out_features), of the parameters' dtype.

    Arguments:
        in_features: how many features the input has
        out_features: how many features the output has
        bias: whether there is a bias
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one

    Example:
        >>> layer = nn.Linear(2, 3)
        >>> layer(tp.ones(5, 2)).shape, layer.weight.shape
        (tensorpy.Size([5, 3]), tensorpy.Size([3, 2]))
    """

    in_features: int
    out_features: int
    weight: Tensor
    bias: Any

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(_C.empty((out_features, in_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(_C.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the parameters anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.weight.shape[1]) if self.weight.shape[1] > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class NonDynamicallyQuantizableLinear(Linear):
    """The Linear inside MultiheadAttention."""


class Bilinear(Module):
    """x1 @ weight[k] @ x2 + bias[k], for each feature k.

    Inputs (*, in1_features) and (*, in2_features), output (*, out_features).

    Arguments:
        in1_features: how many features the first input has
        in2_features: how many features the second input has
        out_features: how many features the output has
        bias: whether there is a bias
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one

    Raises: ValueError for in1_features below 1.

    Example:
        >>> nn.Bilinear(2, 3, 4)(tp.ones(5, 2), tp.ones(5, 3)).shape
        tensorpy.Size([5, 4])
    """

    in1_features: int
    in2_features: int
    out_features: int
    weight: Tensor
    bias: Any

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = Parameter(_C.empty((out_features, in1_features, in2_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(_C.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the parameters anew."""
        bound = 1 / math.sqrt(self.weight.shape[1])
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class LazyLinear(LazyModuleMixin, Linear):
    """A Linear whose in_features is the last size of its first input.

    Input (*, in_features), output (*, out_features).

    Arguments:
        out_features: how many features the output has
        bias: whether there is a bias
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one

    Example:
        >>> layer = nn.LazyLinear(3)
        >>> layer(tp.ones(5, 2)).shape, layer.weight.shape
        (tensorpy.Size([5, 3]), tensorpy.Size([3, 2]))
    """

    in_features: Any
    cls_to_become = Linear
    weight: Any
    bias: Any

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        if self.in_features != 0 and not self.has_uninitialized_params():
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        if self.has_uninitialized_params():
            with no_grad():
                self.in_features = input.shape[-1]
                self.weight.materialize((self.out_features, self.in_features))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                self.reset_parameters()
        elif self.in_features == 0:
            self.in_features = self.weight.shape[-1]
