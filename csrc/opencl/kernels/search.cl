/* search.cl: where values go in sorted sequences, by bisection. Defined in front: X_* (element.h), FLOATING, RIGHT: after
 * equal elements, not in front of them. NaN goes after all numbers. */
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

/* `each` values belong to one sequence of n; 0: all to the only one. A work-item goes through the same steps for LANES
 * values side by side, without a branch, so that none waits for another's memory. */
__kernel void search(__global const X_S *sequence, long sequence_offset, __global const X_S *values, long values_offset,
                     __global long *out, long out_offset, long count, long n, long each) {
    long first = get_global_id(0) * LANES;
    if (first >= count) return;
    X_S v[LANES];
    long at[LANES], start[LANES];
    sequence += sequence_offset;
    for (int j = 0; j < LANES; j++) {
        long i = min(first + j, count - 1);
        v[j] = values[values_offset + i];
        start[j] = each ? i / each * n : 0;
        at[j] = start[j];
    }
    for (long left = n; left > 1; left -= left / 2) {
        long half_way = left / 2;
        for (int j = 0; j < LANES; j++) at[j] += BEFORE(sequence[at[j] + half_way - 1], v[j]) ? half_way : 0;
    }
    for (int j = 0; j < LANES; j++)
        if (first + j < count)
            out[out_offset + first + j] = at[j] - start[j] + (n && BEFORE(sequence[at[j]], v[j]) ? 1 : 0);
}
