"""A network of convolutions, quantized after its training and in it, as PyTorch's tutorials do both."""

from __future__ import annotations

import copy
import io
import re
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


def network(library: Any) -> Any:
    """Convolutions with batch norms and ReLUs, a sum of two ways, a product with a number, a linear map."""
    nn, ao = library.nn, library.ao

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.bn, self.relu = (
                nn.Conv2d(8, 8, 3, padding=1, groups=2, bias=False),
                nn.BatchNorm2d(8),
                nn.ReLU(),
            )
            self.add = ao.nn.quantized.FloatFunctional()

        def forward(self, x: Any) -> Any:
            return self.add.add(x, self.relu(self.bn(self.conv(x))))

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.quant, self.dequant = ao.quantization.QuantStub(), ao.quantization.DeQuantStub()
            self.conv, self.bn, self.relu = nn.Conv2d(3, 8, 3, stride=2), nn.BatchNorm2d(8), nn.ReLU()
            self.block, self.last, self.fc = Block(), nn.Conv2d(8, 4, 1), nn.Linear(4, 5)
            self.scaled = ao.nn.quantized.FloatFunctional()

        def forward(self, x: Any) -> Any:
            x = self.last(self.block(self.relu(self.bn(self.conv(self.quant(x))))))
            x = nn.functional.adaptive_avg_pool2d(self.scaled.mul_scalar(x, 0.5), 1).flatten(1)
            return self.dequant(self.fc(x))

    made, numbers = Network(), np.random.default_rng(0)
    with library.no_grad():
        for name, t in [*made.named_parameters(), *made.named_buffers()]:
            if t.is_floating_point():
                values = numbers.standard_normal(tuple(t.shape)).astype("float32") * 0.3
                scales = "running_var" in name or name.endswith("bn.weight")
                t.copy_(library.from_numpy(abs(values) + 0.5 if scales else values))
    return made


def data(library: Any) -> list[Any]:
    numbers = np.random.default_rng(1)
    return [library.from_numpy(numbers.standard_normal((4, 3, 9, 9)).astype("float32")) for _ in range(4)]


JOINED = [["conv", "bn", "relu"], ["block.conv", "block.bn", "block.relu"]]


def calibrated(library: Any) -> Any:
    q, net = library.ao.quantization, network(library).eval()
    net = q.fuse_modules(net, JOINED)
    net.qconfig = q.get_default_qconfig("fbgemm")
    q.prepare(net, inplace=True)
    for x in data(library):
        net(x)
    return net


def trained(library: Any, losses: list[float]) -> Any:
    q, net = library.ao.quantization, network(library).train()
    net = q.fuse_modules_qat(net, JOINED)
    net.qconfig = q.get_default_qat_qconfig("fbgemm")
    q.prepare_qat(net, inplace=True)
    optimizer = library.optim.SGD(net.parameters(), lr=0.01)
    for step, x in enumerate(data(library)):
        loss = net(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
        if step == 2:
            net.apply(library.ao.nn.intrinsic.qat.freeze_bn_stats)
    return net.eval()


def near(ours: Any, theirs: Any, scale: float) -> None:
    """Ranges are of float32 sums in another order: a result may be the next integer."""
    assert np.abs(np.array(ours.tolist()) - theirs.detach().numpy()).max() < 1.01 * scale


def without_numbers(text: str) -> str:
    return re.sub(r"scale=[\d.e-]+", "scale", text).replace("tensorpy", "torch")


@pytest.mark.parametrize("way", ["calibrated", "trained"])
def test_a_network_is_pytorchs(torch: Any, way: str) -> None:
    found = []
    for library in (torch, tp):
        losses: list[float] = []
        before = calibrated(library) if way == "calibrated" else trained(library, losses)
        net = library.ao.quantization.convert(before)
        found.append((losses, before, net, net(data(library)[0])))
    (l1, before1, net1, y1), (l2, before2, net2, y2) = found
    assert np.allclose(l1, l2, rtol=1e-5)
    assert list(before1.state_dict()) == list(before2.state_dict()) and list(net1.state_dict()) == list(
        net2.state_dict()
    )
    assert without_numbers(str(net1)) == without_numbers(str(net2))
    near(y2, y1, net2.fc.scale)
    file = io.BytesIO()
    torch.save(net1.state_dict(), file)  # a network of PyTorch's runs here
    net2.load_state_dict(tp.load(io.BytesIO(file.getvalue())))
    assert np.array_equal(np.array(net2(data(tp)[0]).tolist()), y1.detach().numpy())


def test_a_quantized_network_is_near_the_network() -> None:
    for net in (calibrated(tp), trained(tp, [])):
        quantized = tp.ao.quantization.convert(copy.deepcopy(net))
        x = data(tp)[0]
        assert type(quantized.conv) is tp.ao.nn.intrinsic.quantized.ConvReLU2d
        assert type(quantized.block.add) is tp.ao.nn.quantized.QFunctional
        assert (quantized(x) - net(x)).abs().max() < 8 * quantized.fc.scale


def test_a_trained_convolution_becomes_one_without_fake_quantization() -> None:
    net = trained(tp, [])
    conv = net.conv.to_float()
    assert type(conv) is tp.ao.nn.intrinsic.ConvReLU2d and type(conv[0]) is tp.nn.Conv2d
    fake = net.conv.activation_post_process
    most = (fake.activation_post_process.quant_max - fake.zero_point) * fake.scale  # what is beyond is cut off
    for x in (tp.rand(2, 3, 9, 9), data(tp)[0]):
        assert (conv(x).minimum(most) - net.conv(x)).abs().max() < 0.1
    plain = net.last.to_float()
    assert type(plain) is tp.nn.Conv2d and plain.weight.equal(net.last.weight)


def test_statistics_are_frozen_and_taken_again() -> None:
    net = tp.ao.quantization.fuse_modules_qat(network(tp).train(), JOINED)
    net.qconfig = tp.ao.quantization.get_default_qat_qconfig("fbgemm")
    net = tp.ao.quantization.prepare_qat(net)
    for change, moves in (
        (tp.ao.nn.intrinsic.qat.freeze_bn_stats, False),
        (tp.ao.nn.intrinsic.qat.update_bn_stats, True),
    ):
        net.apply(change)
        net.train()
        before = net.conv.bn.running_mean.clone()
        net(data(tp)[0])
        assert net.conv.bn.running_mean.equal(before) is not moves
