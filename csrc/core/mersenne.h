/* mersenne.h: the Mersenne Twister MT19937 (M. Matsumoto, T. Nishimura, "Mersenne Twister", 1998), with the bytes that
 * PyTorch's generator of the CPU writes as its state. */
#pragma once

#include "core/base.h"

#define TP_MERSENNE_WORDS 624

typedef struct {
    uint64_t seed;
    int32_t left, seeded; /* words until the next are made, and one */
    uint64_t next, words[TP_MERSENNE_WORDS];
    double normal_x, normal_y, normal_rho; /* y: the second of a pair of normal numbers, which the next draw takes */
    int32_t has_normal, unused;
    float single;
    uint8_t has_single, rest[3];
} tp_mersenne;
_Static_assert(sizeof(tp_mersenne) == 5056, "what PyTorch writes");

void tp_mersenne_seed(tp_mersenne *m, uint64_t seed);
void tp_mersenne_refill(tp_mersenne *m);
bool tp_mersenne_is_sound(const tp_mersenne *m); /* bytes from anywhere: whether `next` stays inside */

TP_INLINE uint32_t tp_mersenne_word(tp_mersenne *m) {
    if (--m->left == 0) tp_mersenne_refill(m);
    uint32_t y = (uint32_t)m->words[m->next++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}
TP_INLINE uint64_t tp_mersenne_two_words(tp_mersenne *m) {
    uint64_t high = tp_mersenne_word(m);
    return high << 32 | tp_mersenne_word(m);
}
/* In [0, 1). */
TP_INLINE double tp_mersenne_double(tp_mersenne *m) {
    return (double)(tp_mersenne_two_words(m) & ((UINT64_C(1) << 53) - 1)) * 0x1p-53;
}
