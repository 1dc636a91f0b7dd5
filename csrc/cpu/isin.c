/* isin.c: isin on the CPU as a whole: the sorted keys of the test elements, and a search of each element's key among
 * them, without sequences of elements in between. */
#include "NativeFunctions.h"
#include "core/alloc.h"
#include "core/parallel.h"
#include "core/scalar_math.h"
#include "cpu/kernels.h"
#include "cpu/lines.h"
#include "iter/iter.h"
#include "prim/transfer.h"
#include "core/memory.h"

/* The keys of all elements of a contiguous tensor, new; they are uint64. */
static tp_tensor *keys_of(const tp_tensor *t) {
    tp_tensor *keys = tp_new_empty(TP_INTS(t->numel), TP_INT64, TP_CPU);
    if (keys) tp_make_keys(tp_data(keys), t, 0, t->numel, false);
    return keys;
}

/* Membership by binary search among the sorted keys of the test elements. A NaN is in nothing. */
typedef struct {
    const uint64_t *keys, *tests;
    int64_t n;
    bool nan_apart, invert, *out;
} membership;
static void find_members(int64_t begin, int64_t end, void *context) {
    const membership *m = context;
    int64_t places[256];
    for (int64_t i = begin; i < end; i += 256) {
        int64_t n = end - i < 256 ? end - i : 256;
        tp_cpu.order->left[TP_UINT64](m->tests, m->n, m->keys + i, n, places);
        for (int64_t j = 0; j < n; j++) {
            uint64_t key = m->keys[i + j];
            bool found = places[j] < m->n && m->tests[places[j]] == key && !(m->nan_apart && key == TP_NAN_KEY);
            m->out[i + j] = found != m->invert;
        }
    }
}
static int isin(tp_tensor *given, tp_tensor *given_tests, bool invert, tp_tensor *out) {
    tp_autoref *elements = tp_still(given), *tests = elements ? tp_still(given_tests) : NULL;
    if (!tests) return -1;
    tp_dtype common = tp_result_type((tp_operand[]){{elements, NULL}, {tests, NULL}}, 2);
    if (common == TP_NO_DTYPE) return -1;
    common = tp_compute_dtype(common);
    tp_autoref *a = tp_to_dtype(elements, common, false, false, TP_NO_FORMAT),
               *b = a ? tp_to_dtype(tests, common, false, false, TP_NO_FORMAT) : NULL;
    tp_autoref *x = b ? tp_contiguous(a, TP_CONTIGUOUS_FORMAT) : NULL,
               *y = x ? tp_contiguous(b, TP_CONTIGUOUS_FORMAT) : NULL;
    tp_autoref *keys = y ? keys_of(x) : NULL, *sorted = keys ? tp_new_empty(TP_INTS(y->numel), TP_INT64, TP_CPU) : NULL,
               *made = sorted ? tp_new_empty(tp_sizes(out), TP_BOOL, TP_CPU) : NULL;
    if (!made) return -1;
    int64_t n = y->numel;
    size_t bytes = (size_t)n * 2 * sizeof(tp_entry) + 1;
    tp_entry *e = tp_alloc(bytes);
    if (!e) return tp_fail_memory((int64_t)bytes);
    tp_make_entries(e, y, 0, n, false);
    if (tp_sort_entries(e, e + n, n) < 0) return tp_free(e, bytes), -1;
    uint64_t *tests_sorted = tp_data(sorted);
    for (int64_t i = 0; i < n; i++) tests_sorted[i] = e[i].key;
    tp_free(e, bytes);
    membership m = {tp_data(keys), tests_sorted, n, tp_is_floating(x), invert, tp_data(made)};
    if (tp_parallel_for(x->numel, TP_GRAIN / 16, find_members, &m) < 0) return -1;
    return tp_copy_data(out, made);
}

/* isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor
 */
int isin_Tensor_Tensor_cpu(tp_tensor *elements, tp_tensor *test_elements, bool assume_unique TP_UNUSED, bool invert,
                           tp_tensor *out) {
    return isin(elements, test_elements, invert, out);
}
/* isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool invert=False) -> Tensor */
int isin_Tensor_Scalar_cpu(tp_tensor *elements, const tp_scalar *test_element, bool assume_unique TP_UNUSED,
                           bool invert, tp_tensor *out) {
    tp_autoref *number = tp_number_beside(test_element, elements);
    return number ? isin(elements, number, invert, out) : -1;
}
/* isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor */
int isin_Scalar_Tensor_cpu(const tp_scalar *element, tp_tensor *test_elements, bool assume_unique TP_UNUSED,
                           bool invert, tp_tensor *out) {
    tp_autoref *number = tp_number_beside(element, test_elements);
    return number ? isin(number, test_elements, invert, out) : -1;
}
