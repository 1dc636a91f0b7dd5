/* program.h: what the tree does with programs (tensorpy/program.h): which classes of dtypes there are, what a program
 * reads, and its text in C. */
#pragma once

#include "core/dtype.h"
#include "core/error.h"
#include "tensorpy/expressions.h"

tp_class tp_class_of(tp_dtype d);

/* Which of an operator's parameters a program reads: as a number of a kind, whether it is None, which word it is. */
typedef struct {
    bool number, none;
    uint8_t kind;
    uint32_t words; /* bit k: whether it is word k */
} tp_program_use;
void tp_program_uses(const tp_program *p, tp_program_use uses[TP_PROGRAM_PARAMS]);

/* The name of an operation ("add", "sigmoid"); NULL for a number that is none's. */
const char *tp_step_name(int op);
/* A helper's quick form in OpenCL C for a dtype ("quick_sin"; NULL: there is none), and whether OpenCL C has it as
 * a function of vectors, without which a CPU device's compiler makes no vectors of it. */
const char *tp_step_quick_form(int op, tp_dtype d);
bool tp_step_takes_vectors(int op, tp_dtype d);
/* The name in tp_<name>: of dtypes ("f32", "i64", "c128"). */
const char *tp_dtype_suffix(tp_dtype d);
/* The dtype of a kind, where d is computed in. */
tp_dtype tp_kind_dtype(int kind, tp_dtype d);
/* The dtype of a program's result. */
tp_dtype tp_program_result(const tp_program *p, tp_dtype d);

/* The body of a function that returns the result, in C and in OpenCL C, on the helpers of tensorpy/math.h. Inputs are
 * called x0, x1, ...; parameter k is p<k>, whether it is None n<k>, and whether it is its word j w<k>_<j>. `quick`:
 * helpers that have a quick form are called by it. */
void tp_program_print(tp_text *s, const tp_program *p, tp_dtype d, bool quick);
