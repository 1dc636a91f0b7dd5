"""The special functions: their values are SciPy's, or PyTorch's."""

from __future__ import annotations

import importlib.util
import signal
from typing import Any

import numpy as np
import pytest

import tensorpy as tp
from tensorpy.testing.samples.table import CATALOG

special = pytest.importorskip("scipy.special")
rng = np.random.default_rng(5)
POSITIVE = np.concatenate([np.geomspace(1e-8, 400, 400), rng.uniform(0, 60, 400)])
ALL = np.concatenate([-POSITIVE, [0.0], POSITIVE])

THEIRS = {
    "airy_ai": (lambda x: special.airy(x)[0], ALL[np.abs(ALL) < 40]),
    "bessel_j0": (special.j0, ALL),
    "bessel_j1": (special.j1, ALL),
    "bessel_y0": (special.y0, POSITIVE),
    "bessel_y1": (special.y1, POSITIVE),
    "modified_bessel_i0": (special.i0, ALL),
    "modified_bessel_i1": (special.i1, ALL),
    "modified_bessel_k0": (special.k0, POSITIVE),
    "modified_bessel_k1": (special.k1, POSITIVE),
    "scaled_modified_bessel_k0": (special.k0e, POSITIVE),
    "scaled_modified_bessel_k1": (special.k1e, POSITIVE),
    "spherical_bessel_j0": (lambda x: special.spherical_jn(0, x), ALL),
    "entr": (special.entr, ALL),
    "erfcx": (special.erfcx, ALL[ALL > -20]),
    "multigammaln": (lambda x: special.multigammaln(x, 3), POSITIVE[POSITIVE > 1.1]),
}


@pytest.mark.parametrize("name", THEIRS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_are_scipys(name: str, dtype: str) -> None:
    theirs, x = THEIRS[name]
    rounded = x.astype(dtype)
    given = tp.tensor(rounded.tolist(), dtype=getattr(tp, dtype))
    got = getattr(tp.special, name)(*((given, 3) if name == "multigammaln" else (given,)))
    assert got.dtype == given.dtype
    near = {"rtol": 1e-12, "atol": 1e-14} if dtype == "float64" else {"rtol": 1e-6, "atol": 1e-38}
    np.testing.assert_allclose(got.numpy(), theirs(rounded.astype("float64")).astype(dtype), **near)


def test_every_function_of_bessel_is_compared() -> None:
    assert {name for name in tp.special.__all__ if "bessel" in name or "airy" in name} <= set(THEIRS)


POLYNOMIALS = {
    "chebyshev_polynomial_t": special.eval_chebyt,
    "chebyshev_polynomial_u": special.eval_chebyu,
    "hermite_polynomial_h": special.eval_hermite,
    "hermite_polynomial_he": special.eval_hermitenorm,
    "laguerre_polynomial_l": special.eval_laguerre,
    "legendre_polynomial_p": special.eval_legendre,
    "shifted_chebyshev_polynomial_t": special.eval_sh_chebyt,
    "shifted_chebyshev_polynomial_u": special.eval_sh_chebyu,
    # cos((n + 1/2) t) / cos(t / 2) and sin((n + 1/2) t) / sin(t / 2), for x = cos t
    "chebyshev_polynomial_v": lambda n, x: special.eval_jacobi(n, -0.5, 0.5, x) / special.eval_jacobi(n, -0.5, 0.5, 1),
    "chebyshev_polynomial_w": lambda n, x: (
        (2 * n + 1) * special.eval_jacobi(n, 0.5, -0.5, x) / special.eval_jacobi(n, 0.5, -0.5, 1)
    ),
}
POLYNOMIALS["shifted_chebyshev_polynomial_v"] = lambda n, x: POLYNOMIALS["chebyshev_polynomial_v"](n, 2 * x - 1)
POLYNOMIALS["shifted_chebyshev_polynomial_w"] = lambda n, x: POLYNOMIALS["chebyshev_polynomial_w"](n, 2 * x - 1)


@pytest.mark.parametrize("name", [name for name in tp.special.__all__ if "_polynomial_" in name])
def test_polynomials_are_scipys(name: str) -> None:
    x, n = rng.uniform(-1.5, 1.5, (40, 1)), np.arange(12)
    got = getattr(tp.special, name)(tp.tensor(x.tolist(), dtype=tp.float64), tp.arange(12))
    np.testing.assert_allclose(got.numpy(), POLYNOMIALS[name](n, x), rtol=1e-9, atol=1e-9)
    assert getattr(tp.special, name)(tp.ones(2), -1).tolist() == [0.0, 0.0]
    assert getattr(tp.special, name)(0.5, tp.tensor([0, 1])).shape == (2,)


ENDS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.3, 2.0, -3.5, 1e-300, 5e-324, 200.0, float("inf"), float("-inf"), float("nan")]
DEGREES = [-1.0, -0.5, 0.0, 1.0, 2.7, 7.0, 8.0, 30.0, 600.0, 1e4, float("nan"), 1e19]
torch = pytest.importorskip("torch") if importlib.util.find_spec("torch") else None
with_torch = pytest.mark.skipif(torch is None, reason="torch is not installed")


@with_torch
@pytest.mark.parametrize("name", sorted({*THEIRS, "i0", "i0e", "i1", "i1e"} - {"multigammaln"}))
def test_ends_are_torchs(name: str) -> None:
    x = [v for v in ENDS if not (name == "airy_ai" and abs(v) == 200)]
    ours, theirs = (getattr(lib.special, name)(lib.tensor(x, dtype=lib.float64)).numpy() for lib in (tp, torch))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-300)


@with_torch
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", POLYNOMIALS)
def test_ends_of_polynomials_are_torchs(name: str, dtype: str) -> None:
    """But for NaN, which PyTorch takes for any number from degree 2 on."""
    x = ENDS[:-1]

    def outcome(lib: Any) -> Any:
        of = getattr(lib, dtype)
        return getattr(lib.special, name)(lib.tensor(x, dtype=of)[:, None], lib.tensor(DEGREES, dtype=of)).numpy()

    near = {"rtol": 1e-9, "atol": 1e-9} if dtype == "float64" else {"rtol": 2e-2, "atol": 2e-2}
    ours, theirs = outcome(tp), outcome(torch)
    # PyTorch's float overflows on the way to some large numbers
    theirs = np.where(np.isnan(theirs) & (np.abs(ours) > np.finfo(dtype).max / 100), ours, theirs)
    np.testing.assert_allclose(ours, theirs, **near)
    got = getattr(tp.special, name)(tp.tensor(float("nan")), tp.tensor([1.0, 2.0, 5.0]))
    assert got.isnan().all() or (name.startswith("hermite") and got.isnan().any())


@with_torch
def test_every_overload_of_torchs_is_there() -> None:
    theirs = {str(s) for s in torch._C._jit_get_all_schemas() if s.name.startswith("aten::special_")}
    ours = {f"aten::{op.schema}" for op in CATALOG}
    missing = {t for t in theirs if t not in ours}
    assert not missing


@pytest.mark.parametrize("name", sorted({*THEIRS, *POLYNOMIALS} - {"multigammaln", "entr", "erfcx"}))
def test_results_need_no_gradient(name: str) -> None:
    """As PyTorch's."""
    x = tp.rand(3, requires_grad=True)
    result = getattr(tp.special, name)(*((x, 2) if name in POLYNOMIALS else (x,)))
    assert not result.requires_grad


@pytest.mark.parametrize("name", sorted({*THEIRS, *POLYNOMIALS} - {"multigammaln"}))
def test_results_go_into_out(name: str) -> None:
    function = getattr(tp.special, name)
    given = (tp.rand(3, dtype=tp.float64) + 1, 4) if name in POLYNOMIALS else (tp.rand(3, dtype=tp.float64) + 1,)
    out = tp.empty(3, dtype=tp.float64)
    assert function(*given, out=out) is out
    assert tp.equal(out, function(*given))
    assert function(tp.empty(2, 3, device="meta"), *given[1:]).shape == (2, 3)


ENDLESS = {
    "many elements": lambda f: f(tp.full((100_000,), 0.5, dtype=tp.float64), 2**60),
    "few elements": lambda f: f(tp.full((2, 3), 0.5), 2**60),
    "transposed": lambda f: f(tp.full((2, 3), 0.5).t(), tp.full((3, 2), 2.0**60)),
    "out=": lambda f: f(tp.full((2, 3), 0.5), 2**60, out=tp.empty(2, 3)),
    "out= of another dtype": lambda f: f(tp.full((2, 3), 0.5), 2**60, out=tp.empty(2, 3, dtype=tp.float64)),
}


@pytest.mark.parametrize("name", ["laguerre_polynomial_l", "legendre_polynomial_p"])
@pytest.mark.parametrize("call", ENDLESS)
def test_a_degree_without_end_can_be_interrupted(name: str, call: str) -> None:
    def stop(number: int, frame: Any) -> None:
        raise InterruptedError

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(InterruptedError):
            ENDLESS[call](getattr(tp.special, name))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("dtype", [tp.float32, tp.float64])
def test_incomplete_gamma_functions(dtype: Any) -> None:
    a = np.array([1e-3, 0.1, 0.5, 1, 2.5, 9.9, 10, 30, 100, 1e3, 1e4])
    a, x = (v.ravel() for v in np.meshgrid(a, np.concatenate([a, [0.0, 0.99, 31, 99, 1010]])))
    given = [tp.tensor(v.tolist(), dtype=dtype) for v in (a, x)]
    wide = [t.double().numpy() for t in given]
    near = {"rtol": 1e-10, "atol": 1e-12} if dtype is tp.float64 else {"rtol": 1e-5, "atol": 1e-7}
    np.testing.assert_allclose(tp.special.gammainc(*given).numpy(), special.gammainc(*wide), **near)
    np.testing.assert_allclose(tp.special.gammaincc(*given).numpy(), special.gammaincc(*wide), **near)


def test_incomplete_gamma_functions_of_large_numbers() -> None:
    a = np.repeat([3.9e6, 4.1e6, 1e8, 1e12], 5)
    x = a + np.tile([-3, -1, 0, 1, 3], 4) * np.sqrt(a)
    got = tp.igamma(tp.tensor(a.tolist(), dtype=tp.float64), tp.tensor(x.tolist(), dtype=tp.float64))
    np.testing.assert_allclose(got.numpy(), special.gammainc(a, x), rtol=1e-4, atol=1e-7)


def test_incomplete_gamma_functions_at_the_ends() -> None:
    inf, nan = float("inf"), float("nan")
    a = tp.tensor([0.0, 0.0, 1.0, 1.0, inf, inf, -1.0, 1.0, nan])
    x = tp.tensor([0.0, 1.0, 0.0, inf, 1.0, inf, 1.0, -1.0, 1.0])
    expected = np.array([nan, 1, 0, 1, 0, nan, nan, nan, nan])
    np.testing.assert_array_equal(tp.igamma(a, x).numpy(), expected)
    np.testing.assert_array_equal(tp.igammac(a, x).numpy(), 1 - expected)


def test_polygamma_in_place() -> None:
    x = tp.tensor([0.5, 2.0], dtype=tp.float64)
    expected = x.polygamma(1)
    assert x.polygamma_(1) is x and tp.equal(x, expected)


@pytest.mark.parametrize("dtype", [tp.float32, tp.float64])
@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("pole", [0, -1, -2])
def test_polygamma_on_both_sides_of_a_pole(n: int, pole: int, dtype: tp.dtype) -> None:
    """Beside a pole the function is n! / (-distance)**(n + 1), but for what the other poles add."""
    gap = tp.tensor([2.0**-20, 2.0**-15] if pole else [1e-10 if n == 2 else 1e-17, 1e-5], dtype=dtype)
    for distance in (gap, -gap):
        expected = (-1) ** (n + 1) * max(n, 1) / distance.double() ** (n + 1)
        got = tp.polygamma(n, pole + distance).double()
        np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-4)


def test_slopes_of_sinc_near_zero() -> None:
    """Where its quotient cancels, and at zero itself: to float32's digits, the second derivative too."""
    at = [0.0, 1e-4, -1e-3, 0.003, 0.01, 0.05, -0.15, 0.159, 0.16, 0.3, 2.5]

    def slopes(dtype: tp.dtype) -> list[tp.Tensor]:
        x = tp.tensor(at, dtype=dtype, requires_grad=True)
        (first,) = tp.autograd.grad(tp.sinc(x).sum(), x, create_graph=True)
        (second,) = tp.autograd.grad(first.sum(), x)
        return [first.detach().double(), second.double()]

    for found, expected in zip(slopes(tp.float32), slopes(tp.float64), strict=True):
        tp.testing.assert_close(found, expected, rtol=2e-6, atol=2e-6)
    assert slopes(tp.float64)[1][0].item() == pytest.approx(-(np.pi**2) / 3, rel=1e-15)
    x = tp.tensor([0.0, 0.155 + 0.01j, 0.163, 1 + 1j], dtype=tp.complex128, requires_grad=True)
    assert tp.autograd.gradcheck(tp.sinc, (x,)) and tp.autograd.gradgradcheck(tp.sinc, (x,))
