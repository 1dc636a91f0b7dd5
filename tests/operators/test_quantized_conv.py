"""ops.quantized: convolutions of integers by their definition and as PyTorch has them; sums, products and joins."""

from __future__ import annotations

import copy
import io
import pickle
from random import Random
from typing import Any

import numpy as np
import pytest

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
