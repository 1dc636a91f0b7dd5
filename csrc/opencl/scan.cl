/* scan.cl: running sums, products, extremes and logarithms of sums along a dimension; a work-item walks along a line.
 *
 * Defined in front: X_* (element.h) in the dtype that is computed in, T, OP_<name>. */
#if defined(OP_CUMMAX)
#define BEATS(x, best) ((x) >= (best) || (x) != (x))
#elif defined(OP_CUMMIN)
#define BEATS(x, best) ((x) <= (best) || (x) != (x))
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
