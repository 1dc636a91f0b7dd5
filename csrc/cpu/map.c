/* map.c: the primitive map on the CPU, and its shortcut: the loop is called on the tensors' own memory, which is
 * contiguous, of one dtype and one shape, with numbers and one-element tensors in between.
 *
 * Numbers are stored in the loop's dtype on the stack and read with stride 0. The 16-bit floats compute in float32,
 * through the blocks of tp_iter_run, unless the operator has a loop of its own for them. */
#include "PrimitiveKernels.h"
#include "core/parallel.h"
#include "cpu/run.h"
#include "prim/pointwise.h"
#include "core/memory.h"
#include "core/tls.h"

TP_INLINE int64_t grain_of(const tp_pointwise *p) { return TP_GRAIN >> p->grain_shift; }

TP_INLINE bool same_shape(const tp_tensor *a, const tp_tensor *b) {
    if (a->ndim != b->ndim) return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->sizes[i] != b->sizes[i]) return false;
    return true;
}

/* map(int program, Tensor?[] inputs, Scalar[] numbers, ScalarType compute, *, Tensor(a!) out) -> () */
int map_cpu(int64_t program, tp_tensors inputs, tp_scalars numbers, tp_dtype compute, tp_tensor *out) {
    tp_map_job job;
    char *data[TP_MAP_INPUTS + 1];
    int64_t strides[TP_MAP_INPUTS + 1];
    if (tp_map_begin(&job, program, inputs, numbers, compute, out) < 0) return -1;
    const tp_pointwise *p = job.call.p;
    if (out->numel < grain_of(p) && tp_map_lies_flat(&job, data, strides)) {
        p->loops[compute](data, strides, out->numel, job.call.params);
        return tp_status_of_thread(); /* a signal ended a recurrence */
    }
    return tp_map_finish(&job) < 0 ? -1 : tp_iter_run(&job.it, p->loops[compute], job.call.params, grain_of(p));
}

/* ---- the shortcut ---- */

typedef struct {
    char *data[TP_MAP_INPUTS + 1];
    int64_t strides[TP_MAP_INPUTS + 1];
    tp_element numbers[TP_MAP_INPUTS];
    const tp_tensor *shape; /* the input that has the result's sizes */
    tp_dtype dtype, result; /* of the tensors, and of what comes out */
    tp_loop_fn loop;        /* NULL: through float32 */
} short_call;

/* Whether a number leaves a tensor's dtype as it is. */
TP_INLINE bool yields_to(const tp_scalar *s, tp_dtype d) {
    static const uint8_t needs[] = {[TP_SCALAR_BOOL] = TP_BOOL,
                                    [TP_SCALAR_INT] = TP_UINT8,
                                    [TP_SCALAR_UINT] = TP_UINT8,
                                    [TP_SCALAR_FLOAT] = TP_FLOAT16,
                                    [TP_SCALAR_COMPLEX] = TP_COMPLEX64};
    return d >= needs[s->kind]; /* the dtypes ascend by category */
}

TP_INLINE bool keeps_dtype(tp_promotion promotion, tp_dtype d) {
    if (promotion == TP_PROMOTE_INT_TO_FLOAT) return d >= TP_FLOAT16;
    return promotion != TP_PROMOTE_BOOL_TO_LONG || d != TP_BOOL;
}

/* The tensor that gives the shape: the one of most dimensions, and of most elements among those. */
TP_INLINE const tp_tensor *larger(const tp_tensor *a, const tp_tensor *b) {
    if (!a || b->ndim > a->ndim) return b;
    return b->ndim == a->ndim && b->numel > a->numel ? b : a;
}

/* Whether the tensors are of the kind that the shortcut takes; finds dtype and shape. */
TP_INLINE bool short_tensors(const tp_pointwise *p, const tp_operand *inputs, int n, short_call *c) {
    const tp_tensor *shape = NULL;
    int dtype = TP_NO_DTYPE;
    bool only_numbers = true; /* whose dtype is not the result's */
    for (int i = 0; i < n; i++) {
        const tp_tensor *t = inputs[i].tensor;
        if (!t) continue;
        if (t->device.type != TP_DEVICE_CPU || !tp_is_contiguous(t)) return false;
        shape = larger(shape, t);
        if (p->input_dtype[i] != TP_NO_DTYPE) {
            if (t->dtype != p->input_dtype[i]) return false;
            continue;
        }
        if (dtype != TP_NO_DTYPE && dtype != t->dtype) return false;
        dtype = t->dtype;
        only_numbers &= (t->flags & TP_FLAG_WRAPPED_NUMBER) != 0;
    }
    if (only_numbers || tp_is_stored_dtype((tp_dtype)dtype) || !keeps_dtype(p->promotion, (tp_dtype)dtype))
        return false;
    c->dtype = (tp_dtype)dtype;
    c->shape = shape;
    return true;
}

/* Points the loop at an input; false where it does not fit after all. */
TP_INLINE bool short_input(const tp_operand *input, int i, tp_dtype loop_dtype, short_call *c) {
    const tp_tensor *t = input->tensor;
    if (!t) {
        if (!yields_to(input->number, c->dtype)) return false;
        tp_scalar_store(input->number, loop_dtype, &c->numbers[i]);
        c->data[i + 1] = (char *)&c->numbers[i];
        c->strides[i + 1] = 0;
        return true;
    }
    c->data[i + 1] = tp_data(t);
    c->strides[i + 1] = tp_itemsize((tp_dtype)t->dtype);
    if (t == c->shape || same_shape(t, c->shape)) return true;
    c->strides[i + 1] = 0;
    return t->numel == 1;
}

/* 16-bit floats have loops of their own where only bits of theirs change. */
TP_INLINE tp_dtype short_loop_dtype(const tp_pointwise *p, tp_dtype d) {
    return p->loops[d] ? d : tp_pointwise_loop_dtype(p, d);
}

TP_INLINE bool start_short_of(const tp_pointwise *p, const tp_operand *inputs, int n, short_call *c) {
    if (!short_tensors(p, inputs, n, c)) return false;
    tp_dtype loop_dtype = short_loop_dtype(p, c->dtype);
    if (!p->loops[loop_dtype]) return false;
    for (int i = 0; i < n; i++)
        if (!short_input(&inputs[i], i, loop_dtype, c)) return false;
    c->loop = loop_dtype == c->dtype ? p->loops[loop_dtype] : NULL;
    c->result = tp_promotion_result((tp_promotion)p->promotion, c->dtype);
    return true;
}

TP_INLINE bool on_cpu_and_contiguous(const tp_tensor *t) {
    return t && t->device.type == TP_DEVICE_CPU && tp_is_contiguous(t);
}

TP_INLINE bool has_fixed_dtypes(const tp_pointwise *p) {
    return p->input_dtype[0] >= 0 || p->input_dtype[1] >= 0 || p->input_dtype[2] >= 0 || p->input_dtype[3] >= 0;
}

/* The commonest call by far: all inputs are tensors of one dtype and one shape. */
TP_INLINE bool start_alike(const tp_pointwise *p, const tp_operand *inputs, int n, short_call *c) {
    const tp_tensor *first = inputs[0].tensor;
    if (!on_cpu_and_contiguous(first) || (first->flags & TP_FLAG_WRAPPED_NUMBER) || has_fixed_dtypes(p)) return false;
    tp_dtype d = (tp_dtype)first->dtype;
    for (int i = 1; i < n; i++) {
        const tp_tensor *t = inputs[i].tensor;
        if (!on_cpu_and_contiguous(t) || t->dtype != d || !same_shape(t, first)) return false;
    }
    c->loop = p->loops[d];
    if (!c->loop || !keeps_dtype((tp_promotion)p->promotion, d)) return false;
    for (int i = 0; i < n; i++) {
        c->data[i + 1] = tp_data(inputs[i].tensor);
        c->strides[i + 1] = tp_itemsize(d);
    }
    c->shape = first;
    c->dtype = d;
    c->result = tp_promotion_result((tp_promotion)p->promotion, d);
    return true;
}

/* One and two inputs by constant, for straight code. */
TP_INLINE bool start_short(const tp_pointwise *p, const tp_operand *inputs, short_call *c) {
    if (p->ninputs == 2) return start_alike(p, inputs, 2, c) || start_short_of(p, inputs, 2, c);
    if (p->ninputs == 1) return start_alike(p, inputs, 1, c) || start_short_of(p, inputs, 1, c);
    return start_short_of(p, inputs, p->ninputs, c);
}

/* Long or 16-bit: a plan of one dimension, for its threads and blocks. */
static int __attribute__((noinline)) run_short_plan(const tp_pointwise *p, const tp_operand *inputs,
                                                    const tp_value *params, short_call *c) {
    tp_iter it;
    tp_dtype loop_dtype = short_loop_dtype(p, c->dtype);
    tp_iter_flat(&it, 1, p->ninputs + 1, c->shape->numel);
    for (int i = 0; i <= p->ninputs; i++) {
        it.data[i] = c->data[i];
        it.strides[i][0] = c->strides[i];
    }
    it.dtype[0] = c->result;
    it.loop_dtype[0] = tp_promotion_result((tp_promotion)p->promotion, loop_dtype);
    for (int i = 0; i < p->ninputs; i++) {
        tp_dtype wanted = p->input_dtype[i] != TP_NO_DTYPE ? (tp_dtype)p->input_dtype[i] : loop_dtype;
        it.loop_dtype[i + 1] = wanted;
        it.dtype[i + 1] = inputs[i].tensor ? (tp_dtype)inputs[i].tensor->dtype : wanted;
    }
    return tp_iter_run(&it, p->loops[loop_dtype], params, grain_of(p));
}

TP_INLINE int run_short(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params, short_call *c,
                        tp_tensor *out) {
    if (tp_unlikely(tp_pointwise_check_params(p, params, tp_pointwise_loop_dtype(p, c->dtype)) < 0)) return -1;
    c->data[0] = tp_data(out);
    c->strides[0] = tp_itemsize(c->result);
    if (tp_unlikely(!c->loop || out->numel >= grain_of(p))) return run_short_plan(p, inputs, params, c);
    c->loop(c->data, c->strides, out->numel, params);
    return tp_status_of_thread(); /* a signal ended a recurrence */
}

/* Elements may be written where they are read from, and nowhere else in the inputs' memory. */
TP_INLINE bool writes_exactly(const tp_operand *inputs, int n, const tp_tensor *out) {
    for (int i = 0; i < n; i++) {
        const tp_tensor *t = inputs[i].tensor;
        if (!t || t == out) continue;
        if (t->storage->data != out->storage->data) continue;
        if (t->byte_offset != out->byte_offset || t->dtype != out->dtype || t->numel != out->numel) return false;
    }
    return true;
}

TP_INLINE bool short_output(const tp_pointwise *p, const tp_operand *inputs, const short_call *c,
                            const tp_tensor *out) {
    if (out->device.type != TP_DEVICE_CPU || !tp_is_contiguous(out)) return false;
    return (tp_dtype)out->dtype == c->result && same_shape(out, c->shape) && writes_exactly(inputs, p->ninputs, out);
}

static int make_short(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params, tp_tensor **made) {
    short_call c;
    if (tp_unlikely(!start_short(p, inputs, &c))) return 0;
    tp_tensor *out = tp_new_empty(tp_sizes(c.shape), c.result, TP_CPU);
    if (tp_unlikely(!out)) return -1;
    *made = out;
    if (tp_likely(run_short(p, inputs, params, &c, out) == 0)) return 1;
    tp_release(out);
    return -1;
}

static int into_short(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params, tp_tensor *out) {
    short_call c;
    if (!start_short(p, inputs, &c) || !short_output(p, inputs, &c, out)) return 0;
    return run_short(p, inputs, params, &c, out) == 0 ? 1 : -1;
}

static bool takes_short(const tp_pointwise *p, const tp_operand *inputs) {
    short_call c;
    return start_short(p, inputs, &c);
}

const tp_map_shortcut map_shortcut_cpu = {make_short, into_short, takes_short};
