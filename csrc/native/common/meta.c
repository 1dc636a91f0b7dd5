/* meta.c: outputs of structured kernels: made, or checked and where needed replaced by a temporary.
 *
 * Invariant: out[i] is owned by the tp_meta exactly if it is not given[i]. A kernel of this kind is free to read its
 * inputs while it writes, so an output that shares memory with an input is always a temporary, even where they are one
 * tensor. */
#include "native/common/meta.h"

#include "Functions.h"
#include "dispatch/key.h"
#include "iter/iter.h"

#define LAYERS (TP_AUTOCAST_KEYS | TP_AUTOGRAD_KEYS | TP_BIT(ADInplaceOrView))

static tp_tensor *make(tp_ints sizes, tp_ints strides, tp_dtype dtype, tp_device device) {
    return strides.size < 0 ? tp_new_empty(sizes, dtype, device) : tp_new_empty_strided(sizes, strides, dtype, device);
}

static bool has_sizes(const tp_tensor *t, tp_ints sizes) {
    if (t->ndim != sizes.size) return false;
    for (int i = 0; i < t->ndim; i++)
        if (t->sizes[i] != sizes.data[i]) return false;
    return true;
}

static bool has_strides(const tp_tensor *t, tp_ints strides) {
    for (int64_t i = 0; i < strides.size; i++)
        if (t->sizes[i] > 1 && t->strides[i] != strides.data[i]) return false;
    return true;
}

static int fail_shape(const tp_tensor *given, tp_ints sizes) {
    tp_autotext text = {0};
    tp_text_ints(&text, tp_sizes(given));
    tp_text_add(&text, " doesn't match the broadcast shape ");
    tp_text_ints(&text, sizes);
    return tp_fail(TP_RuntimeError, "output with shape %s", text.text ? text.text : "");
}

static int check_given(const tp_meta *m, const tp_tensor *given, tp_ints sizes, tp_dtype dtype, tp_device device) {
    if (tp_check_given(given, m->variant, dtype, device) < 0) return -1;
    if (m->variant == TP_VARIANT_INPLACE && !has_sizes(given, sizes)) return fail_shape(given, sizes);
    return tp_check_internal_overlap(given);
}

/* 1 if it does; -1 and the error set if an out= does so in part. */
static int shares_memory(const tp_meta *m, const tp_tensor *given) {
    int shared = 0;
    for (int i = 0; i < m->ninputs; i++) {
        tp_overlap how = m->inputs[i] ? tp_overlap_of(given, m->inputs[i]) : TP_OVERLAP_NONE;
        if (how == TP_OVERLAP_PARTIAL && m->variant != TP_VARIANT_INPLACE)
            return tp_check_no_overlap(given, m->inputs[i]);
        shared |= how != TP_OVERLAP_NONE;
    }
    return shared;
}

int tp_meta_output(tp_meta *m, int i, tp_ints sizes, tp_ints strides, tp_dtype dtype, tp_device device) {
    tp_tensor *given = m->given[i];
    if (m->variant == TP_VARIANT_NEW || !given) {
        m->out[i] = make(sizes, strides, dtype, device);
        return m->out[i] ? 0 : -1;
    }
    if (check_given(m, given, sizes, dtype, device) < 0) return -1;
    int shared = shares_memory(m, given); /* asked before resizing, which would move the bytes elsewhere */
    if (shared < 0) return -1;
    /* One of several is resized when all of them are known to fit, so that none is changed for nothing, and one that
     * shares memory with an input when that has been read. */
    bool later = (m->noutputs > 1 || shared) && !has_sizes(given, sizes);
    if (!later && !has_sizes(given, sizes) && tp_resize_out(given, sizes, strides) < 0) return -1;
    bool direct = !later && (tp_dtype)given->dtype == dtype && has_strides(given, strides) && !shared;
    m->out[i] = direct ? given : make(sizes, strides, dtype, device);
    return m->out[i] ? 0 : -1;
}

/* ---- for generated wrappers ---- */

void tp_meta_set_inputs(tp_meta *m, tp_tensor *const *inputs, int64_t n) {
    m->inputs = inputs;
    m->ninputs = (int)n;
}

int tp_meta_commit(tp_meta *m) {
    tp_exclude_guard guard = tp_exclude(LAYERS);
    int status = 0;
    for (int i = 0; i < m->noutputs && status == 0; i++) {
        if (!m->out[i] || m->out[i] == m->given[i]) continue;
        tp_ints sizes = tp_sizes(m->out[i]);
        if (!has_sizes(m->given[i], sizes)) status = tp_resize_out(m->given[i], sizes, TP_NO_INTS);
        if (status == 0) status = tp_copy_(m->given[i], m->out[i], false);
    }
    tp_meta_discard(m);
    return status;
}

void tp_meta_discard(tp_meta *m) {
    for (int i = 0; i < m->noutputs; i++) {
        if (m->out[i] != m->given[i]) tp_release(m->out[i]);
        m->out[i] = NULL;
    }
}
