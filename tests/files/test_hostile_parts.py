"""Files whose tensors of layouts have parts that do not fit each other: each is refused at load, for what is wrong.

A file is written of a good tensor's parts, of which one is then another. That the good parts are loaded shows that the
others are not refused for the name of what puts them together.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest

import tensorpy as tp
from tensorpy.serialization.pickler import Pickler

NAN, INF = float("nan"), float("inf")
BIG = 2**62


class Written:
    """What a file calls, and with what."""

    def __init__(self, make: Any, parts: tuple[Any, ...]) -> None:
        self.made = make, parts

    def __reduce__(self) -> Any:
        return self.made


DENSE = tp.tensor([[1.0, 0.0, 2.0, 0.0], [0.0, 3.0, 0.0, 0.0], [0.0, 0.0, 0.0, 4.0], [0.0, 0.0, 0.0, 0.0]])
PIECES = [tp.ones(2, 3), tp.ones(1, 3)]
MAKE: dict[str, Callable[[], tp.Tensor]] = {
    "coo": lambda: DENSE.to_sparse(),
    "hybrid": lambda: DENSE.to_sparse(1),
    "csr": lambda: DENSE.to_sparse_csr(),
    "csc": lambda: DENSE.to_sparse_csc(),
    "bsr": lambda: DENSE.to_sparse_bsr((2, 2)),
    "bsc": lambda: DENSE.to_sparse_bsc((2, 2)),
    "per tensor": lambda: tp.quantize_per_tensor(DENSE, 0.5, 3, tp.quint8),
    "per channel": lambda: tp.quantize_per_channel(DENSE, tp.ones(4), tp.zeros(4, dtype=tp.int64), 0, tp.qint8),
    "4 bits": lambda: tp.quantize_per_channel(DENSE, tp.ones(4), tp.zeros(4), 0, tp.quint4x2),
    "nested": lambda: tp.nested.nested_tensor(PIECES),
    "jagged": lambda: tp.nested.nested_tensor(PIECES, layout=tp.jagged),
}


def parts_of(t: tp.Tensor) -> tuple[Any, tuple[Any, ...]]:
    """What a file of the tensor calls, and with what."""
    make, parts = Pickler(io.BytesIO(), 2).reducer_override(t)
    return make, tuple(parts)


def dense_parts(t: Any) -> list[tp.Tensor]:
    if t.is_nested:
        return list(t.unbind())
    return [t.dequantize(), t.int_repr()] if t.is_quantized else [t.to_dense()]


def load(make: Any, parts: tuple[Any, ...], **options: Any) -> Any:
    file = io.BytesIO()
    tp.save(Written(make, parts), file)
    file.seek(0)
    return tp.load(file, **options)


def put(parts: Any, place: tuple[Any, ...], value: Any) -> Any:
    """The parts with another value at a place, which is a number for each level of tuples, or a key."""
    first, *rest = place
    inner = put(parts[first], tuple(rest), value) if rest else value
    if isinstance(parts, dict):
        return {**parts, first: inner}
    return (*parts[:first], inner, *parts[first + 1 :])


def longs(*numbers: Any) -> tp.Tensor:
    return tp.tensor(numbers, dtype=tp.int64)


def lines(layout: str, count: int, places: int, blocks: tuple[int, ...]) -> list[tuple[tuple[Any, ...], Any, str]]:
    """Of a compressed tensor of `count` values: where lines begin, places in them, values, and the size."""
    last = r"indices\[\.\.\., -1\] == nnz"
    begins = {last: [[0, count + 1], [0, 0], [0, -count], [0, BIG]], r"indices\[\.\.\., 0\] == 0": [[1, count]]}
    between = [0] * (1 if blocks else 3)
    found: list[tuple[tuple[Any, ...], Any, str]] = [
        ((1, 0), longs(first, *[first] * len(between), end), f"{why}.*{layout}|{layout}.*{why}")
        for why, all_ in begins.items()
        for first, end in all_
    ]
    falls = [0, count + 1, count] if blocks else [0, count, 0, count, count]
    fit = f"{layout}: borders of the size"
    found += [
        ((1, 0), longs(*falls), f"{layout}: (borders go from 0|a line has)"),
        *(
            ((1, 1), longs(*[0] * (count - 1), place), f"{layout}: a place is not among {places}")
            for place in (places, -1, BIG, -BIG)
        ),
        ((1, 0), longs(0, count), fit),
        ((1, 1), longs(0), fit),
        ((1, 0), tp.zeros(len(between) + 2), f"{layout}: indices are both of int32 or of int64"),
        ((1, 1), tp.zeros(count), f"{layout}: indices are both of int32 or of int64"),
        ((1, 2), tp.ones(count + 1, *blocks), fit),
        *(((1, 3), size, f"{fit}|a size of .* is not made of blocks") for size in ((4, 4, 4), (4,), (-4, 4), (1, 1))),
    ]
    return found


COORDINATES: list[tuple[tuple[Any, ...], Any, str]] = [
    ((1, 0), longs([0, 0, 1, 4], [0, 2, 1, 3]), "inconsistent with indices"),
    ((1, 0), longs([0, 0, 1, 2], [0, BIG, 1, 3]), "inconsistent with indices"),
    ((1, 0), longs([0, 0, 1, 2], [0, -1, 1, 3]), "negative index"),
    ((1, 0), longs([0, 0, 1, 2], [2, 0, 1, 3]), "not in order"),
    ((1, 0), longs([0, 0, 1, 2], [0, 0, 1, 3]), "each once"),
    ((1, 0), longs([0, 0, 1], [0, 2, 1]), "same nnz"),
    ((1, 0), longs(0, 0, 1, 2), "indices must be"),
    ((1, 1), tp.ones(5), "same nnz"),
    ((1, 1), tp.ones(4, 2), "len.size."),
    ((1, 2), (4, 4, 4), "len.size."),
    ((1, 2), (4, 3), "inconsistent with indices"),
    ((1, 2), (4, -4), "inconsistent with indices"),
    ((1, 2), (2**40, 2**40), "overflowed"),
    ((1, 2), "44", "is str, not tuple"),
    ((1, 1), "x", "no tensors"),
    ((0,), "torch.sparse_coo", "no layout"),
]
OUTSIDE = "out of bounds for storage|storage size calculation overflowed"
QUANTIZER: list[tuple[tuple[Any, ...], Any, str]] = [
    ((4,), (), "no quantizer"),
    ((1,), 7, OUTSIDE),
    ((1,), -1, "negative|storage offset -1|out of bounds"),
    ((2,), (4, 2**40), OUTSIDE),
    ((2,), (-1, 4), "negative dimension"),
]
# The integers stand in a storage; two in a byte have no strides.
STRIDES: list[tuple[tuple[Any, ...], Any, str]] = [
    ((3,), (BIG, 1), OUTSIDE),
    ((3,), (-4, 1), "before the start of the storage"),
]
OF_CHANNELS: list[tuple[tuple[Any, ...], Any, str]] = [
    *(((4, 1), tp.tensor([1.0, 1.0, 1.0, x]), f"scale {x:g} is no finite number") for x in (0.0, NAN, INF)),
    ((4, 1), tp.ones(3), "one scale and one zero point for each channel"),
    ((4, 1), "x", "no scales, zero points or axis"),
    ((4, 2), tp.zeros(3), "one scale and one zero point for each channel"),
    ((4, 2), 0, "no scales, zero points or axis"),
    *(((4, 3), axis, "axis out of range") for axis in (2, -3)),
    ((4, 3), "0", "no scales, zero points or axis"),
]
LEADS_OUT = "lead out of its values, or do not fit its lengths"
WRONG: dict[str, list[tuple[tuple[Any, ...], Any, str]]] = {
    "coo": COORDINATES,
    "hybrid": [
        ((1, 0), longs([0, 1, 4]), "inconsistent with indices"),
        ((1, 0), longs([-1, 1, 2]), "negative index"),
        ((1, 1), tp.ones(3, 5), "values has incorrect size"),
        ((1, 1), tp.ones(3), "len.size."),
        ((1, 2), (4, 3), "values has incorrect size"),
    ],
    "csr": lines("csr", 4, 4, ()),
    "csc": lines("csc", 4, 4, ()),
    "bsr": lines("bsr", 3, 2, (2, 2)),
    "bsc": lines("bsc", 3, 2, (2, 2)),
    "per tensor": [
        *QUANTIZER,
        *STRIDES,
        *(((4, 1), scale, "scale.*is no finite number") for scale in (0.0, NAN, INF, "0.5")),
        *(((4, 2), point, "zero_point .* is (below|above)") for point in (-1, 256, BIG)),
        ((4, 2), 0.5, "its zero point no int"),
        ((4, 0), tp.per_tensor_symmetric, "a scheme that no tensor has"),
        ((4, 0), tp.per_channel_affine, "a quantizer of 2 parts"),
    ],
    "per channel": [
        *QUANTIZER,
        *STRIDES,
        *OF_CHANNELS,
        *(((4, 2), longs(0, 0, 0, point), "zero_point .* is (below|above)") for point in (128, -BIG)),
    ],
    "4 bits": [
        *QUANTIZER,
        *OF_CHANNELS,
        *(((4, 2), tp.tensor([0.0, 0.0, 0.0, x]), "zero points .* are finite") for x in (NAN, INF)),
    ],
    "nested": [
        ((1,), longs([2, 3], [2, 3]), OUTSIDE),
        ((1,), longs([-2, 3], [1, 3]), "negative dimension"),
        ((1,), longs([BIG, BIG], [1, 3]), OUTSIDE),
        ((1,), longs(2, 3), "tables of sizes and strides"),
        ((2,), longs([BIG, 1], [3, 1]), OUTSIDE),
        ((2,), longs([-3, 1], [3, 1]), "negative strides"),
        ((3,), longs(0, 100), OUTSIDE),
        ((3,), longs(0, -1), "invalid storage offset -1"),
        ((3,), longs(0, BIG), "storage_offset is too large"),
        ((3,), longs(0), "tables of sizes and strides, and offsets"),
        ((0,), "x", "no tensors"),
    ],
    "jagged": [
        *(((0, "offsets"), longs(*at), LEADS_OUT) for at in ((0, 2, 4), (0, -1, 3), (0, 3, 2), (0, 2, BIG))),
        ((0, "offsets"), tp.zeros(3), "offsets and lengths in the file are of int32 or int64"),
        ((0, "offsets"), longs([0, 2, 3]), "offsets must be 1D"),
        ((0, "offsets"), None, "no values or offsets"),
        *(((0, "lengths"), longs(*n), LEADS_OUT) for n in ((2, 2), (-1, 1), (1, BIG), (1,))),
        ((0, "_ragged_idx"), 9, LEADS_OUT),
        *(((0, "_ragged_idx"), at, "lengths or dimension in the file are none") for at in (0, BIG, "1")),
    ],
}


@pytest.mark.parametrize("kind", MAKE)
@pytest.mark.parametrize("weights_only", [True, False])
def test_good_parts_are_loaded(kind: str, weights_only: bool) -> None:
    tensor = MAKE[kind]()
    made = load(*parts_of(tensor), weights_only=weights_only)
    assert made.layout is tensor.layout and made.dtype is tensor.dtype
    assert [part.tolist() for part in dense_parts(made)] == [part.tolist() for part in dense_parts(tensor)]


CASES = [
    pytest.param(kind, *wrong, id=f"{kind}-{number}")
    for kind, all_ in WRONG.items()
    for number, wrong in enumerate(all_)
]


@pytest.mark.parametrize(("kind", "place", "value", "why"), CASES)
@pytest.mark.parametrize("weights_only", [True, False])
def test_parts_that_do_not_fit_are_refused(kind: str, place: Any, value: Any, why: str, weights_only: bool) -> None:
    make, parts = parts_of(MAKE[kind]())
    with pytest.raises(Exception, match=f"(?is){why}") as raised:
        load(make, put(parts, place, value), weights_only=weights_only)
    assert "add_safe_globals" not in str(raised.value) and not isinstance(raised.value, (MemoryError, SystemError))
