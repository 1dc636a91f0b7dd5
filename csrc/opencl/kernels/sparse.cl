/* sparse.cl: products of sparse matrices with dense ones (prim sparse.*).
 *
 * Defined in front: T, and COMPLEX where it is a pair; WHOLE, 1 where a work-item has all columns of a row (CPU devices),
 * 0 where it has one element. */
#ifdef COMPLEX
#define TIMES(a, b) ((T)((a).x * (b).x - (a).y * (b).y, (a).x * (b).y + (a).y * (b).x))
#define ONE ((T)(1, 0))
#else
#define TIMES(a, b) ((a) * (b))
#define ONE ((T)1)
#endif

/* Row `row` of a work-item, and the columns [first, last) that it has of it. */
#define ROW(count)                                                                        \
    const long row = WHOLE ? get_global_id(0) : get_global_id(0) / width;                 \
    const long first = WHOLE ? 0 : get_global_id(0) % width, last = WHOLE ? width : first + 1; \
    if (row >= (count)) return;

/* The values [begin, end) of a row, within the n that there are. */
#define VALUES_OF_ROW                                                                                          \
    long begin = begins[bo + row], end = begins[bo + row + 1];                                                 \
    if (begin < 0 || begin > end || end > n || (row == 0 && begin > 0) || (row + 1 == lines && end < n))       \
        report(fault, bad_begins, begin, 0, n);                                                                \
    begin = max(begin, 0L), end = min(end, n);

__kernel void rows(__global const long *begins, long bo, __global const long *columns, long co,
                   __global const T *values, long vo, int weighted, __global const T *dense, long d, __global T *out,
                   long oo, long lines, long n, long inner, long width, int bad_begins, volatile __global int *fault,
                   int bad_column) {
    ROW(lines)
    VALUES_OF_ROW
    out += oo + row * width;
    for (long c = first; c < last; c++) out[c] = 0;
    for (long j = begin; j < end; j++) {
        const long column = checked(columns[co + j], inner, 0, 0, fault, bad_column);
        if (column < 0) continue;
        const T v = weighted ? values[vo + j] : ONE;
        __global const T *from = dense + d + column * width;
        OVER_VECTORS
        for (long c = first; c < last; c++) out[c] += TIMES(v, from[c]);
    }
}

#ifndef COMPLEX
/* Which value gives the largest product (sign 1), or the smallest (-1); -1 without any. */
__kernel void extremes(__global const long *begins, long bo, __global const long *columns, long co,
                       __global const T *values, long vo, int weighted, __global const T *dense, long d,
                       __global long *out, long oo, long lines, long n, long inner, long width, int sign,
                       int bad_begins, volatile __global int *fault, int bad_column) {
    ROW(lines)
    VALUES_OF_ROW
    for (long c = first; c < last; c++) {
        T most = 0;
        long at = -1;
        for (long j = begin; j < end; j++) {
            const long column = checked(columns[co + j], inner, 0, 0, fault, bad_column);
            const T v = weighted ? values[vo + j] : ONE, x = column < 0 ? 0 : v * dense[d + column * width + c] * sign;
            if (column >= 0 && (at < 0 || x > most || (x != x && most == most))) at = j, most = x;
        }
        out[oo + row * width + c] = at;
    }
}
#endif

/* What each value adds to its row. */
__kernel void shares(__global const long *columns, long co, __global const T *values, long vo, int weighted,
                     __global const T *dense, long d, __global T *out, long oo, long n, long inner, long width,
                     volatile __global int *fault, int bad_column) {
    ROW(n)
    const long column = checked(columns[co + row], inner, 0, 0, fault, bad_column);
    const T v = weighted ? values[vo + row] : ONE;
    for (long c = first; c < last; c++)
        out[oo + row * width + c] = column < 0 ? (T)0 : TIMES(v, dense[d + column * width + c]);
}

__kernel void dots(__global const long *rows, long ro, __global const long *columns, long co, __global const T *a,
                   long ao, __global const T *b, long bo, __global T *out, long oo, long n, long lines, long inner,
                   long width, volatile __global int *fault, int bad_index) {
    const long j = get_global_id(0);
    if (j >= n) return;
    const long row = checked(rows[ro + j], lines, 0, 0, fault, bad_index);
    const long column = checked(columns[co + j], inner, 0, 0, fault, bad_index);
    T sum = 0;
    for (long c = 0; row >= 0 && column >= 0 && c < width; c++)
        sum += TIMES(a[ao + row * width + c], b[bo + column * width + c]);
    out[oo + j] = sum;
}

__kernel void look(__global const long *keys, long ko, long n, long bound, volatile __global int *fault, int bad_key) {
    const long j = get_global_id(0);
    if (j < n) checked(keys[ko + j], bound, 0, 0, fault, bad_key);
}
