"""What a schema says of its arguments and results (tensorpy._library.function_schema)."""

from __future__ import annotations

import pytest

import tensorpy as tp
from tensorpy._library.function_schema import parse_schema


def test_the_parts_of_an_operators_schema() -> None:
    op = tp.ops.aten.add.out
    schema = op._schema
    assert (schema.name, schema.overload_name, schema.is_mutable) == ("aten::add", "out", True)
    assert [a.name for a in schema.arguments] == ["self", "other", "alpha", "out"]
    alpha, out = schema.arguments[2:]
    assert (alpha.type, alpha.default_value, alpha.kwarg_only, alpha.is_out) == ("number", 1, True, False)
    assert out.is_out and out.alias_info is not None and out.alias_info.before_set == {"a"}
    assert [r.type for r in tp.ops.aten.max.dim._schema.returns] == ["Tensor", "Tensor"]
    assert op.name() == "aten::add.out"


def test_each_operators_schema_is_read() -> None:
    count = 0
    for name in dir(tp.ops.aten):
        packet = getattr(tp.ops.aten, name, None)
        if isinstance(packet, tp.ops.OpOverloadPacket):
            for overload in packet.overloads():
                schema = getattr(packet, overload)._schema
                count += 1
                assert len(schema.arguments) == len(tp._C._tracer.arguments(getattr(packet, overload)._own_name))
                assert all(a.name for a in schema.arguments) and schema.returns is not None
    assert count > 2000


def test_text_in_quotation_marks_and_lists() -> None:
    schema = parse_schema('a::f(Tensor(a|b -> *) x, int[2]? k=[1, 2], *, str s="a,b)") -> (Tensor(a) y, int)')
    x, k, s = schema.arguments
    assert x.alias_info is not None and (x.alias_info.before_set, x.alias_info.after_set) == ({"a", "b"}, {"*"})
    assert (k.type, k.N, k.default_value, s.default_value) == ("Optional[List[int]]", 2, [1, 2], "a,b)")
    assert [r.name for r in schema.returns] == ["y", ""]


@pytest.mark.parametrize("text", ["f", "f(Tensor x", "f(Tensor x)", "f(Tensor) -> Tensor", "(Tensor x) -> Tensor"])
def test_what_is_no_schema(text: str) -> None:
    with pytest.raises(RuntimeError):
        parse_schema(text)


@pytest.mark.parametrize(
    ("new", "old", "fits"),
    [
        ("f(Tensor x, int d, bool k=False) -> Tensor", "f(Tensor x, int d) -> Tensor", True),
        ("f(Tensor x, int d, bool k) -> Tensor", "f(Tensor x, int d) -> Tensor", False),
        ("f(Tensor x) -> Tensor", "f(Tensor x, int d) -> Tensor", False),
        ("f(Tensor x, int? d) -> Tensor", "f(Tensor x, int d) -> Tensor", True),
        ("f(Tensor x, int d) -> Tensor", "f(Tensor x, int? d) -> Tensor", False),
        ("f(Tensor x) -> Tensor?", "f(Tensor x) -> Tensor", False),
        ("f(Tensor x, int e) -> Tensor", "f(Tensor x, int d) -> Tensor", False),
        ("f(Tensor x, int d=2) -> Tensor", "f(Tensor x, int d=1) -> Tensor", False),
        ("f(Tensor x, *, int e=1, int d) -> Tensor", "f(Tensor x, *, int d) -> Tensor", False),
        ("f(Tensor x, *, int d) -> Tensor", "f(Tensor x, int d) -> Tensor", False),
        ("f(Tensor x, *, int d, int e=1) -> Tensor", "f(Tensor x, *, int d) -> Tensor", True),
        ("f(Tensor x, int d) -> Tensor", "f(Tensor x, *, int d) -> Tensor", True),
        ("f.a(Tensor x) -> Tensor", "f(Tensor x) -> Tensor", False),
    ],
)
def test_whether_older_calls_fit(new: str, old: str, fits: bool) -> None:
    assert parse_schema(new).is_backward_compatible_with(parse_schema(old)) is fits


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("f(Tensor x, int n=1) -> Tensor", None),
        ("f(Tensor x) -> Tensor", None),
        ("f(Tensor x, int n=1, bool? b=None) -> Tensor", None),
        ("g(Tensor x, int n=1) -> Tensor", ""),
        ("f(Tensor x, int n=1) -> (Tensor, Tensor)", ""),
        ("f(Tensor x, int m=1) -> Tensor", "'m' is not forward compatible with the older version of the schema"),
        ("f(Tensor x, int n=2) -> Tensor", "'n' is not forward compatible with the older version of the schema"),
        ("f(Tensor x, int? n=1) -> Tensor", "'n' is not forward compatible with the older version of the schema"),
        ("f(Tensor x, int n=1, int[2] k=1) -> Tensor", "'k' of type int[] has a container type as its default value."),
        ("f(Tensor x, int n=1, *, int k) -> Tensor", "'k' of type int did not provide a default value."),
        ("f(Tensor x, int n=1, *, Tensor(a!) out) -> Tensor", "should have the same number of out arguments"),
    ],
)
def test_what_an_older_schema_reads(text: str, reason: str | None) -> None:
    reads, why = parse_schema(text).check_forward_compatible_with(parse_schema("f(Tensor x, int n=1) -> Tensor"))
    assert reads is (reason is None) and why.endswith(reason or "") and bool(why) is bool(reason)


def test_outs_may_be_added_and_results_keep_their_names() -> None:
    old = parse_schema("f(Tensor x, *, Tensor(a!) out) -> Tensor(a!)")
    assert parse_schema("f(Tensor x, *, Tensor(a!) out, Tensor(b!) b) -> Tensor(a!)").is_backward_compatible_with(old)
    assert not old.is_backward_compatible_with(parse_schema("f(Tensor x, *, Tensor(a!) out, Tensor(b!) b) -> Tensor"))
    assert not parse_schema("g(Tensor x) -> Tensor y").is_backward_compatible_with(
        parse_schema("g(Tensor x) -> Tensor")
    )
    assert not parse_schema("g(Tensor x, ...) -> int").is_backward_compatible_with(parse_schema("g(Tensor x) -> int"))
    with pytest.raises(RuntimeError, match=r"schemas with vararg \(\.\.\.\) can't have default value args"):
        parse_schema("g(Tensor x, int n=1, ...) -> Tensor")


def test_types_are_written_as_in_schemas() -> None:
    arguments = parse_schema("f(int[2]? a, Scalar b, ScalarType? c, SymInt[3] d) -> Tensor").arguments
    assert [str(a.type) for a in arguments] == [
        "Optional[List[int]]", "number", "Optional[int]", "List[int]",
    ]  # fmt: skip
    assert [a.type.str() for a in arguments] == ["int[]?", "Scalar", "int?", "int[]"]
    assert [a.real_type.str() for a in arguments] == ["int[]?", "Scalar", "ScalarType?", "SymInt[]"]
    assert [a.N for a in arguments] == [2, None, None, 3]
