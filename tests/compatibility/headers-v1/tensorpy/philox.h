/* philox.h: random words by position, and numbers made from them. Valid C and valid OpenCL C.
 *
 * Note [Words of an element]
 * A draw is a stream of words: word w is number w % 4 of the block with index w / 4. Element i of a draw of float (and
 * of what float serves: float16, bfloat16, probabilities) takes word i; of double or of integers, words 2i and 2i + 1.
 * Normal numbers come in pairs: elements 2j and 2j + 1 are made together from the words of both. A complex number is
 * two floats.
 *
 * Philox 4x32-10 of J. Salmon, M. Moraes, R. Dror and D. Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC'11).
 * The generator's seed is the key; the counter is (block index, generator offset). So element i of a draw has the
 * same words on every device and for every number of threads, and two draws never share a counter. */
#ifndef TP_PHILOX_H
#define TP_PHILOX_H

#ifdef __OPENCL_VERSION__
#define TP_U32 uint
#define TP_U64 ulong
#define TP_SHARED inline static
#define TP_PHILOX_LOGF(x) log(x)
#define TP_PHILOX_SQRTF(x) sqrt(x)
#define TP_PHILOX_COSF(x) cos(x)
#define TP_PHILOX_SINF(x) sin(x)
#ifdef cl_khr_fp64
#define TP_PHILOX_DOUBLE 1
#define TP_PHILOX_LOG(x) log(x)
#define TP_PHILOX_SQRT(x) sqrt(x)
#define TP_PHILOX_COS(x) cos(x)
#define TP_PHILOX_SIN(x) sin(x)
#endif
#else
#include <math.h>
#include <stdint.h>
#define TP_U32 uint32_t
#define TP_U64 uint64_t
#define TP_SHARED static inline __attribute__((always_inline))
#define TP_PHILOX_LOGF(x) logf(x)
#define TP_PHILOX_SQRTF(x) sqrtf(x)
#define TP_PHILOX_COSF(x) cosf(x)
#define TP_PHILOX_SINF(x) sinf(x)
#define TP_PHILOX_DOUBLE 1
#define TP_PHILOX_LOG(x) log(x)
#define TP_PHILOX_SQRT(x) sqrt(x)
#define TP_PHILOX_COS(x) cos(x)
#define TP_PHILOX_SIN(x) sin(x)
#endif

/* The four words of block `index` of the draw at `offset`. */
TP_SHARED void tp_philox(TP_U64 seed, TP_U64 offset, TP_U64 index, TP_U32 out[4]) {
    TP_U32 k0 = (TP_U32)seed, k1 = (TP_U32)(seed >> 32);
    TP_U32 c0 = (TP_U32)index, c1 = (TP_U32)(index >> 32);
    TP_U32 c2 = (TP_U32)offset, c3 = (TP_U32)(offset >> 32);
    for (int r = 0; r < 10; r++) {
        TP_U64 p0 = (TP_U64)0xD2511F53u * c0, p1 = (TP_U64)0xCD9E8D57u * c2;
        c0 = (TP_U32)(p1 >> 32) ^ c1 ^ k0;
        c1 = (TP_U32)p1;
        c2 = (TP_U32)(p0 >> 32) ^ c3 ^ k1;
        c3 = (TP_U32)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* A 64-bit integer from two words. */
TP_SHARED TP_U64 tp_random_u64(TP_U32 low, TP_U32 high) { return (TP_U64)high << 32 | low; }

/* Uniform in [0, 1): multiples of 2**-24, from the upper 24 bits. */
TP_SHARED float tp_uniform_float(TP_U32 word) { return (float)(word >> 8) * (1.0f / 16777216.0f); }

/* Two standard normal numbers from two words (Box and Muller, 1958). 1 - u is in (0, 1], so the logarithm is finite. */
TP_SHARED void tp_normal_float(TP_U32 w0, TP_U32 w1, float out[2]) {
    float radius = TP_PHILOX_SQRTF(-2.0f * TP_PHILOX_LOGF(1.0f - tp_uniform_float(w0)));
    float angle = 6.2831853071795865f * tp_uniform_float(w1);
    out[0] = radius * TP_PHILOX_COSF(angle);
    out[1] = radius * TP_PHILOX_SINF(angle);
}

#ifdef TP_PHILOX_DOUBLE
/* The same in double: 53 bits, from two words each. */
TP_SHARED double tp_uniform_double(TP_U32 low, TP_U32 high) {
    return (double)(tp_random_u64(low, high) >> 11) * (1.0 / 9007199254740992.0);
}

TP_SHARED void tp_normal_double(const TP_U32 words[4], double out[2]) {
    double radius = TP_PHILOX_SQRT(-2.0 * TP_PHILOX_LOG(1.0 - tp_uniform_double(words[0], words[1])));
    double angle = 6.283185307179586476925 * tp_uniform_double(words[2], words[3]);
    out[0] = radius * TP_PHILOX_COS(angle);
    out[1] = radius * TP_PHILOX_SIN(angle);
}
#endif

#endif
