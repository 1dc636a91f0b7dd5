/* boxing.h: how a C function becomes a boxed kernel, and a call boxed values: the inside of TENSORPY_KERNEL and
 * TENSORPY_HANDLE (library.h). Nothing here is meant to be called by hand but tensorpy_give_<type>.
 *
 * A type of the list TENSORPY_FORALL_TYPES has a letter, a function that takes it out of a boxed call's arguments
 * (tensorpy_take_<type>) and one that makes a boxed argument of it (tensorpy_give_<type>); a macro or, in C++, a
 * template chooses by the type. */
#ifndef TENSORPY_BOXING_H
#define TENSORPY_BOXING_H

#include "tensorpy/api.h"

#define TENSORPY_INLINE static inline __attribute__((unused))
#define TENSORPY_GLUE_(a, b) a##b
#define TENSORPY_GLUE(a, b) TENSORPY_GLUE_(a, b)

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
    X(tp_stream, 'Q', stream, v->tag == TP_NONE ? tensorpy_no_stream() : v->stream,                                   \
      x.device.type < 0 ? TP_NONE : TP_STREAM, stream)                                                                \
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
TENSORPY_INLINE tp_stream tensorpy_no_stream(void) {
    tp_stream none = {{-1, -1}, 0};
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
/* All results of a kernel that gives several types, boxed. */
TENSORPY_INLINE tp_value *tensorpy_take_values_out(const tensorpy_frame *f, int i) { return (void)i, f->results; }

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
TENSORPY_TYPE_IN_CPP(tp_value *, 'v', values_out)
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
        tp_stream: prefix##stream,               \
        tp_ints: prefix##ints,                   \
        tp_floats: prefix##floats,               \
        tp_bools: prefix##bools,                 \
        tp_opt_int: prefix##opt_int,             \
        tp_opt_float: prefix##opt_float,         \
        tp_opt_bool: prefix##opt_bool other)
#define TENSORPY_TAKE(T, f, i)                                                                            \
    TENSORPY_SELECT(T, tensorpy_take_,                                                                    \
                    TENSORPY_OTHERS(tensorpy_take_keyset, tensorpy_take_int_out, tensorpy_take_float_out, \
                                    tensorpy_take_bool_out, tensorpy_take_values_out))(f, i)
#define TENSORPY_OTHERS(k, i, d, o, v) , tp_keyset : k, int64_t * : i, double * : d, bool * : o, tp_value * : v
#define TENSORPY_GIVE(T, x) TENSORPY_SELECT(T, tensorpy_give_, )(x)
enum {
#define TENSORPY_TYPE(T, letter, name, taken, tag_, member) tensorpy_code_##name = letter,
    TENSORPY_FORALL_TYPES(TENSORPY_TYPE)
#undef TENSORPY_TYPE
        tensorpy_code_opt_int = 'j',
    tensorpy_code_opt_float = 'f',
    tensorpy_code_opt_bool = 'b'
};
#define TENSORPY_CODE(T) TENSORPY_SELECT(T, tensorpy_code_, TENSORPY_OTHERS('k', 'i', 'd', 'o', 'v'))
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

#endif
