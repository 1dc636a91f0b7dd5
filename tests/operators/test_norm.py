"""Normalisation, embedding and attention against NumPy, their gradients against finite differences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from programs import run
from test_products import check_gradients

import tensorpy as tp
import tensorpy.nn.functional as F
from tensorpy.autograd import gradcheck, gradgradcheck

rng = np.random.default_rng(0)


def standardised(x, axes):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)


def test_layer_norm():
    x, w, b = rng.standard_normal((3, 4, 5)), rng.standard_normal((4, 5)), rng.standard_normal((4, 5))
    result = F.layer_norm(*(tp.from_numpy(x), (4, 5), tp.from_numpy(w), tp.from_numpy(b)))
    np.testing.assert_allclose(np.array(result.tolist()), standardised(x, (1, 2)) * w + b)
    check_gradients(lambda t, v, c: F.layer_norm(t, (4, 5), v, c) ** 2, x, w, b, tolerance=1e-4)


def test_group_norm():
    x, w, b = rng.standard_normal((2, 6, 3)), rng.standard_normal(6), rng.standard_normal(6)
    result = F.group_norm(tp.from_numpy(x), 2, tp.from_numpy(w), tp.from_numpy(b))
    expected = standardised(x.reshape(2, 2, 9), 2).reshape(2, 6, 3) * w[:, None] + b[:, None]
    np.testing.assert_allclose(np.array(result.tolist()), expected)
    check_gradients(lambda t, v, c: F.group_norm(t, 2, v, c) ** 2, x, w, b, tolerance=1e-4)


def test_batch_norm():
    x = rng.standard_normal((4, 3, 5))
    mean, var = tp.zeros(3, dtype=tp.float64), tp.ones(3, dtype=tp.float64)
    result = F.batch_norm(tp.from_numpy(x), mean, var, training=True)
    np.testing.assert_allclose(np.array(result.tolist()), standardised(x, (0, 2)))
    np.testing.assert_allclose(mean.tolist(), 0.1 * x.mean((0, 2)))
    np.testing.assert_allclose(var.tolist(), 0.9 + 0.1 * x.var((0, 2), ddof=1))
    check_gradients(lambda t: F.batch_norm(t, None, None, training=True) ** 3, x, tolerance=1e-4)


def test_rms_norm():
    x, w = rng.standard_normal((3, 5)), rng.standard_normal(5)
    expected = x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-3) * w
    result = F.rms_norm(tp.from_numpy(x), (5,), tp.from_numpy(w), 1e-3)
    np.testing.assert_allclose(np.array(result.tolist()), expected)
    wide = x + 1j * rng.standard_normal((3, 5))  # the root of the mean square of complex numbers is complex
    np.testing.assert_allclose(
        F.rms_norm(tp.from_numpy(wide), (5,), eps=1e-3).numpy(), wide / np.sqrt((wide**2).mean(1, keepdims=True) + 1e-3)
    )
    assert F.rms_norm(tp.ones(0, 5), (5,)).shape == (0, 5)


@pytest.mark.parametrize(("shape", "normalised"), [((3, 5), (5,)), ((2, 3, 4), (3, 4)), ((4,), (4,))])
@pytest.mark.parametrize("affine", [True, False])
def test_rms_norm_gradients(shape: tuple[int, ...], normalised: tuple[int, ...], affine: bool) -> None:
    """First, second and third ones, tangents, and those of the reciprocal root, which `_fused_rms_norm` gives too."""
    source = tp.Generator().manual_seed(0)
    inputs = [tp.randn(s, dtype=tp.float64, generator=source).requires_grad_() for s in (shape, normalised)]
    inputs = inputs[: 1 + affine]

    def both(x: tp.Tensor, w: tp.Tensor | None = None) -> tuple[tp.Tensor, tp.Tensor]:
        return tp.ops.aten._fused_rms_norm(x, normalised, w, 1e-3)

    gradcheck(both, inputs, check_forward_ad=True, check_batched_grad=True)
    gradgradcheck(both, inputs, check_batched_grad=True)

    def slope(x: tp.Tensor, *w: tp.Tensor) -> tp.Tensor:
        return tp.func.grad(lambda t: F.rms_norm(t, normalised, *w, eps=1e-3).pow(3).sum())(x)

    gradgradcheck(slope, inputs)


def test_rms_norm_of_samples() -> None:
    source = tp.Generator().manual_seed(0)
    x, w = (tp.randn(s, dtype=tp.float64, generator=source) for s in ((4, 3, 5), (4, 5)))

    def loss(x: tp.Tensor, w: tp.Tensor) -> tp.Tensor:
        return F.rms_norm(x, (5,), w).pow(3).sum()

    slopes = tp.func.grad(loss, argnums=(0, 1))
    for together, apart in zip(tp.func.vmap(slopes)(x, w), zip(*map(slopes, x, w), strict=True), strict=True):
        tp.testing.assert_close(together, tp.stack(list(apart)))
    tp.testing.assert_close(tp.func.vmap(loss, (0, None))(x, w[0]), tp.stack([loss(t, w[0]) for t in x]))


def test_embedding():
    table, index = rng.standard_normal((7, 3)), np.array([[1, 2], [2, 6]])
    t = tp.from_numpy(table).requires_grad_()
    result = F.embedding(tp.from_numpy(index), t, padding_idx=6)
    np.testing.assert_array_equal(np.array(result.tolist()), table[index])
    result.sum().backward()
    assert [row[0] for row in t.grad.tolist()] == [0, 1, 2, 0, 0, 0, 0]
    with pytest.raises(IndexError):
        F.embedding(tp.tensor([7]), t)


@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal):
    q, k, v = (rng.standard_normal(s) for s in ((2, 4, 3), (2, 5, 3), (2, 5, 6)))
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(3)
    if causal:
        scores = np.where(np.tril(np.ones((4, 5), dtype=bool)), scores, -np.inf)
    e = np.exp(scores)
    expected = e / e.sum(-1, keepdims=True) @ v
    result = F.scaled_dot_product_attention(*(tp.from_numpy(a) for a in (q, k, v)), is_causal=causal)
    np.testing.assert_allclose(np.array(result.tolist()), expected)


@pytest.mark.parametrize("shape", [(3, 4), (3, 4, 2), (2, 4, 2, 2)])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("affine", [True, False])
def test_batch_norm_second_gradients(shape: tuple[int, ...], training: bool, affine: bool) -> None:
    x = tp.randn(*shape, dtype=tp.float64, requires_grad=True)
    more = tuple(tp.randn(4, dtype=tp.float64, requires_grad=True) for _ in range(2)) if affine else ()
    mean, var = tp.zeros(4, dtype=tp.float64), tp.ones(4, dtype=tp.float64)

    def norm(t: tp.Tensor, *rest: tp.Tensor) -> tp.Tensor:
        return F.batch_norm(t, mean.clone(), var.clone(), *rest, training=training)

    assert gradcheck(norm, (x, *more))
    assert gradgradcheck(norm, (x, *more))


@pytest.mark.parametrize("affine", [True, False])
def test_other_norms_second_gradients(affine: bool) -> None:
    x = tp.randn(2, 4, 3, dtype=tp.float64, requires_grad=True)
    rows = tuple(tp.randn(3, dtype=tp.float64, requires_grad=True) for _ in range(2)) if affine else ()
    channels = tuple(tp.randn(4, dtype=tp.float64, requires_grad=True) for _ in range(2)) if affine else ()
    for check in (gradcheck, gradgradcheck):
        assert check(lambda t, *rest: F.layer_norm(t, (3,), *rest), (x, *rows))
        assert check(lambda t, *rest: F.group_norm(t, 2, *rest), (x, *channels))
        assert check(lambda t, *rest: F.instance_norm(t, None, None, *rest), (x, *channels))


def test_running_statistics() -> None:
    x, mean, var = tp.randn(8, 3, 4), tp.zeros(3), tp.ones(3)
    F.batch_norm(x, mean, var, training=True, momentum=0.5)
    tp.testing.assert_close(mean, 0.5 * x.mean([0, 2]))
    tp.testing.assert_close(var, 0.5 + 0.5 * x.transpose(0, 1).flatten(1).var(1))
    before = mean.clone()
    F.instance_norm(x, mean, var, use_input_stats=True, momentum=1.0)
    tp.testing.assert_close(mean, x.mean([0, 2]))
    F.batch_norm(x, mean, var, training=False)
    assert not tp.equal(mean, before)
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        F.batch_norm(tp.randn(1, 3), None, None, training=True)
    with pytest.raises(RuntimeError, match="should contain 3 elements"):
        F.batch_norm(x, tp.zeros(2), var)


def test_threads_do_not_change_norms() -> None:
    x, w = tp.randn(64, 300), tp.randn(300)
    results = []
    for n in (1, 2, 3):
        tp.set_num_threads(n)
        t = x.clone().requires_grad_()
        v = w.clone().requires_grad_()
        F.layer_norm(t, (300,), v).square().sum().backward()
        results.append((t.grad, v.grad))
    assert all(tp.equal(a, b) for r in results[1:] for a, b in zip(r, results[0], strict=True))


def test_embedding_shortens_rows() -> None:
    table = tp.tensor([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0]])
    out = F.embedding(tp.tensor([0, 1, 0]), table, max_norm=1.0)
    tp.testing.assert_close(table, tp.tensor([[0.6, 0.8], [0.3, 0.4], [6.0, 8.0]]))
    assert tp.equal(out[0], table[0])
    with pytest.raises(IndexError, match="out of range"):
        tp.embedding_renorm_(table, tp.tensor([3]), 1.0, 2.0)


@pytest.mark.parametrize("affine", [False, True])
def test_gradients_of_group_statistics(affine: bool) -> None:
    """The mean and the reciprocal deviation of native_group_norm have gradients, alone and with the output's."""
    x = tp.randn(2, 6, 5, dtype=tp.float64, requires_grad=True)
    w = tp.randn(6, dtype=tp.float64, requires_grad=True) if affine else None
    for kept in ((1,), (2,), (1, 2), (0, 1, 2)):

        def some(x: tp.Tensor, *w: tp.Tensor) -> list[tp.Tensor]:
            got = tp.native_group_norm(x, w[0] if w else None, None, 2, 6, 5, 3, 1e-5)
            return [got[i] for i in kept]  # noqa: B023

        inputs = [x, w] if affine and 0 in kept else [x]
        assert gradcheck(some, inputs) and gradgradcheck(some, inputs)


def test_backward_refuses_statistics_that_do_not_fit() -> None:
    x, one = tp.rand(4, 4), tp.ones(1)
    everything = [True, True, True]
    with pytest.raises(RuntimeError, match="native_layer_norm_backward: grad_out, mean or rstd does not fit"):
        tp.native_layer_norm_backward(one, x, [4], one, one, None, None, everything)
    with pytest.raises(RuntimeError, match="native_batch_norm_backward: grad_out or the saved statistics do not fit"):
        tp.native_batch_norm_backward(x, x, None, None, None, one, one, True, 1e-5, everything)


STATEFUL: dict[str, Callable[[tp.Tensor, tp.Tensor, tp.Tensor], tp.Tensor]] = {
    "batch_norm": lambda x, m, v: tp.nn.functional.batch_norm(x, m, v, training=True),
    "batch_norm of 16-bit numbers": lambda x, m, v: tp.nn.functional.batch_norm(x.half(), m, v, training=True),
    "instance_norm": lambda x, m, v: tp.nn.functional.instance_norm(x, m, v, use_input_stats=True),
}


@pytest.mark.parametrize(
    ("what", "statistics"),
    [(w, s) for w in STATEFUL for s in (tp.float32, tp.float64) if s == tp.float32 or "16-bit" not in w],
)
def test_a_step_that_fails_moves_no_statistics(what, statistics):
    """With each allocation failing in turn."""
    x = tp.randn(4, 3, 5)
    x = x if statistics == tp.float32 else x.to(statistics)
    for n in range(200):
        mean, var, failed = tp.zeros(3, dtype=statistics), tp.ones(3, dtype=statistics), False
        tp._C._fail_allocation_after(n)
        try:
            STATEFUL[what](x, mean, var)
        except (MemoryError, RuntimeError):
            failed = True
        reached = not tp._C._fail_allocation_after(-1)
        moved = [mean.ne(0).any().item(), var.ne(1).any().item()]
        assert moved == [not failed] * 2, f"allocation {n}"
        if not reached:
            break
    assert n > 3


def test_interrupted_steps_move_no_statistics():
    run("""
        def interrupt(*_): raise KeyboardInterrupt
        x, mean, var = tp.ones(1).expand(1 << 20, 4, 1 << 8), tp.zeros(4), tp.ones(4)
        signal.signal(signal.SIGALRM, interrupt)
        for after in (0.05, 0.2, 0.5):
            signal.setitimer(signal.ITIMER_REAL, after)
            try:
                tp.nn.functional.batch_norm(x, mean, var, training=True)
                signal.setitimer(signal.ITIMER_REAL, 0)
                break
            except KeyboardInterrupt:
                assert mean.eq(0).all() and var.eq(1).all()
    """)


def test_an_eps_of_zero():
    """In a batch, a channel of one value is all zeros."""
    x = tp.tensor([[1.0, 1.0], [1.0, 3.0]])
    out, mean, rstd = tp.native_batch_norm(x, None, tp.tensor([5.0, 0.0]), None, None, True, 0.1, 0.0)
    assert out.tolist() == [[5.0, -1.0], [5.0, 1.0]] and mean.tolist() == [1.0, 2.0] and rstd.tolist() == [0.0, 1.0]


EMPTY: list[tuple[str, tuple[int, ...], int, Callable[..., tp.Tensor]]] = [
    ("layer_norm", (0, 4), 4, lambda x, w, b: F.layer_norm(x, [4], w, b)),
    ("layer_norm of nothing", (3, 0), 0, lambda x, w, b: F.layer_norm(x, [0], w, b)),
    ("batch_norm", (0, 3, 4), 3, lambda x, w, b: F.batch_norm(x, None, None, w, b, True)),
    ("batch_norm of statistics", (0, 3, 4), 3, lambda x, w, b: F.batch_norm(x, b.detach(), w.detach(), w, b, False)),
    ("batch_norm without places", (2, 3, 0), 3, lambda x, w, b: F.batch_norm(x, None, None, w, b, True)),
    ("group_norm", (0, 4, 3), 4, lambda x, w, b: F.group_norm(x, 2, w, b)),
    ("group_norm without places", (2, 4, 0), 4, lambda x, w, b: F.group_norm(x, 2, w, b)),
]


@pytest.mark.parametrize(("shape", "width", "norm"), [case[1:] for case in EMPTY], ids=[case[0] for case in EMPTY])
def test_second_gradients_without_elements(shape: tuple[int, ...], width: int, norm: Callable[..., tp.Tensor]) -> None:
    x, w, b = (tp.rand(size, dtype=tp.float64, requires_grad=True) for size in (shape, (width,), (width,)))
    y = norm(x, w, b)
    slope = tp.zeros_like(y, requires_grad=True)
    first = tp.autograd.grad(y, (x, w, b), slope, create_graph=True)
    second = tp.autograd.grad(first, (x, w, slope), [tp.ones_like(g) for g in first])
    assert [tuple(g.shape) for g in second] == [shape, (width,), shape]
    assert not any(g.any() for g in second)
