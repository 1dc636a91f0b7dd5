"""Distributions against SciPy: densities, cumulative ones and their inverses, moments, entropies; samples by their
empirical distribution (Kolmogorov and Smirnov's test, from a fixed seed).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorpy as tp
from tensorpy import distributions as D

stats = pytest.importorskip("scipy.stats")

# ours, its parameters, SciPy's of the same ones
CASES: list[tuple[str, dict[str, float], Any]] = [
    ("Normal", {"loc": 0.5, "scale": 2.0}, stats.norm(0.5, 2.0)),
    ("Laplace", {"loc": 0.5, "scale": 2.0}, stats.laplace(0.5, 2.0)),
    ("Cauchy", {"loc": 0.5, "scale": 2.0}, stats.cauchy(0.5, 2.0)),
    ("Gumbel", {"loc": 0.5, "scale": 2.0}, stats.gumbel_r(0.5, 2.0)),
    ("LogNormal", {"loc": 0.5, "scale": 0.4}, stats.lognorm(0.4, scale=np.exp(0.5))),
    ("HalfNormal", {"scale": 2.0}, stats.halfnorm(scale=2.0)),
    ("HalfCauchy", {"scale": 2.0}, stats.halfcauchy(scale=2.0)),
    ("Uniform", {"low": -1.0, "high": 2.0}, stats.uniform(-1.0, 3.0)),
    ("Exponential", {"rate": 2.5}, stats.expon(scale=0.4)),
    ("Gamma", {"concentration": 1.7, "rate": 2.5}, stats.gamma(1.7, scale=0.4)),
    ("Chi2", {"df": 3.5}, stats.chi2(3.5)),
    ("Beta", {"concentration1": 1.7, "concentration0": 0.6}, stats.beta(1.7, 0.6)),
    ("InverseGamma", {"concentration": 4.5, "rate": 2.0}, stats.invgamma(4.5, scale=2.0)),
    ("StudentT", {"df": 5.5, "loc": 0.5, "scale": 2.0}, stats.t(5.5, 0.5, 2.0)),
    ("Pareto", {"scale": 2.0, "alpha": 4.5}, stats.pareto(4.5, scale=2.0)),
    ("GeneralizedPareto", {"loc": 0.5, "scale": 2.0, "concentration": 0.2}, stats.genpareto(0.2, 0.5, 2.0)),
    ("GeneralizedPareto", {"loc": 0.5, "scale": 2.0, "concentration": 0.0}, stats.genpareto(0.0, 0.5, 2.0)),
    ("GeneralizedPareto", {"loc": 0.5, "scale": 2.0, "concentration": -0.7}, stats.genpareto(-0.7, 0.5, 2.0)),
    ("FisherSnedecor", {"df1": 5.0, "df2": 9.5}, stats.f(5.0, 9.5)),
    ("Weibull", {"scale": 2.0, "concentration": 1.7}, stats.weibull_min(1.7, scale=2.0)),
    ("VonMises", {"loc": 0.5, "concentration": 2.0}, stats.vonmises(2.0, 0.5)),
    ("Bernoulli", {"probs": 0.3}, stats.bernoulli(0.3)),
    ("Binomial", {"total_count": 9, "probs": 0.3}, stats.binom(9, 0.3)),
    ("Geometric", {"probs": 0.3}, stats.geom(0.3, -1)),
    ("NegativeBinomial", {"total_count": 4.0, "probs": 0.3}, stats.nbinom(4.0, 0.7)),
    ("Poisson", {"rate": 3.5}, stats.poisson(3.5)),
]
IDS = [f"{name}-{i}" for i, (name, _, _) in enumerate(CASES)]
QUANTILES = np.linspace(0.02, 0.98, 25)


def made(name: str, parameters: dict[str, float]) -> Any:
    return getattr(D, name)(
        **{n: v if n == "total_count" else tp.tensor(v, dtype=tp.float64) for n, v in parameters.items()}
    )


def is_discrete(theirs: Any) -> bool:
    return hasattr(theirs, "pmf") and isinstance(theirs.dist, stats.rv_discrete)


def known(f: Any) -> Any:
    """None where ours has no such value."""
    try:
        return f()
    except NotImplementedError:
        return None


@pytest.mark.parametrize(("name", "parameters", "theirs"), CASES, ids=IDS)
def test_values_are_scipys(name: str, parameters: dict[str, float], theirs: Any) -> None:
    ours = made(name, parameters)
    x = theirs.ppf(QUANTILES)
    value = tp.tensor(x.tolist(), dtype=tp.float64)
    logs = theirs.logpmf(x) if is_discrete(theirs) else theirs.logpdf(x)
    np.testing.assert_allclose(ours.log_prob(value).numpy(), logs, rtol=1e-6, atol=1e-9)
    cdf, entropy = known(lambda: ours.cdf(value)), known(ours.entropy)
    if cdf is not None:
        np.testing.assert_allclose(cdf.numpy(), theirs.cdf(x), rtol=1e-6)
        back = known(lambda: ours.icdf(tp.tensor(QUANTILES.tolist(), dtype=tp.float64)))
        if back is not None:
            np.testing.assert_allclose(back.numpy(), x, rtol=1e-6, atol=1e-9)
    if entropy is not None:
        assert entropy.item() == pytest.approx(float(theirs.entropy()), rel=1e-6)
    if name not in ("Cauchy", "HalfCauchy", "VonMises"):
        assert ours.mean.item() == pytest.approx(float(theirs.mean()), rel=1e-9)
        assert ours.variance.item() == pytest.approx(float(theirs.var()), rel=1e-9)


@pytest.mark.parametrize(("name", "parameters", "theirs"), CASES, ids=IDS)
def test_samples_are_distributed_as_scipys(name: str, parameters: dict[str, float], theirs: Any) -> None:
    tp.manual_seed(8)
    drawn = np.sort(made(name, parameters).sample((5000,)).numpy())
    if is_discrete(theirs):  # the largest distance of the distribution functions, at whole numbers
        at = np.arange(drawn.max() + 1)
        distance = np.abs(np.searchsorted(drawn, at, side="right") / drawn.size - theirs.cdf(at)).max()
        assert distance < 1.95 / np.sqrt(drawn.size)  # exceeded once in a thousand seeds
    else:
        assert stats.kstest(drawn, theirs.cdf).pvalue > 1e-3


def test_matrices_have_scipys_density() -> None:
    scale = np.array([[2.0, 0.5], [0.5, 1.0]])
    ours = D.Wishart(tp.tensor(4.5, dtype=tp.float64), tp.tensor(scale.tolist(), dtype=tp.float64))
    theirs = stats.wishart(4.5, scale)
    tp.manual_seed(8)
    x = ours.sample((5,))
    for one in x:
        assert ours.log_prob(one).item() == pytest.approx(theirs.logpdf(one.numpy()), rel=1e-9)
    assert ours.entropy().item() == pytest.approx(theirs.entropy(), rel=1e-9)
    # a quadratic form of a Wishart matrix is a chi-squared variable
    v = tp.tensor([1.0, -2.0], dtype=tp.float64)
    many = ours.sample((3000,))
    form = (v @ many @ v) / (v @ ours.covariance_matrix @ v)
    assert stats.kstest(form.numpy(), stats.chi2(4.5).cdf).pvalue > 1e-3


@pytest.mark.parametrize("dim", [2, 3, 5])
@pytest.mark.parametrize("concentration", [0.5, 1.0, 3.0])
def test_correlations_are_beta_variables(dim: int, concentration: float) -> None:
    """Each of an LKJ matrix is 2 b - 1, b of both parameters concentration + (dim - 2) / 2."""
    tp.manual_seed(8)
    lower = D.LKJCholesky(dim, tp.tensor(concentration, dtype=tp.float64)).sample((3000,))
    matrix = (lower @ lower.mT).numpy()
    a = concentration + (dim - 2) / 2
    for i, j in ((1, 0), (dim - 1, dim - 2), (dim - 1, 0)):
        assert stats.kstest((matrix[:, i, j] + 1) / 2, stats.beta(a, a).cdf).pvalue > 1e-3


def test_a_normal_of_low_rank_is_scipys() -> None:
    rng = np.random.default_rng(3)
    loc, factor, diagonal = rng.normal(size=4), rng.normal(size=(4, 2)), rng.uniform(0.5, 2, 4)
    ours = D.LowRankMultivariateNormal(*(tp.tensor(p.tolist(), dtype=tp.float64) for p in (loc, factor, diagonal)))
    theirs = stats.multivariate_normal(loc, factor @ factor.T + np.diag(diagonal))
    x = rng.normal(size=(6, 4))
    np.testing.assert_allclose(
        ours.log_prob(tp.tensor(x.tolist(), dtype=tp.float64)).numpy(), theirs.logpdf(x), rtol=1e-9
    )
    assert ours.entropy().item() == pytest.approx(theirs.entropy(), rel=1e-9)
