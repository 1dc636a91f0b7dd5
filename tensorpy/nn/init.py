"""Starting values of parameters. Each function fills a tensor in place, without a gradient, and returns it."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._package import proposing as _proposing
from tensorpy._tensor import torch_function
from tensorpy.autograd.grad_mode import no_grad

__all__ = [
    "calculate_gain",
    "constant",
    "constant_",
    "dirac",
    "dirac_",
    "eye",
    "eye_",
    "kaiming_normal",
    "kaiming_normal_",
    "kaiming_uniform",
    "kaiming_uniform_",
    "normal",
    "normal_",
    "ones_",
    "orthogonal",
    "orthogonal_",
    "sparse",
    "sparse_",
    "trunc_normal_",
    "uniform",
    "uniform_",
    "xavier_normal",
    "xavier_normal_",
    "xavier_uniform",
    "xavier_uniform_",
    "zeros_",
]

_GAINS = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 0.75}
_LINEAR = (
    "linear",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "sigmoid",
)


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """By what a nonlinearity's weights are scaled, so that variances stay the same from layer to layer.

    Arguments:
        nonlinearity: the function, by name: 'relu', 'tanh', 'leaky_relu'
        param: the parameter

    Returns: float.

    Raises: ValueError for an unknown nonlinearity, or a param that is no number.

    Example:
        >>> nn.init.calculate_gain("relu")
        1.4142135623730951
    """
    if nonlinearity in _LINEAR:
        return 1
    if nonlinearity in _GAINS:
        return _GAINS[nonlinearity]
    if nonlinearity != "leaky_relu":
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    slope = 0.01 if param is None else param
    if isinstance(slope, bool) or not isinstance(slope, (int, float)):
        raise ValueError(f"negative_slope {param} not a valid number")
    return math.sqrt(2.0 / (1 + slope**2))


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Values from U(a, b).

    Arguments:
        tensor: the tensor
        a: the lower bound
        b: the upper bound
        generator: where the random numbers come from; None takes the default generator

    Returns: tensor, written in place.

    Example:
        >>> bool((nn.init.uniform_(tp.empty(3, 5), 2.0, 3.0) >= 2).all())
        True
    """
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Values from N(mean, std ** 2).

    Arguments:
        tensor: the tensor
        std: the standard deviation
        generator: where the random numbers come from; None takes the default generator

    Returns: tensor, written in place.

    Example:
        >>> nn.init.normal_(tp.empty(3, 5), std=0.1).shape
        tensorpy.Size([3, 5])
    """
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Tensor:
    """Values from N(mean, std ** 2) between a and b.

    Arguments:
        tensor: the tensor
        std: the standard deviation
        a: the lower bound
        b: the upper bound
        generator: where the random numbers come from; None takes the default generator

    Returns: tensor, written in place.

    Example:
        >>> nn.init.trunc_normal_(tp.empty(3, 5), std=0.1).shape
        tensorpy.Size([3, 5])
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be wrong.",
            stacklevel=2,
        )
    low, high = ((1.0 + math.erf((bound - mean) / (std * math.sqrt(2.0)))) / 2.0 for bound in (a, b))
    peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2

    def refused_of(offered: Tensor) -> Tensor:
        """Draws into a tensor and says what is not taken (rejection sampling): from the normal distribution itself, or
        of little of it from a uniform one.
        """
        if high - low > 0.3:
            offered.normal_(mean, std, generator=generator)
            return (offered < a) | (offered > b)
        offered.uniform_(a, b, generator=generator)
        density = ((offered - mean) / std).square_().mul_(-0.5).sub_(peak)
        return _C.empty_like(offered).uniform_(generator=generator).log_() > density

    if tensor.is_meta:
        return tensor
    with no_grad():
        refused = refused_of(tensor)
        while refused.any():
            again = _C.empty_like(tensor)
            once_more = refused & refused_of(again)
            tensor.copy_(_C.where(refused, again, tensor))
            refused = once_more
    return tensor


def constant_(tensor: Tensor, val: float) -> Tensor:
    """One value everywhere.

    Arguments:
        tensor: the tensor
        val: the value

    Returns: tensor, written in place.

    Example:
        >>> nn.init.constant_(tp.empty(2), 0.5)
        tensor([0.5000, 0.5000])
    """
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """One everywhere.

    Arguments:
        tensor: the tensor

    Returns: tensor, written in place.

    Example:
        >>> nn.init.ones_(tp.empty(2))
        tensor([1., 1.])
    """
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Zero everywhere.

    Arguments:
        tensor: the tensor

    Returns: tensor, written in place.

    Example:
        >>> nn.init.zeros_(tp.empty(2))
        tensor([0., 0.])
    """
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    """The identity, of a matrix.

    Arguments:
        tensor: the tensor

    Returns: tensor, written in place.

    Raises: ValueError for a tensor that is no matrix.

    Example:
        >>> nn.init.eye_(tp.empty(2, 2))
        tensor([[1., 0.],
                [0., 1.]])
    """
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with no_grad():
        return tensor.copy_(_C.eye(*tensor.shape, device=tensor.device))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """The weight of a convolution that passes on as many channels as it can, in each of its groups.

    Arguments:
        tensor: the tensor
        groups: how many groups the channels are in, each of which is on its own

    Returns: tensor, written in place.

    Raises: ValueError for a tensor of other than 3 to 5 dimensions, or channels that groups does not divide.

    Example:
        >>> nn.init.dirac_(tp.empty(2, 2, 1)).sum()
        tensor(2.)
    """
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.shape[0] % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = tensor.shape[0] // groups
    middle = [size // 2 for size in tensor.shape[2:]]
    with no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(per_group, tensor.shape[1])):
                place = (group * per_group + channel, channel, *middle)
                tensor[place] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


def _xavier_std(tensor: Tensor, gain: float) -> float:
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return gain * math.sqrt(2.0 / float(fan_in + fan_out))


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform values whose variance suits both directions (Glorot & Bengio 2010).

    Arguments:
        tensor: the tensor
        gain: what the spread is multiplied by
        generator: where the random numbers come from; None takes the default generator

    Returns: tensor, written in place.

    Raises: ValueError for a tensor of less than two dimensions.

    Example:
        >>> bool((nn.init.xavier_uniform_(tp.empty(3, 5)).abs() < 1.5).all())
        True
    """
    bound = math.sqrt(3.0) * _xavier_std(tensor, gain)
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Normal values whose variance suits both directions (Glorot & Bengio 2010).

    Arguments:
        tensor: the tensor
        gain: what the spread is multiplied by
        generator: where the random numbers come from; None takes the default generator

    Returns: tensor, written in place.

    Raises: ValueError for a tensor of less than two dimensions.

    Example:
        >>> nn.init.xavier_normal_(tp.empty(3, 5)).shape
        tensorpy.Size([3, 5])
    """
    return normal_(tensor, 0.0, _xavier_std(tensor, gain), generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float | None:
    """None where there is no element."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return None
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Uniform values whose variance suits a rectifier (He et al. 2015).

    Arguments:
        tensor: the tensor
        a: the slope below zero of the rectifier behind, for 'leaky_relu'
        mode: 'fan_in' or 'fan_out': whether the spread of the output or of the gradient is kept
        nonlinearity: the function, by name: 'relu', 'tanh', 'leaky_relu'
        generator: where the random numbers come from; None takes the default generator

    Returns: tensor, written in place.

    Raises: ValueError for a tensor of less than two dimensions, or an unknown mode or nonlinearity.

    Example:
        >>> bool((nn.init.kaiming_uniform_(tp.empty(3, 5)).abs() < 1.5).all())
        True
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    return uniform_(tensor, -math.sqrt(3.0) * std, math.sqrt(3.0) * std, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Normal values whose variance suits a rectifier (He et al. 2015).

    Arguments:
        tensor: the tensor
        a: the slope below zero of the rectifier behind, for 'leaky_relu'
        mode: 'fan_in' or 'fan_out': whether the spread of the output or of the gradient is kept
        nonlinearity: the function, by name: 'relu', 'tanh', 'leaky_relu'
        generator: where the random numbers come from; None takes the default generator

    Returns: tensor, written in place.

    Raises: ValueError for a tensor of less than two dimensions, or an unknown mode or nonlinearity.

    Example:
        >>> nn.init.kaiming_normal_(tp.empty(3, 5)).shape
        tensorpy.Size([3, 5])
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0.0, std, generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """A (half) orthogonal matrix, of the first dimension against the others (Saxe et al. 2013).

    Arguments:
        tensor: the tensor
        gain: what the spread is multiplied by
        generator: where the random numbers come from; None takes the default generator

    Returns: tensor, written in place.

    Raises: ValueError for a tensor of less than two dimensions.

    Example:
        >>> nn.init.orthogonal_(tp.empty(3, 5)).shape
        tensorpy.Size([3, 5])
    """
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows, columns = tensor.shape[0], tensor.numel() // tensor.shape[0]
    with no_grad():
        drawn = _C.empty(rows, columns, dtype=tensor.dtype, device=tensor.device).normal_(0, 1, generator=generator)
        q, r = _C._linalg.linalg_qr(drawn.t() if rows < columns else drawn)
        q = q * r.diagonal().sign()  # so that every orthogonal matrix is as likely
        return tensor.copy_((q.t() if rows < columns else q).reshape(tensor.shape)).mul_(gain)


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Normal values of which a share is zero in each column.

    Arguments:
        tensor: the tensor
        sparsity: the part of each column that is zero
        std: the standard deviation
        generator: where the random numbers come from; None takes the default generator

    Returns: tensor, written in place.

    Raises: ValueError for a tensor that is no matrix.

    Example:
        >>> (nn.init.sparse_(tp.empty(4, 5), sparsity=0.5) == 0).sum(0)
        tensor([2, 2, 2, 2, 2])
    """
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            tensor[_C.randperm(rows)[: math.ceil(sparsity * rows)], column] = 0
    return tensor


def _behind_arguments(function: Callable[..., Tensor], name: str) -> str:
    """What comes back of the function, what it raises and its example, by the older name."""
    _, _, rest = inspect.cleandoc(function.__doc__ or "").partition("Returns:")
    return "Returns:" + rest.replace(f"{name}_(", f"{name}(")


def _older(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """An older name, without the underscore."""
    name = function.__name__[:-1]

    def older(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(f"`nn.init.{name}` is now deprecated in favor of `nn.init.{name}_`.", FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    older.__name__ = older.__qualname__ = name
    older.__doc__ = f"An older name of {name}_, with the same arguments.\n\n{_behind_arguments(function, name)}"
    return older


# What layers of other packages call: none of them records.
_no_grad_uniform_, _no_grad_normal_, _no_grad_trunc_normal_ = uniform_, normal_, trunc_normal_
_no_grad_fill_, _no_grad_zero_ = constant_, zeros_

torch_function.make_overridable(__name__, [name for name in __all__ if name.endswith("_")])
uniform: Callable[..., Tensor]
normal: Callable[..., Tensor]
constant: Callable[..., Tensor]
uniform, normal, constant = _older(uniform_), _older(normal_), _older(constant_)
eye: Callable[..., Tensor]
dirac: Callable[..., Tensor]
eye, dirac = _older(eye_), _older(dirac_)
xavier_uniform: Callable[..., Tensor]
xavier_normal: Callable[..., Tensor]
xavier_uniform, xavier_normal = _older(xavier_uniform_), _older(xavier_normal_)
kaiming_uniform: Callable[..., Tensor]
kaiming_normal: Callable[..., Tensor]
kaiming_uniform, kaiming_normal = _older(kaiming_uniform_), _older(kaiming_normal_)
orthogonal: Callable[..., Tensor]
sparse: Callable[..., Tensor]
orthogonal, sparse = _older(orthogonal_), _older(sparse_)

TYPE_CHECKING = False
if not TYPE_CHECKING:
    __getattr__ = _proposing("nn.init", globals())
