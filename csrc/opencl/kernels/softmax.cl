/* softmax.cl: softmax and log_softmax along one dimension, and their gradients.
 *
 * Defined in front: IN_*, OTHER_*, OUT_* (element.h), computing in T; LOG for the logarithm; BACKWARD. GPUs define GROUP,
 * the work-items that share a row, ROWS, the rows of a work-group, and ACROSS where its neighbours have neighbouring
 * rows and not neighbouring elements. CPU devices define W, the elements of a vector, and the vector forms of IN, OTHER
 * and OUT; ALONG where a row lies contiguous, else a work-item takes W neighbouring rows; OUT_WIDE where `out` holds T.
 *
 * Row r begins at r / inner * n * inner + r % inner; its elements are `inner` apart. */
#include "tensorpy/math.h"

#define LARGER(a, b) ((b) > (a) || (b) != (b) ? (b) : (a))
#define PLUS(a, b) ((a) + (b))
#ifdef T_SINGLE
#define EXP(x) tp_exp_f32(x)
#else
#define EXP(x) exp(x)
#endif
#ifdef LOG
#define SLOPE(g, y) (g)
#define TO_INPUT(g, y, sum, e) ((g) - (e) * (sum))
#else
#define SLOPE(g, y) ((g) * (y))
#define TO_INPUT(g, y, sum, e) (((g) - (sum)) * (y))
#endif

#ifdef W
typedef IN_V vec;
#ifdef T_SINGLE
/* exp(c) = p * 2**n as in math_f32.h, W at a time: gives p; n is the low bits of `shifted`. */
TP_FN vec reduced_exp(vec c, vec *shifted) {
    *shifted = fma(c, (vec)(0x1.715476p+0f), (vec)(12582912.0f));
    const vec n = *shifted - 12582912.0f, r = fma(n, (vec)(-0x1.7f7d1cp-20f), fma(n, (vec)(-0x1.62e4p-1f), c));
    vec p = (vec)(0x1.6a4b98p-10f);
    p = fma(p, r, (vec)(0x1.123e5cp-7f));
    p = fma(p, r, (vec)(0x1.5558bap-5f));
    p = fma(p, r, (vec)(0x1.55548cp-3f));
    p = fma(p, r, (vec)(0x1.fffffcp-2f));
    p = fma(p, r, (vec)(1.0f));
    return fma(p, r, (vec)(1.0f));
}
static inline vec exp_vector(vec x) {
    const vec low = x < -104.0f ? (vec)(-104.0f) : x, c = low > 89.0f ? (vec)(89.0f) : low;
    vec shifted;
    const vec p = reduced_exp(c, &shifted);
    const VECTOR(int) k = VECTOR(as_int)(shifted) - as_int(12582912.0f), half_k = k >> 1;
    return p * VECTOR(as_float)((half_k + 127) << 23) * VECTOR(as_float)((k - half_k + 127) << 23);
}
/* exp of what is at most 0, and of what is not a number anything: its power of two is added to the exponent. What would
 * be subnormal is 0. */
static inline vec power_vector(vec x) {
    const vec c = x < -87.0f ? (vec)(-87.0f) : x;
    vec shifted;
    const vec p = reduced_exp(c, &shifted);
    const vec e = VECTOR(as_float)(VECTOR(as_int)(p) + (VECTOR(as_int)(shifted) << 23));
    return x < -87.0f ? (vec)(0) : e;
}
#else
#define exp_vector(x) exp(x)
#define power_vector(x) exp(x)
#endif
#define LARGER_VECTOR(a, b) ((((b) > (a)) | ((b) != (b))) ? (b) : (a))

static inline T fold_larger(vec v) {
    T lane[W];
    VECTOR(vstore)(v, 0, lane);
    T a = lane[0];
    for (int k = 1; k < W; k++) a = LARGER(a, lane[k]);
    return a;
}
static inline T fold_sum(vec v) {
    T lane[W];
    VECTOR(vstore)(v, 0, lane);
    for (int width = W / 2; width; width /= 2)
        for (int k = 0; k < width; k++) lane[k] += lane[k + width];
    return lane[0];
}
#endif

#if defined(W) && defined(ALONG)
/* The larger ones of each lane of n elements, by four chains that do not wait for each other. */
static inline vec largest_vector(__global const IN_S *in, long n) {
    vec a = (vec)(-INFINITY), b = a, c = a, d = a;
    long i = 0;
    for (; i + 4 * W <= n; i += 4 * W) {
        const vec p = IN_VLOAD(in + i), q = IN_VLOAD(in + i + W), r = IN_VLOAD(in + i + 2 * W);
        const vec s = IN_VLOAD(in + i + 3 * W);
        a = LARGER_VECTOR(a, p), b = LARGER_VECTOR(b, q), c = LARGER_VECTOR(c, r), d = LARGER_VECTOR(d, s);
    }
    for (; i < n; i += W) {
        const vec p = IN_VLOAD(in + i);
        a = LARGER_VECTOR(a, p);
    }
    a = LARGER_VECTOR(a, b), c = LARGER_VECTOR(c, d);
    return LARGER_VECTOR(a, c);
}
static inline T largest(__global const IN_S *in, long n) {
    T high = fold_larger(largest_vector(in, n / W * W));
    FEW_TURNS
    for (long i = n / W * W; i < n; i++) {
        T x = IN_LOAD(in[i]);
        high = LARGER(high, x);
    }
    return high;
}
/* What goes past the caches, which `out` would only wash out: its lines are not read first. */
#if defined(OUT_WIDE) && defined(TP_CPU_COMPILER)
#define FAR (32 << 20)
static inline bool goes_far(__global const T *out, long elements) {
    return elements * (long)sizeof(T) >= FAR && ((ulong)out & (sizeof(vec) - 1)) == 0;
}
#define PUT(value, to)                                                       \
    if (far) __builtin_nontemporal_store(value, (__global vec *)(to)); \
    else OUT_VSTORE(value, to)
#else
#define goes_far(out, elements) false
#define PUT(value, to) OUT_VSTORE(value, to)
#endif
#define MOST_KEPT 4096
/* The same place of the next row, which is on its way while this one is computed. */
#ifdef TP_CPU_COMPILER
#define ASK_FOR_NEXT(p) __builtin_prefetch((__global const void *)((p) + n), 0, 2)
#else
#define ASK_FOR_NEXT(p)
#endif

#ifdef BACKWARD
static void do_row(__global const IN_S *in, __global const OTHER_S *other, __global OUT_S *out, long n, bool far) {
    const long whole = n / W * W;
    vec sums = (vec)(0);
    T sum = 0;
    for (long i = 0; i < whole; i += W) sums += SLOPE(IN_VLOAD(in + i), OTHER_VLOAD(other + i));
    FEW_TURNS
    for (long i = whole; i < n; i++) sum += SLOPE((T)IN_LOAD(in[i]), (T)OTHER_LOAD(other[i]));
    sum += fold_sum(sums);
    for (long i = 0; i < whole; i += W) {
        vec g = IN_VLOAD(in + i), y = OTHER_VLOAD(other + i);
        PUT(TO_INPUT(g, y, sum, exp_vector(y)), out + i);
    }
    FEW_TURNS
    for (long i = whole; i < n; i++) {
        T g = IN_LOAD(in[i]), y = OTHER_LOAD(other[i]), value = TO_INPUT(g, y, sum, EXP(y));
        out[i] = OUT_STORE(value);
    }
}

#elif defined(LOG) || !defined(OUT_WIDE)
static void do_row(__global const IN_S *in, __global const OTHER_S *other, __global OUT_S *out, long n, bool far) {
    const long whole = n / W * W;
    const T high = largest(in, n);
    vec sums = (vec)(0);
    T sum = 0;
    for (long i = 0; i < whole; i += W) {
        sums += power_vector(IN_VLOAD(in + i) - high);
        ASK_FOR_NEXT(in + i);
    }
    FEW_TURNS
    for (long i = whole; i < n; i++) sum += EXP((T)IN_LOAD(in[i]) - high);
    sum = isfinite(high) ? sum + fold_sum(sums) : (T)NAN;
#ifdef LOG
    const T less = log(sum);
    for (long i = 0; i < whole; i += W) PUT(IN_VLOAD(in + i) - high - less, out + i);
    FEW_TURNS
    for (long i = whole; i < n; i++) {
        T value = (T)IN_LOAD(in[i]) - high - less;
        out[i] = OUT_STORE(value);
    }
#else
    for (long i = 0; i < whole; i += W) PUT(power_vector(IN_VLOAD(in + i) - high) / sum, out + i);
    FEW_TURNS
    for (long i = whole; i < n; i++) {
        T value = EXP((T)IN_LOAD(in[i]) - high) / sum;
        out[i] = OUT_STORE(value);
    }
#endif
}

#else
/* The powers wait until their sum is known: in `out`, or in `kept` if they go far. */
#define ROW_OF_POWERS(kept)                                                        \
    for (long i = 0; i < whole; i += W) {                                          \
        const vec e = power_vector(IN_VLOAD(in + i) - high);                       \
        ASK_FOR_NEXT(in + i);                                                      \
        sums += e;                                                                 \
        VECTOR(vstore)(e, 0, kept + i);                                            \
    }                                                                              \
    FEW_TURNS                                                                      \
    for (long i = whole; i < n; i++) sum += out[i] = EXP((T)IN_LOAD(in[i]) - high); \
    sum += fold_sum(sums);                                                         \
    const T share = isfinite(high) ? 1 / sum : (T)NAN;                             \
    for (long i = 0; i < whole; i += W) PUT(VECTOR(vload)(0, kept + i) * share, out + i); \
    FEW_TURNS                                                                      \
    for (long i = whole; i < n; i++) out[i] *= share;
static void do_row(__global const IN_S *in, __global const OTHER_S *other, __global OUT_S *out, long n, bool far) {
    const long whole = n / W * W;
    const T high = largest(in, n);
    vec sums = (vec)(0);
    T sum = 0;
    if (far && n <= MOST_KEPT) {
        T kept[MOST_KEPT];
        ROW_OF_POWERS(kept)
    } else {
        far = false;
        ROW_OF_POWERS(out)
    }
}
#endif

__kernel void softmax(__global const IN_S *in, long in_offset, __global const OTHER_S *other, long other_offset,
                      __global OUT_S *out, long out_offset, long rows, long n, long inner) {
    long row = get_global_id(0);
    if (row >= rows) return;
    in += in_offset + row * n, other += other_offset + row * n, out += out_offset + row * n;
    do_row(in, other, out, n, goes_far(out, rows * n));
}

#else

#ifdef W
#define GROUP 1
#define REDUCE(x, op)
#elif GROUP == 1
#define REDUCE(x, op)
#else
/* Every work-item of a row has `x`, folded, from then on. */
#ifdef ACROSS
#define STEP ROWS
#else
#define STEP 1
#endif
#define REDUCE(x, op)                                                                   \
    mine[0] = x;                                                                        \
    for (int width = GROUP / 2; width; width /= 2) {                                    \
        barrier(CLK_LOCAL_MEM_FENCE);                                                   \
        if (id < width) mine[0] = op(mine[0], mine[width * STEP]);                      \
    }                                                                                   \
    barrier(CLK_LOCAL_MEM_FENCE);                                                       \
    x = *(mine - id * STEP);                                                            \
    barrier(CLK_LOCAL_MEM_FENCE);
#endif

#ifdef W
/* W neighbouring rows, elements `inner` apart. */
static void do_rows(__global const IN_S *in, __global const OTHER_S *other, __global OUT_S *out, long n, long inner) {
#ifdef BACKWARD
    vec sum = (vec)(0);
    for (long i = 0; i < n; i++) sum += SLOPE(IN_VLOAD(in + i * inner), OTHER_VLOAD(other + i * inner));
    for (long i = 0; i < n; i++) {
        vec g = IN_VLOAD(in + i * inner), y = OTHER_VLOAD(other + i * inner);
        OUT_VSTORE(TO_INPUT(g, y, sum, exp_vector(y)), out + i * inner);
    }
#else
    vec high = (vec)(-INFINITY), sum = (vec)(0);
    for (long i = 0; i < n; i++) {
        vec x = IN_VLOAD(in + i * inner);
        high = LARGER_VECTOR(high, x);
    }
    for (long i = 0; i < n; i++) sum += power_vector(IN_VLOAD(in + i * inner) - high);
    sum = isfinite(high) ? sum : (vec)(NAN);
#ifdef LOG
    const vec less = log(sum);
    for (long i = 0; i < n; i++) OUT_VSTORE(IN_VLOAD(in + i * inner) - high - less, out + i * inner);
#else
    for (long i = 0; i < n; i++) OUT_VSTORE(power_vector(IN_VLOAD(in + i * inner) - high) / sum, out + i * inner);
#endif
#endif
}
#endif

/* A row, shared by GROUP work-items, of which this is `id`; `mine` is its place in local memory. */
#if GROUP > 1
#define MINE , __local T *mine
#else
#define MINE
#endif
static void do_row(__global const IN_S *in, __global const OTHER_S *other, __global OUT_S *out, long n, long inner,
                   int id MINE) {
#ifdef BACKWARD
    T sum = 0;
    for (long i = id; i < n; i += GROUP) sum += SLOPE((T)IN_LOAD(in[i * inner]), (T)OTHER_LOAD(other[i * inner]));
    REDUCE(sum, PLUS)
    for (long i = id; i < n; i += GROUP) {
        T g = IN_LOAD(in[i * inner]), y = OTHER_LOAD(other[i * inner]), value = TO_INPUT(g, y, sum, EXP(y));
        out[i * inner] = OUT_STORE(value);
    }
#else
    T high = -INFINITY, sum = 0;
    for (long i = id; i < n; i += GROUP) {
        T x = IN_LOAD(in[i * inner]);
        high = LARGER(high, x);
    }
    REDUCE(high, LARGER)
    for (long i = id; i < n; i += GROUP) sum += EXP((T)IN_LOAD(in[i * inner]) - high);
    REDUCE(sum, PLUS)
#ifdef LOG
    const T less = log(sum);
#endif
    for (long i = id; i < n; i += GROUP) {
#ifdef LOG
        T value = (T)IN_LOAD(in[i * inner]) - high - less;
#else
        T value = EXP((T)IN_LOAD(in[i * inner]) - high) / sum;
#endif
        out[i * inner] = OUT_STORE(value);
    }
#endif
}

__kernel void softmax(__global const IN_S *in, long in_offset, __global const OTHER_S *other, long other_offset,
                      __global OUT_S *out, long out_offset, long rows, long n, long inner) {
    in += in_offset, other += other_offset, out += out_offset;
#ifdef W
    long blocks = (inner + W - 1) / W, unit = get_global_id(0), column = unit % blocks * W;
    long at = unit / blocks * n * inner + column;
    if (unit / blocks * inner >= rows) return;
    if (inner - column >= W) {
        do_rows(in + at, other + at, out + at, n, inner);
    } else {
        for (; column < inner; column++, at++) do_row(in + at, other + at, out + at, n, inner, 0);
    }
#else
    int place = get_local_id(0);
#ifdef ACROSS
    int id = place / ROWS, line = place % ROWS;
#else
    int id = place % GROUP, line = place / GROUP;
#endif
    long row = get_group_id(0) * ROWS + line, at = row / inner * n * inner + row % inner;
    if (row >= rows) n = at = 0; /* goes along without elements */
#if GROUP > 1
    __local T shared[GROUP * ROWS];
    do_row(in + at, other + at, out + at, n, inner, id, shared + place);
#else
    do_row(in + at, other + at, out + at, n, inner, id);
#endif
#endif
}
#endif
