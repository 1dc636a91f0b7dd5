/* embedding.c: rows of a table kept short, on an OpenCL device: they are taken, scaled and written back. */
#include "NativeFunctions.h"
#include "native/gather.h"

/* embedding_renorm_(Tensor(a!) self, Tensor indices, float max_norm, float norm_type) -> Tensor(a!). A row that is
 * named twice is written twice, with the same. */
int embedding_renorm__opencl(tp_tensor *self, tp_tensor *indices, double max_norm, double norm_type) {
    if (embedding_renorm__meta(self, indices, max_norm, norm_type) < 0) return -1;
    tp_scalar p = {.kind = TP_SCALAR_FLOAT, .f = norm_type};
    tp_dtype dtype = (tp_dtype)self->dtype;
    tp_autoref *flat = tp_reshape(indices, TP_INTS(-1));
    if (!flat || flat->numel == 0) return flat ? 0 : -1;
    tp_autoref *rows = tp_index_take(TP_INDEX_FAULT(TP_IndexError, "embedding_renorm_"), self, 0, flat, false);
    tp_autoref *wide = rows ? tp_to_dtype(rows, tp_compute_dtype(dtype), false, false, TP_NO_FORMAT) : NULL;
    tp_autoref *norm = wide ? tp_norm_ScalarOpt_dim(wide, &p, TP_INTS(1), true) : NULL;
    tp_autoref *bound = norm ? tp_add_Scalar(norm, TP_SCALAR_F(1e-7), TP_SCALAR_I(1)) : NULL;
    tp_autoref *inverse = bound ? tp_reciprocal(bound) : NULL;
    tp_autoref *factor = inverse ? tp_mul_Scalar(inverse, TP_SCALAR_F(max_norm)) : NULL;
    tp_autoref *is_long = factor ? tp_gt_Scalar(norm, TP_SCALAR_F(max_norm)) : NULL;
    tp_autoref *scale = is_long ? tp_where_ScalarOther(is_long, factor, TP_SCALAR_F(1)) : NULL;
    tp_autoref *scaled = scale ? tp_mul_Tensor(wide, scale) : NULL;
    tp_autoref *made = scaled ? tp_to_dtype(scaled, dtype, false, false, TP_NO_FORMAT) : NULL;
    return made ? tp_index_write(TP_INDEX_FAULT(TP_IndexError, "embedding_renorm_"), tp_prim_put_set, self, 0, flat,
                                 made, false)
                : -1;
}
