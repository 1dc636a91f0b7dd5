/* key.c: names of dispatch keys, and the key sets of devices. */
#include "dispatch/key.h"

#include <string.h>

static const char *const key_names[TP_NUM_KEYS] = {
#define TP_KEY_NAME(name) #name,
    TP_FORALL_KEYS(TP_KEY_NAME)
#undef TP_KEY_NAME
};

const char *tp_key_name(tp_key key) { return key < TP_NUM_KEYS ? key_names[key] : "?"; }

tp_key tp_key_parse(const char *name) {
    for (int k = 0; k < TP_NUM_KEYS; k++)
        if (strcmp(key_names[k], name) == 0) return (tp_key)k;
    return TP_KEY_Undefined;
}

__attribute__((constructor)) static void fill_device_keys(void) {
    for (int type = 0; type < TP_NUM_DEVICES; type++)
        tp_device_keys[type] = (tp_keyset)1 << tp_backend_key(type) | (tp_keyset)1 << tp_autograd_key(type) |
                               (tp_keyset)1 << tp_autocast_key(type) | TP_BIT(ADInplaceOrView);
}
