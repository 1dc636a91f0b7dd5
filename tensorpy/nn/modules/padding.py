"""Borders around signals, images and volumes."""

from __future__ import annotations

from typing import Any

from tensorpy._C import Tensor
from tensorpy.nn import functional as F
from tensorpy.nn.modules.module import Module
from tensorpy.nn.modules.utils import _ntuple

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class _PadNd(Module):
    """`_dims` spatial dimensions are padded, by pairs from the last one on."""

    _dims: int
    _mode: str

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = _ntuple(2 * self._dims)(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _CircularPadNd(_PadNd):
    _mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (self._dims + 1, self._dims + 2):
            raise ValueError(f"expected {self._dims + 1}D or {self._dims + 2}D input (got {input.dim()}D input)")
        return super().forward(input)


class CircularPad1d(_CircularPadNd):
    """A border from the other end of the signal."""

    _dims = 1


class CircularPad2d(_CircularPadNd):
    """A border from the other end of the image."""

    _dims = 2


class CircularPad3d(_CircularPadNd):
    """A border from the other end of the volume."""

    _dims = 3


class _ConstantPadNd(_PadNd):
    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """A border of one value around a signal."""

    _dims = 1


class ConstantPad2d(_ConstantPadNd):
    """A border of one value around an image."""

    _dims = 2


class ConstantPad3d(_ConstantPadNd):
    """A border of one value around a volume."""

    _dims = 3


class _ReflectionPadNd(_PadNd):
    _mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """A border that mirrors the signal, its end not repeated."""

    _dims = 1


class ReflectionPad2d(_ReflectionPadNd):
    """A border that mirrors the image, its edge not repeated."""

    _dims = 2


class ReflectionPad3d(_ReflectionPadNd):
    """A border that mirrors the volume, its face not repeated."""

    _dims = 3


class _ReplicationPadNd(_PadNd):
    _mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """A border that repeats the signal's end."""

    _dims = 1


class ReplicationPad2d(_ReplicationPadNd):
    """A border that repeats the image's edge."""

    _dims = 2


class ReplicationPad3d(_ReplicationPadNd):
    """A border that repeats the volume's face."""

    _dims = 3


class ZeroPad1d(ConstantPad1d):
    """A border of zeros around a signal."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    extra_repr = _PadNd.extra_repr


class ZeroPad2d(ConstantPad2d):
    """A border of zeros around an image."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    extra_repr = _PadNd.extra_repr


class ZeroPad3d(ConstantPad3d):
    """A border of zeros around a volume."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    extra_repr = _PadNd.extra_repr
