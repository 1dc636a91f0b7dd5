/* transpose.c: see transpose.h.
 *
 * A block is one cache line of the source per element of a cache line of the destination. It is read whole before it is
 * written, so it does not matter that rows at a power of two apart compete for the same places in the cache.
 *
 * Squares of a block, N lines of N elements in 16 bytes each, are transposed in registers. Lines i and i + N / 2 are
 * interleaved, element by element, into lines 2 i and 2 i + 1: that turns the bits of an element's number, line and
 * place, by one, and after log2(N) times line and place are exchanged. */
#include "cpu/transpose.h"

#include "core/base.h"

#include <string.h>

#define LINE 64
#define VECTOR 16

#if defined(__clang__) || __GNUC__ >= 12
#define MOVED(a, b, numbers, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define MOVED(a, b, numbers, ...) __builtin_shuffle(a, b, (numbers){__VA_ARGS__})
#endif

#define LOW_2 0, 2
#define HIGH_2 1, 3
#define LOW_4 0, 4, 1, 5
#define HIGH_4 2, 6, 3, 7
#define LOW_8 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_8 4, 12, 5, 13, 6, 14, 7, 15
#define LOW_16 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31

#define SQUARE(name, type, N, LOW, HIGH)                                                                      \
    typedef type name##_vector __attribute__((vector_size(VECTOR)));                                          \
    TP_INLINE void name##_step(const name##_vector *a, name##_vector *b) {                                    \
        _Pragma("GCC unroll 16") for (int i = 0; i < (N) / 2; i++) {                                          \
            b[2 * i] = MOVED(a[i], a[i + (N) / 2], name##_vector, LOW);                                       \
            b[2 * i + 1] = MOVED(a[i], a[i + (N) / 2], name##_vector, HIGH);                                  \
        }                                                                                                     \
    }                                                                                                         \
    TP_INLINE void name(char *to, int64_t to_stride, const char *from, int64_t from_stride) {                 \
        const bool even = (N) == 4 || (N) == 16; /* steps */                                                  \
        name##_vector a[N], b[N];                                                                             \
        _Pragma("GCC unroll 16") for (int i = 0; i < (N); i++) memcpy(&a[i], from + i * from_stride, VECTOR); \
        name##_step(a, b);                                                                                    \
        if ((N) > 2) name##_step(b, a);                                                                       \
        if ((N) > 4) name##_step(a, b);                                                                       \
        if ((N) > 8) name##_step(b, a);                                                                       \
        _Pragma("GCC unroll 16") for (int i = 0; i < (N); i++)                                                \
            memcpy(to + i * to_stride, even ? &a[i] : &b[i], VECTOR);                                         \
    }
SQUARE(square_1, uint8_t, 16, LOW_16, HIGH_16)
SQUARE(square_2, uint16_t, 8, LOW_8, HIGH_8)
SQUARE(square_4, uint32_t, 4, LOW_4, HIGH_4)
SQUARE(square_8, uint64_t, 2, LOW_2, HIGH_2)

TP_INLINE void square_16(char *to, int64_t to_stride TP_UNUSED, const char *from, int64_t from_stride TP_UNUSED) {
    memcpy(to, from, VECTOR);
}

#define TRANSPOSE(size)                                                                                               \
    TP_INLINE void squares_##size(char *to, int64_t to_stride, const char *from, int64_t from_stride, int n, int m) { \
        for (int j = 0; j < m; j += VECTOR / size)                                                                    \
            for (int i = 0; i < n; i += VECTOR / size)                                                                \
                square_##size(to + j * to_stride + i * size, to_stride, from + i * from_stride + j * size,            \
                              from_stride);                                                                           \
    }                                                                                                                 \
    static void block_##size(char *to, int64_t to_stride, const char *from, int64_t from_stride) {                    \
        char block[LINE / size][LINE];                                                                                \
        for (int i = 0; i < LINE / size; i++) memcpy(block[i], from + i * from_stride, LINE);                         \
        squares_##size(to, to_stride, block[0], LINE, LINE / size, LINE / size);                                      \
    }                                                                                                                 \
    static void edge_##size(char *to, int64_t to_stride, const char *from, int64_t from_stride, int n, int m) {       \
        const int wide = n & -(VECTOR / size), high = m & -(VECTOR / size);                                           \
        squares_##size(to, to_stride, from, from_stride, wide, high);                                                 \
        for (int j = 0; j < m; j++)                                                                                   \
            for (int i = j < high ? wide : 0; i < n; i++)                                                             \
                memcpy(to + j * to_stride + i * size, from + i * from_stride + j * size, size);                       \
    }                                                                                                                 \
    static void transpose_##size(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n,       \
                                 int64_t m) {                                                                         \
        const int64_t edge = LINE / size;                                                                             \
        for (int64_t i = 0; i < n; i += edge)                                                                         \
            for (int64_t j = 0; j < m; j += edge) {                                                                   \
                char *there = to + j * to_stride + i * size;                                                          \
                const char *here = from + i * from_stride + j * size;                                                 \
                if (n - i >= edge && m - j >= edge) block_##size(there, to_stride, here, from_stride);                \
                else                                                                                                  \
                    edge_##size(there, to_stride, here, from_stride, (int)(n - i < edge ? n - i : edge),              \
                                (int)(m - j < edge ? m - j : edge));                                                  \
            }                                                                                                         \
    }
TRANSPOSE(1)
TRANSPOSE(2)
TRANSPOSE(4)
TRANSPOSE(8)
TRANSPOSE(16)

tp_transpose_fn tp_transpose_of(int64_t itemsize) {
    switch (itemsize) {
    case 1: return transpose_1;
    case 2: return transpose_2;
    case 4: return transpose_4;
    case 8: return transpose_8;
    default: return transpose_16;
    }
}
