/* outside.h: devices that somebody else built, registered at run time through tensorpy/backend.h. */
#pragma once

#include "core/device.h"

/* Opens a shared library, for good, and calls its entry. */
int tp_load_backend(const char *path);
