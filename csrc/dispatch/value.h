/* value.h: the boxed value: any argument or result of any operator, with its type.
 *
 * The boxed calling convention serves custom operators, fallbacks, tracing and profiling. A value inside an argument
 * array is borrowed; a result value is new and released with tp_value_release. */
#pragma once

#include "core/list.h"
#include "core/tensor.h"

struct tp_generator;

typedef enum {
    TP_NONE,
    TP_TENSOR,     /* .tensor; also an optional one, then NONE stands for absent */
    TP_TENSORS,    /* .tensors (argument) */
    TP_TENSOR_SEQ, /* .seq (result) */
    TP_SCALAR,     /* .scalar (argument) */
    TP_NUMBER,     /* .number (result: the number itself) */
    TP_INT,        /* .i */
    TP_FLOAT,      /* .f */
    TP_BOOL_,      /* .b */
    TP_STR,        /* .str */
    TP_INTS_,      /* .ints */
    TP_FLOATS,     /* .floats */
    TP_BOOLS,      /* .bools */
    TP_SCALARS,    /* .scalars */
    TP_DTYPE,      /* .i, a tp_dtype; likewise the next three */
    TP_LAYOUT,
    TP_MEMORY_FORMAT,
    TP_DEVICE,    /* .device */
    TP_GENERATOR, /* .generator */
    TP_STORAGE,   /* .storage */
} tp_tag;

typedef struct tp_value {
    tp_tag tag;
    union {
        struct tp_tensor *tensor;
        tp_tensors tensors;
        tp_tensor_seq *seq;
        const tp_scalar *scalar;
        tp_scalar number;
        int64_t i;
        tp_dtype dtype; /* while a result is being written; read as `i` */
        double f;
        bool b;
        const char *str;
        tp_ints ints;
        tp_floats floats;
        tp_bools bools;
        tp_scalars scalars;
        tp_device device;
        struct tp_generator *generator;
        tp_storage *storage;
    };
} tp_value;

void tp_value_release(tp_value *v);
