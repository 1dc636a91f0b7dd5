"""Functions of neural networks with the signatures that PyTorch's users know, thin over the operators.

What a signature adds to an operator is done here and nowhere else: `reduction` as a word, sizes left out, a probability
checked, an `inplace` flag.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tensorpy import _C

if TYPE_CHECKING:
    from tensorpy import Tensor

_nn: Any = _C._nn
_ops: Any = _C

Size = int | Sequence[int]

_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def _reduction(word: str) -> int:
    if word not in _REDUCTIONS:
        raise ValueError(f"{word} is not a valid value for reduction; it is one of {', '.join(_REDUCTIONS)}")
    return _REDUCTIONS[word]


def _stride(stride: Size | None) -> Size:
    return [] if stride is None else stride


# ---- linear maps and convolutions: the operators' own signatures ----

linear = _nn.linear
conv1d, conv2d, conv3d = _ops.conv1d, _ops.conv2d, _ops.conv3d
conv_transpose1d, conv_transpose2d, conv_transpose3d = (
    _ops.conv_transpose1d,
    _ops.conv_transpose2d,
    _ops.conv_transpose3d,
)


# ---- pooling ----


def max_pool2d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of each window; with `return_indices` also its place in the plane."""
    if return_indices:
        return max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    return _ops.max_pool2d(input, kernel_size, _stride(stride), padding, dilation, ceil_mode)


def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """The largest element of each window, and its place in the plane."""
    return _nn.max_pool2d_with_indices(input, kernel_size, _stride(stride), padding, dilation, ceil_mode)


def avg_pool2d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window."""
    return _nn.avg_pool2d(input, kernel_size, _stride(stride), padding, ceil_mode, count_include_pad, divisor_override)


def adaptive_avg_pool2d(input: Tensor, output_size: int | Sequence[int | None]) -> Tensor:
    """Means over windows that divide each plane into `output_size` parts; None keeps a dimension."""
    if not isinstance(output_size, int):
        given = zip(output_size, input.shape[-2:], strict=True)
        output_size = [size if wanted is None else wanted for wanted, size in given]
    return _nn.adaptive_avg_pool2d(input, output_size)


# ---- activations ----


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """The larger of zero and each element."""
    return _ops.relu_(input) if inplace else _ops.relu(input)


def _with_inplace(name: str, inplace: bool, *args: Any) -> Any:
    module = _nn if hasattr(_nn, name) else _ops
    return getattr(module, name + "_" if inplace else name)(*args)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Each element clamped to [0, 6]."""
    return _with_inplace("hardtanh", inplace, input, 0.0, 6.0)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Negative elements times a slope."""
    return _with_inplace("leaky_relu", inplace, input, negative_slope)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Negative elements as alpha * (exp(x) - 1)."""
    return _with_inplace("elu", inplace, input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """The self-normalising elu."""
    return _with_inplace("elu", inplace, input, 1.6732632423543772, 1.0507009873554805)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """The elu whose slope is continuous for every alpha."""
    return _with_inplace("elu", inplace, input, alpha, 1.0, 1.0 / alpha)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """Each element times the normal distribution function at it."""
    return _nn.gelu(input, approximate=approximate)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Each element times its sigmoid."""
    return _with_inplace("silu", inplace, input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Each element times the tanh of its softplus."""
    return _with_inplace("mish", inplace, input)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Each element clamped."""
    return _with_inplace("hardtanh", inplace, input, min_val, max_val)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Each element times its hardsigmoid."""
    return _with_inplace("hardswish", inplace, input)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """x / 6 + 1 / 2, clamped to [0, 1]."""
    return _with_inplace("hardsigmoid", inplace, input)


def softplus(input: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """log(1 + exp(beta * x)) / beta."""
    return _with_inplace("softplus", False, input, beta, threshold)


def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    return input / (input.abs() + 1)


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    return input - input.tanh()


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Each element moved towards zero by lambd."""
    return _with_inplace("softshrink", False, input, lambd)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Zero where an element's magnitude is at most lambd."""
    return _with_inplace("hardshrink", False, input, lambd)


def logsigmoid(input: Tensor) -> Tensor:
    """The logarithm of the sigmoid."""
    return _with_inplace("log_sigmoid", False, input)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """`value` where an element is not above the threshold."""
    return _with_inplace("threshold", inplace, input, threshold, value)


def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    return input.tanh()


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    return input.sigmoid()


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Exponentials along a dimension, scaled to sum to one."""
    return _ops.softmax(input, _softmax_dim(input, dim), dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """The softmax of the negated input."""
    return _ops.softmax(-input, _softmax_dim(input, dim), dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """The logarithm of softmax."""
    return _ops.log_softmax(input, _softmax_dim(input, dim), dtype)


def _softmax_dim(input: Tensor, dim: int | None) -> int:
    if dim is not None:
        return dim
    return 0 if input.dim() in (0, 1, 3) else 1


# ---- dropout and embeddings ----


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes elements with probability p and scales the others by 1 / (1 - p), while training."""
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return _ops.dropout_(input, p, training) if inplace else _ops.dropout(input, p, training)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """A last dimension that is one at the class index and zero elsewhere."""
    return _nn.one_hot(tensor, num_classes) if hasattr(_nn, "one_hot") else _ops.one_hot(tensor, num_classes)


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Borders around the last dimensions, in pairs from the last one on."""
    return _nn.pad(input, pad, mode, value)


# ---- losses ----


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood of class indices."""
    return _nn.nll_loss_nd(input, target, weight, _legacy(size_average, reduce, reduction), ignore_index)


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
    """The cross entropy of unnormalised scores with class indices or class probabilities."""
    how = _legacy(size_average, reduce, reduction)
    return _nn.cross_entropy_loss(input, target, weight, how, ignore_index, label_smoothing)


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The squared difference."""
    how = _legacy(size_average, reduce, reduction)
    if weight is None:
        return _nn.mse_loss(input, target, how)
    loss = _nn.mse_loss(input, target, 0) * weight
    return loss if how == 0 else loss.sum() if how == 2 else loss.sum() / weight.expand(loss.shape).sum()


def l1_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Tensor:
    """The absolute difference."""
    return _nn.l1_loss(input, target, _legacy(size_average, reduce, reduction))


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """The absolute difference, rounded off below beta."""
    return _nn.smooth_l1_loss(input, target, _legacy(size_average, reduce, reduction), beta)


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """The squared difference, linear above delta."""
    return _nn.huber_loss(input, target, _reduction(reduction), delta)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The cross entropy of probabilities with targets in [0, 1]."""
    if input.shape != target.shape:
        raise ValueError(f"input {tuple(input.shape)} and target {tuple(target.shape)} differ in size")
    return _nn.binary_cross_entropy(input, target, weight, _legacy(size_average, reduce, reduction))


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """The cross entropy of sigmoid(input) with targets in [0, 1]."""
    how = _legacy(size_average, reduce, reduction)
    return _ops.binary_cross_entropy_with_logits(input, target, weight, pos_weight, how)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """The Kullback-Leibler divergence; `input` holds logarithms."""
    if reduction == "batchmean" and size_average is None and reduce is None:
        total = _ops.kl_div(input, target, 2, log_target=log_target)
        return total / input.shape[0] if input.dim() else total
    return _ops.kl_div(input, target, _legacy(size_average, reduce, reduction), log_target=log_target)


cosine_similarity = _ops.cosine_similarity
scaled_dot_product_attention = _nn.scaled_dot_product_attention


# ---- normalisation and embeddings ----


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """The last dimensions brought to mean 0 and variance 1, then scaled and shifted."""
    return _ops.layer_norm(input, normalized_shape, weight, bias, eps)


rms_norm = _ops.rms_norm


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Groups of channels brought to mean 0 and variance 1."""
    return _ops.group_norm(input, num_groups, weight, bias, eps)


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Each channel brought to mean 0 and variance 1 over the batch, or by the running statistics."""
    if training and input.numel() == input.shape[1]:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {tuple(input.shape)}")
    return _ops.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, False)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of `weight` by index; the row `padding_idx` gets no gradient."""
    if max_norm is not None or sparse:
        raise NotImplementedError("embedding: max_norm and sparse gradients are not supported")
    if padding_idx is not None and not -weight.shape[0] <= padding_idx < weight.shape[0]:
        raise AssertionError("Padding_idx must be within num_embeddings")
    index = -1 if padding_idx is None else padding_idx % weight.shape[0]
    return _ops.embedding(weight, input, index, scale_grad_by_freq, sparse)


def _legacy(size_average: bool | None, reduce: bool | None, reduction: str) -> int:
    """`size_average` and `reduce` are PyTorch's older way to name a reduction."""
    if size_average is None and reduce is None:
        return _reduction(reduction)
    if reduce is False:
        return _REDUCTIONS["none"]
    return _REDUCTIONS["sum" if size_average is False else "mean"]
