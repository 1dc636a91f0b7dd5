/* random_serial.c: draws from a serial generator, whose numbers go to the elements in the order of memory. */
#include "NativeFunctions.h"
#include "Primitives.h"
#include "native/random/random.h"
#include "prim/transfer.h"

/* Where a draw goes: the elements one after another; `made` is `turned` itself or what is copied to it. */
typedef struct {
    tp_tensor *turned, *made; /* owned */
} target;

static void free_target(target *t) {
    tp_release(t->turned);
    tp_release(t->made);
}

/* The tensor with its dimensions from the longest stride to the shortest; new. */
static tp_tensor *in_memory_order(tp_tensor *self) {
    int64_t dims[TP_MAX_DIMS];
    for (int i = 0; i < self->ndim; i++) {
        int at = i;
        for (; at > 0 && self->strides[dims[at - 1]] < self->strides[i]; at--) dims[at] = dims[at - 1];
        dims[at] = i;
    }
    return tp_permute(self, (tp_ints){dims, self->ndim});
}

static int start(target *t, tp_tensor *self) {
    tp_autoref *reals = tp_is_complex(self) ? tp_view_as_real(self) : tp_retain(self);
    t->turned = reals ? in_memory_order(reals) : NULL;
    if (!t->turned) return -1;
    t->made = tp_is_contiguous(t->turned) ? tp_retain(t->turned)
                                          : tp_new_empty(tp_sizes(t->turned), (tp_dtype)t->turned->dtype, TP_CPU);
    return t->made ? 0 : -1;
}
static int finish(const target *t) { return t->made == t->turned ? 0 : tp_copy_data(t->turned, t->made); }

int tp_draw_serial(tp_tensor *state, tp_serial_kind kind, double a, double b, tp_tensor *self) {
    TP_CLEANUP(free_target) target t = {0};
    if (start(&t, self) < 0) return -1;
    if (kind == TP_SERIAL_NORMAL && t.made->numel >= 16 && tp_is_contiguous(self)) kind = TP_SERIAL_NORMAL_FILL;
    return tp_prim_serial_fill(kind, a, b, state, t.made) < 0 ? -1 : finish(&t);
}

#define TWO_WORDS (UINT64_C(1) << 28) /* a range from which on a number takes two */

int tp_draw_serial_integers(tp_tensor *state, int64_t base, uint64_t range, bool all, tp_tensor *self) {
    TP_CLEANUP(free_target) target t = {0};
    bool two = range == 0 || (range >= TWO_WORDS && !(all && tp_itemsize((tp_dtype)self->dtype) <= 4));
    if (start(&t, self) < 0) return -1;
    return tp_prim_serial_integers(base, (int64_t)range, two, state, t.made) < 0 ? -1 : finish(&t);
}
