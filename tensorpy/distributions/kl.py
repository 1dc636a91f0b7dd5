"""Kullback-Leibler divergences between pairs of distributions, by their classes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tensorpy as tp
from tensorpy.autograd import grad
from tensorpy.distributions._matrices import solve_lower
from tensorpy.distributions.bernoulli import Bernoulli
from tensorpy.distributions.beta import Beta
from tensorpy.distributions.binomial import Binomial
from tensorpy.distributions.categorical import Categorical
from tensorpy.distributions.cauchy import Cauchy
from tensorpy.distributions.continuous_bernoulli import ContinuousBernoulli
from tensorpy.distributions.dirichlet import Dirichlet
from tensorpy.distributions.distribution import Distribution
from tensorpy.distributions.exp_family import ExponentialFamily
from tensorpy.distributions.exponential import Exponential
from tensorpy.distributions.gamma import Gamma
from tensorpy.distributions.geometric import Geometric
from tensorpy.distributions.gumbel import EULER, Gumbel
from tensorpy.distributions.half_normal import HalfNormal
from tensorpy.distributions.independent import Independent
from tensorpy.distributions.laplace import Laplace
from tensorpy.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from tensorpy.distributions.multivariate_normal import MultivariateNormal
from tensorpy.distributions.normal import Normal
from tensorpy.distributions.one_hot_categorical import OneHotCategorical
from tensorpy.distributions.pareto import Pareto
from tensorpy.distributions.poisson import Poisson
from tensorpy.distributions.transformed_distribution import TransformedDistribution
from tensorpy.distributions.uniform import Uniform
from tensorpy.distributions.utils import softplus, sum_rightmost
from tensorpy.distributions.wishart import Wishart, log_multigamma, multidigamma

__all__ = ["kl_divergence", "register_kl"]

_REGISTRY: dict[tuple[type, type], Callable[[Any, Any], Any]] = {}
_found: dict[tuple[type, type], Callable[[Any, Any], Any] | None] = {}


def register_kl(type_p: Any, type_q: Any) -> Callable[[Any], Any]:
    """A decorator: the function computes kl_divergence for p of type_p and q of type_q, and of their subclasses.

    Returns: a decorator.

    Raises: TypeError for what is no class.

    Example:
        >>> from tensorpy.distributions import Laplace, Normal, kl_divergence, register_kl
        >>> @register_kl(Laplace, Normal)
        ... def _(p, q):
        ...     return p.scale - q.scale
        >>> kl_divergence(Laplace(0.0, 2.0), Normal(0.0, 1.0))
        tensor(1.)
    """
    for kind in (type_p, type_q):
        if not isinstance(kind, type):  # which need not be a Distribution: libraries have distributions of their own
            raise TypeError(f"Expected type to be a Distribution subclass but got {kind}")

    def decorator(function: Any) -> Any:
        _REGISTRY[type_p, type_q] = function
        _found.clear()
        return function

    return decorator


def _dispatch(type_p: type, type_q: type) -> Callable[[Any, Any], Any] | None:
    """The function of the nearest pair of base classes: p's class decides before q's."""
    for p in type_p.__mro__:
        for q in type_q.__mro__:
            if (p, q) in _REGISTRY:
                return _REGISTRY[p, q]
    return None


def kl_divergence(p: Distribution, q: Distribution) -> Any:
    """The integral of p log(p / q), of the distributions' batch shape.

    Returns: a tensor of the batch shape.

    Raises: NotImplementedError for an unknown pair.

    Example:
        >>> from tensorpy.distributions import Normal, kl_divergence
        >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
        tensor(0.5000)
    """
    pair = type(p), type(q)
    if pair not in _found:
        _found[pair] = _dispatch(*pair)
    function = _found[pair]
    if function is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {pair[0].__name__} and q type {pair[1].__name__}"
        )
    return function(p, q)


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p: Any, q: Any) -> Any:
    """The Bregman divergence of the log normalizer, for two of one family (Nielsen & Nock 2010)."""
    if type(p) is not type(q):
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
        )
    with tp.enable_grad():
        of_p = [parameter.detach().requires_grad_() for parameter in p._natural_params]
        normalizer = p._log_normalizer(*of_p)
        gradients = grad(normalizer.sum(), of_p, create_graph=True)
    result = q._log_normalizer(*q._natural_params) - normalizer
    for a, b, gradient in zip(of_p, q._natural_params, gradients, strict=True):
        product = (b - a) * gradient
        result = result - sum_rightmost(product, len(q.event_shape))
    return result


def _infinite_like(tensor: Any) -> Any:
    return tp.full_like(tensor, math.inf)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Any:
    ones = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    zeros = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    ones = tp.where(p.probs == 0, tp.zeros_like(ones), tp.where(q.probs == 0, _infinite_like(ones), ones))
    zeros = tp.where(p.probs == 1, tp.zeros_like(zeros), tp.where(q.probs == 1, _infinite_like(zeros), zeros))
    return ones + zeros


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Any:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    trial = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    result = p.total_count * trial
    return tp.where(p.total_count > q.total_count, _infinite_like(result), result)


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Any:
    terms = p.probs * (p.logits - q.logits)
    terms = tp.where(q.probs == 0, _infinite_like(terms), terms)
    return tp.where((p.probs == 0).expand(terms.shape), tp.zeros_like(terms), terms).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: Any, q: Any) -> Any:
    return _categorical(p._categorical, q._categorical)


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Any:
    return -p.entropy() - tp.log1p(-q.probs) / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Any:
    return tp.xlogy(p.rate, p.rate / q.rate) - (p.rate - q.rate)


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Any:
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    ratio = tp.lgamma(total) - tp.lgamma(b.sum(-1)) - (tp.lgamma(a) - tp.lgamma(b)).sum(-1)
    return ratio + ((a - b) * (tp.digamma(a) - tp.digamma(total).unsqueeze(-1))).sum(-1)


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    ratio = b * (p.rate / q.rate).log() + tp.lgamma(b) - tp.lgamma(a)
    return ratio + (a - b) * tp.digamma(a) + (q.rate - p.rate) * (a / p.rate)


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Any, q: Any) -> Any:
    return _gamma(Gamma(tp.ones_like(p.rate), p.rate, validate_args=False), q)


@register_kl(Gamma, Exponential)
def _gamma_exponential(p: Any, q: Any) -> Any:
    return _gamma(p, Gamma(tp.ones_like(q.rate), q.rate, validate_args=False))


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Any:
    ratio, distance = (p.scale / q.scale) ** 2, ((p.loc - q.loc) / q.scale) ** 2
    return 0.5 * (ratio + distance - 1 - ratio.log())


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> Any:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Any:
    distance, ratio = (p.loc - q.loc).abs(), p.scale / q.scale
    return -ratio.log() + distance / q.scale + ratio * (-distance / p.scale).exp() - 1


@register_kl(Laplace, Normal)
def _laplace_normal(p: Any, q: Any) -> Any:
    second = 2 * p.scale**2 + (p.loc - q.loc) ** 2
    return second / (2 * q.scale**2) + q.scale.log() + 0.5 * math.log(2 * math.pi) - p.entropy()


@register_kl(Uniform, Normal)
def _uniform_normal(p: Any, q: Any) -> Any:
    second = p.variance + (p.mean - q.loc) ** 2
    return second / (2 * q.scale**2) + q.scale.log() + 0.5 * math.log(2 * math.pi) - p.entropy()


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Any:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return tp.where((q.low > p.low) | (q.high < p.high), _infinite_like(result), result)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Any:
    """F. Chyzak, F. Nielsen, 2019."""
    top = (p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2
    return top.log() - (4 * p.scale * q.scale).log()


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Any, q: Any) -> Any:
    ratio, shift = p.scale / q.scale, (p.loc - q.loc) / q.scale
    return -ratio.log() + EULER * (ratio - 1) + shift + (tp.lgamma(1 + ratio) - shift).exp() - 1


@register_kl(Pareto, Pareto)
def _pareto(p: Any, q: Any) -> Any:
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return tp.where(p.scale < q.scale, _infinite_like(result), result)


@register_kl(Beta, ContinuousBernoulli)
def _beta_continuous_bernoulli(p: Any, q: Any) -> Any:
    return -p.entropy() - p.mean * q.logits - tp.log1p(-q.probs) - q._cont_bern_log_norm()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: Any, q: Any) -> Any:
    ours = p._cont_bern_log_norm() + (-p.probs).log1p()
    theirs = q._cont_bern_log_norm() + (-q.probs).log1p()
    return p.mean * (p.logits - q.logits) + ours - theirs


def _same_event(p: Any, q: Any, name: str) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(f"KL-divergence between {name}s of different event shapes cannot be computed")


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _multivariate_normal(p: Any, q: Any) -> Any:
    _same_event(p, q, "Multivariate Normal")
    low_rank = isinstance(p, LowRankMultivariateNormal)
    ours = p._log_det() / 2 if low_rank else p._half_log_det()
    lower = q._unbroadcasted_scale_tril
    spread = solve_lower(lower, p.scale_tril if low_rank else p._unbroadcasted_scale_tril).pow(2).sum((-2, -1))
    distance = solve_lower(lower, (q.loc - p.loc).unsqueeze(-1)).pow(2).sum((-2, -1))
    return q._half_log_det() - ours + 0.5 * (spread + distance - p.event_shape[0])


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _to_low_rank(p: Any, q: Any) -> Any:
    """The trace of q's precision and p's covariance, term by term of Woodbury's inverse."""
    _same_event(p, q, "Multivariate Normal")
    ours = p._log_det() if isinstance(p, LowRankMultivariateNormal) else 2 * p._half_log_det()
    diagonal = q._unbroadcasted_cov_diag.reciprocal()
    half = solve_lower(q._capacitance_tril, q._unbroadcasted_cov_factor.mT * diagonal.unsqueeze(-2))
    removed = ((half @ p.covariance_matrix) * half).sum((-2, -1))
    spread = (p.variance * diagonal).sum(-1) - removed
    return 0.5 * (q._log_det() - ours + spread + q._distance(q.loc - p.loc) - p.event_shape[0])


@register_kl(Wishart, Wishart)
def _wishart(p: Any, q: Any) -> Any:
    _same_event(p, q, "Wishart")
    n, lower = p.event_shape[-1], q._unbroadcasted_scale_tril
    spread = solve_lower(lower, p._unbroadcasted_scale_tril).pow(2).sum((-2, -1))
    ratio = q._half_log_det() - p._half_log_det()
    gammas = log_multigamma(q.df / 2, n) - log_multigamma(p.df / 2, n)
    slope = (p.df - q.df) / 2 * multidigamma(p.df / 2, n)
    return q.df * ratio + p.df * (spread - n) / 2 + gammas + slope


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Any:
    """One invertible map of both changes nothing."""
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


# ---- pairs of other families: the cross entropy less the entropy ----
#
# A divergence is infinite where p has values that q does not have.

_LINE, _POSITIVE, _UNIT = (Gumbel, Laplace, Normal), (Exponential, Gamma), (Beta, ContinuousBernoulli)


def _infinite(p: Any, q: Any) -> Any:
    return _infinite_like(p.mean + q.mean.nan_to_num(0.0, 0.0))


_p: Any
for _kinds, _targets in (
    (_LINE, (*_POSITIVE, *_UNIT, Uniform, Pareto)),
    (_POSITIVE, (*_UNIT, Uniform, Pareto)),
    (_UNIT, (Pareto,)),
    ((Pareto,), (*_UNIT, Uniform)),
    ((Poisson,), (Bernoulli, Binomial)),
):
    for _p in _kinds:
        for _q in _targets:
            register_kl(_p, _q)(_infinite)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Any:
    return q.rate - p.probs * q.rate.log() - p.entropy()


def _to_normal(p: Any, q: Any) -> Any:
    square = p.variance + (p.mean - q.loc) ** 2
    return q.scale.log() + 0.5 * math.log(2 * math.pi) + square / (2 * q.scale**2) - p.entropy()


for _p in (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Pareto, Uniform):
    register_kl(_p, Normal)(_to_normal)


def _to_exponential(p: Any, q: Any) -> Any:
    return q.rate * p.mean - q.rate.log() - p.entropy()


for _p in (Beta, ContinuousBernoulli, Pareto):
    register_kl(_p, Exponential)(_to_exponential)


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Any, q: Any) -> Any:
    result = _to_exponential(p, q)
    return tp.where(p.low < 0, _infinite_like(result), result)


def _unit_uniform(p: Any, q: Any) -> Any:
    result = (q.high - q.low).log() - p.entropy()
    return tp.where((q.low > 0) | (q.high < 1), _infinite_like(result), result)


for _p in _UNIT:
    register_kl(_p, Uniform)(_unit_uniform)


def _gumbel_cross(p: Any, q: Any, exponential: Any) -> Any:
    """`exponential`: the mean of exp(-x / q.scale) for x of p."""
    return q.scale.log() + (p.mean - q.loc) / q.scale + (q.loc / q.scale).exp() * exponential - p.entropy()


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p: Any, q: Any) -> Any:
    return _gumbel_cross(p, q, p.rate / (p.rate + 1 / q.scale))


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Any, q: Any) -> Any:
    return _gumbel_cross(p, q, (1 + 1 / (p.rate * q.scale)) ** -p.concentration)


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Any, q: Any) -> Any:
    return _gumbel_cross(p, q, (0.5 * (p.scale / q.scale) ** 2 - p.loc / q.scale).exp())


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Any, q: Any) -> Any:
    ends = (-p.low / q.scale).exp() - (-p.high / q.scale).exp()
    return _gumbel_cross(p, q, q.scale * ends / (p.high - p.low))


@register_kl(Normal, Laplace)
def _normal_laplace(p: Any, q: Any) -> Any:
    gap = (p.loc - q.loc) / (math.sqrt(2.0) * p.scale)
    distance = p.scale * math.sqrt(2.0) * ((-(gap**2)).exp() / math.sqrt(math.pi) + gap * gap.erf())
    return (2 * q.scale).log() + distance / q.scale - p.entropy()


def _gamma_cross(p: Any, q: Any, log: Any) -> Any:
    """`log`: the mean of log(x) for x of p."""
    constant = q.concentration.lgamma() - q.concentration * q.rate.log()
    return constant - (q.concentration - 1) * log + q.rate * p.mean - p.entropy()


@register_kl(Beta, Gamma)
def _beta_gamma(p: Any, q: Any) -> Any:
    a, b = p.concentration1, p.concentration0
    return _gamma_cross(p, q, a.digamma() - (a + b).digamma())


@register_kl(Pareto, Gamma)
def _pareto_gamma(p: Any, q: Any) -> Any:
    return _gamma_cross(p, q, p.scale.log() + 1 / p.alpha)


def _mean_log(low: Any, high: Any) -> Any:
    """The mean of log(x) between two positive numbers."""
    return (tp.xlogy(high, high) - tp.xlogy(low, low)) / (high - low) - 1


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Any, q: Any) -> Any:
    result = _gamma_cross(p, q, _mean_log(p.low, p.high))
    return tp.where(p.low < 0, _infinite_like(result), result)


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Any, q: Any) -> Any:
    cross = (q.alpha + 1) * _mean_log(p.low, p.high) - q.alpha.log() - q.alpha * q.scale.log()
    return tp.where(p.low < q.scale, _infinite_like(cross), cross - p.entropy())


@register_kl(Uniform, Beta)
def _uniform_beta(p: Any, q: Any) -> Any:
    a, b = q.concentration1, q.concentration0
    constant = a.lgamma() + b.lgamma() - (a + b).lgamma()
    logs = (a - 1) * _mean_log(p.low, p.high) + (b - 1) * _mean_log(1 - p.high, 1 - p.low)
    result = constant - logs - p.entropy()
    return tp.where((p.low < 0) | (p.high > 1), _infinite_like(result), result)
