/* panels.h: how a matrix lies whose products with a few rows come often: TP_PANEL columns after the other, [columns /
 * TP_PANEL, rows, TP_PANEL], so that the primitive product takes it as a batch (cpu/panels.h is made for this). */
#pragma once

#include <stdint.h>

#define TP_PANEL 32

/* What a backend gives beside its kernel of product (tp_shortcut_at) for which a weight that serves many products is
 * worth being laid out so: how many products, and of how many rows. */
typedef struct tp_product_shortcut {
    int64_t products, rows;
} tp_product_shortcut;
