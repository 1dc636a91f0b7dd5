/* search.cl: where values go in sorted sequences, by bisection. Defined in front: X_* (element.h), FLOATING, RIGHT: behind
 * equal elements, not in front of them. NaN goes behind all numbers. */
#ifdef FLOATING
#define LESS(a, b) ((a) < (b) || ((b) != (b) && (a) == (a)))
#else
#define LESS(a, b) ((a) < (b))
#endif
#ifdef RIGHT
#define BEFORE(s, v) !LESS(v, s)
#else
#define BEFORE(s, v) LESS(s, v)
#endif

/* `each` values belong to one sequence of n; 0: all to the only one. */
__kernel void search(__global const X_S *sequence, long sequence_offset, __global const X_S *values, long values_offset,
                     __global long *out, long out_offset, long count, long n, long each) {
    long i = get_global_id(0);
    if (i >= count) return;
    X_S v = values[values_offset + i];
    long low = 0, high = n;
    sequence += sequence_offset + (each ? i / each * n : 0);
    while (low < high) {
        long middle = (low + high) / 2;
        if (BEFORE(sequence[middle], v)) low = middle + 1;
        else high = middle;
    }
    out[out_offset + i] = low;
}
