/* entry.h: how a call's key set is gathered from its arguments. Included by generated entries only. */
#pragma once

#include "dispatch/op.h"

TP_INLINE tp_keyset tp_keys_of_optional(const tp_tensor *t) { return t ? t->keys : 0; }
TP_INLINE tp_keyset tp_keys_of_tensors(tp_tensors list) {
    tp_keyset ks = 0;
    for (int64_t i = 0; i < list.size; i++) ks |= tp_keys_of_optional(list.data[i]);
    return ks;
}
/* tp_refuse_layout of a list that has a tensor of such a layout. */
TP_INLINE int tp_refuse_layouts(const tp_op *op, tp_tensors list, tp_keyset layouts) {
    int64_t i = 0;
    while (!list.data[i] || !(list.data[i]->keys & layouts)) i++;
    return tp_refuse_layout(op, list.data[i]);
}
/* A factory has no tensors: BackendSelect looks at its device argument and adds that device's backend. */
#define TP_FACTORY_KEYS TP_BIT(BackendSelect)
TP_INLINE tp_keyset tp_keys_selected(tp_device d) {
    return (tp_keyset)1 << tp_backend_key(d.type < 0 ? tp_default_device().type : d.type);
}
