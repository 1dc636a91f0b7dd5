/* from_file.c: tensors whose memory is a file, mapped: read only as pages are touched, and unmapped with the storage. A
 * file that is not shared is copied where it is written; nothing reaches it. */
#define _GNU_SOURCE
#include "NativeFunctions.h"
#include "core/error.h"
#include "core/memory.h"

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

static tp_storage *map_file(const char *filename, bool shared, size_t nbytes) {
    int file = open_file(filename, shared);
    if (file < 0) return NULL;
    tp_storage *storage = map_open_file(file, filename, shared, nbytes);
    close(file);
    return storage;
}

/* from_file(str filename, bool? shared=None, int? size=0, *, ScalarType? dtype=None, Layout? layout=None, Device?
 * device=None, bool? pin_memory=None) -> Tensor */
tp_tensor *from_file_cpu(const char *filename, tp_opt_bool shared, tp_opt_int size, tp_dtype dtype, tp_layout layout,
                         tp_device device TP_UNUSED, tp_opt_bool pin_memory) {
    int64_t n = size.has ? size.value : 0, nbytes;
    tp_dtype made = dtype == TP_NO_DTYPE ? tp_default_dtype() : dtype;
    if (pin_memory == 1) return tp_fail_null(TP_RuntimeError, "tensors constructed from a file cannot be pinned");
    if (layout != TP_NO_LAYOUT && layout != TP_STRIDED)
        return tp_fail_null(TP_RuntimeError, "from_file: only the strided layout is supported");
    if (n < 0 || __builtin_mul_overflow(n, tp_itemsize(made), &nbytes))
        return tp_fail_null(TP_RuntimeError, "unable to mmap a number of %lld elements from file <%s>", (long long)n,
                            filename);
    tp_storage *storage = map_file(filename, shared == 1, (size_t)nbytes);
    tp_tensor *t = storage ? tp_new_on_storage(storage, TP_INTS(n), TP_INTS(1), 0, made) : NULL;
    tp_storage_release(storage);
    return t;
}
