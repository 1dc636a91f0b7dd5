"""Modules that compute with integers."""

from __future__ import annotations

from typing import Any

from tensorpy import _C, nn
from tensorpy._C import Tensor
from tensorpy.ao.nn.quantized.modules.activation import ELU, Hardswish, LeakyReLU, PReLU, ReLU6, Sigmoid, Softmax
from tensorpy.ao.nn.quantized.modules.conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from tensorpy.ao.nn.quantized.modules.embedding_ops import Embedding, EmbeddingBag, EmbeddingPackedParams
from tensorpy.ao.nn.quantized.modules.functional_modules import FloatFunctional, FXFloatFunctional, QFunctional
from tensorpy.ao.nn.quantized.modules.linear import Linear
from tensorpy.ao.nn.quantized.modules.normalization import (
    BatchNorm2d,
    BatchNorm3d,
    GroupNorm,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    LayerNorm,
)
from tensorpy.ao.nn.quantized.modules.rnn import LSTM, MultiheadAttention
from tensorpy.nn import MaxPool2d as MaxPool2d

__all__ = [
    "ELU",
    "LSTM",
    "BatchNorm2d",
    "BatchNorm3d",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "DeQuantize",
    "Dropout",
    "Embedding",
    "EmbeddingBag",
    "EmbeddingPackedParams",
    "FXFloatFunctional",
    "FloatFunctional",
    "GroupNorm",
    "Hardswish",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "MaxPool2d",
    "MultiheadAttention",
    "PReLU",
    "QFunctional",
    "Quantize",
    "ReLU6",
    "Sigmoid",
    "Softmax",
]  # fmt: skip


class Quantize(nn.Module):
    """Quantizes a tensor.

    Arguments:
        scale: the scale
        zero_point: the zero point
        dtype: the dtype of the integers
        factory_kwargs: device and dtype of what is kept

    Example:
        >>> tp.ao.nn.quantized.Quantize(0.5, 0, tp.quint8)(tp.tensor([1.0])).int_repr()
        tensor([2], dtype=tensorpy.uint8)
    """

    scale: Tensor
    zero_point: Tensor

    def __init__(self, scale: float, zero_point: int, dtype: Any, factory_kwargs: Any = None) -> None:
        super().__init__()
        made = nn.factory_kwargs(factory_kwargs)
        self.register_buffer("scale", _C.tensor([scale], **made))
        self.register_buffer(
            "zero_point", _C.tensor([zero_point], dtype=_C.int64, **{k: v for k, v in made.items() if k != "dtype"})
        )
        self.dtype = dtype

    def forward(self, X: Tensor) -> Tensor:
        """The tensor, quantized."""
        return _C.quantize_per_tensor(X, self.scale.item(), int(self.zero_point.item()), self.dtype)

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> Quantize:
        """Makes one of a QuantStub that has watched."""
        if not hasattr(mod, "activation_post_process"):
            raise AssertionError(f"{type(mod).__name__} has no observer: prepare() gives it one")
        scale, zero_point = mod.activation_post_process.calculate_qparams()
        return Quantize(scale.float().item(), int(zero_point.item()), mod.activation_post_process.dtype)

    def extra_repr(self) -> str:
        """What `repr` shows between the parentheses."""
        return f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}"


class DeQuantize(nn.Module):
    """The numbers of a quantized tensor.

    Example:
        >>> tp.ao.nn.quantized.DeQuantize()(tp.quantize_per_tensor(tp.tensor([1.0]), 0.5, 0, tp.quint8))
        tensor([1.])
    """

    def forward(self, Xq: Tensor) -> Tensor:
        """The tensor's numbers."""
        return Xq.dequantize()

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> DeQuantize:
        """Makes one of a DeQuantStub."""
        return DeQuantize()


class Dropout(nn.Dropout):
    """Returns its input: a model that is quantized is not trained.

    Arguments:
        p: what the probability was
        inplace: whether it was in place

    Example:
        >>> tp.ao.nn.quantized.Dropout()(tp.ones(1))
        tensor([1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Returns the tensor."""
        return input

    def _get_name(self) -> str:
        return "QuantizedDropout"

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Dropout:
        """Makes one of a Dropout."""
        return cls(mod.p, mod.inplace)
