/* scan_of.h: a running operation on numbers of one dtype; included once for each by scan.c, with OF what the names
 * begin with and the kernel is called (cumsum_f32), T the elements, A what they are accumulated in, OP(a, b) and START,
 * which changes nothing. */

#define NAME(x) NAME_(OF, x)
#define NAME_(of, x) NAME__(of, x)
#define NAME__(of, x) of##_##x

static void NAME(line)(T *out, const T *in, int64_t n) {
    A carry = START;
    for (; n >= 8 * SEGMENTS;) {
        int64_t part = (n < BLOCK ? n : BLOCK) / SEGMENTS;
        A acc[SEGMENTS];
        for (int k = 0; k < SEGMENTS; k++) {
            A lane[8] = {START, START, START, START, START, START, START, START}, before = carry;
            const T *p = in + k * part;
            int64_t i = 0;
            for (; i + 8 <= part; i += 8)
                for (int j = 0; j < 8; j++) lane[j] = OP(lane[j], (A)p[i + j]);
            for (; i < part; i++) lane[0] = OP(lane[0], (A)p[i]);
            for (int half = 4; half; half /= 2)
                for (int j = 0; j < half; j++) lane[j] = OP(lane[j], lane[j + half]);
            acc[k] = before;
            carry = OP(carry, lane[0]);
        }
        for (int64_t i = 0; i < part; i++) UNROLL for (int k = 0; k < SEGMENTS; k++) {
                acc[k] = OP(acc[k], (A)in[k * part + i]);
                out[k * part + i] = (T)acc[k];
            }
        in += part * SEGMENTS;
        out += part * SEGMENTS;
        n -= part * SEGMENTS;
    }
    for (int64_t i = 0; i < n; i++) {
        carry = OP(carry, (A)in[i]);
        out[i] = (T)carry;
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
    for (int64_t i = 0; i < n; i++, in += stride, out += stride)
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
