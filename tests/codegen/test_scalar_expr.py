"""The scalar expression language: typing, lowering and what it says about mistakes."""

from __future__ import annotations

import pytest

from codegen.errors import Location, YamlError
from codegen.scalar_expr import parse
from codegen.scalar_ir import Kind, Name, assume, is_move, is_sign_agnostic, is_vectorisable, uniform_test
from codegen.scalar_lower import BY_SUFFIX, lower_c, lower_opencl

HERE = Location("ops.yaml", 7)
NAMES = {
    "self": Name(Kind.T),
    "other": Name(Kind.T),
    "condition": Name(Kind.B),
    "alpha": Name(Kind.T, uniform=True),
    "low": Name(Kind.T, uniform=True, optional=True),
    "count": Name(Kind.I, uniform=True),
    "mode": Name(Kind.S, uniform=True, optional=True),
}


def block(source, suffix="f32", result=Kind.T):
    return parse(source, NAMES, BY_SUFFIX[suffix].leaf, result, HERE)


def c(source, suffix="f32", result=Kind.T):
    return " ".join(lower_c(block(source, suffix, result), BY_SUFFIX[suffix]))


@pytest.mark.parametrize(
    ("source", "suffix", "text"),
    [
        ("self + alpha * other", "f32", "return self + (alpha * other);"),
        ("self + 1", "f32", "return self + 1.0f;"),
        ("self * 0.1", "f64", "return self * 0.1;"),
        ("self * 0.1", "f32", "return self * 0.1f;"),
        ("1 / 3 * self", "f64", "return 0.3333333333333333 * self;"),
        ("self + other", "i32", "return (tp_i32)((tp_u32)self + (tp_u32)other);"),
        ("self * other", "u16", "return (tp_u16)((tp_u32)self * (tp_u32)other);"),
        ("self + other", "i8", "return (tp_i8)(self + other);"),
        ("-self", "i64", "return (tp_i64)(0u - (tp_u64)self);"),
        ("self + alpha * other", "bool", "return self | (alpha & other);"),
        ("self * other", "c64", "return tp_mul_c64(self, other);"),
        ("self / 2", "c128", "return tp_div_c128(self, tp_complex_c128(2.0, 0.0));"),
        ("self // other", "i32", "return tp_floor_divide_i32(self, other);"),
        ("self % other", "f64", "return tp_remainder_f64(self, other);"),
        ("self ** other", "f32", "return tp_pow_f32(self, other);"),
        ("self ** 2", "f32", "return self * self;"),
        ("self << other", "u8", "return tp_lshift_u8(self, other);"),
        ("~self", "i16", "return (tp_i16)~self;"),
        ("0 if self <= 0 else self", "f32", "return (self <= 0.0f) ? 0.0f : self;"),
        ("self if condition else other", "f32", "return condition ? self : other;"),
        ("inf if self > largest else -inf", "f32", "return (self > TP_MAX_f32) ? TP_INF_f32 : (-TP_INF_f32);"),
        ("t = exp(self); t / (1 + t)", "f32", "const tp_f32 t = tp_exp_f32(self); return t / (1.0f + t);"),
        ("abs(self)", "i32", "return tp_abs_i32(self);"),
        ("self * count", "f32", "return self * (tp_f32)count;"),
        ("complex(abs(self), 0)", "c64", "return tp_complex_c64(tp_abs_c64(self), 0.0f);"),
    ],
)
def test_lowering(source, suffix, text):
    assert c(source, suffix) == text


@pytest.mark.parametrize(
    ("source", "suffix", "text"),
    [
        ("self == other", "f32", "return self == other;"),
        ("self != other", "c64", "return !tp_eq_c64(self, other);"),
        ("self and not other", "f32", "return (self != 0) & !(other != 0);"),
        ("-1 < self <= 1", "f32", "return ((-1.0f) < self) & (self <= 1.0f);"),
        ("isnan(self) or self == 0", "f64", "return tp_isnan_f64(self) | (self == 0.0);"),
        ("self", "c64", "return tp_nonzero_c64(self);"),
        ("False", "i8", "return false;"),
    ],
)
def test_bool_results(source, suffix, text):
    assert c(source, suffix, Kind.B) == text


def test_real_result_of_complex():
    assert c("abs(self)", "c64", Kind.R) == "return tp_abs_c64(self);"


def test_opencl_is_the_same_text():
    typed = block("tanh(self) * 0.5")
    assert lower_opencl(typed, BY_SUFFIX["f32"]) == lower_c(typed, BY_SUFFIX["f32"])


def test_keywords_of_c_are_renamed():
    typed = parse("half + double", {"half": Name(Kind.T), "double": Name(Kind.T)}, "float", Kind.T, HERE)
    assert lower_c(typed, BY_SUFFIX["f32"]) == ["return half_ + double_;"]


def test_conditionals_on_parameters_are_found_and_settled():
    typed = block('x = self if low is None else maximum(self, low); -x if mode == "neg" else x')
    first = uniform_test(typed)
    assert first is not None
    plain = assume(typed, first, True)
    second = uniform_test(plain)
    assert second is not None
    assert lower_c(assume(plain, second, False), BY_SUFFIX["f32"])[-1] == "return x;"
    assert uniform_test(assume(plain, second, True)) is None


def test_locals_that_are_not_used_after_a_choice_are_dropped():
    typed = block('x = exp(self); x if mode == "a" else self')
    test = uniform_test(typed)
    assert test is not None
    assert assume(typed, test, False).lets == ()


def test_properties():
    assert is_move(block("self if condition else other"))
    assert not is_move(block("self + other"))
    assert is_sign_agnostic(block("self * alpha - other", "i32"))
    assert not is_sign_agnostic(block("self if self > 0 else other", "i32"))
    assert is_vectorisable(block("exp(self)"), "float")
    assert not is_vectorisable(block("digamma(self)"), "float")
    assert not is_vectorisable(block("self // other", "i32"), "sint")


@pytest.mark.parametrize(
    ("source", "suffix", "what", "fix"),
    [
        ("self + othr", "f32", "unknown name 'othr'", "did you mean 'other'?"),
        ("tanhh(self)", "f32", "unknown helper 'tanhh'", "did you mean 'tanh'?"),
        ("exp(self, other)", "f32", "'exp' takes 1 argument, not 2", "exp(x)"),
        ("self / other", "i32", "`/` on integers", "int_to_float"),
        ("exp(self)", "i32", "'exp' is not there for signed integers", "own expression"),
        ("self < other", "c64", "`<` on complex numbers", "leave complex out"),
        ("self & other", "f32", "`&` works on bool and integers only", "leave this class out"),
        ("self - other", "bool", "bools cannot be subtracted", "^"),
        ("self + 0.5", "i64", "a fractional literal meets an integer", "whole number"),
        ("self @ other", "f32", "`@` is not part", "+ - *"),
        ("self.real", "f32", "not part of the scalar language", "helper calls"),
        ("self +", "f32", "not a Python expression", "last expression"),
        ("x = self", "f32", "no result", "end the block"),
        ("exp = self; exp", "f32", "'exp' has a meaning already", "another name"),
        ("self is None", "f32", "'self' is never None", "optional"),
        ('self == "tanh"', "f32", "not a str", "str argument"),
        ("mode + self", "f32", "a str in arithmetic", "compare it"),
        ("complex(self, self)", "f32", "outside the complex class", "own expression"),
        ("1 // 0 + self", "f32", "cannot be computed", "inf or nan"),
    ],
)
def test_mistakes(source, suffix, what, fix):
    with pytest.raises(YamlError) as caught:
        block(source, suffix)
    assert caught.value.location == HERE
    assert what in caught.value.what
    assert fix in caught.value.fix
