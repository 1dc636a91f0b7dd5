/* fused.c: the primitives fused.map and fused.reduce: several calls of map as one kernel, made of the functions that
 * map's own kernels are made of (fused_text.c), and a reduction of what the last of them gives, by reduce.*'s kernel
 * with other elements (reduce.h).
 *
 * Kernels are built in the background (later.h), from the second time on that they are wanted; until then, and where a
 * device cannot have one, the call declines. Numbers and sizes are arguments. */
#include "opencl/kernels/fused.h"

#include "PrimitiveKernels.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BYTES 960  /* of arguments, of which every device takes 1,024 */
#define WANTED_BEFORE 1 /* so often a kernel is done without */

/* ---- the units ---- */

#define BUCKETS 1024
static tp_cl_fused_unit *buckets[BUCKETS]; /* with the host lock */

static uint64_t hash_of(const tp_cl_device *d, const tp_cl_fused_variant *k) {
    uint64_t words[sizeof *k / 8], h = (uintptr_t)d;
    memcpy(words, k, sizeof words);
    for (size_t i = 0; i < TP_COUNTOF(words); i++) {
        h = (h ^ words[i]) * UINT64_C(0x9E3779B97F4A7C15);
        h ^= h >> 29;
    }
    return h;
}

/* Whether the elements of a block are those that the call has in a block by itself, where its operands are one row: all
 * that depends on an element's neighbours has the same bits only so. */
static bool keeps_blocks(const tp_cl_fused_variant *k, const tp_fused_call *call, int ninputs) {
    for (int i = 0; k->ndim && i < call->ninputs; i++)
        if (call->in[i] >= 0 && call->in[i] < ninputs && !(k->next >> call->in[i] & 1)) return false;
    return k->blocks;
}

static bool is_double(tp_dtype d) { return d == TP_FLOAT64 || d == TP_COMPLEX128; }

/* Whether the device can have the kernel, and with which lanes. */
static bool look_at_calls(tp_cl_fused_unit *u, const tp_fused *f) {
    bool whole = u->device->has_fp64;
    for (int i = 0; i < f->ncalls; i++) {
        const tp_fused_call *call = &f->calls[i];
        tp_cl_expression e = tp_cl_expression_of_call(call);
        u->lanes[i] =
            (uint8_t)(u->variant.rows && e.built_in ? tp_cl_expression_lanes(u->device, &e, tp_cl_result_of(call))
                                                    : TP_CL_ANY_LANES);
        tp_cl_manner m = tp_cl_manner_of(&e, u->variant.rows, u->lanes[i]);
        bool asks_neighbours = m == TP_CL_IN_QUICK_FORM || (m == TP_CL_IN_VECTORS && u->lanes[i] != TP_CL_ANY_LANES);
        if (asks_neighbours && !keeps_blocks(&u->variant, call, f->ninputs)) return false;
        if (whole) continue;
        bool doubles = is_double((tp_dtype)call->dtype) || tp_cl_result_of(call) == TP_FLOAT64;
        for (int k = 0; k < call->ninputs; k++) doubles |= tp_cl_wanted_of(call, k) == TP_FLOAT64;
        if (doubles) return false;
    }
    return true;
}

static tp_cl_fused_unit *unit_of(tp_cl_device *d, const tp_cl_fused_variant *k, const tp_fused *f) {
    tp_cl_fused_unit **bucket = &buckets[hash_of(d, k) % BUCKETS], *u = *bucket;
    while (u && (u->device != d || memcmp(&u->variant, k, sizeof *k) != 0)) u = u->next;
    if (u || !(u = calloc(1, sizeof *u))) return u;
    u->device = d;
    u->variant = *k;
    u->later.build = tp_cl_build_fused;
    u->next = *bucket;
    *bucket = u;
    if (!look_at_calls(u, f)) atomic_store(&u->later.state, TP_CL_NOT_TO_BE_HAD);
    return u;
}

/* NULL: there is none yet, or never. */
static tp_cl_built *kernel_of(tp_cl_fused_unit *u) {
    if (u && u->later.state == TP_CL_NOT_ASKED && (u->wanted++ >= WANTED_BEFORE || tp_cl_builds_wait()))
        tp_cl_build_later(&u->later);
    return u && atomic_load(&u->later.state) == TP_CL_BUILT ? u->later.kernel : NULL;
}

/* ---- a call ---- */

typedef struct {
    const tp_fused *f;
    tp_cl_device *device;
    tp_cl_fused_variant k;
    tp_cl_layout layout;
    uint8_t stored[TP_CL_OPERANDS], class[TP_CL_OPERANDS];
    tp_tensor *tensors[TP_CL_OPERANDS];
    const tp_tensor *like; /* what the outputs lie as */
    tp_scalars numbers;
    int64_t shape[TP_MAX_DIMS], strides[TP_CL_OPERANDS][TP_MAX_DIMS];
    int ndim, n;
} job;

/* The stride in bytes of the dimension d of the outputs. */
static int64_t stride_of(const tp_tensor *t, const tp_tensor *like, int d) {
    int at = d - (like->ndim - t->ndim);
    return at < 0 || t->sizes[at] == 1 ? 0 : t->strides[at] * tp_itemsize((tp_dtype)t->dtype);
}

static bool follows(const job *j, const int64_t *strides) {
    int last = j->ndim - 1;
    for (int i = 0; i < j->n; i++)
        if (strides[i] != j->strides[i][last] * j->shape[last]) return false;
    return true;
}

/* The dimensions of the outputs, nearest in memory first, those merged that follow each other in all operands. */
static void set_geometry(job *j) {
    const tp_tensor *like = j->like;
    int order[TP_MAX_DIMS], count = 0;
    for (int d = like->ndim - 1; d >= 0; d--) {
        int at = count;
        if (like->sizes[d] == 1) continue;
        for (; at > 0 && like->strides[order[at - 1]] > like->strides[d]; at--) order[at] = order[at - 1];
        order[at] = d;
        count++;
    }
    j->ndim = 0;
    for (int o = 0; o < count; o++) {
        int64_t strides[TP_CL_OPERANDS];
        for (int i = 0; i < j->n; i++) strides[i] = stride_of(j->tensors[i], like, order[o]);
        if (j->ndim && follows(j, strides)) {
            j->shape[j->ndim - 1] *= like->sizes[order[o]];
            continue;
        }
        for (int i = 0; i < j->n; i++) j->strides[i][j->ndim] = strides[i];
        j->shape[j->ndim++] = like->sizes[order[o]];
    }
}

static void set_variant(job *j, int64_t program) {
    j->k = (tp_cl_fused_variant){
        .program = program, .small = j->like->numel <= INT32_MAX, .rows = j->device->is_cpu, .ndim = (uint8_t)j->ndim};
    bool flat = j->ndim <= 1;
    for (int i = 0; flat && j->ndim && i < j->n; i++)
        flat = j->strides[i][0] == 0 || j->strides[i][0] == tp_itemsize((tp_dtype)j->tensors[i]->dtype);
    if (flat) j->k.ndim = 0;
    j->k.blocks = !j->k.ndim || j->shape[0] % TP_CL_BLOCK == 0;
    for (int i = 0; i < j->f->ninputs; i++) {
        int operand = j->f->noutputs + i;
        j->k.stored[i] = (uint8_t)j->tensors[operand]->dtype;
        bool one = !j->ndim || j->strides[operand][0] == 0, by_rows = !flat && j->k.rows;
        if (one && (flat || by_rows)) j->k.ones |= (uint16_t)(1u << i);
        else if (by_rows && j->strides[operand][0] == tp_itemsize((tp_dtype)j->tensors[operand]->dtype))
            j->k.next |= (uint16_t)(1u << i);
    }
}

static int64_t bytes_of_arguments(const job *j) {
    return 16 * j->n + 16 + 8 * (j->n + 1) * j->k.ndim + 16 * j->numbers.size;
}

static bool has_dtypes(const job *j) {
    for (int i = 0; i < j->n && !j->device->has_fp64; i++)
        if (is_double((tp_dtype)j->tensors[i]->dtype)) return false;
    return true;
}

/* The numbers of a call, of which `numbers` begins with. */
static int pass_numbers(tp_cl_call *c, const tp_fused_call *call, tp_scalars numbers) {
    bool absent[TP_MAP_INPUTS] = {false};
    tp_map_call map;
    if (call->program < 0) return 0;
    for (int i = 0; i < call->ninputs; i++) absent[i] = call->in[i] < 0;
    if (tp_map_resolve(&map, call->program, absent, numbers, (tp_dtype)call->compute) < 0) return -1;
    for (int i = 0; i < call->ninputs; i++) {
        if (!absent[i]) continue;
        tp_scalar number = tp_scalar_load(&map.numbers[i], map.wanted[i]);
        tp_cl_pass_number(c, &number, tp_compute_dtype(map.wanted[i]));
    }
    tp_cl_expression e = tp_cl_expression_of_call(call);
    tp_cl_pass_params(c, &e, map.params);
    return 0;
}

/* All that the text's parameters are. */
static int pass_operands(tp_cl_call *call, const job *j) {
    const int64_t *strides[TP_CL_OPERANDS];
    tp_scalars numbers = j->numbers;
    int status = 0;
    for (int i = 0; i < j->n; i++) strides[i] = j->strides[i];
    for (int i = 0; i < j->n; i++) tp_cl_pass_place(call, tp_cl_place_of(j->tensors[i], tp_data(j->tensors[i])));
    tp_cl_pass_geometry(call, &j->layout, strides, j->shape);
    for (int i = 0; i < j->f->ncalls && status == 0; i++) {
        int64_t n = j->f->calls[i].nnumbers;
        status = numbers.size < n ? -1 : pass_numbers(call, &j->f->calls[i], (tp_scalars){numbers.data, n});
        numbers = (tp_scalars){numbers.data + n, numbers.size - n};
    }
    return status;
}

static int launch(const job *j, tp_cl_built *kernel) {
    const int64_t *strides[TP_CL_OPERANDS];
    for (int i = 0; i < j->n; i++) strides[i] = j->strides[i];
    tp_cl_call call = tp_cl_begin(j->device, kernel);
    tp_cl_pass_index(&call, &j->layout, j->like->numel);
    if (pass_operands(&call, j) < 0) return tp_cl_run(&call, 0, 0), -1; /* gives the lock back */
    return tp_cl_run_elements(&call, &j->layout, j->like->numel, strides, j->shape);
}

/* 1: the device cannot have the kernel. -1 and the error set on failure. */
static int start(job *j, int64_t program, tp_tensors inputs, tp_scalars numbers, tp_tensors out,
                 const tp_tensor *like) {
    *j = (job){.f = tp_fused_at(program), .like = like, .numbers = numbers, .n = (int)(out.size + inputs.size)};
    if (!j->f || inputs.size != j->f->ninputs || out.size != j->f->noutputs)
        return tp_fail(TP_RuntimeError, "prim::fused.map: another program's arguments");
    if (out.size) memcpy(j->tensors, out.data, (size_t)out.size * sizeof *out.data);
    if (inputs.size) memcpy(j->tensors + out.size, inputs.data, (size_t)inputs.size * sizeof *inputs.data);
    j->device = tp_cl_get(like->device.index);
    if (!j->device) return -1;
    if (!has_dtypes(j)) return 1;
    set_geometry(j);
    set_variant(j, program);
    return j->k.ndim > TP_CL_PLAN_DIMS || bytes_of_arguments(j) > MOST_BYTES;
}

/* fused.map(int program, Tensor[] inputs, Scalar[] numbers, *, Tensor(a!)[] out) -> () */
int fused_map_opencl(int64_t program, tp_tensors inputs, tp_scalars numbers, tp_tensors out) {
    job j;
    int status = start(&j, program, inputs, numbers, out, out.data[0]);
    if (status) return status < 0 ? -1 : tp_decline();
    tp_cl_built *kernel = kernel_of(unit_of(j.device, &j.k, j.f));
    if (!kernel) return tp_decline();
    tp_cl_fused_layout(j.f, &j.k, &j.layout, j.stored, j.class);
    return launch(&j, kernel);
}

/* ---- into a reduction ---- */

static int pass_made(tp_cl_call *call, const void *context) { return pass_operands(call, context); }

/* Whether a CPU device's work-items fold stretches that begin with a block of the maps, and end with one or with the
 * last element. */
static bool folds_blocks(const tp_cl_cut *c) {
    if (c->columns > 1) return c->columns % TP_CL_BLOCK == 0 && c->kept.size[0] % TP_CL_BLOCK == 0;
    int64_t line = c->reduced.size[0];
    return (line % TP_CL_BLOCK == 0 || line == c->outputs * c->count) && (c->parts == 1 || c->part % TP_CL_BLOCK == 0);
}

/* The values lie in memory, too, from a kernel of their own: the program has room for one more output, since the last
 * value is one of its tensors (csrc/plan/fuse.c). */
static int map_then_fold(int64_t program, tp_tensors inputs, tp_scalars numbers, const tp_cl_fold *fold,
                         const tp_cl_cut *cut, tp_tensor *made, tp_tensor *x, tp_tensor *result, tp_tensors out) {
    const tp_fused *given = tp_fused_at(program);
    tp_fused f;
    memset(&f, 0, sizeof f); /* a program that is kept has room for its own calls only */
    memcpy(&f, given, offsetof(tp_fused, calls) + given->ncalls * sizeof *f.calls);
    tp_tensor *outs[TP_FUSED_TENSORS + 1];
    int last = f.ninputs + f.ncalls - 1, at = 0;
    while (at < f.noutputs && f.outputs[at] != last) at++;
    for (int i = 0; i < f.noutputs; i++) outs[i] = out.data[i];
    tp_autoref *values = NULL;
    if (at == f.noutputs) {
        if (!(values = tp_new_empty(tp_sizes(made), (tp_dtype)made->dtype, made->device))) return -1;
        outs[f.noutputs] = values;
        f.outputs[f.noutputs++] = (int16_t)last;
        if ((program = tp_fused_intern(&f)) < 0) return -1;
    }
    if (fused_map_opencl(program, inputs, numbers, (tp_tensors){outs, f.noutputs}) < 0) return -1;
    return tp_cl_fold_run(tp_cl_get(x->device.index), fold, cut, values ? values : x, result, NULL);
}

/* fused.reduce(int program, Tensor[] inputs, Scalar[] numbers, int fold, int reduction, ScalarType compute,
 *              Tensor made, Tensor x, int[] dim, *, Tensor(a!) result, Tensor(b!)[] out) -> () */
int fused_reduce_opencl(int64_t program, tp_tensors inputs, tp_scalars numbers, int64_t fold, int64_t reduction,
                        tp_dtype compute, tp_tensor *made, tp_tensor *x, tp_ints dim, tp_tensor *result,
                        tp_tensors out) {
    job j;
    tp_cl_fold o;
    tp_cl_cut c;
    int status = start(&j, program, inputs, numbers, out, made);
    if (status < 0 || tp_cl_fold_of(&o, (tp_fold)fold, reduction, compute, x, result) < 0) return -1;
    if (!j.device->has_fp64 && (is_double(o.in) || is_double((tp_dtype)result->dtype))) return tp_decline();
    if (tp_cl_cut_of(&c, j.device, x, dim, result) < 0) return -1;
    bool follows = !j.device->is_cpu || c.columns > 1 || (c.lanes > 1 && c.reduced.in[0] == 1);
    if (status == 0 && follows && bytes_of_arguments(&j) + tp_cl_fold_bytes(&c) <= MOST_BYTES) {
        j.k.fold = tp_cl_fold_variant_of(&o, &c, x, result);
        j.k.blocks = j.k.blocks && folds_blocks(&c);
        tp_cl_fused_unit *u = unit_of(j.device, &j.k, j.f);
        tp_cl_built *kernel = kernel_of(u);
        if (kernel) {
            tp_cl_fused_layout(j.f, &j.k, &j.layout, j.stored, j.class);
            return tp_cl_fold_run(j.device, &o, &c, x, result, &(tp_cl_made){kernel, pass_made, &j});
        }
        if (!u || atomic_load(&u->later.state) != TP_CL_NOT_TO_BE_HAD) return tp_decline();
    }
    return map_then_fold(program, inputs, numbers, &o, &c, made, x, result, out);
}
