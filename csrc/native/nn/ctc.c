/* ctc.c: connectionist temporal classification: checks, the lengths of a batch, and reductions.
 *
 * log_probs are [time, batch, class]; the labels are a row of targets for each sample, or one after another. The
 * gradient is that of the scores before a log_softmax, as PyTorch defines it. */
#include "NativeFunctions.h"
#include "Primitives.h"
#include "iter/iter.h"
#include "native/common/host_ints.h"
#include "prim/plain.h"
#include "prim/table.h"
#include "prim/transfer.h"

#include <math.h>

enum { NONE, MEAN, SUM };

static int check_lengths(tp_ints lengths, int64_t batch, int64_t most, const char *name) {
    if (lengths.size != batch) return tp_fail(TP_RuntimeError, "%s must be of size batch_size", name);
    for (int64_t i = 0; i < batch; i++) {
        if (lengths.data[i] < 0)
            return tp_fail(TP_RuntimeError, "Expected %s to have value at least 0, but got value %lld", name,
                           (long long)lengths.data[i]);
        if (most >= 0 && lengths.data[i] > most)
            return tp_fail(TP_RuntimeError, "Expected %s to have value at most %lld, but got value %lld", name,
                           (long long)most, (long long)lengths.data[i]);
    }
    return 0;
}

static int check(const tp_tensor *log_probs, const tp_tensor *targets, tp_ints input_lengths, tp_ints target_lengths,
                 int64_t blank) {
    if (log_probs->ndim != 3)
        return tp_fail(TP_RuntimeError,
                       "Expected 3-dimensional tensor, but got %d-dimensional tensor for argument 'log_probs'",
                       log_probs->ndim);
    if (log_probs->dtype != TP_FLOAT32 && log_probs->dtype != TP_FLOAT64)
        return tp_fail(TP_NotImplementedError, "\"ctc_loss_cpu\" not implemented for '%s'",
                       tp_scalar_type_name((tp_dtype)log_probs->dtype));
    if (targets->dtype != TP_INT64 && targets->dtype != TP_INT32)
        return tp_fail(TP_RuntimeError, "Expected tensor for argument 'targets' to have scalar type Int; but got %s",
                       tp_scalar_type_name((tp_dtype)targets->dtype));
    if (targets->ndim < 1 || targets->ndim > 2)
        return tp_fail(TP_RuntimeError,
                       "Expected 1 to 2 dimensions, but got %d-dimensional tensor for argument 'targets'",
                       targets->ndim);
    int64_t batch = log_probs->sizes[1];
    if (log_probs->numel == 0) return tp_fail(TP_RuntimeError, "log_probs tensor must not be empty");
    if (blank < 0 || blank >= log_probs->sizes[2]) return tp_fail(TP_RuntimeError, "blank must be in label range");
    if (check_lengths(input_lengths, batch, log_probs->sizes[0], "input_lengths") < 0) return -1;
    return check_lengths(target_lengths, batch, -1, "target_lengths");
}

/* Where each sample's labels begin, and the longest target. */
typedef struct {
    tp_tensor *table; /* owned */
    tp_ints starts;
    int64_t longest;
} layout;

static int lay_out(layout *l, const tp_tensor *targets, tp_ints lengths) {
    int64_t *starts, sum = 0;
    if (!(l->table = tp_table_int64(TP_INTS(lengths.size), &starts))) return -1;
    l->starts = (tp_ints){starts, lengths.size};
    for (int64_t i = 0; i < lengths.size; i++) {
        starts[i] = targets->ndim == 1 ? sum : i * targets->sizes[1];
        if (__builtin_add_overflow(sum, lengths.data[i], &sum)) sum = INT64_MAX;
        if (lengths.data[i] > l->longest) l->longest = lengths.data[i];
    }
    if (targets->ndim == 1 && targets->sizes[0] != sum)
        return tp_fail(TP_RuntimeError,
                       "Expected tensor to have size %lld at dimension 0, but got size %lld for argument 'targets'",
                       (long long)sum, (long long)targets->sizes[0]);
    if (targets->ndim == 2 && (targets->sizes[0] != lengths.size || targets->sizes[1] < l->longest))
        return tp_fail(TP_RuntimeError,
                       "Expected tensor to have size %lld at dimension 0 and at least %lld at dimension 1 for argument "
                       "'targets'",
                       (long long)lengths.size, (long long)l->longest);
    return 0;
}
static void free_layout(layout *l) { tp_release(l->table); }

/* _ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, bool
 * zero_infinity=False) -> (Tensor, Tensor) */
tp_tensor2 _ctc_loss_dense(tp_tensor *log_probs, tp_tensor *targets, tp_ints input_lengths, tp_ints target_lengths,
                           int64_t blank, bool zero_infinity TP_UNUSED) {
    tp_tensor2 none = {{NULL}};
    TP_CLEANUP(free_layout) layout l = {0};
    if (check(log_probs, targets, input_lengths, target_lengths, blank) < 0 || lay_out(&l, targets, target_lengths) < 0)
        return none;
    tp_dtype dtype = (tp_dtype)log_probs->dtype;
    int64_t steps = log_probs->sizes[0], batch = log_probs->sizes[1];
    tp_autoref *loss = tp_new_empty(TP_INTS(batch), dtype, log_probs->device);
    tp_autoref *alpha = loss ? tp_new_empty(TP_INTS(batch, steps, 2 * l.longest + 1), dtype, log_probs->device) : NULL;
    tp_autoref *x = alpha ? tp_plain(log_probs, dtype) : NULL, *labels = x ? tp_plain(targets, TP_INT64) : NULL;
    if (!labels || (alpha->numel && tp_fill_data(alpha, TP_SCALAR_F(-INFINITY)) < 0)) return none;
    if (batch && tp_prim_ctc_forward(x, labels, input_lengths, target_lengths, l.starts, blank, loss, alpha) < 0)
        return none;
    return (tp_tensor2){{tp_take(loss), tp_take(alpha)}};
}

/* _ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, Tensor
 * neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor */
tp_tensor *_ctc_loss_backward_dense(tp_tensor *grad, tp_tensor *log_probs, tp_tensor *targets, tp_ints input_lengths,
                                    tp_ints target_lengths, tp_tensor *neg_log_likelihood, tp_tensor *log_alpha,
                                    int64_t blank, bool zero_infinity) {
    TP_CLEANUP(free_layout) layout l = {0};
    if (check(log_probs, targets, input_lengths, target_lengths, blank) < 0 || lay_out(&l, targets, target_lengths) < 0)
        return NULL;
    tp_dtype dtype = (tp_dtype)log_probs->dtype;
    int64_t steps = log_probs->sizes[0], batch = log_probs->sizes[1];
    bool fits = grad->numel == batch && neg_log_likelihood->numel == batch && log_alpha->ndim == 3 &&
                log_alpha->sizes[0] == batch && log_alpha->sizes[1] == steps &&
                log_alpha->sizes[2] == 2 * l.longest + 1;
    if (!fits) return tp_fail_null(TP_RuntimeError, "_ctc_loss_backward: the gradient is of another call");
    tp_autoref *out = tp_new_empty(tp_sizes(log_probs), dtype, log_probs->device);
    tp_autoref *x = out ? tp_plain(log_probs, dtype) : NULL, *labels = x ? tp_plain(targets, TP_INT64) : NULL;
    tp_autoref *g = labels ? tp_plain(grad, dtype) : NULL, *loss = g ? tp_plain(neg_log_likelihood, dtype) : NULL;
    tp_autoref *alpha = loss ? tp_plain(log_alpha, dtype) : NULL;
    if (!alpha || (out->numel && tp_fill_data(out, TP_SCALAR_I(0)) < 0)) return NULL;
    if (out->numel && tp_prim_ctc_backward(g, x, labels, input_lengths, target_lengths, l.starts, loss, alpha, blank,
                                           zero_infinity, out) < 0)
        return NULL;
    return tp_take(out);
}

/* ---- lengths that are tensors ---- */

/* Both lengths of a batch on the host. */
typedef struct {
    tp_tensor *times, *lengths; /* owned */
    tp_ints of_input, of_target;
} host_lengths;
static void free_lengths(host_lengths *l) { tp_release(l->times), tp_release(l->lengths); }

static tp_tensor *read_lengths(tp_tensor *t, const char *name, tp_ints *ints) {
    if (!tp_is_integral_dtype((tp_dtype)t->dtype) || t->dtype == TP_BOOL)
        return tp_fail_null(TP_RuntimeError, "%s must be integral", name);
    tp_autoref *table = tp_host_ints(t);
    const int64_t *values = table ? tp_table_values(table) : NULL;
    if (!table || (table->numel && !values)) return NULL;
    *ints = (tp_ints){values, table->numel};
    return tp_take(table);
}
static int start_lengths(host_lengths *l, tp_tensor *input_lengths, tp_tensor *target_lengths) {
    l->times = read_lengths(input_lengths, "input_lengths", &l->of_input);
    l->lengths = l->times ? read_lengths(target_lengths, "target_lengths", &l->of_target) : NULL;
    return l->lengths ? 0 : -1;
}

/* _ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, bool
 * zero_infinity=False) -> (Tensor, Tensor) */
tp_tensor2 _ctc_loss_Tensor_composite(tp_tensor *log_probs, tp_tensor *targets, tp_tensor *input_lengths,
                                      tp_tensor *target_lengths, int64_t blank, bool zero_infinity) {
    TP_CLEANUP(free_lengths) host_lengths l = {0};
    if (start_lengths(&l, input_lengths, target_lengths) < 0) return (tp_tensor2){{NULL}};
    return tp__ctc_loss(log_probs, targets, l.of_input, l.of_target, blank, zero_infinity);
}
tp_tensor *_ctc_loss_backward_Tensor_composite(tp_tensor *grad, tp_tensor *log_probs, tp_tensor *targets,
                                               tp_tensor *input_lengths, tp_tensor *target_lengths,
                                               tp_tensor *neg_log_likelihood, tp_tensor *log_alpha, int64_t blank,
                                               bool zero_infinity) {
    TP_CLEANUP(free_lengths) host_lengths l = {0};
    if (start_lengths(&l, input_lengths, target_lengths) < 0) return NULL;
    return tp__ctc_loss_backward(grad, log_probs, targets, l.of_input, l.of_target, neg_log_likelihood, log_alpha,
                                 blank, zero_infinity);
}

/* ---- the user's forms ---- */

/* The mean divides each loss by the length of its target first. */
static tp_tensor *mean_of(tp_tensor *loss, tp_ints lengths) {
    int64_t *values;
    tp_autoref *counts = tp_table_int64(TP_INTS(lengths.size), &values);
    if (!counts) return NULL;
    for (int64_t i = 0; i < lengths.size; i++) values[i] = lengths.data[i] > 1 ? lengths.data[i] : 1;
    tp_autoref *there = tp_to_device(counts, loss->device, (tp_dtype)loss->dtype, false, false, TP_NO_FORMAT);
    tp_autoref *each = there ? tp_div_Tensor(loss, there) : NULL;
    return each ? tp_mean(each, TP_NO_DTYPE) : NULL;
}

/* ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, int
 * reduction=Mean, bool zero_infinity=False) -> Tensor */
tp_tensor *ctc_loss_IntList_composite(tp_tensor *log_probs, tp_tensor *targets, tp_ints input_lengths,
                                      tp_ints target_lengths, int64_t blank, int64_t reduction, bool zero_infinity) {
    bool alone = log_probs->ndim == 2;
    tp_autoref *batch = alone ? tp_unsqueeze(log_probs, 1) : tp_retain(log_probs);
    tp_autoref *labels = !batch ? NULL : alone && targets->ndim == 1 ? tp_unsqueeze(targets, 0) : tp_retain(targets);
    if (!labels) return NULL;
    tp_tensor2 r = tp__ctc_loss(batch, labels, input_lengths, target_lengths, blank, zero_infinity);
    tp_autoref *loss = r.v[0], *alpha = r.v[1];
    (void)alpha;
    if (loss && zero_infinity) {
        tp_autoref *never = tp_eq_Scalar(loss, TP_SCALAR_F(INFINITY));
        tp_tensor *kept = never ? tp_masked_fill_Scalar(loss, never, TP_SCALAR_I(0)) : NULL;
        tp_release(loss);
        loss = kept;
    }
    if (!loss) return NULL;
    if (reduction == MEAN) return mean_of(loss, target_lengths);
    if (reduction == SUM) return tp_sum(loss, TP_NO_DTYPE);
    return alone ? tp_squeeze_dim(loss, 0) : tp_take(loss);
}
tp_tensor *ctc_loss_Tensor_composite(tp_tensor *log_probs, tp_tensor *targets, tp_tensor *input_lengths,
                                     tp_tensor *target_lengths, int64_t blank, int64_t reduction, bool zero_infinity) {
    TP_CLEANUP(free_lengths) host_lengths l = {0};
    if (start_lengths(&l, input_lengths, target_lengths) < 0) return NULL;
    return tp_ctc_loss_IntList(log_probs, targets, l.of_input, l.of_target, blank, reduction, zero_infinity);
}
