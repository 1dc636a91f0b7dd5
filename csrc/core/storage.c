/* storage.c: storages: one block for struct and data where the data is small, else data from the device.
 *
 * Invariant: data == inline_data(s) means that the data lies in the struct's own block and is not released by itself;
 * otherwise it belongs to the deleter if there is one, else to the device. */
#include "core/storage.h"

#include "core/alloc.h"
#include "core/error.h"
#include "core/host.h"
#include "core/tls.h"

#include <string.h>

struct tp_pending_hooks tp_pending_hooks;

#define HEAD 64        /* the struct, padded so that inline data is aligned as every block is */
#define INLINE_MAX 512 /* bytes of data that share the struct's block */
_Static_assert(sizeof(tp_storage) <= HEAD, "the struct has to fit in front of its inline data");

static inline void *inline_data(tp_storage *s) { return (char *)s + HEAD; }

static inline tp_storage *new_head(tp_device device, size_t nbytes, size_t block) {
    tp_storage *s = tp_alloc_inline(block);
    if (tp_unlikely(!s)) return NULL;
    atomic_init(&s->refcount, 1);
    atomic_init(&s->version, 0);
    s->writer = NULL;
    s->data = NULL;
    s->nbytes = nbytes;
    s->block = block;
    s->device = device;
    s->traits = TP_STORAGE_RESIZABLE;
    s->writes = TP_WRITES_GO;
    atomic_init(&s->lent, false);
    s->later = 0; /* slot is read where this is not 0 */
    s->context = NULL;
    s->deleter = NULL;
    return s;
}

static inline void keep_size(tp_storage *s) { s->traits &= (uint8_t)~TP_STORAGE_RESIZABLE; }

static void *device_allocate(tp_device device, size_t nbytes, void **context) {
    if (device.type == TP_DEVICE_CPU) return tp_alloc(nbytes);
    const tp_device_ops *ops = tp_device_get_ops((tp_device_type)device.type);
    return ops ? ops->allocate(device, nbytes, context) : NULL;
}

/* By itself, so that the short path of small data needs few registers. */
static tp_storage *__attribute__((noinline)) new_with_block(tp_device device, size_t nbytes) {
    tp_storage *s = new_head(device, nbytes, HEAD);
    if (!s || nbytes == 0 || device.type == TP_DEVICE_META) return s;
    if (tp_is_opaque(s)) keep_size(s); /* there is no handle for a part of another's bytes */
    bool later = tp_unlikely(tp_tls.later) && tp_tls.later == device.type + 1;
    if (later && tp_pending_hooks.make(s) == 0) return s;
    if (!later && (s->data = device_allocate(device, nbytes, &s->context))) return s;
    tp_free(s, HEAD);
    return NULL;
}

int tp_storage_fill(tp_storage *s) {
    if (s->data || !s->nbytes || s->device.type == TP_DEVICE_META) return 0;
    s->data = device_allocate(s->device, s->nbytes, &s->context);
    return s->data ? 0 : -1;
}

tp_storage *tp_storage_new(tp_device device, size_t nbytes) {
    if (tp_likely(device.type == TP_DEVICE_CPU)) {
        device.index = -1;
        if (nbytes - 1 < INLINE_MAX) { /* 1 to INLINE_MAX */
            tp_storage *s = new_head(device, nbytes, HEAD + nbytes);
            if (tp_likely(s != NULL)) s->data = inline_data(s);
            return s;
        }
    } else if (tp_device_resolve(device, &device) < 0) {
        return NULL;
    }
    return new_with_block(device, nbytes);
}

tp_storage *tp_storage_from_blob(tp_device device, void *data, size_t nbytes, void (*deleter)(void *, void *),
                                 void *context) {
    if (tp_device_resolve(device, &device) < 0) return NULL;
    tp_storage *s = new_head(device, nbytes, HEAD);
    if (!s) return NULL;
    s->data = data;
    keep_size(s);
    s->context = context;
    s->deleter = deleter ? deleter : tp_storage_keep_blob;
    return s;
}

int tp_check_address(tp_storage *s, const char *what) {
    if (tp_settle(s) < 0 || (tp_unlikely(tp_tls.region) && tp_pending_hooks.lend() < 0)) return -1;
    if (tp_unlikely(s->writes == TP_WRITES_COPY) && tp_storage_own(s) < 0) return -1;
    return tp_likely(!tp_is_opaque(s))
               ? 0
               : tp_fail(TP_RuntimeError, "%s: a tensor on %s has no address: the device shows no memory", what,
                         tp_device_type_name((tp_device_type)s->device.type));
}

void tp_storage_keep_blob(void *context TP_UNUSED, void *data TP_UNUSED) {}

static void release_data(tp_storage *s) {
    if (s->deleter) s->deleter(s->context, s->data);
    else if (!s->data || s->data == inline_data(s)) return;
    else if (s->device.type == TP_DEVICE_CPU) tp_free_inline(s->data, s->nbytes);
    else tp_device_get_ops((tp_device_type)s->device.type)->release(s->device, s->data, s->nbytes, s->context);
}

void tp_storage_empty(tp_storage *s) {
    release_data(s);
    s->data = NULL;
    s->context = NULL;
    s->deleter = NULL;
}

static int copy_inside(tp_device device, void *dst, const void *src, size_t nbytes) {
    const tp_device_ops *ops = tp_device_get_ops((tp_device_type)device.type);
    return ops ? ops->copy_inside(device, dst, src, nbytes) : -1;
}

static void free_storage(void *storage, size_t unused TP_UNUSED) { tp_storage_free(storage); }

/* The storage's data, which leaves in a storage of its own: `old`. */
static void move_data(const tp_storage *s, tp_storage *old) {
    bool own_block = s->data && s->data != inline_data((tp_storage *)s);
    old->data = own_block ? s->data : NULL;
    old->context = s->context;
    old->deleter = s->deleter;
}

/* A kernel of another thread may be reading the data that leaves. */
static void park_data_steal(const tp_storage *s, tp_storage *old) {
    move_data(s, old);
    tp_host_park(free_storage, old, 0);
}

/* New data with the old content; the storage is untouched after a failure. */
static int grow_data(tp_storage *s, size_t nbytes) {
    void *context = NULL, *data = device_allocate(s->device, nbytes, &context);
    tp_storage *old = data ? new_head(s->device, s->nbytes, HEAD) : NULL;
    if (!old || (s->nbytes && copy_inside(s->device, data, s->data, s->nbytes) < 0)) {
        if (data) tp_device_get_ops((tp_device_type)s->device.type)->release(s->device, data, nbytes, context);
        if (old) tp_free(old, HEAD);
        return -1;
    }
    park_data_steal(s, old);
    s->data = data;
    s->context = context;
    s->deleter = NULL;
    s->writes = TP_WRITES_GO;
    if (!tp_is_opaque(s)) s->traits |= TP_STORAGE_RESIZABLE;
    return 0;
}

int tp_storage_resize(tp_storage *s, size_t nbytes) {
    if (nbytes <= s->nbytes) return 0;
    if (!(s->traits & TP_STORAGE_RESIZABLE))
        return tp_fail(TP_RuntimeError, "Trying to resize storage that is not resizable");
    if (tp_settle(s) < 0) return -1;
    if (s->device.type != TP_DEVICE_META && grow_data(s, nbytes) < 0) return -1;
    s->nbytes = nbytes;
    return 0;
}

tp_storage *tp_storage_lend(tp_storage *s) {
    if (tp_settle(s) < 0 || (tp_unlikely(tp_tls.region) && tp_pending_hooks.lend() < 0)) return NULL;
    if (tp_unlikely(s->writes == TP_WRITES_COPY) && tp_storage_own(s) < 0) return NULL;
    keep_size(s);
    atomic_store_explicit(&s->lent, true, memory_order_release);
    return tp_storage_retain(s);
}

static void release_lender(void *lender, void *data TP_UNUSED) { tp_storage_release(lender); }

/* Memory whose address is outside is kept by the storage that follows it: `lender` first, `lent` after it. */
typedef struct {
    tp_storage *lender, *lent;
} both_memories;
static void release_both(void *context, void *data TP_UNUSED) {
    both_memories *both = context;
    tp_storage_release(both->lender);
    tp_storage_free(both->lent);
    tp_free(both, sizeof *both);
}

int tp_storage_adopt(tp_storage *s, tp_storage *lender) {
    if (s->device.type != TP_DEVICE_CPU || lender->device.type != TP_DEVICE_CPU || lender->nbytes < s->nbytes)
        return tp_fail(TP_RuntimeError, "a storage of %zu bytes on %s cannot take over one of %zu bytes on %s",
                       s->nbytes, tp_device_type_name((tp_device_type)s->device.type), lender->nbytes,
                       tp_device_type_name((tp_device_type)lender->device.type));
    if (s == lender) return 0;
    if (tp_settle(s) < 0 || tp_settle(lender) < 0) return -1;
    bool lent = atomic_load_explicit(&s->lent, memory_order_acquire);
    both_memories *both = lent ? tp_alloc(sizeof *both) : NULL;
    tp_storage *old = lent && !both ? NULL : new_head(s->device, s->nbytes, HEAD);
    if (!old) {
        if (both) tp_free(both, sizeof *both);
        return -1;
    }
    if (s->nbytes) memcpy(lender->data, s->data, s->nbytes);
    if (lent) {
        move_data(s, old);
        *both = (both_memories){tp_storage_retain(lender), old};
        s->context = both;
        s->deleter = release_both;
    } else {
        park_data_steal(s, old);
        s->context = tp_storage_retain(lender);
        s->deleter = release_lender;
    }
    s->data = lender->data;
    s->writes = TP_WRITES_GO;
    keep_size(s);
    return 0;
}

/* ---- Note [Late copies] ---- */

/* The last that shared keeps the owner. Memory that was adopted has a lender too, but is never resized. */
static bool has_owner(const tp_storage *s) { return s->deleter == release_lender && s->traits & TP_STORAGE_RESIZABLE; }

bool tp_storage_can_share(const tp_storage *s) {
    bool plain = s->writes != TP_WRITES_FAIL && (!s->deleter || has_owner(s));
    return plain && (s->data || !s->nbytes) && !s->later && !tp_tls.region && s->device.type == TP_DEVICE_CPU &&
           !atomic_load_explicit(&s->lent, memory_order_acquire);
}

static void share_memory_of(tp_storage *s, tp_storage *owner) {
    s->data = owner->data;
    s->context = tp_storage_retain(owner);
    s->deleter = release_lender;
    s->writes = TP_WRITES_COPY;
}

/* The memory of s in a storage of its own. Data in the struct's block is copied: others may read that block still. */
static tp_storage *owner_of(tp_storage *s) {
    if (has_owner(s)) return tp_storage_retain(s->context);
    bool is_inline = s->data == inline_data(s);
    tp_storage *owner = is_inline ? tp_storage_new(s->device, s->nbytes) : new_head(s->device, s->nbytes, HEAD);
    if (!owner) return NULL;
    if (is_inline) memcpy(owner->data, s->data, s->nbytes);
    else move_data(s, owner);
    return owner;
}

tp_storage *tp_storage_share(tp_storage *s) {
    tp_storage *clone = new_head(s->device, s->nbytes, HEAD), *owner = clone ? owner_of(s) : NULL;
    if (!owner) {
        if (clone) tp_free_inline(clone, clone->block);
        return NULL;
    }
    share_memory_of(clone, owner);
    if (has_owner(s)) s->writes = TP_WRITES_COPY;
    else share_memory_of(s, owner);
    tp_storage_release(owner);
    return clone;
}

int tp_storage_own(tp_storage *s) {
    if (s->nbytes && !tp_storage_is_sole(s->context)) return grow_data(s, s->nbytes);
    s->writes = TP_WRITES_GO; /* it keeps the owner, whose memory is its alone */
    return 0;
}

void tp_storage_free(tp_storage *s) {
    release_data(s);
    tp_free_inline(s, s->block);
}
