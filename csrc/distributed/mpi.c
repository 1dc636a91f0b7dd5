/* mpi.c: the engine that calls an MPI library by the standard ABI of MPI 5.0.
 *
 * The library is opened when a world of several processes is made. All declarations and numbers here are those that the
 * standard fixes, so no header of a library is needed, and any library with this ABI will do. Moves go as bytes; only
 * reductions name types. MPI has no 16-bit floats, and says nothing of NaN in its MIN and MAX: these are loops of
 * elements.c, which give the same bits whichever operand comes first, so that all processes get the same. */
#include "distributed/elements.h"
#include "distributed/engine.h"

#include "core/error.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct mpi_object *handle;
typedef int64_t count_t;
typedef struct {
    int source, tag, error, internal[5];
} status_t;
typedef void user_function(void *in, void *inout, count_t *n, handle *type);

#define HANDLE(number) ((handle)(uintptr_t)(number))

enum {
    MPI_OK = 0,
    ANY_SOURCE_OF_MPI = -1,
    SERIALIZED = 2048,
    MOST_ERROR = 512,
    MOST_VERSION = 8192,
    ERR_TRUNCATE = 15
};
#define OP_SUM HANDLE(0x21)
#define OP_MIN HANDLE(0x22)
#define OP_MAX HANDLE(0x23)
#define OP_PROD HANDLE(0x24)
#define OP_BAND HANDLE(0x28)
#define OP_BOR HANDLE(0x29)
#define OP_BXOR HANDLE(0x2a)
#define OP_LAND HANDLE(0x30)
#define OP_LOR HANDLE(0x31)
#define OP_LXOR HANDLE(0x32)
#define GROUP_NULL HANDLE(0x108)
#define SESSION_NULL HANDLE(0x120)
#define ERRORS_RETURN HANDLE(0x143)
#define REQUEST_NULL HANDLE(0x180)
#define BYTE_TYPE HANDLE(0x247)
#define IN_PLACE ((void *)1)
#define NO_STATUS ((status_t *)0)

/* Name, arguments. */
#define FORALL_FUNCTIONS(X)                                                                                          \
    X(Get_library_version, (char *text, int *length))                                                                \
    X(Abi_get_version, (int *major, int *minor))                                                                     \
    X(Error_string, (int code, char *text, int *length))                                                             \
    X(Error_class, (int code, int *cls))                                                                             \
    X(Info_create, (handle * info))                                                                                  \
    X(Info_set, (handle info, const char *key, const char *value))                                                   \
    X(Info_free, (handle * info))                                                                                    \
    X(Session_init, (handle info, handle on_error, handle * session))                                                \
    X(Session_finalize, (handle * session))                                                                          \
    X(Group_from_session_pset, (handle session, const char *name, handle *group))                                    \
    X(Group_incl, (handle group, int n, const int *ranks, handle *made))                                             \
    X(Group_rank, (handle group, int *rank))                                                                         \
    X(Group_size, (handle group, int *size))                                                                         \
    X(Group_free, (handle * group))                                                                                  \
    X(Comm_create_from_group, (handle group, const char *tag, handle info, handle on_error, handle *comm))           \
    X(Comm_free, (handle * comm))                                                                                    \
    X(Op_create_c, (user_function * f, int commutes, handle *op))                                                    \
    X(Op_free, (handle * op))                                                                                        \
    X(Iallreduce_c, (const void *send, void *recv, count_t n, handle type, handle op, handle comm, handle *request)) \
    X(Ireduce_c,                                                                                                     \
      (const void *send, void *recv, count_t n, handle type, handle op, int root, handle comm, handle *request))     \
    X(Ibcast_c, (void *buffer, count_t n, handle type, int root, handle comm, handle *request))                      \
    X(Iallgather_c, (const void *send, count_t n, handle type, void *recv, count_t m, handle recv_type, handle comm, \
                     handle *request))                                                                               \
    X(Igather_c, (const void *send, count_t n, handle type, void *recv, count_t m, handle recv_type, int root,       \
                  handle comm, handle *request))                                                                     \
    X(Iscatter_c, (const void *send, count_t n, handle type, void *recv, count_t m, handle recv_type, int root,      \
                   handle comm, handle *request))                                                                    \
    X(Ireduce_scatter_block_c,                                                                                       \
      (const void *send, void *recv, count_t n, handle type, handle op, handle comm, handle *request))               \
    X(Ialltoallv_c,                                                                                                  \
      (const void *send, const count_t *counts, const intptr_t *offsets, handle type, void *recv,                    \
       const count_t *recv_counts, const intptr_t *recv_offsets, handle recv_type, handle comm, handle *request))    \
    X(Ibarrier, (handle comm, handle * request))                                                                     \
    X(Isend_c, (const void *send, count_t n, handle type, int peer, int tag, handle comm, handle *request))          \
    X(Irecv_c, (void *recv, count_t n, handle type, int peer, int tag, handle comm, handle *request))                \
    X(Test, (handle * request, int *done, status_t *status))                                                         \
    X(Testall, (int n, handle *requests, int *done, status_t *statuses))                                             \
    X(Get_count_c, (const status_t *status, handle type, count_t *n))

static struct {
#define POINTER(name, arguments) int(*name) arguments;
    FORALL_FUNCTIONS(POINTER)
#undef POINTER
} mpi;

static const struct {
    const char *name;
    size_t offset;
} functions[] = {
#define PLACE(name, arguments) {"MPI_" #name, offsetof(__typeof__(mpi), name)},
    FORALL_FUNCTIONS(PLACE)
#undef PLACE
};

static void *library;
static char version_text[256];
static handle session = SESSION_NULL, everyone = GROUP_NULL;

/* ---- errors ---- */

static int say(const char *what, int code) {
    char text[MOST_ERROR] = "";
    int length = 0;
    mpi.Error_string(code, text, &length);
    return tp_fail(TP_RuntimeError, "%s: %s", what, text);
}
#define DO(call, what)                                \
    do {                                              \
        int code_ = mpi.call;                         \
        if (code_ != MPI_OK) return say(what, code_); \
    } while (0)

/* ---- the library ---- */

static int load_mpi(const char *path) {
    if (library) return 0;
    void *opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!opened) return 1;
    for (int64_t i = 0; i < TP_COUNTOF(functions); i++) {
        void *found = dlsym(opened, functions[i].name);
        if (!found) {
            tp_fail(TP_RuntimeError, "%s has no %s: it has not the standard ABI of MPI 5.0", path, functions[i].name);
            dlclose(opened);
            return -1;
        }
        memcpy((char *)&mpi + functions[i].offset, &found, sizeof found);
    }
    int major = 0, minor = 0, length = 0;
    char text[MOST_VERSION] = "";
    if (mpi.Abi_get_version(&major, &minor) != MPI_OK || major != 1) {
        dlclose(opened);
        return tp_fail(TP_RuntimeError, "%s has version %d of the ABI of MPI, not 1", path, major);
    }
    mpi.Get_library_version(text, &length);
    text[strcspn(text, "\n")] = 0;
    for (char *c = text; *c; c++)
        if (*c == '\t') *c = ' ';
    snprintf(version_text, sizeof version_text, "%.255s", text);
    library = opened;
    return 0;
}

static const char *version_of_mpi(void) { return version_text; }

/* ---- types and operations ---- */

static handle own_ops[TP_NUM_DTYPES][TP_NUM_OPS]; /* NULL: not made yet */

static void free_ops(void) {
    for (int d = 0; d < TP_NUM_DTYPES; d++)
        for (int o = 0; o < TP_NUM_OPS; o++)
            if (own_ops[d][o]) mpi.Op_free(&own_ops[d][o]), own_ops[d][o] = NULL;
}

/* How MPI reduces a dtype: a type, how many of them an element is, and an operation or a loop of our own. */
typedef struct {
    handle type, op;
    int each;
    tp_elements_fn loop;
} recipe;

static bool recipe_for(tp_dtype d, tp_reduce_op op, recipe *r) {
    static const handle plain[] = {OP_SUM, OP_PROD, OP_MIN, OP_MAX, OP_BAND, OP_BOR, OP_BXOR};
    static const handle logical[] = {OP_LOR, OP_LAND, OP_LAND, OP_LOR, OP_LAND, OP_LOR, OP_LXOR};
    *r = (recipe){.each = 1, .op = plain[op]};
    switch (d) {
    case TP_BOOL: return r->type = HANDLE(0x244), r->op = logical[op], true;
    case TP_INT8: return r->type = HANDLE(0x240), true;
    case TP_UINT8: return r->type = HANDLE(0x244), true;
    case TP_INT16: return r->type = HANDLE(0x248), true;
    case TP_UINT16: return r->type = HANDLE(0x249), true;
    case TP_INT32: return r->type = HANDLE(0x250), true;
    case TP_UINT32: return r->type = HANDLE(0x251), true;
    case TP_INT64: return r->type = HANDLE(0x258), true;
    case TP_UINT64: return r->type = HANDLE(0x259), true;
    case TP_FLOAT16:
    case TP_BFLOAT16: r->type = HANDLE(0x249); break;
    case TP_FLOAT32: r->type = HANDLE(0x210); break;
    case TP_FLOAT64: r->type = HANDLE(0x214); break;
    case TP_COMPLEX64: return r->type = HANDLE(0x210), r->each = 2, op == TP_OP_SUM;
    case TP_COMPLEX128: return r->type = HANDLE(0x214), r->each = 2, op == TP_OP_SUM;
    default: return false;
    }
    r->loop = tp_elements_loop(d, op);
    return op <= TP_OP_MAX;
}

static bool mpi_reduces(tp_dtype d, tp_reduce_op op) {
    recipe r;
    return recipe_for(d, op, &r);
}

static int find_recipe(const tp_message *m, recipe *r) {
    if (!recipe_for(m->dtype, m->op, r))
        return tp_fail(TP_RuntimeError, "MPI has no such reduction of %s", tp_dtype_names[m->dtype]);
    if (!r->loop) return 0;
    handle *made = &own_ops[m->dtype][m->op];
    if (!*made) DO(Op_create_c(r->loop, 1, made), "MPI_Op_create_c");
    r->op = *made;
    return 0;
}

/* ---- the world and its groups ---- */

static int open_session(int *rank, int *size) {
    handle info;
    DO(Info_create(&info), "MPI_Info_create");
    DO(Info_set(info, "thread_level", "MPI_THREAD_SERIALIZED"), "MPI_Info_set");
    int code = mpi.Session_init(info, ERRORS_RETURN, &session);
    mpi.Info_free(&info);
    if (code != MPI_OK) return session = SESSION_NULL, say("MPI_Session_init", code);
    DO(Group_from_session_pset(session, "mpi://WORLD", &everyone), "MPI_Group_from_session_pset");
    DO(Group_rank(everyone, rank), "MPI_Group_rank");
    DO(Group_size(everyone, size), "MPI_Group_size");
    return 0;
}

static int close_session(void) {
    free_ops();
    if (everyone != GROUP_NULL) mpi.Group_free(&everyone);
    everyone = GROUP_NULL;
    if (session == SESSION_NULL) return 0;
    handle ending = session;
    session = SESSION_NULL;
    DO(Session_finalize(&ending), "MPI_Session_finalize");
    return 0;
}

static int make_group(const int *ranks, int n, const char *tag, handle *comm) {
    handle some, info;
    DO(Group_incl(everyone, n, ranks, &some), "MPI_Group_incl");
    DO(Info_create(&info), "MPI_Info_create");
    int code = mpi.Comm_create_from_group(some, tag, info, ERRORS_RETURN, comm);
    mpi.Info_free(&info);
    mpi.Group_free(&some);
    return code == MPI_OK ? 0 : say("MPI_Comm_create_from_group", code);
}

static void *mpi_group(const int *ranks, int n, const char *tag) {
    handle comm;
    return make_group(ranks, n, tag, &comm) < 0 ? NULL : comm;
}

static void free_group(void *group) {
    handle comm = group;
    mpi.Comm_free(&comm);
}

/* ---- messages ---- */

static int begin_message(void *group, const tp_message *m, tp_request *request) {
    handle comm = group, *out = (handle *)request;
    recipe r = {0};
    if (m->kind == TP_MSG_all_reduce || m->kind == TP_MSG_reduce || m->kind == TP_MSG_reduce_scatter)
        if (find_recipe(m, &r) < 0) return -1;
    const void *send = m->send ? m->send : IN_PLACE;
    count_t n = m->count * (r.each ? r.each : 1);
    *out = REQUEST_NULL;
    switch (m->kind) {
    case TP_MSG_all_reduce: DO(Iallreduce_c(send, m->recv, n, r.type, r.op, comm, out), "MPI_Iallreduce"); break;
    case TP_MSG_reduce: DO(Ireduce_c(send, m->recv, n, r.type, r.op, m->peer, comm, out), "MPI_Ireduce"); break;
    case TP_MSG_broadcast: DO(Ibcast_c(m->recv, n, BYTE_TYPE, m->peer, comm, out), "MPI_Ibcast"); break;
    case TP_MSG_all_gather:
        DO(Iallgather_c(send, n, BYTE_TYPE, m->recv, n, BYTE_TYPE, comm, out), "MPI_Iallgather");
        break;
    case TP_MSG_gather:
        DO(Igather_c(send, n, BYTE_TYPE, m->recv, n, BYTE_TYPE, m->peer, comm, out), "MPI_Igather");
        break;
    case TP_MSG_scatter:
        DO(Iscatter_c(m->send, n, BYTE_TYPE, m->recv, n, BYTE_TYPE, m->peer, comm, out), "MPI_Iscatter");
        break;
    case TP_MSG_reduce_scatter:
        DO(Ireduce_scatter_block_c(send, m->recv, n, r.type, r.op, comm, out), "MPI_Ireduce_scatter_block");
        break;
    case TP_MSG_all_to_all:
        DO(Ialltoallv_c(m->send, m->send_counts, (const intptr_t *)m->send_offsets, BYTE_TYPE, m->recv, m->recv_counts,
                        (const intptr_t *)m->recv_offsets, BYTE_TYPE, comm, out),
           "MPI_Ialltoallv");
        break;
    case TP_MSG_barrier: DO(Ibarrier(comm, out), "MPI_Ibarrier"); break;
    case TP_MSG_send: DO(Isend_c(m->send, n, BYTE_TYPE, m->peer, m->tag, comm, out), "MPI_Isend"); break;
    case TP_MSG_recv:
        DO(Irecv_c(m->recv, n, BYTE_TYPE, m->peer == TP_ANY_SOURCE ? ANY_SOURCE_OF_MPI : m->peer, m->tag, comm, out),
           "MPI_Irecv");
        break;
    case TP_NUM_MESSAGES: break;
    }
    return 0;
}

static int test_messages(tp_request *requests, int n, tp_arrival *arrival) {
    int done = 0;
    if (n != 1) {
        DO(Testall(n, (handle *)requests, &done, NO_STATUS), "MPI_Testall");
        return done;
    }
    status_t status = {0};
    int code = mpi.Test((handle *)requests, &done, &status), cls = 0;
    if (code != MPI_OK) {
        mpi.Error_class(code, &cls);
        if (cls == ERR_TRUNCATE) return tp_fail(TP_RuntimeError, "the message that came is longer than the tensor");
        return say("MPI_Test", code);
    }
    if (!done) return 0;
    count_t bytes = 0;
    mpi.Get_count_c(&status, BYTE_TYPE, &bytes);
    *arrival = (tp_arrival){status.source, bytes};
    return 1;
}

const tp_engine tp_mpi_engine = {
    .name = "mpi",
    .load = load_mpi,
    .version = version_of_mpi,
    .start = open_session,
    .stop = close_session,
    .group = mpi_group,
    .group_free = free_group,
    .reduces = mpi_reduces,
    .begin = begin_message,
    .test = test_messages,
};
