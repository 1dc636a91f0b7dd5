"""Batch norm in evaluation folded into the layer before it."""

from __future__ import annotations

import copy
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.nn.parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a convolution that does what one and a batch norm do together.

    Arguments:
        conv_w: its weight
        conv_b: its bias, or None
        bn_rm: its running mean
        bn_rv: its running variance
        bn_eps: its eps
        bn_w: its weight, or None
        bn_b: its bias, or None
        transpose: whether the convolution is a transposed one

    Returns: two parameters, weight and bias.

    Example:
        >>> w, b = nn.utils.fuse_conv_bn_weights(tp.ones(4, 3, 2, 2), None, tp.zeros(4), tp.ones(4), 1e-5, None, None)
        >>> w.shape, b.shape
        (tensorpy.Size([4, 3, 2, 2]), tensorpy.Size([4]))
    """
    bias = _C.zeros_like(bn_rm) if conv_b is None else conv_b
    scale = (bn_rv + bn_eps).rsqrt()
    scale = scale if bn_w is None else scale * bn_w
    shape = [1, -1] if transpose else [-1, 1]
    weight = conv_w * scale.reshape(shape + [1] * (conv_w.dim() - 2))
    shifted = (bias - bn_rm) * scale
    shifted = shifted if bn_b is None else shifted + bn_b
    dtype = conv_w.dtype if conv_b is None else conv_b.dtype
    return (
        Parameter(weight.to(conv_w.dtype).detach(), conv_w.requires_grad),
        Parameter(shifted.to(dtype).detach(), bias.requires_grad),
    )


def _fused(layer: Any, bn: Any, transpose: bool) -> Any:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    made = copy.deepcopy(layer)
    made.weight, made.bias = fuse_conv_bn_weights(
        made.weight, made.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return made


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A convolution that does what a convolution and a batch norm do together in evaluation.

    Arguments:
        conv: the convolution
        bn: the batch normalisation
        transpose: whether the convolution is a transposed one

    Returns: a new module.

    Raises: AssertionError for modules in training.

    Example:
        >>> conv, bn = nn.Conv2d(3, 4, 2).eval(), nn.BatchNorm2d(4).eval()
        >>> x = tp.ones(1, 3, 5, 5)
        >>> tp.allclose(nn.utils.fuse_conv_bn_eval(conv, bn)(x), bn(conv(x)), atol=1e-5)
        True
    """
    return _fused(conv, bn, transpose)


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor,
    bn_b: Tensor,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a linear map that does what one and a batch norm do together.

    Arguments:
        linear_w: its weight
        linear_b: its bias, or None
        bn_rm: its running mean
        bn_rv: its running variance
        bn_eps: its eps
        bn_w: its weight, or None
        bn_b: its bias, or None

    Returns: two parameters, weight and bias.

    Example:
        >>> zero, one = tp.zeros(4), tp.ones(4)
        >>> w, b = nn.utils.fuse_linear_bn_weights(tp.ones(4, 3), None, zero, one, 1e-5, one, zero)
        >>> w.shape, b.shape
        (tensorpy.Size([4, 3]), tensorpy.Size([4]))
    """
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A linear map that does what a linear map and a batch norm do together in evaluation.

    Arguments:
        bn: the batch normalisation

    Returns: a new module.

    Raises: AssertionError for modules in training, or numbers of features that do not fit.

    Example:
        >>> linear, bn = nn.Linear(3, 4).eval(), nn.BatchNorm1d(4).eval()
        >>> x = tp.ones(2, 3)
        >>> tp.allclose(nn.utils.fuse_linear_bn_eval(linear, bn)(x), bn(linear(x)), atol=1e-5)
        True
    """
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1; got "
            f"{linear.out_features} and {bn.num_features}"
        )
    return _fused(linear, bn, False)
