/* pointwise.c: see pointwise.h. What a backend's shortcut does not take goes the general way: result type, broadcast
 * shape, output, map. */
#include "native/pointwise/pointwise.h"

#include "Functions.h"
#include "Primitives.h"
#include "core/tls.h"
#include "prim/transfer.h"

#include <string.h>

typedef struct {
    const tp_pointwise *p;
    tp_operand inputs[TP_MAP_INPUTS];
    tp_tensor *copies[TP_MAP_INPUTS]; /* of inputs that might share memory with the output; owned */
    tp_device device;
    tp_dtype compute, loop_dtype, result; /* result: of a new output */
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
    tp_operand promoting[TP_MAP_INPUTS];
    int n = 0;
    for (int i = 0; i < p->ninputs; i++)
        if (p->input_dtype[i] == TP_NO_DTYPE) promoting[n++] = g->inputs[i];
    tp_dtype common = n ? tp_result_type(promoting, n) : (tp_dtype)p->input_dtype[0];
    if (common == TP_NO_DTYPE) return -1;
    tp_dtype compute = tp_promotion_compute((tp_promotion)p->promotion, common);
    if (!tp_pointwise_takes(p, compute)) return fail_no_loop(p, compute);
    g->compute = compute;
    g->loop_dtype = tp_pointwise_loop_dtype(p, compute);
    if (p->moves_halves) g->loop_dtype = tp_is_half_dtype(compute) ? TP_UINT16 : tp_moved_dtype(compute);
    g->result = tp_promotion_result((tp_promotion)p->promotion, compute);
    return 0;
}

static int start_general(general_call *g, const tp_pointwise *p, const tp_operand *inputs) {
    g->p = p;
    for (int i = 0; i < p->ninputs; i++) {
        g->inputs[i] = inputs[i];
        g->copies[i] = NULL;
    }
    if (find_device(g) < 0) return -1;
    g->ndim = tp_iter_broadcast(g->inputs, p->ninputs, g->sizes);
    return g->ndim < 0 ? -1 : find_dtypes(g);
}

/* Whether a shortcut would have made the result, if nobody wanted to see map: the strides of dimensions of one element
 * do not depend on who looks. */
static bool has_shortcut(const general_call *g) {
    if (tp_likely(!tp_tls.observe)) return false;
    const tp_map_shortcut *s = tp_shortcut_at(&tp_prims[TP_PRIM_map], tp_backend_key(g->device.type));
    return s && s->takes(g->p, g->inputs);
}

static tp_tensor *new_output(general_call *g) {
    int64_t strides[TP_MAX_DIMS];
    tp_ints sizes = {g->sizes, g->ndim};
    if (has_shortcut(g) || tp_iter_output_strides(g->inputs, g->p->ninputs, sizes, strides))
        return tp_new_empty(sizes, g->result, g->device);
    return tp_new_empty_strided(sizes, (tp_ints){strides, g->ndim}, g->result, g->device);
}

/* ---- bytes that are only moved ---- */

/* An operator that chooses among elements moves what is computed in a wider dtype as unsigned integers of its size:
 * there are no loops for complex32 and the 8-bit floats, and a device that reads 16-bit floats as float32 would quiet a
 * NaN. */
static bool moves_bytes(const general_call *g) {
    return g->p->moves_halves && tp_compute_dtype(g->compute) != g->compute;
}

/* The bytes of a tensor in the dtype of the call, as integers. */
static tp_tensor *bytes_of(const general_call *g, tp_tensor *t) {
    tp_autoref *whole =
        (tp_dtype)t->dtype == g->compute ? tp_retain(t) : tp_to_dtype(t, g->compute, false, false, TP_NO_FORMAT);
    return whole ? tp_new_on_storage(whole->storage, tp_sizes(whole), tp_strides(whole), whole->byte_offset,
                                     g->loop_dtype)
                 : NULL;
}

static tp_scalar bytes_of_number(const general_call *g, const tp_scalar *s) {
    tp_element element;
    tp_scalar_store(s, g->compute, &element);
    return tp_scalar_load(&element, g->loop_dtype);
}

static int run_on_bytes(const general_call *g, int64_t program, tp_tensor **tensors, tp_scalar *numbers, int64_t n,
                        tp_tensor *out) {
    const tp_pointwise *p = g->p;
    tp_autoref *made = (tp_dtype)out->dtype == g->compute ? tp_retain(out) : tp_new_empty_like(out, g->compute);
    tp_autoref *to = made ? bytes_of(g, made) : NULL;
    tp_tensor *held[TP_MAP_INPUTS] = {NULL};
    int status = to ? 0 : -1, k = 0;
    for (int i = 0; status == 0 && i < p->ninputs; i++) {
        bool chosen = p->input_dtype[i] == TP_NO_DTYPE; /* not a condition */
        if (!tensors[i] && chosen) numbers[k] = bytes_of_number(g, &numbers[k]);
        if (!tensors[i]) k++;
        if (!tensors[i] || !chosen) continue;
        tensors[i] = held[i] = bytes_of(g, tensors[i]);
        status = held[i] ? 0 : -1;
    }
    for (; k < n; k++) numbers[k] = bytes_of_number(g, &numbers[k]); /* a parameter is an element, too */
    if (status == 0)
        status = tp_prim_map(program, (tp_tensors){tensors, p->ninputs}, (tp_scalars){numbers, n}, g->loop_dtype, to);
    for (int i = 0; i < p->ninputs; i++) tp_release(held[i]);
    return status < 0 || made == out ? status : tp_copy_data(out, made);
}

/* The operands as map takes them: tensors, and the numbers in between with those of the parameters after them. A
 * 0-dimensional tensor of the host is a number to another device. */
static int run_general(general_call *g, const tp_value *params, tp_tensor *out) {
    const tp_pointwise *p = g->p;
    tp_tensor *tensors[TP_MAP_INPUTS];
    tp_scalar numbers[TP_MAP_INPUTS + TP_MAP_PARAMS];
    int64_t n = 0;
    if (tp_pointwise_check_params(p, params, moves_bytes(g) ? g->compute : g->loop_dtype) < 0) return -1;
    if (out->numel == 0) return 0;
    for (int i = 0; i < p->ninputs; i++) {
        const tp_operand *o = &g->inputs[i];
        tensors[i] = o->tensor && tp_device_equal(o->tensor->device, out->device) ? o->tensor : NULL;
        if (tensors[i]) continue;
        if (!o->tensor) numbers[n] = *o->number;
        else if (tp_read_number(o->tensor, &numbers[n]) < 0) return -1;
        n++;
    }
    for (int i = 0; i < p->nparams; i++) numbers[n++] = tp_program_number(&params[i]);
    if (moves_bytes(g)) return run_on_bytes(g, tp_program_of(p, params), tensors, numbers, n, out);
    return tp_prim_map(tp_program_of(p, params), (tp_tensors){tensors, p->ninputs}, (tp_scalars){numbers, n},
                       g->loop_dtype, out);
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

/* An output that is an input, too, keeps its sizes: the elements that are to be read have no other place. */
static int resize_output(general_call *g, tp_tensor *out) {
    int64_t strides[TP_MAX_DIMS];
    for (int i = 0; i < g->p->ninputs; i++)
        if (g->inputs[i].tensor == out) return fail_shape(g, out);
    tp_ints sizes = {g->sizes, g->ndim};
    tp_iter_output_strides(g->inputs, g->p->ninputs, sizes, strides);
    return tp_resize_out(out, sizes, (tp_ints){strides, g->ndim});
}

static int check_overlap(const tp_operand *inputs, int n, tp_tensor *out) {
    tp_tensor *tensors[TP_MAP_INPUTS + 1] = {out};
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

static int prepare_output(general_call *g, tp_tensor *out, tp_variant variant) {
    if (!tp_device_equal(out->device, g->device)) return fail_devices(g, out);
    bool fits = has_shape(g, out);
    if (variant == TP_VARIANT_INPLACE && !fits) return fail_shape(g, out);
    if (variant == TP_VARIANT_INPLACE && tp_is_complex(out) && g->p->promotion == TP_PROMOTE_COMPLEX_TO_FLOAT)
        return tp_fail(TP_RuntimeError, "In-place %s is not supported for complex tensors.", g->p->name);
    if (variant == TP_VARIANT_OUT && g->p->promotion == TP_PROMOTE_ALWAYS_BOOL && out->dtype != TP_BOOL)
        return tp_fail(TP_RuntimeError, "%s does not support non-boolean outputs: out has dtype %s", g->p->name,
                       tp_scalar_type_name((tp_dtype)out->dtype));
    if (tp_check_given_dtype(out, variant, g->result) < 0) return -1;
    if (!fits && resize_output(g, out) < 0) return -1;
    return tp_has_values(out) ? separate_inputs(g, out) : 0;
}

/* A 16-bit result is rounded to its dtype, also where out= would hold more of it. */
static bool rounds_first(const general_call *g, const tp_tensor *out) {
    return tp_compute_dtype(g->result) != g->result && out->dtype != g->result;
}

static int __attribute__((noinline)) into_general(const tp_pointwise *p, const tp_operand *inputs,
                                                  const tp_value *params, tp_tensor *out, tp_variant variant) {
    general_call g;
    if (check_overlap(inputs, p->ninputs, out) < 0 || start_general(&g, p, inputs) < 0) return -1;
    int status = prepare_output(&g, out, variant);
    if (status == 0 && rounds_first(&g, out)) {
        tp_autoref *made = new_output(&g);
        status = made && run_general(&g, params, made) == 0 ? tp_copy_data(out, made) : -1;
    } else if (status == 0) {
        status = run_general(&g, params, out);
    }
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

/* The shortcut of the backend of the first tensor; NULL if it has none, or somebody wants to see map. */
TP_INLINE const tp_map_shortcut *shortcut_of(const tp_operand *inputs) {
    const tp_tensor *t = inputs[0].tensor;
    for (int i = 1; tp_unlikely(!t) && i < TP_MAP_INPUTS; i++) t = inputs[i].tensor;
    return tp_likely(!tp_tls.observe) ? tp_shortcut_at(&tp_prims[TP_PRIM_map], tp_backend_key(t->device.type)) : NULL;
}

tp_tensor *tp_pointwise_new(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params) {
    tp_tensor *out = NULL;
    const tp_map_shortcut *shortcut = shortcut_of(inputs);
    int done = tp_likely(shortcut) ? shortcut->make(p, inputs, params, &out) : 0;
    if (tp_likely(done)) return done > 0 ? out : NULL;
    return new_general(p, inputs, params);
}

int tp_pointwise_into(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params, tp_tensor *out,
                      tp_variant variant) {
    const tp_map_shortcut *shortcut = shortcut_of(inputs);
    int done = tp_likely(shortcut) ? shortcut->into(p, inputs, params, out) : 0;
    if (tp_likely(done)) return done > 0 ? 0 : -1;
    return into_general(p, inputs, params, out, variant);
}
