"""Modules that are computed as one, before they are quantized: sequences whose parts are of given types."""

from __future__ import annotations

from typing import Any

from tensorpy import nn
from tensorpy._C import Tensor

__all__ = [
    "BNReLU2d", "BNReLU3d", "ConvAdd2d", "ConvAddReLU2d", "ConvBn1d", "ConvBn2d", "ConvBn3d", "ConvBnReLU1d",
    "ConvBnReLU2d", "ConvBnReLU3d", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearBn1d", "LinearLeakyReLU",
    "LinearReLU", "LinearTanh",
]  # fmt: skip


class _FusedModule(nn.Sequential):
    """A sequence that is computed as one, of modules of the types `_PARTS`."""

    _PARTS: tuple[Any, ...] = ()

    def __init__(self, *parts: Any) -> None:
        found = tuple(type(part) for part in parts)
        if self._PARTS and found != self._PARTS:
            names = [[kind.__name__ for kind in kinds] for kinds in (self._PARTS, found)]
            raise AssertionError(f"{type(self).__name__} is of {names[0]}, not of {names[1]}")
        super().__init__(*parts)


class ConvReLU1d(_FusedModule):
    """Conv1d and ReLU, computed as one when they are quantized."""

    _PARTS = (nn.Conv1d, nn.ReLU)

    def __init__(self, conv: Any, relu: Any) -> None:
        super().__init__(conv, relu)


class ConvReLU2d(_FusedModule):
    """Conv2d and ReLU, computed as one when they are quantized."""

    _PARTS = (nn.Conv2d, nn.ReLU)

    def __init__(self, conv: Any, relu: Any) -> None:
        super().__init__(conv, relu)


class ConvReLU3d(_FusedModule):
    """Conv3d and ReLU, computed as one when they are quantized."""

    _PARTS = (nn.Conv3d, nn.ReLU)

    def __init__(self, conv: Any, relu: Any) -> None:
        super().__init__(conv, relu)


class LinearReLU(_FusedModule):
    """Linear and ReLU, computed as one when they are quantized."""

    _PARTS = (nn.Linear, nn.ReLU)

    def __init__(self, linear: Any, relu: Any) -> None:
        super().__init__(linear, relu)


class ConvBn1d(_FusedModule):
    """Conv1d and BatchNorm1d, computed as one when they are quantized."""

    _PARTS = (nn.Conv1d, nn.BatchNorm1d)

    def __init__(self, conv: Any, bn: Any) -> None:
        super().__init__(conv, bn)


class ConvBn2d(_FusedModule):
    """Conv2d and BatchNorm2d, computed as one when they are quantized."""

    _PARTS = (nn.Conv2d, nn.BatchNorm2d)

    def __init__(self, conv: Any, bn: Any) -> None:
        super().__init__(conv, bn)


class ConvBn3d(_FusedModule):
    """Conv3d and BatchNorm3d, computed as one when they are quantized."""

    _PARTS = (nn.Conv3d, nn.BatchNorm3d)

    def __init__(self, conv: Any, bn: Any) -> None:
        super().__init__(conv, bn)


class ConvBnReLU1d(_FusedModule):
    """Conv1d, BatchNorm1d and ReLU, computed as one when they are quantized."""

    _PARTS = (nn.Conv1d, nn.BatchNorm1d, nn.ReLU)

    def __init__(self, conv: Any, bn: Any, relu: Any) -> None:
        super().__init__(conv, bn, relu)


class ConvBnReLU2d(_FusedModule):
    """Conv2d, BatchNorm2d and ReLU, computed as one when they are quantized."""

    _PARTS = (nn.Conv2d, nn.BatchNorm2d, nn.ReLU)

    def __init__(self, conv: Any, bn: Any, relu: Any) -> None:
        super().__init__(conv, bn, relu)


class ConvBnReLU3d(_FusedModule):
    """Conv3d, BatchNorm3d and ReLU, computed as one when they are quantized."""

    _PARTS = (nn.Conv3d, nn.BatchNorm3d, nn.ReLU)

    def __init__(self, conv: Any, bn: Any, relu: Any) -> None:
        super().__init__(conv, bn, relu)


class BNReLU2d(_FusedModule):
    """BatchNorm2d and ReLU, computed as one when they are quantized."""

    _PARTS = (nn.BatchNorm2d, nn.ReLU)

    def __init__(self, bn: Any, relu: Any) -> None:
        super().__init__(bn, relu)


class BNReLU3d(_FusedModule):
    """BatchNorm3d and ReLU, computed as one when they are quantized."""

    _PARTS = (nn.BatchNorm3d, nn.ReLU)

    def __init__(self, bn: Any, relu: Any) -> None:
        super().__init__(bn, relu)


class LinearBn1d(_FusedModule):
    """Linear and BatchNorm1d, computed as one when they are quantized."""

    _PARTS = (nn.Linear, nn.BatchNorm1d)

    def __init__(self, linear: Any, bn: Any) -> None:
        super().__init__(linear, bn)


class LinearLeakyReLU(_FusedModule):
    """Linear and LeakyReLU, computed as one when they are quantized."""

    _PARTS = (nn.Linear, nn.LeakyReLU)

    def __init__(self, linear: Any, leaky_relu: Any) -> None:
        super().__init__(linear, leaky_relu)


class LinearTanh(_FusedModule):
    """Linear and Tanh, computed as one when they are quantized."""

    _PARTS = (nn.Linear, nn.Tanh)

    def __init__(self, linear: Any, tanh: Any) -> None:
        super().__init__(linear, tanh)


class ConvAdd2d(_FusedModule):
    """Conv2d of one tensor and a sum with another, computed as one when they are quantized.

    Example:
        >>> layer = tp.ao.nn.intrinsic.ConvAdd2d(nn.Conv2d(1, 2, 3), tp.add)
        >>> layer(tp.ones(1, 1, 3, 3), tp.ones(1, 2, 1, 1)).shape
        tensorpy.Size([1, 2, 1, 1])
    """

    add: Any

    def __init__(self, conv: Any, add: Any) -> None:
        super().__init__(conv)
        self.add = add

    def forward(  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        self, x1: Tensor, x2: Tensor
    ) -> Tensor:
        """The convolution of x1, plus x2."""
        return self.add(self[0](x1), x2)


class ConvAddReLU2d(_FusedModule):
    """Conv2d of one tensor, a sum with another and ReLU, computed as one when they are quantized.

    Example:
        >>> layer = tp.ao.nn.intrinsic.ConvAddReLU2d(nn.Conv2d(1, 2, 3), tp.add, nn.ReLU())
        >>> bool((layer(tp.ones(1, 1, 3, 3), -9 * tp.ones(1, 2, 1, 1)) == 0).all())
        True
    """

    add: Any
    relu: Any

    def __init__(self, conv: Any, add: Any, relu: Any) -> None:
        super().__init__(conv)
        self.add, self.relu = add, relu

    def forward(  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        self, x1: Tensor, x2: Tensor
    ) -> Tensor:
        """The convolution of x1, plus x2, with nothing below 0."""
        return self.relu(self.add(self[0](x1), x2))
