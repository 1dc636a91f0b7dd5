/* extreme_of.h: the kernels of one dtype and direction; included once for each by extreme.c, with
 *   OF        what the names begin with (max_f32)
 *   T, S      the elements, and signed integers as wide
 *   BETTER    > or <; LE its complement, <= or >=
 *   WORST     what every number replaces
 *   BETTER_V  the better of each pair of lanes, the second where they cannot be compared
 *   NAN_OF_T  a NaN, where T has one
 * Vectors of the compiler's own kind keep VECTORS results side by side. */

#define NAME(x) NAME_(OF, x)
#define NAME_(of, x) NAME__(of, x)
#define NAME__(of, x) of##_##x
#define PER (VECTOR_BYTES / (int)sizeof(T))

typedef T NAME(v) __attribute__((vector_size(VECTOR_BYTES)));
typedef T NAME(element);
typedef S NAME(i) __attribute__((vector_size(VECTOR_BYTES)));
typedef T NAME(u) __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias));
typedef struct {
    T value;
    int64_t index; /* -1: nothing yet */
} NAME(place);

TP_INLINE bool NAME(replaces)(T x, T b) { return !(x LE b) & (b == b); }
TP_INLINE T NAME(pick)(T b, T x) { return NAME(replaces)(x, b) ? x : b; }
TP_INLINE NAME(i) NAME(mask)(NAME(v) x, NAME(v) b) { return ~(x LE b) & (b == b); }
TP_INLINE NAME(v) NAME(pick_v)(NAME(v) b, NAME(v) x) {
    NAME(i) mask = NAME(mask)(x, b);
    return SELECT(NAME(i), mask, x, b);
}

/* ---- values ---- */
static void NAME(init)(void *acc, int64_t n) {
    for (int64_t i = 0; i < n; i++) ((T *)acc)[i] = WORST;
}

/* The best of n elements; a NaN among them is noted in *odd, not in the result. */
TP_INLINE T NAME(of_numbers)(const T *p, int64_t n, bool *odd) {
    T lanes[PER], best = WORST;
    S nans[PER], any = 0;
    if (n < PER) {
        for (int64_t i = 0; i < n; i++) {
            any |= p[i] != p[i];
            best = p[i] BETTER best ? p[i] : best;
        }
        *odd |= any != 0;
        return best;
    }
    const NAME(u) *v = (const NAME(u) *)p;
    int64_t count = n / PER, i = 0;
    NAME(v) b = *(const NAME(u) *)(p + n - PER); /* may overlap others, which does no harm */
    NAME(i) nan = b != b;
    if (count >= 2 * VECTORS) {
        NAME(v) side[VECTORS];
        UNROLL for (int k = 0; k < VECTORS; k++) {
            side[k] = v[k];
            nan |= side[k] != side[k];
        }
        for (i = VECTORS; i + VECTORS <= count; i += VECTORS) {
            UNROLL for (int k = 0; k < VECTORS; k++) {
                NAME(v) x = v[i + k];
                side[k] = BETTER_V(x, side[k]);
                nan |= x != x;
            }
        }
        UNROLL for (int k = 0; k < VECTORS; k++) b = BETTER_V(side[k], b);
    }
    for (; i < count; i++) {
        b = BETTER_V(v[i], b);
        nan |= v[i] != v[i];
    }
    memcpy(lanes, &b, sizeof b);
    memcpy(nans, &nan, sizeof nan);
    UNROLL for (int k = 0; k < PER; k++) {
        any |= nans[k];
        best = lanes[k] BETTER best ? lanes[k] : best;
    }
    *odd |= any != 0;
    return best;
}

static void NAME(fold_runs)(void *acc_, int64_t n, const char *in, int64_t stride, int64_t run_stride, int64_t length,
                            int64_t index) {
    (void)index;
    T *acc = acc_;
    for (int64_t run = 0; run < n; run++, in += stride) {
        if (run_stride == sizeof(T)) {
            bool odd = false;
            T best_of_run = NAME(of_numbers)((const T *)in, length, &odd);
            acc[run] = NAME(pick)(acc[run], odd ? NAN_OF_T : best_of_run);
            continue;
        }
        T best = acc[run];
        for (int64_t i = 0; i < length; i++) best = NAME(pick)(best, *(const T *)(in + i * run_stride));
        acc[run] = best;
    }
}

static void NAME(combine)(void *into_, const void *from_, int64_t n) {
    T *into = into_;
    const T *from = from_;
    for (int64_t i = 0; i < n; i++) into[i] = NAME(pick)(into[i], from[i]);
}

static void NAME(fold_rows)(void *acc_, int64_t n, const char *in, int64_t stride, int64_t row_stride, int64_t rows,
                            int64_t index) {
    (void)index;
    T *acc = acc_;
    int64_t row = 0;
    for (; stride == sizeof(T) && row + 4 <= rows; row += 4, in += 4 * row_stride) {
        const T *a = (const T *)in, *b = (const T *)(in + row_stride);
        const T *c = (const T *)(in + 2 * row_stride), *d = (const T *)(in + 3 * row_stride);
        int64_t i = 0;
        for (; i + PER <= n; i += PER) {
            NAME(v) best = *(NAME(u) *)(acc + i);
            best = NAME(pick_v)(best, *(const NAME(u) *)(a + i));
            best = NAME(pick_v)(best, *(const NAME(u) *)(b + i));
            best = NAME(pick_v)(best, *(const NAME(u) *)(c + i));
            *(NAME(u) *)(acc + i) = NAME(pick_v)(best, *(const NAME(u) *)(d + i));
        }
        for (; i < n; i++) acc[i] = NAME(pick)(NAME(pick)(NAME(pick)(NAME(pick)(acc[i], a[i]), b[i]), c[i]), d[i]);
    }
    for (; row < rows; row++, in += row_stride)
        for (int64_t i = 0; i < n; i++) acc[i] = NAME(pick)(acc[i], *(const T *)(in + i * stride));
}

static void NAME(finish)(void *out, const void *acc, int64_t n, int64_t count, const void *params) {
    (void)count;
    (void)params;
    memcpy(out, acc, (size_t)n * sizeof(T));
}

/* ---- places ---- */
static void NAME(place_init)(void *acc, int64_t n) {
    for (int64_t i = 0; i < n; i++) ((NAME(place) *)acc)[i] = (NAME(place)){WORST, -1};
}

TP_INLINE void NAME(offer)(NAME(place) * acc, T value, int64_t index) {
    if (acc->index >= 0 && !NAME(replaces)(value, acc->value)) return;
    acc->value = value;
    acc->index = index;
}

/* Whether some lane of a comparison is set. */
TP_INLINE bool NAME(some)(NAME(i) mask) {
    uint64_t words[VECTOR_BYTES / 8], any = 0;
    memcpy(words, &mask, sizeof mask);
    UNROLL for (int k = 0; k < VECTOR_BYTES / 8; k++) any |= words[k];
    return any != 0;
}
/* Where the first element equal to `value` is, or the first NaN (`odd`); there is one. */
TP_INLINE int64_t NAME(find)(const T *p, int64_t n, T value, bool odd) {
    int64_t i = 0;
    const NAME(v) wanted = (NAME(v)){0} + value;
    if (odd) {
        while (p[i] == p[i]) i++;
        return i;
    }
    for (; i + 4 * PER <= n; i += 4 * PER) {
        const NAME(u) *v = (const NAME(u) *)(p + i);
        if (NAME(some)((v[0] == wanted) | (v[1] == wanted) | (v[2] == wanted) | (v[3] == wanted))) break;
    }
    for (; i + PER <= n && !NAME(some)(*(const NAME(u) *)(p + i) == wanted); i += PER) continue;
    while (p[i] != value) i++;
    return i;
}

/* A run is searched block by block for its best; the first block that has it, once more for the place. */
TP_INLINE void NAME(place_of_run)(NAME(place) * acc, const T *p, int64_t length, int64_t index) {
    int64_t block = length < 4 * SMALL_BLOCK ? SMALL_BLOCK : length < 4 * LARGE_BLOCK ? length / 4 : LARGE_BLOCK;
    int64_t where = -1;
    bool found_odd = false;
    T best = acc->value;
    for (int64_t i = 0; i < length; i += block) {
        bool odd = false;
        T x = NAME(of_numbers)(p + i, length - i < block ? length - i : block, &odd);
        if (odd) x = NAN_OF_T;
        if ((where >= 0 || acc->index >= 0) && !NAME(replaces)(x, best)) continue;
        best = x;
        where = i;
        found_odd = odd;
        if (odd) break;
    }
    if (where < 0) return;
    int64_t n = length - where < block ? length - where : block;
    *acc = (NAME(place)){best, index + where + NAME(find)(p + where, n, best, found_odd)};
}

static void NAME(place_fold_runs)(void *acc_, int64_t n, const char *in, int64_t stride, int64_t run_stride,
                                  int64_t length, int64_t index) {
    NAME(place) *acc = acc_;
    for (int64_t run = 0; run < n; run++, in += stride) {
        if (run_stride == sizeof(T)) {
            NAME(place_of_run)(acc + run, (const T *)in, length, index);
            continue;
        }
        for (int64_t i = 0; i < length; i++) NAME(offer)(acc + run, *(const T *)(in + i * run_stride), index + i);
    }
}

/* At most COLUMNS columns and FEW_ROWS or MANY_ROWS rows. */
static void NAME(columns)(NAME(place) * acc, int64_t n, const char *in, int64_t row_stride, int64_t rows,
                          int64_t index) {
    T best[COLUMNS];
    S at[COLUMNS];
    memcpy(best, in, (size_t)n * sizeof(T));
    memset(at, 0, (size_t)n * sizeof(S));
    int64_t row = 1;
    for (; row + 4 <= rows; row += 4) {
        const T *r0 = (const T *)(in + row * row_stride), *r1 = (const T *)(in + (row + 1) * row_stride);
        const T *r2 = (const T *)(in + (row + 2) * row_stride), *r3 = (const T *)(in + (row + 3) * row_stride);
        int64_t i = 0;
        for (; i + PER <= n; i += PER) {
            NAME(v) b = *(NAME(u) *)(best + i);
            NAME(i) a, mask;
            memcpy(&a, at + i, sizeof a);
            NAME(v)
            x[4] = {*(const NAME(u) *)(r0 + i), *(const NAME(u) *)(r1 + i), *(const NAME(u) *)(r2 + i),
                    *(const NAME(u) *)(r3 + i)};
            UNROLL for (int k = 0; k < 4; k++) {
                mask = NAME(mask)(x[k], b);
                b = SELECT(NAME(i), mask, x[k], b);
                a = SELECT(NAME(i), mask, (NAME(i)){0} + (S)(row + k), a);
            }
            *(NAME(u) *)(best + i) = b;
            memcpy(at + i, &a, sizeof a);
        }
        for (; i < n; i++) {
            const T x[4] = {r0[i], r1[i], r2[i], r3[i]};
            for (int k = 0; k < 4; k++) {
                at[i] = NAME(replaces)(x[k], best[i]) ? (S)(row + k) : at[i];
                best[i] = NAME(pick)(best[i], x[k]);
            }
        }
    }
    for (; row < rows; row++) {
        const T *r = (const T *)(in + row * row_stride);
        for (int64_t i = 0; i < n; i++) {
            at[i] = NAME(replaces)(r[i], best[i]) ? (S)row : at[i];
            best[i] = NAME(pick)(best[i], r[i]);
        }
    }
    for (int64_t i = 0; i < n; i++) NAME(offer)(acc + i, best[i], index + at[i]);
}

static void NAME(place_fold_rows)(void *acc_, int64_t n, const char *in, int64_t stride, int64_t row_stride,
                                  int64_t rows, int64_t index) {
    NAME(place) *acc = acc_;
    if (stride == sizeof(T) && rows > 1) {
        for (int64_t i = 0; i < n; i += COLUMNS)
            NAME(columns)(acc + i, n - i < COLUMNS ? n - i : COLUMNS, in + i * stride, row_stride, rows, index);
        return;
    }
    for (int64_t row = 0; row < rows; row++, in += row_stride)
        for (int64_t i = 0; i < n; i++) NAME(offer)(acc + i, *(const T *)(in + i * stride), index + row);
}

static void NAME(place_combine)(void *into_, const void *from_, int64_t n) {
    NAME(place) *into = into_;
    const NAME(place) *from = from_;
    for (int64_t i = 0; i < n; i++) {
        bool take = from[i].index >= 0 && (into[i].index < 0 || NAME(replaces)(from[i].value, into[i].value));
        into[i].value = take ? from[i].value : into[i].value;
        into[i].index = take ? from[i].index : into[i].index;
    }
}

static void NAME(place_finish)(void *out, const void *acc, int64_t n, int64_t count, const void *params) {
    (void)count;
    (void)params;
    for (int64_t i = 0; i < n; i++) ((int64_t *)out)[i] = ((const NAME(place) *)acc)[i].index;
}

#undef NAME
#undef NAME_
#undef NAME__
#undef PER
#undef OF
#undef T
#undef S
#undef BETTER
#undef BETTER_V
#undef LE
#undef WORST
#undef NAN_OF_T
