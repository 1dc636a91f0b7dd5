"""Tensors of zeros without memory: `_efficientzerotensor`, against torch where it is there."""

from __future__ import annotations

import copy
import io
from typing import Any

import pytest

import tensorpy as tp

torch: Any
try:
    import torch
except ImportError:
    torch = None

LIBRARIES = [tp] if torch is None else [tp, torch]


def zeros(t: Any, *size: int, **options: Any) -> Any:
    return t._efficientzerotensor(size, **options)


CALLS = {
    "add": lambda t, z: z + t.ones(3),
    "add alpha": lambda t, z: z.add(t.arange(3), alpha=2),
    "radd": lambda t, z: t.ones(2, 1) + z,
    "add zero": lambda t, z: z + zeros(t, 4, 1, 3),
    "add number": lambda t, z: z + 2.5,
    "sub": lambda t, z: z - t.ones(3),
    "rsub": lambda t, z: t.ones(2, 3) - z,
    "sub zero": lambda t, z: z - z,
    "mul": lambda t, z: z * t.arange(6.0).view(2, 3),
    "mul wide": lambda t, z: z * t.ones(2, 3, dtype=t.float64),
    "mul nan": lambda t, z: z * t.full((3,), float("nan")),
    "mul number": lambda t, z: 3 * z,
    "div": lambda t, z: z / t.ones(3),
    "div ints": lambda t, z: zeros(t, 2, dtype=t.int64) / t.tensor([1, 2]),
    "div number": lambda t, z: z / 2,
    "by zero": lambda t, z: t.ones(3) / z,
    "zero by zero": lambda t, z: z / z,
    "dot": lambda t, z: t.dot(z[0], z[1]),
    "vdot": lambda t, z: t.vdot(z[0], t.ones(3)),
    "mm": lambda t, z: z @ z.t(),
    "mv": lambda t, z: z.mv(t.ones(3)),
    "cross": lambda t, z: t.linalg.cross(z, t.ones(2, 3)) + 0,
    "neg": lambda t, z: -z,
    "cos": lambda t, z: z.cos(),
    "sum": lambda t, z: z.sum(0),
    "max": lambda t, z: z.max(1),
    "cat": lambda t, z: t.cat([z, t.ones(1, 3)]),
    "where": lambda t, z: t.where(t.ones(3) > 0, z, t.ones(3)),
    "eq": lambda t, z: z == 0,
    "transpose": lambda t, z: z.t(),
    "select": lambda t, z: z[1],
    "slice": lambda t, z: z[:, 1:],
    "expand": lambda t, z: z.expand(4, 2, 3),
    "view": lambda t, z: z.view(-1),
    "as_strided": lambda t, z: z.as_strided((2, 2), (1, 2)),
    "unbind": lambda t, z: z.unbind(1)[2],
    "detach": lambda t, z: z.detach(),
    "conj": lambda t, z: zeros(t, 2, dtype=t.complex64).conj() + t.ones(2),
    "contiguous": lambda t, z: z.contiguous(),
    "reshape": lambda t, z: z.reshape(3, 2),
    "reshape copy": lambda t, z: z.t().reshape(-1),
    "clone": lambda t, z: z.clone(),
    "clone transposed": lambda t, z: z.t().clone(),
    "to": lambda t, z: z.to(t.float64),
    "to int": lambda t, z: z.long(),
    "zeros_like": lambda t, z: t.zeros_like(z),
    "into": lambda t, z: t.ones(4, 2, 3).copy_(z),
    "write": lambda t, z: z.add_(1),
    "write copy": lambda t, z: z.copy_(t.ones(2, 3)),
    "fill": lambda t, z: z.fill_(1),
    "zero": lambda t, z: z.zero_(),
    "item write": lambda t, z: z.__setitem__(0, 1),
    "out": lambda t, z: t.add(t.ones(2, 3), 1, out=z),
    "address": lambda t, z: t.tensor(z.data_ptr()),
    "wrong sizes": lambda t, z: z + t.ones(2),
    "wrong dot": lambda t, z: t.dot(z[0], t.ones(2)),
    "too far": lambda t, z: z.as_strided((7,), (1,)),
    "gradient": lambda t, z: t.autograd.grad((z * t.ones(3, requires_grad=True)).sum() + 0, [], allow_unused=True),
}


def outcome(t: Any, call: Any) -> Any:
    try:
        result = call(t, zeros(t, 2, 3))
    except Exception as error:
        return type(error).__name__
    results = result if isinstance(result, tuple) else (result,)
    return [
        (
            str(r.dtype).rpartition(".")[2],
            tuple(r.shape),
            r.stride() if r.numel() else (),
            r._is_zerotensor(),
            str((r.clone()).tolist()),
        )
        for r in results
    ]


@pytest.mark.skipif(torch is None, reason="torch is not installed")
@pytest.mark.parametrize("name", CALLS)
def test_as_in_torch(name: str) -> None:
    assert outcome(tp, CALLS[name]) == outcome(torch, CALLS[name])


def test_no_memory_is_read() -> None:
    z = zeros(tp, 1 << 20, 1 << 20, dtype=tp.float64)  # 8 TB, had it memory
    assert z._is_zerotensor() and (z.t() * 2)[5]._is_zerotensor() and z[3, :2].clone().tolist() == [0, 0]
    assert z[7, 9].item() == 0 and not bool(z[0, 0]) and z.data_ptr() == 0
    for refused in (
        lambda: z.numpy(),
        lambda: z[0, :2].tolist(),
        lambda: z.untyped_storage(),
        lambda: z.__dlpack__(),
        lambda: memoryview(z),
    ):
        with pytest.raises((RuntimeError, BufferError, TypeError)):
            refused()
    assert repr(z[0, :2]) == "tensor([0., 0.], dtype=tensorpy.float64)"


def test_negative_by_zero() -> None:
    """torch gives +inf whatever the sign is."""
    assert (tp.tensor([-1.0, 2.0]) / zeros(tp, 2)).tolist() == [-float("inf"), float("inf")]


@pytest.mark.parametrize("write", ["copy", "deepcopy", "save"])
def test_files_and_copies(write: str) -> None:
    z = zeros(tp, 2)
    if write == "deepcopy":
        assert copy.deepcopy(z).tolist() == [0, 0]
    else:
        with pytest.raises(RuntimeError, match="Zero"):
            tp.save(z, io.BytesIO()) if write == "save" else copy.copy(z)


def test_sizes_are_checked() -> None:
    for size in ((-1,), (1 << 62, 4), (1 << 60,), (1,) * 70):
        with pytest.raises(RuntimeError):
            zeros(tp, *size)


def test_gradients_through() -> None:
    x = tp.ones(3, requires_grad=True)
    (x + zeros(tp, 2, 3)).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [2, 2, 2]
    z = zeros(tp, 2).requires_grad_()
    (z * tp.tensor([3.0, 4.0])).sum().backward()
    assert z.grad is not None and z.grad.tolist() == [3, 4]


def test_absent_tangents_take_no_memory() -> None:
    """An argument without a tangent is a tensor of zeros in the forward formula."""
    from tensorpy.autograd import forward_ad as fwd

    with fwd.dual_level():
        x = fwd.make_dual(tp.ones(2), tp.tensor([1.0, 2.0]))
        with tp.dispatch.trace() as calls:
            y = tp.cat([x, tp.ones(2)])
        assert "ZeroTensor" in [c.key for c in calls]
        assert fwd.unpack_dual(y).tangent.clone().tolist() == [1, 2, 0, 0]
        y[2:] *= x
        assert fwd.unpack_dual(y).tangent.clone().tolist() == [1, 2, 1, 2]
        z = fwd.make_dual(tp.ones(4), zeros(tp, 4))
        z[2:] *= x
        assert fwd.unpack_dual(z).tangent.clone().tolist() == [0, 0, 1, 2]
