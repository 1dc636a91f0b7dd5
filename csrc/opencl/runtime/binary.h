/* binary.h: the binaries of built programs, on disk (disk.h) and back.
 *
 * To ask for a binary may take longer than the build: PoCL compiles every kernel of the program once more for it. So
 * they are put off until the host has waited for a device and no program was built for a second, and are written one by
 * one then, one in a wait. At the process's end what is left is written for five seconds; a later process that builds
 * the rest again writes some more.
 *
 * Invariant: a program that is put off is kept until it is written, or the process ends. */
#pragma once

#include "opencl/runtime/disk.h"
#include "opencl/runtime/runtime.h"

/* The program of a key, built from its binary; NULL: there is none that serves. */
cl_program tp_cl_binary_read(tp_cl_device *d, tp_cl_hash key, const char *options);
/* A program that has just been built, to be written later. */
void tp_cl_binary_put_off(cl_program p, tp_cl_hash key);
/* How many are put off. */
int tp_cl_binaries_put_off(void);
/* Writes one that was put off; at the process's end as many as there is time for. */
void tp_cl_binaries_write(bool ends);

/* Seconds of a clock that only goes on. */
double tp_cl_now(void);
