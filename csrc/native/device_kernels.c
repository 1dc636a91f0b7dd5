/* device_kernels.c: see device_kernels.h. */
#include "native/device_kernels.h"

static const tp_device_kernels *registered[TP_NUM_DEVICES];

void tp_set_device_kernels(tp_device_type type, const tp_device_kernels *kernels) { registered[type] = kernels; }

const tp_device_kernels *tp_device_kernels_of(tp_device d) {
    if (registered[d.type]) return registered[d.type];
    return tp_fail_null(TP_NotImplementedError, "device type %s has no kernel for this",
                        tp_device_type_name((tp_device_type)d.type));
}

int tp_run_gemm(const tp_tensor *a, const tp_tensor *b, tp_tensor *out, const tp_scalar *alpha, const tp_scalar *beta) {
    if (tp_elsewhere(out)) {
        const tp_device_kernels *k = tp_device_kernels_of(out->device);
        return k ? k->gemm(a, b, out, alpha, beta) : -1;
    }
    return out->ndim == 3 ? tp_gemm_batched(a, b, out, alpha, beta) : tp_gemm(a, b, out, alpha, beta);
}

int tp_run_places(tp_places_op op, tp_tensor *self, int64_t dim, const tp_tensor *index, tp_tensor *other,
                  const tp_index_check *check) {
    if (!tp_elsewhere(self)) return tp_places_run(op, self, dim, index, other);
    const tp_device_kernels *k = tp_device_kernels_of(self->device);
    return k ? k->places(op, self, dim, index, other, check) : -1;
}
