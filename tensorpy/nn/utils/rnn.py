"""Sequences of different lengths: padded to one length, or packed step by step, the longest first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tensorpy import _C
from tensorpy._C import Tensor

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class PackedSequence_(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes one.

    Returns: a tensor of int64, None of None.

    Example:
        >>> nn.utils.rnn.invert_permutation(tp.tensor([2, 0, 1]))
        tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    places = _C.arange(0, permutation.numel(), device=permutation.device)
    return _C.empty_like(permutation).scatter_(0, permutation, places)


class PackedSequence(PackedSequence_):
    """Rows of all sequences, step by step: step t has `batch_sizes[t]` rows. `sorted_indices` is the order in which the
    sequences were taken.

    Arguments:
        data: the data
        unsorted_indices: the order that undoes sorted_indices

    Raises: ValueError for batch_sizes that are not on the CPU.

    Example:
        >>> packed = nn.utils.rnn.pack_padded_sequence(tp.tensor([[1, 2], [3, 0]]), tp.tensor([2, 1]), batch_first=True)
        >>> packed.data, packed.batch_sizes
        (tensor([1, 3, 2]), tensor([2, 1]))
    """

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> Any:
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        if batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually."
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """With the data converted or moved."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        moved = [None if i is None else i.to(device=data.device) for i in (self.sorted_indices, self.unsorted_indices)]
        return type(self)(data, self.batch_sizes, *moved)

    def cpu(self) -> PackedSequence:
        """On the CPU."""
        return self.to("cpu")

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """On a CUDA device."""
        return self.to(*(args or ("cuda",)), **kwargs)

    def double(self) -> PackedSequence:
        """As float64."""
        return self.to(dtype=_C.float64)

    def float(self) -> PackedSequence:
        """As float32."""
        return self.to(dtype=_C.float32)

    def half(self) -> PackedSequence:
        """As float16."""
        return self.to(dtype=_C.float16)

    def long(self) -> PackedSequence:
        """As int64."""
        return self.to(dtype=_C.int64)

    def int(self) -> PackedSequence:
        """As int32."""
        return self.to(dtype=_C.int32)

    def short(self) -> PackedSequence:
        """As int16."""
        return self.to(dtype=_C.int16)

    def char(self) -> PackedSequence:
        """As int8."""
        return self.to(dtype=_C.int8)

    def byte(self) -> PackedSequence:
        """As uint8."""
        return self.to(dtype=_C.uint8)

    def pin_memory(self) -> PackedSequence:
        """With the data in pinned memory."""
        return type(self)(self.data.pin_memory(), *self[1:])

    def is_pinned(self) -> bool:
        """Whether the data is in pinned memory."""
        return self.data.is_pinned()

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on a CUDA device."""
        return self.data.device.type == "cuda"


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Packs a padded batch. The lengths must fall unless enforce_sorted=False, which sorts.

    Arguments:
        input: the tensor
        lengths: how long each sequence is
        batch_first: whether the batch is the first dimension, and the sequence the second
        enforce_sorted: whether the sequences must come with the longest first

    Returns: a PackedSequence.

    Raises: RuntimeError for lengths that are not one for each sequence, not positive, too long, or rise although
        enforce_sorted.

    Example:
        >>> packed = nn.utils.rnn.pack_padded_sequence(tp.tensor([[1, 2], [3, 0]]), tp.tensor([2, 1]), batch_first=True)
        >>> packed.data, packed.batch_sizes
        (tensor([1, 3, 2]), tensor([2, 1]))
    """
    if not isinstance(lengths, Tensor):
        lengths = _C.tensor(lengths, dtype=_C.int64)
    lengths = lengths.to(device="cpu", dtype=_C.int64)
    if not input.numel():
        raise RuntimeError("Cannot pack empty tensors.")
    order = None
    if not enforce_sorted:
        lengths, order = _C.sort(lengths, descending=True)
        order = order.to(device=input.device)
        input = input.index_select(0 if batch_first else 1, order)
    steps = input.transpose(0, 1) if batch_first else input
    wanted = lengths.tolist()
    if len(wanted) != steps.shape[1]:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(wanted)} (batch_size={steps.shape[1]})"
        )
    if any(n <= 0 for n in wanted):
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if wanted != sorted(wanted, reverse=True):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True; "
            "You can pass `enforce_sorted=False`, which sorts them"
        )
    if wanted[0] > steps.shape[0]:
        raise RuntimeError(f"Expected lengths of at most {steps.shape[0]} steps, but got {wanted[0]}")
    sizes = [sum(n > t for n in wanted) for t in range(wanted[0])]
    data = _C.cat([steps[t, :size] for t, size in enumerate(sizes)])
    return PackedSequence(data, _C.tensor(sizes, dtype=_C.int64), order, None)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """The padded batch of a packed one, and the lengths.

    Arguments:
        sequence: the packed sequence
        batch_first: whether the batch is the first dimension, and the sequence the second
        padding_value: the value of the padding
        total_length: the length to pad to; None takes the longest

    Returns: a tensor (L, N, *), or (N, L, *), and the lengths, int64.

    Raises: ValueError for a total_length below the longest sequence.

    Example:
        >>> packed = nn.utils.rnn.pack_sequence([tp.tensor([1, 2]), tp.tensor([3])])
        >>> nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
        (tensor([[1, 2],
                [3, 0]]), tensor([2, 1]))
    """
    sizes = sequence.batch_sizes.tolist()
    length = len(sizes)
    if total_length is not None:
        if total_length < length:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {length}"
            )
        length = total_length
    lengths = _C.tensor([sum(size > i for size in sizes) for i in range(sizes[0])], dtype=_C.int64)
    steps = [_filled(step, sizes[0], padding_value) for step in sequence.data.split(sizes, 0)]
    steps += [_C.full_like(steps[0], padding_value)] * (length - len(steps))
    padded = _C.stack(steps, 1 if batch_first else 0)
    if sequence.unsorted_indices is not None:
        back = sequence.unsorted_indices
        return padded.index_select(0 if batch_first else 1, back), lengths[back.cpu()]
    return padded, lengths


def _filled(step: Tensor, rows: int, value: float) -> Tensor:
    """A step with rows of a value below, so that it has as many as the first."""
    missing = rows - step.shape[0]
    return _C.cat([step, step.new_full((missing, *step.shape[1:]), value)]) if missing else step


def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Tensors of different lengths as one, with a value where they are too short.

    Arguments:
        sequences: tensors (L, *) of different lengths
        batch_first: whether the batch is the first dimension, and the sequence the second
        padding_value: the value of the padding
        padding_side: 'right' or 'left': where the padding stands

    Returns: a tensor (L, N, *), or with batch_first (N, L, *).

    Raises: RuntimeError for no sequences, or an unknown padding_side.

    Example:
        >>> nn.utils.rnn.pad_sequence([tp.tensor([1, 2]), tp.tensor([3])], batch_first=True)
        tensor([[1, 2],
                [3, 0]])
    """
    if isinstance(sequences, Tensor):
        sequences = sequences.unbind(0)
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    sequences = list(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    longest, rest = max(s.shape[0] for s in sequences), sequences[0].shape[1:]
    rows = []
    for sequence in sequences:
        missing = sequence.new_full((longest - sequence.shape[0], *rest), padding_value)
        rows.append(_C.cat([missing, sequence] if padding_side == "left" else [sequence, missing]))
    return _C.stack(rows, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The tensors that pad_sequence padded.

    Arguments:
        padded_sequences: the padded tensor
        lengths: how long each sequence is
        batch_first: whether the batch is the first dimension, and the sequence the second

    Returns: a list of tensors.

    Example:
        >>> nn.utils.rnn.unpad_sequence(tp.tensor([[1, 2], [3, 0]]), tp.tensor([2, 1]), batch_first=True)
        [tensor([1, 2]), tensor([3])]
    """
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[: int(n)] for row, n in zip(rows.unbind(0), lengths, strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Packs tensors of different lengths.

    Arguments:
        sequences: tensors (L, *) of different lengths
        enforce_sorted: whether the sequences must come with the longest first

    Returns: a PackedSequence.

    Raises: RuntimeError for lengths that rise although enforce_sorted.

    Example:
        >>> nn.utils.rnn.pack_sequence([tp.tensor([1, 2]), tp.tensor([3])]).data
        tensor([1, 3, 2])
    """
    lengths = _C.tensor([s.shape[0] for s in sequences], dtype=_C.int64)
    return pack_padded_sequence(pad_sequence(list(sequences)), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The tensors that pack_sequence packed.

    Arguments:
        packed_sequences: the packed sequence

    Returns: a list of tensors.

    Example:
        >>> nn.utils.rnn.unpack_sequence(nn.utils.rnn.pack_sequence([tp.tensor([1, 2]), tp.tensor([3])]))
        [tensor([1, 2]), tensor([3])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
