"""Tables of embeddings whose weights are fake-quantized."""

from __future__ import annotations

from typing import Any

from tensorpy import nn
from tensorpy._C import Tensor
from tensorpy._tensor.quantized import per_channel_affine_float_qparams
from tensorpy.ao.nn.qat.modules.weight import FakeQuantizedWeight
from tensorpy.nn import functional as F

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(FakeQuantizedWeight):
    """A table of embeddings, beside one of nn, whose weight is fake-quantized at each call."""

    _SETTINGS: tuple[str, ...]
    weight: Any
    training: bool

    def __init__(self, *arguments: Any, qconfig: Any = None, **more: Any) -> None:
        super().__init__(*arguments, qconfig=qconfig, **more)
        scheme = self.weight_fake_quant.qscheme
        if scheme is not per_channel_affine_float_qparams:
            raise AssertionError(
                f"weights of {type(self).__name__} are quantized by per_channel_affine_float_qparams, not by {scheme}"
            )

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Makes one of a table with a qconfig; the weight is the same parameter."""
        made = cls(**cls._settings(cls._checked(mod)), qconfig=mod.qconfig)
        made.weight = mod.weight
        return made

    def to_float(self) -> Any:
        """The table without fake quantization."""
        made = self._FLOAT_MODULE[0](**self._settings(self))
        made.weight = nn.Parameter(self.weight.detach())
        return made.train(self.training)

    @classmethod
    def _settings(cls, table: Any) -> dict[str, Any]:
        """The arguments that make such a table."""
        placed = {"device": table.weight.device, "dtype": table.weight.dtype}
        return {name: getattr(table, name) for name in cls._SETTINGS} | placed


_OF_BOTH = ("num_embeddings", "embedding_dim", "padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse")


class Embedding(_Table, nn.Embedding):
    """A table of embeddings whose weight is fake-quantized at each call.

    Arguments:
        arguments: nn.Embedding's
        qconfig: the configuration; its weights are of per_channel_affine_float_qparams
        more: nn.Embedding's

    Raises: AssertionError without a qconfig.

    Example:
        >>> qconfig = tp.ao.quantization.default_embedding_qat_qconfig
        >>> tp.ao.nn.qat.Embedding(5, 4, qconfig=qconfig)(tp.tensor([0, 3])).shape
        tensorpy.Size([2, 4])
    """

    _FLOAT_MODULE = (nn.Embedding,)
    _SETTINGS = _OF_BOTH

    def forward(self, input: Tensor) -> Tensor:
        """Rows of the weight as it would be after quantization."""
        return F.embedding(
            input, self.weight_fake_quant(self.weight), self.padding_idx, self.max_norm, self.norm_type,
            self.scale_grad_by_freq, self.sparse,
        )  # fmt: skip


class EmbeddingBag(_Table, nn.EmbeddingBag):
    """A table of embeddings that are added up by bags, whose weight is fake-quantized at each call.

    Arguments:
        arguments: nn.EmbeddingBag's
        qconfig: the configuration; its weights are of per_channel_affine_float_qparams
        more: nn.EmbeddingBag's

    Raises: AssertionError without a qconfig.

    Example:
        >>> qconfig = tp.ao.quantization.default_embedding_qat_qconfig
        >>> tp.ao.nn.qat.EmbeddingBag(5, 4, qconfig=qconfig)(tp.tensor([[0, 3], [1, 1]])).shape
        tensorpy.Size([2, 4])
    """

    _FLOAT_MODULE = (nn.EmbeddingBag,)
    _SETTINGS = (*_OF_BOTH, "mode", "include_last_offset")

    def forward(self, input: Tensor, offsets: Any = None, per_sample_weights: Any = None) -> Tensor:
        """Sums of rows of the weight as it would be after quantization."""
        return F.embedding_bag(
            input, self.weight_fake_quant(self.weight), offsets, self.max_norm, self.norm_type,
            self.scale_grad_by_freq, self.mode, self.sparse, per_sample_weights, self.include_last_offset,
            self.padding_idx,
        )  # fmt: skip
