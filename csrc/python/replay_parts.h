/* replay_parts.h: what replay.c, which replays calls, and learning.c, which learns them, share. */
#pragma once

#include "python/facts.h"
#include "python/replay.h"

#include "autograd/engine.h"
#include "plan/tape.h"

enum {
    MOST_VARIANTS = 8,  /* of a function: the oldest goes */
    MOST_FAILURES = 8,  /* comparisons in a row, after which a variant is only followed */
    MOST_IN_VAIN = 64,  /* calls that are written down, beside those that are replayed, before a function is given up */
    MOST_NUMBERS = 64,  /* that may differ between two calls */
    AUDIT_EVERY = 1024, /* calls; before that at 8, 16, 32, ... */
};

/* All that a call depends on beside its arguments, packed, so that it is compared as a few words. */
typedef struct {
    uint64_t words[6];
} tp_py_call_modes;

/* A setting of an optimizer's group, a tensor of its state, or what holds them: an item of a dictionary. Without a key:
 * a list, and its length. */
typedef struct {
    PyObject *group, *key, *value; /* owned */
} setting;

/* A number of a tape that is a setting, or its negative. */
typedef struct {
    tp_tape_number place;
    Py_ssize_t setting;
    int sign;
} input;

typedef struct {
    tp_tensor *tensor; /* owned */
    tp_storage *kept;  /* where the gradient lies that is added to; owned; NULL: the call makes it */
    bool starts_none;
    Py_ssize_t result; /* the number of the tape's result that becomes the gradient; -1: None is left */
} leaf;

typedef struct {
    tp_py_facts arguments, results;
    tp_py_call_modes modes;
    int64_t modules;
    setting *settings;
    leaf *leaves;
    input *inputs;
    tp_edge *nodes; /* of results, that have been run; owned; NULL: none */
    Py_ssize_t nsettings, nleaves, ninputs, nnodes, nresults;
    tp_tape *tape; /* of the last call that was written down */
    bool ready;    /* it is closed */
    int alike;     /* calls that went one way so far */
    int failures;  /* comparisons in a row that did not */
    int64_t calls; /* since it is ready */
    int running;   /* replays of it that threads are in */
} variant;

struct tp_py_replays {
    variant *variants[MOST_VARIANTS]; /* the last used first */
    int64_t replayed, written;
    char why[512];
    /* while a call is written down: */
    variant *current;
    tp_py_facts arguments;
    tp_py_tensors given;
    PyObject *met;      /* optimizers */
    tp_tensor **leaves; /* that gradients have arrived at; owned */
    bool *added;        /* in place */
    Py_ssize_t nleaves, leaf_room;
    bool audits, changes_arguments;
    int64_t modules;
    bool *starts_none; /* of the current variant's leaves */
    PyObject *began;   /* the values of the current variant's settings; else NULL */
    PyObject *lines;   /* of an audit: of the program, by calls; else NULL */
};

/* The record of the function whose call this thread writes down (learning.c); NULL: none. */
extern __thread tp_py_replays *tp_py_writing;
/* Raised whenever an attribute of a module is set. */
extern int64_t tp_py_modules_version;

tp_py_call_modes tp_py_modes_now(void);
TP_INLINE bool tp_py_same_modes(const tp_py_call_modes *a, const tp_py_call_modes *b) {
    uint64_t differ = 0;
    for (size_t i = 0; i < sizeof a->words / sizeof *a->words; i++) differ |= a->words[i] ^ b->words[i];
    return differ == 0;
}
/* What is there of a setting now: a new reference; NULL: nothing, or raised. */
PyObject *tp_py_setting_now(const setting *s);
/* Whether somebody wants to see or change each call: a profile, a mode, hooks of saved tensors. */
bool tp_py_is_seen(void);
/* The variant that the arguments and modes fit, moved to the front; NULL: none, or raised. */
variant *tp_py_find_variant(tp_py_replays *r, tp_py_tensors *given, PyObject *const *args, size_t n, PyObject *names);
/* Whether the arguments are what the variant is for, whose tensors come out: 1, 0, or -1 raised. */
int tp_py_arguments_fit(const variant *v, tp_py_tensors *given, PyObject *const *args, size_t n, PyObject *names);
/* Puts one for the arguments that `r` has noted to the front; NULL raised. */
variant *tp_py_new_variant(tp_py_replays *r);
/* What was learned of the last call; the arguments stay. */
void tp_py_forget_call(variant *v);
/* Whether a call of the variant's is to be compared, and nothing that is looked at has changed. */
bool tp_py_is_audit(variant *v);
void tp_py_end_writing(tp_py_replays *r);
