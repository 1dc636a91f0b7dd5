"""Functions of neural networks with the signatures that PyTorch's users know, thin over the operators.

What a signature adds to an operator is done here and in the modules beside it, and nowhere else: `reduction` as a word,
sizes left out, a probability checked, an `inplace` flag.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any

from tensorpy import _C
from tensorpy._C import bilinear as bilinear
from tensorpy._C import conv1d as conv1d
from tensorpy._C import conv2d as conv2d
from tensorpy._C import conv3d as conv3d
from tensorpy._C import conv_transpose1d as conv_transpose1d
from tensorpy._C import conv_transpose2d as conv_transpose2d
from tensorpy._C import conv_transpose3d as conv_transpose3d
from tensorpy._C import cosine_similarity as cosine_similarity
from tensorpy._C import pairwise_distance as pairwise_distance
from tensorpy._C import pdist as pdist
from tensorpy._package import proposing as _proposing
from tensorpy._tensor.torch_function import (  # noqa: F401  (programs take them from here too)
    handle_torch_function,
    has_torch_function,
    has_torch_function_unary,
    has_torch_function_variadic,
    make_overridable,
)
from tensorpy.autograd.forward_ad import _set_fwd_grad_enabled
from tensorpy.autograd.grad_mode import no_grad
from tensorpy.nn import grad  # noqa: F401  (programs take them from here too)
from tensorpy.nn._activation import *  # noqa: F403
from tensorpy.nn._attention import *  # noqa: F403
from tensorpy.nn._attention import _canonical_mask as _canonical_mask
from tensorpy.nn._attention import _in_projection as _in_projection
from tensorpy.nn._attention import _in_projection_packed as _in_projection_packed
from tensorpy.nn._attention import _none_or_dtype as _none_or_dtype
from tensorpy.nn._common import nn, ops
from tensorpy.nn._grouped import *  # noqa: F403
from tensorpy.nn._loss import *  # noqa: F403
from tensorpy.nn._norm import *  # noqa: F403
from tensorpy.nn._pooling import *  # noqa: F403
from tensorpy.nn._vision import *  # noqa: F403

if TYPE_CHECKING:
    from tensorpy import Tensor

# ---- linear maps and convolutions: the operators' own signatures ----

linear = _C._nn.linear
scaled_dot_product_attention = _C._nn.scaled_dot_product_attention
native_channel_shuffle = _C.channel_shuffle


class _BroadcastingList:
    """For annotations: `BroadcastingList2[int]` is an int, or two of them."""

    def __getitem__(self, kind: object) -> None:
        return None


BroadcastingList1: Any
BroadcastingList2: Any
BroadcastingList3: Any
BroadcastingList1, BroadcastingList2, BroadcastingList3 = (_BroadcastingList() for _ in range(3))


# ---- dropout ----


def _check_probability(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes elements with probability p and scales the others by 1 / (1 - p), while training.

    Arguments:
        input: the tensor
        p: the probability of a zero
        training: whether the module is in training
        inplace: whether the result is written to the input

    Returns: a tensor of the input's shape, input itself if inplace.

    Raises: ValueError for a p outside [0, 1].

    Example:
        >>> F.dropout(tp.ones(1, 2, 2), 0.5, training=False)
        tensor([[[1., 1.],
                 [1., 1.]]])
    """
    _check_probability(p)
    return ops.dropout_(input, p, training) if inplace else ops.dropout(input, p, training)


def _feature_dropout(name: str, dims: int) -> Callable[..., Tensor]:
    def function(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        """Zeroes whole channels with probability p and scales the others by 1 / (1 - p), while training.

        Arguments:
            input: the tensor, with a batch or without: (N, C, ...) or (C, ...)
            p: the probability of a zero
            training: whether the module is in training; False gives the input
            inplace: whether the result is written to the input

        Returns: a tensor of the input's shape, input itself if inplace.

        Raises: ValueError for a p outside [0, 1].

        Example:
            >>> tp.equal(F.dropout2d(tp.ones(1, 2, 3, 3), 0.0), tp.ones(1, 2, 3, 3))
            True
        """
        _check_probability(p)
        if input.dim() not in (dims + 1, dims + 2):
            if dims == 1:
                raise RuntimeError(f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input.")
            warnings.warn(
                f"{name}: Received a {input.dim()}-D input to {name}, which is deprecated and will result in an error "
                "in a future release",
                stacklevel=2,
            )
        elif dims == 2 and input.dim() == 3:
            warnings.warn(
                "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is "
                "desired: it is (N, C, L), and may be (C, H, W) in a later version. dropout1d stays as it is",
                stacklevel=2,
            )
        single = input.dim() == dims + 1 and dims != 2  # without a batch; dropout2d takes three dimensions as (N, C, L)
        given = input.unsqueeze_(0) if single and inplace else input.unsqueeze(0) if single else input
        result = (ops.feature_dropout_ if inplace else ops.feature_dropout)(given, p, training)
        return (result.squeeze_(0) if inplace else result.squeeze(0)) if single else result

    function.__name__ = function.__qualname__ = name
    return function


dropout1d: Callable[..., Tensor]
dropout2d: Callable[..., Tensor]
dropout3d: Callable[..., Tensor]
dropout1d, dropout2d, dropout3d = (_feature_dropout(f"dropout{n}d", n) for n in (1, 2, 3))


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps the mean and variance of self-normalising networks.

    Arguments:
        input: the tensor
        p: the probability of a zero
        training: whether the module is in training
        inplace: whether the result is written to the input

    Returns: a tensor of the input's shape, input itself if inplace.

    Raises: ValueError for a p outside [0, 1].

    Example:
        >>> F.alpha_dropout(tp.ones(1, 2, 2), 0.5, training=False)
        tensor([[[1., 1.],
                 [1., 1.]]])
    """
    _check_probability(p)
    return ops.alpha_dropout_(input, p, training) if inplace else ops.alpha_dropout(input, p, training)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """alpha_dropout of whole channels.

    Arguments:
        input: the tensor
        p: the probability of a zero
        training: whether the module is in training
        inplace: whether the result is written to the input

    Returns: a tensor of the input's shape, input itself if inplace.

    Raises: ValueError for a p outside [0, 1].

    Example:
        >>> F.feature_alpha_dropout(tp.ones(1, 2, 2), 0.5, training=False)
        tensor([[[1., 1.],
                 [1., 1.]]])
    """
    _check_probability(p)
    return (ops.feature_alpha_dropout_ if inplace else ops.feature_alpha_dropout)(input, p, training)


# ---- embeddings and borders ----


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of `weight` by index; the row `padding_idx` gets no gradient. Rows longer than max_norm are shortened. With
    `sparse` the gradient of the weight is a sparse tensor of the rows that were taken.

    Arguments:
        input: the indices, int64 or int32, of any shape
        weight: the table, (num_embeddings, embedding_dim)
        padding_idx: a row that stays as it is, zeros at first
        max_norm: the largest norm that is left as it is
        norm_type: which norm: 2 the Euclidean one
        scale_grad_by_freq: whether gradients are divided by how often an index occurs
        sparse: whether the gradient is sparse

    Returns: a tensor (*, embedding_dim), a row for each index.

    Raises: IndexError for an index out of range, AssertionError for such a padding_idx.

    Example:
        >>> F.embedding(tp.tensor([1, 0, 1]), tp.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor([[3., 4.],
                [1., 2.],
                [3., 4.]])
    """
    if padding_idx is not None and not -weight.shape[0] <= padding_idx < weight.shape[0]:
        raise AssertionError("Padding_idx must be within num_embeddings")
    if max_norm is not None:
        input = input.contiguous()
        with no_grad(), _set_fwd_grad_enabled(False):
            ops.embedding_renorm_(weight, input, max_norm, norm_type)
    index = -1 if padding_idx is None else padding_idx % weight.shape[0]
    if sparse and weight.requires_grad:
        from tensorpy.sparse._gradients import embedding as with_sparse_gradient

        return with_sparse_gradient(weight, input, index, scale_grad_by_freq)
    return ops.embedding(weight, input, index, scale_grad_by_freq)


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Sums, means or maxima of bags of rows: the rows of a matrix of indices, or parts of a vector that begin at
    offsets. Indices equal to padding_idx do not count; an empty bag is zero.

    Arguments:
        input: the tensor
        weight: the table, (num_embeddings, embedding_dim)
        max_norm: the largest norm that is left as it is
        norm_type: which norm: 2 the Euclidean one
        scale_grad_by_freq: whether gradients are divided by how often an index occurs
        mode: 'sum', 'mean' or 'max'
        sparse: whether the gradient is sparse
        per_sample_weights: a weight for each index; only with sums
        include_last_offset: whether offsets ends with the number of indices
        padding_idx: a row that stays as it is, zeros at first

    Returns: a tensor (bags, embedding_dim).

    Raises: ValueError for an unknown mode or shapes that do not fit, NotImplementedError for weights of samples with
        another mode than "sum".

    Example:
        >>> F.embedding_bag(tp.tensor([[0, 1], [1, 1]]), tp.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor([[2., 3.],
                [3., 4.]])
    """
    if weight.dtype == ops.int64 and input.is_floating_point():
        warnings.warn(
            "embedding_bag: the arguments are now (input, weight, offsets); (weight, input, offsets) was their order "
            "once, and is taken so. It is deprecated.",
            stacklevel=2,
        )
        weight, input = input, weight
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            f"embedding_bag: per_sample_weights was given, but it is only supported for mode='sum' (got mode='{mode}')"
        )
    if input.is_nested and input.dim() == 2:
        offsets, include_last_offset = ops._nested_get_offsets(input.contiguous()), True
        input = input.contiguous().values()
    if weight.dim() != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    if input.dim() not in (1, 2):
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if input.dim() == 2 and offsets is not None:
        raise ValueError("if input is 2D, then offsets has to be None, as input is treated as a mini-batch")
    if input.dim() == 1 and (offsets is None or offsets.dim() != 1):
        raise ValueError("offsets has to be a 1D Tensor if input is 1D")
    if per_sample_weights is not None and per_sample_weights.shape != input.shape:
        raise ValueError(
            f"embedding_bag: per_sample_weights of shape {tuple(per_sample_weights.shape)} must have the same shape as "
            f"the input, {tuple(input.shape)}"
        )
    if input.dim() == 2:
        offsets = ops.arange(0, input.numel(), max(input.shape[1], 1), dtype=input.dtype, device=input.device)
        include_last_offset = False
        input = input.reshape(-1)
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if max_norm is not None:
        with no_grad(), _set_fwd_grad_enabled(False):
            ops.embedding_renorm_(weight, input.contiguous(), max_norm, norm_type)
    each = None if per_sample_weights is None else per_sample_weights.reshape(-1)
    how = ("sum", "mean", "max").index(mode)
    if sparse and weight.requires_grad:
        from tensorpy.sparse._gradients import embedding_bag as with_sparse_gradient

        bags = (offsets, how, include_last_offset, padding_idx and padding_idx % weight.shape[0])
        return with_sparse_gradient(weight, each, input, bags, scale_grad_by_freq)
    return ops.embedding_bag(
        weight, input, offsets, scale_grad_by_freq, how, sparse, each, include_last_offset, padding_idx
    )[0]


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """A last dimension that is one at the class index and zero elsewhere.

    Arguments:
        tensor: the classes, int64, of any shape
        num_classes: how many classes there are; -1 takes the largest and one

    Returns: a tensor of int64, (*, num_classes).

    Raises: RuntimeError for an index that is negative or not below num_classes.

    Example:
        >>> F.one_hot(tp.tensor([0, 2]), 3)
        tensor([[1, 0, 0],
                [0, 0, 1]])
    """
    return nn.one_hot(tensor, num_classes) if hasattr(nn, "one_hot") else ops.one_hot(tensor, num_classes)


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Borders around the last dimensions, in pairs from the last one on.

    Arguments:
        input: the tensor
        pad: how many elements are added, from the last dimension: (left, right, top, bottom, ...)
        mode: 'constant', 'reflect', 'replicate' or 'circular'
        value: the value of the padding; None for 0

    Returns: a tensor.

    Raises: RuntimeError for an odd number of borders or more than the input has, NotImplementedError for a mode that
        does not take as many.

    Example:
        >>> F.pad(tp.tensor([[1.0, 2.0, 3.0]]), (1, 1), mode="reflect")
        tensor([[2., 1., 2., 3., 2.]])
    """
    return nn.pad(input, pad, mode, value)


def _make_overridable() -> None:
    """Every function here that is written in Python, also where it is defined."""
    for name, function in list(globals().items()):
        own = isinstance(function, FunctionType) and function.__globals__["__package__"] == __package__
        if own and not name.startswith("_"):
            make_overridable(function.__globals__, (function.__name__,))
            globals()[name] = function.__globals__[function.__name__]


_make_overridable()

if not TYPE_CHECKING:
    __getattr__ = _proposing("nn.functional", globals())
