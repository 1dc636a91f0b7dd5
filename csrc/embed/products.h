/* products.h: matrix products where there is no BLAS library: right, and as fast as plain loops are. */
#pragma once

/* Has cpu/blas.h use them where it finds no library. */
void tp_embed_products(void);
