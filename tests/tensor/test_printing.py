"""repr: literal texts, recorded from PyTorch 2.13 with its module name replaced."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pytest

import tensorpy as tp
from tensorpy._tensor_str import get_printoptions, printoptions, set_printoptions


@pytest.fixture(autouse=True)
def default_options() -> Iterator[None]:
    set_printoptions(profile="default")
    yield
    set_printoptions(profile="default")


Options = dict[str, object]
PLAIN: list[tuple[str, str]] = [
    ("tp.tensor(3.0)", "tensor(3.)"),
    ("tp.tensor(3)", "tensor(3)"),
    ("tp.tensor(True)", "tensor(True)"),
    ("tp.tensor(1.5e-7)", "tensor(1.5000e-07)"),
    ("tp.tensor([])", "tensor([])"),
    ("tp.tensor([[], []])", "tensor([], size=(2, 0))"),
    ("tp.zeros([0, 3], dtype=tp.int64)", "tensor([], size=(0, 3), dtype=tensorpy.int64)"),
    ("tp.tensor([1.0, 2.0, 3.0])", "tensor([1., 2., 3.])"),
    ("tp.tensor([1.5, -2.25, 1000.125])", "tensor([   1.5000,   -2.2500, 1000.1250])"),
    ("tp.tensor([1e-5, 1.0])", "tensor([1.0000e-05, 1.0000e+00])"),
    ("tp.tensor([1e10, 1.0])", "tensor([1.0000e+10, 1.0000e+00])"),
    ("tp.tensor([0.0, nan, inf, -inf])", "tensor([0., nan, inf, -inf])"),
    ("tp.tensor([1.5, nan, -inf])", "tensor([1.5000,    nan,   -inf])"),
    ("tp.tensor([0.0, -0.0])", "tensor([0., -0.])"),
    ("tp.tensor([1, -20, 300])", "tensor([  1, -20, 300])"),
    ("tp.tensor([True, False])", "tensor([ True, False])"),
    ("tp.tensor([1, 2], dtype=tp.uint8)", "tensor([1, 2], dtype=tensorpy.uint8)"),
    ("tp.tensor([1.0], dtype=tp.float64)", "tensor([1.], dtype=tensorpy.float64)"),
    ("tp.tensor([1.0, 0.1], dtype=tp.float16)", "tensor([1.0000, 0.1000], dtype=tensorpy.float16)"),
    ("tp.tensor([1.0, 0.1], dtype=tp.bfloat16)", "tensor([1.0000, 0.1001], dtype=tensorpy.bfloat16)"),
    ("tp.tensor([1 + 2j, -1.5 - 0.25j])", "tensor([ 1.0000+2.0000j, -1.5000-0.2500j])"),
    ("tp.tensor([[1e8, 2.0], [3.0, 4.0]])", "tensor([[1.0000e+08, 2.0000e+00],\n        [3.0000e+00, 4.0000e+00]])"),
    ("tp.tensor([[1.5, 2.0], [3.0, 4.0]])", "tensor([[1.5000, 2.0000],\n        [3.0000, 4.0000]])"),
    (
        "tp.tensor([[[1, 2], [3, 4]], [[5, 6], [7, 8]]])",
        "tensor([[[1, 2],\n         [3, 4]],\n\n        [[5, 6],\n         [7, 8]]])",
    ),
    ("tp.arange(1001)", "tensor([   0,    1,    2,  ...,  998,  999, 1000])"),
    (
        "tp.arange(2000.0)",
        "tensor([0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 1.9970e+03, 1.9980e+03,\n        1.9990e+03])",
    ),
    (
        "tp.arange(10000.0).reshape([100, 100])",
        "tensor([[0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 9.7000e+01, 9.8000e+01,\n"
        "         9.9000e+01],\n"
        "        [1.0000e+02, 1.0100e+02, 1.0200e+02,  ..., 1.9700e+02, 1.9800e+02,\n"
        "         1.9900e+02],\n"
        "        [2.0000e+02, 2.0100e+02, 2.0200e+02,  ..., 2.9700e+02, 2.9800e+02,\n"
        "         2.9900e+02],\n"
        "        ...,\n"
        "        [9.7000e+03, 9.7010e+03, 9.7020e+03,  ..., 9.7970e+03, 9.7980e+03,\n"
        "         9.7990e+03],\n"
        "        [9.8000e+03, 9.8010e+03, 9.8020e+03,  ..., 9.8970e+03, 9.8980e+03,\n"
        "         9.8990e+03],\n"
        "        [9.9000e+03, 9.9010e+03, 9.9020e+03,  ..., 9.9970e+03, 9.9980e+03,\n"
        "         9.9990e+03]])",
    ),
    (
        "tp.zeros([20, 30, 2])",
        "tensor([[[0., 0.],\n"
        "         [0., 0.],\n"
        "         [0., 0.],\n"
        "         ...,\n"
        "         [0., 0.],\n"
        "         [0., 0.],\n"
        "         [0., 0.]],\n"
        "\n"
        "        [[0., 0.],\n"
        "         [0., 0.],\n"
        "         [0., 0.],\n"
        "         ...,\n"
        "         [0., 0.],\n"
        "         [0., 0.],\n"
        "         [0., 0.]],\n"
        "\n"
        "        [[0., 0.],\n"
        "         [0., 0.],\n"
        "         [0., 0.],\n"
        "         ...,\n"
        "         [0., 0.],\n"
        "         [0., 0.],\n"
        "         [0., 0.]],\n"
        "\n"
        "        ...,\n"
        "\n"
        "        [[0., 0.],\n"
        "         [0., 0.],\n"
        "         [0., 0.],\n"
        "         ...,\n"
        "         [0., 0.],\n"
        "         [0., 0.],\n"
        "         [0., 0.]],\n"
        "\n"
        "        [[0., 0.],\n"
        "         [0., 0.],\n"
        "         [0., 0.],\n"
        "         ...,\n"
        "         [0., 0.],\n"
        "         [0., 0.],\n"
        "         [0., 0.]],\n"
        "\n"
        "        [[0., 0.],\n"
        "         [0., 0.],\n"
        "         [0., 0.],\n"
        "         ...,\n"
        "         [0., 0.],\n"
        "         [0., 0.],\n"
        "         [0., 0.]]])",
    ),
    (
        "tp.arange(30.0) / 7",
        "tensor([0.0000, 0.1429, 0.2857, 0.4286, 0.5714, 0.7143, 0.8571, 1.0000, 1.1429,\n"
        "        1.2857, 1.4286, 1.5714, 1.7143, 1.8571, 2.0000, 2.1429, 2.2857, 2.4286,\n"
        "        2.5714, 2.7143, 2.8571, 3.0000, 3.1429, 3.2857, 3.4286, 3.5714, 3.7143,\n"
        "        3.8571, 4.0000, 4.1429])",
    ),
    ('tp.zeros([2, 3], device="meta")', "tensor(..., device='meta', size=(2, 3))"),
    (
        'tp.zeros([2, 3], device="meta", dtype=tp.float64)',
        "tensor(..., device='meta', size=(2, 3), dtype=tensorpy.float64)",
    ),
    ("tp.tensor([99999999.0, 1.0])", "tensor([1.0000e+08, 1.0000e+00])"),
    ("tp.tensor([1000.0, 1.0])", "tensor([1000.,    1.])"),
    ("tp.tensor([1001.0, 1.0])", "tensor([1.0010e+03, 1.0000e+00])"),
    ("tp.tensor([1e-4, 0.01])", "tensor([1.0000e-04, 1.0000e-02])"),
    ("tp.tensor([123456789])", "tensor([123456789])"),
    ("tp.tensor([1.0, 2.0], requires_grad=True)", "tensor([1., 2.], requires_grad=True)"),
    ("tp.tensor([1.0, 2.0], requires_grad=True) * 2", "tensor([2., 4.], grad_fn=<MulBackward0>)"),
    ("tp.tensor([1.0, 2.0], requires_grad=True)[0]", "tensor(1., grad_fn=<SelectBackward0>)"),
    ("tp.ones([1, 1, 1, 1])", "tensor([[[[1.]]]])"),
    (
        "tp.full([12], 0.123456, dtype=tp.float64)",
        "tensor([0.1235, 0.1235, 0.1235, 0.1235, 0.1235, 0.1235, 0.1235, 0.1235, 0.1235,\n"
        "        0.1235, 0.1235, 0.1235], dtype=tensorpy.float64)",
    ),
]


CASES: list[tuple[Options, str, str]] = [
    *(({}, expression, text) for expression, text in PLAIN),
    ({"precision": 2}, "tp.tensor([1.23456])", "tensor([1.23])"),
    ({"threshold": 5}, "tp.arange(10)", "tensor([0, 1, 2,  ..., 7, 8, 9])"),
    (
        {"threshold": 5, "edgeitems": 1},
        "tp.arange(12).reshape([3, 4])",
        "tensor([[ 0,  ...,  3],\n        ...,\n        [ 8,  ..., 11]])",
    ),
    (
        {"linewidth": 30},
        "tp.arange(20)",
        "tensor([ 0,  1,  2,  3,  4,\n"
        "         5,  6,  7,  8,  9,\n"
        "        10, 11, 12, 13, 14,\n"
        "        15, 16, 17, 18, 19])",
    ),
    ({"sci_mode": True}, "tp.tensor([1.0, 2.5])", "tensor([1.0000e+00, 2.5000e+00])"),
    ({"sci_mode": False}, "tp.tensor([1e-8, 1e8])", "tensor([        0.0000, 100000000.0000])"),
    ({"profile": "short"}, "tp.tensor([1.23456])", "tensor([1.23])"),
    ({"profile": "full"}, "tp.zeros([1001], dtype=tp.bool)[:4]", "tensor([False, False, False, False])"),
    ({"linewidth": 20}, "tp.tensor([1.0], dtype=tp.float64)", "tensor([1.],\n       dtype=tensorpy.float64)"),
]


@pytest.mark.parametrize(("options", "expression", "text"), CASES, ids=[e[:40] for _, e, _ in CASES])
def test_repr(options: Options, expression: str, text: str) -> None:
    set_printoptions(**options)
    assert repr(eval(expression, {"tp": tp, "inf": float("inf"), "nan": float("nan")})) == text


def test_str_and_format() -> None:
    assert str(tp.tensor([1.5])) == "tensor([1.5000])"
    assert f"{tp.tensor(3.14159):.2f}" == "3.14"
    assert f"{tp.tensor([1])}" == "tensor([1])"


class Named(tp.Tensor):
    pass


def test_subclass() -> None:
    assert repr(Named([1.0])) == "Named([1.])"


def test_printoptions_come_back() -> None:
    with printoptions(precision=1):
        assert repr(tp.tensor([1.25])) == "tensor([1.2])"
    assert repr(tp.tensor([1.25])) == "tensor([1.2500])"
    assert get_printoptions()["threshold"] == 1000
    with pytest.raises(ValueError, match="unknown profile"):
        set_printoptions(profile="nope")


def test_dtype_objects_pickle() -> None:
    assert pickle.loads(pickle.dumps(tp.float32)) is tp.float32


class Weight(tp.nn.Parameter):
    pass


class Told(tp.nn.Parameter):
    def __repr__(self) -> str:  # type: ignore[override]
        return f"told {tp.Tensor.__repr__(self)}"


def test_parameters() -> None:
    plain, weight, told = (kind(tp.ones(2)) for kind in (tp.nn.Parameter, Weight, Told))
    texts = (
        (plain, "Parameter containing:\ntensor([1., 1.], requires_grad=True)"),
        (weight, "Parameter containing:\nParameter(Weight([1., 1.], requires_grad=True))"),
        (told, "told Parameter(Told([1., 1.], requires_grad=True))"),
    )
    for parameter, text in texts:
        assert repr(parameter) == str(parameter) == f"{parameter}" == text
    assert tp.Tensor.__repr__(plain) == "tensor([1., 1.], requires_grad=True)"


def test_tangents() -> None:
    with tp.autograd.forward_ad.dual_level():
        dual = tp.autograd.forward_ad.make_dual(tp.ones(2), tp.tensor([1.0, 2.0]))
        assert repr(dual) == "tensor([1., 1.], tangent=tensor([1., 2.]))"
    assert repr(tp.ones(2)) == "tensor([1., 1.])"
