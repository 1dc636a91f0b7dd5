/* fused.c: the primitive fused.map: several calls of map as one kernel, made of the functions that map's own kernels
 * are made of (expression.h).
 *
 * A value is what memory would have held: it is rounded to its dtype, in the type in which it is stored, so bits are
 * those of map, call by call. On a CPU device what map computes in vectors, or again where a quick form gives up
 * (pointwise.c), is computed so here: elements pass in blocks, one loop for the calls up to such a call, and one for
 * those after it; stores come last, since an output may be an input.
 *
 * Kernels are built in the background (later.h), from the second time on that they are wanted; until then, and where a
 * device cannot have one, the call declines. Numbers and sizes are arguments. */
#include "PrimitiveKernels.h"
#include "opencl/kernels/element.h"
#include "opencl/kernels/expression.h"
#include "opencl/kernels/layout.h"
#include "opencl/runtime/later.h"
#include "prim/fused.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 64 /* elements, as in pointwise.c: which ones share a block tells in the bits */
#define OPERANDS (2 * TP_FUSED_TENSORS)
#define VALUES (TP_FUSED_TENSORS + TP_FUSED_CALLS)
#define MOST_BYTES 960  /* of arguments, of which every device takes 1,024 */
#define WANTED_BEFORE 1 /* so often a kernel is done without */

/* All that a kernel's text depends on. */
typedef struct {
    int64_t program;
    uint16_t ones, next;              /* a bit for each input that is one element for all or a row, or neighbours */
    uint8_t ndim, small, rows;        /* as tp_cl_layout's */
    uint8_t blocks;                   /* rows are whole blocks */
    uint8_t stored[TP_FUSED_TENSORS]; /* inputs' dtypes */
} variant;
_Static_assert(sizeof(variant) == 32, "variants are compared as bytes");

/* How a call is computed. */
typedef enum { PLAIN, IN_VECTORS, IN_QUICK_FORM } manner;

/* A kernel that was wanted; kept for good. */
typedef struct unit {
    tp_cl_later later; /* comes first */
    struct unit *next; /* in its bucket */
    tp_cl_device *device;
    variant variant;
    uint8_t lanes[TP_FUSED_CALLS]; /* that its built-in function is trusted with */
    int wanted;
} unit;

/* ---- what a kernel computes ---- */

typedef struct {
    const tp_fused *f;
    const unit *unit;
    tp_cl_layout layout;
    uint8_t stored[OPERANDS], class[OPERANDS];
    tp_cl_expression expressions[TP_FUSED_CALLS];
    manner manners[TP_FUSED_CALLS];
    int nspecial;      /* calls that are not plain: there is one loop more */
    int loops[VALUES]; /* in which loop a value is made or read from memory */
} source;

static tp_dtype dtype_of(const source *c, int value) {
    int n = c->f->ninputs;
    return value < n ? (tp_dtype)c->unit->variant.stored[value] : (tp_dtype)c->f->calls[value - n].dtype;
}

/* What a call converts an input to, and what its function gives. */
static tp_dtype wanted_of(const tp_fused_call *call, int i) {
    if (call->program < 0) return tp_compute_dtype((tp_dtype)call->dtype);
    const tp_pointwise *op = tp_pointwise_at(call->program & 0xffff);
    bool own = op->input_dtype[i] != TP_NO_DTYPE;
    return tp_compute_dtype(own ? (tp_dtype)op->input_dtype[i] : (tp_dtype)call->compute);
}
static tp_dtype result_of(const tp_fused_call *call) {
    if (call->program < 0) return tp_compute_dtype((tp_dtype)call->dtype);
    const tp_pointwise *op = tp_pointwise_at(call->program & 0xffff);
    return tp_compute_dtype(tp_promotion_result((tp_promotion)op->promotion, (tp_dtype)call->compute));
}

static tp_cl_expression expression_of(const tp_fused_call *call) {
    const tp_pointwise *op = call->program < 0 ? NULL : tp_pointwise_at(call->program & 0xffff);
    return tp_cl_expression_of(op, op ? tp_compute_dtype((tp_dtype)call->compute) : 0);
}

static manner manner_of(const tp_cl_expression *e, bool rows, uint8_t lanes) {
    if (!rows || !e->program) return PLAIN;
    if (e->built_in && lanes != TP_CL_NO_LANES) return IN_VECTORS;
    return !e->built_in && e->quick ? IN_QUICK_FORM : PLAIN;
}

/* Outputs come first among the operands. */
static void set_layout(const tp_fused *f, const variant *k, tp_cl_layout *l, uint8_t *stored, uint8_t *class) {
    int nout = f->noutputs;
    for (int i = 0; i < nout; i++) {
        stored[i] = (uint8_t)f->calls[f->outputs[i] - f->ninputs].dtype;
        class[i] = k->rows && k->ndim ? TP_CL_NEXT : TP_CL_ELEMENTS; /* without gaps */
    }
    for (int i = 0; i < f->ninputs; i++) {
        stored[nout + i] = k->stored[i];
        class[nout + i] = k->ones >> i & 1 ? TP_CL_ONE : k->next >> i & 1 ? TP_CL_NEXT : TP_CL_ELEMENTS;
    }
    *l = (tp_cl_layout){nout + f->ninputs, nout, k->ndim, k->small, k->rows, stored, class};
}

static void set_source(source *c, const unit *u) {
    c->f = tp_fused_at(u->variant.program);
    c->unit = u;
    c->nspecial = 0;
    set_layout(c->f, &u->variant, &c->layout, c->stored, c->class);
    for (int v = 0; v < c->f->ninputs; v++) c->loops[v] = TP_FUSED_CALLS; /* until it is read */
    for (int i = 0; i < c->f->ncalls; i++) {
        const tp_fused_call *call = &c->f->calls[i];
        c->expressions[i] = expression_of(call);
        c->manners[i] = manner_of(&c->expressions[i], u->variant.rows, u->lanes[i]);
        for (int k = 0; k < call->ninputs; k++)
            if (call->in[k] >= 0 && call->in[k] < c->f->ninputs && c->loops[call->in[k]] > c->nspecial)
                c->loops[call->in[k]] = c->nspecial;
        c->nspecial += c->manners[i] != PLAIN;
        c->loops[c->f->ninputs + i] = c->nspecial;
    }
}

/* Whether a call reads its inputs in a loop: a special call in the one before that in which its value is made. */
static bool reads_in(const source *c, int call, int loop) {
    return c->loops[c->f->ninputs + call] - (c->manners[call] != PLAIN) == loop;
}

static bool is_read_in(const source *c, int value, int loop) {
    const tp_fused *f = c->f;
    for (int i = 0; loop == c->nspecial && i < f->noutputs; i++)
        if (f->outputs[i] == value) return true;
    for (int i = 0; i < f->ncalls; i++)
        for (int k = 0; reads_in(c, i, loop) && k < f->calls[i].ninputs; k++)
            if (f->calls[i].in[k] == value) return true;
    return false;
}

static bool is_read_after(const source *c, int value, int loop) {
    while (++loop <= c->nspecial)
        if (is_read_in(c, value, loop)) return true;
    return false;
}

/* ---- parameters ---- */

static void add_parameters(tp_text *s, const source *c) {
    tp_text_add(s, "__kernel void run(index n");
    for (int i = 0; i < c->layout.n; i++) tp_cl_add_memory(s, i);
    tp_cl_add_geometry(s, &c->layout);
    for (int i = 0, next = 0; i < c->f->ncalls; i++) {
        const tp_fused_call *call = &c->f->calls[i];
        for (int k = 0; k < call->ninputs; k++) {
            tp_dtype d = wanted_of(call, k);
            if (call->in[k] < 0) tp_text_add(s, ", %s x%d_%d", d == TP_BOOL ? "int" : tp_cl_type(d), i, k);
        }
        next = tp_cl_add_parameters(s, &c->expressions[i], next);
    }
    tp_text_add(s, ") {\n");
}

/* The number of a call's first parameter. */
static int first_parameter(const source *c, int call) {
    tp_autotext unseen = {0};
    int next = 0;
    for (int i = 0; i < call; i++) next = tp_cl_pass_on(&unseen, &c->expressions[i], next);
    return next;
}

/* ---- a call ---- */

static void add_input(tp_text *s, const source *c, int call, int k) {
    const tp_fused_call *of = &c->f->calls[call];
    tp_dtype wanted = wanted_of(of, k);
    char value[16];
    if (of->in[k] < 0) return tp_text_add(s, wanted == TP_BOOL ? "(bool)x%d_%d" : "x%d_%d", call, k);
    snprintf(value, sizeof value, "v%d", of->in[k]);
    tp_cl_add_load(s, dtype_of(c, of->in[k]), wanted, value);
}

static void add_value(tp_text *s, const source *c, int call, const char *result) {
    const tp_fused_call *of = &c->f->calls[call];
    tp_text_add(s, "    const %s v%d = ", tp_cl_storage((tp_dtype)of->dtype), c->f->ninputs + call);
    tp_cl_add_store(s, result_of(of), (tp_dtype)of->dtype, result);
    tp_text_add(s, ";\n");
}

static void add_plain(tp_text *s, const source *c, int call) {
    const tp_fused_call *of = &c->f->calls[call];
    char result[16];
    snprintf(result, sizeof result, "r%d", call);
    if (of->program < 0 && dtype_of(c, of->in[0]) == (tp_dtype)of->dtype) { /* bits that are only moved */
        tp_text_add(s, "    const %s v%d = v%d;\n", tp_cl_storage((tp_dtype)of->dtype), c->f->ninputs + call,
                    of->in[0]);
        return;
    }
    tp_text_add(s, "    const %s %s = ", tp_cl_type(result_of(of)), result);
    if (of->program >= 0) tp_text_add(s, "f%d(", call);
    for (int k = 0; k < of->ninputs; k++) {
        if (k) tp_text_add(s, ", ");
        add_input(s, c, call, k);
    }
    tp_cl_pass_on(s, &c->expressions[call], first_parameter(c, call));
    tp_text_add(s, of->program >= 0 ? ");\n" : ";\n");
    add_value(s, c, call, result);
}

/* ---- calls of a block ---- */

static void add_special_inputs(tp_text *s, const source *c, int call) {
    for (int k = 0; k < c->f->calls[call].ninputs; k++) {
        tp_text_add(s, "    a%d_%d[k] = ", call, k);
        add_input(s, c, call, k);
        tp_text_add(s, ";\n");
    }
}

/* Lanes without an element compute on ones. Vectors that the function is not trusted with (trial.h) go through it
 * element by element. */
static void add_vectors(tp_text *s, const source *c, int call) {
    const tp_fused_call *of = &c->f->calls[call];
    const char *name = c->expressions[call].built_in, *trust = tp_cl_trust((tp_cl_lanes)c->unit->lanes[call]);
    const char *type = tp_cl_type(result_of(of));
    int width = tp_cl_width(result_of(of));
    tp_text_add(s, "    {\n    %s *r = r%d", type, call);
    for (int k = 0; k < of->ninputs; k++) tp_text_add(s, ", *v%d = a%d_%d", k + 1, call, k);
    tp_text_add(s, ";\n    for (int k = count; k %% %d; k++) {\n", width);
    for (int k = 0; k < of->ninputs; k++) tp_text_add(s, "    v%d[k] = 1;\n", k + 1);
    tp_text_add(s, "    }\n    for (int done = 0; done < count; done += %d) {\n", width);
    if (trust) {
        tp_text_add(s, "    bool trusted = true;\n    for (int k = 0; k < %d; k++) trusted &= %s;\n    if (!trusted) ",
                    width, trust);
        tp_text_add(s, "for (int k = 0; k < %d; k++) r[k] = %s(v1[k]%s);\n    else ", width, name,
                    of->ninputs > 1 ? ", v2[k]" : "");
    }
    tp_text_add(s, "vstore%d(%s(vload%d(0, v1)", width, name, width);
    if (of->ninputs > 1) tp_text_add(s, ", vload%d(0, v2)", width);
    tp_text_add(s, "), 0, r);\n    r += %d;\n", width);
    for (int k = 0; k < of->ninputs; k++) tp_text_add(s, "    v%d += %d;\n", k + 1, width);
    tp_text_add(s, "    }\n    }\n");
}

static void add_function_call(tp_text *s, const source *c, int call, char form) {
    tp_text_add(s, "%c%d(", form, call);
    for (int k = 0; k < c->f->calls[call].ninputs; k++) tp_text_add(s, "%sa%d_%d[k]", k ? ", " : "", call, k);
    tp_cl_pass_on(s, &c->expressions[call], first_parameter(c, call));
    tp_text_add(s, ");\n");
}

/* A block with a NaN is computed again, as in pointwise.c. */
static void add_quick_form(tp_text *s, const source *c, int call) {
    tp_text_add(s, "    {\n    int failed = 0;\nOVER_VECTORS\n    for (int k = 0; k < count; k++) {\n    const %s v = ",
                tp_cl_type(result_of(&c->f->calls[call])));
    add_function_call(s, c, call, 'q');
    tp_text_add(s, "    r%d[k] = v;\n    failed |= v != v;\n    }\n    if (failed)\nONE_BY_ONE\n", call);
    tp_text_add(s, "    for (int k = 0; k < count; k++) r%d[k] = ", call);
    add_function_call(s, c, call, 'f');
    tp_text_add(s, "    }\n");
}

/* ---- loops ---- */

/* What the calls of a loop read: from memory, or what a loop before it has made. */
static void add_reads(tp_text *s, const source *c, int loop) {
    for (int v = 0; v < c->f->ninputs + c->f->ncalls; v++) {
        bool is_before = c->loops[v] < loop;
        if (!is_read_in(c, v, loop) || (v >= c->f->ninputs && !is_before)) continue;
        tp_text_add(s, "    const %s v%d = ", tp_cl_storage(dtype_of(c, v)), v);
        if (is_before) tp_text_add(s, "b%d[k]", v);
        else tp_cl_add_place(s, &c->layout, c->f->noutputs + v);
        tp_text_add(s, ";\n");
    }
}

static void add_calls(tp_text *s, const source *c, int loop) {
    char result[16];
    for (int i = 0; i < c->f->ncalls; i++) {
        if (c->loops[c->f->ninputs + i] != loop) continue;
        snprintf(result, sizeof result, "r%d[k]", i);
        if (c->manners[i] == PLAIN) add_plain(s, c, i);
        else add_value(s, c, i, result);
    }
}

static void add_stores(tp_text *s, const source *c) {
    for (int i = 0; i < c->f->noutputs; i++) {
        tp_text_add(s, "    ");
        tp_cl_add_place(s, &c->layout, i);
        tp_text_add(s, " = v%d;\n", c->f->outputs[i]);
    }
}

static void add_loop(tp_text *s, const source *c, int loop) {
    bool blocks = c->nspecial > 0;
    if (c->layout.rows)
        tp_cl_add_loop(s, &c->layout, "OVER_VECTORS",
                       blocks ? "int k = 0; k < count; k++" : "index j = first; j < last; j++",
                       blocks ? "first + k" : "j");
    add_reads(s, c, loop);
    add_calls(s, c, loop);
    for (int v = 0; blocks && v < c->f->ninputs + c->f->ncalls; v++)
        if (c->loops[v] == loop && is_read_after(c, v, loop)) tp_text_add(s, "    b%d[k] = v%d;\n", v, v);
    for (int i = 0; i < c->f->ncalls; i++)
        if (c->manners[i] != PLAIN && reads_in(c, i, loop)) add_special_inputs(s, c, i);
    if (loop == c->nspecial) add_stores(s, c);
    if (c->layout.rows) tp_text_add(s, "    }\n");
}

static void add_arrays(tp_text *s, const source *c) {
    tp_text_add(s,
                "    for (index end; first < last; first = end) {\n    end = last - first < %d ? last : first + %d;\n"
                "    const int count = (int)(end - first);\n",
                BLOCK, BLOCK);
    for (int v = 0; v < c->f->ninputs + c->f->ncalls; v++)
        if (c->loops[v] <= c->nspecial && is_read_after(c, v, c->loops[v]))
            tp_text_add(s, "    %s b%d[%d];\n", tp_cl_storage(dtype_of(c, v)), v, BLOCK);
    for (int i = 0; i < c->f->ncalls; i++) {
        const tp_fused_call *call = &c->f->calls[i];
        if (c->manners[i] == PLAIN) continue;
        tp_text_add(s, "    %s r%d[%d];\n", tp_cl_type(result_of(call)), i, BLOCK);
        for (int k = 0; k < call->ninputs; k++)
            tp_text_add(s, "    %s a%d_%d[%d];\n", tp_cl_type(wanted_of(call, k)), i, k, BLOCK);
    }
}

static void add_body(tp_text *s, const source *c) {
    if (c->nspecial) add_arrays(s, c);
    for (int loop = 0, call = 0; loop <= c->nspecial; loop++) {
        add_loop(s, c, loop);
        if (loop == c->nspecial) break;
        while (c->manners[call] == PLAIN) call++;
        if (c->manners[call] == IN_VECTORS) add_vectors(s, c, call);
        else add_quick_form(s, c, call);
        call++;
    }
    tp_text_add(s, c->nspecial ? "    }\n}\n" : "}\n");
}

static void write_source(tp_text *s, const void *context) {
    const source *c = context;
    tp_autotext functions = {0};
    char name[16];
    for (int i = 0; i < c->f->ncalls; i++) {
        if (!c->expressions[i].program) continue;
        snprintf(name, sizeof name, "f%d", i);
        tp_cl_add_function(&functions, &c->expressions[i], name, false);
        name[0] = 'q';
        if (c->manners[i] == IN_QUICK_FORM) tp_cl_add_function(&functions, &c->expressions[i], name, true);
    }
    tp_cl_add_source(s, "", functions.text ? functions.text : "", NULL);
    tp_cl_add_types(s, &c->layout);
    add_parameters(s, c);
    tp_cl_add_head(s, &c->layout);
    add_body(s, c);
}

static tp_cl_built *build(tp_cl_later *later) {
    const unit *u = (const unit *)later;
    const variant *k = &u->variant;
    tp_autotext key = {0};
    source *c = malloc(sizeof *c);
    if (!c) return tp_fail_memory((int64_t)sizeof *c), NULL;
    set_source(c, u);
    tp_text_add(&key, "fused %lld dims %d%s%s ones %d next %d", (long long)k->program, k->ndim,
                k->small ? " small" : "", k->rows ? " rows" : "", k->ones, k->next);
    for (int i = 0; i < c->f->ninputs; i++) tp_text_add(&key, " %d", k->stored[i]);
    tp_cl_built *kernel = key.text ? tp_cl_kernel(u->device, key.text, "run", write_source, c) : NULL;
    free(c);
    return kernel;
}

/* ---- the units ---- */

#define BUCKETS 1024
static unit *buckets[BUCKETS]; /* with the host lock */

static uint64_t hash_of(const tp_cl_device *d, const variant *k) {
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
static bool keeps_blocks(const variant *k, const tp_fused_call *call, int ninputs) {
    if (!k->ndim) return true;
    for (int i = 0; i < call->ninputs; i++)
        if (call->in[i] >= 0 && call->in[i] < ninputs && !(k->next >> call->in[i] & 1)) return false;
    return k->blocks;
}

/* Whether the device can have the kernel, and with which lanes. */
static bool look_at_calls(unit *u, const tp_fused *f) {
    bool whole = u->device->has_fp64;
    for (int i = 0; i < f->ncalls; i++) {
        const tp_fused_call *call = &f->calls[i];
        tp_cl_expression e = expression_of(call);
        u->lanes[i] = (uint8_t)(u->variant.rows && e.built_in ? tp_cl_expression_lanes(u->device, &e, result_of(call))
                                                              : TP_CL_ANY_LANES);
        manner m = manner_of(&e, u->variant.rows, u->lanes[i]);
        bool asks_neighbours = m == IN_QUICK_FORM || (m == IN_VECTORS && u->lanes[i] != TP_CL_ANY_LANES);
        if (asks_neighbours && !keeps_blocks(&u->variant, call, f->ninputs)) return false;
        if (whole) continue;
        bool doubles = call->dtype == TP_FLOAT64 || call->dtype == TP_COMPLEX128 || result_of(call) == TP_FLOAT64;
        for (int k = 0; k < call->ninputs; k++) doubles |= wanted_of(call, k) == TP_FLOAT64;
        if (doubles) return false;
    }
    return true;
}

static unit *unit_of(tp_cl_device *d, const variant *k, const tp_fused *f) {
    unit **bucket = &buckets[hash_of(d, k) % BUCKETS], *u = *bucket;
    while (u && (u->device != d || memcmp(&u->variant, k, sizeof *k) != 0)) u = u->next;
    if (u || !(u = calloc(1, sizeof *u))) return u;
    u->device = d;
    u->variant = *k;
    u->later.build = build;
    u->next = *bucket;
    *bucket = u;
    if (!look_at_calls(u, f)) atomic_store(&u->later.state, TP_CL_NOT_TO_BE_HAD);
    return u;
}

/* NULL: there is none yet, or never. */
static tp_cl_built *kernel_of(unit *u) {
    if (u && u->later.state == TP_CL_NOT_ASKED && (u->wanted++ >= WANTED_BEFORE || tp_cl_builds_wait()))
        tp_cl_build_later(&u->later);
    return u && atomic_load(&u->later.state) == TP_CL_BUILT ? u->later.kernel : NULL;
}

/* ---- a call ---- */

typedef struct {
    const tp_fused *f;
    variant k;
    tp_cl_layout layout;
    uint8_t stored[OPERANDS], class[OPERANDS];
    tp_tensor *tensors[OPERANDS];
    int64_t shape[TP_MAX_DIMS], strides[OPERANDS][TP_MAX_DIMS];
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
    const tp_tensor *like = j->tensors[0];
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
        int64_t strides[OPERANDS];
        for (int i = 0; i < j->n; i++) strides[i] = stride_of(j->tensors[i], like, order[o]);
        if (j->ndim && follows(j, strides)) {
            j->shape[j->ndim - 1] *= like->sizes[order[o]];
            continue;
        }
        for (int i = 0; i < j->n; i++) j->strides[i][j->ndim] = strides[i];
        j->shape[j->ndim++] = like->sizes[order[o]];
    }
}

static void set_variant(job *j, const tp_cl_device *d, int64_t program) {
    j->k = (variant){
        .program = program, .small = j->tensors[0]->numel <= INT32_MAX, .rows = d->is_cpu, .ndim = (uint8_t)j->ndim};
    bool flat = j->ndim <= 1;
    for (int i = 0; flat && j->ndim && i < j->n; i++)
        flat = j->strides[i][0] == 0 || j->strides[i][0] == tp_itemsize((tp_dtype)j->tensors[i]->dtype);
    if (flat) j->k.ndim = 0;
    j->k.blocks = j->k.ndim && j->shape[0] % BLOCK == 0;
    for (int i = 0; i < j->f->ninputs; i++) {
        int operand = j->f->noutputs + i;
        j->k.stored[i] = (uint8_t)j->tensors[operand]->dtype;
        bool one = !j->ndim || j->strides[operand][0] == 0, by_rows = !flat && j->k.rows;
        if (one && (flat || by_rows)) j->k.ones |= (uint16_t)(1u << i);
        else if (by_rows && j->strides[operand][0] == tp_itemsize((tp_dtype)j->tensors[operand]->dtype))
            j->k.next |= (uint16_t)(1u << i);
    }
}

static int64_t bytes_of_arguments(const job *j, tp_scalars numbers) {
    return 16 * j->n + 16 + 8 * (j->n + 1) * j->k.ndim + 16 * numbers.size;
}

static bool has_dtypes(const tp_cl_device *d, const job *j) {
    for (int i = 0; i < j->n && !d->has_fp64; i++)
        if (j->tensors[i]->dtype == TP_FLOAT64 || j->tensors[i]->dtype == TP_COMPLEX128) return false;
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
    tp_cl_expression e = expression_of(call);
    tp_cl_pass_params(c, &e, map.params);
    return 0;
}

static int launch(const job *j, tp_cl_device *d, tp_cl_built *kernel, tp_scalars numbers) {
    const int64_t *strides[OPERANDS];
    for (int i = 0; i < j->n; i++) strides[i] = j->strides[i];
    tp_cl_call call = tp_cl_begin(d, kernel);
    int status = 0;
    tp_cl_pass_index(&call, &j->layout, j->tensors[0]->numel);
    for (int i = 0; i < j->n; i++) tp_cl_pass_place(&call, tp_cl_place_of(j->tensors[i], tp_data(j->tensors[i])));
    tp_cl_pass_geometry(&call, &j->layout, strides, j->shape);
    for (int i = 0; i < j->f->ncalls && status == 0; i++) {
        int64_t n = j->f->calls[i].nnumbers;
        status = numbers.size < n ? -1 : pass_numbers(&call, &j->f->calls[i], (tp_scalars){numbers.data, n});
        numbers = (tp_scalars){numbers.data + n, numbers.size - n};
    }
    if (status < 0) return tp_cl_run(&call, 0, 0), -1; /* gives the lock back */
    return tp_cl_run_elements(&call, &j->layout, j->tensors[0]->numel, strides, j->shape);
}

/* fused.map(int program, Tensor[] inputs, Scalar[] numbers, *, Tensor(a!)[] out) -> () */
int fused_map_opencl(int64_t program, tp_tensors inputs, tp_scalars numbers, tp_tensors out) {
    job j = {.f = tp_fused_at(program), .n = (int)(out.size + inputs.size)};
    if (!j.f || inputs.size != j.f->ninputs || out.size != j.f->noutputs)
        return tp_fail(TP_RuntimeError, "prim::fused.map: another program's arguments");
    memcpy(j.tensors, out.data, (size_t)out.size * sizeof *out.data);
    if (inputs.size) memcpy(j.tensors + out.size, inputs.data, (size_t)inputs.size * sizeof *inputs.data);
    tp_cl_device *d = tp_cl_get(out.data[0]->device.index);
    if (!d) return -1;
    if (!has_dtypes(d, &j)) return tp_decline();
    set_geometry(&j);
    set_variant(&j, d, program);
    if (j.k.ndim > TP_CL_PLAN_DIMS || bytes_of_arguments(&j, numbers) > MOST_BYTES) return tp_decline();
    tp_cl_built *kernel = kernel_of(unit_of(d, &j.k, j.f));
    if (!kernel) return tp_decline();
    set_layout(j.f, &j.k, &j.layout, j.stored, j.class);
    return launch(&j, d, kernel, numbers);
}
