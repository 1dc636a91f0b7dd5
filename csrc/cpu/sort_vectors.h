/* sort_vectors.h: lines of signed integers in order by vectors; included once per WORD after sort_lanes.h, with NAME
 * and MOST, the largest word.
 *
 * Quicksort in place, whose parts are packed by permutation of vectors, and whose ends go through a bitonic network in
 * registers (Blacher, Giesen and Kuehne, Fast and Robust Vectorized In-Place Sorting of Primitive Types, SEA 2021). A
 * word of a block of `rows` vectors is at place lane * rows + row in the order of the network, so that exchanges within
 * a lane, which are most, need no permutation. Equal words are not told apart. A loop's bound is a variable, since gcc
 * warns where a sanitizer's check of a division comes between a condition and what is said of its loop. */

#define ROWS 16                /* vectors of the largest block */
#define LARGEST (ROWS * LANES) /* its words */

TP_INLINE void NAME(exchange_within_lanes)(VECTOR *v, int rows, int from) {
#pragma GCC unroll 8
    for (int d = from; d > 0; d /= 2)
#pragma GCC unroll 16
        for (int r = 0; r < rows; r++)
            if (!(r & d)) NAME(exchange_lanes)(v + r, v + r + d);
}

TP_INLINE void NAME(sort_within_lanes)(VECTOR *v, int rows) {
#pragma GCC unroll 8
    for (int k = 2; k <= rows; k *= 2) {
#pragma GCC unroll 16
        for (int at = 0; at < rows; at += k)
#pragma GCC unroll 16
            for (int i = 0, half = k / 2; i < half; i++) NAME(exchange_lanes)(v + at + i, v + at + k - 1 - i);
        NAME(exchange_within_lanes)(v, rows, k / 4);
    }
}

/* Runs of `lanes` / 2 sorted lanes become runs of twice as many: each word meets the one at the mirrored place. */
TP_INLINE void NAME(merge_lanes)(VECTOR *v, int rows, int lanes) {
#pragma GCC unroll 16
    for (int r = 0, half = rows / 2; r < half; r++) {
        VECTOR a = v[r], b = v[rows - 1 - r];
        v[r] = NAME(keep)(a, NAME(swap_lanes)(b, lanes - 1), lanes / 2);
        v[rows - 1 - r] = NAME(keep)(b, NAME(swap_lanes)(a, lanes - 1), lanes / 2);
    }
#pragma GCC unroll 8
    for (int d = lanes / 4; d > 0; d /= 2)
#pragma GCC unroll 16
        for (int r = 0; r < rows; r++) v[r] = NAME(keep)(v[r], NAME(swap_lanes)(v[r], d), d);
    NAME(exchange_within_lanes)(v, rows, rows / 2);
}

/* Vectors from the network's order into that of memory. A step takes two vectors whose rows differ in a bit and
 * interleaves them: the row's bit becomes the lowest of the place, and the place's highest bit tells the two apart. */
TP_INLINE void NAME(to_memory_order)(VECTOR *v, int rows) {
#pragma GCC unroll 8
    for (int d = (rows < LANES ? rows : LANES) / 2; d > 0; d /= 2)
#pragma GCC unroll 16
        for (int r = 0; r < rows; r++)
            if (!(r & d)) NAME(interleave)(v + r, v + r + d);
}

/* rows * LANES words. */
TP_INLINE void NAME(sort_block_of)(WORD *words, int rows) {
    VECTOR v[ROWS];
    const int per_lane = rows > LANES ? rows / LANES : 1; /* vectors that hold the words of a lane */
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++) v[r] = NAME(load)(words + LANES * r);
    NAME(sort_within_lanes)(v, rows);
#pragma GCC unroll 8
    for (int lanes = 2; lanes <= LANES; lanes *= 2) NAME(merge_lanes)(v, rows, lanes);
    NAME(to_memory_order)(v, rows);
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++) NAME(store)(words + LANES * ((r % LANES) * per_lane + r / LANES), v[r]);
}

static void NAME(sort_whole_block)(WORD *words, int rows) {
    if (rows == ROWS / 4) NAME(sort_block_of)(words, ROWS / 4);
    else if (rows == ROWS / 2) NAME(sort_block_of)(words, ROWS / 2);
    else NAME(sort_block_of)(words, ROWS);
}

/* Up to LARGEST words. The words from there to `end` are no smaller, so that a block may take some of them along; where
 * they are too few, the largest word stands in for them. */
static void NAME(sort_block)(WORD *line, int64_t n, const WORD *end) {
    const int rows = n <= ROWS / 4 * LANES ? ROWS / 4 : n <= ROWS / 2 * LANES ? ROWS / 2 : ROWS;
    if (end - line >= rows * LANES) {
        NAME(sort_whole_block)(line, rows);
        return;
    }
    WORD words[LARGEST];
    for (int64_t i = 0; i < LARGEST; i += LANES) NAME(store)(words + i, NAME(fill)(MOST));
    memcpy(words, line, (size_t)n * sizeof *line);
    NAME(sort_whole_block)(words, rows);
    memcpy(line, words, (size_t)n * sizeof *line);
}

/* A line while it is parted in place: [low, unread) and [read, high) are free, what lies between has not been read. */
typedef struct {
    WORD *low, *unread, *read, *high;
} NAME(parting);

/* Words below the bound to the lower end of what is free, the others to the upper end; either has room for a vector, or
 * one vector is all that both have. */
TP_INLINE void NAME(put_vector)(NAME(parting) * p, VECTOR v, VECTOR bound) {
    const int count = NAME(part_vector)(p->low, p->high, v, bound);
    p->low += count;
    p->high -= LANES - count;
}

#define AT_ONCE (ROWS / 2) /* vectors that are read from one end */

/* Reads a batch from the end that has less room, which then has enough: a batch from each end is held back. */
TP_INLINE const WORD *NAME(read_batch)(NAME(parting) * p, int batch) {
    const bool upper = p->unread - p->low > p->high - p->read; /* no branch: it could not be predicted */
    const WORD *from = upper ? p->read - batch * LANES : p->unread;
    p->unread += upper ? 0 : batch * LANES;
    p->read -= upper ? batch * LANES : 0;
    return from;
}

/* Parts whole vectors, more than two batches; how many words are below the pivot, or -1. */
static int64_t NAME(part_vectors)(WORD *line, int64_t n, WORD pivot) {
    const int64_t batch = AT_ONCE * LANES;
    const VECTOR bound = NAME(fill)(pivot);
    NAME(parting) p = {line, line + batch, line + n - batch, line + n};
    VECTOR held[2 * AT_ONCE];
    for (int i = 0; i < AT_ONCE; i++) {
        held[i] = NAME(load)(line + i * LANES);
        held[AT_ONCE + i] = NAME(load)(p.read + i * LANES);
    }
    for (int64_t looked = p.read - p.unread; p.read - p.unread >= batch;) {
        const WORD *from = NAME(read_batch)(&p, AT_ONCE);
        VECTOR v[AT_ONCE];
#pragma GCC unroll 8
        for (int i = 0; i < AT_ONCE; i++) v[i] = NAME(load)(from + i * LANES);
#pragma GCC unroll 8
        for (int i = 0; i < AT_ONCE; i++) NAME(put_vector)(&p, v[i], bound);
        if (looked - (p.read - p.unread) < PER_LOOK) continue;
        looked = p.read - p.unread;
        if (tp_host_look() < 0) return -1;
    }
    while (p.read > p.unread) {
        const WORD *from = NAME(read_batch)(&p, 1);
        NAME(put_vector)(&p, NAME(load)(from), bound);
    }
    for (int i = 0; i < 2 * AT_ONCE; i++) NAME(put_vector)(&p, held[i], bound);
    return p.low - line;
}

/* Words below the pivot to the front; how many there are, or -1. The words that fill no vector are put last. */
static int64_t NAME(part)(WORD *line, int64_t n, WORD pivot) {
    const int64_t whole = n / LANES * LANES;
    int64_t low = NAME(part_vectors)(line, whole, pivot);
    for (int64_t i = whole; low >= 0 && i < n; i++) {
        const WORD word = line[i], first = line[low];
        const bool below = word < pivot;
        line[i] = below ? first : word;
        line[low] = below ? word : first;
        low += below;
    }
    return low;
}

/* The middle one of some words of a long line. */
static WORD NAME(pivot_of)(const WORD *line, int64_t n) {
    WORD some[64];
    const int count = n > 4096 ? 64 : 16;
    const int64_t step = n / count;
    for (int i = 0; i < count; i++) some[i] = line[i * step + step / 2];
    NAME(sort_block)(some, count, some + count);
    return some[count / 2];
}

/* `depth`: how often a line is parted before radix takes what is left, whose time is bounded. The words from the line's
 * end to `end` are no smaller than the line's. */
static int NAME(sort_by_parts)(WORD *line, WORD *spare, int64_t n, const WORD *end, int low_bit, int depth) {
    while (n > LARGEST) {
        if (depth-- == 0) return NAME(sort_by_radix)(line, spare, n, low_bit);
        WORD pivot = NAME(pivot_of)(line, n);
        int64_t low = NAME(part)(line, n, pivot);
        if (low == 0) { /* the pivot is the smallest: it and its equals are in place */
            if (pivot == MOST) return 0;
            low = NAME(part)(line, n, pivot + 1);
        } else if (low > 0 && low < n - low) {
            if (NAME(sort_by_parts)(line, spare, low, end, low_bit, depth) < 0) return -1;
        } else if (low > 0) {
            if (NAME(sort_by_parts)(line + low, spare, n - low, end, low_bit, depth) < 0) return -1;
            n = low;
            continue;
        }
        if (low < 0) return -1;
        line += low;
        n -= low;
    }
    if (n > 1) NAME(sort_block)(line, n, end);
    return 0;
}

#undef LARGEST
#undef AT_ONCE
#undef VECTOR
#undef LANES
#undef ROWS
