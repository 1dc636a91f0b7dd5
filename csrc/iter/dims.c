/* dims.c: see dims.h. */
#include "iter/dims.h"

#include "core/scalar_math.h"

#include <stdlib.h>

void tp_dims_add(tp_dims *d, int64_t size, int64_t in, int64_t out) {
    int at = d->n++;
    for (; at > 0 && llabs(d->in[at - 1]) > llabs(in); at--) {
        d->size[at] = d->size[at - 1];
        d->in[at] = d->in[at - 1];
        d->out[at] = d->out[at - 1];
    }
    d->size[at] = size;
    d->in[at] = in;
    d->out[at] = out;
}

void tp_dims_merge(tp_dims *d) {
    int last = 0;
    if (!d->n) tp_dims_add(d, 1, 0, 0);
    for (int i = 1; i < d->n; i++) {
        if (d->in[last] * d->size[last] == d->in[i] && d->out[last] * d->size[last] == d->out[i]) {
            d->size[last] *= d->size[i];
            continue;
        }
        last++;
        d->size[last] = d->size[i];
        d->in[last] = d->in[i];
        d->out[last] = d->out[i];
    }
    d->n = last + 1;
}

int64_t tp_dims_numel(const tp_dims *d) { return tp_ints_numel((tp_ints){d->size, d->n}); }
