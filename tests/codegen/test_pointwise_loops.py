"""The generated inner loops, compiled and called: contiguous, scalar operand, strided, in-place, every dtype class."""

from __future__ import annotations

import ctypes
import platform
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from codegen.emit_pointwise_cpu import emit, emit_table
from codegen.errors import YamlError, YamlErrors
from codegen.loader import load_native_functions
from codegen.pointwise import parse_pointwise

ROOT = Path(__file__).resolve().parents[2]
GCC = shutil.which("gcc")
pytestmark = pytest.mark.skipif(GCC is None, reason="no gcc")

YAML = """
- func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
  pointwise:
    all: self + other if alpha == 1 else self + alpha * other
- func: add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
  pointwise:
    operands: {other: operand}
    all: self + other if alpha == 1 else self + alpha * other
- func: exp(Tensor self) -> Tensor
  pointwise:
    promotion: int_to_float
    float: exp(self)
    complex: exp(self)
- func: sin(Tensor self) -> Tensor
  pointwise:
    promotion: int_to_float
    float: sin(self)
- func: pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor
  pointwise:
    number: self ** exponent
- func: div.Tensor(Tensor self, Tensor other) -> Tensor
  pointwise:
    promotion: int_to_float
    float: self / other
    complex: self / other
- func: floor_divide(Tensor self, Tensor other) -> Tensor
  pointwise:
    real: self // other
- func: remainder.Tensor(Tensor self, Tensor other) -> Tensor
  pointwise:
    real: self % other
- func: lt.Tensor(Tensor self, Tensor other) -> Tensor
  pointwise:
    promotion: always_bool
    bool: self < other
    real: self < other
- func: abs(Tensor self) -> Tensor
  pointwise:
    promotion: complex_to_float
    number: abs(self)
- func: sign(Tensor self) -> Tensor
  pointwise:
    bool: self
    real: sgn(self)
- func: maximum(Tensor self, Tensor other) -> Tensor
  pointwise:
    bool: maximum(self, other)
    real: maximum(self, other)
- func: where.self(Tensor condition, Tensor self, Tensor other) -> Tensor
  pointwise:
    promotion: no_opmath
    operands: {condition: bool}
    all: self if condition else other
- func: masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor
  pointwise:
    promotion: no_opmath
    operands: {mask: bool}
    all: value if mask else self
- func: clamp(Tensor self, Scalar min, Scalar max) -> Tensor
  pointwise:
    operands: {min: operand, max: operand}
    real: minimum(maximum(self, min), max)
- func: gelu(Tensor self, *, str approximate='none') -> Tensor
  pointwise:
    float: |
      inner = 0.7978845608028654 * (self + 0.044715 * self * self * self)
      outer = tanh(inner) if approximate == "tanh" else erf(self * 0.7071067811865476)
      0.5 * self * (1 + outer)
- func: logit(Tensor self, float? eps=None) -> Tensor
  pointwise:
    promotion: int_to_float
    float: |
      x = self if eps is None else minimum(maximum(self, eps), 1 - eps)
      log(x / (1 - x))
"""

# What the loops need of the core, and a way to fill in a parameter without knowing its layout here.
SUPPORT = r"""
#include "cpu/loop.h"
#include <stdlib.h>
int64_t tp_scalar_int(const tp_scalar *s) { return s->kind == TP_SCALAR_FLOAT ? (int64_t)s->f : s->i; }
uint64_t tp_scalar_uint(const tp_scalar *s) { return (uint64_t)tp_scalar_int(s); }
double tp_scalar_double(const tp_scalar *s) { return s->kind == TP_SCALAR_FLOAT ? s->f : (double)s->i; }
tp_complex128 tp_scalar_complex(const tp_scalar *s) { return tp_scalar_double(s); }
bool tp_scalar_bool(const tp_scalar *s) { return tp_scalar_double(s) != 0; }
void tp_scalar_store(const tp_scalar *s, tp_dtype d, void *p) {
    const float f = (float)tp_scalar_double(s);
    if (d == TP_FLOAT16) *(tp_half *)p = tp_float_to_half(f);
    if (d == TP_BFLOAT16) *(tp_bfloat *)p = tp_float_to_bfloat(f);
}
void tp_libmvec_find(void) {} /* the linker finds this machine's functions */
void *params_new(void) { return calloc(4, sizeof(tp_value)); }
void param_none(tp_value *v, int i) { v[i].tag = TP_NONE; }
void param_str(tp_value *v, int i, const char *s) { v[i].tag = TP_STR, v[i].str = s; }
void param_float(tp_value *v, int i, double f) { v[i].tag = TP_FLOAT, v[i].f = f; }
void param_int(tp_value *v, int i, int64_t n) { v[i].tag = TP_INT, v[i].i = n; }
void param_scalar(tp_value *v, int i, double f, int is_int) {
    tp_scalar *s = malloc(sizeof *s);
    *s = is_int ? (tp_scalar){.kind = TP_SCALAR_INT, .i = (int64_t)f} : (tp_scalar){.kind = TP_SCALAR_FLOAT, .f = f};
    v[i].tag = TP_SCALAR, v[i].scalar = s;
}
int dtype_number(const char *name) {
#define NUMBER(id, text, ctype, category) if (!strcmp(name, #text)) return TP_##id;
    TP_FORALL_DTYPES(NUMBER)
    return -1;
}
void call(const tp_pointwise *op, int dtype, char *const *data, const int64_t *strides, int64_t n, const void *params) {
    op->loops[dtype](data, strides, n, params);
}
int has(const tp_pointwise *op, int dtype) { return op->loops[dtype] != NULL; }
"""

FLAGS = ["-std=gnu11", "-fPIC", "-Wall", "-Wextra", "-Werror", "-fno-math-errno", "-fno-trapping-math"]
CAPABILITIES = {
    "baseline": [],
    "avx2": ["-mavx2", "-mfma", "-mf16c", "-mbmi", "-mbmi2"],
    "avx512": ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mfma"],
}


class Loops:
    def __init__(self, folder: Path) -> None:
        functions = load_native_functions(YAML, None)
        ops = [parse_pointwise(f.pointwise, f.func, f.at("pointwise")) for f in functions]
        self.texts = {**emit(ops, 2), **emit_table(ops)}
        for name, text in self.texts.items():
            (folder / name).write_text(text)
        (folder / "support.c").write_text('#include "prim/pointwise.h"\n' + SUPPORT)
        include = [f"-I{folder}", f"-I{ROOT}/csrc", f"-I{ROOT}/csrc/include"]
        x86 = platform.machine() in ("x86_64", "AMD64")
        objects = []

        def compile_one(source: Path, target: str, *flags: str) -> None:
            objects.append(str(folder / target))
            subprocess.run([str(GCC), *FLAGS, *include, *flags, "-c", str(source), "-o", objects[-1]], check=True)

        for capability, flags in CAPABILITIES.items() if x86 else [("baseline", [])]:
            for shard in (0, 1):
                source = folder / f"Pointwise_{shard}.c"
                options = ["-O3", "-ffp-contract=off", f"-DTP_CAPABILITY={capability}", *flags]
                compile_one(source, f"{capability}_{shard}.o", *options)
        compile_one(folder / "PointwiseTable.c", "table.o", "-O1")
        compile_one(folder / "support.c", "support.o", "-O1", "-Wno-misleading-indentation", "-Wno-error")
        for name in ("capability", "vector_math"):
            compile_one(ROOT / f"csrc/cpu/{name}.c", f"{name}.o", "-O1")
        subprocess.run(
            [str(GCC), "-shared", *objects, "-o", str(folder / "loops.so"), "-lm", "-Wl,-z,defs"], check=True
        )
        self.library = ctypes.CDLL(str(folder / "loops.so"))
        self.library.params_new.restype = ctypes.c_void_p
        self.kept: list[ctypes.c_char_p] = []
        self.highest = self.library.tp_cpu_capability()

    def op(self, name: str) -> ctypes.c_char:
        return ctypes.c_char.in_dll(self.library, f"tp_pointwise_{name}")

    def has(self, name: str, dtype: str) -> bool:
        return bool(self.library.has(ctypes.byref(self.op(name)), self.library.dtype_number(dtype.encode())))

    def run(self, name, dtype, out, *inputs, params=()):
        values = ctypes.c_void_p(self.library.params_new())
        for i, p in enumerate(params):
            if p is None:
                self.library.param_none(values, i)
            elif isinstance(p, str):
                self.kept.append(ctypes.c_char_p(p.encode()))
                self.library.param_str(values, i, self.kept[-1])
            elif isinstance(p, tuple):  # a schema float
                self.library.param_float(values, i, ctypes.c_double(p[0]))
            else:
                self.library.param_scalar(values, i, ctypes.c_double(p), isinstance(p, int))
        arrays = [out, *inputs]
        data = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
        strides = (ctypes.c_int64 * len(arrays))(*(a.strides[0] for a in arrays))
        number = self.library.dtype_number(dtype.encode())
        self.library.call(ctypes.byref(self.op(name)), number, data, strides, ctypes.c_int64(len(out)), values)
        return out


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return Loops(tmp_path_factory.mktemp("pointwise"))


@pytest.fixture(params=["baseline", "avx2", "avx512"])
def loops(request, built):
    level = ["baseline", "avx2", "avx512"].index(request.param)
    if level > built.highest:
        pytest.skip("this CPU does not have it")
    built.library.tp_pointwise_select(level)
    return built


def strided(array, step=3):
    wide = np.zeros(len(array) * abs(step), array.dtype)[::step]
    wide[:] = array
    return wide


def layouts(*arrays):
    """The arrays contiguous, strided, backwards, and with each one in turn a scalar."""
    yield arrays
    yield tuple(strided(a) for a in arrays)
    yield tuple(strided(a, -2) for a in arrays)
    if len(arrays) > 1:
        for k, scalar in enumerate(arrays):
            yield tuple(np.broadcast_to(scalar[5:6], a.shape) if i == k else a for i, a in enumerate(arrays))
        yield (arrays[0], *(np.broadcast_to(a[5:6], a.shape) for a in arrays[1:]))


def sample(dtype, n=203, seed=0):
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.integers(0, 2, n).astype(bool)
    if kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, n, dtype=dtype, endpoint=True)
    if kind == "c":
        return (rng.standard_normal(n) + 1j * rng.standard_normal(n)).astype(dtype)
    values = (rng.standard_normal(n) * 3).astype(dtype)
    values[:7] = [0, -0.0, np.inf, -np.inf, np.nan, 1, -1]
    return values


INTEGERS = [f"{sign}int{width}" for sign in ("", "u") for width in (8, 16, 32, 64)]
NUMBERS = [*INTEGERS, "float32", "float64", "complex64", "complex128"]


@pytest.mark.parametrize("dtype", ["bool", *NUMBERS])
def test_add(loops, dtype):
    for a, b in layouts(sample(dtype), sample(dtype, seed=1)):
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(loops.run("add_Tensor", dtype, np.empty(203, dtype), a, b, params=[1]), a + b)
            want = (a | b) if dtype == "bool" else a + np.array(3).astype(dtype) * b
        got = loops.run("add_Tensor", dtype, strided(np.empty(203, dtype)), a, b, params=[3])
        np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["int32", "float32", "complex128"])
def test_in_place(loops, dtype):
    a, b = sample(dtype), sample(dtype, seed=1)
    for first, second in ((a.copy(), b), (strided(a), b)):
        np.testing.assert_array_equal(loops.run("add_Tensor", dtype, first, first, second, params=[1]), a + b)
    both = a.copy()
    np.testing.assert_array_equal(loops.run("add_Tensor", dtype, both, both, both, params=[1]), a + a)


@pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 1000])
def test_in_place_in_blocks(loops, n):
    x = np.linspace(-3, 3, n, dtype=np.float32)
    y = x.copy()
    loops.run("exp", "float32", y, y)
    np.testing.assert_allclose(y, np.exp(x), rtol=3e-7)


@pytest.mark.parametrize("name", ["exp", "sin"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_result_does_not_depend_on_position_or_layout(loops, name, dtype):
    x = sample(dtype, 500) * 5
    whole = loops.run(name, dtype, np.empty_like(x), x)
    for start, stop in ((0, 1), (3, 40), (17, 500), (450, 499)):
        part = loops.run(name, dtype, np.empty(stop - start, dtype), x[start:stop])
        np.testing.assert_array_equal(part, whole[start:stop])
    np.testing.assert_array_equal(loops.run(name, dtype, np.empty_like(x), strided(x)), whole)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(whole, getattr(np, name)(x), rtol=5e-7 if dtype == "float32" else 2e-15, atol=1e-7)


@pytest.mark.parametrize("dtype", [*INTEGERS, "float32", "float64"])
def test_python_division(loops, dtype):
    a, b = sample(dtype), sample(dtype, seed=1)
    if np.dtype(dtype).kind in "iu":
        b[b == 0] = 7
    for x, y in layouts(a, b):
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(
                loops.run("floor_divide", dtype, np.empty(203, dtype), x, y), np.floor_divide(x, y)
            )
            np.testing.assert_array_equal(
                loops.run("remainder_Tensor", dtype, np.empty(203, dtype), x, y), np.remainder(x, y)
            )


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_division_never_traps(loops, dtype):
    info = np.iinfo(dtype)
    a, b = np.array([info.min, info.min, 5], dtype), np.array([0, np.array(-1).astype(dtype), 0], dtype)
    for name in ("floor_divide", "remainder_Tensor"):
        loops.run(name, dtype, np.empty(3, dtype), a, b)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_division(loops, dtype):
    a, b = sample(dtype), sample(dtype, seed=1)
    b[:4] = [1e30 + 1e30j, 1e-30j, 2, 3j]
    np.testing.assert_allclose(loops.run("div_Tensor", dtype, np.empty_like(a), a, b), a / b, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, "float32", "float64"])
def test_comparison_gives_bool(loops, dtype):
    for a, b in layouts(sample(dtype), sample(dtype, seed=1)):
        np.testing.assert_array_equal(loops.run("lt_Tensor", dtype, np.empty(203, bool), a, b), a < b)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_abs_gives_the_real_type(loops, dtype):
    a = sample(dtype)
    with np.errstate(all="ignore"):
        want = np.abs(a)
    np.testing.assert_allclose(loops.run("abs", dtype, np.empty(203, want.dtype), strided(a)), want, rtol=1e-6)


def test_dtypes_share_a_loop_only_with_the_same_expression(loops):
    for dtype in ("bool", "uint8"):
        a = sample(dtype)
        np.testing.assert_array_equal(loops.run("sign", dtype, np.empty_like(a), a), np.sign(a.astype("int32")))


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, "float32", "float64"])
def test_maximum_keeps_nan(loops, dtype):
    for a, b in layouts(sample(dtype), sample(dtype, seed=1)[::-1].copy()):
        np.testing.assert_array_equal(loops.run("maximum", dtype, np.empty(203, dtype), a, b), np.maximum(a, b))


@pytest.mark.parametrize("dtype", ["bool", *NUMBERS, "float16", "bfloat16"])
def test_where_moves_every_dtype(loops, dtype):
    stored = "uint16" if dtype == "bfloat16" else dtype
    for condition, a, b in layouts(sample("bool"), sample(stored), sample(stored, seed=1)):
        got = loops.run("where_self", dtype, np.empty(203, stored), condition, a, b)
        np.testing.assert_array_equal(got, np.where(condition, a, b))


@pytest.mark.parametrize(
    ("dtype", "stored", "nine"), [("float16", "float16", 9), ("bfloat16", "uint16", 0x4110), ("int8", "int8", 9)]
)
def test_masked_fill_converts_its_value(loops, dtype, stored, nine):
    a, mask = sample(stored), sample("bool")
    got = loops.run("masked_fill_Scalar", dtype, np.empty_like(a), a, mask, params=[9])
    np.testing.assert_array_equal(got, np.where(mask, np.array(nine, stored), a))


def test_clamp_with_two_scalars_and_with_an_absent_bound(loops):
    a = sample("float32")
    low, high = (np.broadcast_to(np.float32([v]), a.shape) for v in (-1, 2))
    np.testing.assert_array_equal(loops.run("clamp", "float32", np.empty_like(a), a, low, high), np.clip(a, -1, 2))
    np.testing.assert_array_equal(loops.run("clamp", "float32", np.empty_like(a), a, a, high), np.minimum(a, 2))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_parameters_choose_the_loop(loops, dtype):
    x = np.linspace(-3, 3, 77).astype(dtype)
    tanh = 0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))
    np.testing.assert_allclose(
        loops.run("gelu", dtype, np.empty_like(x), x, params=["tanh"]), tanh, rtol=1e-5, atol=1e-6
    )
    exact = loops.run("gelu", dtype, np.empty_like(x), x, params=["none"])
    assert not np.array_equal(exact, loops.run("gelu", dtype, np.empty_like(x), x, params=["tanh"]))
    p = np.linspace(0.01, 0.99, 50).astype(dtype)
    np.testing.assert_allclose(
        loops.run("logit", dtype, np.empty_like(p), p, params=[None]), np.log(p / (1 - p)), rtol=1e-4, atol=1e-6
    )
    q = np.clip(p, 0.2, 0.8)
    np.testing.assert_allclose(
        loops.run("logit", dtype, np.empty_like(p), p, params=[(0.2,)]), np.log(q / (1 - q)), rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint32"])
def test_integer_power_wraps(loops, dtype):
    a, b = sample(dtype), (np.arange(203) % 9).astype(dtype)
    np.testing.assert_array_equal(loops.run("pow_Tensor_Tensor", dtype, np.empty_like(a), a, b), np.power(a, b))


def test_classes_without_an_expression_have_no_loop(loops):
    assert not loops.has("floor_divide", "bool")
    assert not loops.has("floor_divide", "complex64")
    assert not loops.has("exp", "int32")
    assert loops.has("exp", "complex64")


def test_text(built):
    loops_text = built.texts["Pointwise_0.c"] + built.texts["Pointwise_1.c"]
    for name, text in built.texts.items():
        assert text.splitlines()[0].startswith("/* Generated by codegen/emit_pointwise_cpu.py from "), name
    assert "add_Scalar_loops" not in loops_text, "the same expression is compiled once"
    table = built.texts["PointwiseTable.c"].split("tp_pointwise_add_Scalar")[1]
    assert ".loops = TP_BASELINE(add_Tensor_loops)" in table
    assert "return self + other; }" in loops_text
    assert "restrict" not in loops_text


@pytest.mark.parametrize(
    ("entry", "what"),
    [
        ("pointwise: {float: exp(slef)}", "unknown name 'slef'"),
        ("pointwise: {promotion: int_to_float, int: self}", "no expression"),
        ("pointwise: {float: self / 0.5, int: self / 2}", "`/` on integers"),
        ("pointwise: {operands: {self: float32}, float: self}", "'self: float32' in 'operands'"),
        ("pointwise: {float: self, cases: {slef == 2: {float: self}}}", "case 'slef == 2'"),
        ("pointwise: {float: self, cases: {self > 2: {float: self}}}", "case 'self > 2'"),
        ("pointwise: {float: self, cases: {self == 2: {}}}", "case 'self == 2'"),
        ("pointwise: {float: self, cases: {self == 2: {flaot: self}}}", "unknown class 'flaot'"),
        ("pointwise: {float: self, cases: {self == 2: {int: self}}}", "has 'sint', which op does not have"),
    ],
)
def test_mistakes_name_the_line(entry, what):
    text = f"- func: op(Tensor self) -> Tensor\n  variants: function\n  {entry}\n"
    with pytest.raises((YamlError, YamlErrors)) as caught:
        for f in load_native_functions(text, None):
            parse_pointwise(f.pointwise, f.func, f.at("pointwise"))
    assert what in str(caught.value)
    assert ":3:" in str(caught.value)
