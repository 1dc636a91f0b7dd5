/* tape.h: what a compiled function computed in one call, to be computed again without Python: mode="reduce-overhead".
 *
 * Note [Replay]
 * A region that has a tape lets every call wait and writes down what arrives at the backends, in its order: primitives,
 * and operators that run at once. Tensors become slots of the tape, one for each storage: an argument's, one that was
 * there before, one that the call has made. Which of the last two it is only two calls tell: a storage that was there
 * is the same one in both, one that is made is another one, and is written before it is read. So a tape is compared
 * with that of the call before (tp_tape_follows), which keeps its storages until then, so that no address means two of
 * them. Two calls that went one way, after the first, make a tape that can be run (tp_tape_close).
 *
 * What depends on values is refused when it is written down: a value that is read, a shape that depends on one, random
 * numbers of an operator that draws by itself, an address that leaves. Random numbers by counter are numbers that
 * differ from call to call, and so are refused by the comparison. Numbers that differ may be inputs, if the
 * program says so (tp_tape_set_number). Sizes and strides, requires_grad and modes are compared before a tape is run:
 * who runs it knows what they depend on (python/replay.c).
 *
 * Running binds the arguments' memory, gives each result memory of its own, and calls kernel after kernel. Memory that
 * a call makes for itself belongs to the tape; what is dead lends its place to what comes later. Versions rise as they
 * rose in the call that was written down. */
#pragma once

#include "plan/plan.h"

#include "core/tensor.h"

typedef struct tp_tape tp_tape;

/* An empty tape, of calls on one device that joins calls; NULL and the error set. */
tp_tape *tp_tape_new(tp_device device);
void tp_tape_free(tp_tape *t);

/* ---- writing, while a region has it (tp_region_options.tape) ---- */

/* The next argument of the function, before it is called. -1 and the error set on failure. */
int tp_tape_argument(tp_tape *t, const tp_tensor *argument);
/* The next of what the function gives or leaves behind, after the region. -1 and the error set on failure. */
int tp_tape_result(tp_tape *t, const tp_tensor *result);
/* From now on `wrote(context, i)` is called, with the host lock, when call `i` is written down. */
void tp_tape_tell(tp_tape *t, void (*wrote)(void *context, int64_t call), void *context);
/* It cannot be run, since ... (a string that stays; the first one counts). */
void tp_tape_spoil(tp_tape *t, const char *why);
extern const char tp_tape_no_memory[]; /* a reason that says nothing of the program */
/* NULL: nothing is known against it. */
const char *tp_tape_spoiled(const tp_tape *t);

/* ---- comparing ---- */

/* A number of a call that differs from that of the call before. */
typedef struct {
    int64_t call;
    int argument, place; /* place: in a list of numbers; else 0 */
    double before, now;
} tp_tape_number;
/* Whether the tape went the way of the one before; what it has learned then stands in `t`. If not, `what` says where
 * they part, in one line. Up to `room` numbers that differ come out, of `differing`; more than that are a difference.
 */
bool tp_tape_follows(tp_tape *t, const tp_tape *before, tp_tape_number *numbers, int room, int *differing, char *what,
                     size_t size);
/* The call at which a tape parts from the one that it does not follow; -1: it follows it. */
int64_t tp_tape_parted(const tp_tape *t);
/* Why a tape that follows another cannot be replayed, since a tensor that it has made, and that is no result, lives on;
 * NULL. */
const char *tp_tape_outlived(const tp_tape *t);
/* Releases what is kept for comparing, joins calls, and lays out memory. `alone`, one for each call: it stays as it is,
 * since its numbers are set. False, and it is spoiled: it cannot be run. */
bool tp_tape_close(tp_tape *t, const bool *alone);
int64_t tp_tape_calls(const tp_tape *t);
/* Joins the calls of a closed tape anew, if kernels have come or gone since: the steps know those that were there.
 * Each of its calls may be joined. With the host lock. -1 and the error set: there is no memory, and it is spoiled. */
int tp_tape_renew(tp_tape *t);

/* ---- running a closed tape ---- */

/* Whether the arguments lie as the tape's do, to each other and to what was there before. */
bool tp_tape_fits(tp_tape *t, tp_tensor *const *arguments);
/* Whether a run writes to what was there before, or to arguments: if not, one that fails has done nothing. */
bool tp_tape_writes(const tp_tape *t);
void tp_tape_set_number(tp_tape *t, const tp_tape_number *place, double value);
/* Runs it; results are new tensors without autograd state. -1 and the error set if a call failed. With the host lock,
 * which kernels may give up: a tape that another thread runs is not run (1 comes back). */
int tp_tape_run(tp_tape *t, tp_tensor *const *arguments, tp_tensor **results);
