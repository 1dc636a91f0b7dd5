/* select.c: the choice among the compiled capabilities of the hand-written kernels. */
#include "cpu/kernels.h"

#define DECLARE_BASELINE(family) extern const tp_##family##_kernels TP_BASELINE(tp_##family);
TP_FORALL_CPU_FAMILIES(DECLARE_BASELINE)
#define USE_BASELINE(family) .family = &TP_BASELINE(tp_##family),
static const tp_cpu_kernels baseline = {TP_FORALL_CPU_FAMILIES(USE_BASELINE)};

#ifdef TP_HAVE_X86_CAPABILITIES
#define DECLARE_X86(family) extern const tp_##family##_kernels TP_AVX2(tp_##family), TP_AVX512(tp_##family);
TP_FORALL_CPU_FAMILIES(DECLARE_X86)
#define USE_AVX2(family) .family = &TP_AVX2(tp_##family),
static const tp_cpu_kernels avx2 = {TP_FORALL_CPU_FAMILIES(USE_AVX2)};
#define USE_AVX512(family) .family = &TP_AVX512(tp_##family),
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
