/* threads.h: whether a thread is the only one that runs operators. */
#pragma once

#include <stdbool.h>

/* Whether another thread lives that has asked for memory for itself, and not for a chunk of tp_parallel_for. */
bool tp_thread_has_company(void);
