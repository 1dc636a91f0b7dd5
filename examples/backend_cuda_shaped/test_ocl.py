"""The device of these files under tensorpy's table of operators: `OCL=./ocl.so pytest test_ocl.py`."""

import os

import tensorpy as tp
from tensorpy.testing.device import Device, DeviceTests


def load() -> None:
    tp.backends.load(os.environ["OCL"])


class TestOCL(DeviceTests):
    device = Device("ocl", set_up=load, tolerances={"float32": (1e-5, 1e-5)})


def test_what_the_device_computes() -> None:
    """Copies, fills, products and softmax do not go to the host."""
    load()
    a, b = tp.rand(3, 40, 30), tp.rand(3, 30, 20)
    x, y = a.to("ocl"), b.to("ocl")
    before = tp.backends.fallback_calls("ocl")
    product = (x @ y).softmax(-1)
    turned = x.transpose(0, 2).contiguous()
    ones = tp.ones(5, device="ocl")
    tp.ocl.synchronize()
    assert tp.backends.fallback_calls("ocl") == before
    assert tp.allclose(product.cpu(), (a @ b).softmax(-1), atol=1e-6)
    assert tp.equal(turned.cpu(), a.transpose(0, 2)) and ones.tolist() == [1] * 5


def test_the_report() -> None:
    load()
    assert set(tp.backends.report("ocl").there) == {
        "prim::copy",
        "prim::fill",
        "prim::product",
        "prim::softmax.forward",
    }
