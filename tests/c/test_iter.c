/* test_iter.c: plans of the tensor iterator, overlap, conversion, threads, the pointwise driver, copies and reductions,
 * and each of their allocations failing in turn. Values against PyTorch are checked from Python. */
#include "check.h"

#include "PointwiseTable.h"
#include "Primitives.h"
#include "core/parallel.h"
#include "cpu/run.h"
#include "dispatch/generated.h"
#include "cpu/kernels.h"
#include "native/pointwise/pointwise.h"
#include "native/reduction/reduce.h"
#include "prim/transfer.h"
#include "core/memory.h"

static tp_tensor *new_f32(tp_ints sizes) {
    tp_tensor *t = tp_new_empty(sizes, TP_FLOAT32, TP_CPU);
    for (int64_t i = 0; i < t->numel; i++) ((float *)tp_data(t))[i] = (float)i;
    return t;
}

static tp_tensor *view(const tp_tensor *t, tp_ints sizes, tp_ints strides, int64_t offset) {
    return tp_new_alias(t, sizes, strides, offset * tp_itemsize((tp_dtype)t->dtype));
}

static float at(const tp_tensor *t, int64_t i, int64_t j) {
    return ((float *)tp_data(t))[i * t->strides[0] + j * t->strides[1]];
}

/* ---- plans ---- */

static void test_plan_merges(void) {
    tp_autoref *a = new_f32(TP_INTS(2, 3, 4)), *b = new_f32(TP_INTS(2, 3, 4));
    tp_tensor *tensors[] = {a, b};
    tp_iter it;
    CHECK_INT(tp_iter_plan(&it, tensors, 1, 2, tp_sizes(a)), 0);
    CHECK_INT(it.ndim, 1);
    CHECK_INT(it.shape[0], 24);
    CHECK_INT(it.strides[0][0], 4);
}

static void test_plan_reorders(void) {
    tp_autoref *a = new_f32(TP_INTS(3, 4)), *b = view(a, TP_INTS(4, 3), TP_INTS(1, 4), 0);
    tp_tensor *both[] = {b, b};
    tp_iter it;
    tp_iter_plan(&it, both, 1, 2, tp_sizes(b));
    CHECK_INT(it.ndim, 1); /* two transposed tensors are one run of memory */
    CHECK_INT(it.shape[0], 12);
    tp_autoref *out = new_f32(TP_INTS(4, 3));
    tp_tensor *mixed[] = {out, b};
    tp_iter_plan(&it, mixed, 1, 2, tp_sizes(b));
    CHECK_INT(it.ndim, 2); /* the output decides */
    CHECK_INT(it.shape[0], 3);
    CHECK_INT(it.strides[0][0], 4);
    CHECK_INT(it.strides[1][0], 16);
    CHECK_INT(it.strides[1][1], 4);
}

static void test_plan_negative_strides(void) {
    tp_autoref *a = new_f32(TP_INTS(6)), *back = view(a, TP_INTS(6), TP_INTS(-1), 5);
    tp_tensor *tensors[] = {back, a};
    tp_iter it;
    tp_iter_plan(&it, tensors, 1, 2, tp_sizes(a));
    CHECK_INT(it.strides[0][0], 4);
    CHECK_INT(it.strides[1][0], -4);
    CHECK(it.data[0] == tp_data(a));
    CHECK(it.data[1] == (char *)tp_data(a) + 20);
}

static void test_plan_broadcasts(void) {
    tp_autoref *out = new_f32(TP_INTS(5, 2, 3)), *row = new_f32(TP_INTS(3)), *column = new_f32(TP_INTS(2, 1));
    tp_tensor *tensors[] = {out, row, column, NULL};
    tp_iter it;
    tp_iter_plan(&it, tensors, 1, 4, tp_sizes(out));
    CHECK_INT(it.ndim, 3);
    CHECK_INT(it.strides[1][0], 4);
    CHECK_INT(it.strides[1][1], 0);
    CHECK_INT(it.strides[2][0], 0);
    CHECK_INT(it.strides[2][1], 4);
    CHECK_INT(it.strides[3][2], 0);
    CHECK(it.data[3] == NULL);
    int64_t shape[TP_MAX_DIMS];
    tp_operand operands[] = {{row, NULL}, {column, NULL}, {NULL, TP_SCALAR_I(1)}};
    CHECK_INT(tp_iter_broadcast(operands, 3, shape), 2);
    CHECK(shape[0] == 2 && shape[1] == 3);
    tp_autoref *four = new_f32(TP_INTS(4));
    operands[1].tensor = four;
    CHECK_INT(tp_iter_broadcast(operands, 3, shape), -1);
    CHECK_ERROR(RuntimeError, "must match the size of tensor b");
}

static void test_plan_without_dims_or_elements(void) {
    tp_autoref *zero_dim = new_f32(TP_EMPTY_INTS), *empty = new_f32(TP_INTS(3, 0));
    tp_iter it;
    tp_iter_plan(&it, (tp_tensor *[]){zero_dim}, 1, 1, TP_EMPTY_INTS);
    CHECK(it.ndim == 1 && it.shape[0] == 1 && it.numel == 1);
    tp_iter_plan(&it, (tp_tensor *[]){empty}, 1, 1, tp_sizes(empty));
    CHECK(it.ndim == 1 && it.numel == 0);
    CHECK_INT(tp_iter_run(&it, NULL, NULL, TP_GRAIN), 0);
}

static void test_output_strides(void) {
    tp_autoref *a = new_f32(TP_INTS(2, 3, 4)), *t = view(a, TP_INTS(4, 2, 3), TP_INTS(1, 12, 4), 0);
    int64_t strides[3];
    tp_iter_output_strides((tp_operand[]){{t, NULL}, {NULL, TP_SCALAR_I(1)}}, 2, tp_sizes(t), strides);
    CHECK(strides[0] == 1 && strides[1] == 12 && strides[2] == 4);
    tp_autoref *b = new_f32(TP_INTS(4, 2, 3));
    tp_iter_output_strides((tp_operand[]){{b, NULL}, {t, NULL}}, 2, tp_sizes(t), strides);
    CHECK(strides[0] == 6 && strides[1] == 3 && strides[2] == 1); /* the first input decides */
}

/* ---- result types ---- */

static void test_result_type(void) {
    tp_autoref *i = tp_new_empty(TP_INTS(2), TP_INT32, TP_CPU), *f0 = tp_new_empty(TP_EMPTY_INTS, TP_FLOAT64, TP_CPU);
    tp_autoref *h = tp_new_empty(TP_INTS(2), TP_FLOAT16, TP_CPU), *u = tp_new_empty(TP_INTS(2), TP_UINT16, TP_CPU);
    CHECK_INT(tp_result_type((tp_operand[]){{i, NULL}, {NULL, TP_SCALAR_I(1)}}, 2), TP_INT32);
    CHECK_INT(tp_result_type((tp_operand[]){{i, NULL}, {NULL, TP_SCALAR_F(1)}}, 2), TP_FLOAT32);
    CHECK_INT(tp_result_type((tp_operand[]){{i, NULL}, {f0, NULL}}, 2), TP_FLOAT64);
    CHECK_INT(tp_result_type((tp_operand[]){{h, NULL}, {f0, NULL}}, 2), TP_FLOAT16);
    CHECK_INT(tp_result_type((tp_operand[]){{h, NULL}, {NULL, TP_SCALAR_C(1)}}, 2), TP_COMPLEX32);
    CHECK_INT(tp_result_type((tp_operand[]){{u, NULL}, {i, NULL}}, 2), TP_NO_DTYPE);
    CHECK_ERROR(RuntimeError, "Promotion for uint16, uint32, uint64 types is not supported");
}

/* ---- overlap ---- */

static void test_overlap(void) {
    tp_autoref *a = new_f32(TP_INTS(10)), *b = new_f32(TP_INTS(10));
    tp_autoref *low = view(a, TP_INTS(5), TP_INTS(1), 0), *high = view(a, TP_INTS(5), TP_INTS(1), 5);
    tp_autoref *middle = view(a, TP_INTS(5), TP_INTS(1), 2), *again = view(a, TP_INTS(10), TP_INTS(1), 0);
    tp_autoref *even = view(a, TP_INTS(5), TP_INTS(2), 0), *odd = view(a, TP_INTS(5), TP_INTS(2), 1);
    tp_autoref *even4 = view(a, TP_INTS(4), TP_INTS(2), 2), *spread = view(a, TP_INTS(3, 5), TP_INTS(0, 1), 0);
    CHECK_INT(tp_overlap_of(a, b), TP_OVERLAP_NONE);
    CHECK_INT(tp_overlap_of(a, again), TP_OVERLAP_EXACT);
    CHECK_INT(tp_overlap_of(low, high), TP_OVERLAP_NONE);
    CHECK_INT(tp_overlap_of(low, middle), TP_OVERLAP_PARTIAL);
    CHECK_INT(tp_overlap_of(even, odd), TP_OVERLAP_NONE);
    CHECK_INT(tp_overlap_of(even, even4), TP_OVERLAP_UNKNOWN);
    CHECK_INT(tp_check_internal_overlap(spread), -1);
    CHECK_ERROR(RuntimeError, "unsupported operation: more than one element");
    CHECK_INT(tp_iter_check_overlap((tp_tensor *[]){low, middle}, 1, 2), -1);
    CHECK_ERROR(RuntimeError, "unsupported operation: some elements");
    CHECK_INT(tp_iter_check_overlap((tp_tensor *[]){even, odd, NULL}, 1, 3), 0);
}

/* ---- running ---- */

static _Atomic int64_t loop_calls;

/* out = a + b in float32, any strides. */
static void add_loop(char *const *data, const int64_t *strides, int64_t n, const void *params TP_UNUSED) {
    loop_calls++;
    for (int64_t i = 0; i < n; i++)
        *(float *)(data[0] + i * strides[0]) =
            *(const float *)(data[1] + i * strides[1]) + *(const float *)(data[2] + i * strides[2]);
}

static const tp_loop_fn add_loops[TP_NUM_DTYPES] = {[TP_FLOAT32] = add_loop};
static const tp_value one[] = {{.tag = TP_SCALAR, .scalar = TP_SCALAR_I(1)}}; /* alpha */

/* add as it is, but for the loops, and with no more dtypes than they have. */
static void load_add(void) {
    tp_pointwise_add_Tensor.loops = add_loops;
    tp_pointwise_add_Tensor.loop_mask = 1 << TP_FLOAT32 | 1 << TP_FLOAT16 | 1 << TP_BFLOAT16;
}

static tp_tensor *add_new(tp_tensor *a, tp_tensor *b) {
    return tp_pointwise_new(&tp_pointwise_add_Tensor, (tp_operand[]){{a, NULL}, {b, NULL}}, one);
}

static int add_into(tp_tensor *a, tp_tensor *b, tp_tensor *out, bool inplace) {
    return tp_pointwise_into(&tp_pointwise_add_Tensor, (tp_operand[]){{a, NULL}, {b, NULL}}, one, out,
                             inplace ? TP_VARIANT_INPLACE : TP_VARIANT_OUT_CAST);
}

static void test_conversion(void) {
    tp_autoref *f = new_f32(TP_INTS(40, 50)), *i = tp_new_empty(TP_INTS(40, 50), TP_INT64, TP_CPU);
    tp_autoref *h = tp_new_empty(TP_INTS(50), TP_FLOAT16, TP_CPU),
               *out = tp_new_empty(TP_INTS(40, 50), TP_FLOAT64, TP_CPU);
    CHECK_INT(tp_copy_data(i, f), 0);
    CHECK_INT(((int64_t *)tp_data(i))[1999], 1999);
    tp_autoref *row = view(f, TP_INTS(50), TP_INTS(1), 0);
    CHECK_INT(tp_copy_data(h, row), 0);
    CHECK_INT(add_into(h, f, out, false), 0); /* float16 and float32 to float64 */
    CHECK(((double *)tp_data(out))[1999] == 1999.0 + 49.0);
    tp_autoref *sum = add_new(f, i); /* int64 takes part as float32 */
    CHECK(sum && sum->dtype == TP_FLOAT32 && at(sum, 39, 49) == 2 * 1999.0f);
    tp_autoref *halves = add_new(h, h);
    CHECK(halves && halves->dtype == TP_FLOAT16 && tp_half_to_float(((tp_half *)tp_data(halves))[49]) == 98.0f);
}

static void test_short_rows_take_few_calls(void) {
    tp_autoref *a = new_f32(TP_INTS(1000, 3)), *b = new_f32(TP_INTS(3));
    loop_calls = 0;
    tp_autoref *sum = add_new(a, b);
    CHECK(loop_calls <= 20);
    CHECK(sum && at(sum, 999, 2) == 2999.0f + 2.0f && at(sum, 0, 1) == 2.0f);
}

static void test_transposed(void) {
    tp_autoref *a = new_f32(TP_INTS(130, 200)), *t = view(a, TP_INTS(200, 130), TP_INTS(1, 200), 0);
    tp_autoref *b = new_f32(TP_INTS(200, 130)), *sum = add_new(b, t),
               *copy = tp_new_empty(TP_INTS(200, 130), TP_FLOAT32, TP_CPU);
    CHECK_INT(tp_copy_data(copy, t), 0);
    bool ok = true;
    for (int64_t i = 0; i < 200; i++)
        for (int64_t j = 0; j < 130; j++)
            ok &= at(sum, i, j) == at(b, i, j) + at(a, j, i) && at(copy, i, j) == at(a, j, i);
    CHECK(ok);
}

static bool same_bytes(const tp_tensor *a, const tp_tensor *b) {
    return a && b && memcmp(tp_data(a), tp_data(b), (size_t)(a->numel * tp_itemsize((tp_dtype)a->dtype))) == 0;
}

static tp_tensor *sum_of(tp_tensor *t, uint64_t mask) {
    int64_t sizes[TP_MAX_DIMS];
    int n = tp_reduce_sizes(t, mask, false, sizes);
    tp_autoref *out = tp_new_empty((tp_ints){sizes, n}, TP_FLOAT32, TP_CPU);
    return out && tp_reduce_by(tp_prim_reduce_sum, t, mask, out) == 0 ? tp_take(out) : NULL;
}

static void test_threads(void) {
    tp_autoref *a = new_f32(TP_INTS(700, 301)), *t = view(a, TP_INTS(301, 700), TP_INTS(1, 301), 0);
    tp_autoref *b = new_f32(TP_INTS(301, 700));
    for (int64_t i = 0; i < a->numel; i++) ((float *)tp_data(a))[i] = 1.0f / (float)(i + 1);
    int threads = tp_get_num_threads();
    tp_set_num_threads(1);
    tp_autoref *sum1 = add_new(b, t), *all1 = sum_of(a, 3), *rows1 = sum_of(a, 2), *columns1 = sum_of(a, 1);
    tp_set_num_threads(5);
    tp_autoref *sum5 = add_new(b, t), *all5 = sum_of(a, 3), *rows5 = sum_of(a, 2), *columns5 = sum_of(a, 1);
    tp_set_num_threads(threads);
    CHECK(same_bytes(sum1, sum5));
    CHECK(same_bytes(all1, all5));
    CHECK(same_bytes(rows1, rows5));
    CHECK(same_bytes(columns1, columns5));
}

/* ---- the pointwise driver's checks ---- */

static void test_into_errors(void) {
    tp_autoref *a = new_f32(TP_INTS(3)), *big = new_f32(TP_INTS(2, 3)), *i = tp_new_empty(TP_INTS(3), TP_INT64, TP_CPU);
    tp_autoref *wide = view(a, TP_INTS(2, 3), TP_INTS(0, 1), 0), *b = tp_new_empty(TP_INTS(3), TP_BOOL, TP_CPU);
    CHECK_INT(add_into(a, big, a, true), -1);
    CHECK_ERROR(RuntimeError, "output with shape [3] doesn't match the broadcast shape [2, 3]");
    CHECK_INT(add_into(a, a, i, false), -1);
    CHECK_ERROR(RuntimeError, "result type Float can't be cast to the desired output type Long");
    CHECK_INT(add_into(wide, big, wide, true), -1);
    CHECK_ERROR(RuntimeError, "unsupported operation");
    CHECK(add_new(b, b) == NULL);
    CHECK_ERROR(NotImplementedError, "\"add\" not implemented for 'Bool'");
}

static void test_into_unknown_overlap(void) {
    tp_autoref *a = new_f32(TP_INTS(8)), *even = view(a, TP_INTS(3), TP_INTS(2), 0),
               *next = view(a, TP_INTS(3), TP_INTS(2), 2);
    CHECK_INT(add_into(next, even, next, true), 0); /* as if `even` had been copied before */
    CHECK(((float *)tp_data(a))[2] == 2 && ((float *)tp_data(a))[4] == 6 && ((float *)tp_data(a))[6] == 10);
}

static void test_out_resizes(void) {
    tp_autoref *a = new_f32(TP_INTS(2, 3)), *out = tp_new_empty(TP_INTS(0), TP_FLOAT32, TP_CPU);
    CHECK_INT(add_into(a, a, out, false), 0);
    CHECK(out->ndim == 2 && out->sizes[1] == 3 && at(out, 1, 2) == 10);
}

static void test_meta(void) {
    tp_autoref *m = tp_new_empty(TP_INTS(2, 1), TP_FLOAT16, TP_META),
               *n = tp_new_empty(TP_INTS(3), TP_FLOAT32, TP_META);
    tp_autoref *sum = add_new(m, n), *cpu = new_f32(TP_INTS(3)), *zero_dim = new_f32(TP_EMPTY_INTS);
    CHECK(sum && sum->device.type == TP_DEVICE_META && sum->dtype == TP_FLOAT32 && sum->sizes[0] == 2 &&
          sum->sizes[1] == 3);
    tp_autoref *with_number = add_new(m, zero_dim);
    CHECK(with_number && with_number->device.type == TP_DEVICE_META);
    CHECK(add_new(m, cpu) == NULL);
    CHECK_ERROR(RuntimeError, "Expected all tensors to be on the same device");
}

/* ---- reductions ---- */

static void test_reduce_shapes(void) {
    tp_autoref *a = new_f32(TP_INTS(2, 3, 4)), *empty = new_f32(TP_INTS(2, 0));
    uint64_t mask;
    CHECK_INT(tp_reduce_mask(TP_INTS(-1, 0), 3, &mask), 0);
    CHECK_INT(mask, 5);
    CHECK_INT(tp_reduce_mask(TP_INTS(1, -2), 3, &mask), -1);
    CHECK_ERROR(RuntimeError, "dim 1 appears multiple times in the list of dims");
    CHECK_INT(tp_reduce_mask(TP_INTS(3), 3, &mask), -1);
    CHECK_ERROR(IndexError, "Dimension out of range");
    tp_autoref *sum = sum_of(a, 5), *nothing = sum_of(empty, 2);
    CHECK(sum && sum->ndim == 1 && ((float *)tp_data(sum))[1] == 4 + 5 + 6 + 7 + 16 + 17 + 18 + 19);
    CHECK(nothing && nothing->numel == 2 && ((float *)tp_data(nothing))[1] == 0);
}

/* Ones in every layout that takes another path: the count must come out. */
static void test_reduce_layouts(void) {
    static const int64_t shapes[][3] = {{1, 1, 20000}, {20000, 1, 3}, {3, 1, 20000},
                                        {50, 60, 70},  {5, 5000, 2},  {300, 1, 40}};
    for (int s = 0; s < TP_COUNTOF(shapes); s++)
        for (uint64_t mask = 0; mask < 8; mask++) {
            tp_autoref *a = tp_new_empty((tp_ints){shapes[s], 3}, TP_FLOAT32, TP_CPU);
            for (int64_t i = 0; i < a->numel; i++) ((float *)tp_data(a))[i] = 1;
            tp_autoref *sum = sum_of(a, mask);
            bool ok = sum != NULL;
            for (int64_t i = 0; ok && i < sum->numel; i++)
                ok = ((float *)tp_data(sum))[i] == (float)(a->numel / sum->numel);
            CHECK(ok);
        }
}

/* ---- allocations ---- */

static void test_allocation_failures(void) {
    tp_autoref *a = new_f32(TP_INTS(30, 40)), *t = view(a, TP_INTS(40, 30), TP_INTS(1, 40), 0), *made = NULL;
    tp_autoref *b = new_f32(TP_INTS(40, 30)), *out = tp_new_empty(TP_INTS(0), TP_FLOAT32, TP_CPU);
    tp_autoref *line = new_f32(TP_INTS(9)), *next = view(line, TP_INTS(3), TP_INTS(2), 2),
               *big = new_f32(TP_INTS(400, 700));
    tp_autoref *even = view(line, TP_INTS(3), TP_INTS(2), 0), *row = tp_new_empty(TP_INTS(700), TP_INT32, TP_CPU);
    tp_autoref *wide = tp_new_empty(TP_INTS(400, 700), TP_FLOAT32, TP_CPU);
    memset(tp_data(row), 0, 2800);
    CHECK_EACH_ALLOCATION((made = add_new(a, a)) != NULL, tp_release(tp_take(made)));
    CHECK_EACH_ALLOCATION((made = add_new(t, b)) != NULL, tp_release(tp_take(made)));
    CHECK_EACH_ALLOCATION(add_into(next, even, next, true) == 0, (void)0);
    CHECK_EACH_ALLOCATION((made = sum_of(big, 3)) != NULL, tp_release(tp_take(made)));
    CHECK_EACH_ALLOCATION(tp_copy_data(wide, row) == 0, (void)0);
    tp_alloc_fail_after(0);
    CHECK_INT(add_into(a, a, out, false), -1);
    tp_alloc_fail_after(-1);
    CHECK_ERROR(MemoryError, "can't allocate memory");
    CHECK_INT(out->numel, 0);
}

int main(void) {
    CHECK_INT(tp_register_generated(), 0);
    tp_compute_all_tables();
    tp_pointwise_select(0);
    load_add();
    for (int capability = 0; capability <= (int)tp_cpu_capability(); capability++) {
        tp_cpu_select((tp_capability)capability);
        test_plan_merges();
        test_plan_reorders();
        test_plan_negative_strides();
        test_plan_broadcasts();
        test_plan_without_dims_or_elements();
        test_output_strides();
        test_result_type();
        test_overlap();
        test_conversion();
        test_short_rows_take_few_calls();
        test_transposed();
        test_threads();
        test_into_errors();
        test_into_unknown_overlap();
        test_out_resizes();
        test_meta();
        test_reduce_shapes();
        test_reduce_layouts();
        test_allocation_failures();
    }
    CHECK_INT(tp_alloc_stats().live_blocks, 0);
    return check_report();
}
