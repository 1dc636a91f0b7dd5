/* program.h: the scalar expressions of pointwise operators and reductions as data: what a device that has no compiled
 * loops translates or interprets.
 *
 * A program is a list of steps, each of which makes a value from earlier ones; the last value is the result. Programs
 * are typed by kinds relative to the dtype that is computed in, so one serves all dtypes of a class. The numbers of
 * operations are in ProgramSteps.h, which is generated (codegen/scalar_program.py), and never change. */
#pragma once

#include "core/dtype.h"
#include "core/error.h"

typedef enum {
    TP_KIND_COMPUTE, /* the dtype that is computed in */
    TP_KIND_REAL,    /* of a complex one the real dtype */
    TP_KIND_BOOL,
    TP_KIND_INT,    /* int64 */
    TP_KIND_DOUBLE, /* float64: a float parameter where integers are computed */
} tp_step_kind;
#define TP_STEP_NAMED 0x80 /* in a step's kind: its value is used several times */

/* What a, b and c are follows from the operation: mostly the numbers of earlier steps. */
typedef struct {
    uint8_t op, kind;
    uint16_t a, b, c;
} tp_step;

typedef union {
    uint64_t bits; /* of an int64 (or uint64), or of a float64 */
    int64_t i;
    double f;
} tp_step_constant;

typedef struct {
    uint16_t nsteps; /* 0: there is no program for this class */
    const tp_step *steps;
    const tp_step_constant *constants;
} tp_program;

/* The classes of dtypes, for each of which an operator may have a program of its own. */
typedef enum { TP_CLASS_BOOL, TP_CLASS_UINT, TP_CLASS_SINT, TP_CLASS_FLOAT, TP_CLASS_COMPLEX, TP_NUM_CLASSES } tp_class;
tp_class tp_class_of(tp_dtype d);

/* Which of an operator's parameters a program reads: as a number of a kind, whether it is None, which word it is. */
#define TP_PROGRAM_PARAMS 6
typedef struct {
    bool number, none;
    uint8_t kind;
    uint32_t words; /* bit k: whether it is word k */
} tp_program_use;
void tp_program_uses(const tp_program *p, tp_program_use uses[TP_PROGRAM_PARAMS]);

/* The name of an operation ("add", "sigmoid"); NULL for a number that is none's. */
const char *tp_step_name(int op);
/* The name in tp_<name>: of dtypes ("f32", "i64", "c128"). */
const char *tp_dtype_suffix(tp_dtype d);
/* The dtype of a kind, where d is computed in. */
tp_dtype tp_kind_dtype(int kind, tp_dtype d);
/* The dtype of a program's result. */
tp_dtype tp_program_result(const tp_program *p, tp_dtype d);

/* The body of a function that returns the result, in C and in OpenCL C, on the helpers of tensorpy/math.h. Inputs are
 * called x0, x1, ...; parameter k is p<k>, whether it is None n<k>, and whether it is its word j w<k>_<j>. `rename`, if
 * not NULL, gives the name of a helper in place of the usual one, or NULL for that. */
typedef const char *(*tp_rename_helper)(const char *helper, tp_dtype d);
void tp_program_print(tp_text *s, const tp_program *p, tp_dtype d, tp_rename_helper rename);
