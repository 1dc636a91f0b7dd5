/* loop.h: tensorpy/loop.inc, on the tree's own headers: for loops that are compiled once per capability. */
#pragma once

#include "cpu/capability.h"
#include "core/host.h"
#include "dispatch/value.h"
#include "iter/iter.h"

#define TP_ENDS_AT(k) tp_steps_end_at(k)
#include "tensorpy/loop.inc"
