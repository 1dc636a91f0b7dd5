/* reduction_of.h: the kernels of one reduction and dtype around inline functions; included once for each, with
 *   OF                      what the names begin with; OF_start(), OF_step(acc, x), OF_join(a, b), OF_finish_one(acc,
 *                           count) are there
 *   ELEMENT, ACC, COUNT(n)  the elements, the accumulators, a number of elements as an element
 * A run is folded in LANES lanes, whatever the vectors' width, so every capability gives the same result. */

#define NAME(x) NAME_(OF, x)
#define NAME_(of, x) NAME__(of, x)
#define NAME__(of, x) of##_##x

enum { NAME(lanes) = 64 };

static void NAME(init)(void *acc, int64_t n) {
    for (int64_t i = 0; i < n; i++) ((ACC *)acc)[i] = NAME(start)();
}

TP_INLINE ACC NAME(of_run)(const ELEMENT *p, int64_t n) {
    ACC lane[NAME(lanes)];
    int64_t i = 0;
    for (int k = 0; k < NAME(lanes); k++) lane[k] = NAME(start)();
    for (; i + NAME(lanes) <= n; i += NAME(lanes)) {
        _Pragma("GCC unroll 64") for (int k = 0; k < NAME(lanes); k++) lane[k] = NAME(step)(lane[k], p[i + k]);
    }
    for (int k = 0; i + k < n; k++) lane[k] = NAME(step)(lane[k], p[i + k]);
    for (int half = NAME(lanes) / 2; half; half /= 2)
        for (int k = 0; k < half; k++) lane[k] = NAME(join)(lane[k], lane[k + half]);
    return lane[0];
}

static void NAME(fold_runs)(void *acc_, int64_t n, const char *in, int64_t stride, int64_t run_stride, int64_t length,
                            int64_t index) {
    (void)index;
    ACC *acc = acc_;
    for (int64_t run = 0; run < n; run++, in += stride) {
        if (run_stride == sizeof(ELEMENT)) {
            acc[run] = NAME(join)(acc[run], NAME(of_run)((const ELEMENT *)in, length));
            continue;
        }
        ACC side[4] = {NAME(start)(), NAME(start)(), NAME(start)(), NAME(start)()};
        for (int64_t i = 0; i < length; i++)
            side[i & 3] = NAME(step)(side[i & 3], *(const ELEMENT *)(in + i * run_stride));
        side[0] = NAME(join)(side[0], side[2]);
        side[1] = NAME(join)(side[1], side[3]);
        acc[run] = NAME(join)(acc[run], NAME(join)(side[0], side[1]));
    }
}

static void NAME(fold_rows)(void *acc_, int64_t n, const char *in, int64_t stride, int64_t row_stride, int64_t rows,
                            int64_t index) {
    (void)index;
    ACC *acc = acc_;
    int64_t row = 0;
    for (; stride == sizeof(ELEMENT) && row + 4 <= rows; row += 4, in += 4 * row_stride) {
        const ELEMENT *a = (const ELEMENT *)in, *b = (const ELEMENT *)(in + row_stride);
        const ELEMENT *c = (const ELEMENT *)(in + 2 * row_stride), *d = (const ELEMENT *)(in + 3 * row_stride);
        for (int64_t i = 0; i < n; i++) {
            ACC first = NAME(step)(acc[i], a[i]);
            first = NAME(step)(first, b[i]);
            first = NAME(step)(first, c[i]);
            acc[i] = NAME(step)(first, d[i]);
        }
    }
    for (; row < rows; row++, in += row_stride)
        for (int64_t i = 0; i < n; i++) acc[i] = NAME(step)(acc[i], *(const ELEMENT *)(in + i * stride));
}

static void NAME(combine)(void *into_, const void *from_, int64_t n) {
    ACC *into = into_;
    const ACC *from = from_;
    for (int64_t i = 0; i < n; i++) into[i] = NAME(join)(into[i], from[i]);
}

static void NAME(finish)(void *out, const void *acc, int64_t n, int64_t count, const void *params) {
    (void)params;
    for (int64_t i = 0; i < n; i++) ((ACC *)out)[i] = NAME(finish_one)(((const ACC *)acc)[i], COUNT(count));
}

#undef NAME
#undef NAME_
#undef NAME__
#undef OF
#undef ELEMENT
#undef ACC
#undef COUNT
