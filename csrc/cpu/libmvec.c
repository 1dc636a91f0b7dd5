/* libmvec.c: see libmvec.h. Nothing here runs with a capability's instructions. */
#define _GNU_SOURCE
#include "cpu/libmvec.h"

#include "tensorpy/math.h"

#ifdef TP_LIBMVEC
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

extern const tp_libmvec_slot TP_BASELINE(tp_libmvec_slots)[], TP_AVX2(tp_libmvec_slots)[],
    TP_AVX512(tp_libmvec_slots)[];

void tp_libmvec_find(void) {
    const char *asked = getenv("TENSORPY_LIBMVEC");
    if (asked && !strcmp(asked, "0")) return;
    void *library = dlopen("libmvec.so.1", RTLD_NOW | RTLD_LOCAL); /* loaded already; this holds it */
    if (!library) return;
    const tp_libmvec_slot *const capabilities[] = {TP_BASELINE(tp_libmvec_slots), TP_AVX2(tp_libmvec_slots),
                                                   TP_AVX512(tp_libmvec_slots)};
    for (size_t level = 0; level < sizeof capabilities / sizeof *capabilities; level++)
        for (const tp_libmvec_slot *slot = capabilities[level]; slot->name; slot++) {
            void *found = dlsym(library, slot->name);
            if (found) __atomic_store_n(slot->at, found, __ATOMIC_RELAXED);
        }
}
#else
void tp_libmvec_find(void) {}
#endif
