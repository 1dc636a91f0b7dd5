"""Gradients through views and in-place operators, and what is refused."""

from __future__ import annotations

import pytest

import tensorpy as tp
from tensorpy.autograd import gradcheck, gradgradcheck
from tensorpy.autograd.graph import increment_version


def t(*values):
    return tp.tensor(list(values), dtype=tp.float64, requires_grad=True)


# ---- views and in-place operators ----


def test_inplace():
    x = t(1.0, 2.0)
    y = x * 3
    y.mul_(y.detach().clone())
    assert y._version == 1 and y.grad_fn.name() == "MulBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [9.0, 18.0]


@pytest.mark.parametrize("name", ["eq_", "ne_", "lt_", "le_", "gt_", "ge_", "logical_and_", "logical_xor_"])
def test_a_comparison_in_place_has_slope_0(name):
    """What it is written into may want a gradient, and so may what it is compared with."""
    x, other = t(1.0, 2.0), t(2.0, 1.0)
    y = x * 3
    getattr(y, name)(other.detach() if name.startswith("logical") else other)
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]
    assert name.startswith("logical") or other.grad.tolist() == [0.0, 0.0]


def test_what_is_new_has_version_0():
    """However many steps it took to fill it."""
    a = tp.ones(2, 2)
    for new in (
        tp.ones(2), tp.zeros(2), tp.full((2,), 3), tp.eye(3), tp.rand(2), tp.randn(2), tp.randint(0, 3, (2,)),
        tp.ones_like(a), tp.full_like(a, 2), tp.rand_like(a), a.new_zeros(2), a.new_ones(2), a.new_full((2,), 1),
        tp.normal(0.0, 1.0, (2,)), tp.bernoulli(a), tp.scalar_tensor(2), tp.index_add(a, 0, tp.tensor([0]), a[:1]),
    ):  # fmt: skip
        assert new._version == 0


def test_inplace_on_leaf_is_refused():
    x = t(1.0, 2.0)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="view of a leaf Variable"):
        x[0].add_(1)
    assert x.tolist() == [1.0, 2.0]
    with tp.no_grad():
        x.add_(1)
        x[0].mul_(5)
    assert x.tolist() == [10.0, 3.0] and x._version == 2


def test_inplace_on_a_view():
    x = t(1.0, 2.0, 3.0)
    y = x * 1
    v = y[1:]
    v.mul_(5)
    assert y.grad_fn.name() == "torch::autograd::CopySlices" and v.grad_fn.name() == "AsStridedBackward0"
    (y * y).sum().backward()
    assert x.grad.tolist() == [2.0, 2 * 10 * 5, 2 * 15 * 5]


def test_gradient_through_the_view_itself():
    x = t(1.0, 2.0, 3.0)
    y = x * 1
    v, w = y[1:], y[:2]
    v.mul_(5)
    w.add_(1)
    (v.sum() + w.sum() * 2).backward()
    assert x.grad.tolist() == [2.0, 15.0, 5.0]


def test_base_changed_after_the_view_was_made():
    x = t(1.0, 2.0)
    y = x * 1
    v = y[0]
    y.mul_(4)
    v.backward()
    assert x.grad.tolist() == [4.0, 0.0]


def test_view_of_a_base_without_grad_gains_one():
    x = t(5.0)
    y = tp.zeros(3, dtype=tp.float64)
    v = y[0:1]
    y[1:2].copy_(x)
    assert y.requires_grad and v.requires_grad
    (y * 2).sum().backward()
    assert x.grad.tolist() == [2.0]


def test_writing_a_tensor_into_a_slice():
    x, w = t(1.0, 2.0, 3.0), t(7.0)
    y = x * 2
    y[1:2] = w
    (y * tp.tensor([1.0, 10.0, 100.0], dtype=tp.float64)).sum().backward()
    assert x.grad.tolist() == [2.0, 0.0, 200.0] and w.grad.tolist() == [10.0]


def test_double_backward_through_copy_slices():
    x = t(1.0, 2.0, 3.0)

    def f(x):
        y = x * x
        y[1:].mul_(x[:2])
        return y * y

    assert gradcheck(f, (x,)) and gradgradcheck(f, (x,))


def test_inplace_on_the_real_part():
    z = tp.tensor([1 + 2j, 3 - 1j], dtype=tp.complex128, requires_grad=True)
    x = t(2.0, 5.0)

    def f(z, x):
        w = z * 2
        w.real.mul_(x)
        return w * w

    assert gradcheck(f, (z, x)) and gradgradcheck(f, (z, x))


def test_inplace_on_a_complex_view():
    x = tp.tensor([[1.0, 2.0], [3.0, -1.0]], dtype=tp.float64, requires_grad=True)

    def f(x):
        y = x * 2
        tp.view_as_complex(y).mul_(1 + 3j)
        return y * y

    assert gradcheck(f, (x,)) and gradgradcheck(f, (x,))


def test_views_that_may_not_be_written():
    y = t(1.0, 2.0) * 1
    with pytest.raises(RuntimeError, match="multiple views"):
        y.split_with_sizes([1, 1])[0].mul_(2)
    with tp.no_grad():
        v = y[0]
    with pytest.raises(RuntimeError, match="no_grad"):
        v.mul_(2)


def test_detach_shares_versions():
    x = t(2.0) * 1
    d = x.detach()
    y = x * x
    d.add_(1)
    assert not d.requires_grad and x._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        y.backward()


def test_changed_value_names_both_operators():
    x = t(2.0) * 1
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"ExpBackward0.*exp.*add_") as info:
        y.backward()
    assert "at version 1; expected version 0" in str(info.value)
    x = t(2.0) * 1
    y = x * x
    increment_version(x)
    with pytest.raises(RuntimeError, match="increment_version"):
        y.backward()


def test_data_is_not_tracked():
    x = t(2.0) * 1
    y = x * x
    x.data.add_(1)
    y.backward()
    assert x._version == 0


def test_inference_tensors_stay_out_of_graphs():
    with tp.inference_mode():
        x = tp.ones(2)
        x.add_(1)
        tp.add(x, x, out=x)
    assert x.is_inference() and x.tolist() == [4.0, 4.0]
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
        x._version  # noqa: B018
    for write in (lambda: x.add_(1), lambda: x[0].zero_(), lambda: tp.add(x, x, out=x), lambda: x.detach().mul_(2)):
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
            write()
    w = tp.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        x * w
    (w + x).sum().backward()
    (w * x.clone()).sum().backward()
    assert w.grad.tolist() == [5.0, 5.0] and x.tolist() == [4.0, 4.0]


def test_out_with_grad_is_refused():
    with pytest.raises(RuntimeError, match="out="):
        tp.add(t(1.0), t(1.0), out=tp.empty(1, dtype=tp.float64))


def test_requires_grad_flags():
    x = t(1.0)
    with pytest.raises(RuntimeError, match="leaf"):
        (x * 2).requires_grad = False
    with pytest.raises(RuntimeError, match="floating point"):
        tp.ones(1, dtype=tp.int64).requires_grad_()
    assert x.requires_grad_(requires_grad=False) is x and not x.requires_grad
    assert x.requires_grad_().requires_grad


def test_assigning_grad():
    x = t(1.0, 2.0)
    for bad in (tp.ones(3, dtype=tp.float64), tp.ones(2), x):
        with pytest.raises(RuntimeError):
            x.grad = bad
    with pytest.raises(TypeError):
        x.grad = 3
    x.grad = tp.ones(2, dtype=tp.float64)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


VIEWS = {
    "itself": lambda b: b,
    "b[..., :]": lambda b: b[..., :],
    "b[0:1]": lambda b: b[0:1],
    "b[0]": lambda b: b[0],
    "b[None]": lambda b: b[None],
    "view": lambda b: b.view(2, 1),
    "view_as": lambda b: b.view_as(b),
    "t": lambda b: b.t(),
    "narrow": lambda b: b.narrow(0, 1, 1),
    "unfold": lambda b: b.unfold(0, 1, 1),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("asked", [(), ("is_leaf",), ("requires_grad",), ("grad_fn",)])
def test_a_view_of_a_base_that_was_recorded_is_no_leaf(view, asked):
    """Whatever was asked of the view before it is written to, and nothing."""
    d = tp.ones(3, dtype=tp.float64, requires_grad=True)
    matrix = tp.zeros(3, 3, dtype=tp.float64)
    diagonal, above = matrix.diagonal(), matrix.diagonal(1)
    part = VIEWS[view](above)
    diagonal.copy_(d)
    for name in asked:
        getattr(part, name)
    part.add_(d[0])
    assert not part.is_leaf and part.requires_grad
    matrix.sum().backward()
    assert d.grad.tolist() == [1 + part.numel(), 1, 1]


def test_writes_of_parameters_are_seen() -> None:
    """A parameter that was written after it was saved, without a history of the write, gives no gradient."""
    made = tp.ones(3)
    for w in (tp.nn.Parameter(made), tp.nn.Parameter(tp.ones(3).data), tp.nn.Linear(3, 1).weight):
        before = w._version
        y = (w * w).sum()
        with tp.no_grad():
            w.mul_(2)
        assert w._version == before + 1
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()
    assert made._version == 1  # they are one memory
    w = tp.nn.Parameter(tp.ones(3))
    y = (w * w).sum()
    w.data.mul_(2)  # what asks not to be seen
    y.backward()
    assert w._version == 0


# ---- batches of gradients through changes of views ----


def _contiguous(x):
    return x * 2


def _transposed(x):
    return (x * 2).t().clone(memory_format=tp.preserve_format)


def _by_strides(x):
    return tp.empty_strided((3, 3), (1, 4), dtype=x.dtype).copy_(x)


CHANGES = {
    "mul_": lambda y, x: y[1:].mul_(x[1:]),
    "copy_": lambda y, x: y[:, 0].copy_(x[0]),
    "assigned": lambda y, x: y.__setitem__((slice(1), 2), x[1, :1] * x[0, 0]),
    "of a diagonal": lambda y, x: y.diagonal().sin_(),
    "of two views": lambda y, x: (y.t()[1:].mul_(2), y[0].exp_()),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("base", [_contiguous, _transposed, _by_strides])
def test_several_gradients_at_once_are_those_of_one_at_a_time(base, change):
    """The gradient of the base has the base's strides in each sample, in the second derivative too."""
    x = tp.arange(1.0, 10.0, dtype=tp.float64).reshape(3, 3).div_(5).requires_grad_()
    y = base(x)
    CHANGES[change](y, x)
    seeds = tp.arange(18.0, dtype=tp.float64).reshape(2, 3, 3).requires_grad_()
    (first,) = tp.autograd.grad(y, x, seeds[0], create_graph=True)
    for output, wanted in ((y, x), (first, seeds)):
        alone = [tp.autograd.grad(output, wanted, seed, retain_graph=True)[0] for seed in seeds]
        (together,) = tp.autograd.grad(output, wanted, seeds, retain_graph=True, is_grads_batched=True)
        assert together.tolist() == tp.stack(alone).tolist()


def test_batched_memory_by_strides_lies_as_that_of_a_sample():
    strides = []

    def one(x):
        y = x.new_empty_strided((2, 3), (1, 2))
        strides.append(y.stride())
        return y.copy_(x)

    x = tp.arange(12.0).reshape(2, 2, 3)
    assert tp.vmap(one)(x).tolist() == x.tolist() and strides == [(1, 2)]


def test_batched_gradients_are_not_written() -> None:
    """Two gradients meet at x, each a view of what was given: their sum has memory of its own."""
    x = tp.randn(3, requires_grad=True)
    row, column = x.view(1, 3), x.view(3, 1)
    to_row, to_column = tp.eye(3).reshape(3, 1, 3).clone(), tp.ones(3, 3, 1)
    (together,) = tp.autograd.grad((row, column), (x,), (to_row, to_column), is_grads_batched=True)
    assert together.tolist() == (tp.eye(3) + 1).tolist()
    assert to_row.tolist() == tp.eye(3).reshape(3, 1, 3).tolist()
    assert to_column.tolist() == tp.ones(3, 3, 1).tolist()
