/* recurrent.cl: the gates of one step of recurrent cells: a work-item for each hidden unit of each row.
 *
 * Defined in front: T, and T_SINGLE if that is float. A row of gates has n elements of each gate, one gate after the
 * other. Pointers that are not given (`keep`, `biased`) are not touched. */
#include "tensorpy/math.h"

#ifdef T_SINGLE
#define SIGMOID(x) tp_sigmoid_f32(x)
#define TANH(x) tp_tanh_f32(x)
#else
#define SIGMOID(x) (1 / (1 + exp(-(x))))
#define TANH(x) tanh(x)
#endif

#define UNIT                                           \
    long unit = get_global_id(0), row = unit / n, k = unit % n; \
    if (row >= rows) return;

__kernel void lstm(__global const T *input, long io, __global const T *hidden, long ho, __global T *cell, long co,
                   __global T *out, long oo, __global T *saved, long so, int keep, long rows, long n) {
    UNIT
    __global const T *x = input + io + row * 4 * n + k, *h = hidden + ho + row * 4 * n + k;
    T i = SIGMOID(x[0] + h[0]), f = SIGMOID(x[n] + h[n]), g = TANH(x[2 * n] + h[2 * n]),
      o = SIGMOID(x[3 * n] + h[3 * n]), before = cell[co + unit], after = f * before + i * g;
    cell[co + unit] = after;
    out[oo + unit] = o * TANH(after);
    if (!keep) return;
    __global T *s = saved + so + row * 5 * n + k;
    s[0] = i;
    s[n] = f;
    s[2 * n] = g;
    s[3 * n] = o;
    s[4 * n] = before;
}

__kernel void lstm_backward(__global const T *grad, long go, __global const T *saved, long so, __global T *grad_cell,
                            long co, __global T *out, long oo, long rows, long n) {
    UNIT
    __global const T *s = saved + so + row * 5 * n + k;
    __global T *to = out + oo + row * 4 * n + k;
    T i = s[0], f = s[n], g = s[2 * n], o = s[3 * n], before = s[4 * n], to_out = grad[go + unit];
    T level = TANH(f * before + i * g), total = grad_cell[co + unit] + to_out * o * (1 - level * level);
    to[0] = total * g * i * (1 - i);
    to[n] = total * before * f * (1 - f);
    to[2 * n] = total * i * (1 - g * g);
    to[3 * n] = to_out * level * o * (1 - o);
    grad_cell[co + unit] = total * f;
}

__kernel void gru(__global const T *input, long io, __global const T *hidden, long ho, __global const T *bias, long bo,
                  __global T *state, long sto, __global T *saved, long so, int biased, int keep, long rows, long n) {
    UNIT
    __global const T *x = input + io + row * 3 * n + k, *h = hidden + ho + row * 3 * n + k, *b = bias + bo + k;
    T hr = h[0] + (biased ? b[0] : 0), hz = h[n] + (biased ? b[n] : 0), hn = h[2 * n] + (biased ? b[2 * n] : 0);
    T r = SIGMOID(x[0] + hr), z = SIGMOID(x[n] + hz), c = TANH(x[2 * n] + r * hn);
    state[sto + unit] = c + z * (state[sto + unit] - c);
    if (!keep) return;
    __global T *s = saved + so + row * 4 * n + k;
    s[0] = r;
    s[n] = z;
    s[2 * n] = c;
    s[3 * n] = hn;
}

__kernel void gru_backward(__global const T *saved, long so, __global const T *before, long bo, __global T *grad,
                           long go, __global T *to_input, long io, __global T *to_hidden, long ho, long rows, long n) {
    UNIT
    __global const T *s = saved + so + row * 4 * n + k;
    __global T *in = to_input + io + row * 3 * n + k, *hid = to_hidden + ho + row * 3 * n + k;
    T r = s[0], z = s[n], c = s[2 * n], g = grad[go + unit];
    T to_new = g * (1 - z) * (1 - c * c), to_reset = to_new * s[3 * n] * r * (1 - r),
      to_update = g * (before[bo + unit] - c) * z * (1 - z);
    in[0] = to_reset;
    hid[0] = to_reset;
    in[n] = to_update;
    hid[n] = to_update;
    in[2 * n] = to_new;
    hid[2 * n] = to_new * r;
    grad[go + unit] = g * z;
}
