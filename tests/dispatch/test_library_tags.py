"""Operators with the tags inplace and out, fake kernels that ask, names of triton, and what is no operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tensorpy as tp
from tensorpy import library
from tensorpy._subclasses import FakeTensorMode
from tensorpy._subclasses.fake_tensor import DynamicOutputShapeException

SCHEMAS = [  # and whether an operator with the tag may have it
    ("out", "f(Tensor x, *, Tensor(a!) out) -> Tensor(a!)", True),
    ("out", "f(Tensor x, *, Tensor(a!) one, Tensor(b!) two) -> (Tensor(a!), Tensor(b!))", True),
    ("out", "f(Tensor x, *, Tensor(a!) one, Tensor(b!) two) -> (Tensor(b!), Tensor(a!))", False),
    ("out", "f(Tensor x, *, Tensor(a!) one, Tensor(b!) two) -> Tensor(a!)", False),
    ("out", "f(Tensor x, *, Tensor(a!) out) -> Tensor", False),
    ("out", "f(Tensor x, *, Tensor(a!) out) -> ()", False),
    ("out", "f(Tensor x, Tensor(a!) out) -> Tensor(a!)", False),
    ("out", "f(Tensor x, *, Tensor(a!)[] out) -> ()", False),
    ("out", "f(Tensor x) -> Tensor", False),
    ("inplace", "f(Tensor(a!) x, Tensor y) -> Tensor(a!)", True),
    ("inplace", "f(Tensor(a!) x) -> Tensor", False),
    ("inplace", "f(Tensor(a!) x) -> ()", False),
    ("inplace", "f(Tensor(a!) x, Tensor(b!) y) -> Tensor(a!)", False),
    ("inplace", "f(Tensor x, Tensor(a!) y) -> Tensor(a!)", False),
    ("inplace", "f(*, Tensor(a!) x) -> Tensor(a!)", False),
    ("inplace", "f(Tensor(a!)[] x) -> ()", False),
]


@pytest.mark.parametrize(("tag", "schema", "good"), SCHEMAS)
@pytest.mark.parametrize("name", ["torch", "tensorpy"])
def test_schemas_of_tags(name: str, tag: str, schema: str, good: bool) -> None:
    t: Any = pytest.importorskip(name)
    lib = t.library.Library(f"tags{SCHEMAS.index((tag, schema, good))}", "FRAGMENT")
    try:
        if good:
            lib.define(schema, tags=getattr(t.Tag, tag))
        else:
            with pytest.raises(ValueError, match=tag):
                lib.define(schema, tags=getattr(t.Tag, tag))
    finally:
        lib._destroy()


def functions(t: Any) -> list[tuple[Callable[..., Any], Any, str]]:
    """With what they write and a tag."""
    Tensor = t.Tensor

    def add(x: Tensor, y: Tensor) -> Tensor: ...
    def none(x: Tensor, y: Tensor) -> None: ...
    def out(x: Tensor, *, out: Tensor) -> Tensor: ...
    def outs(x: Tensor, *, n: int = 3, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]: ...
    def no_out(x: Tensor, *, out: Tensor) -> None: ...

    for f in (add, none, out, outs, no_out):
        f.__annotations__ = {
            k: eval(v, {"Tensor": Tensor}) if isinstance(v, str) else v for k, v in f.__annotations__.items()
        }
    return [
        (add, {"x"}, "inplace"), (add, {"y"}, "inplace"), (add, {"x", "y"}, "inplace"), (none, {"x"}, "inplace"),
        (out, {"out"}, "out"), (outs, {"a", "b"}, "out"), (no_out, {"out"}, "out"), (out, (), "out"),
        (add, {"y"}, "out"), (add, (), "inplace"), (out, {"out"}, "inplace"), (add, {"x"}, "pointwise"),
    ]  # fmt: skip


@pytest.mark.parametrize("case", range(12))
def test_schemas_of_functions_with_tags(case: int) -> None:
    torch: Any = pytest.importorskip("torch")
    found = []
    for t in (torch, tp):
        function, written, tag = functions(t)[case]
        try:
            found.append(t.library.infer_schema(function, mutates_args=written, tags=getattr(t.Tag, tag)))
        except Exception as error:
            found.append(type(error).__name__)
    assert found[0] == found[1]


def test_operators_that_return_what_they_write() -> None:
    @library.custom_op("tagged::add_", mutates_args={"x"}, tags=tp.Tag.inplace)
    def add_(x: tp.Tensor, y: tp.Tensor) -> tp.Tensor:
        return x.add_(y)

    @library.custom_op("tagged::double", mutates_args={"out"}, tags=tp.Tag.out)
    def double(x: tp.Tensor, *, out: tp.Tensor) -> tp.Tensor:
        return out.copy_(x * 2)

    @library.custom_op("tagged::liar", mutates_args={"x"}, tags=tp.Tag.inplace)
    def liar(x: tp.Tensor) -> tp.Tensor:
        return x.clone()

    x, out = tp.ones(2), tp.zeros(2)
    assert add_(x, x.clone()) is x and x.tolist() == [2, 2]
    assert double(x, out=out) is out and out.tolist() == [4, 4]
    assert (
        "inplace" in add_._op.tags
        and str(double._schema) == "tagged::double(Tensor x, *, Tensor(a1!) out) -> Tensor(a1!)"
    )
    with pytest.raises(RuntimeError, match="returns the tensors that it writes"):
        liar(x)
    with pytest.raises(AssertionError, match="exclude"):
        library.infer_schema(liar._init_fn, mutates_args={"x"}, tags=["inplace", "out"])


def test_sizes_that_depend_on_elements() -> None:
    """Sizes are numbers: a fake kernel that asks for another one is told so, and opcheck has nothing to compare."""
    assert library.get_ctx() is None

    @library.custom_op("tagged::places", mutates_args=())
    def places(x: tp.Tensor) -> tp.Tensor:
        return x.nonzero()

    @places.register_fake
    def _(x: Any) -> Any:
        ctx: Any = library.get_ctx()
        with pytest.raises(ValueError, match="-1"):
            ctx.new_dynamic_size(min=-1)
        return x.new_empty(ctx.create_unbacked_symint(), x.ndim, dtype=tp.int64)

    assert places(tp.tensor([0.0, 3.0])).tolist() == [[1]]
    with pytest.raises(RuntimeError, match="data-dependent shape"):
        places(tp.ones(2, device="meta"))
    with FakeTensorMode(), pytest.raises(DynamicOutputShapeException):
        places(tp.ones(2))
    assert library.get_ctx() is None
    assert library.opcheck(places, (tp.ones(2),), test_utils="test_faketensor") == {"test_faketensor": "SUCCESS"}


def test_names_of_triton() -> None:
    @library.triton_op("tagged::triple", mutates_args=())
    def triple(x: tp.Tensor) -> tp.Tensor:
        return x * 3

    assert triple(tp.ones(2)).tolist() == [3, 3]
    with pytest.raises((ModuleNotFoundError, RuntimeError)):
        library.wrap_triton(lambda: None)


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.library.register_fake("foo", lambda x: x),
        lambda t: t.library.register_fake(3, lambda x: x),
        lambda t: t.library.register_kernel(3, "cpu", lambda x: x),
        lambda t: t.library.register_autograd(3, lambda ctx, g: g),
        lambda t: t.library.register_autocast(3, "cpu", t.float16),
        lambda t: t.library.register_vmap(3, lambda *a: a),
        lambda t: t.library.register_torch_dispatch(3, t.Tensor, lambda *a: a),
        lambda t: t.library.define(3, "(Tensor x) -> Tensor"),
        lambda t: t.library.Library("aten", "IMPL").impl(5, lambda x: x, "CPU"),
        lambda t: t.library.Library("tagged_alias", "FRAGMENT").define("f(Tensor x) -> Tensor", "FOO"),
        lambda t: t.library.opcheck(lambda x: x, (t.ones(2),)),
        lambda t: t.library.opcheck(t.ops.aten.sin.default, ()),
        lambda t: t.library.opcheck(t.ops.aten.sin.default, (t.ones(2),), atol=1.0),
        lambda t: t.library.opcheck(t.ops.aten.sin.default, (t.ones(2),), test_utils="nothing"),
    ],
)
def test_what_is_no_operator(call: Any) -> None:
    torch: Any = pytest.importorskip("torch")
    with pytest.raises(Exception) as theirs:
        call(torch)
    with pytest.raises(Exception) as ours:
        call(tp)
    assert ours.type.__name__ == theirs.type.__name__


def test_opcheck_looks_at_graphs_and_backward() -> None:
    def made(name: str, backward: Any = None) -> Any:
        @library.custom_op(f"tagged::{name}", mutates_args=())
        def f(x: tp.Tensor) -> tp.Tensor:
            return x * 2

        if backward:
            f.register_autograd(backward)
        return f

    x = tp.ones(3, requires_grad=True)
    one = "test_aot_dispatch_dynamic"
    assert library.opcheck(made("right", lambda ctx, g: g * 2), (x,), test_utils=one) == {one: "SUCCESS"}
    with pytest.raises(library.OpCheckError, match=one):
        library.opcheck(made("short", lambda ctx, g: g[:1]), (x,), test_utils=one)
    with pytest.raises(library.OpCheckError, match="derivative"):
        library.opcheck(made("without"), (x,), test_utils=one)

    @library.custom_op("tagged::noise", mutates_args=())
    def noise(x: tp.Tensor) -> tp.Tensor:
        return x + tp.rand_like(x)

    noise.register_fake(lambda x: tp.empty_like(x))
    assert set(library.opcheck(noise, (tp.ones(3),), atol=0.0, rtol=0.0).values()) == {"SUCCESS"}
