/* program.h: kernels from source, built at first use and kept in memory and on disk (disk.h), by source, options,
 * device and driver.
 *
 * Binaries are put off (binary.h) until no program was built for a second. */
#pragma once

#include "opencl/runtime/disk.h"
#include "opencl/runtime/runtime.h"

/* A source of csrc/opencl, by the name of its file; NULL if there is none (generated: OpenCLSources.c). */
const char *tp_cl_source(const char *name);
/* Whether it includes tensorpy/math.h, which is not in its text. */
bool tp_cl_source_includes_math(const char *name);
/* The names of special functions, as "lgamma" of tp_lgamma_f32, with a NULL behind the last. */
extern const char *const tp_cl_special_functions[];
/* A program's source: built_ins.cl, definitions, the math helpers if these, `text` or `file` want them (they take
 * longer to read than most kernels) or else the names of types, common.cl, `text`, and `file` if not NULL. */
void tp_cl_add_source(tp_text *s, const char *definitions, const char *text, const char *file);

/* A kernel, and the arguments that it has, which the driver keeps from launch to launch: one that is the same as last
 * time is not passed again (launch.h). Under the device's lock. */
#define TP_CL_KEPT_ARGUMENTS 32
typedef struct {
    cl_kernel id;
    const char *name;
    uint32_t epoch;                      /* tp_cl_released when they were passed */
    uint8_t sizes[TP_CL_KEPT_ARGUMENTS]; /* bytes; 0: not known, or larger than a word */
    uint64_t values[TP_CL_KEPT_ARGUMENTS];
} tp_cl_built;
/* How often memory was given back to the driver, whose handles then may come to stand for other buffers. */
extern _Atomic uint32_t tp_cl_released;

/* The kernel `name` of a program, borrowed. `key` names the program in memory; `write` gives its source when it is not
 * there. NULL and the error set if it does not compile: the compiler's log is in the message. */
typedef void (*tp_cl_writer)(tp_text *source, const void *context);
tp_cl_built *tp_cl_kernel(tp_cl_device *d, const char *key, const char *name, tp_cl_writer write, const void *context);
/* The kernel `name` of the file `file` of csrc/opencl after common.cl, with definitions in front: "#define T float\n".
 */
tp_cl_built *tp_cl_file_kernel(tp_cl_device *d, const char *file, const char *name, const char *definitions);

/* A hash of what a device is and how programs are built for it, to be continued. */
tp_cl_hash tp_cl_hash_device(const tp_cl_device *d);

/* Where the host has waited for a device (`ends`: for the last time): writes binaries that were put off, and says how
 * many programs were built, and how long that took. */
void tp_cl_settle_programs(bool ends);

typedef struct {
    int64_t hits, misses, from_disk, built;
    int64_t with_header; /* of PoCL's: those for which the declarations of built_ins.cl did not do */
} tp_cl_program_stats;
tp_cl_program_stats tp_cl_programs(void);
