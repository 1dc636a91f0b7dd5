"""Samples of windows and of short-time Fourier transforms."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from .fft import NEAR
from .table import Make, samples

CLOSE = {"float16": (2e-3, 1e-3), "bfloat16": (1.6e-2, 8e-3), "float32": (1e-5, 1e-6), "float64": (1e-12, 1e-12)}
REAL = ("float32", "float64")
ANY = (*REAL, "complex64", "complex128")


# ---- windows ----


def _periodic(symmetric: Any) -> Any:
    """NumPy's windows are symmetric; a periodic one is the first points of a longer one."""

    def reference(n: int, periodic: bool = True, *parameters: float, **_: Any) -> Any:
        return symmetric(n + 1, *parameters)[:n] if periodic and n > 1 else symmetric(n, *parameters)

    return reference


def _cosine(n: int, alpha: float = 0.54, beta: float = 0.46) -> Any:
    return alpha - beta * np.cos(2 * np.pi * np.arange(n) / (n - 1)) if n > 1 else np.ones(n)


def _window(name: str, symmetric: Any, *parameters: Any) -> None:
    @samples(name, reference=_periodic(symmetric), dtypes=("float16", *REAL), tolerances=CLOSE)
    def lengths(make: Make) -> Iterator[Any]:
        for n, rest in itertools.product((0, 1, 2, 3, 8, 13), parameters):
            yield n, *rest, {"dtype": make.given}


_PERIODIC = ((True,), (False,))
for _name, _symmetric in {
    "hann": np.hanning, "hamming": np.hamming, "bartlett": np.bartlett, "blackman": np.blackman,
}.items():  # fmt: skip
    _window(f"{_name}_window", _symmetric, ())
    _window(f"{_name}_window.periodic", _symmetric, *_PERIODIC)
_window("hamming_window.periodic_alpha", _cosine, (True, 0.6), (False, 0.3))
_window("hamming_window.periodic_alpha_beta", _cosine, (True, 0.6, 0.4), (False, 0.3, 0.2))
_window("kaiser_window", lambda n: np.kaiser(n, 12.0), ())
_window("kaiser_window.periodic", lambda n: np.kaiser(n, 12.0), *_PERIODIC)
_window("kaiser_window.beta", np.kaiser, (True, 3.5), (False, 0.0), (False, 8.0))


# ---- short-time transforms ----


def _padded(window: Any, width: int, n_fft: int) -> Any:
    left = (n_fft - width) // 2
    return np.pad(np.ones(width) if window is None else window, (left, n_fft - width - left))


def _stft(x: Any, n_fft: int, hop: Any = None, width: Any = None, window: Any = None, **given: Any) -> Any:
    hop, width = hop or n_fft // 4, width or n_fft
    shape = _padded(window, width, n_fft)
    if given.get("align_to_window"):
        left = (n_fft - width) // 2
        x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(left, n_fft - width - left)])
    starts = range(0, x.shape[-1] - n_fft + 1, hop)
    frames = np.stack([x[..., i : i + n_fft] * shape for i in starts], -2)
    half = given.get("onesided")
    half = not np.iscomplexobj(frames) if half is None else half
    spectra = (np.fft.rfft if half else np.fft.fft)(frames, norm="ortho" if given.get("normalized") else None)
    spectra = np.swapaxes(spectra, -1, -2)
    return spectra if given.get("return_complex", True) else np.stack([spectra.real, spectra.imag], -1)


def _stft_centred(x: Any, n_fft: int, *rest: Any, center: bool = True, pad_mode: str = "reflect", **given: Any) -> Any:
    if center:
        x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(n_fft // 2, n_fft // 2)], mode=pad_mode)  # type: ignore[call-overload]
    return _stft(x, n_fft, *rest, **given)


@samples("stft", reference=_stft, dtypes=ANY, tolerances=NEAR)
def stft(make: Make) -> Iterator[Any]:
    window = make.own(np.linspace(0.5, 1.5, 4))
    yield make(11), 4, None, None, None, {"normalized": False, "return_complex": True}
    yield make(2, 9), 4, 2, None, window, {"normalized": True, "onesided": False, "return_complex": True}
    yield make(2, 9), 6, 3, 4, window, {"normalized": False, "return_complex": False}
    yield make(9), 6, 3, 4, window, {"normalized": False, "return_complex": True, "align_to_window": True}


@samples("stft.center", reference=_stft_centred, dtypes=ANY, tolerances=NEAR)
def stft_center(make: Make) -> Iterator[Any]:
    for center, mode in ((True, "reflect"), (True, "constant"), (False, "reflect")):
        yield make(11), 4, None, None, None, {"center": center, "pad_mode": mode, "return_complex": True}
        yield make(2, 9), 5, 2, None, None, {"center": center, "pad_mode": mode, "return_complex": True}


def _istft(x: Any, n_fft: int, hop: Any = None, width: Any = None, window: Any = None, **given: Any) -> Any:
    hop, width = hop or n_fft // 4, width or n_fft
    shape = _padded(window, width, n_fft)
    whole = given.get("return_complex", False)
    inverse = np.fft.ifft if whole else np.fft.irfft
    frames = inverse(np.swapaxes(x, -1, -2), n_fft, norm="ortho" if given.get("normalized") else None) * shape
    count = frames.shape[-2]
    total = np.zeros((*x.shape[:-2], n_fft + hop * (count - 1)), frames.dtype)
    weight = np.zeros(total.shape[-1])
    for i in range(count):
        total[..., i * hop : i * hop + n_fft] += frames[..., i, :]
        weight[i * hop : i * hop + n_fft] += shape**2
    start = n_fft // 2 if given.get("center", True) else 0
    length = given.get("length")
    end = total.shape[-1] - start if length is None else start + length
    signal = total[..., start:end] / weight[start:end]
    return np.pad(signal, [(0, 0)] * (signal.ndim - 1) + [(0, end - start - signal.shape[-1])])


@samples("istft", reference=_istft, dtypes=("complex64", "complex128"), tolerances=NEAR)
def istft(make: Make) -> Iterator[Any]:
    window = make.array(np.linspace(0.5, 1.5, 4), "float32" if make.dtype == "complex64" else "float64")
    yield make(3, 5), 4
    yield make(2, 3, 5), 4, 2, None, window, {"normalized": True}
    yield make(3, 5), 4, 2, None, window, {"center": False}
    yield make(2, 4, 5), 6, 2, 4, window, {"length": 7}
    yield make(3, 3), 4, {"length": 12}
    yield make(4, 5), 4, {"onesided": False, "return_complex": True}
    yield make(1, 3, 6), 4, 1
    yield make(3, 5), 4, 2, 3
