/* norm.c: softmax and normalisations. Statistics are doubles. */
#include "device.h"

#include <math.h>

/* ---- softmax ---- */

typedef struct {
    view x_lines, x_line, y_lines, y_line, out_lines, out_line;
} lines;

static double at_line(const view *lines_, const view *line, int64_t k, int64_t i) {
    return number_at(at(lines_, k) + (at(line, i) - line->data), lines_->dtype).f;
}
static void to_line(const view *lines_, const view *line, int64_t k, int64_t i, double x) {
    number_to(at(lines_, k) + (at(line, i) - line->data), lines_->dtype, (number){.f = x});
}

/* softmax.forward(Tensor x, int dim, *, Tensor(a!) out) -> () */
static void softmax(const argument *a, bool logs) {
    const view *x = a[0].tensors, *out = a[2].tensors;
    int64_t n = x->ndim > 0;
    view from = across(x, &a[1].i, n), from_line = along(x, &a[1].i, n);
    view to = across(out, &a[1].i, n), to_line_ = along(out, &a[1].i, n);
    for (int64_t k = 0; k < from.numel; k++) {
        double top = -INFINITY, sum = 0;
        for (int64_t i = 0; i < from_line.numel; i++) {
            double v = at_line(&from, &from_line, k, i);
            top = v > top || isnan(v) ? v : top;
        }
        for (int64_t i = 0; i < from_line.numel; i++) sum += exp(at_line(&from, &from_line, k, i) - top);
        for (int64_t i = 0; i < from_line.numel; i++) {
            double v = at_line(&from, &from_line, k, i) - top;
            to_line(&to, &to_line_, k, i, logs ? v - log(sum) : exp(v) / sum);
        }
    }
}
static void softmax_forward(const argument *a) { softmax(a, false); }
static void softmax_log(const argument *a) { softmax(a, true); }

/* softmax.backward(Tensor grad, Tensor output, int dim, *, Tensor(a!) out) -> () */
static void softmax_gradient(const argument *a, bool logs) {
    const view *grad = a[0].tensors, *output = a[1].tensors, *out = a[3].tensors;
    int64_t n = grad->ndim > 0;
    view g = across(grad, &a[2].i, n), g_line = along(grad, &a[2].i, n), y = across(output, &a[2].i, n);
    view y_line = along(output, &a[2].i, n), to = across(out, &a[2].i, n), to_line_ = along(out, &a[2].i, n);
    for (int64_t k = 0; k < g.numel; k++) {
        double sum = 0;
        for (int64_t i = 0; i < g_line.numel; i++)
            sum += at_line(&g, &g_line, k, i) * (logs ? 1 : at_line(&y, &y_line, k, i));
        for (int64_t i = 0; i < g_line.numel; i++) {
            double of = at_line(&g, &g_line, k, i), made = at_line(&y, &y_line, k, i);
            to_line(&to, &to_line_, k, i, logs ? of - exp(made) * sum : made * (of - sum));
        }
    }
}
static void softmax_backward(const argument *a) { softmax_gradient(a, false); }
static void softmax_log_backward(const argument *a) { softmax_gradient(a, true); }

/* ---- normalisations ---- */

static tp_norm_rows rows_of(const argument *words) {
    tp_norm_rows r = {0};
    for (int64_t i = 0; i < words->n && i < (int64_t)(sizeof r / sizeof(int64_t)); i++)
        ((int64_t *)&r)[i] = words->ints[i];
    return r;
}
/* The place of element i of a row, and of its weight. */
static int64_t element_of(const tp_norm_rows *w, int64_t row, int64_t i) {
    return row * w->first + i / w->length * w->next + i % w->length;
}
static int64_t weight_of(const tp_norm_rows *w, int64_t row, int64_t i) {
    return w->each ? i : row % w->groups * w->per_row + i / w->length * w->per_run;
}
static double value(const argument *t, int64_t i, double otherwise) { return t->n ? get(t->tensors, i).f : otherwise; }
static void set(const argument *t, int64_t i, double x) {
    if (t->n) put(t->tensors, i, (number){.f = x});
}

static void normalise(const tp_norm_rows *w, const argument *a, const view *out, int64_t row, double mean,
                      double rstd) {
    for (int64_t i = 0; i < w->runs * w->length; i++) {
        int64_t e = element_of(w, row, i), k = weight_of(w, row, i);
        double x = (get(a[0].tensors, e).f - mean) * rstd * value(&a[1], k, 1) + value(&a[2], k, 0);
        put(out, e, (number){.f = x});
    }
}

/* The sum of a row's squared distances from the mean. */
static double squares_of(const tp_norm_rows *w, const view *x, int64_t row, double mean) {
    double sum = 0;
    for (int64_t i = 0; i < w->runs * w->length; i++) {
        double v = get(x, element_of(w, row, i)).f - mean;
        sum += v * v;
    }
    return sum;
}

static void move(const argument *running, int64_t row, double momentum, double x) {
    if (running->n && momentum != 0) set(running, row, (1 - momentum) * get(running->tensors, row).f + momentum * x);
}

/* norm.forward(Tensor x, Tensor? weight, Tensor? bias, int[] rows, float eps, float momentum, *, Tensor(a!) out,
 * Tensor(b!) mean, Tensor(c!) rstd, Tensor(d!)? running_mean, Tensor(e!)? running_var) -> () */
static void norm_forward(const argument *a) {
    tp_norm_rows w = rows_of(&a[3]);
    int64_t n = w.runs * w.length;
    for (int64_t r = 0; r < w.rows; r++) {
        double mean = 0;
        for (int64_t i = 0; i < n; i++) mean += get(a[0].tensors, element_of(&w, r, i)).f;
        mean /= (double)n;
        double squares = squares_of(&w, a[0].tensors, r, mean), rstd = 1 / sqrt(squares / (double)n + a[4].f);
        normalise(&w, a, a[6].tensors, r, mean, rstd);
        set(&a[7], r, mean), set(&a[8], r, rstd);
        move(&a[9], r, a[5].f, mean), move(&a[10], r, a[5].f, n > 1 ? squares / (double)(n - 1) : squares);
    }
}

/* norm.rms(Tensor x, Tensor? weight, int[] rows, float eps, *, Tensor(a!) out, Tensor(b!) rstd) -> () */
static void norm_rms(const argument *a) {
    tp_norm_rows w = rows_of(&a[2]);
    const argument read[] = {a[0], a[1], {0}};
    for (int64_t r = 0; r < w.rows; r++) {
        double rstd = 1 / sqrt(squares_of(&w, a[0].tensors, r, 0) / (double)w.length + a[3].f);
        normalise(&w, read, a[4].tensors, r, 0, rstd);
        set(&a[5], r, rstd);
    }
}

/* norm.frozen(Tensor x, Tensor? weight, Tensor? bias, Tensor mean, Tensor var, int[] rows, float eps, *, Tensor(a!)
 * out)
 * -> () */
static void norm_frozen(const argument *a) {
    tp_norm_rows w = rows_of(&a[5]);
    for (int64_t r = 0; r < w.rows; r++)
        normalise(&w, a, a[7].tensors, r, value(&a[3], r, 0), 1 / sqrt(value(&a[4], r, 0) + a[6].f));
}

/* What of a row's statistics moves with its elements. */
typedef enum { BOTH, ABOUT_ZERO, FROZEN } moving;

/* Of a row: the sums of grad * weight, and of that times the distance from the mean. */
static void row_backward(const tp_norm_rows *w, const argument *a, int64_t r, double mean, double rstd, moving kind,
                         const argument *outs) {
    double sums[2] = {0}, plain[2] = {0}, n = (double)(w->runs * w->length);
    for (int64_t i = 0; i < w->runs * w->length; i++) {
        int64_t e = element_of(w, r, i);
        double g = get(a[0].tensors, e).f, x = get(a[1].tensors, e).f - mean, k = value(&a[2], weight_of(w, r, i), 1);
        plain[0] += g, plain[1] += g * x;
        sums[0] += g * k, sums[1] += g * k * x;
    }
    set(&outs[1], weight_of(w, r, 0), plain[1] * rstd), set(&outs[2], weight_of(w, r, 0), plain[0]);
    double shift = kind == BOTH ? rstd * sums[0] / n : 0, slope = kind == FROZEN ? 0 : rstd * rstd * rstd * sums[1] / n;
    for (int64_t i = 0; outs[0].n && i < w->runs * w->length; i++) {
        int64_t e = element_of(w, r, i);
        double g = get(a[0].tensors, e).f, x = get(a[1].tensors, e).f - mean, k = value(&a[2], weight_of(w, r, i), 1);
        set(&outs[0], e, rstd * k * g - shift - slope * x);
    }
}

/* norm.backward(Tensor grad, Tensor x, Tensor? weight, Tensor mean, Tensor rstd, int[] rows, *, Tensor(a!)? out,
 * Tensor(b!)? to_weight, Tensor(c!)? to_bias) -> () */
static void norm_backward(const argument *a) {
    tp_norm_rows w = rows_of(&a[5]);
    for (int64_t r = 0; r < w.rows; r++) row_backward(&w, a, r, value(&a[3], r, 0), value(&a[4], r, 0), BOTH, a + 6);
}
/* norm.frozen_backward: shaped like it, but for var in place of rstd and float eps after rows */
static void norm_frozen_backward(const argument *a) {
    tp_norm_rows w = rows_of(&a[5]);
    for (int64_t r = 0; r < w.rows; r++)
        row_backward(&w, a, r, value(&a[3], r, 0), 1 / sqrt(value(&a[4], r, 0) + a[6].f), FROZEN, a + 7);
}

/* norm.rms_backward(Tensor grad, Tensor x, Tensor? weight, Tensor rstd, int[] rows, *, Tensor(a!) out) -> () */
static void norm_rms_backward(const argument *a) {
    tp_norm_rows w = rows_of(&a[4]);
    const argument outs[3] = {a[5]};
    for (int64_t r = 0; r < w.rows; r++) row_backward(&w, a, r, 0, value(&a[3], r, 0), ABOUT_ZERO, outs);
}

/* norm.columns(Tensor grad, Tensor x, Tensor mean, Tensor rstd, int[] rows, *, Tensor(a!)? to_weight, Tensor(b!)?
 * to_bias)
 * -> () */
static void norm_columns(const argument *a) {
    tp_norm_rows w = rows_of(&a[4]);
    int64_t parts = (a[5].n ? a[5].tensors : a[6].tensors)->sizes[0];
    for (int64_t part = 0; part < parts; part++)
        for (int64_t i = 0; i < w.length; i++) {
            double weight = 0, bias = 0;
            for (int64_t r = part * w.rows / parts; r < (part + 1) * w.rows / parts; r++) {
                double g = get(a[0].tensors, r * w.first + i).f, x = get(a[1].tensors, r * w.first + i).f;
                weight += g * (x - value(&a[2], r, 0)) * value(&a[3], r, 0), bias += g;
            }
            set(&a[5], part * w.length + i, weight), set(&a[6], part * w.length + i, bias);
        }
}

/* norm.channels: shaped like it */
static void norm_channels(const argument *a) {
    tp_norm_rows w = rows_of(&a[4]);
    for (int64_t c = 0; c < w.rows; c++) {
        double weight = 0, bias = 0;
        for (int64_t i = 0; i < w.runs * w.length; i++) {
            int64_t e = element_of(&w, c, i), r = i / w.length * w.groups + c / w.per_row;
            double g = get(a[0].tensors, e).f;
            weight += g * (get(a[1].tensors, e).f - value(&a[2], r, 0)) * value(&a[3], r, 0), bias += g;
        }
        set(&a[5], c, weight), set(&a[6], c, bias);
    }
}

PRIMITIVES({"softmax.forward", softmax_forward}, {"softmax.log", softmax_log}, {"softmax.backward", softmax_backward},
           {"softmax.log_backward", softmax_log_backward}, {"norm.forward", norm_forward}, {"norm.frozen", norm_frozen},
           {"norm.backward", norm_backward}, {"norm.frozen_backward", norm_frozen_backward}, {"norm.rms", norm_rms},
           {"norm.rms_backward", norm_rms_backward}, {"norm.columns", norm_columns}, {"norm.channels", norm_channels})
