"""Transforms from unconstrained numbers to constrained ones, by the constraint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorpy.distributions import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Factories of transforms by class of constraint; called with a constraint it gives the transform to it.

    Arguments:
        constraint: the constraint that the values of the transform meet

    Returns: a transform.

    Raises: NotImplementedError for a class of constraints without a factory.

    Example:
        >>> positive = tp.distributions.constraints.positive
        >>> tp.distributions.biject_to(positive)(tp.tensor([0.0]))
        tensor([1.])
    """

    def __init__(self) -> None:
        self._registry: dict[type, Callable[[Any], Any]] = {}

    def register(self, constraint: Any, factory: Any = None) -> Any:
        """Registers factory(constraint); without a factory, a decorator."""
        if factory is None:
            return lambda function: self.register(constraint, function)
        kind = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not (isinstance(kind, type) and issubclass(kind, constraints.Constraint)):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to: ConstraintRegistry = ConstraintRegistry()
transform_to: ConstraintRegistry = ConstraintRegistry()


def _both(*kinds: Any) -> Callable[[Any], Any]:
    def decorator(factory: Any) -> Any:
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return decorator


@_both(constraints.real)
def _to_real(constraint: Any) -> Any:
    return transforms.identity_transform


@_both(constraints.positive, constraints.nonnegative)
def _to_greater(constraint: Any) -> Any:
    exp = transforms.ExpTransform()
    if isinstance(constraint.lower_bound, (int, float)) and constraint.lower_bound == 0:
        return exp
    return transforms.ComposeTransform([exp, transforms.AffineTransform(constraint.lower_bound, 1)])


@_both(constraints.less_than)
def _to_less(constraint: Any) -> Any:
    exp = transforms.ExpTransform()
    return transforms.ComposeTransform([exp, transforms.AffineTransform(constraint.upper_bound, -1)])


@_both(constraints.interval, constraints.half_open_interval)
def _to_interval(constraint: Any) -> Any:
    low, high = constraint.lower_bound, constraint.upper_bound
    sigmoid = transforms.SigmoidTransform()
    if all(isinstance(bound, (int, float)) for bound in (low, high)) and (low, high) == (0, 1):
        return sigmoid
    return transforms.ComposeTransform([sigmoid, transforms.AffineTransform(low, high - low)])


@transform_to.register(constraints.lower_cholesky)  # type: ignore[untyped-decorator]
def _to_lower_cholesky(constraint: Any) -> Any:
    return transforms.LowerCholeskyTransform()


@transform_to.register(constraints.positive_semidefinite)  # type: ignore[untyped-decorator]
@transform_to.register(constraints.positive_definite)  # type: ignore[untyped-decorator]
def _to_positive_definite(constraint: Any) -> Any:
    return transforms.PositiveDefiniteTransform()


@_both(constraints.corr_cholesky)
def _to_corr_cholesky(constraint: Any) -> Any:
    return transforms.CorrCholeskyTransform()


@biject_to.register(constraints.simplex)  # type: ignore[untyped-decorator]
def _biject_to_simplex(constraint: Any) -> Any:
    return transforms.StickBreakingTransform()


@transform_to.register(constraints.simplex)  # type: ignore[untyped-decorator]
def _transform_to_simplex(constraint: Any) -> Any:
    return transforms.SoftmaxTransform()


def _parts(registry: ConstraintRegistry) -> None:
    """What a constraint made of others needs, by the registry itself."""
    registry.register(
        constraints.independent,
        lambda c: transforms.IndependentTransform(registry(c.base_constraint), c.reinterpreted_batch_ndims),
    )
    registry.register(
        constraints.cat, lambda c: transforms.CatTransform([registry(part) for part in c.cseq], c.dim, c.lengths)
    )
    registry.register(constraints.stack, lambda c: transforms.StackTransform([registry(p) for p in c.cseq], c.dim))


_parts(biject_to)
_parts(transform_to)
