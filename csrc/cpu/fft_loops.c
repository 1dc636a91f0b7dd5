/* fft_loops.c: Fourier transforms of some lines, compiled once per capability; the loops are in fft_of.h. */
#include "cpu/kernels.h"

#include <math.h>

#if defined(__clang__)
#define PRAGMA_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define PRAGMA_IVDEP _Pragma("GCC ivdep")
#endif

#define T float
#define N(x) x##_f32
#include "cpu/fft_of.h"
#undef T
#undef N
#define T double
#define N(x) x##_f64
#include "cpu/fft_of.h"

const tp_fft_kernels TP_CAP(tp_fft) = {
    .make = {make_numbers_f32, make_numbers_f64},
    .run = {{complex_lines_f32, complex_lines_f64},
            {real_lines_f32, real_lines_f64},
            {hermitian_lines_f32, hermitian_lines_f64}},
};
