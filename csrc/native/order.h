/* order.h: lines of elements as keys that are compared as unsigned integers: shared by sort.c, order.c and unique.c. */
#pragma once

#include "native/device_kernels.h"

typedef struct {
    uint64_t key;
    int64_t index;
} tp_entry;

#define TP_NAN_KEY UINT64_MAX

/* The elements as keys are made of them: contiguous, with dim last, 16-bit floats as float32. */
tp_tensor *tp_comparable(const char *op, tp_tensor *self, int64_t dim);
/* n entries from element `first` of such a tensor on. The order is that of the elements: NaN is greater than all, -0
 * equals 0; `descending` turns it round. */
void tp_make_entries(tp_entry *e, const tp_tensor *t, int64_t first, int64_t n, bool descending);
void tp_make_keys(uint64_t *keys, const tp_tensor *t, int64_t first, int64_t n, bool descending);
/* Stably; spare has room for n entries. -1 if a signal ends it. */
int tp_sort_entries(tp_entry *e, tp_entry *spare, int64_t n);
/* The entry that would be at place k if the n entries were sorted by key and then index; e is put in another order. */
tp_entry tp_select_entry(tp_entry *e, int64_t n, int64_t k);

/* What an operator makes of each line along a dimension: `width` indices. */
typedef struct {
    const char *op;
    tp_order_kind kind; /* what another device makes of a line, with k (PLACE: from 1) and skip_nan */
    int64_t width;
    bool descending;
    int64_t k;     /* the operator's own */
    bool skip_nan; /* the operator's own */
    void (*line)(tp_entry *e, tp_entry *spare, int64_t n, int64_t *out, const void *run);
    /* In place of `line`, if there is one: from the elements themselves; e has room for `room` entries. */
    void (*stream)(tp_entry *e, const tp_tensor *t, int64_t first, int64_t n, int64_t *out, const void *run);
    int64_t room;
} tp_line_op;
/* The indices (self's shape with `width` in place of dimension d) and the elements there; both contiguous, without the
 * dimension if !keepdim (width is 1 then). */
tp_tensor2 tp_order_lines(const tp_line_op *op, tp_tensor *self, int64_t d, bool keepdim);
/* Empty tensors of the same shapes. */
tp_tensor2 tp_order_outputs(tp_tensor *self, int64_t d, int64_t width, bool keepdim);
