"""Recurrent networks of integers: those of quantize_dynamic beside PyTorch's, and beside the networks themselves."""

from __future__ import annotations

import copy
import io
from typing import Any

import numpy as np
import pytest

import tensorpy as tp
from tensorpy import nn
from tensorpy.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

LAYERS = [
    (kind, {"num_layers": layers, "bidirectional": both, "batch_first": first})
    for kind in ("LSTM", "GRU")
    for layers, both, first in ((1, False, False), (2, True, True), (3, False, False))
]
CELLS = [("LSTMCell", {}), ("GRUCell", {}), ("RNNCell", {}), ("RNNCell", {"nonlinearity": "relu"})]
LENGTHS = [3, 5, 1, 5]
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def torch() -> Any:
    found = pytest.importorskip("torch")
    found.backends.quantized.engine = "fbgemm"
    return found


def tensors(found: Any) -> list[np.ndarray]:
    """All tensors of a result, as arrays."""
    if hasattr(found, "tolist"):
        return [np.array(found.tolist())]
    if hasattr(found, "data"):
        return tensors(found.data)
    return [part for each in found for part in tensors(each)]


def net_of(library: Any, kind: str, given: Any, seed: int) -> Any:
    """A network and its weights as integers."""
    net = getattr(library.nn, kind)(7, 9, **given)
    draw = np.random.default_rng(seed)
    state = {name: library.tensor((draw.random(tuple(p.shape)) - 0.5).tolist()) for name, p in net.named_parameters()}
    net.load_state_dict(state)
    return library.ao.quantization.quantize_dynamic(library.nn.Sequential(net))[0]


def packed_of(library: Any, seed: int) -> Any:
    x = library.tensor(np.random.default_rng(seed).standard_normal((5, 4, 7)).tolist())
    return library.nn.utils.rnn.pack_padded_sequence(x, library.tensor(LENGTHS), enforce_sorted=False)


@pytest.mark.parametrize(("kind", "given"), LAYERS, ids=str)
def test_layers_are_pytorchs(torch: Any, kind: str, given: Any) -> None:
    for seed in range(3):
        found = []
        for library in (torch, tp):
            net = net_of(library, kind, given, seed)
            x = library.tensor(np.random.default_rng(seed).standard_normal((5, 4, 7)).tolist())
            y, state = net(x)
            states = state if kind == "LSTM" else [state]
            again = net(x, state)
            packed, last = net(packed_of(library, seed))
            more = net(packed_of(library, seed + 1), tuple(s[:, :4] for s in last) if kind == "LSTM" else last)
            whole = [y, *states, *again[:1], again[1], packed.data, last, more[0].data, more[1]]
            found.append(([a for part in whole for a in tensors(part)], str(net).replace("tensorpy", "torch")))
        assert found[0][1] == found[1][1]
        for ours, theirs in zip(found[1][0], found[0][0], strict=True):
            assert np.abs(ours - theirs).max() < 1e-5


@pytest.mark.parametrize(("kind", "given"), CELLS, ids=str)
def test_cells_are_pytorchs(torch: Any, kind: str, given: Any) -> None:
    for seed in range(3):
        found = []
        for library in (torch, tp):
            cell = net_of(library, kind, given, seed)
            x = library.tensor(np.random.default_rng(seed).standard_normal((4, 7)).tolist())
            state = cell(x)
            found.append((tensors(state) + tensors(cell(x, state)), str(cell)))
        assert found[0][1] == found[1][1]
        for ours, theirs in zip(found[1][0], found[0][0], strict=True):
            assert np.abs(ours - theirs).max() < 1e-5


@pytest.mark.parametrize(("kind", "given"), [*LAYERS, *CELLS], ids=str)
def test_integers_are_near_the_numbers(kind: str, given: Any) -> None:
    tp.manual_seed(1)
    plain = nn.Sequential(getattr(nn, kind)(7, 9, **given))
    made = tp.ao.quantization.quantize_dynamic(plain)
    assert type(made[0]) is getattr(tp.ao.nn.quantized.dynamic, kind) and type(plain[0]) is getattr(nn, kind)
    x = tp.randn(4, 7) if kind.endswith("Cell") else tp.randn(5, 4, 7)
    with tp.no_grad():
        for ours, exact in zip(tensors(made(x)), tensors(plain(x)), strict=True):
            assert np.abs(ours - exact).max() < 0.1
    state = io.BytesIO()
    tp.save(made.state_dict(), state)
    other = tp.ao.quantization.quantize_dynamic(nn.Sequential(getattr(nn, kind)(7, 9, **given)))
    other.load_state_dict(tp.load(io.BytesIO(state.getvalue())))
    for same in (other, copy.deepcopy(made)):
        for a, b in zip(tensors(same(x)), tensors(made(x)), strict=True):
            assert np.array_equal(a, b)


def test_sequences_of_several_lengths_are_those_alone() -> None:
    """Ranges are of all sequences, so results differ by what quantizing does."""
    tp.manual_seed(0)
    net = tp.ao.quantization.quantize_dynamic(nn.Sequential(nn.LSTM(7, 9, bidirectional=True)))[0]
    x = tp.randn(5, 4, 7)
    packed = pack_padded_sequence(x, tp.tensor(LENGTHS), enforce_sorted=False)
    y, (h, c) = net(packed)
    whole, lengths = pad_packed_sequence(y)
    assert lengths.tolist() == LENGTHS
    for i, length in enumerate(LENGTHS):
        alone, (h1, c1) = net(x[:length, i : i + 1])
        assert (whole[:length, i] - alone[:, 0]).abs().max() < 0.05
        assert (h[:, i] - h1[:, 0]).abs().max() < 0.05 and (c[:, i] - c1[:, 0]).abs().max() < 0.05


def test_what_is_refused() -> None:
    dynamic = tp.ao.nn.quantized.dynamic
    net, cell = dynamic.LSTM(3, 4), dynamic.LSTMCell(3, 4)
    state = net.state_dict()
    state["_all_weight_values.0.param"] = dynamic.LSTM(5, 4).state_dict()["_all_weight_values.0.param"]
    for call in (
        lambda: net(tp.ones(2, 3)),
        lambda: net(tp.ones(2, 1, 4)),
        lambda: net(tp.ones(0, 1, 3)),
        lambda: net(tp.ones(2, 1, 3), (tp.ones(1, 1, 3), tp.ones(1, 1, 4))),
        lambda: net(tp.ones(2, 1, 3), (tp.ones(1, 1, 4),)),
        lambda: cell(tp.ones(2, 4)),
        lambda: cell(tp.ones(2, 3), (tp.ones(1, 4), tp.ones(1, 4))),
        lambda: net.load_state_dict(state),
        lambda: dynamic.GRU(3, 4, dtype=tp.quint8),
    ):
        with pytest.raises(RuntimeError):
            call()
    with pytest.raises(ValueError, match="Unrecognized RNN mode"):
        dynamic.RNNBase("RNN", 3, 4)
    plain = nn.Sequential(nn.LSTM(3, 4, bias=False))
    with pytest.raises(AssertionError, match="bias"):
        tp.ao.quantization.quantize_dynamic(plain)


# ---- norms and what follows, in networks ----


def network(library: Any) -> Any:
    """A network of what has a quantized module, with weights that are the same in both libraries."""
    nn_, q = library.nn, library.ao.quantization
    net = nn_.Sequential(
        q.QuantStub(), nn_.Conv2d(2, 6, 3), nn_.BatchNorm2d(6), nn_.Hardswish(), nn_.GroupNorm(2, 6),
        nn_.LeakyReLU(0.1), nn_.ConvTranspose2d(6, 4, 2, 2), nn_.InstanceNorm2d(4, affine=True), nn_.ELU(), nn_.ReLU6(),
        nn_.LayerNorm(8), q.DeQuantStub(),
    )  # fmt: skip
    draw = np.random.default_rng(0)
    for p in net.parameters():
        p.data.copy_(library.tensor((draw.random(tuple(p.shape)) * 0.5 + 0.1).astype("float32").tolist()))
    net.qconfig = q.QConfig(activation=q.default_observer, weight=q.default_weight_observer)
    return net.eval()


def converted(library: Any) -> tuple[Any, Any, Any]:
    net = network(library)
    x = library.tensor(np.random.default_rng(1).standard_normal((3, 2, 6, 6)).astype("float32").tolist())
    observed = library.ao.quantization.prepare(net)
    observed(x)
    return net, library.ao.quantization.convert(observed), x


def test_a_network_of_norms_is_near_its_numbers() -> None:
    net, made, x = converted(tp)
    quantized = tp.ao.nn.quantized
    kinds = ["Quantize", "Conv2d", "BatchNorm2d", "Hardswish", "GroupNorm", "LeakyReLU", "ConvTranspose2d"]
    kinds += ["InstanceNorm2d", "ELU", "ReLU6", "LayerNorm", "DeQuantize"]
    assert [type(layer) for layer in made] == [getattr(quantized, kind) for kind in kinds]
    with tp.no_grad():
        assert (made(x) - net(x)).abs().mean() < 0.15
    again = converted(tp)[1]
    again.load_state_dict(tp.load(_saved(made)))
    assert again(x).equal(made(x))


def _saved(net: Any) -> io.BytesIO:
    file = io.BytesIO()
    tp.save(net.state_dict(), file)
    return io.BytesIO(file.getvalue())


def test_a_network_of_norms_is_pytorchs(torch: Any) -> None:
    _, theirs, x = converted(torch)
    _, ours, _ = converted(tp)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    file = io.BytesIO()
    torch.save(theirs.state_dict(), file)
    ours.load_state_dict(tp.load(io.BytesIO(file.getvalue())))
    y, z = np.array(ours(tp.tensor(x.tolist())).tolist()), theirs(x).detach().numpy()
    step = float(theirs[-2].scale)
    assert np.abs(y - z).max() < 4 * step and np.abs(y - z).mean() < 0.1 * step


def test_batch_norm_and_relu_are_joined() -> None:
    net = nn.Sequential(tp.ao.quantization.QuantStub(), nn.BatchNorm2d(3), nn.ReLU()).eval()
    net = tp.ao.quantization.fuse_modules(net, [["1", "2"]])
    net.qconfig = tp.ao.quantization.default_qconfig
    net = tp.ao.quantization.prepare(net)
    net(tp.randn(2, 3, 4, 4))
    made = tp.ao.quantization.convert(net)
    assert type(made[1]) is tp.ao.nn.intrinsic.quantized.BNReLU2d
    y = made(tp.randn(2, 3, 4, 4))
    assert y.is_quantized and bool((y.dequantize() >= 0).all()) and bool((y.dequantize() > 0).any())


PACKED = [("LSTM", {"num_layers": 2, "bidirectional": True}), ("GRU", {}), *CELLS]


@pytest.mark.parametrize("dtype", ["qint8", "float16"])
@pytest.mark.parametrize(("kind", "given"), PACKED, ids=str)
def test_state_dicts_are_read_by_pytorch_and_of_it(torch: Any, kind: str, given: Any, dtype: str) -> None:
    """PyTorch keeps packed weights as objects of compiled classes, which it reads with weights_only=False alone."""

    def made(library: Any, seed: int) -> Any:
        library.manual_seed(seed)
        module = getattr(library.nn, kind)
        net = library.nn.Sequential(module(7, 9, **given))
        return library.ao.quantization.quantize_dynamic(net, {module}, dtype=getattr(library, dtype))

    for source, target in ((torch, tp), (tp, torch), (tp, tp)):
        for weights_only in (True, False)[target is torch :]:
            one, other, file = made(source, 1), made(target, 2), io.BytesIO()
            source.save(one.state_dict(), file)
            file.seek(0)
            other.load_state_dict(target.load(file, weights_only=weights_only))
            shape = (4, 7) if kind.endswith("Cell") else (5, 4, 7)
            rows = np.random.default_rng(3).standard_normal(shape).tolist()
            for a, b in zip(tensors(one(source.tensor(rows))), tensors(other(target.tensor(rows))), strict=True):
                assert np.allclose(a, b, atol=2e-3), (source.__name__, weights_only)


def test_states_that_are_no_weights() -> None:
    """What a file may have in the place of packed weights is looked at when a module takes it."""
    cell = tp.ao.nn.quantized.dynamic.LSTMCell(2, 3)
    layer = tp.ao.nn.quantized.dynamic.LSTM(2, 3)
    for net, name in ((cell, "_packed_weight_ih"), (layer, "_all_weight_values.0.param")):
        before = net(tp.ones(4, 2) if net is cell else tp.ones(4, 1, 2))[0]
        good = net.state_dict()[name]
        state, kind = copy.deepcopy(good).__getstate__()
        for bad in (
            type(good)(),
            type(good)(kind, None),
            type(good)(kind, state[:1]),
            type(good)("__torch__.torch.classes.os.system", state),
            type(good)(kind, (good,) * len(state)),
            type(good)(kind, ("quantized", *state[1:])),
            (1, 2),
            good.state[1],
            None,
        ):
            with pytest.raises(RuntimeError):
                net.load_state_dict({**net.state_dict(), name: bad})
        assert net(tp.ones(4, 2) if net is cell else tp.ones(4, 1, 2))[0].equal(before)
    w, b = cell.state_dict()["_packed_weight_ih"].state
    cell.load_state_dict({"_packed_weight_ih": (w, b), "_packed_weight_hh": cell._packed_weight_hh})
    halves = [part for of in layer._all_weight_values[0].param for part in of.unpack()]
    layer.load_state_dict({"_all_weight_values.0.param": tuple(halves)})  # as older versions wrote it
