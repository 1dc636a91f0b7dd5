/* chain.h: calls of arithmetic that follow each other on one value, which stays in registers: ((a + b) * a - b) * c
 * reads a, b and c and writes the result, as one loop would.
 *
 * A chain is a list of links, each of which changes the value that the one before it made. Values are rounded after
 * each link, as memory would round them. */
#pragma once

#include "prim/pointwise.h"

/* X(name): what a link makes of the value x, and of an element y of memory or a number. */
#define TP_FORALL_LINKS_OF_TWO(X)       \
    X(SET)           /* y: the first */ \
    X(ADD)           /* x + y */        \
    X(SUBTRACT)      /* x - y */        \
    X(SUBTRACT_FROM) /* y - x */        \
    X(MULTIPLY)      /* x * y */        \
    X(DIVIDE)        /* x / y */        \
    X(DIVIDE_INTO)   /* y / x */
#define TP_FORALL_LINKS_OF_ONE(X) \
    X(NEGATE) /* -x */            \
    X(SQUARE) /* x * x */         \
    X(TWICE)  /* x + x */         \
    X(SQRT)
enum {
#define TP_LINK_ENUM(name) TP_LINK_##name, TP_LINK_##name##_ONE, /* _ONE: y is one element for all */
    TP_FORALL_LINKS_OF_TWO(TP_LINK_ENUM)
#undef TP_LINK_ENUM
#define TP_LINK_ENUM(name) TP_LINK_##name,
        TP_FORALL_LINKS_OF_ONE(TP_LINK_ENUM)
#undef TP_LINK_ENUM
            TP_LINK_STORE, /* x goes to memory, and stays */
    TP_LINK_END
};

/* A link before it is known where y is. */
typedef struct {
    uint8_t op;    /* TP_LINK_...; of those of two the one without _ONE */
    int8_t input;  /* y is this input of the call, */
    double number; /* or where that is TP_LINK_NUMBER, this */
} tp_link_of_call;
#define TP_LINK_NUMBER (-1)
#define TP_LINKS_OF_CALL 4

/* What a call computes, as links: of its inputs those in `carried` (a bit for each) are the value of the link before;
 * if none is, the first link sets it. How many they are; 0: the call is no chain of links, or too long a one. */
int tp_links_of(const tp_map_call *call, tp_dtype compute, unsigned carried, tp_link_of_call links[TP_LINKS_OF_CALL]);

/* A link of a block. */
typedef struct {
    int64_t op; /* TP_LINK_... */
    char *data; /* the block's first element of y, or where x goes */
} tp_link;

typedef struct {
    /* n elements; the links' last one is TP_LINK_END. */
    void (*run_f32)(const tp_link *links, int64_t n);
    void (*run_f64)(const tp_link *links, int64_t n);
} tp_chain_kernels;
