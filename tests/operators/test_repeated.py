"""Operands that come again, or stay for a while, in short rows (csrc/cpu/run.c): the bits are those of full tensors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tensorpy as tp

DTYPES = (
    tp.bool, tp.uint8, tp.int16, tp.int32, tp.int64, tp.float16, tp.bfloat16, tp.float32, tp.float64, tp.complex64,
    tp.complex128,
)  # fmt: skip

# The sizes of the result, and those of what is broadcast to it.
SHAPES: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((1000, 2), (2,)),
    ((1000, 3), (1000, 1)),
    ((700, 7), (7,)),
    ((700, 7), (700, 1)),
    ((300, 255), (255,)),
    ((300, 255), (300, 1)),
    ((40, 30, 5), (30, 5)),
    ((40, 30, 5), (30, 1)),
    ((40, 30, 5), (40, 1, 1)),
    ((40, 30, 5), (40, 1, 5)),
    ((9, 8, 7, 6, 5), (8, 1, 6, 1)),
    ((9, 8, 7, 6, 5), (1, 7, 1, 5)),
    ((9, 8, 7, 6, 5), (7, 6, 1)),
    ((5, 2000, 17), (1, 17)),
    ((100000, 4), (100000, 1)),
    ((100000, 4), (4,)),
)


def _number(sizes: tuple[int, ...], dtype: tp.dtype, seed: int) -> tp.Tensor:
    tp.manual_seed(seed)
    return tp.randint(1, 100, sizes).to(dtype)


def _cases() -> Iterator[tuple[tp.Tensor, tp.Tensor]]:
    for dtype in DTYPES:
        for sizes, small in SHAPES:
            yield _number(sizes, dtype, 0), _number(small, dtype, 1)


@pytest.mark.parametrize("threads", [1, 2])
def test_they_give_the_bits_of_full_tensors(threads: int) -> None:
    before = tp.get_num_threads()
    tp.set_num_threads(threads)
    try:
        for x, row in _cases():
            full = row.expand_as(x).contiguous()
            assert tp.equal(x + row, x + full), (x.shape, row.shape, x.dtype)
            assert tp.equal(row * x, full * x), (x.shape, row.shape, x.dtype)
            assert tp.equal(row.eq(x), full.eq(x)), (x.shape, row.shape, x.dtype)
    finally:
        tp.set_num_threads(before)


def test_several_of_them() -> None:
    x, mask = tp.randn(500, 12), tp.randn(12) > 0
    row, column = tp.randn(12), tp.randn(500, 1)
    full, wide = row.expand(500, 12).contiguous(), column.expand(500, 12).contiguous()
    assert tp.equal(tp.where(mask, row, column), tp.where(mask.expand(500, 12).contiguous(), full, wide))
    assert tp.equal(row + column, full + wide)
    assert tp.equal(tp.addcmul(x, row, column), tp.addcmul(x, full, wide))
    assert tp.equal(tp.addcmul(row, x, column), tp.addcmul(full, x, wide))
    assert tp.equal(tp.addcmul(x, row, column, value=0.5), tp.addcmul(x, full, wide, value=0.5))


def test_of_several_dtypes() -> None:
    """Each element as wide as it is, where another one's is wider."""
    big = tp.randint(0, 100, (6000, 3, 7), dtype=tp.int8)
    small, column = tp.randn(3, 7, dtype=tp.float64), tp.randn(6000, 1, 1, dtype=tp.complex128)
    assert tp.equal(big + small, big + small.expand(6000, 3, 7).contiguous())
    assert tp.equal(big + column, big + column.expand(6000, 3, 7).contiguous())
    row, wide = tp.randint(0, 100, (1000, 4), dtype=tp.int8), tp.randn(64, 1000, 1, dtype=tp.complex128)
    assert tp.equal(row * wide, row.expand(64, 1000, 4).contiguous() * wide.expand(64, 1000, 4).contiguous())
    narrow, pair = tp.randint(0, 100, (2000, 4), dtype=tp.int8), tp.randn(4, dtype=tp.complex128)
    all_of = tp.randint(0, 100, (64, 2000, 4), dtype=tp.int8)
    full = pair.expand(64, 2000, 4).contiguous(), narrow.expand(64, 2000, 4).contiguous()
    assert tp.equal(tp.where(all_of > 50, narrow, pair), tp.where(all_of > 50, full[1], full[0]))
    assert tp.equal(tp.addcmul(all_of.to(tp.complex128), narrow, pair), tp.addcmul(all_of, full[1], full[0]))


def test_into_given_memory() -> None:
    x, row = tp.randn(400, 9), tp.randn(9)
    expected = x + row.expand(400, 9).contiguous()
    out = tp.empty(400, 10)[:, :9]
    assert tp.equal(tp.add(x, row, out=out), expected)
    assert tp.equal(tp.add(x, row, out=tp.empty(9, 400).t()), expected)
    assert tp.equal(x.clone().add_(row), expected)
    assert tp.equal(x.t().contiguous().t() + row, expected)
    assert tp.equal(x.flip(0) + row, expected.flip(0))
