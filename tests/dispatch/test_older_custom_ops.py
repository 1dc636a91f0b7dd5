"""Operators as PyTorch had them before torch.library, and what it asks of schemas: _custom_ops, _library.utils."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import tensorpy as tp
from tensorpy import _C, _custom_ops
from tensorpy._custom_op.impl import get_op, global_registry
from tensorpy._library.utils import is_functional_schema, is_tensorlist_like_type, lookup_op

SPACE = "test_older_ops"


@pytest.fixture
def lib() -> Iterator[tp.library.Library]:
    library = tp.library.Library(SPACE, "FRAGMENT")
    yield library
    library._destroy()


def test_kernel_and_gradient_are_registered_by_halves(lib: tp.library.Library) -> None:
    lib.define("halves(Tensor x, float by) -> Tensor")

    @_custom_ops.impl(f"{SPACE}::halves")
    def kernel(x: tp.Tensor, by: float) -> tp.Tensor:
        return x.sin() * by

    with pytest.raises(RuntimeError, match="already has an implementation"):
        _custom_ops.impl(f"{SPACE}::halves", func=kernel)

    @_custom_ops.impl_save_for_backward(f"{SPACE}::halves")
    def save(inputs, output):
        return {"x": inputs.x, "by": inputs.by}

    @_custom_ops.impl_backward(f"{SPACE}::halves")
    def backward(ctx, saved, grad):
        return {"x": grad * saved["x"].cos() * saved["by"]}

    x = tp.tensor([0.3, -1.0], requires_grad=True)
    y = tp.ops.test_older_ops.halves(x, 2.0)
    assert tp.equal(y, x.sin() * 2.0)
    (gradient,) = tp.autograd.grad(y.sum(), x)
    tp.testing.assert_close(gradient, x.cos() * 2.0)


@pytest.mark.parametrize(
    ("schema", "gradients", "words"),
    [
        ("(Tensor x) -> Tensor", lambda grad: grad, "expected a dict"),
        ("(Tensor x) -> Tensor", lambda grad: {"x": grad, "y": None}, "to have keys {'x'} but got .*non-Tensor-like"),
        ("(Tensor x) -> Tensor", lambda grad: {}, "to have keys {'x'}"),
        ("(Tensor x) -> Tensor", lambda grad: {"x": (grad,)}, "either None or a Tensor, but got <class 'tuple'>"),
        ("(Tensor[] x) -> Tensor", lambda grad: {"x": grad}, "a list of gradients, but got <class"),
        ("(Tensor[] x) -> Tensor", lambda grad: {"x": [grad]}, "a list of 2 gradients but got 1"),
        ("(Tensor[] x) -> Tensor", lambda grad: {"x": [None, 1]}, "None or Tensor, but got <class 'int'> at index 1"),
    ],
)
def test_what_is_no_dict_of_gradients_is_an_error(schema: str, gradients: Any, words: str) -> None:
    name, x = f"{SPACE}::wrong", tp.ones(2, requires_grad=True)
    _custom_ops.custom_op(name, schema)
    try:
        _custom_ops.impl(name, func=lambda x: tp.ones(2))
        _custom_ops.impl_backward(name, func=lambda ctx, saved, grad: gradients(grad))
        given = [x, x] if "[" in schema else x
        with pytest.raises(RuntimeError, match="unable to find a 'save_for_backward'"):
            get_op(name)(given)
        _custom_ops.impl_save_for_backward(name, func=lambda inputs, output: ())
        with pytest.raises(RuntimeError, match=words):
            get_op(name)(given).sum().backward()
    finally:
        global_registry[name]._destroy()


def test_declarations_that_are_refused(lib: tp.library.Library) -> None:
    with pytest.raises(ValueError, match="does not handle overloads"):
        _custom_ops.custom_op(f"{SPACE}::f.Tensor", "() -> ()")
    for text in ("(", "(Tensor x)", "Tensor x -> Tensor"):
        with pytest.raises(AssertionError, match="Invalid function schema: f"):
            _custom_ops.custom_op(f"{SPACE}::f", text)
    for text in (
        "(Tensor(a!) x) -> Tensor(a!)",
        "(Tensor(a) x) -> Tensor(a)",
        "(Tensor x) -> ()",
        "(Tensor self) -> ()",
    ):
        with pytest.raises(ValueError, match="only supports functional operators"):
            _custom_ops.custom_op(f"{SPACE}::f", text)
    with pytest.raises(ValueError, match="arguments named 'self'"):
        _custom_ops.custom_op(f"{SPACE}::f", "(Tensor self) -> Tensor")
    assert not hasattr(tp.ops.test_older_ops, "f")
    lib.define("two(Tensor x) -> (Tensor, Tensor)")
    for given in (True, [True], [True, 1]):
        with pytest.raises(RuntimeError, match="output_differentiability to be a list of bools"):
            _custom_ops.impl_backward(f"{SPACE}::two", given)


@pytest.mark.parametrize("which", [None, [True, True], [False, True], [True, False]])
def test_results_without_a_gradient(lib: tp.library.Library, which: list[bool] | None) -> None:
    """A result may be a list."""
    lib.define("several(Tensor x) -> (Tensor[], Tensor)")
    _custom_ops.impl(f"{SPACE}::several", func=lambda x: ([x * 2, x * 3], x * 4))
    _custom_ops.impl_save_for_backward(f"{SPACE}::several", func=lambda inputs, output: ())
    _custom_ops.impl_backward(f"{SPACE}::several", which, func=lambda ctx, saved, several, one: {"x": one})
    (first, second), third = tp.ops.test_older_ops.several(tp.ones(2, requires_grad=True))
    assert [first.requires_grad, second.requires_grad, third.requires_grad] == (
        [True] * 3 if which is None else [which[0], which[0], which[1]]
    )


def test_an_operator_is_taken_out_with_all_that_is_registered_for_it() -> None:
    name, x = f"{SPACE}::comes_and_goes", tp.ones(2, requires_grad=True)
    for factor in (2.0, 3.0):
        _custom_ops.custom_op(name, "(Tensor x) -> Tensor")
        _custom_ops.impl(name, func=lambda x, by=factor: x * by)
        _custom_ops.impl_abstract(name, func=tp.empty_like)
        _custom_ops.impl_save_for_backward(name, func=lambda inputs, output: ())
        _custom_ops.impl_backward(name, func=lambda ctx, saved, grad, by=factor: {"x": grad * by})
        op = get_op(name)
        assert op is lookup_op(name) and tp.equal(op(x), x * factor) and op(x.to("meta")).shape == x.shape
        assert tp.autograd.grad(op(x).sum(), x)[0].tolist() == [factor] * 2
        global_registry[name]._destroy()
        assert name not in global_registry
    with pytest.raises(ValueError, match="Could not find the operator"):
        get_op(name)


@pytest.mark.parametrize(
    ("schema", "key", "match"),
    [
        ("views(Tensor(a) x) -> Tensor(a)", None, "operator that returns views"),
        ("writes(Tensor(a!) x) -> Tensor", None, "non-functional"),
        ("nothing(Tensor x) -> ()", None, "no returns"),
        ("composite(Tensor x) -> Tensor", "CompositeImplicitAutograd", "CompositeImplicitAutograd"),
        ("recorded(Tensor x) -> Tensor", "AutogradCPU", "AutogradCPU"),
    ],
)
def test_gradient_of_what_can_have_none_is_refused(
    lib: tp.library.Library, schema: str, key: str | None, match: str
) -> None:
    name = lib.define(schema)
    if key is not None:
        lib.impl(name, lambda x: x.sin(), key)
    for register in (_custom_ops.impl_save_for_backward, _custom_ops.impl_backward):
        with pytest.raises(RuntimeError, match=match):
            register(f"{SPACE}::{name}", func=lambda *args: None)


def test_what_is_asked_of_schemas() -> None:
    for schema, functional in (
        ("f(Tensor x) -> Tensor", True),
        ("f(Tensor(a) x) -> Tensor", True),
        ("f(Tensor(a!) x) -> Tensor", False),
        ("f(Tensor(a) x) -> Tensor(a)", False),
        ("f(Tensor x) -> ()", False),
    ):
        assert is_functional_schema(schema) is functional, schema
    assert is_functional_schema("f(Tensor(a) x) -> Tensor(a)", allow_valid_view=True)
    assert is_tensorlist_like_type(tp.ops.aten.index.Tensor._schema.arguments[1].type)
    assert is_tensorlist_like_type(tp.ops.aten.where.default._schema.returns[0].type)
    assert not is_tensorlist_like_type(_C._op_overload("aten::sin")._schema.arguments[0].type)


def test_types_that_schemas_do_not_have(lib: tp.library.Library) -> None:
    for schema, match in (
        ("f(asdf a) -> Tensor", "unknown type specifier"),
        ("f(Tensor a) -> asdf", "unknown type specifier"),
        ("f(int64_t a) -> Tensor", "Use `SymInt` or `int`"),
        ("f(double a) -> Tensor", "Use `float`"),
    ):
        with pytest.raises(RuntimeError, match=match):
            lib.define(schema)
    with pytest.raises(ValueError, match="expected schema to look like"):
        tp.library.define(f"{SPACE}::f", "f(Tensor x) -> Tensor")
