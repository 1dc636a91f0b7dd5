"""Softmax and losses against NumPy, their gradients against finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from test_products import check_gradients

import tensorpy as tp
import tensorpy.nn.functional as F
from tensorpy.testing.checks import bits

rng = np.random.default_rng(0)


def numbers(t):
    """Bits, but for the sign of a NaN."""
    return bits(t.where(~t.isnan(), tp.nan))


def softmax(x, dim):
    e = np.exp(x - x.max(dim, keepdims=True))
    return e / e.sum(dim, keepdims=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("shape", "dim"), [((5,), 0), ((4, 7), 1), ((4, 7), 0), ((3, 130), -1), ((2, 5, 70), 1)])
def test_softmax(shape, dim, dtype):
    x = (rng.standard_normal(shape) * 5).astype(dtype)
    expected = softmax(x, dim)
    np.testing.assert_allclose(np.array(F.softmax(tp.from_numpy(x), dim).tolist()), expected, rtol=1e-5, atol=1e-7)
    logs = np.array(F.log_softmax(tp.from_numpy(x), dim).tolist())
    np.testing.assert_allclose(logs, np.log(expected), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [tp.float32, tp.float64, tp.bfloat16])
@pytest.mark.parametrize("n", [1, 2, 7, 10, 16, 17, 31, 32, 33, 64, 65])
def test_rows_together_have_the_bits_of_each_alone(n, dtype):
    """Short rows are taken several at a time (csrc/cpu/softmax_rows.h), however many there are."""
    x, grad = (tp.from_numpy((rng.standard_normal((75, n)) * 8).astype(np.float32)).to(dtype) for _ in range(2))
    x[3], x[40, 0] = -tp.inf, tp.inf
    grad[1] = -0.0
    for name in ("softmax", "log_softmax"):
        y = getattr(F, name)(x, 1)
        backward = getattr(tp.ops.aten, f"_{name}_backward_data")
        for count in (1, 5, 6, 33, 75):
            assert numbers(getattr(F, name)(x[:count], 1)) == numbers(y[:count])
            assert numbers(backward(grad[:count], y[:count], 1, dtype)) == numbers(backward(grad, y, 1, dtype)[:count])
        alone = tp.cat([getattr(F, name)(row[None], 1) for row in x])
        assert numbers(y) == numbers(alone)


@pytest.mark.parametrize("dim", [0, 1])
def test_softmax_gradients(dim):
    x = rng.standard_normal((4, 3))
    check_gradients(lambda t: F.softmax(t, dim) ** 2, x)
    check_gradients(lambda t: F.log_softmax(t, dim) ** 2, x)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_cross_entropy(reduction, weighted, smoothing):
    x, classes = rng.standard_normal((6, 4)), np.array([0, 3, 2, 2, 1, 3])
    weight = rng.random(4) + 0.1 if weighted else np.ones(4)
    target = np.eye(4)[classes] * (1 - smoothing) + smoothing / 4
    rows = -(np.log(softmax(x, 1)) * target * weight).sum(1)
    rows[classes == 3] = 0
    counted = weight[classes][classes != 3].sum()
    expected = {"none": rows, "sum": rows.sum(), "mean": rows.sum() / counted}[reduction]
    given = tp.from_numpy(weight) if weighted else None

    def loss(t):
        return F.cross_entropy(
            t, tp.from_numpy(classes), given, ignore_index=3, reduction=reduction, label_smoothing=smoothing
        )

    np.testing.assert_allclose(np.array(loss(tp.from_numpy(x)).tolist()), expected)
    check_gradients(loss, x)


def test_cross_entropy_with_probabilities():
    x, p = rng.standard_normal((6, 4)), softmax(rng.standard_normal((6, 4)), 1)
    expected = -(np.log(softmax(x, 1)) * p).sum(1).mean()
    assert F.cross_entropy(tp.from_numpy(x), tp.from_numpy(p)).item() == pytest.approx(expected)


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_distances(name, reduction):
    x, y = rng.standard_normal((3, 4)) * 2, rng.standard_normal((3, 4))
    d = np.abs(x - y)
    rounded = np.where(d < 1, d * d / 2, d - 0.5)
    every = {"mse_loss": d * d, "l1_loss": d, "smooth_l1_loss": rounded, "huber_loss": rounded}[name]
    expected = {"none": every, "mean": every.mean(), "sum": every.sum()}[reduction]
    f = getattr(F, name)
    result = f(tp.from_numpy(x), tp.from_numpy(y), reduction=reduction)
    np.testing.assert_allclose(np.array(result.tolist()), expected)
    check_gradients(lambda a, b: f(a, b, reduction=reduction), x, y)


def test_binary_cross_entropy():
    x, t = rng.standard_normal((3, 4)), rng.random((3, 4))
    p = 1 / (1 + np.exp(-x))
    expected = -(t * np.log(p) + (1 - t) * np.log(1 - p)).mean()
    assert F.binary_cross_entropy(tp.from_numpy(p), tp.from_numpy(t)).item() == pytest.approx(expected)
    assert F.binary_cross_entropy_with_logits(tp.from_numpy(x), tp.from_numpy(t)).item() == pytest.approx(expected)


@pytest.mark.parametrize("dtype", [tp.float32, tp.float64])
@pytest.mark.parametrize("positive", [None, 2.0])
def test_logits_that_are_sure_keep_their_digits(dtype, positive):
    x = np.array([-700.0, -80.0, -40.0, -17.0, -1e-30, 0.0, 1e-30, 17.0, 40.0, 80.0, 700.0])
    a = tp.tensor(x, dtype=dtype, requires_grad=True)
    scale = None if positive is None else tp.tensor(positive, dtype=dtype)
    for target in (0.0, 1.0):
        losses = F.binary_cross_entropy_with_logits(
            a, tp.full((11,), target, dtype=dtype), reduction="none", pos_weight=scale
        )
        (slope,) = tp.autograd.grad(losses, a, tp.ones_like(a))
        sign, factor = (1, 1.0) if target == 0 else (-1, positive or 1.0)
        near = {"rtol": 1e-6 if dtype is tp.float32 else 1e-13, "atol": 1e-37 if dtype is tp.float32 else 0}
        np.testing.assert_allclose(losses.detach().numpy(), factor * np.logaddexp(0, sign * x), **near)
        np.testing.assert_allclose(slope.numpy(), sign * factor * np.exp(-np.logaddexp(0, -sign * x)), **near)


def test_logits_differentiate_twice():
    logits, target = (tp.tensor(rng.uniform(-2, 2, 6), dtype=tp.float64, requires_grad=True) for _ in range(2))
    weight = tp.tensor(rng.uniform(1, 3, 6), dtype=tp.float64, requires_grad=True)

    def losses(a, t, p=None):
        return F.binary_cross_entropy_with_logits(a, t, reduction="none", pos_weight=p)

    for arguments in ((logits, target), (logits, target, weight)):
        assert tp.autograd.gradcheck(losses, arguments)
        assert tp.autograd.gradgradcheck(losses, arguments)


def test_infinite_logits_have_a_slope():
    a = tp.tensor([np.inf, -np.inf], requires_grad=True)
    F.binary_cross_entropy_with_logits(a, tp.tensor([1.0, 0.0]), reduction="sum").backward()
    assert a.grad.tolist() == [0, 0]


@pytest.mark.parametrize("given", [{}, {"weight": tp.ones(2)}, {"pos_weight": tp.ones(2)}, {"reduction": "none"}])
@pytest.mark.parametrize("dtype", [tp.bool, tp.int32, tp.int64])
def test_targets_of_logits_are_floating_numbers(dtype: tp.dtype, given: dict[str, object]) -> None:
    target = tp.tensor([1, 0]).to(dtype)
    with pytest.raises(RuntimeError, match="targets are floating numbers"):
        F.binary_cross_entropy_with_logits(tp.zeros(2), target, **given)
    losses = F.binary_cross_entropy_with_logits(tp.zeros(2), target.double(), **given)
    assert losses.numpy() == pytest.approx(np.log(2))


def test_huber_with_weights():
    x, y, w = tp.tensor([1.0, 3.0]), tp.zeros(2), tp.tensor([1.0, 3.0])
    assert F.huber_loss(x, y, "none", 1.0, w).tolist() == [0.5, 7.5]
    assert F.huber_loss(x, y, "sum", weight=w).item() == 8.0
    assert F.huber_loss(x, y, weight=w).item() == 4.0


def test_bad_targets():
    with pytest.raises(IndexError):
        F.nll_loss(tp.zeros(2, 3), tp.tensor([0, 3]))
    with pytest.raises(ValueError):
        F.nll_loss(tp.zeros(2, 3), tp.tensor([0, 1, 2]))
    with pytest.raises(ValueError):
        F.mse_loss(tp.zeros(2), tp.zeros(2), reduction="average")


@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_gradient_operators_are_what_autograd_gives(reduction: int) -> None:
    x = tp.rand(3, 4, dtype=tp.float64) * 0.8 + 0.1
    target = tp.rand(3, 4, dtype=tp.float64)
    for name, more in (
        ("mse_loss", ()),
        ("smooth_l1_loss", (0.3,)),
        ("huber_loss", (0.3,)),
        ("soft_margin_loss", ()),
        ("binary_cross_entropy", (None,)),
    ):
        t = x.clone().requires_grad_()
        order = (*more, reduction) if name == "binary_cross_entropy" else (reduction, *more)
        loss = getattr(tp._C._nn, name)(t, target, *order)
        grad = tp.rand_like(loss)
        loss.backward(grad)
        direct = getattr(tp._C._nn, name + "_backward")(grad, x, target, *order)
        tp.testing.assert_close(direct, t.grad)


def test_losses_refuse_what_they_cannot_take() -> None:
    x = tp.rand(3)
    with pytest.raises(RuntimeError, match="between 0 and 1"):
        F.binary_cross_entropy(x + 1, x)
    with pytest.raises(RuntimeError, match="negative values for beta"):
        F.smooth_l1_loss(x, x, beta=-1.0)
    with pytest.raises(RuntimeError, match="non-positive values for delta"):
        F.huber_loss(x, x, delta=0.0)
    with pytest.raises(ValueError, match="margin must be greater than 0"):
        F.triplet_margin_loss(x, x, x, margin=-1.0)
    with pytest.raises(ValueError, match="negative entry"):
        F.gaussian_nll_loss(x, x, -x - 1)


# ---- dtypes that differ ----


@pytest.mark.parametrize("loss", [F.huber_loss, F.soft_margin_loss])
@pytest.mark.parametrize("target", [tp.float16, tp.float64, tp.int64, tp.bool])
def test_the_loss_has_the_dtype_of_its_input(loss, target):
    x, y = tp.tensor([0.5, 1.0]), tp.tensor([1, 0]).to(target)
    got = loss(x, y)
    assert got.dtype == tp.float32
    assert abs(got.item() - loss(x, y.to(tp.float32)).item()) < 1e-6
    with pytest.raises(RuntimeError, match="can't be cast"):
        loss(tp.tensor([1, 2]), tp.tensor([0.5, 1.0]))


def test_losses_that_refuse_dtypes():
    x = tp.tensor([0.5, 0.25])
    for other in (tp.float64, tp.int64, tp.bool):
        with pytest.raises(RuntimeError, match="expected Float"):
            F.binary_cross_entropy(x, x.to(other))
    for a, b in ((x, tp.tensor([1, 0])), (tp.tensor([1, 0]), x)):
        with pytest.raises(RuntimeError, match="Integral inputs"):
            F.kl_div(a, b)
    with pytest.raises(RuntimeError, match="could not infer output dtype"):
        F.l1_loss(tp.tensor([1, 2]), tp.tensor([0, 2]))


def test_log_sigmoid_forward_has_no_gradient_through_its_buffer():
    x = tp.tensor([1.0, 2.0], requires_grad=True)
    output, buffer = tp.ops.aten.log_sigmoid_forward(x)
    assert not buffer.requires_grad
    output.sum().backward()
    np.testing.assert_allclose(x.grad.tolist(), [1 / (1 + np.exp(1)), 1 / (1 + np.exp(2))], rtol=1e-6)


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
def test_a_target_of_other_sizes_is_warned_of(name):
    with pytest.warns(UserWarning, match="due to broadcasting"):
        getattr(tp.nn.functional, name)(tp.ones(3, 1), tp.ones(3))


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_composed_losses_are_operators_with_torchs_values(reduction: str) -> None:
    torch = pytest.importorskip("torch")
    values = np.random.default_rng(4).normal(size=(3, 4)).astype("float32")

    def outcome(lib):
        x = lib.from_numpy(values).requires_grad_()
        target = (lib.arange(12).reshape(3, 4) % 2).float()
        variance = lib.tensor([[0.5], [0.0], [2.0]]).requires_grad_()
        functional = lib.nn.functional
        results = [
            functional.multilabel_soft_margin_loss(x, target, reduction=reduction),
            functional.multilabel_soft_margin_loss(x, target, lib.tensor([1.0, 2.0, 3.0, 4.0]), reduction=reduction),
            functional.gaussian_nll_loss(x, target, variance, full=True, eps=1e-2, reduction=reduction),
            functional.gaussian_nll_loss(x, target, 2.0, reduction=reduction),
        ]
        sum(r.sum() for r in results).backward()
        return [t.detach().numpy() for t in (*results, x.grad, variance.grad)]

    for ours, theirs in zip(outcome(tp), outcome(torch), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
