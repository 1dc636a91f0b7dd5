"""The base of all distributions."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import tensorpy as tp
from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.distributions import constraints
from tensorpy.distributions.utils import lazy_property

__all__ = ["Distribution"]

SHAPELESS = tp.Size()


_COMPUTED: Any = lazy_property  # the class; checkers take it for a function


class _Validation:
    """The class's setting: whether distributions check arguments; not where the answer, a value, would end a graph."""

    def __init__(self, checks: bool = __debug__) -> None:
        self.checks = checks

    def __get__(self, distribution: Any, cls: type) -> bool:
        recorder = _C._tracer.current()
        return self.checks and (recorder is None or recorder.checks_values)


class Distribution:
    """A batch of independent distributions over events of one shape.

    A sample has shape `sample_shape + batch_shape + event_shape`, a log-probability `sample_shape + batch_shape`.
    `has_rsample` says whether `rsample` draws samples that gradients flow through to the parameters.

    Arguments:
        batch_shape: the shape of parameters
        event_shape: the shape of one draw
        validate_args: whether parameters and values are checked; None takes the class's setting

    Example:
        >>> isinstance(tp.distributions.Normal(0.0, 1.0), tp.distributions.Distribution)
        True
    """

    has_rsample: Any = False
    has_enumerate_support = False
    _validate_args: Any = _Validation()
    arg_constraints: ClassVar[Any]
    support: Any

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions check arguments if they are not told otherwise."""
        if value not in (True, False):
            raise ValueError("validate_args is either True or False")
        Distribution._validate_args = _Validation(value)

    def __init__(
        self, batch_shape: Any = SHAPELESS, event_shape: Any = SHAPELESS, validate_args: bool | None = None
    ) -> None:
        self._batch_shape, self._event_shape = tp.Size(batch_shape), tp.Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _check_parameters(self) -> None:
        known = getattr(self, "arg_constraints", None)
        if known is None:
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`: set it to {{}} or pass validate_args=False",
                stacklevel=4,
            )
            return
        for name, constraint in known.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(getattr(type(self), name, None), _COMPUTED):
                continue  # derived from a parameter that is checked
            value = getattr(self, name)
            valid = constraint.check(value)
            if not valid.all():
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Distribution:
        """The same distributions with batch_shape expanded, no memory copied."""
        raise NotImplementedError

    def _expand(self, cls: type, batch_shape: Any, instance: Any, names: tuple[str, ...] = (), **own: Any) -> Any:
        """expand() of cls, whose parameters `names`, where they are set, all begin with the batch's dimensions.

        `own` are its other attributes. All are there before the base class is set up: a subclass of a library may ask
        them what the base class sets.
        """
        new = self._get_checked_instance(cls, instance)
        for name, value in own.items():
            setattr(new, name, value)
        batch_shape, old = tp.Size(batch_shape), len(self._batch_shape)
        for name in names:
            if name in self.__dict__:
                value = self.__dict__[name]
                setattr(new, name, value.expand(batch_shape + value.shape[old:]))
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        if _instance is None and type(self).__init__ is not cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method "
                "must also define a custom .expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    @property
    def batch_shape(self) -> Any:
        """The shape of the batch of parameters."""
        return self._batch_shape

    @property
    def event_shape(self) -> Any:
        """The shape of one event."""
        return self._event_shape

    @property
    def mean(self) -> Tensor:
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = SHAPELESS) -> Tensor:
        """Draws without gradients, of shape sample_shape + batch_shape + event_shape."""
        with tp.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = SHAPELESS) -> Tensor:
        """Draws that are functions of the parameters, so that gradients flow; only where has_rsample."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Tensor:
        """sample((n,))."""
        warnings.warn("sample_n(n) is deprecated: use sample((n,))", FutureWarning, stacklevel=2)
        return self.sample(tp.Size((n,)))

    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of density or probability at value."""
        raise NotImplementedError

    def cdf(self, value: Any) -> Tensor:
        """The probability of no more than value."""
        raise NotImplementedError

    def icdf(self, value: Any) -> Tensor:
        """The inverse of cdf."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a finite support along a new first dimension, expanded over the batch or of ones there."""
        raise NotImplementedError

    def _enumerated(self, values: Any, expand: bool) -> Any:
        """enumerate_support of scalar `values`."""
        values = values.reshape((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values

    def entropy(self) -> Tensor:
        """The entropy in nats, of shape batch_shape."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """exp(entropy)."""
        return tp.exp(self.entropy())

    def _extended_shape(self, sample_shape: Any = SHAPELESS) -> Any:
        return tp.Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _validate_sample(self, value: Any) -> None:
        """Refuses values of a wrong shape and values outside the support."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        event_start = value.dim() - len(self._event_shape)
        if value.shape[max(event_start, 0) :] != self._event_shape:
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.shape} vs {self._event_shape}."
            )
        expected = self._batch_shape + self._event_shape
        for i, j in zip(reversed(value.shape), reversed(expected), strict=False):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs {expected}."
                )
        try:
            support = self.support
        except (NotImplementedError, AttributeError):
            warnings.warn(f"{type(self)} does not define `support`: values are not checked", stacklevel=3)
            return
        if support is not None and not support.check(value).all():
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the "
                f"support ({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def __repr__(self) -> str:
        names = [name for name in getattr(self, "arg_constraints", None) or () if name in self.__dict__]
        shown = (self.__dict__[name] for name in names)
        texts = [format(v) if v.numel() == 1 else str(v.size()) for v in shown]
        return f"{type(self).__name__}({', '.join(f'{n}: {t}' for n, t in zip(names, texts, strict=True))})"
