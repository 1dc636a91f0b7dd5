/* pointwise.h: the programs of the primitive map: what each pointwise operator computes of its elements.
 *
 * The generator describes each pointwise operator of the YAML by one tp_pointwise. A program is a number: which
 * operator, and which words its str parameters are and which of its optional ones are None. What is left are numbers.
 */
#pragma once

#include "dispatch/value.h"
#include "iter/iter.h"
#include "prim/program.h"

/* Generated (PointwiseTable.c), by number. */
extern const tp_pointwise *const tp_pointwise_table[];
extern const int64_t tp_pointwise_count;
/* By number, those from outside too, whose numbers come after; NULL for none. */
const tp_pointwise *tp_pointwise_at(int64_t number);
/* Gives an operator from outside, which stays, its number, unless it has one. */
int tp_add_pointwise(tp_pointwise *p);

/* Whether operands of dtype d are taken. */
extern const bool tp_pointwise_float8[]; /* generated (PointwiseTable.c), by number */
TP_INLINE bool tp_pointwise_takes(const tp_pointwise *p, tp_dtype d) {
    if (tp_likely(!tp_is_float8_dtype(d))) return p->loop_mask >> d & 1;
    return p->number < tp_pointwise_count && tp_pointwise_float8[p->number];
}
/* What the expressions compute in, for operands of dtype d. */
TP_INLINE tp_dtype tp_pointwise_loop_dtype(const tp_pointwise *p, tp_dtype d) {
    return p->moves_halves && !tp_is_stored_dtype(d) ? d : tp_compute_dtype(d);
}

/* The program of an operator with these parameters (boxed, in schema order). */
int64_t tp_program_of(const tp_pointwise *p, const tp_value *params);
/* The same described for a device from outside; RuntimeError for a number that is none's, or a dtype that the program
 * does not compute in. */
int tp_map_program_of(int64_t program, tp_dtype compute, tp_map_program *out);
/* A parameter as a number: 0 for None and for a str. */
tp_scalar tp_program_number(const tp_value *param);

/* A number as an element of any dtype. */
typedef union {
    int64_t i;
    tp_complex128 c;
} tp_element;

/* What the loops need of a call of map beside memory. */
typedef struct {
    const tp_pointwise *p;
    tp_dtype wanted[TP_MAP_INPUTS], result; /* what the loop reads and writes */
    tp_element numbers[TP_MAP_INPUTS];      /* of inputs that are absent */
    tp_value params[TP_MAP_PARAMS];         /* as they were given */
} tp_map_call;
/* `absent[i]`: input i is the next of the numbers, which stay where they are for as long as the call. */
int tp_map_resolve(tp_map_call *call, int64_t program, const bool *absent, tp_scalars numbers, tp_dtype compute);

/* A call of map as a kernel wants it. */
typedef struct {
    tp_map_call call;
    tp_iter it;                            /* out, then the inputs */
    tp_tensor *tensors[TP_MAP_INPUTS + 1]; /* borrowed; NULL: a number, which it.data points to */
} tp_map_job;

/* Fills in a job from the arguments of map, which it checks as far as memory is concerned. `job` stays where it is. In
 * two steps, for who may do without `it`: the call and the tensors, then the plan. */
int tp_map_begin(tp_map_job *job, int64_t program, tp_tensors inputs, tp_scalars numbers, tp_dtype compute,
                 tp_tensor *out);
int tp_map_finish(tp_map_job *job);
/* Points a loop at a job's tensors, after the first step: false where they are not of its dtypes, or not contiguous and
 * of one shape but for numbers. For devices whose memory the host sees. */
bool tp_map_lies_flat(const tp_map_job *job, char **data, int64_t *strides);
int tp_map_plan(tp_map_job *job, int64_t program, tp_tensors inputs, tp_scalars numbers, tp_dtype compute,
                tp_tensor *out);

/* The shortcut that a backend may give beside its map (tp_shortcut_at): operands for which it needs no plan. 1: done;
 * 0: they have to be computed the general way; -1: the error is set. */
typedef struct tp_map_shortcut {
    int (*make)(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params, tp_tensor **out);
    int (*into)(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params, tp_tensor *out);
    /* Whether `make` would compute it, into a contiguous tensor: where map is to be seen, the result lies so, too. */
    bool (*takes)(const tp_pointwise *p, const tp_operand *inputs);
} tp_map_shortcut;

/* Refuses a number that the dtype of the computation cannot hold, in whichever operator; small ones fit all. */
int tp_pointwise_refuse_params(const tp_pointwise *p, const tp_value *params, tp_dtype dtype);
TP_INLINE int tp_pointwise_check_params(const tp_pointwise *p, const tp_value *params, tp_dtype dtype) {
    for (int i = 0; i < p->nparams; i++) {
        const tp_scalar *s = params[i].tag == TP_SCALAR ? params[i].scalar : NULL;
        if (s && !(s->kind == TP_SCALAR_INT && (uint64_t)s->i < 128))
            return tp_pointwise_refuse_params(p, params, dtype);
    }
    return 0;
}
