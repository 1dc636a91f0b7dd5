/* norm_channels.c: normalisations of (N, C, ...) tensors: batch_norm, group_norm and instance_norm; the loops are in
 * cpu/norm.c.
 *
 * A channel of one image is a run of `rest` neighbours. batch_norm's statistics are those of a channel over all images,
 * group_norm's those of a group of channels of one image, which is one long run. Without further dimensions batch_norm
 * works on the transposed input, so that channels are runs there too. */
#include "cpu/norm.h"

#include "NativeFunctions.h"
#include "core/parallel.h"
#include "cpu/copy.h"
#include "cpu/kernels.h"
#include "native/device_kernels.h"
#include "native/plain.h"
#include "native/variants.h"

#include <math.h>
#include <string.h>

static void release_all(tp_tensor3 *r) {
    for (int i = 0; i < 3; i++) {
        tp_release(r->v[i]);
        r->v[i] = NULL;
    }
}

static bool all_there(tp_tensor3 *r) {
    if (r->v[0] && r->v[1] && r->v[2]) return true;
    release_all(r);
    return false;
}

static int check_floating(const char *op, const tp_tensor *input) {
    if (tp_is_floating(input)) return 0;
    return tp_fail(TP_NotImplementedError, "\"%s\" not implemented for '%s'", op,
                   tp_scalar_type_name((tp_dtype)input->dtype));
}

static int check_channels(const char *op, const tp_tensor *input, tp_tensor *const *per_channel,
                          const char *const *names, int n) {
    if (input->ndim < 2)
        return tp_fail(TP_RuntimeError, "%s: Expected at least 2 dimensions for input tensor but received %d", op,
                       input->ndim);
    for (int i = 0; i < n; i++)
        if (per_channel[i] && per_channel[i]->numel != input->sizes[1])
            return tp_fail(TP_RuntimeError, "%s: %s should contain %lld elements not %lld", op, names[i],
                           (long long)input->sizes[1], (long long)per_channel[i]->numel);
    return 0;
}

typedef struct {
    const tp_norm_loops *loops;
    const char *input, *grad;
    char *out;
    const void *weight, *bias; /* per channel */
    void *mean, *rstd, *var;
    void *to_weight, *to_bias;
    int64_t images, channels, rest, groups, run; /* run: bytes of one channel of one image */
    double eps;
    bool frozen; /* mean and rstd are given */
} job;

static const tp_norm_loops *loops_of(tp_dtype dtype) {
    return dtype == TP_FLOAT32 ? &tp_cpu.norm->f32 : &tp_cpu.norm->f64;
}

static double get_or(const job *j, const void *per_channel, int64_t c, double otherwise) {
    return per_channel ? j->loops->get(per_channel, c) : otherwise;
}

static int run_job(job *j, int64_t n, tp_range_fn fn) {
    int64_t each = j->images * j->channels * j->rest / (n ? n : 1);
    bool long_work = j->images * j->channels * j->rest > 200000;
    void *host = long_work ? tp_host_lock_release() : NULL;
    int status = tp_parallel_for(n, 1 + TP_GRAIN / 2 / (each + 1), fn, j);
    if (long_work) tp_host_lock_acquire(host);
    return status;
}

static int run_elsewhere(tp_norm_what what, const tp_norm_job *d) {
    const tp_device_kernels *k = tp_device_kernels_of(d->input->device);
    return k ? k->norm(what, d) : -1;
}

/* ---- batch_norm ---- */

/* Rows are channels. */
static void batch_rows_elsewhere(tp_norm_job *d, const job *j) {
    d->rows = d->groups = j->channels, d->runs = j->images, d->length = d->first = j->rest;
    d->next = j->channels * j->rest, d->per_row = 1, d->eps = j->eps, d->frozen = j->frozen;
}

static int batch_elsewhere(tp_norm_job *d, const job *j, tp_tensor *running_mean, tp_tensor *running_var,
                           double momentum) {
    tp_tensor *const running[] = {running_mean, running_var};
    tp_dtype dtype = (tp_dtype)d->input->dtype;
    bool moving = j->frozen || momentum != 0;
    tp_autoref *mean = moving ? tp_plain(running_mean, dtype) : NULL,
               *var = moving ? tp_plain(running_var, dtype) : NULL;
    tp_tensor *const made[] = {mean, var};
    if (moving && ((running_mean && !mean) || (running_var && !var))) return -1;
    batch_rows_elsewhere(d, j);
    d->running_mean = mean, d->running_var = var, d->momentum = momentum;
    if (run_elsewhere(TP_NORM_FORWARD, d) < 0) return -1;
    for (int i = 0; i < 2 && !j->frozen; i++)
        if (made[i] != running[i] && made[i] && tp_copy_data(running[i], made[i]) < 0) return -1;
    return 0;
}

static const char *const batch_names[] = {"weight", "bias", "running_mean", "running_var"};

static void batch_channels(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    const tp_norm_loops *l = j->loops;
    double count = (double)(j->images * j->rest);
    int64_t next = j->channels * j->rest;
    for (int64_t c = begin; c < end; c++) {
        double mean = 0, square = 0;
        if (j->frozen) {
            mean = l->get(j->mean, c);
        } else {
            mean = l->sum(j->input + c * j->run, j->rest, j->images, next) / count;
            square = l->squares(j->input + c * j->run, j->rest, j->images, next, mean);
        }
        double var = j->frozen ? l->get(j->var, c) : square / count, rstd = 1 / sqrt(var + j->eps);
        double w = get_or(j, j->weight, c, 1), b = get_or(j, j->bias, c, 0);
        for (int64_t n = 0; n < j->images; n++) {
            int64_t at = (n * j->channels + c) * j->run;
            l->run(j->input + at, j->out + at, j->rest, mean, rstd, w, b);
        }
        if (j->frozen) continue;
        l->put(j->mean, c, mean);
        l->put(j->rstd, c, rstd);
        l->put(j->var, c, count > 1 ? square / (count - 1) : square);
    }
}

static void batch_backward_channels(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    const tp_norm_loops *l = j->loops;
    double count = (double)(j->images * j->rest);
    for (int64_t c = begin; c < end; c++) {
        double mean = l->get(j->mean, c), rstd = l->get(j->rstd, c), sums[2] = {0};
        l->products(j->grad + c * j->run, j->input + c * j->run, NULL, j->rest, j->images, j->channels * j->rest, mean,
                    sums);
        if (j->to_weight) l->put(j->to_weight, c, sums[1] * rstd);
        if (j->to_bias) l->put(j->to_bias, c, sums[0]);
        if (!j->out) continue;
        double scale = get_or(j, j->weight, c, 1) * rstd;
        double shift = j->frozen ? 0 : scale * sums[0] / count,
               slope = j->frozen ? 0 : scale * rstd * rstd * sums[1] / count;
        for (int64_t n = 0; n < j->images; n++) {
            int64_t at = (n * j->channels + c) * j->run;
            l->spread(j->grad + at, j->input + at, NULL, j->out + at, j->rest, mean, scale, shift, slope);
        }
    }
}

/* Channels as runs: t itself, contiguous and in the dtype, or transposed where it has two dimensions; new. */
static tp_tensor *channel_runs(tp_tensor *t, tp_dtype dtype) {
    if (t->ndim > 2) return tp_plain(t, dtype);
    tp_autoref *turned =
        tp_new_alias(t, TP_INTS(t->sizes[1], t->sizes[0]), TP_INTS(t->strides[1], t->strides[0]), t->byte_offset);
    return turned ? tp_plain(turned, dtype) : NULL;
}

/* What was computed as channel_runs, in the dtype and as it was; takes it over. */
static tp_tensor *from_channel_runs_steal(tp_tensor *made, const tp_tensor *like) {
    tp_autoref *t = made;
    if (!t || like->ndim > 2) return tp_narrow_steal(tp_take(t), (tp_dtype)like->dtype);
    tp_autoref *turned = tp_new_alias(t, tp_sizes(like), TP_INTS(1, like->sizes[0]), 0);
    tp_autoref *out = turned ? tp_new_empty(tp_sizes(like), (tp_dtype)like->dtype, like->device) : NULL;
    return out && tp_copy_data(out, turned) == 0 ? tp_take(out) : NULL;
}

static job batch_job(const tp_tensor *input, tp_dtype dtype) {
    int64_t n = input->sizes[0], c = input->sizes[1], rest = n && c ? input->numel / (n * c) : 0;
    bool turned = input->ndim == 2;
    job j = {.loops = loops_of(dtype), .channels = c, .images = turned ? 1 : n, .rest = turned ? n : rest};
    j.run = j.rest * tp_itemsize(dtype);
    return j;
}

static int check_batch(tp_tensor *input, tp_tensor *weight, tp_tensor *bias, tp_tensor *mean, tp_tensor *var,
                       bool training) {
    tp_tensor *all[] = {weight, bias, mean, var};
    if (!training && (!mean || !var))
        return tp_fail(TP_RuntimeError, "batch_norm: running_mean and running_var must be defined in evaluation mode");
    if (check_channels("batch_norm", input, all, batch_names, 4) < 0) return -1;
    return check_floating("batch_norm", input);
}

static tp_tensor *per_channel(tp_tensor *like, int64_t n, tp_dtype dtype) {
    return tp_new_empty(TP_INTS(n), dtype, like->device);
}

/* running = (1 - momentum) * running + momentum * value */
static int update_running(tp_tensor *running, const void *values, const job *j, double momentum) {
    if (!running || momentum == 0) return 0;
    tp_dtype dtype = j->loops == &tp_cpu.norm->f32 ? TP_FLOAT32 : TP_FLOAT64;
    tp_autoref *made = tp_plain(running, dtype);
    if (!made) return -1;
    for (int64_t c = 0; c < j->channels; c++) {
        double old = j->loops->get(tp_data(made), c), v = j->loops->get(values, c);
        j->loops->put(tp_data(made), c, (1 - momentum) * old + momentum * v);
    }
    return made == running ? 0 : tp_copy_data(running, made);
}

static tp_dtype statistics_dtype(tp_tensor *input, tp_tensor *weight) {
    return (tp_dtype)(weight ? weight->dtype : input->dtype);
}

/* native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool
 * training, float momentum, float eps) -> (Tensor, Tensor, Tensor) */
tp_tensor3 native_batch_norm_meta(tp_tensor *input, tp_tensor *weight, tp_tensor *bias, tp_tensor *running_mean,
                                  tp_tensor *running_var, bool training, double momentum TP_UNUSED,
                                  double eps TP_UNUSED) {
    tp_tensor3 r = {{NULL}};
    if (check_batch(input, weight, bias, running_mean, running_var, training) < 0) return r;
    tp_dtype dtype = (tp_dtype)input->dtype, kept = statistics_dtype(input, weight);
    int64_t n = training ? input->sizes[1] : 0;
    r.v[0] = tp_new_empty_format(tp_sizes(input), dtype, input->device, tp_suggest_memory_format(input));
    r.v[1] = per_channel(input, n, kept);
    r.v[2] = per_channel(input, n, kept);
    all_there(&r);
    return r;
}

tp_tensor3 native_batch_norm_cpu(tp_tensor *input, tp_tensor *weight, tp_tensor *bias, tp_tensor *running_mean,
                                 tp_tensor *running_var, bool training, double momentum, double eps) {
    tp_tensor3 r = {{NULL}};
    if (check_batch(input, weight, bias, running_mean, running_var, training) < 0) return r;
    tp_dtype dtype = tp_compute_dtype((tp_dtype)input->dtype);
    int64_t channels = input->sizes[1];
    tp_autoref *x = channel_runs(input, dtype), *w = tp_plain(weight, dtype), *b = tp_plain(bias, dtype);
    tp_autoref *out = x ? tp_new_empty(tp_sizes(x), dtype, input->device) : NULL;
    tp_autoref *mean = training ? per_channel(input, channels, dtype) : tp_plain(running_mean, dtype),
               *var = training ? per_channel(input, channels, dtype) : tp_plain(running_var, dtype),
               *rstd = per_channel(input, channels, dtype);
    if (!out || !mean || !var || !rstd || (weight && !w) || (bias && !b)) return r;
    job j = batch_job(input, dtype);
    j.input = tp_data(x), j.out = tp_data(out), j.weight = w ? tp_data(w) : NULL, j.bias = b ? tp_data(b) : NULL;
    j.mean = tp_data(mean), j.var = tp_data(var), j.rstd = tp_data(rstd), j.eps = eps, j.frozen = !training;
    if (input->numel && tp_elsewhere(input)) {
        tp_norm_job d = {.input = x, .weight = w, .bias = b, .mean = mean, .rstd = rstd, .out = out};
        if (batch_elsewhere(&d, &j, running_mean, running_var, momentum) < 0) return r;
    } else if (input->numel) {
        if (run_job(&j, channels, batch_channels) < 0) return r;
        if (training && (update_running(running_mean, j.mean, &j, momentum) < 0 ||
                         update_running(running_var, j.var, &j, momentum) < 0))
            return r;
    } else if (training && (tp_fill_data(mean, TP_SCALAR_I(0)) < 0 || tp_fill_data(rstd, TP_SCALAR_I(0)) < 0)) {
        return r;
    }
    tp_dtype kept = statistics_dtype(input, weight);
    r.v[0] = tp_in_format_steal(from_channel_runs_steal(tp_take(out), input), tp_suggest_memory_format(input));
    r.v[1] = training ? tp_narrow_steal(tp_take(mean), kept) : per_channel(input, 0, kept);
    r.v[2] = training ? tp_narrow_steal(tp_take(rstd), kept) : per_channel(input, 0, kept);
    all_there(&r);
    return r;
}

int native_batch_norm_out_composite(tp_tensor *input, tp_tensor *weight, tp_tensor *bias, tp_tensor *running_mean,
                                    tp_tensor *running_var, bool training, double momentum, double eps, tp_tensor *out,
                                    tp_tensor *save_mean, tp_tensor *save_invstd) {
    tp_tensor3 made = tp_native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps);
    return made.v[0] ? tp_copy_into_outs_steal((tp_tensor *const[]){out, save_mean, save_invstd}, made.v, 3) : -1;
}

/* native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, Tensor? running_var,
 * Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask) -> (Tensor, Tensor, Tensor) */
tp_tensor3 native_batch_norm_backward_meta(tp_tensor *grad_out TP_UNUSED, tp_tensor *input, tp_tensor *weight,
                                           tp_tensor *running_mean TP_UNUSED, tp_tensor *running_var TP_UNUSED,
                                           tp_tensor *save_mean TP_UNUSED, tp_tensor *save_invstd TP_UNUSED,
                                           bool train TP_UNUSED, double eps TP_UNUSED, tp_bools output_mask) {
    tp_tensor3 r = {{NULL}};
    for (int i = 0; i < 3; i++) {
        if (!output_mask.data[i]) continue;
        r.v[i] = i == 0 ? tp_new_empty(tp_sizes(input), (tp_dtype)input->dtype, input->device)
                        : per_channel(input, input->sizes[1], statistics_dtype(input, weight));
        if (!r.v[i]) return release_all(&r), r;
    }
    return r;
}

tp_tensor3 native_batch_norm_backward_cpu(tp_tensor *grad_out, tp_tensor *input, tp_tensor *weight,
                                          tp_tensor *running_mean, tp_tensor *running_var, tp_tensor *save_mean,
                                          tp_tensor *save_invstd, bool train, double eps, tp_bools output_mask) {
    tp_tensor3 r = {{NULL}};
    if (check_batch(input, weight, NULL, running_mean, running_var, train) < 0) return r;
    if (!tp_same_sizes(grad_out, input) || (train && (!save_mean || !save_invstd)))
        return tp_fail(TP_RuntimeError, "native_batch_norm_backward: grad_out or the saved statistics do not fit"), r;
    tp_dtype dtype = tp_compute_dtype((tp_dtype)input->dtype);
    int64_t channels = input->sizes[1];
    tp_autoref *x = channel_runs(input, dtype), *g = channel_runs(grad_out, dtype), *w = tp_plain(weight, dtype);
    tp_autoref *mean = tp_plain(train ? save_mean : running_mean, dtype),
               *rstd = train ? tp_plain(save_invstd, dtype) : per_channel(input, channels, dtype),
               *var = tp_plain(train ? save_invstd : running_var, dtype);
    if (!x || !g || !mean || !rstd || !var || (weight && !w)) return r;
    tp_tensor *made[3] = {NULL};
    for (int i = 0; i < 3; i++)
        if (output_mask.data[i]) {
            made[i] = i ? per_channel(input, channels, dtype) : tp_new_empty(tp_sizes(x), dtype, input->device);
            if (!made[i] || (i && !input->numel && tp_fill_data(made[i], TP_SCALAR_I(0)) < 0)) goto done;
        }
    job j = batch_job(input, dtype);
    j.input = tp_data(x), j.grad = tp_data(g), j.weight = w ? tp_data(w) : NULL, j.frozen = !train;
    j.mean = tp_data(mean), j.rstd = tp_data(rstd), j.out = made[0] ? tp_data(made[0]) : NULL;
    j.to_weight = made[1] ? tp_data(made[1]) : NULL, j.to_bias = made[2] ? tp_data(made[2]) : NULL;
    if (input->numel && tp_elsewhere(input)) {
        tp_norm_job d = {.input = x, .grad = g, .weight = w, .mean = mean, .rstd = train ? rstd : var, .out = made[0]};
        batch_rows_elsewhere(&d, &j);
        d.to_weight = made[1], d.to_bias = made[2], d.eps = eps;
        if (run_elsewhere(TP_NORM_BACKWARD, &d) < 0) goto done;
    } else if (input->numel) {
        for (int64_t c = 0; !train && c < channels; c++)
            j.loops->put(j.rstd, c, 1 / sqrt(j.loops->get(tp_data(var), c) + eps));
        if (run_job(&j, channels, batch_backward_channels) < 0) goto done;
    }
    for (int i = 0; i < 3; i++) {
        if (!made[i]) continue;
        r.v[i] =
            i ? tp_narrow_steal(made[i], statistics_dtype(input, weight)) : from_channel_runs_steal(made[0], input);
        made[i] = NULL;
        if (!r.v[i]) {
            release_all(&r);
            goto done;
        }
    }
done:
    for (int i = 0; i < 3; i++) tp_release(made[i]);
    return r;
}

/* batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training,
 * float momentum, float eps, bool cudnn_enabled) -> Tensor */
tp_tensor *batch_norm_composite(tp_tensor *input, tp_tensor *weight, tp_tensor *bias, tp_tensor *running_mean,
                                tp_tensor *running_var, bool training, double momentum, double eps,
                                bool cudnn_enabled TP_UNUSED) {
    if (input->numel == 0) return tp_clone(input, TP_NO_FORMAT);
    tp_tensor3 r = tp_native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps);
    tp_release(r.v[1]);
    tp_release(r.v[2]);
    return r.v[0];
}

/* ---- group_norm ---- */

static void group_rows(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    const tp_norm_loops *l = j->loops;
    int64_t depth = j->channels / j->groups, n = depth * j->rest;
    for (int64_t r = begin; r < end; r++) {
        const char *x = j->input + r * depth * j->run;
        double mean = l->sum(x, n, 1, 0) / (double)n,
               rstd = 1 / sqrt(l->squares(x, n, 1, 0, mean) / (double)n + j->eps);
        for (int64_t d = 0; d < depth; d++) {
            int64_t c = r % j->groups * depth + d, at = d * j->run;
            l->run(x + at, j->out + r * depth * j->run + at, j->rest, mean, rstd, get_or(j, j->weight, c, 1),
                   get_or(j, j->bias, c, 0));
        }
        l->put(j->mean, r, mean);
        l->put(j->rstd, r, rstd);
    }
}

static void group_backward_rows(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    const tp_norm_loops *l = j->loops;
    int64_t depth = j->channels / j->groups;
    for (int64_t r = begin; r < end; r++) {
        const char *x = j->input + r * depth * j->run, *g = j->grad + r * depth * j->run;
        char *out = j->out + r * depth * j->run;
        double mean = l->get(j->mean, r), rstd = l->get(j->rstd, r), total[2] = {0}, n = (double)(depth * j->rest);
        for (int64_t d = 0; d < depth; d++) {
            double w = get_or(j, j->weight, r % j->groups * depth + d, 1), sums[2] = {0};
            l->products(g + d * j->run, x + d * j->run, NULL, j->rest, 1, 0, mean, sums);
            total[0] += w * sums[0], total[1] += w * sums[1];
        }
        double shift = rstd * total[0] / n, slope = rstd * rstd * rstd * total[1] / n;
        for (int64_t d = 0; d < depth; d++) {
            double w = get_or(j, j->weight, r % j->groups * depth + d, 1);
            l->spread(g + d * j->run, x + d * j->run, NULL, out + d * j->run, j->rest, mean, w * rstd, shift, slope);
        }
    }
}

static void group_weight_channels(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    const tp_norm_loops *l = j->loops;
    int64_t depth = j->channels / j->groups;
    for (int64_t c = begin; c < end; c++) {
        double weight = 0, bias = 0;
        for (int64_t n = 0; n < j->images; n++) {
            int64_t r = n * j->groups + c / depth, at = (n * j->channels + c) * j->run;
            double sums[2] = {0};
            l->products(j->grad + at, j->input + at, NULL, j->rest, 1, 0, l->get(j->mean, r), sums);
            weight += sums[1] * l->get(j->rstd, r), bias += sums[0];
        }
        if (j->to_weight) l->put(j->to_weight, c, weight);
        if (j->to_bias) l->put(j->to_bias, c, bias);
    }
}

static int check_group(const tp_tensor *input, tp_tensor *weight, tp_tensor *bias, int64_t n, int64_t channels,
                       int64_t rest, int64_t group) {
    tp_tensor *both[] = {weight, bias};
    if (group < 1 || channels % group)
        return tp_fail(TP_RuntimeError,
                       "Expected number of channels in input to be divisible by num_groups, but got %lld channels and "
                       "num_groups=%lld",
                       (long long)channels, (long long)group);
    int64_t plane, numel;
    if (__builtin_mul_overflow(channels, rest, &plane) || __builtin_mul_overflow(n, plane, &numel) ||
        input->numel != numel)
        return tp_fail(TP_RuntimeError, "native_group_norm: an input of %lld elements is not %lld x %lld x %lld",
                       (long long)input->numel, (long long)n, (long long)channels, (long long)rest);
    for (int i = 0; i < 2; i++)
        if (both[i] && (both[i]->ndim != 1 || both[i]->numel != channels))
            return tp_fail(TP_RuntimeError,
                           "Expected %s to be a vector of size equal to the number of channels in input, but got %lld "
                           "elements for %lld channels",
                           i ? "bias" : "weight", (long long)both[i]->numel, (long long)channels);
    return check_floating("GroupNormKernelImpl", input);
}

static job group_job(tp_dtype dtype, int64_t n, int64_t channels, int64_t rest, int64_t group) {
    job j = {.loops = loops_of(dtype), .images = n, .channels = channels, .rest = rest, .groups = group};
    j.run = rest * tp_itemsize(dtype);
    return j;
}

static int groups_elsewhere(tp_norm_what what, tp_norm_job *d, const job *j) {
    int64_t depth = j->channels / j->groups;
    bool by_channel = what == TP_NORM_CHANNELS;
    d->rows = by_channel ? j->channels : j->images * j->groups;
    d->runs = by_channel ? j->images : depth, d->length = j->rest;
    d->first = by_channel ? j->rest : depth * j->rest, d->next = by_channel ? j->channels * j->rest : j->rest;
    d->groups = j->groups, d->per_row = depth, d->per_run = 1, d->eps = j->eps;
    return run_elsewhere(what, d);
}

/* native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float eps)
 * -> (Tensor, Tensor, Tensor) */
tp_tensor3 native_group_norm_meta(tp_tensor *input, tp_tensor *weight, tp_tensor *bias, int64_t N, int64_t C,
                                  int64_t HxW, int64_t group, double eps TP_UNUSED) {
    tp_tensor3 r = {{NULL}};
    if (check_group(input, weight, bias, N, C, HxW, group) < 0) return r;
    tp_dtype dtype = (tp_dtype)input->dtype, kept = statistics_dtype(input, weight);
    r.v[0] = tp_new_empty_format(tp_sizes(input), dtype, input->device, tp_suggest_memory_format(input));
    r.v[1] = tp_new_empty(TP_INTS(N, group), kept, input->device);
    r.v[2] = tp_new_empty(TP_INTS(N, group), kept, input->device);
    all_there(&r);
    return r;
}

tp_tensor3 native_group_norm_cpu(tp_tensor *input, tp_tensor *weight, tp_tensor *bias, int64_t N, int64_t C,
                                 int64_t HxW, int64_t group, double eps) {
    tp_tensor3 r = {{NULL}};
    if (check_group(input, weight, bias, N, C, HxW, group) < 0) return r;
    tp_dtype dtype = tp_compute_dtype((tp_dtype)input->dtype), kept = statistics_dtype(input, weight);
    tp_autoref *x = tp_plain(input, dtype), *w = tp_plain(weight, dtype), *b = tp_plain(bias, dtype);
    if (!x || (weight && !w) || (bias && !b)) return r;
    r.v[0] = tp_new_empty(tp_sizes(input), dtype, input->device);
    r.v[1] = tp_new_empty(TP_INTS(N, group), dtype, input->device);
    r.v[2] = tp_new_empty(TP_INTS(N, group), dtype, input->device);
    if (!all_there(&r)) return r;
    job j = group_job(dtype, N, C, HxW, group);
    j.input = tp_data(x), j.out = tp_data(r.v[0]), j.weight = w ? tp_data(w) : NULL, j.bias = b ? tp_data(b) : NULL;
    j.mean = tp_data(r.v[1]), j.rstd = tp_data(r.v[2]), j.eps = eps;
    bool empty = input->numel == 0;
    tp_norm_job d = {.input = x, .weight = w, .bias = b, .mean = r.v[1], .rstd = r.v[2], .out = r.v[0]};
    if (!empty && tp_elsewhere(input)) {
        if (groups_elsewhere(TP_NORM_FORWARD, &d, &j) < 0) return release_all(&r), r;
    } else if (empty ? tp_fill_data(r.v[1], TP_SCALAR_I(0)) < 0 || tp_fill_data(r.v[2], TP_SCALAR_F(NAN)) < 0
                     : run_job(&j, N * group, group_rows) < 0) {
        return release_all(&r), r;
    }
    r.v[0] = tp_in_format_steal(tp_narrow_steal(r.v[0], (tp_dtype)input->dtype), tp_suggest_memory_format(input));
    r.v[1] = tp_narrow_steal(r.v[1], kept);
    r.v[2] = tp_narrow_steal(r.v[2], kept);
    all_there(&r);
    return r;
}

/* native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, SymInt N, SymInt
 * C, SymInt HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor) */
tp_tensor3 native_group_norm_backward_meta(tp_tensor *grad_out TP_UNUSED, tp_tensor *input, tp_tensor *mean TP_UNUSED,
                                           tp_tensor *rstd TP_UNUSED, tp_tensor *weight, int64_t N, int64_t C,
                                           int64_t HxW, int64_t group, tp_bools output_mask) {
    tp_tensor3 r = {{NULL}};
    if (check_group(input, weight, NULL, N, C, HxW, group) < 0) return r;
    for (int i = 0; i < 3; i++) {
        if (!output_mask.data[i]) continue;
        r.v[i] = i ? per_channel(input, C, statistics_dtype(input, weight))
                   : tp_new_empty(tp_sizes(input), (tp_dtype)input->dtype, input->device);
        if (!r.v[i]) return release_all(&r), r;
    }
    return r;
}

tp_tensor3 native_group_norm_backward_cpu(tp_tensor *grad_out, tp_tensor *input, tp_tensor *mean, tp_tensor *rstd,
                                          tp_tensor *weight, int64_t N, int64_t C, int64_t HxW, int64_t group,
                                          tp_bools output_mask) {
    tp_tensor3 r = {{NULL}};
    if (check_group(input, weight, NULL, N, C, HxW, group) < 0) return r;
    if (grad_out->numel != input->numel || mean->numel != N * group || rstd->numel != N * group)
        return tp_fail(TP_RuntimeError, "native_group_norm_backward: grad_out, mean or rstd does not fit the input"), r;
    tp_dtype dtype = tp_compute_dtype((tp_dtype)input->dtype), kept = statistics_dtype(input, weight);
    tp_autoref *x = tp_plain(input, dtype), *g = tp_plain(grad_out, dtype), *w = tp_plain(weight, dtype),
               *m = tp_plain(mean, dtype), *s = tp_plain(rstd, dtype);
    if (!x || !g || !m || !s || (weight && !w)) return r;
    job j = group_job(dtype, N, C, HxW, group);
    j.input = tp_data(x), j.grad = tp_data(g), j.weight = w ? tp_data(w) : NULL;
    j.mean = tp_data(m), j.rstd = tp_data(s);
    for (int i = 0; i < 3; i++) {
        if (!output_mask.data[i]) continue;
        r.v[i] = i ? per_channel(input, C, dtype) : tp_new_empty(tp_sizes(input), dtype, input->device);
        if (!r.v[i] || (i && tp_fill_data(r.v[i], TP_SCALAR_I(0)) < 0)) return release_all(&r), r;
        if (i == 0) j.out = tp_data(r.v[0]);
        else *(i == 1 ? &j.to_weight : &j.to_bias) = tp_data(r.v[i]);
    }
    if (input->numel && tp_elsewhere(input)) {
        tp_norm_job d = {.input = x, .grad = g, .weight = w, .mean = m, .rstd = s, .out = r.v[0]};
        if (d.out && groups_elsewhere(TP_NORM_BACKWARD, &d, &j) < 0) return release_all(&r), r;
        d.to_weight = r.v[1], d.to_bias = r.v[2];
        if ((r.v[1] || r.v[2]) && groups_elsewhere(TP_NORM_CHANNELS, &d, &j) < 0) return release_all(&r), r;
    }
    bool here = input->numel && !tp_elsewhere(input);
    if (here && j.out && run_job(&j, N * group, group_backward_rows) < 0) return release_all(&r), r;
    if (here && (j.to_weight || j.to_bias) && run_job(&j, C, group_weight_channels) < 0) return release_all(&r), r;
    for (int i = 0; i < 3; i++)
        if (r.v[i] && !(r.v[i] = tp_narrow_steal(r.v[i], i ? kept : (tp_dtype)input->dtype))) return release_all(&r), r;
    return r;
}

/* What the input gets from the gradients of the mean and the reciprocal deviation of its groups: (N, group, length). */
static tp_tensor *through_statistics(tp_tensor *grad_mean, tp_tensor *grad_rstd, tp_tensor *input, tp_tensor *mean,
                                     tp_tensor *rstd) {
    tp_autoref *rows = tp_reshape(input, TP_INTS(mean->sizes[0], mean->sizes[1], -1)),
               *middle = rows ? tp_unsqueeze(mean, -1) : NULL,
               *x = middle ? tp_sub_Tensor(rows, middle, TP_SCALAR_I(1)) : NULL;
    tp_autoref *slope = x ? tp_zeros_like(x, TP_NO_DTYPE, TP_NO_LAYOUT, TP_NO_DEVICE, -1, TP_NO_FORMAT) : NULL;
    if (slope && grad_mean) {
        tp_autoref *wide = tp_unsqueeze(grad_mean, -1), *before = slope;
        slope = wide ? tp_add_Tensor(before, wide, TP_SCALAR_I(1)) : NULL;
    }
    if (slope && grad_rstd) {
        tp_autoref *cube = tp_pow_Tensor_Scalar(rstd, TP_SCALAR_I(3)),
                   *scale = cube ? tp_mul_Tensor(grad_rstd, cube) : NULL,
                   *wide = scale ? tp_unsqueeze(scale, -1) : NULL, *before = slope;
        slope = wide ? tp_addcmul(before, wide, x, TP_SCALAR_I(-1)) : NULL;
    }
    tp_autoref *each = slope ? tp_div_Scalar(slope, TP_SCALAR_I(slope->sizes[2])) : NULL;
    return each ? tp_reshape(each, tp_sizes(input)) : NULL;
}
/* _group_norm_backward(Tensor? grad, Tensor? grad_mean, Tensor? grad_rstd, Tensor input, Tensor mean, Tensor rstd,
 * Tensor? weight, SymInt N, SymInt C, SymInt HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor) */
tp_tensor3 _group_norm_backward_composite(tp_tensor *grad, tp_tensor *grad_mean, tp_tensor *grad_rstd, tp_tensor *input,
                                          tp_tensor *mean, tp_tensor *rstd, tp_tensor *weight, int64_t N, int64_t C,
                                          int64_t HxW, int64_t group, tp_bools output_mask) {
    const tp_tensor3 failed = {{NULL, NULL, NULL}};
    tp_tensor3 r = failed;
    if (grad) {
        r = tp_native_group_norm_backward(grad, input, mean, rstd, weight, N, C, HxW, group, output_mask);
        if (tp_error_pending()) return failed;
    }
    bool further = (grad_mean || grad_rstd) && output_mask.data[0] && input->numel;
    if (!further) return r;
    tp_autoref *straight = r.v[0], *to_weight = r.v[1], *to_bias = r.v[2];
    tp_autoref *more = through_statistics(grad_mean, grad_rstd, input, mean, rstd),
               *sum = !more      ? NULL
                      : straight ? tp_add_Tensor(straight, more, TP_SCALAR_I(1))
                                 : tp_retain(more);
    return sum ? (tp_tensor3){{tp_take(sum), tp_take(to_weight), tp_take(to_bias)}} : failed;
}

/* group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool
 * cudnn_enabled=True) -> Tensor */
tp_tensor *group_norm_composite(tp_tensor *input, int64_t num_groups, tp_tensor *weight, tp_tensor *bias, double eps,
                                bool cudnn_enabled TP_UNUSED) {
    static const char *const names[] = {"weight", "bias"};
    tp_tensor *both[] = {weight, bias};
    if (check_channels("group_norm", input, both, names, 2) < 0) return NULL;
    int64_t n = input->sizes[0], channels = input->sizes[1], rest = 1;
    for (int i = 2; i < input->ndim; i++) rest *= input->sizes[i];
    tp_tensor3 r = tp_native_group_norm(input, weight, bias, n, channels, rest, num_groups, eps);
    tp_release(r.v[1]);
    tp_release(r.v[2]);
    return r.v[0];
}

/* ---- instance_norm: batch_norm with every image's channels as channels of one ---- */

static tp_tensor *for_each_image(tp_tensor *per_channel, int64_t images) {
    return per_channel ? tp_repeat(per_channel, TP_INTS(images)) : NULL;
}

/* The statistic of all images' channels, averaged over the images, into the running one. */
static int average_into(tp_tensor *running, tp_tensor *repeated, int64_t images, int64_t channels) {
    if (!running) return 0;
    tp_autoref *rows = tp_view(repeated, TP_INTS(images, channels));
    tp_autoref *mean = rows ? tp_mean_dim(rows, TP_INTS(0), false, TP_NO_DTYPE) : NULL;
    tp_autoref *plain = tp_detach(running);
    return mean && plain ? tp_copy_(plain, mean, false) : -1;
}

/* instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool
 * use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor */
tp_tensor *instance_norm_composite(tp_tensor *input, tp_tensor *weight, tp_tensor *bias, tp_tensor *running_mean,
                                   tp_tensor *running_var, bool use_input_stats, double momentum, double eps,
                                   bool cudnn_enabled) {
    tp_tensor *all[] = {weight, bias, running_mean, running_var};
    int64_t sizes[TP_MAX_DIMS];
    if (!use_input_stats && (!running_mean || !running_var))
        return tp_fail_null(TP_RuntimeError,
                            "Expected running_mean and running_var to be defined when use_input_stats is false");
    if (check_channels("instance_norm", input, all, batch_names, 4) < 0) return NULL;
    int64_t images = input->sizes[0], channels = input->sizes[1];
    memcpy(sizes, input->sizes, (size_t)input->ndim * sizeof *sizes);
    sizes[0] = 1, sizes[1] = images * channels;
    tp_autoref *w = for_each_image(weight, images), *b = for_each_image(bias, images),
               *mean = for_each_image(running_mean, images), *var = for_each_image(running_var, images);
    if ((weight && !w) || (bias && !b) || (running_mean && !mean) || (running_var && !var)) return NULL;
    tp_autoref *flat = tp_contiguous(input, TP_CONTIGUOUS_FORMAT);
    tp_autoref *x = flat ? tp_view(flat, (tp_ints){sizes, input->ndim}) : NULL;
    tp_autoref *out = x ? tp_batch_norm(x, w, b, mean, var, use_input_stats, momentum, eps, cudnn_enabled) : NULL;
    if (!out || (use_input_stats && (average_into(running_mean, mean, images, channels) < 0 ||
                                     average_into(running_var, var, images, channels) < 0)))
        return NULL;
    return tp_view(out, tp_sizes(input));
}
