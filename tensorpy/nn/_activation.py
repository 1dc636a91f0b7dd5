"""Activations."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from tensorpy import _C
from tensorpy._C import celu_ as celu_
from tensorpy._C import prelu as prelu
from tensorpy._C import relu_ as relu_
from tensorpy._C import rrelu_ as rrelu_
from tensorpy._C import selu_ as selu_
from tensorpy._C import threshold_ as threshold_
from tensorpy.nn._common import nn, ops

if TYPE_CHECKING:
    from tensorpy import Tensor

__all__ = [
    "celu",
    "celu_",
    "elu",
    "elu_",
    "gelu",
    "glu",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "leaky_relu",
    "leaky_relu_",
    "log_softmax",
    "logsigmoid",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "rrelu",
    "rrelu_",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
]


def _with_inplace(name: str, inplace: bool, *args: Any) -> Any:
    module = nn if hasattr(nn, name) else ops
    return getattr(module, name + "_" if inplace else name)(*args)


def _with_out(name: str, out: Tensor | None, *args: Any, **options: Any) -> Any:
    function = getattr(nn if hasattr(nn, name) else ops, name)
    return function(*args, **options) if out is None else function(*args, **options, out=out)


elu_ = _C._nn.elu_
leaky_relu_ = _C._nn.leaky_relu_
hardtanh_ = _C._nn.hardtanh_


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """The larger of zero and each element.

    Arguments:
        input: the tensor
        inplace: whether the result is written to the input

    Returns: a tensor of the input's shape, input itself if inplace.

    Example:
        >>> F.relu(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([0., 0., 3.])
    """
    return ops.relu_(input) if inplace else ops.relu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Each element clamped to [0, 6].

    Arguments:
        input: the tensor
        inplace: whether the result is written to the input

    Returns: a tensor of the input's shape, input itself if inplace.

    Example:
        >>> F.relu6(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([0., 0., 3.])
    """
    return _with_inplace("hardtanh", inplace, input, 0.0, 6.0)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Negative elements times a slope.

    Arguments:
        input: the tensor
        negative_slope: the slope below zero
        inplace: whether the result is written to the input

    Returns: a tensor of the input's shape, input itself if inplace.

    Example:
        >>> F.leaky_relu(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([-0.0200,  0.0000,  3.0000])
    """
    return _with_inplace("leaky_relu", inplace, input, negative_slope)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Negative elements as alpha * (exp(x) - 1).

    Arguments:
        input: the tensor
        alpha: the number that shapes the function
        inplace: whether the result is written to the input

    Returns: a tensor of the input's shape, input itself if inplace.

    Example:
        >>> F.elu(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([-0.8647,  0.0000,  3.0000])
    """
    return _with_inplace("elu", inplace, input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """The self-normalising elu.

    Arguments:
        input: the tensor
        inplace: whether the result is written to the input

    Returns: a tensor of the input's shape, input itself if inplace.

    Example:
        >>> F.selu(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([-1.5202,  0.0000,  3.1521])
    """
    return _with_inplace("selu", inplace, input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """The elu whose slope is continuous for every alpha.

    Arguments:
        input: the tensor
        alpha: the number that shapes the function
        inplace: whether the result is written to the input

    Returns: a tensor of the input's shape, input itself if inplace.

    Example:
        >>> F.celu(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([-0.8647,  0.0000,  3.0000])
    """
    return _with_inplace("celu", inplace, input, alpha)


def gelu(input: Tensor, approximate: str = "none", *, out: Tensor | None = None) -> Tensor:
    """Each element times the normal distribution function at it.

    Arguments:
        input: the tensor
        approximate: 'none' for the exact function, 'tanh' for the faster approximation
        out: a tensor to write to, which is returned

    Returns: a tensor of the input's shape.

    Example:
        >>> F.gelu(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([-0.0455,  0.0000,  2.9960])
    """
    return _with_out("gelu", out, input, approximate=approximate)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Each element times its sigmoid.

    Arguments:
        input: the tensor
        inplace: whether the result is written to the input

    Returns: a tensor of the input's shape, input itself if inplace.

    Example:
        >>> F.silu(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([-0.2384,  0.0000,  2.8577])
    """
    return _with_inplace("silu", inplace, input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Each element times the tanh of its softplus.

    Arguments:
        input: the tensor
        inplace: whether the result is written to the input

    Returns: a tensor of the input's shape, input itself if inplace.

    Example:
        >>> F.mish(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([-0.2525,  0.0000,  2.9865])
    """
    return _with_inplace("mish", inplace, input)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Each element clamped.

    Arguments:
        input: the tensor
        min_val: the smallest value
        max_val: the largest value
        inplace: whether the result is written to the input

    Returns: a tensor of the input's shape, input itself if inplace.

    Raises: ValueError for a min_val above max_val.

    Example:
        >>> F.hardtanh(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([-1.,  0.,  1.])
    """
    if min_val > max_val:
        raise ValueError(f"min_val cannot be greater than max_val, got {min_val} and {max_val}")
    return _with_inplace("hardtanh", inplace, input, min_val, max_val)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Each element times its hardsigmoid.

    Arguments:
        input: the tensor
        inplace: whether the result is written to the input

    Returns: a tensor of the input's shape, input itself if inplace.

    Example:
        >>> F.hardswish(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([-0.3333,  0.0000,  3.0000])
    """
    return _with_inplace("hardswish", inplace, input)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """x / 6 + 1 / 2, clamped to [0, 1].

    Arguments:
        input: the tensor
        inplace: whether the result is written to the input

    Returns: a tensor of the input's shape, input itself if inplace.

    Example:
        >>> F.hardsigmoid(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([0.1667, 0.5000, 1.0000])
    """
    return _with_inplace("hardsigmoid", inplace, input)


def softplus(input: Tensor, beta: float = 1, threshold: float = 20, *, out: Tensor | None = None) -> Tensor:
    """log(1 + exp(beta * x)) / beta.

    Arguments:
        input: the tensor
        beta: the number that shapes the function
        threshold: the bound
        out: a tensor to write to, which is returned

    Returns: a tensor of the input's shape.

    Example:
        >>> F.softplus(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([0.1269, 0.6931, 3.0486])
    """
    return _with_out("softplus", out, input, beta, threshold)


def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|).

    Arguments:
        input: the tensor

    Returns: a tensor of the input's shape.

    Example:
        >>> F.softsign(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([-0.6667,  0.0000,  0.7500])
    """
    return input / (input.abs() + 1)


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x).

    Arguments:
        input: the tensor

    Returns: a tensor of the input's shape.

    Example:
        >>> F.tanhshrink(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([-1.0360,  0.0000,  2.0049])
    """
    return input - input.tanh()


def softshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """Each element moved towards zero by lambd.

    Arguments:
        input: the tensor
        lambd: how far elements move
        out: a tensor to write to, which is returned

    Returns: a tensor of the input's shape.

    Example:
        >>> F.softshrink(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([-1.5000,  0.0000,  2.5000])
    """
    return _with_out("softshrink", out, input, lambd)


def hardshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """Zero where an element's magnitude is at most lambd.

    Arguments:
        input: the tensor
        lambd: up to which magnitude elements become zero
        out: a tensor to write to, which is returned

    Returns: a tensor of the input's shape.

    Example:
        >>> F.hardshrink(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([-2.,  0.,  3.])
    """
    return _with_out("hardshrink", out, input, lambd)


def logsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the sigmoid.

    Arguments:
        input: the tensor
        out: a tensor to write to, which is returned

    Returns: a tensor of the input's shape.

    Example:
        >>> F.logsigmoid(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([-2.1269, -0.6931, -0.0486])
    """
    return _with_out("log_sigmoid", out, input)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """`value` where an element is not above the threshold.

    Arguments:
        input: the tensor
        threshold: the bound
        value: the number, or for attention the values, (S, N, E)
        inplace: whether the result is written to the input

    Returns: a tensor of the input's shape, input itself if inplace.

    Example:
        >>> F.threshold(tp.tensor([0.5, 2.0]), 1.0, -1.0)
        tensor([-1.,  2.])
    """
    return _with_inplace("threshold", inplace, input, threshold, value)


def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent.

    Arguments:
        input: the tensor

    Returns: a tensor of the input's shape.

    Example:
        >>> F.tanh(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([-0.9640,  0.0000,  0.9951])
    """
    return input.tanh()


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x)).

    Arguments:
        input: the tensor

    Returns: a tensor of the input's shape.

    Example:
        >>> F.sigmoid(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([0.1192, 0.5000, 0.9526])
    """
    return input.sigmoid()


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Exponentials along a dimension, scaled to sum to one.

    Arguments:
        input: the tensor
        dim: the dimension; a negative one counts from the last
        dtype: the dtype; None takes the usual one

    Returns: a tensor of the input's shape.

    Raises: IndexError for a dim out of range.

    Example:
        >>> F.softmax(tp.tensor([1.0, 2.0, 3.0]), dim=0)
        tensor([0.0900, 0.2447, 0.6652])
    """
    return ops.softmax(input, _softmax_dim("softmax", input, dim), dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """The softmax of the negated input.

    Arguments:
        input: the tensor
        dim: the dimension; a negative one counts from the last
        dtype: the dtype; None takes the usual one

    Returns: a tensor of the input's shape.

    Raises: IndexError for a dim out of range.

    Example:
        >>> F.softmin(tp.tensor([1.0, 2.0, 3.0]), dim=0)
        tensor([0.6652, 0.2447, 0.0900])
    """
    return ops.softmax(-input, _softmax_dim("softmin", input, dim), dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """The logarithm of softmax.

    Arguments:
        input: the tensor
        dim: the dimension; a negative one counts from the last
        dtype: the dtype; None takes the usual one

    Returns: a tensor of the input's shape.

    Raises: IndexError for a dim out of range.

    Example:
        >>> F.log_softmax(tp.tensor([1.0, 2.0, 3.0]), dim=0)
        tensor([-2.4076, -1.4076, -0.4076])
    """
    return ops.log_softmax(input, _softmax_dim("log_softmax", input, dim), dtype)


def _softmax_dim(name: str, input: Tensor, dim: int | None) -> int:
    if dim is not None:
        return dim
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=3,
    )
    return 0 if input.dim() in (0, 1, 3) else 1


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """One half of a dimension times the sigmoid of the other.

    Arguments:
        input: the tensor
        dim: the dimension; a negative one counts from the last

    Returns: a tensor, half as long along dim.

    Raises: RuntimeError for an odd size, or a tensor without dimensions.

    Example:
        >>> F.glu(tp.tensor([1.0, 2.0, 0.0, 0.0]))
        tensor([0.5000, 1.0000])
    """
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return nn.glu(input, dim)


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Negative elements times slopes that are drawn while training, else their mean.

    Arguments:
        input: the tensor
        lower: the lower bound of the slope
        upper: the upper bound of the slope
        training: whether the module is in training
        inplace: whether the result is written to the input

    Returns: a tensor of the input's shape, input itself if inplace.

    Example:
        >>> F.rrelu(tp.tensor([-8.0, 3.0]), 0.25, 0.25)
        tensor([-2.,  3.])
    """
    return _with_inplace("rrelu", inplace, input, lower, upper, training)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A sample of a relaxed choice by unnormalised log-probabilities; `hard` makes it one-hot, with its gradient.

    Arguments:
        logits: the unnormalised logarithms of the probabilities
        tau: the temperature
        eps: a small number that keeps divisions in range
        dim: the dimension; a negative one counts from the last

    Returns: a tensor of the shape of logits, which sums to one along dim.

    Example:
        >>> F.gumbel_softmax(tp.zeros(2, 3), hard=True).sum(1)
        tensor([1., 1.])
    """
    noise = -ops.empty_like(logits).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    chosen = ops.zeros_like(logits).scatter_(dim, soft.max(dim, keepdim=True)[1], 1.0)
    return chosen - soft.detach() + soft
