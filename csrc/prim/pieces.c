/* pieces.c: see pieces.h. */
#include "prim/pieces.h"

#include "core/parallel.h"

/* Elements of a part: on the CPU 1 MB of float32, so that the copies of several operands stay in the cache that cores
 * share; elsewhere as many as keep a device busy. */
static int64_t piece_of(tp_device device) { return device.type == TP_DEVICE_CPU ? 1 << 18 : 1 << 24; }

typedef struct {
    int n;
    uint64_t whole;
    tp_piece_fn run;
    const void *context;
    int64_t most; /* elements of a part's largest tensor */
} cut;

static int walk(const cut *c, tp_tensor *const *tensors, int dim);

/* The elements from `begin` on along a dimension. */
static int part_of(const cut *c, tp_tensor *const *tensors, int dim, int64_t begin, int64_t count) {
    tp_tensor *parts[TP_MAX_PIECES] = {NULL};
    int status = 0;
    for (int i = 0; i < c->n && status == 0; i++) {
        if (!tensors[i]) continue;
        int64_t sizes[TP_MAX_DIMS], item = tp_itemsize((tp_dtype)tensors[i]->dtype);
        for (int d = 0; d < tensors[i]->ndim; d++) sizes[d] = d == dim ? count : tensors[i]->sizes[d];
        parts[i] = tp_new_alias(tensors[i], (tp_ints){sizes, tensors[i]->ndim}, tp_strides(tensors[i]),
                                tensors[i]->byte_offset + begin * tensors[i]->strides[dim] * item);
        status = parts[i] ? 0 : -1;
    }
    if (status == 0) status = walk(c, parts, dim + 1);
    for (int i = 0; i < c->n; i++) tp_release(parts[i]);
    return status;
}

static int64_t largest(tp_tensor *const *tensors, int n) {
    int64_t numel = 0;
    for (int i = 0; i < n; i++)
        if (tensors[i] && tensors[i]->numel > numel) numel = tensors[i]->numel;
    return numel;
}

static int walk(const cut *c, tp_tensor *const *tensors, int dim) {
    const tp_tensor *first = tensors[0];
    int64_t numel = largest(tensors, c->n);
    while (dim < first->ndim && (c->whole >> dim & 1 || first->sizes[dim] == 1)) dim++;
    if (numel <= c->most || dim >= first->ndim) return c->run(tensors, c->context);
    int64_t size = first->sizes[dim], fit = c->most / (numel / size), step = fit ? fit : 1;
    int status = 0;
    for (int64_t i = 0; i < size && status == 0; i += step)
        status = part_of(c, tensors, dim, i, tp_at_most(size - i, step));
    return status;
}

int tp_by_pieces(tp_tensor *const *tensors, int n, uint64_t whole, tp_piece_fn run, const void *context) {
    cut c = {n, whole, run, context, piece_of(tensors[0]->device)};
    if (whole == TP_WHOLE || largest(tensors, n) < TP_GRAIN) return run(tensors, context);
    tp_tensor *still[TP_MAX_PIECES] = {NULL}; /* long copies give the host lock up: Note [Shared fields] */
    int status = 0;
    for (int i = 0; i < n && status == 0; i++)
        if (tensors[i]) status = (still[i] = tp_still(tensors[i])) ? 0 : -1;
    if (status == 0) status = walk(&c, still, 0);
    for (int i = 0; i < n; i++) tp_release(still[i]);
    return status;
}
