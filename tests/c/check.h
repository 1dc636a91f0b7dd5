/* check.h: the harness of the C tests: one program per test_*.c, linked with the core.
 *
 * A failed check is printed with its place and counted; the program goes on and ends with a non-zero status. */
#pragma once

#include "core/alloc.h"
#include "core/error.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static _Atomic long check_passed, check_failed;

#define CHECK(cond)                                                            \
    do {                                                                       \
        if (cond) {                                                            \
            check_passed++;                                                    \
        } else {                                                               \
            check_failed++;                                                    \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #cond); \
        }                                                                      \
    } while (0)

#define CHECK_INT(actual, expected)                                                                            \
    do {                                                                                                       \
        long long actual_ = (long long)(actual), expected_ = (long long)(expected);                            \
        if (actual_ == expected_) {                                                                            \
            check_passed++;                                                                                    \
        } else {                                                                                               \
            check_failed++;                                                                                    \
            fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #actual, actual_, expected_); \
        }                                                                                                      \
    } while (0)

#define CHECK_STR(actual, expected)                                                                                \
    do {                                                                                                           \
        const char *actual_ = (actual), *expected_ = (expected);                                                   \
        if (strcmp(actual_, expected_) == 0) {                                                                     \
            check_passed++;                                                                                        \
        } else {                                                                                                   \
            check_failed++;                                                                                        \
            fprintf(stderr, "%s:%d: %s is \"%s\", not \"%s\"\n", __FILE__, __LINE__, #actual, actual_, expected_); \
        }                                                                                                          \
    } while (0)

/* The pending error is of this class and its message contains the phrase; then it is cleared. */
#define CHECK_ERROR(class, phrase)                                                                              \
    do {                                                                                                        \
        if (tp_error_pending() == TP_##class && strstr(tp_error_message(), phrase)) {                           \
            check_passed++;                                                                                     \
        } else {                                                                                                \
            check_failed++;                                                                                     \
            fprintf(stderr, "%s:%d: expected %s with \"%s\", got %s: %s\n", __FILE__, __LINE__, #class, phrase, \
                    tp_error_class_name(tp_error_pending()), tp_error_message());                               \
        }                                                                                                       \
        tp_error_clear();                                                                                       \
    } while (0)

/* Runs `expr` with its first, second, ... allocation failing, until it succeeds. Each failure must be a MemoryError and
 * leave as many blocks live as there were; `cleanup` undoes the success. */
#define CHECK_EACH_ALLOCATION(expr, cleanup)                      \
    do {                                                          \
        int64_t fails_ = 0, live_ = tp_alloc_stats().live_blocks; \
        for (;; fails_++) {                                       \
            tp_alloc_fail_after(fails_);                          \
            bool ok_ = (expr);                                    \
            tp_alloc_fail_after(-1);                              \
            if (ok_ || fails_ > 1000) break;                      \
            CHECK_ERROR(MemoryError, "can't allocate memory");    \
            CHECK_INT(tp_alloc_stats().live_blocks, live_);       \
        }                                                         \
        CHECK(fails_ > 0 && fails_ <= 1000);                      \
        CHECK(tp_error_pending() == TP_NoError);                  \
        cleanup;                                                  \
        CHECK_INT(tp_alloc_stats().live_blocks, live_);           \
    } while (0)

static inline int check_report(void) {
    printf("%s: %ld passed, %ld failed\n", __BASE_FILE__, (long)check_passed, (long)check_failed);
    return check_failed ? 1 : 0;
}
