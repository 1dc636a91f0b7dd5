/* chain.c: which calls of map are links of a chain: their programs are read, and what parameters decide is decided. */
#include "cpu/chain.h"

#include "prim/program.h"

typedef struct {
    const tp_program *program;
    const tp_map_call *call;
    tp_dtype compute;
    unsigned carried;
    tp_link_of_call *links;
    int count;
} reader;

static double rounded(const reader *r, double x) { return r->compute == TP_FLOAT32 ? (double)(float)x : x; }

/* A step that is the same for all elements, and is a number or a truth. */
static bool is_number(const reader *r, int at, double *value) {
    const tp_step *s = &r->program->steps[at];
    double a, b;
    switch (s->op) {
    case TP_STEP_NUMBER: {
        tp_scalar number = tp_program_number(&r->call->params[s->a]);
        *value = rounded(r, tp_scalar_double(&number));
        return number.kind != TP_SCALAR_COMPLEX;
    }
    case TP_STEP_CONSTANT:
        *value = r->program->constants[s->a].f;
        return rounded(r, *value) == *value; /* one that is rounded twice may be another */
    case TP_STEP_INTEGER: *value = (double)r->program->constants[s->a].i; return rounded(r, *value) == *value;
    case TP_STEP_EQ:
        if (!is_number(r, s->a, &a) || !is_number(r, s->b, &b)) return false;
        *value = a == b;
        return true;
    default: return false;
    }
}

/* The step whose value `at` has, after what is chosen by numbers. */
static int chosen(const reader *r, int at) {
    const tp_step *s = &r->program->steps[at];
    double is_first;
    if (s->op != TP_STEP_SELECT || !is_number(r, s->a, &is_first)) return at;
    return chosen(r, is_first ? s->b : s->c);
}

static bool is_carried(const reader *r, int at) {
    const tp_step *s = &r->program->steps[at];
    return s->op == TP_STEP_INPUT && (r->carried >> s->a & 1);
}

static bool add(reader *r, int op, int input, double number) {
    if (r->count == TP_LINKS_OF_CALL) return false;
    r->links[r->count++] = (tp_link_of_call){(uint8_t)op, (int8_t)input, number};
    return true;
}

/* Whether a step may be y. */
static bool is_operand(const reader *r, int at) {
    double number;
    return (r->program->steps[at].op == TP_STEP_INPUT && !is_carried(r, at)) || is_number(r, at, &number);
}

static bool add_operand(reader *r, int op, int at) {
    double number = 0;
    const bool is_input = r->program->steps[at].op == TP_STEP_INPUT;
    if (!is_input && !is_number(r, at, &number)) return false;
    return add(r, op, is_input ? r->program->steps[at].a : TP_LINK_NUMBER, number);
}

static bool read_step(reader *r, int at);

/* `forward` with y at the right, `backward` with y at the left, `both` of x and itself; -1: there is none. */
static bool read_two(reader *r, const tp_step *s, int forward, int backward, int both) {
    const int left = chosen(r, s->a), right = chosen(r, s->b);
    if (is_operand(r, right)) return read_step(r, left) && add_operand(r, forward, right);
    if (is_operand(r, left)) return read_step(r, right) && add_operand(r, backward, left);
    const bool is_same = left == right || (is_carried(r, left) && is_carried(r, right));
    return is_same && both >= 0 && read_step(r, left) && add(r, both, TP_LINK_NUMBER, 0);
}

static bool read_step(reader *r, int at) {
    at = chosen(r, at);
    const tp_step *s = &r->program->steps[at];
    if ((s->kind & ~TP_STEP_NAMED) != TP_KIND_COMPUTE) return false;
    switch (s->op) {
    case TP_STEP_ADD: return read_two(r, s, TP_LINK_ADD, TP_LINK_ADD, TP_LINK_TWICE);
    case TP_STEP_SUB: return read_two(r, s, TP_LINK_SUBTRACT, TP_LINK_SUBTRACT_FROM, -1);
    case TP_STEP_MUL: return read_two(r, s, TP_LINK_MULTIPLY, TP_LINK_MULTIPLY, TP_LINK_SQUARE);
    case TP_STEP_DIV: return read_two(r, s, TP_LINK_DIVIDE, TP_LINK_DIVIDE_INTO, -1);
    case TP_STEP_NEG: return read_step(r, s->a) && add(r, TP_LINK_NEGATE, TP_LINK_NUMBER, 0);
    case TP_STEP_OF_sqrt: return read_step(r, s->a) && add(r, TP_LINK_SQRT, TP_LINK_NUMBER, 0);
    case TP_STEP_OF_square: return read_step(r, s->a) && add(r, TP_LINK_SQUARE, TP_LINK_NUMBER, 0);
    case TP_STEP_OF_reciprocal: return read_step(r, s->a) && add(r, TP_LINK_DIVIDE_INTO, TP_LINK_NUMBER, 1);
    default: break;
    }
    if (r->count) return false;
    if (r->carried) return is_carried(r, at);
    return is_operand(r, at) && add_operand(r, TP_LINK_SET, at);
}

int tp_links_of(const tp_map_call *call, tp_dtype compute, unsigned carried, tp_link_of_call links[TP_LINKS_OF_CALL]) {
    const tp_program *program = &call->p->programs[tp_class_of(compute)];
    if ((compute != TP_FLOAT32 && compute != TP_FLOAT64) || call->result != compute || !program->nsteps) return 0;
    reader r = {program, call, compute, carried, links, 0};
    return read_step(&r, program->nsteps - 1) ? r.count : 0;
}
