/* boxing.h: one C value into a tp_value and back, by the type codes of codegen/c_types.py.
 *
 * tp_put_<code>(v, x) and tp_box_<code>(x) borrow; the first leaves the bytes that the type does not use.
 * tp_unbox_<code>(v) reads, None as that type's none. tp_result_<code> stores a C result as new boxed results;
 * tp_slot_<code> is where a by-pointer result goes. tp_box_and_call takes them by a list of such codes. */
#pragma once

#if defined(TP_FOLDER_core) || defined(TP_FOLDER_iter) || defined(TP_FOLDER_native) || defined(TP_FOLDER_cpu)
#error "kernels do not know the inside of the dispatcher"
#endif

#include "dispatch/op.h"

#define TP_BOX(code, ctype, tag_, member_, is_none, payload) \
    TP_INLINE void tp_put_##code(tp_value *v, ctype x) {     \
        v->tag = is_none ? TP_NONE : tag_;                   \
        v->member_ = payload;                                \
    }                                                        \
    TP_INLINE tp_value tp_box_##code(ctype x) {              \
        tp_value v = {.tag = TP_NONE};                       \
        tp_put_##code(&v, x);                                \
        return v;                                            \
    }
#define TP_UNBOX(code, ctype, member_, none) \
    TP_INLINE ctype tp_unbox_##code(const tp_value *v) { return v->tag == TP_NONE ? none : (ctype)v->member_; }
#define TP_BOTH(code, ctype, tag_, member_, none, is_none) \
    TP_BOX(code, ctype, tag_, member_, is_none, x)         \
    TP_UNBOX(code, ctype, member_, none)

TP_BOTH(T, tp_tensor *, TP_TENSOR, tensor, NULL, !x)
TP_BOTH(S, const tp_scalar *, TP_SCALAR, scalar, NULL, !x)
TP_BOTH(J, int64_t, TP_INT, i, 0, false)
TP_BOTH(F, double, TP_FLOAT, f, 0, false)
TP_BOTH(B, bool, TP_BOOL_, b, false, false)
TP_BOTH(Z, const char *, TP_STR, str, NULL, !x)
TP_BOTH(D, tp_dtype, TP_DTYPE, i, TP_NO_DTYPE, x == TP_NO_DTYPE)
TP_BOTH(L, tp_layout, TP_LAYOUT, i, TP_NO_LAYOUT, x == TP_NO_LAYOUT)
TP_BOTH(M, tp_memory_format, TP_MEMORY_FORMAT, i, TP_NO_FORMAT, x == TP_NO_FORMAT)
TP_BOTH(G, struct tp_generator *, TP_GENERATOR, generator, NULL, !x)
TP_BOTH(O, tp_storage *, TP_STORAGE, storage, NULL, !x)

#define TP_BOTH_STRUCT(code, ctype, tag_, member_, is_none, ...) \
    TP_BOX(code, ctype, tag_, member_, is_none, x)               \
    TP_INLINE ctype tp_unbox_##code(const tp_value *v) { return v->tag == TP_NONE ? (ctype)__VA_ARGS__ : v->member_; }

TP_BOTH_STRUCT(V, tp_device, TP_DEVICE, device, x.type < 0, {-1, -1})
TP_BOTH_STRUCT(Q, tp_stream, TP_STREAM, stream, x.device.type < 0, {{-1, -1}, 0})
TP_BOTH_STRUCT(Tl, tp_tensors, TP_TENSORS, tensors, x.size < 0, {NULL, -1})
TP_BOTH_STRUCT(Sl, tp_scalars, TP_SCALARS, scalars, x.size < 0, {NULL, -1})
TP_BOTH_STRUCT(Jl, tp_ints, TP_INTS_, ints, x.size < 0, {NULL, -1})
TP_BOTH_STRUCT(Fl, tp_floats, TP_FLOATS, floats, x.size < 0, {NULL, -1})
TP_BOTH_STRUCT(Bl, tp_bools, TP_BOOLS, bools, x.size < 0, {NULL, -1})

TP_BOX(Jo, tp_opt_int, TP_INT, i, !x.has, x.value)
TP_BOX(Fo, tp_opt_float, TP_FLOAT, f, !x.has, x.value)
TP_BOX(Bo, tp_opt_bool, TP_BOOL_, b, x < 0, x > 0)
/* Results that are not there yet. */
TP_INLINE void tp_put_none(tp_value *v, int n) {
    for (int i = 0; i < n; i++) tp_put_T(&v[i], NULL);
}
TP_INLINE tp_opt_int tp_unbox_Jo(const tp_value *v) { return v->tag == TP_NONE ? TP_NO_INT : TP_SOME_INT(v->i); }
TP_INLINE tp_opt_float tp_unbox_Fo(const tp_value *v) { return v->tag == TP_NONE ? TP_NO_FLOAT : TP_SOME_FLOAT(v->f); }
TP_INLINE tp_opt_bool tp_unbox_Bo(const tp_value *v) { return v->tag == TP_NONE ? -1 : (tp_opt_bool)v->b; }

TP_INLINE int tp_result_t(tp_tensor *t, tp_value *results) {
    if (!t) return -1;
    results[0] = (tp_value){.tag = TP_TENSOR, .tensor = t};
    return 0;
}
/* Any of them may be absent (an output that a mask leaves out); after an error all are. */
TP_INLINE int tp_result_many(tp_tensor *const *v, int n, tp_value *results) {
    bool some = false;
    for (int i = 0; i < n; i++) some |= v[i] != NULL;
    if (!some && tp_error_pending()) return -1;
    for (int i = 0; i < n; i++) results[i] = (tp_value){.tag = TP_TENSOR, .tensor = v[i]};
    return 0;
}
TP_INLINE int tp_result_t2(tp_tensor2 r, tp_value *results) { return tp_result_many(r.v, 2, results); }
TP_INLINE int tp_result_t3(tp_tensor3 r, tp_value *results) { return tp_result_many(r.v, 3, results); }
TP_INLINE int tp_result_t4(tp_tensor4 r, tp_value *results) { return tp_result_many(r.v, 4, results); }
TP_INLINE int tp_result_t5(tp_tensor5 r, tp_value *results) { return tp_result_many(r.v, 5, results); }
TP_INLINE int tp_result_q(tp_tensor_seq *q, tp_value *results) {
    if (!q) return -1;
    results[0] = (tp_value){.tag = TP_TENSOR_SEQ, .seq = q};
    return 0;
}

/* A number by pointer: the result value itself holds it. A Scalar's result keeps the number in the value (`number`). */
TP_INLINE int64_t *tp_slot_J(tp_value *r) { return &r->i; }
TP_INLINE double *tp_slot_F(tp_value *r) { return &r->f; }
TP_INLINE bool *tp_slot_B(tp_value *r) { return &r->b; }
TP_INLINE tp_scalar *tp_slot_S(tp_value *r) { return &r->number; }
TP_INLINE tp_dtype *tp_slot_D(tp_value *r) { return &r->dtype; }
TP_INLINE int tp_result_tag(int status, tp_tag tag, tp_value *results) {
    if (status < 0) return -1;
    results[0].tag = tag;
    return 0;
}
TP_INLINE int tp_result_J(int status, tp_value *r) { return tp_result_tag(status, TP_INT, r); }
TP_INLINE int tp_result_F(int status, tp_value *r) { return tp_result_tag(status, TP_FLOAT, r); }
TP_INLINE int tp_result_B(int status, tp_value *r) { return tp_result_tag(status, TP_BOOL_, r); }
TP_INLINE int tp_result_S(int status, tp_value *r) { return tp_result_tag(status, TP_NUMBER, r); }
TP_INLINE int tp_result_D(int status, tp_value *r) {
    if (status == 0) r->i = r->dtype;
    return tp_result_tag(status, TP_DTYPE, r);
}
TP_INLINE tp_dtype tp_unbox_D_value(const tp_value *v) { return (tp_dtype)v->i; }
TP_INLINE int64_t tp_unbox_J_value(const tp_value *v) { return v->i; }
TP_INLINE double tp_unbox_F_value(const tp_value *v) { return v->f; }
TP_INLINE bool tp_unbox_B_value(const tp_value *v) { return v->b; }
TP_INLINE tp_scalar tp_unbox_S_value(const tp_value *v) { return v->number; }

/* Packs the arguments after `codes`, which names the type of each ("T_J_Bo"), and calls the boxed kernel at `ks`. The
 * results have room for what the operator returns. What a `tp_op_info.box` does: a call that is a hundred times as
 * long, so that one loop packs for all signatures. */
int tp_box_and_call(const tp_op *op, tp_keyset ks, tp_value *results, const char *codes, ...);
