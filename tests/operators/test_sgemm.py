"""float32 products by tiles in registers: sizes around the borders of tiles and blocks, layouts, threads."""

from __future__ import annotations

import random

import numpy as np
import pytest
from programs import LESSER, on_lesser_cpu

import tensorpy as tp

# Around the rows of a tile (14, 6), its vectors and columns (8, 16, 32), and the rows that are turned (64).
SIZES = (1, 4, 5, 7, 8, 13, 14, 15, 16, 17, 27, 31, 32, 33, 47, 48, 49, 63, 64, 65, 97, 128, 260)
DEPTHS = (1, 15, 16, 17, 23, 64, 100, 383, 384, 385, 800)
LARGE = ((448, 16, 20), (449, 300, 16), (900, 40, 390), (20, 4100, 17), (64, 4100, 400), (1000, 290, 33))


def cases() -> list[tuple[int, int, int]]:
    draw = random.Random(0)
    pairs = [(m, n) for m in SIZES for n in SIZES]
    return [(m, n, draw.choice(DEPTHS)) for m, n in pairs] + list(LARGE)


def laid(array: np.ndarray, layout: str) -> tp.Tensor:
    """The same numbers by rows, by columns, or with a gap behind each row or column."""
    rows, columns = array.shape
    if layout == "rows":
        return tp.tensor(array)
    if layout == "columns":
        return tp.tensor(np.ascontiguousarray(array.T)).t()
    if layout == "rows, gaps":
        return tp.tensor(np.pad(array, ((0, 0), (1, 2)), constant_values=np.nan))[:, 1 : columns + 1]
    return tp.tensor(np.pad(array.T, ((0, 0), (3, 1)), constant_values=np.nan))[:, 3 : rows + 3].t()


LAYOUTS = ("rows", "columns", "rows, gaps", "columns, gaps")


@pytest.mark.parametrize("b_layout", LAYOUTS)
@pytest.mark.parametrize("a_layout", LAYOUTS)
def test_in_registers(a_layout: str, b_layout: str) -> None:
    """Also onto another matrix, scaled, into memory by rows and by columns; what is around the result stays."""
    draw, rng = random.Random(a_layout + b_layout), np.random.default_rng(1)
    for m, n, k in draw.sample(cases(), 130) + list(LARGE):
        a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
        x, y = laid(a, a_layout), laid(b, b_layout)
        wide = a.astype(np.float64) @ b
        bound = 4e-7 * (np.abs(a).astype(np.float64) @ np.abs(b)) * max(1, k) ** 0.5
        assert (np.abs(tp.mm(x, y).numpy() - wide) <= bound).all(), (m, n, k)
        around = tp.full((m + 2, n + 2), 7.0) if draw.random() < 0.5 else tp.full((n + 2, m + 2), 7.0).t()
        c = around[1:-1, 1:-1]
        if draw.random() < 0.5:
            c.fill_(float("nan"))
            tp.addmm(c, x, y, beta=0, alpha=2, out=c)
            expected = 2 * wide
        else:
            tp.addmm(c, x, y, beta=0.5, alpha=-1, out=c)
            expected = 3.5 - wide
        assert (np.abs(c.numpy() - expected) <= 2 * bound + 4e-7 * 4).all(), (m, n, k)
        assert (
            around[0].eq(7).all() and around[-1].eq(7).all() and around[:, 0].eq(7).all() and around[:, -1].eq(7).all()
        )


@pytest.mark.parametrize("shape", [(64, 256, 256), (300, 500, 130), (1000, 384, 400), (32, 2048, 512), (2000, 33, 64)])
def test_in_registers_threads_change_nothing(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    before = tp.get_num_threads()
    try:
        for turned in (False, True):
            a, b = tp.randn(m, k), tp.randn(n, k).t() if turned else tp.randn(k, n)
            found = []
            for threads in (1, 2, 3):
                tp.set_num_threads(threads)
                found.append(tp.mm(a, b))
            assert found[0].equal(found[1]) and found[0].equal(found[2])
    finally:
        tp.set_num_threads(before)


@pytest.mark.skipif(
    tp.backends.cpu.get_cpu_capability() == "DEFAULT", reason="without AVX2 the BLAS library's kernels, which differ"
)
def test_in_registers_rows_do_not_depend_on_each_other() -> None:
    """A row's results are the same in a product of any number of rows that goes this way."""
    a, b = tp.randn(500, 130), tp.randn(130, 77)
    whole = tp.mm(a, b)
    fewest = 9 if tp.backends.cpu.get_cpu_capability() == "AVX512" else 8
    for m in (fewest, 9, 14, 64, 65, 449):
        assert tp.mm(a[:m], b).equal(whole[:m]), m


def test_in_registers_infinities_stay_in_their_rows() -> None:
    a, b = tp.ones(20, 40), tp.ones(40, 35)
    a[3, 5], b[7, 34] = float("inf"), float("nan")
    c = tp.mm(a, b)
    assert c[3, :34].isinf().all() and c[:, 34].isnan().all()
    c[3], c[:, 34] = 40, 40
    assert c.eq(40).all()


@pytest.mark.parametrize("capability", LESSER)
def test_lesser_capabilities(capability: str) -> None:
    on_lesser_cpu(capability, __file__, "in_registers")
