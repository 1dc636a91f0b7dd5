/* test_scalar.c: conversions, range checks and elements. */
#include "check.h"

#include "core/scalar.h"

#include <math.h>

static tp_scalar uint_scalar(uint64_t u) { return (tp_scalar){.kind = TP_SCALAR_UINT, .u = u}; }

static void test_conversions(void) {
    CHECK_INT(tp_scalar_int(TP_SCALAR_I(-7)), -7);
    CHECK_INT(tp_scalar_int(TP_SCALAR_B(true)), 1);
    CHECK_INT(tp_scalar_int(TP_SCALAR_F(-2.9)), -2);
    CHECK_INT(tp_scalar_int(TP_SCALAR_F(1e30)), INT64_MAX);
    CHECK_INT(tp_scalar_int(TP_SCALAR_F(-1e30)), INT64_MIN);
    CHECK_INT(tp_scalar_int(TP_SCALAR_F(0x1p63)), INT64_MAX);
    CHECK_INT(tp_scalar_int(TP_SCALAR_F(-0x1p63)), INT64_MIN);
    CHECK_INT(tp_scalar_int(TP_SCALAR_F((double)NAN)), 0);
    CHECK_INT(tp_scalar_int(TP_SCALAR_C(3.5 + 4 * I)), 3);
    tp_scalar top = uint_scalar(UINT64_MAX);
    CHECK_INT(tp_scalar_int(&top), -1);
    CHECK(tp_scalar_uint(&top) == UINT64_MAX);
    CHECK(tp_scalar_uint(TP_SCALAR_I(-1)) == UINT64_MAX);
    CHECK(tp_scalar_uint(TP_SCALAR_F(-1.0)) == UINT64_MAX);
    CHECK(tp_scalar_uint(TP_SCALAR_F(1e30)) == UINT64_MAX);
    CHECK(tp_scalar_uint(TP_SCALAR_F(0x1p63)) == UINT64_C(1) << 63);
    CHECK(tp_scalar_double(&top) == 0x1p64);
    CHECK(tp_scalar_double(TP_SCALAR_C(1 + 2 * I)) == 1);
    CHECK(cimag(tp_scalar_complex(TP_SCALAR_C(1 + 2 * I))) == 2);
    CHECK(tp_scalar_complex(TP_SCALAR_I(3)) == 3);
    CHECK(tp_scalar_bool(TP_SCALAR_F((double)NAN)) && tp_scalar_bool(TP_SCALAR_C(2 * I)));
    CHECK(!tp_scalar_bool(TP_SCALAR_F(-0.0)) && !tp_scalar_bool(TP_SCALAR_I(0)));
}

static void test_equals(void) {
    CHECK(tp_scalar_equals_int(TP_SCALAR_I(2), 2) && !tp_scalar_equals_int(TP_SCALAR_I(2), 3));
    CHECK(tp_scalar_equals_int(TP_SCALAR_B(true), 1));
    CHECK(tp_scalar_equals_int(TP_SCALAR_F(2.0), 2) && !tp_scalar_equals_int(TP_SCALAR_F(2.5), 2));
    CHECK(!tp_scalar_equals_int(TP_SCALAR_F((double)NAN), 0) && !tp_scalar_equals_int(TP_SCALAR_F(0x1p63), INT64_MAX));
    CHECK(!tp_scalar_equals_int(TP_SCALAR_F(0x1p53), (INT64_C(1) << 53) + 1));
    CHECK(tp_scalar_equals_int(TP_SCALAR_C(1), 1) && !tp_scalar_equals_int(TP_SCALAR_C(1 + I), 1));
    tp_scalar top = uint_scalar(UINT64_MAX);
    CHECK(!tp_scalar_equals_int(&top, -1));
}

static void test_dtype(void) {
    CHECK_INT(tp_scalar_dtype(TP_SCALAR_B(true)), TP_BOOL);
    CHECK_INT(tp_scalar_dtype(TP_SCALAR_I(1)), TP_INT64);
    CHECK_INT(tp_scalar_dtype(TP_SCALAR_F(1)), TP_FLOAT32);
    CHECK_INT(tp_scalar_dtype(TP_SCALAR_C(1)), TP_COMPLEX64);
    tp_set_default_dtype(TP_FLOAT64);
    CHECK_INT(tp_scalar_dtype(TP_SCALAR_F(1)), TP_FLOAT64);
    CHECK_INT(tp_scalar_dtype(TP_SCALAR_C(1)), TP_COMPLEX128);
    tp_set_default_dtype(TP_FLOAT32);
}

static bool fits(const tp_scalar *s, tp_dtype d) {
    bool ok = tp_scalar_check_fits(s, d) == 0;
    if (!ok) CHECK_ERROR(RuntimeError, "without overflow");
    return ok;
}

/* Each line as torch.full((2,), value, dtype=...) has it in 2.13, but for 2.0**63 as int64, which torch lets pass. */
static void test_fits(void) {
    CHECK(fits(TP_SCALAR_I(255), TP_UINT8) && !fits(TP_SCALAR_I(256), TP_UINT8));
    CHECK(fits(TP_SCALAR_I(-255), TP_UINT8) && !fits(TP_SCALAR_I(-256), TP_UINT8));
    CHECK(fits(TP_SCALAR_I(-1), TP_UINT64) && fits(TP_SCALAR_I(INT64_MIN), TP_UINT64));
    CHECK(!fits(TP_SCALAR_I(-70000), TP_UINT16));
    CHECK(fits(TP_SCALAR_I(-128), TP_INT8) && !fits(TP_SCALAR_I(-129), TP_INT8));
    CHECK(fits(TP_SCALAR_I(127), TP_INT8) && !fits(TP_SCALAR_I(128), TP_INT8));
    CHECK(fits(TP_SCALAR_I(INT64_MIN), TP_INT64) && fits(TP_SCALAR_I(INT64_MAX), TP_INT64));
    tp_scalar top = uint_scalar(UINT64_MAX), half = uint_scalar(UINT64_C(1) << 63);
    CHECK(fits(&top, TP_UINT64) && !fits(&top, TP_INT64) && fits(&top, TP_FLOAT32));
    CHECK(fits(&half, TP_FLOAT32) && !fits(&half, TP_INT32));
    CHECK(!fits(TP_SCALAR_F(1e30), TP_INT64) && !fits(TP_SCALAR_F((double)NAN), TP_INT64));
    CHECK(!fits(TP_SCALAR_F((double)INFINITY), TP_INT64) && !fits(TP_SCALAR_F(0x1p63), TP_INT64));
    CHECK(fits(TP_SCALAR_F(-0x1p63), TP_INT64) && fits(TP_SCALAR_F(0x1p63), TP_UINT64));
    CHECK(!fits(TP_SCALAR_F(255.5), TP_UINT8) && !fits(TP_SCALAR_F(-0.5), TP_UINT8));
    CHECK(fits(TP_SCALAR_F(1.5), TP_INT32) && !fits(TP_SCALAR_F(-1.5), TP_UINT64));
    CHECK(!fits(TP_SCALAR_F(1e39), TP_FLOAT32) && fits(TP_SCALAR_F((double)INFINITY), TP_FLOAT32));
    CHECK(!fits(TP_SCALAR_F(3.4028235677973366e+38), TP_FLOAT32));
    CHECK(fits(TP_SCALAR_F((double)NAN), TP_FLOAT16) && !fits(TP_SCALAR_F(65519), TP_FLOAT16));
    CHECK(fits(TP_SCALAR_F(65504), TP_FLOAT16) && !fits(TP_SCALAR_I(100000), TP_FLOAT16));
    CHECK(!fits(TP_SCALAR_F(1e39), TP_BFLOAT16) && fits(TP_SCALAR_F(3.38e38), TP_BFLOAT16));
    CHECK(!fits(TP_SCALAR_C(1 + 2 * I), TP_FLOAT32) && fits(TP_SCALAR_C(1), TP_INT32));
    CHECK(!fits(TP_SCALAR_C(1e39 + I), TP_COMPLEX64) && !fits(TP_SCALAR_C(1 + 1e39 * I), TP_COMPLEX64));
    CHECK(!fits(TP_SCALAR_F(1e39), TP_COMPLEX64) && fits(TP_SCALAR_F(1e39), TP_COMPLEX128));
    CHECK(fits(TP_SCALAR_I(2), TP_BOOL) && fits(TP_SCALAR_C(I), TP_BOOL) && fits(TP_SCALAR_F((double)NAN), TP_BOOL));
    tp_scalar_check_fits(TP_SCALAR_I(300), TP_UINT8);
    CHECK_ERROR(RuntimeError, "value cannot be converted to type uint8_t without overflow: 300");
    tp_scalar_check_fits(TP_SCALAR_F(1e30), TP_INT32);
    CHECK_ERROR(RuntimeError, "type int without overflow");
}

static void test_elements(void) {
    for (int d = 0; d < TP_QUINT8; d++) { /* no memory has those of quantized tensors */
        char element[16] = {0};
        tp_scalar_store(TP_SCALAR_I(1), (tp_dtype)d, element);
        tp_scalar back = tp_scalar_load(element, (tp_dtype)d);
        CHECK(tp_scalar_equals_int(&back, 1));
        for (int64_t i = tp_itemsize((tp_dtype)d); i < 16; i++) CHECK(element[i] == 0);
    }
    uint8_t byte;
    tp_scalar_store(TP_SCALAR_F(-1.0), TP_UINT8, &byte);
    CHECK_INT(byte, 255);
    tp_scalar_store(TP_SCALAR_I(300), TP_UINT8, &byte);
    CHECK_INT(byte, 44);
    uint64_t wide = UINT64_MAX;
    CHECK_INT(tp_scalar_load(&wide, TP_UINT64).kind, TP_SCALAR_UINT);
    tp_half half;
    tp_scalar_store(TP_SCALAR_F(1.0 / 3), TP_FLOAT16, &half);
    CHECK_INT(half.bits, 0x3555);
    tp_complex64 c;
    tp_scalar_store(TP_SCALAR_C(1 - 2 * I), TP_COMPLEX64, &c);
    CHECK(crealf(c) == 1 && cimagf(c) == -2);
}

int main(void) {
    test_conversions();
    test_equals();
    test_dtype();
    test_fits();
    test_elements();
    return check_report();
}
