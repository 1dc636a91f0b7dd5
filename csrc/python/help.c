/* help.c: maps the file of docstrings that codegen/emit_help.py writes, _C.help.
 *
 * Nothing but help() and inspect.signature reads it, so that it costs an import one mmap. The map is never closed:
 * functions point into it. The file's head says whose it is, its last byte ends the last docstring, and an offset that
 * leads out of the file gives none. */
#include "python/help.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DIGITS = 8 };
static const char *file; /* NULL: no docstrings */
static size_t file_size;
static const char *offsets; /* of the docstrings, DIGITS hexadecimal digits each */
static int first_by_hand;

static size_t offset(const char *digits) {
    size_t value = 0;
    for (int i = 0; i < DIGITS; i++)
        value = value * 16 + (size_t)(digits[i] <= '9' ? digits[i] - '0' : digits[i] - 'a' + 10);
    return value;
}

static const char *docstring(int i) {
    size_t at = offset(offsets + i * DIGITS);
    return at < file_size ? file + at : NULL;
}

/* The file's path: the module's with another name behind the folder. */
static bool path_of_file(char *path, size_t room) {
    Dl_info info;
    if (!dladdr(&first_by_hand, &info) || !info.dli_fname) return false;
    const char *slash = strrchr(info.dli_fname, '/');
    int folder = slash ? (int)(slash + 1 - info.dli_fname) : 0;
    int written = snprintf(path, room, "%.*s_C.help", folder, info.dli_fname);
    return written > 0 && (size_t)written < room;
}

static const char *map_file(const char *path, size_t *size) {
    struct stat about;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return NULL;
    void *data = MAP_FAILED;
    if (fstat(descriptor, &about) == 0 && about.st_size > 0)
        data = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    close(descriptor);
    if (data == MAP_FAILED) return NULL;
    *size = (size_t)about.st_size;
    return data;
}

static int count_rows(PyMethodDef *const *tables) {
    int total = 0;
    for (; *tables; tables++)
        for (const PyMethodDef *m = *tables; m->ml_name; m++) total++;
    return total;
}

static int count_by_hand(void) {
    int total = 0;
    while (tp_py_help_by_hand[total]) total++;
    return total;
}

/* Whether it is this build's, whole. */
static bool is_own(const char *data, size_t size, int count) {
    char head[64];
    int length = snprintf(head, sizeof head, "tensorpy help %s %*d\n", tp_py_help_digest, DIGITS, count);
    size_t body = (size_t)length + (size_t)count * DIGITS;
    return size > body && memcmp(data, head, (size_t)length) == 0 && data[size - 1] == 0;
}

void tp_py_help_open(void) {
    char path[4096];
    size_t size;
    const char *data = path_of_file(path, sizeof path) ? map_file(path, &size) : NULL;
    if (!data) return;
    first_by_hand = count_rows(tp_py_documented);
    int count = first_by_hand + count_by_hand();
    if (!is_own(data, size, count)) {
        munmap((void *)data, size);
        return;
    }
    file = data;
    file_size = size;
    offsets = strchr(data, '\n') + 1;
    int i = 0;
    for (PyMethodDef *const *table = tp_py_documented; *table; table++)
        for (PyMethodDef *m = *table; m->ml_name; m++) m->ml_doc = docstring(i++);
}

/* The place of a name, "Tensor." and a method's say, in the list, which is in order; -1: it is not there. */
static int place_of(const char *prefix, const char *name) {
    size_t length = strlen(prefix);
    for (int low = 0, high = count_by_hand(); low < high;) {
        int middle = (low + high) / 2;
        int order = strncmp(prefix, tp_py_help_by_hand[middle], length);
        if (order == 0) order = strcmp(name, tp_py_help_by_hand[middle] + length);
        if (order == 0) return middle;
        if (order < 0) high = middle;
        else low = middle + 1;
    }
    return -1;
}

void tp_py_help_tables(const char *prefix, PyMethodDef *const *tables) {
    for (; file && *tables; tables++)
        for (PyMethodDef *m = *tables; m->ml_name; m++) {
            int place = m->ml_doc ? -1 : place_of(prefix, m->ml_name);
            if (place >= 0) m->ml_doc = docstring(first_by_hand + place);
        }
}

void tp_py_help_type(PyTypeObject *type) {
    const char *dot = strrchr(type->tp_name, '.');
    int place = file ? place_of("", dot ? dot + 1 : type->tp_name) : -1;
    if (place >= 0) type->tp_doc = docstring(first_by_hand + place);
}
