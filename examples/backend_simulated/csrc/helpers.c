/* helpers.c: the functions of tensorpy/math.h by their numbers in a program and dtype. */
#include "interpret.h"
#include "tensorpy/math.h"

typedef number (*helper)(number a, number b);

static inline number of_int(int64_t x) { return (number){.i = x}; }
static inline number of_word(uint64_t x) { return (number){.u = x}; }
static inline number of_real(double x) { return (number){.f = x}; }
static inline number of_complex(double _Complex x) { return (number){.c = x}; }
#define NUMBER(x)                    \
    _Generic((x),                    \
        uint64_t: of_word,           \
        float: of_real,              \
        double: of_real,             \
        float _Complex: of_complex,  \
        double _Complex: of_complex, \
        default: of_int)(x)

/* One function for each helper and dtype, and a table of them. */
#define ARGUMENTS_1(T, member) (T) a.member
#define ARGUMENTS_2(T, member) (T) a.member, (T)b.member
#define ONE(name, n, suffix, T, member)                                \
    static number name##_##suffix(number a, number b) {                \
        (void)a, (void)b;                                              \
        return NUMBER(tp_##name##_##suffix(ARGUMENTS_##n(T, member))); \
    }
#define BOOLS_0(name, n)
#define BOOLS_1(name, n) ONE(name, n, bool, bool, i)
#define INTS_0(name, n)
#define INTS_1(name, n)            \
    ONE(name, n, u8, uint8_t, i)   \
    ONE(name, n, u16, uint16_t, i) \
    ONE(name, n, u32, uint32_t, i) \
    ONE(name, n, u64, uint64_t, u) \
    ONE(name, n, i8, int8_t, i)    \
    ONE(name, n, i16, int16_t, i)  \
    ONE(name, n, i32, int32_t, i)  \
    ONE(name, n, i64, int64_t, i)
#define REALS_0(name, n)
#define REALS_1(name, n) ONE(name, n, f32, float, f) ONE(name, n, f64, double, f)
#define COMPLEX_0(name, n)
#define COMPLEX_1(name, n) ONE(name, n, c64, tp_complex64, c) ONE(name, n, c128, tp_complex128, c)
#define FUNCTIONS(name, n, b, i, f, c) BOOLS_##b(name, n) INTS_##i(name, n) REALS_##f(name, n) COMPLEX_##c(name, n)
TP_FORALL_STEP_HELPERS(FUNCTIONS)

#define BOOLS_IN_0(name)
#define BOOLS_IN_1(name) [TP_BOOL] = name##_bool,
#define INTS_IN_0(name)
#define INTS_IN_1(name)                                                                                   \
    [TP_UINT8] = name##_u8, [TP_UINT16] = name##_u16, [TP_UINT32] = name##_u32, [TP_UINT64] = name##_u64, \
    [TP_INT8] = name##_i8, [TP_INT16] = name##_i16, [TP_INT32] = name##_i32, [TP_INT64] = name##_i64,
#define REALS_IN_0(name)
#define REALS_IN_1(name) [TP_FLOAT32] = name##_f32, [TP_FLOAT64] = name##_f64,
#define COMPLEX_IN_0(name)
#define COMPLEX_IN_1(name) [TP_COMPLEX64] = name##_c64, [TP_COMPLEX128] = name##_c128,
#define ROW(name, n, b, i, f, c) {BOOLS_IN_##b(name) INTS_IN_##i(name) REALS_IN_##f(name) COMPLEX_IN_##c(name)},
static const helper helpers[][TP_NUM_DTYPES] = {TP_FORALL_STEP_HELPERS(ROW)};

number helper_of(int op, tp_dtype d, number a, number b) {
    helper function = op == TP_STEP_OF_complex ? NULL : helpers[op - TP_STEP_FIRST_HELPER][d];
    if (op == TP_STEP_OF_complex) return of_complex(tp_complex_c128(a.f, b.f));
    return function ? function(a, b) : (number){0};
}
