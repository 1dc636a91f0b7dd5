"""ops.quantized: norms, activations and transposed convolutions, by their definition and as PyTorch has them."""

from __future__ import annotations

import copy
import io
import pickle
from random import Random
from typing import Any

import numpy as np
import pytest

import tensorpy as tp
from tensorpy import nn

Q: Any = tp.ops.quantized
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def torch() -> Any:
    found = pytest.importorskip("torch")
    found.backends.quantized.engine = "fbgemm"
    return found


# ---- norms and activations ----


def quantized(library: Any, numbers: np.ndarray, dtype: str = "quint8") -> Any:
    zero = 100 if dtype == "quint8" else 3
    return library.quantize_per_tensor(library.tensor(numbers.tolist()), 0.0517, zero, getattr(library, dtype))


def parts(library: Any, channels: int, seed: int) -> list[Any]:
    """A weight, a bias, means and variances."""
    draw = np.random.default_rng(seed)
    means = [draw.standard_normal(channels) for _ in range(3)]
    return [library.tensor(p.astype("float32").tolist()) for p in (*means, draw.random(channels) + 0.5)]


# name: what is called, of a library, its operators, an input
CASES: dict[str, Any] = {
    "batch_norm2d": lambda lib, ops, x: ops.batch_norm2d(x, *parts(lib, 6, 1), 1e-5, 0.05, 90),
    "batch_norm2d_relu": lambda lib, ops, x: ops.batch_norm2d_relu(x, *parts(lib, 6, 2), 1e-5, 0.05, 9),
    "batch_norm": lambda lib, ops, x: ops.batch_norm(x, *parts(lib, 6, 3), 1e-3, 0.1, 90),
    "batch_norm3d": lambda lib, ops, x: ops.batch_norm3d(x.unsqueeze(2), *parts(lib, 6, 4), 1e-5, 0.05, 90),
    "batch_norm3d_relu": lambda lib, ops, x: ops.batch_norm3d_relu(x.unsqueeze(2), *parts(lib, 6, 5), 1e-5, 0.05, 9),
    "batch_norm1d": lambda lib, ops, x: ops.batch_norm1d(x.flatten(2), *parts(lib, 6, 6), 1e-5, 0.05, 90),
    "batch_norm1d_relu": lambda lib, ops, x: ops.batch_norm1d_relu(x[:, :, 0, 0], *parts(lib, 6, 7), 1e-5, 0.05, 9),
    "without weights": lambda lib, ops, x: ops.batch_norm2d(x, None, None, *parts(lib, 6, 8)[2:], 1e-5, 0.05, 90),
    "layer_norm": lambda lib, ops, x: ops.layer_norm(x, [5], *parts(lib, 5, 9)[:2], 1e-5, 0.04, 90),
    "group_norm": lambda lib, ops, x: ops.group_norm(x, 3, *parts(lib, 6, 10)[:2], 1e-5, 0.04, 90),
    "instance_norm": lambda lib, ops, x: ops.instance_norm(x, *parts(lib, 6, 11)[:2], 1e-5, 0.04, 90),
    "leaky_relu": lambda lib, ops, x: ops.leaky_relu(x, 0.3, False, 0.04, 90),
    "elu": lambda lib, ops, x: ops.elu(x, 0.03, 90, 1.5),
    "elu of three numbers": lambda lib, ops, x: ops.elu(x, 0.03, 90, 1.5, 1.1, 0.7),
    "celu": lambda lib, ops, x: ops.celu(x, 0.03, 90, 2.0),
    "hardswish": lambda lib, ops, x: ops.hardswish(x, 0.03, 20),
    "sigmoid": lambda lib, ops, x: ops.sigmoid(x, 1 / 200, 3),
    "softmax": lambda lib, ops, x: ops.softmax(x, 3, 1 / 200, 3),
    "relu6": lambda lib, ops, x: ops.relu6(x, False),
    "prelu": lambda lib, ops, x: ops.prelu(
        x, quantized(lib, np.full(6, 0.2585), "qint8" if "qint8" in str(x.dtype) else "quint8"), 0.0413, 90
    ),
}


# PyTorch wants weights, and cuts off fractions in prelu.
@pytest.mark.parametrize("name", [name for name in CASES if name not in ("without weights", "prelu")])
@pytest.mark.parametrize("dtype", ["quint8", "qint8"])
def test_results_are_pytorchs(torch: Any, name: str, dtype: str) -> None:
    """At most one apart, where a number lies between two integers and is rounded in other steps."""
    for seed in range(5):
        numbers = np.random.default_rng(seed).standard_normal((2, 6, 4, 5)) * 2
        found = []
        for library, ops in ((torch, torch.ops.quantized), (tp, Q)):
            x = quantized(library, numbers, dtype)
            y = CASES[name](library, ops, x)
            found.append((np.array(y.int_repr().tolist()), y.q_scale(), y.q_zero_point(), str(y.dtype).split(".")[1]))
        assert found[0][1:] == found[1][1:]
        apart = np.abs(found[0][0].astype(int) - found[1][0].astype(int))
        assert apart.max() <= 1 and apart.mean() < 0.01


@pytest.mark.parametrize("name", CASES)
def test_results_are_near_those_of_the_numbers(name: str) -> None:
    by_name = {
        "layer_norm": lambda x: nn.functional.layer_norm(x, [5], *parts(tp, 5, 9)[:2]),
        "group_norm": lambda x: nn.functional.group_norm(x, 3, *parts(tp, 6, 10)[:2]),
        "instance_norm": lambda x: nn.functional.instance_norm(x, None, None, *parts(tp, 6, 11)[:2]),
        "batch_norm2d": lambda x: nn.functional.batch_norm(x, *parts(tp, 6, 1)[2:], *parts(tp, 6, 1)[:2]),
        "elu": lambda x: nn.functional.elu(x, 1.5),
        "celu": lambda x: nn.functional.celu(x, 2.0),
        "hardswish": nn.functional.hardswish,
        "relu6": nn.functional.relu6,
        "prelu": lambda x: nn.functional.prelu(x, tp.tensor([0.2585])),
    }
    x = quantized(tp, np.random.default_rng(0).standard_normal((2, 6, 4, 5)))
    y = CASES[name](tp, Q, x)
    assert y.dtype == tp.quint8 and x.int_repr().equal(quantized(tp, x.dequantize().numpy()).int_repr())
    if name in by_name:
        low, high = (0 - y.q_zero_point()) * y.q_scale(), (255 - y.q_zero_point()) * y.q_scale()
        exact = by_name[name](x.dequantize()).clamp(low, high)
        assert (y.dequantize() - exact).abs().max() < y.q_scale() / 2 + 1e-4


def test_bad_input() -> None:
    x = quantized(tp, np.zeros((1, 6, 2, 2)))
    for call in (
        lambda: Q.batch_norm2d(x[0], *parts(tp, 6, 1), 1e-5, 0.1, 0),
        lambda: Q.batch_norm2d(x, *parts(tp, 5, 1), 1e-5, 0.1, 0),
        lambda: Q.batch_norm2d(x, *parts(tp, 6, 1), 1e-5, 0.0, 0),
        lambda: Q.batch_norm2d(x.dequantize(), *parts(tp, 6, 1), 1e-5, 0.1, 0),
        lambda: Q.layer_norm(x, [3], None, None, 1e-5, 0.1, 0),
        lambda: Q.group_norm(x, 4, None, None, 1e-5, 0.1, 0),
        lambda: Q.instance_norm(x[0, 0], None, None, 1e-5, 0.1, 0),
        lambda: Q.hardswish(tp.ones(2), 0.1, 0),
        lambda: Q.sigmoid(x, 0.1, 256),
        lambda: Q.celu(x, 0.1, 0, 0),
    ):
        with pytest.raises(RuntimeError):
            call()


# ---- transposed convolutions ----


class Transposed:
    def __init__(self, seed: int) -> None:
        draw = Random(seed)
        self.n, self.groups = draw.choice([1, 2, 2, 3]), draw.choice([1, 1, 2, 3])
        self.inputs, self.each = self.groups * draw.randint(1, 4), draw.randint(1, 5)
        self.window, self.stride, self.dilation, self.size, self.padding, self.more = (
            [draw.randint(*ends) for _ in range(self.n)] for ends in ((1, 3), (1, 3), (1, 2), (3, 6), (0, 1), (0, 0))
        )
        self.more = [draw.randint(0, max(s, d) - 1) for s, d in zip(self.stride, self.dilation, strict=True)]
        self.zero, self.has_bias = draw.choice([0, 0, 3]), draw.random() < 0.5
        numbers = np.random.default_rng(seed)
        self.x = numbers.integers(0, 128, (2, self.inputs, *self.size))
        self.w = numbers.integers(-128, 128, (self.inputs, self.each, *self.window))
        self.bias = numbers.standard_normal(self.each * self.groups).astype("float32")

    def run(self, library: Any, ops: Any) -> Any:
        tensor = library.tensor
        x = library._make_per_tensor_quantized_tensor(tensor(self.x.tolist(), dtype=library.uint8), 0.1, 64)
        w = library._make_per_tensor_quantized_tensor(tensor(self.w.tolist(), dtype=library.int8), 0.02, self.zero)
        bias = tensor(self.bias.tolist()) if self.has_bias else None
        packed = getattr(ops, f"conv_transpose{self.n}d_prepack")(
            w, bias, self.stride, self.padding, self.more, self.dilation, self.groups
        )
        unpacked = getattr(ops, f"conv_transpose{self.n}d_unpack")(packed)
        assert unpacked[0].int_repr().tolist() == self.w.tolist() and (unpacked[1] is None) == (bias is None)
        return getattr(ops, f"conv_transpose{self.n}d")(x, packed, 0.9, 71)

    def exact(self) -> np.ndarray:
        x, w = tp.tensor((self.x - 64.0).tolist()) * 0.1, (tp.tensor(self.w.tolist()) - self.zero) * 0.02
        bias = tp.tensor(self.bias.tolist()) if self.has_bias else None
        y = getattr(nn.functional, f"conv_transpose{self.n}d")(
            x, w, bias, self.stride, self.padding, self.more, self.groups, self.dilation
        )
        return np.array((y / 0.9 + 71).clamp(0, 255).tolist())


@pytest.mark.parametrize("seed", range(40))
def test_a_transposed_convolution_is_its_definition(seed: int) -> None:
    found = Transposed(seed).run(tp, Q)
    assert np.abs(np.array(found.int_repr().tolist()) - Transposed(seed).exact()).max() < 0.5 + 1e-3


@pytest.mark.parametrize("seed", range(40))
def test_a_transposed_convolution_is_pytorchs(torch: Any, seed: int) -> None:
    case = Transposed(seed)
    try:
        theirs = case.run(torch, torch.ops.quantized)
    except RuntimeError as error:
        pytest.skip(str(error).splitlines()[0])
    assert case.run(tp, Q).int_repr().tolist() == theirs.int_repr().tolist()


def test_transposed_weights_are_kept_and_checked() -> None:
    w = tp.quantize_per_tensor(tp.randn(4, 3, 3, 2), 0.05, 0, tp.qint8)
    packed = Q.conv_transpose2d_prepack(w, tp.ones(6), [2, 1], [1, 0], [1, 0], [1, 1], 2)
    x = tp.quantize_per_tensor(tp.rand(1, 4, 5, 5), 0.1, 3, tp.quint8)
    for same in (pickle.loads(pickle.dumps(packed)), copy.deepcopy(packed)):
        assert Q.conv_transpose2d(x, same, 0.2, 5).equal(Q.conv_transpose2d(x, packed, 0.2, 5))
    assert (Q.conv_transpose2d_stride(packed), Q.conv_transpose2d_padding(packed)) == ([2, 1], [1, 0])
    assert (Q.conv_transpose2d_output_padding(packed), Q.conv_transpose2d_dilation(packed)) == ([1, 0], [1, 1])
    assert (Q.conv_transpose2d_groups(packed), Q.conv_transpose2d_transpose(packed)) == (2, 1)
    good: list[Any] = [w, None, [1, 1], [0, 0], [0, 0], [1, 1], 2]
    changes: list[tuple[int, Any]] = [
        (0, tp.quantize_per_channel(tp.ones(4, 3, 3, 2), tp.ones(4), tp.zeros(4), 0, tp.qint8)), (0, w[0]),
        (0, x), (1, tp.ones(5)), (2, [0, 1]), (3, [-1, 0]), (4, [1, 1]), (5, [1]), (6, 3),
    ]  # fmt: skip
    for at, value in changes:
        with pytest.raises(RuntimeError):
            Q.conv_transpose2d_prepack(*good[:at], value, *good[at + 1 :])
    with pytest.raises(RuntimeError, match="conv_transpose1d_prepack"):
        Q.conv_transpose1d(x, packed, 1.0, 0)
    with pytest.raises(RuntimeError, match="channels"):
        Q.conv_transpose2d(x[:, :3], packed, 1.0, 0)


def test_a_transposed_state_is_pytorchs(torch: Any) -> None:
    theirs = torch.ao.nn.quantized.ConvTranspose2d(4, 6, 3, stride=2, groups=2, output_padding=1)
    theirs.set_weight_bias(torch.quantize_per_tensor(torch.randn(4, 3, 3, 3), 0.05, 0, torch.qint8), torch.randn(6))
    theirs.scale, theirs.zero_point = 0.25, 7
    file = io.BytesIO()
    torch.save(theirs.state_dict(), file)
    ours = tp.ao.nn.quantized.ConvTranspose2d(4, 6, 3, stride=2, groups=2, output_padding=1)
    ours.load_state_dict(tp.load(io.BytesIO(file.getvalue())))
    numbers = np.random.default_rng(0).random((1, 4, 5, 5)) * 5
    y, z = ours(quantized(tp, numbers)), theirs(quantized(torch, numbers))
    assert y.int_repr().tolist() == z.int_repr().tolist() and (ours.scale, ours.zero_point) == (0.25, 7)
