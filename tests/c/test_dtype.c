/* test_dtype.c: properties of dtypes, promotion against a table printed by torch 2.13, and the 16-bit conversions. */
#include "check.h"

#include "core/dtype.h"
#include "core/scalar.h"

#include <math.h>

/* One letter per dtype in the order of TP_FORALL_DTYPES; '.' is no common type. Rows and columns in that order: what
 * torch.promote_types and torch.can_cast say. */
static const char letters[] = "bBHIQchiqefdDzZy12345";
static const char *const promotion[TP_QUINT8] = {
    "bB...chiqefdDzZy.....", "BB...hhiqefdDzZy.....", "..H......efdD........", "...I.....efdD........",
    "....Q....efdD........", "ch...chiqefdDzZy.....", "hh...hhiqefdDzZy.....", "ii...iiiqefdDzZy.....",
    "qq...qqqqefdDzZy.....", "eeeeeeeeeeddDzZy.....", "fffffffffdfdDzZz.....", "ddddddddddddDzZz.....",
    "DDDDDDDDDDDDDZZZ.....", "zz...zzzzzzzZzZz.....", "ZZ...ZZZZZZZZZZZ.....", "yy...yyyyyzzZzZy.....",
    "................1....", ".................2...", "..................3..", "...................4.",
    "....................5",
};
static const char *const castable[TP_QUINT8] = {
    "111111111111111111111", "011111111111111111111", "011111111111111111111", "011111111111111111111",
    "011111111111111111111", "011111111111111111111", "011111111111111111111", "011111111111111111111",
    "011111111111111111111", "000000000111111111111", "000000000111111111111", "000000000111111111111",
    "000000000111111111111", "000000000000011100000", "000000000000011100000", "000000000000011100000",
    "000000000111111111111", "000000000111111111111", "000000000111111111111", "000000000111111111111",
    "000000000111111111111",
};

static void test_properties(void) {
    CHECK_STR(tp_dtype_names[TP_BFLOAT16], "bfloat16");
    CHECK_INT(tp_itemsize(TP_BOOL), 1);
    CHECK_INT(tp_itemsize(TP_FLOAT16), 2);
    CHECK_INT(tp_itemsize(TP_COMPLEX128), 16);
    CHECK(tp_is_integral_dtype(TP_UINT64) && !tp_is_integral_dtype(TP_BOOL));
    CHECK_INT(tp_compute_dtype(TP_BFLOAT16), TP_FLOAT32);
    CHECK_INT(tp_to_real_dtype(TP_COMPLEX64), TP_FLOAT32);
    CHECK_INT(tp_to_real_dtype(TP_COMPLEX128), TP_FLOAT64);
    CHECK_INT(tp_to_real_dtype(TP_INT32), TP_INT32);
    CHECK_INT(tp_to_complex_dtype(TP_FLOAT16), TP_COMPLEX32);
    CHECK_INT(tp_to_complex_dtype(TP_BFLOAT16), TP_COMPLEX64);
    CHECK_INT(tp_to_real_dtype(TP_COMPLEX32), TP_FLOAT16);
    CHECK_INT(tp_compute_dtype(TP_COMPLEX32), TP_COMPLEX64);
    CHECK_INT(tp_compute_dtype(TP_FLOAT8_E8M0FNU), TP_FLOAT32);
    CHECK_INT(tp_to_complex_dtype(TP_FLOAT64), TP_COMPLEX128);
    CHECK_INT(tp_to_complex_dtype(TP_COMPLEX128), TP_COMPLEX128);
    CHECK_INT(tp_default_dtype(), TP_FLOAT32);
    tp_set_default_dtype(TP_FLOAT64);
    CHECK_INT(tp_to_complex_dtype(TP_INT32), TP_COMPLEX128);
    tp_set_default_dtype(TP_FLOAT32);
}

static void test_tables(void) {
    for (int a = 0; a < TP_QUINT8; a++) {
        for (int b = 0; b < TP_QUINT8; b++) {
            tp_dtype d = tp_promote_dtypes((tp_dtype)a, (tp_dtype)b);
            CHECK_INT(d == TP_NO_DTYPE ? '.' : letters[d], promotion[a][b]);
            if (d == TP_NO_DTYPE)
                CHECK_ERROR(RuntimeError, tp_is_float8_dtype((tp_dtype)(a > b ? a : b))
                                              ? "Promotion for Float8 Types"
                                              : "Promotion for uint16, uint32");
            CHECK_INT(tp_can_cast((tp_dtype)a, (tp_dtype)b), castable[a][b] == '1');
        }
    }
}

/* Nothing is promoted with the dtypes of quantized tensors. */
static void test_quantized(void) {
    for (int q = TP_QUINT8; q < TP_NUM_DTYPES; q++)
        for (int d = 0; d < TP_NUM_DTYPES; d++) {
            if (d == q) continue;
            CHECK_INT(tp_promote_dtypes((tp_dtype)q, (tp_dtype)d), TP_NO_DTYPE);
            CHECK_ERROR(RuntimeError, "Promotion for quantized dtypes");
            CHECK_INT(tp_promote_dtypes((tp_dtype)d, (tp_dtype)q), TP_NO_DTYPE);
            CHECK_ERROR(RuntimeError, "Promotion for quantized dtypes");
        }
}

/* Every code goes to float and back unchanged, but for the payloads of NaN. */
static void test_float8(void) {
    for (uint32_t code = 0; code < 0x100; code++) {
        const uint8_t bits = (uint8_t)code;
        for (int d = TP_FLOAT8_E4M3FN; d <= TP_FLOAT8_E8M0FNU; d++) {
            tp_scalar s = tp_scalar_load(&bits, (tp_dtype)d);
            uint8_t back = (uint8_t)~bits;
            tp_scalar_store(&s, (tp_dtype)d, &back);
            if (s.f == s.f) CHECK_INT(back, bits);
            tp_scalar again = tp_scalar_load(&back, (tp_dtype)d);
            CHECK(s.f == again.f || (s.f != s.f && again.f != again.f));
        }
    }
    CHECK_INT(tp_float_to_e4m3fn(464.f).bits, 0x7e);
    CHECK_INT(tp_float_to_e4m3fn(1e9f).bits, 0x7e); /* the largest */
    CHECK_INT(tp_float_to_e5m2(61440.f).bits, 0x7c);
    CHECK_INT(tp_float_to_e4m3fnuz(-0.f).bits, 0);
    CHECK_INT(tp_float_to_e5m2fnuz(1e9f).bits, 0x80);
    CHECK_INT(tp_float_to_e8m0fnu(3.f).bits, 129); /* the middle of 2 and 4 */
}

/* Every half goes to float and back unchanged, and every tie between neighbours goes to the even one. */
static void test_half(void) {
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        float f = tp_half_to_float((tp_half){(uint16_t)bits});
        if (f != f) CHECK((tp_float_to_half(f).bits & 0x7fff) > 0x7c00);
        else CHECK_INT(tp_float_to_half(f).bits, bits);
        float b = tp_bfloat_to_float((tp_bfloat){(uint16_t)bits});
        if (b == b) CHECK_INT(tp_float_to_bfloat(b).bits, bits);
    }
    for (uint32_t bits = 0; bits < 0x7bff; bits++) {
        float low = tp_half_to_float((tp_half){(uint16_t)bits});
        float high = tp_half_to_float((tp_half){(uint16_t)(bits + 1)});
        CHECK_INT(tp_float_to_half((low + high) / 2).bits, bits + (bits & 1));
    }
    CHECK_INT(tp_float_to_half(65519.0f).bits, 0x7bff);
    CHECK_INT(tp_float_to_half(65520.0f).bits, 0x7c00);
    CHECK_INT(tp_float_to_half(-INFINITY).bits, 0xfc00);
    CHECK_INT(tp_float_to_bfloat(INFINITY).bits, 0x7f80);
    CHECK((tp_float_to_bfloat(NAN).bits & 0x7fff) > 0x7f80);
    CHECK_INT(tp_float_to_bfloat(3.4e38f).bits, 0x7f80);
}

int main(void) {
    test_properties();
    test_tables();
    test_quantized();
    test_float8();
    test_half();
    return check_report();
}
