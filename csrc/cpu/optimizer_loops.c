/* optimizer_loops.c: the loops of optimizers' steps, compiled once per capability.
 *
 * They are in optimizer_of.h, once for every dtype. */
#include "cpu/optimizer.h"

#include "cpu/kernels.h"

#include <math.h>
#include <string.h>

#ifdef __AVX512F__
#include <immintrin.h>

/* 1 / sqrt(x) and 1 / x within two units in the last place, for x between LEAST and MOST: a division and a root take
 * longer than all the rest of a step. */
#define LEAST 1e-37f
#define MOST 1e37f

/* The second operand is what a NaN gives. */
TP_INLINE __m512 between(__m512 x) {
    return _mm512_min_ps(_mm512_set1_ps(MOST), _mm512_max_ps(_mm512_set1_ps(LEAST), x));
}

TP_INLINE __m512 inverse_root(__m512 x) {
    __m512 r = _mm512_rsqrt14_ps(x), half = _mm512_mul_ps(x, _mm512_set1_ps(0.5f));
    return _mm512_mul_ps(r, _mm512_fnmadd_ps(_mm512_mul_ps(half, r), r, _mm512_set1_ps(1.5f)));
}

TP_INLINE __m512 inverse(__m512 x) {
    __m512 r = _mm512_rcp14_ps(x);
    return _mm512_mul_ps(r, _mm512_fnmadd_ps(x, r, _mm512_set1_ps(2)));
}

/* Adam over whole vectors, as adam_of below; how many elements are done. */
TP_INLINE int64_t adam_vectors(float *p, const float *g, float *m, float *v, float *top, int64_t n,
                               const tp_step_numbers *c, bool largest) {
    const __m512 sign = _mm512_set1_ps((float)c->sign);
    const __m512 shrink = _mm512_set1_ps((float)c->shrink), decay = _mm512_set1_ps((float)c->decay);
    const __m512 size = _mm512_set1_ps((float)c->size), first = _mm512_set1_ps((float)c->first);
    const __m512 beta = _mm512_set1_ps((float)c->beta), second = _mm512_set1_ps((float)c->second);
    const __m512 correction = _mm512_set1_ps((float)c->correction), eps = _mm512_set1_ps((float)c->eps);
    int64_t i = 0;
    if (c->eps < LEAST) return 0;
    for (; i + 16 <= n; i += 16) {
        __m512 param = _mm512_mul_ps(_mm512_loadu_ps(p + i), shrink), grad = _mm512_loadu_ps(g + i);
        __m512 mean = _mm512_loadu_ps(m + i), square = _mm512_mul_ps(_mm512_loadu_ps(v + i), beta);
        TP_FETCH_AHEAD(p + i), TP_FETCH_AHEAD(g + i), TP_FETCH_AHEAD(m + i), TP_FETCH_AHEAD(v + i);
        grad = _mm512_add_ps(_mm512_mul_ps(grad, sign), _mm512_mul_ps(decay, param));
        mean = _mm512_add_ps(mean, _mm512_mul_ps(first, _mm512_sub_ps(grad, mean)));
        square = _mm512_add_ps(square, _mm512_mul_ps(_mm512_mul_ps(second, grad), grad));
        _mm512_storeu_ps(m + i, mean);
        _mm512_storeu_ps(v + i, square);
        if (largest) {
            __m512 before = _mm512_loadu_ps(top + i);
            __mmask16 stays = _mm512_cmp_ps_mask(square, before, _CMP_LE_OQ);
            stays |= _mm512_cmp_ps_mask(before, before, _CMP_UNORD_Q) & _mm512_cmp_ps_mask(square, square, _CMP_ORD_Q);
            _mm512_storeu_ps(top + i, square = _mm512_mask_mov_ps(square, stays, before));
        }
        __m512 root = _mm512_mul_ps(square, inverse_root(between(square)));
        __m512 spread = between(_mm512_add_ps(_mm512_mul_ps(root, correction), eps));
        __m512 step = _mm512_mul_ps(_mm512_mul_ps(size, mean), inverse(spread));
        _mm512_storeu_ps(p + i, _mm512_sub_ps(param, step));
    }
    return i;
}
#define ADAM_VECTORS adam_vectors
#endif

#define T float
#define ROOT sqrtf
#define OF(name) name##_f32
#include "cpu/optimizer_of.h"
#undef T
#undef ROOT
#undef OF
#undef ADAM_VECTORS

#define T double
#define ROOT sqrt
#define OF(name) name##_f64
#include "cpu/optimizer_of.h"
#undef T
#undef ROOT
#undef OF

const tp_optimizer_kernels TP_CAP(tp_optimizer) = {.f32 = {sgd_f32, adam_f32, adagrad_f32},
                                                   .f64 = {sgd_f64, adam_f64, adagrad_f64}};
