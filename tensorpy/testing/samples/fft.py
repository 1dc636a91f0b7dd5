"""Samples of discrete Fourier transforms."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from .table import Make, samples

NEAR = {"float32": (1e-4, 1e-4), "complex64": (1e-4, 1e-4), "float64": (1e-9, 1e-9), "complex128": (1e-9, 1e-9)}
REAL = ("float32", "float64")
ANY = (*REAL, "complex64", "complex128")
OPTIONS: dict[str, Any] = {"tolerances": NEAR}
# One, primes below and above 50, powers of two, products.
LENGTHS = (1, 2, 3, 5, 8, 12, 49, 53, 60)


def _of(name: str) -> Any:
    function = getattr(np.fft, name)
    return lambda x, n=None, dim=-1, norm=None: function(x, n, dim, norm)


def _along_a_dimension(make: Make) -> Iterator[Any]:
    for n in LENGTHS[1:]:
        yield make(n)
    for n, norm in itertools.product((3, 4, 7), (None, "ortho", "forward", "backward")):
        yield make(2, 4), n, -1, norm
    yield make(9, 3), None, 0
    yield make(3, 5, 2), 6, 1
    yield make(0, 3)


samples("fft_fft", reference=_of("fft"), dtypes=ANY, **OPTIONS)(_along_a_dimension)
samples("fft_ifft", reference=_of("ifft"), dtypes=ANY, **OPTIONS)(_along_a_dimension)
samples("fft_irfft", reference=_of("irfft"), dtypes=ANY, **OPTIONS)(_along_a_dimension)
samples("fft_hfft", reference=_of("hfft"), dtypes=ANY, **OPTIONS)(_along_a_dimension)
samples("fft_rfft", reference=_of("rfft"), dtypes=REAL, **OPTIONS)(_along_a_dimension)
samples("fft_ihfft", reference=_of("ihfft"), dtypes=REAL, **OPTIONS)(_along_a_dimension)

_OTHER = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def _of_several(name: str) -> Any:
    """NumPy has no hfftn: it is irfftn of the conjugate, with the other norm; ihfftn likewise."""

    def reference(x: Any, s: Any = None, dim: Any = None, norm: Any = None) -> Any:
        dim = ((-2, -1) if name.endswith("2") else None) if dim is None else tuple(dim)
        norm = norm or "backward"
        if dim is None and s is not None:
            dim = tuple(range(-len(s), 0))
        plain = {"hfft": "irfftn", "ihfft": "rfftn"}.get(name[:-1])
        if plain is None:
            return getattr(np.fft, name[:-1] + "n")(x, s, dim, norm)
        if name.startswith("h"):
            return np.fft.irfftn(np.conj(x), s, dim, _OTHER[norm])
        return np.conj(np.fft.rfftn(x, s, dim, _OTHER[norm]))

    return reference


def _along_several(make: Make) -> Iterator[Any]:
    for norm in (None, "ortho", "forward"):
        yield make(3, 4), None, [-2, -1], norm
        yield make(2, 3, 4), [4, 3], [0, 2], norm
    yield make(2, 3, 4), [5, 2], [-2, -1]
    yield make(2, 3, 4)


for _name in ("fft", "ifft", "irfft", "hfft", "rfft", "ihfft"):
    _dtypes = REAL if _name in ("rfft", "ihfft") else ANY
    for _kind in "2n":
        samples(f"fft_{_name}{_kind}", reference=_of_several(_name + _kind), dtypes=_dtypes, **OPTIONS)(_along_several)


@samples("fft_fftshift", reference=lambda x, dim=None: np.fft.fftshift(x, dim))
@samples("fft_ifftshift", reference=lambda x, dim=None: np.fft.ifftshift(x, dim))
def shifts(make: Make) -> Iterator[Any]:
    yield make(5)
    yield make(4, 3)
    yield make(4, 3), [1]
    yield make(0, 3), [-1]
    yield make(2, 3, 4), [0, -1]


@samples("fft_fftfreq", reference=np.fft.fftfreq, dtypes=("float32",), tolerances=NEAR)
@samples("fft_rfftfreq", reference=np.fft.rfftfreq, dtypes=("float32",), tolerances=NEAR)
def frequencies(make: Make) -> Iterator[Any]:
    yield from itertools.product((1, 2, 7, 8), (1.0, 0.5))
