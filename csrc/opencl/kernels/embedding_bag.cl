/* embedding_bag.cl: bags of rows of a table, and the gradients (prim bag.*).
 *
 * Defined in front: T; WHOLE, 1 where a work-item has all columns of a row (CPU devices), 0 where it has one element. */
enum { SUM, MEAN, MAX };

/* Row `row` of a work-item, and the columns [first, last) that it has of it. */
#define ROW(count)                                                                      \
    long row = WHOLE ? get_global_id(0) : get_global_id(0) / columns;                   \
    long first = WHOLE ? 0 : get_global_id(0) % columns, last = WHOLE ? columns : first + 1; \
    if (row >= (count)) return;

__kernel void forward(__global const T *table, long to, __global const long *places, long po,
                      __global const long *begins, long bo, __global const T *each, long eo, int weighted,
                      __global T *out, long oo, __global long *bag, long bago, __global long *size, long so,
                      __global long *at, long ao, long bags, long n, long rows, long columns, long padding, int mode,
                      int ends, int bad_begins, volatile __global int *fault, int bad_place) {
    ROW(bags)
    begins += bo, out += oo + row * columns, at += ao + row * columns;
    long begin = begins[row], end = row + 1 < bags || ends ? begins[row + 1] : n, count = 0;
    if (begin < 0 || begin > end || end > n || (row == 0 && begin > 0)) report(fault, bad_begins, begin, 0, n);
    begin = max(begin, 0L), end = min(end, n);
    for (long j = begin; j < end; j++) {
        const long place = checked(places[po + j], rows, 0, 0, fault, bad_place);
        if (first == 0) bag[bago + j] = row;
        if (place == padding || place < 0) continue;
        __global const T *from = table + to + place * columns;
        const T factor = weighted ? each[eo + j] : (T)1;
        if (mode == MAX) {
            for (long c = first; c < last; c++)
                if (count == 0 || from[c] > out[c] || (from[c] != from[c] && out[c] == out[c]))
                    out[c] = from[c], at[c] = place;
        } else {
            OVER_VECTORS
            for (long c = first; c < last; c++) out[c] += factor * from[c];
        }
        count++;
    }
    if (first == 0) size[so + row] = count;
    if (mode == MEAN && count > 1)
        for (long c = first; c < last; c++) out[c] /= (T)count;
}

/* A place's bag; -1: none. */
static long bag_of(long bag, long bags, volatile __global int *fault, int bad_bag) {
    return bag == -1 ? bag : checked(bag, bags, 0, 0, fault, bad_bag);
}

/* What each place adds to its row of the table's gradient; of maxima, what each bag adds to the rows that they came
 * from. */
__kernel void shares(__global const T *grad, long go, __global const long *places, long po, __global const long *bag,
                     long bago, __global const long *size, long so, __global const T *each, long eo, int weighted,
                     __global const long *counts, long co, int counted, __global T *out, long oo, long bags, long n,
                     long rows, long columns, long padding, int mode, volatile __global int *fault, int bad_bag) {
    ROW(n)
    const long place = mode == MAX ? 0 : places[po + row];
    const long of = mode == MAX ? row : bag_of(bag[bago + row], bags, fault, bad_bag);
    const long count = of < 0 ? 0 : size[so + of];
    const bool none = count == 0 || (mode != MAX && (place == padding || place < 0 || place >= rows));
    T factor = weighted ? each[eo + row] : (T)1;
    if (!none && mode == MEAN) factor /= (T)count;
    if (!none && counted) factor /= (T)counts[co + place];
    grad += go + (none ? 0 : of) * columns;
    out += oo + row * columns;
    for (long c = first; c < last; c++) out[c] = none ? (T)0 : factor * grad[c];
}

/* The product of a place's row and its bag's gradient. */
__kernel void weights(__global const T *grad, long go, __global const T *table, long to, __global const long *places,
                      long po, __global const long *bag, long bago, __global T *out, long oo, long bags, long n,
                      long rows, long columns, long padding, int bad_bag, volatile __global int *fault, int bad_place) {
    const long j = get_global_id(0);
    if (j >= n) return;
    const long place = checked(places[po + j], rows, 0, 0, fault, bad_place);
    const long of = bag_of(bag[bago + j], bags, fault, bad_bag);
    T sum = 0;
    if (place >= 0 && of >= 0 && place != padding)
        for (long c = 0; c < columns; c++) sum += table[to + place * columns + c] * grad[go + of * columns + c];
    out[oo + j] = sum;
}
