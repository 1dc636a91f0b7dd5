/* fault.c: see fault.h. Entries are written before their number is given out, and stay. */
#include "prim/fault.h"

#include "core/lock.h"
#include "core/tensor.h"

#include <string.h>

#define MAX_FAULTS 1024

static tp_fault faults[MAX_FAULTS] = {{TP_RuntimeError, "an operator", NULL}}; /* for more than there is room for */
static _Atomic int count = 1;

static bool same_text(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }

static int find(tp_error_class cls, const char *op, const char *message) {
    int n = count, i = 1;
    while (i < n && (faults[i].cls != cls || !same_text(faults[i].op, op) || !same_text(faults[i].message, message)))
        i++;
    return i < n ? i : 0;
}

int tp_fault_id(tp_error_class cls, const char *op, const char *message) {
    tp_lock(TP_LOCK_Faults);
    int id = find(cls, op, message);
    if (id == 0 && count < MAX_FAULTS) {
        id = count;
        faults[id] = (tp_fault){cls, op, message};
        count = id + 1;
    }
    tp_unlock(TP_LOCK_Faults);
    return id;
}

const tp_fault *tp_fault_at(int id) { return id >= 0 && id < count ? &faults[id] : NULL; }

int tp_raise_fault(int id, int64_t value, int64_t dim, int64_t size, const char *where) {
    const tp_fault *f = tp_fault_at(id);
    if (!f) f = &faults[0];
    if (f->message) return tp_fail(f->cls, "%s: %s%s", f->op, f->message, where);
    return tp_fail(f->cls,
                   "%s: index %lld is out of bounds for dimension %lld with size %lld (index out of range in self)%s",
                   f->op, (long long)value, (long long)dim, (long long)size, where);
}

void tp_refuse_stored(const char *primitive, tp_tensor *const *tensors, int n) {
    tp_dtype found = TP_NO_DTYPE;
    for (int i = 0; i < n && found == TP_NO_DTYPE; i++)
        if (tensors[i] && tp_is_stored_dtype((tp_dtype)tensors[i]->dtype)) found = (tp_dtype)tensors[i]->dtype;
    tp_fail(TP_NotImplementedError, "\"%s\" not implemented for '%s'", primitive, tp_scalar_type_name(found));
}
