/* extreme_of.h: the kernels of one order of one dtype; included once for each by extreme.c, with
 *   OF        what the names begin with (f32_max)
 *   T, S      the elements, and signed integers as wide
 *   BETTER    > or <; LE its complement, <= or >=
 *   WORST     what every number replaces
 *   BETTER_V  the better of each pair of lanes, the second where they cannot be compared
 *   ODD_V     whether one of two vectors has a NaN, as ODDS
 *   NAN_OF_T  a NaN, where T has one
 *   KEY(x)    what is compared in place of the element or vector x, made with `flip`; KEY(KEY(x)) is x. All but what is
 *             read from a tensor is a key.
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

/* Whether some lane of a comparison is set. */
TP_INLINE bool NAME(some)(NAME(i) mask) { return bits_of((bytes)mask) != 0; }

/* The best of n >= PER elements in lanes; *nan: whether there is a NaN. */
TP_INLINE NAME(v) NAME(of_lanes)(const T *p, int64_t n, T flip, bool *nan) {
    const NAME(u) *v = (const NAME(u) *)p;
    int64_t count = n / PER, i = 0;
    NAME(v) b = KEY(*(const NAME(u) *)(p + n - PER)); /* may overlap others, which does no harm */
    ODDS(NAME(i)) odd = ODD_V(b, b);
    if (count >= 2 * VECTORS) {
        NAME(v) side[VECTORS];
        UNROLL for (int k = 0; k < VECTORS; k++) side[k] = b;
        for (; i + VECTORS <= count; i += VECTORS) {
            UNROLL for (int k = 0; k < VECTORS; k += 2) {
                NAME(v) x = KEY(v[i + k]), y = KEY(v[i + k + 1]);
                TP_FETCH_AHEAD(v + i + k);
                if (VECTOR_BYTES == 64) TP_FETCH_AHEAD(v + i + k + 1);
                side[k] = BETTER_V(x, side[k]);
                side[k + 1] = BETTER_V(y, side[k + 1]);
                odd |= ODD_V(x, y);
            }
        }
        UNROLL for (int half = VECTORS / 2; half; half /= 2) {
            UNROLL for (int k = 0; k < half; k++) side[k] = BETTER_V(side[k + half], side[k]);
        }
        b = side[0];
    }
    for (; i < count; i++) {
        NAME(v) x = KEY(v[i]);
        b = BETTER_V(x, b);
        odd |= ODD_V(x, x);
    }
    *nan = SOME_ODD(NAME(some), odd);
    return b;
}

TP_INLINE T NAME(best_lane)(NAME(v) b) {
    T lanes[PER];
    memcpy(lanes, &b, sizeof b);
    UNROLL for (int half = PER / 2; half; half /= 2) {
        UNROLL for (int k = 0; k < half; k++) lanes[k] = lanes[k + half] BETTER lanes[k] ? lanes[k + half] : lanes[k];
    }
    return lanes[0];
}

/* The best of n elements; a NaN among them is noted in *odd, not in the result. */
TP_INLINE T NAME(of_numbers)(const T *p, int64_t n, T flip, bool *odd) {
    if (n >= PER) {
        bool nan;
        NAME(v) b = NAME(of_lanes)(p, n, flip, &nan);
        *odd |= nan;
        return NAME(best_lane)(b);
    }
    T best = WORST;
    for (int64_t i = 0; i < n; i++) {
        T x = KEY(p[i]);
        *odd |= x != x;
        best = x BETTER best ? x : best;
    }
    return best;
}

static void NAME(fold_runs)(void *acc_, int64_t n, const char *in, int64_t stride, int64_t run_stride, int64_t length,
                            T flip) {
    T *acc = acc_;
    for (int64_t run = 0; run < n; run++, in += stride) {
        if (run_stride == sizeof(T)) {
            bool odd = false;
            T best_of_run = NAME(of_numbers)((const T *)in, length, flip, &odd);
            acc[run] = NAME(pick)(acc[run], odd ? NAN_OF_T : best_of_run);
            continue;
        }
        T best = acc[run];
        for (int64_t i = 0; i < length; i++) best = NAME(pick)(best, KEY(*(const T *)(in + i * run_stride)));
        acc[run] = best;
    }
}

static void NAME(combine)(void *into_, const void *from_, int64_t n) {
    T *into = into_;
    const T *from = from_;
    for (int64_t i = 0; i < n; i++) into[i] = NAME(pick)(into[i], from[i]);
}

static void NAME(fold_rows)(void *acc_, int64_t n, const char *in, int64_t stride, int64_t row_stride, int64_t rows,
                            T flip) {
    T *acc = acc_;
    int64_t row = 0;
    for (; stride == sizeof(T) && row + 4 <= rows; row += 4, in += 4 * row_stride) {
        const T *a = (const T *)in, *b = (const T *)(in + row_stride);
        const T *c = (const T *)(in + 2 * row_stride), *d = (const T *)(in + 3 * row_stride);
        int64_t i = 0;
        for (; i + PER <= n; i += PER) {
            NAME(v) best = *(NAME(u) *)(acc + i);
            best = NAME(pick_v)(best, KEY(*(const NAME(u) *)(a + i)));
            best = NAME(pick_v)(best, KEY(*(const NAME(u) *)(b + i)));
            best = NAME(pick_v)(best, KEY(*(const NAME(u) *)(c + i)));
            *(NAME(u) *)(acc + i) = NAME(pick_v)(best, KEY(*(const NAME(u) *)(d + i)));
        }
        for (; i < n; i++) {
            T best = NAME(pick)(NAME(pick)(acc[i], KEY(a[i])), KEY(b[i]));
            acc[i] = NAME(pick)(NAME(pick)(best, KEY(c[i])), KEY(d[i]));
        }
    }
    for (; row < rows; row++, in += row_stride)
        for (int64_t i = 0; i < n; i++) acc[i] = NAME(pick)(acc[i], KEY(*(const T *)(in + i * stride)));
}

static void NAME(finish)(void *out, const void *acc, int64_t n, T flip) {
    for (int64_t i = 0; i < n; i++) ((T *)out)[i] = KEY(((const T *)acc)[i]);
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

/* Where the first element equal to `value` is, or the first NaN (`odd`); there is one. */
TP_INLINE int64_t NAME(find)(const T *p, int64_t n, T value, bool odd) {
    int64_t i = 0, place = 0;
    const NAME(v) wanted = (NAME(v)){0} + value;
    if (odd) {
        while (p[i] == p[i]) i++;
        return i;
    }
    for (; i + 4 * PER <= n; i += 4 * PER) {
        const NAME(u) *v = (const NAME(u) *)(p + i);
        if (!NAME(some)((v[0] == wanted) | (v[1] == wanted) | (v[2] == wanted) | (v[3] == wanted))) continue;
        UNROLL for (int k = 3; k >= 0; k--) { /* without a branch that nothing foretells */
            uint64_t bits = bits_of((bytes)(v[k] == wanted));
            int64_t at = k * PER + __builtin_ctzll(bits | 1ull << 63) / (int)sizeof(T);
            place = bits ? at : place;
        }
        return i + place;
    }
    while (p[i] != value) i++;
    return i;
}

/* The best of a block, or a NaN that it has, to *best; false if it does not replace what is there, which the lanes show
 * at less cost than their own best would. */
TP_INLINE bool NAME(better_in)(const T *p, int64_t n, T flip, bool first, T *best) {
    bool odd = false;
    T found;
    if (n >= PER) {
        NAME(v) b = NAME(of_lanes)(p, n, flip, &odd);
        if (!first && !odd && !NAME(some)(b BETTER((NAME(v)){0} + *best))) return false;
        found = NAME(best_lane)(b);
    } else {
        found = NAME(of_numbers)(p, n, flip, &odd);
    }
    if (odd) found = NAN_OF_T;
    if (!first && !NAME(replaces)(found, *best)) return false;
    *best = found;
    return true;
}

/* A run is searched block by block for its best; the first block that has it, once more for the place. */
TP_INLINE void NAME(place_of_run)(NAME(place) * acc, const T *p, int64_t length, int64_t index, T flip) {
    int64_t block = length < 4 * SMALL_BLOCK ? SMALL_BLOCK : length < 4 * LARGE_BLOCK ? length / 4 : LARGE_BLOCK;
    int64_t where = -1;
    T best = acc->value;
    if (acc->index >= 0 && best != best) return;
    for (int64_t i = 0; i < length && best == best; i += block) {
        bool first = where < 0 && acc->index < 0;
        if (NAME(better_in)(p + i, length - i < block ? length - i : block, flip, first, &best)) where = i;
    }
    if (where < 0) return;
    int64_t n = length - where < block ? length - where : block;
    *acc = (NAME(place)){best, index + where + NAME(find)(p + where, n, KEY(best), best != best)};
}

static void NAME(place_fold_runs)(void *acc_, int64_t n, const char *in, int64_t stride, int64_t run_stride,
                                  int64_t length, int64_t index, T flip) {
    NAME(place) *acc = acc_;
    for (int64_t run = 0; run < n; run++, in += stride) {
        if (run_stride == sizeof(T)) {
            NAME(place_of_run)(acc + run, (const T *)in, length, index, flip);
            continue;
        }
        for (int64_t i = 0; i < length; i++) NAME(offer)(acc + run, KEY(*(const T *)(in + i * run_stride)), index + i);
    }
}

/* At most COLUMNS columns and FEW_ROWS or MANY_ROWS rows. */
static void NAME(columns)(NAME(place) * acc, int64_t n, const char *in, int64_t row_stride, int64_t rows, int64_t index,
                          T flip) {
    T best[COLUMNS];
    S at[COLUMNS];
    for (int64_t i = 0; i < n; i++) best[i] = KEY(((const T *)in)[i]);
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
            const NAME(v) x[4] = {KEY(*(const NAME(u) *)(r0 + i)), KEY(*(const NAME(u) *)(r1 + i)),
                                  KEY(*(const NAME(u) *)(r2 + i)), KEY(*(const NAME(u) *)(r3 + i))};
            UNROLL for (int k = 0; k < 4; k++) {
                mask = NAME(mask)(x[k], b);
                b = SELECT(NAME(i), mask, x[k], b);
                a = SELECT(NAME(i), mask, (NAME(i)){0} + (S)(row + k), a);
            }
            *(NAME(u) *)(best + i) = b;
            memcpy(at + i, &a, sizeof a);
        }
        for (; i < n; i++) {
            const T x[4] = {KEY(r0[i]), KEY(r1[i]), KEY(r2[i]), KEY(r3[i])};
            for (int k = 0; k < 4; k++) {
                at[i] = NAME(replaces)(x[k], best[i]) ? (S)(row + k) : at[i];
                best[i] = NAME(pick)(best[i], x[k]);
            }
        }
    }
    for (; row < rows; row++) {
        const T *r = (const T *)(in + row * row_stride);
        for (int64_t i = 0; i < n; i++) {
            T x = KEY(r[i]);
            at[i] = NAME(replaces)(x, best[i]) ? (S)row : at[i];
            best[i] = NAME(pick)(best[i], x);
        }
    }
    for (int64_t i = 0; i < n; i++) NAME(offer)(acc + i, best[i], index + at[i]);
}

static void NAME(place_fold_rows)(void *acc_, int64_t n, const char *in, int64_t stride, int64_t row_stride,
                                  int64_t rows, int64_t index, T flip) {
    NAME(place) *acc = acc_;
    if (stride == sizeof(T) && rows > 1) {
        for (int64_t i = 0; i < n; i += COLUMNS)
            NAME(columns)(acc + i, n - i < COLUMNS ? n - i : COLUMNS, in + i * stride, row_stride, rows, index, flip);
        return;
    }
    for (int64_t row = 0; row < rows; row++, in += row_stride)
        for (int64_t i = 0; i < n; i++) NAME(offer)(acc + i, KEY(*(const T *)(in + i * stride)), index + row);
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
#undef ODD_V
#undef LE
#undef WORST
#undef NAN_OF_T
#undef KEY
