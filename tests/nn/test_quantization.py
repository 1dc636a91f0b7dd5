"""ao.quantization: scales and zero points as PyTorch's observers have them, bit by bit; models that are calibrated,
trained and quantized; what their files say in both libraries."""

from __future__ import annotations

import copy
import io
import pickle
import re
import subprocess
import sys
import warnings
from typing import Any

import pytest

import tensorpy as tp
from tensorpy.testing import assert_close

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def numbers(library: Any, seed: int, *size: int, scale: float = 1.0, shift: float = 0.0) -> Any:
    """The same numbers in both libraries."""
    from random import Random

    draw, count = Random(seed), 1
    for n in size:
        count *= n
    return library.tensor([draw.gauss(shift, scale) for _ in range(count)], dtype=library.float32).reshape(size)


# What makes an observer, in each library: (name, arguments); "dtype" and "qscheme" are names.
OBSERVERS: list[tuple[str, dict[str, Any]]] = [
    ("MinMaxObserver", {}),
    ("MinMaxObserver", {"dtype": "qint8", "qscheme": "per_tensor_symmetric"}),
    ("MinMaxObserver", {"quant_min": 0, "quant_max": 127, "qscheme": "per_tensor_symmetric"}),
    ("MinMaxObserver", {"reduce_range": True}),
    ("MinMaxObserver", {"dtype": "qint32"}),
    ("MinMaxObserver", {"dtype": "int16", "eps": 0.01}),
    ("MinMaxObserver", {"dtype": "uint16", "qscheme": "per_tensor_symmetric"}),
    ("MovingAverageMinMaxObserver", {}),
    ("MovingAverageMinMaxObserver", {"averaging_constant": 0.3, "dtype": "qint8"}),
    ("PerChannelMinMaxObserver", {}),
    ("PerChannelMinMaxObserver", {"ch_axis": 1, "dtype": "qint8", "qscheme": "per_channel_symmetric"}),
    ("PerChannelMinMaxObserver", {"dtype": "quint8", "qscheme": "per_channel_affine_float_qparams"}),
    ("PerChannelMinMaxObserver", {"dtype": "quint4x2", "qscheme": "per_channel_affine_float_qparams", "ch_axis": -1}),
    ("MovingAveragePerChannelMinMaxObserver", {"ch_axis": 1}),
    ("HistogramObserver", {}),
    ("HistogramObserver", {"reduce_range": True, "bins": 256}),
    ("HistogramObserver", {"dtype": "qint8", "qscheme": "per_tensor_symmetric", "eps": 2**-12}),
]


def given(library: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    return {k: getattr(library, v) if isinstance(v, str) else v for k, v in arguments.items()}


def seen(library: Any) -> list[Any]:
    return [
        numbers(library, 1, 3, 4, 50),
        numbers(library, 2, 3, 4, 50, scale=0.1, shift=0.5),
        numbers(library, 3, 3, 4, 0),
        numbers(library, 4, 3, 4, 50, scale=3.0),
    ]


@pytest.mark.parametrize(("name", "arguments"), OBSERVERS, ids=lambda v: str(v))
def test_observers_choose_as_torch(name: str, arguments: dict[str, Any], torch: Any) -> None:
    found = []
    for library in (torch, tp):
        observer = getattr(library.ao.quantization, name)(**given(library, arguments))
        assert [x.shape for x in seen(library)] == [observer(x).shape for x in seen(library)]
        chosen = observer.calculate_qparams()
        found.append([(v.tolist(), str(v.dtype).rpartition(".")[2], tuple(v.shape)) for v in chosen])
    assert found[0] == found[1]


@pytest.mark.parametrize(("name", "arguments"), OBSERVERS, ids=lambda v: str(v))
def test_observers_are_loaded(name: str, arguments: dict[str, Any]) -> None:
    made = [getattr(tp.ao.quantization, name)(**given(tp, arguments)) for _ in range(2)]
    for x in seen(tp):
        made[0](x)
    made[1].load_state_dict(copy.deepcopy(made[0].state_dict()))
    assert_close(made[1].calculate_qparams(), made[0].calculate_qparams(), rtol=0, atol=0)
    assert made[1].state_dict().keys() == made[0].state_dict().keys()


def test_what_observers_refuse() -> None:
    q = tp.ao.quantization
    with pytest.raises(AssertionError, match="0"):
        q.MinMaxObserver(quant_min=1, quant_max=5)
    with pytest.raises(AssertionError, match="less"):
        q.MinMaxObserver(quant_min=0, quant_max=0)
    with pytest.raises(AssertionError, match="dtype"):
        q.MinMaxObserver(dtype=tp.float32)
    with pytest.raises(NotImplementedError, match="per tensor"):
        q.MinMaxObserver(qscheme=tp.per_channel_affine)
    with pytest.raises(NotImplementedError, match="per channel"):
        q.PerChannelMinMaxObserver(qscheme=tp.per_tensor_affine)
    with pytest.raises(NotImplementedError, match="averages"):
        q.MovingAverageMinMaxObserver(is_dynamic=True)
    with pytest.raises(Exception, match="no scale"):
        q.PlaceholderObserver().calculate_qparams()
    with pytest.warns(UserWarning, match="before"):
        assert q.MinMaxObserver().calculate_qparams()[0].item() == 1
    with pytest.raises(TypeError):
        q.ObserverBase(tp.quint8)


FAKES: list[tuple[str, dict[str, Any]]] = [
    ("default_fake_quant", {}),
    ("default_weight_fake_quant", {}),
    ("default_per_channel_weight_fake_quant", {}),
    ("default_fused_act_fake_quant", {}),
    ("default_fused_wt_fake_quant", {}),
    ("default_fused_per_channel_wt_fake_quant", {}),
    ("fused_wt_fake_quant_range_neg_127_to_127", {}),
    ("fused_per_channel_wt_fake_quant_range_neg_127_to_127", {}),
    ("default_histogram_fake_quant", {}),
    ("default_fixed_qparams_range_neg1to1_fake_quant", {}),
]


@pytest.mark.parametrize("name", [name for name, _ in FAKES])
def test_fake_quantization_is_torchs(name: str, torch: Any) -> None:
    found = []
    for library in (torch, tp):
        fake = getattr(library.ao.quantization, name)()
        said = []
        for i, x in enumerate(x for x in seen(library) if x.numel()):
            x = x.reshape(12, -1).requires_grad_()
            y = fake(x)
            y.square().sum().backward()
            said += [y.detach().tolist(), x.grad.tolist()]
            said += [fake.scale.tolist(), fake.zero_point.tolist()]
            if i == 1:
                fake.apply(library.ao.quantization.disable_observer)
        fake.disable_fake_quant()
        said.append(fake(x).detach().tolist())
        found.append(said)
    assert found[0] == found[1]


def test_fused_averages_and_small_ranges_are_torchs(torch: Any) -> None:
    """Ranges of nothing, of one sign, below the least scale; shapes before the first call; each channel's dimension."""
    cases = [[0.0, 0.0], [1e-7, 2e-7], [-3.1e-6, 1e-6], [5.0, 9.0], [-9.0, -5.0], [1e-30, 2e-30], [0.0, 1e-39]]
    for channels in (False, True):
        for symmetric in (False, True):
            for low, high in ((0, 255), (-128, 127), (-127, 127), (0, 15)):
                found = []
                for library in (torch, tp):
                    x = library.tensor(cases)
                    on, empty = library.ones(1, dtype=library.int64), library.tensor([])
                    least = empty.clone() if channels else library.tensor(float("inf"))
                    most = empty.clone() if channels else library.tensor(-float("inf"))
                    scale, at = library.ones(1), library.zeros(1, dtype=library.int32)
                    said = []
                    for moved in (x, 3 * x):
                        y = library.fused_moving_avg_obs_fake_quant(
                            moved, on, on, least, most, scale, at, 0.25, low, high, 0, channels, symmetric
                        )
                        said += [t.tolist() for t in (y, least, most, scale, at)]
                    found.append(said)
                assert found[0] == found[1], (channels, symmetric, low, high)


@pytest.mark.parametrize("channels", [False, True])
def test_learned_scales_have_torchs_gradients(channels: bool, torch: Any) -> None:
    found = []
    for library in (torch, tp):
        x = numbers(library, 5, 3, 40, scale=2.0).requires_grad_()
        scale = library.tensor([0.05, 0.1, 0.02] if channels else [0.07], requires_grad=True)
        at = library.tensor([3.2, -1.6, 200.0] if channels else [2.5], requires_grad=True)
        if channels:
            y = library._fake_quantize_learnable_per_channel_affine(x, scale, at, 0, -20, 30, 0.5)
        else:
            y = library._fake_quantize_learnable_per_tensor_affine(x, scale, at, -20, 30, 0.5)
        (y * numbers(library, 6, 3, 40)).sum().backward()
        found.append([t.detach().tolist() for t in (y, x.grad, scale.grad, at.grad)])
    assert found[0][:2] == found[1][:2]
    assert_close(tp.tensor(found[1][2]), tp.tensor(found[0][2]), rtol=1e-4, atol=1e-4)
    assert_close(tp.tensor(found[1][3]), tp.tensor(found[0][3]), rtol=1e-4, atol=1e-4)


def test_what_fused_fake_quantization_refuses() -> None:
    on, x, end = tp.ones(1), tp.ones(2, 3), tp.tensor(1.0)

    def call(**other: Any) -> Any:
        names = "observer_on fake_quant_on running_min running_max scale zero_point".split()
        given = (on, on, end.clone(), end.clone(), on.clone(), on.clone())
        values: dict[str, Any] = dict(zip(names, given, strict=True))
        values |= {"averaging_const": 0.1, "quant_min": 0, "quant_max": 255, "ch_axis": 0} | other
        return tp.fused_moving_avg_obs_fake_quant(**({"self": x} | values))

    assert call().shape == (2, 3)
    for other in (
        {"observer_on": tp.ones(2)},
        {"fake_quant_on": tp.ones(0)},
        {"ch_axis": 2, "per_row_fake_quant": True},
        {"ch_axis": -1, "per_row_fake_quant": True},
        {"quant_min": 255},
        {"running_min": tp.ones(3)},
        {"running_min": tp.ones(3), "per_row_fake_quant": True},
        {"running_min": tp.tensor(float("nan"))},
        {"self": tp.full((2, 3), tp.inf)},
        {"self": tp.full((2, 3), -tp.inf)},
    ):
        with pytest.raises(RuntimeError):
            call(**other)
    with pytest.raises(RuntimeError, match="without 0"):
        tp._fake_quantize_learnable_per_tensor_affine(x, on, on, 1, 5)


# ---- models ----


def model_of(library: Any) -> Any:
    nn, q = library.nn, library.ao.quantization

    class Model(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.quant, self.dequant = q.QuantStub(), q.DeQuantStub()
            self.first, self.relu, self.second = nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 10)
            self.dropout = nn.Dropout(0.0)

        def forward(self, x: Any) -> Any:
            return self.dequant(self.second(self.dropout(self.relu(self.first(self.quant(x))))))

    made = Model()
    for i, p in enumerate(made.parameters()):
        p.data.copy_(numbers(library, 10 + i, *p.shape, scale=0.3))
    return made


def samples(library: Any) -> list[Any]:
    return [numbers(library, 20 + i, 16, 20) for i in range(4)]


def calibrated(library: Any, backend: str, joined: bool) -> Any:
    q, made = library.ao.quantization, model_of(library).eval()
    made = q.fuse_modules(made, [["first", "relu"]]) if joined else made
    made.qconfig = q.get_default_qconfig(backend)
    observed = q.prepare(made)
    for x in samples(library):
        observed(x)
    return q.convert(observed)


@pytest.mark.parametrize("backend", ["x86", "qnnpack", "fbgemm"])
@pytest.mark.parametrize("joined", [False, True])
def test_a_calibrated_model_is_torchs(backend: str, joined: bool, torch: Any) -> None:
    torch.backends.quantized.engine = "fbgemm"
    found = [calibrated(library, backend, joined) for library in (torch, tp)]
    for a, b in zip(*(samples(library) for library in (torch, tp)), strict=True):
        want, got = found[0](a), found[1](b)
        assert_close(got, tp.tensor(want.tolist()), rtol=0, atol=2e-6)  # the last scale is of sums in another order
    assert type(found[1].second).__name__ == "Linear" and not hasattr(found[1].second, "qconfig")
    assert found[1].first.weight().int_repr().tolist() == found[0].first.weight().int_repr().tolist()


def test_a_quantized_models_state_goes_both_ways(torch: Any) -> None:
    torch.backends.quantized.engine = "fbgemm"
    theirs, ours = calibrated(torch, "x86", True), calibrated(tp, "x86", True)
    assert list(theirs.state_dict()) == list(ours.state_dict())
    x, file = samples(tp)[0], io.BytesIO()
    torch.save(theirs.state_dict(), file)
    file.seek(0)
    ours.load_state_dict(tp.load(file))
    assert ours(x).tolist() == theirs(torch.tensor(x.tolist())).tolist()
    file = io.BytesIO()
    tp.save(ours.state_dict(), file)
    file.seek(0)
    theirs.load_state_dict(torch.load(file, weights_only=False))
    assert ours(x).tolist() == theirs(torch.tensor(x.tolist())).tolist()
    again = pickle.loads(pickle.dumps(ours.second._packed_params._packed_params))
    assert again.unpack()[0].equal(ours.second.weight())


def trained(library: Any) -> Any:
    q, made = library.ao.quantization, model_of(library).train()
    made = q.fuse_modules_qat(made, ["first", "relu"])
    made.qconfig = q.get_default_qat_qconfig()
    made = q.prepare_qat(made)
    optimizer = library.optim.SGD(made.parameters(), lr=0.05)
    losses = []
    for x in samples(library) * 2:
        optimizer.zero_grad()
        loss = made(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, q.convert(made.eval())


def test_training_with_fake_quantization_is_torchs(torch: Any) -> None:
    torch.backends.quantized.engine = "fbgemm"
    (want, theirs), (got, ours) = trained(torch), trained(tp)
    assert got == pytest.approx(want, rel=1e-5) and got[-1] < got[0]
    x = samples(tp)[0]
    step = float(ours.second.scale)
    assert_close(ours(x), tp.tensor(theirs(torch.tensor(x.tolist())).tolist()), rtol=0, atol=1.1 * step)


def test_dynamic_quantization_is_torchs(torch: Any) -> None:
    torch.backends.quantized.engine = "fbgemm"
    made = [library.ao.quantization.quantize_dynamic(model_of(library)) for library in (torch, tp)]
    for a, b in zip(*(samples(library) for library in (torch, tp)), strict=True):
        assert made[1](b).tolist() == made[0](a).tolist()
    named = tp.ao.quantization.quantize_dynamic(model_of(tp), {"first"})
    assert isinstance(named.second, tp.nn.Linear) and not isinstance(named.first, tp.nn.Linear)
    assert made[1](samples(tp)[0].to(tp.float64)).dtype == tp.float64
    assert made[1](tp.ones(0, 20)).shape == (0, 10)
    with pytest.raises(ValueError, match="qint8"):
        tp.ao.quantization.quantize_dynamic(model_of(tp), dtype=tp.float32)


def test_models_are_copied_and_wrapped() -> None:
    q, model = tp.ao.quantization, model_of(tp).eval()
    model.qconfig = q.default_qconfig
    observed = q.prepare(model)
    assert not hasattr(model.first, "activation_post_process") and hasattr(observed.first, "activation_post_process")
    observed(samples(tp)[0])
    assert q.get_observer_state_dict(observed).keys() and not q.get_observer_state_dict(model)
    converted = q.convert(observed)
    assert copy.deepcopy(converted)(samples(tp)[1]).tolist() == converted(samples(tp)[1]).tolist()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        q.prepare(tp.nn.Sequential(tp.nn.ReLU()))
    assert any("qconfig" in str(w.message) for w in said)
    q.propagate_qconfig_(model)
    wrapped = q.add_quant_dequant(model)
    assert isinstance(wrapped.first, q.QuantWrapper)


def test_modules_that_are_joined_compute_the_same(torch: Any) -> None:
    nn, q = tp.nn, tp.ao.quantization
    for kinds in (
        (nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3)),
        (nn.Conv1d(2, 3, 3), nn.BatchNorm1d(3), nn.ReLU()),
        (nn.Conv2d(2, 3, 3), nn.ReLU()),
        (nn.Linear(2, 3), nn.BatchNorm1d(3)),
        (nn.Linear(2, 3), nn.ReLU()),
        (nn.BatchNorm2d(2), nn.ReLU()),
        (nn.ConvTranspose2d(2, 3, 3), nn.BatchNorm2d(3)),
    ):
        model = nn.Sequential(*kinds).eval()
        for part in model:
            if hasattr(part, "running_mean"):
                part.running_mean.uniform_(-1, 1)
                part.running_var.uniform_(0.5, 2)
        size = {"Conv1d": (2, 2, 6), "Linear": (4, 2)}.get(type(kinds[0]).__name__, (2, 2, 6, 6))
        x, joined = tp.randn(size), q.fuse_modules(model, [str(i) for i in range(len(kinds))])
        assert_close(joined(x), model(x), rtol=1e-4, atol=1e-4)
        assert all(isinstance(part, nn.Identity) for part in list(joined)[1:])
    with pytest.raises(AssertionError, match="fuser"):
        q.fuse_modules(nn.Sequential(nn.ReLU(), nn.Linear(2, 2)), ["0", "1"])


def words(shown: str) -> list[str]:
    """What makes an observer, in any order of its arguments."""
    return sorted(re.split(r"[ ,(){}]+", shown.replace("torch.", "tensorpy.")))


def test_configurations(torch: Any) -> None:
    for name in ("get_default_qconfig", "get_default_qat_qconfig"):
        for backend in ("x86", "fbgemm", "qnnpack", "onednn"):
            shown = [repr(getattr(library.ao.quantization, name)(backend)) for library in (torch, tp)]
            assert words(shown[0]) == words(shown[1])
        with pytest.raises(AssertionError, match="not supported"):
            getattr(tp.ao.quantization, name)("abacus")
    for name in tp.ao.quantization.qconfig.__all__:
        made = getattr(tp.ao.quantization.qconfig, name)
        if isinstance(made, tp.ao.quantization.QConfig):
            theirs = repr(getattr(torch.ao.quantization.qconfig, name))
            assert words(theirs) == words(repr(made)), name
    for name in ("get_default_qconfig_mapping", "get_default_qat_qconfig_mapping"):
        theirs, ours = (getattr(library.ao.quantization, name)() for library in (torch, tp))
        assert list(theirs.to_dict()) == list(ours.to_dict())
        assert len(theirs.object_type_qconfigs) == len(ours.object_type_qconfigs)
        assert tp.ao.quantization.QConfigMapping.from_dict(ours.to_dict()).to_dict() == ours.to_dict()


PROGRAM = """
import torch, torch.quantization
from torch import nn
from torch.ao import quantization as q
from torch.ao.nn.quantized import Linear
torch.backends.quantized.engine = "fbgemm"
model = nn.Sequential(q.QuantStub(), nn.Linear(4, 3), q.DeQuantStub()).eval()
model.qconfig = q.get_default_qconfig(torch.backends.quantized.engine)
observed = torch.quantization.prepare(model)
observed(torch.randn(8, 4))
made = torch.quantization.convert(observed)
print(made(torch.ones(2, 4)).shape, isinstance(made[1], Linear), Linear.__module__, torch.ops.quantized.linear.__name__)
"""


def test_a_program_for_torch_runs(tmp_path: Any) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-W", "ignore", "-m", "tensorpy.run", str(tmp_path / "program.py")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout == "torch.Size([2, 3]) True torch.ao.nn.quantized.modules.linear linear\n", done.stderr


def test_names_are_torchs(torch: Any) -> None:
    from tensorpy._as_torch import names

    theirs = names.modules()["torch.ao.quantization"]
    assert set(tp.ao.quantization.__all__) <= set(dir(torch.ao.quantization))
    assert len(theirs & set(tp.ao.quantization.__all__)) > 80
    assert tp.quantization.prepare is tp.ao.quantization.prepare


class _Scaled(tp.nn.Module):
    def forward(self, x: Any, by: int = 3, plus: int = 4, *, times: int = 1) -> Any:
        return (x * by + plus) * times


class _Calls(tp.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.never = tp.nn.Linear(2, 2), tp.nn.ReLU()
        self.nested = tp.nn.Sequential(tp.nn.ReLU(), self.first)
        self.scaled, self.twice = _Scaled(), _Scaled()

    def forward(self, x: Any) -> Any:
        return self.nested(self.scaled(self.first(x), plus=6)) + self.twice(x=x, by=1) + self.twice(x, 5, times=2)


def test_what_each_module_is_called_with() -> None:
    from tensorpy.ao.quantization.utils import get_fqn_to_example_inputs

    model, x = _Calls(), tp.ones(1, 2)
    found = get_fqn_to_example_inputs(model, (x,))
    assert list(found) == ["", "first", "scaled", "nested", "nested.0", "twice"]
    assert found[""] == (x,) and found["scaled"][1:] == (3, 6, 1) and found["twice"] == (x, 5, 4, 2)
    assert found["nested"][0] is found["nested.0"][0]
    assert not any(module._forward_pre_hooks for module in model.modules())
    with pytest.raises(RuntimeError):
        get_fqn_to_example_inputs(model, (tp.ones(1, 3),))
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_the_older_names_of_modules_need_no_import() -> None:
    """Programs of PyTorch's tutorials write `nn.quantized.FloatFunctional()` after `import torch` alone."""
    program = """
import tensorpy as tp
nn, ao = tp.nn, tp.ao.nn
assert nn.quantized.FloatFunctional is ao.quantized.FloatFunctional
assert nn.quantized.dynamic.Linear is ao.quantized.dynamic.Linear and nn.quantized.functional and nn.quantized.modules
assert nn.intrinsic.qat.freeze_bn_stats is ao.intrinsic.qat.freeze_bn_stats and nn.intrinsic.modules
assert nn.intrinsic.quantized.dynamic.LinearReLU is ao.intrinsic.quantized.dynamic.LinearReLU
assert nn.qat.Linear is ao.qat.Linear and nn.qat.modules and nn.quantizable.LSTM is ao.quantizable.LSTM
assert tp.quantization.prepare is tp.ao.quantization.prepare
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
