/* entry.h: how a call's key set is gathered from its arguments. Included by generated entries only. */
#pragma once

#include "dispatch/key.h"

TP_INLINE tp_keyset tp_keys_of_optional(const tp_tensor *t) { return t ? t->keys : 0; }
TP_INLINE tp_keyset tp_keys_of_tensors(tp_tensors list) {
    tp_keyset ks = 0;
    for (int64_t i = 0; i < list.size; i++) ks |= tp_keys_of_optional(list.data[i]);
    return ks;
}
/* A factory has no tensors: BackendSelect looks at its device argument and adds that device's backend. */
#define TP_FACTORY_KEYS TP_BIT(BackendSelect)
TP_INLINE tp_keyset tp_keys_selected(tp_device d) {
    return (tp_keyset)1 << tp_backend_key(d.type < 0 ? tp_default_device().type : d.type);
}
