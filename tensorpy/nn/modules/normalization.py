"""Normalisations that keep no statistics."""

from __future__ import annotations

from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._tensor.dtypes import is_whole
from tensorpy.nn import functional as F
from tensorpy.nn import init
from tensorpy.nn.modules.module import Module
from tensorpy.nn.parameter import Parameter

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class LocalResponseNorm(Module):
    """Each element divided by a power of the mean square over neighbouring channels.

    Input (N, C, ...), output of the same shape; floats.

    Arguments:
        size: how many neighbouring channels are summed over
        alpha: the factor of the sum
        beta: the exponent
        k: the constant that is added

    Example:
        >>> nn.LocalResponseNorm(3)(tp.ones(1, 4, 2, 2)).shape
        tensorpy.Size([1, 4, 2, 2])
    """

    alpha: float
    beta: float
    k: float
    size: int

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(LocalResponseNorm):
    """An older LocalResponseNorm of images: its windows reach (size - 1) // 2 channels to both sides, and the first
    channel stays in all that follow.

    Input (N, C, H, W), output of the same shape.

    Arguments:
        size: how many neighbouring channels are summed over
        alpha: the factor of the sum
        beta: the exponent
        k: the constant that is added

    Example:
        >>> nn.CrossMapLRN2d(3)(tp.ones(1, 4, 2, 2)).shape
        tensorpy.Size([1, 4, 2, 2])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        reach, channels = (self.size - 1) // 2 + 1, input.shape[1]
        square = input * input
        so_far = F.pad(square.cumsum(1), [0, 0, 0, 0, 1, 0])  # so_far[:, k]: the first k channels
        ends = [min(c + reach, channels) for c in range(channels)]
        begins = [max(c - reach + 1, 1) for c in range(channels)]
        total = so_far[:, ends] - so_far[:, begins] + so_far[:, 1:2]
        return input * (total * (self.alpha / self.size) + self.k) ** -self.beta


class _Affine(Module):
    weight: Any
    bias: Any

    def _add_parameters(self, shape: Any, names: dict[str, bool], device: Any, dtype: Any) -> None:
        for name, wanted in names.items():
            self.register_parameter(name, Parameter(_C.empty(shape, device=device, dtype=dtype)) if wanted else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Scale 1, shift 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self._parameters.get("bias") is not None:
            init.zeros_(self.bias)


def _shape_of(normalized_shape: Any) -> tuple[int, ...]:
    return (normalized_shape,) if is_whole(normalized_shape) else tuple(normalized_shape)


class LayerNorm(_Affine):
    """The last dimensions brought to mean 0 and variance 1, then scaled and shifted.

    Input (*, normalized_shape), output of the same shape; floats.

    Arguments:
        normalized_shape: the sizes of the last dimensions, over which mean and variance are taken
        eps: a small number that keeps divisions in range
        elementwise_affine: whether there are weights and biases to learn, one for each element
        bias: whether there is a bias
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one

    Example:
        >>> nn.LayerNorm(2)(tp.tensor([[1.0, 3.0], [0.0, 4.0]]))
        tensor([[-1.0000,  1.0000],
                [-1.0000,  1.0000]], grad_fn=<NativeLayerNormBackward0>)
    """

    elementwise_affine: bool
    eps: float
    normalized_shape: Any

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape_of(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        names = {"weight": elementwise_affine, "bias": elementwise_affine and bias}
        self._add_parameters(self.normalized_shape, names, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class GroupNorm(_Affine):
    """Groups of channels brought to mean 0 and variance 1, then scaled and shifted by channel.

    Input (N, C, ...), output of the same shape; floats.

    Arguments:
        num_groups: how many groups the channels are in
        num_channels: how many channels there are
        eps: a small number that keeps divisions in range
        affine: whether there are weights and biases to learn
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one
        bias: whether there is a bias

    Raises: ValueError for channels that num_groups does not divide.

    Example:
        >>> nn.GroupNorm(2, 4)(tp.randn(3, 4, 5)).shape
        tensorpy.Size([3, 4, 5])
    """

    affine: bool
    eps: float
    num_channels: int
    num_groups: int

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self._add_parameters(num_channels, {"weight": affine, "bias": affine and bias}, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(_Affine):
    """The last dimensions divided by their root mean square, then scaled.

    Input (*, normalized_shape), output of the same shape; floats.

    Arguments:
        normalized_shape: the sizes of the last dimensions, over which mean and variance are taken
        eps: a small number that keeps divisions in range
        elementwise_affine: whether there are weights and biases to learn, one for each element
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one

    Example:
        >>> nn.RMSNorm(2)(tp.tensor([[3.0, 4.0]]))
        tensor([[0.8485, 1.1314]], grad_fn=<FusedRmsNormBackward0>)
    """

    elementwise_affine: bool
    eps: float | None
    normalized_shape: Any

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape_of(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self._add_parameters(self.normalized_shape, {"weight": elementwise_affine}, device, dtype)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
