/* scan_of.h: a running operation on numbers of one dtype; included once for each by scan.c, with OF what the names
 * begin with and the kernel is called (cumsum_f32), T the elements, A what they are accumulated in, OP(a, b) and START,
 * which changes nothing. */

#define NAME(x) NAME_(OF, x)
#define NAME_(of, x) NAME__(of, x)
#define NAME__(of, x) of##_##x

typedef T NAME(elements) __attribute__((vector_size(LANES * sizeof(T))));
typedef A NAME(lanes) __attribute__((vector_size(LANES * sizeof(A))));

static void NAME(line)(T *out, const T *in, int64_t n) {
    const NAME(lanes) start = (NAME(lanes)){0} + START;
    NAME(lanes) carry = start;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        if (tp_ends_at(i)) return;
        NAME(elements) given;
        memcpy(&given, in + i, sizeof given);
        NAME(lanes) x = __builtin_convertvector(given, NAME(lanes));
        TAKEN_IN(start, x, OP)
        NAME(elements) done = __builtin_convertvector(OP(carry, x), NAME(elements));
        memcpy(out + i, &done, sizeof done);
        carry = OP(carry, LAST(x));
    }
    for (A acc = carry[0]; i < n; i++) {
        acc = OP(acc, (A)in[i]);
        out[i] = (T)acc;
    }
}

static void OF(void *out_, void *unused, const void *in_, int64_t n, int64_t stride, int64_t width) {
    T *out = out_;
    const T *in = in_;
    (void)unused;
    if (stride == 1) {
        NAME(line)(out, in, n);
        return;
    }
    A acc[COLUMNS];
    for (int64_t k = 0; k < width; k++) acc[k] = START;
    for (int64_t i = 0; i < n && !tp_ends_at(i); i++, in += stride, out += stride)
        for (int64_t k = 0; k < width; k++) {
            acc[k] = OP(acc[k], (A)in[k]);
            out[k] = (T)acc[k];
        }
}

#undef NAME
#undef NAME_
#undef NAME__
#undef OF
#undef T
#undef A
#undef OP
#undef START
