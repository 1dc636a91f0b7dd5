/* backend.h: OpenCL as a device type of the core: called once at load, opens nothing. */
#pragma once

/* Registers the device's operations, its runner of pointwise operators and the fallback to the CPU. */
int tp_cl_load(void);
/* The device's operations alone, for who calls primitives. */
void tp_cl_register_device(void);
