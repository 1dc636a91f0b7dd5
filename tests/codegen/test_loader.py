"""The loader and the checks: every mistake is reported with its line and how to mend it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from codegen.autogen import expand_autogen
from codegen.check import check_autocast, check_derivatives, check_native_functions, load_registry
from codegen.errors import ErrorCollector, Location, YamlError, YamlErrors
from codegen.loader import load_autocast, load_derivatives, load_native_functions, load_tags, split_commas
from codegen.model import NativeFunction, RawMapping
from codegen.support import check_supported, check_supported_derivatives

TAGS = ("core", "pointwise", "inplace_view", "nondeterministic_seeded", "reduction")

BASE = """\
- func: abs(Tensor self) -> Tensor
  variants: function, method
  autogen: abs_, abs.out
  tags: [core, pointwise]
- func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
- func: topk(Tensor self, int k) -> (Tensor values, Tensor indices)
- func: full.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)
"""


def functions_of(text: str, errors: ErrorCollector) -> list[NativeFunction]:
    functions = expand_autogen(load_native_functions(text, TAGS, errors), errors)
    check_native_functions(functions, errors)
    return functions


def the_mistake(errors: ErrorCollector, line: int, what: str, fix: str) -> None:
    found = list(errors)
    assert found, "no mistake was found"
    hits = [e for e in found if e.location.line == line and what in e.what and fix in e.fix]
    assert hits, "\n".join(map(str, found))
    assert len(found) == 1, "\n".join(map(str, found))
    assert hits[0].fix


F = "- func: f(Tensor self) -> Tensor\n"

FUNCTIONS = [
    # YAML
    ("- func: f(Tensor self) -> Tensor\n  tags: [core\n", 3, "not YAML", "mend"),
    ("func: f(Tensor self) -> Tensor\nvariants: function\n", 1, "the file is a mapping, not a list", "- func:"),
    ("- f\n" + F, 1, "an entry is text, not a mapping", "- func:"),
    (F + "  variants: function\n  variants: method\n", 3, "'variants' stands twice; first in line 2", "take out one"),
    ("- variants: function\n  tags: core\n", 1, "an entry without 'func'", "start it with"),
    (F + "  varaints: function\n", 2, "unknown key 'varaints'", "'variants'"),
    (F + "  Tags: core\n", 2, "unknown key 'Tags'", "'tags'"),
    (F + "  doc:\n", 2, "'doc' is empty", "give it a value"),
    (F + "  structured: maybe\n", 2, "'structured' is 'maybe'", "structured: True"),
    (F + "  device_guard: no\n", 2, "'device_guard' is 'no'", "device_guard: False"),
    (F + "  device_check: nocheck\n", 2, "'device_check' is 'nocheck'", "'NoCheck'"),
    (F + "  python_module: linlag\n", 2, "'python_module' is 'linlag'", "'linalg'"),
    (F + "  variants: function, methods\n", 2, "'variants' has 'methods'", "'method'"),
    (F + "  variants: function, function\n", 2, "names the same variant twice", "variants: function"),
    (F + "  tags: pointwize\n", 2, "unknown tag 'pointwize'", "'pointwise'"),
    (F + "  tags:\n  - core\n  - reductoin\n", 4, "unknown tag 'reductoin'", "'reduction'"),
    (F + "  tags: [core, core]\n", 2, "the tag 'core' stands twice", "take out one"),
    (F + "  tags: core,, pointwise\n", 2, "an empty name between commas", "take out the comma"),
    (F + "  precomputed: dim -> int dim\n", 2, "'precomputed' is text, not a list", "below it"),
    # schemas
    ("- func: f(Tensr self) -> Tensor\n  tags: core\n", 1, "column 3: unknown type 'Tensr'", "'Tensor'"),
    (F + "- func: g(Tensor self -> Tensor\n", 2, "column 15: expected ')'", "close the parenthesis"),
    (F + "  structured_delegate: f..out\n", 2, "expected the overload name", "add.Tensor"),
    (F + F, 2, "the operator f is declared twice; also in line 1", "overload name"),
    (F + "  autogen: f_\n- func: f_(Tensor(a!) self) -> Tensor(a!)\n", 2, "f_ is declared twice", "out of 'autogen'"),
    (F + "- func: f.x(Tensor self) -> Tensor\n", 2, "f.x takes what f takes", "no call can tell them apart"),
    ("- func: f(int a=1, int b) -> Tensor\n", 1, "'b' has no default, but 'a' before it has", "after '*'"),
    ("- func: f(int a=1.5) -> Tensor\n", 1, "the default 1.5 does not fit 'int a'", "'a=0'"),
    ("- func: f(bool a=0) -> Tensor\n", 1, "the default 0 does not fit 'bool a'", "'a=False'"),
    ("- func: f(str a=x) -> Tensor\n", 1, "the default x does not fit 'str a'", "a='text'"),
    ("- func: f(int a=None) -> Tensor\n", 1, "the default None does not fit 'int a'", "'a=0'"),
    ("- func: f(int[2] a=[1,2,3]) -> Tensor\n", 1, "the default [1,2,3] does not fit 'int[2] a'", "[0,0]"),
    ("- func: f(int[] a=1) -> Tensor\n", 1, "the default 1 does not fit 'int[] a'", "'a=[]'"),
    ("- func: f(Tensor a=0) -> Tensor\n", 1, "the default 0 does not fit 'Tensor a'", "take out the default"),
    ("- func: f(MemoryFormat m=contiguous) -> Tensor\n", 1, "does not fit 'MemoryFormat m'", "contiguous_format"),
    # kinds
    ("- func: f_(Tensor x) -> Tensor\n", 1, "its first argument is not self", "Tensor(a!) self"),
    ("- func: f_(Tensor self) -> Tensor\n", 1, "does not write self", "Tensor(a!) self"),
    ("- func: f_(Tensor(a!) self) -> Tensor\n", 1, "does not return self", "-> Tensor(a!)"),
    ("- func: f_(Tensor(a!) self) -> ()\n", 1, "does not return self", "-> Tensor(a!)"),
    ("- func: f.out(Tensor self, *, Tensor(a!) out) -> Tensor\n", 1, "do not match the out arguments", "-> Tensor(a!)"),
    ("- func: f.out(Tensor self) -> Tensor\n", 1, "out= variant by its name", "Tensor(a!) out"),
    ("- func: f(Tensor self) -> Tensor(a)\n", 1, "the return aliases (a), which no argument has", "same annotation"),
    (F + "- func: f_(Tensor(a!) self, int n) -> Tensor(a!)\n", 2, "f_ has other arguments than f", "f(Tensor self)"),
    (F + "- func: f.out(Tensor self, int n, *, Tensor(a!) out) -> Tensor(a!)\n", 2, "other arguments than f", "f("),
    (
        "- func: f(Tensor self, int n=1) -> Tensor\n- func: f_(Tensor(a!) self, int n=2) -> Tensor(a!)\n",
        2,
        "'n' has the default 2, in f it has 1",
        "'n=1' in both",
    ),
    # methods
    ("- func: f(Tensor x) -> Tensor\n  variants: method\n", 2, "no positional argument 'self'", "variants: function"),
    ("- func: f(Tensor? self) -> Tensor\n  variants: method\n", 2, "its self is 'Tensor?'", "Tensor self"),
    (F + "  cpp_no_default_args: [slf]\n", 2, "'slf', which is no argument", "'self'"),
    # dispatch
    (F + "  dispatch: kernel\n", 2, "'dispatch' is text, not a mapping", "below 'dispatch:'"),
    (F + "  dispatch:\n    CPU: f\n    OpenCl: f\n", 4, "unknown dispatch key 'OpenCl'", "'OpenCL'"),
    (F + "  dispatch:\n    CPU, Meta: f\n    CPU: g\n", 4, "the dispatch key CPU stands twice", "one kernel"),
    (F + "  dispatch:\n    CPU,, Meta: f\n", 3, "an empty dispatch key", "take out the comma"),
    (
        F + "  dispatch:\n    CompositeImplicitAutograd: f\n    CompositeExplicitAutograd: g\n",
        2,
        "CompositeImplicitAutograd and CompositeExplicitAutograd",
        "keep Implicit",
    ),
    # structured
    (F + "  structured: True\n", 2, "is structured, but has no out argument", "structured_delegate"),
    (F + "  structured_inherits: TensorIteratorBase\n", 2, "without 'structured: True'", "structured: True"),
    (F + "  precomputed:\n  - dim -> int dim\n", 2, "'precomputed' without 'structured: True'", "structured: True"),
    (F + "  structured_delegate: f.out\n", 2, "delegates to f.out, which is not declared", "declare"),
    (
        F + "  structured_delegate: f.out\n- func: f.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)\n",
        2,
        "which is not structured",
        "'structured: True' to f.out",
    ),
    (
        F + "  structured_delegate: f.out\n  dispatch:\n    CPU: f_cpu\n"
        "- func: f.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)\n  structured: True\n",
        4,
        "a kernel of its own for CPU",
        "take out this key",
    ),
    # tags
    (F + "  tags: inplace_view\n", 2, "tagged 'inplace_view'", "take the tag out"),
    (
        F + "  tags: nondeterministic_seeded\n  dispatch:\n    CPU: f\n",
        2,
        "takes no Generator",
        "Generator? generator=None",
    ),
    ("- func: f(Generator? g) -> Tensor\n", 1, "not tagged 'nondeterministic_seeded'", "add the tag"),
    # autogen
    (F + "  autogen: g.out\n", 2, "g.out cannot be derived from f", "start the name with 'f'"),
    (F + "  autogen: f\n", 2, "derived from itself", "take it out"),
    ("- func: f(Tensor x) -> Tensor\n  autogen: f_\n", 2, "not 'Tensor self'", "take it out"),
    ("- func: f(Tensor self) -> (Tensor, Tensor)\n  autogen: f_\n", 2, "does not return one Tensor", "whole schema"),
    ("- func: f(Tensor self) -> int\n  autogen: f.out\n", 2, "f returns int", "Tensor or Tensor[]"),
    ("- func: f(Tensor self) -> ()\n  autogen: f.out\n", 2, "f returns nothing", "Tensor or Tensor[]"),
    (
        "- func: f.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)\n  autogen: f\n",
        2,
        "'autogen' on the out= operator f.out",
        "functional",
    ),
    (F + "  autogen: f.o(Tensor x, *, Tensor(a!) out) -> Tensor(a!)\n", 2, "not the arguments of f", "f(Tensor self)"),
    (F + "  autogen: f.o(Tensor self) -> Tensor\n", 2, "is functional, as f is", "another variant"),
    (F + "  autogen: 'f.out('\n", 2, "'autogen': column 7", "type name"),
    (F + "  inplace_variants: method\n", 2, "derives no in-place variant", "'f_' to 'autogen'"),
    # pointwise, reduction, composite
    (F + "  pointwise: x + 1\n", 2, "'pointwise' is text, not a mapping", "below 'pointwise:'"),
    (F + "  pointwise:\n    all: x\n    flaot: x\n", 4, "unknown key 'flaot' in 'pointwise'", "'float'"),
    (F + "  pointwise:\n    flaot: x\n", 3, "unknown key 'flaot' in 'pointwise'", "'float'"),
    (F + "  pointwise:\n    promotion: default\n", 3, "'pointwise' has no expression", "at least one of all"),
    (F + "  pointwise:\n    promotion: int_to_flaot\n    all: x\n", 3, "unknown promotion", "'int_to_float'"),
    (F + "  pointwise:\n    all: x\n    operands: self\n", 4, "'operands' is not a mapping", "operands: {"),
    (F + "  pointwise:\n    all: x\n    cases: x\n", 4, "'cases' is not a mapping", "exponent == 2"),
    (F + "  pointwise:\n    all: x\n    operands:\n      slf: bool\n", 5, "no argument of f", "'self'"),
    (F + "  pointwise:\n    all: [x]\n", 3, "'all' in 'pointwise' is not text", "expression"),
    (F + "  pointwise: {all: x}\n  composite: self + 1\n", 3, "both 'pointwise' and 'composite'", "keep one"),
    (F + "  pointwise: {all: x}\n  dispatch:\n    CPU: f_cpu\n", 4, "'pointwise' and a kernel f_cpu", "take"),
    (
        F + "  composite: self + 1\n  dispatch:\n    CompositeExplicitAutograd: f\n",
        4,
        "'composite' and a kernel f for CompositeExplicitAutograd",
        "take out",
    ),
    (F + "  reduction: sum\n", 2, "'reduction' is text, not a mapping", "below 'reduction:'"),
    (F + "  composite: self +\n", 2, "is not Python", "Python expression"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "what", "fix"), FUNCTIONS, ids=[case[2] for case in FUNCTIONS])
def test_mistakes_in_functions(text: str, line: int, what: str, fix: str) -> None:
    errors = ErrorCollector()
    functions_of(text, errors)
    the_mistake(errors, line, what, fix)


A = "- name: abs(Tensor self) -> Tensor\n"
P = "- name: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor\n"

DERIVATIVES = [
    ("- self: grad\n  other: grad\n", 1, "an entry without 'name'", "- name: schema"),
    ("- name: asb(Tensor self) -> Tensor\n  self: grad\n", 1, "unknown operator asb", "'abs"),
    ("- name: abs(Tensor self -> Tensor\n  self: grad\n", 1, "'name': column 17", "close"),
    ("- name: abs(Tensor x) -> Tensor\n  self: grad\n", 1, "not the one in native_functions/", "abs(Tensor self)"),
    (A + "  slf: grad\n", 2, "'slf' is no argument of abs", "'self'"),
    (P + "  self: grad\n  alpha: grad\n", 3, "a gradient for 'Scalar alpha' of add.Tensor", "for self, other"),
    (P + "  self, other: grad\n  other: grad\n", 3, "two gradients for 'other'", "take out one"),
    (A + "  self: grad\n" + A + "  self: grad\n", 3, "given twice; first in line 1", "join the two"),
    (A + "  self: grad\n  self: grad\n", 3, "the key 'self' stands twice", "take out one"),
    (A + "  self: [grad]\n", 2, "'self' is a list, not text", "self: text"),
    (A + "  self: grad\n  dispatch: {Default: {self: grad}}\n", 2, "a formula beside 'dispatch'", "Default:"),
    (A + "  dispatch:\n    Default:\n      self: grad\n    AutogradCPUU:\n      self: grad\n", 1,
     "unknown autograd key 'AutogradCPUU'", "'AutogradCPU'"),
    (A + "  self: grad\n  output_differentiability: [True, False]\n", 1, "2 items for 1 returns", "for each return"),
    (A + "  self: grad\n  output_differentiability: True\n", 3, "is text, not a list", "[True, False]"),
    ("- name: full.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)\n  out: grad\n", 1, "the out= operator", ""),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "what", "fix"), DERIVATIVES, ids=[case[2] for case in DERIVATIVES])
def test_mistakes_in_derivatives(text: str, line: int, what: str, fix: str) -> None:
    errors = ErrorCollector()
    functions = functions_of(BASE, errors)
    check_derivatives(load_derivatives(text, functions, errors), errors)
    the_mistake(errors, line, what, fix)


AUTOCAST = [
    ("fp32: [abs]\npromote: [asb]\n", 2, "unknown operator asb", "'abs"),
    ("fp32: [abs]\npromote: [add]\n", 2, "unknown operator add", "'add.Tensor'"),
    ("fp32:\n- abs\npromote:\n- topk\n- abs\n", 5, "abs is in two policies, 'fp32' (line 2) and 'promote'", "keep one"),
    ("fp32:\n- abs\n- abs\n", 3, "abs stands twice in 'fp32'", "keep one"),
    ("fp23: [abs]\npromote: [topk]\n", 1, "unknown autocast policy 'fp23'", "'fp32'"),
    ("OpenCL:\n  fp32: [abs]\n", 1, "unknown autocast policy 'OpenCL'", "below 'devices:'"),
    ("devices:\n  OpenCl:\n    fp32: [abs]\n", 2, "unknown device 'OpenCl'", "'OpenCL'"),
    ("- abs\n- topk\n", 1, "the file is a list, not a mapping", "policy: ["),
]


@pytest.mark.parametrize(("text", "line", "what", "fix"), AUTOCAST, ids=[case[2] for case in AUTOCAST])
def test_mistakes_in_autocast(text: str, line: int, what: str, fix: str) -> None:
    errors = ErrorCollector()
    functions = functions_of(BASE, errors)
    check_autocast(load_autocast(text, functions, errors), errors)
    the_mistake(errors, line, what, fix)


LOAD_TAGS = [
    ("- tag: core\n  decs: x\n- tag: y\n  desc: z\n", 2, "unknown key 'decs'", "'desc'"),
    ("- tag: core\n  desc: x\n- tag: core\n  desc: y\n", 3, "'core' stands twice; first in line 1", "take out"),
    ("- tag: core\n  desc: x\n- tag: y\n", 3, "without 'tag' or 'desc'", "- tag: name"),
]


@pytest.mark.parametrize(("text", "line", "what", "fix"), LOAD_TAGS, ids=[case[2] for case in LOAD_TAGS])
def test_mistakes_in_tags(text: str, line: int, what: str, fix: str) -> None:
    errors = ErrorCollector()
    load_tags(text, errors)
    hits = [e for e in errors if e.location.line == line and what in e.what and fix in e.fix]
    assert len(hits) == 1, "\n".join(map(str, errors))


def test_all_mistakes_come_together() -> None:
    with pytest.raises(YamlErrors) as caught:
        load_native_functions("- func: f(Tensr x) -> Tensor\n- func: g() -> Tensor\n  tgas: core\n", TAGS)
    assert [e.location.line for e in caught.value.errors] == [1, 3]
    assert str(caught.value).endswith("2 mistakes")


def test_how_a_mistake_prints() -> None:
    error = YamlError(Location("a.yaml", 7), "this is wrong", "write that")
    assert str(error) == "a.yaml:7: this is wrong\n    fix: write that"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(YamlErrors, match="cannot read the file"):
        load_native_functions(tmp_path / "none.yaml", TAGS)


def test_base_is_right() -> None:
    errors = ErrorCollector()
    functions = functions_of(BASE, errors)
    assert [str(e) for e in errors] == []
    assert [str(f.name) for f in functions] == ["abs", "abs_", "abs.out", "add.Tensor", "topk", "full.out"]


def test_keys_arrive() -> None:
    text = """\
- func: f(Tensor self) -> Tensor
  variants: method, function
  dispatch:
    CPU, OpenCL: f_kernel
    Meta: f_meta
  tags: [core, pointwise]
  device_check: NoCheck
  device_guard: False
  python_module: nn
  manual_cpp_binding: True
  doc: What it does.
  autogen:
  - f_
  - "f.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!), f.x_out"
  pointwise:
    promotion: int_to_float
    operands: {self: bool}
    float: exp(x)
    all: 1
"""
    (f,) = load_native_functions(text, TAGS)
    assert f.variants == ("method", "function")
    assert [(k.key, k.name, k.location.line) for k in f.dispatch] == [
        ("CPU", "f_kernel", 4),
        ("OpenCL", "f_kernel", 4),
        ("Meta", "f_meta", 5),
    ]
    assert f.tags == ("core", "pointwise")
    assert (f.device_check, f.device_guard, f.python_module, f.manual_cpp_binding) == ("NoCheck", False, "nn", True)
    assert f.autogen == ("f_", "f.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)", "f.x_out")
    assert f.pointwise is not None
    assert list(f.pointwise) == ["promotion", "operands", "float", "all"]
    assert f.pointwise.at("float").line == 18
    assert f.pointwise["all"] == "1"
    assert isinstance(f.pointwise["operands"], RawMapping)
    assert f.at("doc").line == 11
    assert f.kernel("Meta") == "f_meta" and f.kernel("CUDA") is None


def test_derivatives_arrive() -> None:
    functions = functions_of(BASE, ErrorCollector())
    text = """\
- name: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
  self, other: add_backward(grad, alpha)
  result: self_t + other_t
- name: topk(Tensor self, int k) -> (Tensor values, Tensor indices)
  output_differentiability: [True, False]
  dispatch:
    Default:
      self: scatter(grad, indices)
      values: gather(self_t, indices)
    AutogradOpenCL:
      self: other(grad)
"""
    errors = ErrorCollector()
    add, topk = load_derivatives(text, functions, errors)
    check_derivatives([add, topk], errors)
    assert [str(e) for e in errors] == []
    assert [(f.names, f.text, f.location.line) for f in add.formulas] == [
        (("self", "other"), "add_backward(grad, alpha)", 2)
    ]
    assert [f.names for f in add.forward] == [("result",)]
    assert topk.output_differentiability == (True, False)
    assert [f.names for f in topk.forward] == [("values",)]
    assert topk.for_key("AutogradOpenCL")[0].text == "other(grad)"
    assert topk.for_key("AutogradCPU")[0].text == "scatter(grad, indices)"


def test_autocast_arrives() -> None:
    functions = functions_of(BASE, ErrorCollector())
    text = "fp32: [abs, add.Tensor]\ndevices:\n  OpenCL:\n    promote: abs\n"
    entries = load_autocast(text, functions)
    assert [(e.policy, str(e.function.name), e.device) for e in entries] == [
        ("fp32", "abs", None),
        ("fp32", "add.Tensor", None),
        ("promote", "abs", "OpenCL"),
    ]


def test_registry(tmp_path: Path) -> None:
    (tmp_path / "tags.yaml").write_text("- tag: core\n  desc: x\n- tag: pointwise\n  desc: y\n")
    (tmp_path / "native_functions.yaml").write_text(BASE)
    (tmp_path / "derivatives.yaml").write_text(A + "  self: grad * sgn(self)\n")
    registry = load_registry(tmp_path)
    assert registry.by_name["abs.out"].source is registry.by_name["abs"]
    assert [len(group.members()) for group in registry.groups] == [3, 1, 1, 1]
    (tmp_path / "derivatives.yaml").write_text(A + "  slef: grad * sgn(self)\n")
    with pytest.raises(YamlErrors) as caught:
        load_registry(tmp_path)
    assert {Path(e.location.file).name for e in caught.value.errors} == {"derivatives.yaml"}
    (tmp_path / "tags.yaml").write_text("- tag: core\n  desc: x\n")
    with pytest.raises(YamlErrors) as caught:  # what refers to operators is not looked at before these are sound
        load_registry(tmp_path)
    assert {Path(e.location.file).name for e in caught.value.errors} == {"native_functions.yaml"}


def test_registry_by_family(tmp_path: Path) -> None:
    """A folder with a file per family says what one file for all says; mistakes name the file of the family."""
    (tmp_path / "tags.yaml").write_text("- tag: core\n  desc: x\n- tag: pointwise\n  desc: y\n")
    (tmp_path / "native_functions.yaml").write_text(BASE)
    (tmp_path / "derivatives.yaml").write_text(A + "  self: grad * sgn(self)\n")
    whole = load_registry(tmp_path)
    for stem in ("native_functions", "derivatives"):
        (tmp_path / stem).mkdir()
        (tmp_path / f"{stem}.yaml").rename(tmp_path / stem / "first.yaml")
    assert load_registry(tmp_path).functions == whole.functions
    assert load_registry(tmp_path).derivatives == whole.derivatives
    entries = {
        "derivatives": A + "  self: grad * sgn(self)\n",
        "native_functions": "- func: abs(Tensor self) -> Tensor\n",
    }
    for stem, text in entries.items():
        (tmp_path / stem / "second.yaml").write_text(text)
        with pytest.raises(YamlErrors) as caught:
            load_registry(tmp_path)
        (error,) = caught.value.errors
        assert (error.location.file, error.location.line) == (str(tmp_path / stem / "second.yaml"), 1)
        assert f"{tmp_path}/{stem}/first.yaml:" in error.what


def test_overloads_of_one_name_stand_in_one_family() -> None:
    """They are tried in the order in which they stand, which files apart do not give."""
    folder = Path(__file__, "../../../yaml").resolve()
    families: dict[str, set[str]] = {}
    for function in load_registry(folder).functions:
        families.setdefault(function.name.base, set()).add(function.location.file)
    assert {name: files for name, files in families.items() if len(files) > 1} == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [("a, b", ["a", "b"]), ("f(a, b) -> (c, d), g", ["f(a, b) -> (c, d)", "g"]), ("a[1,2],b", ["a[1,2]", "b"])],
)
def test_split_commas(text: str, words: list[str]) -> None:
    assert split_commas(text) == words


# What check_supported has against entries of PyTorch's: no key of the grammar, but C types and names that nothing has.
UNSUPPORTED = re.compile(
    r"\S+: nothing (takes|returns) .*"
    r"|the kernel of \S+ for \w+, '\w+', is a function of the C library"
    r"|\S+: the argument '(out|requires_grad)' is one that the generator adds"
    r"|\S+ is mutable: nothing is derived from it"
    r"|the derivative of mkldnn_rnn_layer_backward is empty"
)


def test_pytorchs_own_files(torch_yaml: Callable[[str], Path]) -> None:
    tags = load_tags(torch_yaml("ATen/native/tags.yaml"))
    errors = ErrorCollector()
    entries = load_native_functions(torch_yaml("ATen/native/native_functions.yaml"), tags, errors)
    functions = expand_autogen(entries, errors)
    check_native_functions(functions, errors)
    derivatives = load_derivatives(torch_yaml("autograd/derivatives.yaml"), functions, errors)
    check_derivatives(derivatives, errors)
    assert [str(e) for e in errors] == []
    assert len(entries) == 2584 and len(functions) > 3000
    check_supported(functions, errors)
    check_supported_derivatives(derivatives, errors)
    assert [e.what for e in errors if not UNSUPPORTED.fullmatch(e.what)] == []


def test_the_trees_own_files() -> None:
    """By the same loader and checks."""
    registry = load_registry(Path(__file__).resolve().parent.parent.parent / "yaml")
    assert len(registry.functions) > 1200 and len(registry.derivatives) > 300
