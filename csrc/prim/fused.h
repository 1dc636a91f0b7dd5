/* fused.h: the programs of the primitive fused.map: several calls of map, one after the other on the same elements.
 *
 * A program is a list of calls whose inputs are values: first those of the input tensors, then one for each call. A
 * value of a call that is no output has no memory; it is rounded to its dtype, as memory of that dtype would. A program
 * knows no sizes and no numbers, so all calls of one shape of code share one: it is kept for good, by its content, and
 * its number is what fused.map takes. */
#pragma once

#include "prim/pointwise.h"

#define TP_FUSED_CALLS 48   /* at most, */
#define TP_FUSED_TENSORS 16 /* inputs and outputs */

typedef struct {
    int64_t program; /* of map; -1: a copy of the only input */
    int8_t compute;  /* tp_dtype */
    int8_t dtype;    /* of the value */
    uint8_t ninputs;
    uint8_t nnumbers;          /* of all of the program's numbers, in the order of the calls */
    int16_t in[TP_MAP_INPUTS]; /* values; -1: the next number */
} tp_fused_call;

typedef struct {
    uint8_t ninputs, noutputs, ncalls;
    int16_t outputs[TP_FUSED_TENSORS]; /* the values that are written to the output tensors */
    tp_fused_call calls[TP_FUSED_CALLS];
} tp_fused;

/* What calls are joined by. Whatever is left out, results are the same, to the bit: tests leave each rule out in turn.
 */
#define TP_FUSION_RULES(X)                                                          \
    X(MAPS, "maps")             /* calls of map and copy that follow each other */  \
    X(COPIES, "copies")         /* copies among them */                             \
    X(REDUCTIONS, "reductions") /* the reduction after them */                      \
    X(AGAIN, "again")           /* calls that are made once more after it */        \
    X(TILES, "tiles")           /* rows that pass several calls */                  \
    X(UNSTORED, "unstored")     /* values that nobody needs have no memory */       \
    X(CHAINS, "chains")         /* arithmetic on a value that stays in registers */ \
    X(NEAR, "near")             /* small outputs are written to the caches */       \
    X(PLACES, "places")         /* of a tape's memory, which dead values leave */
enum {
#define TP_FUSION_RULE(name, text) TP_FUSION_##name,
    TP_FUSION_RULES(TP_FUSION_RULE)
#undef TP_FUSION_RULE
        TP_NUM_FUSION_RULES
};
typedef struct {
    int64_t block;     /* elements of a CPU's block; 0: as many as lie best in its cache */
    uint32_t left_out; /* a bit for each rule */
} tp_fusion_settings;
extern tp_fusion_settings tp_fusion; /* with the host lock, while no compiled function runs */
TP_INLINE bool tp_fusion_has(int rule) { return !(tp_fusion.left_out >> rule & 1); }

/* How long the calls of a fused one take, for who looks on: nanoseconds, of all threads together. */
typedef struct {
    _Atomic int64_t spent[TP_FUSED_CALLS]; /* by call, in the blocks that were timed, */
    _Atomic int64_t timed, blocks;         /* so many of all */
    _Atomic int64_t whole;                 /* of all that ran; the caller's */
} tp_fused_times;
/* The times of the calls that this thread begins; NULL: nobody looks on. */
extern __thread tp_fused_times *tp_fused_timed __attribute__((tls_model("initial-exec")));

/* The number of a program with this content, whose unused bytes are 0; -1 and the error set where memory is out. */
int64_t tp_fused_intern(const tp_fused *f);
/* NULL for a number that is none's. */
const tp_fused *tp_fused_at(int64_t number);

/* How an input's element follows from the place in the space of the outputs: element (place / run) % period. Inputs are
 * contiguous. */
typedef struct {
    int64_t run, period;
} tp_fused_walk;
/* The walk of an input over an output's sizes; false: it has none. An input that lies as the output does, without gaps,
 * has the run 1 and the period of all elements. */
bool tp_fused_walk_of(const tp_tensor *input, const tp_tensor *out, tp_fused_walk *walk);

/* An input without a walk, a slice, say: lines of elements side by side, or of one again and again, anywhere in memory.
 * Sizes and strides in elements, from the innermost dimension on, with as few dimensions as do. */
#define TP_FUSED_DIMS 4
#define TP_FUSED_SHORTEST 16 /* elements of a line: shorter ones are not worth it */
typedef struct {
    int ndim;
    int64_t sizes[TP_FUSED_DIMS], strides[TP_FUSED_DIMS];
} tp_fused_lines;
/* The lines of an input over the sizes of a contiguous output; false: they are too short, or in too many dimensions. */
bool tp_fused_lines_of(const tp_tensor *input, const tp_tensor *out, tp_fused_lines *lines);
