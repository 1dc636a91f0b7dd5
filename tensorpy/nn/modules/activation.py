"""Activations, and attention."""

from __future__ import annotations

from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.nn import functional as F
from tensorpy.nn import init
from tensorpy.nn.modules.linear import NonDynamicallyQuantizableLinear
from tensorpy.nn.modules.module import Module
from tensorpy.nn.parameter import Parameter

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "MultiheadAttention",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]


class _WithInplace(Module):
    """An activation with an `inplace` flag, which repr shows when it is set."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def _settings(self) -> list[str]:
        return []

    def extra_repr(self) -> str:
        return ", ".join([*self._settings(), *(["inplace=True"] if self.inplace else [])])


class Threshold(_WithInplace):
    """Elements above a threshold; `value` in place of the others.

    Input of any shape, output of the same.

    Arguments:
        threshold: the bound
        value: the value
        inplace: whether the result is written to the input

    Example:
        >>> nn.Threshold(1.0, -1.0)(tp.tensor([0.5, 2.0]))
        tensor([-1.,  2.])
    """

    threshold: float
    value: float

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.threshold, self.value = threshold, value

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def _settings(self) -> list[str]:
        return [f"threshold={self.threshold}", f"value={self.value}"]


class ReLU(_WithInplace):
    """The larger of zero and each element.

    Input of any shape, output of the same.

    Arguments:
        inplace: whether the result is written to the input

    Example:
        >>> nn.ReLU()(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([0., 0., 3.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, inplace=self.inplace)


class RReLU(_WithInplace):
    """Negative elements times a slope that is drawn from [lower, upper] while training.

    Input of any shape, output of the same.

    Arguments:
        lower: the lower bound of the slope
        upper: the upper bound of the slope
        inplace: whether the result is written to the input

    Example:
        >>> nn.RReLU().eval()(tp.tensor([-8.0, 3.0]))
        tensor([-1.8333,  3.0000])
    """

    lower: float
    upper: float

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.lower, self.upper = lower, upper

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def _settings(self) -> list[str]:
        return [f"lower={self.lower}", f"upper={self.upper}"]


class Hardtanh(_WithInplace):
    """Each element clamped.

    Input of any shape, output of the same.

    Arguments:
        min_val: the smallest value
        max_val: the largest value
        inplace: whether the result is written to the input
        min_value: an older name of min_val
        max_value: an older name of max_val

    Raises: AssertionError for a max_val that is not above min_val.

    Example:
        >>> nn.Hardtanh()(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([-1.,  0.,  1.])
    """

    max_val: Any
    min_val: Any

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__(inplace)
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        if self.max_val <= self.min_val:
            raise AssertionError("max_val must be larger than min_val")

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def _settings(self) -> list[str]:
        return [f"min_val={self.min_val}", f"max_val={self.max_val}"]


class ReLU6(Hardtanh):
    """Each element clamped to [0, 6].

    Input of any shape, output of the same.

    Arguments:
        inplace: whether the result is written to the input

    Example:
        >>> nn.ReLU6()(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([0., 0., 3.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def _settings(self) -> list[str]:
        return []


class Sigmoid(Module):
    """1 / (1 + exp(-x)).

    Input of any shape, output of the same.

    Example:
        >>> nn.Sigmoid()(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([0.1192, 0.5000, 0.9526])
    """

    def forward(self, input: Tensor) -> Tensor:
        return _C.sigmoid(input)


class Hardsigmoid(Module):
    """x / 6 + 1 / 2, clamped to [0, 1].

    Input of any shape, output of the same.

    Arguments:
        inplace: whether the result is written to the input

    Example:
        >>> nn.Hardsigmoid()(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([0.1667, 0.5000, 1.0000])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)


class Tanh(Module):
    """The hyperbolic tangent.

    Input of any shape, output of the same.

    Example:
        >>> nn.Tanh()(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([-0.9640,  0.0000,  0.9951])
    """

    def forward(self, input: Tensor) -> Tensor:
        return _C.tanh(input)


class SiLU(_WithInplace):
    """Each element times its sigmoid.

    Input of any shape, output of the same.

    Arguments:
        inplace: whether the result is written to the input

    Example:
        >>> nn.SiLU()(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([-0.2384,  0.0000,  2.8577])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, inplace=self.inplace)


class Mish(_WithInplace):
    """Each element times the tanh of its softplus.

    Input of any shape, output of the same.

    Arguments:
        inplace: whether the result is written to the input

    Example:
        >>> nn.Mish()(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([-0.2525,  0.0000,  2.9865])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, inplace=self.inplace)


class Hardswish(Module):
    """Each element times its hardsigmoid.

    Input of any shape, output of the same.

    Arguments:
        inplace: whether the result is written to the input

    Example:
        >>> nn.Hardswish()(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([-0.3333,  0.0000,  3.0000])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)


class ELU(_WithInplace):
    """Negative elements as alpha * (exp(x) - 1).

    Input of any shape, output of the same.

    Arguments:
        alpha: the number that shapes the function
        inplace: whether the result is written to the input

    Example:
        >>> nn.ELU()(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([-0.8647,  0.0000,  3.0000])
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)

    def _settings(self) -> list[str]:
        return [f"alpha={self.alpha}"]


class CELU(ELU):
    """The elu whose slope is continuous for every alpha.

    Input of any shape, output of the same.

    Arguments:
        alpha: the number that shapes the function
        inplace: whether the result is written to the input

    Example:
        >>> nn.CELU()(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([-0.8647,  0.0000,  3.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


class SELU(_WithInplace):
    """The self-normalising elu.

    Input of any shape, output of the same.

    Arguments:
        inplace: whether the result is written to the input

    Example:
        >>> nn.SELU()(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([-1.5202,  0.0000,  3.1521])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class GLU(Module):
    """The first half of a dimension times the sigmoid of the second.

    Input (..., 2 * n, ...) along dim, output with n there.

    Arguments:
        dim: the dimension; a negative one counts from the last

    Example:
        >>> nn.GLU()(tp.tensor([1.0, 2.0, 0.0, 0.0]))
        tensor([0.5000, 1.0000])
    """

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class GELU(Module):
    """Each element times the normal distribution function at it.

    Input of any shape, output of the same.

    Arguments:
        approximate: 'none' for the exact function, 'tanh' for the faster approximation

    Example:
        >>> nn.GELU()(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([-0.0455,  0.0000,  2.9960])
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Hardshrink(Module):
    """Zero where the magnitude is at most lambd.

    Input of any shape, output of the same.

    Example:
        >>> nn.Hardshrink()(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([-2.,  0.,  3.])
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Softshrink(Hardshrink):
    """Each element moved towards zero by lambd.

    Input of any shape, output of the same.

    Example:
        >>> nn.Softshrink()(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([-1.5000,  0.0000,  2.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)


class LeakyReLU(_WithInplace):
    """Negative elements times a slope.

    Input of any shape, output of the same.

    Arguments:
        negative_slope: the slope below zero
        inplace: whether the result is written to the input

    Example:
        >>> nn.LeakyReLU()(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([-0.0200,  0.0000,  3.0000])
    """

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def _settings(self) -> list[str]:
        return [f"negative_slope={self.negative_slope}"]


class LogSigmoid(Module):
    """The logarithm of the sigmoid.

    Input of any shape, output of the same.

    Example:
        >>> nn.LogSigmoid()(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([-2.1269, -0.6931, -0.0486])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Softplus(Module):
    """log(1 + exp(beta * x)) / beta.

    Input of any shape, output of the same.

    Arguments:
        beta: the number that shapes the function
        threshold: the bound

    Example:
        >>> nn.Softplus()(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([0.1269, 0.6931, 3.0486])
    """

    beta: float
    threshold: float

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class PReLU(Module):
    """Negative elements times a slope that is learnt, one for all channels or one for each.

    Input of any shape, output of the same.

    Arguments:
        num_parameters: 1, or a slope for each channel
        init: the slope at first
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype of the parameter

    Example:
        >>> nn.PReLU()(tp.tensor([-2.0, 3.0]))
        tensor([-0.5000,  3.0000], grad_fn=<PreluKernelBackward0>)
    """

    init: float
    num_parameters: int
    weight: Tensor

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(_C.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Puts the slopes back to `init`."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class Softsign(Module):
    """x / (1 + |x|).

    Input of any shape, output of the same.

    Example:
        >>> nn.Softsign()(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([-0.6667,  0.0000,  0.7500])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(Module):
    """x - tanh(x).

    Input of any shape, output of the same.

    Example:
        >>> nn.Tanhshrink()(tp.tensor([-2.0, 0.0, 3.0]))
        tensor([-1.0360,  0.0000,  2.0049])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class _AlongDim(Module):
    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("dim", None)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmin(_AlongDim):
    """The softmax of the negated elements.

    Input of any shape, output of the same.

    Arguments:
        dim: the dimension; a negative one counts from the last

    Example:
        >>> nn.Softmin(dim=0)(tp.tensor([1.0, 2.0, 3.0]))
        tensor([0.6652, 0.2447, 0.0900])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim)


class Softmax(_AlongDim):
    """exp(x), divided by its sum along a dimension.

    Input of any shape, output of the same.

    Arguments:
        dim: the dimension; a negative one counts from the last

    Example:
        >>> nn.Softmax(dim=0)(tp.tensor([1.0, 2.0, 3.0]))
        tensor([0.0900, 0.2447, 0.6652])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim)


class LogSoftmax(_AlongDim):
    """The logarithm of the softmax.

    Input of any shape, output of the same.

    Arguments:
        dim: the dimension; a negative one counts from the last

    Example:
        >>> nn.LogSoftmax(dim=0)(tp.tensor([1.0, 2.0, 3.0]))
        tensor([-2.4076, -1.4076, -0.4076])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim)


class Softmax2d(Module):
    """The softmax over the channels at each place of an image.

    Input (N, C, H, W) or (C, H, W), output of the same shape.

    Example:
        >>> nn.Softmax2d()(tp.ones(1, 4, 2, 2))[0, :, 0, 0]
        tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3)


class MultiheadAttention(Module):
    """Attention with several heads (Vaswani et al. 2017). The projections of query, key and value are one weight where
    all have embed_dim features, else three.

    Queries (L, N, E), keys and values (S, N, E), with batch_first (N, L, E) and (N, S, E); output as the queries,
    weights (N, L, S).

    Arguments:
        num_heads: how many heads there are
        dropout: the probability of a zero
        bias: whether there is a bias
        add_bias_kv: whether keys and values have a bias as one more element
        add_zero_attn: whether a key of zeros is added
        kdim: how many features keys have; None takes embed_dim
        vdim: how many features values have; None takes embed_dim
        batch_first: whether the batch is the first dimension, and the sequence the second
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one

    Raises: AssertionError for an embed_dim that num_heads does not divide, ValueError for one that is not positive.

    Example:
        >>> attention = nn.MultiheadAttention(8, num_heads=2, batch_first=True)
        >>> x = tp.ones(3, 5, 8)
        >>> output, weights = attention(x, x, x)
        >>> output.shape, weights.shape
        (tensorpy.Size([3, 5, 8]), tensorpy.Size([3, 5, 5]))
    """

    dropout: float
    embed_dim: int
    head_dim: Any
    kdim: Any
    num_heads: int
    out_proj: Any
    vdim: Any
    in_proj_weight: Any
    in_proj_bias: Any
    bias_k: Any
    bias_v: Any

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} "
                "instead"
            )
        super().__init__()
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        self.add_zero_attn = add_zero_attn

        def empty(*sizes: int) -> Any:
            return Parameter(_C.empty(sizes, device=device, dtype=dtype))

        separate = ("q_proj_weight", "k_proj_weight", "v_proj_weight")
        if self._qkv_same_embed_dim:
            self.in_proj_weight = empty(3 * embed_dim, embed_dim)
            for name in separate:
                self.register_parameter(name, None)
        else:
            for name, features in zip(separate, (embed_dim, self.kdim, self.vdim), strict=True):
                self.register_parameter(name, empty(embed_dim, features))
            self.register_parameter("in_proj_weight", None)
        self.register_parameter("in_proj_bias", empty(3 * embed_dim) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        for name in ("bias_k", "bias_v"):
            self.register_parameter(name, empty(1, 1, embed_dim) if add_bias_kv else None)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            if getattr(self, name) is not None:
                init.xavier_uniform_(getattr(self, name))
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("_qkv_same_embed_dim", True)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        if query.is_nested or key.is_nested:
            if attn_mask is not None or key_padding_mask is not None:
                raise RuntimeError("MultiheadAttention: nested tensors take no mask, since nothing is padded")
            return self._of_nested(query, key, value, need_weights, average_attn_weights, is_causal)
        swapped = self.batch_first and query.dim() == 3
        if swapped:
            query, key, value = (t.transpose(0, 1) for t in (query, key, value))
        output, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return (output.transpose(0, 1) if swapped else output), weights

    def _of_nested(
        self, query: Tensor, key: Tensor, value: Tensor, need_weights: bool, average: bool, is_causal: bool
    ) -> tuple[Tensor, Tensor | None]:
        """The output, nested, and the weights, padded with zeros."""
        if not self.batch_first or self.bias_k is not None or self.add_zero_attn:
            raise RuntimeError("MultiheadAttention: nested tensors need batch_first, and neither bias_kv nor zero_attn")
        embed, heads = self.embed_dim, self.num_heads
        separate = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        weights = self.in_proj_weight.split(embed) if self._qkv_same_embed_dim else separate
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.split(embed)
        q, k, v = (
            F.linear(t, w, b).unflatten(-1, (heads, -1)).transpose(1, 2)
            for t, w, b in zip((query, key, value), weights, biases, strict=True)
        )
        dropout = self.dropout if self.training else 0.0
        if need_weights:
            scores = [(a * self.head_dim**-0.5) @ b.mT for a, b in zip(q.unbind(), k.unbind(), strict=True)]
            if is_causal:
                scores = [s.masked_fill(_C.ones_like(s, dtype=_C.bool).triu(1), float("-inf")) for s in scores]
            shares = [F.dropout(s.softmax(-1), dropout) for s in scores]
            rows = [(s @ p).transpose(0, 1).flatten(1) for s, p in zip(shares, v.unbind(), strict=True)]
            shown = _C._nested_from_list([s.mean(0) for s in shares] if average else shares, False)
            attended: Any = _C._nested_from_list(rows, query.layout is _C.jagged)
            return self.out_proj(attended), shown.to_padded_tensor(0.0)
        found = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=is_causal)
        return self.out_proj(found.transpose(1, 2).reshape(query.size(0), -1, embed)), None
