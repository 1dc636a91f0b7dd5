"""Autocast: policies, nesting, threads, the cast cache, gradients."""

from __future__ import annotations

import threading

import pytest

import tensorpy as tp


def matrices() -> tuple[tp.Tensor, tp.Tensor]:
    return tp.ones(3, 3), tp.ones(3, 3)


def test_lower_precision_inside_only() -> None:
    a, b = matrices()
    with tp.autocast("cpu"):
        assert (a @ b).dtype is tp.bfloat16
        assert (a + b).dtype is tp.float32
    assert (a @ b).dtype is tp.float32


def test_float16_and_disabled_regions() -> None:
    a, b = matrices()
    with tp.autocast("cpu", dtype=tp.float16):
        assert a.mm(b).dtype is tp.float16
        with tp.autocast("cpu", enabled=False):
            assert a.mm(b).dtype is tp.float32
        assert a.mm(b).dtype is tp.float16


def test_float64_and_integers_are_left_alone() -> None:
    with tp.autocast("cpu"):
        assert tp.ones(2, 2, dtype=tp.float64).mm(tp.ones(2, 2, dtype=tp.float64)).dtype is tp.float64
        assert tp.ones(2, 2, dtype=tp.int64).mm(tp.ones(2, 2, dtype=tp.int64)).dtype is tp.int64


def test_gradient_has_the_leafs_dtype() -> None:
    w, x = tp.ones(3, 3, requires_grad=True), tp.ones(3, 3)
    with tp.autocast("cpu"):
        loss = x.mm(w).sum()
    loss.backward()
    assert w.grad.dtype is tp.float32 and w.grad.tolist() == [[3.0] * 3] * 3


def casts(t: tp.dispatch.trace) -> int:
    return sum(e.op == "_to_copy" and e.key == "AutogradCPU" for e in t)


def test_weight_is_cast_once() -> None:
    w, x = tp.ones(3, 3, requires_grad=True), tp.ones(3, 3, dtype=tp.bfloat16)
    with tp.autocast("cpu"), tp.dispatch.trace() as t:
        x.mm(w)
        x.mm(w)
    assert casts(t) == 1
    with tp.autocast("cpu", cache_enabled=False), tp.dispatch.trace() as t:
        x.mm(w)
        x.mm(w)
    assert casts(t) == 2


def test_changed_weight_is_cast_again() -> None:
    w, x = tp.ones(3, 3, requires_grad=True), tp.ones(3, 3, dtype=tp.bfloat16)
    with tp.autocast("cpu"):
        before = x.mm(w).sum().item()
        with tp.no_grad():
            w.mul_(2)
        assert x.mm(w).sum().item() == 2 * before


def test_decorator_and_threads() -> None:
    a, b = matrices()

    @tp.autocast("cpu")
    def product() -> tp.dtype:
        return a.mm(b).dtype

    assert product() is tp.bfloat16
    seen: list[tp.dtype] = []
    with tp.autocast("cpu"):
        thread = threading.Thread(target=lambda: seen.append(a.mm(b).dtype))
        thread.start()
        thread.join()
    assert seen == [tp.float32]


def test_bad_arguments() -> None:
    with pytest.raises(RuntimeError, match="bfloat16, float16 or float32"):
        with tp.autocast("cpu", dtype=tp.int64):
            pass
    with pytest.raises(ValueError, match="device_type"):
        tp.autocast(3)
    with pytest.raises(RuntimeError):
        tp.autocast("nowhere")
