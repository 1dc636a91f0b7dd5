/* room.h: memory for libraries that end the process when they get none.
 *
 * libgomp ends it when a thread cannot start, OpenBLAS when it gets no buffer. Before one of them takes memory that it
 * did not have before, as much is asked for here and given back at once. What another thread takes in between is not
 * seen, nor a limit on the number of threads (RLIMIT_NPROC): there the library still has the last word. */
#pragma once

#include "core/base.h"

bool tp_has_room(size_t bytes);
/* The same with a MemoryError that says what the memory is for. */
int tp_ask_for_room(size_t bytes, const char *what);
/* The bytes that a thread of libgomp takes when it starts. */
size_t tp_thread_room(void);
