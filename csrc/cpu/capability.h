/* capability.h: which of the compiled CPU kernels this machine runs.
 *
 * Kernel files are compiled once per capability with -DTP_CAPABILITY=<name> and the matching -m flags; what they export
 * is named TP_CAP(stem). The choice is made once, at load. */
#pragma once

#include "tensorpy/expressions.h"

/* Before a loop of 16 elements or fewer: gcc would take them one by one, before it looks for vectors. */
#define VECTORISED _Pragma("GCC unroll 1")

/* The level in use: the highest that the CPU has, or a lower one that TENSORPY_CPU_CAPABILITY asks for (a higher one is
 * clamped). Found at the first call. */
tp_capability tp_cpu_capability(void);
const char *tp_capability_name(tp_capability c); /* "baseline" */
/* Why this CPU cannot run the loops of this build; NULL: it can. */
const char *tp_capability_refusal(void);
/* What was wrong with TENSORPY_CPU_CAPABILITY, for the Python layer to warn with at import; NULL if nothing. */
const char *tp_capability_warning(void);
