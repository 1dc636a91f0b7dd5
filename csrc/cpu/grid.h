/* grid.h: images sampled at the places of a grid: the loops over a block of places. */
#pragma once

#include "core/base.h"

#define TP_GRID_BLOCK 128 /* places that are taken at once */
#define TP_GRID_TAPS 16   /* the most elements that one place reads in a plane */

enum { TP_GRID_LINEAR, TP_GRID_NEAREST, TP_GRID_CUBIC };
enum { TP_GRID_ZEROS, TP_GRID_BORDER, TP_GRID_REFLECTION };

/* Planes of `dims` dimensions; a grid has `dims` coordinates a place, the last dimension's first. */
typedef struct {
    int dims;
    int64_t size[3]; /* of the planes that are read */
    int64_t channels, in_plane, places;
    int mode, border;
    bool corners;
} tp_grid_plan;

typedef struct {
    /* `count` places, at most TP_GRID_BLOCK, of all channels; grid and the first channel's out begin with them. */
    void (*forward)(const tp_grid_plan *p, const void *in, const void *grid, int64_t count, void *out);
    /* The gradient by the grid, of as many places. */
    void (*to_grid)(const tp_grid_plan *p, const void *in, const void *grid, const void *grad, int64_t count,
                    void *out);
    /* Adds the gradient by `channels` planes of the input, of all places. */
    void (*to_input)(const tp_grid_plan *p, const void *grid, const void *grad, int64_t channels, void *out);
} tp_grid_loops;

typedef struct {
    tp_grid_loops f32, f64;
} tp_grid_kernels;
