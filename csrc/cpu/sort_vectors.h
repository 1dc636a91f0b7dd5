/* sort_vectors.h: lines of signed integers in order by vectors of AVX-512; included once per WORD, with NAME, MOST (the
 * largest word) and the forms of intrinsics of its width.
 *
 * Quicksort in place, whose parts are packed by compression of vectors, and whose ends go through a bitonic network in
 * registers (Blacher, Giesen and Kuehne, Fast and Robust Vectorized In-Place Sorting of Primitive Types, SEA 2021). A
 * word of a block of `rows` vectors is at place lane * rows + row in the order of the network, so that exchanges within
 * a lane, which are most, need no permutation. Equal words are not told apart. */

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

/* Vectors from the network's order into that of memory. A step takes two vectors whose rows differ in a bit, and makes
 * of them one of their lower and one of their upper halves, word by word: the row's bit becomes the lowest of the
 * place, and the place's highest bit tells the two apart. */
TP_INLINE void NAME(to_memory_order)(__m512i *v, int rows) {
    const __m512i half = FORM(_mm512_srli)(LANE_NUMBERS, 1);
    const __m512i second =
        FORM(_mm512_mullo)(_mm512_and_si512(LANE_NUMBERS, FORM(_mm512_set1)(1)), FORM(_mm512_set1)(LANES));
    const __m512i lower = _mm512_or_si512(half, second);
    const __m512i upper = FORM(_mm512_add)(lower, FORM(_mm512_set1)(LANES / 2));
#pragma GCC unroll 8
    for (int d = (rows < LANES ? rows : LANES) / 2; d > 0; d /= 2)
#pragma GCC unroll 16
        for (int r = 0; r < rows; r++) {
            if (r & d) continue;
            const __m512i a = v[r], b = v[r + d];
            v[r] = FORM(_mm512_permutex2var)(a, lower, b);
            v[r + d] = FORM(_mm512_permutex2var)(a, upper, b);
        }
}

/* Up to rows * LANES words. */
TP_INLINE void NAME(sort_block_of)(WORD *line, int64_t n, int rows) {
    __m512i v[16];
    const int per_lane = rows > LANES ? rows / LANES : 1; /* vectors that hold the words of a lane */
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++)
        v[r] = FORM(_mm512_mask_loadu)(FORM(_mm512_set1)(MOST), NAME(first_lanes)(n - LANES * r), line + LANES * r);
    NAME(sort_lanes)(v, rows);
#pragma GCC unroll 8
    for (int lanes = 2; lanes <= LANES; lanes *= 2) NAME(merge_lanes)(v, rows, lanes);
    NAME(to_memory_order)(v, rows);
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++) {
        const int64_t at = LANES * ((r % LANES) * per_lane + r / LANES);
        FORM(_mm512_mask_storeu)(line + at, NAME(first_lanes)(n - at), v[r]);
    }
}

static void NAME(sort_block)(WORD *line, int64_t n) {
    if (n <= 4 * LANES) NAME(sort_block_of)(line, n, 4);
    else if (n <= 8 * LANES) NAME(sort_block_of)(line, n, 8);
    else NAME(sort_block_of)(line, n, 16);
}

/* A line while it is parted in place: [low, unread) and [read, high) are free, what lies between has not been read. */
typedef struct {
    WORD *low, *unread, *read, *high;
} NAME(parting);

/* Words below the bound to the lower end of what is free, the others to the upper end. A whole vector is stored at
 * the lower, which has to have room for one. */
TP_INLINE void NAME(put_vector)(NAME(parting) * p, __m512i v, __m512i bound) {
    LANE_MASK below = IS_BELOW(v, bound);
    int count = __builtin_popcount(below);
    _mm512_storeu_si512(p->low, FORM(_mm512_maskz_compress)(below, v));
    p->low += count;
    p->high -= LANES - count;
    __m512i above = FORM(_mm512_maskz_compress)((LANE_MASK)~below, v);
    FORM(_mm512_mask_storeu)(p->high, (LANE_MASK)((LANE_MASK)-1 >> count), above);
}

/* The same of the first n words, to the word. */
TP_INLINE void NAME(put_words)(NAME(parting) * p, __m512i v, int64_t n, __m512i bound) {
    const LANE_MASK all = NAME(first_lanes)(n), below = IS_BELOW(v, bound) & all, rest = (LANE_MASK)~below & all;
    int count = __builtin_popcount(below);
    p->high -= n - count;
    FORM(_mm512_mask_storeu)(p->low, NAME(first_lanes)(count), FORM(_mm512_maskz_compress)(below, v));
    FORM(_mm512_mask_storeu)(p->high, NAME(first_lanes)(n - count), FORM(_mm512_maskz_compress)(rest, v));
    p->low += count;
}

#define AT_ONCE 8 /* vectors that are read from one end */

/* Reads a batch from the end that has less room, which then has enough: a batch from each end is held back. */
TP_INLINE const WORD *NAME(read_batch)(NAME(parting) * p, int batch) {
    const bool upper = p->unread - p->low > p->high - p->read; /* no branch: it could not be predicted */
    const WORD *from = upper ? p->read - batch * LANES : p->unread;
    p->unread += upper ? 0 : batch * LANES;
    p->read -= upper ? batch * LANES : 0;
    return from;
}

/* Words below the pivot to the front; how many there are, or -1. n is more than two batches. */
static int64_t NAME(part)(WORD *line, int64_t n, WORD pivot) {
    const int64_t batch = AT_ONCE * LANES;
    const __m512i bound = FORM(_mm512_set1)(pivot);
    NAME(parting) p = {line, line + batch, line + n - batch, line + n};
    __m512i held[2 * AT_ONCE];
    for (int i = 0; i < AT_ONCE; i++) {
        held[i] = _mm512_loadu_si512(line + i * LANES);
        held[AT_ONCE + i] = _mm512_loadu_si512(p.read + i * LANES);
    }
    for (int64_t looked = p.read - p.unread; p.read - p.unread >= batch;) {
        const WORD *from = NAME(read_batch)(&p, AT_ONCE);
        __m512i v[AT_ONCE];
#pragma GCC unroll 8
        for (int i = 0; i < AT_ONCE; i++) v[i] = _mm512_loadu_si512(from + i * LANES);
#pragma GCC unroll 8
        for (int i = 0; i < AT_ONCE; i++) NAME(put_vector)(&p, v[i], bound);
        if (looked - (p.read - p.unread) < PER_LOOK) continue;
        looked = p.read - p.unread;
        if (tp_host_look() < 0) return -1;
    }
    while (p.read - p.unread >= LANES) {
        const WORD *from = NAME(read_batch)(&p, 1);
        NAME(put_vector)(&p, _mm512_loadu_si512(from), bound);
    }
    const int64_t rest = p.read - p.unread;
    __m512i last = FORM(_mm512_maskz_loadu)(NAME(first_lanes)(rest), p.unread);
    NAME(put_words)(&p, last, rest, bound);
    for (int i = 0; i < 2 * AT_ONCE; i++) NAME(put_words)(&p, held[i], LANES, bound);
    return p.low - line;
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
        int64_t low = NAME(part)(line, n, pivot);
        if (low == 0) { /* the pivot is the smallest: it and its equals are in place */
            if (pivot == MOST) return 0;
            low = NAME(part)(line, n, pivot + 1);
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
#undef AT_ONCE
