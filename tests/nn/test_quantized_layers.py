"""Layers of tensorpy.ao.nn one by one: results, states and printed forms are PyTorch's."""

from __future__ import annotations

import importlib
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


def convolution(library: Any, n: int, mode: str, transposed: bool) -> Any:
    nn = library.nn
    if transposed:
        return filled(library, getattr(nn, f"ConvTranspose{n}d")(4, 6, 2, stride=2, padding=1, groups=2))
    return filled(library, getattr(nn, f"Conv{n}d")(4, 6, 2, padding=1, groups=2, padding_mode=mode))


def dynamic_convolution(library: Any, n: int, mode: str, transposed: bool) -> Any:
    layer = convolution(library, n, mode, transposed)
    layer.qconfig = library.ao.quantization.default_dynamic_qconfig
    return getattr(library.ao.nn.quantized.dynamic, type(layer).__name__).from_float(layer)


DYNAMIC_CONVOLUTIONS = [(1, "zeros", False), (2, "zeros", False), (3, "zeros", False), (2, "reflect", False)]
DYNAMIC_CONVOLUTIONS += [(n, "zeros", True) for n in (1, 2, 3)]


@pytest.mark.parametrize(("n", "mode", "transposed"), DYNAMIC_CONVOLUTIONS)
def test_dynamic_convolutions_are_torchs(n: int, mode: str, transposed: bool, torch: Any) -> None:
    found = []
    for library in (tp, torch):
        made, x = dynamic_convolution(library, n, mode, transposed), numbers(library, 2, 4, *[4] * n, seed=9)
        with pytest.raises(ValueError, match="Input shape must be"):
            made(x[0])
        found.append([shown(value) for value in (made, made(x), *made.state_dict())])
    assert found[0] == found[1]


@pytest.mark.parametrize(("n", "mode", "transposed"), DYNAMIC_CONVOLUTIONS)
def test_dynamic_convolutions_of_the_whole_range_are_exact(n: int, mode: str, transposed: bool) -> None:
    """What PyTorch computes then is not asked: without VNNI its sums of two products saturate."""
    made, x = dynamic_convolution(tp, n, mode, transposed), numbers(tp, 2, 4, *[4] * n, seed=9)
    given, layer = tp.quantize_per_tensor_dynamic(x, tp.quint8, False), convolution(tp, n, mode, transposed)
    with tp.no_grad():
        layer.weight.copy_(made.weight().dequantize())
        y = layer.double()(given.dequantize().double()).float()
    expected = tp.quantize_per_tensor(y, given.q_scale(), given.q_zero_point(), tp.quint8)
    assert made(x, False).tolist() == expected.dequantize().tolist()


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


def in_a_model(library: Any, layer: Any) -> Any:
    """A model in evaluation whose layer takes and returns quantized tensors."""
    quantization = library.ao.quantization

    class Model(library.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.quant, self.layer, self.dequant = quantization.QuantStub(), layer, quantization.DeQuantStub()

        def forward(self, *given: Any, **more: Any) -> Any:
            return [self.dequant(t) for t in flat(self.layer(*map(self.quant, given), **more)) if t is not None]

    model = filled(library, Model().eval())
    model.qconfig = quantization.get_default_qconfig("fbgemm")
    return model


def flat(value: Any) -> list[Any]:
    return [each for part in value for each in flat(part)] if isinstance(value, tuple) else [value]


def recurrent(library: Any, settings: dict[str, Any]) -> list[Any]:
    quantization = library.ao.quantization
    model = in_a_model(library, library.nn.LSTM(3, 4, **settings))
    prepared = quantization.prepare(model)
    found = [unnamed(prepared)]
    x = numbers(library, 5, 2, 3, seed=9)
    found += prepared(x)
    converted = quantization.convert(prepared)
    assert type(converted.layer) is library.ao.nn.quantized.LSTM
    with pytest.raises(NotImplementedError):
        library.ao.nn.quantized.LSTM.from_float(model.layer)
    return [*found, *converted(x), sorted(prepared.state_dict()), sorted(converted.state_dict())]


@pytest.mark.parametrize(
    "settings", [{}, {"bidirectional": True, "num_layers": 2}, {"batch_first": True, "bias": False}], ids=str
)
def test_lstm_in_parts_is_torchs(settings: dict[str, Any], torch: Any) -> None:
    mine, theirs = recurrent(tp, settings), recurrent(torch, settings)
    assert [shown(value) for value in mine] == [shown(value) for value in theirs]


@pytest.mark.parametrize("bidirectional", [False, True])
def test_gates_may_have_scales_of_their_own(bidirectional: bool) -> None:
    lstm, x = filled(tp, tp.nn.LSTM(3, 4, 2, bidirectional=bidirectional).eval()), numbers(tp, 5, 2, 3, seed=9)
    lstm.qconfig = tp.ao.quantization.default_qconfig
    state = tuple(numbers(tp, 4 if bidirectional else 2, 2, 4, seed=s) for s in (1, 2))
    for split_gates in (False, True):
        made = tp.ao.nn.quantizable.LSTM.from_float(lstm, split_gates=split_gates)
        for given in ((x,), (x, state)):
            for mine, plain in zip(flat(made(*given)), flat(lstm(*given)), strict=True):
                tp.testing.assert_close(mine, plain)
        quantized = tp.ao.quantization.convert(made)
        found = quantized(tp.quantize_per_tensor(x, 0.03, 128, tp.quint8))[0].dequantize()
        assert (found - lstm(x)[0]).abs().max() < 0.1
    step = tp.nn.LSTMCell(3, 4)
    step.qconfig = lstm.qconfig
    for mine, plain in zip(tp.ao.nn.quantizable.LSTMCell.from_float(step)(x[0]), step(x[0]), strict=True):
        tp.testing.assert_close(mine, plain)


def attention(library: Any, settings: dict[str, Any]) -> list[Any]:
    quantization, first = library.ao.quantization, settings.get("batch_first", False)
    model = in_a_model(library, library.nn.MultiheadAttention(8, 2, **settings))
    prepared = quantization.prepare(model)
    found = [unnamed(prepared), sorted(prepared.state_dict())]
    sizes = [(5, 8), (7, settings.get("kdim", 8)), (7, settings.get("vdim", 8))]
    given = [numbers(library, *((2, n, f) if first else (n, 2, f)), seed=n + f) for n, f in sizes]
    hidden = library.tensor((np.arange(35).reshape(5, 7) % 3 == 0).tolist())
    padding = library.tensor([[False] * 6 + [True], [False] * 7])
    calls: list[dict[str, Any]] = [
        {},
        {"attn_mask": hidden},
        {"attn_mask": numbers(library, 5, 7), "key_padding_mask": padding},
        {"attn_mask": hidden.repeat(4, 1, 1), "average_attn_weights": False},
        {"need_weights": False},
    ]
    for more in calls:
        found += prepared(*given, **more)
    with pytest.raises(AssertionError):
        prepared(*given, is_causal=True)
    converted = quantization.convert(prepared)
    found.append(sorted(converted.state_dict()))
    for more in calls:
        found += converted(*given, **more)
    return found


@pytest.mark.parametrize("settings", [{}, {"add_zero_attn": True}, {"bias": False}, {"kdim": 4, "vdim": 6}], ids=str)
def test_attention_in_parts_is_torchs(settings: dict[str, Any], torch: Any) -> None:
    mine, theirs = attention(tp, settings), attention(torch, settings)
    for here, there in zip(mine, theirs, strict=True):
        if hasattr(here, "detach"):
            here, there = here.detach().numpy(), there.detach().numpy()
            np.testing.assert_allclose(here, there, atol=np.ptp(there) / 100)  # a step of integers
        else:
            assert shown(here) == shown(there)


# PyTorch 2.13's mixes heads with batches where batches come first, and quantizes bias_v by the range of bias_k.
@pytest.mark.parametrize("settings", [{"batch_first": True}, {"add_bias_kv": True}], ids=str)
def test_attention_in_parts_is_attention(settings: dict[str, Any]) -> None:
    model = in_a_model(tp, tp.nn.MultiheadAttention(8, 2, **settings))
    prepared = tp.ao.quantization.prepare(model)
    given = [numbers(tp, 5, 5, 8, seed=seed) for seed in range(3)]
    expected = model.layer(*given)
    for mine, plain in zip(prepared(*given), expected, strict=True):
        tp.testing.assert_close(mine, plain)
    for mine, plain in zip(tp.ao.quantization.convert(prepared)(*given), expected, strict=True):
        assert (mine - plain).abs().mean() < 0.02 * plain.abs().max()


def test_attention_is_made_plain_again() -> None:
    for settings in ({}, {"add_bias_kv": True}, {"kdim": 4, "vdim": 6, "bias": False}):
        plain = filled(tp, tp.nn.MultiheadAttention(8, 2, **settings).eval())
        plain.qconfig = tp.ao.quantization.default_qconfig
        observed = tp.ao.nn.quantizable.MultiheadAttention.from_float(plain)
        given = [numbers(tp, n, 2, f) for n, f in ((5, 8), (7, plain.kdim), (7, plain.vdim))]
        for mine, theirs in zip(observed(*given), plain(*given), strict=True):
            tp.testing.assert_close(mine, theirs)
        back = tp.ao.nn.quantized.MultiheadAttention.from_observed(observed).dequantize()
        assert type(back) is tp.nn.MultiheadAttention
        expected = plain(*given)[0]
        assert (back(*given)[0] - expected).abs().max() < 0.05 * expected.abs().max()


def joined_layer(library: Any, name: str) -> list[Any]:
    """A fused layer, observed and quantized, and what it gives."""
    nn, intrinsic = library.nn, library.ao.nn.intrinsic
    parts = {
        "LinearLeakyReLU": lambda: (nn.Linear(4, 6), nn.LeakyReLU(0.25)),
        "LinearTanh": lambda: (nn.Linear(4, 6), nn.Tanh()),
        "ConvAdd2d": lambda: (nn.Conv2d(4, 4, 3, padding=1), library.add),
        "ConvAddReLU2d": lambda: (nn.Conv2d(4, 4, 3, padding=1), library.add, nn.ReLU()),
    }[name]()
    fused = filled(library, getattr(intrinsic, name)(*parts))
    sizes = (3, 4) if name.startswith("Linear") else (1, 4, 5, 5)
    given = [numbers(library, *sizes, seed=9)] + [numbers(library, *sizes, seed=8)] * name.startswith("Conv")
    expected = fused(*given)
    fused.qconfig = fused[0].qconfig = library.ao.quantization.default_qconfig
    fused.activation_post_process = fused.qconfig.activation()
    fused.activation_post_process(expected)
    made = getattr(intrinsic.quantized, name).from_float(fused)
    found = made(*[library.quantize_per_tensor(x, 0.05, 64, library.quint8) for x in given])
    assert float((found.dequantize() - expected).abs().max()) < 0.4
    return [
        type(made).__name__,
        repr(made),
        found.int_repr(),
        found.q_scale(),
        found.q_zero_point(),
        *made.state_dict(),
    ]


@pytest.mark.parametrize("name", ["LinearLeakyReLU", "LinearTanh", "ConvAdd2d", "ConvAddReLU2d"])
def test_layers_joined_with_what_follows(name: str, torch: Any) -> None:
    engine = torch.backends.quantized.engine
    try:
        torch.backends.quantized.engine = "onednn"  # the only one that has them
        expected = joined_layer(torch, name)
    finally:
        torch.backends.quantized.engine = engine
    found = joined_layer(tp, name)
    apart = np.abs(np.asarray(expected.pop(2).tolist()) - np.asarray(found.pop(2).tolist()))
    assert apart.max() <= 1 and apart.mean() < 0.1
    assert list(map(shown, expected)) == list(map(shown, found))


def reference_layer(library: Any, name: str, by_channel: bool) -> list[Any]:
    nn, tables = library.nn, name.startswith("Embedding")
    sizes = {"Linear": (4, 6), "Embedding": (5, 6), "EmbeddingBag": (5, 6)}.get(name, (4, 6, 2))
    layer = filled(library, getattr(nn, name)(*sizes))
    axis = int("Transpose" in name)
    rows = layer.weight.shape[axis]
    how: dict[str, Any] = {"qscheme": library.per_tensor_affine, "dtype": library.qint8, "scale": 0.05, "zero_point": 3}
    if by_channel:
        scale = library.tensor([0.02 + 0.01 * i for i in range(rows)])
        zero_point = library.zeros(rows, dtype=library.int64)
        how |= {"qscheme": library.per_channel_affine, "scale": scale, "zero_point": zero_point, "axis": axis}
    made = getattr(library.ao.nn.quantized.reference, name).from_float(layer, how)
    dims = (2, 4) if name == "Linear" else (2, 4, *[3] * int(name[-2])) if not tables else ()
    x = library.tensor([[0, 4], [2, 2]]) if tables else numbers(library, *dims, seed=9)
    again = type(made)(*sizes, weight_qparams={**how, "scale": 1.0, "zero_point": 0} if not by_channel else how)
    again.load_state_dict(made.state_dict())
    state = {key: value for key, value in made.state_dict().items() if "weight_" in key}
    return [
        repr(made),
        made(x),
        again(x),
        made.get_weight(),
        made.get_quantized_weight().int_repr(),
        *state,
        *state.values(),
    ]


@pytest.mark.parametrize("by_channel", [False, True])
@pytest.mark.parametrize(
    "name",
    ["Linear", "Embedding", "EmbeddingBag", *(f"Conv{n}d" for n in (1, 2, 3)), "ConvTranspose1d", "ConvTranspose2d"],
)
def test_reference_layers(name: str, by_channel: bool, torch: Any) -> None:
    expected, found = (reference_layer(library, name, by_channel) for library in (torch, tp))
    assert list(map(shown, expected)) == list(map(shown, found))


def test_a_quantized_layer_of_a_reference() -> None:
    how = {"qscheme": tp.per_tensor_affine, "dtype": tp.qint8, "scale": 0.05, "zero_point": 0}
    reference = tp.ao.nn.quantized.reference.Linear.from_float(tp.nn.Linear(4, 6), how)
    made = tp.ao.nn.quantized.Linear.from_reference(reference, 0.05, 64)
    x = tp.quantize_per_tensor(numbers(tp, 3, 4), 0.05, 64, tp.quint8)
    assert float((made(x).dequantize() - reference(x.dequantize())).abs().max()) < 0.06


@pytest.mark.parametrize(
    "text",
    [
        "Q.avg_pool2d(x, 2)", "Q.max_pool2d(x, 2)", "Q.adaptive_avg_pool2d(x, (2, 3))", "Q.hardtanh(x, -0.5, 0.5)",
        "Q.hardswish(x, 0.0913, 3)", "Q.hardsigmoid(x)", "Q.elu(x, 0.0913, 3)", "Q.celu(x, 0.0913, 3, 2.0)",
        "Q.clamp(x, 0.0, 0.5)",
        "Q.leaky_relu(x, 0.2)", "Q.leaky_relu(x, 0.2, scale=0.0913, zero_point=2)", "Q.threshold(x, 0.12, 0.3)",
        "Q.interpolate(x, scale_factor=2)", "Q.upsample_nearest(x, (3, 3))",
        "Q.conv2d(x, w, b, padding=1, scale=0.2, zero_point=4)",
        "Q.linear(x[0, 0], w[0, 0], scale=0.2)",
    ],
)  # fmt: skip
def test_functions_of_quantized_tensors_are_pytorchs(text: str, torch: Any) -> None:
    importlib.import_module("torch.ao.nn.quantized.functional")  # which the name below is part of

    found = []
    for library in (tp, torch):
        x = library.quantize_per_tensor(numbers(library, 2, 3, 5, 6), 0.05, 20, library.quint8)
        window = numbers(library, 4, 3, 6, 6, seed=1)[:, :, : 6 if "linear" in text else 3]
        w = library.quantize_per_tensor(window, 0.1, 0, library.qint8)
        found.append(eval(text, {"Q": library.ao.nn.quantized.functional, "x": x, "w": w, "b": numbers(library, 4)}))
    own, theirs = found
    assert (own.shape, own.q_scale(), own.q_zero_point()) == (theirs.shape, theirs.q_scale(), theirs.q_zero_point())
    apart = own.int_repr().int() - tp.tensor(theirs.int_repr().int().numpy())
    assert int(apart.abs().max()) == 0


@pytest.mark.parametrize("name", ["Linear", "LSTM", "GRU", "LSTMCell", "GRUCell", "RNNCell"])
def test_weights_of_float16_are_pytorchs(name: str, torch: Any) -> None:
    def first(made: Any) -> Any:
        return made[0].detach() if isinstance(made, tuple) else made.detach()

    def halves(library: Any, layer: Any) -> Any:
        return library.ao.quantization.quantize_dynamic(library.nn.Sequential(layer), dtype=library.float16)

    sizes = (3, 2, 6) if name in ("LSTM", "GRU") else (3, 6)
    own = halves(tp, filled(tp, getattr(tp.nn, name)(6, 4)))
    theirs = halves(torch, filled(torch, getattr(torch.nn, name)(6, 4)))
    assert type(own[0]).__name__ == type(theirs[0]).__name__
    found, want = first(own(numbers(tp, *sizes))), first(theirs(numbers(torch, *sizes)))
    np.testing.assert_allclose(found.numpy(), want.numpy(), rtol=1e-5, atol=1e-6)
    again = halves(tp, getattr(tp.nn, name)(6, 4))
    again.load_state_dict(own.state_dict())
    assert tp.equal(first(again(numbers(tp, *sizes))), found)


def test_older_names_of_modules() -> None:
    import tensorpy.nn.intrinsic.qat
    import tensorpy.nn.intrinsic.quantized
    import tensorpy.nn.qat
    import tensorpy.nn.quantizable
    import tensorpy.nn.quantized.dynamic
    import tensorpy.nn.quantized.functional

    assert tensorpy.nn.quantized.Linear is tp.ao.nn.quantized.Linear
    assert tensorpy.nn.quantized.dynamic.LSTM is tp.ao.nn.quantized.dynamic.LSTM
    assert tensorpy.nn.intrinsic.quantized.ConvReLU2d is tp.ao.nn.intrinsic.quantized.ConvReLU2d
    assert tensorpy.nn.qat.Linear is tp.ao.nn.qat.Linear and tensorpy.nn.quantizable.LSTM is tp.ao.nn.quantizable.LSTM
    assert tensorpy.nn.quantized.functional.avg_pool2d is tp.ao.nn.quantized.functional.avg_pool2d
