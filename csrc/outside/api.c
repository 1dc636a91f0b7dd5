/* api.c: the table of functions that libraries from outside are given (include/tensorpy/api.h). */
#include "outside/iterate.h"
#include "outside/library.h"

#include "autocast/autocast.h"
#include "autograd/node.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "core/host.h"
#include "prim/host.h"
#include "opencl/runtime/custom.h"
#include "prim/fault.h"
#include "prim/pointwise.h"
#include "prim/reduce.h"

#include <stdio.h>
#include <string.h>

#ifndef TENSORPY_RELEASE /* the build says it: codegen/ninja_file.py */
#define TENSORPY_RELEASE "unknown"
#endif

/* ---- dtypes ---- */

static int64_t itemsize(tp_dtype d) { return tp_itemsize(d); }
static const char *dtype_name(tp_dtype d) { return d < 0 || d >= TP_NUM_DTYPES ? "none" : tp_dtype_names[d]; }

/* ---- tensors ---- */

static tp_tensor *retain(tp_tensor *t) { return tp_retain(t); }
static void release(tp_tensor *t) { tp_release(t); }

static void geometry(const tp_tensor *t, tp_view *out) {
    *out = (tp_view){
        .sizes = t->sizes,
        .strides = t->strides,
        .numel = t->numel,
        .keys = t->keys,
        .dtype = (tp_dtype)t->dtype,
        .device = t->device,
        .ndim = t->ndim,
        .is_contiguous = tp_is_contiguous(t),
        .requires_grad = tp_requires_grad(t),
    };
}

static void view(const tp_tensor *t, tp_view *out) {
    geometry(t, out);
    if (tp_settle(t->storage) < 0) tp_error_clear(); /* no contents to show */
    else if (t->storage->data) out->data = tp_data(t);
}

static int check_lengths(const char *function, tp_ints sizes, tp_ints strides) {
    if (sizes.size == strides.size && sizes.size <= TP_MAX_DIMS) return 0;
    return tp_fail(TP_ValueError, "%s: %lld sizes and %lld strides", function, (long long)sizes.size,
                   (long long)strides.size);
}

/* The bytes that a geometry reaches from its first element. */
static int bytes_of(tp_ints sizes, tp_ints strides, tp_dtype dtype, size_t *out) {
    int64_t low, high, n = tp_checked_numel(sizes);
    if (n < 0 || tp_strided_extent(sizes, strides, &low, &high) < 0) return -1;
    if (low < 0) return tp_fail(TP_ValueError, "memory from outside has no negative strides");
    *out = n ? (size_t)(high + 1) * (size_t)tp_itemsize(dtype) : 0;
    return 0;
}

static tp_tensor *from_memory(void *data, tp_ints sizes, tp_ints strides, tp_dtype dtype, tp_device device,
                              void (*release_memory)(void *context, void *data), void *context) {
    size_t nbytes = 0;
    tp_device resolved;
    if (check_lengths("from_memory", sizes, strides) < 0) return NULL;
    if (tp_device_resolve(device, &resolved) < 0 || bytes_of(sizes, strides, dtype, &nbytes) < 0) return NULL;
    tp_storage *s = tp_storage_from_blob(resolved, data, nbytes, release_memory, context);
    if (!s) return NULL;
    tp_tensor *t = tp_new_on_storage(s, sizes, strides, 0, dtype);
    if (!t) s->deleter = tp_storage_keep_blob;
    tp_storage_release(s);
    return t;
}

static tp_tensor *as_strided(tp_tensor *t, tp_ints sizes, tp_ints strides, int64_t offset) {
    int64_t bytes;
    if (check_lengths("as_strided", sizes, strides) < 0) return NULL;
    if (__builtin_mul_overflow(offset, tp_itemsize((tp_dtype)t->dtype), &bytes))
        return tp_fail_null(TP_ValueError, "as_strided: the offset %lld is out of range", (long long)offset);
    if (tp_check_in_storage(sizes, strides, bytes, (tp_dtype)t->dtype, t->storage->nbytes) < 0) return NULL;
    return tp_new_alias(t, sizes, strides, bytes);
}

static int resize(tp_tensor *t, tp_ints sizes) { return tp_tensor_resize(t, sizes, TP_NO_INTS); }

static void seq_put_steal(tp_tensor_seq *seq, int64_t i, tp_tensor *t) {
    tp_release(seq->items[i]);
    seq->items[i] = t;
}

/* ---- operators ---- */

static const tp_op *find_op(const char *name) {
    const tp_op *op = name ? tp_find_op_qualified(name) : NULL;
    if (!op) tp_fail(TP_RuntimeError, "there is no operator %s", name ? name : "NULL");
    return op;
}
static const char *op_schema(const tp_op *op) { return op->info->schema; }
static int op_arguments(const tp_op *op) { return op->info->nargs; }
static int op_results(const tp_op *op) { return op->info->nreturns; }

/* The device type that a key set stands for: that of its highest dense backend. */
static tp_device_type device_of(tp_keyset ks) {
    tp_keyset backends = ks & TP_BACKEND_KEYS;
    return backends ? (tp_device_type)(tp_highest_key(backends) - TP_KEY_CPU) : TP_DEVICE_CPU;
}

static int call_on_host(const tp_op *op, tp_keyset ks, const tp_value *args, tp_value *results) {
    for (int i = 0; i < op->info->nreturns; i++) tp_value_release(&results[i]); /* of an earlier try */
    return tp_call_on_host(device_of(ks), op, ks, args, results);
}

static tp_keyset exclude(tp_keyset ks) { return tp_exclude(ks); }
static void restore(tp_keyset before) { tp_exclude_restore(&before); }

/* ---- autograd ---- */

static int record_save(tp_record *r, tp_tensor *t) { return tp_record_save(r, t, -1); }
static void record_release(tp_record *r) { tp_node_release(r); }
static bool wants(const tp_record *r, int input) {
    return input >= 0 && input < (int)r->nedges && tp_node_wants(r, input);
}
static int check_write(tp_tensor *t, const char *op) {
    return tp_check_writable(t, op) < 0 || tp_may_write(t, op) < 0 ? -1 : 0;
}
static void note_write(tp_tensor *t, const char *op) { tp_note_write(t, op); }

/* ---- autocast ---- */

static tp_dtype autocast_dtype(int type) { return tp_autocast_enabled(type) ? tp_autocast_dtype(type) : TP_NO_DTYPE; }

/* ---- primitives ---- */

static int64_t print_program(const tp_program *program, tp_dtype compute, char *text, int64_t room) {
    tp_autotext printed = {0};
    tp_program_print(&printed, program, compute, false);
    if (!printed.text) return tp_fail_memory(0);
    if (room > 0) snprintf(text, (size_t)room, "%s", printed.text);
    return (int64_t)strlen(printed.text);
}
static int raise_fault(int64_t fault, int64_t value, int64_t dim, int64_t size, const char *where) {
    return tp_raise_fault((int)fault, value, dim, size, where);
}

/* ---- dispatch keys ---- */

static const tp_keyset key_bits[TENSORPY_NUM_KEYS] = {
#define KEY_BIT(name) [TENSORPY_KEY_##name] = TP_BIT(name),
    TENSORPY_FORALL_KEYS(KEY_BIT)
#undef KEY_BIT
};
static const tp_keyset keys_below[TENSORPY_NUM_KEYS] = {
#define KEYS_BELOW(name) [TENSORPY_KEY_##name] = TP_BELOW(name),
    TENSORPY_FORALL_KEYS(KEYS_BELOW)
#undef KEYS_BELOW
};
_Static_assert((int)TENSORPY_NUM_KEYS == (int)TP_NUM_KEYS - 1, "libraries know every key but Undefined by a number");

const tensorpy_api tp_api = {
    .size = sizeof(tensorpy_api),
    .version = TENSORPY_API_VERSION,
    .tensorpy = TENSORPY_RELEASE,
    .nkeys = TENSORPY_NUM_KEYS,
    .bits = key_bits,
    .below = keys_below,
    .fail = tp_fail,
    .error_pending = tp_error_pending,
    .error_message = tp_error_message,
    .error_clear = tp_error_clear,
    .itemsize = itemsize,
    .dtype_name = dtype_name,
    .promote_types = tp_promote_dtypes,
    .scalar_double = tp_scalar_double,
    .scalar_int = tp_scalar_int,
    .scalar_complex = tp_scalar_complex,
    .retain = retain,
    .release = release,
    .view = view,
    .new_empty = tp_new_empty,
    .new_empty_strided = tp_new_empty_strided,
    .new_empty_like = tp_new_empty_like,
    .from_memory = from_memory,
    .as_strided = as_strided,
    .resize = resize,
    .seq_new = tp_tensor_seq_new,
    .seq_put_steal = seq_put_steal,
    .seq_free = tp_tensor_seq_free,
    .find_op = find_op,
    .check_codes = tp_check_codes,
    .op_name = tp_op_name,
    .op_schema = op_schema,
    .op_arguments = op_arguments,
    .op_results = op_results,
    .call = tp_call_boxed,
    .redispatch = tp_redispatch_boxed,
    .call_on_host = call_on_host,
    .value_release = tp_value_release,
    .exclude = exclude,
    .restore = restore,
    .define = tp_library_define,
    .implement = tp_library_implement,
    .implement_boxed = tp_library_implement_boxed,
    .record_new = tp_record_new,
    .record_save = record_save,
    .record_save_output = tp_record_save,
    .record_output = tp_record_output,
    .record_release = record_release,
    .record_data = tp_record_data,
    .saved = tp_record_saved,
    .wants = wants,
    .as_view = tp_as_view,
    .check_write = check_write,
    .note_write = note_write,
    .autocast_dtype = autocast_dtype,
    .cached_cast = tp_cached_cast,
    .autocast_promote = tp_autocast_promote,
    .parallel_for = tp_parallel_for,
    .num_threads = tp_get_num_threads,
    .host_lock_release = tp_host_lock_release,
    .host_lock_acquire = tp_host_lock_acquire,
    .look_for_signals = tp_host_look,
    .opencl_run = tp_cl_run_source,
    .map_program = tp_map_program_of,
    .reduce_program = tp_reduce_program_of,
    .step_name = tp_step_name,
    .kind_dtype = tp_kind_dtype,
    .program_result = tp_program_result,
    .print_program = print_program,
    .raise_fault = raise_fault,
    .current_stream = tp_backend_stream,
    .generated = &tp_generated_api,
    .decline = tp_decline,
    .result_type = tp_result_type,
    .new_output = tp_outside_new_output,
    .plan_of = tp_outside_plan,
    .walk = tp_outside_walk,
    .geometry = geometry,
};
