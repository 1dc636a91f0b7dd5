/* generated.h: what the files stand on that `python -m tensorpy.codegen` writes for a project from its own YAML.
 *
 * Nobody writes against it by hand; a project's own C needs library.h and the header that is written beside these
 * files. C, not C++. */
#ifndef TENSORPY_GENERATED_H
#define TENSORPY_GENERATED_H

#include "tensorpy/library.h"
#include "tensorpy/generated_api.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define TENSORPY_GENERATED (tensorpy_functions->generated)

/* tensorpy_generated.describe, where the tensorpy that runs has it. */
TENSORPY_INLINE int tensorpy_describe(tp_library *library, const char *op, const tensorpy_entry_info *info) {
    if (TENSORPY_GENERATED->size < offsetof(tensorpy_generated, describe) + sizeof TENSORPY_GENERATED->describe)
        return tp_fail(TP_RuntimeError, "%s was generated for a later tensorpy: generate and build its library again",
                       op);
    return TENSORPY_GENERATED->describe(library, op, info);
}

/* ---- references that a scope releases ---- */

#define tp_take(var)                  \
    __extension__({                   \
        __typeof__(var) taken_ = var; \
        (var) = NULL;                 \
        taken_;                       \
    })
TENSORPY_INLINE void tensorpy_end_tensor(tp_tensor **t) { tp_release(*t); }
TENSORPY_INLINE void tensorpy_end_seq(tp_tensor_seq **s) {
    if (*s) tp_seq_free(*s);
}
TENSORPY_INLINE void tensorpy_end_record(tp_record **r) {
    if (*r) tp_record_release(*r);
}
TENSORPY_INLINE void tensorpy_end_exclude(tp_keyset *before) { tp_restore(*before); }
#define tp_autoref __attribute__((cleanup(tensorpy_end_tensor))) tp_tensor
#define tp_autoseq __attribute__((cleanup(tensorpy_end_seq))) tp_tensor_seq
#define tp_autorecord __attribute__((cleanup(tensorpy_end_record))) tp_record
#define tp_exclude_guard __attribute__((cleanup(tensorpy_end_exclude), unused)) tp_keyset

#define tp_likely(x) __builtin_expect(!!(x), 1)
#define tp_unlikely(x) __builtin_expect(!!(x), 0)

/* All layers of autograd, and all of autocast. */
#define TP_AUTOGRAD_KEYS (TENSORPY_GENERATED->autograd_keys)
#define TP_AUTOCAST_KEYS (TENSORPY_GENERATED->autocast_keys)

/* ---- values of schema types ---- */

#define TP_MAX_DIMS 64
#define TP_COUNTOF(a) ((int64_t)(sizeof(a) / sizeof((a)[0])))
#define TP_INTS(...) ((tp_ints){(const int64_t[]){__VA_ARGS__}, TP_COUNTOF(((const int64_t[]){__VA_ARGS__}))})
#define TP_NO_INTS ((tp_ints){NULL, -1})
#define TP_EMPTY_INTS ((tp_ints){NULL, 0})
#define TP_SOME_INT(v) ((tp_opt_int){true, (v)})
#define TP_NO_INT ((tp_opt_int){false, 0})
#define TP_SOME_FLOAT(v) ((tp_opt_float){true, (v)})
#define TP_NO_FLOAT ((tp_opt_float){false, 0})
#define TP_NO_DEVICE ((tp_device){-1, -1})
#define TP_SCALAR_I(value) (&(const tp_scalar){.kind = TP_SCALAR_INT, .i = (value)})
#define TP_SCALAR_F(value) (&(const tp_scalar){.kind = TP_SCALAR_FLOAT, .f = (value)})
#define TP_SCALAR_B(value) (&(const tp_scalar){.kind = TP_SCALAR_BOOL, .b = (value)})
#define TP_SCALAR_C(value) (&(const tp_scalar){.kind = TP_SCALAR_COMPLEX, .c = (value)})

/* ---- the vocabulary of formulas ---- */

#define TENSORPY_SCALAR_2(name)                                                          \
    TENSORPY_INLINE tp_scalar tp_scalar_##name(const tp_scalar *a, const tp_scalar *b) { \
        return TENSORPY_GENERATED->scalar_##name(a, b);                                  \
    }
TENSORPY_SCALAR_2(add)
TENSORPY_SCALAR_2(sub)
TENSORPY_SCALAR_2(mul)
TENSORPY_SCALAR_2(div)
TENSORPY_SCALAR_2(pow)
#undef TENSORPY_SCALAR_2
#define TENSORPY_SCALAR_1(name) \
    TENSORPY_INLINE tp_scalar tp_scalar_##name(const tp_scalar *a) { return TENSORPY_GENERATED->scalar_##name(a); }
TENSORPY_SCALAR_1(neg)
TENSORPY_SCALAR_1(conj)
TENSORPY_SCALAR_1(exp)
TENSORPY_SCALAR_1(log)
TENSORPY_SCALAR_1(sqrt)
#undef TENSORPY_SCALAR_1
#define TENSORPY_SCALAR_TEST(name)                                                  \
    TENSORPY_INLINE bool tp_scalar_##name(const tp_scalar *a, const tp_scalar *b) { \
        return TENSORPY_GENERATED->scalar_##name(a, b);                             \
    }
TENSORPY_SCALAR_TEST(equal)
TENSORPY_SCALAR_TEST(less)
TENSORPY_SCALAR_TEST(less_equal)
#undef TENSORPY_SCALAR_TEST
TENSORPY_INLINE bool tp_scalar_bool(const tp_scalar *s) { return TENSORPY_GENERATED->scalar_bool(s); }
TENSORPY_INLINE uint64_t tp_scalar_uint(const tp_scalar *s) { return TENSORPY_GENERATED->scalar_uint(s); }

TENSORPY_INLINE int64_t tp_floor_mod(int64_t a, int64_t b) {
    int64_t r = b == 0 || b == -1 ? 0 : a % b;
    return r && (r < 0) != (b < 0) ? r + b : r;
}
TENSORPY_INLINE int64_t tp_floor_div(int64_t a, int64_t b) {
    if (b == 0) return 0;
    if (b == -1) return (int64_t)(0 - (uint64_t)a);
    return a / b - (a % b && (a < 0) != (b < 0));
}
TENSORPY_INLINE int64_t tp_abs_int(int64_t a) { return a < 0 ? (int64_t)(0 - (uint64_t)a) : a; }
TENSORPY_INLINE double tp_abs_double(double a) { return fabs(a); }
TENSORPY_INLINE int64_t tp_min_int(int64_t a, int64_t b) { return b < a ? b : a; }
TENSORPY_INLINE int64_t tp_max_int(int64_t a, int64_t b) { return b > a ? b : a; }
TENSORPY_INLINE double tp_min_double(double a, double b) { return b < a ? b : a; }
TENSORPY_INLINE double tp_max_double(double a, double b) { return b > a ? b : a; }
TENSORPY_INLINE bool tp_str_equal(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }
TENSORPY_INLINE bool tp_device_equal(tp_device a, tp_device b) { return a.type == b.type && a.index == b.index; }
TENSORPY_INLINE bool tp_is_complex_dtype(tp_dtype d) { return d == TP_COMPLEX64 || d == TP_COMPLEX128; }
TENSORPY_INLINE bool tp_is_floating_dtype(tp_dtype d) { return d >= TP_FLOAT16 && d <= TP_FLOAT64; }

TENSORPY_INLINE bool tp_ints_equal(tp_ints a, tp_ints b) {
    return a.size == b.size && (a.size <= 0 || memcmp(a.data, b.data, (size_t)a.size * sizeof *a.data) == 0);
}
TENSORPY_INLINE int64_t tp_ints_numel(tp_ints sizes) {
    int64_t n = 1;
    for (int64_t i = 0; i < sizes.size; i++) n *= sizes.data[i];
    return n;
}
TENSORPY_INLINE int64_t tp_list_index(int64_t size, int64_t i) { return TENSORPY_GENERATED->list_index(size, i); }
TENSORPY_INLINE tp_ints tp_ints_slice(tp_ints v, int64_t low, int64_t high) {
    return TENSORPY_GENERATED->ints_slice(v, low, high);
}
TENSORPY_INLINE tp_ints tp_ints_join(int64_t *room, tp_ints a, tp_ints b) {
    return TENSORPY_GENERATED->ints_join(room, a, b);
}
TENSORPY_INLINE int64_t tp_size_at(tp_ints sizes, int64_t dim) { return dim < sizes.size ? sizes.data[dim] : 1; }
TENSORPY_INLINE int64_t tp_wrap_dim(int64_t dim, int64_t ndim) { return TENSORPY_GENERATED->wrap_dim(dim, ndim); }

TENSORPY_INLINE tp_ints tp_sizes(const tp_tensor *t) {
    tp_view v = tp_view_of(t);
    tp_ints sizes = {v.sizes, v.ndim};
    return sizes;
}
TENSORPY_INLINE tp_ints tp_strides(const tp_tensor *t) {
    tp_view v = tp_view_of(t);
    tp_ints strides = {v.strides, v.ndim};
    return strides;
}
TENSORPY_INLINE tp_dtype tp_dtype_of(const tp_tensor *t) { return tp_view_of(t).dtype; }
TENSORPY_INLINE tp_device tp_device_of(const tp_tensor *t) { return tp_view_of(t).device; }
TENSORPY_INLINE int64_t tp_numel_of(const tp_tensor *t) { return tp_view_of(t).numel; }
TENSORPY_INLINE int64_t tp_ndim_of(const tp_tensor *t) { return tp_view_of(t).ndim; }
TENSORPY_INLINE bool tp_by_columns(const tp_tensor *t) {
    tp_view v = tp_view_of(t);
    return v.ndim == 2 && v.strides[0] == 1 && v.strides[1] == v.sizes[0];
}
/* Whether a tensor, or one of several, has the key. */
TENSORPY_INLINE bool tensorpy_has_key(const tp_tensor *t, tp_keyset key) { return t && tp_view_of(t).keys & key; }
TENSORPY_INLINE bool tensorpy_any_has_key(tp_tensors list, tp_keyset key) {
    for (int64_t i = 0; i < list.size; i++)
        if (tensorpy_has_key(list.data[i], key)) return true;
    return false;
}
TENSORPY_INLINE int64_t tp_storage_offset(const tp_tensor *t) { return TENSORPY_GENERATED->storage_offset(t); }
TENSORPY_INLINE bool tp_requires_grad(const tp_tensor *t) { return TENSORPY_GENERATED->requires_grad(t); }
TENSORPY_INLINE bool tp_grad_enabled(void) { return TENSORPY_GENERATED->grad_enabled(); }
TENSORPY_INLINE tp_tensors tp_tensor_seq_borrow(const tp_tensor_seq *s) { return TENSORPY_GENERATED->seq_borrow(s); }
TENSORPY_INLINE tp_tensor_seq *tp_tensor_seq_of(tp_tensors list) { return TENSORPY_GENERATED->seq_of(list); }
TENSORPY_INLINE int tp_meta_output(tp_meta *m, int i, tp_ints sizes, tp_ints strides, tp_dtype dtype,
                                   tp_device device) {
    return TENSORPY_GENERATED->meta_output(m, i, sizes, strides, dtype, device);
}

/* ---- what a record keeps beside tensors ---- */

typedef struct {
    int64_t size;
    int64_t data[TP_MAX_DIMS];
} tensorpy_kept_ints;
typedef struct {
    int64_t size;
    double data[TP_MAX_DIMS];
} tensorpy_kept_floats;
typedef struct {
    int64_t size;
    bool data[TP_MAX_DIMS];
} tensorpy_kept_bools;
typedef struct {
    bool there;
    char text[TP_MAX_DIMS];
} tensorpy_kept_str;

#define TENSORPY_KEEP(name, list)                                                                         \
    TENSORPY_INLINE int tensorpy_keep_##name(tensorpy_kept_##name *kept, list given) {                    \
        if (given.size > TP_MAX_DIMS)                                                                     \
            return tp_fail(TP_RuntimeError, "a backward keeps lists of at most %d numbers", TP_MAX_DIMS); \
        kept->size = given.size;                                                                          \
        for (int64_t i = 0; i < given.size; i++) kept->data[i] = given.data[i];                           \
        return 0;                                                                                         \
    }                                                                                                     \
    TENSORPY_INLINE list tensorpy_kept_##name##_of(const tensorpy_kept_##name *kept) {                    \
        list given = {kept->data, kept->size};                                                            \
        return given;                                                                                     \
    }
TENSORPY_KEEP(ints, tp_ints)
TENSORPY_KEEP(floats, tp_floats)
TENSORPY_KEEP(bools, tp_bools)
#undef TENSORPY_KEEP
TENSORPY_INLINE int tensorpy_keep_str(tensorpy_kept_str *kept, const char *text) {
    if (text && strlen(text) >= sizeof kept->text)
        return tp_fail(TP_RuntimeError, "a backward keeps texts of fewer than %d characters", TP_MAX_DIMS);
    kept->there = text != NULL;
    if (text) strcpy(kept->text, text);
    return 0;
}
TENSORPY_INLINE const char *tensorpy_kept_str_of(const tensorpy_kept_str *kept) {
    return kept->there ? kept->text : NULL;
}
/* Saves a tensor (or output `output`, if that is not -1) and leaves its number in `*at`. */
TENSORPY_INLINE int tensorpy_save(tp_record *r, tp_tensor *t, int output, int *at, int *count) {
    *at = (*count)++;
    return output < 0 ? tp_record_save(r, t) : tp_record_save_output(r, t, output);
}
/* The saved tensors [at, at + n), as a list of its own. */
TENSORPY_INLINE tp_tensor_seq *tensorpy_saved_list(tp_record *r, int at, int64_t n) {
    tp_tensor_seq *list = tp_seq_new(n);
    for (int64_t i = 0; list && i < n; i++) {
        tp_tensor *t = tp_saved(r, at + (int)i);
        if (!t && tp_error_pending()) return tp_seq_free(list), NULL;
        tp_seq_put_steal(list, i, t);
    }
    return list;
}
TENSORPY_INLINE bool tp_node_wants(const tp_record *r, int64_t input) { return tp_wants(r, (int)input); }
TENSORPY_INLINE bool tp_node_wants_any(const tp_record *r, int64_t first, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (tp_wants(r, (int)(first + i))) return true;
    return false;
}
TENSORPY_INLINE tp_tensor *tp_zeros_for_input(const tp_record *r, int output) {
    return TENSORPY_GENERATED->zeros_for_output(r, output);
}
TENSORPY_INLINE tp_tensor_seq *tp_gradients_of_list(const tp_record *r, tp_tensor *const *grads) {
    return TENSORPY_GENERATED->gradients_of_list(r, grads);
}
/* The gradients of a list argument into its slots. */
TENSORPY_INLINE int tp_put_gradients(tp_tensor **out, int64_t n, tp_tensors gradients) {
    if (gradients.size != n)
        return tp_fail(TP_RuntimeError, "%lld gradients for a list of %lld", (long long)gradients.size, (long long)n);
    for (int64_t i = 0; i < n; i++) out[i] = tp_retain(gradients.data[i]);
    return 0;
}

#endif
