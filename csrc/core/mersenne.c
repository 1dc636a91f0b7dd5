/* mersenne.c: seeds and words of the Mersenne Twister. */
#include "core/mersenne.h"

#include <string.h>

#define MIDDLE 397

void tp_mersenne_seed(tp_mersenne *m, uint64_t seed) {
    memset(m, 0, sizeof *m);
    m->seed = seed;
    m->left = m->seeded = 1;
    m->words[0] = (uint32_t)seed;
    for (uint32_t i = 1; i < TP_MERSENNE_WORDS; i++)
        m->words[i] = (uint32_t)(1812433253u * (uint32_t)(m->words[i - 1] ^ m->words[i - 1] >> 30) + i);
}

void tp_mersenne_refill(tp_mersenne *m) {
    for (int i = 0; i < TP_MERSENNE_WORDS; i++) {
        uint32_t y =
            ((uint32_t)m->words[i] & 0x80000000u) | ((uint32_t)m->words[(i + 1) % TP_MERSENNE_WORDS] & 0x7fffffffu);
        m->words[i] = (uint32_t)m->words[(i + MIDDLE) % TP_MERSENNE_WORDS] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    m->left = TP_MERSENNE_WORDS;
    m->next = 0;
}

bool tp_mersenne_is_sound(const tp_mersenne *m) {
    return m->next <= TP_MERSENNE_WORDS && m->left >= 1 && (uint64_t)m->left <= TP_MERSENNE_WORDS + 1 - m->next;
}
