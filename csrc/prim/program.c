/* program.c: see program.h. This file prints kernels as codegen/scalar_lower.py prints compiled loops: conversions are
 * steps of their own, so each operation is printed for the one dtype that it works in. */
#include "prim/program.h"

#include "ProgramSteps.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

const char *tp_step_name(int op) {
    if (op >= 0 && op < TP_COUNTOF(tp_step_operations)) return tp_step_operations[op];
    bool helper = op >= TP_STEP_FIRST_HELPER && op < TP_STEP_END;
    return helper ? tp_step_helpers[op - TP_STEP_FIRST_HELPER].name : NULL;
}

const char *tp_step_quick_form(int op, tp_dtype d) {
    return op >= TP_STEP_FIRST_HELPER && d == TP_FLOAT32 ? tp_step_helpers[op - TP_STEP_FIRST_HELPER].quick : NULL;
}

bool tp_step_takes_vectors(int op, tp_dtype d) {
    if (op < TP_STEP_FIRST_HELPER || (d != TP_FLOAT32 && d != TP_FLOAT64)) return false;
    return tp_step_helpers[op - TP_STEP_FIRST_HELPER].vectors[d == TP_FLOAT64];
}

const char *tp_dtype_suffix(tp_dtype d) {
    static const char *const suffixes[TP_NUM_DTYPES] = {
        [TP_BOOL] = "bool",
        [TP_UINT8] = "u8",
        [TP_UINT16] = "u16",
        [TP_UINT32] = "u32",
        [TP_UINT64] = "u64",
        [TP_INT8] = "i8",
        [TP_INT16] = "i16",
        [TP_INT32] = "i32",
        [TP_INT64] = "i64",
        [TP_FLOAT16] = "f16",
        [TP_BFLOAT16] = "bf16",
        [TP_FLOAT32] = "f32",
        [TP_FLOAT64] = "f64",
        [TP_COMPLEX64] = "c64",
        [TP_COMPLEX128] = "c128",
        [TP_COMPLEX32] = "c32",
        [TP_FLOAT8_E4M3FN] = "e4m3fn",
        [TP_FLOAT8_E5M2] = "e5m2",
        [TP_FLOAT8_E4M3FNUZ] = "e4m3fnuz",
        [TP_FLOAT8_E5M2FNUZ] = "e5m2fnuz",
        [TP_FLOAT8_E8M0FNU] = "e8m0fnu",
    };
    return suffixes[d];
}

tp_class tp_class_of(tp_dtype d) {
    if (d == TP_BOOL) return TP_CLASS_BOOL;
    if (tp_is_complex_dtype(d)) return TP_CLASS_COMPLEX;
    if (tp_is_floating_dtype(d)) return TP_CLASS_FLOAT;
    return tp_dtype_categories[d] == TP_UNSIGNED ? TP_CLASS_UINT : TP_CLASS_SINT;
}

tp_dtype tp_kind_dtype(int kind, tp_dtype d) {
    switch (kind & ~TP_STEP_NAMED) {
    case TP_KIND_REAL: return tp_to_real_dtype(d);
    case TP_KIND_BOOL: return TP_BOOL;
    case TP_KIND_INT: return TP_INT64;
    case TP_KIND_DOUBLE: return TP_FLOAT64;
    default: return d;
    }
}

static tp_dtype result_of(const tp_step *s, tp_dtype d) {
    if (s->op >= TP_STEP_FIRST_HELPER) return tp_kind_dtype(s->c, d);
    return s->op >= TP_STEP_EQ && s->op <= TP_STEP_GE ? TP_BOOL : tp_kind_dtype(s->kind, d);
}

tp_dtype tp_program_result(const tp_program *p, tp_dtype d) { return result_of(&p->steps[p->nsteps - 1], d); }

void tp_program_uses(const tp_program *p, tp_program_use uses[TP_PROGRAM_PARAMS]) {
    memset(uses, 0, TP_PROGRAM_PARAMS * sizeof *uses);
    for (int i = 0; i < p->nsteps; i++) {
        const tp_step *s = &p->steps[i];
        if (s->op == TP_STEP_NUMBER) uses[s->a].number = true, uses[s->a].kind = s->kind;
        if (s->op == TP_STEP_NONE) uses[s->a].none = true;
        if (s->op == TP_STEP_WORD) uses[s->a].words |= 1u << s->b;
    }
}

/* ---- constants ---- */

static void add_float(tp_text *s, double v, tp_dtype d) {
    char digits[40];
    const char *suffix = tp_dtype_suffix(d);
    if (isnan(v)) {
        tp_text_add(s, "TP_NAN_%s", suffix);
    } else if (isinf(v)) {
        tp_text_add(s, v < 0 ? "(-TP_INF_%s)" : "TP_INF_%s", suffix);
    } else {
        int precision = 1;
        do snprintf(digits, sizeof digits, "%.*g", precision, v);
        while (strtod(digits, NULL) != v && ++precision <= 17);
        if (!strpbrk(digits, ".e")) strcat(digits, ".0");
        tp_text_add(s, digits[0] == '-' ? "(%s%s)" : "%s%s", digits, d == TP_FLOAT32 ? "f" : "");
    }
}

static void add_constant(tp_text *s, const tp_step *step, tp_step_constant c, tp_dtype d) {
    double v = step->op == TP_STEP_CONSTANT ? c.f : step->b ? (double)c.i : (double)c.bits;
    if (tp_is_complex_dtype(d)) {
        tp_dtype real = tp_to_real_dtype(d);
        tp_text_add(s, "tp_complex_%s(", tp_dtype_suffix(d));
        add_float(s, v, real);
        tp_text_add(s, ", ");
        add_float(s, 0, real);
        tp_text_add(s, ")");
    } else if (tp_is_floating_dtype(d)) {
        add_float(s, v, d);
    } else if (d == TP_BOOL) {
        tp_text_add(s, v != 0 ? "true" : "false");
    } else if (step->b) {
        if (c.i == INT64_MIN) tp_text_add(s, "(-9223372036854775807 - 1)");
        else tp_text_add(s, "((tp_%s)%lld)", tp_dtype_suffix(d), (long long)c.i);
    } else {
        bool wide = c.bits > INT64_MAX || d == TP_UINT32 || d == TP_UINT64;
        tp_text_add(s, wide ? "%lluu" : "%llu", (unsigned long long)c.bits);
    }
}

/* ---- expressions ---- */

typedef struct {
    tp_text *s;
    const tp_program *p;
    tp_dtype d;
    bool quick;
} printer;

static void add_value(const printer *p, int i);

static void add_pair(const printer *p, const char *before, int a, const char *between, int b, const char *after) {
    tp_text_add(p->s, "%s", before);
    add_value(p, a);
    tp_text_add(p->s, "%s", between);
    add_value(p, b);
    tp_text_add(p->s, "%s", after);
}

static void add_cast(const printer *p, const tp_step *step) {
    tp_dtype from = result_of(&p->p->steps[step->a], p->d), to = tp_kind_dtype(step->kind, p->d);
    const char *suffix = tp_dtype_suffix(to);
    const char *before = "", *after = "";
    char text[64];
    if (from != to && tp_is_complex_dtype(from)) {
        snprintf(text, sizeof text, "tp_nonzero_%s(", tp_dtype_suffix(from));
        before = text, after = ")";
    } else if (from != to && to == TP_BOOL) {
        before = "(", after = " != 0)";
    } else if (from != to && tp_is_complex_dtype(to)) {
        snprintf(text, sizeof text, "tp_complex_%s((tp_%s)", suffix, tp_dtype_suffix(tp_to_real_dtype(to)));
        before = text, after = to == TP_COMPLEX64 ? ", 0.0f)" : ", 0.0)";
    } else if (from != to) {
        snprintf(text, sizeof text, "((tp_%s)", suffix);
        before = text, after = ")";
    }
    tp_text_add(p->s, "%s", before);
    add_value(p, step->a);
    tp_text_add(p->s, "%s", after);
}

/* Signed integers wrap, which C leaves open: they are computed unsigned. */
static void add_unary(const printer *p, const tp_step *step) {
    tp_dtype d = tp_kind_dtype(step->kind, p->d);
    bool whole = tp_is_integral_dtype(d);
    if (step->op == TP_STEP_NOT) tp_text_add(p->s, "(!");
    else if (whole && step->op == TP_STEP_NEG)
        tp_text_add(p->s, "((tp_%s)(0u - (tp_%s)", tp_dtype_suffix(d), tp_itemsize(d) == 8 ? "u64" : "u32");
    else if (whole) tp_text_add(p->s, "((tp_%s)(~", tp_dtype_suffix(d));
    else tp_text_add(p->s, "((-");
    add_value(p, step->a);
    tp_text_add(p->s, step->op == TP_STEP_NOT ? ")" : "))");
}

static void add_binary(const printer *p, const tp_step *step) {
    static const char *const symbols[] = {" + ", " - ", " * ", " / ", " & ", " | ", " ^ "};
    tp_dtype d = tp_kind_dtype(step->kind, p->d);
    const char *symbol = symbols[step->op - TP_STEP_ADD], *suffix = tp_dtype_suffix(d);
    char before[32], between[32];
    if (d == TP_BOOL && step->op == TP_STEP_ADD) symbol = " | ";
    if (d == TP_BOOL && step->op == TP_STEP_MUL) symbol = " & ";
    if (tp_is_complex_dtype(d) && (step->op == TP_STEP_MUL || step->op == TP_STEP_DIV)) {
        snprintf(before, sizeof before, "tp_%s_%s(", step->op == TP_STEP_MUL ? "mul" : "div", suffix);
        add_pair(p, before, step->a, ", ", step->b, ")");
        return;
    }
    bool arithmetic = step->op <= TP_STEP_MUL && tp_is_integral_dtype(d);
    if (arithmetic) {
        const char *wide = tp_itemsize(d) == 8 ? "u64" : "u32";
        snprintf(before, sizeof before, "((tp_%s)((tp_%s)", suffix, wide);
        snprintf(between, sizeof between, "%s(tp_%s)", symbol, wide);
        add_pair(p, before, step->a, between, step->b, "))");
    } else if (tp_is_integral_dtype(d)) {
        snprintf(before, sizeof before, "((tp_%s)(", suffix);
        add_pair(p, before, step->a, symbol, step->b, "))");
    } else {
        add_pair(p, "(", step->a, symbol, step->b, ")");
    }
}

static void add_compare(const printer *p, const tp_step *step) {
    static const char *const symbols[] = {" == ", " != ", " < ", " <= ", " > ", " >= "};
    tp_dtype d = tp_kind_dtype(step->kind, p->d);
    char before[32];
    if (!tp_is_complex_dtype(d)) {
        add_pair(p, "(", step->a, symbols[step->op - TP_STEP_EQ], step->b, ")");
        return;
    }
    snprintf(before, sizeof before, "%stp_eq_%s(", step->op == TP_STEP_EQ ? "(" : "(!", tp_dtype_suffix(d));
    add_pair(p, before, step->a, ", ", step->b, "))");
}

static void add_helper(const printer *p, const tp_step *step) {
    tp_dtype d = tp_kind_dtype(step->kind, p->d);
    const char *quick = p->quick ? tp_step_quick_form(step->op, d) : NULL;
    bool two = tp_step_helpers[step->op - TP_STEP_FIRST_HELPER].arity == 2;
    tp_text_add(p->s, "tp_%s_%s(", quick ? quick : tp_step_name(step->op), tp_dtype_suffix(d));
    add_value(p, step->a);
    if (two) tp_text_add(p->s, ", ");
    if (two) add_value(p, step->b);
    tp_text_add(p->s, ")");
}

static void add_select(const printer *p, const tp_step *step) {
    tp_text_add(p->s, "(");
    add_value(p, step->a);
    add_pair(p, " ? ", step->b, " : ", step->c, ")");
}

static void add_step(const printer *p, const tp_step *step) {
    tp_dtype d = tp_kind_dtype(step->kind, p->d);
    switch (step->op) {
    case TP_STEP_INPUT: tp_text_add(p->s, "x%d", step->a); return;
    case TP_STEP_NUMBER: tp_text_add(p->s, "p%d", step->a); return;
    case TP_STEP_NONE: tp_text_add(p->s, "n%d", step->a); return;
    case TP_STEP_WORD: tp_text_add(p->s, "w%d_%d", step->a, step->b); return;
    case TP_STEP_CONSTANT:
    case TP_STEP_INTEGER: add_constant(p->s, step, p->p->constants[step->a], d); return;
    case TP_STEP_LARGEST: tp_text_add(p->s, step->a ? "(-TP_MAX_%s)" : "TP_MAX_%s", tp_dtype_suffix(d)); return;
    case TP_STEP_CAST: add_cast(p, step); return;
    case TP_STEP_NEG:
    case TP_STEP_INVERT:
    case TP_STEP_NOT: add_unary(p, step); return;
    case TP_STEP_SELECT: add_select(p, step); return;
    default: break;
    }
    if (step->op >= TP_STEP_FIRST_HELPER) add_helper(p, step);
    else if (step->op >= TP_STEP_EQ) add_compare(p, step);
    else add_binary(p, step);
}

static void add_value(const printer *p, int i) {
    const tp_step *step = &p->p->steps[i];
    if (step->kind & TP_STEP_NAMED) tp_text_add(p->s, "v%d", i);
    else add_step(p, step);
}

void tp_program_print(tp_text *s, const tp_program *program, tp_dtype d, bool quick) {
    printer p = {s, program, d, quick};
    int last = program->nsteps - 1;
    for (int i = 0; i < last; i++) {
        if (!(program->steps[i].kind & TP_STEP_NAMED)) continue;
        tp_dtype made = result_of(&program->steps[i], d);
        tp_text_add(s, made == TP_BOOL ? "    const %s v%d = " : "    const tp_%s v%d = ", tp_dtype_suffix(made), i);
        add_step(&p, &program->steps[i]);
        tp_text_add(s, ";\n");
    }
    tp_text_add(s, "    return ");
    add_step(&p, &program->steps[last]);
    tp_text_add(s, ";\n");
}
