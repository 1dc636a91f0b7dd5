"""The device of vault.c under tensorpy's table of operators: `VAULT=./vault.so pytest test_vault.py`."""

import os
import re

import pytest

import tensorpy as tp
from tensorpy.testing.device import Device, DeviceTests, Refusal

NO_VIEWS = "has no views: the device shows no memory"

# By their schemas: views, and what may be one. Where one is the whole tensor in the same order it is there.
VIEWS = [name for name in tp.dispatch.operators() if re.search(r"-> .*Tensor\(a\)", tp.dispatch.schema(name))]
# What changes a tensor's own geometry or memory.
IN_PLACE_VIEWS = ["as_strided_", "t_", "transpose_", "squeeze_*", "unsqueeze_", "resize_", "set_*"]


def load() -> None:
    tp.backends.load(os.environ["VAULT"])


class TestVault(DeviceTests):
    """Values of every operator and dtype, in place and with out=, and what the device does without being asked."""

    device = Device("vault", set_up=load, refusals=[Refusal(name, "no views") for name in VIEWS + IN_PLACE_VIEWS])
    checks = ("values", "zero-size", "in-place", "random", "autocast")
    device_wide = ("factories", "seeds")


@pytest.fixture
def x() -> tp.Tensor:
    load()
    return tp.tensor([[1.0, -2.0], [3.0, 4.0]], device="vault")


def test_it_is_printed_and_copied(x: tp.Tensor) -> None:
    assert str(x) == "tensor([[ 1., -2.],\n        [ 3.,  4.]], device='vault:0')"
    assert x.cpu().tolist() == x.clone().tolist() == [[1, -2], [3, 4]]
    turned = x.cpu().t().to("vault")
    assert turned.tolist() == [[1, 3], [-2, 4]] and turned.is_contiguous()
    x.copy_(tp.zeros(2))
    assert not x.any()


def test_operators(x: tp.Tensor) -> None:
    before = tp.backends.fallback_calls("vault")
    assert x.relu().tolist() == [[1, 0], [3, 4]] and (~tp.tensor([1, 2], device="vault")).tolist() == [-2, -3]
    calls = tp.backends.fallback_calls("vault") - before
    assert (x @ x + 1).tolist() == [[-4, -9], [16, 11]]  # by the host, as wholes
    assert tp.nn.functional.linear(x, x).tolist() == [[5, -5], [-5, 25]]
    assert tp.backends.fallback_calls("vault") - before >= calls + 3


def test_views_are_refused_and_change_nothing(x: tp.Tensor) -> None:
    for view in (
        lambda: x.t(),
        lambda: x[0],
        lambda: x[:, 1:],
        lambda: x.as_strided((2,), (1,)),
        lambda: x.expand(3, 2, 2),
        lambda: x.unbind(0),
        lambda: x.transpose_(0, 1),
        lambda: x.diagonal(),
    ):
        with pytest.raises(RuntimeError, match=NO_VIEWS):
            view()
    with pytest.raises(RuntimeError, match="no address"):
        x.data_ptr()
    with pytest.raises(RuntimeError, match="resiz"):
        x.resize_(9)
    assert tp.select_copy(x, 0, 1).tolist() == [3, 4] and tp.t_copy(x).tolist() == [[1, 3], [-2, 4]]
    assert x.tolist() == [[1, -2], [3, 4]]
    same = x.view(4)  # all of it, in the same order
    same.add_(1)
    assert x.tolist() == [[2, -1], [4, 5]] and x.detach().unsqueeze(0).shape == (1, 2, 2)


def test_gradients(x: tp.Tensor) -> None:
    """Where the formula needs no view; else an error, and never a gradient that is missing."""
    x.requires_grad_()
    (x * x).exp().backward(tp.ones(2, 2, device="vault"))
    expected = x.detach().cpu().requires_grad_()
    (expected * expected).exp().backward(tp.ones(2, 2))
    assert x.grad is not None and tp.equal(x.grad.cpu(), expected.grad)
    with pytest.raises(RuntimeError, match=NO_VIEWS):
        tp.nn.functional.linear(x, x).backward(x.detach())
