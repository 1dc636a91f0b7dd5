"""The CPU's kernel of attention, which makes no matrix of all scores: against the formula in double precision."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import tensorpy as tp
import tensorpy.nn.functional as F
from tensorpy._as_torch.attention import native_multi_head_attention

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


# ---- attention whose dropout is that of a seed ----

flash, flash_backward = (
    tp.ops.aten._scaled_dot_product_flash_attention,
    tp.ops.aten._scaled_dot_product_flash_attention_backward,
)
efficient, efficient_backward = (
    tp.ops.aten._scaled_dot_product_efficient_attention,
    tp.ops.aten._scaled_dot_product_efficient_attention_backward,
)
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


def _heads(device: str, queries: int = 5, keys: int = 7) -> list[Any]:
    return [tp.randn(2, 3, n, 4, device=device).requires_grad_() for n in (queries, keys, keys)]


@pytest.mark.parametrize(("causal", "scale"), [(False, None), (True, None), (False, 0.3)])
def test_seeded_attention_is_attention(device: str, causal: bool, scale: float | None) -> None:
    given = _heads(device)
    expected = F.scaled_dot_product_attention(*given, is_causal=causal, scale=scale)
    grad = tp.randn(2, 3, 5, 4, device=device)
    wanted = tp.autograd.grad(expected, given, grad)
    none = tp.zeros(0, device=device)
    made = flash(*given, 0.0, causal, scale=scale)
    assert made[2:6] == (None, None, 5, 7) and made[6].dtype is tp.uint64
    other = efficient(*given, None, True, 0.0, causal, scale=scale)
    assert other[1].shape == (2, 3, 32)
    tp.testing.assert_close(other[1][..., :5], made[1], **CLOSE)
    by_name = flash_backward(
        grad, *given, made[0], made[1], none, none, 5, 7, 0.0, causal, made[6], made[7], scale=scale
    )
    every = [True, True, True, False]
    also = efficient_backward(grad, *given, none, *other, 0.0, every, causal, scale=scale)
    assert also[3] is None
    for out, found in ((made[0], by_name), (other[0], also[:3])):
        tp.testing.assert_close(out, expected, **CLOSE)
        for grads in (found, tp.autograd.grad(out, given, grad)):
            for ours, theirs in zip(grads, wanted, strict=True):
                tp.testing.assert_close(ours, theirs, **CLOSE)


def test_the_gradient_draws_the_same_dropout(device: str) -> None:
    given, bias = _heads(device), tp.randn(2, 3, 5, 7, device=device).requires_grad_()
    grad, none = tp.randn(2, 3, 5, 4, device=device), tp.zeros(0, device=device)
    made = flash(*given, 0.4)
    assert any(made[6].tolist()) and not tp.allclose(made[0], F.scaled_dot_product_attention(*given))
    found = flash_backward(grad, *given, made[0], made[1], none, none, 5, 7, 0.4, False, made[6], made[7])
    for ours, theirs in zip(found, tp.autograd.grad(made[0], given, grad), strict=True):
        tp.testing.assert_close(ours, theirs, **CLOSE)
    out, *rest = efficient(*given, bias, True, 0.4, True)
    found = efficient_backward(grad, *given, bias, out, *rest, 0.4, [True] * 4, True)
    for ours, theirs in zip(found, tp.autograd.grad(out, [*given, bias], grad), strict=True):
        tp.testing.assert_close(ours, theirs, **CLOSE)
    assert not tp.equal(flash(*given, 0.4)[0], made[0]), "the next draw is another"


def test_a_dropout_keeps_the_mean() -> None:
    q, v = tp.zeros(1, 1, 400, 4), tp.ones(1, 1, 500, 4)
    out = flash(q, tp.zeros(1, 1, 500, 4), v, 0.25)[0]
    assert abs(out.mean().item() - 1) < 0.01 and out.std().item() > 0
    with pytest.raises(RuntimeError, match="dropout of 1"):
        flash(q, v, v, 1.0)
    with pytest.raises(RuntimeError, match="heads"):
        flash(q[0], v, v)


def _shapes(t: Any) -> list[Any]:
    q, k = (t.zeros(2, 3, n, 4, device="meta") for n in (5, 7))
    a, e = t.ops.aten._scaled_dot_product_flash_attention(q, k, k), []
    for wanted in (True, False):
        e += t.ops.aten._scaled_dot_product_efficient_attention(q, k, k, None, wanted)
    return [
        x if x is None or isinstance(x, int) else (tuple(x.shape), str(x.dtype).partition(".")[2]) for x in (*a, *e)
    ]


def test_shapes_and_dtypes_are_torchs() -> None:
    assert _shapes(tp) == _shapes(pytest.importorskip("torch"))


def test_masks_that_do_not_fit_are_named() -> None:
    layer, one, batch = tp.nn.MultiheadAttention(4, 2), tp.ones(5, 4), tp.ones(5, 3, 4)
    with pytest.raises(AssertionError, match=r"`attn_mask` shape to be \(2, 5, 5\) but got"):
        layer(one, one, one, attn_mask=tp.zeros(3, 5, 5))
    with pytest.raises(AssertionError, match=r"key_padded_mask.shape\[1\] to be 5, but got 4"):
        layer(one, one, one, key_padding_mask=tp.zeros(4, dtype=tp.bool))
    with pytest.raises(AssertionError, match=r"key_padded_mask.shape\[0\] to be 3, but got 2"):
        layer(batch, batch, batch, key_padding_mask=tp.zeros(2, 5, dtype=tp.bool))


def test_biases_that_are_rules() -> None:
    from tensorpy.nn.attention import bias

    attend = tp.nn.functional.scaled_dot_product_attention
    for queries, keys in ((3, 5), (4, 4), (3, 1)):
        q, k = tp.rand(2, 2, queries, 4, requires_grad=True), tp.rand(2, 2, keys, 4)
        for make, offset in ((bias.causal_upper_left, 0), (bias.causal_lower_right, max(keys - queries, 0))):
            if keys < queries and make is bias.causal_lower_right:
                with pytest.warns(UserWarning, match="will produce NaNs"):
                    make(queries, keys)
                continue
            rule, mask = make(queries, keys), tp.ones(queries, keys, dtype=tp.bool).tril(offset)
            assert repr(rule) == repr(mask)
            for options in ({}, {"scale": 0.5}):
                tp.testing.assert_close(attend(q, k, k, rule, **options), attend(q, k, k, mask, **options))
            (grad,) = tp.autograd.grad(attend(q, k, k, attn_mask=rule).sum(), q)
            tp.testing.assert_close(grad, tp.autograd.grad(attend(q, k, k, mask).sum(), q)[0])
            with pytest.raises(ValueError, match="should not be used with causal=True"):
                attend(q, k, k, rule, is_causal=True)
    with pytest.raises(AssertionError, match="causal_upper_left only supports 2D tensors"):
        bias.causal_upper_left(2)
    with pytest.raises(AssertionError, match="variant must be a CausalVariant, got int"):
        bias.CausalBias(1, 2, 3)  # type: ignore[arg-type]


# ---- as a function of the weights, and kinds of kernels ----


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("mask_type", [None, 0, 1])
def test_attention_as_a_function_of_its_weights_is_the_modules(nested: bool, mask_type: int | None) -> None:
    layer = tp.nn.MultiheadAttention(8, 2, batch_first=True)
    tp.nn.init.normal_(layer.in_proj_bias)
    q, k, v = (tp.rand(2, 3, 8) for _ in range(3))
    mask = None if mask_type is None or nested else tp.rand(3, 3) > 0.9 if mask_type == 0 else tp.rand(2, 3) > 0.9
    if nested:
        q, k, v = (tp.nested.nested_tensor([t[0], t[1, :2]]) for t in (q, k, v))
    weights = layer.in_proj_weight, layer.in_proj_bias, layer.out_proj.weight, layer.out_proj.bias
    got = native_multi_head_attention(q, k, v, 8, 2, *weights, mask, True, False, mask_type)
    words = {"attn_mask" if mask_type == 0 else "key_padding_mask": mask}
    expected = layer(q, k, v, average_attn_weights=False, **words)
    for a, b in zip(got, expected, strict=True):
        padded = [t.to_padded_tensor(0.0) if t.is_nested else t for t in (a, b)]
        tp.testing.assert_close(*padded)
    assert native_multi_head_attention(q, k, v, 8, 2, *weights, need_weights=False)[1] is None


def test_a_mask_of_no_kind_is_refused() -> None:
    q, weights = tp.rand(1, 2, 4), (tp.rand(12, 4), tp.rand(12), tp.rand(4, 4), tp.rand(4))
    with pytest.raises(RuntimeError, match="mask_type is 0 or 1"):
        native_multi_head_attention(q, q, q, 4, 2, *weights, tp.ones(1, 2, dtype=tp.bool))


def test_kinds_of_kernels_are_no_numbers() -> None:
    kinds = tp.nn.attention.SDPBackend
    assert kinds.MATH != 0 and not isinstance(kinds.MATH, int) and int(kinds.FLASH_ATTENTION) == 1
    assert (str(kinds.MATH), repr(kinds.MATH), kinds(2)) == (
        "SDPBackend.MATH",
        "<SDPBackend.MATH: 0>",
        kinds.EFFICIENT_ATTENTION,
    )
