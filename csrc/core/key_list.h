/* key_list.h: the dispatch keys by priority, and sets of them: bit k is key k. Outside of the tree their numbers are
 * TENSORPY_KEY_... (tensorpy/types.h, which codegen/keys.py reads; outside/api.c compares the two), and what is below
 * one is asked of tensorpy, so that a key may be put in between. */
#pragma once

#include "tensorpy/types.h"

/* Dense backends first: their order is that of TP_FORALL_DEVICES, and the other per-backend groups repeat it. */
#define TP_FORALL_BACKENDS(X, prefix) \
    X(prefix##CPU)                    \
    X(prefix##Meta)                   \
    X(prefix##OpenCL)                 \
    X(prefix##PrivateUse1)            \
    X(prefix##PrivateUse2)            \
    X(prefix##PrivateUse3)

/* The order of the dispatch keys: X(name), from low to high priority. */
#define TP_FORALL_KEYS(X)           \
    X(Undefined)                    \
    TP_FORALL_BACKENDS(X, )         \
    X(Mkldnn)                       \
    X(Sparse)                       \
    X(SparseCsr)                    \
    X(Quantized)                    \
    X(NestedTensor)                 \
    X(ZeroTensor)                   \
    X(Deferred)                     \
    X(Python)                       \
    X(BackendSelect)                \
    X(Functionalize)                \
    X(Conjugate)                    \
    X(Negative)                     \
    X(ADInplaceOrView)              \
    X(AutogradOther)                \
    TP_FORALL_BACKENDS(X, Autograd) \
    X(Layout)                       \
    X(LayoutNested)                 \
    X(Profiler)                     \
    X(Tracer)                       \
    X(ForwardAD)                    \
    TP_FORALL_BACKENDS(X, Autocast) \
    X(Batched)                      \
    X(PythonMode)                   \
    X(Trace)

/* TP_KEY_CPU and its kin. A key's number is its priority, and its bit in a set. */
typedef enum {
#define TP_KEY_ENUM(name) TP_KEY_##name,
    TP_FORALL_KEYS(TP_KEY_ENUM)
#undef TP_KEY_ENUM
        TP_NUM_KEYS
} tp_key;

/* The set of one key: TP_BIT(AutogradCPU). */
#define TP_BIT(key) ((tp_keyset)1 << TP_KEY_##key)
/* What a tensor of strided memory has and one of a layout has not: Note [Layouts] in layout.h. */
#define TP_DENSE_KEYS (TP_BIT(Mkldnn) - 1)
/* The keys below one, which a layer's redispatch is left with: `ks & TP_BELOW(Batched)`. The trace bit stays (Note
 * [Trace bit] in dispatch/key.h). */
#define TP_BELOW(key) ((TP_BIT(key) - 1) | TP_BIT(Trace))
/* Below all autocast keys: what an autocast kernel passes on. */
#define TP_BELOW_AUTOCAST TP_BELOW(AutocastCPU)
/* Below all autograd keys: what an autograd kernel passes on. */
#define TP_BELOW_AUTOGRAD TP_BELOW(AutogradOther)
/* Below the layer of views and versions. */
#define TP_BELOW_ADINPLACEORVIEW TP_BELOW(ADInplaceOrView)
