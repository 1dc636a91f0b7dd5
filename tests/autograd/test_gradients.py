"""Gradients, tangents and second gradients of every differentiable operator against finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tensorpy as tp
from tensorpy.autograd import gradcheck, gradgradcheck
from tensorpy.testing import assert_close
from tensorpy.testing.harness import arguments, call, fresh, function_of, inputs_of, over
from tensorpy.testing.samples import OpInfo

DTYPES = ("float64", "complex128")


@pytest.mark.parametrize("order", [1, 2])
@over(lambda info: info.differentiable and set(DTYPES) & set(info.dtypes))
def test_gradient(info: OpInfo, order: int, device: str) -> None:
    function = function_of(info)
    for dtype in DTYPES if order == 1 or info.gradgradcheck else ():
        for sample in info.samples(dtype, 6 if order == 1 else 3) if dtype in info.dtypes else ():
            args, kwargs = arguments(sample, device, info)
            inputs, fill = inputs_of(info, args, kwargs)
            if not any(t.numel() for t in inputs):
                continue

            def f(*given: Any, fill=fill) -> list[tp.Tensor]:
                a, k = fill(given)
                a = info.kept(*a) if info.kept else a
                return call(function, fresh(info, a), k)

            if not any(r.requires_grad for r in f(*inputs)):
                continue
            try:
                if order == 1:
                    gradcheck(f, inputs, atol=1e-5, check_forward_ad=True)
                else:
                    gradgradcheck(f, inputs, atol=1e-4)
            except (RuntimeError, NotImplementedError) as e:
                pytest.fail(f"{info.name}{sample}, derivative {order}: {e}")


@over(lambda info: info.differentiable and info.variant("inplace") is not None and not info.random)
def test_in_place_has_the_gradient_of_the_functional_variant(info: OpInfo, device: str) -> None:
    """Whatever the variant computes by and saves: what it writes over is kept where the gradient needs it."""
    inplace, functional = function_of(info, inplace=True), function_of(info)
    for sample in info.samples("float64", 4) if "float64" in info.dtypes else ():
        args, kwargs = arguments(sample, device, info)
        inputs, fill = inputs_of(info, args, kwargs)
        found = []
        for function in (functional, inplace):
            leaves = [t.detach().clone().requires_grad_() for t in inputs]
            given, named = fill([t.clone() for t in leaves])
            if not isinstance(given[0], tp.Tensor):
                return
            results = call(function, given, named)
            if any(r.shape != given[0].shape or r.dtype != given[0].dtype for r in results):
                break  # no result that fits in place
            total = sum((r * tp.arange(1.0, r.numel() + 1, device=device).view(r.shape)).sum() for r in results)
            if not total.requires_grad:
                break
            found.append(tp.autograd.grad(total, leaves, materialize_grads=True))
        for a, b in zip(*found, strict=True) if len(found) == 2 else ():
            assert_close(b, a, msg=f"{info.name}{sample}", equal_nan=True)


def test_gradient_of_what_cat_leaves_out_has_its_shape() -> None:
    nothing, matrix = tp.zeros(0, dtype=tp.float64, requires_grad=True), tp.ones(2, 5, dtype=tp.float64)
    matrix.requires_grad_()
    for dim in (0, 1):
        gradients = tp.autograd.grad(tp.cat((nothing, matrix), dim).sum(), (nothing, matrix))
        assert [g.shape for g in gradients] == [(0,), (2, 5)]
    assert tp.autograd.gradcheck(lambda a, b: tp.cat((a, b)), (nothing, matrix))


@pytest.mark.parametrize("base", [-1, -2.5, -1.0, (-1.0, -2.0), (-3.0, 2.0)])
def test_a_negative_base_has_a_slope_by_a_complex_exponent(base):
    """Its logarithm is a complex number."""
    exponent = tp.tensor([0.3 + 1j, -2 + 0.5j], dtype=tp.complex128, requires_grad=True)
    given = tp.tensor(base, dtype=tp.float64) if isinstance(base, tuple) else base
    assert gradcheck(lambda e: tp.pow(given, e), exponent)


def takes_dtype(info: OpInfo) -> bool:
    schema = info.op.schema
    optional = any(a.name == "dtype" and str(a.type) == "ScalarType?" for a in schema.arguments)
    return info.differentiable and optional and not schema.is_factory and not info.random


@pytest.mark.parametrize(
    ("source", "dtype"), [("float64", "float32"), ("complex128", "float64"), ("float64", "complex128")]
)
@over(takes_dtype)
def test_a_dtype_is_a_cast_before(info: OpInfo, source: str, dtype: str, device: str) -> None:
    """`op(x, dtype=d)` has the gradient of `op(x.to(d))`: of complex x for a real dtype, a real one."""
    function, to = function_of(info), getattr(tp, dtype)
    for sample in info.samples(source, 8) if {source, dtype} <= set(info.dtypes) else ():
        args, kwargs = arguments(sample, device, info)
        if args[0].dtype != getattr(tp, source) or any(isinstance(a, tp.dtype) for a in args):
            continue
        found = []
        for cast in (False, True):
            x = args[0].detach().clone().requires_grad_()
            named = {k: v for k, v in kwargs.items() if k != "dtype"}
            try:
                result = function(x.to(to), *args[1:], **named) if cast else function(x, *args[1:], **named, dtype=to)
            except RuntimeError as error:
                assert "norm: " in str(error) and "dtype" in str(error)  # a norm takes wider dtypes of its input's kind
                return
            found.append(tp.autograd.grad(result.abs().sum(), x)[0])
        assert_close(found[0], found[1], msg=f"{info.name}{sample}, dtype={dtype}", equal_nan=True)


@pytest.mark.parametrize("order", [-1, -2, -3.5, 0.5, 3])
def test_a_norm_of_zero_passes_nothing_on(order: float) -> None:
    """The norm of a negative order is 0 where one element is."""
    x = tp.tensor([1.0, 0.0, -2.0] if order < 0 else [0.0, 0.0], dtype=tp.float64, requires_grad=True)
    norm = tp.linalg.vector_norm(x, order)
    assert norm.item() == 0
    assert not tp.autograd.grad(norm, x)[0].any()


# ---- products of zeros ----

PRODUCTS: dict[str, Callable[[tp.Tensor], tp.Tensor]] = {
    "prod": lambda x: x.prod(),
    "prod, dim": lambda x: x.prod(-1),
    "prod, keepdim": lambda x: x.prod(0, keepdim=True),
    "cumprod": lambda x: x.cumprod(-1),
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("zeros", [0, 1, 2, 3])
@pytest.mark.parametrize("dtype", [tp.float64, tp.complex128], ids=str)
def test_products_of_zeros_have_derivatives(name: str, zeros: int, dtype: tp.dtype) -> None:
    """Of the second order too: a product with one zero less is not zero."""
    x = tp.arange(1.0, 9).to(dtype).view(2, 4).cos() + (0.5j if dtype.is_complex else 0)
    x[0, :zeros] = 0
    x.requires_grad_()
    assert gradcheck(PRODUCTS[name], (x,), check_forward_ad=True)
    assert gradgradcheck(PRODUCTS[name], (x,), check_fwd_over_rev=True)


TWO_PLACES = tp.tensor([0, 0, 0, 1, 1, 1])
SCATTERED: dict[str, Callable[[tp.Tensor, tp.Tensor], tp.Tensor]] = {
    "scatter_reduce": lambda b, x: b.scatter_reduce(0, TWO_PLACES, x, "prod"),
    "scatter_reduce, alone": lambda b, x: b.scatter_reduce(0, TWO_PLACES, x, "prod", include_self=False),
    "index_reduce": lambda b, x: b.index_reduce(0, TWO_PLACES, x, "prod"),
    "segment_reduce": lambda b, x: tp.segment_reduce(x, "prod", lengths=tp.tensor([3, 3])) + 0 * b,
}


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize("name", SCATTERED)
@pytest.mark.parametrize("zeros", [(), (1,), (0, 2), (0, 1, 2), (0, 3, 4)], ids=str)
@pytest.mark.parametrize("base", [(2.0, 3.0), (0.0, 3.0)], ids=str)
def test_scattered_products_of_zeros_have_derivatives(name: str, zeros: tuple[int, ...], base: Any) -> None:
    """PyTorch refuses the second ones where two zeros meet."""
    x, b = tp.arange(1.0, 7).to(tp.float64), tp.tensor(base, dtype=tp.float64, requires_grad=True)
    for i in zeros:
        x[i] = 0
    x.requires_grad_()
    assert gradcheck(SCATTERED[name], (b, x), check_forward_ad=True)
    assert gradgradcheck(SCATTERED[name], (b, x), check_fwd_over_rev=True)


def by_elements(a: tp.Tensor) -> tp.Tensor:
    """The determinant of 3 x 3 matrices."""
    (p, q, r), (s, t, u), (v, w, x) = (row.unbind(-1) for row in a.unbind(-2))
    return p * (t * x - u * w) - q * (s * x - u * v) + r * (s * w - t * v)


SINGULAR = {
    "rank 2": [[1.0, 2, 3], [2, 4, 6], [1, 1, 1]],
    "rank 1": [[1.0, 2, 3], [2, 4, 6], [3, 6, 9]],
    "zeros": [[0.0] * 3] * 3,
    "a first column of zeros": [[0.0, 2, 1], [0, 3, 5], [0, 1, 1]],
    "regular": [[2.0, 1, 0], [1, 3, 1], [0, 1, 1]],
}


@pytest.mark.parametrize("name", SINGULAR)
@pytest.mark.parametrize("dtype", [tp.float64, tp.complex128], ids=str)
def test_a_determinant_of_zero_has_derivatives(name: str, dtype: tp.dtype) -> None:
    a = tp.tensor(SINGULAR[name], dtype=dtype) * (1 + 0.5j if dtype.is_complex else 1)
    moved, along = (tp.arange(9.0).reshape(3, 3).to(dtype).sin() * k for k in (1, 1 + 0.3j if dtype.is_complex else 2))
    found = []
    for det in (tp.linalg.det, by_elements):

        def gradient(x: tp.Tensor, det: Any = det) -> tp.Tensor:
            return tp.func.vjp(det, x)[1](tp.ones((), dtype=dtype))[0]

        value, back = tp.func.vjp(gradient, a)
        change, of_gradient = tp.func.jvp(det, (a,), (along,)), tp.func.jvp(gradient, (a,), (along,))
        found.append((value, *back(moved), *change, *of_gradient))
    assert_close(found[0], found[1], rtol=1e-6, atol=1e-6)
