/* groups.h: the groups of a world: some of its ranks each, with a part of the engine of their own.
 *
 * A number stands for one group as long as the world lasts, whether it was freed or not. */
#pragma once

#include "distributed/engine.h"

/* A group of ranks of the world, in their order there; its number, or -1. All of them call this, with the same
   name. */
int tp_world_group(const char *name, const int *ranks, int n, double seconds);
void tp_world_group_free(int group);
bool tp_world_reduces(tp_dtype dtype, tp_reduce_op op);
