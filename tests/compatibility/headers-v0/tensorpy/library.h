/* library.h: operators, kernels and devices from outside, in C or C++.
 *
 *     #include "tensorpy/library.h"
 *
 *     TENSORPY_KERNEL(tp_tensor *, scale_cpu, (tp_tensor *, self), (double, by)) {
 *         ...
 *     }
 *     TENSORPY_LIBRARY(myops, m) { return tp_def(m, "scale(Tensor self, float by=2.0) -> Tensor"); }
 *     TENSORPY_LIBRARY_IMPL(myops, CPU, m) { return tp_impl(m, "scale", scale_cpu); }
 *
 * A library is a shared object of one or several such files, linked with nothing (python -m tensorpy.utils.extension
 * prints the flags), and loaded by tensorpy.ops.load_library(). A part returns 0, or -1 if something in it failed; then
 * nothing of the library stays. Declarations run before kernels, whatever the order of the files.
 *
 * C types of schema types, and the letters by which a kernel is checked against its schema:
 *     Tensor, Tensor?   T  tp_tensor * (NULL)         Tensor[]         t  tp_tensors
 *     Scalar, Scalar?   S  const tp_scalar * (NULL)   Scalar[]         s  tp_scalars
 *     int, SymInt       J  int64_t                    int? SymInt?     j  tp_opt_int
 *     float             F  double                     float?           f  tp_opt_float
 *     bool              B  bool                       bool?            b  tp_opt_bool
 *     int[], int[]?     I  tp_ints                    float[]          R  tp_floats
 *     bool[]            K  tp_bools                   str, str?        Z  const char * (NULL)
 *     ScalarType        D  tp_dtype                   Layout           L  tp_layout
 *     MemoryFormat      M  tp_memory_format           Device           V  tp_device
 *     Generator         G  tp_generator *             Storage          O  tp_storage *
 * A first parameter of tp_keyset (k) is the key set of the call. What a kernel returns: tp_tensor * (T), tp_tensor2 to
 * 5 (2 to 5), tp_tensor_seq * for Tensor[] (t), or int, a status (0): then results are arguments that it wrote, or
 * numbers that it stores through pointers behind the other parameters: int64_t * (i), double * (d), bool * (o). */
#ifndef TENSORPY_LIBRARY_H
#define TENSORPY_LIBRARY_H

#include "tensorpy/api.h"

/* ---- the table, and the list of parts: one of each per shared object ---- */

#define TENSORPY_SHARED __attribute__((weak, visibility("hidden")))

#ifdef __cplusplus
extern "C" {
#endif
TENSORPY_SHARED const tensorpy_api *tensorpy_functions = NULL;
TENSORPY_SHARED tensorpy_part *tensorpy_parts = NULL;
__attribute__((weak, visibility("default"))) const tensorpy_module *TENSORPY_ENTRY(const tensorpy_api *api) {
    static tensorpy_module module;
    tensorpy_functions = api;
    module.size = sizeof module;
    module.api_size = sizeof *api;
    module.version = TENSORPY_API_VERSION;
    module.parts = tensorpy_parts;
    return &module;
}
#ifdef __cplusplus
}
#endif

#define TENSORPY_INLINE static inline __attribute__((unused))
#define TENSORPY_GLUE_(a, b) a##b
#define TENSORPY_GLUE(a, b) TENSORPY_GLUE_(a, b)

/* A part puts itself into the list when the shared object is opened. */
#define TENSORPY_PART(id, kind_, ns_, key_, fill_, fill_backend_)                                       \
    __attribute__((constructor)) static void TENSORPY_GLUE(tensorpy_add_, id)(void) {                   \
        static tensorpy_part part = {NULL, kind_, ns_, key_, fill_, fill_backend_, __FILE__, __LINE__}; \
        part.next = tensorpy_parts;                                                                     \
        tensorpy_parts = &part;                                                                         \
    }
#define TENSORPY_FILLED_PART(id, kind, ns, key, m)                            \
    static int TENSORPY_GLUE(tensorpy_fill_, id)(tp_library *);               \
    TENSORPY_PART(id, kind, ns, key, TENSORPY_GLUE(tensorpy_fill_, id), NULL) \
    static int TENSORPY_GLUE(tensorpy_fill_, id)(tp_library * m)

/* Opens a namespace: its operators are declared here, and in fragments. */
#define TENSORPY_LIBRARY(ns, m) TENSORPY_FILLED_PART(def_##ns, TENSORPY_PART_DEF, #ns, "", m)
/* Adds declarations to a namespace, of this library or of another. */
#define TENSORPY_LIBRARY_FRAGMENT(ns, m) \
    TENSORPY_FILLED_PART(TENSORPY_GLUE(fragment_##ns##_, __LINE__), TENSORPY_PART_FRAGMENT, #ns, "", m)
/* Kernels for a dispatch key (CPU, OpenCL, Meta, Autograd, AutogradCPU, AutocastCPU, CompositeImplicitAutograd, ...; a
 * device from outside stands for its own: mirror, Autograd_mirror, Autocast_mirror). The namespace may be another's:
 * aten, tensorpy's own operators; prim, its primitives; _ for a fallback. */
#define TENSORPY_LIBRARY_IMPL(ns, key, m) \
    TENSORPY_FILLED_PART(TENSORPY_GLUE(impl_##ns##_##key##_, __LINE__), TENSORPY_PART_IMPL, #ns, #key, m)
/* A device: see tensorpy/backend.h. */
#define TENSORPY_BACKEND(name, b)                                                                                 \
    static void TENSORPY_GLUE(tensorpy_backend_, name)(tensorpy_backend *);                                       \
    TENSORPY_PART(backend_##name, TENSORPY_PART_BACKEND, #name, "", NULL, TENSORPY_GLUE(tensorpy_backend_, name)) \
    static void TENSORPY_GLUE(tensorpy_backend_, name)(tensorpy_backend * b)

/* Declares "scale(Tensor self) -> Tensor" in the part's namespace. */
TENSORPY_INLINE int tp_def(tp_library *m, const char *schema) { return tensorpy_functions->define(m, schema); }
/* Registers a kernel, whose C types are checked against the schema. */
#define tp_impl(m, op, kernel) tensorpy_functions->implement(m, op, &kernel##_kernel)
/* The operator passes the part's key by. */
#define tp_impl_fallthrough(m, op) tensorpy_functions->implement_boxed(m, op, NULL, NULL, NULL, "fallthrough")
#define tp_impl_boxed(m, op, fn, context, free_context) \
    tensorpy_functions->implement_boxed(m, op, fn, context, free_context, #fn)
/* For every operator that has no kernel of its own at the part's key (of the namespace _). */
#define tp_fallback(m, fn, context, free_context) \
    tensorpy_functions->implement_boxed(m, "", fn, context, free_context, #fn)

/* ---- the functions of the table ---- */

#define tp_fail(...) tensorpy_functions->fail(__VA_ARGS__)
#ifdef __cplusplus
#define tp_fail_null(...) (tensorpy_functions->fail(__VA_ARGS__), nullptr)
#else
#define tp_fail_null(...) (tensorpy_functions->fail(__VA_ARGS__), NULL)
#endif
TENSORPY_INLINE tp_error_class tp_error_pending(void) { return tensorpy_functions->error_pending(); }
TENSORPY_INLINE const char *tp_error_message(void) { return tensorpy_functions->error_message(); }
TENSORPY_INLINE void tp_error_clear(void) { tensorpy_functions->error_clear(); }
TENSORPY_INLINE int64_t tp_itemsize(tp_dtype dtype) { return tensorpy_functions->itemsize(dtype); }
TENSORPY_INLINE const char *tp_dtype_name(tp_dtype dtype) { return tensorpy_functions->dtype_name(dtype); }
TENSORPY_INLINE tp_dtype tp_promote_types(tp_dtype a, tp_dtype b) { return tensorpy_functions->promote_types(a, b); }
TENSORPY_INLINE double tp_scalar_double(const tp_scalar *s) { return tensorpy_functions->scalar_double(s); }
TENSORPY_INLINE int64_t tp_scalar_int(const tp_scalar *s) { return tensorpy_functions->scalar_int(s); }
TENSORPY_INLINE tp_complex128 tp_scalar_complex(const tp_scalar *s) { return tensorpy_functions->scalar_complex(s); }
TENSORPY_INLINE tp_tensor *tp_retain(tp_tensor *t) { return tensorpy_functions->retain(t); }
TENSORPY_INLINE void tp_release(tp_tensor *t) { tensorpy_functions->release(t); }
TENSORPY_INLINE tp_tensor *tp_new_empty(tp_ints sizes, tp_dtype dtype, tp_device device) {
    return tensorpy_functions->new_empty(sizes, dtype, device);
}
TENSORPY_INLINE tp_tensor *tp_new_empty_strided(tp_ints sizes, tp_ints strides, tp_dtype dtype, tp_device device) {
    return tensorpy_functions->new_empty_strided(sizes, strides, dtype, device);
}
TENSORPY_INLINE tp_tensor *tp_new_empty_like(const tp_tensor *like, tp_dtype dtype) {
    return tensorpy_functions->new_empty_like(like, dtype);
}
TENSORPY_INLINE tp_tensor *tp_from_memory(void *data, tp_ints sizes, tp_ints strides, tp_dtype dtype, tp_device device,
                                          void (*release_memory)(void *, void *), void *context) {
    return tensorpy_functions->from_memory(data, sizes, strides, dtype, device, release_memory, context);
}
TENSORPY_INLINE tp_tensor *tp_as_strided(tp_tensor *t, tp_ints sizes, tp_ints strides, int64_t offset) {
    return tensorpy_functions->as_strided(t, sizes, strides, offset);
}
TENSORPY_INLINE int tp_resize(tp_tensor *t, tp_ints sizes) { return tensorpy_functions->resize(t, sizes); }
TENSORPY_INLINE tp_tensor_seq *tp_seq_new(int64_t size) { return tensorpy_functions->seq_new(size); }
TENSORPY_INLINE void tp_seq_put_steal(tp_tensor_seq *seq, int64_t i, tp_tensor *t) {
    tensorpy_functions->seq_put_steal(seq, i, t);
}
TENSORPY_INLINE void tp_seq_free(tp_tensor_seq *seq) { tensorpy_functions->seq_free(seq); }
TENSORPY_INLINE const tp_op *tp_find_op(const char *name) { return tensorpy_functions->find_op(name); }
TENSORPY_INLINE const char *tp_op_name(const tp_op *op, char *buffer) {
    return tensorpy_functions->op_name(op, buffer);
}
TENSORPY_INLINE const char *tp_op_schema(const tp_op *op) { return tensorpy_functions->op_schema(op); }
TENSORPY_INLINE int tp_op_arguments(const tp_op *op) { return tensorpy_functions->op_arguments(op); }
TENSORPY_INLINE int tp_op_results(const tp_op *op) { return tensorpy_functions->op_results(op); }
TENSORPY_INLINE int tp_call(const tp_op *op, const tp_value *args, tp_value *results) {
    return tensorpy_functions->call(op, args, results);
}
TENSORPY_INLINE int tp_redispatch(const tp_op *op, tp_keyset ks, const tp_value *args, tp_value *results) {
    return tensorpy_functions->redispatch(op, ks, args, results);
}
TENSORPY_INLINE int tp_call_on_host(const tp_op *op, tp_keyset ks, const tp_value *args, tp_value *results) {
    return tensorpy_functions->call_on_host(op, ks, args, results);
}
TENSORPY_INLINE void tp_value_release(tp_value *v) { tensorpy_functions->value_release(v); }
TENSORPY_INLINE tp_keyset tp_exclude(tp_keyset ks) { return tensorpy_functions->exclude(ks); }
TENSORPY_INLINE void tp_restore(tp_keyset before) { tensorpy_functions->restore(before); }
TENSORPY_INLINE tp_record *tp_record_new(const char *name, tp_backward backward, tp_tensors inputs, const void *data,
                                         size_t nbytes) {
    return tensorpy_functions->record_new(name, backward, inputs, data, nbytes);
}
TENSORPY_INLINE int tp_record_save(tp_record *r, tp_tensor *t) { return tensorpy_functions->record_save(r, t); }
TENSORPY_INLINE int tp_record_save_output(tp_record *r, tp_tensor *t, int output) {
    return tensorpy_functions->record_save_output(r, t, output);
}
TENSORPY_INLINE int tp_record_output(tp_record *r, tp_tensor *t) { return tensorpy_functions->record_output(r, t); }
TENSORPY_INLINE void tp_record_release(tp_record *r) { tensorpy_functions->record_release(r); }
TENSORPY_INLINE void *tp_record_data(tp_record *r) { return tensorpy_functions->record_data(r); }
TENSORPY_INLINE tp_tensor *tp_saved(tp_record *r, int i) { return tensorpy_functions->saved(r, i); }
TENSORPY_INLINE bool tp_wants(const tp_record *r, int input) { return tensorpy_functions->wants(r, input); }
TENSORPY_INLINE tp_tensor *tp_as_view(tp_tensor *base, tp_tensor *view_steal) {
    return tensorpy_functions->as_view(base, view_steal);
}
TENSORPY_INLINE int tp_check_write(tp_tensor *t, const char *op) { return tensorpy_functions->check_write(t, op); }
TENSORPY_INLINE void tp_note_write(tp_tensor *t, const char *op) { tensorpy_functions->note_write(t, op); }
TENSORPY_INLINE tp_dtype tp_autocast_dtype(int device_type) { return tensorpy_functions->autocast_dtype(device_type); }
TENSORPY_INLINE tp_tensor *tp_cached_cast(tp_tensor *t, tp_dtype to, int device_type) {
    return tensorpy_functions->cached_cast(t, to, device_type);
}
TENSORPY_INLINE tp_dtype tp_autocast_promote(tp_dtype to, const tp_tensor *t, int device_type) {
    return tensorpy_functions->autocast_promote(to, t, device_type);
}
TENSORPY_INLINE int tp_parallel_for(int64_t n, int64_t grain, void (*fn)(int64_t, int64_t, void *), void *context) {
    return tensorpy_functions->parallel_for(n, grain, fn, context);
}
TENSORPY_INLINE int tp_num_threads(void) { return tensorpy_functions->num_threads(); }
TENSORPY_INLINE void *tp_host_lock_release(void) { return tensorpy_functions->host_lock_release(); }
TENSORPY_INLINE void tp_host_lock_acquire(void *state) { tensorpy_functions->host_lock_acquire(state); }
TENSORPY_INLINE int tp_look_for_signals(void) { return tensorpy_functions->look_for_signals(); }
TENSORPY_INLINE int tp_opencl_run(const char *name, const char *source, tp_tensor *on, tp_ints items, tp_ints group,
                                  const tp_value *args, int nargs) {
    return tensorpy_functions->opencl_run(name, source, on, items, group, args, nargs);
}
TENSORPY_INLINE tp_view tp_view_of(const tp_tensor *t) {
    tp_view v;
    tensorpy_functions->view(t, &v);
    return v;
}

/* ---- a kernel's parameters; tensorpy_give_<type>(x) boxes an argument of a call ---- */

/* What a boxed call has; `first` is 1 where the kernel takes the key set first, `nargs` how many arguments there are.
 */
typedef struct {
    tp_keyset ks;
    tp_value *args, *results;
    int first, nargs;
} tensorpy_frame;

/* X(C type, letter, name, of a boxed argument at `v`, that makes a boxed argument of `x`). */
#define TENSORPY_FORALL_TYPES(X)                                                                                      \
    X(tp_tensor *, 'T', tensor, v->tag == TP_NONE ? NULL : v->tensor, x ? TP_TENSOR : TP_NONE, tensor)                \
    X(tp_tensors, 't', tensors, v->tag == TP_NONE ? tensorpy_no_tensors() : v->tensors,                               \
      x.size < 0 ? TP_NONE : TP_TENSORS, tensors)                                                                     \
    X(const tp_scalar *, 'S', scalar, v->tag == TP_NONE ? NULL : v->scalar, x ? TP_SCALAR : TP_NONE, scalar)          \
    X(tp_scalars, 's', scalars, v->scalars, TP_SCALARS, scalars)                                                      \
    X(int64_t, 'J', int, v->i, TP_INT, i)                                                                             \
    X(double, 'F', float, v->f, TP_FLOAT, f)                                                                          \
    X(bool, 'B', bool, v->b, TP_BOOL_, b)                                                                             \
    X(const char *, 'Z', str, v->tag == TP_NONE ? NULL : v->str, x ? TP_STR : TP_NONE, str)                           \
    X(tp_dtype, 'D', dtype, v->tag == TP_NONE ? TP_NO_DTYPE : (tp_dtype)v->i, x == TP_NO_DTYPE ? TP_NONE : TP_DTYPE,  \
      i)                                                                                                              \
    X(tp_layout, 'L', layout, v->tag == TP_NONE ? TP_NO_LAYOUT : (tp_layout)v->i,                                     \
      x == TP_NO_LAYOUT ? TP_NONE : TP_LAYOUT, i)                                                                     \
    X(tp_memory_format, 'M', memory_format, v->tag == TP_NONE ? TP_NO_FORMAT : (tp_memory_format)v->i,                \
      x == TP_NO_FORMAT ? TP_NONE : TP_MEMORY_FORMAT, i)                                                              \
    X(tp_device, 'V', device, v->tag == TP_NONE ? tensorpy_no_device() : v->device, x.type < 0 ? TP_NONE : TP_DEVICE, \
      device)                                                                                                         \
    X(tp_generator *, 'G', generator, v->tag == TP_NONE ? NULL : v->generator, x ? TP_GENERATOR : TP_NONE, generator) \
    X(tp_storage *, 'O', storage, v->tag == TP_NONE ? NULL : v->storage, x ? TP_STORAGE : TP_NONE, storage)           \
    X(tp_ints, 'I', ints, v->tag == TP_NONE ? tensorpy_no_ints() : v->ints, x.size < 0 ? TP_NONE : TP_INTS_, ints)    \
    X(tp_floats, 'R', floats, v->tag == TP_NONE ? tensorpy_no_floats() : v->floats, x.size < 0 ? TP_NONE : TP_FLOATS, \
      floats)                                                                                                         \
    X(tp_bools, 'K', bools, v->bools, TP_BOOLS, bools)

#define TENSORPY_NONE_OF(name, T)                \
    TENSORPY_INLINE T tensorpy_no_##name(void) { \
        T none = {NULL, -1};                     \
        return none;                             \
    }
TENSORPY_NONE_OF(tensors, tp_tensors)
TENSORPY_NONE_OF(ints, tp_ints)
TENSORPY_NONE_OF(floats, tp_floats)
TENSORPY_INLINE tp_device tensorpy_no_device(void) {
    tp_device none = {-1, -1};
    return none;
}

#define TENSORPY_TYPE(T, letter, name, taken, tag_, member)                  \
    TENSORPY_INLINE T tensorpy_take_##name(const tensorpy_frame *f, int i) { \
        const tp_value *v = &f->args[i - f->first];                          \
        return taken;                                                        \
    }                                                                        \
    TENSORPY_INLINE tp_value tensorpy_give_##name(T x) {                     \
        tp_value v;                                                          \
        v.tag = tag_;                                                        \
        v.member = x;                                                        \
        return v;                                                            \
    }
TENSORPY_FORALL_TYPES(TENSORPY_TYPE)
#undef TENSORPY_TYPE

TENSORPY_INLINE tp_keyset tensorpy_take_keyset(const tensorpy_frame *f, int i) { return (void)i, f->ks; }
#define TENSORPY_OPT_TYPE(T, name, tag_, member)                             \
    TENSORPY_INLINE T tensorpy_take_##name(const tensorpy_frame *f, int i) { \
        const tp_value *v = &f->args[i - f->first];                          \
        T x = {v->tag != TP_NONE, 0};                                        \
        if (x.has) x.value = v->member;                                      \
        return x;                                                            \
    }                                                                        \
    TENSORPY_INLINE tp_value tensorpy_give_##name(T x) {                     \
        tp_value v;                                                          \
        v.tag = x.has ? tag_ : TP_NONE;                                      \
        v.member = x.value;                                                  \
        return v;                                                            \
    }
TENSORPY_OPT_TYPE(tp_opt_int, opt_int, TP_INT, i)
TENSORPY_OPT_TYPE(tp_opt_float, opt_float, TP_FLOAT, f)
TENSORPY_INLINE tp_opt_bool tensorpy_take_opt_bool(const tensorpy_frame *f, int i) {
    const tp_value *v = &f->args[i - f->first];
    return v->tag == TP_NONE ? -1 : (tp_opt_bool)v->b;
}
TENSORPY_INLINE tp_value tensorpy_give_opt_bool(tp_opt_bool x) {
    tp_value v;
    v.tag = x < 0 ? TP_NONE : TP_BOOL_;
    v.b = x > 0;
    return v;
}
/* Numbers that a kernel gives through pointers: results, in order. */
#define TENSORPY_OUT_TYPE(T, name, tag_, member)                                    \
    TENSORPY_INLINE T *tensorpy_take_##name##_out(const tensorpy_frame *f, int i) { \
        tp_value *v = &f->results[i - f->first - f->nargs];                         \
        v->tag = tag_;                                                              \
        return &v->member;                                                          \
    }
TENSORPY_OUT_TYPE(int64_t, int, TP_INT, i)
TENSORPY_OUT_TYPE(double, float, TP_FLOAT, f)
TENSORPY_OUT_TYPE(bool, bool, TP_BOOL_, b)

/* What a kernel returns, as results. */
TENSORPY_INLINE int tensorpy_put_tensors(tp_tensor *const *v, int n, tp_value *results) {
    int some = 0;
    for (int i = 0; i < n; i++) some |= v[i] != NULL;
    if (!some) return -1;
    for (int i = 0; i < n; i++) {
        results[i].tag = TP_TENSOR;
        results[i].tensor = v[i];
    }
    return 0;
}
TENSORPY_INLINE int tensorpy_put_tensor(tp_tensor *t, tp_value *results) {
    return tensorpy_put_tensors(&t, 1, results);
}
#define TENSORPY_PUT_MANY(n)                                                             \
    TENSORPY_INLINE int tensorpy_put_tensor##n(tp_tensor##n t, tp_value *results) {      \
        return tensorpy_put_tensors(t.v, n, results);                                    \
    }                                                                                    \
    TENSORPY_INLINE tp_tensor##n tensorpy_got_tensor##n(int status, tp_value *results) { \
        tp_tensor##n t = {{NULL}};                                                       \
        for (int i = 0; status == 0 && i < n; i++) t.v[i] = results[i].tensor;           \
        return t;                                                                        \
    }
TENSORPY_PUT_MANY(2)
TENSORPY_PUT_MANY(3)
TENSORPY_PUT_MANY(4)
TENSORPY_PUT_MANY(5)
TENSORPY_INLINE int tensorpy_put_seq(tp_tensor_seq *seq, tp_value *results) {
    if (!seq) return -1;
    results[0].tag = TP_TENSOR_SEQ;
    results[0].seq = seq;
    return 0;
}
TENSORPY_INLINE int tensorpy_put_status(int status, tp_value *results) {
    if (status < 0) results[0].tag = TP_NONE;
    return status < 0 ? -1 : 0;
}
TENSORPY_INLINE tp_tensor *tensorpy_got_tensor(int status, tp_value *results) {
    return status == 0 ? results[0].tensor : NULL;
}
TENSORPY_INLINE tp_tensor_seq *tensorpy_got_seq(int status, tp_value *results) {
    return status == 0 ? results[0].seq : NULL;
}
TENSORPY_INLINE int tensorpy_got_status(int status, tp_value *results) { return (void)results, status; }

#ifdef __cplusplus
template <typename T> struct tensorpy_type;
template <typename T> struct tensorpy_result;
#define TENSORPY_TYPE_IN_CPP(T, letter, name)                                                \
    template <> struct tensorpy_type<T> {                                                    \
        static constexpr char code = letter;                                                 \
        static T take(const tensorpy_frame *f, int i) { return tensorpy_take_##name(f, i); } \
    };
#define TENSORPY_TYPE(T, letter, name, taken, tag_, member) TENSORPY_TYPE_IN_CPP(T, letter, name)
TENSORPY_FORALL_TYPES(TENSORPY_TYPE)
#undef TENSORPY_TYPE
TENSORPY_TYPE_IN_CPP(tp_keyset, 'k', keyset)
TENSORPY_TYPE_IN_CPP(tp_opt_int, 'j', opt_int)
TENSORPY_TYPE_IN_CPP(tp_opt_float, 'f', opt_float)
TENSORPY_TYPE_IN_CPP(tp_opt_bool, 'b', opt_bool)
TENSORPY_TYPE_IN_CPP(int64_t *, 'i', int_out)
TENSORPY_TYPE_IN_CPP(double *, 'd', float_out)
TENSORPY_TYPE_IN_CPP(bool *, 'o', bool_out)
#define TENSORPY_RESULT_IN_CPP(T, letter, name)                                                      \
    template <> struct tensorpy_result<T> {                                                          \
        static constexpr char code = letter;                                                         \
        static int put(T r, tp_value *results) { return tensorpy_put_##name(r, results); }           \
        static T got(int status, tp_value *results) { return tensorpy_got_##name(status, results); } \
    };
TENSORPY_RESULT_IN_CPP(tp_tensor *, 'T', tensor)
TENSORPY_RESULT_IN_CPP(tp_tensor2, '2', tensor2)
TENSORPY_RESULT_IN_CPP(tp_tensor3, '3', tensor3)
TENSORPY_RESULT_IN_CPP(tp_tensor4, '4', tensor4)
TENSORPY_RESULT_IN_CPP(tp_tensor5, '5', tensor5)
TENSORPY_RESULT_IN_CPP(tp_tensor_seq *, 't', seq)
TENSORPY_RESULT_IN_CPP(int, '0', status)
#define TENSORPY_CODE(T) tensorpy_type<T>::code
#define TENSORPY_TAKE(T, f, i) tensorpy_type<T>::take(f, i)
#define TENSORPY_RESULT_CODE(R) tensorpy_result<R>::code
#define TENSORPY_PUT(R) tensorpy_result<R>::put
#define TENSORPY_GOT(R) tensorpy_result<R>::got
#define TENSORPY_GIVER(T, name) \
    TENSORPY_INLINE tp_value tensorpy_give(T x) { return tensorpy_give_##name(x); }
#define TENSORPY_TYPE(T, letter, name, taken, tag_, member) TENSORPY_GIVER(T, name)
TENSORPY_FORALL_TYPES(TENSORPY_TYPE)
#undef TENSORPY_TYPE
TENSORPY_GIVER(tp_opt_int, opt_int)
TENSORPY_GIVER(tp_opt_float, opt_float)
TENSORPY_GIVER(tp_opt_bool, opt_bool)
#define TENSORPY_GIVE(T, x) tensorpy_give((T)(x))
#else
#define TENSORPY_SELECT(T, prefix, other)        \
    _Generic(*(T *)NULL,                         \
        tp_tensor *: prefix##tensor,             \
        tp_tensors: prefix##tensors,             \
        const tp_scalar *: prefix##scalar,       \
        tp_scalars: prefix##scalars,             \
        int64_t: prefix##int,                    \
        double: prefix##float,                   \
        bool: prefix##bool,                      \
        const char *: prefix##str,               \
        tp_dtype: prefix##dtype,                 \
        tp_layout: prefix##layout,               \
        tp_memory_format: prefix##memory_format, \
        tp_device: prefix##device,               \
        tp_generator *: prefix##generator,       \
        tp_storage *: prefix##storage,           \
        tp_ints: prefix##ints,                   \
        tp_floats: prefix##floats,               \
        tp_bools: prefix##bools,                 \
        tp_opt_int: prefix##opt_int,             \
        tp_opt_float: prefix##opt_float,         \
        tp_opt_bool: prefix##opt_bool other)
#define TENSORPY_TAKE(T, f, i)                                                                            \
    TENSORPY_SELECT(T, tensorpy_take_,                                                                    \
                    TENSORPY_OTHERS(tensorpy_take_keyset, tensorpy_take_int_out, tensorpy_take_float_out, \
                                    tensorpy_take_bool_out))(f, i)
#define TENSORPY_OTHERS(k, i, d, o) , tp_keyset : k, int64_t * : i, double * : d, bool * : o
#define TENSORPY_GIVE(T, x) TENSORPY_SELECT(T, tensorpy_give_, )(x)
enum {
#define TENSORPY_TYPE(T, letter, name, taken, tag_, member) tensorpy_code_##name = letter,
    TENSORPY_FORALL_TYPES(TENSORPY_TYPE)
#undef TENSORPY_TYPE
        tensorpy_code_opt_int = 'j',
    tensorpy_code_opt_float = 'f',
    tensorpy_code_opt_bool = 'b'
};
#define TENSORPY_CODE(T) TENSORPY_SELECT(T, tensorpy_code_, TENSORPY_OTHERS('k', 'i', 'd', 'o'))
#define TENSORPY_OF_RESULT(R, prefix) \
    _Generic(*(R *)NULL,              \
        tp_tensor *: prefix##tensor,  \
        tp_tensor2: prefix##tensor2,  \
        tp_tensor3: prefix##tensor3,  \
        tp_tensor4: prefix##tensor4,  \
        tp_tensor5: prefix##tensor5,  \
        tp_tensor_seq *: prefix##seq, \
        int: prefix##status)
#define TENSORPY_RESULT_CODE(R) \
    _Generic(*(R *)NULL,        \
        tp_tensor *: 'T',       \
        tp_tensor2: '2',        \
        tp_tensor3: '3',        \
        tp_tensor4: '4',        \
        tp_tensor5: '5',        \
        tp_tensor_seq *: 't',   \
        int: '0')
#define TENSORPY_PUT(R) TENSORPY_OF_RESULT(R, tensorpy_put_)
#define TENSORPY_GOT(R) TENSORPY_OF_RESULT(R, tensorpy_got_)
#endif

/* ---- each of up to 24 (type, name) pairs, with its number ---- */

#define TENSORPY_EACH(X, ...)                                                                                          \
    TENSORPY_EACH_(__VA_ARGS__, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, \
                   0)(X, __VA_ARGS__)
#define TENSORPY_EACH_(p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15, p16, p17, p18, p19, p20, p21, \
                       p22, p23, p24, n, ...)                                                                          \
    TENSORPY_EACH_##n
#define TENSORPY_EACH_1(X, p0) X(0, p0)
#define TENSORPY_EACH_2(X, p0, p1) X(0, p0), X(1, p1)
#define TENSORPY_EACH_3(X, p0, p1, p2) X(0, p0), X(1, p1), X(2, p2)
#define TENSORPY_EACH_4(X, p0, p1, p2, p3) X(0, p0), X(1, p1), X(2, p2), X(3, p3)
#define TENSORPY_EACH_5(X, p0, p1, p2, p3, p4) X(0, p0), X(1, p1), X(2, p2), X(3, p3), X(4, p4)
#define TENSORPY_EACH_6(X, p0, p1, p2, p3, p4, p5) X(0, p0), X(1, p1), X(2, p2), X(3, p3), X(4, p4), X(5, p5)
#define TENSORPY_EACH_7(X, p0, p1, p2, p3, p4, p5, p6) \
    X(0, p0), X(1, p1), X(2, p2), X(3, p3), X(4, p4), X(5, p5), X(6, p6)
#define TENSORPY_EACH_8(X, p0, p1, p2, p3, p4, p5, p6, p7) \
    X(0, p0), X(1, p1), X(2, p2), X(3, p3), X(4, p4), X(5, p5), X(6, p6), X(7, p7)
#define TENSORPY_EACH_9(X, p0, p1, p2, p3, p4, p5, p6, p7, p8) \
    X(0, p0), X(1, p1), X(2, p2), X(3, p3), X(4, p4), X(5, p5), X(6, p6), X(7, p7), X(8, p8)
#define TENSORPY_EACH_10(X, p0, p1, p2, p3, p4, p5, p6, p7, p8, p9) \
    X(0, p0), X(1, p1), X(2, p2), X(3, p3), X(4, p4), X(5, p5), X(6, p6), X(7, p7), X(8, p8), X(9, p9)
#define TENSORPY_EACH_11(X, p0, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10) \
    X(0, p0), X(1, p1), X(2, p2), X(3, p3), X(4, p4), X(5, p5), X(6, p6), X(7, p7), X(8, p8), X(9, p9), X(10, p10)
#define TENSORPY_EACH_12(X, p0, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11)                                       \
    X(0, p0), X(1, p1), X(2, p2), X(3, p3), X(4, p4), X(5, p5), X(6, p6), X(7, p7), X(8, p8), X(9, p9), X(10, p10), \
        X(11, p11)
#define TENSORPY_EACH_13(X, p0, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12)                                  \
    X(0, p0), X(1, p1), X(2, p2), X(3, p3), X(4, p4), X(5, p5), X(6, p6), X(7, p7), X(8, p8), X(9, p9), X(10, p10), \
        X(11, p11), X(12, p12)
#define TENSORPY_EACH_14(X, p0, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13)                             \
    X(0, p0), X(1, p1), X(2, p2), X(3, p3), X(4, p4), X(5, p5), X(6, p6), X(7, p7), X(8, p8), X(9, p9), X(10, p10), \
        X(11, p11), X(12, p12), X(13, p13)
#define TENSORPY_EACH_15(X, p0, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14)                        \
    X(0, p0), X(1, p1), X(2, p2), X(3, p3), X(4, p4), X(5, p5), X(6, p6), X(7, p7), X(8, p8), X(9, p9), X(10, p10), \
        X(11, p11), X(12, p12), X(13, p13), X(14, p14)
#define TENSORPY_EACH_16(X, p0, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15)                   \
    X(0, p0), X(1, p1), X(2, p2), X(3, p3), X(4, p4), X(5, p5), X(6, p6), X(7, p7), X(8, p8), X(9, p9), X(10, p10), \
        X(11, p11), X(12, p12), X(13, p13), X(14, p14), X(15, p15)
#define TENSORPY_EACH_17(X, p0, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15, p16)              \
    X(0, p0), X(1, p1), X(2, p2), X(3, p3), X(4, p4), X(5, p5), X(6, p6), X(7, p7), X(8, p8), X(9, p9), X(10, p10), \
        X(11, p11), X(12, p12), X(13, p13), X(14, p14), X(15, p15), X(16, p16)
#define TENSORPY_EACH_18(X, p0, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15, p16, p17)         \
    X(0, p0), X(1, p1), X(2, p2), X(3, p3), X(4, p4), X(5, p5), X(6, p6), X(7, p7), X(8, p8), X(9, p9), X(10, p10), \
        X(11, p11), X(12, p12), X(13, p13), X(14, p14), X(15, p15), X(16, p16), X(17, p17)
#define TENSORPY_EACH_19(X, p0, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15, p16, p17, p18)    \
    X(0, p0), X(1, p1), X(2, p2), X(3, p3), X(4, p4), X(5, p5), X(6, p6), X(7, p7), X(8, p8), X(9, p9), X(10, p10), \
        X(11, p11), X(12, p12), X(13, p13), X(14, p14), X(15, p15), X(16, p16), X(17, p17), X(18, p18)
#define TENSORPY_EACH_20(X, p0, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15, p16, p17, p18, p19) \
    X(0, p0), X(1, p1), X(2, p2), X(3, p3), X(4, p4), X(5, p5), X(6, p6), X(7, p7), X(8, p8), X(9, p9), X(10, p10),   \
        X(11, p11), X(12, p12), X(13, p13), X(14, p14), X(15, p15), X(16, p16), X(17, p17), X(18, p18), X(19, p19)
#define TENSORPY_EACH_21(X, p0, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15, p16, p17, p18, p19, \
                         p20)                                                                                         \
    X(0, p0), X(1, p1), X(2, p2), X(3, p3), X(4, p4), X(5, p5), X(6, p6), X(7, p7), X(8, p8), X(9, p9), X(10, p10),   \
        X(11, p11), X(12, p12), X(13, p13), X(14, p14), X(15, p15), X(16, p16), X(17, p17), X(18, p18), X(19, p19),   \
        X(20, p20)
#define TENSORPY_EACH_22(X, p0, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15, p16, p17, p18, p19, \
                         p20, p21)                                                                                    \
    X(0, p0), X(1, p1), X(2, p2), X(3, p3), X(4, p4), X(5, p5), X(6, p6), X(7, p7), X(8, p8), X(9, p9), X(10, p10),   \
        X(11, p11), X(12, p12), X(13, p13), X(14, p14), X(15, p15), X(16, p16), X(17, p17), X(18, p18), X(19, p19),   \
        X(20, p20), X(21, p21)
#define TENSORPY_EACH_23(X, p0, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15, p16, p17, p18, p19, \
                         p20, p21, p22)                                                                               \
    X(0, p0), X(1, p1), X(2, p2), X(3, p3), X(4, p4), X(5, p5), X(6, p6), X(7, p7), X(8, p8), X(9, p9), X(10, p10),   \
        X(11, p11), X(12, p12), X(13, p13), X(14, p14), X(15, p15), X(16, p16), X(17, p17), X(18, p18), X(19, p19),   \
        X(20, p20), X(21, p21), X(22, p22)
#define TENSORPY_EACH_24(X, p0, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15, p16, p17, p18, p19, \
                         p20, p21, p22, p23)                                                                          \
    X(0, p0), X(1, p1), X(2, p2), X(3, p3), X(4, p4), X(5, p5), X(6, p6), X(7, p7), X(8, p8), X(9, p9), X(10, p10),   \
        X(11, p11), X(12, p12), X(13, p13), X(14, p14), X(15, p15), X(16, p16), X(17, p17), X(18, p18), X(19, p19),   \
        X(20, p20), X(21, p21), X(22, p22), X(23, p23)

#define TENSORPY_PAIR(T, name) T, name
#define TENSORPY_APPLY(X, ...) X(__VA_ARGS__)
#define TENSORPY_PARAM(i, pair) TENSORPY_APPLY(TENSORPY_PARAM_, TENSORPY_PAIR pair)
#define TENSORPY_PARAM_(T, name) T name __attribute__((unused))
#define TENSORPY_NAME(i, pair) TENSORPY_APPLY(TENSORPY_NAME_, TENSORPY_PAIR pair)
#define TENSORPY_NAME_(T, name) name
#define TENSORPY_CODE_OF(i, pair) TENSORPY_APPLY(TENSORPY_CODE_OF_, TENSORPY_PAIR pair)
#define TENSORPY_CODE_OF_(T, name) TENSORPY_CODE(T)
#define TENSORPY_TAKE_OF(i, pair) TENSORPY_APPLY(TENSORPY_TAKE_OF_, i, TENSORPY_PAIR pair)
#define TENSORPY_TAKE_OF_(i, T, name) TENSORPY_TAKE(T, frame_, i)
#define TENSORPY_GIVE_OF(i, pair) TENSORPY_APPLY(TENSORPY_GIVE_OF_, TENSORPY_PAIR pair)
#define TENSORPY_GIVE_OF_(T, name) TENSORPY_GIVE(T, name)

/* A C function that can be registered: what it returns, its name, and its parameters as pairs; its body follows. */
#define TENSORPY_KERNEL(R, name, ...)                                                                               \
    static R name(TENSORPY_EACH(TENSORPY_PARAM, __VA_ARGS__));                                                      \
    static const char name##_codes[] = {TENSORPY_RESULT_CODE(R), TENSORPY_EACH(TENSORPY_CODE_OF, __VA_ARGS__), 0};  \
    static int name##_boxed(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {      \
        int first = name##_codes[1] == 'k';                                                                         \
        tensorpy_frame frame = {ks, args, results, first, (int)__builtin_strcspn(name##_codes + 1, "ido") - first}; \
        const tensorpy_frame *frame_ = &frame;                                                                      \
        (void)op, (void)context;                                                                                    \
        return TENSORPY_PUT(R)(name(TENSORPY_EACH(TENSORPY_TAKE_OF, __VA_ARGS__)), results);                        \
    }                                                                                                               \
    static const tp_kernel name##_kernel = {name##_boxed, name##_codes, #name, __FILE__, __LINE__};                 \
    static R name(TENSORPY_EACH(TENSORPY_PARAM, __VA_ARGS__))

/* A C function that calls an operator through the dispatcher, which is looked up and checked against its schema at the
 * first call and then kept; and `<name>_below(ks, ...)`, for a layer that passes a call on. Operators whose results are
 * tensors, or arguments (int, a status). */
#define TENSORPY_HANDLE(R, name, qualified, ...)                                                                \
    TENSORPY_INLINE const tp_op *name##_op(void) {                                                              \
        static const char codes[] = {TENSORPY_RESULT_CODE(R), TENSORPY_EACH(TENSORPY_CODE_OF, __VA_ARGS__), 0}; \
        static const tp_op *found;                                                                              \
        const tp_op *op = __atomic_load_n(&found, __ATOMIC_ACQUIRE);                                            \
        if (op) return op;                                                                                      \
        op = tensorpy_functions->find_op(qualified);                                                            \
        if (!op || tensorpy_functions->check_codes(op, codes, __FILE__) < 0) return NULL;                       \
        __atomic_store_n(&found, op, __ATOMIC_RELEASE);                                                         \
        return op;                                                                                              \
    }                                                                                                           \
    TENSORPY_INLINE R name##_call(const tp_keyset *below, TENSORPY_EACH(TENSORPY_PARAM, __VA_ARGS__)) {         \
        const tp_op *op = name##_op();                                                                          \
        tp_value args[] = {TENSORPY_EACH(TENSORPY_GIVE_OF, __VA_ARGS__)};                                       \
        tp_value results[5] = {{TP_NONE, {NULL}}};                                                              \
        int status = -1;                                                                                        \
        if (op && below) status = tensorpy_functions->redispatch(op, *below, args, results);                    \
        else if (op) status = tensorpy_functions->call(op, args, results);                                      \
        return TENSORPY_GOT(R)(status, results);                                                                \
    }                                                                                                           \
    TENSORPY_INLINE R name(TENSORPY_EACH(TENSORPY_PARAM, __VA_ARGS__)) {                                        \
        return name##_call(NULL, TENSORPY_EACH(TENSORPY_NAME, __VA_ARGS__));                                    \
    }                                                                                                           \
    TENSORPY_INLINE R name##_below(tp_keyset ks, TENSORPY_EACH(TENSORPY_PARAM, __VA_ARGS__)) {                  \
        return name##_call(&ks, TENSORPY_EACH(TENSORPY_NAME, __VA_ARGS__));                                     \
    }

#endif
