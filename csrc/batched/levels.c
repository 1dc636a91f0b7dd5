/* levels.c: the levels of vmap as operators, for programs that take batches on and off themselves. A level is named by
 * its number, and has to be open where a batch is put on it: nobody would take it off again. */
#include "NativeFunctions.h"
#include "batched/batched.h"
#include "core/error.h"

/* _add_batch_dim(Tensor self, int batch_dim, int level) -> Tensor */
tp_tensor *_add_batch_dim_composite(tp_tensor *self, int64_t batch_dim, int64_t level) {
    const int64_t dim = tp_wrap_dim(batch_dim, self->ndim);
    if (dim < 0) return NULL;
    if (!tp_batch_find_level(level))
        return tp_fail_null(TP_RuntimeError, "_add_batch_dim: no vmap of level %lld is open", (long long)level);
    return tp_batch_add(self, dim, (uint32_t)level);
}

/* _remove_batch_dim(Tensor self, int level, SymInt batch_size, int out_dim) -> Tensor */
tp_tensor *_remove_batch_dim_composite(tp_tensor *self, int64_t level, int64_t batch_size, int64_t out_dim) {
    if (level < 1 || level > UINT32_MAX)
        return tp_fail_null(TP_RuntimeError, "_remove_batch_dim: levels count from 1, and this is %lld",
                            (long long)level);
    tp_autoref *samples = tp_batch_remove(self, (uint32_t)level, batch_size);
    return samples ? tp_movedim_int(samples, 0, out_dim) : NULL;
}
