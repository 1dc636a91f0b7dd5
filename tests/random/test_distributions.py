"""tensorpy.distributions: values against PyTorch where it is installed, closed forms, moments of samples, gradients."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
import pytest

import tensorpy as tp
from tensorpy import distributions as D

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

needs_torch = pytest.mark.skipif(torch is None, reason="torch is not installed")
rng = np.random.default_rng(7)


def positive(*shape: int) -> Any:
    return rng.uniform(0.4, 3.0, shape)


def real(*shape: int) -> Any:
    return rng.normal(size=shape)


def unit(*shape: int) -> Any:
    return rng.uniform(0.1, 0.9, shape)


def simplex(*shape: int) -> Any:
    p = rng.uniform(0.1, 1.0, shape)
    return p / p.sum(-1, keepdims=True)


def definite() -> Any:
    a = real(3, 3)
    return a @ a.T + np.eye(3)


_low = real(3)
# each: class, the parameters of two of them; whether samples may be compared by mean and variance
CASES: list[tuple[str, list[dict[str, Any]]]] = [
    ("Normal", [{"loc": real(3), "scale": positive(3)} for _ in range(2)]),
    ("Laplace", [{"loc": real(3), "scale": positive(3)} for _ in range(2)]),
    ("Cauchy", [{"loc": real(3), "scale": positive(3)} for _ in range(2)]),
    ("Gumbel", [{"loc": real(3), "scale": positive(3)} for _ in range(2)]),
    ("LogNormal", [{"loc": real(3), "scale": unit(3)} for _ in range(2)]),
    ("HalfNormal", [{"scale": positive(3)} for _ in range(2)]),
    ("HalfCauchy", [{"scale": positive(3)}]),
    ("Uniform", [{"low": _low, "high": _low + 1.0}, {"low": _low - 1, "high": _low + 2.0}]),
    ("Exponential", [{"rate": positive(3)} for _ in range(2)]),
    ("Gamma", [{"concentration": positive(3), "rate": positive(3)} for _ in range(2)]),
    ("Chi2", [{"df": positive(3)} for _ in range(2)]),
    ("Beta", [{"concentration1": positive(3), "concentration0": positive(3)} for _ in range(2)]),
    ("Dirichlet", [{"concentration": positive(2, 3)} for _ in range(2)]),
    ("Bernoulli", [{"probs": unit(3)}, {"logits": real(3)}]),
    ("ContinuousBernoulli", [{"probs": np.array([0.2, 0.5, 0.9])}, {"logits": real(3)}]),
    ("Geometric", [{"probs": unit(3)}, {"logits": real(3)}]),
    ("Binomial", [{"total_count": 5, "probs": unit(3)}, {"total_count": 5, "logits": real(3)}]),
    ("NegativeBinomial", [{"total_count": positive(3), "probs": unit(3)}]),
    ("Poisson", [{"rate": positive(3)}, {"rate": np.array([0.5, 12.0, 300.0])}]),
    ("Categorical", [{"probs": simplex(2, 4)}, {"logits": real(2, 4)}]),
    ("OneHotCategorical", [{"probs": simplex(2, 4)}, {"logits": real(2, 4)}]),
    ("Multinomial", [{"total_count": 6, "probs": simplex(2, 4)}]),
    ("MultivariateNormal", [{"loc": real(2, 3), "covariance_matrix": definite()}]),
    (
        "MultivariateNormal",
        [{"loc": real(3), "precision_matrix": definite()}, {"loc": real(3), "covariance_matrix": definite()}],
    ),
    ("StudentT", [{"df": positive(3) + 4, "loc": real(3), "scale": positive(3)}]),
    (
        "Pareto",
        [{"scale": positive(3), "alpha": positive(3) + 4}, {"scale": np.full(3, 0.3), "alpha": positive(3) + 4}],
    ),
    ("InverseGamma", [{"concentration": positive(3) + 4, "rate": positive(3)} for _ in range(2)]),
    ("FisherSnedecor", [{"df1": positive(3) + 2, "df2": positive(3) + 9}]),
    ("LogisticNormal", [{"loc": real(2, 3), "scale": unit(2, 3)}]),
    ("Weibull", [{"scale": positive(3), "concentration": positive(3) + 0.5}]),
    ("Kumaraswamy", [{"concentration1": positive(3), "concentration0": positive(3)}]),
    ("VonMises", [{"loc": real(3), "concentration": positive(3)}]),
    ("RelaxedBernoulli", [{"temperature": np.array(0.7), "probs": unit(3)}]),
    ("RelaxedOneHotCategorical", [{"temperature": np.array(0.7), "logits": real(2, 4)}]),
    (
        "LowRankMultivariateNormal",
        [{"loc": real(2, 4), "cov_factor": real(4, 2), "cov_diag": positive(4)} for _ in range(2)],
    ),
    ("Wishart", [{"df": positive(2) + 5, "covariance_matrix": definite()}]),
    (
        "Wishart",
        [
            {"df": np.array(5.5), "precision_matrix": definite()},
            {"df": np.array(3.5), "scale_tril": np.tril(definite())},
        ],
    ),
    ("LKJCholesky", [{"dim": 4, "concentration": positive(2)}]),
    (
        "GeneralizedPareto",
        [
            {"loc": real(3), "scale": positive(3), "concentration": np.array([-0.7, 0.3, 0.2])},
            {"loc": real(3), "scale": positive(3), "concentration": np.array([-2.0, 0.1, 0.15])},
        ],
    ),
]
IDS = [f"{name}-{i}" for i, (name, _) in enumerate(CASES)]
NO_MOMENTS = {
    "LogisticNormal",
    "Cauchy",
    "HalfCauchy",
    "Categorical",
    "VonMises",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "LKJCholesky",
}


def tensors(library: Any, parameters: dict[str, Any], grad: bool = False) -> dict[str, Any]:
    made = {
        n: library.tensor(v.tolist(), dtype=library.float64) if isinstance(v, np.ndarray) else v
        for n, v in parameters.items()
    }
    if grad:
        for value in made.values():
            if not isinstance(value, (int, float)):
                value.requires_grad_()
    return made


def ours(name: str, parameters: dict[str, Any]) -> Any:
    return getattr(D, name)(**tensors(tp, parameters))


@pytest.fixture(autouse=True)
def _torchs_default_is_double() -> Any:
    """torch's GeneralizedPareto compares with zeros of the default dtype."""
    if torch is not None:
        torch.set_default_dtype(torch.float64)
    yield
    if torch is not None:
        torch.set_default_dtype(torch.float32)


def theirs(name: str, parameters: dict[str, Any]) -> Any:
    return getattr(torch.distributions, name)(**tensors(torch, parameters))


def near(a: Any, b: Any, rtol: float = 1e-7) -> None:
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=rtol, atol=1e-9)


def outcome(f: Any) -> Any:
    """The result, or the class of the error."""
    try:
        return f()
    except (NotImplementedError, ValueError) as error:
        return type(error)


@needs_torch
@pytest.mark.parametrize(("name", "parameters"), CASES, ids=IDS)
def test_values_are_torchs(name: str, parameters: list[dict[str, Any]]) -> None:
    torch.manual_seed(4)
    for given in parameters:
        a, b = ours(name, given), theirs(name, given)
        assert tuple(a.batch_shape) == tuple(b.batch_shape) and tuple(a.event_shape) == tuple(b.event_shape)
        assert repr(a) == repr(b).replace("torch.", "tensorpy.") or "Size" in repr(b)
        for attribute in ("mean", "mode", "variance", "stddev", "has_rsample", "has_enumerate_support"):
            x, y = outcome(lambda: getattr(a, attribute)), outcome(lambda: getattr(b, attribute))  # noqa: B023
            if attribute == "mode" and name == "Kumaraswamy":
                continue  # torch's is NaN everywhere; test_closed_forms has a value
            if isinstance(y, (bool, type)):
                assert x == y, attribute
            else:
                near(x, y)
        value = b.sample((4,))
        mine = tp.tensor(value.tolist(), dtype=tp.float64)
        near(a.log_prob(mine), b.log_prob(value))
        for method in ("entropy", "perplexity", "enumerate_support"):
            x, y = outcome(getattr(a, method)), outcome(getattr(b, method))
            if isinstance(y, type):
                assert x is y, method
            else:
                near(x, y)
        p = torch.full((3,), 0.3, dtype=torch.float64)
        for method, argument, other in (("cdf", mine, value), ("icdf", tp.full((3,), 0.3, dtype=tp.float64), p)):
            y = outcome(lambda: getattr(b, method)(other))  # noqa: B023
            if not isinstance(y, type):
                near(getattr(a, method)(argument), y)


@needs_torch
@pytest.mark.parametrize(("name", "parameters"), CASES, ids=IDS)
def test_log_prob_has_torchs_gradient(name: str, parameters: list[dict[str, Any]]) -> None:
    torch.manual_seed(4)
    for given in parameters:
        mine, other = tensors(tp, given, grad=True), tensors(torch, given, grad=True)
        a, b = getattr(D, name)(**mine), getattr(torch.distributions, name)(**other)
        value = b.sample((4,)).detach()
        a.log_prob(tp.tensor(value.tolist(), dtype=tp.float64)).sum().backward()
        b.log_prob(value).sum().backward()
        for key, tensor in mine.items():
            if isinstance(tensor, tp.Tensor) and other[key].grad is not None:
                a_grad, b_grad = tensor.grad, other[key].grad
                if key == "scale_tril":  # torch's has entries above the diagonal, which nothing reads
                    a_grad, b_grad = a_grad.tril(), b_grad.tril()
                near(a_grad, b_grad, rtol=1e-5)  # torch's Bessel functions are good to some 1e-7


@needs_torch
@pytest.mark.parametrize(("name", "parameters"), [case for case in CASES if len(case[1]) == 2])
def test_kl_is_torchs(name: str, parameters: list[dict[str, Any]]) -> None:
    p, q = parameters
    for first, second in ((p, q), (q, p)):
        y = outcome(lambda: torch.distributions.kl_divergence(theirs(name, first), theirs(name, second)))  # noqa: B023
        x = outcome(lambda: D.kl_divergence(ours(name, first), ours(name, second)))  # noqa: B023
        if isinstance(y, type):
            assert x is y
        else:
            near(x, y)


@pytest.mark.parametrize(("name", "parameters"), CASES, ids=IDS)
def test_samples(name: str, parameters: list[dict[str, Any]]) -> None:
    tp.manual_seed(3)
    for given in parameters:
        d = ours(name, given)
        drawn = d.sample((3, 2))
        assert drawn.shape == (3, 2, *d.batch_shape, *d.event_shape)
        assert d.support.check(drawn).all() and not drawn.requires_grad
        wide = d.expand((5, *d.batch_shape))
        assert wide.sample((2,)).shape == (2, 5, *d.batch_shape, *d.event_shape)
        near(wide.log_prob(drawn[0, 0])[3], d.log_prob(drawn[0, 0]))
        if name not in NO_MOMENTS:
            many = d.sample((20000,))
            error = (d.variance / 20000).sqrt() * 5 + 1e-9
            assert ((many.mean(0) - d.mean).abs() < error).all()
            assert ((many.var(0) / d.variance - 1).abs() < 0.25).all()


@needs_torch
@pytest.mark.parametrize("alpha", [0.05, 0.5, 1.0, 3.0, 40.0, 900.0, 5000.0])
def test_gamma_samples_have_implicit_gradients(alpha: float) -> None:
    tp.manual_seed(1)
    a = tp.full((50,), alpha, dtype=tp.float64, requires_grad=True)
    x = D.Gamma(a, 1.0).rsample()
    x.sum().backward()
    other = torch.full((50,), alpha, dtype=torch.float64)
    expected = torch._standard_gamma_grad(other, torch.tensor(x.tolist(), dtype=torch.float64))
    np.testing.assert_allclose(a.grad.numpy(), expected.numpy(), rtol=2e-3)


# their samples come by rejection: the gradient at fixed draws is no derivative of the same draws moved
BY_REJECTION = {"Gamma", "Chi2", "Beta", "Dirichlet", "StudentT", "InverseGamma", "FisherSnedecor", "Wishart"}


@pytest.mark.parametrize(("name", "parameters"), CASES, ids=IDS)
def test_rsample_moves_with_its_parameters(name: str, parameters: list[dict[str, Any]]) -> None:
    if not getattr(D, name).has_rsample:
        with pytest.raises(NotImplementedError):
            ours(name, parameters[0]).rsample()
        return
    for given in parameters:
        made = tensors(tp, given, grad=True)

        def draw(of: dict[str, Any]) -> Any:
            tp.manual_seed(11)
            return getattr(D, name)(**of).rsample((4,))

        drawn = draw(made)
        drawn.sum().backward()
        for key in given:
            assert made[key].grad is not None and made[key].grad.isfinite().all(), key
            if name in BY_REJECTION:
                continue
            moved = [dict(made), dict(made)]
            for sign, one in zip((1, -1), moved, strict=True):
                one[key] = made[key].detach() + sign * 1e-6
            slope = (draw(moved[0]).sum() - draw(moved[1]).sum()).item() / 2e-6
            assert made[key].grad.sum().item() == pytest.approx(slope, rel=1e-4, abs=1e-5), key


@pytest.mark.parametrize("name", ["Normal", "Exponential", "Gamma", "Bernoulli"])
def test_entropy_follows_from_the_log_normalizer(name: str) -> None:
    d = ours(name, dict(CASES[[n for n, _ in CASES].index(name)][1][0]))
    near(D.ExponentialFamily.entropy(d), d.entropy())


def test_beta_and_dirichlet_samples_follow_their_means() -> None:
    tp.manual_seed(2)
    a = tp.tensor([1.5, 2.0, 3.0], dtype=tp.float64, requires_grad=True)
    (by_samples,) = tp.autograd.grad(D.Dirichlet(a).rsample((20000,)).mean(0)[0], a)
    (exact,) = tp.autograd.grad(D.Dirichlet(a).mean[0], a)
    np.testing.assert_allclose(by_samples.numpy(), exact.numpy(), atol=3e-3)


def test_closed_forms() -> None:
    x = tp.tensor(0.5, dtype=tp.float64)
    zero, one = tp.zeros((), dtype=tp.float64), tp.ones((), dtype=tp.float64)
    assert D.Normal(zero, one).log_prob(x).item() == pytest.approx(-0.125 - 0.5 * math.log(2 * math.pi))
    assert D.Exponential(2 * one).log_prob(x).item() == pytest.approx(math.log(2) - 1)
    assert D.Beta(2 * one, 3 * one).log_prob(x).item() == pytest.approx(math.log(12 * 0.5 * 0.25))
    assert D.Kumaraswamy(2 * one, 2 * one).mode.item() == pytest.approx(3**-0.5)
    assert D.Categorical(tp.tensor([1.0, 1.0, 2.0])).entropy().item() == pytest.approx(1.5 * math.log(2))
    assert D.kl_divergence(D.Normal(zero, one), D.Normal(one, one)).item() == pytest.approx(0.5)
    covariance = tp.tensor([[4.0, 2.0], [2.0, 3.0]], dtype=tp.float64)
    d = D.MultivariateNormal(tp.zeros(2, dtype=tp.float64), covariance)
    near(d.scale_tril @ d.scale_tril.mT, covariance)
    near(d.precision_matrix @ covariance, tp.eye(2, dtype=tp.float64))
    assert d.entropy().item() == pytest.approx(0.5 * math.log((2 * math.pi * math.e) ** 2 * 8))


@pytest.mark.parametrize("n", [40, 1000, 10**6])
def test_binomial_of_many_trials(n: int) -> None:
    tp.manual_seed(5)
    d = D.Binomial(n, tp.tensor([0.1, 0.5, 0.97], dtype=tp.float64))
    drawn = d.sample((4000,))
    assert ((drawn.mean(0) - d.mean).abs() < 5 * (d.variance / 4000).sqrt()).all()
    assert ((drawn.var(0) / d.variance - 1).abs() < 0.15).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda: D.Normal(0.0, -1.0),
        lambda: D.Normal(tp.zeros(2), 1.0).log_prob(tp.zeros(3)),
        lambda: D.Normal(0.0, 1.0).log_prob(2),
        lambda: D.Beta(tp.ones(2), 1.0).log_prob(tp.tensor([2.0, 3.0])),
        lambda: D.Uniform(1.0, 0.0),
        lambda: D.Bernoulli(),
        lambda: D.Bernoulli(0.5, 0.5),
        lambda: D.Categorical(tp.tensor(1.0)),
        lambda: D.Categorical(tp.ones(2)).log_prob(tp.tensor(7)),
        lambda: D.MultivariateNormal(tp.zeros(2), -tp.eye(2)),
        lambda: D.MultivariateNormal(tp.zeros(2)),
        lambda: D.Independent(D.Normal(0.0, 1.0), 1),
        lambda: D.Poisson(-1.0),
    ],
)
def test_wrong_arguments_are_refused(make: Any) -> None:
    with pytest.raises(ValueError):
        make()


@pytest.mark.parametrize("name", ["Gamma", "Binomial", "VonMises", "Beta"])
def test_samplers_end_for_parameters_out_of_range(name: str) -> None:
    bad = tp.tensor([math.nan, math.inf, -1.0, 1.0], dtype=tp.float64)
    fine = tp.full((4,), 0.5, dtype=tp.float64)
    arguments = {
        "Gamma": (bad, fine),
        "Binomial": (bad, fine),
        "VonMises": (fine, bad),
        "Beta": (bad, fine),
    }
    drawn = getattr(D, name)(*arguments[name], validate_args=False).sample()
    assert drawn[0].isnan() and drawn[3].isfinite()


def test_a_rate_that_is_no_number_is_refused() -> None:
    """As by PyTorch."""
    for rate in (math.nan, -1.0):
        with pytest.raises(RuntimeError, match="expected rate to be non-negative"):
            D.Poisson(tp.tensor([1.0, rate]), validate_args=False).sample()


def test_validation_can_be_turned_off() -> None:
    D.Normal(0.0, -1.0, validate_args=False)
    before = D.Distribution._validate_args
    D.Distribution.set_default_validate_args(False)
    try:
        D.Normal(0.0, -1.0)
    finally:
        D.Distribution.set_default_validate_args(before)


TRANSFORMS = [
    ("ExpTransform", ()),
    ("SigmoidTransform", ()),
    ("SoftplusTransform", ()),
    ("TanhTransform", ()),
    ("AffineTransform", (0.5, -2.0)),
    ("StickBreakingTransform", ()),
    ("CorrCholeskyTransform", ()),
]


@pytest.mark.parametrize(("name", "arguments"), TRANSFORMS)
def test_transforms_invert_and_know_their_volumes(name: str, arguments: tuple[Any, ...]) -> None:
    t = getattr(D, name)(*arguments)
    x = tp.tensor(real(4, 3).tolist(), dtype=tp.float64)
    y = t(x)
    near(t.inv(y), x)
    assert t.inv.inv is t and t.codomain.check(y).all()
    near(t.inv.log_abs_det_jacobian(y, x), -t.log_abs_det_jacobian(x, y))
    if torch is not None:
        other = getattr(torch.distributions, name)(*arguments)
        x_ = torch.tensor(x.tolist(), dtype=torch.float64)
        near(y, other(x_))
        near(t.log_abs_det_jacobian(x, y), other.log_abs_det_jacobian(x_, other(x_)))


def test_transformed_independent_and_mixture() -> None:
    loc = tp.tensor([0.3, -1.0, 2.0], dtype=tp.float64)
    base = D.Normal(loc, tp.ones(3, dtype=tp.float64))
    squashed = D.TransformedDistribution(base, [D.TanhTransform(cache_size=1), D.AffineTransform(1.0, -2.0)])
    value = squashed.rsample((5,))
    assert squashed.support.check(value).all() or value.shape == (5, 3)
    x = tp.atanh((value - 1) / -2)
    near(squashed.log_prob(value), base.log_prob(x) - (1 - x.tanh() ** 2).log() - math.log(2), rtol=1e-5)
    near(squashed.icdf(squashed.cdf(value)), value)
    joint = D.Independent(base, 1)
    assert joint.event_shape == (3,) and joint.log_prob(loc).shape == ()
    assert repr(joint).startswith("Independent(Normal(")
    mixture = D.MixtureSameFamily(D.Categorical(tp.tensor([0.2, 0.3, 0.5], dtype=tp.float64)), base)
    assert mixture.sample((7,)).shape == (7,)
    assert mixture.mean.item() == pytest.approx(0.06 - 0.3 + 1.0)
    many = mixture.sample((20000,))
    assert abs(many.var().item() / mixture.variance.item() - 1) < 0.1


def test_constraints_are_reached_from_anywhere() -> None:
    x = tp.tensor(real(5, 3).tolist(), dtype=tp.float64)
    c = D.constraints
    for constraint in (
        c.real,
        c.positive,
        c.unit_interval,
        c.interval(-2.0, 3.0),
        c.simplex,
        c.less_than(1.0),
        c.corr_cholesky,
    ):
        for registry in (D.biject_to, D.transform_to):
            assert constraint.check(registry(constraint)(x)).all(), constraint


def test_matrices_are_reached_from_anywhere() -> None:
    x = tp.tensor(real(5, 3, 3).tolist(), dtype=tp.float64)
    c = D.constraints
    for constraint in (c.lower_cholesky, c.positive_definite, c.positive_semidefinite):
        t = D.transform_to(constraint)
        assert constraint.check(t(x)).all(), constraint
        near(t(t.inv(t(x))), t(x))
        with pytest.raises(NotImplementedError):
            D.biject_to(constraint)


@pytest.mark.parametrize("diag", [-2, -1, 0, 1, 2])
def test_triangles_are_vectors(diag: int) -> None:
    matrix = tp.arange(1, 33).reshape(2, 4, 4).tril(diag)
    vector = D.utils.tril_matrix_to_vec(matrix, diag)
    assert vector.tolist() == [[x for row in one for x in row if x] for one in matrix.tolist()]
    assert tp.equal(D.utils.vec_to_tril_matrix(vector, diag), matrix)
    for wrong in (lambda: D.utils.vec_to_tril_matrix(tp.ones(5)), lambda: D.utils.tril_matrix_to_vec(matrix, 4)):
        with pytest.raises(ValueError):
            wrong()


def test_a_generalized_pareto_is_smooth_where_it_is_exponential() -> None:
    x, one = tp.tensor([0.2, 1.0, 3.0], dtype=tp.float64), tp.ones(3, dtype=tp.float64)

    def at(c: Any) -> Any:
        d = D.GeneralizedPareto(0 * one, one, c)
        return tp.stack([d.log_prob(x), d.cdf(x), d.icdf(x / 4)])

    exponential = D.Exponential(one)
    expected = tp.stack([exponential.log_prob(x), exponential.cdf(x), exponential.icdf(x / 4)])
    near(at(0 * one), expected)
    _, slope = tp.func.jvp(at, (0 * one,), (one,))
    near(slope, (at(1e-5 * one) - at(-1e-5 * one)) / 2e-5, rtol=1e-4)


def test_kl_of_wisharts_is_the_mean_of_their_ratio() -> None:
    """torch's is another number for a batch of degrees of freedom over one matrix."""
    tp.manual_seed(0)
    df, matrix = tp.tensor([5.0, 7.0], dtype=tp.float64), tp.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=tp.float64)
    p, q = D.Wishart(df, matrix), D.Wishart(df + 1, 1.5 * tp.eye(2, dtype=tp.float64))
    drawn = p.sample((20000,))
    ratio = p.log_prob(drawn) - q.log_prob(drawn)
    assert ((ratio.mean(0) - D.kl_divergence(p, q)).abs() < 5 * ratio.std(0) / 20000**0.5).all()


def test_singular_wishart_matrices_are_drawn_again() -> None:
    tp.manual_seed(0)
    with pytest.warns(UserWarning, match="singular"):
        d = D.Wishart(tp.tensor([2.001, 4.0]), tp.eye(3))
    singular = [int((~d.support.check(d.rsample((1000,), tries))).sum()) for tries in (0, 1, 100)]
    assert singular[0] > singular[1] > singular[2] == 0


def test_a_copula_of_normal_margins() -> None:
    base = D.MultivariateNormal(tp.zeros(2), scale_tril=D.LKJCholesky(2).sample())
    copula = D.TransformedDistribution(base, [D.CumulativeDistributionTransform(D.Normal(0.0, 1.0))])
    assert D.constraints.unit_interval.check(copula.sample((50,))).all()
    uniform = D.TransformedDistribution(D.Normal(0.0, 1.0), D.CumulativeDistributionTransform(D.Normal(0.0, 1.0)))
    assert uniform.log_prob(tp.tensor(0.3)).item() == pytest.approx(0.0, abs=1e-6)


@needs_torch
def test_kl_of_a_normal_and_one_of_low_rank_is_torchs() -> None:
    low = ("LowRankMultivariateNormal", {"loc": real(4), "cov_factor": real(4, 2), "cov_diag": positive(4)})
    full = ("MultivariateNormal", {"loc": real(4), "scale_tril": np.tril(np.ones((4, 4)))})
    for p, q in ((low, full), (full, low)):
        near(D.kl_divergence(ours(*p), ours(*q)), torch.distributions.kl_divergence(theirs(*p), theirs(*q)))


def test_the_nearest_pair_of_classes_decides() -> None:
    class Mine(D.Normal):
        pass

    p, q = Mine(0.0, 1.0), D.Normal(1.0, 1.0)
    assert D.kl_divergence(p, q).item() == 0.5
    D.register_kl(Mine, D.Normal)(lambda p, q: "mine")
    try:
        assert D.kl_divergence(p, q) == "mine"
        assert D.kl_divergence(q, q).item() == 0.0
        assert D.kl_divergence(p, p) == "mine"
    finally:
        del importlib.import_module("tensorpy.distributions.kl")._REGISTRY[Mine, D.Normal]
        importlib.import_module("tensorpy.distributions.kl")._found.clear()


def test_names_are_where_programs_look() -> None:
    from tensorpy.distributions.categorical import Categorical
    from tensorpy.distributions.normal import Normal

    assert Normal is D.Normal is tp.distributions.Normal and Categorical is D.Categorical


def test_straight_through_samples_pass_gradients() -> None:
    logits = tp.tensor(real(4).tolist(), dtype=tp.float64, requires_grad=True)
    x = D.OneHotCategoricalStraightThrough(logits=logits).rsample()
    x[0].backward()
    p = logits.detach().softmax(-1)
    near(logits.grad, p[0] * (tp.eye(4, dtype=tp.float64)[0] - p))


def test_what_is_expanded_is_there_before_the_base_class_is_set_up() -> None:
    class Reaching(D.Independent):
        @property
        def _validate_args(self) -> bool:  # type: ignore[override]
            return self.base_dist._validate_args

        @_validate_args.setter
        def _validate_args(self, value: bool) -> None:
            self.base_dist._validate_args = value

        def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
            return super().expand(batch_shape, self.__new__(Reaching))

    one = Reaching(D.Normal(tp.zeros(3), 1.0), 1)
    assert one.expand((4,)).sample().shape == (4, 3)


@pytest.mark.parametrize("kind", ["HalfCauchy", "HalfNormal", "LogNormal", "Chi2", "Beta"])
def test_parameters_that_are_properties_are_checked(kind: str) -> None:
    bad = (0.0, -1.0) if kind == "LogNormal" else (-1.0,) * (1 + (kind == "Beta"))
    with pytest.raises(ValueError, match="-1"):
        getattr(D, kind)(*bad, validate_args=True)


# ---- divergences between families ----

_SETTINGS: dict[str, list[tuple[float, ...]]] = {
    "Bernoulli": [(0.3,)],
    "Beta": [(1.5, 2.5), (0.7, 0.9)],
    "Binomial": [(5, 0.3)],
    "ContinuousBernoulli": [(0.3,)],
    "Exponential": [(1.3,)],
    "Gamma": [(1.2, 2.2), (3.0, 0.5)],
    "Gumbel": [(0.3, 1.4)],
    "Laplace": [(0.2, 0.8)],
    "Normal": [(0.4, 1.7), (-1.0, 0.3)],
    "Pareto": [(0.2, 2.5)],
    "Poisson": [(1.5,)],
    "Uniform": [(0.25, 0.75), (-1.0, 2.0)],
}


@pytest.mark.parametrize("p", _SETTINGS)
def test_divergences_between_families_are_torchs(p: str) -> None:
    torch = pytest.importorskip("torch")
    registered = {(a.__name__, b.__name__) for a, b in torch.distributions.kl._KL_REGISTRY}
    missing = {("Beta", "ContinuousBernoulli"), ("Uniform", "ContinuousBernoulli")}
    for q in _SETTINGS:
        if (p, q) not in registered - missing:
            continue
        for ours, theirs in ((a, b) for a in _SETTINGS[p] for b in _SETTINGS[q]):
            found = []
            for t in (tp, torch):
                one, other = (
                    getattr(t.distributions, name)(*[t.tensor(float(v), dtype=t.float64) for v in values])
                    for name, values in ((p, ours), (q, theirs))
                )
                found.append(t.distributions.kl_divergence(one, other).item())
            assert found[0] == pytest.approx(found[1], rel=1e-9, abs=1e-12), (p, ours, q, theirs)


@pytest.mark.parametrize("dtype", [tp.float32, tp.float64])
def test_draws_of_small_concentrations_stay_inside(dtype: tp.dtype) -> None:
    tp.manual_seed(0)
    concentration = tp.full((2000,), 1e-3, dtype=dtype)
    draws = tp.distributions.Beta(concentration, concentration).sample()
    assert bool(((draws > 0) & (draws < 1)).all())


def test_gamma_takes_numbers() -> None:
    assert tp.distributions.Chi2(2.0).log_prob(2.0) == tp.distributions.Chi2(2.0).log_prob(tp.tensor(2.0))


def test_beta_against_a_continuous_bernoulli() -> None:
    p, q = tp.distributions.Beta(tp.tensor(1.3), 2.0), tp.distributions.ContinuousBernoulli(tp.tensor(0.3))
    tp.manual_seed(0)
    draws = p.sample((200000,))
    assert abs(tp.distributions.kl_divergence(p, q) - (p.log_prob(draws) - q.log_prob(draws)).mean()) < 5e-3


@pytest.mark.parametrize("name, of_p, of_q", [
    ("Normal", (0.0, 1.0), (1.0, 2.0)), ("Gamma", (1.0, 2.0), (2.0, 1.5)), ("Bernoulli", (0.2,), (0.7,)),
    ("Dirichlet", (tp.tensor([1.0, 2.0]),), (tp.tensor([2.0, 2.5]),)), ("Exponential", (1.0,), (3.0,)),
])  # fmt: skip
def test_the_divergence_within_a_family_is_that_of_its_log_normalizer(name: str, of_p: Any, of_q: Any) -> None:
    from tensorpy.distributions.kl import _kl_expfamily_expfamily

    p, q = getattr(D, name)(*of_p), getattr(D, name)(*of_q)
    tp.testing.assert_close(_kl_expfamily_expfamily(p, q).detach(), D.kl_divergence(p, q))

    class Own(D.ExponentialFamily):
        support = p.support
        arg_constraints: Any = {}  # noqa: RUF012
        _natural_params = property(lambda self: self.inner._natural_params)

        def __init__(self, inner: Any) -> None:
            self.inner = inner
            super().__init__(inner.batch_shape, inner.event_shape)

        def _log_normalizer(self, *parameters: Any) -> Any:
            return self.inner._log_normalizer(*parameters)

    tp.testing.assert_close(D.kl_divergence(Own(p), Own(q)).detach(), D.kl_divergence(p, q))
    with pytest.raises(NotImplementedError):
        D.kl_divergence(Own(p), q)


def test_the_gradient_of_a_dirichlet_draw() -> None:
    from tensorpy.distributions.dirichlet import _Dirichlet_backward

    tp.manual_seed(0)
    concentration = tp.tensor([[1.0, 2.0, 3.0]], dtype=tp.float64, requires_grad=True)
    draw, weight = D.Dirichlet(concentration).rsample(), tp.tensor([[1.0, -2.0, 0.5]], dtype=tp.float64)
    (draw * weight).sum().backward()
    tp.testing.assert_close(_Dirichlet_backward(draw.detach(), concentration.detach(), weight), concentration.grad)
