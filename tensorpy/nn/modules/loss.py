"""Losses. Each takes `reduction` ("none", "mean", "sum") or PyTorch's older size_average and reduce."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tensorpy._C import Tensor
from tensorpy.nn import functional as F
from tensorpy.nn._common import REDUCTIONS, legacy
from tensorpy.nn.modules.distance import PairwiseDistance
from tensorpy.nn.modules.linear import Linear
from tensorpy.nn.modules.module import Module

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CosineEmbeddingLoss",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "LinearCrossEntropyLoss",
    "LinearCrossEntropyOptions",
    "MSELoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "NLLLoss2d",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]

Old = bool | None
_WORDS = {number: word for word, number in REDUCTIONS.items()}


class _Loss(Module):
    reduction: str

    def __init__(self, size_average: Old = None, reduce: Old = None, reduction: str = "mean") -> None:
        super().__init__()
        old = size_average is not None or reduce is not None
        self.reduction = _WORDS[legacy(size_average, reduce, "mean")] if old else reduction


class _WeightedLoss(_Loss):
    weight: Any

    def __init__(
        self, weight: Tensor | None = None, size_average: Old = None, reduce: Old = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class L1Loss(_Loss):
    """The absolute difference.

    Input and target of one shape; output a number, or of that shape with reduction="none".

    Arguments:
        size_average: an older name of reduction: False is 'sum'
        reduce: an older name of reduction: False is 'none'
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements

    Example:
        >>> nn.L1Loss()(tp.tensor([1.0, 2.0]), tp.tensor([1.0, 4.0]))
        tensor(1.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    """The squared difference.

    Input and target of one shape; output a number, or of that shape with reduction="none".

    Arguments:
        size_average: an older name of reduction: False is 'sum'
        reduce: an older name of reduction: False is 'none'
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements

    Example:
        >>> nn.MSELoss()(tp.tensor([1.0, 2.0]), tp.tensor([1.0, 4.0]))
        tensor(2.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class SoftMarginLoss(_Loss):
    """The logistic loss of scores whose targets are 1 or -1.

    Input and target of one shape; output a number, or of that shape with reduction="none".

    Arguments:
        size_average: an older name of reduction: False is 'sum'
        reduce: an older name of reduction: False is 'none'
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements

    Example:
        >>> nn.SoftMarginLoss()(tp.tensor([0.5, 0.25]), tp.tensor([1.0, -1.0]))
        tensor(0.6500)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    """The hinge loss of several classes of each element against all others.

    Input and target (N, C) or (C,); output a number, or (N,) with reduction="none".

    Arguments:
        size_average: an older name of reduction: False is 'sum'
        reduce: an older name of reduction: False is 'none'
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements

    Example:
        >>> nn.MultiLabelMarginLoss()(tp.tensor([[0.5, 0.25, 0.75]]), tp.tensor([[2, 0, -1]]))
        tensor(0.4167)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class NLLLoss(_WeightedLoss):
    """The negative log-likelihood of class indices.

    Input of log-probabilities (N, C), (C,) or (N, C, d1, ...), target of int64 without C; output a number, or as the
    target with reduction="none".

    Arguments:
        weight: a weight for each class; None for ones
        size_average: an older name of reduction: False is 'sum'
        ignore_index: a class of target that counts for nothing
        reduce: an older name of reduction: False is 'none'
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements

    Example:
        >>> nn.NLLLoss()(tp.tensor([[0.5, 0.5], [0.25, 0.75]]).log(), tp.tensor([0, 1]))
        tensor(0.4904)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Old = None,
        ignore_index: int = -100,
        reduce: Old = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class NLLLoss2d(NLLLoss):
    """NLLLoss of images, by an older name.

    Input of log-probabilities (N, C), (C,) or (N, C, d1, ...), target of int64 without C; output a number, or as the
    target with reduction="none".

    Arguments:
        weight: a weight for each class; None for ones
        size_average: an older name of reduction: False is 'sum'
        ignore_index: a class of target that counts for nothing
        reduce: an older name of reduction: False is 'none'
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements

    Example:
        >>> nn.NLLLoss2d()(tp.randn(1, 3, 2, 2).log_softmax(1), tp.zeros(1, 2, 2, dtype=tp.int64)).shape
        tensorpy.Size([])
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Old = None,
        ignore_index: int = -100,
        reduce: Old = None,
        reduction: str = "mean",
    ) -> None:
        warnings.warn(
            "`NLLLoss2d` has been deprecated. Please use `NLLLoss` instead: it is the same.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__(weight, size_average, ignore_index, reduce, reduction)


class CrossEntropyLoss(_WeightedLoss):
    """The cross entropy of unnormalised scores with class indices or class probabilities.

    Input of scores (N, C), (C,) or (N, C, d1, ...), target of int64 without C, or probabilities of the input's shape;
    output a number, or without C with reduction="none".

    Arguments:
        weight: a weight for each class; None for ones
        size_average: an older name of reduction: False is 'sum'
        ignore_index: a class of target that counts for nothing
        reduce: an older name of reduction: False is 'none'
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements
        label_smoothing: from 0 to 1: how much of the target is spread over all classes

    Example:
        >>> nn.CrossEntropyLoss()(tp.tensor([[2.0, 0.0, 1.0]]), tp.tensor([0]))
        tensor(0.4076)
    """

    ignore_index: int
    label_smoothing: float

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Old = None,
        ignore_index: int = -100,
        reduce: Old = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


@dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """How LinearCrossEntropyLoss may save memory; taken, and of no effect.

    Arguments:
        allow_retain_graph: whether backward may run twice
        batch_chunk_size: how many rows are computed at once
        chunking_method: how rows are put into parts
        acc_policy: how parts are added up
        acc_dtype: the dtype that they are added up in

    Example:
        >>> options = nn.LinearCrossEntropyOptions(batch_chunk_size=1)
        >>> options.batch_chunk_size
        1
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None


class LinearCrossEntropyLoss(_WeightedLoss):
    """A linear map and the cross entropy of its scores; out_features are dimensions after the classes.

    Input (*, in_features), target of int64 (*, out_features); output a number, or as the target with reduction="none".

    Arguments:
        in_features: how many features the input has
        num_classes: how many classes there are
        out_features: how many features the output has
        bias: whether there is a bias
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements
        weight: a weight for each class; None for ones
        ignore_index: a class of target that counts for nothing
        label_smoothing: from 0 to 1: how much of the target is spread over all classes
        options: how the work is cut into parts

    Raises: RuntimeError for a weight of another shape, or a label_smoothing outside [0, 1].

    Example:
        >>> nn.LinearCrossEntropyLoss(4, 3)(tp.ones(2, 4), tp.tensor([0, 2])).shape
        tensorpy.Size([])
    """

    ignore_index: int | None
    label_smoothing: float
    linear: Any
    num_classes: int
    options: LinearCrossEntropyOptions | None
    out_features: tuple[int, ...]

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        super().__init__(weight, None, None, reduction)
        if weight is not None and weight.shape != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        self.num_classes, self.out_features = num_classes, out_features
        self.ignore_index, self.label_smoothing, self.options = ignore_index, label_smoothing, options
        self.linear = Linear(in_features, num_classes * math.prod(out_features), bias, device, dtype)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        shape = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape(*shape, -1),
            target,
            linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, reduction={self.reduction}, "
            f"ignore_index={self.ignore_index}, label_smoothing={self.label_smoothing}, options={self.options}"
        )


class BCELoss(_WeightedLoss):
    """The cross entropy of probabilities with targets in [0, 1].

    Input from 0 to 1 and target of one shape; output a number, or of that shape with reduction="none".

    Arguments:
        weight: a weight for each class; None for ones
        size_average: an older name of reduction: False is 'sum'
        reduce: an older name of reduction: False is 'none'
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements

    Example:
        >>> nn.BCELoss()(tp.tensor([0.9, 0.2]), tp.tensor([1.0, 0.0]))
        tensor(0.1643)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """The cross entropy of sigmoid(input) with targets in [0, 1].

    Input of scores and target of one shape; output a number, or of that shape with reduction="none".

    Arguments:
        weight: a weight for each class; None for ones
        size_average: an older name of reduction: False is 'sum'
        reduce: an older name of reduction: False is 'none'
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements
        pos_weight: a weight of positive answers for each class

    Example:
        >>> nn.BCEWithLogitsLoss()(tp.tensor([2.0, -1.0]), tp.tensor([1.0, 0.0]))
        tensor(0.2201)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Old = None,
        reduce: Old = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """The mean over the classes of the cross entropy of sigmoid(input) with targets 0 and 1.

    Input and target (N, C) or (C,); output a number, or (N,) with reduction="none".

    Arguments:
        weight: a weight for each class; None for ones
        size_average: an older name of reduction: False is 'sum'
        reduce: an older name of reduction: False is 'none'
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements

    Example:
        >>> nn.MultiLabelSoftMarginLoss()(tp.tensor([[2.0, -1.0]]), tp.tensor([[1.0, 0.0]]))
        tensor(0.2201)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, weight=self.weight, reduction=self.reduction)


class MultiMarginLoss(_WeightedLoss):
    """The hinge loss of one class of each element against all others.

    Input (N, C) or (C,), target of int64 (N,) or (); output a number, or (N,) with reduction="none".

    Arguments:
        p: 1 or 2: the exponent of the margins
        margin: how far apart two scores have to be
        weight: a weight for each class; None for ones
        size_average: an older name of reduction: False is 'sum'
        reduce: an older name of reduction: False is 'none'
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements

    Raises: ValueError for a p other than 1 or 2, or a weight that is no vector.

    Example:
        >>> nn.MultiMarginLoss()(tp.tensor([[0.5, 0.75, 0.0]]), tp.tensor([0]))
        tensor(0.5833)
    """

    margin: float

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: Old = None,
        reduce: Old = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D instead")
        self.p, self.margin = p, margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(
            input, target, p=self.p, margin=self.margin, weight=self.weight, reduction=self.reduction
        )


class PoissonNLLLoss(_Loss):
    """The negative log-likelihood of counts under a Poisson distribution.

    Input and target of one shape; output a number, or of that shape with reduction="none".

    Arguments:
        log_input: whether the input is the logarithm of the rate
        full: whether the constant term is added
        size_average: an older name of reduction: False is 'sum'
        eps: a small number that keeps divisions in range
        reduce: an older name of reduction: False is 'none'
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements

    Example:
        >>> nn.PoissonNLLLoss()(tp.tensor([0.0, 1.0]), tp.tensor([1.0, 2.0]))
        tensor(0.8591)
    """

    eps: float
    full: bool
    log_input: bool

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: Old = None,
        eps: float = 1e-8,
        reduce: Old = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(
            log_input, target, log_input=self.log_input, full=self.full, eps=self.eps, reduction=self.reduction
        )


class GaussianNLLLoss(_Loss):
    """The negative log-likelihood under normal distributions of given means and variances.

    Input and target of one shape, var of the same or (*, 1); output a number, or of that shape with reduction="none".

    Arguments:
        full: whether the constant term is added
        eps: a small number that keeps divisions in range
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements

    Example:
        >>> nn.GaussianNLLLoss()(tp.tensor([1.0]), tp.tensor([2.0]), tp.tensor([1.0]))
        tensor(0.5000)
    """

    eps: float
    full: bool

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(None, None, reduction)
        self.full, self.eps = full, eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class KLDivLoss(_Loss):
    """The Kullback-Leibler divergence; the input holds logarithms.

    Input of log-probabilities and target of one shape; output a number, or of that shape with reduction="none".

    Arguments:
        size_average: an older name of reduction: False is 'sum'
        reduce: an older name of reduction: False is 'none'
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements
        log_target: whether the target is given as logarithms

    Example:
        >>> nn.KLDivLoss(reduction="batchmean")(tp.tensor([[0.5, 0.5]]).log(), tp.tensor([[0.25, 0.75]]))
        tensor(0.1308)
    """

    def __init__(
        self, size_average: Old = None, reduce: Old = None, reduction: str = "mean", log_target: bool = False
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class HingeEmbeddingLoss(_Loss):
    """The distance where the target is 1, what it lacks to a margin where it is -1.

    Input and target of one shape; output a number, or of that shape with reduction="none".

    Arguments:
        margin: how far apart two scores have to be
        size_average: an older name of reduction: False is 'sum'
        reduce: an older name of reduction: False is 'none'
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements

    Example:
        >>> nn.HingeEmbeddingLoss()(tp.tensor([0.5, 0.25]), tp.tensor([1.0, -1.0]))
        tensor(0.6250)
    """

    def __init__(
        self, margin: float = 1.0, size_average: Old = None, reduce: Old = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """The absolute difference, rounded off below beta.

    Input and target of one shape; output a number, or of that shape with reduction="none".

    Arguments:
        size_average: an older name of reduction: False is 'sum'
        reduce: an older name of reduction: False is 'none'
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements
        beta: the number that shapes the function

    Example:
        >>> nn.SmoothL1Loss()(tp.tensor([1.0, 2.0]), tp.tensor([1.0, 4.0]))
        tensor(0.7500)
    """

    def __init__(
        self, size_average: Old = None, reduce: Old = None, reduction: str = "mean", beta: float = 1.0
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """The squared difference, linear above delta.

    Input and target of one shape; output a number, or of that shape with reduction="none".

    Arguments:
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements

    Raises: TypeError for a delta that is no number.

    Example:
        >>> nn.HuberLoss()(tp.tensor([1.0, 2.0]), tp.tensor([1.0, 4.0]))
        tensor(0.7500)
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        if not isinstance(delta, (int, float)):
            raise TypeError(f"delta must be a float or int, got: {type(delta)}")
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class _PairLoss(_Loss):
    def __init__(
        self, margin: float = 0.0, size_average: Old = None, reduce: Old = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin


class CosineEmbeddingLoss(_PairLoss):
    """1 - cos of the angle where the target is 1, cos above a margin where it is -1.

    Inputs (N, D) or (D,), target (N,) or (); output a number, or as the target with reduction="none".

    Arguments:
        margin: how far apart two scores have to be
        size_average: an older name of reduction: False is 'sum'
        reduce: an older name of reduction: False is 'none'
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements

    Example:
        >>> nn.CosineEmbeddingLoss()(tp.tensor([[1.0, 0.0]]), tp.tensor([[1.0, 1.0]]), tp.tensor([1]))
        tensor(0.2929)
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(_PairLoss):
    """How far two scores are from the order that the target names.

    Inputs and target (N,) or (); output a number, or of that shape with reduction="none".

    Arguments:
        margin: how far apart two scores have to be
        size_average: an older name of reduction: False is 'sum'
        reduce: an older name of reduction: False is 'none'
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements

    Example:
        >>> nn.MarginRankingLoss()(tp.tensor([1.0, 2.0]), tp.tensor([2.0, 1.0]), tp.tensor([1.0, 1.0]))
        tensor(0.5000)
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class TripletMarginLoss(_Loss):
    """By how much less than a margin the positive is nearer to the anchor than the negative.

    Inputs (N, D) or (D,); output a number, or (N,) with reduction="none".

    Arguments:
        margin: how far apart two scores have to be
        p: the order of the norm
        eps: a small number that keeps divisions in range
        swap: whether the negative is compared with the positive too, and the nearer counts
        size_average: an older name of reduction: False is 'sum'
        reduce: an older name of reduction: False is 'none'
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements

    Raises: ValueError for a margin that is not positive.

    Example:
        >>> nn.TripletMarginLoss(margin=4.0)(tp.tensor([[0.0, 0.0]]), tp.tensor([[1.0, 0.0]]), tp.tensor([[0.0, 3.0]]))
        tensor(2.)
    """

    eps: float
    margin: float
    p: float
    swap: bool

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: Old = None,
        reduce: Old = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead")
        self.margin, self.p, self.eps, self.swap = margin, p, eps, swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            swap=self.swap,
            reduction=self.reduction,
        )


class TripletMarginWithDistanceLoss(_Loss):
    """TripletMarginLoss with a distance of the caller's.

    Inputs (N, D) or (D,); output a number, or (N,) with reduction="none".

    Arguments:
        distance_function: a function of two tensors that gives distances; None takes the Euclidean one
        margin: how far apart two scores have to be
        swap: whether the negative is compared with the positive too, and the nearer counts
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements

    Raises: ValueError for a margin that is not positive.

    Example:
        >>> anchor, near, far = tp.tensor([[0.0, 0.0]]), tp.tensor([[1.0, 0.0]]), tp.tensor([[0.0, 3.0]])
        >>> nn.TripletMarginWithDistanceLoss(margin=4.0)(anchor, near, far)
        tensor(2.)
    """

    margin: float
    swap: bool

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise ValueError(
                f"TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {margin} instead"
            )
        self.distance_function: Any = PairwiseDistance() if distance_function is None else distance_function
        self.margin, self.swap = margin, swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


class CTCLoss(_Loss):
    """Connectionist temporal classification: a sequence against a shorter one, over all alignments (Graves 2006).

    log_probs (T, N, C) or (T, C), targets (N, S) or all after each other; output a number, or (N,) with
    reduction="none".

    Arguments:
        blank: the class that stands for no label
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements
        zero_infinity: whether infinite losses and their gradients are zero

    Example:
        >>> log_probs = tp.randn(12, 2, 5).log_softmax(2)
        >>> nn.CTCLoss()(log_probs, tp.tensor([[1, 2, 2], [3, 4, 1]]), tp.tensor([12, 12]), tp.tensor([3, 2])).shape
        tensorpy.Size([])
    """

    blank: int
    zero_infinity: bool

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any) -> Tensor:
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )
