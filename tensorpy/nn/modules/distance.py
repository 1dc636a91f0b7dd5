"""Distances and similarities of vectors."""

from __future__ import annotations

from tensorpy._C import Tensor
from tensorpy.nn import functional as F
from tensorpy.nn.modules.module import Module

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class PairwiseDistance(Module):
    """The norm of x1 - x2 along the last dimension.

    Inputs (N, D) or (D,), output (N,) or (), with keepdim (N, 1) or (1,).

    Arguments:
        p: the order of the norm
        eps: a small number that keeps divisions in range
        keepdim: whether reduced dimensions stay, with size 1

    Example:
        >>> nn.PairwiseDistance()(tp.tensor([[0.0, 0.0]]), tp.tensor([[3.0, 4.0]]))
        tensor([5.0000])
    """

    eps: float
    keepdim: bool
    norm: float

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """The cosine of the angle between x1 and x2, along a dimension.

    Inputs of shapes that broadcast, output without the dimension dim.

    Arguments:
        dim: the dimension; a negative one counts from the last
        eps: a small number that keeps divisions in range

    Example:
        >>> nn.CosineSimilarity()(tp.tensor([[1.0, 0.0]]), tp.tensor([[1.0, 1.0]]))
        tensor([0.7071])
    """

    dim: int
    eps: float

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
