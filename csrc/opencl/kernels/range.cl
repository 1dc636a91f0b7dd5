/* range.cl: arange, linspace and logspace. Defined in front: OUT_* (element.h) for WHOLE (long) or real numbers
 * (REAL). */
#ifdef WHOLE
__kernel void range(__global OUT_S *out, long offset, long n, long first, long step) {
    long i = get_global_id(0);
    if (i < n) out[offset + i] = OUT_STORE((long)((ulong)first + (ulong)i * (ulong)step));
}
#else
__kernel void range(__global OUT_S *out, long offset, long n, REAL a, REAL b, REAL last, REAL base, long middle,
                    int single) {
    long i = get_global_id(0);
    if (i >= n) return;
    REAL x = i < middle ? a + (REAL)i * b : last - (REAL)(n - 1 - i) * b;
    if (middle < n) x = i < middle ? fma((REAL)i, b, a) : fma(-(REAL)(n - 1 - i), b, last);
    if (single) x = (float)(i < middle ? a : last) + (float)(i < middle ? i : i + 1 - n) * (float)b;
    if (base != 0) x = pow(base, x);
    out[offset + i] = OUT_STORE(x);
}
#endif

/* The lower or upper triangle of matrices: the rest is zero. */
__kernel void triangle(__global const OUT_S *in, long in_offset, __global OUT_S *out, long out_offset, long n,
                       long rows, long columns, long diagonal, int lower) {
    long i = get_global_id(0);
    if (i >= n) return;
    long row = i / columns % rows, column = i % columns;
    bool keep = lower ? column <= row + diagonal : column >= row + diagonal;
    OUT_S zero = (OUT_S)(0);
    out[out_offset + i] = keep ? in[in_offset + i] : zero;
}

/* How many elements of the first `rows` rows are on or below a diagonal. */
static inline long lower_count(long rows, long columns, long diagonal) {
    long first = max(-diagonal, 0L), full = columns - diagonal - 1;
    if (first >= rows || columns == 0) return 0;
    full = clamp(full, first, rows);
    return (full - first) * (first + full + 2 * diagonal + 1) / 2 + (rows - full) * columns;
}

/* Rows, and after them columns, of the elements of a triangle in row-major order: the row is found by bisection. */
__kernel void triangle_indices(__global long *out, long offset, long n, long rows, long columns, long diagonal,
                               int lower) {
    long i = get_global_id(0), low = 0, high = rows;
    if (i >= n) return;
#define COUNT(r) (lower ? lower_count(r, columns, diagonal) : (r) * columns - lower_count(r, columns, diagonal - 1))
    while (high - low > 1) { /* COUNT(low) <= i < COUNT(high) */
        long middle = (low + high) / 2;
        if (COUNT(middle) <= i) low = middle;
        else high = middle;
    }
    long column = i - COUNT(low);
    if (!lower) column += clamp(low + diagonal, 0L, columns);
    out[offset + i] = low;
    out[offset + n + i] = column;
}
