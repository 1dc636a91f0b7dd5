"""quantized_max_pool1d, 2d, 3d, quantized_batch_norm and empty_quantized: integers that torch has, and refusals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tensorpy as tp


def quantized(sizes: list[int], dtype: tp.dtype, zero_point: int = 3) -> tp.Tensor:
    numbers = np.random.default_rng(sum(sizes)).uniform(-5, 5, sizes).astype(np.float32)
    return tp.quantize_per_tensor(tp.from_numpy(numbers), 0.05, zero_point, dtype)


@pytest.mark.parametrize("dtype", [tp.quint8, tp.qint8])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_largest_integer(n: int, dtype: tp.dtype) -> None:
    """The pooling of the integers themselves, read as before; what has no places of its own is as max_pool has it."""
    x = quantized([2, 3, *[7, 6, 5][:n]], dtype)
    own = getattr(tp, f"quantized_max_pool{n}d")
    of_integers = getattr(tp.nn.functional, f"max_pool{n}d")
    for how in ((2,), (3, 2, 1), (2, 1, 0, 2), (3, 2, 1, 1, True)):
        pooled = own(x, *how)
        assert (pooled.dtype, pooled.q_scale(), pooled.q_zero_point()) == (dtype, x.q_scale(), x.q_zero_point())
        expected = of_integers(x.int_repr().float(), *how)
        assert pooled.int_repr().float().tolist() == expected.tolist() == of_integers(x, *how).int_repr().tolist()


@pytest.mark.parametrize("dtype", [tp.quint8, tp.qint8])
@pytest.mark.parametrize("sizes", [[4, 3], [2, 3, 5], [2, 3, 4, 5], [1, 3, 2, 3, 2]])
def test_batch_norm(sizes: list[int], dtype: tp.dtype) -> None:
    """The numbers' batch_norm, rounded once: an integer is off by one where its number lies between two."""
    x = quantized(sizes, dtype)
    weight, bias, mean, var = (tp.rand(3) + 0.1 for _ in range(4))
    for w, b in ((weight, bias), (None, bias), (weight, None)):
        y = tp.quantized_batch_norm(x, w, b, mean, var, 1e-5, 0.07, 5)
        expected = tp.nn.functional.batch_norm(x.dequantize(), mean, var, w, b, False, 0.1, 1e-5)
        assert (y.dtype, y.q_scale(), y.q_zero_point()) == (dtype, 0.07, 5)
        off = y.int_repr().int() - tp.quantize_per_tensor(expected, 0.07, 5, dtype).int_repr().int()
        assert int(off.abs().max()) <= 1 and float((off != 0).float().mean()) < 0.05


def test_empty() -> None:
    x = quantized([2], tp.quint8)
    y = tp.empty_quantized([2, 3], x)
    assert y.shape == (2, 3) and (y.dtype, y.q_scale(), y.q_zero_point()) == (tp.quint8, 0.05, 3)
    assert tp.empty_quantized([0], x, dtype=tp.qint8).dtype == tp.qint8


@pytest.mark.parametrize(
    "call",
    [
        lambda x: tp.quantized_max_pool2d(x, 2),
        lambda x: tp.quantized_batch_norm(x, None, None, tp.ones(3), tp.ones(3), 1e-5, 0.1, 0),
        lambda x: tp.empty_quantized([2], x),
    ],
)
def test_of_dense_tensors(call: Callable[[tp.Tensor], tp.Tensor]) -> None:
    with pytest.raises(NotImplementedError, match="no kernel for that backend"):
        call(tp.rand(2, 3, 4, 4))


def test_bad_channels() -> None:
    x, three = quantized([2, 3, 4, 4], tp.quint8), tp.ones(3)
    for bad in ((tp.ones(2), three), (three, tp.ones(3, 1)), (three, tp.ones(4))):
        with pytest.raises(RuntimeError, match="a number for each channel"):
            tp.quantized_batch_norm(x, None, None, *bad, 1e-5, 0.1, 0)
    with pytest.raises(RuntimeError, match="per tensor"):
        by = tp.quantize_per_channel(tp.rand(2, 3), tp.ones(2), tp.zeros(2, dtype=tp.int64), 0, tp.quint8)
        tp.quantized_batch_norm(by, None, None, three, three, 1e-5, 0.1, 0)
    for scale in (0.0, float("nan"), float("inf")):
        with pytest.raises(RuntimeError, match="scale"):
            tp.quantized_batch_norm(x, None, None, three, three, 1e-5, scale, 0)
