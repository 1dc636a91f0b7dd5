/* autocast.h: automatic mixed precision: its state per thread, and casts that are remembered.
 *
 * Autocast is on for a device type while that type's Autocast key is not excluded. The cast of a leaf that requires
 * grad (a weight) is kept until the outermost autocast region ends, so that a weight used ten times is cast once; the
 * cache knows the leaf's version and whether gradients were recorded. */
#pragma once

#if defined(TP_FOLDER_core) || defined(TP_FOLDER_dispatch) || defined(TP_FOLDER_iter) || defined(TP_FOLDER_native) || \
    defined(TP_FOLDER_cpu) || defined(TP_FOLDER_autograd)
#error "autocast stands above autograd"
#endif

#include "dispatch/key.h"

bool tp_autocast_enabled(int device_type);
void tp_autocast_set_enabled(int device_type, bool enabled);
tp_dtype tp_autocast_dtype(int device_type);
int tp_autocast_set_dtype(int device_type, tp_dtype dtype); /* RuntimeError unless float16, bfloat16 or float32 */
bool tp_autocast_cache_enabled(void);
void tp_autocast_set_cache_enabled(bool enabled);
/* Depth of nested regions on this thread; the cache is cleared when it falls to zero. Both return the new depth. */
int tp_autocast_enter(void);
int tp_autocast_leave(void);
void tp_autocast_clear_cache(void);
/* Whether the casts of this thread's leaves are kept beyond the calls that make them. */
bool tp_autocast_remembers(void);

/* ---- what the generated layer calls ---- */
/* The device type that a call's key set stands for. */
int tp_autocast_device(tp_keyset ks);
/* Whether a tensor is cast there: floating, but not float64. */
bool tp_autocast_takes(const tp_tensor *t, int device_type);
/* t as `to` if it is a floating tensor (not float64) of that device type, else t itself. New; NULL for NULL, or with
 * the error set. */
tp_tensor *tp_cached_cast(tp_tensor *t, tp_dtype to, int device_type);
tp_tensor_seq *tp_cached_cast_list(tp_tensors list, tp_dtype to, int device_type);
/* The wider of `to` and t's dtype, where t is eligible. */
tp_dtype tp_autocast_promote(tp_dtype to, const tp_tensor *t, int device_type);
tp_dtype tp_autocast_promote_list(tp_dtype to, tp_tensors list, int device_type);
