/* sort_lanes.h: vectors of signed integers as sort_vectors.h wants them, of AVX-512 or AVX2; included once per WORD of
 * WORD_BITS, with NAME.
 *
 * VECTOR is a vector of LANES words. `exchange_lanes` puts the smaller words of two vectors into the first;
 * `swap_lanes` gives lane l ^ by at lane l; `keep` gives the smaller of two words in lanes without the bit and the
 * larger in lanes with it; `interleave` makes of two vectors one of their lower and one of their upper halves, word by
 * word; `part_vector` writes the words below the bound from `low` on and the others before `end`, may write whole
 * vectors at both places, and returns how many words are below. */

#define LANES_JOIN(name, bits) name##_epi##bits
#define LANES_FORM(name, bits) LANES_JOIN(name, bits)
#define FORM(name) LANES_FORM(name, WORD_BITS)

#if defined(__AVX512F__) && defined(__AVX512DQ__)

#define VECTOR __m512i
#define LANES (512 / WORD_BITS)
#if WORD_BITS == 32
#define LANE_MASK __mmask16
#define LANE_NUMBERS _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#define IS_BELOW(a, b) _mm512_cmplt_epi32_mask(a, b)
#else
#define LANE_MASK __mmask8
#define LANE_NUMBERS _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7)
#define IS_BELOW(a, b) _mm512_cmplt_epi64_mask(a, b)
#endif

TP_INLINE VECTOR NAME(load)(const WORD *p) { return _mm512_loadu_si512(p); }
TP_INLINE void NAME(store)(WORD *p, VECTOR v) { _mm512_storeu_si512(p, v); }
TP_INLINE VECTOR NAME(fill)(WORD word) { return FORM(_mm512_set1)(word); }

TP_INLINE void NAME(exchange_lanes)(VECTOR *low, VECTOR *high) {
    VECTOR smaller = FORM(_mm512_min)(*low, *high);
    *high = FORM(_mm512_max)(*low, *high);
    *low = smaller;
}

TP_INLINE VECTOR NAME(swap_lanes)(VECTOR v, int by) {
    return FORM(_mm512_permutexvar)(_mm512_xor_si512(LANE_NUMBERS, FORM(_mm512_set1)(by)), v);
}

TP_INLINE VECTOR NAME(keep)(VECTOR own, VECTOR other, int bit) {
    LANE_MASK upper = 0;
    for (int l = 0; l < LANES; l++) upper |= (LANE_MASK)((l & bit ? 1 : 0) << l);
    return FORM(_mm512_mask_max)(FORM(_mm512_min)(own, other), upper, own, other);
}

TP_INLINE void NAME(interleave)(VECTOR *low, VECTOR *high) {
    const VECTOR half = FORM(_mm512_srli)(LANE_NUMBERS, 1);
    const VECTOR second =
        FORM(_mm512_mullo)(_mm512_and_si512(LANE_NUMBERS, FORM(_mm512_set1)(1)), FORM(_mm512_set1)(LANES));
    const VECTOR lower = _mm512_or_si512(half, second);
    const VECTOR upper = FORM(_mm512_add)(lower, FORM(_mm512_set1)(LANES / 2));
    const VECTOR a = *low, b = *high;
    *low = FORM(_mm512_permutex2var)(a, lower, b);
    *high = FORM(_mm512_permutex2var)(a, upper, b);
}

TP_INLINE int NAME(part_vector)(WORD *low, WORD *end, VECTOR v, VECTOR bound) {
    LANE_MASK below = IS_BELOW(v, bound);
    int count = __builtin_popcount(below);
    _mm512_storeu_si512(low, FORM(_mm512_maskz_compress)(below, v));
    VECTOR above = FORM(_mm512_maskz_compress)((LANE_MASK)~below, v);
    FORM(_mm512_mask_storeu)(end - LANES + count, (LANE_MASK)((LANE_MASK)-1 >> count), above);
    return count;
}

#undef LANE_MASK
#undef LANE_NUMBERS
#undef IS_BELOW

#else

#define VECTOR __m256i
#define LANES (256 / WORD_BITS)

TP_INLINE VECTOR NAME(load)(const WORD *p) { return _mm256_loadu_si256((const __m256i *)p); }
TP_INLINE void NAME(store)(WORD *p, VECTOR v) { _mm256_storeu_si256((__m256i *)p, v); }

#if WORD_BITS == 32
TP_INLINE VECTOR NAME(fill)(WORD word) { return _mm256_set1_epi32(word); }

TP_INLINE void NAME(exchange_lanes)(VECTOR *low, VECTOR *high) {
    VECTOR smaller = _mm256_min_epi32(*low, *high);
    *high = _mm256_max_epi32(*low, *high);
    *low = smaller;
}

TP_INLINE VECTOR NAME(swap_lanes)(VECTOR v, int by) {
    if (by == 1) return _mm256_shuffle_epi32(v, 0xb1);
    if (by == 2) return _mm256_shuffle_epi32(v, 0x4e);
    if (by == 3) return _mm256_shuffle_epi32(v, 0x1b);
    return _mm256_permute4x64_epi64(_mm256_shuffle_epi32(v, 0x1b), 0x4e);
}

TP_INLINE VECTOR NAME(keep)(VECTOR own, VECTOR other, int bit) {
    const VECTOR smaller = _mm256_min_epi32(own, other), larger = _mm256_max_epi32(own, other);
    if (bit == 1) return _mm256_blend_epi32(smaller, larger, 0xaa);
    if (bit == 2) return _mm256_blend_epi32(smaller, larger, 0xcc);
    return _mm256_blend_epi32(smaller, larger, 0xf0);
}

#define UNPACK_LOW _mm256_unpacklo_epi32
#define UNPACK_HIGH _mm256_unpackhi_epi32
#define IS_BELOW(a, b) _mm256_cmpgt_epi32(b, a)
#else
TP_INLINE VECTOR NAME(fill)(WORD word) { return _mm256_set1_epi64x(word); }

TP_INLINE void NAME(exchange_lanes)(VECTOR *low, VECTOR *high) {
    const VECTOR a = *low, b = *high, turned = _mm256_cmpgt_epi64(a, b);
    *low = _mm256_blendv_epi8(a, b, turned);
    *high = _mm256_blendv_epi8(b, a, turned);
}

TP_INLINE VECTOR NAME(swap_lanes)(VECTOR v, int by) {
    if (by == 1) return _mm256_shuffle_epi32(v, 0x4e);
    return _mm256_permute4x64_epi64(v, 0x1b);
}

TP_INLINE VECTOR NAME(keep)(VECTOR own, VECTOR other, int bit) {
    const VECTOR upper = bit == 1 ? _mm256_setr_epi64x(0, -1, 0, -1) : _mm256_setr_epi64x(0, 0, -1, -1);
    return _mm256_blendv_epi8(own, other, _mm256_xor_si256(_mm256_cmpgt_epi64(own, other), upper));
}

#define UNPACK_LOW _mm256_unpacklo_epi64
#define UNPACK_HIGH _mm256_unpackhi_epi64
#define IS_BELOW(a, b) _mm256_cmpgt_epi64(b, a)
#endif

TP_INLINE void NAME(interleave)(VECTOR *low, VECTOR *high) {
    const VECTOR first = UNPACK_LOW(*low, *high), second = UNPACK_HIGH(*low, *high);
    *low = _mm256_permute2x128_si256(first, second, 0x20);
    *high = _mm256_permute2x128_si256(first, second, 0x31);
}

TP_INLINE int NAME(part_vector)(WORD *low, WORD *end, VECTOR v, VECTOR bound) {
    const unsigned below = (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(IS_BELOW(v, bound)));
    const __m256i order = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)&lane_orders[below]));
    v = _mm256_permutevar8x32_epi32(v, order);
    NAME(store)(low, v);
    NAME(store)(end - LANES, v);
    return __builtin_popcount(below) / (WORD_BITS / 32);
}

#undef UNPACK_LOW
#undef UNPACK_HIGH
#undef IS_BELOW

#endif

#undef FORM
#undef LANES_FORM
#undef LANES_JOIN
