/* internal.h: what the files of csrc/autograd share with each other only. */
#pragma once

#include "autograd/node.h"

/* Adds an input described by t; returns its number, or -1. */
int tp_node_add_input(tp_node *n, const tp_tensor *t);
/* t goes: the node stops keeping its gradient. */
void tp_forget_keeper(tp_node *n, const tp_tensor *t);
