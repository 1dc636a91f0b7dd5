"""Operators that are declared while the program runs: schemas, kernels, gradients, Meta, errors, checks."""

from __future__ import annotations

import gc
import inspect
import pickle
import subprocess
import sys
import threading
import warnings
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from opencl_programs import needs_device

import tensorpy as tp
from tensorpy import _C, Tensor, library
from tensorpy._library import rules
from tensorpy.autograd import gradcheck
from tensorpy.testing.samples.table import CATALOG


@library.custom_op("testlib::scale", mutates_args=())
def scale(x: Tensor, by: float = 2.0, *, shift: int = 0) -> Tensor:
    """x * by + shift"""
    return x * by + shift


@library.custom_op("testlib::parts", mutates_args=())
def parts(xs: list[Tensor], n: int) -> tuple[Tensor, Tensor]:
    return xs[0] * n, xs[1].clone()


@library.custom_op("testlib::increment", mutates_args={"x"})
def increment(x: Tensor) -> None:
    x.add_(1)


@pytest.fixture
def lib() -> Iterator[library.Library]:
    made = library.Library("testlib", "FRAGMENT")
    yield made
    made._destroy()


# ---- schemas ----


def test_every_schema_of_the_yaml_is_read() -> None:
    """As the generator reads it: names, types, defaults, what is written, what is keyword-only."""
    for op in CATALOG:
        text = str(op.schema)
        if any(word in text for word in ("Storage", "Dimname", "Stream", "->*", "-> *")):
            continue
        if len(op.schema.arguments) > 24 or "..." in text:
            continue
        space = "mirror" + op.schema.name.namespace
        base, text = (given.rpartition("::")[2] for given in (str(op.schema.name), text))
        name = _C._define(f"{space}::{text}", "a test")
        assert name == f"{space}::{base}"
        info = _C._operator_info(name)
        assert info[0] == f"{space}::{text}"


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ("f(Tensor x) -> ", "a type is missing"),
        ("f(Tensr x) -> Tensor", "there is no such type"),
        ("f(Tensor x, Tensor x) -> Tensor", "two arguments have this name"),
        ("f(Tensor x, int a=b) -> Tensor", "no default for its type"),
        ("f(Tensor x, int a=1.5) -> Tensor", "no default for its type"),
        ("f(Tensor x=None) -> Tensor", "no default for its type"),
        ("f(int a=1, int b) -> Tensor", "after one with it"),
        ("f(int[] a=[[1], 2]) -> Tensor", "no default for its type"),
        ("f(int[] a=[" + "1, " * 400 + "1]) -> Tensor", "no default for its type"),
        ("f" * 130 + "(Tensor x) -> Tensor", "the name is too long"),
        ("f(Tensor x -> Tensor", "',' or '\\)' is missing"),
        ("f Tensor", "'\\(' is missing"),
        ("f(str[] x) -> Tensor", "no such lists"),
        ("f(Tensor x) -> Tensor more words", "something stands after"),
        ("f(Tensor(a! x", "has no '\\)'"),
        ("f(" + ", ".join(f"int a{i}" for i in range(30)) + ") -> ()", "too many arguments"),
        ("", "a name is missing|begins with"),
    ],
)
def test_schemas_that_do_not_parse(lib: library.Library, schema: str, problem: str) -> None:
    with pytest.raises(RuntimeError, match=problem):
        lib.define(schema)


@pytest.mark.parametrize("arrow", ["->", " ->", "-> ", "  ->\n "])
def test_spaces_around_the_arrow_are_optional(lib: library.Library, arrow: str) -> None:
    assert lib.define(f"spaced(Tensor x){arrow}Tensor") == "spaced"
    lib.impl("spaced", lambda x: x * 2, "CPU")
    op = getattr(tp.ops, lib.ns).spaced.default
    assert str(op._schema) == f"{lib.ns}::spaced(Tensor x) -> Tensor" and op(tp.ones(1)).item() == 2


def test_a_schema_stays(lib: library.Library) -> None:
    assert lib.define("kept(Tensor x) -> Tensor") == "kept"
    for again in ("kept(Tensor x) -> Tensor", "kept(Tensor x, int n) -> Tensor"):
        with pytest.raises(RuntimeError, match=r"testlib::kept is declared already, at .*test_library.py:\d+"):
            lib.define(again)
    with pytest.raises(RuntimeError, match="tensorpy's own"):
        library.define("aten::kept", "(Tensor x) -> Tensor")


@pytest.mark.parametrize(("first", "second"), [("DEF", "FRAGMENT"), ("FRAGMENT", "DEF"), ("FRAGMENT", "FRAGMENT")])
def test_two_libraries_do_not_declare_one_operator(first: str, second: str) -> None:
    """The error names both places; what was declared stays."""
    one, two = library.Library("testtwice", first), library.Library("testtwice", second)
    one.define("f(Tensor x) -> Tensor")
    here = r"test_library.py:\d+"
    for schema in ("f(Tensor x) -> Tensor", "f(Tensor x, int n) -> Tensor"):
        with pytest.raises(RuntimeError, match=rf"testtwice::f is declared already, at .*{here}.* again, at .*{here}"):
            two.define(schema)
    two.define("f.other(Tensor x, int n) -> Tensor")
    two._destroy()
    assert "testtwice::f" in tp._C._operators() and "testtwice::f.other" not in tp._C._operators()
    one._destroy()
    three = library.Library("testtwice", "DEF")
    three.define("f(Tensor x) -> Tensor")
    three._destroy()


def test_autocast_stands_for_every_devices_autocast(lib: library.Library) -> None:
    lib.define("cast(Tensor x) -> Tensor")
    for key in ("CPU", "Meta"):
        lib.impl("cast", lambda x: x * 2, key)
    seen = []

    def kernel(x: Tensor) -> Tensor:
        seen.append(x.device.type)
        with tp.autocast(x.device.type, enabled=False):
            return tp.ops.testlib.cast(x.to(tp.bfloat16))

    lib.impl("cast", kernel, "Autocast")
    x = tp.ones(3)
    assert tp.ops.testlib.cast(x).dtype == tp.float32 and not seen
    with tp.autocast("cpu"):
        assert tp.ops.testlib.cast(x).dtype == tp.bfloat16
        assert tp.ops.testlib.cast(x.to("meta")).dtype == tp.float32  # autocast is not on there
    assert seen == ["cpu"]
    assert {"Autocast", "Dense", "Autograd"} <= set(tp._C._ALIAS_KEYS)


def test_an_edited_cell_runs_again() -> None:
    """Another schema of what Python declared takes its place. A namespace has one DEF at a time, as in PyTorch."""

    @library.custom_op("testcell::f", mutates_args=())
    def f(x: Tensor) -> Tensor:
        return x + 1

    held = tp.ops.testcell.f.default
    assert f(tp.ones(1)).item() == 2

    @library.custom_op("testcell::f", mutates_args=())
    def g(x: Tensor, by: float) -> Tensor:
        return x + by

    assert g(tp.ones(1), 3.0).item() == tp.ops.testcell.f(tp.ones(1), 3.0).item() == 4
    with pytest.raises(NotImplementedError, match="testcell::f"):
        held(tp.ones(1))
    cell = library.Library("testcell2", "DEF")
    cell.define("h(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match=r"'testcell2' has its DEF already, opened at .*test_library\.py"):
        library.Library("testcell2", "DEF")
    assert "testcell2::h" in tp._C._operators()  # what was refused takes nothing with it
    cell._destroy()
    cell = library.Library("testcell2", "DEF")
    cell.define("h(Tensor x, int n) -> Tensor")
    assert "int n" in tp.ops.testcell2.h.default._schema
    cell._destroy()
    assert not hasattr(tp.ops.testcell2, "h") and "testcell2::h" not in tp._C._operators()


def test_schemas_from_annotations() -> None:
    def f(
        a: Tensor, b: Tensor | None, c: list[int], d: int | float | bool = 1, *, e: str = "x", g: float | None = None
    ) -> Tensor:
        return a

    inferred = library.infer_schema(f, mutates_args=("a",))
    assert inferred == '(Tensor(a0!) a, Tensor? b, SymInt[] c, Scalar d=1, *, str e="x", float? g=None) -> Tensor'
    for bad, words in ((lambda x: x, "no annotation"), (wrong_type, "is annotated"), (no_result, "what it returns")):
        with pytest.raises(ValueError, match=words):
            library.infer_schema(bad, mutates_args=())
    with pytest.raises(ValueError, match="no parameter z"):
        library.infer_schema(f, mutates_args=("z",))


def annotated(argument: Any, result: Any, **default: Any) -> Any:
    given = default.get("default", inspect.Parameter.empty)

    def f(x: Any = given) -> Any: ...

    f.__annotations__ = {"x": argument, "return": result}
    return f


def test_types_that_no_schema_of_an_operator_has() -> None:
    """What PyTorch's operators have as arguments and as results, and no more."""
    arguments = ["Tensor", "Tensor?", "Tensor[]", "Tensor?[]", "SymInt[]?", "Scalar[]", "str?", "ScalarType", "Device?"]
    types: list[Any] = [
        Tensor,
        Tensor | None,
        list[Tensor],
        Sequence[Tensor | None],
        list[int] | None,
        list[int | float | bool],
        str | None,
        tp.dtype,
        tp.device | None,
    ]
    for said, given in zip(arguments, types, strict=True):
        assert library.infer_schema(annotated(given, Tensor), mutates_args=()) == f"({said} x) -> Tensor"
    refused: list[Any] = [
        list[str],
        list[tp.dtype],
        list[tp.device] | None,
        list[Tensor] | None,
        list[int | None],
        Sequence[int | float | bool] | None,
        list[list[int]],
        tuple[int, int],
    ]
    for given in refused:
        with pytest.raises(ValueError, match="no type of a schema"):
            library.infer_schema(annotated(given, Tensor), mutates_args=())
    results = {Tensor: "Tensor", list[Tensor]: "Tensor[]", int: "SymInt", float: "float", int | float | bool: "Scalar"}
    for result, said in results.items():
        assert library.infer_schema(annotated(Tensor, result), mutates_args=()) == f"(Tensor x) -> {said}"
    for result in (str, tp.dtype, list[int], Tensor | None, Sequence[Tensor], list[Tensor | None], tuple[Tensor, str]):
        with pytest.raises(ValueError, match="no type of a schema"):
            library.infer_schema(annotated(Tensor, result), mutates_args=())
    for default in ([1, 2], (), 1j, object(), {}):
        with pytest.raises(ValueError, match="the default of 'x'"):
            library.infer_schema(annotated(list[int], Tensor, default=default), mutates_args=())


def test_defaults_as_a_schema_prints_them(lib: library.Library) -> None:
    written = (
        "float a=2.0, float b=1e-5, float c=3, int[2] d=1, int[2] e=[1,2], SymInt[2] f=0, str g='a\"b', "
        "ScalarType h=long"
    )
    printed = (
        "float a=2., float b=1.0000000000000001e-05, float c=3., int[2] d=1, int[2] e=[1, 2], SymInt[2] f=[0, 0], "
        'str g="a\\"b", ScalarType h=4'
    )
    lib.define(f"printed(Tensor x, {written}, Device? i='cpu', Scalar j=1, int k=Mean) -> Tensor")
    schema = tp.ops.testlib.printed.default._schema
    assert str(schema) == f"testlib::printed(Tensor x, {printed}, Device? i=cpu, Scalar j=1, int k=1) -> Tensor"
    assert f"{schema}" == repr(schema) == str(schema) and written in schema


# ---- operators of a library without a gradient of their own ----


@pytest.mark.parametrize("key", ["CPU", "CompositeExplicitAutograd", "CompositeImplicitAutograd"])
def test_an_operator_trains_through_what_its_kernel_calls(lib: library.Library, key: str) -> None:
    lib.define("wave(Tensor x) -> Tensor")
    lib.impl("wave", lambda x: x.sin() * 2, key)
    wave = tp.ops.testlib.wave
    x = tp.tensor([0.5, 1.0], requires_grad=True)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        (slope,) = tp.autograd.grad(wave(x).sum(), x, create_graph=True)
        (bend,) = tp.autograd.grad(slope.sum(), x)
    np.testing.assert_allclose(slope.detach().numpy(), 2 * np.cos([0.5, 1.0]), rtol=1e-6)
    np.testing.assert_allclose(bend.numpy(), -2 * np.sin([0.5, 1.0]), rtol=1e-6)
    assert any("autograd kernel was not registered" in str(w.message) for w in seen) == (
        key != "CompositeImplicitAutograd"
    )
    assert not wave(x.detach()).requires_grad
    with tp.no_grad():
        assert not wave(x).requires_grad
    library.register_autograd("testlib::wave", lambda ctx, g: g * 7, lib=lib)  # its own takes the place
    if key != "CompositeImplicitAutograd":
        (slope,) = tp.autograd.grad(wave(x).sum(), x)
        assert slope.tolist() == [7, 7]


def test_what_a_kernel_makes_out_of_sight_has_no_gradient(lib: library.Library) -> None:
    lib.define("outside(Tensor x, Tensor[] more) -> (Tensor, Tensor[])")
    lib.impl("outside", lambda x, more: (tp.from_numpy(x.detach().numpy() * 2), [m * 3 for m in more]), "CPU")
    x = tp.ones(2, requires_grad=True)
    doubled, (tripled,) = tp.ops.testlib.outside(x, [x])
    assert doubled.requires_grad and tripled.requires_grad
    with pytest.warns(UserWarning, match=r"testlib::outside.*register_autograd"):
        (doubled.sum() + tripled.sum()).backward()
    assert x.grad is not None and x.grad.tolist() == [3, 3]
    lib.define("count(Tensor x) -> Tensor")
    lib.impl("count", lambda x: x.detach().int(), "CPU")
    assert not tp.ops.testlib.count(x).requires_grad


def test_whether_backward_warns_of_an_operator_without_a_gradient_is_a_mode(lib: library.Library) -> None:
    """Nothing is recorded and nothing said where it is "nothing", but what the kernel itself records."""
    lib.define("hidden(Tensor x) -> Tensor")
    lib.impl("hidden", lambda x: tp.from_numpy(x.detach().numpy() * 2), "CPU")
    lib.define("seen(Tensor x) -> Tensor")
    lib.impl("seen", lambda x: x * 2, "CPU")
    x = tp.ones(2, requires_grad=True)
    assert rules.autograd_fallback_mode() == "warn"
    with pytest.warns(UserWarning, match="testlib::seen: an autograd kernel was not registered"):
        tp.ops.testlib.seen(x).sum().backward()
    try:
        rules.set_autograd_fallback_mode("nothing")
        assert not tp.ops.testlib.hidden(x).requires_grad
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            tp.ops.testlib.seen(x).sum().backward()
    finally:
        rules.set_autograd_fallback_mode("warn")
    assert x.grad is not None and x.grad.tolist() == [4, 4]
    with pytest.raises(RuntimeError, match="'nothing' or 'warn', not 'error'"):
        rules.set_autograd_fallback_mode("error")


def test_a_library_ends_with_what_it_is_in_c(lib: library.Library) -> None:
    lib.define("gone(Tensor x) -> Tensor")
    del lib.m
    assert "testlib::gone" not in tp._C._operators()


def test_versions_are_those_of_what_the_kernel_writes(lib: library.Library) -> None:
    lib.define("write_(Tensor(a!)[] xs, int times) -> ()")

    def write(xs: list[Tensor], times: int) -> None:
        for x in xs * times:
            x.mul_(2)

    lib.impl("write_", write, "CPU")
    leaf = tp.ones(2, requires_grad=True)
    x, y = leaf * 1, tp.ones(2)
    for times, version in ((0, 0), (1, 1), (2, 3)):
        tp.ops.testlib.write_([x, y], times)
        assert x._version == y._version == version
    x.sum().backward()
    assert leaf.grad is not None and leaf.grad.tolist() == [8, 8]


def test_a_function_that_became_an_operator_waits_for_its_fake_kernel() -> None:
    @library.custom_op("testfake::f", mutates_args=())
    def f(x: Tensor) -> Tensor:
        return x.sin()

    @library.custom_op("testfake::g", mutates_args=("x",))
    def g(x: Tensor) -> None:
        x.add_(1)

    with pytest.raises(RuntimeError, match=r"no fake impl .* for testfake::f: .*register_fake"):
        f(tp.ones(2, device="meta"))
    g(tp.ones(2, device="meta"))  # gives nothing, and needs none
    f.register_fake(lambda x: tp.empty_like(x))
    assert f(tp.ones(2, device="meta")).shape == (2,)
    with pytest.raises(RuntimeError, match="testfake::h does not exist"):
        library.register_fake("testfake::h", lambda x: x)


def wrong_type(x: dict[str, int]) -> Tensor: ...
def no_result(x: Tensor): ...  # type: ignore[no-untyped-def]


# ---- calls ----


def test_calls() -> None:
    x = tp.ones(3)
    assert scale(x).tolist() == [2, 2, 2]
    assert tp.ops.testlib.scale(x, 3.0, shift=1).tolist() == [4, 4, 4]
    assert tp.ops.testlib.scale.default(by=1.0, x=x).tolist() == [1, 1, 1]
    first, second = parts([x, x * 5], 2)
    assert first.tolist() == [2, 2, 2] and second.tolist() == [5, 5, 5]
    with pytest.raises(RuntimeError, match="shfit"):
        scale(x, shfit=1)
    with pytest.raises(RuntimeError, match=r"testlib::parts\(\): argument 'xs'"):
        parts(x, 2)


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [((), {}), ((1,), {}), (([0.0],), {}), (("x", 1), {}), ((1, 2, 3), {}), ((1,), {"zz": 1}), ((1, 2**70), {})],
)
def test_arguments_that_do_not_fit_are_a_runtime_error(
    lib: library.Library, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """For an operator called by its full name, a packet or an overload, outside's or tensorpy's own."""
    lib.define("fit(Tensor x, int n) -> Tensor")
    lib.impl("fit", lambda x, n: x * n, "CPU")
    for op in (tp.ops.testlib.fit, tp.ops.testlib.fit.default, tp.ops.aten.select, tp.ops.aten.select.int):
        with pytest.raises(RuntimeError) as caught:
            op(*args, **kwargs)
        assert type(caught.value) is RuntimeError
    lib.define("fit.two(Tensor x, str s) -> Tensor")

    def raises(x: Tensor, s: str) -> Tensor:
        raise TypeError("the kernel's own")

    lib.impl("fit.two", raises, "CPU")
    with pytest.raises(TypeError, match="the kernel's own"):  # an overload that fits is the last
        tp.ops.testlib.fit(tp.ones(1), "s")
    with pytest.raises(RuntimeError, match="no overload"):
        tp.ops.testlib.fit(tp.ones(1), 0.5)


def test_what_an_overload_takes_beside_its_types(lib: library.Library) -> None:
    x = tp.arange(4.0).view(2, 2)
    assert tp.ops.aten.sum.dim_IntList(x, {0}, 1).shape == (1, 2)
    assert tp.ops.aten.sum.dim_IntList(x, range(2)).item() == tp.ops.aten.sum(x, range(2)).item() == 6
    assert tp.ops.aten.select.int(x, True, False).tolist() == [0, 2]
    lib.define("take(Tensor x, int n, bool b, int[] ns) -> Tensor")
    lib.impl("take", lambda x, n, b, ns: tp.tensor([float(n), float(b), float(len(ns))]), "CPU")
    assert tp.ops.testlib.take(x, True, 3, [False, True, 2]).tolist() == [1, 1, 3]
    with pytest.raises(TypeError, match="must be int"):  # the plain function is as strict as before
        tp.select(x, True, 0)


def test_it_is_an_operator_like_any_other() -> None:
    op = tp.ops.testlib.scale.default
    assert pickle.loads(pickle.dumps(op))(tp.ones(1)).item() == 2
    assert "scale" in dir(tp.ops.testlib) and "testlib" in dir(tp.ops) and "add" in dir(tp.ops.aten)
    assert repr(op) == "<OpOverload(op='testlib.scale', overload='default')>"
    shown = tp.dispatch.explain("testlib::scale", tp.ones(2))
    assert "CPU                    boxed" in shown and "test_library.py" in shown
    x = tp.zeros(2)
    with tp.dispatch.trace() as calls:
        increment(x)
    assert {"testlib::increment", "add_.Scalar"} <= {c.op for c in calls}


def test_versions_of_what_is_written() -> None:
    x = tp.zeros(2)
    before = x._version
    increment(x)
    assert x.tolist() == [1, 1] and x._version > before
    y = tp.ones(2, requires_grad=True)
    saved = y * 1
    out = saved.exp()
    increment(saved)
    with pytest.raises(RuntimeError, match="testlib::increment"):
        out.sum().backward()
        saved.sum().backward()


def test_a_list_that_is_written_is_given_back(lib: library.Library) -> None:
    lib.define("grow_(Tensor[](a!) xs, int by) -> Tensor[](a!)")
    lib.impl("grow_", lambda xs, by: [x.add_(by) for x in xs], "CompositeExplicitAutograd")
    given = [tp.ones(2), tp.zeros(3)]
    made = tp.ops.testlib.grow_(given, 4)
    assert len(made) == 2 and all(a is b for a, b in zip(made, given, strict=True))
    assert given[0].tolist() == [5, 5]


def test_kernels_per_device(lib: library.Library) -> None:
    lib.define("which(Tensor x) -> Tensor")
    lib.impl("which", lambda x: x + 1, "CPU")
    assert tp.ops.testlib.which(tp.zeros(1)).item() == 1
    with pytest.raises(NotImplementedError, match="testlib::which"):
        tp.ops.testlib.which(tp.zeros(1, device="meta"))
    library.register_fake("testlib::which", lambda x: tp.empty_like(x), lib=lib)
    assert tp.ops.testlib.which(tp.zeros(2, device="meta")).shape == (2,)
    with pytest.raises(RuntimeError, match=r"already has a kernel for CPU, registered from .*test_library.py"):
        lib.impl("which", lambda x: x, "CPU", allow_override=False)
    lib.impl("which", lambda x: x + 2, "CPU")
    assert tp.ops.testlib.which(tp.zeros(1)).item() == 2
    with pytest.raises(RuntimeError, match="no dispatch key"):
        lib.impl("which", lambda x: x, "NoKey")
    for key in ("CUDA", "AutogradXPU"):  # PyTorch's, of devices that are not here
        lib.impl("which", lambda x: x, key)
    with pytest.raises(TypeError, match="a kernel is a function, not list"):
        lib.impl("which", [], "CPU")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_kernels_of_operators_that_are_there() -> None:
    own = library.Library("aten", "IMPL")
    own.impl("neg", lambda x: x.clone(), "CPU", allow_override=True)
    try:
        assert tp.ones(1).neg().item() == 1
        x = tp.ones(1, requires_grad=True)
        x.neg().backward()
        assert x.grad is not None and x.grad.item() in (-1, 1)
    finally:
        own._destroy()
    assert tp.ones(1).neg().item() == -1


def test_a_composite_is_differentiated_by_its_parts(lib: library.Library) -> None:
    lib.define("cubed(Tensor x) -> Tensor")
    lib.impl("cubed", lambda x: x * x * x, "CompositeImplicitAutograd")
    x = tp.tensor([2.0], requires_grad=True)
    tp.ops.testlib.cubed(x).backward()
    assert x.grad is not None and x.grad.item() == 12


def test_a_fallback_is_given_the_operator() -> None:
    own = library.Library("_", "IMPL")
    seen: list[str] = []

    def log(op: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(op._own_name)
        return tp.zeros(1)

    own.fallback(log, "PrivateUse3")
    try:
        assert "PrivateUse3              fallback" in str(tp.dispatch.table("neg"))
        with pytest.raises(RuntimeError, match="already has a fallback"):
            own.fallback(log, "PrivateUse3")
    finally:
        own._destroy()
    assert "PrivateUse3              fallback" not in str(tp.dispatch.table("neg"))


# ---- gradients ----


def test_without_a_derivative_backward_says_so() -> None:
    x = tp.ones(3, requires_grad=True)
    xs = parts([x, x], 1)
    assert all(t.requires_grad for t in xs)
    with pytest.raises(
        RuntimeError, match=r"testlib::parts is not implemented: it was declared at .*test_library.py:\d+"
    ):
        xs[0].sum().backward()


def test_registered_derivatives(lib: library.Library) -> None:
    lib.define("mixed(Tensor[] xs, Tensor y, *, float by=1.0) -> Tensor")
    lib.impl("mixed", lambda xs, y, by=1.0: xs[0] * y * by + xs[1], "CompositeExplicitAutograd")

    def setup(ctx: Any, inputs: Any, output: Any, keyword_only_inputs: Any) -> None:
        ctx.save_for_backward(inputs[0][0], inputs[1])
        ctx.by = keyword_only_inputs["by"]

    def backward(ctx: Any, g: Tensor) -> Any:
        x, y = ctx.saved_tensors
        return [g * y * ctx.by, g], g * x * ctx.by

    library.register_autograd("testlib::mixed", backward, setup_context=setup, lib=lib)
    inputs = [tp.randn(3, dtype=tp.float64, requires_grad=True) for _ in range(3)]
    op = tp.ops.testlib.mixed
    assert gradcheck(lambda a, b, c: op([a, b], c, by=3.0), inputs)
    with tp.no_grad():
        assert not op(inputs[:2], inputs[2]).requires_grad
    with pytest.raises(RuntimeError, match="writes its arguments"):
        library.register_autograd(increment, backward)
    library.register_autograd("testlib::mixed", lambda ctx, g: g, setup_context=setup, lib=lib)
    with pytest.raises(RuntimeError, match="1 gradients for 2 arguments"):
        op(inputs[:2], inputs[2]).sum().backward()


def test_autocast(lib: library.Library) -> None:
    lib.define("echo(Tensor x) -> Tensor")
    lib.impl("echo", lambda x: x.clone(), "CompositeExplicitAutograd")
    library.register_autocast("testlib::echo", "cpu", tp.bfloat16, lib=lib)
    assert tp.ops.testlib.echo(tp.ones(2)).dtype == tp.float32
    with tp.autocast("cpu", dtype=tp.bfloat16):
        assert tp.ops.testlib.echo(tp.ones(2)).dtype == tp.bfloat16


# ---- faults ----


@pytest.mark.parametrize(
    ("schema", "returned", "words"),
    [
        ("(Tensor x) -> Tensor", 3, "returned int as result 0, where the schema says Tensor"),
        ("(Tensor x) -> Tensor", None, "returned NoneType"),
        ("(Tensor x) -> (Tensor, Tensor)", (tp.ones(1),), "has to return 2 results"),
        ("(Tensor x) -> Tensor[]", [1], "returned list"),
        ("(Tensor x) -> ()", 3, "the schema says nothing"),
        ("(Tensor x) -> int", 1.5, "returned float"),
    ],
)
def test_results_that_the_schema_does_not_say(lib: library.Library, schema: str, returned: Any, words: str) -> None:
    name = f"wrong{abs(hash(schema + repr(returned))) % 10**8}"
    lib.define(name + schema)
    lib.impl(name, lambda x: returned, "CPU")
    with pytest.raises(RuntimeError, match=words):
        getattr(tp.ops.testlib, name)(tp.ones(1))


def test_an_argument_is_no_result(lib: library.Library) -> None:
    lib.define("same(Tensor x) -> Tensor")
    lib.impl("same", lambda x: x, "CPU")
    with pytest.raises(RuntimeError, match=r"returned its argument 'x'.*return a clone"):
        tp.ops.testlib.same(tp.ones(1))


def test_exceptions_arrive_unchanged(lib: library.Library) -> None:
    class Own(Exception):
        pass

    error = Own("mine", 3)

    def fails(x: Tensor) -> Tensor:
        raise error

    lib.define("fails(Tensor x) -> Tensor")
    lib.impl("fails", fails, "CPU")
    with pytest.raises(Own) as caught:
        tp.ops.testlib.fails(tp.ones(1))
    assert caught.value is error


def test_kernels_are_let_go(lib: library.Library) -> None:
    class Kernel:
        def __call__(self, x: Tensor) -> Tensor:
            return x + 1

    own, kernel = library.Library("testlib", "FRAGMENT"), Kernel()
    own.define("loose(Tensor x) -> Tensor")
    own.impl("loose", kernel, "CPU")
    watch = weakref.ref(kernel)
    del kernel
    tp.ops.testlib.loose(tp.ones(1))
    own._destroy()
    gc.collect()
    assert watch() is None
    with pytest.raises(AttributeError, match="no operator 'loose'"):
        tp.ops.testlib.loose(tp.ones(1))


def test_a_kernel_that_takes_itself_out(lib: library.Library) -> None:
    own = library.Library("testlib", "FRAGMENT")

    def once(x: Tensor) -> Tensor:
        own._destroy()
        return x + 1

    own.define("once(Tensor x) -> Tensor")
    own.impl("once", once, "CPU")
    assert tp.ops.testlib.once(tp.ones(1)).item() == 2


def test_registration_while_others_call(lib: library.Library) -> None:
    lib.define("busy(Tensor x) -> Tensor")
    lib.impl("busy", lambda x: x + 1, "CPU")
    stop, x, wrong = threading.Event(), tp.ones(1), []

    def call() -> None:
        while not stop.is_set():
            if tp.ops.testlib.busy(x).item() not in (2, 3):
                wrong.append(1)

    threads = [threading.Thread(target=call) for _ in range(3)]
    for t in threads:
        t.start()
    for _ in range(200):
        own = library.Library("testlib", "FRAGMENT")
        own.impl("busy", lambda x: x + 2, "CPU", allow_override=True)
        own._destroy()
    stop.set()
    for t in threads:
        t.join()
    assert not wrong


def test_at_exit_with_kernels() -> None:
    program = (
        "import tensorpy as tp\nfrom tensorpy import Tensor, library\n"
        "@library.custom_op('bye::f', mutates_args=())\ndef f(x: Tensor) -> Tensor:\n    return x + 1\n"
        "f.register_autograd(lambda ctx, g: g)\nprint(f(tp.ones(1, requires_grad=True)).item())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "2.0\n"), done.stderr


# ---- opcheck ----


def test_opcheck(lib: library.Library) -> None:
    x = tp.randn(3, 4, dtype=tp.float64)
    with pytest.raises(library.OpCheckError, match="no fake impl"):
        library.opcheck(scale, (x,), {"shift": 2})
    library.register_fake("testlib::scale", lambda x, by=2.0, *, shift=None: tp.empty_like(x), lib=lib)
    assert set(library.opcheck(scale, (x,), {"shift": 2}).values()) == {"SUCCESS"}
    with pytest.raises(library.OpCheckError, match=r"has no derivative.*register_autograd"):
        library.opcheck(scale, (x.clone().requires_grad_(),))

    lib.define("below(Tensor x) -> Tensor")
    lib.impl("below", lambda x: x.sin(), "CPU")
    one = "test_autograd_registration"
    with pytest.raises(library.OpCheckError, match="does not have an autograd kernel defined at an autograd key"):
        library.opcheck(tp.ops.testlib.below.default, (x.clone().requires_grad_(),), test_utils=one)
    lib.define("hidden(Tensor x) -> Tensor")
    lib.impl("hidden", lambda x: tp.from_numpy(x.detach().numpy() * 2), "CPU")
    library.opcheck(tp.ops.testlib.hidden.default, (x.clone().requires_grad_(),), test_utils=one)

    lib.define("liar(Tensor x) -> Tensor")
    lib.impl("liar", lambda x: x.add_(1).clone(), "CPU")
    with pytest.raises(library.OpCheckError, match=r"wrote its argument 'x'.*mutates_args"):
        library.opcheck(tp.ops.testlib.liar.default, (x,))
    found = library.opcheck(tp.ops.testlib.liar.default, (x,), raise_exception=False)
    assert isinstance(found["test_faketensor"], library.OpCheckError)

    lib.define("alias(Tensor x) -> Tensor")
    lib.impl("alias", lambda x: x[1:], "CPU")
    with pytest.raises(library.OpCheckError, match="Argument x is not defined to alias output but was aliasing"):
        library.opcheck(tp.ops.testlib.alias.default, (x,))

    lib.define("shape(Tensor x) -> Tensor")
    lib.impl("shape", lambda x: x + 1, "CPU")
    lib.impl("shape", lambda x: tp.empty(1, device="meta"), "Meta")
    with pytest.raises(library.OpCheckError, match="on Meta"):
        library.opcheck(tp.ops.testlib.shape.default, (x,))


def test_opcheck_sees_a_rule_that_is_wrong() -> None:
    @library.custom_op("testrule::f", mutates_args=())
    def f(x: Tensor) -> Tensor:
        return x * 2

    @f.register_vmap
    def _(info: Any, in_dims: Any, x: Tensor) -> Any:
        return x * 2, in_dims[0]

    library.register_fake(f, lambda x: x.new_empty(x.shape))
    assert library.opcheck(f, (tp.rand(3),))["test_vmap"] == "SUCCESS"

    @f.register_vmap
    def _(info: Any, in_dims: Any, x: Tensor) -> Any:
        raise NotImplementedError("sizes depend on values")

    assert library.opcheck(f, (tp.rand(3),))["test_vmap"] == "SUCCESS"

    @f.register_vmap
    def _(info: Any, in_dims: Any, x: Tensor) -> Any:
        return x * 3, in_dims[0]

    with pytest.raises(library.OpCheckError, match="under vmap is not what the sample gives alone"):
        library.opcheck(f, (tp.rand(3),), test_utils="test_vmap")


@needs_device
def test_opcheck_sees_devices_that_differ() -> None:
    @library.custom_op("testdevice::f", mutates_args=())
    def f(x: Tensor) -> Tensor:
        return x * 2

    @f.register_kernel("opencl")
    def _(x: Tensor) -> Tensor:
        return x * 3

    with pytest.raises(library.OpCheckError, match="differs between OpenCL and the CPU"):
        library.opcheck(f, (tp.rand(3),), test_utils="test_device")


# ---- OpenCL ----

AXPY = """
kernel void axpy(float a, global const float *x, long x_at, global float *y, long y_at, long n) {
    long i = get_global_id(0);
    if (i < n) y[y_at + i] += a * x[x_at + i];
}
kernel void where_am_i(global long *out, long at, int add) {
    out[at + get_global_id(1) * get_global_size(0) + get_global_id(0)] = 10 * get_global_id(1) + get_global_id(0) + add;
}
"""


@needs_device
def test_opencl_op() -> None:
    kernel = library.opencl_kernel("axpy", AXPY)

    @library.opencl_op("testcl::axpy", mutates_args=())
    def axpy(a: float, x: Tensor, y: Tensor) -> Tensor:
        out = y.clone()
        kernel[x.numel()](a, x, out, x.numel())
        return out

    @axpy.register_kernel("cpu")
    def _(a: float, x: Tensor, y: Tensor) -> Tensor:
        return y + a * x

    x, y = tp.arange(1000.0), tp.ones(1000)
    assert tp.equal(axpy(2.0, x.to("opencl"), y.to("opencl")).cpu(), axpy(2.0, x, y))
    part = tp.zeros(4, device="opencl")
    kernel[2](1.0, x.to("opencl")[5:], part[1:], 2)
    assert part.tolist() == [0, 5, 6, 0]
    where = library.opencl_kernel("where_am_i", AXPY)
    out = tp.zeros(2, 4, dtype=tp.int64, device="opencl")
    where[4, 2](out, True)
    assert out.tolist() == [[1, 2, 3, 4], [11, 12, 13, 14]]
    where[(4, 2), (2, 1)](out, False)
    assert out.tolist() == [[0, 1, 2, 3], [10, 11, 12, 13]]


@needs_device
def test_opencl_kernels_that_are_wrong() -> None:
    x = tp.ones(2, device="opencl")
    kernel = library.opencl_kernel("axpy", AXPY)
    with pytest.raises(TypeError, match="was given no tensor"):
        kernel[1](1)
    with pytest.raises(TypeError, match="takes tensors, ints, floats and bools, not str"):
        kernel[1]("a", x)
    with pytest.raises(RuntimeError, match="takes tensors of one OpenCL device"):
        kernel[1](1.0, x, tp.ones(2), 2)
    with pytest.raises(ValueError, match="without elements"):
        kernel[1](1.0, x, x[:0].clone(), 2)
    with pytest.raises(ValueError, match="one to three dimensions"):
        kernel[1, 1, 1, 1](1.0, x, x, 2)
    with pytest.raises(ValueError, match="-1 items"):
        kernel[-1](1.0, x, x, 2)
    with pytest.raises(RuntimeError, match="clSetKernelArg"):
        kernel[1](1.0, x, x, 2, 3, 4)
    with pytest.raises(RuntimeError, match=r"nothing_of_it|CL_INVALID_KERNEL_NAME"):
        library.opencl_kernel("nothing_of_it", AXPY)[1](x)
    with pytest.raises(RuntimeError, match="no_such_name"):
        library.opencl_kernel("f", "kernel void f(global float *x, long at) { no_such_name; }")[1](x)
    kernel[0](1.0, x, x, 2)
    assert x.tolist() == [1, 1]


# ---- operators without tensors ----


@library.custom_op("testlib::following", mutates_args=())
def following(n: int) -> int:
    return n + 1


@library.custom_op("testlib::row", mutates_args=())
def row(n: int, values: list[float]) -> Tensor:
    return tp.ones(n) * sum(values)


@pytest.mark.parametrize("key", ["CompositeExplicitAutograd", "CompositeImplicitAutograd"])
def test_an_operator_that_takes_no_tensors(lib: library.Library, key: str) -> None:
    """What serves every backend serves a call that names none, until it is taken out."""
    assert following(3) == tp.ops.testlib.following(3) == 4
    assert row(2, [1.0, 2.0]).tolist() == [3, 3]
    name = lib.define(f"without_{key}(int n) -> int")
    lib.impl(name, lambda n: n * 2, key)
    op = getattr(getattr(tp.ops, lib.ns), name).default
    assert op(4) == 8
    with tp.dispatch.trace() as calls:
        op(4)
    assert [call.key for call in calls] == ["Undefined"]
    assert "Undefined" in tp.dispatch.explain(f"{lib.ns}::{name}", 4)
    lib._destroy()
    with pytest.raises((NotImplementedError, RuntimeError)):
        op(4)


def test_an_operator_without_tensors_and_kernels(lib: library.Library) -> None:
    """A backend's kernel is none: nothing says which. And one that may take tensors is not served without them."""
    lib.define("on_cpu(int n) -> int")
    lib.impl("on_cpu", lambda n: n, "CPU")
    lib.define("of_some(Tensor? x) -> int")
    lib.impl("of_some", lambda x: 1, "CompositeExplicitAutograd")
    mine = getattr(tp.ops, lib.ns)
    for call in (lambda: mine.on_cpu(1), lambda: mine.of_some(None)):
        with pytest.raises(NotImplementedError, match="on no backend"):
            call()


def test_tags_of_an_operator(lib: library.Library) -> None:
    """Tags are kept wherever an operator is declared, and what goes by them in C sees them."""
    lib.define("tagged(Tensor x) -> Tensor", tags=[tp.Tag.core, "pointwise", tp.Tag.core])
    assert getattr(tp.ops, lib.ns).tagged.default.tags == ["core", "pointwise"]
    lib.define("one(Tensor x) -> Tensor", tags=tp.Tag.dynamic_output_shape)
    assert getattr(tp.ops, lib.ns).one.default.tags == ["dynamic_output_shape"]
    with pytest.raises(NotImplementedError, match="tagged dynamic_output_shape"):
        getattr(tp.ops, lib.ns).one(tp.ones(2, device="meta"))
    library.define("testlib::retagged", "(Tensor x) -> Tensor", tags=("core",))
    assert tp.ops.testlib.retagged.default.tags == ["core"]
    library.define("testlib::retagged", "(Tensor x) -> Tensor", tags=("reduction",))  # an edited cell
    assert tp.ops.testlib.retagged.default.tags == ["reduction"]
    with pytest.raises(ValueError, match="hard"):
        lib.define("untagged(Tensor x) -> Tensor", tags="hard")

    @library.custom_op("testlib::marked", mutates_args=(), tags=(tp.Tag.needs_exact_strides,))
    def marked(x: Tensor) -> Tensor:
        return x.clone()

    assert marked._op.tags == ["pt2_compliant_tag", "needs_exact_strides"]
    assert scale._op.tags == ["pt2_compliant_tag"]
    lib.define("plain(Tensor x) -> Tensor")
    assert getattr(tp.ops, lib.ns).plain.default.tags == []


def test_every_operator_that_loops_warns_once(lib: library.Library) -> None:
    """However many there are: each warns at its first call, and the calls end."""
    count = 600
    for i in range(count):
        lib.define(f"loops{i}(Tensor x) -> Tensor")
        lib.impl(f"loops{i}", lambda x: x + 1, "CPU")
    for expected in (count, 0):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            for i in range(count):
                tp.vmap(getattr(getattr(tp.ops, lib.ns), f"loops{i}"))(tp.zeros(2))
        assert len([w for w in seen if "no batching rule" in str(w.message)]) == expected


def test_a_key_is_known_before_the_operator_is(lib: library.Library) -> None:
    with pytest.raises(RuntimeError, match="there is no dispatch key 'Nonsense'"):
        lib.impl("not_yet", lambda x: x, "Nonsense")


def test_a_second_fake_kernel_says_where_the_first_came_from(lib: library.Library) -> None:
    lib.define("faked(Tensor x) -> Tensor")
    name = f"{lib.ns}::faked"
    library.register_fake(name, tp.empty_like, lib=lib)
    with pytest.raises(RuntimeError, match=r"registered from .*test_library\.py:\d+"):
        library.register_fake(name, tp.empty_like, lib=lib, allow_override=False)
