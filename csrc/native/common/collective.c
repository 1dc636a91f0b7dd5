/* collective.c: the shapes of what processes send each other, for tensors without memory. The group need not be there:
 * the calls say how many processes it has. */
#include "NativeFunctions.h"

static tp_tensor *of_rows(const tp_tensor *like, int64_t rows) {
    int64_t sizes[TP_MAX_DIMS] = {rows};
    for (int i = 1; i < like->ndim; i++) sizes[i] = tp_sizes(like).data[i];
    return tp_new_empty((tp_ints){sizes, like->ndim ? like->ndim : 1}, (tp_dtype)like->dtype, like->device);
}
static tp_tensor *alike(const tp_tensor *t, int64_t group_size TP_UNUSED) {
    return tp_new_empty(tp_sizes(t), (tp_dtype)t->dtype, t->device);
}

static tp_tensor *gathered(const tp_tensor *t, int64_t group_size) {
    int64_t rows;
    if (group_size < 1 || __builtin_mul_overflow(t->ndim ? tp_sizes(t).data[0] : 1, group_size, &rows))
        return tp_fail_null(TP_ValueError, "all_gather_into_tensor: a group has no group_size of %lld",
                            (long long)group_size);
    return of_rows(t, rows);
}

static tp_tensor *scattered(const tp_tensor *t, int64_t group_size) {
    int64_t rows = t->ndim ? tp_sizes(t).data[0] : 0;
    if (t->ndim && group_size > 0 && rows % group_size == 0) return of_rows(t, rows / group_size);
    char text[256];
    return tp_fail_null(TP_ValueError,
                        "reduce_scatter_tensor: input dimension 0 must be a multiple of group_size %lld, and the input "
                        "is %s",
                        (long long)group_size, tp_ints_text(text, sizeof text, tp_sizes(t)));
}

/* ---- of one tensor ---- */

tp_tensor *collective_all_reduce_meta(tp_tensor *input, const char *reduce_op TP_UNUSED,
                                      const char *group_name TP_UNUSED) {
    return alike(input, 0);
}
tp_tensor *collective_broadcast_meta(tp_tensor *input, int64_t src TP_UNUSED, const char *group_name TP_UNUSED) {
    return alike(input, 0);
}
tp_tensor *collective_irecv_meta(tp_tensor *tensor, int64_t src TP_UNUSED, int64_t tag TP_UNUSED,
                                 const char *group_name TP_UNUSED) {
    return alike(tensor, 0);
}
tp_tensor *collective_isend_meta(tp_tensor *tensor, int64_t dst TP_UNUSED, int64_t tag TP_UNUSED,
                                 const char *group_name TP_UNUSED) {
    return tp_new_empty(TP_INTS(0), (tp_dtype)tensor->dtype, tensor->device);
}
tp_tensor *collective_wait_meta(tp_tensor *tensor) { return alike(tensor, 0); }

tp_tensor *collective_all_gather_meta(tp_tensor *input, int64_t group_size, const char *group_name TP_UNUSED) {
    return gathered(input, group_size);
}
tp_tensor *collective_reduce_scatter_meta(tp_tensor *input, const char *reduce_op TP_UNUSED, int64_t group_size,
                                          const char *group_name TP_UNUSED) {
    return scattered(input, group_size);
}
tp_tensor *collective_all_to_all_meta(tp_tensor *input, tp_ints output_split_sizes, tp_ints input_split_sizes TP_UNUSED,
                                      const char *group_name TP_UNUSED) {
    int64_t rows = 0;
    bool fits = input->ndim > 0;
    for (int64_t i = 0; i < output_split_sizes.size; i++) {
        fits =
            fits && output_split_sizes.data[i] >= 0 && !__builtin_add_overflow(rows, output_split_sizes.data[i], &rows);
    }
    char text[256];
    if (!fits)
        return tp_fail_null(TP_ValueError, "all_to_all_single: %s are no sizes of parts",
                            tp_ints_text(text, sizeof text, output_split_sizes));
    return of_rows(input, rows);
}
/* The shapes are those of a group that must be there: tensorpy.distributed puts them in this place. */
tp_tensor *collective_shard_dim_alltoall_meta(tp_tensor *input TP_UNUSED, int64_t gather_dim TP_UNUSED,
                                              int64_t shard_dim TP_UNUSED, const char *group_name) {
    return tp_fail_null(TP_NotImplementedError,
                        "shard_dim_alltoall: how many processes the group %s has says tensorpy.distributed: import it",
                        group_name);
}

/* ---- of lists ---- */

static tp_tensor_seq *each(tp_tensors inputs, tp_tensor *(*shape)(const tp_tensor *, int64_t), int64_t group_size) {
    tp_autoseq *made = tp_tensor_seq_new(inputs.size);
    for (int64_t i = 0; made && i < inputs.size; i++)
        if (!(made->items[i] = shape(inputs.data[i], group_size))) return NULL;
    return made ? tp_take(made) : NULL;
}

tp_tensor_seq *collective_all_reduce_coalesced_meta(tp_tensors inputs, const char *reduce_op TP_UNUSED,
                                                    const char *group_name TP_UNUSED) {
    return each(inputs, alike, 0);
}
tp_tensor_seq *collective_all_gather_coalesced_meta(tp_tensors inputs, int64_t group_size,
                                                    const char *group_name TP_UNUSED) {
    return each(inputs, gathered, group_size);
}
tp_tensor_seq *collective_reduce_scatter_coalesced_meta(tp_tensors inputs, const char *reduce_op TP_UNUSED,
                                                        int64_t group_size, const char *group_name TP_UNUSED) {
    return each(inputs, scattered, group_size);
}

/* ---- what is written has its shape ---- */

int collective_all_reduce__meta(tp_tensor *input TP_UNUSED, const char *reduce_op TP_UNUSED,
                                const char *group_name TP_UNUSED) {
    return 0;
}
int collective_all_reduce_coalesced__meta(tp_tensors inputs TP_UNUSED, const char *reduce_op TP_UNUSED,
                                          const char *group_name TP_UNUSED) {
    return 0;
}
int collective_broadcast__meta(tp_tensor *input TP_UNUSED, int64_t src TP_UNUSED, const char *group_name TP_UNUSED) {
    return 0;
}
int collective_all_gather_out_meta(tp_tensor *input TP_UNUSED, int64_t group_size TP_UNUSED,
                                   const char *group_name TP_UNUSED, tp_tensor *out TP_UNUSED) {
    return 0;
}
int collective_reduce_scatter_out_meta(tp_tensor *input TP_UNUSED, const char *reduce_op TP_UNUSED,
                                       int64_t group_size TP_UNUSED, const char *group_name TP_UNUSED,
                                       tp_tensor *out TP_UNUSED) {
    return 0;
}
