"""Products of matrices by group, and the convolution with time first."""

from __future__ import annotations

import math
from typing import Any

import pytest

import tensorpy as tp
from tensorpy.nn import functional as F
from tensorpy.testing import assert_close

OFFSETS = tp.tensor([2, 2, 6], dtype=tp.int32)


def test_groups_of_each_shape() -> None:
    a, b = tp.randn(7, 4, requires_grad=True), tp.randn(3, 4, 5, requires_grad=True)
    rows = F.grouped_mm(a, b, offs=OFFSETS)
    assert tp.allclose(rows[:2], a[:2] @ b[0]) and tp.allclose(rows[2:6], a[2:6] @ b[2]) and not rows[6:].any()
    rows.sum().backward()
    assert a.grad is not None and b.grad is not None and not b.grad[1].any()
    assert tp.allclose(F.grouped_mm(b.mT, b), b.mT @ b)
    columns = F.grouped_mm(b.mT, a.mT, offs=OFFSETS)
    assert tp.allclose(columns[:, :2], b[0].mT @ a[:2].mT) and not columns[:, 6:].any()
    summed = F.grouped_mm(a.mT, a, offs=OFFSETS)
    assert summed.shape == (3, 4, 4) and tp.allclose(summed[2], a[2:6].mT @ a[2:6]) and not summed[1].any()


def test_what_is_no_group_is_refused() -> None:
    a, b = tp.randn(6, 4), tp.randn(3, 4, 5)
    for offs, words in ((None, "Have to provide offsets"), (OFFSETS + 1, "_grouped_mm"), (OFFSETS.flip(0), "_grouped")):
        with pytest.raises(RuntimeError, match=words):
            F.grouped_mm(a, b, offs=offs)


def messages(t: Any) -> list[str]:
    """How a library refuses what is no product by groups."""
    a, b, offs = t.randn(8, 16), t.randn(3, 16, 8), t.tensor([2, 2, 6], dtype=t.int32)
    said = []
    for arguments in (
        (a, b), (b, b.mT, offs), (a, b, offs.long()), (a, b, offs[:2]), (a, b, offs.reshape(3, 1)), (a[0], b, offs),
        (a[:, :15], b, offs), (a.int(), b, offs), (a, b, offs, t.ones(8)), (a, b, offs, None, t.bfloat16),
    ):  # fmt: skip
        with pytest.raises(RuntimeError) as caught:
            t._grouped_mm(*arguments)
        said.append(str(caught.value))
    return said


def test_products_that_are_refused_are_refused_as_in_torch() -> None:
    assert messages(tp) == messages(pytest.importorskip("torch"))


# ---- 8-bit floats ----


def eights(t: Any, *shape: int, seed: int = 0) -> Any:
    values = [((i * 7 + seed) % 13 - 6) / 4 for i in range(math.prod(shape))]
    return t.tensor(values).reshape(shape).to(t.float8_e4m3fn)


def scales(*shape: int) -> tp.Tensor:
    return (tp.arange(math.prod(shape)) % 5 + 1).float().reshape(shape) / 2


@pytest.mark.parametrize("a, b", [((7, 4), (3, 4, 5)), ((3, 5, 4), (4, 7)), ((5, 7), (7, 4)), ((3, 2, 4), (3, 4, 5))])
def test_products_with_scales_are_those_of_the_numbers(device: str, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y = eights(tp, *a), eights(tp, *b, seed=3)
    offs = None if len(a) == len(b) == 3 else OFFSETS
    both = len(a) == len(b) == 2
    of_a = scales(3, a[-2]) if len(a) == 3 or both else scales(a[-2])
    of_b = scales(3, b[-1]) if len(b) == 3 or both else scales(b[-1])
    if both:
        expected = F.grouped_mm(x.float(), y.float(), offs=offs) * of_a[:, :, None] * of_b[:, None, :]
        of_a, of_b = of_a.flatten(), of_b.flatten()
    else:
        expected = F.grouped_mm(x.float() * of_a[..., None], y.float() * of_b[..., None, :], offs=offs)
    given = [t if t is None else t.to(device) for t in (x, y, of_a, of_b, offs)]
    assert_close(tp._scaled_grouped_mm(*given).cpu(), expected.bfloat16())
    row = F.ScalingType.RowWise
    made = F.scaled_grouped_mm(given[0], given[1], given[2], row, [given[3]], [row], offs=given[4])
    assert made.dtype is tp.bfloat16
    assert_close(made.cpu(), expected.bfloat16())


def test_scales_that_do_not_fit_are_refused() -> None:
    x, y, one = eights(tp, 7, 4), eights(tp, 3, 4, 5), F.ScalingType.TensorWise
    for of_a, words in (
        (scales(6), "to have 7 elements"),
        (scales(7, 1), "1D tensor"),
        (scales(7).double(), "float32"),
    ):
        with pytest.raises(RuntimeError, match=words):
            tp._scaled_grouped_mm(x, y, of_a, scales(3, 5), OFFSETS)
    with pytest.raises(RuntimeError, match="E4M3"):
        tp._scaled_grouped_mm(x.float(), y.float(), scales(7), scales(3, 5), OFFSETS)
    with pytest.raises(ValueError, match="Invalid scaling configuration"):
        F.scaled_grouped_mm(x, y, scales(7), one, scales(3, 5), one, offs=OFFSETS)


def by_recipes(t: Any) -> list[Any]:
    """Products of a library by recipe, and the classes and beginnings of its refusals."""
    f = t.nn.functional
    x, y, one = eights(t, 16, 32), eights(t, 16, 32, seed=3).mT, t.tensor(2.0)
    rows, columns = t.arange(16.0).reshape(16, 1) / 4, t.arange(16.0).reshape(1, 16)
    whole, lines, blocks = f.ScalingType.TensorWise, f.ScalingType.RowWise, f.ScalingType.BlockWise1x32
    plain = f.SwizzleType.NO_SWIZZLE
    given = [
        (x, y, one, whole, one, whole), (x, y, [one], [whole], one, whole, [plain], plain),
        (x, y, rows, lines, columns, lines), (x, y, rows, lines, columns, lines, plain, plain, t.ones(16)),
        (x, y, one, whole, one, whole, None, None, None, t.float32, [1, 0]), (x, y, rows, blocks, columns, blocks),
        (x, y, [one, one], whole, one, whole),
        (x, y, one, whole, one, whole, None, None, None, None, [1]),
        (x, y, one, whole, one, whole, None, None, None, None, [1, 1]),
    ]  # fmt: skip
    made: list[Any] = []
    for arguments in given:
        try:
            result = f.scaled_mm(*arguments)
            made.append((str(result.dtype).partition(".")[2], result.double().tolist()))
        except (RuntimeError, ValueError) as error:
            made.append((type(error).__name__, str(error)[:24]))
    out = t.empty(16, 16)
    t._scaled_mm_v2(x, y, [one], [0], [0], [one], [0], [0], None, None, out=out)
    return [*made, out.tolist(), [r.name for r in f.ScalingType.__members__.values()]]


def test_recipes_are_torchs() -> None:
    ours, theirs = by_recipes(tp), by_recipes(pytest.importorskip("torch"))
    assert ours == theirs


def test_convolution_with_time_first_is_torchs() -> None:
    torch = pytest.importorskip("torch")
    x, w, b = torch.randn(7, 2, 3), torch.randn(3, 3, 4), torch.randn(4)
    ours = F.conv_tbc(*(tp.tensor(t.tolist()) for t in (x, w, b)), 1)
    assert tp.allclose(ours, tp.tensor(torch.conv_tbc(x, w, b, 1).tolist()), atol=1e-5)
