"""Kullback-Leibler divergences between pairs of distributions, by their classes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tensorpy as tp
from tensorpy.distributions._matrices import solve_lower
from tensorpy.distributions.bernoulli import Bernoulli
from tensorpy.distributions.beta import Beta
from tensorpy.distributions.binomial import Binomial
from tensorpy.distributions.categorical import Categorical
from tensorpy.distributions.cauchy import Cauchy
from tensorpy.distributions.continuous_bernoulli import ContinuousBernoulli
from tensorpy.distributions.dirichlet import Dirichlet
from tensorpy.distributions.distribution import Distribution
from tensorpy.distributions.exponential import Exponential
from tensorpy.distributions.gamma import Gamma
from tensorpy.distributions.geometric import Geometric
from tensorpy.distributions.gumbel import EULER, Gumbel
from tensorpy.distributions.half_normal import HalfNormal
from tensorpy.distributions.independent import Independent
from tensorpy.distributions.laplace import Laplace
from tensorpy.distributions.multivariate_normal import MultivariateNormal
from tensorpy.distributions.normal import Normal
from tensorpy.distributions.one_hot_categorical import OneHotCategorical
from tensorpy.distributions.pareto import Pareto
from tensorpy.distributions.poisson import Poisson
from tensorpy.distributions.transformed_distribution import TransformedDistribution
from tensorpy.distributions.uniform import Uniform
from tensorpy.distributions.utils import softplus, sum_rightmost

__all__ = ["kl_divergence", "register_kl"]

_REGISTRY: dict[tuple[type, type], Callable[[Any, Any], Any]] = {}
_found: dict[tuple[type, type], Callable[[Any, Any], Any] | None] = {}


def register_kl(type_p: Any, type_q: Any) -> Callable[[Any], Any]:
    """A decorator: the function computes kl_divergence for p of type_p and q of type_q, and of their subclasses."""
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
    """The integral of p log(p / q), of the distributions' batch shape; NotImplementedError for an unknown pair."""
    pair = type(p), type(q)
    if pair not in _found:
        _found[pair] = _dispatch(*pair)
    function = _found[pair]
    if function is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {pair[0].__name__} and q type {pair[1].__name__}"
        )
    return function(p, q)


def _infinite_like(x: Any) -> Any:
    return tp.full_like(x, math.inf)


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


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: Any, q: Any) -> Any:
    ours = p._cont_bern_log_norm() + (-p.probs).log1p()
    theirs = q._cont_bern_log_norm() + (-q.probs).log1p()
    return p.mean * (p.logits - q.logits) + ours - theirs


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p: Any, q: Any) -> Any:
    if p.event_shape != q.event_shape:
        raise ValueError("KL-divergence between Multivariate Normals of different event shapes cannot be computed")
    lower = q._unbroadcasted_scale_tril
    spread = solve_lower(lower, p._unbroadcasted_scale_tril).pow(2).sum((-2, -1))
    distance = solve_lower(lower, (q.loc - p.loc).unsqueeze(-1)).pow(2).sum((-2, -1))
    return q._half_log_det() - p._half_log_det() + 0.5 * (spread + distance - p.event_shape[0])


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
