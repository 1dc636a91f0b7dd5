/* mpi.c: the engine that calls an MPI library.
 *
 * The library is opened when a world of several processes is made. All declarations here are those of the standard, and
 * mpi_abi.h has the values, so no header of a library is needed. A library of MPI 5 has sessions, which end and begin
 * again; an older one begins once in a process and ends with it (sessions of MPICH 4.0 crash the second time), and so
 * does any under a launcher, whose next session may lose what comes before the other's last one is over. One of MPI 3
 * takes counts of 31 bits, later ones have functions for 64 (..._c). Moves go as bytes; only reductions name types. MPI
 * has no 16-bit floats, and says nothing of NaN in its MIN and MAX: these are loops of elements.c, which give the same
 * bits whichever operand comes first, so that all processes get the same. */
#define _GNU_SOURCE /* dladdr */
#include "distributed/elements.h"
#include "distributed/mpi_abi.h"

#include "core/error.h"

#include <dlfcn.h>
#include <limits.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef tp_mpi_handle handle;
typedef int64_t count_t;
typedef struct {
    int words[8];
} status_t;
typedef void user_function(void *in, void *inout, count_t *n, handle *type);

enum { MPI_OK = 0, MOST_ERROR = 512, MOST_VERSION = 8192 };

/* SESSIONS: a library of MPI 3 lacks it, NEEDED: none does; name, arguments. NAME_c is NAME with an int for each count
 * where there is no other. */
#define FORALL_FUNCTIONS(X)                                                                                          \
    X(NEEDED, Get_library_version, (char *text, int *length))                                                        \
    X(NEEDED, Error_string, (int code, char *text, int *length))                                                     \
    X(NEEDED, Error_class, (int code, int *cls))                                                                     \
    X(NEEDED, Info_create, (handle * info))                                                                          \
    X(NEEDED, Info_set, (handle info, const char *key, const char *value))                                           \
    X(NEEDED, Info_free, (handle * info))                                                                            \
    X(SESSIONS, Session_init, (handle info, handle on_error, handle * session))                                      \
    X(SESSIONS, Session_finalize, (handle * session))                                                                \
    X(SESSIONS, Group_from_session_pset, (handle session, const char *name, handle *group))                          \
    X(NEEDED, Group_incl, (handle group, int n, const int *ranks, handle *made))                                     \
    X(NEEDED, Group_rank, (handle group, int *rank))                                                                 \
    X(NEEDED, Group_size, (handle group, int *size))                                                                 \
    X(NEEDED, Group_free, (handle * group))                                                                          \
    X(SESSIONS, Comm_create_from_group, (handle group, const char *tag, handle info, handle on_error, handle *comm)) \
    X(NEEDED, Initialized, (int *begun))                                                                             \
    X(NEEDED, Init_thread, (int *argc, char ***argv, int wanted, int *given))                                        \
    X(NEEDED, Finalize, (void))                                                                                      \
    X(NEEDED, Comm_group, (handle comm, handle * group))                                                             \
    X(NEEDED, Comm_set_errhandler, (handle comm, handle on_error))                                                   \
    X(NEEDED, Comm_create_group, (handle comm, handle group, int tag, handle *made))                                 \
    X(NEEDED, Comm_size, (handle comm, int *size))                                                                   \
    X(NEEDED, Comm_free, (handle * comm))                                                                            \
    X(NEEDED, Op_create_c, (user_function * f, int commutes, handle *op))                                            \
    X(NEEDED, Op_free, (handle * op))                                                                                \
    X(NEEDED, Iallreduce_c,                                                                                          \
      (const void *send, void *recv, count_t n, handle type, handle op, handle comm, handle *request))               \
    X(NEEDED, Ireduce_c,                                                                                             \
      (const void *send, void *recv, count_t n, handle type, handle op, int root, handle comm, handle *request))     \
    X(NEEDED, Ibcast_c, (void *buffer, count_t n, handle type, int root, handle comm, handle *request))              \
    X(NEEDED, Iallgather_c,                                                                                          \
      (const void *send, count_t n, handle type, void *recv, count_t m, handle recv_type, handle comm,               \
       handle *request))                                                                                             \
    X(NEEDED, Igather_c,                                                                                             \
      (const void *send, count_t n, handle type, void *recv, count_t m, handle recv_type, int root, handle comm,     \
       handle *request))                                                                                             \
    X(NEEDED, Iscatter_c,                                                                                            \
      (const void *send, count_t n, handle type, void *recv, count_t m, handle recv_type, int root, handle comm,     \
       handle *request))                                                                                             \
    X(NEEDED, Ireduce_scatter_block_c,                                                                               \
      (const void *send, void *recv, count_t n, handle type, handle op, handle comm, handle *request))               \
    X(NEEDED, Ialltoallv_c,                                                                                          \
      (const void *send, const count_t *counts, const intptr_t *offsets, handle type, void *recv,                    \
       const count_t *recv_counts, const intptr_t *recv_offsets, handle recv_type, handle comm, handle *request))    \
    X(NEEDED, Ibarrier, (handle comm, handle * request))                                                             \
    X(NEEDED, Isend_c, (const void *send, count_t n, handle type, int peer, int tag, handle comm, handle *request))  \
    X(NEEDED, Irecv_c, (void *recv, count_t n, handle type, int peer, int tag, handle comm, handle *request))        \
    X(NEEDED, Test, (handle * request, int *done, status_t *status))                                                 \
    X(NEEDED, Get_count_c, (const status_t *status, handle type, count_t *n))

static struct {
#define POINTER(need, name, arguments) int(*name) arguments;
    FORALL_FUNCTIONS(POINTER)
#undef POINTER
} mpi;

enum { SESSIONS, NEEDED };
static const struct {
    const char *name;
    uint16_t offset, needed;
} functions[] = {
#define PLACE(need, name, arguments) {"MPI_" #name, offsetof(__typeof__(mpi), name), need},
    FORALL_FUNCTIONS(PLACE)
#undef PLACE
};

static void *library;
static tp_mpi_abi abi;
static bool narrow; /* counts are ints */
static bool begun;  /* without a session: for the rest of this process */
static char version_text[512];
static handle session, everyone; /* NULL: none */

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

static void *find_function(void *opened, const char *name) {
    void *found = dlsym(opened, name);
    size_t n = strlen(name);
    char short_name[64];
    if (found || strcmp(name + n - 2, "_c")) return found;
    snprintf(short_name, sizeof short_name, "%.*s", (int)n - 2, name);
    narrow = true;
    return dlsym(opened, short_name);
}

static int find_functions(void *opened, const char *path) {
    narrow = false;
    for (int64_t i = 0; i < TP_COUNTOF(functions); i++) {
        void *found = find_function(opened, functions[i].name);
        if (!found && functions[i].needed == NEEDED)
            return tp_fail(TP_RuntimeError, "%s has no %s: it is no library of MPI 3 or later", path,
                           functions[i].name);
        memcpy((char *)&mpi + functions[i].offset, &found, sizeof found);
    }
    return 0;
}

/* The first line of the library's own words, and the file. */
static void note_version(const char *path) {
    Dl_info where = {0};
    char text[MOST_VERSION] = "";
    int length = 0;
    mpi.Get_library_version(text, &length);
    text[strcspn(text, "\n")] = 0;
    for (char *c = text; *c; c++)
        if (*c == '\t') *c = ' ';
    dladdr((void *)(uintptr_t)mpi.Get_library_version, &where);
    snprintf(version_text, sizeof version_text, "%.240s (%.250s)", text, where.dli_fname ? where.dli_fname : path);
}

static int load_mpi(const char *path) {
    if (library) return 0;
    void *opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!opened) return 1;
    if (find_functions(opened, path) == 0) {
        note_version(path);
        if (tp_mpi_abi_of(opened, version_text, &abi) == 0) return library = opened, tp_elements_narrow = narrow, 0;
    }
    dlclose(opened);
    return -1;
}

static const char *version_of_mpi(void) { return version_text; }
static bool is_launched(void) { return abi.launches; }

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
    const handle *plain[] = {&abi.mpi_op_sum,  &abi.mpi_op_prod, &abi.mpi_op_min, &abi.mpi_op_max,
                             &abi.mpi_op_band, &abi.mpi_op_bor,  &abi.mpi_op_bxor};
    const handle *logical[] = {&abi.mpi_op_lor,  &abi.mpi_op_land, &abi.mpi_op_land, &abi.mpi_op_lor,
                               &abi.mpi_op_land, &abi.mpi_op_lor,  &abi.mpi_op_lxor};
    *r = (recipe){.each = 1, .op = *plain[op]};
    switch (d) {
    case TP_BOOL: return r->type = abi.mpi_uint8_t, r->op = *logical[op], true;
    case TP_INT8: return r->type = abi.mpi_int8_t, true;
    case TP_UINT8: return r->type = abi.mpi_uint8_t, true;
    case TP_INT16: return r->type = abi.mpi_int16_t, true;
    case TP_UINT16: return r->type = abi.mpi_uint16_t, true;
    case TP_INT32: return r->type = abi.mpi_int32_t, true;
    case TP_UINT32: return r->type = abi.mpi_uint32_t, true;
    case TP_INT64: return r->type = abi.mpi_int64_t, true;
    case TP_UINT64: return r->type = abi.mpi_uint64_t, true;
    case TP_FLOAT16:
    case TP_BFLOAT16: r->type = abi.mpi_uint16_t; break;
    case TP_FLOAT32: r->type = abi.mpi_float; break;
    case TP_FLOAT64: r->type = abi.mpi_double; break;
    case TP_COMPLEX64: return r->type = abi.mpi_float, r->each = 2, op == TP_OP_SUM;
    case TP_COMPLEX128: return r->type = abi.mpi_double, r->each = 2, op == TP_OP_SUM;
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

static int open_session(void) {
    handle info;
    DO(Info_create(&info), "MPI_Info_create");
    DO(Info_set(info, "thread_level", "MPI_THREAD_SERIALIZED"), "MPI_Info_set");
    int code = mpi.Session_init(info, abi.mpi_errors_return, &session);
    mpi.Info_free(&info);
    if (code != MPI_OK) return session = NULL, say("MPI_Session_init", code);
    DO(Group_from_session_pset(session, "mpi://WORLD", &everyone), "MPI_Group_from_session_pset");
    return 0;
}

/* Another library of this process may have begun MPI, and ends it then. */
static int begin_once(void) {
    int given = abi.serialized, others = 0;
    if (!begun) {
        DO(Initialized(&others), "MPI_Initialized");
        if (!others) DO(Init_thread(NULL, NULL, abi.serialized, &given), "MPI_Init_thread");
        if (given < abi.serialized)
            return tp_fail(TP_RuntimeError, "%s was built for processes of one thread", version_text);
        DO(Comm_set_errhandler(abi.mpi_comm_world, abi.mpi_errors_return), "MPI_Comm_set_errhandler");
        begun = !others;
    }
    DO(Comm_group(abi.mpi_comm_world, &everyone), "MPI_Comm_group");
    return 0;
}

/* A library takes memory for each sum, as large as what it sums. Pages that are given back after every one are cleared
 * by the kernel for the next, which takes a third of the time of 25 MiB between two hosts: they are kept. */
static void keep_memory(void) {
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 32 << 20); /* the most that it takes */
    mallopt(M_TRIM_THRESHOLD, 128 << 20);
#endif
}

static int start_mpi(bool launched, int *rank, int *size) {
    keep_memory();
    if ((abi.sessions && !launched ? open_session() : begin_once()) < 0) return -1;
    DO(Group_rank(everyone, rank), "MPI_Group_rank");
    DO(Group_size(everyone, size), "MPI_Group_size");
    return 0;
}

static int stop_mpi(void) {
    free_ops();
    if (everyone) mpi.Group_free(&everyone);
    everyone = NULL;
    if (!session) return 0;
    handle ending = session;
    session = NULL;
    DO(Session_finalize(&ending), "MPI_Session_finalize");
    return 0;
}

/* A launcher takes a process that ends without it for one that failed. */
static void finish_mpi(void) {
    if (begun) mpi.Finalize();
    begun = false;
}

/* A tag of 15 bits, which every library has. */
static int number_of(const char *tag) {
    uint32_t hash = 5381;
    for (; *tag; tag++) hash = hash * 33 + (unsigned char)*tag;
    return (int)(hash & 0x7fff);
}

static int make_group(const int *ranks, int n, const char *tag, handle *comm) {
    handle some = NULL, info = NULL;
    int code;
    DO(Group_incl(everyone, n, ranks, &some), "MPI_Group_incl");
    if (session) {
        DO(Info_create(&info), "MPI_Info_create");
        code = mpi.Comm_create_from_group(some, tag, info, abi.mpi_errors_return, comm);
        mpi.Info_free(&info);
    } else code = mpi.Comm_create_group(abi.mpi_comm_world, some, number_of(tag), comm);
    mpi.Group_free(&some);
    return code == MPI_OK ? 0 : say(session ? "MPI_Comm_create_from_group" : "MPI_Comm_create_group", code);
}

static void *mpi_group(const int *ranks, int n, const char *tag) {
    handle comm = NULL;
    return make_group(ranks, n, tag, &comm) < 0 ? NULL : comm;
}

static void free_group(void *group) {
    handle comm = group;
    mpi.Comm_free(&comm);
}

/* ---- messages ---- */

/* Whether a message of counts of 64 bits fits in ints; a list of them is written again, in place. */
static bool fits(const int64_t *list, int n) {
    int *to = (int *)(intptr_t)list;
    for (int i = 0; i < n; i++) {
        if (list[i] > INT_MAX) return false;
        int value = (int)list[i];
        memcpy(to + i, &value, sizeof value);
    }
    return true;
}

static int make_narrow(const tp_message *m, count_t n, handle comm) {
    int size = 0;
    bool fit = n <= INT_MAX;
    if (m->kind == TP_MSG_all_to_all) {
        DO(Comm_size(comm, &size), "MPI_Comm_size");
        const int64_t *lists[] = {m->send_counts, m->send_offsets, m->recv_counts, m->recv_offsets};
        for (int i = 0; i < 4; i++) fit &= fits(lists[i], size);
    }
    return fit ? 0 : tp_fail(TP_RuntimeError, "%s takes messages of less than 2 GiB", version_text);
}

static int begin_message(void *group, const tp_message *m, tp_request *request) {
    handle comm = group, *out = (handle *)request;
    recipe r = {0};
    if (m->kind == TP_MSG_all_reduce || m->kind == TP_MSG_reduce || m->kind == TP_MSG_reduce_scatter)
        if (find_recipe(m, &r) < 0) return -1;
    const void *send = m->send ? m->send : abi.in_place;
    count_t n = m->count * (r.each ? r.each : 1);
    if (narrow && make_narrow(m, n, comm) < 0) return -1;
    switch (m->kind) {
    case TP_MSG_all_reduce: DO(Iallreduce_c(send, m->recv, n, r.type, r.op, comm, out), "MPI_Iallreduce"); break;
    case TP_MSG_reduce: DO(Ireduce_c(send, m->recv, n, r.type, r.op, m->peer, comm, out), "MPI_Ireduce"); break;
    case TP_MSG_broadcast: DO(Ibcast_c(m->recv, n, abi.mpi_byte, m->peer, comm, out), "MPI_Ibcast"); break;
    case TP_MSG_all_gather:
        DO(Iallgather_c(send, n, abi.mpi_byte, m->recv, n, abi.mpi_byte, comm, out), "MPI_Iallgather");
        break;
    case TP_MSG_gather:
        DO(Igather_c(send, n, abi.mpi_byte, m->recv, n, abi.mpi_byte, m->peer, comm, out), "MPI_Igather");
        break;
    case TP_MSG_scatter:
        DO(Iscatter_c(m->send, n, abi.mpi_byte, m->recv, n, abi.mpi_byte, m->peer, comm, out), "MPI_Iscatter");
        break;
    case TP_MSG_reduce_scatter:
        DO(Ireduce_scatter_block_c(send, m->recv, n, r.type, r.op, comm, out), "MPI_Ireduce_scatter_block");
        break;
    case TP_MSG_all_to_all:
        DO(Ialltoallv_c(m->send, m->send_counts, (const intptr_t *)m->send_offsets, abi.mpi_byte, m->recv,
                        m->recv_counts, (const intptr_t *)m->recv_offsets, abi.mpi_byte, comm, out),
           "MPI_Ialltoallv");
        break;
    case TP_MSG_barrier: DO(Ibarrier(comm, out), "MPI_Ibarrier"); break;
    case TP_MSG_send: DO(Isend_c(m->send, n, abi.mpi_byte, m->peer, m->tag, comm, out), "MPI_Isend"); break;
    case TP_MSG_recv:
        DO(Irecv_c(m->recv, n, abi.mpi_byte, m->peer == TP_ANY_SOURCE ? abi.any_source : m->peer, m->tag, comm, out),
           "MPI_Irecv");
        break;
    case TP_NUM_MESSAGES: break;
    }
    return 0;
}

static int test_messages(tp_request *requests, int n, tp_arrival *arrival) {
    status_t status = {0};
    for (int i = 0; i < n; i++) {
        int done = 0, cls = 0, code = mpi.Test((handle *)&requests[i], &done, &status);
        if (code != MPI_OK) {
            mpi.Error_class(code, &cls);
            if (cls == abi.truncated)
                return tp_fail(TP_RuntimeError, "the message that came is longer than the tensor");
            return say("MPI_Test", code);
        }
        if (!done) return 0;
    }
    if (n != 1) return 1;
    count_t bytes = 0;
    mpi.Get_count_c(&status, abi.mpi_byte, &bytes);
    *arrival = (tp_arrival){status.words[abi.source_at], bytes};
    return 1;
}

const tp_engine tp_mpi_engine = {
    .name = "mpi",
    .load = load_mpi,
    .version = version_of_mpi,
    .is_launched = is_launched,
    .start = start_mpi,
    .stop = stop_mpi,
    .finish = finish_mpi,
    .group = mpi_group,
    .group_free = free_group,
    .reduces = mpi_reduces,
    .begin = begin_message,
    .test = test_messages,
};
