/* slots.c: see slots.h. */
#include "outside/slots.h"

#include "core/error.h"

tensorpy_backend tp_backends[TENSORPY_MAX_BACKENDS];

int64_t tp_backend_checked(const tensorpy_backend *b, int64_t status, const char *what) {
    if (status >= 0 || tp_error_pending()) return status >= 0 ? status : -1;
    return tp_fail(TP_RuntimeError, "%s: %s failed", b->name, what);
}
