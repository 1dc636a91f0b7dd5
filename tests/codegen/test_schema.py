"""The schema parser: prints back what it reads, finds the column of what it cannot read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import yaml
from codegen.autogen import AutogenError, derive, derive_function, expand_autogen
from codegen.errors import ErrorCollector
from codegen.loader import load_native_functions
from codegen.model import (
    BASE_TYPES,
    TENSOR,
    Annotation,
    Argument,
    BaseType,
    FunctionSchema,
    ListType,
    OperatorName,
    OptionalType,
    Return,
    Type,
    group_native_functions,
)
from codegen.schema import SchemaError, parse_operator_name, parse_schema

SCHEMAS = """
add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)
nothing() -> ()
one(int x) -> int
pair(float x) -> (float, float)
named(Tensor self) -> (Tensor values, Tensor indices)
mixed(Tensor self) -> (Tensor, int count, bool)
single_named(Tensor self) -> Tensor values
view(Tensor(a) self, SymInt[] size) -> Tensor(a)
chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]
two_sets(Tensor(a|b) self) -> Tensor(a|b)
grows(Tensor(a! -> a|b) self, Tensor(b) other) -> Tensor(a!)
list_out(Tensor[] self, *, Tensor(a!)[] out) -> ()
foreach_(Tensor(a!)[] self, Scalar[] scalars) -> ()
maybe(Tensor? self=None) -> Tensor?
maybe_view(Tensor(a)? self) -> Tensor(a)
indices(Tensor self, Tensor?[] indices, Tensor values) -> Tensor
sizes(SymInt[2]? size=None) -> Tensor
pool(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0) -> Tensor
rotated(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor
spaced(Tensor self, int[] dims=[0, 1]) -> Tensor
negative(int dim=-1, int[1] dims=[-2,-1]) -> Tensor
tiny(float eps=1e-05, float big=1E+10, float half=.5, float whole=2.) -> Tensor
plus(float x=+1.5) -> Tensor
infinite(float x=inf, float y=-inf) -> Tensor
flags(bool a=True, bool b=False, bool[3] mask) -> Tensor
texts(str a='x', str b="y", str c="", str? d=None) -> Tensor
quoted(str a="it's", str b='say "hi"') -> Tensor
escaped(str a="\\"'\\\\") -> Tensor
comma_inside(str a="x, y) -> z", int b=1) -> Tensor
names(int reduction=Mean, MemoryFormat memory_format=contiguous_format, ScalarType dtype=long) -> Tensor
options(*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
only_out(*, Tensor(a!) out) -> Tensor(a!)
max.dim_max(Tensor self, *, Tensor(a!) max, Tensor(b!) max_values) -> (Tensor(a!) values, Tensor(b!) indices)
random_.from(Tensor(a!) self, int from, int? to, *, Generator? generator=None) -> Tensor(a!)
symbolic(SymInt a, SymFloat b, SymBool c, SymInt? d=None) -> SymInt
devices(Device device, DeviceIndex index, Stream s, Storage source, QScheme q) -> Layout
dims(Dimname dim, Dimname[] names, Dimname[1]? maybe=None) -> Tensor(a)
strings(str[] equations, str[]? more=None) -> str
__and__.Tensor(Tensor self, Tensor other) -> Tensor
__iand__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
__ilshift__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
__invert__(Tensor self) -> Tensor
_private(Tensor self) -> Tensor
_private_(Tensor(a!) self) -> Tensor(a!)
_(Tensor self) -> Tensor
mutates(Tensor input, Tensor(a!) running_mean, Tensor(b!)? running_var, bool training) -> (Tensor, Tensor)
scratch.out(Tensor self, *, Tensor(a!) _scratch_buffer, Tensor(b!) out) -> Tensor(b!)
nested(int[][] table, Tensor[]? rows=None) -> Tensor[][]
optional_items(int?[] items, float[]? scales=None) -> Tensor
list_default(int[][] table=[[0,1],[2]]) -> ()
name_default(float[] x=[inf,nan]) -> ()
digits2.v3_out(Tensor x1, Tensor x2, *, Tensor(a!) out) -> Tensor(a!)
generator(Generator gen, *, Generator? other=None) -> ()
kwarg_view(*, Tensor(a) self) -> Tensor(a)
any_alias(Tensor(*) self) -> Tensor(*)
complex_returns(Tensor(a!) a, Tensor(b!) b) -> (Tensor(a!), Tensor(b!)[], int)
many(Tensor a, Tensor b, Tensor c, Tensor d, Tensor e, Tensor f, Tensor g) -> (Tensor, Tensor, Tensor, Tensor)
stepped.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor
space::name.overload(Tensor self) -> Tensor
space::writes_(Tensor(a!) input, str how) -> Tensor(a!)
space::lists_(Tensor[](a!) inputs) -> Tensor[](a!)
strict_None(int? x=None, Tensor[] y=[]) -> bool
""".strip().splitlines()


@pytest.mark.parametrize("text", SCHEMAS, ids=[text.split("(")[0] for text in SCHEMAS])
def test_round_trip(text: str) -> None:
    assert str(parse_schema(text)) == text


def test_enough_schemas() -> None:
    assert len(SCHEMAS) >= 60


def test_white_space_does_not_count() -> None:
    loose = " add.Tensor ( Tensor( a! )self ,Tensor  other,*,Scalar alpha = 1 )->Tensor( a! ) "
    tight = "add.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)"
    assert str(parse_schema(loose)) == tight


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("f(Tensor self) -> Tensor", "functional"),
        ("f(Tensor(a) self) -> Tensor(a)", "functional"),
        ("f_(Tensor(a!) self) -> Tensor(a!)", "inplace"),
        ("__ior__(Tensor(a!) self, Tensor other) -> Tensor(a!)", "inplace"),
        ("f.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)", "out"),
        ("f(Tensor self, Tensor(a!) mean) -> Tensor", "mutable"),
        ("f.out(Tensor(b!) self, *, Tensor(a!) out) -> Tensor(a!)", "out"),
        ("f.out(Tensor self, *, Tensor(a!) _scratch_x, Tensor(b!) out) -> Tensor(b!)", "scratch"),
    ],
)
def test_kind(text: str, kind: str) -> None:
    assert parse_schema(text).kind == kind


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("add", OperatorName("add")),
        ("add_", OperatorName("add", inplace=True)),
        ("add_.Tensor", OperatorName("add", inplace=True, overload="Tensor")),
        ("__and__", OperatorName("and", dunder_method=True)),
        ("__iand__.Scalar", OperatorName("and", inplace=True, dunder_method=True, overload="Scalar")),
        ("__invert__", OperatorName("invert", dunder_method=True)),
        ("_foo_", OperatorName("_foo", inplace=True)),
        ("space::add_.Tensor", OperatorName("add", inplace=True, overload="Tensor", namespace="space")),
        ("_", OperatorName("_")),
    ],
)
def test_operator_name(text: str, name: OperatorName) -> None:
    assert parse_operator_name(text) == name
    assert str(name) == text


def test_parts() -> None:
    schema = parse_schema("f.x(Tensor(a -> *) self, SymInt[2]? size=None, *, str s='a', Tensor(b!) out) -> Tensor(b!)")
    assert schema.positional == (
        Argument("self", TENSOR, None, Annotation(("a",), False, ("*",))),
        Argument("size", OptionalType(ListType(BaseType("SymInt"), 2)), "None"),
    )
    assert schema.kwarg_only == (Argument("s", BaseType("str"), "'a'"),)
    assert schema.out == (Argument("out", TENSOR, None, Annotation(("b",), True)),)
    assert schema.returns == (Return(None, TENSOR, Annotation(("b",), True)),)
    assert [a.name for a in schema.arguments] == ["self", "size", "s", "out"]


def test_signature_joins_variants() -> None:
    texts = (
        "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        "add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
        "add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
    )
    assert len({parse_schema(text).signature() for text in texts}) == 1
    assert (
        parse_schema("add.Scalar(Tensor self, Scalar other) -> Tensor").signature()
        != parse_schema(texts[0]).signature()
    )


def test_signature_of_a_factory_has_no_tensor_options() -> None:
    options = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
    factory = parse_schema(f"zeros(SymInt[] size, *, {options}) -> Tensor")
    assert factory.signature() == parse_schema("zeros.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)").signature()


@pytest.mark.parametrize(
    ("text", "column", "what"),
    [
        ("", 1, "expected the operator's name, found the end"),
        ("f", 2, "expected '(' after the operator's name, found the end"),
        ("f.(Tensor self) -> Tensor", 3, "the overload name"),
        ("f(Tensor) -> Tensor", 9, "expected an argument name, found ')'"),
        ("f(self) -> Tensor", 3, "unknown type 'self'"),
        ("f(Tensr self) -> Tensor", 3, "unknown type 'Tensr'"),
        ("f(Tensor self", 14, "expected ')' or ','"),
        ("f(Tensor self,) -> Tensor", 15, "expected an argument after ','"),
        ("f(Tensor self Tensor other) -> Tensor", 15, "expected ')' or ','"),
        ("f(Tensor self)", 15, "expected '->'"),
        ("f(Tensor self) -> ", 19, "expected a type, found the end"),
        ("f(Tensor self) -> Tensor, Tensor", 25, "expected nothing more"),
        ("f(Tensor self) -> (Tensor, )", 28, "expected a return after ','"),
        ("f(Tensor self, *) -> Tensor", 17, "expected an argument after '*'"),
        ("f(*, int a, *, int b) -> Tensor", 13, "a second '*'"),
        ("f(int a, int a) -> Tensor", 10, "two arguments named 'a'"),
        ("f(int(a!) x) -> Tensor", 6, "an alias annotation on int"),
        ("f(Tensor(!) x) -> Tensor", 10, "expected an alias set"),
        ("f(Tensor(a x) -> Tensor", 12, "expected ')' after the alias annotation"),
        ("f(int[x] a) -> Tensor", 7, "expected ']'"),
        ("f(int[-1] a) -> Tensor", 7, "expected a length above 0"),
        ("f(int?? a) -> Tensor", 7, "expected one '?' only"),
        ("f(int a=) -> Tensor", 9, "expected a default value"),
        ("f(int[] a=[0,1) -> Tensor", 15, "expected ']' at the end of the list"),
        ("f(str a='x) -> Tensor", 9, "a string that is not closed"),
        ("f(int a=1; int b) -> Tensor", 10, "unexpected character ';'"),
        ("f(*, Tensor(a!) out, int x) -> Tensor(a!)", 22, "argument 'x' after the out argument 'out'"),
        ("f(*, Tensor(a!) out=None) -> Tensor(a!)", 6, "a default for the out argument 'out'"),
    ],
)
def test_mistakes(text: str, column: int, what: str) -> None:
    with pytest.raises(SchemaError) as caught:
        parse_schema(text)
    assert what in caught.value.what
    assert caught.value.column == column
    assert caught.value.fix


# Random schemas.

_RESERVED = {"inf"}  # a number, where a name could stand
_names = st.from_regex(r"[a-z][a-z0-9]{0,5}(_[a-z0-9]{1,3})?", fullmatch=True).filter(lambda n: n not in _RESERVED)
_alias = st.lists(st.sampled_from("abcd"), min_size=1, max_size=2, unique=True).map(tuple)
_annotations = st.builds(Annotation, _alias, st.booleans(), st.one_of(st.just(()), st.just(("*",)), _alias))
_base = st.sampled_from(sorted(BASE_TYPES)).map(BaseType)


def _wrap(inner: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    plain = inner.filter(lambda t: not isinstance(t, OptionalType))
    sizes = st.one_of(st.none(), st.integers(1, 9))
    return st.one_of(st.builds(OptionalType, plain), st.builds(ListType, inner, sizes))


_types: st.SearchStrategy[Type] = st.recursive(_base, _wrap, max_leaves=3)
_scalars = st.one_of(
    st.integers(-1000, 1000).map(str),
    st.floats(allow_nan=False).map(repr),
    st.sampled_from(["None", "True", "False", "Mean", "contiguous_format", "'a, b'", '"x"', r'"\""']),
)
_defaults = st.one_of(_scalars, st.lists(_scalars, max_size=3).map(lambda items: f"[{','.join(items)}]"))


@st.composite
def _schemas(draw: st.DrawFn) -> FunctionSchema:
    names = draw(st.lists(_names, max_size=7, unique=True))
    positional: list[Argument] = []
    kwarg_only: list[Argument] = []
    out: list[Argument] = []
    for name in names:
        type_ = draw(_types)
        tensor = str(type_).startswith("Tensor")
        where = draw(st.integers(0, 2))
        annotation = draw(st.one_of(st.none(), _annotations)) if tensor else None
        if where == 2 and tensor:
            out.append(Argument(name, type_, None, Annotation(draw(_alias), True)))
        elif where == 1:
            if annotation is not None and annotation.is_write:
                annotation = None
            kwarg_only.append(Argument(name, type_, draw(st.one_of(st.none(), _defaults)), annotation))
        else:
            positional.append(Argument(name, type_, draw(st.one_of(st.none(), _defaults)), annotation))
    returns: list[Return] = []
    for _ in range(draw(st.integers(0, 3))):
        type_ = draw(_types)
        tensor = str(type_).startswith("Tensor")
        annotation = draw(st.one_of(st.none(), _annotations)) if tensor else None
        returns.append(Return(draw(st.one_of(st.none(), _names)), type_, annotation))
    form = draw(st.sampled_from(["{}", "{}_", "_{}", "__{}__", "__iand__"]))
    operator = OperatorName.of(form.format(draw(_names)), draw(st.one_of(st.just(""), _names)))
    return FunctionSchema(operator, tuple(positional), tuple(kwarg_only), tuple(out), tuple(returns))


@settings(max_examples=300, deadline=None)
@given(_schemas())
def test_random_schemas(schema: FunctionSchema) -> None:
    assert parse_schema(str(schema)) == schema


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="Tensor int[](){}*,.=!?|->'\"a1_", max_size=40))
def test_any_text_gives_a_schema_or_a_schema_error(text: str) -> None:
    try:
        schema = parse_schema(f"f({text}) -> Tensor")
    except SchemaError as error:
        assert error.column >= 1 and error.fix
    else:
        assert parse_schema(str(schema)) == schema


# Autogen.


@pytest.mark.parametrize(
    ("source", "item", "derived"),
    [
        ("sigmoid(Tensor self) -> Tensor", "sigmoid_", "sigmoid_(Tensor(a!) self) -> Tensor(a!)"),
        ("sigmoid(Tensor self) -> Tensor", "sigmoid.out", "sigmoid.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)"),
        (
            "f.Tensor(Tensor self, int n=1, *, float p) -> Tensor",
            "f_.Tensor",
            "f_.Tensor(Tensor(a!) self, int n=1, *, float p) -> Tensor(a!)",
        ),
        ("__or__.Tensor(Tensor self, Tensor o) -> Tensor", "__ior__.Tensor", None),
        ("f(Tensor self) -> (Tensor, Tensor)", "f.out", None),
        ("sort(Tensor self) -> (Tensor values, Tensor indices)", "sort.values", None),
        ("f_backward(Tensor g) -> Tensor", "f_backward.grad_input", None),
        ("_foreach_exp(Tensor[] self) -> Tensor[]", "_foreach_exp_", "_foreach_exp_(Tensor(a!)[] self) -> ()"),
        ("_foreach_exp(Tensor[] self) -> Tensor[]", "_foreach_exp.out", None),
        ("zero_(Tensor(a!) self) -> Tensor(a!)", "zero", "zero(Tensor self) -> Tensor"),
        ("zero_(Tensor(a!) self) -> Tensor(a!)", "zero.out", "zero.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)"),
        ("f(Tensor self, Tensor(a!) m) -> Tensor", "f_functional", None),
        (
            "max.dim(Tensor self, int dim) -> (Tensor values, Tensor indices)",
            "max.m(Tensor self, int dim, *, Tensor(a!) max, Tensor(b!) i) -> (Tensor(a!) values, Tensor(b!) indices)",
            "max.m(Tensor self, int dim, *, Tensor(a!) max, Tensor(b!) i) -> (Tensor(a!) values, Tensor(b!) indices)",
        ),
    ],
)
def test_derive(source: str, item: str, derived: str | None) -> None:
    expected = (
        derived
        or {
            "__ior__.Tensor": "__ior__.Tensor(Tensor(a!) self, Tensor o) -> Tensor(a!)",
            "f.out": "f.out(Tensor self, *, Tensor(a!) out0, Tensor(b!) out1) -> (Tensor(a!), Tensor(b!))",
            "sort.values": "sort.values(Tensor self, *, Tensor(a!) values, Tensor(b!) indices) -> "
            "(Tensor(a!) values, Tensor(b!) indices)",
            "f_backward.grad_input": "f_backward.grad_input(Tensor g, *, Tensor(a!) grad_input) -> Tensor(a!)",
            "_foreach_exp.out": "_foreach_exp.out(Tensor[] self, *, Tensor(a!)[] out) -> ()",
            "f_functional": "f_functional(Tensor self, Tensor m) -> (Tensor, Tensor m_out)",
        }[item]
    )
    assert str(derive(parse_schema(source), item)) == expected


def test_derived_function_points_to_its_source() -> None:
    entries = load_native_functions(
        "- func: abs(Tensor self) -> Tensor\n"
        "  variants: function, method\n"
        "  autogen: abs_, abs.out\n"
        "- func: mul.Tensor(Tensor self, Tensor other) -> Tensor\n"
        "  variants: function, method\n"
        "  autogen:\n"
        "  - mul_.Tensor\n"
        "- func: clip(Tensor self, Scalar min) -> Tensor\n"
        "  variants: function, method\n"
        "  inplace_variants: function, method\n"
        "  autogen: clip_\n",
        None,
    )
    functions = {str(f.name): f for f in expand_autogen(entries)}
    assert functions["abs_"].variants == ("function", "method")
    assert functions["abs.out"].variants == ("function",)
    assert functions["mul_.Tensor"].variants == ("method",)
    assert functions["clip_"].variants == ("function", "method")
    assert functions["abs_"].source is functions["abs"] and functions["abs_"].autogenerated
    assert functions["abs_"].location.line == 3


# PyTorch's own file.


def test_every_schema_of_pytorch(torch_yaml: Callable[[str], Path]) -> None:
    path = torch_yaml("ATen/native/native_functions.yaml")
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    texts = [entry["func"] for entry in yaml.load(path.read_text(), Loader=loader)]
    assert len(texts) >= 2584
    assert [text for text in texts if str(parse_schema(text)) != text] == []


# Variants of PyTorch that follow no rule: a whole schema in `autogen`, or an entry of its own, gives them.
IRREGULAR = {
    "bernoulli_.float": "a default that the functional variant lacks",
    "normal_": "its functional variant is named normal_functional",
    "max.dim_max": "the out arguments are not named as the returns",
    "min.dim_min": "the out arguments are not named as the returns",
    "triangular_solve.X": "the out arguments are not named as the returns",
    "linalg_eigh.eigvals": "the out arguments are not named as the returns",
    "_softmax_backward_data.out": "the out argument is named grad_input",
    "huber_loss_backward.out": "the out argument is named grad_input",
    "native_batch_norm.out": "named out arguments for returns without names",
    "_native_batch_norm_legit.no_stats_out": "named out arguments for returns without names",
    "adaptive_max_pool2d.out": "named out arguments for returns without names",
    "adaptive_max_pool3d.out": "named out arguments for returns without names",
    "fractional_max_pool2d.output": "named out arguments for returns without names",
    "fractional_max_pool3d.output": "named out arguments for returns without names",
    "max_pool2d_with_indices.out": "named out arguments for returns without names",
    "max_pool3d_with_indices.out": "named out arguments for returns without names",
    "log_sigmoid_forward.output": "the returns of the functional variant have names, these have none",
    "multilabel_margin_loss_forward.output": "the returns of the functional variant have names, these have none",
    "nll_loss_forward.output": "the returns of the functional variant have names, these have none",
    "nll_loss2d_forward.output": "the returns of the functional variant have names, these have none",
}


def test_deriving_gives_pytorchs_own_variants(torch_yaml: Callable[[str], Path]) -> None:
    functions = load_native_functions(torch_yaml("ATen/native/native_functions.yaml"), None)
    compared = 0
    variants_agree = 0
    inplace = 0
    irregular: set[str] = set()
    for group in group_native_functions(functions):
        for variant in (group.inplace, group.out):
            if group.functional is None or variant is None:
                continue
            compared += 1
            try:
                derived = derive_function(group.functional, str(variant.name))
            except AutogenError:
                irregular.add(str(variant.name))
                continue
            if derived.func != variant.func:
                irregular.add(str(variant.name))
            if variant.kind == "inplace":
                inplace += 1
                variants_agree += set(derived.variants) == set(variant.variants)
    assert compared > 900
    assert irregular == IRREGULAR.keys()
    # The rest says `inplace_variants`.
    assert variants_agree / inplace > 0.85


def test_every_autogen_of_pytorch_can_be_derived(torch_yaml: Callable[[str], Path]) -> None:
    functions = load_native_functions(torch_yaml("ATen/native/native_functions.yaml"), None)
    errors = ErrorCollector()
    expanded = expand_autogen(functions, errors)
    assert not len(errors), "\n".join(map(str, errors))
    assert sum(f.autogenerated for f in expanded) > 500
