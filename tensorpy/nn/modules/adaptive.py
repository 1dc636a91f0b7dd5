"""The softmax over very many classes, in clusters by frequency (Grave et al. 2016)."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.nn import functional as F
from tensorpy.nn.modules.container import ModuleList, Sequential
from tensorpy.nn.modules.linear import Linear
from tensorpy.nn.modules.module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """The head scores the frequent classes and the clusters; each tail scores one cluster with fewer features.

    Input (N, in_features) or (in_features,), target (N,) or (); output a named tuple (output, loss).

    Arguments:
        in_features: how many features the input has
        n_classes: how many classes there are
        cutoffs: where the clusters of classes end, in order
        div_value: how many times fewer features each further cluster has
        head_bias: whether the head has a bias
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one

    Raises: ValueError for cutoffs that do not rise from 1 to below n_classes.

    Example:
        >>> output, loss = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10])(tp.ones(3, 8), tp.tensor([1, 7, 15]))
        >>> output.shape
        tensorpy.Size([3])
    """

    cutoffs: Any
    div_value: float
    head: Any
    head_bias: bool
    head_size: Any
    in_features: int
    n_classes: int
    n_clusters: Any
    shortlist_size: Any
    tail: Any

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        bounds = list(cutoffs)
        if not bounds:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            bounds != sorted(bounds)
            or min(bounds) <= 0
            or max(bounds) > n_classes - 1
            or len(set(bounds)) != len(bounds)
            or any(int(c) != c for c in bounds)
        ):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
                "value is between 1 and n_classes-1"
            )
        self.in_features, self.n_classes = in_features, n_classes
        self.cutoffs = [*bounds, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size, self.n_clusters = self.cutoffs[0], len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        how: dict[str, Any] = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **how)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            features = int(in_features // (div_value ** (i + 1)))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(
                    Linear(in_features, features, bias=False, **how),
                    Linear(features, size, bias=False, **how),
                )
            )

    def reset_parameters(self) -> None:
        """Draws the parameters anew."""
        self.head.reset_parameters()
        for down, up in self.tail:
            down.reset_parameters()
            up.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> Any:
        """The log-probability of each target, and the mean loss.

        Returns: a named tuple (output, loss): (N,), and a number.
        """
        if input_.dim() == 2 and input_.shape[0] != target_.shape[0]:
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        batched = target_.dim() > 0
        input, target = (input_, target_) if batched else (input_.unsqueeze(0), target_.unsqueeze(0))
        if target.numel() and not (0 <= int(target.min()) and int(target.max()) < self.n_classes):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found. "
            )
        head = F.log_softmax(self.head(input), dim=1)
        gate = target.clone()
        output = _C.zeros(target.shape, dtype=head.dtype, device=head.device)
        for i, tail in enumerate(self.tail):
            low, high = self.cutoffs[i], self.cutoffs[i + 1]
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            scores = F.log_softmax(tail(input.index_select(0, rows)), dim=1)
            relative = target.index_select(0, rows) - low
            output = output.index_copy(0, rows, scores.gather(1, relative.unsqueeze(1)).squeeze(1))
            gate = gate.index_fill(0, rows, self.shortlist_size + i)
        output = output + head.gather(1, gate.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _get_full_log_prob(self, input: Tensor, head_output: Tensor) -> Tensor:
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i, tail in enumerate(self.tail):
            cluster = head[:, self.shortlist_size + i].unsqueeze(1)
            parts.append(F.log_softmax(tail(input), dim=1) + cluster)
        return _C.cat(parts, 1)

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """The likeliest class of each row; the tails are computed only where the head points to a cluster."""
        head = self.head(input)
        output = head.argmax(1)
        rare = output >= self.shortlist_size
        if not bool(rare.any()):
            return output
        return _C.where(rare, self.log_prob(input).argmax(1), output)
