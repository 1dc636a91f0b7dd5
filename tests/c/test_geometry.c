/* test_geometry.c: sizes and strides. Expected values are torch 2.13's. */
#include "check.h"

#include "core/tensor.h"

static tp_tensor *meta(tp_ints sizes, tp_ints strides) {
    return tp_new_empty_strided(sizes, strides, TP_FLOAT32, TP_META);
}

static bool same(tp_ints a, tp_ints b) {
    if (a.size != b.size) return false;
    for (int64_t i = 0; i < a.size; i++)
        if (a.data[i] != b.data[i]) return false;
    return true;
}

#define BIG (INT64_C(1) << 40)

static void test_numel(void) {
    CHECK_INT(tp_checked_numel(TP_EMPTY_INTS), 1);
    CHECK_INT(tp_checked_numel(TP_INTS(2, 3, 4)), 24);
    CHECK_INT(tp_checked_numel(TP_INTS(2, 0, 4)), 0);
    CHECK_INT(tp_checked_numel(TP_INTS(2, -1)), -1);
    CHECK_ERROR(RuntimeError, "Trying to create tensor with negative dimension -1: [2, -1]");
    CHECK_INT(tp_checked_numel(TP_INTS(0, -3)), -1);
    CHECK_ERROR(RuntimeError, "negative dimension -3");
    CHECK_INT(tp_checked_numel(TP_INTS(BIG, BIG)), -1);
    CHECK_ERROR(RuntimeError, "Storage size calculation overflowed with sizes=[1099511627776, 1099511627776]");
    CHECK_INT(tp_checked_numel(TP_INTS(0, BIG, BIG)), -1);
    CHECK_ERROR(RuntimeError, "Stride calculation overflowed");
}

static void test_extent(void) {
    int64_t low, high;
    CHECK_INT(tp_strided_extent(TP_INTS(2, 3), TP_INTS(3, 1), &low, &high), 0);
    CHECK(low == 0 && high == 5);
    CHECK_INT(tp_strided_extent(TP_INTS(2, 3), TP_INTS(-3, 1), &low, &high), 0);
    CHECK(low == -3 && high == 2);
    CHECK_INT(tp_strided_extent(TP_INTS(0, 3), TP_INTS(INT64_MAX, INT64_MAX), &low, &high), 0);
    CHECK(low == 0 && high == 0);
    CHECK_INT(tp_strided_extent(TP_INTS(BIG, 2), TP_INTS(BIG, 1), &low, &high), -1);
    CHECK_ERROR(RuntimeError, "overflowed with sizes=[1099511627776, 2] and strides=[1099511627776, 1]");
}

static void test_in_storage(void) {
    CHECK_INT(tp_check_in_storage(TP_INTS(2, 2), TP_INTS(2, 1), 0, TP_FLOAT32, 16), 0);
    CHECK_INT(tp_check_in_storage(TP_INTS(2), TP_INTS(5), 0, TP_FLOAT32, 16), -1);
    CHECK_ERROR(RuntimeError, "setStorage: sizes [2], strides [5], storage offset 0, and itemsize 4 requiring a "
                              "storage size of 24 are out of bounds for storage of size 16");
    CHECK_INT(tp_check_in_storage(TP_INTS(2), TP_INTS(1), -4, TP_FLOAT32, 16), -1);
    CHECK_ERROR(RuntimeError, "Tensor: invalid storage offset -1");
    CHECK_INT(tp_check_in_storage(TP_INTS(0), TP_INTS(1), 400, TP_FLOAT32, 16), 0);
    CHECK_INT(tp_check_in_storage(TP_INTS(2, 2), TP_INTS(1), 0, TP_FLOAT32, 16), -1);
    CHECK_ERROR(RuntimeError, "mismatch in length of strides and shape");
    CHECK_INT(tp_check_in_storage(TP_INTS(4), TP_INTS(-1), 12, TP_FLOAT32, 16), 0);
    CHECK_INT(tp_check_in_storage(TP_INTS(4), TP_INTS(-1), 8, TP_FLOAT32, 16), -1);
    CHECK_ERROR(RuntimeError, "before the start of the storage");
    CHECK_INT(tp_check_in_storage(TP_INTS(2), TP_INTS(INT64_MAX), 0, TP_FLOAT32, 16), -1);
    CHECK_ERROR(RuntimeError, "overflowed");
}

static void test_strides(void) {
    int64_t s[TP_MAX_DIMS];
    tp_contiguous_strides(TP_INTS(2, 0, 3, 1), s);
    CHECK(same((tp_ints){s, 4}, TP_INTS(3, 3, 1, 1)));
    CHECK_INT(tp_strides_for_format(TP_INTS(2, 3, 4, 5), TP_CHANNELS_LAST, s), 0);
    CHECK(same((tp_ints){s, 4}, TP_INTS(60, 1, 15, 3)));
    CHECK_INT(tp_strides_for_format(TP_INTS(2, 3, 4, 5, 6), TP_CHANNELS_LAST_3D, s), 0);
    CHECK(same((tp_ints){s, 5}, TP_INTS(360, 1, 90, 18, 3)));
    CHECK_INT(tp_strides_for_format(TP_INTS(2, 3), TP_CHANNELS_LAST, s), -1);
    CHECK_ERROR(RuntimeError, "required rank 4 tensor to use channels_last format");
    CHECK_INT(tp_strides_for_format(TP_INTS(2, 3, 4, 5), TP_CHANNELS_LAST_3D, s), -1);
    CHECK_ERROR(RuntimeError, "required rank 5 tensor to use channels_last_3d format");
    tp_dense_strides(TP_INTS(6, 5, 4, 3, 2), TP_INTS(6, 0, 120, 0, 1), s); /* the example in PyTorch's source */
    CHECK(same((tp_ints){s, 5}, TP_INTS(6, 36, 180, 2, 1)));
    tp_dense_strides(TP_INTS(2, 3), TP_INTS(-1, -4), s);
    CHECK(same((tp_ints){s, 2}, TP_INTS(1, 2)));
}

static void check_formats(tp_ints sizes, tp_ints strides, bool contiguous, bool dense, bool channels_last,
                          tp_memory_format suggested) {
    tp_tensor *t = meta(sizes, strides);
    CHECK_INT(tp_is_contiguous(t), contiguous);
    CHECK_INT(tp_is_contiguous_in(t, TP_CONTIGUOUS_FORMAT), contiguous);
    CHECK_INT(tp_is_dense(t), dense);
    CHECK_INT(tp_is_contiguous_in(t, sizes.size == 5 ? TP_CHANNELS_LAST_3D : TP_CHANNELS_LAST), channels_last);
    CHECK_INT(tp_suggest_memory_format(t), suggested);
    tp_release(t);
}

static void test_formats(void) {
    check_formats(TP_EMPTY_INTS, TP_EMPTY_INTS, true, true, false, TP_CONTIGUOUS_FORMAT);
    check_formats(TP_INTS(2, 3), TP_INTS(1, 2), false, true, false, TP_CONTIGUOUS_FORMAT);
    check_formats(TP_INTS(2, 3), TP_INTS(6, 1), false, false, false, TP_CONTIGUOUS_FORMAT);
    check_formats(TP_INTS(2, 3), TP_INTS(0, 1), false, false, false, TP_CONTIGUOUS_FORMAT);
    check_formats(TP_INTS(3), TP_INTS(-1), false, false, false, TP_CONTIGUOUS_FORMAT);
    check_formats(TP_INTS(0, 3), TP_INTS(7, 9), true, true, false, TP_CONTIGUOUS_FORMAT);
    check_formats(TP_INTS(1, 4), TP_INTS(100, 1), true, true, false, TP_CONTIGUOUS_FORMAT);
    check_formats(TP_INTS(2, 3, 4, 5), TP_INTS(60, 20, 5, 1), true, true, false, TP_CONTIGUOUS_FORMAT);
    check_formats(TP_INTS(2, 3, 4, 5), TP_INTS(60, 1, 15, 3), false, true, true, TP_CHANNELS_LAST);
    check_formats(TP_INTS(2, 3, 4, 5), TP_INTS(120, 1, 30, 6), false, false, false, TP_CHANNELS_LAST);
    check_formats(TP_INTS(4, 1, 1, 1), TP_INTS(1, 1, 1, 1), true, true, true, TP_CONTIGUOUS_FORMAT);
    check_formats(TP_INTS(1, 3, 1, 1), TP_INTS(3, 1, 3, 3), true, true, true, TP_CHANNELS_LAST);
    check_formats(TP_INTS(2, 3, 2, 2, 2), TP_INTS(24, 1, 12, 6, 3), false, true, true, TP_CHANNELS_LAST_3D);
    check_formats(TP_INTS(2, 3, 2, 2, 2), TP_INTS(24, 8, 4, 2, 1), true, true, false, TP_CONTIGUOUS_FORMAT);
}

static void test_wrap_dim(void) {
    CHECK_INT(tp_wrap_dim(1, 2), 1);
    CHECK_INT(tp_wrap_dim(-2, 2), 0);
    CHECK_INT(tp_wrap_dim(-1, 0), 0);
    CHECK_INT(tp_wrap_dim(0, 0), 0);
    CHECK_INT(tp_wrap_dim(5, 2), -1);
    CHECK_ERROR(IndexError, "Dimension out of range (expected to be in range of [-2, 1], but got 5)");
    CHECK_INT(tp_wrap_dim(1, 0), -1);
    CHECK_ERROR(IndexError, "[-1, 0], but got 1");
    CHECK_INT(tp_wrap_dim(INT64_MIN, 3), -1);
    tp_error_clear();
}

static void test_broadcast(void) {
    int64_t out[TP_MAX_DIMS] = {3, 1, 5};
    CHECK_INT(tp_broadcast_sizes(TP_INTS(3, 1, 2), TP_INTS(5, 1), out), 3);
    CHECK(same((tp_ints){out, 3}, TP_INTS(3, 5, 2)));
    CHECK_INT(tp_broadcast_sizes((tp_ints){out, 3}, TP_INTS(1), out), 3);
    CHECK(same((tp_ints){out, 3}, TP_INTS(3, 5, 2)));
    CHECK_INT(tp_broadcast_sizes(TP_EMPTY_INTS, TP_EMPTY_INTS, out), 0);
    CHECK_INT(tp_broadcast_sizes(TP_INTS(1), TP_INTS(0), out), 1);
    CHECK_INT(out[0], 0);
    CHECK_INT(tp_broadcast_sizes(TP_INTS(3, 1, 2), TP_INTS(2, 5), out), -1);
    CHECK_ERROR(RuntimeError, "tensor a (2) must match the size of tensor b (5) at non-singleton dimension 2");
}

static void test_text(void) {
    tp_autotext text = {0};
    tp_tensor *t = meta(TP_INTS(2, 3), TP_INTS(3, 1));
    tp_text_tensor(&text, t);
    CHECK_STR(text.text, "float32[2, 3] on meta");
    tp_text_ints(&text, TP_EMPTY_INTS);
    CHECK_STR(text.text, "float32[2, 3] on meta[]");
    tp_release(t);
}

int main(void) {
    test_numel();
    test_extent();
    test_in_storage();
    test_strides();
    test_formats();
    test_wrap_dim();
    test_broadcast();
    test_text();
    return check_report();
}
