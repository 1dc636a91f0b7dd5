/* recurrent.c: one step of recurrent cells. A row of gates has n of each, one gate after the other. */
#include "device.h"

#include <math.h>

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double of(const argument *t, int64_t i) { return t->n ? get(t->tensors, i).f : 0; }
static void set(const argument *t, int64_t i, double x) {
    if (t->n) put(t->tensors, i, (number){.f = x});
}

/* recurrent.lstm(Tensor input, Tensor hidden, Tensor(a!) cell, *, Tensor(b!) out, Tensor(c!)? saved) -> () */
static void lstm(const argument *a) {
    int64_t rows = a[2].tensors->sizes[0], n = a[2].tensors->sizes[1];
    for (int64_t unit = 0; unit < rows * n; unit++) {
        int64_t at_gate = unit / n * 4 * n + unit % n, kept = unit / n * 5 * n + unit % n;
        double gate[4], before = of(&a[2], unit);
        for (int i = 0; i < 4; i++) {
            double x = of(&a[0], at_gate + i * n) + of(&a[1], at_gate + i * n);
            gate[i] = i == 2 ? tanh(x) : sigmoid(x);
            set(&a[4], kept + i * n, gate[i]);
        }
        set(&a[4], kept + 4 * n, before);
        double after = gate[1] * before + gate[0] * gate[2];
        set(&a[2], unit, after);
        set(&a[3], unit, gate[3] * tanh(after));
    }
}

/* recurrent.lstm_backward(Tensor grad, Tensor saved, Tensor(a!) grad_cell, *, Tensor(b!) out) -> () */
static void lstm_backward(const argument *a) {
    int64_t rows = a[2].tensors->sizes[0], n = a[2].tensors->sizes[1];
    for (int64_t unit = 0; unit < rows * n; unit++) {
        int64_t to = unit / n * 4 * n + unit % n, kept = unit / n * 5 * n + unit % n;
        double i = of(&a[1], kept), f = of(&a[1], kept + n), g = of(&a[1], kept + 2 * n), o = of(&a[1], kept + 3 * n);
        double before = of(&a[1], kept + 4 * n), grad = of(&a[0], unit), level = tanh(f * before + i * g);
        double total = of(&a[2], unit) + grad * o * (1 - level * level);
        set(&a[3], to, total * g * i * (1 - i));
        set(&a[3], to + n, total * before * f * (1 - f));
        set(&a[3], to + 2 * n, total * i * (1 - g * g));
        set(&a[3], to + 3 * n, grad * level * o * (1 - o));
        set(&a[2], unit, total * f);
    }
}

/* recurrent.gru(Tensor input, Tensor hidden, Tensor? bias, Tensor(a!) state, *, Tensor(b!)? saved) -> () */
static void gru(const argument *a) {
    int64_t rows = a[3].tensors->sizes[0], n = a[3].tensors->sizes[1];
    for (int64_t unit = 0; unit < rows * n; unit++) {
        int64_t k = unit % n, at_gate = unit / n * 3 * n + k, kept = unit / n * 4 * n + k;
        double x[3], h[3], state = of(&a[3], unit);
        for (int i = 0; i < 3; i++) {
            x[i] = of(&a[0], at_gate + i * n);
            h[i] = of(&a[1], at_gate + i * n) + of(&a[2], k + i * n);
        }
        double r = sigmoid(x[0] + h[0]), z = sigmoid(x[1] + h[1]), c = tanh(x[2] + r * h[2]);
        set(&a[3], unit, c + z * (state - c));
        set(&a[4], kept, r);
        set(&a[4], kept + n, z);
        set(&a[4], kept + 2 * n, c);
        set(&a[4], kept + 3 * n, h[2]);
    }
}

/* recurrent.gru_backward(Tensor saved, Tensor before, Tensor(a!) grad, *, Tensor(b!) to_input, Tensor(c!) to_hidden) */
static void gru_backward(const argument *a) {
    int64_t rows = a[2].tensors->sizes[0], n = a[2].tensors->sizes[1];
    for (int64_t unit = 0; unit < rows * n; unit++) {
        int64_t to = unit / n * 3 * n + unit % n, kept = unit / n * 4 * n + unit % n;
        double r = of(&a[0], kept), z = of(&a[0], kept + n), c = of(&a[0], kept + 2 * n), grad = of(&a[2], unit);
        double new = grad * (1 - z) * (1 - c * c), reset = new * of(&a[0], kept + 3 * n) * r * (1 - r);
        double update = grad * (of(&a[1], unit) - c) * z * (1 - z);
        const double inputs[] = {reset, update, new}, hidden[] = {reset, update, new * r};
        for (int i = 0; i < 3; i++) {
            set(&a[3], to + i * n, inputs[i]);
            set(&a[4], to + i * n, hidden[i]);
        }
        set(&a[2], unit, grad * z);
    }
}

PRIMITIVES({"recurrent.lstm", lstm}, {"recurrent.lstm_backward", lstm_backward}, {"recurrent.gru", gru},
           {"recurrent.gru_backward", gru_backward})
