/* test_dtype.c: properties of dtypes, promotion against a table printed by torch 2.13, and the 16-bit conversions. */
#include "check.h"

#include "core/dtype.h"

#include <math.h>

/* One letter per dtype in the order of TP_FORALL_DTYPES; '.' is no common type. Rows and columns in that order: what
 * torch.promote_types and torch.can_cast say. */
static const char letters[] = "bBHIQchiqefdDzZ";
static const char *const promotion[TP_NUM_DTYPES] = {
    "bB...chiqefdDzZ", "BB...hhiqefdDzZ", "..H......efdD..", "...I.....efdD..", "....Q....efdD..",
    "ch...chiqefdDzZ", "hh...hhiqefdDzZ", "ii...iiiqefdDzZ", "qq...qqqqefdDzZ", "eeeeeeeeeeddDzZ",
    "fffffffffdfdDzZ", "ddddddddddddDzZ", "DDDDDDDDDDDDDZZ", "zz...zzzzzzzZzZ", "ZZ...ZZZZZZZZZZ",
};
static const char *const castable[TP_NUM_DTYPES] = {
    "111111111111111", "011111111111111", "011111111111111", "011111111111111", "011111111111111",
    "011111111111111", "011111111111111", "011111111111111", "011111111111111", "000000000111111",
    "000000000111111", "000000000111111", "000000000111111", "000000000000011", "000000000000011",
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
    CHECK_INT(tp_to_complex_dtype(TP_FLOAT16), TP_COMPLEX64);
    CHECK_INT(tp_to_complex_dtype(TP_FLOAT64), TP_COMPLEX128);
    CHECK_INT(tp_to_complex_dtype(TP_COMPLEX128), TP_COMPLEX128);
    CHECK_INT(tp_default_dtype(), TP_FLOAT32);
    tp_set_default_dtype(TP_FLOAT64);
    CHECK_INT(tp_to_complex_dtype(TP_INT32), TP_COMPLEX128);
    tp_set_default_dtype(TP_FLOAT32);
}

static void test_tables(void) {
    for (int a = 0; a < TP_NUM_DTYPES; a++) {
        for (int b = 0; b < TP_NUM_DTYPES; b++) {
            tp_dtype d = tp_promote_dtypes((tp_dtype)a, (tp_dtype)b);
            CHECK_INT(d == TP_NO_DTYPE ? '.' : letters[d], promotion[a][b]);
            if (d == TP_NO_DTYPE) CHECK_ERROR(RuntimeError, "Promotion for uint16, uint32, uint64 types");
            CHECK_INT(tp_can_cast((tp_dtype)a, (tp_dtype)b), castable[a][b] == '1');
        }
    }
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
    test_half();
    return check_report();
}
