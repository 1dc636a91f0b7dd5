/* room.c: see room.h. */
#define _GNU_SOURCE /* pthread_getattr_default_np */
#include "core/room.h"

#include "core/error.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PER_THREAD ((size_t)256 << 10) /* beside the stack: guard pages, thread-local data, libgomp's own */
#define USUAL_STACK ((size_t)8 << 20)

bool tp_has_room(size_t bytes) {
    if (bytes == 0) return true;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p != MAP_FAILED && munmap(p, bytes) == 0;
}

int tp_ask_for_room(size_t bytes, const char *what) {
    if (tp_has_room(bytes)) return 0;
    return tp_fail(TP_MemoryError, "can't allocate memory: %s needs about %zu MB", what, bytes >> 20);
}

/* "16M", as OpenMP reads it: kilobytes without a letter; 0 for what is none. */
static size_t parse_size(const char *text) {
    static const char letters[] = "BKMGT";
    char *end;
    unsigned long long n = text ? strtoull(text, &end, 10) : 0;
    if (n == 0) return 0;
    const char *letter = *end ? strchr(letters, *end & ~0x20) : NULL;
    int power = letter ? (int)(letter - letters) : 1;
    return (size_t)n << 10 * power;
}

size_t tp_thread_room(void) {
    size_t stack = parse_size(getenv("OMP_STACKSIZE"));
#ifdef __GLIBC__
    pthread_attr_t usual;
    if (stack == 0 && pthread_getattr_default_np(&usual) == 0) {
        pthread_attr_getstacksize(&usual, &stack);
        pthread_attr_destroy(&usual);
    }
#endif
    return (stack ? stack : USUAL_STACK) + PER_THREAD;
}
