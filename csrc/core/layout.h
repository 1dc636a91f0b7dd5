/* layout.h: tensors that keep their elements in another way than as strided memory.
 *
 * Note [Layouts]
 * A layout is described once, in the table `tp_layouts`: its name, its key, and the dense tensors that are its parts.
 * A tensor of it has sizes, a dtype and a device as any other, and a storage without memory whose context holds the
 * parts. Aliases of the tensor (`detach`) share the storage, so a write that gives it other parts is seen by all.
 *   - Its key set has the layout's bit and no backend's: no kernel that computes on memory can be reached with it, and
 *     whoever reads memory by hand asks tp_has_memory (dispatch/key.h).
 *   - It also has the bit Layout, above autograd. There stand the operators of layouts that are made of operators on
 *     parts (`layouts:` of an entry): autograd sees what they are made of, so only making a tensor of values, and
 *     taking the values of one, have derivatives of their own. Operators without such a kernel go on to autograd, and
 *     to the layout's key, where the kernels stand that work on the parts themselves.
 * A quantized tensor is another kind: its part of integers has the tensor's sizes and strides, so that views of it are
 * views of that part, and to Python it is strided. It has no gradient, and not the bit Layout: its kernels stand at its
 * own key, below autograd (`quantized:` of an entry). Its dtype is one that no memory has (TP_FORALL_QUANTIZED_DTYPES).
 * A nested tensor is a third kind: several tensors of one dtype, whose sizes differ. Its values are all of theirs, one
 * after the other along the dimension that differs (`ragged`), its offsets where each begins; `lengths` say how long
 * each is where that is not up to the next, and `shapes` what sizes the pieces have where more than one dimension
 * differs. It has the bit LayoutNested, above autograd as Layout is (Note [Nested kernels] in native/layout/nested.h).
 * The size that it shows in C of the dimension that differs is the largest.
 * Parts that are indices are bytes that nobody trusts: they are checked when a tensor is made, and again by each dense
 * operator that reads with them. */
#pragma once

#include "core/key_list.h"
#include "core/tensor.h"

#define TP_MAX_PARTS 4
#define TP_MAX_FACTS 5

typedef struct {
    const char *name;   /* "sparse_coo" */
    const char *spoken; /* as error messages of PyTorch call it: "Sparse" */
    tp_key key;
    uint8_t count;  /* of parts */
    uint8_t values; /* the part that has the elements, and the tensor's dtype and device */
    bool quantized; /* that part has the tensor's sizes and strides, and its dtype is a fact */
    const char *parts[TP_MAX_PARTS];
} tp_layout_info;

/* By tp_layout; those without a key have no tensors. */
extern const tp_layout_info tp_layouts[TP_NUM_LAYOUTS];

/* What a tensor of a layout holds. It does not change once it is made: a tensor that is written gets other parts. */
typedef struct {
    _Atomic int32_t refcount;
    tp_layout layout;
    tp_tensor *part[TP_MAX_PARTS];
    int64_t fact[TP_MAX_FACTS]; /* small numbers that the parts do not say (native/layout/) */
} tp_parts;

/* The first of the facts of both layouts of quantized tensors: the tensor's dtype. */
enum { TP_FACT_DTYPE };

/* With references of its own to the parts; NULL after a failure. */
tp_parts *tp_parts_new(tp_layout layout, tp_tensor *const *parts, const int64_t *facts);
void tp_parts_release(tp_parts *p);
TP_INLINE void tp_parts_release_scope(tp_parts **p) { tp_parts_release(*p); }
#define tp_autoparts TP_CLEANUP(tp_parts_release_scope) tp_parts

/* A new tensor of the sizes, which are those of the integers where it is quantized; `parts` is taken over, also after a
 * failure. */
tp_tensor *tp_new_of_parts_steal(tp_parts *parts, tp_ints sizes);
/* New; NULL and the error set for a tensor of strided memory. */
tp_parts *tp_parts_of(const tp_tensor *t);
/* Gives t, and all of its aliases, other parts of its layout; `parts` is taken over, also after a failure. The caller
 * holds the host lock. */
int tp_put_parts_steal(tp_tensor *t, tp_parts *parts);

TP_INLINE bool tp_is_quantized(const tp_tensor *t) { return t->keys & TP_BIT(Quantized); }
TP_INLINE bool tp_is_nested(const tp_tensor *t) { return t->keys & TP_BIT(NestedTensor); }
/* The part of integers of a quantized tensor, new; t itself where it is none. */
tp_tensor *tp_memory_of(tp_tensor *t);

/* TP_STRIDED for a tensor of strided memory. */
tp_layout tp_layout_of(const tp_tensor *t);
