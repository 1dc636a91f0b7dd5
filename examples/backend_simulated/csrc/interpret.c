/* interpret.c: see interpret.h. Values are computed in int64, double or double complex, and every step's is narrowed to
 * its dtype: of sums, products and quotients that is what the dtype itself gives, since double has more than twice the
 * bits of float. */
#include "interpret.h"
#include "tensorpy/math.h"

#include <stdlib.h>

#define MOST_STEPS 128

static tp_dtype dtype_of(int kind, tp_dtype compute) {
    switch (kind & ~TP_STEP_NAMED) {
    case TP_KIND_REAL: return real_of(compute);
    case TP_KIND_BOOL: return TP_BOOL;
    case TP_KIND_INT: return TP_INT64;
    case TP_KIND_DOUBLE: return TP_FLOAT64;
    default: return compute;
    }
}

static number arithmetic(int op, tp_dtype d, number a, number b) {
    if (d == TP_BOOL) return (number){.i = op == TP_STEP_ADD ? a.i | b.i : op == TP_STEP_MUL ? a.i & b.i : a.i - b.i};
    if (is_complex(d)) {
        bool wide = d == TP_COMPLEX128;
        switch (op) {
        case TP_STEP_ADD: return narrowed((number){.c = a.c + b.c}, d);
        case TP_STEP_SUB: return narrowed((number){.c = a.c - b.c}, d);
        case TP_STEP_MUL:
            return (number){.c = wide ? tp_mul_c128(a.c, b.c) : tp_mul_c64((tp_complex64)a.c, (tp_complex64)b.c)};
        default: return (number){.c = wide ? tp_div_c128(a.c, b.c) : tp_div_c64((tp_complex64)a.c, (tp_complex64)b.c)};
        }
    }
    if (is_floating(d)) {
        double x = op == TP_STEP_ADD   ? a.f + b.f
                   : op == TP_STEP_SUB ? a.f - b.f
                   : op == TP_STEP_MUL ? a.f * b.f
                                       : a.f / b.f;
        return narrowed((number){.f = x}, d);
    }
    uint64_t x = op == TP_STEP_ADD   ? a.u + b.u
                 : op == TP_STEP_SUB ? a.u - b.u
                 : op == TP_STEP_MUL ? a.u * b.u
                 : b.u               ? (uint64_t)(a.i / b.i)
                                     : 0;
    return narrowed((number){.u = x}, d);
}

static number bits(int op, tp_dtype d, number a, number b) {
    uint64_t x = op == TP_STEP_AND ? a.u & b.u : op == TP_STEP_OR ? a.u | b.u : a.u ^ b.u;
    return narrowed((number){.u = x}, d);
}

static number unary(int op, tp_dtype d, number a) {
    if (op == TP_STEP_NOT) return (number){.i = !a.i};
    if (op == TP_STEP_INVERT) return d == TP_BOOL ? (number){.i = !a.i} : narrowed((number){.u = ~a.u}, d);
    if (is_complex(d)) return (number){.c = -a.c};
    return is_floating(d) ? (number){.f = -a.f} : narrowed((number){.u = 0 - a.u}, d);
}

static bool relation(int op, tp_dtype d, number a, number b) {
    if (is_complex(d)) return (op == TP_STEP_EQ) == (a.c == b.c);
    if (is_nan(a, d) || is_nan(b, d)) return op == TP_STEP_NE;
    int order = compared(a, b, d);
    switch (op) {
    case TP_STEP_EQ: return order == 0;
    case TP_STEP_NE: return order != 0;
    case TP_STEP_LT: return order < 0;
    case TP_STEP_LE: return order <= 0;
    case TP_STEP_GT: return order > 0;
    default: return order >= 0;
    }
}

static number largest(tp_dtype d, bool negative) {
    double x = d == TP_FLOAT64 ? TP_MAX_f64 : (double)TP_MAX_f32;
    return (number){.f = negative ? -x : x};
}

static number step_value(const tp_program *p, const tp_step *s, const number *v, const tp_dtype *made,
                         const element *e) {
    tp_dtype d = dtype_of(s->kind, e->compute);
    switch (s->op) {
    case TP_STEP_INPUT: return e->inputs[s->a];
    case TP_STEP_NUMBER: return e->map->none[s->a] ? (number){.c = 0} : number_of(e->params[s->a], d);
    case TP_STEP_NONE: return (number){.i = e->map->none[s->a]};
    case TP_STEP_WORD: return (number){.i = e->map->word[s->a] == s->b};
    case TP_STEP_CONSTANT: return converted((number){.f = p->constants[s->a].f}, TP_FLOAT64, d);
    case TP_STEP_INTEGER: return converted((number){.u = p->constants[s->a].bits}, s->b ? TP_INT64 : TP_UINT64, d);
    case TP_STEP_LARGEST: return largest(d, s->a);
    case TP_STEP_CAST: return converted(v[s->a], made[s->a], d);
    case TP_STEP_NEG:
    case TP_STEP_INVERT:
    case TP_STEP_NOT: return unary(s->op, d, v[s->a]);
    case TP_STEP_SELECT: return v[s->a].i ? v[s->b] : v[s->c];
    default: break;
    }
    if (s->op >= TP_STEP_FIRST_HELPER) return helper_of(s->op, d, v[s->a], v[s->b]);
    if (s->op >= TP_STEP_EQ) return (number){.i = relation(s->op, d, v[s->a], v[s->b])};
    return s->op >= TP_STEP_AND ? bits(s->op, d, v[s->a], v[s->b]) : arithmetic(s->op, d, v[s->a], v[s->b]);
}

number interpret(const tp_program *p, const element *e) {
    number v[MOST_STEPS];
    tp_dtype made[MOST_STEPS];
    if (p->nsteps > MOST_STEPS) abort(); /* a program of tensorpy's is far shorter */
    for (int i = 0; i < p->nsteps; i++) {
        const tp_step *s = &p->steps[i];
        bool asks = s->op >= TP_STEP_EQ && s->op <= TP_STEP_GE;
        made[i] = asks ? TP_BOOL : dtype_of(s->op >= TP_STEP_FIRST_HELPER ? s->c : s->kind, e->compute);
        v[i] = step_value(p, s, v, made, e);
    }
    return v[p->nsteps - 1];
}
