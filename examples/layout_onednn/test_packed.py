"""Packed tensors beside dense ones: `python -m pytest test_packed.py`"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from packed import Packed, ops, pack
from resnet import resnet

import tensorpy as tp
from tensorpy import nn

F = nn.functional


@pytest.fixture(autouse=True)
def without_gradients() -> Any:
    tp.manual_seed(0)
    with tp.no_grad():
        yield


@pytest.mark.parametrize("sizes", [(2, 3, 5, 7), (1, 16, 4, 4), (3, 20, 6, 1), (2, 1, 1, 1), (4, 9)])
def test_packed_and_back(sizes: tuple[int, ...]) -> None:
    x = tp.randn(sizes)
    assert pack(x).unpack().equal(x) and pack(x.flip(-1).transpose(0, 1)).unpack().equal(x.flip(-1).transpose(0, 1))
    assert repr(pack(x)) == f"Packed(size={sizes})" and pack(x).shape == sizes


MODULES: dict[str, Callable[[int], Any]] = {
    "conv": lambda c: nn.Conv2d(c, 24, 3, padding=1),
    "conv that moves": lambda c: nn.Conv2d(c, 5, (3, 2), stride=(2, 1), bias=False),
    "conv with gaps": lambda c: nn.Conv2d(c, 16, 3, padding=2, dilation=2),
    "conv of one": lambda c: nn.Conv2d(c, 32, 1),
    "norm": nn.BatchNorm2d,
    "plain norm": lambda c: nn.BatchNorm2d(c, affine=False),
    "relu": lambda c: nn.ReLU(),
    "relu in place": lambda c: nn.ReLU(inplace=True),
    "max_pool": lambda c: nn.MaxPool2d(3, 2, 1),
    "avg_pool": lambda c: nn.AvgPool2d(2),
    "avg_pool without border": lambda c: nn.AvgPool2d(3, 1, 1, count_include_pad=False),
    "global pool": lambda c: nn.AdaptiveAvgPool2d(1),
    "linear": lambda c: nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(c, 7)),
    "linear without bias": lambda c: nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(c, 7, bias=False)),
}


@pytest.mark.parametrize("channels", [1, 3, 16, 20])
@pytest.mark.parametrize("name", MODULES)
def test_modules(name: str, channels: int) -> None:
    module, x = MODULES[name](channels), tp.randn(2, channels, 9, 8)
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            part(tp.randn(5, channels, 3, 3) * 2 + 1)
    module.eval()
    found = module(pack(x))
    assert isinstance(found, Packed)
    expected = module(x.clone())
    assert found.shape == expected.shape and tp.allclose(found.unpack(), expected, rtol=1e-4, atol=1e-5)


def test_sums() -> None:
    x, y = tp.randn(2, 20, 3, 3), tp.randn(2, 20, 3, 3)
    a = pack(x)
    assert (a + pack(y)).unpack().equal(x + y)
    a += pack(y)
    assert a.unpack().equal(x + y)


def test_a_weight_that_was_written_is_packed_again() -> None:
    layer, x = nn.Conv2d(16, 16, 3), tp.randn(1, 16, 5, 5)
    before = layer(pack(x)).unpack()
    layer.weight.mul_(2)
    assert not layer(pack(x)).unpack().equal(before)
    assert tp.allclose(layer(pack(x)).unpack(), layer(x), rtol=1e-4, atol=1e-5)


def test_what_has_no_kernel() -> None:
    x = pack(tp.randn(2, 16, 4, 4))
    for call in (
        lambda: x.sin(),
        lambda: x + 1,
        lambda: nn.Conv2d(16, 16, 1, groups=2)(x),
        lambda: nn.AdaptiveAvgPool2d(2)(x),
        lambda: nn.MaxPool2d(2, ceil_mode=True)(x),
        lambda: nn.BatchNorm2d(16).train()(x),
    ):
        with pytest.raises(NotImplementedError):
            call()


def test_lines_and_sizes_that_do_not_fit() -> None:
    """Sizes are numbers that anybody may give: the kernels look at them before oneDNN does."""
    line, weight = pack(tp.randn(2, 16, 4, 4)).line, ops.pack_weight(tp.randn(16, 16, 3, 3))
    sizes, window, one, none = [2, 16, 4, 4], [16, 16, 3, 3], [1, 1], [0, 0]
    for call in (
        lambda: pack(tp.ones(3)),
        lambda: pack(tp.ones(0, 3, 2, 2)),
        lambda: ops.unpack(line, [2, 16, 4, 5]),
        lambda: ops.unpack(line, [2, 16, -4, -4]),
        lambda: ops.unpack(line, [2**40, 2**40, 1, 1]),
        lambda: ops.unpack(line.double(), sizes),
        lambda: ops.unpack(tp.ones(1024)[::2], sizes),
        lambda: ops.add(line, line[1:], sizes),
        lambda: ops.conv2d(line, sizes, weight, [16, 8, 3, 3], None, one, none, one),
        lambda: ops.conv2d(line, sizes, weight, [16, 16, 5, 5], None, one, none, one),
        lambda: ops.conv2d(line, sizes, weight[1:], window, None, one, none, one),
        lambda: ops.conv2d(line, sizes, weight, window, tp.ones(15), one, none, one),
        lambda: ops.conv2d(line, sizes, weight, window, None, none, none, one),
        lambda: ops.conv2d(line, sizes, weight, window, None, [1], none, one),
        lambda: ops.conv2d(line, sizes, weight, window, None, one, none, [9, 9]),
        lambda: ops.pool2d(line, sizes, [9, 9], one, none, True, True),
        lambda: ops.batch_norm(line, sizes, *[tp.ones(15)] * 4, 1e-5),
        lambda: ops.linear(line, [2, 16], tp.ones(3, 15), None),
    ):
        with pytest.raises(RuntimeError):
            call()


def test_a_resnet() -> None:
    model, x = resnet(), tp.randn(2, 3, 64, 64)
    dense, packed = model(x), model(pack(x)).unpack()
    assert tp.allclose(dense, packed, rtol=1e-3, atol=1e-4 * float(dense.abs().max()))
