/* sort_vectors.h: lines of signed integers in order by vectors of AVX-512; included once per WORD, with NAME, MOST (the
 * largest word) and the forms of intrinsics of its width.
 *
 * Quicksort whose parts are packed by compression of vectors, and whose ends go through a bitonic network in registers
 * (Blacher, Giesen and Kuehne, Fast and Robust Vectorized In-Place Sorting of Primitive Types, SEA 2021). A word of a
 * block of `rows` vectors is at place lane * rows + row in the order of the network, so that exchanges within a lane,
 * which are most, need no permutation. Equal words are not told apart. */

#define LANES (64 / (int)sizeof(WORD))
#define LARGEST (16 * LANES) /* words of the largest block */

TP_INLINE void NAME(exchange_vectors)(__m512i *low, __m512i *high) {
    __m512i smaller = FORM(_mm512_min)(*low, *high);
    *high = FORM(_mm512_max)(*low, *high);
    *low = smaller;
}

/* Lane l is lane l ^ by of v. */
TP_INLINE __m512i NAME(swap_lanes)(__m512i v, int by) {
    return FORM(_mm512_permutexvar)(_mm512_xor_si512(LANE_NUMBERS, FORM(_mm512_set1)(by)), v);
}

/* The smaller of two words in lanes without the bit, the larger in lanes with it. */
TP_INLINE __m512i NAME(keep)(__m512i own, __m512i other, int bit) {
    LANE_MASK upper = 0;
    for (int l = 0; l < LANES; l++) upper |= (LANE_MASK)((l & bit ? 1 : 0) << l);
    return FORM(_mm512_mask_max)(FORM(_mm512_min)(own, other), upper, own, other);
}

TP_INLINE void NAME(exchange_within_lanes)(__m512i *v, int rows, int from) {
#pragma GCC unroll 8
    for (int d = from; d > 0; d /= 2)
#pragma GCC unroll 16
        for (int r = 0; r < rows; r++)
            if (!(r & d)) NAME(exchange_vectors)(v + r, v + r + d);
}

TP_INLINE void NAME(sort_lanes)(__m512i *v, int rows) {
#pragma GCC unroll 8
    for (int k = 2; k <= rows; k *= 2) {
#pragma GCC unroll 16
        for (int at = 0; at < rows; at += k)
#pragma GCC unroll 16
            for (int i = 0; i < k / 2; i++) NAME(exchange_vectors)(v + at + i, v + at + k - 1 - i);
        NAME(exchange_within_lanes)(v, rows, k / 4);
    }
}

/* Runs of `lanes` / 2 sorted lanes become runs of twice as many: each word meets the one at the mirrored place. */
TP_INLINE void NAME(merge_lanes)(__m512i *v, int rows, int lanes) {
#pragma GCC unroll 16
    for (int r = 0; r < rows / 2; r++) {
        __m512i a = v[r], b = v[rows - 1 - r];
        v[r] = NAME(keep)(a, NAME(swap_lanes)(b, lanes - 1), lanes / 2);
        v[rows - 1 - r] = NAME(keep)(b, NAME(swap_lanes)(a, lanes - 1), lanes / 2);
    }
#pragma GCC unroll 8
    for (int d = lanes / 4; d > 0; d /= 2)
#pragma GCC unroll 16
        for (int r = 0; r < rows; r++) v[r] = NAME(keep)(v[r], NAME(swap_lanes)(v[r], d), d);
    NAME(exchange_within_lanes)(v, rows, rows / 2);
}

TP_INLINE LANE_MASK NAME(first_lanes)(int64_t n) {
    return n >= LANES ? (LANE_MASK)-1 : n <= 0 ? 0 : (LANE_MASK)((1u << n) - 1);
}

/* Up to rows * LANES words, from the network's order into that of memory. */
TP_INLINE void NAME(sort_block_of)(WORD *line, int64_t n, int rows) {
    __m512i v[16];
    WORD sorted[LARGEST];
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++)
        v[r] = FORM(_mm512_mask_loadu)(FORM(_mm512_set1)(MOST), NAME(first_lanes)(n - LANES * r), line + LANES * r);
    NAME(sort_lanes)(v, rows);
#pragma GCC unroll 8
    for (int lanes = 2; lanes <= LANES; lanes *= 2) NAME(merge_lanes)(v, rows, lanes);
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++) _mm512_storeu_si512(sorted + LANES * r, v[r]);
    for (int64_t at = 0; at < n; at += LANES) {
        WORD place[LANES];
        for (int l = 0; l < LANES; l++) place[l] = (WORD)((at + l) % rows * LANES + (at + l) / rows);
        __m512i words = GATHER(_mm512_loadu_si512(place), sorted);
        FORM(_mm512_mask_storeu)(line + at, NAME(first_lanes)(n - at), words);
    }
}

static void NAME(sort_block)(WORD *line, int64_t n) {
    if (n <= 4 * LANES) NAME(sort_block_of)(line, n, 4);
    else if (n <= 8 * LANES) NAME(sort_block_of)(line, n, 8);
    else NAME(sort_block_of)(line, n, 16);
}

/* Words below the pivot to the front, how many there are, or -1. Those that wait in `spare` follow. A vector that is
 * stored ends no later than the one that was read. */
static int64_t NAME(part)(WORD *restrict line, WORD *restrict spare, int64_t n, WORD pivot) {
    int64_t low = 0, high = 0;
    const __m512i bound = FORM(_mm512_set1)(pivot);
    for (int64_t begin = 0; begin < n; begin += PER_LOOK) {
        int64_t end = n - begin < PER_LOOK ? n : begin + PER_LOOK, i = begin;
        for (; i + LANES <= end; i += LANES) {
            __m512i v = _mm512_loadu_si512(line + i);
            LANE_MASK below = IS_BELOW(v, bound);
            int count = __builtin_popcount(below);
            _mm512_storeu_si512(line + low, FORM(_mm512_maskz_compress)(below, v));
            _mm512_storeu_si512(spare + high, FORM(_mm512_maskz_compress)((LANE_MASK)~below, v));
            low += count;
            high += LANES - count;
        }
        for (; i < end; i++) {
            WORD word = line[i];
            if (word < pivot) line[low++] = word;
            else spare[high++] = word;
        }
        if (end < n && tp_host_look() < 0) return -1;
    }
    memcpy(line + low, spare, (size_t)high * sizeof *line);
    return low;
}

/* The middle one of some words of a long line. */
static WORD NAME(pivot_of)(const WORD *line, int64_t n) {
    WORD some[64];
    int count = n > 4096 ? 64 : 16;
    int64_t step = n / count;
    for (int i = 0; i < count; i++) some[i] = line[i * step + step / 2];
    NAME(sort_block)(some, count);
    return some[count / 2];
}

/* `depth`: how often a line is parted before radix takes what is left, whose time is bounded. */
static int NAME(sort_by_parts)(WORD *line, WORD *spare, int64_t n, int low_bit, int depth) {
    while (n > LARGEST) {
        if (depth-- == 0) return NAME(sort_by_radix)(line, spare, n, low_bit);
        WORD pivot = NAME(pivot_of)(line, n);
        int64_t low = NAME(part)(line, spare, n, pivot);
        if (low == 0) { /* the pivot is the smallest: it and its equals are in place */
            if (pivot == MOST) return 0;
            low = NAME(part)(line, spare, n, pivot + 1);
        } else if (low > 0 && low < n - low) {
            if (NAME(sort_by_parts)(line, spare, low, low_bit, depth) < 0) return -1;
        } else if (low > 0) {
            if (NAME(sort_by_parts)(line + low, spare, n - low, low_bit, depth) < 0) return -1;
            n = low;
            continue;
        }
        if (low < 0) return -1;
        line += low;
        n -= low;
    }
    if (n > 1) NAME(sort_block)(line, n);
    return 0;
}

#undef LANES
#undef LARGEST
