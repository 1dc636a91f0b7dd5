/* disk.c: see disk.h. */
#include "opencl/runtime/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC "tensorpy opencl 2\n"
#define MOST_BYTES (INT64_C(1) << 30)
#define NAME_ROOM 80

static uint64_t hash_bytes(uint64_t h, const void *bytes, size_t n) {
    for (const uint8_t *c = bytes; n--; c++) h = (h ^ *c) * UINT64_C(1099511628211);
    return h;
}
tp_cl_hash tp_cl_hash_text(tp_cl_hash h, const char *text) {
    for (int i = 0; i < 2; i++) h.word[i] = hash_bytes(h.word[i], text, strlen(text) + 1);
    return h;
}

/* What stands around the content of a file. */
typedef struct {
    char magic[sizeof MAGIC - 1];
    uint8_t key[sizeof(tp_cl_hash)];
} head;

static head head_of(tp_cl_hash key) {
    head h;
    memcpy(h.magic, MAGIC, sizeof h.magic);
    memcpy(h.key, &key, sizeof h.key);
    return h;
}
static uint64_t sum_of(const head *h, const void *content, size_t size) {
    return hash_bytes(hash_bytes(TP_CL_HASH_START.word[0], h, sizeof *h), content, size);
}

/* ---- the folder ---- */

static void make_folders(char *path) {
    for (char *c = path + 1; *c; c++)
        if (*c == '/') {
            *c = 0;
            mkdir(path, 0700);
            *c = '/';
        }
    mkdir(path, 0700);
}

/* Opened, or -1: there is no place for a cache. */
static int open_folder(void) {
    const char *named = getenv("TENSORPY_OPENCL_CACHE"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char path[3500];
    int n = -1;
    if (named) n = *named ? snprintf(path, sizeof path, "%s", named) : -1;
    else if (xdg && *xdg) n = snprintf(path, sizeof path, "%s/tensorpy/opencl", xdg);
    else if (home && *home) n = snprintf(path, sizeof path, "%s/.cache/tensorpy/opencl", home);
    if (n < 0 || (size_t)n >= sizeof path) return -1;
    make_folders(path);
    return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static void name_of(tp_cl_hash key, char name[NAME_ROOM]) {
    snprintf(name, NAME_ROOM, "%016llx%016llx.bin", (unsigned long long)key.word[0], (unsigned long long)key.word[1]);
}

/* ---- reading ---- */

static bool is_ours(const struct stat *s) {
    return S_ISREG(s->st_mode) && s->st_uid == geteuid() && !(s->st_mode & (S_IWGRP | S_IWOTH));
}

static bool read_whole(int file, void *bytes, size_t n) {
    for (size_t done = 0; done < n;) {
        ssize_t got = read(file, (char *)bytes + done, n - done);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        done += (size_t)got;
    }
    return true;
}

/* O_NONBLOCK: a pipe in a file's place would wait for who writes to it. */
static unsigned char *read_record(int folder, const char *name, tp_cl_hash key, size_t *size) {
    struct stat about;
    head wanted = head_of(key);
    uint64_t sum;
    int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) return NULL;
    bool fits = fstat(file, &about) == 0 && is_ours(&about) && about.st_size >= (off_t)(sizeof wanted + sizeof sum) &&
                about.st_size <= (off_t)MOST_BYTES;
    unsigned char *bytes = fits ? malloc((size_t)about.st_size) : NULL;
    bool whole = bytes && read_whole(file, bytes, (size_t)about.st_size);
    close(file);
    if (whole && memcmp(bytes, &wanted, sizeof wanted) == 0) {
        *size = (size_t)about.st_size - sizeof wanted - sizeof sum;
        memcpy(&sum, bytes + sizeof wanted + *size, sizeof sum);
        memmove(bytes, bytes + sizeof wanted, *size);
        if (sum_of(&wanted, bytes, *size) == sum) return bytes;
    }
    free(bytes);
    return NULL;
}

bool tp_cl_disk_is_there(void) {
    int folder = open_folder();
    return folder >= 0 && close(folder) == 0;
}

unsigned char *tp_cl_disk_read(tp_cl_hash key, size_t *size) {
    char name[NAME_ROOM];
    int folder = open_folder();
    if (folder < 0) return NULL;
    name_of(key, name);
    unsigned char *content = read_record(folder, name, key, size);
    close(folder);
    return content;
}

/* ---- writing ---- */

static bool write_whole(int file, const void *bytes, size_t n) {
    for (size_t done = 0; done < n;) {
        ssize_t put = write(file, (const char *)bytes + done, n - done);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return false;
        done += (size_t)put;
    }
    return true;
}

/* A new file beside the place: of a name that nothing has, so that no link in its place is written through. */
static int open_beside(int folder, const char *name, char beside[2 * NAME_ROOM]) {
    static _Atomic unsigned count;
    for (int tries = 0; tries < 16; tries++) {
        snprintf(beside, 2 * NAME_ROOM, "%s.%d.%u.new", name, (int)getpid(), atomic_fetch_add(&count, 1));
        int file = openat(folder, beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (file >= 0 || errno != EEXIST) return file;
    }
    return -1;
}

static void write_record(int folder, tp_cl_hash key, const void *content, size_t size) {
    char name[NAME_ROOM], beside[2 * NAME_ROOM];
    head h = head_of(key);
    uint64_t sum = sum_of(&h, content, size);
    name_of(key, name);
    int file = open_beside(folder, name, beside);
    if (file < 0) return; /* a cache that cannot be written is none */
    bool whole =
        write_whole(file, &h, sizeof h) && write_whole(file, content, size) && write_whole(file, &sum, sizeof sum);
    whole = close(file) == 0 && whole;
    if (!whole || renameat(folder, beside, folder, name) != 0) unlinkat(folder, beside, 0);
}

void tp_cl_disk_write(tp_cl_hash key, const void *content, size_t size) {
    int folder = open_folder();
    if (folder < 0) return;
    write_record(folder, key, content, size);
    close(folder);
}
