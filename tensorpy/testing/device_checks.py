"""What is asked of a device itself, in each of its dtypes: copies to and from the host, views, seeds, errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tensorpy as tp
from tensorpy import _C

from .harness import same_place, to_numpy, to_tensor
from .samples import Array
from .samples.table import ALL_DTYPES, INTEGERS, LEAF_OF, Make

Run = Callable[[str, Sequence[str]], None]
CHECKS: dict[str, Run] = {}


def check(run: Run) -> Run:
    """Adds a check to the list."""
    CHECKS[run.__name__] = run
    return run


def _make(dtype: str, *shape: int) -> Array:
    return Make(dtype, 5)(*shape)


def _same(got: tp.Tensor, expected: Any, what: str) -> None:
    assert np.array_equal(to_numpy(got), expected), f"{what}: {got.tolist()}, expected {expected.tolist()}"


@check
def copies_from_and_to_the_host(device: str, dtypes: Sequence[str]) -> None:
    """Copies tensors of every dtype and several layouts, blocking and not; tensors without elements too."""
    for dtype in dtypes:
        for shape in ((), (1,), (7,), (3, 5), (2, 3, 4), (0,), (2, 0, 3), (4097,)):
            host = to_tensor(_make(dtype, *shape), "cpu")
            for non_blocking in (False, True):
                there = host.to(device=device, non_blocking=non_blocking)
                assert same_place(there, device), f"{there.device}"
                assert there.shape == host.shape and there.dtype == host.dtype
                back = there.to(device="cpu")
                assert back.device.type == "cpu"
                _same(back, to_numpy(host), f"{dtype}{list(shape)}")
        host = to_tensor(_make(dtype, 4, 6), "cpu")
        there = host.to(device=device)
        for view in (lambda t: t.t(), lambda t: t[1:, ::2], lambda t: t[2], lambda t: t[:, :1].expand(4, 5)):
            _same(view(there), to_numpy(view(host)), f"{dtype}, a view")  # strided on the device
            _same(view(host).to(device=device), to_numpy(view(host)), f"{dtype}, of a view")  # strided on the host


@check
def writes_through_views(device: str, dtypes: Sequence[str]) -> None:
    """A view shares the memory of its base; copies into it change nothing else."""
    for dtype in dtypes:
        host, other = to_tensor(_make(dtype, 4, 6), "cpu"), to_tensor(_make(dtype, 3), "cpu")
        there = host.to(device=device)
        for t, o in ((host, other), (there, other.to(device=device))):
            version = t._version
            t[1, ::2].copy_(o)
            t.t()[2, 1:].fill_(1)
            t[3:].zero_()
            assert t._version > version
        _same(there, to_numpy(host), dtype)
        there[0, :3].copy_(other)  # from the host
        host[0, :3].copy_(there[0, :3])  # to the host
        _same(there, to_numpy(host), dtype)
        assert there.is_contiguous() and there[1].storage_offset() == 6 and there[1]._base is there


@check
def casts(device: str, dtypes: Sequence[str]) -> None:
    """Between all dtypes, as on the CPU."""
    for source in dtypes:
        host = to_tensor(Make(source, 5, 0, 5)(3, 4), "cpu")
        there = host.to(device=device)
        for target in dtypes:
            if LEAF_OF[source] == "complex" and LEAF_OF[target] != "complex":
                continue
            to = getattr(tp, target)
            _same(there.to(to), to_numpy(host.to(to)), f"{source} to {target}")
            _same(there.t().to(to), to_numpy(host.t().to(to)), f"{source} to {target}, transposed")


@check
def numbers_and_lists(device: str, dtypes: Sequence[str]) -> None:
    """item(), tolist(), bool(), printing."""
    for dtype in dtypes:
        host = to_tensor(_make(dtype, 2, 3), "cpu")
        there = host.to(device=device)
        assert there.tolist() == host.tolist() and there[1, 2].item() == host[1, 2].item(), dtype
        assert device == "cpu" or device.partition(":")[0] in repr(there), repr(there)
    if "bool" in dtypes:
        assert bool(_C.tensor(True, device=device)) and not bool(_C.tensor(False, device=device))


@check
def factories(device: str, dtypes: Sequence[str]) -> None:
    """New tensors are on the device that they were asked for."""
    for dtype in dtypes:
        to = getattr(tp, dtype)
        for made in (
            tp.zeros(2, 3, dtype=to, device=device),
            tp.ones(2, 3, dtype=to, device=device),
            tp.full((2, 3), 1, dtype=to, device=device),
            tp.empty(2, 3, dtype=to, device=device),
            _C.tensor([[1, 0, 1], [1, 1, 0]], dtype=to, device=device),
        ):
            assert same_place(made, device) and made.dtype == to and tuple(made.shape) == (2, 3)
            assert same_place(tp.empty_like(made), device) and same_place(made.new_ones(2), device)
        assert to_numpy(tp.ones(3, dtype=to, device=device)).astype(bool).all()


@check
def seeds(device: str, dtypes: Sequence[str]) -> None:
    """manual_seed and Generator objects give the CPU's numbers; a state can be kept and set."""
    drawn = [d for d in ("float32", "float64") if d in dtypes]
    for dtype in drawn:
        to = getattr(tp, dtype)
        tp.manual_seed(3)
        expected = tp.rand(70, dtype=to)
        tp.manual_seed(3)
        _same(tp.rand(70, dtype=to, device=device), to_numpy(expected), "the default generator")
        g, h = _C.Generator(device).manual_seed(4), _C.Generator().manual_seed(4)
        for _ in range(2):
            got, want = tp.rand(9, dtype=to, device=device, generator=g), tp.rand(9, dtype=to, generator=h)
            _same(got, to_numpy(want), "a generator")
        state = g.get_state()
        first = to_numpy(tp.rand(9, dtype=to, device=device, generator=g))
        g.set_state(state)
        _same(tp.rand(9, dtype=to, device=device, generator=g), first, "a state set again")
    for dtype in (d for d in INTEGERS if d in dtypes and d.startswith("int")):
        to = getattr(tp, dtype)
        tp.manual_seed(3)
        whole = tp.randint(0, 100, (33,), dtype=to)
        tp.manual_seed(3)
        _same(tp.randint(0, 100, (33,), dtype=to, device=device), to_numpy(whole), "integers")


@check
def gradients_stay_on_the_device(device: str, dtypes: Sequence[str]) -> None:
    """A leaf's gradient is on its device; through a copy it comes back to the host."""
    for dtype in (d for d in ("float32", "float64") if d in dtypes):
        leaf = tp.ones(3, dtype=getattr(tp, dtype), requires_grad=True)
        there = leaf.detach().to(device=device).requires_grad_()
        (there * 3).sum().backward()
        assert there.grad is not None and same_place(there.grad, device) and there.grad.tolist() == [3.0] * 3
        (leaf.to(device=device) * 2).sum().backward()
        assert leaf.grad is not None and leaf.grad.device.type == "cpu" and leaf.grad.tolist() == [2.0] * 3


@check
def refusals(device: str, dtypes: Sequence[str]) -> None:
    """Devices that do not go together and dtypes that the device does not have are errors, and the next call works."""
    if device.partition(":")[0] == "cpu":
        return
    some = getattr(tp, next(d for d in ("float32", *dtypes) if d in dtypes))
    a, b = tp.ones(2, 2, dtype=some, device=device), tp.ones(2, 2, dtype=some)
    kind = device.partition(":")[0]
    for call in (lambda: a + b, lambda: a @ b, lambda: tp.cat([a, b])):
        text = _error_of(call)
        assert kind in text and "cpu" in text, f"the error names both devices: {text}"
    assert "opencl" in _error_of(lambda: tp.ones(1, device="no_such_device"))
    assert _error_of(lambda: tp.ones(1, device=f"{kind}:99"))
    for dtype in (d for d in ALL_DTYPES if d not in dtypes):
        assert _error_of(lambda: tp.ones(2, dtype=getattr(tp, dtype), device=device) * 2), dtype  # noqa: B023
    assert (a + a).tolist() == [[2] * 2] * 2


def _error_of(call: Callable[[], Any]) -> str:
    try:
        call()
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        return str(error)
    raise AssertionError("not refused")


__all__ = ["CHECKS", "Run"]
