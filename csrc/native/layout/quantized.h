/* quantized.h: what the operators of quantized tensors share.
 *
 * Note [Quantized kernels]
 * A quantized tensor is a dense tensor of integers, and how they are read: a scale and a zero point for all of them
 * (facts), or for each place along a dimension (parts). An element is (integer - zero_point) * scale. Its integers are
 * what operators work on: those that move elements call themselves on them (`quantized: moves`), others compute on
 * what `dequantize` gives, or on the integers, and round once. quint4x2 and quint2x4 keep an integer in a byte, as
 * quint8 does; `int_repr` and files have two and four in one. */
#pragma once

#include "native/layout/layout.h"

/* Facts of both layouts; the first is TP_FACT_DTYPE. The scale is a double's bits. */
enum { TP_FACT_SCALE = 1, TP_FACT_ZERO_POINT = 2, TP_FACT_AXIS = 1 };

/* How the integers of one tensor are read. */
typedef struct {
    tp_dtype dtype;
    bool channels;                   /* one scale for each place along `axis` */
    double scale;                    /* of all, */
    int64_t zero_point;              /* likewise */
    int64_t axis;                    /* along which the next have a number for each place */
    tp_tensor *scales, *zero_points; /* owned: float64 and int64, or both float32 */
    tp_tensor *integers;             /* owned */
} tp_quantized;

/* -1 and the error set for a tensor that is not quantized. */
int tp_quantized_of(tp_tensor *t, tp_quantized *q);
void tp_quantized_release(tp_quantized *q);
#define tp_autoquantized TP_CLEANUP(tp_quantized_release) tp_quantized

/* What an operator that writes does to a quantized tensor: its integers, and how they are read, become made's. */
int tp_write_quantized(tp_tensor *t, tp_tensor *made, const char *op);

typedef struct {
    bool symmetric; /* where numbers have both signs, 0 is the middle integer */
    bool narrow;    /* the zero point is that of the scale in float32 */
} tp_choice;

/* The scale and the zero point by which integers from low to high stand for numbers from least to most, 0 among them
 * exactly. */
void tp_choose_scale(float least, float most, int64_t low, int64_t high, tp_choice choice, double *scale,
                     int64_t *zero_point);
/* The same for the numbers of a tensor of float32, which has some. */
int tp_range_scale(tp_tensor *self, int64_t low, int64_t high, double *scale, int64_t *zero_point);

/* What products of bytes take beside them: scales in float32 and zero points in int32, one or as many as features, and
 * a bias or NULL. */
int tp_check_int8_numbers(const char *op, const tp_tensor *scales, const tp_tensor *zero_points, const tp_tensor *bias,
                          int64_t features);
/* The scale and the zero point of a result of bytes. */
int tp_check_int8_range(const char *op, tp_dtype dtype, double scale, int64_t zero_point);
