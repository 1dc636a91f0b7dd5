/* pointwise.c: see pointwise.h. */
#include "opencl/kernels/pointwise.h"

#include "core/scalar.h"
#include "opencl/kernels/element.h"
#include "opencl/kernels/expression.h"
#include "opencl/kernels/layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_OPERANDS 5
#define BLOCK "64" /* elements that are computed again, if need be */
#define SEVERAL 4  /* elements that a work-item of a GPU has where there are many */
#define MANY 4096  /* work-items for a compute unit that are many */

/* The variant of a kernel. */
typedef struct {
    const tp_pointwise *op;        /* NULL: a copy */
    uint8_t n, ndim, small, dtype; /* ndim 0: flat. small: positions fit 32 bits */
    uint8_t rows;                  /* a work-item walks along a row, */
    uint8_t several;               /* or has several elements, which lie flat */
    uint8_t stored[MAX_OPERANDS + 1], loop[MAX_OPERANDS + 1], class[MAX_OPERANDS + 1];
} variant;

/* ---- text ---- */

typedef struct {
    const variant *variant;
    tp_cl_layout layout;
    tp_cl_expression expression; /* without a program: a copy */
    tp_cl_lanes lanes;           /* that its built-in function takes in vectors */
} source;

/* ---- the kernel ---- */

static void add_parameters(tp_text *s, const source *c) {
    const variant *k = c->variant;
    tp_text_add(s, "__kernel void run(index n");
    for (int i = 0; i < k->n; i++)
        if (k->class[i] == TP_CL_NUMBER)
            tp_text_add(s, ", %s x%d", k->loop[i] == TP_BOOL ? "int" : tp_cl_type((tp_dtype)k->loop[i]), i);
        else tp_cl_add_memory(s, i);
    tp_cl_add_geometry(s, &c->layout);
    tp_cl_add_parameters(s, &c->expression, 0);
}

static void add_input(tp_text *s, const source *c, int i) {
    const variant *k = c->variant;
    tp_autotext place = {0};
    if (k->class[i] == TP_CL_NUMBER) return tp_text_add(s, k->loop[i] == TP_BOOL ? "(bool)x%d" : "x%d", i);
    tp_cl_add_place(&place, &c->layout, i);
    tp_cl_add_load(s, (tp_dtype)k->stored[i], (tp_dtype)k->loop[i], place.text ? place.text : "");
}

static void add_call(tp_text *s, const source *c, const char *function) {
    const variant *k = c->variant;
    tp_text_add(s, "%s(", function);
    for (int i = 1; i < k->n; i++) {
        if (i > 1) tp_text_add(s, ", ");
        add_input(s, c, i);
    }
    tp_cl_pass_on(s, &c->expression, 0);
    tp_text_add(s, ")");
}

static void add_result(tp_text *s, const source *c) {
    tp_text_add(s, "    const %s r = ", tp_cl_type((tp_dtype)c->variant->loop[0]));
    if (c->expression.program) add_call(s, c, "expr");
    else add_input(s, c, 1);
}

static void add_store(tp_text *s, const source *c, const char *value) {
    const variant *k = c->variant;
    tp_text_add(s, "    ");
    tp_cl_add_place(s, &c->layout, 0);
    tp_text_add(s, " = ");
    tp_cl_add_store(s, (tp_dtype)k->loop[0], (tp_dtype)k->stored[0], value);
    tp_text_add(s, ";\n");
}

/* The built-in function called with element `r[k]` alone. */
static void add_lone_calls(tp_text *s, const source *c, const char *count) {
    tp_text_add(s, "for (int k = 0; k < %s; k++) r[k] = %s(v1[k]", count, c->expression.built_in);
    for (int i = 2; i < c->variant->n; i++) tp_text_add(s, ", v%d[k]", i);
    tp_text_add(s, ");\n    else ");
}

/* `count` elements from `first` on, through vectors of `width` of them, since the built-in functions of CPU devices are
 * only fast there. Lanes without an element compute on ones. Vectors that the function is not trusted with (trial.h) go
 * through it element by element. */
static void add_vectors(tp_text *s, const source *c, int width, const char *count) {
    const variant *k = c->variant;
    const char *type = k->loop[0] == TP_FLOAT64 ? "double" : "float";
    tp_autotext loop = {0};
    tp_text_add(&loop, "int k = 0; k < %s; k++", count);
    tp_text_add(s, "    %s r[%d]", type, width);
    for (int i = 1; i < k->n; i++) tp_text_add(s, ", v%d[%d]", i, width);
    tp_text_add(s, ";\n");
    for (int i = 1; i < k->n && count[0] == 'c'; i++)
        tp_text_add(s, "    for (int k = 0; k < %d; k++) v%d[k] = 1;\n", width, i);
    tp_cl_add_loop(s, &c->layout, "OVER_VECTORS", loop.text ? loop.text : "", "first + k");
    for (int i = 1; i < k->n; i++) {
        tp_text_add(s, "    v%d[k] = ", i);
        add_input(s, c, i);
        tp_text_add(s, ";\n");
    }
    const char *name = c->expression.built_in;
    tp_text_add(s, "    }\n");
    if (tp_cl_trust(c->lanes)) {
        tp_text_add(s, "    bool trusted = true;\n    for (int k = 0; k < %d; k++) trusted &= %s;\n    if (!trusted) ",
                    width, tp_cl_trust(c->lanes));
        add_lone_calls(s, c, count);
    }
    tp_text_add(s, "vstore%d(%s(", width, name);
    for (int i = 1; i < k->n; i++) tp_text_add(s, "%svload%d(0, v%d)", i > 1 ? ", " : "", width, i);
    tp_text_add(s, "), 0, r);\n");
    tp_cl_add_loop(s, &c->layout, "OVER_VECTORS", loop.text ? loop.text : "", "first + k");
    add_store(s, c, "r[k]");
    tp_text_add(s, "    }\n");
}

static bool has_vectors(const source *c) { return c->variant->rows && c->expression.built_in; }
static bool by_vectors(const source *c) { return has_vectors(c) && c->lanes != TP_CL_NO_LANES; }

static void write_vectors(tp_text *s, const source *c) {
    int width = tp_cl_width((tp_dtype)c->variant->loop[0]);
    char whole[8];
    snprintf(whole, sizeof whole, "%d", width);
    tp_text_add(s, "    for (; last - first >= %d; first += %d) {\n", width, width);
    add_vectors(s, c, width, whole);
    tp_text_add(s, "    }\n    const int count = (int)(last - first);\n    if (count == 0) return;\n");
    add_vectors(s, c, width, "count");
    tp_text_add(s, "}\n");
}

/* A block with a NaN is computed again, element by element since PoCL's vector sin, cos and tan lose small lanes beside
 * huge ones: a quick form may have given up there. Results wait in `r` meanwhile: an operand may lie where they go. */
static bool by_quick_blocks(const source *c) { return c->variant->rows && c->expression.quick; }

static void write_quick_blocks(tp_text *s, const source *c) {
    static const char loop[] = "index j = first; j < end; j++";
    tp_text_add(s, "    for (index end; first < last; first = end) {\n"
                   "    end = last - first < " BLOCK " ? last : first + " BLOCK ";\n"
                   "    float r[" BLOCK "];\n    int failed = 0;\n");
    tp_cl_add_loop(s, &c->layout, "OVER_VECTORS", loop, "j");
    tp_text_add(s, "    const float v = ");
    add_call(s, c, "quick_expr");
    tp_text_add(s, ";\n    r[j - first] = v;\n    failed |= v != v;\n    }\n    if (failed)\n");
    tp_cl_add_loop(s, &c->layout, "ONE_BY_ONE", loop, "j");
    tp_text_add(s, "    r[j - first] = ");
    add_call(s, c, "expr");
    tp_text_add(s, ";\n    }\n");
    tp_cl_add_loop(s, &c->layout, "OVER_VECTORS", loop, "j");
    add_store(s, c, "r[j - first]");
    tp_text_add(s, "    }\n    }\n}\n");
}

/* Elements as far apart as a group is wide, so that neighbours read neighbours; all are on their way before the first
 * is stored. */
static void write_several(tp_text *s, const source *c) {
    static const char loop[] =
        "    for (int k = 0; k < %d; k++) {\n    const index i = start + k * group;\n    if (i < n)";
    tp_text_add(s,
                "    const index group = get_local_size(0), start = get_group_id(0) * group * %d + get_local_id(0);\n",
                SEVERAL);
    tp_text_add(s, "    %s r[%d];\n", tp_cl_type((tp_dtype)c->variant->loop[0]), SEVERAL);
    tp_text_add(s, loop, SEVERAL);
    tp_text_add(s, " r[k] = ");
    if (c->expression.program) add_call(s, c, "expr");
    else add_input(s, c, 1);
    tp_text_add(s, ";\n    }\n");
    tp_text_add(s, loop, SEVERAL);
    add_store(s, c, "r[k]");
    tp_text_add(s, "    }\n}\n");
}

static void write_source(tp_text *s, const void *context) {
    const source *c = context;
    const variant *k = c->variant;
    tp_autotext functions = {0};
    if (c->expression.program) tp_cl_add_function(&functions, &c->expression, "expr", false);
    if (by_quick_blocks(c)) tp_cl_add_function(&functions, &c->expression, "quick_expr", true);
    tp_cl_add_source(s, "", functions.text ? functions.text : "", NULL);
    tp_cl_add_types(s, &c->layout);
    add_parameters(s, c);
    tp_text_add(s, ") {\n");
    if (k->several) return write_several(s, c);
    tp_cl_add_head(s, &c->layout);
    if (by_vectors(c)) return write_vectors(s, c);
    if (by_quick_blocks(c)) return write_quick_blocks(s, c);
    if (k->rows) tp_cl_add_loop(s, &c->layout, "OVER_VECTORS", "index j = first; j < last; j++", "j");
    add_result(s, c);
    tp_text_add(s, ";\n");
    add_store(s, c, "r");
    tp_text_add(s, k->rows ? "    }\n}\n" : "}\n");
}

/* ---- the kernel of a variant ---- */

static source source_of(const variant *k) {
    tp_cl_layout layout = {k->n, 1, k->ndim, k->small, k->rows, k->stored, k->class};
    return (source){k, layout, tp_cl_expression_of(k->op, (tp_dtype)k->dtype), TP_CL_ANY_LANES};
}

static tp_cl_built *make(tp_cl_device *d, const char *kernel, const void *given) {
    char text[256];
    const variant *k = given;
    source c = source_of(k);
    if (has_vectors(&c)) c.lanes = tp_cl_expression_lanes(d, &c.expression, (tp_dtype)k->loop[0]);
    int at = snprintf(text, sizeof text, "%s %d %d", k->op ? k->op->name : "copy", k->op ? k->op->number : 0, k->dtype);
    for (int i = 0; i < k->n; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, " %d:%d:%d", k->stored[i], k->loop[i], k->class[i]);
    snprintf(text + at, sizeof text - (size_t)at, " dims %d%s%s", k->ndim, k->small ? " small" : "",
             k->rows      ? " rows"
             : k->several ? " several"
                          : "");
    return tp_cl_kernel(d, text, kernel, write_source, &c);
}

static const tp_cl_family family = {.make = make, .size = TP_CL_SIZE(variant)};

static int classify(variant *k, const tp_iter *it, tp_tensor *const *tensors) {
    bool flat = it->ndim <= 1;
    k->n = (uint8_t)it->noperands;
    k->small = it->numel <= INT32_MAX;
    for (int i = 0; i < k->n; i++) {
        int64_t step = it->ndim ? it->strides[i][0] : 0;
        k->stored[i] = (uint8_t)it->dtype[i];
        k->class[i] = !tensors[i] ? TP_CL_NUMBER : TP_CL_ELEMENTS;
        if (k->class[i] != TP_CL_NUMBER && step != 0 && step != tp_itemsize(it->dtype[i])) flat = false;
    }
    for (int i = 0; flat && i < k->n; i++) /* an output of one element is written by the one work-item there is */
        if (k->class[i] != TP_CL_NUMBER && it->strides[i][0] == 0) k->class[i] = TP_CL_ONE;
    if (!flat && it->ndim > TP_CL_PLAN_DIMS)
        return tp_fail(TP_RuntimeError, "OpenCL: a kernel walks over at most %d dimensions that do not merge, not %d",
                       TP_CL_PLAN_DIMS, it->ndim);
    k->ndim = flat ? 0 : (uint8_t)it->ndim;
    for (int i = 0; !flat && k->rows && i < k->n; i++) {
        if (k->class[i] == TP_CL_NUMBER) continue;
        if (it->strides[i][0] == tp_itemsize(it->dtype[i])) k->class[i] = TP_CL_NEXT;
        else if (i && it->strides[i][0] == 0) k->class[i] = TP_CL_ONE;
    }
    for (int i = 0; i < k->n; i++) /* a number is no part of the text but for the dtype it is passed in */
        if (k->class[i] == TP_CL_NUMBER) k->stored[i] = k->loop[i];
    return 0;
}

/* ---- arguments ---- */

static void pass_operands(tp_cl_call *c, const variant *k, const tp_iter *it, tp_tensor *const *tensors) {
    for (int i = 0; i < k->n; i++) {
        if (k->class[i] == TP_CL_NUMBER) {
            tp_scalar number = tp_scalar_load(it->data[i], it->dtype[i]);
            tp_cl_pass_number(c, &number, (tp_dtype)k->loop[i]);
        } else {
            tp_cl_pass_place(c, tp_cl_place_of(tensors[i], it->data[i]));
        }
    }
}

static int launch(variant *k, const tp_iter *it, tp_tensor *const *tensors, const tp_value *params) {
    tp_cl_device *d = tp_cl_device_of(tensors, it->noperands);
    if (!d) return -1;
    k->rows = d->is_cpu;
    if (classify(k, it, tensors) < 0) return -1;
    k->several = !d->is_cpu && k->ndim == 0 && it->numel >= (int64_t)d->compute_units * MANY;
    for (int i = 0; i < k->n; i++)
        if (tp_cl_check_dtype(d, k->loop[i]) < 0) return -1;
    tp_cl_call call = tp_cl_begin(d, tp_cl_plan(d, &family, "run", k));
    if (!call.kernel) return -1;
    const int64_t *strides[MAX_OPERANDS + 1];
    for (int i = 0; i < k->n; i++) strides[i] = it->strides[i];
    source c = source_of(k);
    tp_cl_pass_index(&call, &c.layout, it->numel);
    pass_operands(&call, k, it, tensors);
    tp_cl_pass_geometry(&call, &c.layout, strides, it->shape);
    tp_cl_pass_params(&call, &c.expression, params);
    if (k->several)
        return tp_cl_run(&call, tp_divide_up(it->numel, SEVERAL * (int64_t)d->group) * (int64_t)d->group, 0);
    return tp_cl_run_elements(&call, &c.layout, it->numel, strides, it->shape);
}

/* map(int program, Tensor?[] inputs, Scalar[] numbers, ScalarType compute, *, Tensor(a!) out) -> () */
int map_opencl(int64_t program, tp_tensors inputs, tp_scalars numbers, tp_dtype compute, tp_tensor *out) {
    tp_map_job job;
    if (tp_map_plan(&job, program, inputs, numbers, compute, out) < 0) return -1;
    variant k = {.op = job.call.p, .dtype = (uint8_t)tp_compute_dtype(compute)};
    for (int i = 0; i < job.it.noperands; i++) k.loop[i] = (uint8_t)tp_compute_dtype(job.it.loop_dtype[i]);
    return launch(&k, &job.it, job.tensors, job.call.params);
}

int tp_cl_run_copy(const tp_iter *given, tp_tensor *const *tensors) {
    tp_iter it = *given;
    /* Equal dtypes that are computed in a wider one move as integers, so that a NaN keeps its bits. */
    if (it.dtype[0] == it.dtype[1] && tp_is_half_dtype(it.dtype[0])) it.dtype[0] = it.dtype[1] = TP_UINT16;
    if (it.dtype[0] == it.dtype[1]) it.dtype[0] = it.dtype[1] = tp_moved_dtype(it.dtype[0]);
    tp_dtype dtype = tp_compute_dtype(it.dtype[0]);
    variant k = {.dtype = (uint8_t)dtype, .loop = {(uint8_t)dtype, (uint8_t)dtype}};
    return launch(&k, &it, tensors, NULL);
}
