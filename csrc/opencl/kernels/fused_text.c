/* fused_text.c: the text of kernels of several calls of map: see fused.h.
 *
 * A value is what memory would have held: it is rounded to its dtype, in the type in which it is stored, so bits are
 * those of map, call by call. On a CPU device what map computes in vectors, or again where a quick form gives up
 * (pointwise.c), is computed so here: elements pass in blocks, one loop for the calls up to such a call, and one for
 * those after it; stores come last, since an output may be an input. Where the last value is folded, reduce.cl calls
 * for its elements. */
#include "opencl/kernels/fused.h"

#include "opencl/kernels/element.h"

#include <stdio.h>
#include <stdlib.h>

#define VALUES (TP_FUSED_TENSORS + TP_FUSED_CALLS)

/* ---- what a kernel computes ---- */

typedef struct {
    const tp_fused *f;
    const tp_cl_fused_unit *unit;
    tp_cl_layout layout;
    uint8_t stored[TP_CL_OPERANDS], class[TP_CL_OPERANDS];
    tp_cl_expression expressions[TP_FUSED_CALLS];
    tp_cl_manner manners[TP_FUSED_CALLS];
    int nspecial;      /* calls that are not plain: there is one loop more */
    int loops[VALUES]; /* in which loop a value is made or read from memory */
} source;

static bool folds(const source *c) { return c->unit->variant.fold.lanes > 0; }
/* The value that is folded. */
static int folded(const source *c) { return folds(c) ? c->f->ninputs + c->f->ncalls - 1 : -1; }

static tp_dtype dtype_of(const source *c, int value) {
    int n = c->f->ninputs;
    return value < n ? (tp_dtype)c->unit->variant.stored[value] : (tp_dtype)c->f->calls[value - n].dtype;
}

tp_dtype tp_cl_wanted_of(const tp_fused_call *call, int i) {
    if (call->program < 0) return tp_compute_dtype((tp_dtype)call->dtype);
    const tp_pointwise *op = tp_pointwise_at(call->program & 0xffff);
    bool own = op->input_dtype[i] != TP_NO_DTYPE;
    return tp_compute_dtype(own ? (tp_dtype)op->input_dtype[i] : (tp_dtype)call->compute);
}
tp_dtype tp_cl_result_of(const tp_fused_call *call) {
    if (call->program < 0) return tp_compute_dtype((tp_dtype)call->dtype);
    const tp_pointwise *op = tp_pointwise_at(call->program & 0xffff);
    return tp_compute_dtype(tp_promotion_result((tp_promotion)op->promotion, (tp_dtype)call->compute));
}

tp_cl_expression tp_cl_expression_of_call(const tp_fused_call *call) {
    const tp_pointwise *op = call->program < 0 ? NULL : tp_pointwise_at(call->program & 0xffff);
    return tp_cl_expression_of(op, op ? tp_compute_dtype((tp_dtype)call->compute) : 0);
}

tp_cl_manner tp_cl_manner_of(const tp_cl_expression *e, bool rows, uint8_t lanes) {
    if (!rows || !e->program) return TP_CL_PLAIN;
    if (e->built_in && lanes != TP_CL_NO_LANES) return TP_CL_IN_VECTORS;
    return !e->built_in && e->quick ? TP_CL_IN_QUICK_FORM : TP_CL_PLAIN;
}

void tp_cl_fused_layout(const tp_fused *f, const tp_cl_fused_variant *k, tp_cl_layout *l, uint8_t *stored,
                        uint8_t *class) {
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

static void set_source(source *c, const tp_cl_fused_unit *u) {
    c->f = tp_fused_at(u->variant.program);
    c->unit = u;
    c->nspecial = 0;
    tp_cl_fused_layout(c->f, &u->variant, &c->layout, c->stored, c->class);
    for (int v = 0; v < c->f->ninputs; v++) c->loops[v] = TP_FUSED_CALLS; /* until it is read */
    for (int i = 0; i < c->f->ncalls; i++) {
        const tp_fused_call *call = &c->f->calls[i];
        c->expressions[i] = tp_cl_expression_of_call(call);
        c->manners[i] = tp_cl_manner_of(&c->expressions[i], u->variant.rows, u->lanes[i]);
        for (int k = 0; k < call->ninputs; k++)
            if (call->in[k] >= 0 && call->in[k] < c->f->ninputs && c->loops[call->in[k]] > c->nspecial)
                c->loops[call->in[k]] = c->nspecial;
        c->nspecial += c->manners[i] != TP_CL_PLAIN;
        c->loops[c->f->ninputs + i] = c->nspecial;
    }
}

/* Whether a call reads its inputs in a loop: a special call in the one before that in which its value is made. */
static bool reads_in(const source *c, int call, int loop) {
    return c->loops[c->f->ninputs + call] - (c->manners[call] != TP_CL_PLAIN) == loop;
}

static bool is_read_in(const source *c, int value, int loop) {
    const tp_fused *f = c->f;
    if (loop == c->nspecial && value == folded(c)) return true;
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
    for (int i = 0; i < c->layout.n; i++) tp_cl_add_memory(s, i);
    tp_cl_add_geometry(s, &c->layout);
    for (int i = 0, next = 0; i < c->f->ncalls; i++) {
        const tp_fused_call *call = &c->f->calls[i];
        for (int k = 0; k < call->ninputs; k++) {
            tp_dtype d = tp_cl_wanted_of(call, k);
            if (call->in[k] < 0) tp_text_add(s, ", %s x%d_%d", d == TP_BOOL ? "int" : tp_cl_type(d), i, k);
        }
        next = tp_cl_add_parameters(s, &c->expressions[i], next);
    }
}

/* The same as arguments. */
static void pass_parameters(tp_text *s, const source *c) {
    for (int i = 0; i < c->layout.n; i++) tp_text_add(s, ", m%d, o%d", i, i);
    tp_text_add(s, "%s%s", c->layout.ndim ? ", g" : "", c->layout.rows ? ", piece" : "");
    for (int i = 0, next = 0; i < c->f->ncalls; i++) {
        for (int k = 0; k < c->f->calls[i].ninputs; k++)
            if (c->f->calls[i].in[k] < 0) tp_text_add(s, ", x%d_%d", i, k);
        next = tp_cl_pass_on(s, &c->expressions[i], next);
    }
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
    tp_dtype wanted = tp_cl_wanted_of(of, k);
    char value[16];
    if (of->in[k] < 0) return tp_text_add(s, wanted == TP_BOOL ? "(bool)x%d_%d" : "x%d_%d", call, k);
    snprintf(value, sizeof value, "v%d", of->in[k]);
    tp_cl_add_load(s, dtype_of(c, of->in[k]), wanted, value);
}

static void add_value(tp_text *s, const source *c, int call, const char *result) {
    const tp_fused_call *of = &c->f->calls[call];
    tp_text_add(s, "    const %s v%d = ", tp_cl_storage((tp_dtype)of->dtype), c->f->ninputs + call);
    tp_cl_add_store(s, tp_cl_result_of(of), (tp_dtype)of->dtype, result);
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
    tp_text_add(s, "    const %s %s = ", tp_cl_type(tp_cl_result_of(of)), result);
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
    const char *type = tp_cl_type(tp_cl_result_of(of));
    int width = tp_cl_width(tp_cl_result_of(of));
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
                tp_cl_type(tp_cl_result_of(&c->f->calls[call])));
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
        if (c->manners[i] == TP_CL_PLAIN) add_plain(s, c, i);
        else add_value(s, c, i, result);
    }
}

static void add_stores(tp_text *s, const source *c) {
    for (int i = 0; i < c->f->noutputs; i++) {
        tp_text_add(s, "    ");
        tp_cl_add_place(s, &c->layout, i);
        tp_text_add(s, " = v%d;\n", c->f->outputs[i]);
    }
    if (folds(c)) tp_text_add(s, c->layout.rows ? "    to[i - start] = v%d;\n" : "    return v%d;\n", folded(c));
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
        if (c->manners[i] != TP_CL_PLAIN && reads_in(c, i, loop)) add_special_inputs(s, c, i);
    if (loop == c->nspecial) add_stores(s, c);
    if (c->layout.rows) tp_text_add(s, "    }\n");
}

static void add_arrays(tp_text *s, const source *c) {
    tp_text_add(s,
                "    for (index end; first < last; first = end) {\n    end = last - first < %d ? last : first + %d;\n"
                "    const int count = (int)(end - first);\n",
                TP_CL_BLOCK, TP_CL_BLOCK);
    for (int v = 0; v < c->f->ninputs + c->f->ncalls; v++)
        if (c->loops[v] <= c->nspecial && is_read_after(c, v, c->loops[v]))
            tp_text_add(s, "    %s b%d[%d];\n", tp_cl_storage(dtype_of(c, v)), v, TP_CL_BLOCK);
    for (int i = 0; i < c->f->ncalls; i++) {
        const tp_fused_call *call = &c->f->calls[i];
        if (c->manners[i] == TP_CL_PLAIN) continue;
        tp_text_add(s, "    %s r%d[%d];\n", tp_cl_type(tp_cl_result_of(call)), i, TP_CL_BLOCK);
        for (int k = 0; k < call->ninputs; k++)
            tp_text_add(s, "    %s a%d_%d[%d];\n", tp_cl_type(tp_cl_wanted_of(call, k)), i, k, TP_CL_BLOCK);
    }
}

static void add_body(tp_text *s, const source *c) {
    if (c->nspecial) add_arrays(s, c);
    for (int loop = 0, call = 0; loop <= c->nspecial; loop++) {
        add_loop(s, c, loop);
        if (loop == c->nspecial) break;
        while (c->manners[call] == TP_CL_PLAIN) call++;
        if (c->manners[call] == TP_CL_IN_VECTORS) add_vectors(s, c, call);
        else add_quick_form(s, c, call);
        call++;
    }
    if (c->nspecial) tp_text_add(s, "    }\n");
}

static void add_functions(tp_text *s, const source *c) {
    char name[16];
    for (int i = 0; i < c->f->ncalls; i++) {
        if (!c->expressions[i].program) continue;
        snprintf(name, sizeof name, "f%d", i);
        tp_cl_add_function(s, &c->expressions[i], name, false);
        name[0] = 'q';
        if (c->manners[i] == TP_CL_IN_QUICK_FORM) tp_cl_add_function(s, &c->expressions[i], name, true);
    }
}

/* What reduce.cl calls for elements: a stretch of them to `to`, or the element `i`. */
static void add_makers(tp_text *s, const source *c) {
    tp_cl_add_types(s, &c->layout);
    tp_text_add(s, "#define MADE\n#define PARAMETERS ");
    add_parameters(s, c);
    tp_text_add(s, "\n#define ARGUMENTS ");
    pass_parameters(s, c);
    if (c->layout.rows) {
        tp_text_add(s, "\nstatic inline void make(index begin, index count, IN_S *to PARAMETERS) {\n"
                       "    const index stop = begin + count;\n");
        tp_cl_add_turns(s, &c->layout);
    } else {
        tp_text_add(s, "\nstatic inline IN_S make_one(index i PARAMETERS) {\n");
        tp_cl_add_element(s, &c->layout);
    }
    add_body(s, c);
    tp_text_add(s, c->layout.rows ? "    to += last - start;\n    }\n}\n" : "}\n");
}

static void write_source(tp_text *s, const void *context) {
    const source *c = context;
    tp_autotext functions = {0};
    add_functions(&functions, c);
    if (folds(c)) {
        add_makers(&functions, c);
        return tp_cl_add_fold(s, &c->unit->variant.fold, functions.text ? functions.text : "");
    }
    tp_cl_add_source(s, "", functions.text ? functions.text : "", NULL);
    tp_cl_add_types(s, &c->layout);
    tp_text_add(s, "__kernel void run(index n");
    add_parameters(s, c);
    tp_text_add(s, ") {\n");
    tp_cl_add_head(s, &c->layout);
    add_body(s, c);
    tp_text_add(s, "}\n");
}

tp_cl_built *tp_cl_build_fused(tp_cl_later *later) {
    const tp_cl_fused_unit *u = (const tp_cl_fused_unit *)later;
    const tp_cl_fused_variant *k = &u->variant;
    tp_autotext key = {0};
    source *c = malloc(sizeof *c);
    if (!c) return tp_fail_memory((int64_t)sizeof *c), NULL;
    set_source(c, u);
    tp_text_add(&key, "fused %lld dims %d%s%s ones %d next %d", (long long)k->program, k->ndim,
                k->small ? " small" : "", k->rows ? " rows" : "", k->ones, k->next);
    for (int i = 0; i < c->f->ninputs; i++) tp_text_add(&key, " %d", k->stored[i]);
    if (folds(c)) tp_cl_add_fold_key(&key, &k->fold);
    const char *name = folds(c) ? "reduce" : "run";
    tp_cl_built *kernel = key.text ? tp_cl_kernel(u->device, key.text, name, write_source, c) : NULL;
    free(c);
    return kernel;
}
