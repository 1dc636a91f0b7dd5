"""Discrete Fourier transforms against NumPy's: every way to split a length, and every layout of lines."""

from __future__ import annotations

import numpy as np
import pytest

import tensorpy as tp
from tensorpy.autograd import gradcheck, gradgradcheck

# All up to 70; products of every factor; primes that are too large for a pass of their own; several blocks of lines.
# Twice a large prime of each power of two: their convolutions take even and odd numbers of passes.
TWICE = [2 * prime for prime in (53, 67, 131, 257, 349, 521, 1031, 2053)]
LENGTHS = [*TWICE, *range(1, 71), 81, 97, 101, 127, 128, 210, 243, 256, 360, 509, 1000, 1009, 1024, 4 * 59, 5040, 10007]


def near(found: tp.Tensor, wanted: np.ndarray) -> None:
    single = found.dtype in (tp.float32, tp.complex64)
    bound = (1e-5 if single else 1e-12) * max(1.0, float(np.abs(wanted).max(initial=0)))
    assert found.shape == wanted.shape
    assert np.abs(found.numpy() - wanted).max(initial=0) <= bound * 4


@pytest.mark.parametrize("lines", [1, 3, 17])
@pytest.mark.parametrize("single", [False, True])
def test_every_length(lines: int, single: bool) -> None:
    rng = np.random.default_rng(lines)
    for n in LENGTHS:
        z = rng.standard_normal((lines, n)) + 1j * rng.standard_normal((lines, n))
        z = z.astype(np.complex64) if single else z
        near(tp.fft.fft(tp.tensor(z)), np.fft.fft(z))
        near(tp.fft.ifft(tp.tensor(z)), np.fft.ifft(z))
        near(tp.fft.rfft(tp.tensor(z.real.copy())), np.fft.rfft(z.real))
        for length in (2 * n - 1, 2 * n - 2):
            if length:
                near(tp.fft.irfft(tp.tensor(z), n=length), np.fft.irfft(z, n=length))


def test_every_layout() -> None:
    rng = np.random.default_rng(0)
    z = rng.standard_normal((6, 5, 9)) + 1j * rng.standard_normal((6, 5, 9))
    for order in ((0, 1, 2), (2, 0, 1), (1, 2, 0)):
        x = tp.tensor(z).permute(order)
        for dim in (0, 1, 2):
            near(tp.fft.fft(x, dim=dim), np.fft.fft(z.transpose(order), axis=dim))
            near(tp.fft.irfft(x, dim=dim), np.fft.irfft(z.transpose(order), axis=dim))
            near(tp.fft.rfft(x.real, dim=dim), np.fft.rfft(z.real.transpose(order), axis=dim))
        near(tp.fft.fft(x[::2, :, 1:]), np.fft.fft(z.transpose(order)[::2, :, 1:]))


@pytest.mark.parametrize("n", [5, 8, 53])
def test_gradients(n: int) -> None:
    x = tp.randn(2, n, dtype=tp.float64, requires_grad=True)
    z = tp.randn(2, n, dtype=tp.complex128, requires_grad=True)
    for name, given in (("fft", z), ("ifft", z), ("irfft", z), ("hfft", z), ("rfft", x), ("ihfft", x), ("fft2", z)):
        assert gradcheck(getattr(tp.fft, name), (given,)), name
        assert gradgradcheck(getattr(tp.fft, name), (given,)), name


def test_wrong_arguments() -> None:
    x = tp.ones(3, 4)
    for call, error, what in (
        (lambda: tp.fft.fft(x, n=0), RuntimeError, "data points"),
        (lambda: tp.fft.fft(x, norm="none"), RuntimeError, "normalization mode"),
        (lambda: tp.fft.fft(x, dim=2), IndexError, "range"),
        (lambda: tp.fft.fftn(x, dim=(0, 0)), RuntimeError, "unique"),
        (lambda: tp.fft.fftn(x, s=(1, 2), dim=(0,)), RuntimeError, "same length"),
        (lambda: tp.fft.rfft(x.to(tp.complex64)), RuntimeError, "rfft expects a real input tensor"),
        (lambda: tp.fft.fft(x.half()), RuntimeError, "Unsupported dtype"),
    ):
        with pytest.raises(error, match=what):
            call()


def test_integers_become_the_default_dtype() -> None:
    assert tp.fft.fft(tp.arange(4)).dtype == tp.complex64
    assert tp.fft.rfft(tp.arange(4)).tolist() == [6, -2 + 2j, -2]


def test_not_finite_numbers_stay() -> None:
    assert bool(tp.fft.fft(tp.tensor([1.0, float("nan"), 2.0])).isnan().all())


@pytest.mark.parametrize("name", ["rfft", "rfft2", "rfftn", "ihfft", "ihfft2", "ihfftn"])
def test_real_transforms_refuse_complex_numbers_as_torchs(name: str) -> None:
    torch = pytest.importorskip("torch")

    def message(lib) -> str:
        with pytest.raises(RuntimeError) as raised:
            getattr(lib.fft, name)(lib.ones(3, 3, dtype=lib.complex64))
        return str(raised.value)

    assert message(tp) == message(torch)
