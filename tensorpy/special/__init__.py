"""The special functions: the operators whose `python_module` is special, without their prefix, and ones of those."""

from __future__ import annotations

import math

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._overridable import make_overridable
from tensorpy.special import bessel, polynomials

_PREFIX = "special_"
_module = getattr(_C, "_special", None)
_operators = [name.removeprefix(_PREFIX) for name in dir(_module) if name.startswith(_PREFIX)]
globals().update({name: getattr(_module, _PREFIX + name) for name in _operators})


def entr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """-x log(x): 0 at 0, minus infinity below."""
    result = _C.where(input < 0, -math.inf, -_C.xlogy(input, input))
    return result if out is None else out.copy_(result)


def erfcx(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """exp(x^2) erfc(x), by Laplace's continued fraction where erfc falls to nothing."""
    x = input if input.is_floating_point() else input.to(_C.get_default_dtype())
    near, far = x.clamp(max=5.0), x.clamp(min=5.0)
    fraction = far
    for k in range(30, 0, -1):
        fraction = far + k / 2 / fraction
    # towards minus infinity the product is infinite, and there no difference of infinities
    result = _C.where(x < 5, (near * near).exp() * _C.erfc(near), 1 / (math.sqrt(math.pi) * fraction))
    return result if out is None else out.copy_(result)


def multigammaln(input: Tensor, p: int, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the gamma function of p dimensions."""
    shifts = _C.arange(p, dtype=input.dtype if input.is_floating_point() else None, device=input.device) / 2
    if (input <= (p - 1) / 2).any():
        raise RuntimeError(f"multigammaln: all elements have to be greater than {(p - 1) / 2}, for p={p}")
    result = p * (p - 1) / 4 * math.log(math.pi) + _C.lgamma(input.unsqueeze(-1) - shifts).sum(-1)
    return result if out is None else out.copy_(result)


def modified_bessel_i0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function I, order 0."""
    return _C._special.special_i0(input) if out is None else _C._special.special_i0(input, out=out)


def modified_bessel_i1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function I, order 1."""
    return _C._special.special_i1(input) if out is None else _C._special.special_i1(input, out=out)


globals().update(bessel.FUNCTIONS | polynomials.FUNCTIONS)
_made = [entr, erfcx, multigammaln, modified_bessel_i0, modified_bessel_i1]
_composites = [function.__name__ for function in _made] + [*bessel.FUNCTIONS, *polynomials.FUNCTIONS]
make_overridable(__name__, _composites)
__all__ = sorted({*_operators, *_composites})
