"""The operators of this package; run after it was installed."""

import pickle

import myops
import pytest

import tensorpy as tp
from tensorpy.autograd import gradcheck, gradgradcheck


def test_values() -> None:
    x = tp.arange(6.0).reshape(2, 3)
    assert myops.ops.scale(x).tolist() == [[0, 2, 4], [6, 8, 10]]
    assert myops.ops.scale(x.t(), by=0.5).tolist() == [[0, 1.5], [0.5, 2], [1, 2.5]]
    assert myops.ops.extent(x - 2) == (-2.0, 3.0)
    assert myops.ops.scale(x.to("meta"), 3.0).shape == (2, 3)
    large = tp.randn(300_000)
    assert tp.equal(myops.ops.scale(large, 3.0), large * 3)


def test_in_place() -> None:
    x = tp.ones(3)
    version = x._version
    assert myops.ops.scale_(x, 4.0) is x
    assert x.tolist() == [4, 4, 4] and x._version == version + 1
    with pytest.raises(RuntimeError, match="scale_"):
        myops.ops.scale_(tp.ones(2, requires_grad=True) * 1, 4.0).sum().backward()


def test_gradient() -> None:
    x = tp.ones(3, requires_grad=True)
    y = myops.ops.scale(x, 5.0)
    assert y.grad_fn.name() == "ScaleBackward"
    y.sum().backward()
    assert x.grad.tolist() == [5, 5, 5]
    with tp.no_grad():
        assert not myops.ops.scale(x).requires_grad
    (grad,) = tp.autograd.grad(myops.ops.scale(x * x, 2.0).sum(), x, create_graph=True)
    assert tp.autograd.grad(grad.sum(), x)[0].tolist() == [4, 4, 4]
    check = {"eps": 1e-2, "atol": 1e-2, "rtol": 1e-2}
    assert gradcheck(lambda t: myops.ops.scale(t, 3.0), (x,), **check)
    assert gradgradcheck(lambda t: myops.ops.scale(t, 3.0), (x,), **check)


def test_autocast() -> None:
    with tp.autocast("cpu", dtype=tp.bfloat16):
        assert myops.ops.scale(tp.ones(2, dtype=tp.bfloat16)).dtype == tp.float32
    with pytest.raises(TypeError, match="takes float32, not bfloat16"):
        myops.ops.scale(tp.ones(2, dtype=tp.bfloat16))


def test_it_is_an_operator_like_any_other() -> None:
    assert pickle.loads(pickle.dumps(myops.ops.scale.default)) is not None
    with tp.dispatch.trace() as calls:
        myops.ops.scale(tp.ones(2, requires_grad=True))
    assert [call.key for call in calls if call.op == "myops::scale"] == ["AutogradCPU", "CPU"]
    assert {"scale", "scale_", "extent"} <= set(dir(tp.ops.myops))
    assert any("scale_cpu at" in entry.source for entry in tp.dispatch.table("myops::scale"))
    tp.library.opcheck(myops.ops.scale.default, (tp.ones(3), 2.0))


@pytest.mark.skipif(not tp.opencl.is_available(), reason="there is no OpenCL device")
def test_opencl() -> None:
    x = tp.arange(6.0, device="opencl").reshape(2, 3).requires_grad_()
    y = myops.ops.scale(x.t()[1:], 3.0)
    assert y.tolist() == [[3, 12], [6, 15]]
    y.sum().backward()
    assert x.grad.tolist() == [[0, 3, 3], [0, 3, 3]]
