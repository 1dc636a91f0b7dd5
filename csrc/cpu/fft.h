/* fft.h: what fft.c and the loops of the transforms (fft_of.h) share. */
#pragma once

#include "core/base.h"

#define TP_FFT_LINES 16 /* transformed at a time, at most: a vector of floats */
#define TP_FFT_GAP 72   /* numbers between buffers */

/* How a complex line of n numbers is transformed: by passes with these factors, or, where `length` is another, as a
 * convolution of that length. Immutable once made. */
typedef struct {
    int64_t n, length;
    int count;
    int factors[64];
    int64_t roots; /* complex numbers that the passes take */
    bool halves;   /* it serves real lines of 2 n */
    bool wide;     /* double */
    char *
        numbers; /* those, the chirp (n) and its transform (length) if any, and of halves exp(-pi i k / n), k up to n */
} tp_fft_plan;

/* Lines to transform: of n elements, `step` of them (complex numbers, or for the real ones reals) apart. */
typedef struct {
    const tp_fft_plan *plan;
    int64_t n, step;
    bool backward;
    double scale;
    const void *in[TP_FFT_LINES];
    void *out[TP_FFT_LINES];
} tp_fft_lines;

enum { TP_FFT_COMPLEX, TP_FFT_REAL, TP_FFT_HERMITIAN, TP_FFT_KINDS };
/* By precision: float, double. `work` has room for 4 * (length * lines + TP_FFT_GAP) numbers. */
typedef struct {
    void (*make[2])(tp_fft_plan *plan, void *spare); /* fills `numbers`; spare: 4 * length numbers */
    void (*run[TP_FFT_KINDS][2])(const tp_fft_lines *l, int64_t lines, void *work);
} tp_fft_kernels;
