"""Tables of integers, as modules."""

from __future__ import annotations

from typing import Any

from tensorpy import _C, nn
from tensorpy._C import Tensor
from tensorpy._tensor.quantized import per_channel_affine_float_qparams
from tensorpy.ao.nn.quantized import packed_embedding
from tensorpy.ao.nn.quantized.modules.utils import _quantize_weight

__all__ = ["Embedding", "EmbeddingBag", "EmbeddingPackedParams"]


def _plain(rows: int, columns: int, dtype: Any) -> Tensor:
    if dtype not in (_C.quint8, _C.quint4x2):
        raise NotImplementedError(f"tables are of quint8 and quint4x2, not of {dtype}")
    return _C.quantize_per_channel(_C.zeros(rows, columns), _C.ones(rows), _C.zeros(rows), 0, dtype)


class EmbeddingPackedParams(nn.Module):
    """A quantized table, which a state dict has as it is.

    Arguments:
        num_embeddings: how many rows it has
        embedding_dim: how many columns
        dtype: quint8 or quint4x2

    Example:
        >>> tp.ao.nn.quantized.EmbeddingPackedParams(2, 3)._weight().shape
        tensorpy.Size([2, 3])
    """

    dtype: Any

    _version = 1
    _packed_weight: packed_embedding.EmbeddingPackedParamsBase

    def __init__(self, num_embeddings: int, embedding_dim: int, dtype: Any = _C.quint8) -> None:
        super().__init__()
        self.dtype = dtype
        self.set_weight(_plain(num_embeddings, embedding_dim, dtype))

    def set_weight(self, weight: Tensor) -> None:
        """Lays out a table."""
        self._packed_weight = packed_embedding.embedding_bag_prepack(weight)

    def _weight(self) -> Tensor:
        return self._packed_weight.unpack()

    def forward(self, x: Tensor) -> Tensor:
        """Returns the tensor."""
        return x

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "dtype"] = self.dtype
        destination[prefix + "_packed_weight"] = self._weight()

    def _load_from_state_dict(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, *rest: Any
    ) -> None:
        self.dtype = state_dict.pop(prefix + "dtype")
        self.set_weight(state_dict.pop(prefix + "_packed_weight"))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *rest)

    def __repr__(self) -> str:
        return repr(self._weight())


class Embedding(nn.Module):
    """nn.Embedding with a table of integers.

    Arguments:
        num_embeddings: how many rows the table has
        embedding_dim: how many columns
        padding_idx: not read
        max_norm: not read
        norm_type: not read
        scale_grad_by_freq: not read
        sparse: not read
        _weight: a quantized table; None takes zeros
        dtype: quint8 or quint4x2

    Example:
        >>> tp.ao.nn.quantized.Embedding(10, 3)(tp.tensor([1, 2])).shape
        tensorpy.Size([2, 3])
    """

    num_embeddings: int
    embedding_dim: int
    dtype: Any
    _packed_params: EmbeddingPackedParams

    _version = 1
    _FLOAT_MODULE: Any = nn.Embedding

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Any = None,
        dtype: Any = _C.quint8,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.dtype = num_embeddings, embedding_dim, dtype
        self._packed_params = EmbeddingPackedParams(num_embeddings, embedding_dim, dtype)
        if _weight is not None:
            if tuple(_weight.shape) != (num_embeddings, embedding_dim):
                raise AssertionError(f"a table of {tuple(_weight.shape)}, not of {(num_embeddings, embedding_dim)}")
            self.set_weight(_weight)

    def forward(self, indices: Tensor) -> Tensor:
        """The rows of some indices, in float32."""
        called = packed_embedding.embedding_4bit if self._bits() == 4 else packed_embedding.embedding_byte
        return called(self._packed_params._packed_weight, indices)

    def _bits(self) -> int:
        return self._packed_params._packed_weight.bits

    def _get_name(self) -> str:
        return "QuantizedEmbedding"

    def extra_repr(self) -> str:
        """What `repr` shows between the parentheses."""
        return (
            f"num_embeddings={self.num_embeddings}, embedding_dim={self.embedding_dim}, "
            f"dtype={self._packed_params.dtype}, qscheme={self.weight().qscheme()}"
        )

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"  # without the table

    def set_weight(self, w: Tensor) -> None:
        """Takes a quantized table."""
        self._packed_params.set_weight(w)
        self._packed_params.dtype = self.dtype = w.dtype

    def weight(self) -> Tensor:
        """The quantized table."""
        return self._packed_params._weight()

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Embedding:
        """Makes one of a module with a qconfig whose weights have zero points in float32, or with fake quantization."""
        watching = cls._watching(mod)
        if watching.qscheme is not per_channel_affine_float_qparams:
            raise AssertionError("Embedding quantization is only supported with float_qparams_weight_only_qconfig.")
        watching(mod.weight)
        made = cls(mod.num_embeddings, mod.embedding_dim)
        made.set_weight(_quantize_weight(mod.weight.detach().float(), watching))
        return made

    @classmethod
    def _watching(cls, mod: Any) -> Any:
        """What says how the weight is quantized."""
        if hasattr(mod, "weight_fake_quant") and isinstance(mod, cls._FLOAT_MODULE):
            return mod.weight_fake_quant
        if type(mod) is not cls._FLOAT_MODULE or not hasattr(mod, "qconfig"):
            raise AssertionError(f"{cls.__name__}.from_float is of {cls._FLOAT_MODULE.__name__} with a qconfig")
        return mod.qconfig.weight()


class EmbeddingBag(Embedding):
    """nn.EmbeddingBag with a table of integers: sums of rows.

    Arguments:
        num_embeddings: how many rows the table has
        embedding_dim: how many columns
        max_norm: not read
        norm_type: not read
        scale_grad_by_freq: not read
        mode: 'sum'
        sparse: not read
        _weight: a quantized table; None takes zeros
        include_last_offset: whether the last offset is the number of indices
        dtype: quint8 or quint4x2

    Example:
        >>> tp.ao.nn.quantized.EmbeddingBag(10, 3)(tp.tensor([1, 2, 3]), tp.tensor([0, 2])).shape
        tensorpy.Size([2, 3])
    """

    mode: str
    pruned_weights: bool
    include_last_offset: bool

    _FLOAT_MODULE = nn.EmbeddingBag

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "sum", sparse: bool = False, _weight: Any = None,
        include_last_offset: bool = False, dtype: Any = _C.quint8,
    ) -> None:  # fmt: skip
        super().__init__(num_embeddings, embedding_dim, _weight=_weight, dtype=dtype)
        self.mode, self.pruned_weights, self.include_last_offset = mode, False, include_last_offset

    def forward(
        self, indices: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None,
        compressed_indices_mapping: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        """The sum of each bag's rows, in float32."""
        called = packed_embedding.embedding_bag_4bit if self._bits() == 4 else packed_embedding.embedding_bag_byte
        return called(
            self._packed_params._packed_weight, indices, offsets, False, 0, self.pruned_weights, per_sample_weights,
            compressed_indices_mapping, self.include_last_offset,
        )  # fmt: skip

    def _get_name(self) -> str:
        return "QuantizedEmbeddingBag"

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> EmbeddingBag:
        """Makes one of a module with a qconfig whose weights have zero points in float32, or with fake quantization."""
        if mod.mode != "sum":
            raise AssertionError(f"{cls.__name__} gives sums, not mode={mod.mode!r}")
        made: Any = super().from_float(mod, use_precomputed_fake_quant)
        made.include_last_offset = mod.include_last_offset
        return made
