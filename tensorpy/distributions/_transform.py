"""The base of transforms, and the transforms made of others: inverses, chains, ones over more dimensions."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import Any

import tensorpy as tp
from tensorpy.distributions import constraints
from tensorpy.distributions.utils import sum_rightmost


class Transform:
    """A map y = f(x) from `domain` to `codomain`; with cache_size=1 it remembers its last x and y.

    Subclasses write `_call`, and where they are there `_inverse` and `log_abs_det_jacobian`.

    Example:
        >>> issubclass(tp.distributions.ExpTransform, tp.distributions.Transform)
        True
    """

    bijective = False
    domain: Any
    codomain: Any

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._inv: Any = None
        self._cached: tuple[Any, Any] = (None, None)
        super().__init__()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_inv": None}

    @property
    def event_dim(self) -> int:
        if self.domain.event_dim != self.codomain.event_dim:
            raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")
        return self.domain.event_dim

    @property
    def inv(self) -> Any:
        """The inverse transform."""
        inverse = self._inv() if self._inv is not None else None
        if inverse is None:
            inverse = _InverseTransform(self)
            self._inv = weakref.ref(inverse)
        return inverse

    def _sign(self) -> Any:
        """1 or -1 where a one-dimensional transform is increasing or decreasing."""
        raise NotImplementedError

    sign: Any = property(_sign)

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The same transform with a cache of that size."""
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __call__(self, x: Any) -> Any:
        if self._cache_size and x is self._cached[0]:
            return self._cached[1]
        y = self._call(x)
        if self._cache_size:
            self._cached = x, y
        return y

    def _inv_call(self, y: Any) -> Any:
        if self._cache_size and y is self._cached[1]:
            return self._cached[0]
        x = self._inverse(y)
        if self._cache_size:
            self._cached = x, y
        return x

    def _call(self, x: Any) -> Any:
        raise NotImplementedError

    def _inverse(self, y: Any) -> Any:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Any, y: Any) -> tp.Tensor:
        """log |det dy/dx| for an x and its y, without the event's dimensions."""
        raise NotImplementedError

    def forward_shape(self, shape: Any) -> tp.Size:
        """The shape of y for x of that shape."""
        return shape

    def inverse_shape(self, shape: Any) -> tp.Size:
        """The shape of x for y of that shape."""
        return shape

    def __repr__(self) -> str:
        return type(self).__name__ + "()"


class _InverseTransform(Transform):
    def __init__(self, transform: Transform) -> None:
        super().__init__(transform._cache_size)
        self._forward = transform

    @property
    def domain(self) -> Any:
        return self._forward.codomain

    @property
    def codomain(self) -> Any:
        return self._forward.domain

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return self._forward.bijective

    @property
    def sign(self) -> Any:
        return self._forward.sign

    @property
    def inv(self) -> Any:
        return self._forward

    def with_cache(self, cache_size: int = 1) -> Any:
        return self.inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._forward == other._forward

    __hash__ = Transform.__hash__

    def __call__(self, x: Any) -> Any:
        return self._forward._inv_call(x)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -self._forward.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        return self._forward.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._forward.forward_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._forward!r})"


class ComposeTransform(Transform):
    """Transforms one after the other, the first of the list first. Called with x, it gives the image of x.

    Arguments:
        parts: the transforms, in order
        cache_size: 1 keeps the last value and its image, 0 nothing

    Returns: of a call, a tensor of the last transform's shape.

    Example:
        >>> from tensorpy.distributions import AffineTransform, ComposeTransform, ExpTransform
        >>> ComposeTransform([AffineTransform(0.0, 2.0), ExpTransform()])(tp.tensor([0.0, 1.0]))
        tensor([1.0000, 7.3891])
    """

    parts: Any

    def __init__(self, parts: Sequence[Any], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__: Any = Transform.__hash__

    @property
    def domain(self) -> Any:
        if not self.parts:
            return constraints.real
        domain, event = self.parts[0].domain, self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            event = max(event + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        extra = event - domain.event_dim
        return constraints.independent(domain, extra) if extra > 0 else domain

    @property
    def codomain(self) -> Any:
        if not self.parts:
            return constraints.real
        codomain, event = self.parts[-1].codomain, self.parts[0].domain.event_dim
        for part in self.parts:
            event = max(event + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        extra = event - codomain.event_dim
        return constraints.independent(codomain, extra) if extra > 0 else codomain

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(part.bijective for part in self.parts)

    @property
    def sign(self) -> Any:
        return math.prod(part.sign for part in self.parts)

    @property
    def inv(self) -> Any:
        inverse = self._inv() if self._inv is not None else None
        if inverse is None:
            inverse = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv, inverse._inv = weakref.ref(inverse), weakref.ref(self)
        return inverse

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else ComposeTransform(self.parts, cache_size)

    def __call__(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Any, y: Any) -> tp.Tensor:
        if not self.parts:
            return tp.zeros_like(x)
        total: Any = 0
        event = self.domain.event_dim
        for i, part in enumerate(self.parts):
            after = y if i == len(self.parts) - 1 else part(x)
            total = total + sum_rightmost(part.log_abs_det_jacobian(x, after), event - part.domain.event_dim)
            event += part.codomain.event_dim - part.domain.event_dim
            x = after
        return total

    def forward_shape(self, shape: Any) -> tp.Size:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> tp.Size:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        return "ComposeTransform(\n    " + ",\n    ".join(repr(part) for part in self.parts) + "\n)"


identity_transform: ComposeTransform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform whose last batch dimensions count as dimensions of the event.

    Arguments:
        base_transform: the transform
        reinterpreted_batch_ndims: how many dimensions of the batch belong to one event
        cache_size: 1 keeps the last value and its image, 0 nothing

    Example:
        >>> from tensorpy.distributions import ExpTransform, IndependentTransform
        >>> t = IndependentTransform(ExpTransform(), 1)
        >>> t.log_abs_det_jacobian(tp.ones(3), tp.ones(3).exp())
        tensor(3.)
    """

    base_transform: Any

    def __init__(self, base_transform: Any, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size)

    @property
    def domain(self) -> Any:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @property
    def codomain(self) -> Any:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return self.base_transform.bijective

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def _call(self, x: Any) -> Any:
        if x.dim() < self.domain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform(x)

    def _inverse(self, y: Any) -> Any:
        if y.dim() < self.codomain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> tp.Tensor:
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Any) -> tp.Size:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> tp.Size:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"
