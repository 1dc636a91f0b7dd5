/* softmax.c: softmax, log_softmax and their gradients, compiled once per capability.
 *
 * A row's largest element is subtracted first, so nothing overflows. Rows along memory are taken one by one, in lanes;
 * rows across memory, COLUMNS neighbours at a time. Sums run in a fixed order, whatever the capability. */
#include "cpu/softmax.h"

#include "cpu/kernels.h"
#include "cpu/pointwise_loop.h"

#define LANES 32
#define COLUMNS 64

#define SOFTMAX(T, s)                                                                                                 \
    static T max_##s(const T *in, int64_t n) {                                                                        \
        T lanes[LANES], best;                                                                                         \
        for (int k = 0; k < LANES; k++) lanes[k] = in[0];                                                             \
        int64_t i = 0;                                                                                                \
        for (; i + LANES <= n; i += LANES)                                                                            \
            for (int k = 0; k < LANES; k++) lanes[k] = in[i + k] > lanes[k] ? in[i + k] : lanes[k];                   \
        best = lanes[0];                                                                                              \
        for (int k = 1; k < LANES; k++) best = lanes[k] > best ? lanes[k] : best;                                     \
        for (; i < n; i++) best = in[i] > best ? in[i] : best;                                                        \
        return best;                                                                                                  \
    }                                                                                                                 \
    /* out = exp(in - shift), and the sum of that; `out` may be NULL. */                                              \
    static T exp_sum_##s(T *out, const T *in, T shift, int64_t n) {                                                   \
        T lanes[LANES] = {0};                                                                                         \
        int64_t i = 0;                                                                                                \
        for (; i < n; i += LANES) {                                                                                   \
            int64_t m = n - i < LANES ? n - i : LANES;                                                                \
            T block[LANES];                                                                                           \
            if (m == LANES)                                                                                           \
                for (int k = 0; k < LANES; k++) block[k] = in[i + k] - shift;                                         \
            else                                                                                                      \
                for (int k = 0; k < LANES; k++) block[k] = k < m ? in[i + k] - shift : -TP_INF_##s;                   \
            TP_IVDEP for (int k = 0; k < LANES; k++) block[k] = tp_exp_##s(block[k]);                                 \
            for (int k = 0; k < LANES; k++) lanes[k] += block[k];                                                     \
            for (int64_t k = 0; out && k < m; k++) out[i + k] = block[k];                                             \
        }                                                                                                             \
        for (int half = LANES / 2; half; half /= 2)                                                                   \
            for (int k = 0; k < half; k++) lanes[k] += lanes[k + half];                                               \
        return lanes[0];                                                                                              \
    }                                                                                                                 \
    static void row_##s(const T *in, T *out, int64_t n, bool log) {                                                   \
        T shift = max_##s(in, n);                                                                                     \
        T sum = exp_sum_##s(log ? NULL : out, in, shift, n);                                                          \
        if (log) {                                                                                                    \
            T less = tp_log_##s(sum);                                                                                 \
            for (int64_t i = 0; i < n; i++) out[i] = in[i] - shift - less;                                            \
        } else {                                                                                                      \
            T scale = 1 / sum;                                                                                        \
            for (int64_t i = 0; i < n; i++) out[i] *= scale;                                                          \
        }                                                                                                             \
    }                                                                                                                 \
    /* m <= COLUMNS neighbouring columns, elements `inner` apart. */                                                  \
    static void columns_##s(const T *in, T *out, int64_t n, int64_t inner, int64_t m, bool log) {                     \
        T top[COLUMNS], sum[COLUMNS];                                                                                 \
        for (int64_t k = 0; k < m; k++) top[k] = in[k], sum[k] = 0;                                                   \
        for (int64_t i = 1; i < n; i++)                                                                               \
            for (int64_t k = 0; k < m; k++) top[k] = in[i * inner + k] > top[k] ? in[i * inner + k] : top[k];         \
        for (int64_t i = 0; i < n; i++) {                                                                             \
            T e[COLUMNS];                                                                                             \
            TP_IVDEP for (int64_t k = 0; k < m; k++) e[k] = tp_exp_##s(in[i * inner + k] - top[k]);                   \
            for (int64_t k = 0; k < m; k++) sum[k] += e[k];                                                           \
            for (int64_t k = 0; !log && k < m; k++) out[i * inner + k] = e[k];                                        \
        }                                                                                                             \
        for (int64_t k = 0; k < m; k++) sum[k] = log ? tp_log_##s(sum[k]) : 1 / sum[k];                               \
        for (int64_t i = 0; i < n; i++)                                                                               \
            if (log)                                                                                                  \
                for (int64_t k = 0; k < m; k++) out[i * inner + k] = in[i * inner + k] - top[k] - sum[k];             \
            else                                                                                                      \
                for (int64_t k = 0; k < m; k++) out[i * inner + k] *= sum[k];                                         \
    }                                                                                                                 \
    static void backward_columns_##s(const T *g, const T *y, T *out, int64_t n, int64_t inner, int64_t m, bool log) { \
        T sum[COLUMNS] = {0};                                                                                         \
        for (int64_t i = 0; i < n; i++)                                                                               \
            for (int64_t k = 0; k < m; k++) sum[k] += log ? g[i * inner + k] : g[i * inner + k] * y[i * inner + k];   \
        for (int64_t i = 0; i < n; i++) {                                                                             \
            int64_t at = i * inner;                                                                                   \
            if (log)                                                                                                  \
                TP_IVDEP for (int64_t k = 0; k < m; k++) out[at + k] = g[at + k] - tp_exp_##s(y[at + k]) * sum[k];    \
            else                                                                                                      \
                for (int64_t k = 0; k < m; k++) out[at + k] = y[at + k] * (g[at + k] - sum[k]);                       \
        }                                                                                                             \
    }                                                                                                                 \
    static void backward_row_##s(const T *g, const T *y, T *out, int64_t n, bool log) {                               \
        T lanes[LANES] = {0}, sum;                                                                                    \
        int64_t i = 0;                                                                                                \
        for (; i + LANES <= n; i += LANES)                                                                            \
            if (log)                                                                                                  \
                for (int k = 0; k < LANES; k++) lanes[k] += g[i + k];                                                 \
            else                                                                                                      \
                for (int k = 0; k < LANES; k++) lanes[k] += g[i + k] * y[i + k];                                      \
        for (; i < n; i++) lanes[0] += log ? g[i] : g[i] * y[i];                                                      \
        for (int half = LANES / 2; half; half /= 2)                                                                   \
            for (int k = 0; k < half; k++) lanes[k] += lanes[k + half];                                               \
        sum = lanes[0];                                                                                               \
        if (log) TP_IVDEP for (i = 0; i < n; i++) out[i] = g[i] - tp_exp_##s(y[i]) * sum;                             \
        else                                                                                                          \
            for (i = 0; i < n; i++) out[i] = y[i] * (g[i] - sum);                                                     \
    }                                                                                                                 \
    static void forward_##s(const void *in_, void *out_, int64_t n, int64_t inner, int64_t first, int64_t last,       \
                            bool log) {                                                                               \
        const T *in = in_;                                                                                            \
        T *out = out_;                                                                                                \
        for (int64_t i = first, m; i < last; i += m) {                                                                \
            int64_t at = inner == 1 ? i * n : i / inner * n * inner + i % inner;                                      \
            m = inner == 1 ? 1 : inner - i % inner;                                                                   \
            m = m > COLUMNS ? COLUMNS : m;                                                                            \
            m = m > last - i ? last - i : m;                                                                          \
            if (inner == 1) row_##s(in + at, out + at, n, log);                                                       \
            else columns_##s(in + at, out + at, n, inner, m, log);                                                    \
        }                                                                                                             \
    }                                                                                                                 \
    static void backward_##s(const void *grad_, const void *output_, void *out_, int64_t n, int64_t inner,            \
                             int64_t first, int64_t last, bool log) {                                                 \
        const T *grad = grad_, *output = output_;                                                                     \
        T *out = out_;                                                                                                \
        for (int64_t i = first, m; i < last; i += m) {                                                                \
            int64_t at = inner == 1 ? i * n : i / inner * n * inner + i % inner;                                      \
            m = inner == 1 ? 1 : inner - i % inner;                                                                   \
            m = m > COLUMNS ? COLUMNS : m;                                                                            \
            m = m > last - i ? last - i : m;                                                                          \
            if (inner == 1) backward_row_##s(grad + at, output + at, out + at, n, log);                               \
            else backward_columns_##s(grad + at, output + at, out + at, n, inner, m, log);                            \
        }                                                                                                             \
    }

SOFTMAX(float, f32)
SOFTMAX(double, f64)

const tp_softmax_kernels TP_CAP(tp_softmax) = {.f32 = {forward_f32, backward_f32}, .f64 = {forward_f64, backward_f64}};
