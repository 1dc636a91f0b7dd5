/* pointwise.c: the driver of all pointwise operators on the CPU and on Meta.
 *
 * Two ways through. The short one takes CPU tensors that are contiguous, of one dtype and one shape, with numbers and
 * one-element tensors in between: the loop is called on the tensors' own memory, and no plan is made. Everything else
 * goes the general way: result type, broadcast shape, output, plan, run.
 *
 * Numbers are stored in the loop's dtype on the stack and read with stride 0. The 16-bit floats compute in float32,
 * through the blocks of tp_iter_run, unless the operator has a loop of its own for them. */
#include "iter/pointwise.h"

#include "core/parallel.h"
#include "prim/transfer.h"
#include "cpu/run.h"

#include <string.h>

#define MAX_INPUTS 4
#define MAX_TENSORS (MAX_INPUTS + 1)

/* A number as an element of the loop's dtype. */
typedef union {
    int64_t i;
    tp_complex128 c;
} element;

TP_INLINE int64_t grain_of(const tp_pointwise *p) { return TP_GRAIN >> p->grain_shift; }

/* The dtype that the loops for d take, and what they give. */
TP_INLINE tp_dtype loop_dtype_of(const tp_pointwise *p, tp_dtype d) { return p->loops[d] ? d : tp_compute_dtype(d); }

/* ---- the short way ---- */

typedef struct {
    char *data[MAX_TENSORS];
    int64_t strides[MAX_TENSORS];
    element numbers[MAX_INPUTS];
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

TP_INLINE bool same_shape(const tp_tensor *a, const tp_tensor *b) {
    if (a->ndim != b->ndim) return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->sizes[i] != b->sizes[i]) return false;
    return true;
}

/* Whether the tensors are of the kind that the short way takes; finds dtype and shape. */
TP_INLINE bool short_tensors(const tp_pointwise *p, const tp_operand *inputs, int n, short_call *c) {
    const tp_tensor *shape = NULL;
    int dtype = TP_NO_DTYPE;
    for (int i = 0; i < n; i++) {
        const tp_tensor *t = inputs[i].tensor;
        if (!t) continue;
        if (t->device.type != TP_DEVICE_CPU || !tp_is_contiguous(t)) return false;
        shape = larger(shape, t);
        if (p->input_dtype[i] != TP_NO_DTYPE) {
            if (t->dtype != p->input_dtype[i]) return false;
        } else if (dtype == TP_NO_DTYPE) {
            dtype = t->dtype;
        } else if (dtype != t->dtype) {
            return false;
        }
    }
    if (dtype == TP_NO_DTYPE || !keeps_dtype(p->promotion, (tp_dtype)dtype)) return false;
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

TP_INLINE bool start_short_of(const tp_pointwise *p, const tp_operand *inputs, int n, short_call *c) {
    if (!short_tensors(p, inputs, n, c)) return false;
    tp_dtype loop_dtype = loop_dtype_of(p, c->dtype);
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
    if (!on_cpu_and_contiguous(first) || has_fixed_dtypes(p)) return false;
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

/* A number that the dtype of the computation cannot hold is an error, in whichever operator; small ones fit all. */
static int TP_COLD check_each_param(const tp_pointwise *p, const tp_value *params, tp_dtype dtype) {
    for (int i = 0; i < p->nparams; i++)
        if (params[i].tag == TP_SCALAR && params[i].scalar && tp_scalar_check_fits(params[i].scalar, dtype) < 0)
            return tp_error_prefix("%s: ", p->name);
    return 0;
}
TP_INLINE int check_params(const tp_pointwise *p, const tp_value *params, tp_dtype dtype) {
    for (int i = 0; i < p->nparams; i++) {
        const tp_scalar *s = params[i].tag == TP_SCALAR ? params[i].scalar : NULL;
        if (s && !(s->kind == TP_SCALAR_INT && (uint64_t)s->i < 128)) return check_each_param(p, params, dtype);
    }
    return 0;
}

/* Long or 16-bit: a plan of one dimension, for its threads and blocks. */
static int __attribute__((noinline)) run_short_plan(const tp_pointwise *p, const tp_operand *inputs,
                                                    const tp_value *params, short_call *c) {
    tp_iter it;
    tp_dtype loop_dtype = loop_dtype_of(p, c->dtype);
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
    if (tp_unlikely(check_params(p, params, loop_dtype_of(p, c->dtype)) < 0)) return -1;
    c->data[0] = tp_data(out);
    c->strides[0] = tp_itemsize(c->result);
    if (tp_unlikely(!c->loop || out->numel >= grain_of(p))) return run_short_plan(p, inputs, params, c);
    c->loop(c->data, c->strides, out->numel, params);
    return 0;
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

/* ---- the general way ---- */

typedef struct {
    const tp_pointwise *p;
    tp_operand inputs[MAX_INPUTS];
    tp_tensor *copies[MAX_INPUTS]; /* of inputs that might share memory with the output; owned */
    tp_device device;
    tp_dtype loop_dtype, result; /* result: of a new output */
    int64_t sizes[TP_MAX_DIMS];
    int ndim;
} general_call;

static void release_copies(general_call *g) {
    for (int i = 0; i < g->p->ninputs; i++) tp_release(g->copies[i]);
}

/* `out`: the tensor written to, or NULL. */
static int fail_devices(const general_call *g, const tp_tensor *out) {
    char device[40];
    tp_autotext text = {0};
    for (int i = 0; i < g->p->ninputs; i++)
        if (g->inputs[i].tensor)
            tp_text_add(&text, "%s%s on %s", text.length ? ", " : "", g->p->inputs[i],
                        tp_device_print(g->inputs[i].tensor->device, device));
    if (out) tp_text_add(&text, ", the output on %s", tp_device_print(out->device, device));
    return tp_fail(TP_RuntimeError, "%s: Expected all tensors to be on the same device, got %s", g->p->name,
                   text.text ? text.text : "");
}

/* All on one device; a 0-dimensional CPU tensor goes with any. */
static int find_device(general_call *g) {
    g->device = TP_CPU;
    bool found = false;
    for (int i = 0; i < g->p->ninputs; i++) {
        const tp_tensor *t = g->inputs[i].tensor;
        if (!t || (t->ndim == 0 && t->device.type == TP_DEVICE_CPU)) continue;
        if (found && !tp_device_equal(t->device, g->device)) return fail_devices(g, NULL);
        g->device = t->device;
        found = true;
    }
    return 0;
}

static int fail_no_loop(const tp_pointwise *p, tp_dtype d) {
    int length = (int)strcspn(p->name, ".");
    return tp_fail(TP_NotImplementedError, "\"%.*s\" not implemented for '%s'", length, p->name,
                   tp_scalar_type_name(d));
}

static int find_dtypes(general_call *g) {
    const tp_pointwise *p = g->p;
    tp_operand promoting[MAX_INPUTS];
    int n = 0;
    for (int i = 0; i < p->ninputs; i++)
        if (p->input_dtype[i] == TP_NO_DTYPE) promoting[n++] = g->inputs[i];
    tp_dtype common = n ? tp_result_type(promoting, n) : (tp_dtype)p->input_dtype[0];
    if (common == TP_NO_DTYPE) return -1;
    tp_dtype compute = tp_promotion_compute((tp_promotion)p->promotion, common);
    if (!(p->loop_mask >> compute & 1)) return fail_no_loop(p, compute);
    g->loop_dtype = loop_dtype_of(p, compute);
    g->result = tp_promotion_result((tp_promotion)p->promotion, compute);
    return 0;
}

static int start_general(general_call *g, const tp_pointwise *p, const tp_operand *inputs) {
    g->p = p;
    for (int i = 0; i < p->ninputs; i++) {
        g->inputs[i] = inputs[i];
        g->copies[i] = NULL;
    }
    if (find_device(g) < 0 || find_dtypes(g) < 0) return -1;
    g->ndim = tp_iter_broadcast(g->inputs, p->ninputs, g->sizes);
    return g->ndim < 0 ? -1 : 0;
}

static tp_tensor *new_output(general_call *g) {
    int64_t strides[TP_MAX_DIMS];
    tp_ints sizes = {g->sizes, g->ndim};
    tp_iter_output_strides(g->inputs, g->p->ninputs, sizes, strides);
    return tp_new_empty_strided(sizes, (tp_ints){strides, g->ndim}, g->result, g->device);
}

static tp_pointwise_runner runners[TP_NUM_DEVICES];

void tp_set_pointwise_runner(tp_device_type type, tp_pointwise_runner runner) { runners[type] = runner; }

static int run_on_device(const general_call *g, const tp_iter *it, tp_tensor *const *tensors, const tp_value *params) {
    tp_pointwise_runner runner = runners[g->device.type];
    if (runner) return runner(g->p, it, g->loop_dtype, tensors, params);
    return tp_fail(TP_NotImplementedError, "%s: device type %s runs no pointwise operators", g->p->name,
                   tp_device_type_name((tp_device_type)g->device.type));
}

static int run_general(general_call *g, const tp_value *params, tp_tensor *out) {
    const tp_pointwise *p = g->p;
    if (check_params(p, params, g->loop_dtype) < 0) return -1;
    if (out->device.type == TP_DEVICE_META || out->numel == 0) return 0;
    tp_tensor *tensors[MAX_TENSORS] = {out};
    for (int i = 0; i < p->ninputs; i++) tensors[i + 1] = g->inputs[i].tensor;
    tp_iter it;
    if (tp_iter_plan(&it, tensors, 1, p->ninputs + 1, (tp_ints){g->sizes, g->ndim}) < 0) return -1;
    it.loop_dtype[0] = tp_promotion_result((tp_promotion)p->promotion, g->loop_dtype);
    element numbers[MAX_INPUTS];
    for (int i = 0; i < p->ninputs; i++) {
        tp_dtype wanted = p->input_dtype[i] != TP_NO_DTYPE ? (tp_dtype)p->input_dtype[i] : g->loop_dtype;
        it.loop_dtype[i + 1] = wanted;
        if (tensors[i + 1]) continue;
        tp_scalar_store(g->inputs[i].number, wanted, &numbers[i]);
        it.data[i + 1] = (char *)&numbers[i];
        it.dtype[i + 1] = wanted;
    }
    if (out->device.type != TP_DEVICE_CPU) return run_on_device(g, &it, tensors, params);
    return tp_iter_run(&it, p->loops[g->loop_dtype], params, grain_of(p));
}

static tp_tensor *__attribute__((noinline)) new_general(const tp_pointwise *p, const tp_operand *inputs,
                                                        const tp_value *params) {
    general_call g;
    if (start_general(&g, p, inputs) < 0) return NULL;
    tp_autoref *out = new_output(&g);
    return out && run_general(&g, params, out) == 0 ? tp_take(out) : NULL;
}

/* ---- writing into a tensor that is there ---- */

static bool has_shape(const general_call *g, const tp_tensor *t) {
    return t->ndim == g->ndim && memcmp(t->sizes, g->sizes, sizeof(int64_t) * (size_t)g->ndim) == 0;
}

static int fail_shape(const general_call *g, const tp_tensor *out) {
    tp_autotext text = {0};
    tp_text_ints(&text, tp_sizes(out));
    tp_text_add(&text, " doesn't match the broadcast shape ");
    tp_text_ints(&text, (tp_ints){g->sizes, g->ndim});
    return tp_fail(TP_RuntimeError, "output with shape %s", text.text ? text.text : "");
}

static int resize_output(general_call *g, tp_tensor *out) {
    int64_t strides[TP_MAX_DIMS];
    tp_ints sizes = {g->sizes, g->ndim};
    tp_iter_output_strides(g->inputs, g->p->ninputs, sizes, strides);
    return tp_tensor_resize(out, sizes, (tp_ints){strides, g->ndim});
}

static int check_overlap(const tp_operand *inputs, int n, tp_tensor *out) {
    tp_tensor *tensors[MAX_TENSORS] = {out};
    for (int i = 0; i < n; i++) tensors[i + 1] = inputs[i].tensor;
    return tp_iter_check_overlap(tensors, 1, n + 1);
}

/* Copies the inputs that might share memory with the output in another way than element for element. */
static int separate_inputs(general_call *g, tp_tensor *out) {
    for (int i = 0; i < g->p->ninputs; i++) {
        tp_tensor *t = g->inputs[i].tensor;
        if (!t || tp_likely(tp_overlap_of(out, t) != TP_OVERLAP_UNKNOWN)) continue;
        g->copies[i] = tp_new_empty_like(t, (tp_dtype)t->dtype);
        if (!g->copies[i] || tp_copy_data(g->copies[i], t) < 0) return -1;
        g->inputs[i].tensor = g->copies[i];
    }
    return 0;
}

static int prepare_output(general_call *g, tp_tensor *out, bool inplace) {
    if (!tp_device_equal(out->device, g->device)) return fail_devices(g, out);
    bool fits = has_shape(g, out);
    if (inplace && !fits) return fail_shape(g, out);
    if (tp_check_castable(g->result, (tp_dtype)out->dtype) < 0) return -1;
    if (!fits && resize_output(g, out) < 0) return -1;
    return out->device.type != TP_DEVICE_META ? separate_inputs(g, out) : 0;
}

static int __attribute__((noinline)) into_general(const tp_pointwise *p, const tp_operand *inputs,
                                                  const tp_value *params, tp_tensor *out, bool inplace) {
    general_call g;
    if (check_overlap(inputs, p->ninputs, out) < 0 || start_general(&g, p, inputs) < 0) return -1;
    int status = prepare_output(&g, out, inplace);
    if (status == 0) status = run_general(&g, params, out);
    release_copies(&g);
    return status;
}

/* ---- the operators' entries ---- */

const tp_pointwise *tp_pointwise_case_of(const tp_pointwise *p, const tp_operand *inputs) {
    for (int64_t i = 0; i < p->ncases; i++) {
        const tp_scalar *number = inputs[p->cases[i].input].number;
        if (number && number->kind != TP_SCALAR_COMPLEX && tp_scalar_double(number) == p->cases[i].value)
            return p->cases[i].op;
    }
    return p;
}

tp_tensor *tp_pointwise_new(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params) {
    short_call c;
    if (tp_unlikely(!start_short(p, inputs, &c))) return new_general(p, inputs, params);
    tp_tensor *out = tp_new_empty(tp_sizes(c.shape), c.result, TP_CPU);
    if (tp_unlikely(!out)) return NULL;
    if (tp_likely(run_short(p, inputs, params, &c, out) == 0)) return out;
    tp_release(out);
    return NULL;
}

int tp_pointwise_into(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params, tp_tensor *out,
                      bool inplace) {
    short_call c;
    if (tp_likely(start_short(p, inputs, &c)) && tp_likely(short_output(p, inputs, &c, out)))
        return run_short(p, inputs, params, &c, out);
    return into_general(p, inputs, params, out, inplace);
}
