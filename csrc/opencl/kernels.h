/* kernels.h: the families that have a kernel on OpenCL devices besides pointwise operators and reductions: the entries
 * of native/device_kernels.h. Only enqueue. */
#pragma once

#include "native/device_kernels.h"

int tp_cl_range(tp_tensor *t, const tp_range *r);
int tp_cl_triangle(const tp_tensor *self, tp_tensor *out, int64_t diagonal, bool lower);
int tp_cl_draw(tp_tensor *into, tp_draw_kind kind, const tp_draw *draw, tp_dtype made, tp_dtype dtype, int64_t n);
int tp_cl_gemm(const tp_tensor *a, const tp_tensor *b, tp_tensor *out, const tp_scalar *alpha, const tp_scalar *beta);
int tp_cl_softmax(tp_tensor *in, tp_tensor *output, int64_t dim, tp_tensor *out, bool log);
int tp_cl_places(tp_places_op op, tp_tensor *self, int64_t dim, const tp_tensor *index, tp_tensor *other,
                 const tp_index_check *check);
int tp_cl_order(const tp_order_spec *spec, const tp_tensor *lines, int64_t n, tp_tensor *out);
int tp_cl_search(const tp_tensor *sequence, int64_t n, const tp_tensor *values, int64_t each, bool right,
                 tp_tensor *out);
tp_tensor *tp_cl_pack(const tp_tensor *from, const tp_tensor *mask);
int tp_cl_unpack(tp_tensor *into, const tp_tensor *from, const tp_tensor *mask);
tp_tensor *tp_cl_nonzero(const tp_tensor *mask);
int tp_cl_distinct(const tp_tensor *items, bool sorted, tp_distinct *out);
int tp_cl_triangle_indices(tp_tensor *out, int64_t rows, int64_t columns, int64_t diagonal, bool lower);
int tp_cl_multinomial(const tp_tensor *weights, bool replacement, tp_philox_state state, tp_tensor *out);
int tp_cl_convolution(tp_conv_product which, const tp_conv_plan *plan, const tp_tensor *a, const tp_tensor *b,
                      const tp_tensor *bias, tp_tensor *made);
int tp_cl_pool(const tp_pool_plan *p, tp_pool_what what, tp_tensor *in, tp_tensor *out, tp_tensor *index, bool by_two);
int tp_cl_norm(tp_norm_what what, const tp_norm_job *j);
int tp_cl_col2im(const tp_fold *f, const tp_tensor *columns, tp_tensor *images);
