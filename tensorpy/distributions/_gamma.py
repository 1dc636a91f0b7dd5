"""The regularised incomplete gamma function P(a, x) by its power series, with both derivatives.

In float64 on the host; the results have the argument's dtype and device. About x terms are summed.
"""

from __future__ import annotations

from typing import Any

import tensorpy as tp
from tensorpy._C import Tensor
from tensorpy.autograd import Function


def host(x: Tensor) -> Tensor:
    """x in float64 on the host, without gradient."""
    return x.detach().to(device="cpu", dtype=tp.float64)


def gamma_slope(alpha: Tensor, x: Tensor) -> Tensor:
    """dx / dalpha at a fixed quantile: -(dP/dalpha) / (dP/dx) for the gamma distribution's function P(alpha, x).

    M. Figurnov, S. Mohamed, A. Mnih, "Implicit reparameterization gradients", 2018. P's power series is differentiated
    term by term; for large alpha, where it is long, the Wilson-Hilferty cube of a normal draw takes its place.
    """
    large = alpha > 1000
    base = (x / alpha) ** (1.0 / 3.0)
    wilson = x / alpha + x * 3 / base * (1 / (9 * alpha * alpha) - (base - 1 + 1 / (9 * alpha)) / (2 * alpha))
    a = tp.where(large, tp.ones_like(alpha), alpha)
    y = tp.where(large, tp.ones_like(x), x)
    weight, log_y, psi = y / a, y.log(), tp.digamma(a + 1)
    total = weight * (log_y - psi)
    n = 1
    while n < 100_000:
        psi = psi + 1 / (a + n)
        weight = weight * y / (a + n)
        step = weight * (log_y - psi)
        total = total + step
        if n % 16 == 0 and not bool(((step.abs() > 1e-15 * total.abs()) | (y >= a + n)).any()):
            break
        n += 1
    return tp.where(large, wilson, -total)


def _lower_gamma(a: Tensor, x: Tensor) -> Tensor:
    """P(a, x); 1 far out in the tail, where less than exp(-60) is missing."""
    far = x > a + 12 * a.sqrt() + 60
    y = tp.where(far, a, x)
    weight = tp.ones_like(y)
    total = tp.ones_like(y)
    n = 1
    while bool((weight > 1e-17 * total).any()):
        weight = weight * y / (a + n)
        total = total + weight
        n += 1
    result = (tp.xlogy(a, y) - y - tp.lgamma(a + 1)).exp() * total
    return tp.where(far, tp.ones_like(result), result.clamp(max=1))


class LowerGamma(Function):
    """P(a, x), differentiable once in both arguments, which have one shape."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, x: Tensor) -> Tensor:
        ctx.save_for_backward(a, x)
        return _lower_gamma(host(a), host(x)).to(device=x.device, dtype=x.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        a, x = ctx.saved_tensors
        wide_a, wide_x = host(a), host(x)
        density = (tp.xlogy(wide_a - 1, wide_x) - wide_x - tp.lgamma(wide_a)).exp()
        by_a = -density * gamma_slope(wide_a, wide_x.clamp(min=1e-300))
        return tuple(grads[0] * slope.to(device=x.device, dtype=x.dtype) for slope in (by_a, density))
