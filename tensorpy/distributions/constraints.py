"""Sets that parameters and samples belong to: `constraint.check(x)` is a bool for each event of x."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorpy as tp
from tensorpy._C import Tensor

__all__ = [
    "Constraint",
    "MixtureSameFamilyConstraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]


class Constraint:
    """A set; an event of it has `event_dim` dimensions, `is_discrete` says whether it is countable.

    Example:
        >>> isinstance(tp.distributions.constraints.positive, tp.distributions.constraints.Constraint)
        True
    """

    is_discrete: Any = False
    event_dim: Any = 0
    _shown: tuple[str, ...] = ()

    def check(self, value: Any) -> Tensor:
        """A bool tensor without the event's dimensions: which events are in the set."""
        raise NotImplementedError

    def __repr__(self) -> str:
        name = type(self).__name__.removeprefix("_")
        return f"{name}({', '.join(f'{n}={getattr(self, n)}' for n in self._shown)})"


class _Dependent(Constraint):
    """A set that only an instance of the distribution knows.

    Arguments:
        is_discrete: whether the values are integers, where that is known
        event_dim: how many dimensions make one event, where that is known

    Returns: of a call, such a set with other knowledge.

    Example:
        >>> tp.distributions.constraints.is_dependent(tp.distributions.constraints.dependent)
        True
    """

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        self._is_discrete, self._event_dim = is_discrete, event_dim

    @property
    def is_discrete(self) -> bool:
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return self._is_discrete

    @property
    def event_dim(self) -> int:
        if self._event_dim is NotImplemented:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return self._event_dim

    def __call__(self, *args: Any, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> Any:
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, value: Any) -> Tensor:
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint: Any) -> bool:
    """Whether only an instance of a distribution knows the set.

    Arguments:
        constraint: the constraint

    Returns: bool.

    Example:
        >>> tp.distributions.constraints.is_dependent(tp.distributions.constraints.real)
        False
    """
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property whose value is a constraint, and that is a dependent constraint when the class is asked.

    Arguments:
        fn: the function
        is_discrete: whether the values are integers
        event_dim: how many dimensions make one event

    Example:
        >>> class Mine:
        ...     @tp.distributions.constraints.dependent_property
        ...     def support(self):
        ...         return tp.distributions.constraints.positive
        >>> Mine().support.check(tp.tensor([1.0]))
        tensor([True])
    """

    def __init__(
        self,
        fn: Callable[[Any], Any] | None = None,
        *,
        is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ) -> None:
        property.__init__(self, fn)
        _Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, *args: Any, **options: Any) -> Any:
        return _DependentProperty(*args, is_discrete=self._is_discrete, event_dim=self._event_dim)


class _IndependentConstraint(Constraint):
    """The last `reinterpreted_batch_ndims` dimensions of the batch belong to the event.

    Arguments:
        base_constraint: the constraint of the parts
        reinterpreted_batch_ndims: how many dimensions of the batch belong to one event

    Example:
        >>> from tensorpy.distributions import constraints
        >>> constraints.independent(constraints.positive, 1).check(tp.tensor([1.0, 2.0]))
        tensor(True)
    """

    def __init__(self, base_constraint: Any, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def is_discrete(self) -> bool:
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Any) -> Tensor:
        result = self.base_constraint.check(value)
        if result.dim() < self.reinterpreted_batch_ndims:
            raise ValueError(
                f"Expected value.dim() >= {self.base_constraint.event_dim + self.reinterpreted_batch_ndims} "
                f"but got {value.dim()}"
            )
        return result.reshape((*result.shape[: result.dim() - self.reinterpreted_batch_ndims], -1)).all(-1)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The support of a mixture: a value has to be in the support of every component, which stand side by side.

    Arguments:
        base_constraint: the constraint of the parts

    Example:
        >>> from tensorpy.distributions import constraints
        >>> constraints.MixtureSameFamilyConstraint(constraints.positive).event_dim
        0
    """

    def __init__(self, base_constraint: Any) -> None:
        self.base_constraint = base_constraint

    @property
    def is_discrete(self) -> bool:
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:
        return self.base_constraint.event_dim

    def check(self, value: Any) -> Tensor:
        return self.base_constraint.check(value.unsqueeze(-1 - self.event_dim)).all(-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Any) -> Tensor:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    is_discrete, event_dim = True, 1

    def check(self, value: Any) -> Tensor:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Bounded(Constraint):
    """Numbers between the bounds that a subclass has, as attributes; it says which of them belong to the set."""

    lower_bound: Any
    upper_bound: Any
    _closed = (True, True)

    def check(self, value: Any) -> Tensor:
        inside = value == value if not self.is_discrete else value % 1 == 0
        if hasattr(self, "lower_bound"):
            inside = inside & (self.lower_bound <= value if self._closed[0] else self.lower_bound < value)
        if hasattr(self, "upper_bound"):
            inside = inside & (value <= self.upper_bound if self._closed[1] else value < self.upper_bound)
        return inside


class _Interval(_Bounded):
    """The values are from a lower to an upper bound.

    Arguments:
        lower_bound: the lower bound
        upper_bound: the upper bound

    Example:
        >>> tp.distributions.constraints.interval(0.0, 1.0).check(tp.tensor([0.0, 0.5, 1.0]))
        tensor([True, True, True])
    """

    _shown = ("lower_bound", "upper_bound")

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound


class _HalfOpenInterval(_Interval):
    """The values are at least a lower bound and below an upper one.

    Arguments:
        lower_bound: the lower bound
        upper_bound: the upper bound

    Example:
        >>> tp.distributions.constraints.half_open_interval(0.0, 1.0).check(tp.tensor([0.0, 0.5, 1.0]))
        tensor([ True,  True, False])
    """

    _closed = (True, False)


class _IntegerInterval(_Interval):
    """The values are integers from a lower to an upper bound.

    Arguments:
        lower_bound: the lower bound
        upper_bound: the upper bound

    Example:
        >>> tp.distributions.constraints.integer_interval(0, 2).check(tp.tensor([0.0, 0.5, 3.0]))
        tensor([ True, False, False])
    """

    is_discrete = True


class _GreaterThan(_Bounded):
    """The values are greater than a bound.

    Arguments:
        lower_bound: the lower bound

    Example:
        >>> tp.distributions.constraints.greater_than(1.0).check(tp.tensor([1.0, 2.0, 0.5]))
        tensor([False,  True, False])
    """

    _shown, _closed = ("lower_bound",), (False, True)

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound


class _GreaterThanEq(_GreaterThan):
    """The values are at least a bound.

    Arguments:
        lower_bound: the lower bound

    Example:
        >>> tp.distributions.constraints.greater_than_eq(1.0).check(tp.tensor([1.0, 2.0, 0.5]))
        tensor([ True,  True, False])
    """

    _closed = (True, True)


class _IntegerGreaterThan(_GreaterThanEq):
    is_discrete = True


class _LessThan(_Bounded):
    """The values are below a bound.

    Arguments:
        upper_bound: the upper bound

    Example:
        >>> tp.distributions.constraints.less_than(1.0).check(tp.tensor([1.0, 2.0, 0.5]))
        tensor([False, False,  True])
    """

    _shown, _closed = ("upper_bound",), (True, False)

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound


class _Real(_Bounded):
    pass


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Any) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    """The values are integers from 0 that add up to at most a bound.

    Arguments:
        upper_bound: the upper bound

    Example:
        >>> tp.distributions.constraints.multinomial(3).check(tp.tensor([1.0, 2.0]))
        tensor(True)
    """

    is_discrete, event_dim = True, 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Any) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Tensor:
        return (value.tril() == value).flatten(-2).all(-1)


class _LowerCholesky(_LowerTriangular):
    def check(self, value: Any) -> Tensor:
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    def check(self, value: Any) -> Tensor:
        tolerance = tp.finfo(value.dtype).eps * value.size(-1) * 10
        unit = ((value * value).sum(-1).sqrt() - 1).abs() <= tolerance
        return super().check(value) & unit.all(-1)


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Tensor:
        return tp.full(value.shape[:-2], value.shape[-2] == value.shape[-1], dtype=tp.bool, device=value.device)


class _Symmetric(_Square):
    def check(self, value: Any) -> Tensor:
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        return tp.isclose(value, value.mT, atol=1e-6).flatten(-2).all(-1)


class _PositiveDefinite(_Symmetric):
    def check(self, value: Any) -> Tensor:
        symmetric = super().check(value)
        if value.shape[-2] != value.shape[-1]:
            return symmetric
        with tp.no_grad():
            return symmetric & (tp._C._linalg.linalg_cholesky_ex(value)[1] == 0)


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Any) -> Tensor:
        symmetric = super().check(value)
        if not symmetric.all():
            return symmetric
        with tp.no_grad():
            return symmetric & (tp._C._linalg.linalg_eigvalsh(value) >= 0).all(-1)


class _Parts(Constraint):
    """Constraints of the parts that a value has along one dimension."""

    cseq: list[Any]
    dim: int

    def __init__(self, cseq: Sequence[Any], dim: int = 0) -> None:
        self.cseq, self.dim = list(cseq), dim

    @property
    def is_discrete(self) -> bool:
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> int:
        return max(c.event_dim for c in self.cseq)


class _Cat(_Parts):
    """The parts of a dimension each meet a constraint of their own.

    Arguments:
        cseq: the constraints
        dim: the dimension; a negative one counts from the last
        lengths: how many entries each set gets; None for one each

    Example:
        >>> from tensorpy.distributions import constraints
        >>> constraints.cat([constraints.positive, constraints.real]).check(tp.tensor([1.0, -1.0]))
        tensor([True, True])
    """

    lengths: Any

    def __init__(self, cseq: Sequence[Any], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)

    def check(self, value: Any) -> Tensor:
        parts = value.split(self.lengths, self.dim)
        return tp.cat([c.check(part) for c, part in zip(self.cseq, parts, strict=True)], self.dim)


class _Stack(_Parts):
    """The slices of a dimension each meet a constraint of their own.

    Arguments:
        cseq: the constraints
        dim: the dimension; a negative one counts from the last

    Example:
        >>> from tensorpy.distributions import constraints
        >>> constraints.stack([constraints.positive, constraints.real]).check(tp.tensor([1.0, -1.0]))
        tensor([True, True])
    """

    def check(self, value: Any) -> Tensor:
        parts = value.unbind(self.dim)
        return tp.stack([c.check(part) for c, part in zip(self.cseq, parts, strict=True)], self.dim)


dependent: _Dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean: Constraint = _Boolean()
one_hot: Constraint = _OneHot()
nonnegative_integer: Constraint = _IntegerGreaterThan(0)
positive_integer: Constraint = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real: Constraint = _Real()
real_vector: Constraint = independent(real, 1)
positive: Constraint = _GreaterThan(0.0)
nonnegative: Constraint = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval: Constraint = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex: Constraint = _Simplex()
lower_triangular: Constraint = _LowerTriangular()
lower_cholesky: Constraint = _LowerCholesky()
corr_cholesky: Constraint = _CorrCholesky()
square: Constraint = _Square()
symmetric: Constraint = _Symmetric()
positive_definite: Constraint = _PositiveDefinite()
positive_semidefinite: Constraint = _PositiveSemidefinite()
cat = _Cat
stack = _Stack
