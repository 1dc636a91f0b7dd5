/* sparse_loops.c: products of sparse matrices with dense ones of float32 and float64, compiled once per capability; the
 * loops are in sparse_of.h. */
#include "cpu/kernels.h"

#define UNROLL _Pragma("GCC unroll 8")
#define BLOCK 8 /* vectors */
#if defined(__AVX512F__)
#define BYTES 64
#elif defined(__AVX2__)
#define BYTES 32
#else
#define BYTES 16
#endif
#define LANES ((int)(BYTES / sizeof(T)))

typedef float float_vector __attribute__((vector_size(BYTES), aligned(4), may_alias));
typedef double double_vector __attribute__((vector_size(BYTES), aligned(8), may_alias));

#define T float
#define VECTOR float_vector
#define OF(name) name##_f32
#include "cpu/sparse_of.h"
#undef T
#undef VECTOR
#undef OF

#define T double
#define VECTOR double_vector
#define OF(name) name##_f64
#include "cpu/sparse_of.h"
#undef T
#undef VECTOR
#undef OF

const tp_sparse_kernels TP_CAP(tp_sparse) = {
    .f32 = {rows_f32, places_f32, dots_f32},
    .f64 = {rows_f64, places_f64, dots_f64},
};
