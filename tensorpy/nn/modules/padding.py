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

    padding: Any
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
    """A border from the other end of the signal.

    Input (N, C, L) or (C, L), output longer by the padding.

    Arguments:
        padding: how many elements are added at both sides of each dimension

    Example:
        >>> nn.CircularPad1d(1)(tp.tensor([[[1.0, 2.0, 3.0]]]))
        tensor([[[3., 1., 2., 3., 1.]]])
    """

    _dims = 1


class CircularPad2d(_CircularPadNd):
    """A border from the other end of the image.

    Input (N, C, H, W) or (C, H, W), output wider and higher by the padding.

    Arguments:
        padding: how many elements are added at both sides of each dimension

    Example:
        >>> nn.CircularPad2d(1)(tp.ones(1, 1, 3, 3)).shape
        tensorpy.Size([1, 1, 5, 5])
    """

    _dims = 2


class CircularPad3d(_CircularPadNd):
    """A border from the other end of the volume.

    Input (N, C, D, H, W) or (C, D, H, W), output larger by the padding.

    Arguments:
        padding: how many elements are added at both sides of each dimension

    Example:
        >>> nn.CircularPad3d(1)(tp.ones(1, 1, 3, 3, 3)).shape
        tensorpy.Size([1, 1, 5, 5, 5])
    """

    _dims = 3


class _ConstantPadNd(Module):
    padding: Any
    value: float

    def __init__(self, value: float) -> None:
        super().__init__()
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ConstantPad(_ConstantPadNd):
    _dims: int

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(value)
        self.padding = _ntuple(2 * self._dims)(padding)


class ConstantPad1d(_ConstantPad):
    """A border of one value around a signal.

    Input (N, C, L) or (C, L), output longer by the padding.

    Arguments:
        padding: how many elements are added at both sides of each dimension
        value: the value

    Example:
        >>> nn.ConstantPad1d(1, 9.0)(tp.tensor([[[1.0, 2.0, 3.0]]]))
        tensor([[[9., 1., 2., 3., 9.]]])
    """

    _dims = 1


class ConstantPad2d(_ConstantPad):
    """A border of one value around an image.

    Input (N, C, H, W) or (C, H, W), output wider and higher by the padding.

    Arguments:
        padding: how many elements are added at both sides of each dimension
        value: the value

    Example:
        >>> nn.ConstantPad2d(1, 9.0)(tp.ones(1, 1, 3, 3)).shape
        tensorpy.Size([1, 1, 5, 5])
    """

    _dims = 2


class ConstantPad3d(_ConstantPad):
    """A border of one value around a volume.

    Input (N, C, D, H, W) or (C, D, H, W), output larger by the padding.

    Arguments:
        padding: how many elements are added at both sides of each dimension
        value: the value

    Example:
        >>> nn.ConstantPad3d(1, 9.0)(tp.ones(1, 1, 3, 3, 3)).shape
        tensorpy.Size([1, 1, 5, 5, 5])
    """

    _dims = 3


class _ReflectionPadNd(_PadNd):
    _mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """A border that mirrors the signal, its end not repeated.

    Input (N, C, L) or (C, L), output longer by the padding.

    Arguments:
        padding: how many elements are added at both sides of each dimension

    Example:
        >>> nn.ReflectionPad1d(1)(tp.tensor([[[1.0, 2.0, 3.0]]]))
        tensor([[[2., 1., 2., 3., 2.]]])
    """

    _dims = 1


class ReflectionPad2d(_ReflectionPadNd):
    """A border that mirrors the image, its edge not repeated.

    Input (N, C, H, W) or (C, H, W), output wider and higher by the padding.

    Arguments:
        padding: how many elements are added at both sides of each dimension

    Example:
        >>> nn.ReflectionPad2d(1)(tp.ones(1, 1, 3, 3)).shape
        tensorpy.Size([1, 1, 5, 5])
    """

    _dims = 2


class ReflectionPad3d(_ReflectionPadNd):
    """A border that mirrors the volume, its face not repeated.

    Input (N, C, D, H, W) or (C, D, H, W), output larger by the padding.

    Arguments:
        padding: how many elements are added at both sides of each dimension

    Example:
        >>> nn.ReflectionPad3d(1)(tp.ones(1, 1, 3, 3, 3)).shape
        tensorpy.Size([1, 1, 5, 5, 5])
    """

    _dims = 3


class _ReplicationPadNd(_PadNd):
    _mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """A border that repeats the signal's end.

    Input (N, C, L) or (C, L), output longer by the padding.

    Arguments:
        padding: how many elements are added at both sides of each dimension

    Example:
        >>> nn.ReplicationPad1d(1)(tp.tensor([[[1.0, 2.0, 3.0]]]))
        tensor([[[1., 1., 2., 3., 3.]]])
    """

    _dims = 1


class ReplicationPad2d(_ReplicationPadNd):
    """A border that repeats the image's edge.

    Input (N, C, H, W) or (C, H, W), output wider and higher by the padding.

    Arguments:
        padding: how many elements are added at both sides of each dimension

    Example:
        >>> nn.ReplicationPad2d(1)(tp.ones(1, 1, 3, 3)).shape
        tensorpy.Size([1, 1, 5, 5])
    """

    _dims = 2


class ReplicationPad3d(_ReplicationPadNd):
    """A border that repeats the volume's face.

    Input (N, C, D, H, W) or (C, D, H, W), output larger by the padding.

    Arguments:
        padding: how many elements are added at both sides of each dimension

    Example:
        >>> nn.ReplicationPad3d(1)(tp.ones(1, 1, 3, 3, 3)).shape
        tensorpy.Size([1, 1, 5, 5, 5])
    """

    _dims = 3


class ZeroPad1d(ConstantPad1d):
    """A border of zeros around a signal.

    Input (N, C, L) or (C, L), output longer by the padding.

    Arguments:
        padding: how many elements are added at both sides of each dimension

    Example:
        >>> nn.ZeroPad1d(1)(tp.tensor([[[1.0, 2.0, 3.0]]]))
        tensor([[[0., 1., 2., 3., 0.]]])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    extra_repr: Any = _PadNd.extra_repr


class ZeroPad2d(ConstantPad2d):
    """A border of zeros around an image.

    Input (N, C, H, W) or (C, H, W), output wider and higher by the padding.

    Arguments:
        padding: how many elements are added at both sides of each dimension

    Example:
        >>> nn.ZeroPad2d(1)(tp.ones(1, 1, 3, 3)).shape
        tensorpy.Size([1, 1, 5, 5])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    extra_repr: Any = _PadNd.extra_repr


class ZeroPad3d(ConstantPad3d):
    """A border of zeros around a volume.

    Input (N, C, D, H, W) or (C, D, H, W), output larger by the padding.

    Arguments:
        padding: how many elements are added at both sides of each dimension

    Example:
        >>> nn.ZeroPad3d(1)(tp.ones(1, 1, 3, 3, 3)).shape
        tensorpy.Size([1, 1, 5, 5, 5])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    extra_repr: Any = _PadNd.extra_repr
