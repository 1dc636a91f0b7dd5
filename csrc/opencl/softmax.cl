/* softmax.cl: softmax and log_softmax along one dimension, and their gradients. GROUP work-items share a row.
 *
 * Defined in front: IN_*, OTHER_*, OUT_* (element.h), computing in T; LOG for the logarithm; BACKWARD; GROUP. */
#if GROUP > 1
#define REDUCE(x, op)                                                   \
    shared[id] = x;                                                     \
    for (int width = GROUP / 2; width; width /= 2) {                    \
        barrier(CLK_LOCAL_MEM_FENCE);                                   \
        if (id < width) shared[id] = op(shared[id], shared[id + width]); \
    }                                                                   \
    barrier(CLK_LOCAL_MEM_FENCE);                                       \
    x = shared[0];                                                      \
    barrier(CLK_LOCAL_MEM_FENCE);
#define PLUS(a, b) ((a) + (b))
#else
#define REDUCE(x, op)
#endif
/* The helper's polynomial is what compilers vectorise. */
#ifdef T_SINGLE
#define EXP(x) tp_exp_f32(x)
#else
#define EXP(x) exp(x)
#endif
#define LARGER(a, b) ((b) > (a) || (b) != (b) ? (b) : (a))

/* Row r begins at r / inner * n * inner + r % inner; its elements are `inner` apart. */
__kernel void softmax(__global const IN_S *in, long in_offset, __global const OTHER_S *other, long other_offset,
                      __global OUT_S *out, long out_offset, long rows, long n, long inner) {
    long row = get_global_id(0) / GROUP;
    int id = GROUP > 1 ? get_local_id(0) : 0;
#if GROUP > 1
    __local T shared[GROUP];
#else
    if (row >= rows) return;
#endif
    long first = row / inner * n * inner + row % inner;
    in += in_offset + first;
    other += other_offset + first;
    out += out_offset + first;
#ifdef BACKWARD
    T sum = 0;
    for (long i = id; i < n; i += GROUP) {
#ifdef LOG
        sum += IN_LOAD(in[i * inner]);
#else
        sum += (T)IN_LOAD(in[i * inner]) * (T)OTHER_LOAD(other[i * inner]);
#endif
    }
    REDUCE(sum, PLUS)
    for (long i = id; i < n; i += GROUP) {
        T g = IN_LOAD(in[i * inner]), y = OTHER_LOAD(other[i * inner]), value;
#ifdef LOG
        value = g - EXP(y) * sum;
#else
        value = (g - sum) * y;
#endif
        out[i * inner] = OUT_STORE(value);
    }
#else
    T high = -INFINITY, sum = 0;
    for (long i = id; i < n; i += GROUP) {
        T x = IN_LOAD(in[i * inner]);
        high = LARGER(high, x);
    }
    REDUCE(high, LARGER)
#if GROUP == 1
    /* Lanes, since compilers do not reorder a sum. */
    T lane[16];
    long whole = n / 16 * 16;
    for (int k = 0; k < 16; k++) lane[k] = 0;
    for (long i = 0; i < whole; i += 16)
        for (int k = 0; k < 16; k++) lane[k] += EXP((T)IN_LOAD(in[(i + k) * inner]) - high);
    for (long i = whole; i < n; i++) lane[0] += EXP((T)IN_LOAD(in[i * inner]) - high);
    for (int width = 8; width; width /= 2)
        for (int k = 0; k < width; k++) lane[k] += lane[k + width];
    sum = lane[0];
#else
    for (long i = id; i < n; i += GROUP) sum += EXP((T)IN_LOAD(in[i * inner]) - high);
    REDUCE(sum, PLUS)
#endif
#ifdef LOG
    T shift = high + log(sum);
    for (long i = id; i < n; i += GROUP) {
        T value = isinf(high) ? (T)IN_LOAD(in[i * inner]) - high - log(sum) : (T)IN_LOAD(in[i * inner]) - shift;
        out[i * inner] = OUT_STORE(value);
    }
#else
    for (long i = id; i < n; i += GROUP) {
        T value = EXP((T)IN_LOAD(in[i * inner]) - high) / sum;
        out[i * inner] = OUT_STORE(value);
    }
#endif
#endif
}
