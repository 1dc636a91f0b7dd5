/* disk.h: what is kept on disk from process to process: built programs, and what was found out about a driver.
 *
 * The folder is $XDG_CACHE_HOME/tensorpy/opencl, else ~/.cache/tensorpy/opencl, or what TENSORPY_OPENCL_CACHE names
 * (empty: none). A record is a file whose name is a hash of its key; inside are the key's hash, the content and a
 * checksum of both. It is written beside its place and renamed, so that several processes may write at once.
 *
 * Invariant: nothing of a record is believed that another user could have put there. Links are not followed, a file
 * is read only if it is a plain one of this user's that nobody else may write; whatever is off is as if it were not
 * there, and is written anew. */
#pragma once

#include "core/base.h"

typedef struct {
    uint64_t word[2];
} tp_cl_hash;

/* A hash of texts, one after the other: FNV-1a (Fowler, Noll, Vo), twice, from two beginnings. */
#define TP_CL_HASH_START ((tp_cl_hash){{UINT64_C(14695981039346656037), UINT64_C(7809847782465536322)}})
tp_cl_hash tp_cl_hash_text(tp_cl_hash h, const char *text);

/* Whether there is a folder. */
bool tp_cl_disk_is_there(void);
/* The content of a record, to be given to free(), or NULL. */
unsigned char *tp_cl_disk_read(tp_cl_hash key, size_t *size);
void tp_cl_disk_write(tp_cl_hash key, const void *content, size_t size);
