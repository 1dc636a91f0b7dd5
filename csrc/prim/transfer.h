/* transfer.h: copies and fills of tensors on any device, in native/ and in kernels; no layer sees them.
 *
 * On one device they are the primitives copy and fill. Between devices the bytes that a tensor spans travel by the
 * device's memory functions, and gaps are closed and opened by its primitives; a backend that has not these is served
 * by the host. */
#pragma once

#include "core/scalar.h"
#include "core/tensor.h"
#include "core/tls.h"

/* Whether a device has a kernel of its own for a primitive (TP_PRIM_...): an optional one is asked for before. */
bool tp_has_primitive(int primitive, tp_device d);

/* Any strides and dtypes; src is broadcast to dst; they do not overlap. */
int tp_copy_data(tp_tensor *dst, const tp_tensor *src);
/* The same without the primitives of other devices than the host, so that the host may compute these themselves. */
int tp_copy_through_host(tp_tensor *dst, const tp_tensor *src);
/* tp_settle, by who is about to decide something by a tensor's elements: a compiled function is told, since it would
 * decide otherwise by others (csrc/plan/tape.h). */
TP_INLINE int tp_settle_to_read(tp_storage *s) {
    return tp_likely(!tp_tls.region) ? tp_settle(s) : tp_pending_hooks.settle(s);
}
/* The program is about to decide something by the value of t: -1 and the error set in a compiled function that has to
 * run as a whole, and has noted how t is computed. */
TP_INLINE int tp_decides(const tp_tensor *t) {
    return tp_likely(!tp_tls.region) ? 0 : tp_pending_hooks.decides(t->storage);
}
/* The element of a tensor that has one, of any device but Meta. */
int tp_read_number(const tp_tensor *t, tp_scalar *number);
/* Every element becomes the value, converted as tp_scalar_store does. */
int tp_fill_data(tp_tensor *t, const tp_scalar *value);
