"""The scalar programs of pointwise operators and reductions, as the library holds them.

That they compute what the compiled loops do is shown on OpenCL, whose kernels are made from them; here they are
interpreted, and their text is compiled.
"""

from __future__ import annotations

import operator
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorpy as tp
from tensorpy.dispatch import Program
from tensorpy.utils import extension

INCLUDE = Path(tp.backends.include())
CC = shutil.which("cc")
DTYPES = (tp.bool, tp.uint8, tp.int64, tp.float32, tp.float64, tp.complex128)
ONE = ("neg", "not", "exp", "log1p", "abs", "sqrt", "tanh", "isnan", "square")
KINDS = {"bool": np.bool_, "int64": np.int64, "float64": np.float64}
OPERATIONS: dict[str, Callable[..., Any]] = {
    "neg": operator.neg, "not": np.logical_not, "add": np.add, "sub": np.subtract, "mul": np.multiply,
    "div": np.divide, "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt,
    "ge": operator.ge, "exp": np.exp, "log1p": np.log1p, "abs": np.abs, "sqrt": np.sqrt, "tanh": np.tanh,
    "maximum": np.maximum, "minimum": np.minimum, "isnan": np.isnan, "square": np.square, "xor": np.bitwise_xor,
}  # fmt: skip


def interpret(program: Program, dtype: Any, inputs: list[Any], params: tuple[Any, ...] = ()) -> Any:
    """What a device without compiled loops would do, on whole arrays."""
    values: list[Any] = []
    with np.errstate(all="ignore"):
        for s in program.steps:
            kind = KINDS.get(s.kind, dtype)
            if s.operation == "input":
                made = inputs[s.a]
            elif s.operation == "number":
                made = kind(params[s.a])
            elif s.operation == "none":
                made = params[s.a] is None
            elif s.operation in ("constant", "integer"):
                made = kind(program.constants[s.a])
            elif s.operation == "cast":
                made = np.asarray(values[s.a]).astype(kind)
            elif s.operation == "select":
                made = np.where(values[s.a], values[s.b], values[s.c])
            else:
                function = OPERATIONS[s.operation]
                made = function(*(values[k] for k in (s.a, s.b)[: 1 if s.operation in ONE else 2]))
            values.append(made)
    return values[-1]


def numbers(dtype: Any) -> np.ndarray[Any, Any]:
    made = np.random.default_rng(7).normal(size=64) * 3
    return (made > 0) if dtype is np.bool_ else made.astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize(
    "name, params",
    [("add.Tensor", (2,)), ("mul.Tensor", ()), ("lt.Tensor", ()), ("maximum", ()), ("neg", ()), ("clamp_min", (1,))],
)
def test_interpreted(name: str, params: tuple[Any, ...], dtype: str) -> None:
    (program,) = tp.dispatch.program(name, getattr(tp, dtype))
    kind = getattr(np, dtype)
    wanted = max((s.a + 1 for s in program.steps if s.operation == "input"), default=0)
    inputs = [numbers(kind), numbers(kind)[::-1].copy()][:wanted]
    if name == "clamp_min":  # its bound is an input that is a number
        inputs[1:] = [kind(1)]
    given = [tp.from_numpy(x) if isinstance(x, np.ndarray) else int(x) for x in inputs]
    expected = {
        "add.Tensor": lambda: tp.add(*given, alpha=2),
        "clamp_min": lambda: tp.clamp_min(*given),
        "lt.Tensor": lambda: tp.lt(*given),
        "maximum": lambda: tp.maximum(*given),
        "mul.Tensor": lambda: tp.mul(*given),
        "neg": lambda: tp.neg(*given),
    }[name]()
    made = interpret(program, kind, inputs, params)
    assert np.array_equal(made, expected.numpy())
    assert program.dtype == expected.dtype


def test_a_reduction_has_four() -> None:
    start, step, join, finish = tp.dispatch.program("prod", tp.float64)
    one = interpret(start, np.float64, [])
    acc = [one, one]
    for i, x in enumerate((2.0, 3.0, 5.0, 7.0)):
        acc[i % 2] = interpret(step, np.float64, [acc[i % 2], np.float64(x)])
    made = interpret(finish, np.float64, [interpret(join, np.float64, acc), np.float64(4)])
    assert made == tp.tensor([2.0, 3.0, 5.0, 7.0]).prod().item() == 210


def test_what_has_none() -> None:
    with pytest.raises(ValueError, match=r"sort\.stable is not given as a scalar expression"):
        tp.dispatch.program("sort.stable", tp.float32)
    with pytest.raises(NotImplementedError, match="digamma does not compute in int64"):
        tp.dispatch.program("digamma", tp.int64)
    with pytest.raises(TypeError, match="takes a dtype"):
        tp.dispatch.program("neg", 3)  # type: ignore[arg-type]


def names_in(program: Program) -> list[str]:
    """The arguments of the function as which a program is printed."""
    found: dict[str, str] = {}
    for s in program.steps:
        kind = {"bool": "bool", "int64": "tp_i64", "float64": "tp_f64"}.get(s.kind, "T" if s.kind == "compute" else "R")
        if s.operation == "input":
            found[f"x{s.a}"] = kind
        elif s.operation == "number":
            found[f"p{s.a}"] = kind
        elif s.operation == "none":
            found[f"n{s.a}"] = "bool"
        elif s.operation == "word":
            found[f"w{s.a}_{s.b}"] = "bool"
    return [f"{kind} {name}" for name, kind in found.items()]


@pytest.mark.skipif(CC is None, reason="no C compiler")
def test_every_text_is_c(tmp_path: Path) -> None:
    suffixes = {"bool": "bool", "uint8": "u8", "int64": "i64", "float32": "f32", "float64": "f64", "complex128": "c128"}
    lines = ['#include "tensorpy/math.h"']
    count = 0
    for dtype in DTYPES:
        suffix = suffixes[str(dtype).removeprefix("tensorpy.")]
        real = {"c128": "f64"}.get(suffix, suffix)
        lines += ["#undef T", "#undef R", f"#define T tp_{suffix}", f"#define R tp_{real}"]
        for name in tp.dispatch.programs():
            try:
                programs = tp.dispatch.program(name, dtype)
            except NotImplementedError:
                continue
            for k, program in enumerate(programs):
                arguments = ", ".join(names_in(program)) or "void"
                result = suffixes[str(program.dtype).removeprefix("tensorpy.")]
                lines.append(f"tp_{result} f_{name.replace('.', '_')}_{suffix}_{k}({arguments}) {{\n{program}}}")
                count += 1
    assert count > 500
    source = tmp_path / "programs.c"
    source.write_text("\n".join(lines))
    command = [str(CC), "-std=gnu11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I", str(INCLUDE), str(source)]
    done = subprocess.run([*command, "-Wno-unused-function"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:4000]


def test_operations_keep_their_numbers() -> None:
    """A device that was built against an earlier release reads today's programs."""
    from codegen.scalar_math import FORMS, HELPERS
    from codegen.scalar_program import FIRST_HELPER, HELPER_NUMBERS, OPERATIONS, number_of

    assert len(OPERATIONS) == 25 <= FIRST_HELPER == 32
    pinned = {"input": 0, "constant": 4, "cast": 7, "add": 11, "eq": 18, "select": 24, "abs": 32, "exp": 39, "erf": 59}
    pinned |= {"isnan": 78, "pow": 83, "maximum": 92, "xlogy": 98, "rshift": 103, "complex": 106}
    assert {name: number_of(name) for name in pinned} == pinned
    assert set(HELPERS) | {"real", "imag", "complex"} == set(HELPER_NUMBERS) and "real" in FORMS


# ---- as a library from outside reads them (tensorpy/program.h) ----

SHOW = """
#include "tensorpy/library.h"
#include <string.h>

/* The program of that name in the dtype of x, as text. */
TENSORPY_KERNEL(tp_tensor *, show, (tp_tensor *, x), (const char *, name), (bool, reduces)) {
    tp_dtype d = tp_view_of(x).dtype;
    tp_map_program m = {.name = ""};
    tp_reduce_program r = {.name = ""};
    for (int64_t i = 0; strcmp(reduces ? r.name : m.name, name) != 0; i++) {
        int status = reduces ? tp_reduce_program_at(i, d, &r) : tp_map_program_at(i, d, &m);
        if (status < 0 && strstr(tp_error_message(), "compute")) tp_error_clear();
        else if (status < 0) return NULL;
    }
    const tp_program *p = reduces ? &r.parts[TP_REDUCTION_STEP] : m.program;
    char text[500];
    int64_t length = tp_print_program(p, d, text, sizeof text);
    if (length != (int64_t)strlen(text) || tp_print_program(p, d, NULL, 0) != length) return NULL;
    return tp_fail_null(TP_ValueError, "%d inputs, %s first, %s last, %s:%s", reduces ? 2 : m.ninputs,
                        tp_step_name(p->steps[0].op), tp_step_name(p->steps[p->nsteps - 1].op),
                        tp_dtype_name(tp_program_result(p, d)), text);
}
TENSORPY_LIBRARY(shown, m) { return tp_def(m, "show(Tensor x, str name, bool reduces) -> Tensor"); }
TENSORPY_LIBRARY_IMPL(shown, CPU, m) { return tp_impl(m, "show", show); }
"""


def test_a_library_reads_programs(tmp_path: Path) -> None:
    """The steps, their names and the text are those that Python is shown."""
    extension.load_inline("shown", SHOW, build_directory=tmp_path)
    for name, dtype, inputs, result in (
        ("addcmul", tp.float32, 3, "float32"),
        ("eq.Tensor", tp.int64, 2, "bool"),
        ("sigmoid", tp.complex64, 1, "complex64"),
        ("prod", tp.int64, 2, "int64"),
    ):
        programs = tp.dispatch.program(name, dtype)
        expected = programs[1 if len(programs) > 1 else 0]  # of a reduction: the step
        with pytest.raises(ValueError) as error:
            tp.ops.shown.show(tp.ones(1, dtype=dtype), name, len(programs) > 1)
        head, _, text = str(error.value).partition(":")
        first, last = expected.steps[0].operation, expected.steps[-1].operation
        assert head == f"{inputs} inputs, {first} first, {last} last, {result}"
        assert text.strip() == str(expected).strip()
    with pytest.raises(RuntimeError, match="there is no such program"):
        tp.ops.shown.show(tp.ones(1), "nobody's", False)
