/* packed.c: sequences of several lengths, packed step by step and padded again. Steps of equally many rows are moved
 * together. */
#include "NativeFunctions.h"
#include "core/scalar_math.h"
#include "iter/iter.h"
#include "native/common/host_ints.h"
#include "prim/table.h"

#include <string.h>

/* For i below n: how many of the numbers are larger. */
static tp_tensor *counts_above(tp_tensor *numbers, int64_t n) {
    tp_autoref *places = tp_arange(TP_SCALAR_I(n), TP_INT64, TP_STRIDED, TP_CPU, -1),
               *down = places ? tp_unsqueeze(places, 1) : NULL, *above = down ? tp_gt_Tensor(numbers, down) : NULL;
    return above ? tp_sum_dim_IntList(above, TP_INTS(1), false, TP_INT64) : NULL;
}

/* The steps [from, *to) that have `sizes[from]` rows, in a padded tensor of (steps, sequences, ...). New. */
static tp_tensor *equal_steps(tp_tensor *padded, tp_ints sizes, int64_t from, int64_t *to) {
    *to = from + 1;
    while (*to < sizes.size && sizes.data[*to] == sizes.data[from]) ++*to;
    tp_autoref *steps = tp_narrow(padded, 0, from, *to - from);
    return steps ? tp_narrow(steps, 1, 0, sizes.data[from]) : NULL;
}

/* The rows of all steps, into their places. */
static int scatter_steps(tp_tensor *padded, tp_tensor *rows, tp_ints sizes) {
    int64_t row = 0;
    for (int64_t from = 0, to; from < sizes.size; from = to) {
        tp_autoref *part = equal_steps(padded, sizes, from, &to);
        int64_t n = part ? sizes.data[from] * (to - from) : 0;
        tp_autoref *given = part ? tp_narrow(rows, 0, row, n) : NULL,
                   *shaped = given ? tp_reshape(given, tp_sizes(part)) : NULL;
        if (!shaped || tp_copy_(part, shaped, false) < 0) return -1;
        row += n;
    }
    return 0;
}

static int check_batch_sizes(tp_ints sizes, const tp_tensor *rows) {
    int64_t total = 0;
    for (int64_t i = 0; i < sizes.size; i++) {
        if (sizes.data[i] <= 0 || sizes.data[i] > (i ? sizes.data[i - 1] : rows->sizes[0]))
            return tp_fail(TP_RuntimeError, "batch_sizes: numbers of rows are positive and do not grow");
        total += sizes.data[i];
    }
    if (total == rows->sizes[0]) return 0;
    return tp_fail(TP_RuntimeError, "batch_sizes: %lld rows of %lld", (long long)total, (long long)rows->sizes[0]);
}
/* The numbers of rows as they lie in `held` (new). */
static int read_batch_sizes(tp_tensor *batch_sizes, const tp_tensor *rows, tp_tensor **held, tp_ints *sizes) {
    if (batch_sizes->ndim != 1 || batch_sizes->numel == 0 || rows->ndim == 0)
        return tp_fail(TP_RuntimeError, "batch_sizes: a vector of at least one number, for rows of a tensor");
    if (!(*held = tp_host_ints(batch_sizes))) return -1;
    *sizes = (tp_ints){tp_table_values(*held), batch_sizes->numel};
    return sizes->data ? check_batch_sizes(*sizes, rows) : -1;
}

static int check_lengths(const int64_t *lengths, int64_t n, int64_t steps) {
    for (int64_t i = 0; i < n; i++) {
        if (lengths[i] <= 0)
            return tp_fail(TP_RuntimeError, "Length of all samples has to be greater than 0, but found an element in "
                                            "'lengths' that is <= 0");
        if (i && lengths[i] > lengths[i - 1])
            return tp_fail(TP_RuntimeError, "`lengths` array must be sorted in decreasing order when `enforce_sorted` "
                                            "is True");
    }
    if (lengths[0] <= steps) return 0;
    return tp_fail(TP_RuntimeError, "Expected `len(input)` to be at least the largest length, %lld, but got %lld",
                   (long long)lengths[0], (long long)steps);
}

/* _pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, Tensor) */
tp_tensor2 _pack_padded_sequence_composite(tp_tensor *input, tp_tensor *lengths, bool batch_first) {
    tp_tensor2 r = {{NULL}};
    if (input->numel == 0 || input->ndim < 2) return tp_fail(TP_RuntimeError, "Cannot pack empty tensors."), r;
    tp_autoref *padded = batch_first ? tp_transpose_int(input, 0, 1) : tp_retain(input);
    if (!padded) return r;
    if (lengths->ndim != 1 || lengths->numel != padded->sizes[1])
        return tp_fail(TP_RuntimeError,
                       "Expected `len(lengths)` to be equal to batch_size, but got %lld (batch_size=%lld)",
                       (long long)lengths->numel, (long long)padded->sizes[1]),
               r;
    tp_autoref *held = tp_host_ints(lengths);
    const int64_t *of = held ? tp_table_values(held) : NULL;
    if (!of || check_lengths(of, lengths->numel, padded->sizes[0]) < 0) return r;
    tp_autoref *sizes_tensor = counts_above(held, of[0]),
               *sizes_held = sizes_tensor ? tp_host_ints(sizes_tensor) : NULL;
    const int64_t *numbers = sizes_held ? tp_table_values(sizes_held) : NULL;
    if (!numbers) return r;
    tp_ints sizes = {numbers, of[0]};
    tp_autoseq *parts = tp_tensor_seq_new(sizes.size);
    int64_t n = 0, shape[TP_MAX_DIMS];
    for (int64_t from = 0, to; parts && from < sizes.size; from = to) {
        tp_autoref *part = equal_steps(padded, sizes, from, &to);
        if (!part) return r;
        memcpy(shape + 1, part->sizes + 2, (size_t)(part->ndim - 2) * sizeof *shape);
        shape[0] = part->sizes[0] * part->sizes[1];
        if (!(parts->items[n++] = tp_reshape(part, (tp_ints){shape, part->ndim - 1}))) return r;
    }
    tp_tensor *rows = parts ? tp_cat((tp_tensors){parts->items, n}, 0) : NULL;
    return rows ? (tp_tensor2){{rows, tp_take(sizes_tensor)}} : r;
}

/* _pack_padded_sequence_backward(Tensor grad, SymInt[] input_size, Tensor batch_sizes, bool batch_first) -> Tensor */
tp_tensor *_pack_padded_sequence_backward_composite(tp_tensor *grad, tp_ints input_size, tp_tensor *batch_sizes,
                                                    bool batch_first) {
    int64_t shape[TP_MAX_DIMS];
    tp_ints sizes;
    tp_autoref *held = NULL;
    if (input_size.size < 2 || input_size.size > TP_MAX_DIMS)
        return tp_fail_null(TP_RuntimeError, "_pack_padded_sequence_backward: an input of %lld dimensions",
                            (long long)input_size.size);
    if (read_batch_sizes(batch_sizes, grad, &held, &sizes) < 0) return NULL;
    memcpy(shape, input_size.data, (size_t)input_size.size * sizeof *shape);
    shape[0] = input_size.data[batch_first];
    shape[1] = input_size.data[!batch_first];
    tp_autoref *padded =
        tp_new_zeros(grad, (tp_ints){shape, input_size.size}, TP_NO_DTYPE, TP_NO_LAYOUT, TP_NO_DEVICE, -1);
    if (!padded || scatter_steps(padded, grad, sizes) < 0) return NULL;
    return batch_first ? tp_transpose_int(padded, 0, 1) : tp_take(padded);
}

/* _pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, Scalar padding_value, int total_length) ->
 * (Tensor, Tensor) */
tp_tensor2 _pad_packed_sequence_composite(tp_tensor *data, tp_tensor *batch_sizes, bool batch_first,
                                          const tp_scalar *padding_value, int64_t total_length) {
    int64_t shape[TP_MAX_DIMS + 1];
    tp_ints sizes;
    tp_tensor2 r = {{NULL}};
    tp_autoref *held = NULL;
    if (read_batch_sizes(batch_sizes, data, &held, &sizes) < 0) return r;
    if (total_length > 0 && total_length < sizes.size)
        return tp_fail(TP_RuntimeError,
                       "Expected total_length to be at least the length of the longest sequence in input, but got "
                       "total_length=%lld and max sequence length being %lld",
                       (long long)total_length, (long long)sizes.size),
               r;
    shape[0] = total_length > 0 ? total_length : sizes.size;
    shape[1] = sizes.data[0];
    memcpy(shape + 2, data->sizes + 1, (size_t)(data->ndim - 1) * sizeof *shape);
    tp_autoref *padded = tp_new_full(data, (tp_ints){shape, data->ndim + 1}, padding_value, TP_NO_DTYPE, TP_NO_LAYOUT,
                                     TP_NO_DEVICE, -1),
               *lengths = padded && scatter_steps(padded, data, sizes) == 0 ? counts_above(held, sizes.data[0]) : NULL;
    tp_tensor *made = !lengths ? NULL : batch_first ? tp_transpose_int(padded, 0, 1) : tp_retain(padded);
    return made ? (tp_tensor2){{made, tp_take(lengths)}} : r;
}
