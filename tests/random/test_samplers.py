"""Draws whose parameters are tensors: gamma, Poisson, binomial, Dirichlet against SciPy's distributions, and how draws
move with their parameters, against PyTorch's values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorpy as tp

stats = pytest.importorskip("scipy.stats")
sc = pytest.importorskip("scipy.special")
COUNT = 100_000


def full(value: float, count: int = COUNT, dtype: Any = tp.float64) -> tp.Tensor:
    return tp.full((count,), value, dtype=dtype)


def chance_of(drawn: np.ndarray, law: Any) -> float:
    """That draws of a discrete law differ from it as much as these (chi-squared); rare values count as one."""
    values = np.arange(int(law.ppf(1e-4)), int(law.ppf(1 - 1e-4)) + 1)
    share = law.pmf(values)
    values, share = values[share * drawn.size > 5], share[share * drawn.size > 5]
    found = np.array([(drawn == v).sum() for v in values])
    rest = max(1 - share.sum(), 1e-12)
    if rest * drawn.size < 5:
        return float(stats.chisquare(found, share / share.sum() * found.sum()).pvalue)
    found, share = np.append(found, drawn.size - found.sum()), np.append(share, rest)
    return float(stats.chisquare(found, share * drawn.size).pvalue)


@pytest.mark.parametrize(
    ("alpha", "dtype"),  # below some 0.2 many draws are smaller than what float32 holds
    [(0.05, tp.float64), *((a, d) for a in (0.3, 0.5, 1.0, 2.5, 50.0, 1e4) for d in (tp.float32, tp.float64))],
)
def test_gamma(alpha: float, dtype: Any) -> None:
    tp.manual_seed(101)
    drawn = tp._standard_gamma(full(alpha, dtype=dtype)).numpy().astype(np.float64)
    assert drawn.min() > 0
    assert stats.kstest(drawn, stats.gamma(float(np.float32(alpha))).cdf).pvalue > 1e-3


@pytest.mark.parametrize("rate", [0.05, 1.0, 9.9, 10.0, 50.0, 1e3])
def test_poisson(rate: float) -> None:
    tp.manual_seed(7)
    assert chance_of(tp.poisson(full(rate)).numpy(), stats.poisson(rate)) > 1e-3


@pytest.mark.parametrize(
    ("count", "chance"),
    [(1, 0.3), (10, 0.5), (10, 0.9), (40, 0.2), (40, 0.3), (100, 0.95), (1000, 0.4), (100_000, 5e-5), (100_000, 0.7)],
)
def test_binomial(count: int, chance: float) -> None:
    tp.manual_seed(7)
    drawn = tp.binomial(full(count), full(chance)).numpy()
    assert chance_of(drawn, stats.binom(count, chance)) > 1e-3


def test_dirichlet() -> None:
    tp.manual_seed(7)
    weights = tp.tensor([0.4, 1.5, 3.0], dtype=tp.float64)
    drawn = tp._sample_dirichlet(weights.expand(COUNT, 3)).numpy()
    np.testing.assert_allclose(drawn.sum(1), 1, 1e-12)
    for i, w in enumerate(weights.tolist()):
        assert stats.kstest(drawn[:, i], stats.beta(w, 4.9 - w).cdf).pvalue > 1e-3


DRAWS = {
    "poisson": lambda n, g: tp.poisson(tp.linspace(0.1, 40, n), generator=g),
    "_standard_gamma": lambda n, g: tp._standard_gamma(tp.linspace(0.1, 40, n), generator=g),
    "binomial": lambda n, g: tp.binomial(tp.linspace(1, 90, n).floor(), tp.full((n,), 0.4), generator=g),
    "_sample_dirichlet": lambda n, g: tp._sample_dirichlet(tp.linspace(0.1, 40, n).reshape(-1, 4), generator=g),
}


@pytest.mark.parametrize("name", DRAWS)
def test_the_seed_alone_says_the_numbers(name: str) -> None:
    """With any number of threads, and from the default generator as from one of its own."""
    before, drawn = tp.get_num_threads(), []
    for threads in (1, 3):
        tp.set_num_threads(threads)
        tp.manual_seed(5)
        drawn += [DRAWS[name](20_000, tp.Generator().manual_seed(5)), DRAWS[name](20_000, None)]
    tp.set_num_threads(before)
    for other in drawn[1:]:
        np.testing.assert_array_equal(drawn[0].numpy(), other.numpy())
    tp.manual_seed(5)
    assert not tp.equal(DRAWS[name](20_000, None), DRAWS[name](20_000, None))


def test_the_layout_does_not_matter() -> None:
    rates = tp.arange(12.0).reshape(3, 4)
    tp.manual_seed(2)
    plain = tp.poisson(rates)
    tp.manual_seed(2)
    assert tp.equal(plain, tp.poisson(rates.t().contiguous().t()))


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: tp.poisson(tp.tensor([1.0, -1.0])), RuntimeError, "invalid Poisson rate"),
        (lambda: tp.poisson(tp.tensor([1.0, float("nan")])), RuntimeError, "invalid Poisson rate"),
        (lambda: tp.poisson(tp.tensor([1, 2])), NotImplementedError, "Long"),
        (lambda: tp._standard_gamma(tp.tensor([1, 2])), NotImplementedError, "Long"),
        (lambda: tp.binomial(tp.tensor([1, 2]), tp.ones(2)), ValueError, "floating-point dtypes for count"),
        (lambda: tp.binomial(tp.ones(2), tp.ones(2).double()), RuntimeError, "one dtype"),
        (lambda: tp.poisson(tp.ones(2), generator=tp.Generator("meta")), RuntimeError, "generator"),
    ],
)
def test_mistakes(call: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        call()


def test_parameters_at_the_ends() -> None:
    inf, nan = float("inf"), float("nan")
    assert tp.poisson(tp.tensor([0.0, inf])).tolist() == [0, inf]
    gamma = tp._standard_gamma(tp.tensor([0.0, -1.0, nan, inf]))
    assert 0 < gamma[0] < 1e-37 and gamma[1:].isnan().all()
    drawn = tp.binomial(tp.tensor([5.0, 5, 0, -1, nan, 5]), tp.tensor([1.0, 0, 0.5, 0.5, 0.5, nan]))
    assert drawn[:4].tolist() == [5, 0, 0, 0] and drawn[4:].isnan().all()


# ---- how draws move with their parameters ----


def test_gamma_draws_move_as_their_quantiles() -> None:
    """Against quantiles of SciPy's at parameters a little apart."""
    rng = np.random.default_rng(3)
    alpha = 10 ** rng.uniform(-2, 3, 400)
    p = rng.uniform(0.02, 0.98, 400)
    x, step = sc.gammaincinv(alpha, p), alpha * 1e-5
    expected = (sc.gammaincinv(alpha + step, p) - sc.gammaincinv(alpha - step, p)) / (2 * step)
    kept = x > 1e-200
    given = (tp.tensor(v[kept].tolist(), dtype=tp.float64) for v in (alpha, x))
    got = tp._standard_gamma_grad(*given)
    np.testing.assert_allclose(got.numpy(), expected[kept], 1e-5)


def test_gamma_draws_move_alike_by_series_and_by_expansion() -> None:
    """From a parameter of 200 on, near the mean, an expansion takes the place of series; they agree to rounding."""
    x = tp.linspace(130.0, 285.0, 100, dtype=tp.float64)
    below, above = (tp._standard_gamma_grad(tp.full_like(x, a), x).numpy() for a in (np.nextafter(200.0, 0), 200.0))
    assert not np.array_equal(below, above)
    np.testing.assert_allclose(above, below, 2e-12)
    # large ones: a draw z deviations from its mean a moves by 1 + z / (2 sqrt(a)) and less
    a = tp.tensor([1e6, 1e9, 1e12], dtype=tp.float64)
    for z in (-2.0, 0.0, 2.0):
        got = tp._standard_gamma_grad(a, a + z * a.sqrt()).numpy()
        np.testing.assert_allclose(got, 1 + z / (2 * a.sqrt().numpy()), atol=10 / a.numpy().min())


def test_beta_draws_move_as_their_quantiles() -> None:
    rng = np.random.default_rng(3)
    alpha, beta = 10 ** rng.uniform(-1, 3, 400), 10 ** rng.uniform(-1, 3, 400)
    x = stats.beta(alpha, beta).ppf(rng.uniform(0.02, 0.98, 400))
    step = alpha * 1e-4
    slope = (sc.betainc(alpha + step, beta, x) - sc.betainc(alpha - step, beta, x)) / (2 * step)
    kept = (x > 1e-8) & (x < 1 - 1e-8)
    expected = (-slope / stats.beta(alpha, beta).pdf(x) / (1 - x))[kept]
    given = (tp.tensor(v[kept].tolist(), dtype=tp.float64) for v in (x, alpha, alpha + beta))
    np.testing.assert_allclose(tp._dirichlet_grad(*given).numpy(), expected, 1e-5)


def test_slopes_are_torchs() -> None:
    """Its own are approximations in part: to 1e-4 for gamma draws, 2e-3 for beta draws."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(4)
    alpha = 10 ** rng.uniform(-1, 3, 500)
    x = rng.gamma(alpha)
    given = [torch.tensor(v) for v in (alpha, x)]
    expected = torch._standard_gamma_grad(*given).numpy()
    got = tp._standard_gamma_grad(*(tp.tensor(v.tolist(), dtype=tp.float64) for v in given)).numpy()
    np.testing.assert_allclose(got, expected, 2e-3)
    assert np.median(np.abs(got / expected - 1)) < 1e-4
    beta = 10 ** rng.uniform(-1, 2, 500)
    y = rng.beta(alpha, beta).clip(1e-6, 1 - 1e-6)
    given = [torch.tensor(v) for v in (y, alpha, alpha + beta)]
    expected = torch._dirichlet_grad(*given).numpy()
    got = tp._dirichlet_grad(*(tp.tensor(v.tolist(), dtype=tp.float64) for v in given)).numpy()
    np.testing.assert_allclose(got, expected, 4e-3, 1e-9)


def test_gradients() -> None:
    alpha = tp.tensor([[0.7, 2.0, 5.0]], dtype=tp.float64, requires_grad=True)
    tp.manual_seed(3)
    drawn = tp._sample_dirichlet(alpha)
    weights = tp.tensor([1.0, 2.0, 4.0], dtype=tp.float64)
    (drawn * weights).sum().backward()
    slope = tp._dirichlet_grad(drawn.detach(), alpha.detach(), alpha.detach().sum(-1, True))
    expected = slope * (weights - (drawn * weights).sum(-1, True)).detach()
    np.testing.assert_allclose(alpha.grad.numpy(), expected.numpy(), 1e-12)
    rate = tp.ones(3, requires_grad=True)
    tp.poisson(rate).sum().backward()
    assert rate.grad.tolist() == [0, 0, 0]
    draw = tp._standard_gamma(rate)
    assert tp.allclose(tp.autograd.grad(draw.sum(), rate)[0], tp._standard_gamma_grad(rate.detach(), draw.detach()))
