"""How the values of several processes become one: ReduceOp, and which dtypes an operation takes."""

from __future__ import annotations

from enum import Enum
from typing import Any

from tensorpy import _C


class ReduceOp(Enum):
    """How the processes' values become one; of one process's values, all of them give the value.

    Example:
        >>> x = tp.ones(2)
        >>> tp.distributed.all_reduce(x, tp.distributed.ReduceOp.MAX)
        >>> x
        tensor([1., 1.])
    """

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8


setattr(ReduceOp, "RedOpType", ReduceOp)  # noqa: B010  (PyTorch's name of the type without a factor)
reduce_op = ReduceOp

# The numbers of csrc/distributed/engine.h. AVG and PREMUL_SUM are sums with a factor.
_NUMBERS = {
    ReduceOp.SUM: 0,
    ReduceOp.AVG: 0,
    ReduceOp.PRODUCT: 1,
    ReduceOp.MIN: 2,
    ReduceOp.MAX: 3,
    ReduceOp.BAND: 4,
    ReduceOp.BOR: 5,
    ReduceOp.BXOR: 6,
    ReduceOp.PREMUL_SUM: 0,
}


class PremulSum:
    """PREMUL_SUM with the factor that each process's values are multiplied by before they are added."""

    def __init__(self, factor: Any) -> None:
        self.factor = factor


def _make_nccl_premul_sum(factor: Any) -> PremulSum:
    return PremulSum(factor)


def supports_complex(reduceOp: ReduceOp) -> bool:
    """Whether an operation is one of complex numbers.

    Arguments:
        reduceOp: the operation

    Returns: bool.

    Example:
        >>> tp.distributed.supports_complex(tp.distributed.ReduceOp.MAX)
        False
    """
    return reduceOp not in (ReduceOp.MAX, ReduceOp.MIN, ReduceOp.PRODUCT, ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)


def number_of(name: str, op: Any, tensor: Any) -> int:
    """The operation's number for a tensor; RuntimeError where its dtype has no such operation."""
    if isinstance(op, PremulSum):
        op = ReduceOp.PREMUL_SUM
    elif op is ReduceOp.PREMUL_SUM:
        raise ValueError(f"{name}: PREMUL_SUM needs a factor: distributed._make_nccl_premul_sum(factor)")
    if op not in _NUMBERS:
        raise TypeError(f"{name}: op is one of distributed.ReduceOp, not {op!r}")
    if tensor.is_complex() and not supports_complex(op):
        raise ValueError(f"{name} does not support {op} on complex tensors")
    number = _NUMBERS[op]
    if not _C._distributed.reduces(tensor.dtype, number):
        raise RuntimeError(f"{name}: ReduceOp.{op.name} is no operation of {tensor.dtype}")
    return number
