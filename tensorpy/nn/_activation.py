"""Activations."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

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


relu_, selu_, celu_, threshold_, rrelu_ = ops.relu_, ops.selu_, ops.celu_, ops.threshold_, ops.rrelu_
elu_, leaky_relu_, hardtanh_ = nn.elu_, nn.leaky_relu_, nn.hardtanh_
prelu = ops.prelu


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """The larger of zero and each element."""
    return ops.relu_(input) if inplace else ops.relu(input)


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
    return _with_inplace("selu", inplace, input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """The elu whose slope is continuous for every alpha."""
    return _with_inplace("celu", inplace, input, alpha)


def gelu(input: Tensor, approximate: str = "none", *, out: Tensor | None = None) -> Tensor:
    """Each element times the normal distribution function at it."""
    return _with_out("gelu", out, input, approximate=approximate)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Each element times its sigmoid."""
    return _with_inplace("silu", inplace, input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Each element times the tanh of its softplus."""
    return _with_inplace("mish", inplace, input)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Each element clamped."""
    if min_val > max_val:
        raise ValueError(f"min_val cannot be greater than max_val, got {min_val} and {max_val}")
    return _with_inplace("hardtanh", inplace, input, min_val, max_val)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Each element times its hardsigmoid."""
    return _with_inplace("hardswish", inplace, input)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """x / 6 + 1 / 2, clamped to [0, 1]."""
    return _with_inplace("hardsigmoid", inplace, input)


def softplus(input: Tensor, beta: float = 1, threshold: float = 20, *, out: Tensor | None = None) -> Tensor:
    """log(1 + exp(beta * x)) / beta."""
    return _with_out("softplus", out, input, beta, threshold)


def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    return input / (input.abs() + 1)


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    return input - input.tanh()


def softshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """Each element moved towards zero by lambd."""
    return _with_out("softshrink", out, input, lambd)


def hardshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """Zero where an element's magnitude is at most lambd."""
    return _with_out("hardshrink", out, input, lambd)


def logsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the sigmoid."""
    return _with_out("log_sigmoid", out, input)


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
    return ops.softmax(input, _softmax_dim("softmax", input, dim), dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """The softmax of the negated input."""
    return ops.softmax(-input, _softmax_dim("softmin", input, dim), dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """The logarithm of softmax."""
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
    """One half of a dimension times the sigmoid of the other."""
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
    """Negative elements times slopes that are drawn while training, else their mean."""
    return _with_inplace("rrelu", inplace, input, lower, upper, training)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A sample of a relaxed choice by unnormalised log-probabilities; `hard` makes it one-hot, with its gradient."""
    noise = -ops.empty_like(logits).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    chosen = ops.zeros_like(logits).scatter_(dim, soft.max(dim, keepdim=True)[1], 1.0)
    return chosen - soft.detach() + soft
