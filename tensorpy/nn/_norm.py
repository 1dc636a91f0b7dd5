"""Normalisations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tensorpy._C import rms_norm as rms_norm
from tensorpy.nn._common import nn, ops

if TYPE_CHECKING:
    from tensorpy import Tensor

__all__ = [
    "batch_norm",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "local_response_norm",
    "normalize",
    "rms_norm",
]


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """The last dimensions brought to mean 0 and variance 1, then scaled and shifted.

    Arguments:
        input: the tensor
        normalized_shape: the sizes of the last dimensions, over which mean and variance are taken
        weight: the factors, of normalized_shape, or None
        bias: what is added to each output channel or feature, or None
        eps: a small number that keeps divisions in range

    Returns: a tensor of the input's shape.

    Raises: RuntimeError for an input that does not end with normalized_shape.

    Example:
        >>> F.layer_norm(tp.tensor([[1.0, 3.0], [0.0, 4.0]]), (2,))
        tensor([[-1.0000,  1.0000],
                [-1.0000,  1.0000]])
    """
    return ops.layer_norm(input, normalized_shape, weight, bias, eps)


def _check_values(input: Tensor, values: int) -> None:
    for size in input.shape[2:]:
        values *= size
    if values == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Groups of channels brought to mean 0 and variance 1.

    Arguments:
        input: (N, C, ...); floats
        num_groups: how many groups the channels are in
        weight: the factors, (C,), or None
        bias: what is added to each output channel or feature, or None
        eps: a small number that keeps divisions in range

    Returns: a tensor of the input's shape.

    Raises: RuntimeError for channels that num_groups does not divide, ValueError for one value per group.

    Example:
        >>> F.group_norm(tp.randn(2, 6, 5), 3).shape
        tensorpy.Size([2, 6, 5])
    """
    if input.dim() >= 2 and num_groups > 0 and input.shape[1] % num_groups:
        raise RuntimeError(
            f"Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(input.shape)} and num_groups={num_groups}"
        )
    if input.dim() >= 2 and num_groups > 0:
        values = input.shape[0] * input.shape[1] // num_groups
        for size in input.shape[2:]:
            values *= size
        if values == 1:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {[*input.shape]}")
    return ops.group_norm(input, num_groups, weight, bias, eps)


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Each channel brought to mean 0 and variance 1 over the batch, or by the running statistics.

    Arguments:
        input: (N, C, ...); floats
        running_mean: the running mean of each channel, (C,), or None
        running_var: the running variance of each channel, (C,), or None
        weight: the factors, (C,), or None
        bias: what is added to each output channel or feature, or None
        training: whether the module is in training
        momentum: how much the new statistics weigh in the running ones; None for an average of all
        eps: a small number that keeps divisions in range

    Returns: a tensor of the input's shape; running statistics are written if training.

    Raises: ValueError for one value per channel in training, or an eps that is not positive.

    Example:
        >>> F.batch_norm(tp.tensor([[1.0], [3.0]]), None, None, training=True)
        tensor([[-1.0000],
                [ 1.0000]])
    """
    if (running_mean is None) != (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    if training:
        _check_values(input, input.shape[0])
    if eps < 0 or (training and eps == 0):
        kind = "positive during training" if training else "non-negative"
        raise ValueError(f"batch_norm eps must be {kind}, but got {eps}")
    return ops.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, False)


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Each channel of each image brought to mean 0 and variance 1.

    Arguments:
        input: (N, C, ...); floats
        running_mean: the running mean of each channel, (C,), or None
        running_var: the running variance of each channel, (C,), or None
        weight: the factors, (C,), or None
        bias: what is added to each output channel or feature, or None
        use_input_stats: whether mean and variance are those of the input
        momentum: how much the new statistics weigh in the running ones; None for an average of all
        eps: a small number that keeps divisions in range

    Returns: a tensor of the input's shape.

    Raises: ValueError for one spatial element with use_input_stats.

    Example:
        >>> F.instance_norm(tp.tensor([[[1.0, 3.0]]]))
        tensor([[[-1.0000,  1.0000]]])
    """
    if use_input_stats and math.prod(input.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    return ops.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False)


def normalize(
    input: Tensor, p: float = 2.0, dim: int | tuple[int, ...] = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """Divided by the norm along a dimension, or by eps if that is larger.

    Arguments:
        input: the tensor
        p: the order of the norm
        dim: the dimension; a negative one counts from the last
        eps: a small number that keeps divisions in range
        out: a tensor to write to, which is returned

    Returns: a tensor of the input's shape.

    Example:
        >>> F.normalize(tp.tensor([[3.0, 4.0]]))
        tensor([[0.6000, 0.8000]])
    """
    length = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return ops.div(input, length) if out is None else ops.div(input, length, out=out)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Divided by a power of the mean square over neighbouring channels.

    Arguments:
        input: the tensor
        size: how many neighbouring channels are summed over
        alpha: the factor of the sum
        beta: the exponent
        k: the constant that is added

    Returns: a tensor of the input's shape.

    Raises: ValueError for an input of less than 3 dimensions.

    Example:
        >>> F.local_response_norm(tp.ones(1, 4, 2, 2), 3).shape
        tensorpy.Size([1, 4, 2, 2])
    """
    if input.dim() < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {input.dim()} dimensions)")
    if input.numel() == 0:
        return input
    square = (input * input).unsqueeze(1)
    flat = square.reshape(input.shape[0], 1, input.shape[1], -1)
    padded = nn.pad(flat, [0, 0, size // 2, (size - 1) // 2])
    mean = nn.avg_pool2d(padded, [size, 1], [1, 1]).reshape(input.shape)
    return input / (mean * alpha + k) ** beta
