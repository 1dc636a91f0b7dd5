/* fault.h: what is wrong with values that a primitive is given: an index out of range, a negative probability.
 *
 * Whoever calls the primitive knows the operator and the error; whoever finds the value may be a device that looks
 * later. So each kind of fault has a number, which is passed on: it is given once and never taken back. */
#pragma once

#include "core/error.h"

#include <stdatomic.h>

typedef struct {
    tp_error_class cls;
    const char *op;      /* the operator's name */
    const char *message; /* all that is said after it; NULL: an index, with its dimension and size */
} tp_fault;

/* The number of a fault, from 0 on; both texts live as long as the process. */
int tp_fault_id(tp_error_class cls, const char *op, const char *message);
const tp_fault *tp_fault_at(int id); /* NULL for a number that was not given */
/* Sets the error; always -1. `where` ends the message: "", or where it was found. */
int tp_raise_fault(int id, int64_t value, int64_t dim, int64_t size, const char *where) TP_COLD;

/* The error of a primitive that does not take complex32 or the 8-bit floats, which one of the tensors has. */
struct tp_tensor;
void tp_refuse_stored(const char *primitive, struct tp_tensor *const *tensors, int n) TP_COLD;

/* The number of a fault, looked up once for each place in the code. */
#define TP_FAULT(cls, op, message)                                            \
    __extension__({                                                           \
        static _Atomic int known_; /* the number plus one */                  \
        if (tp_unlikely(!known_)) known_ = tp_fault_id(cls, op, message) + 1; \
        known_ - 1;                                                           \
    })
#define TP_INDEX_FAULT(cls, op) TP_FAULT(cls, op, NULL)
#define TP_TRUSTED (-1) /* in place of a number: the values are the library's own */
