/* question_of.h: whether any or all elements of one dtype are other than zero, and how many; included once for each by
 * fold.c, with OF what the names begin with (f32), T the elements, C an integer as wide to count in, and IS_ZERO(x).
 * `all` looks for a zero, and what is found is turned round at the end. */

#define NAME(x) NAME_(OF, x)
#define NAME_(of, x) NAME__(of, x)
#define NAME__(of, x) of##_##x

/* How many of n elements are zero, or are not; n is at most CHUNK. */
TP_INLINE C NAME(number)(const T *p, int64_t n, const bool zero) {
    C count = 0;
    for (int64_t i = 0; i < n; i++) count += IS_ZERO(p[i]) == zero;
    return count;
}

TP_INLINE void NAME(look_in_runs)(uint8_t *acc, int64_t n, const char *in, int64_t stride, int64_t run_stride,
                                  int64_t length, const bool zero) {
    for (int64_t run = 0; run < n; run++, in += stride) {
        bool found = acc[run];
        int64_t i = 0;
        for (; run_stride == sizeof(T) && !found && i + CHUNK <= length; i += CHUNK)
            found = NAME(number)((const T *)in + i, CHUNK, zero) != 0;
        for (; !found && i < length; i++) found = NAME(number)((const T *)(in + i * run_stride), 1, zero) != 0;
        acc[run] = found;
    }
}

TP_INLINE void NAME(look_in_rows)(uint8_t *acc, int64_t n, const char *in, int64_t stride, int64_t row_stride,
                                  int64_t rows, const bool zero) {
    for (int64_t row = 0; row < rows; row++, in += row_stride) {
        if (stride == sizeof(T))
            for (int64_t i = 0; i < n; i++) acc[i] |= IS_ZERO(((const T *)in)[i]) == zero;
        else
            for (int64_t i = 0; i < n; i++) acc[i] |= IS_ZERO(*(const T *)(in + i * stride)) == zero;
    }
}

static void NAME(any_fold_runs)(void *acc, int64_t n, const char *in, int64_t stride, int64_t run_stride,
                                int64_t length, int64_t index TP_UNUSED) {
    NAME(look_in_runs)(acc, n, in, stride, run_stride, length, false);
}
static void NAME(any_fold_rows)(void *acc, int64_t n, const char *in, int64_t stride, int64_t row_stride, int64_t rows,
                                int64_t index TP_UNUSED) {
    NAME(look_in_rows)(acc, n, in, stride, row_stride, rows, false);
}
static void NAME(all_fold_runs)(void *acc, int64_t n, const char *in, int64_t stride, int64_t run_stride,
                                int64_t length, int64_t index TP_UNUSED) {
    NAME(look_in_runs)(acc, n, in, stride, run_stride, length, true);
}
static void NAME(all_fold_rows)(void *acc, int64_t n, const char *in, int64_t stride, int64_t row_stride, int64_t rows,
                                int64_t index TP_UNUSED) {
    NAME(look_in_rows)(acc, n, in, stride, row_stride, rows, true);
}

static void NAME(count_fold_runs)(void *acc_, int64_t n, const char *in, int64_t stride, int64_t run_stride,
                                  int64_t length, int64_t index TP_UNUSED) {
    int64_t *acc = acc_;
    for (int64_t run = 0; run < n; run++, in += stride) {
        int64_t i = 0;
        for (; run_stride == sizeof(T) && i + CHUNK <= length; i += CHUNK)
            acc[run] += (int64_t)NAME(number)((const T *)in + i, CHUNK, false);
        for (; i < length; i++) acc[run] += !IS_ZERO(*(const T *)(in + i * run_stride));
    }
}
static void NAME(count_fold_rows)(void *acc_, int64_t n, const char *in, int64_t stride, int64_t row_stride,
                                  int64_t rows, int64_t index TP_UNUSED) {
    int64_t *acc = acc_;
    for (int64_t row = 0; row < rows; row++, in += row_stride)
        for (int64_t i = 0; i < n; i++) acc[i] += !IS_ZERO(*(const T *)(in + i * stride));
}

#undef NAME
#undef NAME_
#undef NAME__
#undef OF
#undef T
#undef C
#undef IS_ZERO
