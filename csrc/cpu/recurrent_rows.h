/* recurrent_rows.h: the loops of recurrent.h in one dtype; part of recurrent_loops.c, which includes it per dtype with
 * T (the dtype) and OF(name) (name with the dtype's suffix) defined.
 *
 * A row of gates has n elements of each gate, one gate after the other. */

/* `keep` is known where this is called. */
TP_INLINE void OF(lstm_row)(const T *x, const T *h, T *restrict cell, T *restrict out, T *restrict saved, int64_t n,
                            const bool keep) {
    TP_IVDEP for (int64_t k = 0; k < n; k++) {
        T i = OF(tp_sigmoid)(x[k] + h[k]), f = OF(tp_sigmoid)(x[n + k] + h[n + k]),
          g = OF(tp_tanh)(x[2 * n + k] + h[2 * n + k]), o = OF(tp_sigmoid)(x[3 * n + k] + h[3 * n + k]);
        T before = cell[k], after = f * before + i * g;
        cell[k] = after;
        out[k] = o * OF(tp_tanh)(after);
        if (keep) {
            saved[k] = i;
            saved[n + k] = f;
            saved[2 * n + k] = g;
            saved[3 * n + k] = o;
            saved[4 * n + k] = before;
        }
    }
}

static void OF(lstm)(const void *input, const void *hidden, void *cell, void *out, void *saved, int64_t n,
                     int64_t first, int64_t last) {
    for (int64_t r = first; r < last; r++) {
        const T *x = (const T *)input + r * 4 * n, *h = (const T *)hidden + r * 4 * n;
        T *c = (T *)cell + r * n, *to = (T *)out + r * n;
        if (saved) OF(lstm_row)(x, h, c, to, (T *)saved + r * 5 * n, n, true);
        else OF(lstm_row)(x, h, c, to, NULL, n, false);
    }
}

static void OF(lstm_backward)(const void *grad, const void *saved, void *grad_cell, void *out, int64_t n, int64_t first,
                              int64_t last) {
    for (int64_t r = first; r < last; r++) {
        const T *g_out = (const T *)grad + r * n, *s = (const T *)saved + r * 5 * n;
        T *restrict g_cell = (T *)grad_cell + r * n, *restrict to = (T *)out + r * 4 * n;
        TP_IVDEP for (int64_t k = 0; k < n; k++) {
            T i = s[k], f = s[n + k], g = s[2 * n + k], o = s[3 * n + k], before = s[4 * n + k];
            T level = OF(tp_tanh)(f * before + i * g), total = g_cell[k] + g_out[k] * o * (1 - level * level);
            to[k] = total * g * i * (1 - i);
            to[n + k] = total * before * f * (1 - f);
            to[2 * n + k] = total * i * (1 - g * g);
            to[3 * n + k] = g_out[k] * level * o * (1 - o);
            g_cell[k] = total * f;
        }
    }
}

/* `biased` and `keep` are constants where this is called, so that its loops have no branches on them. */
TP_INLINE void OF(gru_row)(const T *x, const T *h, const T *bias, T *restrict state, T *restrict saved, int64_t n,
                           const bool biased, const bool keep) {
    TP_IVDEP for (int64_t k = 0; k < n; k++) {
        T hr = h[k] + (biased ? bias[k] : 0), hz = h[n + k] + (biased ? bias[n + k] : 0),
          hn = h[2 * n + k] + (biased ? bias[2 * n + k] : 0);
        T r = OF(tp_sigmoid)(x[k] + hr), z = OF(tp_sigmoid)(x[n + k] + hz), c = OF(tp_tanh)(x[2 * n + k] + r * hn);
        state[k] = c + z * (state[k] - c);
        if (keep) {
            saved[k] = r;
            saved[n + k] = z;
            saved[2 * n + k] = c;
            saved[3 * n + k] = hn;
        }
    }
}

static void OF(gru)(const void *input, const void *hidden, const void *bias, void *state, void *saved, int64_t n,
                    int64_t first, int64_t last) {
    for (int64_t r = first; r < last; r++) {
        const T *x = (const T *)input + r * 3 * n, *h = (const T *)hidden + r * 3 * n;
        T *to = (T *)state + r * n, *kept = saved ? (T *)saved + r * 4 * n : NULL;
        if (bias && kept) OF(gru_row)(x, h, bias, to, kept, n, true, true);
        else if (bias) OF(gru_row)(x, h, bias, to, NULL, n, true, false);
        else if (kept) OF(gru_row)(x, h, NULL, to, kept, n, false, true);
        else OF(gru_row)(x, h, NULL, to, NULL, n, false, false);
    }
}

static void OF(gru_backward)(const void *saved, const void *before_, void *grad_, void *to_input, void *to_hidden,
                             int64_t n, int64_t first, int64_t last) {
    for (int64_t r = first; r < last; r++) {
        const T *s = (const T *)saved + r * 4 * n, *before = (const T *)before_ + r * n;
        T *restrict grad = (T *)grad_ + r * n, *restrict in = (T *)to_input + r * 3 * n,
                    *restrict hid = (T *)to_hidden + r * 3 * n;
        for (int64_t k = 0; k < n; k++) {
            T reset = s[k], z = s[n + k], c = s[2 * n + k], g = grad[k];
            T to_new = g * (1 - z) * (1 - c * c), to_reset = to_new * s[3 * n + k] * reset * (1 - reset);
            in[k] = hid[k] = to_reset;
            in[n + k] = hid[n + k] = g * (before[k] - c) * z * (1 - z);
            in[2 * n + k] = to_new;
            hid[2 * n + k] = to_new * reset;
            grad[k] = g * z;
        }
    }
}
