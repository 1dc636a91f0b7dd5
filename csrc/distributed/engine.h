/* engine.h: what carries messages between processes: a table of functions that an engine fills (mpi.c is one).
 *
 * Everything above an engine (work.c) begins messages and asks whether they are done; nothing waits inside an engine
 * but `start`, `group` and `stop`. All functions but `describe` are called under one lock, so an engine needs none of
 * its own. What an engine is given stays where it is until it says that the message is done. A function that can fail
 * returns -1 or NULL with the error set (Note [Status] in core/base.h). */
#pragma once

#if defined(TP_FOLDER_core) || defined(TP_FOLDER_dispatch) || defined(TP_FOLDER_iter) || defined(TP_FOLDER_prim) || \
    defined(TP_FOLDER_native) || defined(TP_FOLDER_cpu) || defined(TP_FOLDER_opencl) || defined(TP_FOLDER_autograd)
#error "what computes knows no other processes: messages are begun above it"
#endif

#include "core/dtype.h"

#define TP_FORALL_MESSAGES(X) \
    X(all_reduce)             \
    X(reduce)                 \
    X(broadcast)              \
    X(all_gather)             \
    X(gather)                 \
    X(scatter)                \
    X(reduce_scatter)         \
    X(all_to_all)             \
    X(barrier)                \
    X(send)                   \
    X(recv)

typedef enum {
#define TP_MESSAGE_KIND(name) TP_MSG_##name,
    TP_FORALL_MESSAGES(TP_MESSAGE_KIND)
#undef TP_MESSAGE_KIND
        TP_NUM_MESSAGES
} tp_message_kind;

typedef enum {
    TP_OP_SUM,
    TP_OP_PRODUCT,
    TP_OP_MIN,
    TP_OP_MAX,
    TP_OP_BAND,
    TP_OP_BOR,
    TP_OP_BXOR,
    TP_NUM_OPS
} tp_reduce_op;

#define TP_ANY_SOURCE (-1)

/* One message of a group. Reductions count elements, all else counts bytes: what one process gives to one other. */
typedef struct {
    tp_message_kind kind;
    const void *send; /* NULL: the elements are in `recv`, which keeps the result */
    void *recv;
    int64_t count;
    tp_dtype dtype;  /* of a reduction */
    tp_reduce_op op; /* of a reduction */
    int peer;        /* the root; the other process of send and recv, which may take from TP_ANY_SOURCE */
    int tag;         /* of send and recv */
    /* of all_to_all: bytes for and from each process, and where they begin; `begin` may write them in another form */
    const int64_t *send_counts, *send_offsets, *recv_counts, *recv_offsets;
} tp_message;

/* What a recv found. */
typedef struct {
    int source;
    int64_t bytes;
} tp_arrival;

typedef void *tp_request;

typedef struct {
    const char *name;
    /* Opens the library at a path; 1: there is none. */
    int (*load)(const char *path);
    const char *(*version)(void);
    /* Whether the library's own launcher alone can start it. */
    bool (*is_launched)(void);
    /* The world of this process, by what a launcher or our server put into the environment. */
    int (*start)(bool launched, int *rank, int *size);
    int (*stop)(void);
    /* This process ends: what was started for all of its life is over. */
    void (*finish)(void);
    /* A group of some ranks of the world, each of which calls this with the same tag. */
    void *(*group)(const int *ranks, int n, const char *tag);
    void (*group_free)(void *group);
    /* Whether elements of a dtype can be reduced by an operation. */
    bool (*reduces)(tp_dtype dtype, tp_reduce_op op);
    int (*begin)(void *group, const tp_message *m, tp_request *request);
    /* Moves messages along; whether these are done, 0 or 1. */
    int (*test)(tp_request *requests, int n, tp_arrival *arrival);
} tp_engine;

extern const tp_engine tp_mpi_engine;
