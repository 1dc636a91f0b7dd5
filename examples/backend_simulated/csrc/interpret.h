/* interpret.h: a program (tensorpy/program.h) on one element after another. */
#ifndef SIMULATED_INTERPRET_H
#define SIMULATED_INTERPRET_H

#include "device.h"

typedef struct {
    tp_dtype compute;
    const tp_map_program *map;        /* of map, for what it says of its parameters; or NULL */
    const tp_scalar *params;          /* its parameters */
    number inputs[TP_PROGRAM_INPUTS]; /* of this element, as the program wants them */
} element;

/* The result, in tp_program_result's dtype. */
number interpret(const tp_program *p, const element *e);
/* A function of tensorpy/math.h on numbers of a dtype. */
number helper_of(int op, tp_dtype d, number a, number b);

#endif
