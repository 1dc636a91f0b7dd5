/* places.cl: gather and the scatters (cpu/gather.h).
 *
 * Defined in front: X_* (element.h) for self and other, computing in T; OP_GET, OP_SET, OP_ADD, OP_MUL, OP_MIN, OP_MAX;
 * NDIM. Of several elements with one place the writers take their turn in the order of the index along the dimension: a
 * work-item handles a whole line along it, and lines never share a place, so nothing is atomic and results are the same
 * in every run. */
typedef struct {
    long size[NDIM], self[NDIM], index[NDIM], other[NDIM]; /* without the dimension, fastest first */
    long n, lines, self_along, index_along, other_along;
} geometry;

__kernel void places(geometry g, __global X_S *self, long self_offset, __global const long *index, long index_offset,
                     __global X_S *other, long other_offset) {
    long line = get_global_id(0);
#ifdef OP_GET
    long k = line % g.n; /* every element by itself */
    line /= g.n;
#endif
    if (line >= g.lines) return;
    self += self_offset;
    index += index_offset;
    other += other_offset;
    for (int d = 0; d < NDIM; d++) {
        long at = d + 1 < NDIM ? line % g.size[d] : line;
        line /= g.size[d];
        self += at * g.self[d];
        index += at * g.index[d];
        other += at * g.other[d];
    }
#ifdef OP_GET
    other[k * g.other_along] = self[index[k * g.index_along] * g.self_along];
#else
    for (long k = 0; k < g.n; k++) {
        __global X_S *to = self + index[k * g.index_along] * g.self_along;
        X_S from = other[k * g.other_along];
#if defined(OP_SET)
        *to = from;
#else
        T a = X_LOAD(*to), b = X_LOAD(from);
#if defined(OP_ADD)
#ifdef T_BOOL
        a = a || b;
#else
        a = a + b;
#endif
#elif defined(OP_MUL)
        a = MUL(a, b);
#elif defined(OP_MIN)
        a = !(a <= b) && a == a ? b : a;
#else
        a = !(a >= b) && a == a ? b : a;
#endif
        *to = X_STORE(a);
#endif
    }
#endif
}
