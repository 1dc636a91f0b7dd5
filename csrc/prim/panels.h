/* panels.h: how a matrix lies whose products with a few rows come often: TP_PANEL columns after the other, [columns /
 * TP_PANEL, rows, TP_PANEL], so that the primitive product takes it as a batch (cpu/panels.h is made for this). */
#pragma once

#define TP_PANEL 32
