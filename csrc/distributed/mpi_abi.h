/* mpi_abi.h: what differs between libraries of MPI: the values of their objects, a few numbers, which functions there
 * are.
 *
 * Three binary interfaces are known. That of the standard (MPI 5.0) and MPICH's own (MPICH, Intel's, Cray's, MVAPICH)
 * have numbers for handles, fixed for good; in the latter a handle is an int. Open MPI's handles are addresses of its
 * symbols. A handle is kept as a pointer here: an int comes to lie in its lower half, and a callee reads no more than
 * that. In the same way a count of 64 bits is given to a function that takes an int, once it is known to fit. */
#pragma once

#include "distributed/engine.h"

typedef struct mpi_object *tp_mpi_handle;

/* Name in Open MPI, number in the standard, number in MPICH. */
#define TP_FORALL_MPI_OBJECTS(X)         \
    X(mpi_op_sum, 0x21, 0x58000003)      \
    X(mpi_op_prod, 0x24, 0x58000004)     \
    X(mpi_op_min, 0x22, 0x58000002)      \
    X(mpi_op_max, 0x23, 0x58000001)      \
    X(mpi_op_band, 0x28, 0x58000006)     \
    X(mpi_op_bor, 0x29, 0x58000008)      \
    X(mpi_op_bxor, 0x2a, 0x5800000a)     \
    X(mpi_op_land, 0x30, 0x58000005)     \
    X(mpi_op_lor, 0x31, 0x58000007)      \
    X(mpi_op_lxor, 0x32, 0x58000009)     \
    X(mpi_byte, 0x247, 0x4c00010d)       \
    X(mpi_int8_t, 0x240, 0x4c000137)     \
    X(mpi_uint8_t, 0x244, 0x4c00013b)    \
    X(mpi_int16_t, 0x248, 0x4c000238)    \
    X(mpi_uint16_t, 0x249, 0x4c00023c)   \
    X(mpi_int32_t, 0x250, 0x4c000439)    \
    X(mpi_uint32_t, 0x251, 0x4c00043d)   \
    X(mpi_int64_t, 0x258, 0x4c00083a)    \
    X(mpi_uint64_t, 0x259, 0x4c00083e)   \
    X(mpi_float, 0x210, 0x4c00040a)      \
    X(mpi_double, 0x214, 0x4c00080b)     \
    X(mpi_comm_world, 0x101, 0x44000000) \
    X(mpi_errors_return, 0x143, 0x54000001)

typedef struct {
#define TP_MPI_OBJECT(name, standard, mpich) tp_mpi_handle name;
    TP_FORALL_MPI_OBJECTS(TP_MPI_OBJECT)
#undef TP_MPI_OBJECT
    void *in_place;
    int any_source, truncated, serialized;
    int source_at; /* the word of a status that says where a message came from */
    bool sessions; /* they end and begin again */
    bool launches; /* only its own launcher can start it */
} tp_mpi_abi;

/* Which interface an open library has; -1 with the error set where it is none of these. `text` is its version. */
int tp_mpi_abi_of(void *library, const char *text, tp_mpi_abi *abi);
