"""Products with weights of 8 and 4 bits: the numbers of the wide product, rounded once; torch's, where it is there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorpy as tp

DTYPES = {"float32": 2e-6, "float16": 1e-3, "bfloat16": 8e-3}


def number(seed: int, *sizes: int) -> tp.Tensor:
    return tp.from_numpy(np.random.default_rng(seed).standard_normal(sizes).astype(np.float32))


def integers(low: int, high: int, dtype: Any, *sizes: int) -> tp.Tensor:
    return tp.from_numpy(np.random.default_rng(sum(sizes)).integers(low, high, sizes).astype(dtype))


def off(got: tp.Tensor, expected: np.ndarray) -> float:
    return float(np.abs(got.double().numpy() - expected).max() / np.abs(expected).max())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m, n, k", [(1, 16, 8), (3, 64, 96), (5, 700, 1024), (2, 10, 7)])
def test_eight_bits(m: int, n: int, k: int, dtype: str) -> None:
    x, scales = number(1, m, k).to(getattr(tp, dtype)), number(2, n).abs().to(getattr(tp, dtype))
    weights = integers(-128, 128, np.int8, n, k)
    expected = x.double().numpy() @ weights.numpy().astype(float).T * scales.double().numpy()
    y = tp._weight_int8pack_mm(x, weights, scales)
    assert y.dtype == x.dtype and y.shape == (m, n) and y.is_contiguous() and off(y, expected) < DTYPES[dtype]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n, k, group", [(16, 64, 32), (48, 256, 128), (2064, 256, 256)])
def test_four_bits(n: int, k: int, group: int, dtype: str) -> None:
    """(w - 8) * scale + zero, with a scale and a zero for each group of a row."""
    weights, kind = integers(0, 16, np.int32, n, k), getattr(tp, dtype)
    numbers, x = number(3, k // group, n, 2).to(kind), number(4, 3, k).to(kind)
    packed = tp._convert_weight_to_int4pack_for_cpu(weights, 2)
    assert packed.dtype == tp.uint8 and packed.shape == (n, k // 2)
    scale, zero = numbers.double().numpy().transpose(2, 1, 0)
    wide = (weights.numpy().reshape(n, -1, group) - 8.0) * scale[:, :, None] + zero[:, :, None]
    y = tp._weight_int4pack_mm_for_cpu(x, packed, group, numbers)
    assert y.dtype == kind and y.is_contiguous()
    assert off(y, x.double().numpy() @ wide.reshape(n, k).T) < DTYPES[dtype]


def test_empty() -> None:
    weights, scales = integers(-9, 9, np.int8, 16, 8), tp.ones(16)
    assert tp._weight_int8pack_mm(tp.ones(0, 8), weights, scales).shape == (0, 16)
    assert tp._weight_int8pack_mm(tp.ones(2, 0), weights[:, :0], scales).tolist() == [[0.0] * 16] * 2


def test_refusals() -> None:
    x, weights, scales = tp.ones(3, 96), integers(-9, 9, np.int8, 64, 96), tp.ones(64)
    bad: list[tuple[Any, ...]] = [
        (x.double(), weights, scales.double()),
        (x, weights, scales.bfloat16()),
        (x[:, :95], weights, scales),
        (x[None], weights, scales),
        (x, weights.float(), scales),
        (x, weights, scales[:3]),
        (x, weights, scales[:, None]),
    ]
    for given in bad:
        with pytest.raises(RuntimeError, match="expect"):
            tp._weight_int8pack_mm(*given)
    four = tp._convert_weight_to_int4pack_for_cpu(integers(0, 16, np.int32, 64, 96), 2)
    numbers = tp.ones(3, 64, 2)
    worse: list[tuple[Any, ...]] = [
        (x, four, 16, numbers),
        (x, four, 33, numbers),
        (x, four, 32, numbers[:1]),
        (x, four, 32, numbers.double()),
        (x.double(), four, 32, numbers.double()),
        (x, four.int(), 32, numbers),
        (x[:, :32], four, 32, numbers[:1]),
    ]
    for arguments in worse:
        with pytest.raises(RuntimeError, match="expect"):
            tp._weight_int4pack_mm_for_cpu(*arguments)
    for unpacked in (tp.ones(64, 96), tp.ones(64, dtype=tp.int32), tp.ones(10, 96, dtype=tp.int32)):
        with pytest.raises(RuntimeError, match="expect"):
            tp._convert_weight_to_int4pack_for_cpu(unpacked, 2)


def test_as_torch() -> None:
    torch = pytest.importorskip("torch")
    x, scales, weights = number(5, 4, 128), number(6, 32), integers(-128, 128, np.int8, 32, 128)
    theirs = torch._weight_int8pack_mm(*(torch.from_numpy(t.numpy()) for t in (x, weights, scales)))
    assert off(tp._weight_int8pack_mm(x, weights, scales), theirs.double().numpy()) < 2e-6
    four, numbers = integers(0, 16, np.int32, 32, 128), number(7, 4, 32, 2)
    theirs = torch._weight_int4pack_mm_for_cpu(
        torch.from_numpy(x.numpy()), torch._convert_weight_to_int4pack_for_cpu(torch.from_numpy(four.numpy()), 2), 32,
        torch.from_numpy(numbers.numpy()),
    )  # fmt: skip
    ours = tp._weight_int4pack_mm_for_cpu(x, tp._convert_weight_to_int4pack_for_cpu(four, 2), 32, numbers)
    assert off(ours, theirs.double().numpy()) < 2e-6
