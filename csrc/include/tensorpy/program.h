/* program.h: scalar expressions as data: what the primitives map and reduce.program compute of their elements.
 *
 * A program is a list of steps, each of which makes a value from earlier ones; the last value is the result. It is
 * typed by kinds relative to the dtype that is computed in, so one serves all dtypes of a class. A device without
 * compiled loops interprets it, on the functions of tensorpy/math.h, or has it printed as C or OpenCL C
 * (tp_print_program) and compiles that. Numbers of operations never change; new ones come after the others. */
#ifndef TENSORPY_PROGRAM_H
#define TENSORPY_PROGRAM_H

#include "tensorpy/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- steps ---- */

/* X(name): a step's operation. `a`, `b` and `c` are the numbers of earlier steps, if nothing else is said.
 *   INPUT     element of input a
 *   NUMBER    parameter a, as a number; NONE: whether parameter a is None; WORD: whether parameter a is its word b
 *   CONSTANT  constants[a].f; INTEGER: constants[a], with b as an int64, else as an uint64
 *   LARGEST   the largest finite number of its dtype; with a its negative
 *   CAST      a converted to the step's kind, as C does; to bool: whether it is not 0
 *   NEG, INVERT (~), NOT (!); integers wrap
 *   ADD to XOR: a op b; of bools ADD is or, MUL is and
 *   EQ to GE: whether a op b; kind is that of a and b
 *   SELECT    b where a, else c */
#define TP_FORALL_STEPS(X) \
    X(INPUT)               \
    X(NUMBER)              \
    X(NONE)                \
    X(WORD)                \
    X(CONSTANT)            \
    X(INTEGER)             \
    X(LARGEST)             \
    X(CAST)                \
    X(NEG)                 \
    X(INVERT)              \
    X(NOT)                 \
    X(ADD)                 \
    X(SUB)                 \
    X(MUL)                 \
    X(DIV)                 \
    X(AND)                 \
    X(OR)                  \
    X(XOR)                 \
    X(EQ)                  \
    X(NE)                  \
    X(LT)                  \
    X(LE)                  \
    X(GT)                  \
    X(GE)                  \
    X(SELECT)

/* X(name, arguments, bool, int, float, complex): a function of tensorpy/math.h, tp_<name>_<dtype>, of a, or of a and b,
 * of the step's kind; which classes of dtypes it has (1 or 0). The step's c is the kind of what it gives. `complex` is
 * of two real numbers, and stands for itself. */
#define TP_FORALL_STEP_HELPERS(X)  \
    X(abs, 1, 0, 1, 1, 1)          \
    X(sgn, 1, 0, 1, 1, 1)          \
    X(square, 1, 0, 1, 1, 1)       \
    X(conj, 1, 0, 0, 0, 1)         \
    X(reciprocal, 1, 0, 0, 1, 1)   \
    X(sqrt, 1, 0, 0, 1, 1)         \
    X(rsqrt, 1, 0, 0, 1, 1)        \
    X(exp, 1, 0, 0, 1, 1)          \
    X(exp2, 1, 0, 0, 1, 1)         \
    X(expm1, 1, 0, 0, 1, 1)        \
    X(log, 1, 0, 0, 1, 1)          \
    X(log2, 1, 0, 0, 1, 1)         \
    X(log10, 1, 0, 0, 1, 1)        \
    X(log1p, 1, 0, 0, 1, 1)        \
    X(sigmoid, 1, 0, 0, 1, 1)      \
    X(tanh, 1, 0, 0, 1, 1)         \
    X(sin, 1, 0, 0, 1, 1)          \
    X(cos, 1, 0, 0, 1, 1)          \
    X(tan, 1, 0, 0, 1, 1)          \
    X(asin, 1, 0, 0, 1, 1)         \
    X(acos, 1, 0, 0, 1, 1)         \
    X(atan, 1, 0, 0, 1, 1)         \
    X(sinh, 1, 0, 0, 1, 1)         \
    X(cosh, 1, 0, 0, 1, 1)         \
    X(asinh, 1, 0, 0, 1, 1)        \
    X(acosh, 1, 0, 0, 1, 1)        \
    X(atanh, 1, 0, 0, 1, 1)        \
    X(erf, 1, 0, 0, 1, 0)          \
    X(erfc, 1, 0, 0, 1, 0)         \
    X(erfinv, 1, 0, 0, 1, 0)       \
    X(ndtri, 1, 0, 0, 1, 0)        \
    X(lgamma, 1, 0, 0, 1, 0)       \
    X(digamma, 1, 0, 0, 1, 0)      \
    X(trigamma, 1, 0, 0, 1, 0)     \
    X(i0, 1, 0, 0, 1, 0)           \
    X(i0e, 1, 0, 0, 1, 0)          \
    X(i1, 1, 0, 0, 1, 0)           \
    X(i1e, 1, 0, 0, 1, 0)          \
    X(log_ndtr, 1, 0, 0, 1, 0)     \
    X(zeta, 2, 0, 0, 1, 0)         \
    X(polygamma, 2, 0, 0, 1, 0)    \
    X(floor, 1, 0, 0, 1, 0)        \
    X(ceil, 1, 0, 0, 1, 0)         \
    X(round, 1, 0, 0, 1, 0)        \
    X(trunc, 1, 0, 0, 1, 0)        \
    X(frac, 1, 0, 0, 1, 0)         \
    X(isnan, 1, 0, 0, 1, 1)        \
    X(isinf, 1, 0, 0, 1, 1)        \
    X(isfinite, 1, 0, 0, 1, 1)     \
    X(signbit, 1, 0, 1, 1, 0)      \
    X(angle, 1, 0, 0, 1, 1)        \
    X(pow, 2, 0, 1, 1, 1)          \
    X(atan2, 2, 0, 0, 1, 0)        \
    X(hypot, 2, 0, 0, 1, 0)        \
    X(fmod, 2, 0, 1, 1, 0)         \
    X(remainder, 2, 0, 1, 1, 0)    \
    X(floor_divide, 2, 0, 1, 1, 0) \
    X(div_trunc, 2, 0, 1, 1, 0)    \
    X(copysign, 2, 0, 0, 1, 0)     \
    X(nextafter, 2, 0, 0, 1, 0)    \
    X(maximum, 2, 1, 1, 1, 0)      \
    X(minimum, 2, 1, 1, 1, 0)      \
    X(fmax, 2, 1, 1, 1, 0)         \
    X(fmin, 2, 1, 1, 1, 0)         \
    X(logaddexp, 2, 0, 0, 1, 1)    \
    X(logaddexp2, 2, 0, 0, 1, 1)   \
    X(xlogy, 2, 0, 0, 1, 0)        \
    X(xlog1py, 2, 0, 0, 1, 0)      \
    X(gcd, 2, 0, 1, 0, 0)          \
    X(lcm, 2, 0, 1, 0, 0)          \
    X(lshift, 2, 0, 1, 0, 0)       \
    X(rshift, 2, 0, 1, 0, 0)       \
    X(real, 1, 0, 0, 0, 1)         \
    X(imag, 1, 0, 0, 0, 1)         \
    X(complex, 2, 0, 0, 0, 0)      \
    X(erfcx, 1, 0, 0, 1, 0)        \
    X(gamma_p, 2, 0, 0, 1, 0)      \
    X(gamma_q, 2, 0, 0, 1, 0)      \
    X(gamma_slope, 2, 0, 0, 1, 0)  \
    X(bessel_j0, 1, 0, 0, 1, 0)    \
    X(bessel_j1, 1, 0, 0, 1, 0)    \
    X(bessel_y0, 1, 0, 0, 1, 0)    \
    X(bessel_y1, 1, 0, 0, 1, 0)    \
    X(bessel_k0, 1, 0, 0, 1, 0)    \
    X(bessel_k1, 1, 0, 0, 1, 0)    \
    X(bessel_k0e, 1, 0, 0, 1, 0)   \
    X(bessel_k1e, 1, 0, 0, 1, 0)   \
    X(airy_ai, 1, 0, 0, 1, 0)      \
    X(chebyshev_t, 2, 0, 0, 1, 0)  \
    X(chebyshev_u, 2, 0, 0, 1, 0)  \
    X(chebyshev_v, 2, 0, 0, 1, 0)  \
    X(chebyshev_w, 2, 0, 0, 1, 0)  \
    X(hermite_h, 2, 0, 0, 1, 0)    \
    X(hermite_he, 2, 0, 0, 1, 0)   \
    X(laguerre_l, 2, 0, 0, 1, 0)   \
    X(legendre_p, 2, 0, 0, 1, 0)

enum {
#define TP_STEP_ENUM(name) TP_STEP_##name,
    TP_FORALL_STEPS(TP_STEP_ENUM)
#undef TP_STEP_ENUM
        TP_STEP_FIRST_HELPER = 32,
    TP_STEP_BEFORE_HELPERS_ = TP_STEP_FIRST_HELPER - 1,
#define TP_STEP_ENUM(name, arguments, b, i, f, c) TP_STEP_OF_##name,
    TP_FORALL_STEP_HELPERS(TP_STEP_ENUM)
#undef TP_STEP_ENUM
        TP_STEP_END
};

/* What a step computes in. */
typedef enum {
    TP_KIND_COMPUTE, /* the dtype that is computed in */
    TP_KIND_REAL,    /* of a complex one the real dtype */
    TP_KIND_BOOL,
    TP_KIND_INT,    /* int64 */
    TP_KIND_DOUBLE, /* float64: a float parameter where integers are computed */
} tp_step_kind;
#define TP_STEP_NAMED 0x80 /* in a step's kind: its value is used several times */

/* One step. */
typedef struct {
    uint8_t op, kind; /* TP_STEP_...; tp_step_kind, with TP_STEP_NAMED or without */
    uint16_t a, b, c; /* what they are follows from the operation */
} tp_step;

/* A constant of a program. */
typedef union {
    uint64_t bits; /* of an int64 (or uint64), or of a float64 */
    int64_t i;     /* of INTEGER */
    double f;      /* of CONSTANT */
} tp_step_constant;

/* A list of steps; the value of the last is the result. */
typedef struct tp_program {
    uint16_t nsteps;                   /* 0: there is no program for this class */
    const tp_step *steps;              /* so many */
    const tp_step_constant *constants; /* as many as the steps name */
} tp_program;

/* ---- the programs of primitives ---- */

/* The most inputs that a program of map has. */
#define TP_PROGRAM_INPUTS 4
/* The most parameters. */
#define TP_PROGRAM_PARAMS 6

/* A program of the primitive map, in a dtype to compute in (tp_map_program). It lives as long as the process. */
typedef struct {
    size_t size;                        /* of this struct, filled in by the caller */
    const char *name;                   /* the operator's: "add.Tensor" */
    const tp_program *program;          /* what is computed for each element */
    int32_t ninputs, nparams;           /* how many it has of them */
    tp_dtype inputs[TP_PROGRAM_INPUTS]; /* what each input is converted to, a number that stands for one too */
    tp_dtype result;                    /* what the last step gives, which is converted to out's dtype */
    bool none[TP_PROGRAM_PARAMS];       /* a parameter that is None, */
    int32_t word[TP_PROGRAM_PARAMS];    /* and which of its words a str is; -1: none of them */
} tp_map_program;

/* A program of the primitive reduce.program (tp_reduce_program): what an accumulator begins with; x1 folded into the
 * accumulator x0; x0 and x1 put together; the result from the accumulator x0 and the number of elements x1, in the
 * dtype to compute in. The accumulator has `result`'s dtype, each step computes in the program's. */
enum { TP_REDUCTION_START, TP_REDUCTION_STEP, TP_REDUCTION_JOIN, TP_REDUCTION_FINISH, TP_REDUCTION_PARTS };
/* A program of the primitive reduce.program. */
typedef struct {
    size_t size;             /* of this struct, filled in by the caller */
    const char *name;        /* the operator's: "prod" */
    const tp_program *parts; /* TP_REDUCTION_PARTS of them */
    tp_dtype result;         /* the dtype of the accumulator, and of what is converted to out's */
} tp_reduce_program;

/* ---- the walk of a normalisation ---- */

/* The words of the argument `rows` of the primitives norm.*, in their order; words that are not given are 0. A row is
 * `runs` runs of `length` neighbours, `next` elements apart; row r begins at r * first. */
typedef struct {
    int64_t rows, runs;               /* how many rows, and how many runs each is of */
    int64_t length, first, next;      /* of a run; from row to row; from run to run */
    int64_t groups, per_row, per_run; /* run k of row r has weight and bias r % groups * per_row + k * per_run, */
    int64_t each;                     /* or, if not 0, element i of a row has those of i */
} tp_norm_rows;

#ifdef __cplusplus
}
#endif
#endif
