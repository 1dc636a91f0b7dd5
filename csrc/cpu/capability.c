/* capability.c: cpuid, once.
 *
 * A level counts only if the operating system saves the registers that it uses (XCR0), which the compiler's
 * __builtin_cpu_supports checks; a level also holds all below it. */
#include "cpu/capability.h"

#include "cpu/libmvec.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[TP_NUM_CAPABILITIES] = {"baseline", "avx2", "avx512"};

#if defined(TP_WITHOUT_AVX2)
#define LOWEST TP_CAPABILITY_AVX512
#define NEEDED "AVX-512"
#elif defined(TP_WITHOUT_BASELINE)
#define LOWEST TP_CAPABILITY_AVX2
#define NEEDED "AVX2"
#else
#define LOWEST TP_CAPABILITY_BASELINE
#define NEEDED "nothing"
#endif

static atomic_int chosen = -1; /* every thread that finds -1 finds the same answer */
static char warning[200];

static tp_capability detect(void) {
#ifdef TP_HAVE_X86_CAPABILITIES
    __builtin_cpu_init();
    /* Every CPU with AVX2 and BMI2 has F16C, which gcc 10 and clang cannot be asked for by name. */
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi") ||
        !__builtin_cpu_supports("bmi2"))
        return TP_CAPABILITY_BASELINE;
#ifndef TP_WITHOUT_AVX512
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return TP_CAPABILITY_AVX512;
#endif
    return TP_CAPABILITY_AVX2;
#else
    return TP_CAPABILITY_BASELINE;
#endif
}

static tp_capability choose(void) {
    tp_capability best = detect();
    const char *asked = getenv("TENSORPY_CPU_CAPABILITY");
    if (!asked || !*asked) return best;
    for (int level = 0; level < TP_NUM_CAPABILITIES; level++) {
        if (strcmp(asked, names[level])) continue;
        if (level >= LOWEST) return level < (int)best ? (tp_capability)level : best;
        snprintf(warning, sizeof warning,
                 "TENSORPY_CPU_CAPABILITY is %s, of which this build has no loops (TENSORPY_CAPABILITIES=%s compiles "
                 "them); using %s",
                 asked, asked, names[LOWEST]);
        return LOWEST;
    }
    snprintf(warning, sizeof warning,
             "TENSORPY_CPU_CAPABILITY is '%.40s', which is none of baseline, avx2 and avx512; using %s", asked,
             names[best]);
    return best;
}

tp_capability tp_cpu_capability(void) {
    int level = atomic_load_explicit(&chosen, memory_order_acquire);
    if (level < 0) {
        level = choose();
        tp_libmvec_find();
        atomic_store_explicit(&chosen, level, memory_order_release);
    }
    return (tp_capability)level;
}

const char *tp_capability_name(tp_capability c) { return names[c]; }

const char *tp_capability_refusal(void) {
    return detect() < LOWEST ? "tensorpy was compiled on a CPU with " NEEDED
                               ", for such CPUs, and this one has no " NEEDED
                               ": compile it here, or with TENSORPY_CAPABILITIES=all, or install a wheel"
                             : NULL;
}

const char *tp_capability_warning(void) {
    tp_cpu_capability();
    return *warning ? warning : NULL;
}
