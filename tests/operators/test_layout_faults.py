"""Kernels of layouts where memory is short, in several threads, behind a fork, and on other devices."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest
from layout_calls import CALLS, DENSE, OTHERS, SPARSE, same, taken
from programs import SANITIZED
from test_leaks import fail_each

import tensorpy as tp

ALL = {**SPARSE, **OTHERS}
PACKED = ("linear", "linear_dynamic", "conv2d", "add", "mul", "cat", "embedding_bag_4bit")


@pytest.mark.parametrize("kind", ALL)
def test_failing_allocations(kind: str) -> None:
    """Each allocation of each call fails once: a MemoryError, nothing stays, and the tensor is as it was."""
    names = taken(ALL[kind])
    assert len(names) > 15
    for name in names:
        s, expected = ALL[kind](), ALL[kind]()

        def unchanged(s: Any = s, expected: Any = expected, name: str = name) -> None:
            assert name.endswith("_") or same(s, expected), name

        fail_each(lambda s=s, name=name: CALLS[name](s, DENSE), f"{name} of {kind}", unchanged)


@pytest.mark.parametrize("kind", ["sparse_coo", "sparse_csr", "sparse_bsr", "nested", "jagged"])
def test_failing_allocations_in_backward(kind: str) -> None:
    def step() -> None:
        s = ALL[kind]().requires_grad_()
        made = tp.nn.functional.linear(s, DENSE).to_padded_tensor(0.0) if s.is_nested else s @ DENSE
        tp.autograd.grad(made.square().sum(), s)

    fail_each(step, f"backward of {kind}", lambda: None)


def packed(name: str) -> Any:
    """A call of an operator with packed weights, or of two quantized tensors."""
    ops = tp.ops.quantized
    x = tp.quantize_per_tensor(DENSE, 0.1, 3, tp.quint8)
    w = tp.quantize_per_tensor(DENSE, 0.1, 0, tp.qint8)
    if name.startswith("linear"):
        weight = ops.linear_prepack(w, DENSE[0])
        return lambda: getattr(ops, name)(*((DENSE, weight) if name == "linear_dynamic" else (x, weight, 0.3, 5)))
    if name == "conv2d":
        weight = ops.conv2d_prepack(w.reshape(1, 1, 3, 3), None, [1, 1], [1, 1], [1, 1], 1)
        return lambda: ops.conv2d(x.reshape(1, 1, 3, 3), weight, 0.3, 5)
    if name == "embedding_bag_4bit":
        table = tp.quantize_per_channel(DENSE, tp.ones(3), tp.zeros(3), 0, tp.quint4x2)
        rows = ops.embedding_bag_prepack(table)
        return lambda: ops.embedding_bag_4bit(rows, tp.tensor([0, 2, 1]), tp.tensor([0, 2]))
    return lambda: getattr(ops, name)(*(([x, x], 0, 0.3, 5) if name == "cat" else (x, x, 0.3, 5)))


@pytest.mark.parametrize("name", PACKED)
def test_failing_allocations_of_packed_weights(name: str) -> None:
    call = packed(name)
    expected = call()
    fail_each(call, f"quantized::{name}", lambda: None)
    assert same(expected, call())


@pytest.mark.parametrize("kind", ALL)
def test_threads(kind: str) -> None:
    """Of several threads that share a tensor each gets what one alone gets, whatever the number of workers."""
    names = [name for name in taken(ALL[kind]) if not name.endswith("_")]
    s, wrong = ALL[kind](), []
    expected = [CALLS[name](s, DENSE) for name in names]

    def read() -> None:
        for _ in range(3):
            wrong.extend(n for n, e in zip(names, expected, strict=True) if not same(e, CALLS[n](s, DENSE)))

    before = tp.get_num_threads()
    for workers in (1, 3):
        tp.set_num_threads(workers)
        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    tp.set_num_threads(before)
    assert not wrong


@pytest.mark.skipif(SANITIZED, reason="the sanitizer's allocator cannot be forked")
def test_a_child_computes() -> None:
    names = {kind: [name for name in taken(make) if not name.endswith("_")] for kind, make in ALL.items()}
    expected = {kind: [CALLS[name](make(), DENSE) for name in names[kind]] for kind, make in ALL.items()}
    child = os.fork()
    if child == 0:
        status = 1
        try:
            again = {kind: [CALLS[name](make(), DENSE) for name in names[kind]] for kind, make in ALL.items()}
            status = 0 if all(same(expected[kind], again[kind]) for kind in ALL) else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("kind", ALL)
def test_devices_give_the_same(kind: str, device: str) -> None:
    """On every device that the run has, the CPU as well: one kernel stands for all of them."""
    for name in taken(ALL[kind]):
        there, dense = ALL[kind]().to(device), DENSE.to(device)
        found, expected = CALLS[name](there, dense), CALLS[name](ALL[kind](), DENSE)
        for a, b in zip(*(x if isinstance(x, tuple) else (x,) for x in (expected, found)), strict=True):
            assert not isinstance(b, tp.Tensor) or b.device.type == tp.device(device).type, name
            assert same(a, b.cpu() if isinstance(b, tp.Tensor) else b, exactly=False), name
