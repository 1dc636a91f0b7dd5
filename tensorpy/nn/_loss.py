"""Losses."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tensorpy.nn._common import legacy, nn, ops, reduce_by, reduction_of

if TYPE_CHECKING:
    from tensorpy import Tensor

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "cross_entropy",
    "ctc_loss",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "linear_cross_entropy",
    "margin_ranking_loss",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood of class indices.

    Arguments:
        input: logarithms of probabilities, (N, C) or (N, C, d1, ...); floats
        target: class indices, int64, (N,) or (N, d1, ...)
        weight: a weight for each class, (C,); None for ones
        size_average: an older name of reduction: False is 'sum'
        ignore_index: a class of target that counts for nothing
        reduce: an older name of reduction: False is 'none'
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements

    Returns: a tensor: a number, or with reduction="none" (N, d1, ...), one for each choice.

    Raises: ValueError for a batch size other than the target's, IndexError for a class out of range.

    Example:
        >>> F.nll_loss(tp.tensor([[0.5, 0.5], [0.25, 0.75]]).log(), tp.tensor([0, 1]))
        tensor(0.4904)
    """
    return nn.nll_loss_nd(input, target, weight, legacy(size_average, reduce, reduction), ignore_index)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross entropy of unnormalised scores with class indices or class probabilities.

    Arguments:
        input: unnormalised scores, (N, C) or (N, C, d1, ...); (C,) without a batch; floats
        target: class indices, int64, (N,) or (N, d1, ...); or probabilities, of the input's shape
        weight: a weight for each class, (C,); None for ones
        size_average: an older name of reduction: False is 'sum'
        ignore_index: a class of target that counts for nothing
        reduce: an older name of reduction: False is 'none'
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements
        label_smoothing: from 0 to 1: how much of the target is spread over all classes

    Returns: a tensor: a number, or with reduction="none" (N, d1, ...), one for each choice.

    Raises: ValueError for a batch size other than the target's, IndexError for a class out of range, RuntimeError for
        shapes that do not fit.

    Example:
        >>> F.cross_entropy(tp.tensor([[2.0, 0.0, 1.0]]), tp.tensor([0]))
        tensor(0.4076)
        >>> F.cross_entropy(tp.tensor([[2.0, 0.0]]), tp.tensor([[0.25, 0.75]]))
        tensor(1.6269)
    """
    how = legacy(size_average, reduce, reduction)
    return nn.cross_entropy_loss(input, target, weight, how, ignore_index, label_smoothing)


def _warn_of_sizes(input: Tensor, target: Tensor) -> None:
    """Losses by element broadcast; a target of other sizes is most often a mistake."""
    if input.shape == target.shape:
        return
    warnings.warn(
        f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). This will likely "
        "lead to incorrect results due to broadcasting. Please ensure they have the same size.",
        stacklevel=3,
    )


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The squared difference.

    Arguments:
        input: the tensor
        target: what is wanted, of the input's shape
        size_average: an older name of reduction: False is 'sum'
        reduce: an older name of reduction: False is 'none'
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements
        weight: a weight for each class or element; None for ones

    Returns: a tensor: a number, or with reduction="none" one for each element.

    Raises: RuntimeError for shapes that do not broadcast, ValueError for a weight of another shape than the input's.

    Example:
        >>> F.mse_loss(tp.tensor([1.0, 2.0]), tp.tensor([1.0, 4.0]))
        tensor(2.)
    """
    _warn_of_sizes(input, target)
    how = legacy(size_average, reduce, reduction)
    return nn.mse_loss(input, target, how) if weight is None else _weighted(nn.mse_loss, input, target, weight, how)


def _weighted(losses: Callable[..., Tensor], input: Tensor, target: Tensor, weight: Tensor, how: int) -> Tensor:
    """Losses times weights; their mean is that of the weights."""
    if weight.shape != input.shape:
        raise ValueError(f"Weights and input must have the same size. Got {weight.shape} and {input.shape}")
    loss = losses(input, target, 0) * weight
    return loss if how == 0 else loss.sum() if how == 2 else loss.sum() / weight.sum()


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The absolute difference.

    Arguments:
        input: the tensor
        target: what is wanted, of the input's shape
        size_average: an older name of reduction: False is 'sum'
        reduce: an older name of reduction: False is 'none'
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements
        weight: a weight for each element, of the input's shape; None for ones

    Returns: a tensor: a number, or with reduction="none" one for each element.

    Raises: ValueError for a weight of another shape.

    Example:
        >>> F.l1_loss(tp.tensor([1.0, 2.0]), tp.tensor([1.0, 4.0]))
        tensor(1.)
    """
    _warn_of_sizes(input, target)
    how = legacy(size_average, reduce, reduction)
    return nn.l1_loss(input, target, how) if weight is None else _weighted(nn.l1_loss, input, target, weight, how)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """The absolute difference, rounded off below beta.

    Arguments:
        input: the tensor
        target: what is wanted, of the input's shape
        size_average: an older name of reduction: False is 'sum'
        reduce: an older name of reduction: False is 'none'
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements
        beta: the number that shapes the function

    Returns: a tensor: a number, or with reduction="none" one for each element.

    Raises: RuntimeError for a negative beta.

    Example:
        >>> F.smooth_l1_loss(tp.tensor([1.0, 2.0]), tp.tensor([1.0, 4.0]))
        tensor(0.7500)
    """
    _warn_of_sizes(input, target)
    return nn.smooth_l1_loss(input, target, legacy(size_average, reduce, reduction), beta)


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """The squared difference, linear above delta; `weight` is one per element.

    Arguments:
        input: the tensor
        target: what is wanted, of the input's shape
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements
        weight: a weight for each element; None for ones

    Returns: a tensor: a number, or with reduction="none" one for each element.

    Raises: ValueError for a weight of another shape.

    Example:
        >>> F.huber_loss(tp.tensor([1.0, 2.0]), tp.tensor([1.0, 4.0]))
        tensor(0.7500)
    """
    _warn_of_sizes(input, target)
    how = reduction_of(reduction)
    if weight is None:
        return nn.huber_loss(input, target, how, delta)
    if weight.shape != input.shape:
        raise ValueError(f"huber_loss: weight {tuple(weight.shape)} and input {tuple(input.shape)} differ in size")
    return reduce_by(nn.huber_loss(input, target, reduction_of("none"), delta) * weight, how)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The cross entropy of probabilities with targets in [0, 1].

    Arguments:
        input: the tensor
        target: what is wanted, of the input's shape
        weight: a weight for each class or element; None for ones
        size_average: an older name of reduction: False is 'sum'
        reduce: an older name of reduction: False is 'none'
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements

    Returns: a tensor: a number, or with reduction="none" one for each element.

    Raises: ValueError for a target of another shape, RuntimeError for an input outside [0, 1].

    Example:
        >>> F.binary_cross_entropy(tp.tensor([0.9, 0.2]), tp.tensor([1.0, 0.0]))
        tensor(0.1643)
    """
    if input.shape != target.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    return nn.binary_cross_entropy(input, target, weight, legacy(size_average, reduce, reduction))


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """The cross entropy of sigmoid(input) with targets in [0, 1].

    Arguments:
        input: the tensor
        target: what is wanted, of the input's shape
        weight: a weight for each class or element; None for ones
        size_average: an older name of reduction: False is 'sum'
        reduce: an older name of reduction: False is 'none'
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements
        pos_weight: a weight of positive answers for each class

    Returns: a tensor: a number, or with reduction="none" one for each element.

    Raises: ValueError for a target of another shape.

    Example:
        >>> F.binary_cross_entropy_with_logits(tp.tensor([2.0, -1.0]), tp.tensor([1.0, 0.0]))
        tensor(0.2201)
    """
    if input.shape != target.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    how = legacy(size_average, reduce, reduction)
    return ops.binary_cross_entropy_with_logits(input, target, weight, pos_weight, how)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """The Kullback-Leibler divergence; `input` holds logarithms.

    Arguments:
        input: the tensor
        target: what is wanted, of the input's shape
        size_average: an older name of reduction: False is 'sum'
        reduce: an older name of reduction: False is 'none'
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements
        log_target: whether the target is given as logarithms

    Returns: a tensor: a number, or with reduction="none" one for each element.

    Example:
        >>> F.kl_div(tp.tensor([[0.5, 0.5]]).log(), tp.tensor([[0.25, 0.75]]), reduction="batchmean")
        tensor(0.1308)
    """
    if reduction == "batchmean" and size_average is None and reduce is None:
        total = ops.kl_div(input, target, 2, log_target=log_target)
        return total / input.shape[0] if input.dim() else total
    if reduction == "mean" and size_average is None and reduce is None:
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size; 'batchmean' divides "
            "by the batch size only, and is the divergence by its definition",
            stacklevel=2,
        )
    return ops.kl_div(input, target, legacy(size_average, reduce, reduction), log_target=log_target)


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The distance where the target is 1, what it lacks to a margin where it is -1.

    Arguments:
        input: the tensor
        target: what is wanted, of the input's shape
        margin: how far apart two scores have to be
        size_average: an older name of reduction: False is 'sum'
        reduce: an older name of reduction: False is 'none'
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements

    Returns: a tensor: a number, or with reduction="none" one for each element.

    Example:
        >>> F.hinge_embedding_loss(tp.tensor([0.5, 0.25]), tp.tensor([1.0, -1.0]))
        tensor(0.6250)
    """
    return ops.hinge_embedding_loss(input, target, margin, legacy(size_average, reduce, reduction))


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """How far two scores are from the order that the target names.

    Arguments:
        input1: the first tensor
        input2: the second tensor
        target: what is wanted, of the input's shape
        margin: how far apart two scores have to be
        size_average: an older name of reduction: False is 'sum'
        reduce: an older name of reduction: False is 'none'
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements

    Returns: a tensor: a number, or with reduction="none" one for each element.

    Raises: RuntimeError for inputs of different numbers of dimensions.

    Example:
        >>> F.margin_ranking_loss(tp.tensor([1.0, 2.0]), tp.tensor([2.0, 1.0]), tp.tensor([1.0, 1.0]))
        tensor(0.5000)
    """
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    return ops.margin_ranking_loss(input1, input2, target, margin, legacy(size_average, reduce, reduction))


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The logistic loss of scores whose targets are 1 or -1.

    Arguments:
        input: the tensor
        target: what is wanted, of the input's shape
        size_average: an older name of reduction: False is 'sum'
        reduce: an older name of reduction: False is 'none'
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements

    Returns: a tensor: a number, or with reduction="none" one for each element.

    Example:
        >>> F.soft_margin_loss(tp.tensor([2.0, -1.0]), tp.tensor([1.0, -1.0]))
        tensor(0.2201)
    """
    return nn.soft_margin_loss(input, target, legacy(size_average, reduce, reduction))


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over the classes of the cross entropy of sigmoid(input) with targets 0 and 1.

    Arguments:
        input: the tensor
        target: what is wanted, of the input's shape
        weight: a weight for each class or element; None for ones
        size_average: an older name of reduction: False is 'sum'
        reduce: an older name of reduction: False is 'none'
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements

    Returns: a tensor: a number, or with reduction="none" (N,).

    Example:
        >>> F.multilabel_soft_margin_loss(tp.tensor([[2.0, -1.0]]), tp.tensor([[1.0, 0.0]]))
        tensor(0.2201)
    """
    if size_average is None and reduce is None:
        how = reduction_of(reduction, "is not valid: reduction")
    else:
        how = legacy(size_average, reduce, reduction)
    return ops._multilabel_soft_margin_loss(input, target, weight, how)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """By how much less than a margin the positive is nearer to the anchor than the negative.

    Arguments:
        anchor: what the others are compared with, (N, D)
        positive: what is near to the anchor, (N, D)
        negative: what is far from the anchor, (N, D)
        margin: how far apart two scores have to be
        p: the order of the norm
        eps: a small number that keeps divisions in range
        swap: whether the negative is compared with the positive too, and the nearer counts
        size_average: an older name of reduction: False is 'sum'
        reduce: an older name of reduction: False is 'none'
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements

    Returns: a tensor: a number, or with reduction="none" (N,).

    Raises: ValueError for a margin that is not positive.

    Example:
        >>> F.triplet_margin_loss(tp.tensor([[0.0, 0.0]]), tp.tensor([[1.0, 0.0]]), tp.tensor([[0.0, 3.0]]), margin=4.0)
        tensor(2.)
    """
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    how = legacy(size_average, reduce, reduction)
    return ops.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, how)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """triplet_margin_loss with a distance of the caller's.

    Arguments:
        anchor: what the others are compared with, (N, D)
        positive: what is near to the anchor, (N, D)
        negative: what is far from the anchor, (N, D)
        distance_function: a function of two tensors that gives distances; None takes the Euclidean one
        margin: how far apart two scores have to be
        swap: whether the negative is compared with the positive too, and the nearer counts
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements

    Returns: a tensor: a number, or with reduction="none" (N,).

    Raises: ValueError for a margin that is not positive, RuntimeError for different numbers of dimensions.

    Example:
        >>> anchor, near, far = tp.tensor([[0.0, 0.0]]), tp.tensor([[1.0, 0.0]]), tp.tensor([[0.0, 3.0]])
        >>> F.triplet_margin_with_distance_loss(anchor, near, far, margin=4.0)
        tensor(2.)
    """
    how = reduction_of(reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.dim()}D, positive {positive.dim()}D, and negative {negative.dim()}D inputs"
        )
    distance = distance_function or ops.pairwise_distance
    far = distance(anchor, negative)
    if swap:
        far = ops.minimum(far, distance(positive, negative))
    return reduce_by((margin + distance(anchor, positive) - far).clamp_min(0), how)


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cos of the angle where the target is 1, cos above a margin where it is -1.

    Arguments:
        input1: the first tensor
        input2: the second tensor
        target: what is wanted, of the input's shape
        margin: how far apart two scores have to be
        size_average: an older name of reduction: False is 'sum'
        reduce: an older name of reduction: False is 'none'
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements

    Returns: a tensor: a number, or with reduction="none" one for each pair.

    Example:
        >>> F.cosine_embedding_loss(tp.tensor([[1.0, 0.0]]), tp.tensor([[1.0, 1.0]]), tp.tensor([1]))
        tensor(0.2929)
    """
    return ops.cosine_embedding_loss(input1, input2, target, margin, legacy(size_average, reduce, reduction))


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood of counts under a Poisson distribution.

    Arguments:
        input: the tensor
        target: what is wanted, of the input's shape
        log_input: whether the input is the logarithm of the rate
        full: whether the constant term is added
        size_average: an older name of reduction: False is 'sum'
        eps: a small number that keeps divisions in range
        reduce: an older name of reduction: False is 'none'
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements

    Returns: a tensor: a number, or with reduction="none" one for each element.

    Raises: ValueError for an unknown reduction.

    Example:
        >>> F.poisson_nll_loss(tp.tensor([0.0, 1.0]), tp.tensor([1.0, 2.0]))
        tensor(0.8591)
    """
    return ops.poisson_nll_loss(input, target, log_input, full, eps, legacy(size_average, reduce, reduction))


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood under normal distributions with means `input` and variances `var`.

    Arguments:
        input: the tensor
        target: what is wanted, of the input's shape
        full: whether the constant term is added
        eps: a small number that keeps divisions in range
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements

    Returns: a tensor: a number, or with reduction="none" one for each element.

    Raises: ValueError for a var of a wrong size or with negative entries.

    Example:
        >>> F.gaussian_nll_loss(tp.tensor([1.0]), tp.tensor([2.0]), tp.tensor([1.0]))
        tensor(0.5000)
    """
    how = reduction_of(reduction, "is not valid: reduction")
    spread: Any = ops.full_like(input, var) if isinstance(var, (int, float)) else var
    if spread.shape != input.shape:
        if input.shape[:-1] == spread.shape:
            spread = spread.unsqueeze(-1)
        elif not (input.shape[:-1] == spread.shape[:-1] and spread.shape[-1] == 1) and any(
            have not in (1, want) for have, want in zip(spread.shape, input.shape, strict=False)
        ):
            raise ValueError("var is of incorrect size")
    if bool((spread < 0).any()):
        raise ValueError("var has negative entry/entries")
    return ops._gaussian_nll_loss(input, target, spread, full, eps, how)


def _check_linear(input: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    """Whether an input fits a weight of (classes, further dimensions, features)."""
    if input.dim() not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if weight.dim() < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {weight.dim()}")
    features = input.shape[-1]
    if features != weight.shape[-1]:
        raise RuntimeError(
            f"expected equal input and linear_weight last dimensions (in_features), got {features} and "
            f"{weight.shape[-1]}, respectively"
        )
    if bias is not None and bias.shape != weight.shape[:-1]:
        raise RuntimeError(f"expected linear_bias shape {tuple(weight.shape[:-1])}, got {tuple(bias.shape)}")
    if weight.dim() > 2 and input.dim() == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(weight.shape)} requires batched input, "
            f"(N, {features}), got unbatched input with shape {tuple(input.shape)}"
        )


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """The cross entropy of a linear map's scores; a weight of more than two dimensions gives scores of several, the
    classes first. `options` are about memory: there is one way to compute it.

    Arguments:
        input: the tensor
        linear_weight: the weights of the last layer, (C, D)
        target: what is wanted, of the input's shape
        linear_bias: its biases, (C,), or None
        weight: the weights of the linear map
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements
        ignore_index: a class of target that counts for nothing
        label_smoothing: from 0 to 1: how much of the target is spread over all classes
        options: how the work is cut into parts

    Returns: a tensor: a number, or with reduction="none" one for each choice.

    Example:
        >>> F.linear_cross_entropy(tp.ones(2, 4), tp.ones(3, 4), tp.tensor([0, 2]))
        tensor(1.0986)
    """
    _check_linear(input, linear_weight, linear_bias)
    if target.is_floating_point() and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    ignored = -100 if ignore_index is None else ignore_index
    bias = None if linear_bias is None else linear_bias.flatten()
    scores = nn.linear(input, linear_weight.flatten(0, -2), bias)
    if linear_weight.dim() > 2:
        scores = scores.unflatten(-1, linear_weight.shape[:-1])
    return cross_entropy(
        scores, target, weight, ignore_index=ignored, reduction=reduction, label_smoothing=label_smoothing
    )


# ---- one or several classes against all others ----


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The hinge loss of one class of each element against all others.

    Arguments:
        input: scores, (N, C)
        target: class indices, int64, (N,)
        p: 1 or 2: the exponent of the margins
        margin: how far apart two scores have to be
        weight: a weight for each class, (C,); None for ones
        size_average: an older name of reduction: False is 'sum'
        reduce: an older name of reduction: False is 'none'
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements

    Returns: a tensor: a number, or with reduction="none" (N,).

    Raises: ValueError for a p other than 1 or 2, or a weight that is no vector.

    Example:
        >>> F.multi_margin_loss(tp.tensor([[0.5, 0.75, 0.0]]), tp.tensor([0]))
        tensor(0.5833)
    """
    how = legacy(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    return nn.multi_margin_loss(input, target, p, margin, weight, how)


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The hinge loss of several classes of each element, listed up to the first -1, against all others.

    Arguments:
        input: the tensor
        target: what is wanted, of the input's shape
        size_average: an older name of reduction: False is 'sum'
        reduce: an older name of reduction: False is 'none'
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements

    Returns: a tensor: a number, or with reduction="none" (N,).

    Example:
        >>> F.multilabel_margin_loss(tp.tensor([[0.5, 0.25, 0.75]]), tp.tensor([[2, 0, -1]]))
        tensor(0.4167)
    """
    how = legacy(size_average, reduce, reduction)
    return nn.multilabel_margin_loss(input, target, how)


# ---- a sequence against a shorter one ----


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """The negative logarithm of the probability of all alignments of the targets with (time, batch, class)
    log-probabilities (Graves et al. 2006). The targets are one row each, or one after the other.

    Arguments:
        log_probs: the logarithms of probabilities, (T, N, C)
        targets: the labels, (N, S), or all in one dimension
        input_lengths: how long each sequence of log_probs is
        target_lengths: how long each target is
        blank: the class that stands for no label
        reduction: 'mean', 'sum' or 'none': what becomes of the losses of the elements
        zero_infinity: whether infinite losses and their gradients are zero

    Returns: a tensor: a number, or with reduction="none" one for each sequence.

    Raises: RuntimeError for lengths or a blank that do not fit.

    Example:
        >>> log_probs = tp.randn(12, 2, 5).log_softmax(2)
        >>> F.ctc_loss(log_probs, tp.tensor([[1, 2, 2], [3, 4, 1]]), tp.tensor([12, 12]), tp.tensor([3, 2])).shape
        tensorpy.Size([])
    """
    how = reduction_of(reduction)
    return ops.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, how, zero_infinity)
