/* test_storage_tensor.c: devices, storages and tensors, each allocation failing in turn. */
#include "check.h"

#include "core/tensor.h"
#include "core/tls.h"
#include "core/memory.h"

static int64_t live(void) { return tp_alloc_stats().live_blocks; }

/* ---- devices ---- */

static void test_devices(void) {
    tp_device d;
    char buffer[40];
    CHECK_INT(tp_device_parse("cpu", &d), 0);
    CHECK(tp_device_equal(d, TP_CPU));
    CHECK_INT(tp_device_parse("opencl:12", &d), 0);
    CHECK(d.type == TP_DEVICE_OPENCL && d.index == 12);
    CHECK_STR(tp_device_print(d, buffer), "opencl:12");
    CHECK_STR(tp_device_print(TP_META, buffer), "meta");
    CHECK_STR(tp_device_print(TP_NO_DEVICE, buffer), "None");
    CHECK_INT(tp_device_parse("", &d), -1);
    CHECK_ERROR(RuntimeError, "Device string must not be empty");
    static const char *const bad_index[] = {"cpu:", "cpu:a", "cpu:01", "cpu:-1", "cpu:128", "cpu:1:2", "cpu: 1"};
    for (size_t i = 0; i < sizeof bad_index / sizeof *bad_index; i++) {
        CHECK_INT(tp_device_parse(bad_index[i], &d), -1);
        CHECK_ERROR(RuntimeError, "Invalid device string: 'cpu:");
    }
    static const char *const bad_type[] = {"foo", "CPU", "cpux", "cp"};
    for (size_t i = 0; i < sizeof bad_type / sizeof *bad_type; i++) {
        CHECK_INT(tp_device_parse(bad_type[i], &d), -1);
        CHECK_ERROR(RuntimeError, "Expected one of cpu, meta device type at start of device string: ");
    }
    static const char *const no_name[] = {":0", "cpu ", "a cpu", "1cpu", "c-pu:0"};
    for (size_t i = 0; i < sizeof no_name / sizeof *no_name; i++) {
        CHECK_INT(tp_device_parse(no_name[i], &d), -1);
        CHECK_ERROR(RuntimeError, "Invalid device string: '");
    }
    CHECK(tp_device_get_ops(TP_DEVICE_PRIVATEUSE2) == NULL);
    CHECK_ERROR(RuntimeError, "privateusetwo is not available");
}

static void test_rename(void) {
    tp_device d;
    CHECK_INT(tp_rename_device(TP_DEVICE_CPU, "npu"), -1);
    CHECK_ERROR(RuntimeError, "only the privateuse device types");
    CHECK_INT(tp_rename_device(TP_DEVICE_PRIVATEUSE1, "cpu"), -1);
    CHECK_ERROR(RuntimeError, "a device has it already");
    CHECK_INT(tp_rename_device(TP_DEVICE_PRIVATEUSE1, "a-b"), -1);
    CHECK_ERROR(RuntimeError, "invalid backend name");
    CHECK_INT(tp_rename_device(TP_DEVICE_PRIVATEUSE1, "npu"), 0);
    CHECK_INT(tp_rename_device(TP_DEVICE_PRIVATEUSE1, "npu"), 0);
    CHECK_INT(tp_rename_device(TP_DEVICE_PRIVATEUSE1, "tpu"), -1);
    CHECK_ERROR(RuntimeError, "Current backend: npu");
    CHECK_STR(tp_device_type_name(TP_DEVICE_PRIVATEUSE1), "npu");
    CHECK_INT(tp_device_parse("npu:1", &d), 0);
    CHECK(d.type == TP_DEVICE_PRIVATEUSE1 && d.index == 1);
    CHECK_INT(tp_device_parse("privateuseone", &d), 0);
}

/* ---- storages ---- */

static int deleted;
static void count_deletion(void *context, void *data) { deleted += context == &deleted && data != NULL; }

static void test_storage(void) {
    int64_t start = live();
    static const size_t sizes[] = {0, 1, 64, 512, 513, 5000, 3 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        tp_storage *s = tp_storage_new((tp_device){TP_DEVICE_CPU, 0}, sizes[i]);
        CHECK(s->nbytes == sizes[i] && s->device.index == -1);
        CHECK((s->data != NULL) == (sizes[i] > 0) && (uintptr_t)s->data % TP_ALIGNMENT == 0);
        CHECK_INT(live() - start, sizes[i] > 512 ? 2 : 1);
        if (s->data) memset(s->data, 7, sizes[i]);
        CHECK(tp_storage_retain(s) == s);
        tp_storage_release(s);
        CHECK_INT(tp_storage_resize(s, sizes[i] + 1000), 0);
        CHECK(s->nbytes == sizes[i] + 1000);
        CHECK(sizes[i] == 0 || (((char *)s->data)[0] == 7 && ((char *)s->data)[sizes[i] - 1] == 7));
        memset(s->data, 8, s->nbytes);
        CHECK_INT(tp_storage_resize(s, 5), 0);
        CHECK(s->nbytes == sizes[i] + 1000);
        tp_storage_release(s);
        CHECK_INT(live(), start);
    }
    tp_storage_release(NULL);
    tp_storage *m = tp_storage_new(TP_META, (size_t)1 << 60);
    CHECK(m->data == NULL && m->nbytes == (size_t)1 << 60);
    CHECK_INT(tp_storage_resize(m, (size_t)1 << 61), 0);
    tp_storage_release(m);
    CHECK(tp_storage_new((tp_device){TP_DEVICE_OPENCL, 0}, 8) == NULL);
    CHECK_ERROR(RuntimeError, "opencl is not available");
}

static void test_blob(void) {
    char memory[16];
    tp_storage *s = tp_storage_from_blob(TP_CPU, memory, sizeof memory, count_deletion, &deleted);
    CHECK(s->data == memory && deleted == 0);
    CHECK_INT(tp_storage_resize(s, 100), -1);
    CHECK_ERROR(RuntimeError, "Trying to resize storage that is not resizable");
    tp_storage_release(s);
    CHECK_INT(deleted, 1);
    s = tp_storage_from_blob(TP_CPU, memory, sizeof memory, NULL, NULL);
    tp_storage_release(s);
}

static void test_storage_failures(void) {
    tp_storage *s;
    CHECK_EACH_ALLOCATION((s = tp_storage_new(TP_CPU, 100)) != NULL, tp_storage_release(s));
    CHECK_EACH_ALLOCATION((s = tp_storage_new(TP_CPU, 10000)) != NULL, tp_storage_release(s));
    CHECK_EACH_ALLOCATION((s = tp_storage_from_blob(TP_CPU, &s, 8, NULL, NULL)) != NULL, tp_storage_release(s));
    s = tp_storage_new(TP_CPU, 4);
    memcpy(s->data, "abc", 4);
    tp_alloc_fail_after(0);
    CHECK_INT(tp_storage_resize(s, 4000), -1);
    CHECK_ERROR(MemoryError, "4000 bytes");
    CHECK(s->nbytes == 4 && strcmp(s->data, "abc") == 0);
    CHECK_INT(tp_storage_resize(s, 4000), 0);
    CHECK_STR(s->data, "abc");
    tp_storage_release(s);
}

/* ---- tensors ---- */

static bool has_geometry(const tp_tensor *t, tp_ints sizes, tp_ints strides) {
    if (t->ndim != sizes.size) return false;
    for (int64_t i = 0; i < sizes.size; i++)
        if (t->sizes[i] != sizes.data[i] || t->strides[i] != strides.data[i]) return false;
    return true;
}

static void test_new(void) {
    tp_device_keys[TP_DEVICE_CPU] = 0x1234;
    tp_tensor *t = tp_new_empty(TP_INTS(2, 3), TP_FLOAT32, TP_CPU);
    CHECK(has_geometry(t, TP_INTS(2, 3), TP_INTS(3, 1)));
    CHECK(t->numel == 6 && t->refcount == 1 && t->dtype == TP_FLOAT32 && t->keys == 0x1234);
    CHECK(t->flags == TP_FLAG_CONTIGUOUS && !t->base && !t->autograd && !t->pyobj && t->byte_offset == 0);
    CHECK(t->storage->nbytes == 24 && tp_data(t) == t->storage->data);
    memset(tp_data(t), 0, 24);
    CHECK_INT(tp_version(t), 0);
    tp_bump_version(t);
    CHECK_INT(tp_version(t), 1);
    CHECK(tp_retain(t) == t && t->refcount == 2);
    tp_release(t);
    tp_release(t);
    tp_release(NULL);
    t = tp_new_empty(TP_INTS(1, 2, 3, 4, 5, 6, 7), TP_INT64, TP_CPU);
    CHECK(has_geometry(t, TP_INTS(1, 2, 3, 4, 5, 6, 7), TP_INTS(5040, 2520, 840, 210, 42, 7, 1)));
    CHECK(t->storage->nbytes == 5040 * 8);
    tp_release(t);
    tp_set_inference_mode(true);
    t = tp_new_empty(TP_EMPTY_INTS, TP_INT64, TP_CPU);
    CHECK(t->flags == (TP_FLAG_CONTIGUOUS | TP_FLAG_INFERENCE) && t->numel == 1);
    tp_bump_version(t);
    CHECK_INT(tp_version(t), 0);
    tp_release(t);
    tp_set_inference_mode(false);
}

static void test_new_refused(void) {
    int64_t start = live(), ones[65];
    for (int i = 0; i < 65; i++) ones[i] = 1;
    CHECK(!tp_new_empty(TP_INTS(2, -1), TP_FLOAT32, TP_CPU));
    CHECK_ERROR(RuntimeError, "Trying to create tensor with negative dimension -1: [2, -1]");
    CHECK(!tp_new_empty(TP_INTS(INT64_MIN), TP_FLOAT32, TP_CPU));
    CHECK_ERROR(RuntimeError, "negative dimension");
    CHECK(!tp_new_empty(TP_INTS(INT64_C(1) << 61), TP_FLOAT32, TP_META));
    CHECK_ERROR(RuntimeError, "Storage size calculation overflowed with sizes=[2305843009213693952]");
    CHECK(!tp_new_empty(TP_INTS(0, INT64_C(1) << 40, INT64_C(1) << 40), TP_FLOAT32, TP_CPU));
    CHECK_ERROR(RuntimeError, "Stride calculation overflowed");
    CHECK(!tp_new_empty(TP_INTS(1, 1, 1, 1, 1, -1), TP_FLOAT32, TP_CPU));
    CHECK_ERROR(RuntimeError, "negative dimension");
    CHECK(!tp_new_empty((tp_ints){ones, 65}, TP_FLOAT32, TP_CPU));
    CHECK_ERROR(RuntimeError, "only tensors with up to 64 dims are supported, got 65");
    CHECK(!tp_new_empty_strided((tp_ints){ones, 65}, (tp_ints){ones, 65}, TP_FLOAT32, TP_CPU));
    CHECK_ERROR(RuntimeError, "only tensors with up to 64 dims");
    CHECK(!tp_new_empty_strided(TP_INTS(2, 3), TP_INTS(1), TP_FLOAT32, TP_CPU));
    CHECK_ERROR(RuntimeError, "dimensionality of sizes (2) must match dimensionality of strides (1)");
    CHECK(!tp_new_empty_strided(TP_INTS(2, 2), TP_INTS(INT64_MAX, INT64_MAX), TP_FLOAT32, TP_META));
    CHECK_ERROR(RuntimeError, "overflowed");
    CHECK(!tp_new_empty_strided(TP_INTS(2, 2), TP_INTS(INT64_MAX, INT64_MIN), TP_FLOAT32, TP_META));
    CHECK_ERROR(RuntimeError, "overflowed");
    CHECK(!tp_new_empty(TP_INTS(2), TP_FLOAT32, (tp_device){TP_DEVICE_OPENCL, 0}));
    CHECK_ERROR(RuntimeError, "opencl is not available");
    tp_tensor *t = tp_new_empty((tp_ints){ones, 64}, TP_FLOAT32, TP_CPU);
    CHECK(t && t->ndim == 64 && t->numel == 1);
    tp_release(t);
    CHECK_INT(live(), start);
}

static void test_strided(void) {
    tp_tensor *t = tp_new_empty_strided(TP_INTS(3, 2), TP_INTS(1, 3), TP_FLOAT64, TP_CPU);
    CHECK(has_geometry(t, TP_INTS(3, 2), TP_INTS(1, 3)) && !tp_is_contiguous(t) && t->storage->nbytes == 48);
    tp_tensor *like = tp_new_empty_like(t, TP_INT32);
    CHECK(has_geometry(like, TP_INTS(3, 2), TP_INTS(1, 3)) && like->dtype == TP_INT32 && like->storage->nbytes == 24);
    CHECK(!tp_is_contiguous(like) && tp_is_dense(like));
    tp_release(like);
    tp_release(t);
    t = tp_new_empty_strided(TP_INTS(2, 3), TP_INTS(-3, -1), TP_FLOAT32, TP_CPU);
    CHECK(t->byte_offset == 20 && t->storage->nbytes == 24);
    float *first = tp_data(t);
    first[-3 - 2] = 1; /* the last element is the first in memory */
    like = tp_new_empty_like(t, TP_FLOAT32);
    CHECK(has_geometry(like, TP_INTS(2, 3), TP_INTS(3, 1)) && like->byte_offset == 0);
    tp_release(like);
    tp_release(t);
    t = tp_new_empty_strided(TP_INTS(2, 0), TP_INTS(-3, -1), TP_FLOAT32, TP_CPU);
    CHECK(t->byte_offset == 0 && t->storage->nbytes == 0 && t->numel == 0);
    tp_release(t);
    t = tp_new_empty_format(TP_INTS(2, 3, 4, 5), TP_INT8, TP_CPU, TP_CHANNELS_LAST);
    CHECK(has_geometry(t, TP_INTS(2, 3, 4, 5), TP_INTS(60, 1, 15, 3)) && t->storage->nbytes == 120);
    tp_release(t);
    t = tp_new_empty_strided(TP_INTS(1, 4), TP_INTS(100, 1), TP_INT8, TP_CPU);
    like = tp_new_empty_like(t, TP_INT8);
    CHECK(has_geometry(like, TP_INTS(1, 4), TP_INTS(100, 1)) && tp_is_contiguous(like));
    tp_release(like);
    tp_release(t);
}

static void test_number(void) {
    tp_tensor *t = tp_new_wrapped_number(TP_SCALAR_F(1.5));
    CHECK(t->ndim == 0 && t->dtype == TP_FLOAT64 && *(double *)tp_data(t) == 1.5);
    CHECK(t->flags & TP_FLAG_WRAPPED_NUMBER);
    tp_release(t);
    t = tp_new_wrapped_number(TP_SCALAR_I(-3));
    CHECK(t->dtype == TP_INT64 && *(int64_t *)tp_data(t) == -3);
    tp_release(t);
}

static void test_alias(void) {
    tp_tensor *t = tp_new_empty(TP_INTS(4, 5), TP_FLOAT32, TP_CPU);
    t->flags |= TP_FLAG_REQUIRES_GRAD | TP_FLAG_UNVERSIONED;
    t->keys = 0x77;
    tp_tensor *a = tp_new_alias(t, TP_INTS(5, 4), TP_INTS(1, 5), 0);
    CHECK(a->storage == t->storage && t->storage->refcount == 2 && a->keys == 0x77);
    CHECK(a->flags == TP_FLAG_UNVERSIONED && a->base == NULL);
    tp_tensor *row = tp_new_alias(t, TP_INTS(5), TP_INTS(1), 20);
    CHECK(tp_storage_offset(row) == 5 && tp_data(row) == (float *)tp_data(t) + 5 && tp_is_contiguous(row));
    tp_release(t);
    row->base = a; /* moved in */
    tp_release(row);
}

static void test_set_geometry(void) {
    tp_tensor *t = tp_new_empty(TP_INTS(2, 3), TP_FLOAT32, TP_CPU);
    int64_t swapped_sizes[] = {3, 2}, swapped_strides[] = {1, 3};
    CHECK_INT(tp_tensor_set_geometry(t, (tp_ints){swapped_sizes, 2}, (tp_ints){swapped_strides, 2}), 0);
    CHECK(!tp_is_contiguous(t) && t->numel == 6);
    CHECK_INT(tp_tensor_set_geometry(t, TP_INTS(1, 1, 2, 1, 1, 3, 1), TP_INTS(1, 1, 3, 1, 1, 1, 1)), 0);
    CHECK(t->ndim == 7 && t->numel == 6 && tp_is_contiguous(t) && t->sizes != t->inline_geometry);
    CHECK_INT(tp_tensor_set_geometry(t, tp_sizes(t), (tp_ints){t->sizes, 7}), 0); /* its own, crosswise */
    CHECK(t->strides[2] == 2 && t->strides[5] == 3);
    CHECK_INT(tp_tensor_set_geometry(t, (tp_ints){t->sizes + 2, 4}, (tp_ints){t->strides, 4}), 0);
    CHECK(has_geometry(t, TP_INTS(2, 1, 1, 3), TP_INTS(1, 1, 2, 1)) && t->sizes == t->inline_geometry);
    CHECK_INT(tp_tensor_set_geometry(t, TP_INTS(2, -1), TP_INTS(1, 1)), -1);
    CHECK_ERROR(RuntimeError, "negative dimension");
    CHECK_INT(tp_tensor_set_geometry(t, TP_INTS(2), TP_INTS(1, 1)), -1);
    CHECK_ERROR(RuntimeError, "dimensionality");
    CHECK_INT(tp_tensor_set_geometry(t, TP_INTS(INT64_C(1) << 40, INT64_C(1) << 40), TP_INTS(0, 0)), -1);
    CHECK_ERROR(RuntimeError, "overflowed");
    CHECK(t->ndim == 4);
    CHECK_INT(tp_tensor_set_geometry(t, TP_EMPTY_INTS, TP_EMPTY_INTS), 0);
    CHECK(t->ndim == 0 && t->numel == 1 && tp_is_contiguous(t));
    tp_release(t);
}

static void test_resize(void) {
    tp_tensor *t = tp_new_empty(TP_INTS(3), TP_INT32, TP_CPU);
    memcpy(tp_data(t), (int32_t[]){1, 2, 3}, 12);
    tp_tensor *view = tp_new_alias(t, TP_INTS(2), TP_INTS(1), 4);
    CHECK_INT(tp_tensor_resize(t, TP_INTS(200, 10), TP_NO_INTS), 0);
    CHECK(t->numel == 2000 && t->storage->nbytes == 8000 && ((int32_t *)tp_data(t))[2] == 3);
    CHECK(((int32_t *)tp_data(view))[1] == 3); /* views follow */
    CHECK_INT(tp_tensor_resize(view, TP_INTS(2000), TP_NO_INTS), 0);
    CHECK(view->storage->nbytes == 8004);
    CHECK_INT(tp_tensor_resize(t, TP_INTS(2, 2), TP_INTS(1, 2)), 0);
    CHECK(has_geometry(t, TP_INTS(2, 2), TP_INTS(1, 2)) && t->storage->nbytes == 8004);
    CHECK_INT(tp_tensor_resize(t, TP_INTS(2), TP_INTS(-1)), -1);
    CHECK_ERROR(RuntimeError, "before the start");
    CHECK_INT(tp_tensor_resize(view, TP_INTS(2), TP_INTS(-1)), 0);
    CHECK_INT(tp_tensor_resize(t, TP_INTS(-2), TP_NO_INTS), -1);
    CHECK_ERROR(RuntimeError, "negative dimension");
    tp_release(view);
    tp_release(t);
}

static void test_assign(void) {
    tp_tensor *a = tp_new_empty(TP_INTS(2), TP_FLOAT32, TP_CPU), *b = tp_new_empty(TP_INTS(3, 4), TP_INT64, TP_META);
    CHECK_INT(tp_tensor_assign(a, b), 0);
    CHECK(a->storage == b->storage && a->dtype == TP_INT64 && a->device.type == TP_DEVICE_META && a->numel == 12);
    CHECK_INT(tp_tensor_assign(a, a), 0);
    tp_release(b);
    tp_release(a);
}

static void test_tensor_failures(void) {
    tp_tensor *t, *u;
    CHECK_EACH_ALLOCATION((t = tp_new_empty(TP_INTS(2), TP_FLOAT32, TP_CPU)) != NULL, tp_release(t));
    CHECK_EACH_ALLOCATION((t = tp_new_empty(TP_INTS(1000), TP_FLOAT32, TP_CPU)) != NULL, tp_release(t));
    static const int64_t sizes[] = {1, 1, 2, 1, 1, 300}, strides[] = {1, 1, 1, 1, 1, 2};
    const tp_ints six_sizes = {sizes, 6}, six_strides = {strides, 6};
    CHECK_EACH_ALLOCATION((t = tp_new_empty(six_sizes, TP_FLOAT32, TP_CPU)) != NULL, tp_release(t));
    CHECK_EACH_ALLOCATION((t = tp_new_empty_strided(six_sizes, six_strides, TP_INT8, TP_CPU)) != NULL, tp_release(t));
    CHECK_EACH_ALLOCATION((t = tp_new_wrapped_number(TP_SCALAR_I(1))) != NULL, tp_release(t));
    t = tp_new_empty_strided(six_sizes, six_strides, TP_FLOAT32, TP_CPU);
    CHECK_EACH_ALLOCATION((u = tp_new_empty_like(t, TP_INT8)) != NULL, tp_release(u));
    CHECK_EACH_ALLOCATION((u = tp_new_alias(t, six_sizes, six_strides, 0)) != NULL, tp_release(u));
    CHECK_INT(t->storage->refcount, 1);
    u = tp_new_empty(TP_INTS(2), TP_FLOAT32, TP_CPU);
    tp_alloc_fail_after(0);
    CHECK_INT(tp_tensor_set_geometry(u, six_sizes, six_strides), -1);
    CHECK_ERROR(MemoryError, "allocate");
    CHECK(has_geometry(u, TP_INTS(2), TP_INTS(1)));
    tp_alloc_fail_after(0);
    CHECK_INT(tp_tensor_assign(u, t), -1);
    CHECK_ERROR(MemoryError, "allocate");
    CHECK(has_geometry(u, TP_INTS(2), TP_INTS(1)) && u->storage != t->storage);
    for (int i = 0; i < 2; i++) {
        tp_alloc_fail_after(i);
        CHECK_INT(tp_tensor_resize(u, six_sizes, TP_NO_INTS), -1);
        CHECK_ERROR(MemoryError, "allocate");
        CHECK(has_geometry(u, TP_INTS(2), TP_INTS(1)));
    }
    CHECK_INT(tp_tensor_resize(u, six_sizes, TP_NO_INTS), 0);
    tp_release(u);
    tp_release(t);
    tp_tensor_seq *seq;
    CHECK_EACH_ALLOCATION((seq = tp_tensor_seq_new(3)) != NULL, tp_tensor_seq_free(seq));
}

/* ---- the end of a tensor ---- */

static int freed_autograd, released;
static void free_autograd(tp_tensor *t) { freed_autograd += (void *)t->autograd == &freed_autograd && t->storage; }
/* As the object does that only the tensor kept: it goes, and lets go of the tensor. */
static void release_kept(tp_tensor *t) {
    released += t->pyobj == &released && atomic_load(&t->refcount) == (TP_KEEPS_PYOBJ | 2);
    atomic_store(&t->refcount, 1);
    tp_release(t);
}

static void test_free(void) {
    tp_core_hooks.free_autograd = free_autograd;
    tp_core_hooks.release_kept = release_kept;
    tp_tensor *t = tp_new_empty(TP_INTS(2), TP_FLOAT32, TP_CPU);
    t->pyobj = &released;
    tp_release(t); /* does not keep it */
    CHECK(freed_autograd == 0 && released == 0);
    t = tp_new_empty(TP_INTS(2), TP_FLOAT32, TP_CPU);
    t->pyobj = &released;
    t->autograd = (struct tp_autograd_meta *)&freed_autograd;
    tp_retain(tp_retain(t)); /* the object's reference, and another from C */
    atomic_fetch_or(&t->refcount, TP_KEEPS_PYOBJ);
    tp_release(t);
    CHECK(released == 0 && atomic_load(&t->refcount) == (TP_KEEPS_PYOBJ | 2));
    tp_release(t);
    CHECK(freed_autograd == 1 && released == 1);
    tp_tensor_seq *seq = tp_tensor_seq_new(3);
    seq->items[1] = tp_new_empty(TP_INTS(2), TP_FLOAT32, TP_CPU);
    CHECK(tp_tensor_seq_borrow(seq).size == 3 && tp_tensor_seq_borrow(seq).data[0] == NULL);
    tp_tensor_seq_free(seq);
    tp_tensor_seq_free(NULL);
}

/* ---- bytes ---- */

#define BYTES 12000

/* Every place of the destination within a page of the source's, lengths around those that are copied from the end. */
static void test_copy_bytes(void) {
    static unsigned char from[BYTES], to[BYTES];
    const size_t lengths[] = {0, 1, TP_MOVSB_LEAST - 1, TP_MOVSB_LEAST, TP_MOVSB_LEAST + 1, TP_MOVSB_LEAST + 63, 4000};
    for (size_t i = 0; i < BYTES; i++) from[i] = (unsigned char)(i * 7 + i / 251 + 1);
    for (size_t shift = 0; shift < 4200; shift += shift < 40 ? 1 : 37)
        for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
            size_t n = lengths[k], wrong = 0;
            memset(to, 0, sizeof to);
            tp_copy_bytes(to + shift + 1, from + 5, n);
            for (size_t i = 0; i < BYTES; i++)
                wrong += to[i] != (i > shift && i <= shift + n ? from[i - shift + 4] : 0);
            CHECK_INT((int64_t)wrong, 0);
        }
}

int main(void) {
    int64_t start = live();
    test_devices();
    test_rename();
    test_storage();
    test_blob();
    test_storage_failures();
    test_new();
    test_new_refused();
    test_strided();
    test_number();
    test_alias();
    test_set_geometry();
    test_resize();
    test_assign();
    test_tensor_failures();
    test_free();
    test_copy_bytes();
    CHECK_INT(live(), start);
    return check_report();
}
