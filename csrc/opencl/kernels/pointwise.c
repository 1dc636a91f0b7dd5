/* pointwise.c: see pointwise.h. */
#include "opencl/kernels/pointwise.h"

#include "core/scalar.h"
#include "opencl/kernels/element.h"
#include "opencl/runtime/trial.h"
#include "prim/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_OPERANDS 5
#define MAX_PLAN_DIMS 12
#define PIECE 16384    /* elements of a row that one work-item of a CPU device takes, */
#define SHORT_PIECE 64 /* and where an operand lies across: neighbouring rows then share its cache lines */
#define LINE 64
#define BLOCK "64" /* elements that are computed again, if need be */

typedef enum { ELEMENTS, ONE, NUMBER } operand_class;

/* The variant of a kernel. */
typedef struct {
    const tp_pointwise *op;        /* NULL: a copy */
    uint8_t n, ndim, small, dtype; /* ndim 0: flat. small: positions fit 32 bits */
    uint8_t rows;                  /* a work-item walks along a row */
    uint8_t stored[MAX_OPERANDS + 1], loop[MAX_OPERANDS + 1], class[MAX_OPERANDS + 1];
    uint8_t rest[1];
} variant;

/* ---- text ---- */

typedef struct {
    const variant *variant;
    const tp_program *program; /* NULL: a copy */
    const char *built_in;      /* the function of OpenCL C that the program is, or NULL */
    bool quick;                /* it has a quick form */
    tp_cl_lanes lanes;         /* that its built-in function takes in vectors */
    tp_program_use uses[TP_PROGRAM_PARAMS];
} source;

/* ---- the expression ---- */

/* Calls `each` with every argument that the parameters of a program are to a kernel: a number of a dtype, or flags. */
typedef enum { VALUE, IS_NONE, IS_WORD } argument_kind;
typedef void (*argument_fn)(void *context, int param, argument_kind kind, tp_dtype dtype, int word);
static void each_argument(const source *c, argument_fn each, void *context) {
    for (int k = 0; c->program && k < TP_PROGRAM_PARAMS; k++) {
        const tp_program_use *use = &c->uses[k];
        if (use->number) each(context, k, VALUE, tp_kind_dtype(use->kind, (tp_dtype)c->variant->dtype), 0);
        if (use->none) each(context, k, IS_NONE, TP_BOOL, 0);
        for (int j = 0; j < 32; j++)
            if (use->words >> j & 1) each(context, k, IS_WORD, TP_BOOL, j);
    }
}

typedef struct {
    tp_text *s;
    int count;
} text_context;

static const char *type_of(tp_dtype d) { return d == TP_BOOL ? "bool" : tp_cl_type(d); }
static const char *argument_type(tp_dtype d) { return d == TP_BOOL ? "int" : tp_cl_type(d); }

static void add_argument(void *context, int param, argument_kind kind, tp_dtype dtype, int word) {
    tp_text *s = ((text_context *)context)->s;
    tp_text_add(s, ", %s ", argument_type(dtype));
    if (kind == IS_WORD) tp_text_add(s, "w%d_%d", param, word);
    else tp_text_add(s, kind == VALUE ? "p%d" : "n%d", param);
}

static bool has_quick_form(const tp_program *p, tp_dtype d) {
    for (int i = 0; i < p->nsteps; i++)
        if (tp_step_quick_form(p->steps[i].op, tp_kind_dtype(p->steps[i].kind, d))) return true;
    return false;
}

/* The function of OpenCL C that a program is, of its inputs as they come, where it has to be called with vectors. */
static const char *built_in_of(const tp_pointwise *op, const tp_program *p, tp_dtype d) {
    const tp_step *last = &p->steps[p->nsteps - 1];
    if (p->nsteps != op->ninputs + 1 || last->a != 0 || (op->ninputs > 1 && last->b != 1)) return NULL;
    for (int i = 0; i < op->ninputs; i++)
        if (op->input_dtype[i] != TP_NO_DTYPE || p->steps[i].op != TP_STEP_INPUT || p->steps[i].a != i) return NULL;
    return tp_step_takes_vectors(last->op, d) ? tp_step_name(last->op) : NULL;
}

static void add_function(tp_text *s, const source *c, const char *name, bool quick) {
    const variant *k = c->variant;
    text_context context = {.s = s};
    tp_dtype d = (tp_dtype)k->dtype;
    tp_text_add(s, "TP_FN %s %s(", type_of(tp_program_result(c->program, d)), name);
    for (int i = 0; i < k->op->ninputs; i++) {
        tp_dtype own = k->op->input_dtype[i] != TP_NO_DTYPE ? (tp_dtype)k->op->input_dtype[i] : d;
        tp_text_add(s, "%s%s x%d", i ? ", " : "", type_of(own), i);
    }
    each_argument(c, add_argument, &context);
    tp_text_add(s, ") {\n");
    tp_program_print(s, c->program, d, quick);
    tp_text_add(s, "}\n");
}

/* ---- the kernel ---- */

static void add_parameter(void *context, int param TP_UNUSED, argument_kind kind TP_UNUSED, tp_dtype dtype,
                          int word TP_UNUSED) {
    text_context *t = context;
    tp_text_add(t->s, ", %s p%d", argument_type(dtype), t->count++);
}

static void pass_on(void *context, int param TP_UNUSED, argument_kind kind TP_UNUSED, tp_dtype dtype TP_UNUSED,
                    int word TP_UNUSED) {
    text_context *t = context;
    tp_text_add(t->s, ", p%d", t->count++);
}

static void add_parameters(tp_text *s, const source *c) {
    const variant *k = c->variant;
    tp_text_add(s, "__kernel void run(%s n", k->small ? "uint" : "ulong");
    for (int i = 0; i < k->n; i++)
        if (k->class[i] == NUMBER)
            tp_text_add(s, ", %s x%d", k->loop[i] == TP_BOOL ? "int" : tp_cl_type((tp_dtype)k->loop[i]), i);
        else tp_text_add(s, ", __global char *m%d, long o%d", i, i);
    if (k->ndim) tp_text_add(s, ", geometry g");
    if (k->rows) tp_text_add(s, ", index piece");
    each_argument(c, add_parameter, &(text_context){s, 0});
}

/* The address of each operand's element, in bytes from the buffer's start: a<i> for the element `i` of all; on a CPU
 * device base<i> for the row `row`, whose elements a loop walks along. */
static void add_addresses(tp_text *s, const variant *k) {
    const char *name = k->rows ? "base" : "a";
    tp_text_add(s, "    index rest = %s, at;\n", k->rows ? "row" : "i");
    for (int i = 0; i < k->n; i++)
        if (k->class[i] != NUMBER) tp_text_add(s, "    long %s%d = o%d;\n", name, i, i);
    for (int d = k->rows ? 1 : 0; d < k->ndim; d++) {
        if (d + 1 < k->ndim) tp_text_add(s, "    at = rest %% g.shape[%d]; rest /= g.shape[%d];\n", d, d);
        else tp_text_add(s, "    at = rest;\n");
        for (int i = 0; i < k->n; i++)
            if (k->class[i] != NUMBER)
                tp_text_add(s, "    %s%d += (long)at * g.strides[%d];\n", name, i, i * k->ndim + d);
    }
}

/* What one work-item does around the element: itself on a GPU; on a CPU device a loop over a piece of a row, which the
 * compiler turns into vectors. Elements are read where they are written or apart, so no iteration waits for another. */
static void add_head(tp_text *s, const variant *k) {
    if (!k->rows) {
        tp_text_add(s, "    const index i = get_global_id(0);\n    if (i >= n) return;\n");
        if (k->ndim) add_addresses(s, k);
        return;
    }
    tp_text_add(s, "    const index length = %s, rows = n / length, unit = get_global_id(0);\n",
                k->ndim ? "g.shape[0]" : "n");
    tp_text_add(s, "    const index row = unit %% rows;\n    index first = unit / rows * piece;\n"
                   "    if (first >= length) return;\n"
                   "    const index last = length - first < piece ? length : first + piece;\n");
    if (k->ndim) add_addresses(s, k);
    for (int i = 1; i < k->n; i++)
        if (k->class[i] == ONE)
            tp_text_add(s, "    const %s one%d = *(__global %s *)(m%d + o%d);\n", tp_cl_storage((tp_dtype)k->stored[i]),
                        i, tp_cl_storage((tp_dtype)k->stored[i]), i, i);
}

/* A loop over elements of a row, `how` the compiler shall make it, and the places of the one at `at`. */
static void add_loop(tp_text *s, const variant *k, const char *how, const char *loop, const char *at) {
    tp_text_add(s, "%s\n    for (%s) {\n    const index i = %s;\n", how, loop, at);
    for (int i = 0; k->ndim && i < k->n; i++)
        if (k->class[i] != NUMBER)
            tp_text_add(s, "    const long a%d = base%d + (long)i * g.strides[%d];\n", i, i, i * k->ndim);
}

static void add_place(tp_text *s, const variant *k, int i) {
    const char *type = tp_cl_storage((tp_dtype)k->stored[i]);
    if (k->class[i] == NUMBER) tp_text_add(s, "x%d", i);
    else if (k->rows && i && k->class[i] == ONE) tp_text_add(s, "one%d", i);
    else if (k->ndim) tp_text_add(s, "(*(__global %s *)(m%d + a%d))", type, i, i);
    else tp_text_add(s, "((__global %s *)(m%d + o%d))[%s]", type, i, i, k->class[i] == ONE ? "0" : "i");
}

static void add_input(tp_text *s, const variant *k, int i) {
    tp_autotext place = {0};
    add_place(&place, k, i);
    const char *text = place.text ? place.text : "";
    if (k->class[i] != NUMBER) tp_cl_add_load(s, (tp_dtype)k->stored[i], (tp_dtype)k->loop[i], text);
    else tp_text_add(s, k->loop[i] == TP_BOOL ? "(bool)%s" : "%s", text);
}

static void add_call(tp_text *s, const source *c, const char *function) {
    const variant *k = c->variant;
    tp_text_add(s, "%s(", function);
    for (int i = 1; i < k->n; i++) {
        if (i > 1) tp_text_add(s, ", ");
        add_input(s, k, i);
    }
    each_argument(c, pass_on, &(text_context){s, 0});
    tp_text_add(s, ")");
}

static void add_result(tp_text *s, const source *c) {
    tp_text_add(s, "    const %s r = ", tp_cl_type((tp_dtype)c->variant->loop[0]));
    if (c->program) add_call(s, c, "expr");
    else add_input(s, c->variant, 1);
}

static void add_store(tp_text *s, const variant *k, const char *value) {
    tp_text_add(s, "    ");
    add_place(s, k, 0);
    tp_text_add(s, " = ");
    tp_cl_add_store(s, (tp_dtype)k->loop[0], (tp_dtype)k->stored[0], value);
    tp_text_add(s, ";\n");
}

/* The built-in function called with element `r[k]` alone. */
static void add_lone_calls(tp_text *s, const source *c, const char *count) {
    tp_text_add(s, "for (int k = 0; k < %s; k++) r[k] = %s(v1[k]", count, c->built_in);
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
    add_loop(s, k, "OVER_VECTORS", loop.text ? loop.text : "", "first + k");
    for (int i = 1; i < k->n; i++) {
        tp_text_add(s, "    v%d[k] = ", i);
        add_input(s, k, i);
        tp_text_add(s, ";\n");
    }
    const char *name = c->built_in;
    tp_text_add(s, "    }\n");
    if (c->lanes != TP_CL_ANY_LANES) {
        tp_text_add(s, "    bool trusted = true;\n    for (int k = 0; k < %d; k++) trusted &= %s;\n    if (!trusted) ",
                    width, c->lanes == TP_CL_SMALL_LANES ? "fabs(v1[k]) < 100" : "isnormal(v1[k])");
        add_lone_calls(s, c, count);
    }
    tp_text_add(s, "vstore%d(%s(", width, name);
    for (int i = 1; i < k->n; i++) tp_text_add(s, "%svload%d(0, v%d)", i > 1 ? ", " : "", width, i);
    tp_text_add(s, "), 0, r);\n");
    add_loop(s, k, "OVER_VECTORS", loop.text ? loop.text : "", "first + k");
    add_store(s, k, "r[k]");
    tp_text_add(s, "    }\n");
}

static bool has_vectors(const source *c) { return c->variant->rows && c->built_in; }
static bool by_vectors(const source *c) { return has_vectors(c) && c->lanes != TP_CL_NO_LANES; }
static int width_of(const variant *k) { return k->loop[0] == TP_FLOAT64 ? 8 : 16; }

static void write_vectors(tp_text *s, const source *c) {
    int width = width_of(c->variant);
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
static bool by_quick_blocks(const source *c) { return c->variant->rows && c->quick; }

static void write_quick_blocks(tp_text *s, const source *c) {
    static const char loop[] = "index j = first; j < end; j++";
    tp_text_add(s, "    for (index end; first < last; first = end) {\n"
                   "    end = last - first < " BLOCK " ? last : first + " BLOCK ";\n"
                   "    float r[" BLOCK "];\n    int failed = 0;\n");
    add_loop(s, c->variant, "OVER_VECTORS", loop, "j");
    tp_text_add(s, "    const float v = ");
    add_call(s, c, "quick_expr");
    tp_text_add(s, ";\n    r[j - first] = v;\n    failed |= v != v;\n    }\n    if (failed)\n");
    add_loop(s, c->variant, "ONE_BY_ONE", loop, "j");
    tp_text_add(s, "    r[j - first] = ");
    add_call(s, c, "expr");
    tp_text_add(s, ";\n    }\n");
    add_loop(s, c->variant, "OVER_VECTORS", loop, "j");
    add_store(s, c->variant, "r[j - first]");
    tp_text_add(s, "    }\n    }\n}\n");
}

static void write_source(tp_text *s, const void *context) {
    const source *c = context;
    const variant *k = c->variant;
    tp_autotext functions = {0};
    if (c->program) add_function(&functions, c, "expr", false);
    if (by_quick_blocks(c)) add_function(&functions, c, "quick_expr", true);
    tp_cl_add_source(s, "", functions.text ? functions.text : "", NULL);
    tp_text_add(s, "typedef %s index;\n", k->small ? "uint" : "ulong");
    if (k->ndim)
        tp_text_add(s, "typedef struct { long strides[%d]; index shape[%d]; } geometry;\n", k->n * k->ndim,
                    k->ndim + (k->ndim & 1));
    add_parameters(s, c);
    tp_text_add(s, ") {\n");
    add_head(s, k);
    if (by_vectors(c)) return write_vectors(s, c);
    if (by_quick_blocks(c)) return write_quick_blocks(s, c);
    if (k->rows) add_loop(s, k, "OVER_VECTORS", "index j = first; j < last; j++", "j");
    add_result(s, c);
    tp_text_add(s, ";\n");
    add_store(s, k, "r");
    tp_text_add(s, k->rows ? "    }\n}\n" : "}\n");
}

/* ---- the kernel of a variant ---- */

static source source_of(const variant *k) {
    source c = {.variant = k, .lanes = TP_CL_ANY_LANES};
    tp_dtype d = (tp_dtype)k->dtype;
    if (!k->op) return c;
    c.program = &k->op->programs[tp_class_of(d)];
    c.built_in = built_in_of(k->op, c.program, d);
    c.quick = has_quick_form(c.program, d);
    tp_program_uses(c.program, c.uses);
    return c;
}

static tp_cl_built *make(tp_cl_device *d, const char *kernel, const void *given) {
    char text[256];
    const variant *k = given;
    source c = source_of(k);
    if (has_vectors(&c)) c.lanes = tp_cl_trusted_lanes(d, c.built_in, (tp_dtype)k->loop[0], k->n - 1, width_of(k));
    int at = snprintf(text, sizeof text, "%s %d %d", k->op ? k->op->name : "copy", k->op ? k->op->number : 0, k->dtype);
    for (int i = 0; i < k->n; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, " %d:%d:%d", k->stored[i], k->loop[i], k->class[i]);
    snprintf(text + at, sizeof text - (size_t)at, " dims %d%s%s", k->ndim, k->small ? " small" : "",
             k->rows ? " rows" : "");
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
        k->class[i] = !tensors[i] ? NUMBER : ELEMENTS;
        if (k->class[i] != NUMBER && step != 0 && step != tp_itemsize(it->dtype[i])) flat = false;
    }
    for (int i = 0; flat && i < k->n; i++) /* an output of one element is written by the one work-item there is */
        if (k->class[i] != NUMBER && it->strides[i][0] == 0) k->class[i] = ONE;
    if (!flat && it->ndim > MAX_PLAN_DIMS)
        return tp_fail(TP_RuntimeError, "OpenCL: a kernel walks over at most %d dimensions that do not merge, not %d",
                       MAX_PLAN_DIMS, it->ndim);
    k->ndim = flat ? 0 : (uint8_t)it->ndim;
    for (int i = 0; i < k->n; i++) /* a number is no part of the text but for the dtype it is passed in */
        if (k->class[i] == NUMBER) k->stored[i] = k->loop[i];
    return 0;
}

/* ---- arguments ---- */

static bool is_none(const tp_value *v) { return v->tag == TP_NONE || (v->tag == TP_SCALAR && !v->scalar); }

typedef struct {
    tp_cl_call *call;
    const tp_pointwise *op;
    const tp_value *params;
} pass_context;

static void pass_argument(void *context, int param, argument_kind kind, tp_dtype dtype, int word) {
    const pass_context *c = context;
    const tp_value *v = &c->params[param];
    if (kind == VALUE) {
        tp_scalar number = tp_program_number(v);
        tp_cl_pass_number(c->call, &number, dtype);
    } else if (kind == IS_NONE) {
        tp_cl_pass_int(c->call, is_none(v));
    } else {
        tp_cl_pass_int(c->call, v->tag == TP_STR && v->str && strcmp(v->str, c->op->params[param].words[word]) == 0);
    }
}

static void pass_geometry(tp_cl_call *c, const variant *k, const tp_iter *it) {
    int64_t words[MAX_PLAN_DIMS * (MAX_OPERANDS + 1)];
    size_t n = 0;
    for (int i = 0; i < k->n; i++)
        for (int d = 0; d < k->ndim; d++) words[n++] = it->strides[i][d];
    if (!k->small) {
        for (int d = 0; d < k->ndim + (k->ndim & 1); d++) words[n++] = d < k->ndim ? it->shape[d] : 1;
    } else {
        uint32_t *shape = (uint32_t *)(words + n);
        for (int d = 0; d < k->ndim + (k->ndim & 1); d++) shape[d] = d < k->ndim ? (uint32_t)it->shape[d] : 1;
        n += (size_t)(k->ndim + 1) / 2;
    }
    tp_cl_pass(c, n * sizeof *words, words);
}

static void pass_index(tp_cl_call *c, const variant *k, int64_t value) {
    uint32_t small = (uint32_t)value;
    if (k->small) tp_cl_pass(c, sizeof small, &small);
    else tp_cl_pass_long(c, value);
}

static void pass_operands(tp_cl_call *c, const variant *k, const tp_iter *it, tp_tensor *const *tensors) {
    pass_index(c, k, it->numel);
    for (int i = 0; i < k->n; i++) {
        if (k->class[i] == NUMBER) {
            tp_scalar number = tp_scalar_load(it->data[i], it->dtype[i]);
            tp_cl_pass_number(c, &number, (tp_dtype)k->loop[i]);
        } else {
            tp_cl_pass_place(c, tp_cl_place_of(tensors[i], it->data[i]));
        }
    }
    if (k->ndim) pass_geometry(c, k, it);
}

static int64_t piece_of(const variant *k, const tp_iter *it) {
    for (int i = 0; k->ndim > 1 && i < k->n; i++)
        if (k->class[i] == ELEMENTS && llabs(it->strides[i][0]) >= LINE && llabs(it->strides[i][1]) < LINE &&
            it->strides[i][1])
            return SHORT_PIECE;
    return PIECE;
}

static int launch(variant *k, const tp_iter *it, tp_tensor *const *tensors, const tp_value *params) {
    tp_cl_device *d = tp_cl_device_of(tensors, it->noperands);
    if (!d || classify(k, it, tensors) < 0) return -1;
    for (int i = 0; i < k->n; i++)
        if (tp_cl_check_dtype(d, k->loop[i]) < 0) return -1;
    k->rows = d->is_cpu;
    tp_cl_call call = tp_cl_begin(d, tp_cl_plan(d, &family, "run", k));
    if (!call.kernel) return -1;
    int64_t piece = piece_of(k, it);
    pass_operands(&call, k, it, tensors);
    if (k->rows) pass_index(&call, k, piece);
    source c = source_of(k);
    each_argument(&c, pass_argument, &(pass_context){&call, k->op, params});
    if (!k->rows) return tp_cl_run(&call, it->numel, 0);
    int64_t length = k->ndim ? it->shape[0] : it->numel, pieces = (length + piece - 1) / piece;
    return tp_cl_run(&call, it->numel / length * pieces, k->ndim ? 16 : 1);
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
