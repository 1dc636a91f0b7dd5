/* device_kernels.c: see device_kernels.h. */
#include "native/device_kernels.h"

static const tp_device_kernels *registered[TP_NUM_DEVICES];

void tp_set_device_kernels(tp_device_type type, const tp_device_kernels *kernels) { registered[type] = kernels; }

const tp_device_kernels *tp_device_kernels_of(tp_device d) {
    if (registered[d.type]) return registered[d.type];
    return tp_fail_null(TP_NotImplementedError, "device type %s has no kernel for this",
                        tp_device_type_name((tp_device_type)d.type));
}
