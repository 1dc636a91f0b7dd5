"""Operands whose elements follow each other across the rows of the result: values, dtypes and layouts mixed."""

from __future__ import annotations

import random

import pytest

import tensorpy as tp

DTYPES = [tp.bool, tp.uint8, tp.int16, tp.int32, tp.int64, tp.float16, tp.bfloat16, tp.float32, tp.float64]
DTYPES += [tp.complex64, tp.complex128]
LENGTHS = [1, 3, 7, 8, 9, 16, 17, 31, 64, 65, 100, 128, 130]  # around the edges of blocks and tiles
OPERATIONS = {
    "add": lambda a, b, c: a + b,
    "eq": lambda a, b, c: a == b,
    "where": lambda a, b, c: tp.where(c.bool(), a, b),
    "addcmul": lambda a, b, c: a.double().addcmul(b.double(), c.double()),
    "to": lambda a, b, c: a.to(tp.complex64 if b.is_complex() or a.is_complex() else b.dtype),
    "clone": lambda a, b, c: a.clone(memory_format=tp.contiguous_format),
}


def shape(draw: random.Random) -> list[int]:
    sizes = [draw.choice(LENGTHS) for _ in range(draw.choice([2, 2, 3, 4]))]
    for d in range(2, len(sizes)):
        sizes[d] = draw.choice([1, 2, 5])
    draw.shuffle(sizes)
    return sizes


def operand(draw: random.Random, sizes: list[int]) -> tp.Tensor:
    """A tensor whose dimensions lie in any order, with gaps, some of them backwards."""
    order = draw.sample(range(len(sizes)), len(sizes))
    steps = [draw.choice([1, 1, 2]) for _ in sizes]
    t = (tp.randn([sizes[d] * steps[d] for d in order]) * 5).to(draw.choice(DTYPES))
    t = t[tuple(slice(None, None, steps[d]) for d in order)].permute([order.index(d) for d in range(len(sizes))])
    return t.flip(draw.randrange(len(sizes))) if draw.random() < 0.1 else t


def same(a: tp.Tensor, b: tp.Tensor) -> bool:
    return a.dtype == b.dtype and bool(((a == b) | (a.isnan() & b.isnan())).all())


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.filterwarnings("ignore:Casting complex values to real")
def test_results_are_those_of_contiguous_operands(name: str) -> None:
    draw, operation = random.Random(name), OPERATIONS[name]
    for _ in range(150):
        sizes = shape(draw)
        given = [operand(draw, sizes) for _ in range(3)]
        if name == "addcmul":
            given = [t.real if t.is_complex() else t for t in given]
        assert same(operation(*given), operation(*(t.contiguous() for t in given))), [t.stride() for t in given]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_written_across(dtype: tp.dtype) -> None:
    """In place, and to an `out` whose elements lie across those of the inputs."""
    draw = random.Random(str(dtype))
    for _ in range(60):
        sizes = shape(draw)
        target = operand(draw, sizes).to(dtype, copy=True)
        given = operand(draw, sizes).to(dtype)
        want = target.contiguous() + given.contiguous()
        out = tp.empty(sizes[::-1], dtype=dtype).permute(*reversed(range(len(sizes))))
        assert same(tp.add(target, given, out=out), want)
        assert same(target.add_(given), want)
