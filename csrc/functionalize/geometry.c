/* geometry.c: the kernels at Functionalize of operators that give a tensor other sizes or another memory: a value
 * stands for both, so nothing but the stand-in changes. */
#include "Functions.h"
#include "NativeFunctions.h"
#include "functionalize/internal.h"

/* Whether t is a stand-in of this thread's innermost level. */
static bool is_own(const tp_tensor *t) {
    return tp_tls.functional && tp_functional_is_of(t, tp_tls.functional->number);
}

/* ---- other sizes ---- */

/* How many elements of its memory, from the first on, a geometry reaches. */
static int64_t reach_of(const tp_tensor *t, tp_ints size, const int64_t *strides) {
    int64_t last = tp_storage_offset(t);
    for (int64_t i = 0; i < size.size; i++) {
        if (size.data[i] == 0) return 0;
        last += (size.data[i] - 1) * strides[i];
    }
    return last + 1;
}

/* The elements of `value` in the order of its memory, and as many more that are not set, in a new geometry. */
static tp_tensor *enlarged(tp_tensor *value, int64_t count, tp_ints size, tp_ints strides) {
    tp_ints had = {&value->numel, 1}, one = TP_INTS(1);
    int64_t more = count - value->numel;
    tp_autoref *flat = tp_as_strided(value, had, one, TP_NO_INT);
    tp_autoref *rest = tp_new_empty((tp_ints){&more, 1}, tp_dtype_of(value), value->device);
    tp_tensor *both[] = {flat, rest};
    tp_autoref *all = flat && rest ? tp_cat((tp_tensors){both, 2}, 0) : NULL;
    return all ? tp_as_strided(all, size, strides, TP_NO_INT) : NULL;
}

static int enlarge(tp_tensor *self, int64_t count, tp_ints size, tp_ints strides) {
    tp_stand_in *p = tp_stand_in_of(self);
    if (p->steps || p->next || p->previous)
        return tp_fail(TP_RuntimeError,
                       "Attempted to resize a view tensor to a larger size. This is not allowed in the "
                       "functionalization pass; nor is it for a tensor that has views");
    tp_auto_outside outside = tp_functional_step_out(tp_tls.functional);
    tp_autoref *laid = tp_memory_laid_out(p->memory), *value = laid ? enlarged(laid, count, size, strides) : NULL;
    return value ? tp_stand_in_renew(self, value) : -1;
}

/* resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!) */
int resize__functionalize(tp_tensor *self, tp_ints size, tp_memory_format memory_format) {
    int64_t strides[TP_MAX_DIMS];
    if (!is_own(self)) return tp_refuse_target("resize_");
    if (memory_format == TP_PRESERVE_FORMAT)
        return tp_fail(TP_RuntimeError, "Unsupported memory format preserve_format");
    if (tp_checked_numel(size) < 0 || tp_strides_for_format(size, memory_format, strides) < 0) return -1;
    tp_ints steps = {strides, size.size};
    int64_t count = reach_of(self, size, strides);
    if (count > tp_stand_in_of(self)->memory->value->numel) return enlarge(self, count, size, steps);
    return tp_as_strided_(self, size, steps, TP_NO_INT);
}

/* ---- another memory ---- */

/* set_.source_Tensor(Tensor(a!) self, Tensor source) -> Tensor(a!) */
int set__source_Tensor_functionalize(tp_tensor *self, tp_tensor *source) {
    if (!is_own(self)) return tp_refuse_target("set_");
    if (self == source) return 0;
    if (tp_tensor_check_set(self, source) < 0) return -1;
    tp_autoref *shown = is_own(source) ? tp_retain(source) : tp_functional_wrap(source);
    return shown ? tp_stand_in_assign(self, shown) : -1;
}

/* set_(Tensor(a!) self) -> Tensor(a!) */
int set__functionalize(tp_tensor *self) {
    if (!is_own(self)) return tp_refuse_target("set_");
    tp_autoref *none =
        tp_empty_memory_format(TP_INTS(0), tp_dtype_of(self), TP_STRIDED, self->device, false, TP_NO_FORMAT);
    return none ? set__source_Tensor_functionalize(self, none) : -1;
}

/* set_.source_Tensor_storage_offset(Tensor(a!) self, Tensor source, SymInt storage_offset, SymInt[] size,
 *                                   SymInt[] stride=[]) -> Tensor(a!) */
int set__source_Tensor_storage_offset_functionalize(tp_tensor *self, tp_tensor *source, int64_t storage_offset,
                                                    tp_ints size, tp_ints stride) {
    int64_t strides[TP_MAX_DIMS];
    if (tp_checked_numel(size) < 0 || tp_strides_for_format(size, TP_CONTIGUOUS_FORMAT, strides) < 0) return -1;
    tp_ints steps = stride.size > 0 ? stride : (tp_ints){strides, size.size};
    tp_autoref *view = tp_as_strided(source, size, steps, TP_SOME_INT(storage_offset));
    return view ? set__source_Tensor_functionalize(self, view) : -1;
}
