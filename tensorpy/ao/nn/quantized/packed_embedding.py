"""Tables of integers: rows by index, and their sums, as operators of `ops.quantized`."""

from __future__ import annotations

from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._tensor.quantized import narrowed, per_channel_affine_float_qparams, unpacked
from tensorpy.nn import functional as F

__all__ = [
    "embedding_4bit", "embedding_bag_2bit_prepack", "embedding_bag_2bit_prepack_with_rowwise_min_max",
    "embedding_bag_2bit_rowwise_offsets", "embedding_bag_2bit_unpack", "embedding_bag_4bit",
    "embedding_bag_4bit_prepack", "embedding_bag_4bit_prepack_with_rowwise_min_max",
    "embedding_bag_4bit_rowwise_offsets", "embedding_bag_4bit_unpack", "embedding_bag_byte",
    "embedding_bag_byte_prepack", "embedding_bag_byte_prepack_with_rowwise_min_max",
    "embedding_bag_byte_rowwise_offsets", "embedding_bag_byte_unpack", "embedding_bag_prepack", "embedding_bag_unpack",
    "embedding_byte",
]  # fmt: skip


class EmbeddingPackedParamsBase:
    """A table of quint8 or quint4x2 [rows, columns], each row with its scale and zero point: a byte has one number, or
    two, and a row whole bytes.

    Pickled, it is the table.
    """

    rows_of_bytes: Tensor
    scales: Tensor
    shifts: Tensor

    def __init__(self, weight: Tensor) -> None:
        self.columns, self.bits = weight.shape[1], 8 if weight.dtype == _C.quint8 else 4
        integers = _C._layout_part(weight, 0)
        if self.bits == 4:
            whole = F.pad(integers, (0, self.columns % 2))
            integers = _C._packed_integers(whole, 2).reshape(whole.shape[0], whole.shape[1] // 2)
        else:
            integers = integers.clone()
        self.rows_of_bytes = integers
        self._numbers = weight.q_per_channel_scales(), weight.q_per_channel_zero_points()
        scales, points = (numbers.to(_C.float32) for numbers in self._numbers)
        shifts = -scales * points
        if self.bits == 4:  # PyTorch keeps these in float16 beside the integers
            scales, shifts = scales.half().float(), shifts.half().float()
        self.scales, self.shifts = scales, shifts

    def _integers(self, packed: Tensor) -> Tensor:
        return packed if self.bits == 8 else unpacked(packed, 4)[:, : self.columns]

    def unpack(self) -> Tensor:
        """The table."""
        dtype = _C.quint8 if self.bits == 8 else _C.quint4x2
        return _C._quantized_channels(self._integers(self.rows_of_bytes).clone(), dtype, *self._numbers, 0)

    def __reduce__(self) -> Any:
        return embedding_bag_prepack, (self.unpack(),)

    def __deepcopy__(self, memo: Any) -> Any:
        return self  # nobody changes it

    def rows(self, indices: Tensor) -> Tensor:
        """The numbers of some rows."""
        scale, shift = (part.index_select(0, indices).unsqueeze(1) for part in (self.scales, self.shifts))
        return self._integers(self.rows_of_bytes.index_select(0, indices)).to(_C.float32) * scale + shift


# ---- tables ----


def embedding_bag_prepack(weight: Tensor) -> EmbeddingPackedParamsBase:
    """A table of quint8 or quint4x2 that is quantized per channel with zero points in float32, laid out."""
    if not weight.is_quantized or weight.dtype not in (_C.quint8, _C.quint4x2):
        raise RuntimeError(f"quantized::embedding_bag_prepack: a table of quint8 or quint4x2, not of {weight.dtype}")
    if weight.dim() != 2:
        raise RuntimeError(f"quantized::embedding_bag_prepack: a matrix, not {tuple(weight.shape)}")
    if weight.qscheme() is not per_channel_affine_float_qparams or weight.q_per_channel_axis() != 0:
        raise RuntimeError("Expect embedding_bag weights to be quantized using kPerChannelAffineFloatQParams")
    return EmbeddingPackedParamsBase(weight)


def embedding_bag_unpack(W_prepack: Any) -> Tensor:
    """The table that embedding_bag_prepack got."""
    return _table("embedding_bag_unpack", W_prepack).unpack()


def _table(name: str, weight: Any, bits: int | None = None) -> EmbeddingPackedParamsBase:
    if isinstance(weight, EmbeddingPackedParamsBase) and bits in (None, weight.bits):
        return weight
    kind = "a table" if bits is None else f"a table of {bits} bits"
    raise RuntimeError(f"quantized::{name}: {kind} from embedding_bag_prepack, not {type(weight).__name__}")


def _by_rows(weight: Tensor, ends: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """The numbers, and the least and the greatest of each row, or what is given for them."""
    if weight.dim() != 2 or weight.dtype not in (_C.float32, _C.float16):
        raise RuntimeError(f"a table is a matrix of float32 or float16, not {tuple(weight.shape)} of {weight.dtype}")
    weight = weight.detach().float()
    if ends is None:
        return weight, weight.amin(1, keepdim=True), weight.amax(1, keepdim=True)
    if tuple(ends.shape) != (weight.shape[0], 2):
        raise RuntimeError(f"rowwise_min_max has shape {tuple(ends.shape)}, and not two numbers for each row")
    ends = ends.detach().float()
    return weight, ends[:, :1], ends[:, 1:]


def embedding_bag_byte_prepack(weight: Tensor) -> Tensor:
    """Each row as bytes, then the 8 bytes of its scale and its least number in float32."""
    return _prepacked_bytes(*_by_rows(weight))


def embedding_bag_byte_prepack_with_rowwise_min_max(weight: Tensor, rowwise_min_max: Tensor) -> Tensor:
    """embedding_bag_byte_prepack with the least and the greatest number of each row given, [rows, 2]."""
    if rowwise_min_max.dtype != weight.dtype:
        raise RuntimeError(f"rowwise_min_max is of {rowwise_min_max.dtype}, and the table of {weight.dtype}")
    return _prepacked_bytes(*_by_rows(weight, rowwise_min_max))


def _prepacked_bytes(numbers: Tensor, least: Tensor, greatest: Tensor) -> Tensor:
    width = greatest - least
    # Numbers outside of a given range keep their lowest eight bits, as in PyTorch.
    integers = ((numbers - least) * (255.0 / (width + 1e-8))).round().to(_C.int64).to(_C.uint8)
    return _C.cat([integers, (width / 255).view(_C.uint8), least.contiguous().view(_C.uint8)], 1)


def embedding_bag_byte_unpack(weight: Tensor) -> Tensor:
    """The numbers of what embedding_bag_byte_prepack gives."""
    integers, scale, least = _byte_parts(weight)
    return integers.to(_C.float32) * scale + least


def _byte_parts(weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    if weight.dim() != 2 or weight.dtype != _C.uint8 or weight.shape[1] < 8:
        raise RuntimeError("a table of bytes has the bytes of a row, and 8 more")
    numbers = weight[:, -8:].contiguous().view(_C.float32)
    return weight[:, :-8], numbers[:, :1], numbers[:, 1:]


def embedding_bag_4bit_prepack(
    weight: Tensor, optimized_qparams: bool = False, nbins: int = 200, ratio: float = 0.16
) -> Tensor:
    """Each row as integers of 4 bits, two in a byte, then the 4 bytes of its scale and its least number in float16.

    With `optimized_qparams` a row's range is narrowed by steps of 1 / nbins, to `1 - ratio` of it at the least, where
    its integers then are nearer to its numbers.
    """
    return _prepacked(4, weight, None, optimized_qparams, nbins, ratio)


def embedding_bag_2bit_prepack(
    weight: Tensor, optimized_qparams: bool = False, nbins: int = 200, ratio: float = 0.16
) -> Tensor:
    """As embedding_bag_4bit_prepack, of 2 bits, four in a byte."""
    return _prepacked(2, weight, None, optimized_qparams, nbins, ratio)


def embedding_bag_4bit_prepack_with_rowwise_min_max(
    weight: Tensor, rowwise_min_max: Tensor, optimized_qparams: bool = False, nbins: int = 200, ratio: float = 0.16
) -> Tensor:
    """embedding_bag_4bit_prepack with the least and the greatest number of each row given, [rows, 2]."""
    return _prepacked(4, weight, rowwise_min_max, optimized_qparams, nbins, ratio)


def embedding_bag_2bit_prepack_with_rowwise_min_max(
    weight: Tensor, rowwise_min_max: Tensor, optimized_qparams: bool = False, nbins: int = 200, ratio: float = 0.16
) -> Tensor:
    """embedding_bag_2bit_prepack with the least and the greatest number of each row given, [rows, 2]."""
    return _prepacked(2, weight, rowwise_min_max, optimized_qparams, nbins, ratio)


def _prepacked(
    bits: int, weight: Tensor, ends: Tensor | None, optimized_qparams: bool, nbins: int, ratio: float
) -> Tensor:
    numbers, least, greatest = _by_rows(weight, ends)
    in_a_byte = 8 // bits
    if weight.shape[1] % in_a_byte:
        raise RuntimeError(
            f"quantized::embedding_bag_{bits}bit_prepack: the number of columns is a multiple of {in_a_byte}, not "
            f"{weight.shape[1]}"
        )
    if optimized_qparams:
        least, greatest = _narrowed(numbers, least, greatest, bits, nbins, ratio)
    integers, scale, least = _integers(numbers, least, greatest, bits)
    packed = sum((integers[:, at::in_a_byte] << (bits * at) for at in range(1, in_a_byte)), integers[:, ::in_a_byte])
    return _C.cat([packed, scale.view(_C.uint8), least.view(_C.uint8)], 1)


def _integers(numbers: Tensor, least: Tensor, greatest: Tensor, bits: int) -> tuple[Tensor, Tensor, Tensor]:
    """The integers of rows between two ends, and the scale and the least number of each in float16."""
    least = least.half()
    scale = ((greatest - least.float()) / (2**bits - 1)).half()
    scale = _C.where(scale == 0, _C.ones_like(scale), scale)
    integers = ((numbers - least.float()) / scale.float()).round().clamp(0, 2**bits - 1).to(_C.uint8)
    return integers, scale, least


def _narrowed(
    numbers: Tensor, least: Tensor, greatest: Tensor, bits: int, nbins: int, ratio: float
) -> tuple[Tensor, Tensor]:
    """The ends of rows that give the least error."""
    if nbins < 1:
        raise RuntimeError(f"nbins is at least 1, not {nbins}")

    def error(low: Tensor, high: Tensor) -> Tensor:
        integers, scale, start = _integers(numbers, low, high, bits)
        return (integers * scale.float() + start.float() - numbers).square().sum(1, keepdim=True).sqrt()

    return narrowed(error, least, greatest, nbins, int(nbins * (1.0 - ratio)))


def embedding_bag_4bit_unpack(weight: Tensor) -> Tensor:
    """The numbers of what embedding_bag_4bit_prepack gives."""
    return _numbers(weight, 4)


def embedding_bag_2bit_unpack(weight: Tensor) -> Tensor:
    """The numbers of what embedding_bag_2bit_prepack gives."""
    return _numbers(weight, 2)


def _check_packed(weight: Tensor, bits: int) -> None:
    if weight.dim() != 2 or weight.dtype != _C.uint8 or weight.shape[1] < 4:
        raise RuntimeError(f"a table of {bits} bits has the bytes of a row, and 4 more")


def _numbers(weight: Tensor, bits: int) -> Tensor:
    _check_packed(weight, bits)
    ends = weight[:, -4:].contiguous().view(_C.float16).float()
    return unpacked(weight[:, :-4], bits).to(_C.float32) * ends[:, :1] + ends[:, 1:]


# ---- rows, and sums of rows ----


def _indices(name: str, indices: Tensor) -> Tensor:
    if indices.dtype not in (_C.int32, _C.int64):
        raise RuntimeError(f"quantized::{name}: Expect 32 or 64 bit indices, but found {indices.dtype} instead.")
    return indices.to(_C.int64)


def _rows(name: str, table: Any, count: int, indices: Tensor) -> Tensor:
    flat = _indices(name, indices).flatten()
    if flat.numel() and (int(flat.min()) < 0 or int(flat.max()) >= count):
        raise RuntimeError(f"quantized::{name}: an index is out of bounds, range 0 to {count}")
    return table(flat)


def _sums(
    name: str, table: Any, count: int, indices: Tensor, offsets: Tensor | None, weights: Tensor | None,
    mapping: Tensor | None, last: bool,
) -> Tensor:  # fmt: skip
    """Sums over bags, whichever mode is asked for, as PyTorch's operators compute."""
    if indices.dim() not in (1, 2):
        raise RuntimeError(f"qembedding/qembedding_bag operator supports 1 or 2d indices, got {indices.dim()}")
    if indices.dim() == 1 and offsets is None:
        raise RuntimeError(f"{name} expects offsets to be set for 1D indices.")
    flat = _indices(name, indices)
    if indices.dim() == 2:
        offsets, last = _C.arange(0, indices.numel(), max(indices.shape[1], 1)), False
        offsets = offsets if indices.shape[1] else _C.zeros(indices.shape[0], dtype=_C.int64)
    flat, there = flat.flatten(), None
    if mapping is not None and mapping.numel() == 1 and not int(mapping):
        mapping = None  # PyTorch's word for a table that has all rows
    if mapping is not None:  # rows that were taken out have -1
        flat = _rows(name, lambda at: mapping.index_select(0, at), mapping.shape[0], flat).to(_C.int64)
        there = (flat >= 0).to(_C.float32)
        flat = flat.clamp(min=0)
    rows = _rows(name, table, count, flat)
    rows = rows if there is None else rows * there.unsqueeze(1)
    at = _C.arange(rows.shape[0])
    by = None if weights is None else weights.to(_C.float32).flatten()
    assert offsets is not None
    if rows.shape[0] == 0:
        return _C.zeros(offsets.numel() - int(last), rows.shape[1])
    return F.embedding_bag(at, rows, offsets.to(_C.int64), mode="sum", per_sample_weights=by, include_last_offset=last)


def embedding_byte(weight: Any, indices: Tensor, pruned_weights: bool = False) -> Tensor:
    """The rows of a table of quint8, in float32."""
    table = _table("embedding_byte", weight, 8)
    return _rows("embedding_byte", table.rows, len(table.scales), indices).reshape(*indices.shape, -1)


def embedding_4bit(weight: Any, indices: Tensor, pruned_weights: bool = False) -> Tensor:
    """The rows of a table of quint4x2, in float32."""
    table = _table("embedding_4bit", weight, 4)
    return _rows("embedding_4bit", table.rows, len(table.scales), indices).reshape(*indices.shape, -1)


def embedding_bag_byte(
    weight: Any, indices: Tensor, offsets: Tensor | None = None, scale_grad_by_freq: bool = False, mode: int = 0,
    pruned_weights: bool = False, per_sample_weights: Tensor | None = None,
    compressed_indices_mapping: Tensor | None = None, include_last_offset: bool = False,
) -> Tensor:  # fmt: skip
    """Sums of rows of a table of quint8, bag by bag."""
    table = _table("embedding_bag_byte", weight, 8)
    rest = (per_sample_weights, compressed_indices_mapping if pruned_weights else None, include_last_offset)
    return _sums("embedding_bag_byte", table.rows, len(table.scales), indices, offsets, *rest)


def embedding_bag_4bit(
    weight: Any, indices: Tensor, offsets: Tensor | None = None, scale_grad_by_freq: bool = False, mode: int = 0,
    pruned_weights: bool = False, per_sample_weights: Tensor | None = None,
    compressed_indices_mapping: Tensor | None = None, include_last_offset: bool = False,
) -> Tensor:  # fmt: skip
    """Sums of rows of a table of quint4x2, bag by bag."""
    table = _table("embedding_bag_4bit", weight, 4)
    rest = (per_sample_weights, compressed_indices_mapping if pruned_weights else None, include_last_offset)
    return _sums("embedding_bag_4bit", table.rows, len(table.scales), indices, offsets, *rest)


def embedding_bag_byte_rowwise_offsets(
    weight: Tensor, indices: Tensor, offsets: Tensor | None = None, scale_grad_by_freq: bool = False, mode: int = 0,
    pruned_weights: bool = False, per_sample_weights: Tensor | None = None,
    compressed_indices_mapping: Tensor | None = None, include_last_offset: bool = False,
) -> Tensor:  # fmt: skip
    """embedding_bag_byte of what embedding_bag_byte_prepack gives."""
    _byte_parts(weight)
    rest = (per_sample_weights, compressed_indices_mapping if pruned_weights else None, include_last_offset)
    name = "embedding_bag_byte_rowwise_offsets"
    return _sums(
        name, lambda at: embedding_bag_byte_unpack(weight.index_select(0, at)), len(weight), indices, offsets, *rest
    )


def _sums_of_packed(
    bits: int, weight: Tensor, indices: Tensor, offsets: Tensor | None, weights: Tensor | None, mapping: Tensor | None,
    last: bool,
) -> Tensor:  # fmt: skip
    _check_packed(weight, bits)
    name = f"embedding_bag_{bits}bit_rowwise_offsets"
    rest = (indices, offsets, weights, mapping, last)
    return _sums(name, lambda at: _numbers(weight.index_select(0, at), bits), len(weight), *rest)


def embedding_bag_4bit_rowwise_offsets(
    weight: Tensor, indices: Tensor, offsets: Tensor | None = None, scale_grad_by_freq: bool = False, mode: int = 0,
    pruned_weights: bool = False, per_sample_weights: Tensor | None = None,
    compressed_indices_mapping: Tensor | None = None, include_last_offset: bool = False,
) -> Tensor:  # fmt: skip
    """embedding_bag_4bit of what embedding_bag_4bit_prepack gives."""
    mapping = compressed_indices_mapping if pruned_weights else None
    return _sums_of_packed(4, weight, indices, offsets, per_sample_weights, mapping, include_last_offset)


def embedding_bag_2bit_rowwise_offsets(
    weight: Tensor, indices: Tensor, offsets: Tensor | None = None, scale_grad_by_freq: bool = False, mode: int = 0,
    pruned_weights: bool = False, per_sample_weights: Tensor | None = None,
    compressed_indices_mapping: Tensor | None = None, include_last_offset: bool = False,
) -> Tensor:  # fmt: skip
    """Sums of rows, bag by bag, of what embedding_bag_2bit_prepack gives."""
    mapping = compressed_indices_mapping if pruned_weights else None
    return _sums_of_packed(2, weight, indices, offsets, per_sample_weights, mapping, include_last_offset)
