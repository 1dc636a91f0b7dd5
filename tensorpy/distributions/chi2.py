"""The chi-squared distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.distributions import constraints
from tensorpy.distributions.gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The sum of `df` squared standard normals: Gamma(df / 2, 1 / 2).

    Arguments:
        df: the degrees of freedom
        validate_args: whether parameters and values are checked; None takes the class's setting

    Raises: ValueError, if checked, for parameters out of their range.

    Example:
        >>> d = tp.distributions.Chi2(tp.tensor([3.0]))
        >>> d.sample().shape, d.log_prob(tp.tensor([1.0]))
        (tensorpy.Size([1]), tensor([-1.4189]))
    """

    arg_constraints: ClassVar[Any] = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        half = df * 0.5 if isinstance(df, Tensor) else _C.tensor(df * 0.5)
        super().__init__(half, 0.5, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Chi2:
        return super().expand(batch_shape, self._get_checked_instance(Chi2, _instance))

    @property
    def df(self) -> Any:
        return self.concentration * 2
