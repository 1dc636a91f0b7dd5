/* loop.h: tensorpy/loop.inc, on the tree's own headers: for loops that are compiled once per capability. */
#pragma once

#include "cpu/capability.h"
#include "dispatch/value.h"
#include "iter/iter.h"
#include "tensorpy/loop.inc"
