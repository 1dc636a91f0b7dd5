"""One way from Python's arguments to an overload: calls, explain, inspect.signature and the stubs say the same."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tensorpy as tp
from tensorpy import _C
from tensorpy.testing.harness import arguments, call, fresh, function_of, over
from tensorpy.testing.samples import OpInfo

OUTSIDE = {"from": "from_"}  # what Python has a word of its own for


def modules() -> Iterator[tuple[Any, bool]]:
    yield _C, False
    yield from ((getattr(_C, name), False) for name in dir(_C) if inspect.ismodule(getattr(_C, name)))
    yield tp.Tensor, True


# Every generated function: (where it stands, its name, whether it is a method). Some are written anew in Python.
FUNCTIONS = [
    pytest.param(getattr(space, name), name, method, id=f"{space.__name__}.{name}")
    for space, method in modules()
    for name in sorted(vars(space))
    if _C._signatures(name, method) and "Schemas:" in (getattr(space, name).__doc__ or "")
]


def shown(name: str, method: bool) -> list[tuple[bool, list[tuple[str, str, bool, bool]]]]:
    """(whether ints may be spread, (name, type, keyword-only, required) without a method's object) per overload."""
    return [
        (spreads, [(OUTSIDE.get(p[0], p[0]), *p[1:]) for p in parameters if not (method and p[0] == "self")])
        for _, _, spreads, parameters in _C._signatures(name, method)
    ]


def bound(signature: inspect.Signature, by_name: bool, parameters: list[tuple[str, str, bool, bool]]) -> None:
    place = [] if by_name else [0 for _, _, keyword, _ in parameters if not keyword]
    names = {name: 0 for name, _, keyword, _ in parameters if keyword or by_name}
    signature.bind(*place, **names)


@pytest.mark.parametrize(("function", "name", "method"), FUNCTIONS)
def test_inspect_shows_what_the_overloads_take(function: Any, name: str, method: bool) -> None:
    signature = inspect.signature(function)
    if method:  # the object
        signature = signature.replace(parameters=list(signature.parameters.values())[1:])
    overloads = shown(name, method)
    assert set(signature.parameters) == {p[0] for _, parameters in overloads for p in parameters}
    spread = [p.name for p in signature.parameters.values() if p.kind is p.VAR_POSITIONAL]
    for spreads, parameters in overloads:
        assert all(spreads for p in parameters if p[0] in spread)
        required = [p for p in parameters if p[3]]
        for some in (parameters, required):
            bound(signature, False, some)
            if not {p[0] for p in some} & set(spread):  # those have no name
                bound(signature, True, some)
    optional_before = False
    for p in signature.parameters.values():
        everywhere = all(any(q[0] == p.name and q[3] for q in parameters) for _, parameters in overloads)
        if p.kind is p.POSITIONAL_OR_KEYWORD and optional_before:
            everywhere = False  # Python wants a default after a default
        if p.kind is not p.VAR_POSITIONAL:
            assert (p.default is p.empty) == everywhere, f"{p.name} of {name}{signature}"
        optional_before |= p.default is not p.empty


def stubs() -> dict[tuple[str, bool], list[ast.FunctionDef]]:
    tree = ast.parse((Path(tp.__file__).parent / "_C.pyi").read_text())
    found: dict[tuple[str, bool], list[ast.FunctionDef]] = {}
    tensor = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Tensor")
    for method, body in ((False, tree.body), (True, tensor.body)):
        for node in body:
            if isinstance(node, ast.FunctionDef):
                found.setdefault((node.name, method), []).append(node)
    return found


STUBS = stubs()


def stub_form(node: ast.FunctionDef, method: bool) -> list[tuple[str, bool, bool]]:
    """(name, keyword-only, required) of a stub's parameters; a spread one is required, as an empty list is none."""
    a = node.args
    positional = a.args[1:] if method else a.args
    first = len(a.args) - len(a.defaults) - (1 if method else 0)
    return (
        [(p.arg, False, i < first) for i, p in enumerate(positional)]
        + ([(a.vararg.arg, False, True)] if a.vararg else [])
        + [(p.arg, True, d is None) for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True)]
    )


@pytest.mark.parametrize(("function", "name", "method"), [p for p in FUNCTIONS if (p.values[1], p.values[2]) in STUBS])
def test_stubs_are_the_overloads(function: Any, name: str, method: bool) -> None:
    expected = []
    for spreads, parameters in shown(name, method):
        plain = [(p[0], p[2], p[3]) for p in parameters]
        expected += [plain]
        if spreads:  # an empty list is a list
            ints = [p[0] for p in parameters if not p[2] and p[1].startswith("tuple of ints")]
            expected += [[(name, keyword, required or name in ints) for name, keyword, required in plain]]
    assert [stub_form(node, method) for node in STUBS[name, method]] == expected


def test_all_functions_have_stubs() -> None:
    top = {p.values[1] for p in FUNCTIONS if getattr(_C, p.values[1], None) is p.values[0]}
    assert not {name for name in top if (name, False) not in STUBS and name.isidentifier()}


@pytest.mark.parametrize("method", [False, True])
def test_only_what_makes_a_tensor_has_an_out(method: bool) -> None:
    names = {p.values[1] for p in FUNCTIONS if p.values[2] == method}
    for name in names:
        for op, out, _, parameters in _C._signatures(name, method):
            assert (out is not None) == any(p[0] == "out" and p[2] for p in parameters)  # by keyword
            assert out is None or out.partition(".")[0] == op.partition(".")[0]


def test_in_place_functions_refuse_out() -> None:
    x, out = tp.ones(2), tp.zeros(2)
    for name in ("sin_", "relu_", "exp_"):
        with pytest.raises(TypeError, match="unexpected keyword argument 'out'"):
            getattr(tp, name)(x, out=out)
    assert x.tolist() == [1.0, 1.0] and out.tolist() == [0.0, 0.0]


# ---- explain ----


def first_call(trace: tp.dispatch.trace) -> tuple[str, list[str]]:
    """The first operator of a trace and the keys at which it was entered, one below the other."""
    events = trace.events
    keys: list[str] = []
    for event in events:
        if event.op != events[0].op or event.depth != len(keys):
            break
        keys.append(event.key)
    return events[0].op, keys


@over()
def test_explain_shows_the_overload_and_the_layers_of_the_call(info: OpInfo) -> None:
    function, name = function_of(info), info.name.partition(".")[0]
    for dtype in info.some_dtypes:
        for sample in info.some(dtype):
            args, kwargs = arguments(sample, "cpu", info)
            text = tp.dispatch.explain(name, *fresh(info, args), **kwargs)
            overload, keys = _C._resolve(name, *fresh(info, args), **kwargs)
            entered = [layer.key for layer in tp.dispatch.layers(overload, keys) if layer.entered]
            args = fresh(info, args)
            with tp.dispatch.trace() as trace:
                call(function, args, kwargs)
            assert first_call(trace) == (overload, entered), f"{info.name}{sample}"
            assert text.startswith(tp.dispatch.schema(overload) + "\n")


def test_explain_of_numbers_lists_keywords_and_methods() -> None:
    x, out = tp.ones(2, 3), tp.empty(2, 3)
    for expected, arguments_, keywords in (
        ("add.Scalar", ("add", x, 3), {}),
        ("add.Tensor", ("add", x, x), {}),
        ("add.Tensor", ("add", 3, x), {}),
        ("add.out", ("add", x, x), {"out": out}),
        ("add.out", ("add", x, 3), {"out": out}),
        ("add_.Scalar", ("add_", x, 3), {}),
        ("sum", ("sum", x), {}),
        ("sum.dim_IntList", ("sum", x, 0), {}),
        ("sum.dim_IntList", ("sum", x), {"axis": 0}),
        ("max.dim_max", ("max", x, 0), {"out": (tp.empty(3), tp.empty(3, dtype=tp.int64))}),
        ("view", ("view", x, 3, 2), {}),
        ("view.dtype", ("view", x, tp.int32), {}),
        ("cat", ("cat", [x, x]), {}),
        ("sub.Tensor", ("sub.Tensor", x, x), {}),
    ):
        assert _C._resolve(*arguments_, **keywords)[0] == expected
    text = tp.dispatch.explain("cat", [x.to(device="meta")])
    assert "AutogradMeta" in text and "AutogradCPU" not in text


def test_explain_refuses_what_the_call_refuses() -> None:
    for call_ in (lambda f: f(tp.ones(2), "a"), lambda f: f(), lambda f: f(tp.ones(2), 1, aplha=3)):
        with pytest.raises(TypeError) as refused:
            call_(tp.add)
        with pytest.raises(TypeError) as explained:
            call_(lambda *a, **k: tp.dispatch.explain("add", *a, **k))
        assert str(explained.value) == str(refused.value)


def test_explain_shows_the_primitives_and_where_they_are() -> None:
    text = tp.dispatch.explain("cumsum", tp.ones(3), 0)
    assert "prim::scan.sum       scan_sum_cpu" in text
    assert "prim/meta.c" in tp.dispatch.explain("cumsum", tp.ones(3, device="meta"), 0)
    assert "Meta" in tp.dispatch.explain("zeros", 2, device="meta")


def test_tables_know_names_without_an_overload() -> None:
    table = tp.dispatch.table("add")
    names = {"add.Tensor", "add.Scalar", "add.out", "add.Scalar_out"}
    assert {e.op for e in table} == names == set(tp.dispatch.overloads("add"))
    assert "add.Scalar\n" in str(table)
    assert [e.op for e in tp.dispatch.table("sum")] == ["sum"] * len(tp.dispatch.table("sum"))
    for look in (tp.dispatch.needs, tp.dispatch.schema, tp.dispatch.tags):
        with pytest.raises(ValueError, match=r"several overloads: name one of add\.Tensor, "):
            look("add")
        with pytest.raises(ValueError, match="there is no operator 'nothing'"):
            look("nothing")
    with pytest.raises(ValueError, match="there is no operator 'nothing'"):
        tp.dispatch.table("nothing")
