/* each.c: see each.h.
 *
 * Where no layer above the backend has anything to do for any tensor of the lists, the operator's kernel at the
 * backend's key is called place by place, without the layers in between, and many small tensors that are written are
 * shared out over the threads. Else each place is an ordinary call. */
#include "autograd/each.h"

#include "Functions.h"
#include "autograd/node.h"
#include "core/parallel.h"
#include "dispatch/entry.h"
#include "prim/transfer.h"

#include <stdlib.h>

#define MAX_ARGS 8

typedef struct {
    const tp_op *op;
    const char *called; /* op by its name, which stays */
    const tp_value *args;
    int nargs;
    int64_t places;
    tp_scalar *numbers; /* of a tensor that stands for a list of them; owned */
    tp_keyset ks;       /* of all tensors, as the call begins */
    tp_key key;         /* the backend's, whose kernel is called; Undefined: through all layers */
    int64_t done;       /* how many places one thread came to write */
} each_call;

/* ---- the lists ---- */

/* An empty list is one of tensors and one of numbers; where both are taken, PyTorch speaks of numbers. */
static bool may_be_numbers(const each_call *c, int i) {
    return i == 1 && c->args[i].tensors.size == 0 && (c->nargs < 3 || c->args[2].tag != TP_TENSORS);
}

static int count_places(each_call *c) {
    c->places = -1;
    for (int i = 0; i < c->nargs; i++) {
        if (c->args[i].tag != TP_TENSORS) continue;
        int64_t n = c->args[i].tensors.size;
        if (n == 0 && c->places < 0) return tp_fail(TP_RuntimeError, "Tensor list must have at least one tensor.");
        if (c->places > 0 && may_be_numbers(c, i))
            return tp_fail(TP_RuntimeError, "Tensor list must have same number of elements as scalar list.");
        if (c->places >= 0 && n != c->places)
            return tp_fail(TP_RuntimeError, "Tensor lists must have the same number of tensors, got %lld and %lld",
                           (long long)c->places, (long long)n);
        c->places = n;
    }
    for (int i = 0; i < c->nargs; i++)
        if (c->args[i].tag == TP_SCALARS && c->args[i].scalars.size != c->places)
            return tp_fail(TP_RuntimeError, "Tensor list must have same number of elements as scalar list.");
    return 0;
}

static bool stands_for_numbers(const each_call *c, int i) {
    return c->args[i].tag == TP_TENSOR && c->op->info->args[i].tag == TP_SCALAR;
}

static int check_numbers(const each_call *c, const tp_tensor *t) {
    char device[40];
    if (t->device.type != TP_DEVICE_CPU)
        return tp_fail(TP_RuntimeError, "Expected scalars to be on CPU, got %s instead.",
                       tp_device_print(t->device, device));
    if (t->ndim != 1)
        return tp_fail(TP_RuntimeError, "Expected packed scalar Tensor to be of dimension 1. Got %d instead.", t->ndim);
    if (!tp_is_contiguous(t)) return tp_fail(TP_RuntimeError, "Expected scalars to be contiguous.");
    if (t->numel != c->places)
        return tp_fail(TP_RuntimeError,
                       "Expected length of scalars to match input of length %lld but got %lld instead.",
                       (long long)c->places, (long long)t->numel);
    return 0;
}

static int read_numbers(each_call *c, tp_tensor *t) {
    if (check_numbers(c, t) < 0) return -1;
    c->numbers = malloc((size_t)c->places * sizeof *c->numbers);
    if (!c->numbers) return tp_fail(TP_MemoryError, "no memory for %lld numbers", (long long)c->places);
    for (int64_t i = 0; i < c->places; i++) {
        tp_autoref *one = tp_select_int(t, 0, i);
        if (!one || tp_read_number(one, &c->numbers[i]) < 0) return -1;
    }
    return 0;
}

/* A tensor that is no list goes to every place as one number. */
static int check_shared(const each_call *c) {
    for (int i = 0; i < c->nargs; i++) {
        const tp_tensor *t = c->args[i].tag == TP_TENSOR ? c->args[i].tensor : NULL;
        if (t && !stands_for_numbers(c, i) && t->ndim)
            return tp_fail(TP_RuntimeError,
                           "scalar tensor expected to be 0 dim but it has %d dimensions and %lld elements.", t->ndim,
                           (long long)t->numel);
    }
    return 0;
}

/* ---- one place ---- */

static void take_place(const each_call *c, int64_t at, tp_value *args) {
    for (int i = 0; i < c->nargs; i++) {
        const tp_value *v = &c->args[i];
        if (v->tag == TP_TENSORS) args[i] = (tp_value){.tag = TP_TENSOR, .tensor = v->tensors.data[at]};
        else if (v->tag == TP_SCALARS) args[i] = (tp_value){.tag = TP_SCALAR, .scalar = &v->scalars.data[at]};
        else if (stands_for_numbers(c, i)) args[i] = (tp_value){.tag = TP_SCALAR, .scalar = &c->numbers[at]};
        else args[i] = *v;
    }
}

static int call_place(const each_call *c, int64_t at, tp_value *result) {
    tp_value args[MAX_ARGS];
    take_place(c, at, args);
    if (c->key == TP_KEY_Undefined) return tp_call_boxed(c->op, args, result);
    return tp_call_kernel_at(c->op, c->key, c->ks, args, result);
}

/* ---- the direct way ---- */

static bool wants_gradient(const each_call *c) {
    for (int i = 0; i < c->nargs; i++) {
        const tp_value *v = &c->args[i];
        if (v->tag == TP_TENSOR && v->tensor && tp_requires_grad(v->tensor)) return true;
        if (v->tag != TP_TENSORS) continue;
        for (int64_t k = 0; k < v->tensors.size; k++) {
            const tp_tensor *t = v->tensors.data[k];
            if (tp_requires_grad(t) || (t->base && tp_requires_grad(t->base))) return true;
        }
    }
    return false;
}

/* The only backend that the tensors are of, if a call would pass by all that is above it. */
static tp_key direct_key(const each_call *c) {
    const tp_keyset passed = TP_KEY_RANGE(AutogradOther, AutogradPrivateUse3) | TP_BIT(ADInplaceOrView);
    tp_keyset below = c->ks & c->op->live & ~passed;
    if (!(below & TP_BACKEND_KEYS) || below & (below - 1) || tp_tls.observe) return TP_KEY_Undefined;
    if (tp_grad_enabled() && wants_gradient(c)) return TP_KEY_Undefined;
    return tp_highest_key(below);
}

#define LAYERS_OFF (TP_AUTOGRAD_KEYS | TP_BIT(ADInplaceOrView))

static void call_range(int64_t begin, int64_t end, void *context) {
    each_call *c = context;
    tp_exclude_guard guard = tp_exclude(LAYERS_OFF);
    for (int64_t i = begin; i < end; i++) {
        tp_value result = {.tag = TP_NONE};
        if (call_place(c, i, &result) < 0) return;
        if (end - begin == c->places) c->done = i + 1;
    }
}

/* All tensors are asked before the first one is written. */
static int may_write_all(const each_call *c) {
    const tp_tensors list = c->args[0].tensors;
    bool asked = c->ks & TP_AUTOGRAD_KEYS;
    for (int64_t i = 0; i < list.size; i++) {
        if (tp_may_write(list.data[i], c->called) < 0) return -1;
        if (asked && tp_check_inplace(list.data[i], c->called, false) < 0) return -1;
    }
    return 0;
}

/* How many places a thread takes: all of them unless there is work for two, spread over many. */
static int64_t grain_of(const each_call *c) {
    const tp_tensors list = c->args[0].tensors;
    int64_t all = 0, largest = 0;
    for (int64_t i = 0; i < list.size; i++) {
        all += list.data[i]->numel;
        largest = list.data[i]->numel > largest ? list.data[i]->numel : largest;
    }
    if (c->key != TP_KEY_CPU || all < 2 * TP_GRAIN || largest > all / 8) return c->places;
    return TP_GRAIN * c->places / all + 1;
}

static int write_directly(each_call *c) {
    const tp_tensors list = c->args[0].tensors;
    int64_t grain = grain_of(c);
    int status = tp_parallel_for(c->places, grain, call_range, c);
    /* Nobody knows how far each of several threads came. */
    int64_t written = status == 0 || grain < c->places ? c->places : c->done;
    for (int64_t i = 0; i < written; i++) tp_note_write(list.data[i], c->called);
    return status;
}

/* ---- the entries ---- */

static int start(each_call *c, const char *called, const tp_value *args, int nargs) {
    *c = (each_call){.op = tp_find_op_qualified(called), .called = called, .args = args, .nargs = nargs};
    if (count_places(c) < 0 || check_shared(c) < 0) return -1;
    for (int i = 0; i < nargs; i++)
        if (stands_for_numbers(c, i) && read_numbers(c, args[i].tensor) < 0) return -1;
    c->ks = tp_effective_keys(tp_keys_of_values(args, nargs));
    c->key = direct_key(c);
    if (c->key != TP_KEY_Undefined) c->ks &= TP_BELOW(ADInplaceOrView);
    return 0;
}

static int fill(const each_call *c, tp_tensor_seq *out) {
    tp_exclude_guard guard = tp_exclude(c->key == TP_KEY_Undefined ? 0 : LAYERS_OFF);
    for (int64_t i = 0; i < c->places; i++) {
        tp_value result = {.tag = TP_NONE};
        if (call_place(c, i, &result) < 0) return -1;
        out->items[i] = result.tensor;
    }
    return 0;
}

tp_tensor_seq *tp_each_new(const char *called, const tp_value *args, int nargs) {
    each_call c;
    int status = start(&c, called, args, nargs);
    tp_tensor_seq *out = status == 0 ? tp_tensor_seq_new(c.places) : NULL;
    if (out && fill(&c, out) < 0) {
        tp_tensor_seq_free(out);
        out = NULL;
    }
    free(c.numbers);
    return out;
}

int tp_each_into(const char *called, const tp_value *args, int nargs) {
    each_call c;
    int status = start(&c, called, args, nargs);
    if (status == 0) status = may_write_all(&c);
    if (status == 0 && c.key != TP_KEY_Undefined) {
        status = write_directly(&c);
    } else {
        for (int64_t i = 0; status == 0 && i < c.places; i++) {
            tp_value result = {.tag = TP_NONE};
            status = call_place(&c, i, &result);
        }
    }
    free(c.numbers);
    return status;
}
