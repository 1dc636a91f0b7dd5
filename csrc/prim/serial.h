/* serial.h: what draws from a serial generator are of: numbers in the order of PyTorch's CPU, one after the other. */
#pragma once

typedef enum {
    TP_SERIAL_UNIFORM,     /* from a to b; of a float dtype, of one word each */
    TP_SERIAL_NORMAL,      /* mean a, deviation b; two at a time, of doubles */
    TP_SERIAL_NORMAL_FILL, /* the same for 16 elements or more side by side: sixteen at a time, of uniform numbers */
    TP_SERIAL_EXPONENTIAL, /* rate a */
    TP_SERIAL_CAUCHY,      /* median a, scale b */
    TP_SERIAL_LOG_NORMAL,  /* mean a and deviation b of the logarithm */
    TP_SERIAL_GEOMETRIC,   /* a: the logarithm of a failure's probability */
    TP_SERIAL_BERNOULLI,   /* true with probability a */
    TP_NUM_SERIAL
} tp_serial_kind;

/* Draws with parameters for each element. */
typedef enum { TP_SERIAL_GAMMA, TP_SERIAL_POISSON } tp_serial_kind_of;
