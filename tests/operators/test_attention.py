"""The CPU's kernel of attention, which makes no matrix of all scores: against the formula in double precision."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import tensorpy as tp
import tensorpy.nn.functional as F

# Queries and keys: fewer and more than a block of either, and not a multiple of it.
LENGTHS = [(130, 130), (64, 256), (300, 70), (70, 700), (600, 600)]


def _mask(kind: str, queries: int, keys: int) -> Any:
    if kind == "added":
        return tp.randn(queries, keys)
    if kind == "of a head":
        return tp.randn(2, 3, 1, keys)
    if kind == "bools":
        seen = tp.rand(2, 1, queries, keys) > 0.3
        seen[0, 0, 1] = False  # a query that sees nothing
        return seen
    return None


def _formula(q: Any, k: Any, v: Any, mask: Any, causal: bool, scale: float | None) -> Any:
    """In five dimensions, which the kernel does not take."""
    q, k, v = (t.unsqueeze(0) for t in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, scale=scale).squeeze(0)


@pytest.mark.parametrize("kind", ["none", "causal", "added", "of a head", "bools"])
@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_kernel_and_formula(lengths: tuple[int, int], kind: str) -> None:
    (queries, keys), causal = lengths, kind == "causal"
    for features, rows_apart, scale in itertools.product((8, 48), (False, True), (None, 0.3)):
        tp.manual_seed(0)

        def made(n: int, d: int, apart: bool = rows_apart) -> Any:
            return tp.randn(2, n, 3, d).transpose(1, 2) if apart else tp.randn(2, 3, n, d)

        given = [made(queries, features).detach(), made(keys, features).detach(), made(keys, features + 3).detach()]
        mask, slope = _mask(kind, queries, keys), tp.randn(2, 3, queries, features + 3)
        single, double = ([t.to(dtype).requires_grad_() for t in given] for dtype in (tp.float32, tp.float64))
        found = F.scaled_dot_product_attention(*single, attn_mask=mask, is_causal=causal, scale=scale)
        assert "flash" in str(found.grad_fn).lower()
        wide = mask.double() if mask is not None and mask.dtype != tp.bool else mask
        wanted = _formula(*double, wide, causal, scale)
        pairs = [(found, wanted)]
        grads = tp.autograd.grad(found, single, slope, retain_graph=True)
        again = tp.autograd.grad(found, single, slope, create_graph=True)
        right = tp.autograd.grad(wanted, double, slope.double())
        pairs += [*zip(grads, right, strict=True), *zip(again, right, strict=True)]
        for a, b in pairs:
            assert (a.double() - b).abs().max() <= 3e-5 * max(1.0, float(b.abs().max()))


def test_kernel_is_left_to_what_it_can() -> None:
    q = tp.randn(1, 2, 256, 8, requires_grad=True)
    biased = F.scaled_dot_product_attention(q, q, q, attn_mask=tp.zeros(256, 256, requires_grad=True))
    assert "flash" in str(biased.grad_fn).lower()  # a mask's gradient is made beside it
    batched = tp.func.vmap(lambda t: F.scaled_dot_product_attention(t, t, t, is_causal=True))(q.detach())
    assert tp.allclose(batched, F.scaled_dot_product_attention(q, q, q, is_causal=True), atol=1e-5)
    _, tangent = tp.func.jvp(lambda t: F.scaled_dot_product_attention(t, t, t), (q.detach(),), (tp.ones_like(q),))
    assert tangent.shape == q.shape


def test_a_batch_without_heads() -> None:
    q, mask = tp.randn(3, 130, 8, requires_grad=True), tp.randn(3, 130, 130)
    found = F.scaled_dot_product_attention(q, q, q, attn_mask=mask)
    wanted = F.scaled_dot_product_attention(*[q.double()] * 3, attn_mask=mask.double())
    assert found.is_contiguous() and (found - wanted).abs().max() < 1e-5


def test_threads_change_nothing() -> None:
    q = tp.randn(2, 3, 200, 16, requires_grad=True)

    def run(threads: int) -> Any:
        tp.set_num_threads(threads)
        out = F.scaled_dot_product_attention(q, q, q, is_causal=True)
        return out, *tp.autograd.grad(out.sum(), q)

    before = tp.get_num_threads()
    try:
        assert all(bool((a == b).all()) for a, b in zip(run(1), run(2), strict=True))
    finally:
        tp.set_num_threads(before)


@pytest.mark.parametrize("queries", [8, 140])
def test_a_mask_that_is_wider(queries: int) -> None:
    """Scores of 16 bits become float32 with such a mask, shares of values 16 bits again."""
    q, mask = tp.randn(2, queries, 8).bfloat16().requires_grad_(), tp.randn(queries, queries)
    found = F.scaled_dot_product_attention(q, q, q, mask)
    found.sum().backward()
    assert found.dtype == q.grad.dtype == tp.bfloat16
    wanted = F.scaled_dot_product_attention(*[q.detach().double()] * 3, mask.double())
    tp.testing.assert_close(found.detach().double(), wanted, rtol=2e-2, atol=2e-2)
