"""What a backend may define: copies, which every device has, and attention, which a library brings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import tensorpy as tp
from tensorpy.testing import assert_close

ops = tp.ops.aten
attention, backward = (
    ops._scaled_dot_product_fused_attention_overrideable,
    ops._scaled_dot_product_fused_attention_overrideable_backward,
)


def test_copies_between_devices_and_dtypes(device: str) -> None:
    x, into = tp.arange(6.0).reshape(2, 3), tp.zeros(2, 3, dtype=tp.int64, device=device)
    assert tp._copy_from(x, into) is into and into.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert tp._copy_from(x[0].to(device), into, True).tolist() == [[0, 1, 2]] * 2, "a row for each"
    other = tp.empty(0, device=device)
    assert tp._copy_from_and_resize(x, other) is other and other.tolist() == x.tolist()
    assert tp._copy_from_and_resize(into, x) is x and x.tolist() == [[0.0, 1.0, 2.0]] * 2
    out = tp.empty(0)
    assert ops._copy_from.out(x + 1, tp.zeros(2, 3), out=out) is out and out.tolist() == [[1.0, 2.0, 3.0]] * 2
    with pytest.raises(RuntimeError, match="must match the size"):
        tp._copy_from(tp.ones(4), into)


def test_a_copy_is_a_version() -> None:
    x = tp.ones(3, requires_grad=True)
    into = tp.zeros(3)
    saved = (x * into).sum()
    tp._copy_from(tp.ones(3), into)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        saved.backward()


def test_attention_is_refused_without_a_backend() -> None:
    q = tp.ones(1, 2, 3, 4)
    words = " not implemented{} This is an operator for privateuse1 backends, please use TORCH_LIBRARY_IMPL to override"
    with pytest.raises(NotImplementedError) as caught:
        attention(q, q, q)
    assert str(caught.value).startswith("_scaled_dot_product_fused_attention_overrideable" + words.format("."))
    with pytest.raises(NotImplementedError) as caught:
        backward(q, q, q, q, q, [True] * 4, q, q, q, q, 3, 3, 0.0, False, q, q)
    assert str(caught.value).startswith("_scaled_dot_product_fused_attention_overrideable_backward" + words.format(":"))


@pytest.fixture
def library() -> Iterator[None]:
    """A library that brings attention for the CPU."""

    def forward(q: Any, k: Any, v: Any, bias: Any = None, dropout_p: float = 0.0, *rest: Any, **options: Any) -> Any:
        made = tp.nn.functional.scaled_dot_product_attention(q, k, v, bias)
        none = tp.zeros(0)
        return made, tp.zeros(q.shape[:-1]), none, none, q.shape[2], k.shape[2], none, none, none

    def gradients(grad: Any, q: Any, k: Any, v: Any, *rest: Any, **options: Any) -> Any:
        return (*ops._attention_math_backward(grad, q, k, v, False, None, None), tp.zeros(1))

    brought = tp.library.Library("aten", "IMPL")
    brought.impl("_scaled_dot_product_fused_attention_overrideable", forward, "CPU")
    brought.impl("_scaled_dot_product_fused_attention_overrideable_backward", gradients, "CPU")
    yield
    brought._destroy()


def test_attention_of_a_library(library: None) -> None:
    q, k, v = (tp.randn(1, 2, n, 4) for n in (3, 5, 5))
    made = attention(q, k, v)
    assert_close(made[0], tp.nn.functional.scaled_dot_product_attention(q, k, v))
    assert made[4:6] == (3, 5) and len(made) == 9
    grad = tp.randn(1, 2, 3, 4)
    given = [t.clone().requires_grad_() for t in (q, k, v)]
    tp.nn.functional.scaled_dot_product_attention(*given).backward(grad)
    e = made[2]
    found = backward(grad, q, k, v, e, [True] * 4, made[0], made[1], e, e, 3, 5, 0.0, False, e, e)
    for ours, leaf in zip(found, given, strict=False):
        assert_close(ours, leaf.grad)
