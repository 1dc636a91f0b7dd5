/* mapped.h: storages whose memory is a file, mapped: read as pages are touched, and unmapped with the storage. A file
 * that is not shared is copied where it is written; nothing reaches it. */
#pragma once

#include "core/storage.h"

/* The first bytes of a file, on the CPU, new. With `shared` the file is made or grows to nbytes, else it has to have
 * them: RuntimeError. */
tp_storage *tp_map_file(const char *filename, bool shared, size_t nbytes);
