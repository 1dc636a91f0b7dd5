"""Placements: how a tensor lies on the processes of one dimension of a mesh.

A part of a tensor is as `chunk` cuts: all parts but the last ones have the same size, and those may be empty.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from tensorpy._C import Tensor

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


def part_sizes(size: int, parts: int) -> list[int]:
    """How many of `size` each part has."""
    each = -(-size // parts)
    return [max(0, min(each, size - place * each)) for place in range(parts)]


class Placement:
    """What the processes of one dimension of a mesh have of a tensor: Shard, Replicate or Partial.

    Example:
        >>> from tensorpy.distributed.tensor import Partial, Replicate, Shard
        >>> [p.is_shard(0) for p in (Shard(0), Shard(1), Replicate(), Partial())]
        [True, False, False, False]
    """

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether each has a part.

        Arguments:
            dim: whether of this dimension
        """
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether each has all of it."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether what they have is still to be reduced.

        Arguments:
            reduce_op: whether by this reduction
        """
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Each process has a part of one dimension, as `chunk` cuts it.

    Arguments:
        dim: the dimension

    Example:
        >>> from tensorpy.distributed.tensor import Shard
        >>> Shard(0), str(Shard(1))
        (Shard(dim=0), 'S(1)')
    """

    dim: int

    @staticmethod
    def local_shard_size_and_offset(curr_local_size: int, num_chunks: int, rank: int) -> tuple[int, int]:
        """How much of a dimension a process has, and from where on.

        Arguments:
            curr_local_size: the size of what is cut
            num_chunks: how many processes there are
            rank: which one is meant
        """
        sizes = part_sizes(curr_local_size, num_chunks)
        return sizes[rank], sum(sizes[:rank])

    def _parts(self, tensor: Tensor, count: int) -> list[Tensor]:
        sizes = part_sizes(tensor.shape[self.dim], count)
        begins = itertools.accumulate(sizes[:-1], initial=0)
        return [tensor.narrow(self.dim, begin, size) for begin, size in zip(begins, sizes, strict=True)]

    def __repr__(self) -> str:
        return f"Shard(dim={self.dim})"

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True)
class Replicate(Placement):
    """Each process has all of the tensor.

    Example:
        >>> from tensorpy.distributed.tensor import Replicate
        >>> str(Replicate())
        'R'
    """

    def __repr__(self) -> str:
        return "Replicate()"

    def __str__(self) -> str:
        return "R"


REDUCTIONS = ("sum", "avg", "product", "max", "min")


@dataclass(frozen=True)
class Partial(Placement):
    """Each process has a tensor of the whole shape, and what is meant is their reduction.

    Arguments:
        reduce_op: which: sum, avg, product, max or min

    Example:
        >>> from tensorpy.distributed.tensor import Partial
        >>> str(Partial())
        'P(sum)'
    """

    reduce_op: str = "sum"

    def __post_init__(self) -> None:
        if self.reduce_op not in REDUCTIONS:
            raise ValueError(f"Partial: reduce_op is one of {', '.join(REDUCTIONS)}, not {self.reduce_op!r}")

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"


@dataclass(frozen=True)
class NormPartial(Partial):
    """What is meant is the norm of the processes' numbers, which are norms of parts.

    Arguments:
        reduce_op: sum
        order: which norm
    """

    order: float = 2.0

    @staticmethod
    def of(order: float) -> Partial | None:
        """That of an order; None where norms of parts do not make the norm of the whole."""
        if order in (float("inf"), float("-inf")):
            return Partial("max" if order > 0 else "min")
        return NormPartial("sum", order) if 0 < order < float("inf") else None

    def __repr__(self) -> str:
        return f"_NormPartial({self.order})"
