/* expression.c: see expression.h. */
#include "opencl/kernels/expression.h"

#include "opencl/kernels/element.h"

#include <string.h>

/* ---- parameters ---- */

/* Calls `each` with every argument that the parameters of a program are to a kernel: a number of a dtype, or flags. */
typedef enum { VALUE, IS_NONE, IS_WORD } argument_kind;
typedef void (*argument_fn)(void *context, int param, argument_kind kind, tp_dtype dtype, int word);
static void each_argument(const tp_cl_expression *e, argument_fn each, void *context) {
    for (int k = 0; e->program && k < TP_PROGRAM_PARAMS; k++) {
        const tp_program_use *use = &e->uses[k];
        if (use->number) each(context, k, VALUE, tp_kind_dtype(use->kind, e->dtype), 0);
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

int tp_cl_add_parameters(tp_text *s, const tp_cl_expression *e, int next) {
    text_context t = {s, next};
    each_argument(e, add_parameter, &t);
    return t.count;
}

int tp_cl_pass_on(tp_text *s, const tp_cl_expression *e, int next) {
    text_context t = {s, next};
    each_argument(e, pass_on, &t);
    return t.count;
}

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

void tp_cl_pass_params(tp_cl_call *c, const tp_cl_expression *e, const tp_value *params) {
    each_argument(e, pass_argument, &(pass_context){c, e->op, params});
}

/* ---- the function ---- */

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

tp_cl_expression tp_cl_expression_of(const tp_pointwise *op, tp_dtype d) {
    tp_cl_expression e = {.op = op, .dtype = d};
    if (!op) return e;
    e.program = &op->programs[tp_class_of(d)];
    e.built_in = built_in_of(op, e.program, d);
    e.quick = has_quick_form(e.program, d);
    tp_program_uses(e.program, e.uses);
    return e;
}

void tp_cl_add_function(tp_text *s, const tp_cl_expression *e, const char *name, bool quick) {
    tp_text_add(s, "TP_FN %s %s(", type_of(tp_program_result(e->program, e->dtype)), name);
    for (int i = 0; i < e->op->ninputs; i++) {
        tp_dtype own = e->op->input_dtype[i] != TP_NO_DTYPE ? (tp_dtype)e->op->input_dtype[i] : e->dtype;
        tp_text_add(s, "%s%s x%d", i ? ", " : "", type_of(own), i);
    }
    each_argument(e, add_argument, &(text_context){.s = s});
    tp_text_add(s, ") {\n");
    tp_program_print(s, e->program, e->dtype, quick);
    tp_text_add(s, "}\n");
}

/* ---- vectors ---- */

tp_cl_lanes tp_cl_expression_lanes(tp_cl_device *d, const tp_cl_expression *e, tp_dtype result) {
    if (!e->built_in) return TP_CL_ANY_LANES;
    return tp_cl_trusted_lanes(d, e->built_in, result, e->op->ninputs, tp_cl_width(result));
}

const char *tp_cl_trust(tp_cl_lanes lanes) {
    if (lanes == TP_CL_ANY_LANES) return NULL;
    return lanes == TP_CL_SMALL_LANES ? "fabs(v1[k]) < 100" : "isnormal(v1[k])";
}
