/* norm.c: the primitive norm on the CPU: threads share the rows; the loops over a run are in norm_loops.c.
 *
 * Weights belong to elements (layer_norm), to rows (batch_norm: per_run is 0) or to the runs of a row (group_norm). */
#include "cpu/norm.h"

#include "PrimitiveKernels.h"
#include "core/parallel.h"
#include "cpu/kernels.h"
#include "prim/norm.h"
#include "core/memory.h"

#include <math.h>

#define LONG_WORK 200000 /* elements: from here on the host lock is given up */

#define TOGETHER 16   /* rows, */
#define SHORT_ROW 512 /* of so many elements at most */

typedef struct {
    tp_norm_rows w;
    const tp_norm_loops *l;
    int64_t item, count; /* elements of a row */
    const char *x, *grad;
    char *out;
    const void *weight, *bias;
    void *mean, *rstd, *var; /* mean: NULL where rows are scaled about 0; var: given, frozen */
    void *running_mean, *running_var;
    char *to_weight, *to_bias;
    double eps, momentum;
    bool frozen;
    int64_t parts;
} job;

static void *data_of(const tp_tensor *t) { return t ? tp_data(t) : NULL; }

static job start(tp_ints rows, const tp_tensor *x) {
    job j = {.w = tp_norm_rows_of(rows), .x = tp_data(x), .item = tp_itemsize((tp_dtype)x->dtype)};
    j.l = x->dtype == TP_FLOAT32 ? &tp_cpu.norm->f32 : &tp_cpu.norm->f64;
    j.count = j.w.runs * j.w.length;
    return j;
}

static int run(job *j, int64_t n, tp_range_fn fn) {
    int64_t all = j->w.rows * j->count;
    return tp_parallel_unlocked(all > LONG_WORK, n, 1 + TP_GRAIN / 2 / (all / n + 1), fn, j);
}

static double get_or(const job *j, const void *numbers, int64_t i, double otherwise) {
    return numbers ? j->l->get(numbers, i) : otherwise;
}
static int64_t weight_at(const job *j, int64_t row, int64_t k) {
    return row % j->w.groups * j->w.per_row + k * j->w.per_run;
}
/* The runs of a row as one, where nothing lies between them. */
static bool is_one_run(const job *j) { return j->w.runs == 1 || j->w.next == j->w.length; }

/* ---- forward ---- */

static void normalise(const job *j, int64_t row, double mean, double rstd) {
    int64_t begin = row * j->w.first * j->item;
    if (j->w.each) {
        j->l->elements(j->x + begin, j->out + begin, j->w.length, mean, rstd, j->weight, j->bias);
        return;
    }
    for (int64_t k = 0; k < j->w.runs; k++) {
        int64_t at = begin + k * j->w.next * j->item, c = weight_at(j, row, k);
        j->l->run(j->x + at, j->out + at, j->w.length, mean, rstd, get_or(j, j->weight, c, 1),
                  get_or(j, j->bias, c, 0));
    }
}

static void move_running(const job *j, void *running, int64_t row, double value) {
    if (running && j->momentum != 0)
        j->l->put(running, row, (1 - j->momentum) * j->l->get(running, row) + j->momentum * value);
}

/* Rows are taken TOGETHER if they are short: one by one, each would wait for the sums, the quotient and the root of
 * the one before. */
static void forward_rows(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    int64_t n = is_one_run(j) ? j->count : j->w.length, runs = is_one_run(j) ? 1 : j->w.runs;
    int64_t step = j->count <= SHORT_ROW ? TOGETHER : 1, next = j->w.first * j->item;
    double count = (double)j->count, mean[TOGETHER], square[TOGETHER], rstd[TOGETHER];
    for (int64_t first = begin; first < end; first += step) {
        int64_t m = end - first < step ? end - first : step;
        const char *x = j->x + first * next;
        for (int64_t i = 0; i < m; i++) mean[i] = j->mean ? j->l->sum(x + i * next, n, runs, j->w.next) / count : 0;
        for (int64_t i = 0; i < m; i++) square[i] = j->l->squares(x + i * next, n, runs, j->w.next, mean[i]);
        for (int64_t i = 0; i < m; i++) rstd[i] = 1 / sqrt(square[i] / count + j->eps);
        for (int64_t i = 0, r = first; i < m; i++, r++) {
            normalise(j, r, mean[i], rstd[i]);
            if (j->mean) j->l->put(j->mean, r, mean[i]);
            j->l->put(j->rstd, r, rstd[i]);
            if (!j->running_mean && !j->running_var) continue;
            move_running(j, j->running_mean, r, j->l->get(j->mean, r));
            move_running(j, j->running_var, r, count > 1 ? square[i] / (count - 1) : square[i]);
        }
    }
}

static void frozen_rows(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    for (int64_t r = begin; r < end; r++)
        normalise(j, r, j->l->get(j->mean, r), 1 / sqrt(j->l->get(j->var, r) + j->eps));
}

int norm_forward_cpu(tp_tensor *x, tp_tensor *weight, tp_tensor *bias, tp_ints rows, double eps, double momentum,
                     tp_tensor *out, tp_tensor *mean, tp_tensor *rstd, tp_tensor *running_mean,
                     tp_tensor *running_var) {
    job j = start(rows, x);
    j.weight = data_of(weight), j.bias = data_of(bias), j.out = tp_data(out);
    j.mean = tp_data(mean), j.rstd = tp_data(rstd);
    j.running_mean = data_of(running_mean), j.running_var = data_of(running_var);
    j.eps = eps, j.momentum = momentum;
    return run(&j, j.w.rows, forward_rows);
}

int norm_rms_cpu(tp_tensor *x, tp_tensor *weight, tp_ints rows, double eps, tp_tensor *out, tp_tensor *rstd) {
    job j = start(rows, x);
    j.weight = data_of(weight), j.out = tp_data(out), j.rstd = tp_data(rstd), j.eps = eps;
    return run(&j, j.w.rows, forward_rows);
}

int norm_frozen_cpu(tp_tensor *x, tp_tensor *weight, tp_tensor *bias, tp_tensor *mean, tp_tensor *var, tp_ints rows,
                    double eps, tp_tensor *out) {
    job j = start(rows, x);
    j.weight = data_of(weight), j.bias = data_of(bias), j.out = tp_data(out);
    j.mean = tp_data(mean), j.var = tp_data(var), j.eps = eps;
    return run(&j, j.w.rows, frozen_rows);
}

/* ---- backward ---- */

static double rstd_of(const job *j, int64_t row) {
    return j->frozen ? 1 / sqrt(j->l->get(j->var, row) + j->eps) : j->l->get(j->rstd, row);
}

static void each_backward(const job *j, int64_t r, double mean, double rstd) {
    int64_t at = r * j->w.first * j->item, n = j->w.length;
    double sums[2] = {0};
    j->l->products(j->grad + at, j->x + at, j->weight, n, 1, 0, mean, sums);
    double shift = j->mean ? rstd * sums[0] / (double)n : 0, slope = rstd * rstd * rstd * sums[1] / (double)n;
    j->l->spread(j->grad + at, j->x + at, j->weight, j->out + at, n, mean, rstd, shift, slope);
}

/* One weight to a row. */
static void row_backward(const job *j, int64_t r, double mean, double rstd) {
    int64_t begin = r * j->w.first * j->item, c = weight_at(j, r, 0);
    double sums[2] = {0}, count = (double)j->count;
    j->l->products(j->grad + begin, j->x + begin, NULL, j->w.length, j->w.runs, j->w.next, mean, sums);
    if (j->to_weight) j->l->put(j->to_weight, c, sums[1] * rstd);
    if (j->to_bias) j->l->put(j->to_bias, c, sums[0]);
    if (!j->out) return;
    double scale = get_or(j, j->weight, c, 1) * rstd;
    double shift = j->frozen ? 0 : scale * sums[0] / count,
           slope = j->frozen ? 0 : scale * rstd * rstd * sums[1] / count;
    for (int64_t k = 0; k < j->w.runs; k++) {
        int64_t at = begin + k * j->w.next * j->item;
        j->l->spread(j->grad + at, j->x + at, NULL, j->out + at, j->w.length, mean, scale, shift, slope);
    }
}

/* One weight to a run. */
static void runs_backward(const job *j, int64_t r, double mean, double rstd) {
    int64_t begin = r * j->w.first * j->item, step = j->w.next * j->item;
    double total[2] = {0}, count = (double)j->count;
    for (int64_t k = 0; k < j->w.runs; k++) {
        double w = get_or(j, j->weight, weight_at(j, r, k), 1), sums[2] = {0};
        j->l->products(j->grad + begin + k * step, j->x + begin + k * step, NULL, j->w.length, 1, 0, mean, sums);
        total[0] += w * sums[0], total[1] += w * sums[1];
    }
    double shift = rstd * total[0] / count, slope = rstd * rstd * rstd * total[1] / count;
    for (int64_t k = 0; k < j->w.runs; k++) {
        int64_t at = begin + k * step;
        double w = get_or(j, j->weight, weight_at(j, r, k), 1);
        j->l->spread(j->grad + at, j->x + at, NULL, j->out + at, j->w.length, mean, w * rstd, shift, slope);
    }
}

static void backward_rows(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    void (*const row)(const job *, int64_t, double, double) = j->w.each      ? each_backward
                                                              : j->w.per_run ? runs_backward
                                                                             : row_backward;
    for (int64_t r = begin; r < end; r++) row(j, r, get_or(j, j->mean, r, 0), rstd_of(j, r));
}

static int backward(job *j, tp_tensor *grad, tp_tensor *weight, tp_tensor *mean, tp_tensor *out, tp_tensor *to_weight,
                    tp_tensor *to_bias) {
    j->grad = tp_data(grad), j->weight = data_of(weight), j->mean = data_of(mean), j->out = data_of(out);
    j->to_weight = data_of(to_weight), j->to_bias = data_of(to_bias);
    return run(j, j->w.rows, backward_rows);
}

int norm_backward_cpu(tp_tensor *grad, tp_tensor *x, tp_tensor *weight, tp_tensor *mean, tp_tensor *rstd, tp_ints rows,
                      tp_tensor *out, tp_tensor *to_weight, tp_tensor *to_bias) {
    job j = start(rows, x);
    j.rstd = tp_data(rstd);
    return backward(&j, grad, weight, mean, out, to_weight, to_bias);
}

int norm_rms_backward_cpu(tp_tensor *grad, tp_tensor *x, tp_tensor *weight, tp_tensor *rstd, tp_ints rows,
                          tp_tensor *out) {
    return norm_backward_cpu(grad, x, weight, NULL, rstd, rows, out, NULL, NULL);
}

int norm_frozen_backward_cpu(tp_tensor *grad, tp_tensor *x, tp_tensor *weight, tp_tensor *mean, tp_tensor *var,
                             tp_ints rows, double eps, tp_tensor *out, tp_tensor *to_weight, tp_tensor *to_bias) {
    job j = start(rows, x);
    j.var = tp_data(var), j.eps = eps, j.frozen = true;
    return backward(&j, grad, weight, mean, out, to_weight, to_bias);
}

/* ---- sums for weights ---- */

static void column_parts(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    int64_t n = j->w.length, bytes = n * j->item;
    for (int64_t i = begin; i < end; i++) {
        char *to_weight = j->to_weight ? j->to_weight + i * bytes : NULL,
             *to_bias = j->to_bias ? j->to_bias + i * bytes : NULL;
        if (to_weight) memset(to_weight, 0, (size_t)bytes);
        if (to_bias) memset(to_bias, 0, (size_t)bytes);
        for (int64_t r = i * j->w.rows / j->parts; r < (i + 1) * j->w.rows / j->parts; r++) {
            int64_t at = r * j->w.first * j->item;
            j->l->accumulate(j->grad + at, j->x + at, n, j->l->get(j->mean, r), j->l->get(j->rstd, r), to_weight,
                             to_bias);
        }
    }
}

int norm_columns_cpu(tp_tensor *grad, tp_tensor *x, tp_tensor *mean, tp_tensor *rstd, tp_ints rows,
                     tp_tensor *to_weight, tp_tensor *to_bias) {
    job j = start(rows, x);
    j.grad = tp_data(grad), j.mean = tp_data(mean), j.rstd = tp_data(rstd);
    j.to_weight = data_of(to_weight), j.to_bias = data_of(to_bias);
    j.parts = (to_weight ? to_weight : to_bias)->sizes[0];
    return run(&j, j.parts, column_parts);
}

static void channel_rows(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    for (int64_t c = begin; c < end; c++) {
        double weight = 0, bias = 0;
        for (int64_t k = 0; k < j->w.runs; k++) {
            int64_t r = k * j->w.groups + c / j->w.per_row, at = (c * j->w.first + k * j->w.next) * j->item;
            double sums[2] = {0};
            j->l->products(j->grad + at, j->x + at, NULL, j->w.length, 1, 0, j->l->get(j->mean, r), sums);
            weight += sums[1] * j->l->get(j->rstd, r), bias += sums[0];
        }
        if (j->to_weight) j->l->put(j->to_weight, c, weight);
        if (j->to_bias) j->l->put(j->to_bias, c, bias);
    }
}

int norm_channels_cpu(tp_tensor *grad, tp_tensor *x, tp_tensor *mean, tp_tensor *rstd, tp_ints rows,
                      tp_tensor *to_weight, tp_tensor *to_bias) {
    job j = start(rows, x);
    j.grad = tp_data(grad), j.mean = tp_data(mean), j.rstd = tp_data(rstd);
    j.to_weight = data_of(to_weight), j.to_bias = data_of(to_bias);
    return run(&j, j.w.rows, channel_rows);
}
