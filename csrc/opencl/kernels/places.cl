/* places.cl: the primitives take and put.
 *
 * Defined in front: X_* (element.h) for self and other, computing in T; OP_GET, OP_SET, OP_ADD, OP_MUL, OP_MIN, OP_MAX;
 * NDIM; PIECE, how many elements of the innermost dimension a work-item has (SINGLE: one); CHECKED where an index may be
 * out of range: it reads as zero and writes nothing then; ORDERED, with LINES where each line has an order of its own.
 *
 * GET takes the elements one by one. Several writers of one place write in the order of the index along the
 * dimension: a work-item handles whole lines along it, and lines never share a place, so nothing is atomic and results
 * are the same in every run. Where a GPU would have too few lines (ORDERED) a line's elements are looked at in the order
 * of their indices, and a work-item handles those of one place. */
typedef struct {
    long size[NDIM], self[NDIM], index[NDIM], other[NDIM]; /* the outer dimensions, fastest first */
    long inner, inner_self, inner_index, inner_other;      /* the innermost one */
    long pieces, units;
    long n, self_along, index_along, other_along; /* the dimension of the index; GET: n is 1 */
    long limit, dim, wrap;
} geometry;

#ifdef CHECKED
#define FAULT , volatile __global int *fault, int kind
/* The place of an index, -1 out of range; the last bad one is noted after the loops, in which an atomic would be in the
 * compiler's way. */
static inline long place_of(long i, long limit, bool wrap, long *bad, bool *any) {
    long at = wrap && i < 0 ? i + limit : i;
    if ((ulong)at < (ulong)limit) return at;
    *bad = i;
    *any = true;
    return -1;
}
#define LIMIT limit
#define PLACE(i) place_of(i, limit, wrap, &bad, &any)
#define NOTE \
    if (any) report(fault, kind, bad, g.dim, limit);
#else
#define LIMIT 1
#define PLACE(i) (i)
#define FAULT
#define NOTE
#endif

#ifdef ORDERED
#define ORDER , __global const long *order, long order_offset
#else
#define ORDER
#endif

#if !defined(OP_GET) && !defined(OP_SET)
static inline T join(T a, T b) {
#if defined(OP_ADD)
#ifdef T_BOOL
    return a || b;
#else
    return a + b;
#endif
#elif defined(OP_MUL)
    return MUL(a, b);
#elif defined(OP_MIN)
    return !(a <= b) && a == a ? b : a;
#else
    return !(a >= b) && a == a ? b : a;
#endif
}
#endif

/* One of the writers of a place. */
#ifdef OP_SET
#define WRITE(to, from) to = from;
#else
#define WRITE(to, from)                          \
    {                                            \
        const T sum = join(X_LOAD(to), X_LOAD(from)); \
        to = X_STORE(sum);                       \
    }
#endif

__kernel void places(geometry g, __global X_S *self, long self_offset, __global const long *index, long index_offset,
                     __global X_S *other, long other_offset ORDER FAULT) {
    long unit = get_global_id(0);
#ifdef ORDERED
    const long position = unit / g.units;
    if (position >= g.n) return;
    unit -= position * g.units;
    order += order_offset + (LINES ? unit * g.n : 0);
#else
    if (unit >= g.units) return;
#endif
    long first = unit % g.pieces * PIECE, row = unit / g.pieces;
    long count = min(g.inner - first, (long)PIECE);
    self += self_offset + first * g.inner_self;
    index += index_offset + first * g.inner_index;
    other += other_offset + first * g.inner_other;
    for (int d = 0; d < NDIM; d++) {
        long at = d + 1 < NDIM ? row % g.size[d] : row;
        row /= g.size[d];
        self += at * g.self[d];
        index += at * g.index[d];
        other += at * g.other[d];
    }
    long bad = 0, limit = g.limit, along = g.self_along;
    bool any = false, wrap = g.wrap;
#ifdef OP_GET
    if (g.inner_index == 0) { /* a piece of one row */
        long at = PLACE(index[0]);
        X_S zero = (X_S)(0);
        __global const X_S *from = self + (at < 0 ? 0 : at * along);
        if (at < 0) {
            for (long j = 0; j < count; j++) other[j * g.inner_other] = zero;
        } else if (g.inner_self == 1 && g.inner_other == 1) {
            for (long j = 0; j < count; j++) other[j] = from[j];
        } else {
            for (long j = 0; j < count; j++) other[j * g.inner_other] = from[j * g.inner_self];
        }
        NOTE
        return;
    }
    if (LIMIT > 0 && along == 1 && g.inner_self == 0 && g.inner_index == 1 && g.inner_other == 1) {
        for (long j = 0; j < count; j++) { /* without branches: what is out of range reads the first element instead */
            long at = PLACE(index[j]), near = at < 0 ? 0 : at;
            X_S x = self[near];
            other[j] = at < 0 ? (X_S)(0) : x;
        }
    } else {
        for (long j = 0; j < count; j++) {
            long at = PLACE(index[j * g.inner_index]);
            X_S x = (X_S)(0);
            if (at >= 0) x = self[j * g.inner_self + at * along];
            other[j * g.inner_other] = x;
        }
    }
    NOTE
#elif defined(ORDERED)
    const long k = order[position];
    const long at = PLACE(index[k * g.index_along]);
    NOTE
    if (at < 0 || (position > 0 && index[order[position - 1] * g.index_along] == at)) return; /* not the first of a place */
    __global X_S *to = self + at * along;
    X_S value = *to;
    for (long i = position; i < g.n && index[order[i] * g.index_along] == at; i++)
        WRITE(value, other[order[i] * g.other_along])
    *to = value;
#else
    long n = g.n, index_along = g.index_along, other_along = g.other_along;
    long inner_index = g.inner_index, inner_self = g.inner_self, inner_other = g.inner_other;
#ifdef SINGLE
    count = 1;
#endif
    for (long k = 0; k < n; k++, index += index_along, other += other_along) {
        long at = PLACE(index[0]);
#ifndef SINGLE
        if (inner_index == 0 && inner_self == 1 && inner_other == 1) { /* a row */
            __global X_S *to = self + at * along;
            if (at < 0) continue;
            OVER_VECTORS
            for (long j = 0; j < count; j++) WRITE(to[j], other[j])
            continue;
        }
#endif
        for (long j = 0; j < count; j++) {
            if (inner_index != 0) at = PLACE(index[j * inner_index]);
            if (at < 0) continue;
            WRITE(self[j * inner_self + at * along], other[j * inner_other])
        }
    }
    NOTE
#endif
}
