"""Reductions from the YAML: what the `reduction` mapping may say, and the C that is made of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from codegen.__main__ import load_catalog
from codegen.emit_backend import emit_kernels
from codegen.emit_functions import Kernels
from codegen.emit_reduction_cpu import emit, emit_table
from codegen.errors import YamlError, YamlErrors
from codegen.reduction import ReductionOp

HEAD = "- func: fold(Tensor self, int[1]? dim=None, bool keepdim=False) -> Tensor\n  reduction:\n"
PLAIN = "    start: 0\n    step: acc + x\n"


@pytest.fixture
def load(tmp_path: Path) -> Callable:
    def load(entries: str):
        (tmp_path / "tags.yaml").write_text("- tag: reduction\n  desc: a\n")
        (tmp_path / "native_functions.yaml").write_text(entries)
        return load_catalog(tmp_path)

    return load


@pytest.fixture
def reduction_of(load) -> Callable[[str], ReductionOp]:
    return lambda entry: load(entry).reductions()[0]


# ---- mistakes: the entry, the line, what is wrong, how to mend it ----

MISTAKES = [
    (HEAD + PLAIN + "    finsh: acc / count\n", 5, "unknown key 'finsh' in 'reduction'", "'finish'"),
    (HEAD + PLAIN + "    operands: {dim: operand}\n", 5, "unknown key 'operands'", "promotion, dtypes, start"),
    (HEAD + "    promotion: summ\n" + PLAIN, 3, "unknown promotion 'summ'", "'sum'"),
    (HEAD + "    dtypes: numbers\n" + PLAIN, 3, "unknown dtype class 'numbers'", "'number'"),
    (HEAD + "    dtypes: int, flaot\n" + PLAIN, 3, "unknown dtype class 'flaot'", "'float'"),
    (HEAD + "    step: acc + x\n", 2, "the reduction fold has no 'start'", "write 'start: expression'"),
    (HEAD + "    start: 0\n", 2, "the reduction fold has no 'step'", "write 'step: expression'"),
    (HEAD + "    start: 0\n    step: acc +\n", 4, "not a Python expression: invalid syntax", "in Python syntax"),
    (HEAD + "    start: 0\n    step: acc + y\n", 4, "'y'", "acc, x"),
    (HEAD + "    start: x\n    step: acc + x\n", 3, "unknown name 'x'", "use one of pi"),
    (HEAD + PLAIN + "    join: acc + x\n", 5, "'acc'", "a, b"),
    (HEAD + PLAIN + "    finish: acc / n\n", 5, "'n'", "acc, count"),
    (HEAD + "    dtypes: float\n    start: 0\n    step: acc + aps(x)\n", 5, "aps", "'abs'"),
    (
        HEAD + "    dtypes: float\n    start: 0\n    step: maximum(acc)\n",
        5,
        "'maximum' takes 2 arguments, not 1",
        "maximum(x, y)",
    ),
    (HEAD + "    start: 0.5\n    step: acc + x\n    dtypes: int\n", 3, "a fractional literal", "whole number"),
    (
        HEAD + "    dtypes: complex\n    start: 0\n    step: maximum(acc, x)\n",
        5,
        "'maximum' is not there for complex types",
        "leave the class out",
    ),
    (
        HEAD + "    dtypes: int\n" + PLAIN + "    finish: acc / count\n",
        6,
        "`/` on integers",
        "use //, leave integers out",
    ),
    (
        "- func: fold(Tensor self, Tensor other) -> Tensor\n  reduction:\n" + PLAIN,
        2,
        "fold takes (self, other), which is no reduction's form",
        "(Tensor self, int[1]? dim=None, bool keepdim=False)",
    ),
    (
        "- func: fold(Tensor self, bool keepdim=False) -> Tensor\n  reduction:\n" + PLAIN,
        2,
        "fold takes (self, keepdim)",
        "dtype=None",
    ),
    (
        HEAD + PLAIN + "  composite: self.sum()\n",
        5,
        "fold has both 'reduction' and 'composite'",
        "keep one",
    ),
    (
        HEAD + PLAIN + "  dispatch:\n    CPU: fold_cpu\n",
        6,
        "fold has 'reduction' and a kernel fold_cpu for CPU",
        "take out this key",
    ),
    (
        "- func: fold(Tensor self) -> Tensor\n  reduction: acc + x\n",
        2,
        "'reduction' is text, not a mapping",
        "below 'reduction:'",
    ),
]


@pytest.mark.parametrize("entry, line, what, fix", MISTAKES)
def test_mistakes(load, entry: str, line: int, what: str, fix: str) -> None:
    with pytest.raises((YamlError, YamlErrors)) as raised:
        load(entry)
    errors = list(getattr(raised.value, "errors", [raised.value]))
    assert len(errors) == 1, errors
    error = errors[0]
    assert (error.location.line, Path(error.location.file).name) == (line, "native_functions.yaml"), error
    assert what in error.what and fix in error.fix and error.fix, error


# ---- what is understood ----


def test_join_is_the_step_with_other_names(reduction_of) -> None:
    short = reduction_of(HEAD + "    start: 1\n    step: acc * x\n")
    long = reduction_of(HEAD + "    start: 1\n    step: acc * x\n    join: a * b\n    finish: acc\n")
    assert short.expressions == long.expressions


@pytest.mark.parametrize(
    "options, computed, taken",
    [
        ("dtypes: float", {"float32", "float64"}, {"float16", "bfloat16", "float32", "float64"}),
        ("dtypes: complex", {"complex64", "complex128"}, {"complex32", "complex64", "complex128"}),
        (
            "dtypes: bool, sint",
            {"bool", "int8", "int16", "int32", "int64"},
            {"bool", "int8", "int16", "int32", "int64"},
        ),
        (  # integers of every kind are summed as int64
            "promotion: sum\n    dtypes: int, float",
            {"int64", "float32", "float64"},
            {f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)}
            | {"bool", "float16", "bfloat16", "float32", "float64"},
        ),
    ],
)
def test_dtypes(reduction_of, options: str, computed: set[str], taken: set[str]) -> None:
    op = reduction_of(HEAD + f"    {options}\n" + PLAIN)
    assert {d.name for d in op.dtypes} == computed
    assert set(op.takes) == taken


@pytest.mark.parametrize(
    "arguments, dims, dtype",
    [
        ("Tensor self", False, False),
        ("Tensor self, *, ScalarType? dtype=None", False, True),
        ("Tensor self, int dim, bool keepdim=False", True, False),
        ("Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None", True, True),
    ],
)
def test_forms(reduction_of, arguments: str, dims: bool, dtype: bool) -> None:
    op = reduction_of(f"- func: fold({arguments}) -> Tensor\n  reduction:\n" + PLAIN)
    assert (op.has_dims, op.has_dtype) == (dims, dtype)


# ---- the C ----


def function(text: str, name: str) -> str:
    """The body of an inline function, as one line."""
    return " ".join(text.split(f" {name}(", 1)[1].split("{", 1)[1].split("\n}", 1)[0].split())


def test_kernels_of_a_mean(reduction_of) -> None:
    op = reduction_of(
        HEAD + "    dtypes: float, complex\n    start: 0\n    step: acc + x\n    join: a + b\n    finish: acc / count\n"
    )
    text = emit([op])["Reductions.c"]
    assert "TP_INLINE tp_f32 fold_f32_step(tp_f32 acc, tp_f32 x) {" in text
    assert "TP_INLINE tp_f64 fold_f64_finish_one(tp_f64 acc, tp_f64 count) {" in text
    assert function(text, "fold_f32_step") == "return acc + x;"
    assert function(text, "fold_f32_join") == "return a + b;"
    assert function(text, "fold_f32_finish_one") == "return acc / count;"
    assert "#define OF fold_f32\n#define ELEMENT tp_f32\n#define ACC tp_f32\n#define COUNT(n) (tp_f32)(n)\n" in text
    assert "#define COUNT(n) tp_complex_c64((tp_f32)(n), 0)" in text
    assert "[TP_FLOAT32] = TP_REDUCTION_ROW(fold_f32, TP_FLOAT32, TP_FLOAT32, 4)" in text
    assert "fold_i64" not in text and "fold_b8" not in text


def test_kernels_that_give_bools(reduction_of) -> None:
    op = reduction_of(HEAD + "    promotion: always_bool\n    start: 0\n    step: acc | (x != 0)\n    join: a | b\n")
    text = emit([op])["Reductions.c"]
    assert "#define ELEMENT tp_i32\n#define ACC tp_u8\n" in text  # a bool is folded as its byte
    assert "[TP_INT32] = TP_REDUCTION_ROW(fold_i32, TP_INT32, TP_BOOL, 1)" in text


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("    dtypes: number\n    start: 0\n    step: acc + x * x\n", 5),  # the join would be a + b * b
        ("    dtypes: number\n    start: 1\n    step: acc + x\n", 5),  # each part would add one
        ("    dtypes: float\n    start: 0\n    step: x\n    join: b\n", 6),  # depends on the order
        ("    dtypes: float\n    start: 0\n    step: acc + log(x)\n    join: a * b\n", 6),  # log has no value of -0.75
        ("    dtypes: float\n    start: 0\n    step: acc + acosh(x)\n    join: a * b\n", 6),
        ("    dtypes: float\n    start: 0\n    step: acc + asin(x)\n    join: a - b\n", 6),
        ("    dtypes: float\n    start: 0\n    step: acc + sqrt(x - 1)\n    join: a * b\n", 6),
        ("    dtypes: float\n    start: 0\n    step: acc + log(x - 5)\n    join: a * b\n", 6),
        (
            "    dtypes: float\n    start: 0\n    step: acc + rsqrt(x - 100)\n    join: a * b\n",
            6,
        ),  # whose root is imaginary
        ("    dtypes: float\n    start: 0\n    step: acc + where(x > 50, x, 0)\n    join: a * b\n", 6),  # zero below
        ("    dtypes: float\n    start: 0\n    step: acc + exp(x)\n    join: log(exp(a) + exp(b))\n", 6),
        ("    promotion: always_bool\n    start: 0\n    step: acc | (x != 0)\n    join: a & b\n", 6),
    ],
)
def test_a_join_that_gives_other_results_than_folding_is_refused(load, body: str, line: int) -> None:
    with pytest.raises(YamlErrors) as caught:
        load(HEAD + body)
    (error,) = caught.value.errors
    assert error.location.line == line and "folds them in one to" in error.what, error
    assert "write a 'join'" in error.fix


@pytest.mark.parametrize(
    "body",
    [
        "    dtypes: number\n    start: 1\n    step: acc * x\n",
        "    dtypes: real\n    start: 0\n    step: acc + abs(x)\n    join: a + b\n",
        "    dtypes: float\n    start: -inf\n    step: logaddexp(acc, x)\n",
        "    dtypes: real\n    start: 0\n    step: maximum(acc, abs(x))\n    join: maximum(a, b)\n",
        "    dtypes: complex\n    start: 0\n    step: acc + x * conj(x)\n    join: a + b\n",
    ],
)
def test_a_join_that_holds_is_taken(load, body: str) -> None:
    assert load(HEAD + body).reductions()


@pytest.mark.parametrize(
    "body",
    [
        "    dtypes: float\n    start: 0\n    step: acc + digamma(x)\n    join: a + b\n",  # which Python has not
        "    dtypes: float\n    start: 0\n    step: acc + log(-1 - x * x)\n    join: a + b\n",  # which has no value
        "    dtypes: float\n    start: 0\n    step: acc + where(x > 1e7, x, 0)\n    join: a * b\n",  # which stays zero
    ],
)
def test_what_cannot_be_tried_is_refused(load, body: str) -> None:
    with pytest.raises(YamlErrors) as caught:
        load(HEAD + body).reductions()
    assert "cannot be tried" in str(caught.value)


def test_numbers_are_taken_from_the_domain(reduction_of) -> None:
    for step in ("log(x)", "sqrt(x)", "acosh(x)", "asin(x)", "log1p(x)", "atanh(x)", "log(x - 5)", "rsqrt(-x)"):
        assert reduction_of(HEAD + f"    dtypes: float\n    start: 0\n    step: acc + {step}\n    join: a + b\n").name


def test_table(load) -> None:
    catalog = load(HEAD + "    promotion: sum\n    dtypes: int\n" + PLAIN + "  autogen: fold.out\n")
    files = emit_table(catalog.reductions())
    assert "extern tp_reduction_op tp_reduction_fold;" in files["ReductionTable.h"]
    assert ".promotion = TP_REDUCE_SUM," in files["ReductionTable.c"]
    assert "tp_reduction_fold.kernels = TP_AVX512(fold_reduction);" in files["ReductionTable.c"]
    kernels = Kernels()
    text = emit_kernels(catalog, kernels)
    assert text.count("tp_reduction_new(&tp_reduction_fold, self, dim, keepdim, TP_NO_DTYPE)") == 1
    assert text.count("tp_reduction_into(&tp_reduction_fold, self, dim, keepdim, TP_NO_DTYPE, out)") == 1
    assert "Dense" in kernels.rows


def test_a_tree_without_reductions_compiles(load) -> None:
    catalog = load("- func: f(Tensor self) -> Tensor\n")
    assert "extern const int TP_CAP(tp_no_reductions);" in emit(catalog.reductions())["Reductions.c"]
