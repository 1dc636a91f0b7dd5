/* ctc_loops.c: the loops over the states of one time, compiled once per capability. */
#include "cpu/ctc.h"

#include "cpu/kernels.h"
#include "cpu/loop.h"
#include "tensorpy/math.h"

#include <math.h>

#define CTC_LOOPS(T, s, EXP, LOG)                                                                                   \
    static void join_##s(const void *a_, const void *b_, const void *c_, const void *skip_, const void *add_,       \
                         int64_t n, void *out_) {                                                                   \
        const T *restrict a = a_, *restrict b = b_, *restrict c = c_, *restrict skip = skip_, *restrict add = add_; \
        T *restrict out = out_;                                                                                     \
        for (int64_t i = 0; i < n; i++) {                                                                           \
            const T x = a[i], y = b[i], z = c[i] + skip[i];                                                         \
            T most = x > y ? x : y;                                                                                 \
            most = most > z ? most : z;                                                                             \
            most = most == (T) - INFINITY ? 0 : most;                                                               \
            out[i] = LOG(EXP(x - most) + EXP(y - most) + EXP(z - most)) + most + add[i];                            \
        }                                                                                                           \
    }                                                                                                               \
    static void shares_##s(const void *a_, const void *b_, double shift_, int64_t n, void *out_) {                  \
        const T *restrict a = a_, *restrict b = b_, shift = (T)shift_;                                              \
        T *restrict out = out_;                                                                                     \
        for (int64_t i = 0; i < n; i++) out[i] = EXP(a[i] + b[i] + shift);                                          \
    }                                                                                                               \
    static void exponentials_##s(const void *a_, double factor_, int64_t n, void *out_) {                           \
        const T *restrict a = a_, factor = (T)factor_;                                                              \
        T *restrict out = out_;                                                                                     \
        for (int64_t i = 0; i < n; i++) out[i] = EXP(a[i]) * factor;                                                \
    }
CTC_LOOPS(float, f32, tp_exp_f32, tp_log_f32)
CTC_LOOPS(double, f64, exp, log)

const tp_ctc_kernels TP_CAP(tp_ctc) = {.f32 = {join_f32, shares_f32, exponentials_f32},
                                       .f64 = {join_f64, shares_f64, exponentials_f64}};
