/* help.c: finds the docstrings in the file that codegen/emit_help.py writes, _C.help.
 *
 * Nothing but help() and inspect.signature reads the docstrings, but they read them from the rows of method tables,
 * where nothing can be done at their first use: the file is mapped at import, and the rows point into it. The map stays
 * as long as the process. The file's head says whose it is and how large the text is; with a place outside of the text,
 * or a file of another size than the head says, there are no docstrings. */
#include "python/help.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DIGITS = 8 };            /* as in emit_help.py */
static const char **docstrings; /* NULL: none */
static int first_by_hand;

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

/* A number of DIGITS digits, blanks before it; SIZE_MAX: it is none. */
static size_t number_at(const char *text, size_t base) {
    size_t number = 0;
    for (const char *c = text; c < text + DIGITS; c++) {
        if (*c == ' ' && number == 0) continue;
        size_t value = *c >= '0' && *c <= '9'   ? (size_t)(*c - '0')
                       : *c >= 'a' && *c <= 'f' ? (size_t)(*c - 'a') + 10
                                                : 99;
        if (value >= base) return SIZE_MAX;
        number = number * base + value;
    }
    return number;
}

/* Where the places of docstrings begin in a file that is this build's and whole, and the size of the text after them;
 * else NULL. */
static const char *find_places(const char *data, size_t size, int count, size_t *text) {
    char head[64];
    size_t length = (size_t)snprintf(head, sizeof head, "tensorpy help %s %*d ", tp_py_help_digest, DIGITS, count);
    size_t before = length + DIGITS + 1 + (size_t)count * DIGITS;
    if (count == 0 || size <= before || memcmp(data, head, length) != 0) return NULL;
    *text = number_at(data + length, 10);
    return *text == size - before && data[size - 1] == 0 ? data + length + DIGITS + 1 : NULL;
}

static const char **read_places(const char *places, int count, size_t size) {
    const char **list = malloc((size_t)count * sizeof *list), *text = places + (size_t)count * DIGITS;
    for (int i = 0; list && i < count; i++) {
        size_t begin = number_at(places + (size_t)i * DIGITS, 16);
        if (begin >= size) {
            free(list);
            return NULL;
        }
        list[i] = text + begin;
    }
    return list;
}

void tp_py_help_open(void) {
    char path[4096];
    size_t size, text;
    const char *data = path_of_file(path, sizeof path) ? map_file(path, &size) : NULL;
    if (!data) return;
    first_by_hand = count_rows(tp_py_documented);
    int count = first_by_hand + count_by_hand();
    const char *places = find_places(data, size, count, &text);
    docstrings = places ? read_places(places, count, text) : NULL;
    if (!docstrings) munmap((void *)data, size);
    int i = 0;
    for (PyMethodDef *const *table = tp_py_documented; docstrings && *table; table++)
        for (PyMethodDef *m = *table; m->ml_name; m++) m->ml_doc = docstrings[i++];
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
    for (; docstrings && *tables; tables++)
        for (PyMethodDef *m = *tables; m->ml_name; m++) {
            int place = m->ml_doc ? -1 : place_of(prefix, m->ml_name);
            if (place >= 0) m->ml_doc = docstrings[first_by_hand + place];
        }
}

void tp_py_help_type(PyTypeObject *type) {
    const char *dot = strrchr(type->tp_name, '.');
    int place = docstrings ? place_of("", dot ? dot + 1 : type->tp_name) : -1;
    if (place >= 0) type->tp_doc = docstrings[first_by_hand + place];
}
