/* reduce.c: the primitives reduce.*; the kernel is reduce.cl.
 *
 * How the work is cut: on a GPU a work-group folds a part of one output where the reduced dimension lies closest in
 * memory, else a work-item does, and a work-group joins parts where there are many; on a CPU device it is always a
 * work-item, with LANES accumulators where elements follow each other. */
#include "opencl/kernels/reduce.h"

#include "PrimitiveKernels.h"
#include "opencl/kernels/element.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define MAX_KEPT 12
#define GROUP 128
#define LANES 32        /* fewer, and a sum waits for its own additions */
#define PART 65536      /* elements of a part where parts are long, */
#define SHORT_PART 1024 /* and where one lane takes them one after the other */
#define MAX_PARTS(d) ((d)->is_cpu ? 1024 : 4096)
#define MANY_PARTS 8  /* on a GPU a group joins as many of them, */
#define JOINING 64    /* with so many work-items */
#define RESIDENT 2048 /* work-items that a compute unit of a GPU holds, as a rule */

/* ---- the plan: dimensions, fastest first, merged ---- */

static void split_dims(tp_dims *kept, tp_dims *reduced, const tp_tensor *self, uint64_t mask, const tp_tensor *out) {
    bool keepdim = out->ndim == self->ndim;
    int at = out->ndim;
    kept->n = reduced->n = 0;
    for (int d = self->ndim - 1; d >= 0; d--) {
        bool reduce = mask >> d & 1;
        if (!reduce || keepdim) at--;
        if (self->sizes[d] == 1) continue;
        if (reduce) tp_dims_add(reduced, self->sizes[d], self->strides[d], 0);
        else tp_dims_add(kept, self->sizes[d], self->strides[d], out->strides[at]);
    }
    tp_dims_merge(kept);
    tp_dims_merge(reduced);
}

/* ---- the cut ---- */

/* Parts are whole blocks of what maps compute in blocks (pointwise.c). */
static void make_parts(tp_cl_cut *c, int64_t part, int64_t most) {
    part = (part + 63) / 64 * 64;
    c->part = part > c->count ? c->count : part;
    if (c->part < 1) c->part = 1;
    while (tp_divide_up(c->count, c->part) > most) c->part *= 2;
    c->parts = c->count ? tp_divide_up(c->count, c->part) : 1;
}

/* How many neighbouring outputs a work-item of a CPU device folds at once. Long stretches of memory are read fastest,
 * but there have to be enough units of work. */
static int columns_of(const tp_cl_cut *c, int64_t busy) {
    int64_t n = c->kept.size[0], parts = tp_divide_up(c->count, SHORT_PART);
    int columns = 2;
    if (n < 256) {
        while (columns < n && columns < 32) columns *= 2;
        return columns;
    }
    for (columns = 4096; columns > n || (columns > 256 && c->outputs / columns * parts < busy);) columns /= 4;
    return columns;
}

static void make_cut(tp_cl_cut *c, const tp_cl_device *d) {
    bool inner = c->outputs == 1 || llabs(c->reduced.in[0]) <= llabs(c->kept.in[0]);
    c->group = !d->is_cpu && inner && c->count >= GROUP;
    /* Units of work that keep the device busy. */
    int64_t busy = (int64_t)d->compute_units * (d->is_cpu ? 2 : c->group ? RESIDENT / GROUP : RESIDENT);
    c->lanes = d->is_cpu && inner ? LANES : 1;
    bool rows = d->is_cpu && !inner && c->kept.in[0] == 1 && c->kept.size[0] > 1;
    c->columns = rows ? columns_of(c, busy) : 1;
    int64_t least = c->group || c->lanes > 1 ? 4096 : d->is_cpu ? SHORT_PART : 64;
    int64_t wanted = c->outputs >= busy ? 1 : tp_divide_up(busy, c->outputs);
    int64_t part = tp_divide_up(c->count, wanted), most = c->group || c->lanes > 1 ? PART : SHORT_PART;
    if (part > most && c->lanes == 1 && !c->group) part = most;
    make_parts(c, part < least ? least : part, MAX_PARTS(d));
}

/* ---- the launch ---- */

/* The first and the last number of each dtype that a kernel computes in. */
static const char *const bounds[TP_NUM_DTYPES][2] = {
    [TP_BOOL] = {"false", "true"},
    [TP_UINT8] = {"0", "UCHAR_MAX"},
    [TP_UINT16] = {"0", "USHRT_MAX"},
    [TP_UINT32] = {"0", "UINT_MAX"},
    [TP_UINT64] = {"0", "ULONG_MAX"},
    [TP_INT8] = {"SCHAR_MIN", "SCHAR_MAX"},
    [TP_INT16] = {"SHRT_MIN", "SHRT_MAX"},
    [TP_INT32] = {"INT_MIN", "INT_MAX"},
    [TP_INT64] = {"LONG_MIN", "LONG_MAX"},
    [TP_FLOAT32] = {"-INFINITY", "INFINITY"},
    [TP_FLOAT64] = {"-INFINITY", "INFINITY"},
};

static void define(tp_text *s, const tp_cl_fold_variant *v) {
    tp_dtype in = (tp_dtype)v->in, made = (tp_dtype)v->made;
    tp_cl_define(s, "IN", (tp_dtype)v->self, in);
    tp_cl_define(s, "OUT", (tp_dtype)v->out, tp_compute_dtype(made));
    tp_text_add(s, "#define REAL_T %s\n#define NK %d\n#define NR %d\n#define LANES %d\n#define COLUMNS %d\n",
                tp_cl_type(tp_to_real_dtype(in)), v->nkept, v->nreduced, v->lanes, v->columns);
    if (tp_is_complex_dtype(in)) tp_text_add(s, "#define IN_COMPLEX\n");
    else tp_text_add(s, "#define IN_LEAST %s\n#define IN_MOST %s\n", bounds[in][0], bounds[in][1]);
    if (v->joins) tp_text_add(s, "#define JOINS\n");
    if (v->takes) tp_text_add(s, "#define TAKES\n");
    if (v->group) tp_text_add(s, "#define GROUP %d\n", v->group);
    if (v->name) tp_text_add(s, "#define OP_%s\n", v->name);
    else if (tp_is_complex_dtype(made)) tp_text_add(s, "#define FROM_COUNT(n) (%s)((n), 0)\n", tp_cl_type(made));
    else tp_text_add(s, "#define FROM_COUNT(n) (%s)(n)\n", tp_cl_type(in));
}

/* The functions of_start, of_step, of_join and of_finish of a reduction in `d`. */
static void add_functions(tp_text *s, const tp_reduction_op *op, tp_dtype d) {
    static const char *const names[] = {"of_start", "of_step", "of_join", "of_finish"};
    const char *value = op->promotion == TP_REDUCE_ALWAYS_BOOL ? "bool" : tp_cl_type(d), *element = tp_cl_type(d);
    for (int part = 0; part < TP_REDUCTION_PARTS; part++) {
        const char *second = part == TP_REDUCTION_JOIN ? value : element;
        tp_text_add(s, "static inline %s %s(", value, names[part]);
        if (part == TP_REDUCTION_START) tp_text_add(s, "void) {\n");
        else tp_text_add(s, "%s x0, %s x1) {\n", value, second);
        tp_program_print(s, &op->programs[tp_class_of(d)][part], d, false);
        tp_text_add(s, "}\n");
    }
}

void tp_cl_add_fold(tp_text *s, const tp_cl_fold_variant *v, const char *made) {
    tp_autotext definitions = {0}, functions = {0};
    define(&definitions, v);
    if (v->program) add_functions(&functions, v->program, (tp_dtype)v->in);
    tp_text_add(&functions, "%s", made);
    tp_cl_add_source(s, definitions.text ? definitions.text : "", functions.text ? functions.text : "", "reduce.cl");
}

static void write_source(tp_text *s, const void *context) { tp_cl_add_fold(s, context, ""); }

void tp_cl_add_fold_key(tp_text *s, const tp_cl_fold_variant *v) {
    tp_text_add(s, "reduce %s %d\n", v->name ? v->name : v->program->name, v->in);
    define(s, v);
}

static tp_cl_built *make(tp_cl_device *d, const char *kernel, const void *variant) {
    tp_autotext key = {0};
    tp_cl_add_fold_key(&key, variant);
    return key.text ? tp_cl_kernel(d, key.text, kernel, write_source, variant) : (tp_fail_memory(1), NULL);
}

static const tp_cl_family family = {.make = make, .size = TP_CL_SIZE(tp_cl_fold_variant)};

tp_cl_fold_variant tp_cl_fold_variant_of(const tp_cl_fold *o, const tp_cl_cut *c, const tp_tensor *x,
                                         const tp_tensor *out) {
    return (tp_cl_fold_variant){.name = o->name,
                                .program = o->program,
                                .lanes = (uint16_t)c->lanes,
                                .columns = (uint16_t)c->columns,
                                .group = c->group ? GROUP : 0,
                                .self = (uint8_t)x->dtype,
                                .out = (uint8_t)out->dtype,
                                .in = (uint8_t)tp_compute_dtype(o->in),
                                .made = (uint8_t)o->made,
                                .nkept = (uint8_t)c->kept.n,
                                .nreduced = (uint8_t)c->reduced.n};
}

static void pass_geometry(tp_cl_call *call, const tp_cl_cut *c) {
    int64_t words[3 * MAX_KEPT + 2 * MAX_KEPT + 4];
    size_t n = 0;
    const int64_t *const kept[] = {c->kept.size, c->kept.in, c->kept.out};
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < c->kept.n; i++) words[n++] = kept[k][i];
    for (int i = 0; i < c->reduced.n; i++) words[n++] = c->reduced.size[i];
    for (int i = 0; i < c->reduced.n; i++) words[n++] = c->reduced.in[i];
    words[n++] = c->outputs;
    words[n++] = c->count;
    words[n++] = c->parts;
    words[n++] = c->part;
    tp_cl_pass(call, n * sizeof *words, words);
}

static void pass_params(tp_cl_call *call, const tp_cl_fold *o) {
    if (call->device->has_fp64) tp_cl_pass(call, sizeof o->correction, &o->correction);
    else tp_cl_pass_float(call, (float)o->correction);
    tp_cl_pass_int(call, o->root);
}

int64_t tp_cl_fold_bytes(const tp_cl_cut *c) { return 8 * (3 * c->kept.n + 2 * c->reduced.n + 4) + 2 * 16 + 12; }

static int join_parts(tp_cl_device *d, tp_cl_fold_variant v, const tp_cl_fold *o, const tp_cl_cut *c, tp_tensor *out,
                      const tp_tensor *partial, int64_t group) {
    v.joins = true;
    v.group = !d->is_cpu && c->parts >= MANY_PARTS ? JOINING : 0;
    tp_cl_call call = tp_cl_begin(d, tp_cl_plan(d, &family, "join_parts", &v));
    pass_geometry(&call, c);
    tp_cl_pass_tensor(&call, out);
    tp_cl_pass_tensor(&call, partial);
    pass_params(&call, o);
    return v.group ? tp_cl_run(&call, c->outputs * JOINING, JOINING) : tp_cl_run(&call, c->outputs, (size_t)group);
}

int tp_cl_fold_run(tp_cl_device *d, const tp_cl_fold *o, const tp_cl_cut *c, const tp_tensor *x, tp_tensor *out,
                   const tp_cl_made *made) {
    tp_cl_fold_variant v = tp_cl_fold_variant_of(o, c, x, out);
    /* Accumulators are at most 64 bytes. Without parts the argument is not looked at, but has to be a buffer. */
    tp_autoref *partial =
        c->parts > 1 ? tp_new_empty(TP_INTS(c->outputs * c->parts * 64), TP_UINT8, out->device) : NULL;
    if (c->parts > 1 && !partial) return -1;
    tp_cl_call call = tp_cl_begin(d, made ? made->kernel : tp_cl_plan(d, &family, "reduce", &v));
    pass_geometry(&call, c);
    if (!made) tp_cl_pass_tensor(&call, x->numel ? x : out);
    tp_cl_pass_tensor(&call, out);
    tp_cl_pass_tensor(&call, partial ? partial : out);
    pass_params(&call, o);
    if (made && made->pass(&call, made->context) < 0) return tp_cl_run(&call, 0, 0), -1; /* gives the lock back */
    int64_t blocks = c->outputs / c->kept.size[0] * ((c->kept.size[0] + c->columns - 1) / c->columns);
    int64_t units = (c->columns > 1 ? blocks : c->outputs) * c->parts;
    int64_t small = d->is_cpu ? (units < 64 ? 1 : 16) : 64;
    if (tp_cl_run(&call, c->group ? units * GROUP : units, (size_t)(c->group ? GROUP : small)) < 0) return -1;
    return partial ? join_parts(d, v, o, c, out, partial, small) : 0;
}

int tp_cl_cut_of(tp_cl_cut *c, const tp_cl_device *d, const tp_tensor *x, tp_ints dim, const tp_tensor *out) {
    uint64_t mask = 0;
    *c = (tp_cl_cut){.parts = 1};
    for (int64_t i = 0; i < dim.size; i++) mask |= UINT64_C(1) << dim.data[i];
    split_dims(&c->kept, &c->reduced, x, mask, out);
    if (c->kept.n > MAX_KEPT || c->reduced.n > MAX_KEPT)
        return tp_fail(TP_RuntimeError, "OpenCL: a reduction walks over at most %d dimensions that do not merge",
                       MAX_KEPT);
    c->outputs = out->numel;
    c->count = tp_dims_numel(&c->reduced);
    make_cut(c, d);
    return 0;
}

/* Only enqueues. */
static int reduce(const tp_cl_fold *o, tp_tensor *x, tp_ints dim, tp_tensor *out) {
    tp_cl_cut c;
    tp_tensor *const tensors[] = {x, out};
    tp_cl_device *d = tp_cl_device_of(tensors, 2);
    if (!d || tp_cl_check_dtype(d, o->in) < 0 || tp_cl_cut_of(&c, d, x, dim, out) < 0) return -1;
    return tp_cl_fold_run(d, o, &c, x, out, NULL);
}

/* ---- the primitives ---- */

static tp_cl_fold fold_of_program(const tp_reduction_op *op, tp_dtype compute) {
    tp_dtype made = op->promotion == TP_REDUCE_ALWAYS_BOOL ? TP_BOOL : compute;
    return (tp_cl_fold){.program = op, .in = compute, .made = made};
}

int tp_cl_fold_of(tp_cl_fold *o, tp_fold fold, int64_t program, tp_dtype compute, const tp_tensor *x,
                  const tp_tensor *out) {
    tp_dtype given = (tp_dtype)x->dtype, sum = tp_sum_dtype((tp_dtype)out->dtype);
    tp_dtype of_x = tp_compute_dtype(given), of_out = tp_compute_dtype((tp_dtype)out->dtype);
    tp_dtype length = tp_length_dtype(x, (tp_dtype)out->dtype);
    const tp_reduction_op *op = fold == TP_FOLD_PROGRAM ? tp_reduction_at(program, compute) : NULL;
    switch (fold) {
    case TP_FOLD_SUM: *o = (tp_cl_fold){.name = sum == TP_BOOL ? "ANY" : "SUM", .in = sum, .made = sum}; return 0;
    case TP_FOLD_MEAN: *o = (tp_cl_fold){.name = "MEAN", .in = of_out, .made = of_out}; return 0;
    case TP_FOLD_NANSUM: *o = (tp_cl_fold){.name = "NANSUM", .in = of_out, .made = of_out}; return 0;
    case TP_FOLD_ANY: *o = (tp_cl_fold){.name = "ANY", .in = given, .made = TP_BOOL}; return 0;
    case TP_FOLD_ALL: *o = (tp_cl_fold){.name = "ALL", .in = given, .made = TP_BOOL}; return 0;
    case TP_FOLD_COUNT: *o = (tp_cl_fold){.name = "NONZERO", .in = given, .made = TP_INT64}; return 0;
    case TP_FOLD_MAX: *o = (tp_cl_fold){.name = "LARGEST", .in = of_x, .made = of_x}; return 0;
    case TP_FOLD_MIN: *o = (tp_cl_fold){.name = "SMALLEST", .in = of_x, .made = of_x}; return 0;
    case TP_FOLD_LENGTH: *o = (tp_cl_fold){.name = "LENGTH", .in = length, .made = tp_to_real_dtype(length)}; return 0;
    case TP_FOLD_PROGRAM: return op ? (*o = fold_of_program(op, compute), 0) : -1;
    }
    return tp_fail(TP_RuntimeError, "prim::fused.reduce: there is no fold %d", (int)fold);
}

static int run(tp_fold fold, tp_tensor *x, tp_ints dim, tp_tensor *out) {
    tp_cl_fold o;
    return tp_cl_fold_of(&o, fold, 0, TP_FLOAT32, x, out) < 0 ? -1 : reduce(&o, x, dim, out);
}

/* sum(Tensor x, int[] dim, *, Tensor(a!) out) -> () */
int reduce_sum_opencl(tp_tensor *x, tp_ints dim, tp_tensor *out) { return run(TP_FOLD_SUM, x, dim, out); }
int reduce_mean_opencl(tp_tensor *x, tp_ints dim, tp_tensor *out) { return run(TP_FOLD_MEAN, x, dim, out); }
int reduce_nansum_opencl(tp_tensor *x, tp_ints dim, tp_tensor *out) { return run(TP_FOLD_NANSUM, x, dim, out); }
int reduce_any_opencl(tp_tensor *x, tp_ints dim, tp_tensor *out) { return run(TP_FOLD_ANY, x, dim, out); }
int reduce_all_opencl(tp_tensor *x, tp_ints dim, tp_tensor *out) { return run(TP_FOLD_ALL, x, dim, out); }
int reduce_count_opencl(tp_tensor *x, tp_ints dim, tp_tensor *out) { return run(TP_FOLD_COUNT, x, dim, out); }
int reduce_length_opencl(tp_tensor *x, tp_ints dim, tp_tensor *out) { return run(TP_FOLD_LENGTH, x, dim, out); }

/* out: the elements of x at the places `at` along dim, which lie as the elements of out do. */
static int take(const tp_cl_fold *place, tp_tensor *x, tp_ints dim, tp_tensor *out, tp_tensor *at) {
    tp_cl_cut c;
    tp_cl_device *d = tp_cl_get(x->device.index);
    if (!d || tp_cl_cut_of(&c, d, x, dim, out) < 0) return -1;
    tp_cl_fold_variant v = tp_cl_fold_variant_of(place, &c, x, out);
    v.takes = true;
    v.group = 0;
    tp_cl_call call = tp_cl_begin(d, tp_cl_plan(d, &family, "take", &v));
    pass_geometry(&call, &c);
    tp_cl_pass_tensor(&call, x);
    tp_cl_pass_tensor(&call, out);
    tp_cl_pass_tensor(&call, at);
    return tp_cl_run(&call, c.outputs, 0);
}

static int extreme(tp_fold fold, const char *places, tp_tensor *x, tp_ints dim, tp_tensor *out, tp_tensor *at) {
    tp_dtype d = tp_compute_dtype((tp_dtype)x->dtype);
    tp_cl_fold place = {.name = places, .in = d == TP_BOOL ? TP_UINT8 : d, .made = TP_INT64};
    if (at && reduce(&place, x, dim, at) < 0) return -1;
    if (!out) return 0;
    bool alike = at && out->dtype == x->dtype && tp_is_contiguous(out) && tp_is_contiguous(at);
    return alike ? take(&place, x, dim, out, at) : run(fold, x, dim, out);
}

/* max(Tensor x, int[] dim, *, Tensor(a!)? out, Tensor(b!)? at) -> () */
int reduce_max_opencl(tp_tensor *x, tp_ints dim, tp_tensor *out, tp_tensor *at) {
    return extreme(TP_FOLD_MAX, "LARGEST_AT", x, dim, out, at);
}
int reduce_min_opencl(tp_tensor *x, tp_ints dim, tp_tensor *out, tp_tensor *at) {
    return extreme(TP_FOLD_MIN, "SMALLEST_AT", x, dim, out, at);
}

int reduce_variance_opencl(tp_tensor *x, tp_ints dim, double correction, bool root, tp_tensor *out) {
    tp_dtype d = tp_compute_dtype((tp_dtype)x->dtype);
    tp_cl_fold o = {.name = "VARIANCE", .in = d, .made = tp_to_real_dtype(d), .correction = correction, .root = root};
    return reduce(&o, x, dim, out);
}

int reduce_program_opencl(int64_t program, tp_tensor *x, tp_ints dim, tp_dtype compute, tp_tensor *out) {
    tp_cl_fold o;
    return tp_cl_fold_of(&o, TP_FOLD_PROGRAM, program, compute, x, out) < 0 ? -1 : reduce(&o, x, dim, out);
}
