"""Invertible and other maps of random variables, with the logarithm of what they do to volumes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tensorpy as tp
from tensorpy import _C
from tensorpy.distributions import _transform, constraints
from tensorpy.distributions._transform import (
    ComposeTransform,
    IndependentTransform,
    Transform,
    identity_transform,
)
from tensorpy.distributions.utils import softplus, sum_rightmost, tril_matrix_to_vec, vec_to_tril_matrix

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]

_InverseTransform = _transform._InverseTransform  # libraries ask for it here


class ReshapeTransform(Transform):
    """Events of shape in_shape as events of shape out_shape.

    Arguments:
        in_shape: the shape before
        out_shape: the shape behind
        cache_size: 1 keeps the last value and its image, 0 nothing

    Raises: ValueError for shapes of different numbers of elements.

    Example:
        >>> tp.distributions.ReshapeTransform((4,), (2, 2))(tp.arange(4.0))
        tensor([[0., 1.],
                [2., 3.]])
    """

    in_shape: Any
    out_shape: Any
    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = tp.Size(in_shape), tp.Size(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size)

    @property
    def domain(self) -> Any:
        return constraints.independent(constraints.real, len(self.in_shape))

    @property
    def codomain(self) -> Any:
        return constraints.independent(constraints.real, len(self.out_shape))

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else ReshapeTransform(self.in_shape, self.out_shape, cache_size)

    def _call(self, x: Any) -> Any:
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y: Any) -> Any:
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Any, y: Any) -> tp.Tensor:
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    @staticmethod
    def _exchange(shape: Any, old: Any, new: Any) -> Any:
        cut = len(shape) - len(old)
        if cut < 0:
            raise ValueError("Too few dimensions on input")
        if tuple(shape[cut:]) != tuple(old):
            raise ValueError(f"Shape mismatch: expected {tuple(old)} but got {tuple(shape[cut:])}")
        return tp.Size((*shape[:cut], *new))

    def forward_shape(self, shape: Any) -> tp.Size:
        return self._exchange(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> tp.Size:
        return self._exchange(shape, self.out_shape, self.in_shape)


class _Plain(Transform):
    """A transform without parameters: two of one class are equal."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    __hash__: Any = Transform.__hash__


class _Increasing(_Plain):
    bijective = True
    sign = 1
    domain = constraints.real


class ExpTransform(_Increasing):
    """y = exp(x).

    Arguments:
        cache_size: 1 keeps the last value and its image, 0 nothing

    Example:
        >>> tp.distributions.ExpTransform()(tp.tensor([0.5, 1.0]))
        tensor([1.6487, 2.7183])
    """

    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return x.exp()

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> tp.Tensor:
        return x


class PowerTransform(Transform):
    """y = x ** exponent over positive numbers.

    Arguments:
        exponent: the exponent
        cache_size: 1 keeps the last value and its image, 0 nothing

    Example:
        >>> tp.distributions.PowerTransform(tp.tensor(2.0))(tp.tensor([0.5, 3.0]))
        tensor([0.2500, 9.0000])
    """

    exponent: Any
    domain = codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = _C.as_tensor(exponent)

    @property
    def sign(self) -> Any:
        return self.exponent.sign()

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else PowerTransform(self.exponent, cache_size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and bool(self.exponent.eq(other.exponent).all())

    __hash__: Any = Transform.__hash__

    def _call(self, x: Any) -> Any:
        return x.pow(self.exponent)

    def _inverse(self, y: Any) -> Any:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> tp.Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> tp.Size:
        return tp.broadcast_shapes(shape, self.exponent.shape)

    inverse_shape = forward_shape


class SigmoidTransform(_Increasing):
    """y = 1 / (1 + exp(-x)).

    Arguments:
        cache_size: 1 keeps the last value and its image, 0 nothing

    Example:
        >>> tp.distributions.SigmoidTransform()(tp.tensor([0.5, 1.0]))
        tensor([0.6225, 0.7311])
    """

    codomain = constraints.unit_interval

    def _call(self, x: Any) -> Any:
        info = tp.finfo(x.dtype)
        return tp.sigmoid(x).clamp(min=info.tiny, max=1.0 - info.eps)

    def _inverse(self, y: Any) -> Any:
        info = tp.finfo(y.dtype)
        y = y.clamp(min=info.tiny, max=1.0 - info.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> tp.Tensor:
        return -softplus(-x) - softplus(x)


class SoftplusTransform(_Increasing):
    """y = log(1 + exp(x)).

    Arguments:
        cache_size: 1 keeps the last value and its image, 0 nothing

    Example:
        >>> tp.distributions.SoftplusTransform()(tp.tensor([0.5, 1.0]))
        tensor([0.9741, 1.3133])
    """

    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return softplus(x)

    def _inverse(self, y: Any) -> Any:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> tp.Tensor:
        return -softplus(-x)


class TanhTransform(_Increasing):
    """y = tanh(x).

    Arguments:
        cache_size: 1 keeps the last value and its image, 0 nothing

    Example:
        >>> tp.distributions.TanhTransform()(tp.tensor([0.5, 1.0]))
        tensor([0.4621, 0.7616])
    """

    codomain: Any = constraints.interval(-1.0, 1.0)

    def _call(self, x: Any) -> Any:
        return x.tanh()

    def _inverse(self, y: Any) -> Any:
        return tp.atanh(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> tp.Tensor:
        # log(1 - tanh(x)^2), written so that large |x| cancels nothing
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class AbsTransform(_Plain):
    """y = |x|; the inverse takes the positive x.

    Arguments:
        cache_size: 1 keeps the last value and its image, 0 nothing

    Example:
        >>> tp.distributions.AbsTransform()(tp.tensor([0.5, 1.0]))
        tensor([0.5000, 1.0000])
    """

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return x.abs()

    def _inverse(self, y: Any) -> Any:
        return y


class AffineTransform(Transform):
    """y = loc + scale x.

    Arguments:
        loc: where the middle is
        scale: the scale
        event_dim: how many dimensions make one event
        cache_size: 1 keeps the last value and its image, 0 nothing

    Example:
        >>> tp.distributions.AffineTransform(loc=1.0, scale=2.0)(tp.tensor([0.5, 1.0]))
        tensor([2., 3.])
    """

    loc: Any
    scale: Any
    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @property
    def domain(self) -> Any:
        return constraints.independent(constraints.real, self._event_dim) if self._event_dim else constraints.real

    codomain = domain

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self._event_dim, cache_size)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, AffineTransform)
            and bool(_C.as_tensor(self.loc == other.loc).all())
            and bool(_C.as_tensor(self.scale == other.scale).all())
        )

    __hash__: Any = Transform.__hash__

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, tp.Tensor):
            return self.scale.sign()
        return (self.scale > 0) - (self.scale < 0)

    def _call(self, x: Any) -> Any:
        return self.loc + self.scale * x

    def _inverse(self, y: Any) -> Any:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Any) -> tp.Tensor:
        scale = _C.as_tensor(self.scale, dtype=x.dtype, device=x.device)
        return sum_rightmost(scale.abs().log().expand(tp.broadcast_shapes(x.shape, scale.shape)), self._event_dim)

    def forward_shape(self, shape: Any) -> tp.Size:
        return tp.broadcast_shapes(shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ()))

    inverse_shape = forward_shape


class SoftmaxTransform(_Plain):
    """y = softmax(x) along the last dimension; not one to one.

    Arguments:
        cache_size: 1 keeps the last value and its image, 0 nothing

    Example:
        >>> tp.distributions.SoftmaxTransform()(tp.tensor([0.5, 1.0]))
        tensor([0.3775, 0.6225])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Any) -> Any:
        return tp.softmax(x, -1)

    def _inverse(self, y: Any) -> Any:
        return y.log()


class StickBreakingTransform(_Plain):
    """k real numbers to k + 1 probabilities: each takes a share, by its sigmoid, of what the ones before it left.

    Arguments:
        cache_size: 1 keeps the last value and its image, 0 nothing

    Example:
        >>> tp.distributions.StickBreakingTransform()(tp.tensor([0.5, 1.0]))
        tensor([0.4519, 0.4007, 0.1474])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def _parts(self, x: Any) -> Any:
        """x less the offsets that make 0 the uniform distribution."""
        left = tp.arange(x.shape[-1], 0, -1, dtype=x.dtype, device=x.device)
        return x - left.log()

    def _call(self, x: Any) -> Any:
        share = tp.sigmoid(self._parts(x)).clamp(max=1 - tp.finfo(x.dtype).eps)
        rest = (1 - share).cumprod(-1)
        one = x.new_ones((*x.shape[:-1], 1))
        return tp.cat([share, one], -1) * tp.cat([one, rest], -1)

    def _inverse(self, y: Any) -> Any:
        head = y[..., :-1]
        left = tp.arange(head.shape[-1], 0, -1, dtype=y.dtype, device=y.device)
        rest = (1 - head.cumsum(-1)).clamp(min=tp.finfo(y.dtype).tiny)
        return head.log() - rest.log() + left.log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> tp.Tensor:
        z = self._parts(x)
        return (y[..., :-1].log() - softplus(z)).sum(-1)

    def forward_shape(self, shape: Any) -> tp.Size:
        return tp.Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Any) -> tp.Size:
        return tp.Size((*shape[:-1], shape[-1] - 1))


class LowerCholeskyTransform(_Plain):
    """Square matrices to lower triangles with a positive diagonal, by exp on the diagonal.

    Arguments:
        cache_size: 1 keeps the last value and its image, 0 nothing

    Example:
        >>> tp.distributions.LowerCholeskyTransform()(tp.zeros(2, 2))
        tensor([[1., 0.],
                [0., 1.]])
    """

    domain: Any = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Any) -> Any:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Any) -> Any:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_Plain):
    """Square matrices to positive definite ones: L L^T for the L of LowerCholeskyTransform.

    Arguments:
        cache_size: 1 keeps the last value and its image, 0 nothing

    Example:
        >>> tp.distributions.PositiveDefiniteTransform()(tp.zeros(2, 2))
        tensor([[1., 0.],
                [0., 1.]])
    """

    domain: Any = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Any) -> Any:
        lower = LowerCholeskyTransform()(x)
        return lower @ lower.mT

    def _inverse(self, y: Any) -> Any:
        return LowerCholeskyTransform().inv(_C._linalg.linalg_cholesky(y))


class CorrCholeskyTransform(_Plain):
    """n (n - 1) / 2 real numbers to the Cholesky factor of a correlation matrix of n rows.

    Each row has length 1. Its entries, the tanh of their numbers, take that share (as a square) of what the entries
    before them left; the diagonal takes the rest.

    Arguments:
        cache_size: 1 keeps the last value and its image, 0 nothing

    Example:
        >>> tp.distributions.CorrCholeskyTransform()(tp.tensor([0.0]))
        tensor([[1., 0.],
                [0., 1.]])
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    @staticmethod
    def _left(shares: Any) -> Any:
        """The product of what the entries before each one left: 1 in the first column."""
        one = shares.new_ones((*shares.shape[:-1], 1))
        return tp.cat([one, shares[..., :-1]], -1)

    def _call(self, x: Any) -> Any:
        bound = 1 - tp.finfo(x.dtype).eps
        share = vec_to_tril_matrix(x.tanh().clamp(min=-bound, max=bound), -1)
        identity = tp.eye(share.shape[-1], dtype=x.dtype, device=x.device)
        return (share + identity) * self._left((1 - share * share).cumprod(-1)).sqrt()

    def _inverse(self, y: Any) -> Any:
        left = self._left(1 - (y * y).cumsum(-1))
        return tp.atanh(tril_matrix_to_vec(y, -1) / tril_matrix_to_vec(left, -1).sqrt())

    def log_abs_det_jacobian(self, x: Any, y: Any) -> tp.Tensor:
        """The logarithm of the determinant for x and the entries of y below its diagonal, which determine y."""
        left = tril_matrix_to_vec(self._left(1 - (y * y).cumsum(-1)), -1)
        slope = 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))
        return (left.log() / 2 + slope).sum(-1)

    def forward_shape(self, shape: Any) -> tp.Size:
        if len(shape) < 1:
            raise ValueError(f"CorrCholeskyTransform: a shape of {tuple(shape)} has too few dimensions")
        n = (math.isqrt(8 * shape[-1] + 1) + 1) // 2
        if n * (n - 1) // 2 != shape[-1]:
            raise ValueError(f"{shape[-1]} numbers are no triangle below a diagonal")
        return tp.Size((*shape[:-1], n, n))

    def inverse_shape(self, shape: Any) -> tp.Size:
        if len(shape) < 2:
            raise ValueError(f"CorrCholeskyTransform: a shape of {tuple(shape)} has too few dimensions")
        if shape[-2] != shape[-1]:
            raise ValueError(f"CorrCholeskyTransform: matrices of {shape[-2]} by {shape[-1]} are not square")
        return tp.Size((*shape[:-2], shape[-1] * (shape[-1] - 1) // 2))


class CumulativeDistributionTransform(Transform):
    """y = distribution.cdf(x).

    Arguments:
        cache_size: 1 keeps the last value and its image, 0 nothing

    Example:
        >>> from tensorpy.distributions import CumulativeDistributionTransform, Uniform
        >>> CumulativeDistributionTransform(Uniform(0.0, 4.0))(tp.tensor([1.0]))
        tensor([0.2500])
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = 1

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:
        return self.distribution.support

    def with_cache(self, cache_size: int = 1) -> Transform:
        return (
            self if self._cache_size == cache_size else CumulativeDistributionTransform(self.distribution, cache_size)
        )

    def _call(self, x: Any) -> Any:
        return self.distribution.cdf(x)

    def _inverse(self, y: Any) -> Any:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> tp.Tensor:
        return self.distribution.log_prob(x)


class _Parts(Transform):
    """Transforms of the parts that a tensor has along one dimension."""

    transforms: Any

    def __init__(self, tseq: Sequence[Any], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.dim = dim

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(t.bijective for t in self.transforms)


class CatTransform(_Parts):
    """Part i of `lengths[i]` entries along `dim` goes through transform i.

    Arguments:
        tseq: the transforms
        dim: the dimension; a negative one counts from the last
        lengths: how many entries each transform gets; None for one each
        cache_size: 1 keeps the last value and its image, 0 nothing

    Example:
        >>> from tensorpy.distributions import AffineTransform, ExpTransform, CatTransform
        >>> CatTransform([AffineTransform(0.0, 2.0), ExpTransform()])(tp.tensor([1.0, 0.0]))
        tensor([2., 1.])
    """

    lengths: Any

    def __init__(
        self, tseq: Sequence[Any], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _split(self, x: Any) -> Any:
        return zip(self.transforms, x.split(self.lengths, self.dim), strict=True)

    def _call(self, x: Any) -> Any:
        return tp.cat([t(part) for t, part in self._split(x)], self.dim)

    def _inverse(self, y: Any) -> Any:
        return tp.cat([t.inv(part) for t, part in self._split(y)], self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> tp.Tensor:
        most = max(t.event_dim for t in self.transforms)
        after = y.split(self.lengths, self.dim)
        dets = [
            sum_rightmost(t.log_abs_det_jacobian(part, image), most - t.event_dim)
            for (t, part), image in zip(self._split(x), after, strict=True)
        ]
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        if dim + most < 0:
            return tp.cat(dets, dim + most)
        total: Any = sum(dets)
        return total

    @property
    def domain(self) -> Any:
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @property
    def codomain(self) -> Any:
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_Parts):
    """Entry i along `dim` goes through transform i.

    Arguments:
        tseq: the transforms
        dim: the dimension; a negative one counts from the last
        cache_size: 1 keeps the last value and its image, 0 nothing

    Example:
        >>> from tensorpy.distributions import AffineTransform, ExpTransform, StackTransform
        >>> StackTransform([AffineTransform(0.0, 2.0), ExpTransform()])(tp.tensor([1.0, 0.0]))
        tensor([2., 1.])
    """

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else StackTransform(self.transforms, self.dim, cache_size)

    def _call(self, x: Any) -> Any:
        return tp.stack([t(part) for t, part in zip(self.transforms, x.unbind(self.dim), strict=True)], self.dim)

    def _inverse(self, y: Any) -> Any:
        return tp.stack([t.inv(part) for t, part in zip(self.transforms, y.unbind(self.dim), strict=True)], self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> tp.Tensor:
        parts = zip(self.transforms, x.unbind(self.dim), y.unbind(self.dim), strict=True)
        return tp.stack([t.log_abs_det_jacobian(a, b) for t, a, b in parts], self.dim)

    @property
    def domain(self) -> Any:
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @property
    def codomain(self) -> Any:
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
