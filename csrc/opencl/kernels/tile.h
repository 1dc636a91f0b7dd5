/* tile.h: the tiles that work-groups of GPUs make of a matrix product; the kernels' half is tile.inc. */
#pragma once

#include "core/dtype.h"
#include "opencl/runtime/launch.h"

#define TP_CL_TILE 64  /* edges are this or twice as much */
#define TP_CL_DEPTH 16 /* of a slice: DEPTH */

typedef struct {
    int down, across;
} tp_cl_tile;

TP_INLINE int64_t tp_cl_tiles(tp_cl_tile t, int64_t rows, int64_t columns) {
    return tp_divide_up(rows, t.down) * tp_divide_up(columns, t.across);
}

/* The largest tiles that give every compute unit one, for `products` of rows x columns. */
TP_INLINE tp_cl_tile tp_cl_tile_of(const tp_cl_device *d, tp_dtype dtype, int64_t rows, int64_t columns,
                                   int64_t products) {
    const int64_t units = d->compute_units;
    tp_cl_tile t = {TP_CL_TILE, TP_CL_TILE};
    if (dtype != TP_FLOAT32) return t; /* a tile of double would not fit into registers */
    if (rows > TP_CL_TILE) t.down *= 2;
    if (columns > TP_CL_TILE) t.across *= 2;
    if (t.down > TP_CL_TILE && tp_cl_tiles(t, rows, columns) * products < units) t.down = TP_CL_TILE;
    if (t.across > TP_CL_TILE && tp_cl_tiles(t, rows, columns) * products < units) t.across = TP_CL_TILE;
    return t;
}
