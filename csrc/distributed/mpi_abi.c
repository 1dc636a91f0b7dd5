/* mpi_abi.c: see mpi_abi.h. */
#include "distributed/mpi_abi.h"

#include "core/error.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    uint32_t standard, mpich;
} objects[] = {
#define OBJECT(name, standard, mpich) {"ompi_" #name, standard, mpich},
    TP_FORALL_MPI_OBJECTS(OBJECT)
#undef OBJECT
};

static void number(tp_mpi_abi *abi, bool standard) {
    tp_mpi_handle *to = &abi->mpi_op_sum;
    for (int i = 0; i < TP_COUNTOF(objects); i++)
        to[i] = (tp_mpi_handle)(uintptr_t)(standard ? objects[i].standard : objects[i].mpich);
}

static int find_symbols(void *library, tp_mpi_abi *abi) {
    tp_mpi_handle *to = &abi->mpi_op_sum;
    for (int i = 0; i < TP_COUNTOF(objects); i++)
        if (!(to[i] = dlsym(library, objects[i].name)))
            return tp_fail(TP_RuntimeError, "the library of MPI has no %s", objects[i].name);
    return 0;
}

static bool has_standard(void *library) {
    int (*version)(int *major, int *minor);
    int major = 0, minor = 0;
    *(void **)&version = dlsym(library, "MPI_Abi_get_version");
    return version && version(&major, &minor) == 0 && major == 1;
}

int tp_mpi_abi_of(void *library, const char *text, tp_mpi_abi *abi) {
    static const char *const of_mpich[] = {"MPICH", "MVAPICH", "Intel(R) MPI"};
    if (has_standard(library)) {
        *abi = (tp_mpi_abi){
            .in_place = (void *)1, .any_source = -1, .truncated = 15, .serialized = 2048, .sessions = true};
        return number(abi, true), 0;
    }
    if (dlsym(library, "ompi_mpi_comm_world")) {
        *abi =
            (tp_mpi_abi){.in_place = (void *)1, .any_source = -1, .truncated = 15, .serialized = 2, .launches = true};
        return find_symbols(library, abi);
    }
    for (int i = 0; i < TP_COUNTOF(of_mpich); i++)
        if (strstr(text, of_mpich[i])) {
            *abi = (tp_mpi_abi){
                .in_place = (void *)-1, .any_source = -2, .truncated = 14, .serialized = 2, .source_at = 2};
            return number(abi, false), 0;
        }
    return tp_fail(TP_RuntimeError, "%s: no binary interface of MPI that is known: the standard's, MPICH's, Open MPI's",
                   text);
}
