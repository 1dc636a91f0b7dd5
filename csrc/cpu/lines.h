/* lines.h: lines of elements as keys that are compared as unsigned integers: what sort.c, distinct.c and isin.c share.
 */
#pragma once

#include "core/tensor.h"

typedef struct {
    uint64_t key;
    int64_t index;
} tp_entry;

#define TP_NAN_KEY UINT64_MAX

/* n entries from element `first` of a contiguous real tensor on. The order is that of the elements: NaN is greater than
 * all, -0 equals 0; `descending` turns it round. */
void tp_make_entries(tp_entry *e, const tp_tensor *t, int64_t first, int64_t n, bool descending);
void tp_make_keys(uint64_t *keys, const tp_tensor *t, int64_t first, int64_t n, bool descending);
/* Stably; spare has room for n entries. -1 if a signal ends it. */
int tp_sort_entries(tp_entry *e, tp_entry *spare, int64_t n);
/* The first k entries in order of key and then index; e is put in another order. */
void tp_first_entries(tp_entry *e, int64_t n, int64_t k);
/* The entry that would be at place k if the n entries were sorted by key and then index; e is put in another order. */
tp_entry tp_select_entry(tp_entry *e, int64_t n, int64_t k);
