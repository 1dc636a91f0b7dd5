/* sort_values.c: the primitive sort: the places of a line's elements in their order (sort.h), and the elements. */
#include "PrimitiveKernels.h"
#include "iter/iter.h"
#include "opencl/kernels/sort.h"
#include "prim/fault.h"

int sort_opencl(tp_tensor *lines, bool descending, tp_tensor *values, tp_tensor *order) {
    tp_autoref *places = order ? tp_retain(order) : tp_new_empty(tp_sizes(lines), TP_INT64, lines->device);
    if (!places || tp_cl_sort_places(lines, descending, places) < 0) return -1;
    return values ? take_opencl(lines, lines->ndim ? lines->ndim - 1 : 0, places, TP_TRUSTED, false, values) : 0;
}
