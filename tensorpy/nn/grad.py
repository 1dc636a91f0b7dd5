"""Gradients of the convolutions, by the input and by the weight, for functions with a backward of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor

Sizes = int | Sequence[int]

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def _each(value: Any, n: int) -> tuple[int, ...]:
    return (value,) * n if isinstance(value, int) else tuple(value)


def _gradient(
    n: int, which: int, grad: Tensor, input: Tensor, weight: Tensor, sizes: tuple[Any, Any, Any], groups: int
) -> Tensor:
    """which: 0 by the input, 1 by the weight."""
    stride, padding, dilation = (_each(value, n) for value in sizes)
    wanted = [which == 0, which == 1, False]
    grads = _C.convolution_backward(
        grad, input, weight, None, stride, padding, dilation, False, (0,) * n, groups, wanted
    )
    return grads[which]


def _by_input(
    n: int, input_size: Sequence[int], weight: Tensor, grad_output: Tensor, sizes: tuple[Any, Any, Any], groups: int
) -> Tensor:
    input = grad_output.new_empty(1).expand(tuple(input_size))
    return _gradient(n, 0, grad_output, input, weight, sizes=sizes, groups=groups)


def _by_weight(
    n: int, input: Tensor, weight_size: Sequence[int], grad_output: Tensor, sizes: tuple[Any, Any, Any], groups: int
) -> Tensor:
    weight = grad_output.new_empty(1).expand(tuple(weight_size))
    return _gradient(n, 1, grad_output, input, weight, sizes=sizes, groups=groups)


def conv1d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv1d by its input, which is of `input_size`.

    Arguments:
        input_size: how many features each step of the input has
        weight: a weight for each class or element; None for ones
        grad_output: the gradient of the result, of the result's shape
        stride: how far the window moves: one number for all dimensions, or one for each
        padding: how many elements are added at both sides of each dimension
        dilation: the distance between elements of the window
        groups: how many groups the channels are in, each of which is on its own

    Returns: a tensor of input_size.

    Example:
        >>> nn.grad.conv1d_input((1, 3, 6), tp.ones(2, 3, 2), tp.ones(1, 2, 5)).shape
        tensorpy.Size([1, 3, 6])
    """
    return _by_input(1, input_size, weight, grad_output, (stride, padding, dilation), groups)


def conv1d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv1d by its weight, which is of `weight_size`.

    Arguments:
        input: the tensor
        grad_output: the gradient of the result, of the result's shape
        stride: how far the window moves: one number for all dimensions, or one for each
        padding: how many elements are added at both sides of each dimension
        dilation: the distance between elements of the window
        groups: how many groups the channels are in, each of which is on its own

    Returns: a tensor of weight_size.

    Example:
        >>> nn.grad.conv1d_weight(tp.ones(1, 3, 6), (2, 3, 2), tp.ones(1, 2, 5)).shape
        tensorpy.Size([2, 3, 2])
    """
    return _by_weight(1, input, weight_size, grad_output, (stride, padding, dilation), groups)


def conv2d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv2d by its input, which is of `input_size`.

    Arguments:
        input_size: how many features each step of the input has
        weight: a weight for each class or element; None for ones
        grad_output: the gradient of the result, of the result's shape
        stride: how far the window moves: one number for all dimensions, or one for each
        padding: how many elements are added at both sides of each dimension
        dilation: the distance between elements of the window
        groups: how many groups the channels are in, each of which is on its own

    Returns: a tensor of input_size.

    Example:
        >>> nn.grad.conv2d_input((1, 3, 6, 6), tp.ones(2, 3, 2, 2), tp.ones(1, 2, 5, 5)).shape
        tensorpy.Size([1, 3, 6, 6])
    """
    return _by_input(2, input_size, weight, grad_output, (stride, padding, dilation), groups)


def conv2d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv2d by its weight, which is of `weight_size`.

    Arguments:
        input: the tensor
        grad_output: the gradient of the result, of the result's shape
        stride: how far the window moves: one number for all dimensions, or one for each
        padding: how many elements are added at both sides of each dimension
        dilation: the distance between elements of the window
        groups: how many groups the channels are in, each of which is on its own

    Returns: a tensor of weight_size.

    Example:
        >>> nn.grad.conv2d_weight(tp.ones(1, 3, 6, 6), (2, 3, 2, 2), tp.ones(1, 2, 5, 5)).shape
        tensorpy.Size([2, 3, 2, 2])
    """
    return _by_weight(2, input, weight_size, grad_output, (stride, padding, dilation), groups)


def conv3d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv3d by its input, which is of `input_size`.

    Arguments:
        input_size: how many features each step of the input has
        weight: a weight for each class or element; None for ones
        grad_output: the gradient of the result, of the result's shape
        stride: how far the window moves: one number for all dimensions, or one for each
        padding: how many elements are added at both sides of each dimension
        dilation: the distance between elements of the window
        groups: how many groups the channels are in, each of which is on its own

    Returns: a tensor of input_size.

    Example:
        >>> nn.grad.conv3d_input((1, 3, 4, 4, 4), tp.ones(2, 3, 2, 2, 2), tp.ones(1, 2, 3, 3, 3)).shape
        tensorpy.Size([1, 3, 4, 4, 4])
    """
    return _by_input(3, input_size, weight, grad_output, (stride, padding, dilation), groups)


def conv3d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv3d by its weight, which is of `weight_size`.

    Arguments:
        input: the tensor
        grad_output: the gradient of the result, of the result's shape
        stride: how far the window moves: one number for all dimensions, or one for each
        padding: how many elements are added at both sides of each dimension
        dilation: the distance between elements of the window
        groups: how many groups the channels are in, each of which is on its own

    Returns: a tensor of weight_size.

    Example:
        >>> nn.grad.conv3d_weight(tp.ones(1, 3, 4, 4, 4), (2, 3, 2, 2, 2), tp.ones(1, 2, 3, 3, 3)).shape
        tensorpy.Size([2, 3, 2, 2, 2])
    """
    return _by_weight(3, input, weight_size, grad_output, (stride, padding, dilation), groups)
