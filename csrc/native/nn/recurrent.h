/* recurrent.h: the cells of recurrent networks, as the files of the family share them. */
#pragma once

#include "core/tensor.h"

typedef enum { TP_CELL_TANH, TP_CELL_RELU, TP_CELL_LSTM, TP_CELL_GRU } tp_cell_kind;
typedef struct {
    tp_cell_kind kind;
    const char *name;
    int64_t gates, saved; /* how many times the hidden size a row of gates has, and a row of what is kept of it */
} tp_recurrent;

/* The cell of this name; a ValueError if there is none. */
int tp_recurrent_cell(const char *name, tp_recurrent *cell);
/* What the projection of an LSTM was applied to, from what was kept: o * tanh(f * before + i * g). New. */
tp_tensor *tp_recurrent_unprojected(tp_tensor *saved);
