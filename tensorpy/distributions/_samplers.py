"""Samplers over uniform and normal draws, for all elements at once: gamma, Poisson, binomial.

They compute in float64 on the host and give the parameter's dtype and device.
"""

from __future__ import annotations

import math
from typing import Any

import tensorpy as tp
from tensorpy._C import Tensor
from tensorpy.autograd import Function
from tensorpy.distributions._gamma import gamma_slope, host


def _log_gamma_draws(alpha: Tensor) -> Tensor:
    """Logarithms of gamma draws: G. Marsaglia, W. W. Tsang, "A simple method for generating gamma variables", 2000.

    A cube of a shifted normal draw is accepted or drawn again; below 1 the draw for alpha + 1 times u^(1/alpha).
    """
    boosted = tp.where(alpha < 1, alpha + 1, alpha)
    d = boosted - 1.0 / 3.0
    c = 1.0 / (9.0 * d).sqrt()
    # what no draw is ever accepted for does not wait: alpha = 0 draws 0, anything else that is out of range NaN
    waiting = (alpha > 0) & alpha.isfinite()
    unknown = tp.where(alpha == 0, -math.inf, math.nan).to(tp.float64)
    result = tp.where(waiting, tp.zeros_like(alpha), unknown)
    while waiting.any():
        x = tp.randn_like(alpha)
        v = (1 + c * x) ** 3
        positive = v > 0
        log_v = tp.where(positive, v, tp.ones_like(v)).log()
        accepted = positive & ((1 - tp.rand_like(alpha)).log() < 0.5 * x * x + d - d * v + d * log_v)
        result = tp.where(waiting & accepted, d.log() + log_v, result)
        waiting = waiting & ~accepted
    boost = (1 - tp.rand_like(alpha)).log() / alpha
    return tp.where((alpha < 1) & (alpha > 0), result + boost, result)


class StandardGamma(Function):
    """Draws of the gamma distribution with rate 1, differentiable once in alpha."""

    @staticmethod
    def forward(ctx: Any, alpha: Tensor) -> Tensor:
        draws = _log_gamma_draws(host(alpha)).exp().to(device=alpha.device, dtype=alpha.dtype)
        draws = draws.clamp(min=tp.finfo(alpha.dtype).tiny)
        ctx.save_for_backward(alpha, draws)
        return draws

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        alpha, draws = ctx.saved_tensors
        slope = gamma_slope(host(alpha), host(draws))
        return grads[0] * slope.to(device=alpha.device, dtype=alpha.dtype)


def standard_gamma(alpha: Tensor) -> Tensor:
    """Draws of Gamma(alpha, 1) with implicit gradients."""
    return StandardGamma.apply(alpha)


def poisson(rate: Tensor) -> Tensor:
    """Poisson draws: products of uniform draws below 10, else W. Hoermann's transformed rejection (PTRS, 1993)."""
    with tp.no_grad():
        wide = host(rate)
        small = (wide >= 0) & (wide < 10)
        wide = tp.where(wide < 0, tp.full_like(wide, math.nan), wide)
        counted = _poisson_by_products(tp.where(small, wide, tp.zeros_like(wide)))
        result = counted if bool(small.all()) else tp.where(small, counted, _poisson_by_rejection(wide.clamp(min=10)))
        return result.to(device=rate.device, dtype=rate.dtype)


def _poisson_by_products(rate: Tensor) -> Tensor:
    count, total = tp.zeros_like(rate), tp.zeros_like(rate)
    while True:
        total = total - (1 - tp.rand_like(rate)).log()
        going = total < rate
        if not going.any():
            return count
        count = count + going.to(tp.float64)


def _poisson_by_rejection(rate: Tensor) -> Tensor:
    b = 0.931 + 2.53 * rate.sqrt()
    a = -0.059 + 0.02483 * b
    inverse = 1.1239 + 1.1328 / (b - 3.4)
    quick = 0.9277 - 3.6224 / (b - 2)
    waiting = rate.isfinite()
    result = tp.where(waiting, tp.zeros_like(rate), tp.full_like(rate, math.nan))
    while waiting.any():
        u, v = tp.rand_like(rate) - 0.5, 1 - tp.rand_like(rate)
        us = 0.5 - u.abs()
        k = ((2 * a / us + b) * u + rate + 0.43).floor()
        inside = (us >= 0.07) & (v <= quick)
        legal = (k >= 0) & ~((us < 0.013) & (v > us))
        density = k * rate.log() - rate - tp.lgamma(k.clamp(min=0) + 1)
        exact = (v * inverse / (a / (us * us) + b)).log() <= density
        accepted = inside | (legal & exact)
        result = tp.where(waiting & accepted, k, result)
        waiting = waiting & ~accepted
    return result


def binomial(total_count: Tensor, probs: Tensor) -> Tensor:
    """Binomial draws; both arguments of one shape.

    While many trials are left, the median order statistic of their uniform draws, a beta variable, halves them
    (J. H. Ahrens, U. Dieter, 1974); the last ones are counted.
    """
    with tp.no_grad():
        n, p = host(total_count), host(probs)
        valid = n.isfinite() & (n >= 0) & (p >= 0) & (p <= 1)
        n, p = tp.where(valid, n, tp.zeros_like(n)), tp.where(valid, p, tp.zeros_like(p))
        count = tp.where(valid, tp.zeros_like(n), tp.full_like(n, math.nan))
        while bool((n > 32).any()):
            many = n > 32
            i = tp.where(many, (n / 2).floor() + 1, tp.ones_like(n))
            rest = tp.where(many, n + 1 - i, tp.ones_like(n))
            first, second = _log_gamma_draws(i).exp(), _log_gamma_draws(rest).exp()
            median = first / (first + second)
            below = median <= p
            count = tp.where(many & below, count + i, count)
            left = tp.where(below, n - i, i - 1)
            chance = tp.where(below, (p - median) / (1 - median), p / median)
            n, p = tp.where(many, left, n), tp.where(many, chance, p)
        for trial in range(int(n.max()) if n.numel() else 0):
            count = count + ((trial < n) & (tp.rand_like(p) < p)).to(tp.float64)
        return count.to(device=probs.device, dtype=probs.dtype)
