/* libmvec_calls.c: the names of libmvec.h, and their stand-ins for a glibc before 2.35: float's own functions of
 * tensorpy/math_f32.h, as vectors, and otherwise the scalar functions, lane by lane.
 *
 * The vector ABI of x86-64 names a function of 16 floats in AVX-512 _ZGVeN16v_tanf, with two arguments _ZGVeN16vv_; d
 * is AVX2 and b SSE. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#include <features.h>
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 35) && !defined(TP_NO_LIBMVEC)
#define TP_HAVE_NAMES 1
#endif
#endif

#define TP_NO_LIBMVEC 1 /* they are made here, not called */
#include "cpu/libmvec.h"

#include "tensorpy/math.h"

#ifdef TP_HAVE_NAMES
#if defined(__AVX512F__)
#define LETTER e
#define FLOATS 16
#define DOUBLES 8
#elif defined(__AVX2__)
#define LETTER d
#define FLOATS 8
#define DOUBLES 4
#else
#define LETTER b
#define FLOATS 4
#define DOUBLES 2
#endif

typedef tp_f32 floats __attribute__((vector_size(4 * FLOATS)));
typedef tp_f64 doubles __attribute__((vector_size(8 * DOUBLES)));

#define PASTE_(letter, lanes, arguments, name) _ZGV##letter##N##lanes##arguments##_##name
#define PASTE(letter, lanes, arguments, name) PASTE_(letter, lanes, arguments, name)
#define TEXT_(name) #name
#define TEXT(name) TEXT_(name)

/* A union, since a copy that is moved in halves and read whole waits for the store buffer. */
#define LANES(type, lanes)                    \
    union {                                   \
        type vector;                          \
        __typeof__((type){0}[0]) lane[lanes]; \
    }
#define OF_ONE(type, lanes, function, name)                              \
    static type stand_in_##name(type x) {                                \
        LANES(type, lanes) a = {x};                                      \
        for (int i = 0; i < lanes; i++) a.lane[i] = function(a.lane[i]); \
        return a.vector;                                                 \
    }                                                                    \
    static type (*at_##name)(type) = stand_in_##name;                    \
    type PASTE(LETTER, lanes, v, name)(type x);                          \
    type PASTE(LETTER, lanes, v, name)(type x) { return at_##name(x); }
#define OF_TWO(type, lanes, function, name)                                         \
    static type stand_in_##name(type x, type y) {                                   \
        LANES(type, lanes) a = {x}, b = {y};                                        \
        for (int i = 0; i < lanes; i++) a.lane[i] = function(a.lane[i], b.lane[i]); \
        return a.vector;                                                            \
    }                                                                               \
    static type (*at_##name)(type, type) = stand_in_##name;                         \
    type PASTE(LETTER, lanes, vv, name)(type x, type y);                            \
    type PASTE(LETTER, lanes, vv, name)(type x, type y) { return at_##name(x, y); }

/* The second list of Note [Vector libm]. */
/* clang-format off */
#define EACH_OF_ONE(DO) \
    DO(exp2) DO(expm1) DO(log2) DO(log10) DO(log1p) DO(tan) DO(asin) DO(acos) DO(atan) DO(sinh) DO(cosh) DO(tanh) \
    DO(asinh) DO(acosh) DO(atanh) DO(erf) DO(erfc)
/* clang-format on */
#define EACH_OF_TWO(DO) DO(atan2) DO(hypot)

#define MAKE_ONE(name)                               \
    OF_ONE(floats, FLOATS, tp_##name##_f32, name##f) \
    OF_ONE(doubles, DOUBLES, name, name)
#define MAKE_TWO(name)                               \
    OF_TWO(floats, FLOATS, tp_##name##_f32, name##f) \
    OF_TWO(doubles, DOUBLES, name, name)
EACH_OF_ONE(MAKE_ONE)
EACH_OF_TWO(MAKE_TWO)

#define SLOT(lanes, arguments, name) {TEXT(PASTE(LETTER, lanes, arguments, name)), (void **)&at_##name},
#define SLOTS_ONE(name) SLOT(FLOATS, v, name##f) SLOT(DOUBLES, v, name)
#define SLOTS_TWO(name) SLOT(FLOATS, vv, name##f) SLOT(DOUBLES, vv, name)
extern const tp_libmvec_slot TP_CAP(tp_libmvec_slots)[];
const tp_libmvec_slot TP_CAP(tp_libmvec_slots)[] = {EACH_OF_ONE(SLOTS_ONE) EACH_OF_TWO(SLOTS_TWO){NULL, NULL}};
#endif
