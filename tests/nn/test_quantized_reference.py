"""Recurrent layers in floating point with weights that are rounded to integers, and models of such layers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from test_quantized_recurrent import tensors

import tensorpy as tp

KINDS = [
    ("LSTM", {}),
    ("LSTM", {"num_layers": 2, "bidirectional": True, "batch_first": True, "proj_size": 2}),
    ("GRU", {"num_layers": 2}),
    ("LSTMCell", {}),
    ("GRUCell", {"bias": False}),
    ("RNNCell", {"nonlinearity": "relu"}),
]
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def filled(library: Any, module: Any) -> Any:
    draw = np.random.default_rng(0)
    with library.no_grad():
        for p in module.parameters():
            p.copy_(library.tensor((draw.random(tuple(p.shape)) - 0.5).tolist()))
    return module


def rounding(library: Any, scheme: str, rows: int) -> dict[str, Any]:
    if scheme == "none":
        return {"qscheme": None, "dtype": library.float16}
    if scheme == "per_tensor":
        return {"qscheme": library.per_tensor_affine, "dtype": library.qint8, "scale": 0.02, "zero_point": 3}
    scales = [0.01 + 0.001 * i for i in range(rows)]
    how = {"scale": scales, "zero_point": [0] * rows, "axis": 0}
    return {"qscheme": library.per_channel_affine, "dtype": library.qint8, **how}


def layer(library: Any, kind: str, given: Any, scheme: str) -> Any:
    module = filled(library, getattr(library.nn, kind)(4, 5, **given))
    how = {n: rounding(library, scheme, len(p)) for n, p in module.named_parameters() if n.startswith("weight")}
    cls, how["is_decomposed"] = getattr(library.ao.nn.quantized.reference, kind), False
    if kind == "LSTM":  # which has no from_float in PyTorch
        return filled(library, cls(4, 5, **given, weight_qparams_dict=how))
    return cls.from_float(module, how)


@pytest.mark.parametrize("scheme", ["none", "per_tensor", "per_channel"])
@pytest.mark.parametrize(("kind", "given"), KINDS, ids=str)
def test_as_in_pytorch(torch: Any, kind: str, given: Any, scheme: str) -> None:
    found = []
    for library in (torch, tp):
        made = layer(library, kind, given, scheme)
        x = np.random.default_rng(1).standard_normal((3, 4) if kind.endswith("Cell") else (3, 2, 4)).tolist()
        if kind.endswith("Cell"):
            weights = [made.get_weight_ih(), made.get_weight_hh(), made.get_quantized_weight_ih().dequantize()]
        else:
            weights = [w.dequantize() for w in made.get_quantized_weight_bias_dict().values()]
        found.append((tensors(made(library.tensor(x))), tensors(weights), repr(made), sorted(made.state_dict())))
    (results, weights, *shown), (ours, own, *said) = found
    assert shown == said
    for a, b in zip(results + weights, ours + own, strict=True):
        assert np.allclose(a, b, atol=1e-4)


def test_rounded_weights_are_no_parameters() -> None:
    """The call rounds: what the layer keeps is the weight itself, before and after an error."""
    cell = layer(tp, "RNNCell", {}, "per_tensor")
    before = cell.weight_ih
    cell(tp.ones(1, 4))
    with pytest.raises(RuntimeError):
        cell(tp.ones(1, 3))
    assert cell.weight_ih is before and not cell.get_weight_ih().equal(before)
    state = cell.state_dict()
    again = tp.ao.nn.quantized.reference.RNNCell(4, 5)
    again.load_state_dict(state)
    with pytest.raises(AssertionError, match="two weights"):
        tp.ao.nn.quantized.reference.RNNCell(4, 5, weight_qparams_dict={"weight_ih": {}})
    with pytest.raises(AssertionError, match="qscheme"):
        how = {"qscheme": tp.per_channel_symmetric, "dtype": tp.qint8}
        tp.ao.nn.quantized.reference.RNNCell(
            4, 5, weight_qparams_dict=dict.fromkeys(("weight_ih", "weight_hh"), how) | {"is_decomposed": 0}
        )


def test_models_of_reference_layers(torch: Any) -> None:
    found = []
    for library in (torch, tp):
        made, quantization = library.nn, library.ao.quantization
        model = made.Sequential(made.Conv2d(2, 3, 2), made.ReLU(), made.Flatten(), made.Linear(12, 4))
        model = filled(library, quantization.QuantWrapper(model)).eval()
        model.qconfig = quantization.get_default_qconfig("fbgemm")
        x = library.tensor(np.random.default_rng(1).standard_normal((2, 2, 3, 3)).tolist())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            prepared = quantization.prepare(model)
            prepared(x)
            converted = quantization.convert(prepared, is_reference=True)
        layers = [converted.module[0].get_weight(), converted.module[3].get_weight()]
        found.append((tensors(layers), [type(m).__name__ for m in converted.modules()]))
    assert found[0][1] == found[1][1]
    for a, b in zip(found[0][0], found[1][0], strict=True):
        assert np.allclose(a, b, atol=1e-6)
    reference = tp.ao.quantization.get_static_quant_module_class(tp.nn.Linear, is_reference=True)
    assert reference is tp.ao.nn.quantized.reference.Linear
