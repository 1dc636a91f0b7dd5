/* base.h: the few macros and helpers that the whole tree uses.
 *
 * Note [Ownership]
 * One rule for the whole C tree:
 *   - an argument is borrowed: the callee may read it for the length of the call and takes its own reference if it
 *     keeps it;
 *   - a returned pointer is new: the caller owns one reference and releases it with tp_<type>_release;
 *   - a function that breaks either half says so in its name: `..._borrow` returns a borrowed pointer, `..._steal`
 *     takes over the reference that it is given, also when it fails.
 * `tp_autoref` on a local tensor variable releases it when the scope ends, so an early return leaks nothing;
 * `tp_take(var)` moves the reference out of such a variable.
 *
 * Note [Status]
 * A function that can fail returns NULL (pointers) or -1 (int status, 0 is success) after it has set the thread's error
 * (error.h). Nothing aborts; TP_ASSERT states an internal invariant and is compiled in debug builds only.
 *
 * Note [Host lock]
 * Python's threads take turns by one lock, which kernels give up while they run for long, and which any Python code
 * (an __index__, a hook, the end of an object) may give up. So over such a moment
 *   - nothing is kept that was borrowed from a Python list, dict or attribute: the parser and everybody else who walks
 *     one owns the objects that he goes on to use. What stands in a tuple, or on the interpreter's stack, lives as long
 *     as the call;
 *   - no field of a tensor that another thread may swap is read twice in the belief that it is the same (Note [Shared
 *     fields] in tensor.h);
 *   - no leaf lock is held (lock.h), since its holder would wait for the host lock and the host lock's for it.
 * Loops that take more than some milliseconds look for signals (tp_host_look). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

_Static_assert(sizeof(void *) == 8, "tensorpy needs a 64-bit machine: sizes and addresses share 64-bit words");

#define TP_MAX_DIMS 64   /* as in NumPy 2 and PyTorch */
#define TP_INLINE_DIMS 5 /* sizes and strides up to this many dimensions sit inside the tensor */

#define tp_likely(x) __builtin_expect(!!(x), 1)
#define tp_unlikely(x) __builtin_expect(!!(x), 0)
#define TP_INLINE static inline __attribute__((always_inline))
#define TP_COLD __attribute__((cold, noinline))
#define TP_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define TP_CLEANUP(fn) __attribute__((cleanup(fn)))
#define TP_UNUSED __attribute__((unused))
#define TP_COUNTOF(a) ((int64_t)(sizeof(a) / sizeof((a)[0])))

TP_INLINE int64_t tp_at_most(int64_t n, int64_t limit) { return n < limit ? n : limit; }
TP_INLINE int64_t tp_at_least(int64_t n, int64_t limit) { return n > limit ? n : limit; }

#ifdef TENSORPY_DEBUG
#include <assert.h>
#define TP_ASSERT(cond) assert(cond)
#else
#define TP_ASSERT(cond) ((void)sizeof(cond))
#endif

/* Moves the pointer out of a variable that would release it at the end of its scope. */
#define tp_take(var)                  \
    __extension__({                   \
        __typeof__(var) taken_ = var; \
        (var) = NULL;                 \
        taken_;                       \
    })
