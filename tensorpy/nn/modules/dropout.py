"""Dropout of elements and of whole channels."""

from __future__ import annotations

from typing import Any

from tensorpy._C import Tensor
from tensorpy.nn import functional as F
from tensorpy.nn.modules.module import Module

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _DropoutNd(Module):
    inplace: bool
    p: float
    _function: Any

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p, self.inplace = p, inplace

    def forward(self, input: Tensor) -> Tensor:
        return self._function(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Zeroes elements with probability p and scales the others by 1 / (1 - p), while training.

    Input of any shape, output of the same.

    Arguments:
        p: the probability of a zero
        inplace: whether the result is written to the input

    Raises: ValueError for a p outside [0, 1].

    Example:
        >>> nn.Dropout(0.5).eval()(tp.ones(1, 2, 2))
        tensor([[[1., 1.],
                 [1., 1.]]])
    """

    _function = staticmethod(F.dropout)


class Dropout1d(_DropoutNd):
    """Zeroes whole channels of signals.

    Input (N, C, L) or (C, L), output of the same shape.

    Arguments:
        p: the probability of a zero
        inplace: whether the result is written to the input

    Raises: ValueError for a p outside [0, 1].

    Example:
        >>> nn.Dropout1d(0.5).eval()(tp.ones(1, 2, 2))
        tensor([[[1., 1.],
                 [1., 1.]]])
    """

    _function = staticmethod(F.dropout1d)


class Dropout2d(_DropoutNd):
    """Zeroes whole channels of images.

    Input (N, C, H, W) or (C, H, W), output of the same shape.

    Arguments:
        p: the probability of a zero
        inplace: whether the result is written to the input

    Raises: ValueError for a p outside [0, 1].

    Example:
        >>> nn.Dropout2d(0.5).eval()(tp.ones(1, 2, 2))
        tensor([[[1., 1.],
                 [1., 1.]]])
    """

    _function = staticmethod(F.dropout2d)


class Dropout3d(_DropoutNd):
    """Zeroes whole channels of volumes.

    Input (N, C, D, H, W) or (C, D, H, W), output of the same shape.

    Arguments:
        p: the probability of a zero
        inplace: whether the result is written to the input

    Raises: ValueError for a p outside [0, 1].

    Example:
        >>> nn.Dropout3d(0.5).eval()(tp.ones(1, 2, 2))
        tensor([[[1., 1.],
                 [1., 1.]]])
    """

    _function = staticmethod(F.dropout3d)


class AlphaDropout(_DropoutNd):
    """Dropout that keeps the mean and variance of self-normalising networks.

    Input of any shape, output of the same.

    Arguments:
        p: the probability of a zero
        inplace: whether the result is written to the input

    Raises: ValueError for a p outside [0, 1].

    Example:
        >>> nn.AlphaDropout(0.5).eval()(tp.ones(1, 2, 2))
        tensor([[[1., 1.],
                 [1., 1.]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """AlphaDropout of whole channels.

    Input (N, C, *), output of the same shape.

    Arguments:
        p: the probability of a zero
        inplace: whether the result is written to the input

    Raises: ValueError for a p outside [0, 1].

    Example:
        >>> nn.FeatureAlphaDropout(0.5).eval()(tp.ones(1, 2, 2))
        tensor([[[1., 1.],
                 [1., 1.]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training)
