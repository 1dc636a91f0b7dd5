/* replay.h: calls of compiled functions that are done again without Python: mode="reduce-overhead" (Note [Replay] in
 * plan/tape.h). */
#pragma once

#include "python/common.h"

#include "plan/plan.h"

typedef struct tp_py_replays tp_py_replays;

tp_py_replays *tp_py_replays_new(void); /* NULL raised */
void tp_py_replays_free(tp_py_replays *r);
int tp_py_replays_traverse(tp_py_replays *r, visitproc visit, void *arg);

/* Does a call from its tape, if there is one that fits: *result is what it gives, NULL raised. If not: false. */
bool tp_py_replay(tp_py_replays *r, PyObject *const *args, size_t n, PyObject *names, PyObject **result);

/* A call that is followed is written down between these two. `begin` gives the tape for the region, or NULL: not this
 * time. `end` takes the result, steals it, and gives it back, or NULL raised: an audit has found that the call went
 * another way than the one that is replayed. */
struct tp_tape *tp_py_replay_begin(tp_py_replays *r, PyObject *const *args, size_t n, PyObject *names);
PyObject *tp_py_replay_end(tp_py_replays *r, struct tp_tape *tape, PyObject *const *args, size_t n, PyObject *names,
                           PyObject *result);

/* {"replayed": ..., "written": ..., "why": ...} */
PyObject *tp_py_replays_report(const tp_py_replays *r);

/* A tensor says whether it wants a gradient: if it is of a class of its own, a parameter, it is compared again what it
 * is used for. */
void tp_py_parameter_changes(PyObject *tensor);
/* A tensor, which may be a buffer, gets other memory. */
void tp_py_memory_changes(void);

/* The program sets or takes away a tensor's gradient: a call that is written down leaves it so. */
void tp_py_grad_is_set(tp_tensor *t);

int tp_py_init_replay(PyObject *m);
