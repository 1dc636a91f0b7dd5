/* device.h: what the files of the device share: its memory, its streams, and how a kernel sees its arguments.
 *
 * A primitive is enqueued: the call's arguments are copied, tensors as views, and a thread of the stream runs the
 * kernel on the copy later. So a kernel is a plain C function that reads its arguments by their places in the schema,
 * and that may only touch the device's memory. */
#ifndef SIMULATED_DEVICE_H
#define SIMULATED_DEVICE_H

#include "tensorpy/library.h"

#ifndef DEVICE
#define DEVICE simulated /* its name: another one makes another device of the same source */
#endif
#define NAME_OF_(name) #name
#define NAME_OF(name) NAME_OF_(name)
#define DEVICE_NAME NAME_OF(DEVICE)

#define DEVICES 2
#define STREAMS 32 /* of a device; 0 is the default one */
#define MAX_DIMS 64

/* ---- memory (memory.c) ---- */

/* Where the device itself finds what an address that it handed out stands for. */
char *memory_at(int device, const void *address);
/* What is left of a device's memory to a stream when blocks were used by others too; called with no lock held. */
int64_t enqueue_wait_for(int device, int64_t stream, uint32_t others);

/* ---- numbers (number.c) ---- */

/* An element: i for bool and integers (u for uint64), f for floating dtypes, c for complex ones. */
typedef union {
    int64_t i;
    uint64_t u;
    double f;
    double _Complex c;
} number;

bool is_floating(tp_dtype d);
bool is_complex(tp_dtype d);
bool is_unsigned_64(tp_dtype d);
tp_dtype real_of(tp_dtype d);    /* complex64: float32, ... */
tp_dtype compute_of(tp_dtype d); /* float16, bfloat16: float32 */
number number_at(const void *p, tp_dtype d);
void number_to(void *p, tp_dtype d, number x);
/* Of one dtype as another, as a copy converts. */
number converted(number x, tp_dtype from, tp_dtype to);
/* The result of arithmetic that was done in int64, double or double complex as the dtype would have it. */
number narrowed(number x, tp_dtype d);
number number_of(tp_scalar s, tp_dtype d);
/* In int64, double or double complex; of bools it is or, and and. */
number plus(number a, number b, tp_dtype d);
number times(number a, number b, tp_dtype d);
bool is_zero(number x, tp_dtype d);
bool is_nan(number x, tp_dtype d);
/* -1, 0 or 1; NaN after all others, and equal to itself. */
int compared(number a, number b, tp_dtype d);

/* ---- tensors and arguments (view.c, call.c) ---- */

typedef struct {
    char *data; /* in the device's memory */
    tp_dtype dtype;
    int ndim;
    int64_t numel, item;
    int64_t sizes[MAX_DIMS], strides[MAX_DIMS]; /* strides in bytes */
} view;

typedef struct {
    int64_t n; /* of a list; of a tensor: whether it is there */
    view *tensors;
    int64_t *ints;
    tp_scalar *scalars;
    int64_t i;
    double f;
    bool b;
} argument;

/* Element i in row-major order. */
char *at(const view *v, int64_t i);
number get(const view *v, int64_t i);
void put(const view *v, int64_t i, number x); /* of v's dtype */
int64_t get_int(const view *v, int64_t i);
/* Stretched to the sizes of another. */
view broadcast(const view *v, const view *like);
/* With the sizes of another and its own steps: the elements at the other's coordinates. */
view at_coordinates_of(const view *v, const view *like);
/* The same memory along some of the dimensions only, each element of which begins what the other dimensions reach. */
view along(const view *v, const int64_t *dims, int64_t ndims);
view across(const view *v, const int64_t *dims, int64_t ndims);
view view_of(const tp_tensor *t);

typedef void (*kernel)(const argument *a);

typedef struct {
    const char *name; /* of the primitive, "scan.sum" */
    kernel run;
} primitive;

/* Enqueues a kernel on such arguments in the current stream of their device: for a kernel of a whole operator. */
int enqueue_call(kernel run, const char *name, const tp_value *args, int n);
int register_primitives(tp_library *m, const primitive *list, size_t n);
#define PRIMITIVES(...)                                  \
    static const primitive primitives[] = {__VA_ARGS__}; \
    IMPLEMENT(prim, DEVICE, m) { return register_primitives(m, primitives, sizeof primitives / sizeof primitives[0]); }
#define IMPLEMENT(ns, key, m) TENSORPY_LIBRARY_IMPL(ns, key, m)

/* In a kernel: what is wrong with a value; the host raises it when it next waits for the device. A fault of -1 cannot
 * be. */
void note_fault(int64_t fault, int64_t value, int64_t dim, int64_t size);
/* An index as a place in [0, size): -1 with the fault noted for one that is outside. */
int64_t place(int64_t index, int64_t size, bool wrap, int64_t fault, int64_t dim);

/* ---- streams (queue.c) ---- */

/* Waits for what this thread's stream of a device was given, and raises what went wrong there. */
int wait_here(int device);
int wait_for_device(int device);
void fill_in_streams(tensorpy_backend *b);

#endif
