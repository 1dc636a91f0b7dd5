/* meta.h: what a structured kernel's meta function speaks to.
 *
 * `<op>_meta(m, args...)` checks the arguments and declares each output with tp_meta_output; the generated wrapper then
 * calls the backend's half with the outputs. The same function serves the functional, in-place and out= variants and
 * the Meta device:
 *   - NEW: the output is allocated (without memory on Meta);
 *   - INPLACE and OUT: the given tensor is checked, or resized (OUT); where the kernel could not write it directly
 * (other dtype, layout asked for, memory shared with an input) out[i] is a temporary, and tp_meta_commit copies it
 * over. */
#pragma once

#if defined(TP_FOLDER_core) || defined(TP_FOLDER_dispatch) || defined(TP_FOLDER_iter)
#error "native kernels stand below the dispatcher, and nothing below them"
#endif

#include "core/tensor.h"
#include "dispatch/op.h"
#include "native/common/out.h"

#define TP_MAX_OUTPUTS 5

typedef struct tp_meta {
    const tp_op *op;
    tp_variant variant;
    int noutputs, ninputs;
    tp_tensor *given[TP_MAX_OUTPUTS]; /* borrowed: self or out= */
    tp_tensor *out[TP_MAX_OUTPUTS];   /* what the kernel writes; new references of the NEW variant and of temporaries */
    tp_tensor *const *inputs;
} tp_meta;

/* Declares output i. `strides` TP_NO_INTS: contiguous for a new tensor, any layout for a given one; with strides, the
 * kernel is handed exactly that layout. */
int tp_meta_output(tp_meta *m, int i, tp_ints sizes, tp_ints strides, tp_dtype dtype, tp_device device);

/* ---- for generated wrappers ---- */
void tp_meta_set_inputs(tp_meta *m, tp_tensor *const *inputs, int64_t n);
int tp_meta_commit(tp_meta *m);
void tp_meta_discard(tp_meta *m);
