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
 * numbers that it stores through pointers after the other parameters: int64_t * (i), double * (d), bool * (o). Results
 * of several types, or more than five: a last parameter tp_value * (v), into which it puts them boxed and new. */
#ifndef TENSORPY_LIBRARY_H
#define TENSORPY_LIBRARY_H

#include "tensorpy/api.h"
#include "tensorpy/boxing.h"

/* ---- the table, and the list of parts: one of each per shared object ---- */

/* Marks what all files of a shared object have together, and nobody outside. */
#define TENSORPY_SHARED __attribute__((weak, visibility("hidden")))

#ifdef __cplusplus
extern "C" {
#endif
/* tensorpy's table; there once the library is being loaded, so not in constructors. */
TENSORPY_SHARED const tensorpy_api *tensorpy_functions = NULL;
/* The last of the parts. */
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

/* A part of any kind, named by `id`; it puts itself into the list when the shared object is opened. */
#define TENSORPY_PART(id, kind_, ns_, key_, fill_, fill_backend_)                                       \
    __attribute__((constructor)) static void TENSORPY_GLUE(tensorpy_add_, id)(void) {                   \
        static tensorpy_part part = {NULL, kind_, ns_, key_, fill_, fill_backend_, __FILE__, __LINE__}; \
        part.next = tensorpy_parts;                                                                     \
        tensorpy_parts = &part;                                                                         \
    }
/* A part whose body follows. */
#define TENSORPY_FILLED_PART(id, kind, ns, key, m)                            \
    static int TENSORPY_GLUE(tensorpy_fill_, id)(tp_library *);               \
    TENSORPY_PART(id, kind, ns, key, TENSORPY_GLUE(tensorpy_fill_, id), NULL) \
    static int TENSORPY_GLUE(tensorpy_fill_, id)(tp_library * m)

/* Opens a namespace: its operators are declared here, and in fragments. The body follows, with the library as `m`, and
 * returns 0, or -1 with the error set: then nothing of the library stays. Once per namespace and process. */
#define TENSORPY_LIBRARY(ns, m) TENSORPY_FILLED_PART(def_##ns, TENSORPY_PART_DEF, #ns, "", m)
/* Adds declarations to a namespace, of this library or of another. */
#define TENSORPY_LIBRARY_FRAGMENT(ns, m) \
    TENSORPY_FILLED_PART(TENSORPY_GLUE(fragment_##ns##_, __LINE__), TENSORPY_PART_FRAGMENT, #ns, "", m)
/* Kernels for a dispatch key (CPU, OpenCL, Meta, Autograd, AutogradCPU, AutocastCPU, CompositeImplicitAutograd, ...; a
 * device from outside stands for its own: mirror, Autograd_mirror, Autocast_mirror). The namespace may be another's:
 * aten, tensorpy's own operators; prim, its primitives; _ for a fallback. */
#define TENSORPY_LIBRARY_IMPL(ns, key, m) \
    TENSORPY_FILLED_PART(TENSORPY_GLUE(impl_##ns##_##key##_, __LINE__), TENSORPY_PART_IMPL, #ns, #key, m)
/* A device of that name: the body fills in `b`, a tensorpy_backend (tensorpy/backend.h). A running
 * tensorpy whose struct is shorter reads the part that it knows. */
#define TENSORPY_BACKEND(name_, b)                                                                                   \
    static void TENSORPY_GLUE(tensorpy_describe_, name_)(tensorpy_backend *);                                        \
    static void TENSORPY_GLUE(tensorpy_backend_, name_)(tensorpy_backend * theirs) {                                 \
        tensorpy_backend ours;                                                                                       \
        size_t known = theirs->size < sizeof ours ? theirs->size : sizeof ours;                                      \
        __builtin_memset(&ours, 0, sizeof ours);                                                                     \
        ours.size = known;                                                                                           \
        ours.name = theirs->name;                                                                                    \
        TENSORPY_GLUE(tensorpy_describe_, name_)(&ours);                                                             \
        __builtin_memcpy(theirs, &ours, known);                                                                      \
    }                                                                                                                \
    TENSORPY_PART(backend_##name_, TENSORPY_PART_BACKEND, #name_, "", NULL, TENSORPY_GLUE(tensorpy_backend_, name_)) \
    static void TENSORPY_GLUE(tensorpy_describe_, name_)(tensorpy_backend * b)

/* Declares "scale(Tensor self) -> Tensor" in the part's namespace. */
TENSORPY_INLINE int tp_def(tp_library *m, const char *schema) { return tensorpy_functions->define(m, schema); }
/* Registers a kernel (TENSORPY_KERNEL), whose C types are checked against the schema. 0, or -1 with the error set. */
#define tp_impl(m, op, kernel) tensorpy_functions->implement(m, op, &kernel##_kernel)
/* Has the operator pass the part's key by. 0, or -1 with the error set. */
#define tp_impl_fallthrough(m, op) tensorpy_functions->implement_boxed(m, op, NULL, NULL, NULL, "fallthrough")
/* Registers a boxed kernel; `context` comes back at each call and goes to `free_context`, which may be NULL, when the
 * kernel was taken out and the last call has left it. 0, or -1 with the error set. */
#define tp_impl_boxed(m, op, fn, context, free_context) \
    tensorpy_functions->implement_boxed(m, op, fn, context, free_context, #fn)
/* The same for every operator that has no kernel of its own at the part's key (of the namespace _). */
#define tp_fallback(m, fn, context, free_context) \
    tensorpy_functions->implement_boxed(m, "", fn, context, free_context, #fn)

/* ---- dispatch keys ---- */

/* The set of one key: TP_BIT(AutogradCPU). */
#define TP_BIT(key) (tensorpy_functions->bits[TENSORPY_KEY_##key])
/* The keys below one, which a layer's redispatch is left with: `ks & TP_BELOW(Tracer)`. */
#define TP_BELOW(key) (tensorpy_functions->below[TENSORPY_KEY_##key])
/* Below all autocast keys: what an autocast kernel passes on. */
#define TP_BELOW_AUTOCAST TP_BELOW(AutocastCPU)
/* Below all autograd keys: what an autograd kernel passes on. */
#define TP_BELOW_AUTOGRAD TP_BELOW(AutogradOther)
/* Below the layer of views and versions. */
#define TP_BELOW_ADINPLACEORVIEW TP_BELOW(ADInplaceOrView)

/* ---- the functions of the table: tensorpy/api.h says what each does ---- */

/* Sets the thread's error: its class, a format of printf's and what belongs to it. Always -1. */
#define tp_fail(...) tensorpy_functions->fail(__VA_ARGS__)
/* The same for who returns a pointer: NULL. */
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
TENSORPY_INLINE int tp_map_program_at(int64_t program, tp_dtype compute, tp_map_program *out) {
    out->size = sizeof *out;
    return tensorpy_functions->map_program(program, compute, out);
}
TENSORPY_INLINE int tp_reduce_program_at(int64_t program, tp_dtype compute, tp_reduce_program *out) {
    out->size = sizeof *out;
    return tensorpy_functions->reduce_program(program, compute, out);
}
TENSORPY_INLINE const char *tp_step_name(int op) { return tensorpy_functions->step_name(op); }
TENSORPY_INLINE tp_dtype tp_kind_dtype(int kind, tp_dtype compute) {
    return tensorpy_functions->kind_dtype(kind, compute);
}
TENSORPY_INLINE tp_dtype tp_program_result(const tp_program *program, tp_dtype compute) {
    return tensorpy_functions->program_result(program, compute);
}
TENSORPY_INLINE int64_t tp_print_program(const tp_program *program, tp_dtype compute, char *text, int64_t room) {
    return tensorpy_functions->print_program(program, compute, text, room);
}
TENSORPY_INLINE int tp_raise_fault(int64_t fault, int64_t value, int64_t dim, int64_t size, const char *where) {
    return tensorpy_functions->raise_fault(fault, value, dim, size, where);
}
TENSORPY_INLINE int64_t tp_current_stream(const char *backend, int device) {
    return tensorpy_functions->current_stream(backend, device);
}
TENSORPY_INLINE int tp_decline(void) { return tensorpy_functions->decline(); }
/* The same for who returns a pointer: NULL. Since 1.6. */
TENSORPY_INLINE tp_tensor *tp_decline_null(void) { return tensorpy_functions->decline(), (tp_tensor *)0; }
TENSORPY_INLINE tp_dtype tp_result_type(const tp_operand *operands, int n) {
    return tensorpy_functions->result_type(operands, n);
}
TENSORPY_INLINE tp_tensor *tp_new_output(const tp_operand *inputs, int n, tp_dtype dtype) {
    return tensorpy_functions->new_output(inputs, n, dtype);
}
TENSORPY_INLINE int tp_plan_of(tp_tensor *const *tensors, int noutputs, int n, tp_plan *out) {
    out->size = sizeof *out;
    return tensorpy_functions->plan_of(tensors, noutputs, n, out);
}
TENSORPY_INLINE int tp_walk(const tp_plan *plan, tp_loop_fn loop, const void *params, int64_t grain) {
    return tensorpy_functions->walk(plan, loop, params, grain);
}
/* What a tensor is, by value; its pointers are into `t`. */
TENSORPY_INLINE tp_view tp_view_of(const tp_tensor *t) {
    tp_view v;
    tensorpy_functions->view(t, &v);
    return v;
}
/* What it is but for its contents, by value: what a compiled function has noted of these goes on waiting. Since 1.12.
 */
TENSORPY_INLINE tp_view tp_geometry_of(const tp_tensor *t) {
    tp_view v;
    tensorpy_functions->geometry(t, &v);
    return v;
}

/* ---- kernels, and calls of operators ---- */

/* A C function that can be registered: what it returns, its name, and its one to 24 parameters as pairs; its body
 * follows. What it is passed is borrowed, what it returns new; NULL or -1 says that the error is set. */
#define TENSORPY_KERNEL(R, name, ...)                                                                                \
    static R name(TENSORPY_EACH(TENSORPY_PARAM, __VA_ARGS__));                                                       \
    static const char name##_codes[] = {TENSORPY_RESULT_CODE(R), TENSORPY_EACH(TENSORPY_CODE_OF, __VA_ARGS__), 0};   \
    static int name##_boxed(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {       \
        int first = name##_codes[1] == 'k';                                                                          \
        tensorpy_frame frame = {ks, args, results, first, (int)__builtin_strcspn(name##_codes + 1, "idov") - first}; \
        const tensorpy_frame *frame_ = &frame;                                                                       \
        (void)op, (void)context;                                                                                     \
        return TENSORPY_PUT(R)(name(TENSORPY_EACH(TENSORPY_TAKE_OF, __VA_ARGS__)), results);                         \
    }                                                                                                                \
    static const tp_kernel name##_kernel = {name##_boxed, name##_codes, #name, __FILE__, __LINE__};                  \
    static R name(TENSORPY_EACH(TENSORPY_PARAM, __VA_ARGS__))

/* The same without parameters. Since 1.6. */
#define TENSORPY_KERNEL_OF_NOTHING(R, name)                                                                    \
    static R name(void);                                                                                       \
    static const char name##_codes[] = {TENSORPY_RESULT_CODE(R), 0};                                           \
    static int name##_boxed(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) { \
        (void)op, (void)ks, (void)args, (void)context;                                                         \
        return TENSORPY_PUT(R)(name(), results);                                                               \
    }                                                                                                          \
    static const tp_kernel name##_kernel = {name##_boxed, name##_codes, #name, __FILE__, __LINE__};            \
    static R name(void)

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
