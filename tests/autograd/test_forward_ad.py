"""Forward mode: every operator of the table, and what dual tensors do."""

from __future__ import annotations

import gc
import itertools
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from forward import DTYPES, cases, check, check_columns, check_gradient

import tensorpy as tp
from codegen.forward import forward_of
from tensorpy import _C, func, vmap
from tensorpy.autograd import forward_ad as fw
from tensorpy.autograd import gradcheck
from tensorpy.fx.experimental.proxy_tensor import make_fx
from tensorpy.testing import assert_close
from tensorpy.testing.harness import over
from tensorpy.testing.samples import TABLE, OpInfo
from tensorpy.testing.samples.catalog import CATALOG


def _smooth(info: OpInfo) -> bool:
    return info.differentiable and bool(set(DTYPES) & set(info.dtypes))


@over(_smooth)
def test_operator(info: OpInfo, device: str) -> None:
    """The tangent by each input alone, and by all."""
    for case in cases(info, device, 6):
        for places in case.choices():
            check(case, places)


@over(_smooth)
def test_columns(info: OpInfo, device: str) -> None:
    """Directions of a batch at values that have none, as a Jacobian is computed by columns."""
    for case in cases(info, device, 2):
        for places in case.choices():
            check_columns(case, places)


@over(lambda info: _smooth(info) and info.variant("inplace"))
def test_inplace_columns(info: OpInfo, device: str) -> None:
    for case in cases(info, device, 1, inplace=True):
        for places in case.choices():
            check_columns(case, places)


@over(lambda info: _smooth(info) and info.variant("inplace"))
def test_inplace(info: OpInfo, device: str) -> None:
    for case in cases(info, device, 3, inplace=True):
        for places in case.choices():
            check(case, places)


@over(lambda info: _smooth(info) and info.gradgradcheck)
def test_forward_over_reverse(info: OpInfo, device: str) -> None:
    """The tangents of gradients: a backward pass meets those of what was saved."""
    for case in cases(info, device, 3):
        check_gradient(case, tuple(range(len(case.inputs))))


# What has a differentiable backward and no forward formula: its tangent is the gradient of a gradient, which is slower.
TWICE = {
    "_c10d_functional::all_reduce_coalesced",
    "_c10d_functional::reduce_scatter_tensor_coalesced",
    "_fake_quantize_learnable_per_channel_affine",
    "_fake_quantize_learnable_per_tensor_affine",
    "_fused_rms_norm_backward",
    "_linalg_eigvals",
    "_linalg_svd",
    "_recurrent_layer",
    "_sample_dirichlet",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_standard_gamma",
    "aminmax",
    "binary_cross_entropy",
    "cumprod",
    "linalg_eig",
    "linalg_householder_product",
    "linalg_lstsq",
    "linalg_lu_factor_ex",
    "linalg_lu_solve",
    "linalg_qr",
    "native_batch_norm_backward",
    "native_group_norm",
    "native_group_norm_backward",
    "native_layer_norm_backward",
    "ormqr",
    "prod",
    "prod.dim_int",
    "scatter_reduce.two",
    "segment_reduce",
}


def test_few_go_the_long_way() -> None:
    forwards = {str(op.schema.name): forward_of(op, CATALOG) for op in CATALOG}
    assert {name for name, f in forwards.items() if f is not None and f.kind == "TWICE"} == TWICE


def test_most_checks_compare() -> None:
    """The tests of the table are no empty ones."""
    infos = [info for info in TABLE.values() if _smooth(info)]
    compared = [
        any(check(case, places) for case in cases(info, "cpu", 1) for places in case.choices()) for info in infos
    ]
    assert sum(compared) > 0.8 * len(infos) > 300


# ---- dual tensors ----


def pair(*values: float) -> tuple[tp.Tensor, tp.Tensor]:
    """A tensor and a direction."""
    x = tp.tensor(values, dtype=tp.float64)
    return x, tp.arange(1.0, len(values) + 1, dtype=tp.float64)


def tangent(t: tp.Tensor) -> list[float] | None:
    found = fw.unpack_dual(t).tangent
    return None if found is None else found.tolist()


def test_dual_tensors() -> None:
    x, t = pair(1, 2, 3)
    with fw.dual_level():
        dual = fw.make_dual(x, t)
        primal, moved = fw.unpack_dual(dual)
        assert primal.tolist() == x.tolist() and moved is t and tangent(primal) is None
        assert tangent(x) is None and fw.unpack_dual(x).primal.tolist() == x.tolist()
        result = dual * dual + 1
        assert tangent(result) == (2 * x * t).tolist()
        assert isinstance(fw.unpack_dual(dual), fw.UnpackedDualTensor)
    assert fw.unpack_dual(result) == (result, None), "the level has ended"
    with fw.dual_level():
        assert tangent(result) is None and tangent(dual) is None, "a later level is another one"


def test_views_share_the_tangent() -> None:
    x, t = pair(1, 2, 3, 4)
    with fw.dual_level():
        dual = fw.make_dual(x.clone(), t.clone())
        view = dual.view(2, 2)[0]
        assert tangent(view) == [1, 2]
        view.mul_(10)
        assert tangent(dual) == [10, 20, 3, 4]
        dual[3] = dual[0] * 2
        assert tangent(dual.view(2, 2)) == [[10, 20], [3, 20]]
        dual.as_strided((2,), (2,), 1).zero_()
        assert tangent(dual) == [10, 0, 3, 0]
        assert tangent(dual.detach()) is None and tangent(dual.detach()[1:].sin()) is None
        assert tangent(dual.data) is None
        assert tangent((dual * 2).detach_()) is None


def test_a_constant_that_is_written() -> None:
    x, t = pair(2, 3)
    with fw.dual_level():
        dual = fw.make_dual(x, t)
        for make in (lambda: tp.zeros(3, dtype=tp.float64), lambda: tp.zeros(3, 2, dtype=tp.float64)[:, 1]):
            whole = make()
            before, after = whole[:2], whole[1:]
            whole[1] = dual[0] * dual[1]
            assert tangent(whole) == [0, 2 * 2 + 3 * 1, 0]
            assert tangent(before) == [0, 7] and tangent(after) == [7, 0], "views that were made before know it"
            after.add_(after)
            assert tangent(before) == [0, 14]
            whole.fill_(1.0)
            assert tangent(after) == [0, 0]
        real = tp.zeros(2, 2, dtype=tp.float64)
        complex_view = tp.view_as_complex(real)
        real[0] = dual
        assert tangent(complex_view) == [1 + 2j, 0]


def test_inplace_of_any_kind() -> None:
    x, t = pair(2, 3)
    with fw.dual_level():
        dual = fw.make_dual(x.clone(), t.clone())
        dual.mul_(dual).exp_()
        assert_close(fw.unpack_dual(dual).tangent, (x * x).exp() * 2 * x * t)
        turned = fw.make_dual(tp.ones(2, 3), tp.arange(6.0).view(2, 3)).transpose_(0, 1)
        assert tangent(turned) == tp.arange(6.0).view(2, 3).t().tolist()
        shifted = fw.make_dual(tp.arange(6.0)[2:], tp.arange(4.0)).as_strided_((2,), (1,), 3)
        assert tangent(shifted) == [1, 2]
        unsqueezed = fw.make_dual(x, t).unsqueeze_(0)
        assert tangent(unsqueezed * 2) == [[2, 4]]


def test_a_result_has_a_tangent_of_its_own() -> None:
    """Formulas pass tangents on: writing to a result leaves its arguments alone."""
    x, t = pair(1, 2)
    passes_on = (lambda d: d + 1, lambda d: d.clone(), lambda d: d.clamp(-10, 10), lambda d: d.to(d, copy=True))
    for same in passes_on:
        with fw.dual_level():
            dual = fw.make_dual(x, t)
            result = same(dual)
            result.mul_(5)
            assert tangent(dual) == [1, 2] and tangent(result) == [5, 10]


def test_the_tangent_is_laid_out_as_its_tensor() -> None:
    with fw.dual_level():
        dual = fw.make_dual(tp.ones(2, 3).t(), tp.arange(6.0).view(3, 2))
        found = fw.unpack_dual(dual).tangent
        assert found is not None and found.stride() == dual.stride() and found.tolist() == [[0, 1], [2, 3], [4, 5]]
        assert tangent((dual * tp.ones(3, 2)).reshape(-1)) == [0, 1, 2, 3, 4, 5]


def test_grad_mode_does_not_matter() -> None:
    x, t = pair(1, 2)
    with fw.dual_level():
        with tp.no_grad():
            result = fw.make_dual(x, t) * 3
        assert tangent(result) == [3, 6]
        with fw._set_fwd_grad_enabled(False):
            assert tangent(fw.make_dual(x, t) * 3) is None and not fw._is_fwd_grad_enabled()
        assert fw._is_fwd_grad_enabled() and tangent(fw.make_dual(x, t) * 3) == [3, 6]
        with tp.inference_mode():
            assert tangent(fw.make_dual(x, t) * 3) is None


def test_integers_and_comparisons_are_constants() -> None:
    x, t = pair(1, 3, 2)
    with fw.dual_level():
        dual = fw.make_dual(x, t)
        values, indices = dual.sort()
        assert tangent(values) == [1, 3, 2] and tangent(indices) is None
        assert tangent(dual > 1) is None and tangent(dual.to(tp.int64)) is None and tangent(dual.round()) is None
        assert dual.max().item() == 3 and bool((dual > 0).all())


def test_running_statistics_are_updated_once() -> None:
    mean, var = tp.zeros(2), tp.ones(2)
    x, t = tp.randn(4, 2), tp.randn(4, 2)
    tp.nn.functional.batch_norm(x, mean, var, training=True)
    wanted = mean.clone(), var.clone()
    mean.zero_()
    var.fill_(1)
    with fw.dual_level():
        tp.nn.functional.batch_norm(fw.make_dual(x, t), mean, var, training=True)
    assert_close((mean, var), wanted)


# ---- with reverse mode, vmap, and itself ----


def test_reverse_over_forward() -> None:
    x, t = pair(1, 2)
    x.requires_grad_()
    t.requires_grad_()
    with fw.dual_level():
        moved = fw.unpack_dual(fw.make_dual(x, t).pow(3)).tangent
        assert moved is not None
        by_x, by_t = tp.autograd.grad(moved.sum(), (x, t))
    assert_close((by_x, by_t), (6 * x * t, 3 * x * x))


def test_forward_over_reverse_by_hand() -> None:
    """Saved outputs, tensors that were saved before they were changed, and .grad."""
    x, t = pair(1, 2)
    with fw.dual_level():
        dual = fw.make_dual(x, t).requires_grad_()
        inner = dual.exp()
        changed = (inner * 1).pow_(2)
        (gradient,) = tp.autograd.grad(changed.sum(), dual, create_graph=True)
        assert_close(fw.unpack_dual(gradient).tangent, 4 * (2 * x).exp() * t)
    leaf = x.clone().requires_grad_()
    with fw.dual_level():
        (leaf * fw.make_dual(x, t).t()).sum().backward()
        assert leaf.grad is not None and tangent(leaf.grad) == t.tolist()


@pytest.mark.parametrize("outer", [func.grad, func.jacrev, func.jacfwd])
def test_transforms_nest(outer: Callable[..., Any]) -> None:
    x, t = pair(0.5, 2)

    def moved(x: tp.Tensor) -> tp.Tensor:
        return func.jvp(lambda y: (y.sin() * x * y.exp()).sum(), (x,), (t,))[1]

    def by_hand(x: tp.Tensor) -> tp.Tensor:
        return ((x.cos() * x.exp() + x.sin() * x.exp()) * x * t).sum()

    assert_close(outer(moved)(x), func.grad(by_hand)(x))


def test_jvp_of_jvp_keeps_directions_apart() -> None:
    """d/dx (x * d/dy (x + y)) is 1: the inner direction is none of x."""
    one = tp.tensor(1.0)

    def outer(x: tp.Tensor) -> tp.Tensor:
        return x * func.jvp(lambda y: x + y, (one,), (one,))[1]

    assert func.jvp(outer, (one * 3,), (one,))[1].item() == 1
    x, t = pair(0.5, 2)
    second = func.jvp(lambda x: func.jvp(lambda y: y.pow(3), (x,), (t,))[1], (x,), (t,))[1]
    assert_close(second, 6 * x * t * t)
    third = func.jvp(lambda x: func.jvp(lambda x: func.jvp(tp.exp, (x,), (t,))[1], (x,), (t,))[1], (x,), (t,))[1]
    assert_close(third, x.exp() * t**3)


def test_vmap_inside_and_outside() -> None:
    x, t = tp.randn(3, 4, dtype=tp.float64), tp.randn(3, 4, dtype=tp.float64)

    def f(v: tp.Tensor) -> tp.Tensor:
        return v.softmax(0) * v.norm()

    wanted = tp.stack([func.jvp(f, (a,), (b,))[1] for a, b in zip(x, t, strict=True)])
    assert_close(vmap(lambda a, b: func.jvp(f, (a,), (b,))[1])(x, t), wanted)
    assert_close(func.jvp(vmap(f), (x,), (t,))[1], wanted)
    together = vmap(lambda b: func.jvp(f, (x[0],), (b,))[1])(t)
    assert_close(together, tp.stack([func.jvp(f, (x[0],), (b,))[1] for b in t]))

    def with_dual_tensors(a: tp.Tensor, b: tp.Tensor) -> tp.Tensor:
        with fw.dual_level():
            found = fw.unpack_dual(f(fw.make_dual(a, b))).tangent
        assert found is not None
        return found

    assert_close(vmap(with_dual_tensors)(x, t), wanted)


# ---- directions of a batch ----


def _writes(x: tp.Tensor) -> tp.Tensor:
    y = x * 2
    y.add_(x)
    y[0] = x[1]
    y[1:].mul_(x[1:])
    return y.sin()


@pytest.mark.parametrize("outer", [func.grad, func.jacrev])
def test_a_tangent_that_is_overwritten_was_saved_before(outer: Callable[..., Any]) -> None:
    """Reverse mode over forward mode of what is written in place."""
    x, t = pair(0.3, -0.7, 1.1)

    def moved(f: Callable[[tp.Tensor], tp.Tensor]) -> Callable[[tp.Tensor], tp.Tensor]:
        return lambda x: (func.jvp(f, (x,), (t,))[1] * t).sum()

    def plain(x: tp.Tensor) -> tp.Tensor:
        y = x * 3
        return tp.stack([x[1], y[1] * x[1], y[2] * x[2]]).sin()

    assert_close(outer(moved(_writes))(x), outer(moved(plain))(x))


def _by_columns(f: Callable[[tp.Tensor], tp.Tensor]) -> Callable[[tp.Tensor], tp.Tensor]:
    def jacobian(x: tp.Tensor) -> tp.Tensor:
        basis = tp.eye(x.numel(), dtype=x.dtype)
        return vmap(lambda along: func.jvp(f, (x,), (along,))[1], out_dims=-1)(basis)

    return jacobian


def test_values_without_a_batch_are_written_beside_tangents_with_one() -> None:
    x, _ = pair(0.3, -0.7, 1.1)
    assert_close(_by_columns(_writes)(x), func.jacrev(_writes)(x))
    twice = _by_columns(_by_columns(lambda x: _writes(x) * x))(x)
    assert_close(twice, func.jacrev(func.jacrev(lambda x: _writes(x) * x))(x))


def test_running_statistics_without_a_batch_are_updated_once_for_all_directions() -> None:
    x = tp.arange(12.0, dtype=tp.float64).reshape(4, 3).sin()
    mean, var = tp.zeros(3, dtype=tp.float64), tp.ones(3, dtype=tp.float64)

    def norm(x: tp.Tensor) -> tp.Tensor:
        return tp.nn.functional.batch_norm(x, mean, var, training=True, momentum=0.5)

    columns = tp.stack([x.cos(), x.exp()])
    together = vmap(lambda along: func.jvp(norm, (x,), (along,))[1])(columns)
    assert_close(mean, x.mean(0) / 2)
    assert_close(together, tp.stack([func.jvp(norm, (x,), (along,))[1] for along in columns]))


def test_a_write_of_what_differs_to_what_is_shared_is_refused() -> None:
    x, along = pair(1.0, 2.0)
    with pytest.raises(RuntimeError, match="writes to 'self', which is not batched"):
        vmap(lambda v, t: func.jvp(lambda x: (x * 2).add_(v), (x,), (t,))[1])(tp.stack([x, x]), tp.stack([along, x]))


_LAYERS: dict[str, Callable[[Callable[..., tp.Tensor]], Callable[..., tp.Tensor]]] = {
    "vmap x": lambda f: vmap(f, (0, None)),
    "vmap y": lambda f: vmap(f, (None, 0)),
    "jvp": lambda f: lambda x, y: func.jvp(lambda x: f(x, y), (x,), (x.cos(),))[1],
    "jacfwd": lambda f: lambda x, y: func.jacfwd(lambda x: f(x, y))(x).flatten(-x.ndim).sum(-1),
}


def _by_loops(f: Callable[..., tp.Tensor], layers: tuple[str, ...]) -> Callable[..., tp.Tensor]:
    """The same without vmap and forward mode."""
    if not layers:
        return f
    inner, last = _by_loops(f, layers[1:]), layers[0]
    if last == "vmap x":
        return lambda x, y: tp.stack([inner(each, y) for each in x])
    if last == "vmap y":
        return lambda x, y: tp.stack([inner(x, each) for each in y])

    def derivative(x: tp.Tensor, y: tp.Tensor) -> tp.Tensor:
        """Of reverse mode: the sum of the columns is the derivative along ones."""
        along = x.cos() if last == "jvp" else tp.ones_like(x)
        out, back = func.vjp(lambda x: inner(x, y), x)
        return func.vjp(lambda seed: back(seed)[0], tp.zeros_like(out))[1](along)[0]

    return derivative


@pytest.mark.parametrize("layers", list(itertools.product(_LAYERS, repeat=4)), ids=" of ".join)
def test_nested_levels_of_vmap_and_of_forward_mode(layers: tuple[str, ...]) -> None:
    """Whatever is opened inside of what: a value that is lifted to one vmap keeps its tangents of all levels."""
    x, y = (tp.arange(2.0 * 2 ** layers.count(f"vmap {n}"), dtype=tp.float64) + i for i, n in enumerate("xy"))
    x, y = (t.sin().view((2,) * (layers.count(f"vmap {n}") + 1)) for t, n in ((x, "x"), (y, "y")))

    def f(x: tp.Tensor, y: tp.Tensor) -> tp.Tensor:
        return (x * x.exp()).cumsum(0) + x * y.sin()

    mapped = f
    for name in reversed(layers):
        mapped = _LAYERS[name](mapped)
    assert_close(mapped(x, y), _by_loops(f, layers)(x, y))


def test_a_level_from_outside_of_the_vmap_gets_values_with_its_batch() -> None:
    x, along = pair(1.0, 2.0)
    with fw.dual_level():
        squares = vmap(lambda t: fw.make_dual(x, t) ** 2)(tp.stack([along, x]))
        assert_close(fw.unpack_dual(squares).tangent, 2 * x * tp.stack([along, x]))


class _Cube(tp.autograd.Function):
    """With rules of its own, which see physical tensors."""

    @staticmethod
    def forward(x: tp.Tensor, w: tp.Tensor) -> tp.Tensor:
        return x**3 * w

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_forward(*inputs)

    @staticmethod
    def jvp(ctx: Any, x: tp.Tensor, w: tp.Tensor | None) -> tp.Tensor:
        value, weight = ctx.saved_tensors
        return 3 * value**2 * weight * x

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: tp.Tensor, w: tp.Tensor) -> Any:
        given = [t if d is not None else t.unsqueeze(0) for t, d in zip((x, w), in_dims, strict=True)]
        return _Cube.apply(*given), 0


@pytest.mark.parametrize("mapped", [False, True])
def test_a_functions_own_rules_see_directions_of_a_batch(mapped: bool) -> None:
    x, along = pair(1.0, 2.0)
    columns, weights = tp.stack([along, x]), tp.stack([x, x + 1])
    if mapped:
        found = vmap(lambda w, t: func.jvp(lambda x: _Cube.apply(x, w), (x,), (t,))[1])(weights, columns)
        assert_close(found, 3 * x**2 * weights * columns)
    else:
        found = vmap(lambda t: func.jvp(lambda y: _Cube.apply(y, x), (x,), (t,))[1])(columns)
        assert_close(found, 3 * x**3 * columns)


def test_make_fx_records_tangents() -> None:
    """The layer is above the tracer's, which sees what it calls."""
    x, t = pair(1, 2)

    def moved(x: tp.Tensor, t: tp.Tensor) -> tp.Tensor:
        return func.jvp(lambda x: x * x + x.softmax(0), (x,), (t,))[1]

    recorded = make_fx(moved)(x, t)
    assert_close(recorded(x + 1, t * 3), moved(x + 1, t * 3))


def test_under_autocast() -> None:
    x, w, t = tp.randn(4, 8), tp.randn(8, 4), tp.randn(4, 8)
    with tp.autocast("cpu"), fw.dual_level():
        result = fw.make_dual(x, t) @ w
        found = fw.unpack_dual(result).tangent
        assert found is not None and result.dtype == found.dtype == tp.bfloat16
    assert_close(found.float(), t @ w, atol=0.2, rtol=0.05)


# ---- Functions and operators of a program ----


class Cube(tp.autograd.Function):
    @staticmethod
    def forward(x: tp.Tensor) -> tp.Tensor:
        return x**3

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: tp.Tensor) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: tp.Tensor) -> tp.Tensor:
        (x,) = ctx.saved_tensors
        return 3 * x**2 * grad

    @staticmethod
    def jvp(ctx: Any, t: tp.Tensor) -> tp.Tensor:
        (x,) = ctx.saved_tensors
        return 3 * x**2 * t


def test_function_with_jvp() -> None:
    x, t = pair(1, 2)
    assert_close(func.jvp(Cube.apply, (x,), (t,))[1], 3 * x**2 * t)
    assert_close(func.jvp(lambda x: func.jvp(Cube.apply, (x,), (t,))[1], (x,), (t,))[1], 6 * x * t**2)
    assert_close(func.jvp(func.grad(lambda x: Cube.apply(x).sum()), (x,), (t,))[1], 6 * x * t)
    assert gradcheck(Cube.apply, (x.requires_grad_(),), check_forward_ad=True)


def test_function_without_jvp() -> None:
    class Plain(tp.autograd.Function):
        @staticmethod
        def forward(x: tp.Tensor) -> tp.Tensor:
            return x * 2

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: tp.Tensor) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, grad: tp.Tensor) -> tp.Tensor:
            return grad * 2

    x, t = pair(1, 2)
    assert func.jvp(lambda x: x + Plain.apply(tp.ones(2)), (x,), (t,))[1].tolist() == t.tolist()
    with pytest.raises(NotImplementedError, match="Plain defines no static method jvp"):
        func.jvp(Plain.apply, (x,), (t,))


def test_operators_from_outside() -> None:
    """A gradient in Python is a Function's, without a jvp; without one there is no formula."""

    @tp.library.custom_op("forward_test::twice", mutates_args=())
    def twice(x: tp.Tensor) -> tp.Tensor:
        return x * 2

    @tp.library.custom_op("forward_test::thrice", mutates_args=())
    def thrice(x: tp.Tensor) -> tp.Tensor:
        return x * 3

    twice.register_autograd(lambda ctx, grad: grad * 2)
    x, t = pair(1, 2)
    assert_close(twice(x) + thrice(x), 5 * x)
    with pytest.raises(NotImplementedError, match="forward_test_twice"):
        func.jvp(twice, (x,), (t,))
    with pytest.raises(NotImplementedError, match="forward_test::thrice"):
        func.jvp(thrice, (x,), (t,))


# ---- errors, threads, ends ----


def test_refusals() -> None:
    x, t = pair(1, 2)
    with pytest.raises(RuntimeError, match="no level exists"):
        fw.make_dual(x, t)
    with pytest.raises(RuntimeError, match="none was entered"):
        fw.exit_dual_level()
    with fw.dual_level() as number:
        with pytest.raises(RuntimeError, match="different size"):
            fw.make_dual(x, t[:1])
        with pytest.raises(RuntimeError, match="complex forward gradient"):
            fw.make_dual(x, t.to(tp.complex64))
        assert fw.unpack_dual(fw.make_dual(x, t.float())).tangent.dtype == x.dtype
        with pytest.raises(ValueError, match="floating point or complex"):
            fw.make_dual(x.long(), t.long())
        with pytest.raises(RuntimeError, match="Nested forward mode AD"):
            fw.enter_dual_level()
        with pytest.raises(RuntimeError, match="not the last one"):
            fw.exit_dual_level(level=number + 1)
        dual = fw.make_dual(x, t)
        with pytest.raises(RuntimeError, match="already has a forward gradient"):
            fw.make_dual(dual, t)
        with pytest.raises(NotImplementedError, match="out= function"):
            tp.mul(dual, 2, out=tp.empty(2, dtype=tp.float64))
        with pytest.raises(RuntimeError):
            tp.zeros(2, dtype=tp.int64).add_(dual)
        assert tangent(dual) == [1, 2]


def test_an_exception_leaves_the_level() -> None:
    x, t = pair(1, 2)
    with pytest.raises(ZeroDivisionError), fw.dual_level():
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError):
        func.jvp(lambda x: x / (1 // 0), (x,), (t,))
    assert _C._forward_levels() == ()
    with fw.dual_level():
        assert tangent(fw.make_dual(x, t)) == [1, 2]


def test_levels_belong_to_threads() -> None:
    x, t = pair(1, 2)
    found: list[Any] = []
    with fw.dual_level():
        dual = fw.make_dual(x, t)

        def other() -> None:
            found.append(fw.unpack_dual(dual * 2).tangent)
            found.append(func.jvp(lambda v: v * dual, (x,), (t,))[1].tolist())

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert tangent(dual * 2) == [2, 4]
    assert found == [None, (x * t).tolist()]


def test_nothing_is_left() -> None:
    """A tangent that hangs on a graph which saved its own tensor is a cycle until the level ends."""
    x, t = pair(1, 2)
    x.requires_grad_()
    t.requires_grad_()
    with fw.dual_level():
        result = fw.make_dual(x, t).exp()
        known = weakref.ref(result), weakref.ref(fw.unpack_dual(result).tangent)
        del result
    gc.collect()
    assert [ref() for ref in known] == [None, None]


def test_memory_comes_back() -> None:
    x, t = tp.randn(64, 64), tp.randn(64, 64)

    def once() -> None:
        func.jvp(lambda x: func.jvp(lambda y: (x @ y).softmax(0).cumprod(1), (x,), (t,))[1], (x,), (t,))

    once()
    gc.collect()
    before = _C._memory_stats()["live_blocks"]
    for _ in range(5):
        once()
    gc.collect()
    assert _C._memory_stats()["live_blocks"] == before


class _Written(tp.autograd.Function):
    @staticmethod
    def forward(x: Any) -> Any:
        return x.mul_(2)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_dirty(inputs[0])

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return 2 * grad

    @staticmethod
    def jvp(ctx: Any, tangent: Any) -> Any:
        return tangent.mul_(2)


class _WrittenAside(_Written):
    @staticmethod
    def jvp(ctx: Any, tangent: Any) -> Any:
        return tangent * 2


def test_a_function_that_writes_its_argument_writes_the_tangent() -> None:
    with fw.dual_level():
        dual = fw.make_dual(tp.tensor([3.0]), tp.tensor([5.0]))
        assert _Written.apply(dual) is dual and dual.item() == 6
        assert fw.unpack_dual(dual).tangent.item() == 10
        with pytest.raises(RuntimeError, match="not modifying the forward mode gradients inplace"):
            _WrittenAside.apply(fw.make_dual(tp.tensor([3.0]), tp.tensor([5.0])))
    value, tangent = tp.func.jvp(lambda x: _Written.apply(x.clone()), (tp.tensor([3.0]),), (tp.tensor([5.0]),))
    assert (value.item(), tangent.item()) == (6, 10)


def test_a_functions_forward_computes_no_tangents() -> None:
    seen = []

    class Looks(tp.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            seen.append(fw._is_fwd_grad_enabled())
            _, along = tp.func.jvp(tp.cos, (x,), (tp.ones_like(x),))
            return -along

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            raise AssertionError

    x = tp.tensor(0.5, requires_grad=True)
    tp.testing.assert_close(Looks.apply(x), x.sin())
    assert seen == [False] and fw._is_fwd_grad_enabled()


class _Doubled(_Written):
    """Twice its argument; subclasses say what they take for the derivatives."""

    @staticmethod
    def forward(x: Any) -> Any:
        return x * 2

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass


def test_gradcheck_compares_batched_tangents_of_what_wants_gradients() -> None:
    x = tp.tensor([0.5, 1.5], dtype=tp.float64, requires_grad=True)
    z = tp.tensor([0.5 + 1j], dtype=tp.complex128, requires_grad=True)
    for f, given in ((tp.exp, (x,)), (tp.mul, (x, z)), (lambda x: x.clone().mul_(2), (z,))):
        assert tp.autograd.gradcheck(f, given, check_forward_ad=True, check_batched_forward_grad=True)

    class Wrong(_Doubled):
        @staticmethod
        def jvp(ctx: Any, tangent: Any) -> Any:
            return tangent * 2

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any) -> Any:
            return x * 3, 0

    with pytest.raises(RuntimeError):
        tp.autograd.gradcheck(Wrong.apply, (x,), check_forward_ad=True, check_batched_forward_grad=True)


def test_gradcheck_of_one_direction_is_quick_and_sees_a_wrong_tangent() -> None:
    calls = []

    def product(x: Any, y: Any) -> Any:
        calls.append(0)
        return x.mul_(y) if x._is_view() or not x.is_leaf else x.clone().mul_(y)

    x, y = (tp.rand(20, 30, dtype=tp.float64, requires_grad=True) for _ in range(2))
    options: Any = {"check_forward_ad": True, "check_backward_ad": False, "check_batched_forward_grad": True}
    assert gradcheck(lambda x, y: product(x.clone(), y), (x, y), fast_mode=True, **options)
    assert len(calls) < 20

    class Wrong(_Doubled):
        @staticmethod
        def jvp(ctx: Any, tangent: Any) -> Any:
            return tangent * 2.1

    with pytest.raises(RuntimeError, match="Jacobian computed with forward mode mismatch"):
        gradcheck(
            Wrong.apply, (tp.rand(3, dtype=tp.float64, requires_grad=True),), fast_mode=True, check_forward_ad=True
        )


@pytest.mark.parametrize("draw", [tp.bernoulli, tp.poisson, lambda x: tp.binomial(x, tp.tensor(0.5)).add(x * 0)])
def test_a_draw_does_not_follow_what_it_is_drawn_by(draw: Callable[..., Any]) -> None:
    """A gradient that reads nothing but shapes is zero, and so is the tangent: it is no draw by the tangent."""
    for _ in range(20):
        with fw.dual_level():
            drawn = fw.unpack_dual(draw(fw.make_dual(tp.ones(3), tp.ones(3))))
        assert drawn.tangent.tolist() == [0, 0, 0]


def test_rows_of_a_table_that_are_scaled_keep_their_tangents() -> None:
    weight, tangent = tp.randn(4, 4) * 2, tp.ones(4, 4)
    with fw.dual_level():
        dual = fw.make_dual(weight, tangent)
        rows = tp.nn.functional.embedding(tp.tensor([[0, 1], [2, 2]]), dual, max_norm=1.0)
        assert fw.unpack_dual(rows).tangent.tolist() == tp.ones(2, 2, 4).tolist()


LAYOUTS: list[Any] = [
    {"layout": tp.sparse_coo},
    {"layout": tp.sparse_csr},
    {"layout": tp.sparse_csc},
    {"layout": tp.sparse_bsr, "blocksize": (1, 2)},
    {"layout": tp.sparse_bsc, "blocksize": (2, 1)},
]
OF_A_LAYOUT: dict[str, Callable[[tp.Tensor, tp.Tensor], tp.Tensor]] = {
    "to_dense": lambda s, y: s.to_dense().sin(),
    "product": lambda s, y: s @ y,
    "values": lambda s, y: s.values() ** 2,
    "pointwise": lambda s, y: s.sin().to_dense(),
    "sum": lambda s, y: s.sum(),
    "scaled": lambda s, y: (s * 3 + s).to_dense(),
    "relu": lambda s, y: tp.relu(s).to_dense(),
    "transposed": lambda s, y: s.t().to_dense().exp(),
    "matmul": lambda s, y: tp.matmul(s, y[:, 0]),
    "chunks of a table": lambda s, y: s.to_sparse_coo().select(0, 1).to_dense(),
}


def assert_both_ways(f: Callable[[tp.Tensor], tp.Tensor], x: tp.Tensor, dx: tp.Tensor, tangent: tp.Tensor) -> None:
    weight = tp.rand(tangent.shape, dtype=tangent.dtype)
    (grad,) = func.vjp(f, x)[1](weight)
    assert_close((grad * dx).sum(), (tangent * weight).sum())


@pytest.mark.parametrize("words", LAYOUTS, ids=lambda words: str(words["layout"]))
@pytest.mark.parametrize("name", OF_A_LAYOUT)
def test_tangents_pass_through_layouts(words: dict[str, Any], name: str) -> None:
    """The tangent is the gradient's product, whichever composites the operator of the layout is made of."""
    x = tp.tensor([[0.0, 1, 2, 0], [3, 0, 4, 0]], dtype=tp.float64)
    y, dx = tp.rand(4, 3, dtype=tp.float64), x * 0.25

    def f(x: tp.Tensor) -> tp.Tensor:
        return OF_A_LAYOUT[name](x.to_sparse(**words), y)

    out, tangent = func.jvp(f, (x,), (dx,))
    assert out.layout is tp.strided and tangent.layout is tp.strided
    assert_both_ways(f, x, dx, tangent)


def test_tangents_pass_through_nested_tensors() -> None:
    x, dx, offsets = tp.rand(5, 3, dtype=tp.float64), tp.rand(5, 3, dtype=tp.float64), tp.tensor([0, 2, 5])

    def f(x: tp.Tensor) -> tp.Tensor:
        n = tp.nested.nested_tensor_from_jagged(x, offsets)
        m = tp.nn.functional.layer_norm(tp.nn.functional.linear(n, x[:2]) * n.sum(-1, keepdim=True), (2,))
        return m.softmax(1).values() + m.sum(1).sum()

    tangent = func.jvp(f, (x,), (dx,))[1]
    assert_both_ways(f, x, dx, tangent)


def test_values_without_history_have_no_tangent() -> None:
    s = tp.eye(3).to_sparse()
    with fw.dual_level():
        dual = fw.make_dual(s, s * 2)
        assert fw.unpack_dual(dual._values()).tangent is None and dual._indices().shape == (2, 3)
        assert fw.unpack_dual(dual.values()).tangent.tolist() == [2, 2, 2]
    assert not s.requires_grad_()._values().requires_grad


# ---- formulas that the table's samples do not reach ----


@pytest.mark.parametrize("given", [(0,), (1,), (0, 1)], ids=str)
@pytest.mark.parametrize("offset", [None, 1])
@pytest.mark.parametrize("turned", [False, True])
def test_as_strided_scatter_of_any_layout(given: tuple[int, ...], offset: int | None, turned: bool) -> None:
    """The elements that are written lie by the memory of self, which its gradient and tangents do not share."""

    def laid(values: tp.Tensor) -> tp.Tensor:
        part = tp.zeros(9, dtype=values.dtype)[1:7].view(2, 3)
        return (part.T if turned else part).copy_(values)

    shape = (3, 2) if turned else (2, 3)
    inputs = [laid(tp.arange(1.0, 7, dtype=tp.float64).view(shape)), tp.tensor([5.0, 7.0], dtype=tp.float64)]

    def put(*some: tp.Tensor) -> tp.Tensor:
        both = list(inputs)
        for i, t in zip(given, some, strict=True):
            both[i] = t
        return both[0].as_strided_scatter(both[1], (2,), (2,), offset)

    def moved(step: float) -> tp.Tensor:
        return put(
            *(laid(inputs[i] + step * inputs[i].cos()) if i == 0 else inputs[1] + step * along[-1] for i in given)
        )

    some, along = [inputs[i] for i in given], [inputs[i].cos() for i in given]
    output, tangent = func.jvp(put, tuple(some), tuple(along))
    assert_close(tangent, (moved(0.5) - moved(-0.5)))
    gradients = func.vjp(put, *some)[1](output.sin())
    assert_close(sum((g * t).sum() for g, t in zip(gradients, along, strict=True)), (output.sin() * tangent).sum())


@pytest.mark.parametrize("function", [tp.linalg.matrix_exp, lambda a: a.logcumsumexp(-1)], ids=["exp", "logcumsumexp"])
def test_tangents_of_complex_numbers(function: Callable[[tp.Tensor], tp.Tensor]) -> None:
    """Of matrices of a norm, too, whose exponential is large: a gradient's gradient is far off there."""
    a = 8 * tp.complex(tp.arange(18.0, dtype=tp.float64).sin(), tp.arange(18.0, dtype=tp.float64).cos()).view(2, 3, 3)
    along, step = tp.complex(a.real.cos(), a.imag.sin()), 1e-6
    _, tangent = func.jvp(function, (a,), (along,))
    differences = (function(a + step * along) - function(a - step * along)) / (2 * step)
    size = differences.abs().amax((-2, -1), keepdim=True)
    assert_close(tangent / size, differences / size, rtol=1e-6, atol=1e-7)


def _normalised(x: tp.Tensor, dims: tuple[int, ...]) -> tp.Tensor:
    centred = x - x.mean(dims, keepdim=True)
    return centred * (centred.square().mean(dims, keepdim=True) + 1e-5).rsqrt()


NORMS: dict[str, tuple[Callable[..., tp.Tensor], tuple[int, ...]]] = {
    "layer_norm": (lambda x, w, b: tp.nn.functional.layer_norm(x, (2, 2), w.expand(2, 2), b.expand(2, 2)), (1, 2)),
    "batch_norm": (lambda x, w, b: tp.nn.functional.batch_norm(x, None, None, w, b, training=True), (0, 2)),
    "group_norm": (lambda x, w, b: tp.nn.functional.group_norm(x, 1, w, b), (1, 2)),
    "instance_norm": (lambda x, w, b: tp.nn.functional.instance_norm(x, None, None, w, b), (2,)),
}
_WAYS: dict[str, Any] = {"forward": func.jacfwd, "reverse": func.jacrev}


@pytest.mark.parametrize("ways", list(itertools.product(_WAYS, repeat=3)), ids=", ".join)
@pytest.mark.parametrize("name", NORMS)
def test_saved_statistics_move_with_the_input(name: str, ways: tuple[str, ...]) -> None:
    """Derivatives of any order: the statistics that a formula is given are functions of the input."""
    norm, dims = NORMS[name]
    x, v, u = (tp.arange(12.0, dtype=tp.float64).add(i).sin().view(3, 2, 2) for i in (0, 3, 7))
    weight, bias = x[0], tp.tensor([0.5, -1.0], dtype=tp.float64)

    def by_hand(x: tp.Tensor, w: tp.Tensor, b: tp.Tensor) -> tp.Tensor:
        shape = (2,) if name == "layer_norm" else (2, 1)
        return _normalised(x, dims) * w.view(shape) + b.view(shape)

    def along(f: Callable[..., tp.Tensor], ways: tuple[str, ...]) -> Callable[..., tp.Tensor]:
        """The third derivative by three numbers: x moves along v, and along u as the weights along others."""

        def moving(s: tp.Tensor) -> tp.Tensor:
            return f(x + s[0] * v + s[1] * u, weight[0] + s[1] * bias + s[2], bias * s[2])

        for way in ways:
            moving = _WAYS[way](moving)
        return moving

    at = tp.tensor([0.1, -0.2, 0.3], dtype=tp.float64)
    assert_close(along(norm, ways)(at), along(by_hand, ways)(at))


@pytest.mark.parametrize("density", [False, True])
def test_histograms_follow_weights_and_edges(density: bool) -> None:
    x, w = tp.tensor([0.1, 0.45, 0.65, 1.3], dtype=tp.float64), tp.tensor([1.0, 2.0, 3.0, 0.5], dtype=tp.float64)
    edges, points = tp.tensor([0.0, 0.5, 1.5], dtype=tp.float64), tp.stack([x, x.flip(0) * 2], 1)

    def flat(found: Any) -> tuple[tp.Tensor, ...]:
        return (found[0], *(found[1] if isinstance(found[1], tuple | list) else found[1:]))

    calls: list[tuple[Callable[..., Any], tuple[tp.Tensor, ...]]] = [
        (lambda x, w: tp.histogram(x, 2, weight=w, density=density), (x, w)),
        (lambda e, w: tp.histogram(x, e, weight=w, density=density), (edges, w)),
        (lambda p, w: tp.histogramdd(p, [2, 3], weight=w, density=density), (points, w)),
        (lambda e, w: tp.histogramdd(points, [e, e * 2], weight=w, density=density), (edges, w)),
    ]
    for call, given in calls:
        inputs = tuple(t.clone().requires_grad_() for t in given)
        assert gradcheck(lambda *some, c=call: flat(c(*some)), inputs, check_forward_ad=True)


@pytest.mark.parametrize("unique", [tp.unique, tp.unique_consecutive, lambda x: tp.unique(x, dim=0)])
def test_values_that_are_found_once_have_no_derivative(unique: Callable[..., tp.Tensor]) -> None:
    """They depend on the input: no derivative is another thing than zero."""
    x = tp.tensor([2.0, 1.0, 1.0])
    with pytest.raises(NotImplementedError, match=r"forward AD with _?unique"):
        func.jvp(unique, (x,), (x,))
    found = unique(x.requires_grad_())
    assert found.requires_grad
    with pytest.raises(RuntimeError, match=r"derivative for _?unique.* is not implemented"):
        found.sum().backward()


def test_what_has_no_gradient_by_an_argument_refuses_its_tangent() -> None:
    x, moved = tp.randn(2, 3, dtype=tp.float64), tp.rand(3, dtype=tp.float64)
    calls: list[Callable[[tp.Tensor], tp.Tensor]] = [
        lambda m: tp.nn.functional.batch_norm(x, m, moved),
        lambda m: tp.nn.functional.instance_norm(x[:, :, None], m, moved, use_input_stats=False),
        lambda w: tp.nn.functional.nll_loss(x, tp.tensor([0, 2]), w),
    ]
    for call in calls:
        with pytest.raises(RuntimeError, match="not differentiable with respect to argument"):
            func.jvp(call, (moved,), (moved,))
        with pytest.raises(RuntimeError, match="not differentiable with respect to argument"):
            func.grad(lambda m, c=call: c(m).sum())(moved)
