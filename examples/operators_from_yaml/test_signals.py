"""The operators of this package; run after it was installed. build/generated/test_ops.py checks the rest of them."""

import math
import pickle

import numpy as np
import pytest
from signals import ops

import tensorpy as tp


def test_a_pointwise_operator() -> None:
    x = tp.randn(5, 7)
    want = 2 * np.tanh(x.numpy() / 2)
    np.testing.assert_allclose(ops.softclip(x, 2.0).numpy(), want, rtol=1e-5)
    np.testing.assert_allclose(ops.softclip(x.t()[1:, ::2], 2.0).numpy(), want.T[1:, ::2], rtol=1e-5)
    assert ops.softclip(tp.arange(3)).dtype == tp.float32
    assert ops.softclip(x.half()).dtype == tp.float16
    assert ops.softclip(x.to("meta")).shape == (5, 7)
    large = tp.randn(300_000)
    np.testing.assert_allclose(ops.softclip(large).numpy(), np.tanh(large.numpy()), rtol=1e-5, atol=1e-7)
    out = tp.empty(0)
    assert ops.softclip(x, out=out) is out and out.shape == (5, 7)
    with pytest.raises(NotImplementedError, match=r"softclip.*not implemented for 'ComplexFloat'"):
        ops.softclip(tp.ones(2, dtype=tp.complex64))
    with pytest.raises(RuntimeError, match="size"):
        ops.blend(x, tp.ones(6), 0.5)


def test_in_place_and_its_gradient() -> None:
    x = tp.randn(6, dtype=tp.float64, requires_grad=True)
    whole = x * 1
    version = whole._version
    assert ops.softclip_(whole[2:]) is not None
    assert whole._version == version + 1
    whole.sum().backward()
    slope = np.r_[np.ones(2), 1 - np.tanh(x.detach().numpy()[2:]) ** 2]
    np.testing.assert_allclose(x.grad.numpy(), slope)
    with pytest.raises(RuntimeError, match="leaf"):
        ops.softclip_(x)
    with pytest.raises(RuntimeError, match=r"softclip.out.*automatic differentiation"):
        ops.softclip(x, out=tp.empty(6, dtype=tp.float64))


def test_tangents() -> None:
    x, t = tp.randn(6, dtype=tp.float64), tp.randn(6, dtype=tp.float64)
    slope = (1 - x.tanh() ** 2) * t
    for call in (ops.softclip, lambda v: ops.softclip_(v * 1), lambda v: ops.softclip_((v * 1).reshape(2, 3)[1:])):
        made, tangent = tp.func.jvp(call, (x,), (t,))
        np.testing.assert_allclose(tangent.numpy().ravel(), slope.numpy()[-made.numel() :])
    assert tp.func.hessian(ops.energy)(x).tolist() == (2 * tp.eye(6)).tolist()


def test_reductions() -> None:
    x = tp.randn(50, 40)
    np.testing.assert_allclose(ops.energy(x).item(), float((x.numpy().astype("f8") ** 2).sum()), rtol=1e-5)
    np.testing.assert_allclose(ops.energy(x, 0).numpy(), (x.numpy() ** 2).sum(0), rtol=1e-5)
    assert ops.energy(x, -1, True).shape == (50, 1)
    assert ops.energy(x, dtype=tp.float64).dtype == tp.float64
    with tp.autocast("cpu", dtype=tp.bfloat16):
        assert ops.energy(tp.ones(3, dtype=tp.bfloat16)).dtype == tp.float32


def test_a_composite() -> None:
    x = tp.randn(4, 3, dtype=tp.float64)
    np.testing.assert_allclose(ops.normalize(x).norm(dim=-1).numpy(), np.ones(4))
    assert ops.normalize(tp.randn(2, 3, requires_grad=True)).grad_fn is not None


def test_a_structured_operator() -> None:
    x = tp.arange(7.0)
    assert ops.frames(x, 3, 2).tolist() == [[0, 1, 2], [2, 3, 4], [4, 5, 6]]
    out = tp.empty(0)
    assert ops.frames(x, 3, 2, out=out) is out and out.shape == (3, 3)
    assert ops.frames(tp.empty(2, 9, device="meta"), 4, 5).shape == (2, 2, 4)
    for length, size, step in ((7, 8, 1), (7, 0, 1), (7, 3, 0)):
        with pytest.raises(ValueError, match=f"frames of {size}, a step of {step}, of a signal of {length}"):
            ops.frames(tp.zeros(length), size, step)
    with pytest.raises(TypeError, match="takes float32 and float64, not int64"):
        ops.frames(tp.arange(7), 3, 2)


def test_kernels_in_c() -> None:
    assert math.isclose(ops.rms(tp.tensor([3.0, -3.0])), 3)
    a, b = tp.ones(3, requires_grad=True), tp.full((3,), 2.0, requires_grad=True)
    ops.mix([a, b], [0.5, 3.0]).sum().backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([0.5] * 3, [3.0] * 3)
    with pytest.raises(ValueError, match="2 signals and 1 gains"):
        ops.mix([a, b], [0.5])


def test_they_are_operators_like_any_other() -> None:
    assert pickle.loads(pickle.dumps(tp.ops.signals.softclip.default)) is not None
    x = tp.randn(4, 3, requires_grad=True)
    with tp.dispatch.trace() as calls:
        ops.softclip(x)
    assert [call.key for call in calls if call.op == "signals::softclip"] == ["AutogradCPU", "CPU"]
    together = tp.vmap(ops.softclip)(x)
    np.testing.assert_allclose(together.detach().numpy(), np.tanh(x.detach().numpy()), rtol=1e-5)


@pytest.mark.skipif(not tp.opencl.is_available(), reason="there is no OpenCL device")
def test_opencl() -> None:
    x = tp.randn(5, 7)
    np.testing.assert_allclose(
        ops.softclip(x.to("opencl")).cpu().numpy(), ops.softclip(x).numpy(), rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(ops.energy(x.to("opencl"), 1).cpu().numpy(), ops.energy(x, 1).numpy(), rtol=1e-5)
