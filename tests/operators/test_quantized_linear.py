"""Linear maps of integers: PyTorch's integers bit by bit, exact sums for all bytes on every capability, bad input."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from random import Random
from typing import Any

import pytest

import tensorpy as tp
from tensorpy.testing import assert_close

pytestmark = pytest.mark.filterwarnings("ignore")
SIZES = [(1, 16, 16), (3, 17, 5), (1, 1, 1), (13, 33, 40), (64, 100, 33), (200, 65, 48), (300, 31, 17), (83, 2100, 20)]
# And what products of bytes use; the highest that the CPU has stands for those above.
CAPABILITIES = [("baseline", ""), ("avx2", ""), ("avx512", "avx512"), ("avx512", "vnni"), ("avx512", "amx")]


@pytest.fixture
def torch() -> Any:
    found = pytest.importorskip("torch")
    found.backends.quantized.engine = "fbgemm"
    return found


def bytes_of(library: Any, draw: Random, low: int, high: int, *size: int) -> Any:
    count = size[0] * size[1]
    dtype = library.int8 if low < 0 else library.uint8
    return library.tensor([draw.randint(low, high) for _ in range(count)], dtype=dtype).reshape(size)


def case(library: Any, seed: int, m: int, k: int, n: int, channels: bool, top: int = 127) -> tuple[Any, Any, Any]:
    """An input, a weight and a bias; PyTorch's AVX2 kernels saturate pairs of products above top = 127."""
    draw = Random(seed)
    x = bytes_of(library, draw, 0, top, m, k)
    w = bytes_of(library, draw, -128, 127, n, k)
    bias = library.tensor([draw.gauss(0, 50) for _ in range(n)], dtype=library.float32)
    scales = library.tensor([draw.uniform(0.01, 0.5) for _ in range(n)], dtype=library.float64)
    zero_points = library.tensor([draw.randint(-5, 5) for _ in range(n)], dtype=library.int64)
    q = library._make_per_tensor_quantized_tensor(x, 0.037, draw.randint(0, top))
    if channels:
        return q, library._make_per_channel_quantized_tensor(w, scales, zero_points, 0), bias
    return q, library._make_per_tensor_quantized_tensor(w, 0.123, 3), bias


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("channels", [False, True])
def test_integers_are_torchs(sizes: tuple[int, int, int], channels: bool, torch: Any) -> None:
    for seed, (relu, biased) in enumerate(itertools.product((False, True), repeat=2)):
        found = []
        for library in (torch, tp):
            q, w, bias = case(library, seed, *sizes, channels)
            packed = library.ops.quantized.linear_prepack(w, bias if biased else None)
            call = library.ops.quantized.linear_relu if relu else library.ops.quantized.linear
            y = call(q, packed, 11.3, 7 + 31 * seed)
            found.append((y.int_repr().tolist(), y.q_scale(), y.q_zero_point()))
        assert found[0] == found[1]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("channels", [False, True])
def test_dynamic_numbers_are_torchs(sizes: tuple[int, int, int], channels: bool, torch: Any) -> None:
    m, k, _ = sizes
    for relu in (False, True):
        found = []
        for library in (torch, tp):
            draw = Random(5)
            x = library.tensor([draw.gauss(0.3, 1) for _ in range(m * k)], dtype=library.float32).reshape(m, k)
            _, w, bias = case(library, 3, *sizes, channels)
            packed = library.ops.quantized.linear_prepack(w, bias)
            name = "linear_relu_dynamic" if relu else "linear_dynamic"
            found.append(getattr(library.ops.quantized, name)(x, packed, True).tolist())
        assert found[0] == found[1]


def exact(x: Any, w: Any, bias: Any, scale: float, zero_point: int) -> Any:
    """The integers of the result, from sums in int64."""
    steps = x.int_repr().to(tp.int64) - x.q_zero_point()
    if w.qscheme() is tp.per_tensor_affine:
        by, at = tp.tensor([w.q_scale()]), tp.tensor([w.q_zero_point()])
    else:
        by, at = w.q_per_channel_scales().to(tp.float32), w.q_per_channel_zero_points()
    sums = steps @ (w.int_repr().to(tp.int64) - at.unsqueeze(1)).t()
    step = tp.tensor(x.q_scale(), dtype=tp.float32) * by
    shift = bias / step if len(by) > 1 else bias * (1 / step)
    return ((sums.to(tp.float32) + shift) * (step / scale)).round().add(zero_point).clamp(0, 255).to(tp.uint8)


def bell(seed: int, m: int, k: int, n: int, width: float, top: int) -> tuple[Any, Any, Any]:
    """Weights that lie around 0, as those of models do, without zero points: of pairs of them some sums are small."""
    draw = Random(seed)
    x = bytes_of(tp, draw, 0, top, m, k)
    numbers = [max(-128, min(127, round(draw.gauss(0, width)))) for _ in range(n * k)]
    w = tp.tensor(numbers, dtype=tp.int8).reshape(n, k)
    bias = tp.tensor([draw.gauss(0, 50) for _ in range(n)])
    q = tp._make_per_tensor_quantized_tensor(x, 0.037, draw.randint(0, top))
    return q, tp._make_per_tensor_quantized_tensor(w, 0.123, 0), bias


PROGRAM = """
import sys; sys.path.insert(0, sys.argv[1])
from test_quantized_linear import *
for sizes in SIZES:
    for width, top in ((15, 255), (30, 127), (30, 255), (50, 255), (1000, 255)):
        x, w, bias = bell(5, *sizes, width, top)
        y = tp.ops.quantized.linear(x, tp.ops.quantized.linear_prepack(w, bias), 3.1, 100)
        assert y.int_repr().equal(exact(x, w, bias, 3.1, 100)), (sizes, width, top)
for sizes in SIZES:
    for channels in (False, True):
        x, w, bias = case(tp, 9, *sizes, channels, 255)
        packed = tp.ops.quantized.linear_prepack(w, bias)
        y = tp.ops.quantized.linear(x, packed, 11.3, 100)
        assert y.int_repr().equal(exact(x, w, bias, 11.3, 100)), sizes
        print(tp.ops.quantized.linear_dynamic(x.dequantize(), packed).tolist())
print(tp.ops.quantized.linear(tp.quantize_per_tensor(tp.full((2, 3000), 255.0), 1.0, 0, tp.quint8),
    tp.ops.quantized.linear_prepack(tp.quantize_per_tensor(tp.full((2, 3000), 127.0), 1.0, 0, tp.qint8)), 1e6, 0))
"""


def test_all_capabilities_give_exact_sums_and_equal_bits() -> None:
    """Of bytes whose products do not fit into 16 bits in pairs, too."""
    said = set()
    for capability, products in CAPABILITIES:
        environment = {**os.environ, "TENSORPY_CPU_CAPABILITY": capability, "TENSORPY_CPU_INT8": products}
        command = [sys.executable, "-W", "ignore", "-c", PROGRAM, os.path.dirname(__file__)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        said.add(done.stdout)
    assert len(said) == 1 and "97" in said.pop()


def test_signed_inputs_batches_and_strides() -> None:
    x, w, bias = case(tp, 2, 12, 20, 7, True)
    packed = tp.ops.quantized.linear_prepack(w, bias)
    signed = tp._make_per_tensor_quantized_tensor((x.int_repr().to(tp.int16) - 128).to(tp.int8), 0.037, 0)
    moved = tp._make_per_tensor_quantized_tensor(x.int_repr(), 0.037, 128)
    y, z = (tp.ops.quantized.linear(v, packed, 9.0, p) for v, p in ((signed, 0), (moved, 128)))
    assert y.dtype == tp.qint8 and (y.int_repr().to(tp.int32) + 128).equal(z.int_repr().to(tp.int32))
    whole = tp.ops.quantized.linear(x, packed, 9.0, 100).int_repr()
    assert tp.ops.quantized.linear(x.view(3, 4, 20), packed, 9.0, 100).int_repr().equal(whole.view(3, 4, 7))
    assert tp.ops.quantized.linear(x[0], packed, 9.0, 100).int_repr().equal(whole[0])
    turned = tp._make_per_tensor_quantized_tensor(x.int_repr().t().contiguous(), 0.037, x.q_zero_point()).t()
    assert tp.ops.quantized.linear(turned, packed, 9.0, 100).int_repr().equal(whole)
    assert tp.ops.quantized.linear(x[:0], packed, 9.0, 100).shape == (0, 7)
    assert packed.unpack()[0].equal(w) and packed.unpack()[1].equal(bias)
    assert tp.ops.quantized.linear_unpack(packed)[0].equal(w)


def test_numbers_that_are_not_finite() -> None:
    x, w, _ = case(tp, 2, 2, 4, 3, True)
    packed = tp.ops.quantized.linear_prepack(w, tp.tensor([float("nan"), float("inf"), -float("inf")]))
    assert tp.ops.quantized.linear(x, packed, 1.0, 9).int_repr().tolist() == [[0, 255, 0]] * 2
    numbers = tp.ops.quantized.linear_dynamic(x.dequantize(), packed)
    assert_close(numbers, tp.tensor([[float("nan"), float("inf"), -float("inf")]] * 2), equal_nan=True)
    with pytest.raises(RuntimeError, match="have no scale"):
        tp.ops.quantized.linear_dynamic(tp.full((2, 4), float("nan")), packed)


def test_what_is_refused() -> None:
    x, w, bias = case(tp, 2, 12, 20, 7, True)
    quantized, packed = tp.ops.quantized, tp.ops.quantized.linear_prepack(w, bias)
    panels, scales, zero_points, b, features = packed.arguments
    raw = x.int_repr()
    along_columns = tp.quantize_per_channel(w.dequantize(), tp.ones(20), tp.zeros(20), 1, tp.qint8)
    refused = [
        lambda: quantized.linear(x[:, :19], packed, 1.0, 0),
        lambda: quantized.linear(x.dequantize(), packed, 1.0, 0),
        lambda: quantized.linear(x, packed, 0.0, 0),
        lambda: quantized.linear(x, packed, float("nan"), 0),
        lambda: quantized.linear(x, packed, 1.0, 256),
        lambda: quantized.linear(x, packed, 1.0, -1),
        lambda: quantized.linear(x, w, 1.0, 0),
        lambda: quantized.linear(w, packed, 1.0, 0),
        lambda: quantized.linear_prepack(x, bias),
        lambda: quantized.linear_prepack(w, bias[1:]),
        lambda: quantized.linear_prepack(w.dequantize(), bias),
        lambda: quantized.linear_prepack(along_columns),
        lambda: quantized.linear_dynamic(x.dequantize().to(tp.float64), packed),
        lambda: quantized.linear_dynamic(x, packed),
        lambda: tp._C._product_int8(raw, panels, scales, zero_points, b, 33, 1.0, 0, 1.0, 0, False, tp.uint8),
        lambda: tp._C._product_int8(raw, panels[:, 1:], scales, zero_points, b, 7, 1.0, 0, 1.0, 0, False, tp.uint8),
        lambda: tp._C._product_int8(raw, panels, scales[1:], zero_points, b, 7, 1.0, 0, 1.0, 0, False, tp.uint8),
        lambda: tp._C._product_int8(raw, panels, scales, zero_points[1:], b, 7, 1.0, 0, 1.0, 0, False, tp.uint8),
        lambda: tp._C._product_int8(raw, panels, scales, zero_points, b[1:], 7, 1.0, 0, 1.0, 0, False, tp.uint8),
        lambda: tp._C._product_int8(raw, panels, scales, zero_points, b, 7, 1.0, 0, 1.0, 0, False, tp.int8),
        lambda: tp._C._product_int8(raw, panels, scales, zero_points, b, -7, 1.0, 0, 1.0, 0, False, tp.uint8),
        lambda: tp._C._int8_panels(raw),
    ]
    for i, call in enumerate(refused):
        with pytest.raises((RuntimeError, NotImplementedError)):
            raise AssertionError(f"number {i} gave {call()}")
    tp._C._product_int8(raw, panels, scales, zero_points, b, features, 1.0, 0, 1.0, 0, False, tp.uint8)
