/* pointwise.h: the programs of the primitive map: what each pointwise operator computes of its elements.
 *
 * The generator describes each pointwise operator of the YAML by one tp_pointwise. A program is a number: which
 * operator, and which words its str parameters are and which of its optional ones are None. What is left are numbers.
 */
#pragma once

#include "dispatch/value.h"
#include "iter/iter.h"
#include "prim/program.h"

#define TP_MAP_INPUTS TP_PROGRAM_INPUTS
#define TP_MAP_PARAMS TP_PROGRAM_PARAMS

typedef struct {
    uint8_t tag; /* TP_SCALAR, TP_FLOAT, TP_INT, TP_BOOL_ or TP_STR */
    bool optional;
    const char *const *words; /* of a str: those that the expressions know, NULL-terminated */
} tp_pointwise_param;

struct tp_pointwise_case;
typedef struct {
    const char *name;                  /* "add.Tensor", for messages */
    const char *inputs[TP_MAP_INPUTS]; /* the inputs' names */
    uint16_t number;                   /* its place among all pointwise operators */
    uint8_t ninputs, nparams;
    uint8_t promotion;                 /* tp_promotion */
    int8_t input_dtype[TP_MAP_INPUTS]; /* a dtype that input i is converted to, outside promotion; TP_NO_DTYPE: takes
                                          part */
    uint16_t loop_mask;                /* bit d: dtype d is taken (16-bit floats compute in float32, */
    bool moves_halves;                 /* but where the values are only moved) */
    uint16_t grain_shift;              /* cost: the CPU's grain is TP_GRAIN >> grain_shift */
    uint16_t nchoices;                 /* how many programs it has; 1: its parameters are numbers that are there */
    const tp_pointwise_param *params;
    const tp_program *programs; /* by class */
    const tp_loop_fn *loops;    /* the CPU's, by dtype; chosen at load */
    int64_t ncases;             /* operators that take its place for some numbers: x ** 2 */
    const struct tp_pointwise_case *cases;
} tp_pointwise;

typedef struct tp_pointwise_case {
    const tp_pointwise *op;
    double value;
    int input; /* which is this number */
} tp_pointwise_case;

/* Generated (PointwiseTable.c), by number. */
extern const tp_pointwise *const tp_pointwise_table[];
extern const int64_t tp_pointwise_count;

/* What the expressions compute in, for operands of dtype d. */
TP_INLINE tp_dtype tp_pointwise_loop_dtype(const tp_pointwise *p, tp_dtype d) {
    return p->moves_halves ? d : tp_compute_dtype(d);
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

/* A call of map as a kernel wants it. */
typedef struct {
    const tp_pointwise *p;
    tp_iter it;                            /* out, then the inputs */
    tp_tensor *tensors[TP_MAP_INPUTS + 1]; /* borrowed; NULL: a number, which it.data points to */
    tp_element numbers[TP_MAP_INPUTS];
    tp_value params[TP_MAP_PARAMS]; /* as they were given */
} tp_map_job;

/* Fills in a job from the arguments of map, which it checks as far as memory is concerned. `job` stays where it is. */
int tp_map_plan(tp_map_job *job, int64_t program, tp_tensors inputs, tp_scalars numbers, tp_dtype compute,
                tp_tensor *out);

/* The CPU's way past map (cpu/map.c): operands that are contiguous, of one dtype and one shape, with numbers and
 * one-element tensors in between; no plan is made. 1: done; 0: it has to be computed the general way; -1: the error is
 * set. `kernel` is the kernel of map that they stand for. */
typedef struct {
    void (*kernel)(void);
    int (*make)(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params, tp_tensor **out);
    int (*into)(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params, tp_tensor *out);
} tp_map_shortcut;
extern const tp_map_shortcut tp_cpu_map_shortcut;

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
