"""The von Mises distribution on the circle."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import tensorpy as tp
from tensorpy.distributions import constraints
from tensorpy.distributions.distribution import SHAPELESS, Distribution
from tensorpy.distributions.utils import broadcast_all, special

__all__ = ["VonMises"]


class VonMises(Distribution):
    """Angles with density proportional to exp(concentration cos(x - loc)). Not reparameterised.

    Arguments:
        loc: where the middle is
        concentration: the concentration
        validate_args: whether parameters and values are checked; None takes the class's setting

    Raises: ValueError, if checked, for parameters out of their range.

    Example:
        >>> d = tp.distributions.VonMises(tp.tensor([0.0]), tp.tensor([1.0]))
        >>> d.sample((3,)).shape, d.log_prob(tp.tensor([1.0]))
        (tensorpy.Size([3, 1]), tensor([-1.5335]))
    """

    concentration: Any
    loc: Any
    arg_constraints: ClassVar[Any] = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> VonMises:
        return self._expand(VonMises, batch_shape, _instance, ("loc", "concentration"))

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        return 1 - special.i1e(self.concentration) / special.i0e(self.concentration)

    def sample(self, sample_shape: Any = SHAPELESS) -> tp.Tensor:
        """Draws by rejection from a wrapped Cauchy distribution (D. J. Best, N. I. Fisher, 1979), in float64."""
        shape = self._extended_shape(sample_shape)
        kappa = self.concentration.detach().to(device="cpu", dtype=tp.float64).expand(shape)
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        # for small kappa the quotient has lost its digits: its series is used
        r = tp.where(kappa < 1e-4, 1 / kappa + kappa, (1 + rho**2) / (2 * rho))
        waiting = r.isfinite() & (kappa > 0)
        angle = tp.where(waiting, tp.zeros_like(r), tp.full_like(r, math.nan))
        while waiting.any():
            u, v = tp.rand_like(r), 1 - tp.rand_like(r)
            z = (math.pi * u).cos()
            f = (1 + r * z) / (r + z)
            c = kappa * (r - f)
            accepted = (c * (2 - c) > v) | ((c / v).log() + 1 - c >= 0)
            drawn = f.clamp(min=-1, max=1).acos() * (tp.rand_like(r) - 0.5).sign()
            angle = tp.where(waiting & accepted, drawn, angle)
            waiting = waiting & ~accepted
        moved = angle + self.loc.detach().to(device="cpu", dtype=tp.float64) + math.pi
        wrapped = moved % (2 * math.pi) - math.pi
        return wrapped.to(device=self.loc.device, dtype=self.loc.dtype)

    def log_prob(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        kappa = self.concentration
        normalizer = math.log(2 * math.pi) + special.i0e(kappa).log() + kappa
        return kappa * tp.cos(value - self.loc) - normalizer
