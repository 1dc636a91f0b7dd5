/* mapped.c: see mapped.h. */
#define _GNU_SOURCE
#include "core/mapped.h"

#include "core/error.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void unmap(void *context, void *data) { munmap(data, (size_t)context); }

static int open_file(const char *filename, bool shared) {
    int file = open(filename, (shared ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC, 0600);
    if (file >= 0) return file;
    return tp_fail(TP_RuntimeError, "unable to open file <%s> in %s mode: %s (%d)", filename,
                   shared ? "read-write" : "read-only", strerror(errno), errno);
}

/* A file that is shared grows; one that is not has to be as large. */
static int check_size(int file, const char *filename, bool shared, size_t nbytes) {
    struct stat found;
    if (fstat(file, &found) < 0)
        return tp_fail(TP_RuntimeError, "unable to stat the file <%s>: %s (%d)", filename, strerror(errno), errno);
    if ((size_t)found.st_size >= nbytes || S_ISDIR(found.st_mode)) return 0;
    if (!shared)
        return tp_fail(TP_RuntimeError, "file <%s> size <%lld> is smaller than the required mapping size <%zu>",
                       filename, (long long)found.st_size, nbytes);
    if (ftruncate(file, (off_t)nbytes) == 0) return 0;
    return tp_fail(TP_RuntimeError, "unable to resize file <%s> to the right size: %s (%d)", filename, strerror(errno),
                   errno);
}

static tp_storage *map_open_file(int file, const char *filename, bool shared, size_t nbytes) {
    if (check_size(file, filename, shared, nbytes) < 0) return NULL;
    if (nbytes == 0) return tp_storage_new(TP_CPU, 0);
    void *data = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, shared ? MAP_SHARED : MAP_PRIVATE, file, 0);
    if (data == MAP_FAILED)
        return tp_fail_null(TP_RuntimeError, "unable to mmap %zu bytes from file <%s>: %s (%d)", nbytes, filename,
                            strerror(errno), errno);
    tp_storage *storage = tp_storage_from_blob(TP_CPU, data, nbytes, unmap, (void *)nbytes);
    if (!storage) munmap(data, nbytes);
    return storage;
}

tp_storage *tp_map_file(const char *filename, bool shared, size_t nbytes) {
    int file = open_file(filename, shared);
    if (file < 0) return NULL;
    tp_storage *storage = map_open_file(file, filename, shared, nbytes);
    close(file);
    return storage;
}
