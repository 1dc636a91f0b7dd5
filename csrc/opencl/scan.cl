/* scan.cl: running sums, products, extremes and logarithms of sums along a dimension; a work-item walks along a line.
 *
 * Defined in front: X_* (element.h) in the dtype that is computed in, T, OP_<name>. */
#if defined(OP_CUMMAX)
#define BEATS(x, best) ((x) >= (best) || (x) != (x))
#elif defined(OP_CUMMIN)
#define BEATS(x, best) ((x) <= (best) || (x) != (x))
#elif defined(OP_LOGCUMSUMEXP) && defined(COMPLEX)
/* log(exp(a) + exp(b)), from the one with the larger real part. */
static inline T log_add(T a, T b) {
    if (isnan(a.x) || isnan(a.y) || isnan(b.x) || isnan(b.y)) {
        if (a.x == -INFINITY || b.x == -INFINITY) return a.x == -INFINITY ? b : a;
        return (T)(NAN, NAN);
    }
    if (a.x == -INFINITY) return b;
    if (b.x == -INFINITY) return a;
    const T high = a.x >= b.x ? a : b, low = a.x >= b.x ? b : a;
    if (isinf(high.x)) return high;
    return high + TP_PASTE(tp_log_, COMPLEX)((T)(1, 0) + TP_PASTE(tp_exp_, COMPLEX)(low - high));
}
#elif defined(OP_LOGCUMSUMEXP)
static inline T log_add(T a, T x) {
    const T high = x > a || x != x ? x : a, low = high == a ? x : a;
    if (x != x || a != a) return NAN;
    return isinf(high) && high == low ? high : high + log1p(exp(low - high));
}
#endif

__kernel void scan(__global const X_S *in, long in_offset, __global X_S *out, long out_offset, __global long *at,
                   long at_offset, long lines, long n, long inner) {
    long line = get_global_id(0);
    if (line >= lines) return;
    long first = line / inner * n * inner + line % inner;
    in += in_offset + first;
    out += out_offset + first;
    at += at_offset + first;
    T acc = X_LOAD(in[0]);
#if defined(OP_CUMMAX) || defined(OP_CUMMIN)
    long place = 0;
    at[0] = 0;
#endif
    out[0] = X_STORE(acc);
    for (long i = 1; i < n; i++) {
        T x = X_LOAD(in[i * inner]);
#if defined(OP_CUMSUM)
        acc = acc + x;
#elif defined(OP_CUMPROD)
        acc = MUL(acc, x);
#elif defined(OP_LOGCUMSUMEXP)
        acc = log_add(acc, x);
#else
        if (acc == acc && BEATS(x, acc)) {
            acc = x;
            place = i;
        } else if (acc != acc && x != x) {
            place = i;
        }
        at[i * inner] = place;
#endif
        out[i * inner] = X_STORE(acc);
    }
}
