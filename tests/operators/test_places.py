"""What an element becomes does not depend on where it lies: in a vector, alone, at a row's end, strided."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorpy as tp

KINDS = {"(Tensor self) -> Tensor": 1, "(Tensor self, Tensor other) -> Tensor": 2}
DTYPES = (tp.float32, tp.float64, tp.complex64, tp.complex128, tp.float16, tp.bfloat16)


def pointwise() -> list[tuple[str, int]]:
    """Operators of one or two tensors that compute element by element, and how many they take."""
    found = []
    for name in dir(tp.ops.aten):
        packet = getattr(tp.ops.aten, name, None)
        if isinstance(packet, tp.ops.OpOverloadPacket):
            for overload in packet.overloads():
                op = getattr(packet, overload)
                taken = KINDS.get(str(op._schema).partition("(")[1] + str(op._schema).partition("(")[2])
                if taken and tp.Tag.pointwise in op.tags:
                    found.append((f"{name}.{overload}", taken))
    return found


def numbers(count: int, dtype: tp.dtype, seed: int) -> tp.Tensor:
    drawn = np.random.default_rng(seed)
    values = drawn.standard_normal(count) * 2
    return tp.tensor(values + 1j * drawn.standard_normal(count) if dtype.is_complex else values).to(dtype)


def bits(t: tp.Tensor) -> Any:
    return (tp.view_as_real(t) if t.is_complex() else t).contiguous().view(tp.uint8).tolist()


@pytest.mark.parametrize(("name", "taken"), pointwise())
def test_bits_do_not_depend_on_the_place(name: str, taken: int) -> None:
    stem, _, overload = name.partition(".")
    op = getattr(getattr(tp.ops.aten, stem), overload)
    for dtype in DTYPES:
        given = [numbers(67, dtype, seed) for seed in range(taken)]
        try:
            whole = op(*given)
        except (RuntimeError, ValueError, TypeError, NotImplementedError):
            continue  # not of this dtype
        apart = tp.cat([op(*(x[i : i + 1] for x in given)) for i in range(67)])
        strided = op(*(tp.stack([x, x], 1)[:, 1] for x in given))
        rows = op(*(tp.cat([x, x[:2]]).view(3, 23).t() for x in given)).t().flatten()[:67]
        for other in (apart, strided, rows):
            assert bits(other) == bits(whole), (name, dtype)
