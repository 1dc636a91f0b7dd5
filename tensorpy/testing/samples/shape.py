"""Samples of what rearranges elements: flips, rolls, repeats, padding by a constant, triangles, diagonals."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from .table import ALL_DTYPES, ARITHMETIC, LOOSE, WIDE_UNSIGNED, Make, samples


@samples("flip", reference=lambda x, dims: np.flip(x, tuple(dims)) if np.ndim(x) else x)
def flip(make: Make) -> Iterator[Any]:
    for shape, dims in (
        ((2, 3), (0,)), ((2, 3), (1,)), ((2, 3), (0, 1)), ((2, 3), (-1, 0)), ((2, 3), ()), ((2, 3, 4), (0, 2)),
        ((2, 3, 4), (-2,)), ((0, 3), (0,)), ((5,), (0,)), ((2, 0, 3), (2, 1)), ((), ()), ((), (0,)), ((3, 40), (1,)),
    ):  # fmt: skip
        yield make(shape), dims


@samples("fliplr", reference=np.fliplr)
@samples("flipud", reference=np.flipud)
def flip_matrix(make: Make) -> Iterator[Any]:
    for shape in ((2, 3), (2, 3, 4), (0, 3), (1, 1)):
        yield (make(shape),)


@samples("roll", reference=lambda x, shifts, dims=(): np.roll(x, shifts, tuple(np.atleast_1d(dims)) or None))
def roll(make: Make) -> Iterator[Any]:
    for shape, dim in itertools.product(((5,), (3, 4), (2, 3, 4)), (0, -1)):
        for shift in (0, 1, -2, 9):
            yield make(shape), shift, dim
    yield make(2, 3), 2
    yield make(2, 3), (1, 2), (0, 1)
    yield make(2, 3), (1, 1), (0, 0)
    yield make(2, 0), 1, 0
    yield make(2, 3), (-1,), (-1,)


@samples("rot90", reference=lambda x, k=1, dims=(0, 1): np.rot90(x, k, tuple(dims)))
def rot90(make: Make) -> Iterator[Any]:
    for shape, k in itertools.product(((2, 3), (0, 3)), range(-4, 5)):
        yield make(shape), k, (0, 1)
    for dims, k in itertools.product(((0, 1), (1, 0), (0, 2), (-1, -2), (2, 0)), (-1, 1, 2, 3)):
        yield make(2, 3, 4), k, dims
    yield (make(2, 3),)


@samples("repeat", reference=np.tile)
def repeat(make: Make) -> Iterator[Any]:
    counts = ((), (2,), (0,), (2, 1), (1, 3), (2, 0, 3), (1, 1, 1), (2, 3, 1), (1, 2, 1, 2))
    for shape, count in itertools.product(((), (1,), (3,), (2, 3), (0, 2), (2, 1, 3), (1, 2, 2)), counts):
        if len(count) >= len(shape):
            yield make(shape), count


@samples("tile", reference=np.tile)
def tile(make: Make) -> Iterator[Any]:
    counts = ((), (2,), (0,), (1, 3), (2, 0), (1, 1, 1), (2, 3, 1), (1, 2, 1, 2))
    for shape, count in itertools.product(((), (1,), (3,), (2, 3), (0, 2), (2, 1, 3), (1, 2, 2)), counts):
        yield make(shape), count


@samples("repeat_interleave.self_int", reference=lambda x, n, dim=None, output_size=None: np.repeat(x, n, dim))
def repeat_interleave(make: Make) -> Iterator[Any]:
    for shape, n in itertools.product(((3,), (2, 3), (0, 2)), (0, 1, 3)):
        yield make(shape), n
        yield make(shape), n, 0
        yield make(shape), n, -1
    yield make(()), 2
    yield make(3), 2, 0, {"output_size": 6}


@samples("repeat_interleave.self_Tensor", reference=lambda x, n, dim=None, output_size=None: np.repeat(x, n, dim),
         needs_values=True)  # fmt: skip
def repeat_interleave_by(make: Make) -> Iterator[Any]:
    yield make(3), make.array([1, 0, 2])
    yield make(2, 3), make.array([1, 2]), 0
    yield make(2, 3), make.array([1, 2, 3]), -1
    yield make(2, 3), make.array([2]), 1
    yield make(2, 2), make.array([1, 2, 3, 0])


@samples("repeat_interleave.Tensor", reference=lambda n, output_size=None: np.repeat(np.arange(n.size), n),
         dtypes=("int32", "int64"))  # fmt: skip
def repeat_interleave_places(make: Make) -> Iterator[Any]:
    for counts in ([1, 2, 3], [0, 2, 0], [4], []):
        yield (make.own(counts),)
    yield make.own([1, 2]), {"output_size": 3}


@samples("tril", reference=np.tril)
@samples("triu", reference=np.triu)
def triangle(make: Make) -> Iterator[Any]:
    for shape, k in itertools.product(((3, 4), (4, 3), (2, 3, 3), (0, 3)), (0, 1, -1, 9)):
        yield make(shape), k
    yield (make(5, 5),)


# ---- diagonals ----


@samples("diagonal", reference=np.diagonal)
def diagonal(make: Make) -> Iterator[Any]:
    for offset in (0, 1, -1, 2, -2, 7):
        yield make(3, 4), offset
        yield make(2, 3, 4), offset, 1, 2
        yield make(2, 3, 4), offset, -1, 0
    yield (make(3, 3),)
    yield make(0, 3), 0
    yield make(2, 3, 4, 2), 1, 3, 1


def _diag_embed(x: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    n = x.shape[-1] + abs(offset)
    out = np.zeros((*x.shape[:-1], n, n), x.dtype)
    for i in range(x.shape[-1]):
        out[..., i + max(-offset, 0), i + max(offset, 0)] = x[..., i]
    return np.moveaxis(out, (-2, -1), (dim1, dim2))


@samples("diag_embed", reference=_diag_embed)
def diag_embed(make: Make) -> Iterator[Any]:
    for offset in (0, 1, -1, 3):
        yield make(3), offset
        yield make(2, 3), offset
        yield make(2, 3), offset, 0, 2
        yield make(2, 3), offset, -1, 0
    yield (make(0),)


@samples("diag", reference=np.diag)
def diag(make: Make) -> Iterator[Any]:
    for shape, k in itertools.product(((3,), (3, 4), (4, 3), (0,)), (0, 1, -1, 2, -4)):
        yield make(shape), k


@samples("trace", reference=np.trace, dtypes=tuple(d for d in ALL_DTYPES if d not in WIDE_UNSIGNED), tolerances=LOOSE)
def trace(make: Make) -> Iterator[Any]:
    for shape in ((3, 3), (2, 4), (4, 2), (0, 3), (1, 1)):
        yield (make(shape),)


# ---- padding ----


def widths(pad: Any, ndim: int) -> list[tuple[int, int]]:
    """NumPy's widths of padding given from the last dimension on."""
    pairs = list(zip(pad[::2], pad[1::2], strict=True))
    return [(0, 0)] * (ndim - len(pairs)) + pairs[::-1]


def padded(x: Any, pad: Any, mode: str = "constant", value: float | None = None) -> Any:
    """Negative widths cut off."""
    around = widths(pad, x.ndim)
    options = {"constant_values": value or 0} if mode == "constant" else {}
    names = {"reflect": "reflect", "replicate": "edge", "circular": "wrap", "constant": "constant"}
    left = tuple(slice(max(-a, 0), None if b >= 0 else b) for a, b in around)
    x = x[left] if mode == "circular" else x
    x = np.pad(x, [(max(a, 0), max(b, 0)) for a, b in around], names[mode], **options)  # type: ignore[call-overload]
    return x if mode == "circular" else x[left]


PADS = (
    ((3,), (1, 2)), ((3,), (0, 0)), ((3,), (-1, 1)), ((3,), (2, -3)), ((2, 3), (1, 2)), ((2, 3), (1, 0, 0, 2)),
    ((2, 3), (-1, -1, 2, 1)), ((2, 3), (0, 1, -1, 0)), ((2, 1, 3), (1, 1, 2, 0, 0, 1)), ((2, 1, 3), (2, 2)),
    ((0, 3), (1, 1)), ((0, 3), (0, 0, 1, 1)), ((2, 3, 4, 2), (1, 1, 0, 2)),
)  # fmt: skip


@samples("constant_pad_nd", reference=lambda x, pad, value=0: padded(x, pad, "constant", value))
def constant_pad(make: Make) -> Iterator[Any]:
    for (shape, pad), value in itertools.product(PADS, (None, 0, 1, 5)):
        yield make(shape), pad, *(() if value is None else (value,))


@samples("pad", reference=padded, dtypes=ARITHMETIC)
def pad(make: Make) -> Iterator[Any]:
    for (shape, around), value in itertools.product(PADS, (None, 0.0, 1.0, 2.0)):
        yield make(shape), around, {"mode": "constant", "value": value}
    yield make(3), (1, 1)
    for mode in ("reflect", "replicate", "circular"):
        for shape, around in (((2, 5), (2, 1)), ((2, 3, 5), (1, 2)), ((2, 4, 5), (1, 2, 2, 0)),
                              ((2, 1, 4, 5), (1, 1, 2, 2)), ((1, 3, 4, 5), (0, 1, 1, 2, 2, 1))):  # fmt: skip
            yield make(shape), around, mode
    for around in ((-1, 2), (2, -1), (-1, -1), (1, -2), (0, -3)):  # what comes round is of what is left
        yield make(2, 5), around, "circular"
    yield make(2, 4, 5), (1, -1, -1, 2), "circular"


def _pad_by(mode: str) -> Any:
    return lambda x, pad: padded(x, pad, mode)


BY_DIMS = {
    1: (((2, 5), (2, 1)), ((1, 2, 5), (0, 3)), ((2, 5), (0, 0)), ((2, 5), (-1, 2))),
    2: (
        ((2, 4, 5), (1, 2, 3, 0)),
        ((1, 2, 4, 5), (2, 2, 1, 1)),
        ((2, 4, 5), (0, 0, 0, 0)),
        ((2, 4, 5), (-1, 1, 2, -1)),
    ),
    3: (((2, 3, 4, 5), (1, 2, 3, 0, 1, 2)), ((1, 2, 3, 4, 5), (2, 0, 1, 1, 0, 1)), ((1, 2, 2, 2), (0, 1, 0, 1, 1, 0))),
}
for _dims, _cases in BY_DIMS.items():

    def _padding(make: Make, cases: Any = _cases) -> Iterator[Any]:
        for shape, pad in cases:
            yield make(shape), pad

    samples(f"reflection_pad{_dims}d", reference=_pad_by("reflect"), dtypes=ARITHMETIC)(_padding)
    samples(f"replication_pad{_dims}d", reference=_pad_by("replicate"), dtypes=ARITHMETIC)(_padding)
