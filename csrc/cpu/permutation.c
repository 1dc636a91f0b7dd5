/* permutation.c: the primitive permutation, by Fisher and Yates: place i swaps with one of the places from i on, chosen
 * by the words of element i. */
#include "PrimitiveKernels.h"
#include "core/host.h"
#include "core/memory.h"
#include "cpu/kernels.h"

#define SHUFFLE(name, T)                                                                              \
    static int name(T *v, int64_t n, tp_philox_state s) {                                             \
        int64_t words[TP_DRAW_BLOCK];                                                                 \
        tp_draw draw = {.state = s}; /* of all 64-bit numbers */                                      \
        for (int64_t i = 0; i < n; i++) v[i] = (T)i;                                                  \
        for (int64_t first = 0; first + 1 < n; first += TP_DRAW_BLOCK) {                              \
            if (tp_ends_at(first)) return -1;                                                         \
            int64_t m = n - 1 - first < TP_DRAW_BLOCK ? n - 1 - first : TP_DRAW_BLOCK;                \
            tp_cpu.random->make[TP_DRAW_INTEGERS](&draw, first, words);                               \
            for (int64_t k = 0; k < m; k++) {                                                         \
                uint64_t left = (uint64_t)(n - first - k);                                            \
                words[k] = first + k + (int64_t)((unsigned __int128)(uint64_t)words[k] * left >> 64); \
                __builtin_prefetch(&v[words[k]], 1);                                                  \
            }                                                                                         \
            for (int64_t k = 0; k < m; k++) {                                                         \
                T t = v[first + k];                                                                   \
                v[first + k] = v[words[k]];                                                           \
                v[words[k]] = t;                                                                      \
            }                                                                                         \
        }                                                                                             \
        return 0;                                                                                     \
    }
SHUFFLE(shuffle, int64_t)
SHUFFLE(shuffle_short, int32_t) /* half the memory to walk through at random */

/* permutation(int seed, int offset, *, Tensor(a!) out) -> () */
int permutation_cpu(int64_t seed, int64_t offset, tp_tensor *out) {
    tp_philox_state state = {(uint64_t)seed, (uint64_t)offset};
    return out->dtype == TP_INT32 ? shuffle_short(tp_data(out), out->numel, state)
                                  : shuffle(tp_data(out), out->numel, state);
}
