/* sums_of.h: the sums of sums.h in one dtype; included there with T (the dtype) and OF(name) (name with its suffix)
 * defined. `runs` runs of n neighbours begin `next` elements apart. */

typedef T OF(piece) __attribute__((vector_size(4 * sizeof(T))));

TP_INLINE void OF(load)(four *to, const T *x) {
    OF(piece) p;
    memcpy(&p, x, sizeof p);
    *to = __builtin_convertvector(p, four);
}
/* The last ones, fewer than four; `otherwise` in the places of the others. */
TP_INLINE void OF(load_rest)(four *to, const T *x, int64_t n, double otherwise) {
    *to = (four){n > 0 ? (double)x[0] : otherwise, n > 1 ? (double)x[1] : otherwise, n > 2 ? (double)x[2] : otherwise,
                 otherwise};
}

TP_INLINE void OF(add)(four *lane, const T *x) {
    four v;
    OF(load)(&v, x);
    *lane += v;
}
TP_INLINE double OF(sum)(const void *x_, int64_t n, int64_t runs, int64_t next) {
    const T *x = x_;
    four lanes[FOURS] = {0}, rest;
    for (int64_t r = 0; r < runs; r++, x += next) {
        int64_t i = 0;
        for (; i + LANES <= n; i += LANES)
            for (int k = 0; k < FOURS; k++) OF(add)(&lanes[k], x + i + 4 * k);
        for (; i + 4 <= n; i += 4) OF(add)(&lanes[0], x + i);
        if (i == n) continue;
        OF(load_rest)(&rest, x + i, n - i, 0);
        lanes[0] += rest;
    }
    return total(lanes);
}

TP_INLINE void OF(add_square)(four *lane, const T *x, double mean) {
    four v;
    OF(load)(&v, x);
    v -= mean;
    *lane += v * v;
}
TP_INLINE double OF(squares)(const void *x_, int64_t n, int64_t runs, int64_t next, double mean) {
    const T *x = x_;
    four lanes[FOURS] = {0}, rest;
    for (int64_t r = 0; r < runs; r++, x += next) {
        int64_t i = 0;
        for (; i + LANES <= n; i += LANES)
            for (int k = 0; k < FOURS; k++) OF(add_square)(&lanes[k], x + i + 4 * k, mean);
        for (; i + 4 <= n; i += 4) OF(add_square)(&lanes[0], x + i, mean);
        if (i == n) continue;
        OF(load_rest)(&rest, x + i, n - i, mean);
        rest -= mean;
        lanes[0] += rest * rest;
    }
    return total(lanes);
}
