"""Products of matrices by group, and the convolution with time first."""

from __future__ import annotations

import pytest

import tensorpy as tp
from tensorpy.nn import functional as F

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
    for offs in (None, OFFSETS + 1, OFFSETS.flip(0)):
        with pytest.raises(RuntimeError, match="grouped_mm"):
            F.grouped_mm(a, b, offs=offs)


def test_convolution_with_time_first_is_torchs() -> None:
    torch = pytest.importorskip("torch")
    x, w, b = torch.randn(7, 2, 3), torch.randn(3, 3, 4), torch.randn(4)
    ours = F.conv_tbc(*(tp.tensor(t.tolist()) for t in (x, w, b)), 1)
    assert tp.allclose(ours, tp.tensor(torch.conv_tbc(x, w, b, 1).tolist()), atol=1e-5)
