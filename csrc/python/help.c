/* help.c: unpacks the file of docstrings that codegen/emit_help.py writes, _C.help.
 *
 * Nothing but help() and inspect.signature reads the docstrings, but they read them from the rows of method tables,
 * where nothing can be done at their first use: the text is made at import, which takes 0.7 ms. It is never
 * given back, since functions point into it. The file's head says whose it is and how large the text is; a step that
 * leads out of the file or of the text, or a text of other docstrings than the head says, gives none. */
#include "python/help.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DIGITS = 8, ZERO = 0x20, BASE = 95, FRONT = 5 }; /* as in emit_help.py */
static const char **docstrings;                         /* NULL: none */
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
        data = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, descriptor, 0);
    close(descriptor);
    if (data == MAP_FAILED) return NULL;
    *size = (size_t)about.st_size;
    return data;
}

static size_t digit_of(char c) { return (unsigned char)(c - ZERO); }

/* Whether the steps of emit_help.py make a text of this size. */
static bool unpack(const char *step, const char *end, char *text, size_t size) {
    size_t done = 0;
    while (end - step >= FRONT) {
        size_t own = digit_of(step[0]), count = digit_of(step[1]);
        size_t back = (digit_of(step[2]) * BASE + digit_of(step[3])) * BASE + digit_of(step[4]);
        step += FRONT;
        if (own > (size_t)(end - step) || own > size - done) return false;
        memcpy(text + done, step, own);
        step += own;
        done += own;
        if (count > back || back > done || count > size - done) return false;
        memcpy(text + done, text + done - back, count);
        done += count;
    }
    return step == end && done == size;
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

/* The size of the text, if the file is this build's, and where its steps begin; else 0. */
static size_t size_of_text(const char *data, size_t size, int count, const char **steps) {
    char head[64];
    int length = snprintf(head, sizeof head, "tensorpy help %s %*d ", tp_py_help_digest, DIGITS, count);
    if (size <= (size_t)length + DIGITS || memcmp(data, head, (size_t)length) != 0) return 0;
    size_t text = 0;
    for (const char *c = data + length; c < data + length + DIGITS; c++) {
        if (*c == ' ') continue;
        if (*c < '0' || *c > '9') return 0;
        text = text * 10 + (size_t)(*c - '0');
    }
    *steps = data + length + DIGITS + 1;
    return text / BASE < size ? text : 0; /* a step makes less than 2 * BASE characters of FRONT */
}

/* The text's docstrings, which are so many; NULL if they are not. */
static const char **split(const char *text, size_t size, int count) {
    const char **list = malloc((size_t)count * sizeof *list);
    const char *end = text + size;
    for (int i = 0; list && i < count; i++) {
        list[i] = text;
        const char *nul = text < end ? memchr(text, 0, (size_t)(end - text)) : NULL;
        if (!nul) {
            free(list);
            return NULL;
        }
        text = nul + 1;
    }
    return list;
}

static const char **read_docstrings(const char *data, size_t size, int count) {
    const char *steps;
    size_t room = size_of_text(data, size, count, &steps);
    if (room == 0) return NULL;
    char *text = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (text == MAP_FAILED) return NULL;
    const char **list = unpack(steps, data + size, text, room) ? split(text, room, count) : NULL;
    if (!list) munmap(text, room);
    return list;
}

void tp_py_help_open(void) {
    char path[4096];
    size_t size;
    const char *data = path_of_file(path, sizeof path) ? map_file(path, &size) : NULL;
    if (!data) return;
    first_by_hand = count_rows(tp_py_documented);
    docstrings = read_docstrings(data, size, first_by_hand + count_by_hand());
    munmap((void *)data, size);
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
