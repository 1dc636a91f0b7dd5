"""Windows: weights that fall off to both ends of a stretch of a signal.

A symmetric window has its maximum in the middle; with `sym=False` it is the beginning of one that is one longer, whose
repetition is periodic.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


def _places(name: str, M: int, dtype: Any, layout: Any, device: Any) -> Tensor:
    """0, 1, ... up to M - 1, and what a window of that name refuses."""
    dtype = _C.get_default_dtype() if dtype is None else dtype
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not _C.strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if dtype not in (_C.float32, _C.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    return _C.arange(M, dtype=dtype, device=device)


def _last(M: int, sym: bool) -> int:
    """Where the window that is symmetric ends."""
    return M - 1 if sym else M


def _made(window: Tensor, requires_grad: bool) -> Tensor:
    return window.requires_grad_() if requires_grad else window


def _ones(places: Tensor, requires_grad: bool) -> Tensor:
    """A window of one element, or none."""
    return _made(_C.ones_like(places), requires_grad)


def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = _C.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Falls off by 1/e with every tau from the center.

    Arguments:
        M: how many points the window has
        center: where the largest value is; None for the middle
        tau: over how many points the window falls to 1/e
        sym: whether the window is symmetric, for filters, not one period, for spectra
        dtype: the dtype; None takes the usual one
        layout: the layout
        device: where the elements are: a device or its name; None takes the default
        requires_grad: whether autograd records what is done with the tensor

    Returns: a tensor of floats, (M,).

    Raises: ValueError for a negative M, a tau that is not positive, or a center with sym=True.

    Example:
        >>> tp.signal.windows.exponential(4)
        tensor([0.2231, 0.6065, 0.6065, 0.2231])
    """
    places = _places("exponential", M, dtype, layout, device)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if M < 2:
        return _ones(places, requires_grad)
    middle = _last(M, sym) / 2 if center is None else center
    return _made((-(places - middle).abs() / tau).exp(), requires_grad)


def cosine(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = _C.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Half a turn of a sine.

    Arguments:
        M: how many points the window has
        sym: whether the window is symmetric, for filters, not one period, for spectra
        dtype: the dtype; None takes the usual one
        layout: the layout
        device: where the elements are: a device or its name; None takes the default
        requires_grad: whether autograd records what is done with the tensor

    Returns: a tensor of floats, (M,).

    Raises: ValueError for a negative M.

    Example:
        >>> tp.signal.windows.cosine(4)
        tensor([0.3827, 0.9239, 0.9239, 0.3827])
    """
    places = _places("cosine", M, dtype, layout, device)
    if M < 2:
        return _ones(places, requires_grad)
    return _made(((places + 0.5) * (math.pi / (_last(M, sym) + 1))).sin(), requires_grad)


def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = _C.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A bell of that deviation.

    Arguments:
        M: how many points the window has
        std: the standard deviation, in points
        sym: whether the window is symmetric, for filters, not one period, for spectra
        dtype: the dtype; None takes the usual one
        layout: the layout
        device: where the elements are: a device or its name; None takes the default
        requires_grad: whether autograd records what is done with the tensor

    Returns: a tensor of floats, (M,).

    Raises: ValueError for a negative M, or a std that is not positive.

    Example:
        >>> tp.signal.windows.gaussian(4, std=1.0)
        tensor([0.3247, 0.8825, 0.8825, 0.3247])
    """
    places = _places("gaussian", M, dtype, layout, device)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    if M < 2:
        return _ones(places, requires_grad)
    away = (places - _last(M, sym) / 2) / std
    return _made((-0.5 * away * away).exp(), requires_grad)


def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = _C.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Kaiser's, of Bessel functions.

    Arguments:
        M: how many points the window has
        beta: how narrow the window is
        sym: whether the window is symmetric, for filters, not one period, for spectra
        dtype: the dtype; None takes the usual one
        layout: the layout
        device: where the elements are: a device or its name; None takes the default
        requires_grad: whether autograd records what is done with the tensor

    Returns: a tensor of floats, (M,).

    Raises: ValueError for a negative M or a negative beta.

    Example:
        >>> tp.signal.windows.kaiser(4, beta=8.0)
        tensor([0.0023, 0.6525, 0.6525, 0.0023])
    """
    places = _places("kaiser", M, dtype, layout, device)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if M < 2:
        return _ones(places, requires_grad)
    away = places * (2 / _last(M, sym)) - 1
    root = (1 - away * away).clamp_min(0).sqrt()
    return _made(_C.i0(beta * root) / _C.i0(_C.tensor(float(beta), dtype=places.dtype, device=device)), requires_grad)


def general_cosine(
    M: int,
    *,
    a: Sequence[float],
    sym: bool = True,
    dtype: Any = None,
    layout: Any = _C.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A sum of cosines of 0, 1, ... turns, weighted by `a` with signs that alternate.

    Arguments:
        M: how many points the window has
        a: the weights of the cosines
        sym: whether the window is symmetric, for filters, not one period, for spectra
        dtype: the dtype; None takes the usual one
        layout: the layout
        device: where the elements are: a device or its name; None takes the default
        requires_grad: whether autograd records what is done with the tensor

    Returns: a tensor of floats, (M,).

    Raises: ValueError for a negative M or no coefficients, TypeError for coefficients that are no list.

    Example:
        >>> tp.signal.windows.general_cosine(4, a=[0.5, 0.5])
        tensor([0.0000, 0.7500, 0.7500, 0.0000])
    """
    places = _places("general_cosine", M, dtype, layout, device)
    if not isinstance(a, (list, tuple)):
        raise TypeError("Coefficients must be a list/tuple")
    if not a:
        raise ValueError("Coefficients cannot be empty")
    if M < 2:
        return _ones(places, requires_grad)
    turn = places * (2 * math.pi / _last(M, sym))
    window = _C.zeros_like(places)
    for k, weight in enumerate(a):
        window = window + (-1) ** k * weight * (turn * k).cos()
    return _made(window, requires_grad)


def general_hamming(
    M: int,
    *,
    alpha: float = 0.54,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = _C.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """alpha less (1 - alpha) of a cosine.

    Arguments:
        M: how many points the window has
        alpha: the number that shapes the function
        sym: whether the window is symmetric, for filters, not one period, for spectra
        dtype: the dtype; None takes the usual one
        layout: the layout
        device: where the elements are: a device or its name; None takes the default
        requires_grad: whether autograd records what is done with the tensor

    Returns: a tensor of floats, (M,).

    Raises: ValueError for a negative M.

    Example:
        >>> tp.signal.windows.general_hamming(4)
        tensor([0.0800, 0.7700, 0.7700, 0.0800])
    """
    a = [alpha, 1.0 - alpha]
    return general_cosine(M, a=a, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hamming(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = _C.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Hamming's: general_hamming of 0.54.

    Arguments:
        M: how many points the window has
        sym: whether the window is symmetric, for filters, not one period, for spectra
        dtype: the dtype; None takes the usual one
        layout: the layout
        device: where the elements are: a device or its name; None takes the default
        requires_grad: whether autograd records what is done with the tensor

    Returns: a tensor of floats, (M,).

    Raises: ValueError for a negative M.

    Example:
        >>> tp.signal.windows.hamming(4)
        tensor([0.0800, 0.7700, 0.7700, 0.0800])
    """
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hann(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = _C.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Von Hann's: general_hamming of 0.5.

    Arguments:
        M: how many points the window has
        sym: whether the window is symmetric, for filters, not one period, for spectra
        dtype: the dtype; None takes the usual one
        layout: the layout
        device: where the elements are: a device or its name; None takes the default
        requires_grad: whether autograd records what is done with the tensor

    Returns: a tensor of floats, (M,).

    Raises: ValueError for a negative M.

    Example:
        >>> tp.signal.windows.hann(4)
        tensor([0.0000, 0.7500, 0.7500, 0.0000])
    """
    return general_hamming(
        M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def blackman(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = _C.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Blackman's, of three cosines.

    Arguments:
        M: how many points the window has
        sym: whether the window is symmetric, for filters, not one period, for spectra
        dtype: the dtype; None takes the usual one
        layout: the layout
        device: where the elements are: a device or its name; None takes the default
        requires_grad: whether autograd records what is done with the tensor

    Returns: a tensor of floats, (M,).

    Raises: ValueError for a negative M.

    Example:
        >>> tp.signal.windows.blackman(4)
        tensor([-1.4901e-08,  6.3000e-01,  6.3000e-01, -1.4901e-08])
    """
    a = [0.42, 0.5, 0.08]
    return general_cosine(M, a=a, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def nuttall(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = _C.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Nuttall's, of four cosines.

    Arguments:
        M: how many points the window has
        sym: whether the window is symmetric, for filters, not one period, for spectra
        dtype: the dtype; None takes the usual one
        layout: the layout
        device: where the elements are: a device or its name; None takes the default
        requires_grad: whether autograd records what is done with the tensor

    Returns: a tensor of floats, (M,).

    Raises: ValueError for a negative M.

    Example:
        >>> tp.signal.windows.nuttall(4)
        tensor([3.6280e-04, 5.2923e-01, 5.2923e-01, 3.6280e-04])
    """
    a = [0.3635819, 0.4891775, 0.1365995, 0.0106411]
    return general_cosine(M, a=a, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def bartlett(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = _C.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A triangle.

    Arguments:
        M: how many points the window has
        sym: whether the window is symmetric, for filters, not one period, for spectra
        dtype: the dtype; None takes the usual one
        layout: the layout
        device: where the elements are: a device or its name; None takes the default
        requires_grad: whether autograd records what is done with the tensor

    Returns: a tensor of floats, (M,).

    Raises: ValueError for a negative M.

    Example:
        >>> tp.signal.windows.bartlett(4)
        tensor([0.0000, 0.6667, 0.6667, 0.0000])
    """
    places = _places("bartlett", M, dtype, layout, device)
    if M < 2:
        return _ones(places, requires_grad)
    return _made(1 - (places * (2 / _last(M, sym)) - 1).abs(), requires_grad)
