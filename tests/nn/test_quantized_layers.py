"""Layers of tensorpy.ao.nn one by one: results, states and printed forms are PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorpy as tp

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def torch() -> Any:
    found = pytest.importorskip("torch")
    found.backends.quantized.engine = "fbgemm"
    return found


def numbers(library: Any, *sizes: int, seed: int = 0) -> Any:
    return library.tensor(np.random.default_rng(seed).standard_normal(sizes).astype(np.float32))


def filled(library: Any, layer: Any) -> Any:
    with library.no_grad():
        for seed, parameter in enumerate(layer.parameters()):
            parameter.copy_(numbers(library, *parameter.shape, seed=seed))
    return layer


def unnamed(value: Any) -> str:
    return repr(value).replace("torch.", "").replace("tensorpy.", "")


def shown(value: Any) -> Any:
    """A result as what can be compared."""
    return np.round(np.asarray(value.detach().tolist()), 4).tolist() if hasattr(value, "detach") else unnamed(value)


def dynamic_convolution(library: Any, n: int, mode: str, transposed: bool) -> list[Any]:
    nn = library.nn
    if transposed:
        layer = getattr(nn, f"ConvTranspose{n}d")(4, 6, 2, stride=2, padding=1, groups=2)
    else:
        layer = getattr(nn, f"Conv{n}d")(4, 6, 2, padding=1, groups=2, padding_mode=mode)
    filled(library, layer).qconfig = library.ao.quantization.default_dynamic_qconfig
    made = getattr(library.ao.nn.quantized.dynamic, type(layer).__name__).from_float(layer)
    x = numbers(library, 2, 4, *[4] * n, seed=9)
    with pytest.raises(ValueError, match="Input shape must be"):
        made(x[0])
    return [made, made(x), made(x, False), *made.state_dict()]


@pytest.mark.parametrize(
    ("n", "mode", "transposed"),
    [(1, "zeros", False), (2, "zeros", False), (3, "zeros", False), (2, "reflect", False)]
    + [(n, "zeros", True) for n in (1, 2, 3)],
)
def test_dynamic_convolutions_are_torchs(n: int, mode: str, transposed: bool, torch: Any) -> None:
    mine, theirs = (dynamic_convolution(library, n, mode, transposed) for library in (tp, torch))
    assert [shown(value) for value in mine] == [shown(value) for value in theirs]


def trained_table(library: Any, name: str) -> list[Any]:
    quantization, qat = library.ao.quantization, library.ao.nn.qat
    table = filled(library, getattr(library.nn, name)(7, 4))
    table.qconfig = quantization.default_embedding_qat_qconfig
    made = getattr(qat, name).from_float(table)
    assert made.weight.data_ptr() == table.weight.data_ptr()
    rows = library.tensor([[0, 3, 2], [1, 1, 6]])
    y = made(rows)
    (y * y).sum().backward()
    with pytest.raises(AssertionError):
        getattr(qat, name)(7, 4)
    with pytest.raises(AssertionError, match="per_channel_affine_float_qparams"):
        getattr(qat, name)(7, 4, qconfig=quantization.get_default_qat_qconfig("fbgemm"))
    with pytest.raises(AssertionError):
        getattr(qat, name).from_float(library.nn.Linear(2, 3))
    back = made.to_float()
    model = library.nn.Sequential(getattr(library.nn, name)(7, 4))
    model.qconfig = quantization.default_embedding_qat_qconfig
    prepared = quantization.prepare_qat(model, {type(table): getattr(qat, name)})
    return [made, y, made.weight.grad, back, back(rows), *made.state_dict(), type(prepared[0]).__name__]


@pytest.mark.parametrize("name", ["Embedding", "EmbeddingBag"])
def test_tables_in_training_are_torchs(name: str, torch: Any) -> None:
    mine, theirs = trained_table(tp, name), trained_table(torch, name)
    assert [shown(value) for value in mine] == [shown(value) for value in theirs]


def linear_and_batch_norm(library: Any, bias: bool) -> list[Any]:
    nn, quantization = library.nn, library.ao.quantization
    model = filled(library, nn.Sequential(nn.Linear(3, 4, bias=bias), nn.BatchNorm1d(4)).train())
    model.qconfig = quantization.get_default_qat_qconfig("fbgemm")
    model = quantization.prepare_qat(quantization.fuse_modules_qat(model, [["0", "1"]]))
    found = [unnamed(model)]
    x = numbers(library, 5, 3, seed=9)
    for _ in range(2):
        y = model(x)
        (y * y).sum().backward()
        found += [y, model[0].weight.grad, model[0].bn.weight.grad, model[0].bn.running_mean]
    model[0].freeze_bn_stats()
    found += [model(x), model[0].bn.running_var]
    model.eval()
    found += [model(x), model[0].to_float(), model[0].to_float()(x)]
    converted = quantization.convert(model)
    return [*found, type(converted[0]).__name__, converted[0].weight().int_repr(), converted[0].bias()]


@pytest.mark.parametrize("bias", [True, False])
def test_a_linear_map_with_batch_norm_is_torchs(bias: bool, torch: Any) -> None:
    mine, theirs = linear_and_batch_norm(tp, bias), linear_and_batch_norm(torch, bias)
    assert [shown(value) for value in mine] == [shown(value) for value in theirs]
