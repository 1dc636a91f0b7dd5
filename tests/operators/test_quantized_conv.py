"""ops.quantized: convolutions of integers by their definition and as PyTorch has them; sums, products and joins."""

from __future__ import annotations

import copy
import io
import os
import pickle
import subprocess
import sys
from random import Random
from typing import Any

import numpy as np
import pytest
from test_quantized_linear import CAPABILITIES

import tensorpy as tp
from tensorpy.ao.nn.quantized.packed_conv import ConvPackedParamsBase

Q: Any = tp.ops.quantized
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def torch() -> Any:
    found = pytest.importorskip("torch")
    found.backends.quantized.engine = "fbgemm"
    return found


class Case:
    """A convolution: n spatial dimensions, with numbers of 7 bits, as PyTorch adds pairs of products in 16 bits."""

    def __init__(self, seed: int) -> None:
        draw = Random(seed)
        self.n = draw.choice([1, 2, 2, 3])
        self.groups = draw.choice([1, 1, 2, 3])
        self.inputs, self.outputs = self.groups * draw.randint(1, 4), self.groups * draw.randint(1, 8)
        self.window = [draw.randint(1, 3) for _ in range(self.n)]
        self.stride = [draw.randint(1, 2) for _ in range(self.n)]
        self.padding = [draw.randint(0, 2) for _ in range(self.n)]
        self.dilation = [1 if self.n == 3 else draw.randint(1, 2) for _ in range(self.n)]
        self.size = [draw.randint(6, 9) for _ in range(self.n)]
        self.per_channel, self.has_bias, self.relu = (draw.random() < 0.5 for _ in range(3))
        numbers = np.random.default_rng(seed)
        self.x = numbers.integers(0, 128, (2, self.inputs, *self.size))
        self.w = numbers.integers(-128, 128, (self.outputs, self.inputs // self.groups, *self.window))
        self.bias = numbers.standard_normal(self.outputs).astype("float32")
        self.scales = np.linspace(0.01, 0.03, self.outputs)

    def run(self, library: Any, ops: Any) -> Any:
        tensor = library.tensor
        x = library._make_per_tensor_quantized_tensor(tensor(self.x.tolist(), dtype=library.uint8), 0.1, 64)
        integers = tensor(self.w.tolist(), dtype=library.int8)
        if self.per_channel:
            zeros = library.zeros(self.outputs, dtype=library.int64)
            scales = tensor(self.scales.tolist(), dtype=library.float64)
            w = library._make_per_channel_quantized_tensor(integers, scales, zeros, 0)
        else:
            w = library._make_per_tensor_quantized_tensor(integers, 0.02, 3)
        bias = tensor(self.bias.tolist()) if self.has_bias else None
        prepack = getattr(ops, f"conv{self.n}d_prepack")
        packed = prepack(w, bias, self.stride, self.padding, self.dilation, self.groups)
        return getattr(ops, f"conv{self.n}d{'_relu' * self.relu}")(x, packed, 0.9, 71)

    def exact(self) -> np.ndarray:
        """By the definition, in double precision."""
        convolve = getattr(tp.nn.functional, f"conv{self.n}d")
        x, w = tp.tensor((self.x - 64.0).tolist()) * 0.1, tp.tensor(self.w.tolist(), dtype=tp.float64)
        scales = tp.tensor(self.scales.tolist(), dtype=tp.float64).reshape(-1, *[1] * (self.n + 1))
        w = w * scales if self.per_channel else (w - 3) * 0.02
        bias = tp.tensor(self.bias.tolist(), dtype=tp.float64) if self.has_bias else None
        y = convolve(x.double(), w, bias, self.stride, self.padding, self.dilation, self.groups)
        y = y.relu() if self.relu else y
        return np.array((y / 0.9 + 71).clamp(0, 255).tolist())


@pytest.mark.parametrize("seed", range(40))
def test_a_convolution_is_its_definition(seed: int) -> None:
    case = Case(seed)
    found = case.run(tp, Q)
    assert found.dtype == tp.quint8 and (found.q_scale(), found.q_zero_point()) == (0.9, 71)
    assert np.abs(np.array(found.int_repr().tolist()) - case.exact()).max() < 0.5 + 1e-3


@pytest.mark.parametrize("seed", range(40))
def test_a_convolution_is_pytorchs(torch: Any, seed: int) -> None:
    case = Case(seed)
    ours, theirs = case.run(tp, Q), case.run(torch, torch.ops.quantized)
    assert ours.int_repr().tolist() == theirs.int_repr().tolist()
    assert ours.shape == tuple(theirs.shape)


SHAPES = [
    # channels, features, groups, window, stride, dilation, size: runs of a window joined or not, of whole quads or not
    (3, 17, 1, (7, 7), 2, 1, 20),
    (5, 4, 1, (3, 3), 1, 2, 9),
    (37, 37, 37, (3, 3), 1, 1, 9),
    (16, 16, 16, (3, 5), 2, 2, 12),
    (6, 6, 6, (1, 1), 1, 1, 5),
    (128, 20, 1, (3, 3), 2, 1, 9),
    (512, 18, 2, (3, 3), 1, 1, 7),
    (8, 3, 1, (1, 1), 1, 1, 130),
    (2, 16, 1, (29, 29), 1, 1, 40),
]
PROGRAM = """
import sys; sys.path.insert(0, sys.argv[1])
from test_quantized_conv import *
for top in (127, 255):
    for shape in SHAPES:
        for zero, width in ((0, 0), (3, 0), (0, 30)):
            check_sums(shape, top, zero, width)
print("exact")
"""


def check_sums(shape: Any, top: int, zero: int, width: float) -> None:
    """Integers against sums in int64, whichever way they are multiplied; of weights around 0, as those of models lie,
    pairs are small sums (`width`; 0: any weights)."""
    channels, features, groups, window, stride, dilation, size = shape
    numbers = np.random.default_rng(channels)
    x = numbers.integers(0, top + 1, (2, channels, size, size + 1)).astype("uint8")
    sizes = (features, channels // groups, *window)
    bell = numbers.normal(0, width or 1, sizes).round().clip(-128, 127)
    w = (bell if width else numbers.integers(-128, 128, sizes)).astype("int8")
    padding = [dilation * (n // 2) for n in window]
    q = tp._make_per_tensor_quantized_tensor(tp.from_numpy(x), 0.5, 9)
    packed = Q.conv2d_prepack(
        tp._make_per_tensor_quantized_tensor(tp.from_numpy(w), 0.25, zero), None, [stride] * 2, padding, [dilation] * 2,
        groups,
    )  # fmt: skip
    sums = tp.nn.functional.conv2d(
        tp.from_numpy(x.astype("float64") - 9), tp.from_numpy(w.astype("float64") - zero), None, stride, padding,
        dilation, groups,
    )  # fmt: skip
    scale = float(sums.abs().max()) * 0.125 / 200
    exact = (sums.float() * float(np.float32(0.125) / np.float32(scale))).round().add(30).clamp(0, 255)
    found = Q.conv2d(q, packed, scale, 30)
    assert found.int_repr().equal(exact.to(tp.uint8)), (shape, top, zero, width)
    with_channels_last = q.int_repr().contiguous(memory_format=tp.channels_last)
    again = Q.conv2d(tp._make_per_tensor_quantized_tensor(with_channels_last, 0.5, 9), packed, scale, 30)
    assert again.equal(found)


@pytest.mark.parametrize(("capability", "products"), CAPABILITIES)
def test_sums_are_exact_on_every_capability(capability: str, products: str) -> None:
    environment = {**os.environ, "TENSORPY_CPU_CAPABILITY": capability, "TENSORPY_CPU_INT8": products}
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, os.path.dirname(__file__)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.stdout == "exact\n", done.stderr


def test_threads_and_signed_bytes_give_the_same_integers() -> None:
    x = tp.quantize_per_tensor(tp.rand(3, 6, 31, 17), 1 / 250, 128, tp.quint8)
    packed = Q.conv2d_prepack(
        tp.quantize_per_tensor(tp.randn(9, 6, 3, 3), 0.03, 0, tp.qint8), None, [1] * 2, [1] * 2, [1] * 2, 1
    )
    before, found = tp.get_num_threads(), []
    for threads in (1, 2, 5):
        tp.set_num_threads(threads)
        found.append(Q.conv2d(x, packed, 0.1, 100))
    tp.set_num_threads(before)
    assert found[1].equal(found[0]) and found[2].equal(found[0])
    integers = x.int_repr().movedim(1, -1).unsqueeze(1)
    signed = (integers.to(tp.int16) - 128).to(tp.int8)
    plain = tp._C._convolution_int8(integers, *packed.arguments, x.q_scale(), 128, 0.1, 100, False)
    moved = tp._C._convolution_int8(signed, *packed.arguments, x.q_scale(), 0, 0.1, -28, False)
    assert (moved.to(tp.int16) + 128).equal(plain.to(tp.int16))


def test_arguments_that_do_not_fit_are_refused() -> None:
    x = tp.zeros(1, 1, 5, 5, 4, dtype=tp.uint8)
    packed = Q.conv2d_prepack(weight(6, 4, 3, 3), tp.ones(6), [1] * 2, [1] * 2, [1] * 2, 1)
    rest = (1.0, 0, 1.0, 0, False)
    assert tp._C._convolution_int8(x, *packed.arguments, *rest).shape == (1, 1, 5, 5, 6)
    huge, three = 2**31 - 1, (1, 1, 1)
    changes = {
        0: [packed.arguments[0][:, :, 1:], packed.arguments[0].to(tp.int16), packed.arguments[0][0]],
        1: [tp.ones(5), tp.ones(6, dtype=tp.float64)],
        2: [tp.zeros(2, dtype=tp.int32)],
        3: [tp.ones(5)],
        4: [(1, 3, 4), (1, 3), (0, 3, 3), (1, 9, 9)],
        5: [(1, 0, 1), (1, 1, huge + 1), (1, 1)],
        6: [(0, -1, 0), (0, 1), (0, 1, huge + 1)],
        7: [(1, 0, 1), (1, huge, 1), (1, 1)],
        8: [0, 3, 4, -1],
        9: [0, -6, 7, 40],
    }
    for at, values in changes.items():
        for value in values:
            arguments = list(packed.arguments)
            arguments[at] = value
            with pytest.raises(RuntimeError):
                tp._C._convolution_int8(x, *arguments, *rest)
    for wrong in (x[0], x.to(tp.int32), x[..., :2], x[..., :0]):
        with pytest.raises(RuntimeError):
            tp._C._convolution_int8(wrong, *packed.arguments, *rest)
    for wrong_rest in ((1.0, 0, 0.0, 0, False), (1.0, 0, float("nan"), 0, False), (1.0, 0, 1.0, 256, False)):
        with pytest.raises(RuntimeError):
            tp._C._convolution_int8(x, *packed.arguments, *wrong_rest)
    far = list(packed.arguments)
    far[5], far[6], far[7] = three, (0, huge, huge), (1, huge - 9, huge - 9)
    with pytest.raises(RuntimeError, match="memory"):
        tp._C._convolution_int8(x, *far, *rest)
    assert tp._C._convolution_int8(x[:0], *packed.arguments, *rest).shape == (0, 1, 5, 5, 6)


def weight(*sizes: int) -> tp.Tensor:
    return tp.quantize_per_tensor(tp.ones(*sizes), 0.5, 0, tp.qint8)


def test_packed_weights_are_kept_in_files() -> None:
    packed = Q.conv2d_prepack(weight(4, 2, 3, 3), tp.ones(4), [1, 1], [1, 1], [1, 1], 1)
    x = tp.quantize_per_tensor(tp.rand(1, 2, 5, 5), 0.1, 3, tp.quint8)
    for same in (pickle.loads(pickle.dumps(packed)), copy.deepcopy(packed)):
        assert isinstance(same, ConvPackedParamsBase)
        assert Q.conv2d(x, same, 0.2, 5).equal(Q.conv2d(x, packed, 0.2, 5))
    assert Q.conv2d_unpack(packed)[0].equal(weight(4, 2, 3, 3)) and Q.conv2d_padding(packed) == [1, 1]
    assert (Q.conv2d_stride(packed), Q.conv2d_dilation(packed), Q.conv2d_groups(packed)) == ([1, 1], [1, 1], 1)


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_borders_of_other_kinds(mode: str) -> None:
    layer = tp.ao.nn.quantized.Conv2d(2, 3, 3, padding=1, padding_mode=mode)
    layer.set_weight_bias(tp.quantize_per_tensor(tp.rand(3, 2, 3, 3), 0.01, 0, tp.qint8), None)
    layer.scale, layer.zero_point = 0.05, 3
    x = tp.quantize_per_tensor(tp.rand(2, 2, 5, 6), 0.01, 3, tp.quint8)
    border = tp.nn.functional.pad(x.dequantize(), (1, 1, 1, 1), mode=mode)
    expected = tp.nn.functional.conv2d(border, layer.weight().dequantize())
    assert (layer(x).dequantize() - expected).abs().max() < 0.05 / 2 + 1e-5


def test_a_state_is_pytorchs(torch: Any) -> None:
    theirs = torch.ao.nn.quantized.Conv2d(4, 6, 3, groups=2)
    theirs.set_weight_bias(torch.quantize_per_tensor(torch.randn(6, 2, 3, 3), 0.05, 0, torch.qint8), torch.randn(6))
    theirs.scale, theirs.zero_point = 0.25, 7
    file = io.BytesIO()
    torch.save(theirs.state_dict(), file)
    ours = tp.ao.nn.quantized.Conv2d(4, 6, 3, groups=2)
    ours.load_state_dict(tp.load(io.BytesIO(file.getvalue())))
    assert ours.weight().int_repr().tolist() == theirs.weight().int_repr().tolist()
    assert (ours.scale, ours.zero_point, ours.bias().tolist()) == (0.25, 7, theirs.bias().tolist())
    back = io.BytesIO()
    tp.save(ours.state_dict(), back)
    again = torch.ao.nn.quantized.Conv2d(4, 6, 3, groups=2)
    again.load_state_dict(torch.load(io.BytesIO(back.getvalue())))
    assert again.weight().int_repr().equal(theirs.weight().int_repr()) and again.scale == 0.25


# ---- sums, products, joins ----


@pytest.mark.parametrize("dtype", ["quint8", "qint8"])
def test_sums_products_and_joins_are_pytorchs(torch: Any, dtype: str) -> None:
    draw = Random(dtype)
    for _ in range(40):
        count = draw.randint(1, 70)
        a, b = ([draw.gauss(0, 3) for _ in range(count)] for _ in range(2))
        scales, zeros = [10 ** draw.uniform(-2, 0) for _ in range(3)], [draw.randint(0, 127) for _ in range(3)]
        results = []
        for library, ops in ((torch, torch.ops.quantized), (tp, Q)):
            x, y = (
                library.quantize_per_tensor(library.tensor(v), scales[i], zeros[i], getattr(library, dtype))
                for i, v in enumerate((a, b))
            )
            made = [getattr(ops, name)(x, y, scales[2], zeros[2]) for name in ("add", "add_relu", "mul", "mul_relu")]
            made += [ops.cat([x, y], 0, scales[2], zeros[2]), ops.cat_relu([x, y], 0, None, None)]
            for number in (2.5, -0.7, 0.0, a[0]):
                made += [getattr(ops, name)(x, number) for name in ("add", "add_relu", "mul", "mul_relu")]
            results.append([(q.int_repr().tolist(), q.q_scale(), q.q_zero_point()) for q in made])
        assert results[0] == results[1]


def test_products_of_matrices(torch: Any) -> None:
    made = []
    for library, ops in ((torch, torch.ops.quantized), (tp, Q)):
        x = library.quantize_per_tensor(library.arange(12.0).reshape(3, 4), 0.1, 3, library.quint8)
        y = library.quantize_per_tensor(library.arange(8.0).reshape(4, 2), 0.1, 3, library.quint8)
        made.append(ops.matmul(x, y, 0.5, 2).int_repr().tolist())
    assert made[0] == made[1]


# ---- bad input ----

X = tp.quantize_per_tensor(tp.ones(1, 2, 5, 5), 0.5, 0, tp.quint8)
PACKED = Q.conv2d_prepack(weight(4, 2, 3, 3), None, [1, 1], [0, 0], [1, 1], 1)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Q.conv2d(tp.ones(1, 2, 5, 5), PACKED, 1.0, 0), "quint8"),
        (lambda: Q.conv2d(X[0], PACKED, 1.0, 0), "the input has"),
        (lambda: Q.conv2d(X[:, :1], PACKED, 1.0, 0), "2 channels"),
        (lambda: Q.conv2d(X[..., :2], PACKED, 1.0, 0), "larger than an input"),
        (lambda: Q.conv2d(X, PACKED, 0.0, 0), "scale"),
        (lambda: Q.conv2d(X, PACKED, 1.0, 300), "zero point"),
        (lambda: Q.conv1d(X, PACKED, 1.0, 0), "conv1d_prepack"),
        (lambda: Q.conv2d(X, None, 1.0, 0), "conv2d_prepack"),
        (lambda: Q.conv2d_prepack(weight(4, 2, 3), None, [1, 1], [0, 0], [1, 1], 1), "4 dimensions"),
        (lambda: Q.conv2d_prepack(weight(4, 2, 3, 3), None, [0, 1], [0, 0], [1, 1], 1), "stride"),
        (lambda: Q.conv2d_prepack(weight(4, 2, 3, 3), None, [1, 1], [-1, 0], [1, 1], 1), "padding"),
        (lambda: Q.conv2d_prepack(weight(4, 2, 3, 3), None, [1, 1], [0], [1, 1], 1), "padding"),
        (lambda: Q.conv2d_prepack(weight(4, 2, 3, 3), None, [1, 1], [0, 0], [1, 1], 3), "groups"),
        (lambda: Q.conv2d_prepack(weight(4, 2, 3, 3), tp.ones(3), [1, 1], [0, 0], [1, 1], 1), "bias"),
        (lambda: Q.conv2d_prepack(tp.ones(4, 2, 3, 3), None, [1, 1], [0, 0], [1, 1], 1), "qint8"),
        (lambda: Q.add(X, tp.quantize_per_tensor(tp.ones(1), 1.0, 0, tp.qint8), 1.0, 0), "quint8"),
        (lambda: Q.add(X, X, 0.0, 0), "scale"),
        (lambda: Q.mul(tp.ones(2), 3.0), "quantized tensor"),
        (lambda: Q.cat([], 0, 1.0, 0), "without tensors"),
        (lambda: Q.cat([tp.ones(2)], 0, 1.0, 0), "quantized tensor"),
        (lambda: tp.ao.nn.quantized.QFunctional()(X), "methods"),
        (lambda: tp.ao.nn.quantized.FloatFunctional()(X), "methods"),
    ],
)
def test_bad_input(call: Any, words: str) -> None:
    with pytest.raises(RuntimeError, match=words):
        call()
