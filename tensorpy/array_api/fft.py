"""The standard's extension `fft`: discrete Fourier transforms."""

from __future__ import annotations

import tensorpy as tp
from tensorpy import Tensor, dtype
from tensorpy import fft as _fft

__all__ = """
    fft fftfreq fftn fftshift hfft ifft ifftn ifftshift ihfft irfft irfftn rfft rfftfreq rfftn
""".split()


def fft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The transform of complex numbers.

    Arguments:
        x: an array
        n: the transform's length; x is cut or filled with zeros; None: x's
        axis: along which
        norm: which transform is divided by the length: "backward" the inverse, "forward" this one, "ortho" both by
            its root

    Returns: an array of complex numbers.

    Example:
        >>> xp.fft.fft(tp.ones(2))
        tensor([2.+0.j, 0.+0.j])
    """
    return _fft.fft(x, n, axis, norm)


def ifft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of fft().

    Arguments:
        x: an array
        n: the transform's length; x is cut or filled with zeros; None: x's
        axis: along which
        norm: which transform is divided by the length: "backward" the inverse, "forward" this one, "ortho" both by
            its root

    Returns: an array of complex numbers.

    Example:
        >>> xp.fft.ifft(tp.tensor([2.0 + 0j, 0.0]))
        tensor([1.+0.j, 1.+0.j])
    """
    return _fft.ifft(x, n, axis, norm)


def rfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The transform of real numbers, the half of it that says all.

    Arguments:
        x: an array
        n: the transform's length; x is cut or filled with zeros; None: x's
        axis: along which
        norm: which transform is divided by the length: "backward" the inverse, "forward" this one, "ortho" both by
            its root

    Returns: an array of complex numbers.

    Example:
        >>> xp.fft.rfft(tp.ones(2))
        tensor([2.+0.j, 0.+0.j])
    """
    return _fft.rfft(x, n, axis, norm)


def irfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of rfft().

    Arguments:
        x: an array
        n: the result's length; None: the even one
        axis: along which
        norm: which transform is divided by the length: "backward" the inverse, "forward" this one, "ortho" both by
            its root

    Returns: an array of real numbers.

    Example:
        >>> xp.fft.irfft(tp.tensor([2.0 + 0j, 0.0]))
        tensor([1., 1.])
    """
    return _fft.irfft(x, n, axis, norm)


def hfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The transform of numbers whose other half is conjugate.

    Arguments:
        x: an array
        n: the result's length; None: the even one
        axis: along which
        norm: which transform is divided by the length: "backward" the inverse, "forward" this one, "ortho" both by
            its root

    Returns: an array of real numbers.

    Example:
        >>> xp.fft.hfft(tp.tensor([1.0 + 0j, 1.0]))
        tensor([2., 0.])
    """
    return _fft.hfft(x, n, axis, norm)


def ihfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of hfft().

    Arguments:
        x: an array
        n: the transform's length; x is cut or filled with zeros; None: x's
        axis: along which
        norm: which transform is divided by the length: "backward" the inverse, "forward" this one, "ortho" both by
            its root

    Returns: an array of complex numbers.

    Example:
        >>> xp.fft.ihfft(tp.tensor([2.0, 0.0]))
        tensor([1.-0.j, 1.-0.j])
    """
    return _fft.ihfft(x, n, axis, norm)


def fftn(
    x: Tensor,
    /,
    *,
    s: tuple[int, ...] | None = None,
    axes: tuple[int, ...] | None = None,
    norm: str = "backward",
) -> Tensor:
    """The transform of complex numbers over several axes.

    Arguments:
        x: an array
        s: the lengths along the axes; x is cut or filled with zeros; None: x's
        axes: the axes; None: all, or the last ones for as many lengths
        norm: which transform is divided by the lengths: "backward" the inverse, "forward" this one, "ortho" both by
            their root

    Returns: an array of complex numbers.

    Example:
        >>> xp.fft.fftn(tp.ones(1, 2))
        tensor([[2.+0.j, 0.+0.j]])
    """
    return _fft.fftn(x, s, axes, norm)


def ifftn(
    x: Tensor,
    /,
    *,
    s: tuple[int, ...] | None = None,
    axes: tuple[int, ...] | None = None,
    norm: str = "backward",
) -> Tensor:
    """The inverse of fftn().

    Arguments:
        x: an array
        s: the lengths along the axes; x is cut or filled with zeros; None: x's
        axes: the axes; None: all, or the last ones for as many lengths
        norm: which transform is divided by the lengths: "backward" the inverse, "forward" this one, "ortho" both by
            their root

    Returns: an array of complex numbers.

    Example:
        >>> xp.fft.ifftn(tp.ones(1, 1))
        tensor([[1.+0.j]])
    """
    return _fft.ifftn(x, s, axes, norm)


def rfftn(
    x: Tensor,
    /,
    *,
    s: tuple[int, ...] | None = None,
    axes: tuple[int, ...] | None = None,
    norm: str = "backward",
) -> Tensor:
    """The transform of real numbers over several axes, the half of it that says all.

    Arguments:
        x: an array
        s: the lengths along the axes; x is cut or filled with zeros; None: x's
        axes: the axes; None: all, or the last ones for as many lengths
        norm: which transform is divided by the lengths: "backward" the inverse, "forward" this one, "ortho" both by
            their root

    Returns: an array of complex numbers.

    Example:
        >>> xp.fft.rfftn(tp.ones(1, 2))
        tensor([[2.+0.j, 0.+0.j]])
    """
    return _fft.rfftn(x, s, axes, norm)


def irfftn(
    x: Tensor,
    /,
    *,
    s: tuple[int, ...] | None = None,
    axes: tuple[int, ...] | None = None,
    norm: str = "backward",
) -> Tensor:
    """The inverse of rfftn().

    Arguments:
        x: an array
        s: the lengths along the axes; x is cut or filled with zeros; None: x's
        axes: the axes; None: all, or the last ones for as many lengths
        norm: which transform is divided by the lengths: "backward" the inverse, "forward" this one, "ortho" both by
            their root

    Returns: an array of real numbers.

    Example:
        >>> xp.fft.irfftn(tp.tensor([[2.0 + 0j, 0.0]]))
        tensor([[1., 1.]])
    """
    return _fft.irfftn(x, s, axes, norm)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: dtype | None = None, device: tp.device | str | None = None) -> Tensor:
    """The frequencies of fft(), in cycles of the unit of `d`.

    Arguments:
        n: the transform's length
        d: the distance of samples
        dtype: the dtype; None: the default floating one
        device: the device

    Returns: an array of one dimension.

    Example:
        >>> xp.fft.fftfreq(4)
        tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    return _fft.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: dtype | None = None, device: tp.device | str | None = None) -> Tensor:
    """The frequencies of rfft(), in cycles of the unit of `d`.

    Arguments:
        n: the transform's length
        d: the distance of samples
        dtype: the dtype; None: the default floating one
        device: the device

    Returns: an array of one dimension.

    Example:
        >>> xp.fft.rfftfreq(4)
        tensor([0.0000, 0.2500, 0.5000])
    """
    return _fft.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: Tensor, /, *, axes: int | tuple[int, ...] | None = None) -> Tensor:
    """The frequencies in order, 0 in the middle.

    Arguments:
        x: an array
        axes: along which axis, or axes; None: all

    Returns: an array of x's shape.

    Example:
        >>> xp.fft.fftshift(tp.tensor([0, 1, 2]))
        tensor([2, 0, 1])
    """
    return _fft.fftshift(x, axes)


def ifftshift(x: Tensor, /, *, axes: int | tuple[int, ...] | None = None) -> Tensor:
    """The inverse of fftshift().

    Arguments:
        x: an array
        axes: along which axis, or axes; None: all

    Returns: an array of x's shape.

    Example:
        >>> xp.fft.ifftshift(tp.tensor([0, 1, 2]))
        tensor([1, 2, 0])
    """
    return _fft.ifftshift(x, axes)
