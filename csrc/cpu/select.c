/* select.c: the choice among the compiled capabilities of the hand-written kernels. */
#include "cpu/cast_stored.h"
#include "cpu/kernels.h"
#include "cpu/run.h"

#define DECLARE_BASELINE(family) extern const tp_##family##_kernels tp_##family##_baseline;
TP_FORALL_CPU_FAMILIES(DECLARE_BASELINE)
#define USE_BASELINE(family) .family = &tp_##family##_baseline,
static const tp_cpu_kernels baseline = {TP_FORALL_CPU_FAMILIES(USE_BASELINE)};

#ifdef TP_HAVE_X86_CAPABILITIES
#define DECLARE_X86(family) extern const tp_##family##_kernels tp_##family##_avx2, tp_##family##_avx512;
TP_FORALL_CPU_FAMILIES(DECLARE_X86)
#define USE_AVX2(family) .family = &tp_##family##_avx2,
static const tp_cpu_kernels avx2 = {TP_FORALL_CPU_FAMILIES(USE_AVX2)};
#define USE_AVX512(family) .family = &tp_##family##_avx512,
static const tp_cpu_kernels avx512 = {TP_FORALL_CPU_FAMILIES(USE_AVX512)};
#endif

tp_cpu_kernels tp_cpu = {TP_FORALL_CPU_FAMILIES(USE_BASELINE)};

void tp_cpu_select(tp_capability capability) {
    tp_cpu = baseline;
#ifdef TP_HAVE_X86_CAPABILITIES
    if (capability == TP_CAPABILITY_AVX2) tp_cpu = avx2;
    if (capability == TP_CAPABILITY_AVX512) tp_cpu = avx512;
#endif
    (void)capability;
}

static void __attribute__((constructor)) select_at_load(void) { tp_cpu_select(tp_cpu_capability()); }

/* ---- what the iterator asks for ---- */

/* A copy without conversion only moves bytes, which keeps the bits of a NaN. */
static tp_dtype moved_as(tp_dtype d) {
    switch (tp_itemsize(d)) {
    case 1: return TP_UINT8;
    case 2: return TP_UINT16;
    case 4: return TP_UINT32;
    case 8: return TP_UINT64;
    default: return TP_COMPLEX128;
    }
}

tp_loop_fn tp_cast_loop(tp_dtype from, tp_dtype to) {
    if (from == to) from = to = moved_as(to);
    if (tp_unlikely(tp_is_stored_dtype(from) || tp_is_stored_dtype(to))) return tp_cast_stored(from, to);
    return (*tp_cpu.cast)[to][from];
}
