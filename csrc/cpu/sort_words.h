/* sort_words.h: lines of signed integers in order; included once per WORD of WORD_BITS, with UNSIGNED and NAME.
 *
 * Short lines that are many lie side by side, so that a vector holds words of as many lines, and go through Batcher's
 * merge exchange (Knuth, The Art of Computer Programming 3, 5.2.2, algorithm M), whose exchanges do not depend on the
 * words. Other lines are parted by vectors where there are those of AVX2 (sort_vectors.h); elsewhere a short line is
 * sorted by rank, the rest by radix. Equal words are the same, so none of this has to be stable. */

#define SIDE_BY_SIDE ((int64_t)(TP_SORT_ROW / sizeof(WORD)))

static inline void NAME(exchange)(WORD *restrict low, WORD *restrict high, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        WORD a = low[i], b = high[i];
        low[i] = a < b ? a : b;
        high[i] = a < b ? b : a;
    }
}

/* n rows of a word of each line. */
static void NAME(exchange_rows)(WORD *rows, int64_t n) {
    int64_t top = 1;
    while (2 * top < n) top *= 2;
    for (int64_t p = top; p > 0; p /= 2) {
        int64_t first = 0, distance = p;
        for (int64_t q = top;; q /= 2) {
            for (int64_t at = first; at < n - distance; at += 2 * p) {
                int64_t count = n - distance - at < p ? n - distance - at : p;
                WORD *low = rows + at * SIDE_BY_SIDE;
                NAME(exchange)(low, low + distance * SIDE_BY_SIDE, count * SIDE_BY_SIDE);
            }
            if (q == p) break;
            distance = q - p;
            first = p;
        }
    }
}

/* Words from lines to rows, or back, in pieces that stay in the cache: lines lie far apart. */
#define PIECE 16
static void NAME(to_rows)(WORD *restrict rows, const WORD *restrict lines, int64_t n, int64_t count) {
    for (int64_t at = 0; at < n; at += PIECE)
        for (int64_t line = 0, end = n - at < PIECE ? n : at + PIECE; line < SIDE_BY_SIDE; line++)
            for (int64_t i = at; i < end; i++) rows[i * SIDE_BY_SIDE + line] = lines[(line < count ? line : 0) * n + i];
}
static void NAME(to_lines)(WORD *restrict lines, const WORD *restrict rows, int64_t n, int64_t count) {
    for (int64_t at = 0; at < n; at += PIECE)
        for (int64_t line = 0, end = n - at < PIECE ? n : at + PIECE; line < count; line++)
            for (int64_t i = at; i < end; i++) lines[line * n + i] = rows[i * SIDE_BY_SIDE + line];
}

static void NAME(sort_side_by_side)(WORD *lines, WORD *rows, int64_t n, int64_t count) {
    NAME(to_rows)(rows, lines, n, count);
    NAME(exchange_rows)(rows, n);
    NAME(to_lines)(lines, rows, n, count);
}

#define DIGIT(word) (((UNSIGNED)(word) ^ (UNSIGNED)1 << (WORD_BITS - 1)) >> shift & (digits - 1))
static int NAME(spread)(WORD *restrict to, const WORD *restrict from, int64_t n, int shift, int64_t digits,
                        int64_t *place) {
    for (int64_t begin = 0; begin < n; begin += PER_LOOK) {
        int64_t end = n - begin < PER_LOOK ? n : begin + PER_LOOK;
        for (int64_t i = begin; i < end; i++) to[place[DIGIT(from[i])]++] = from[i];
        if (end < n && tp_host_look() < 0) return -1;
    }
    return 0;
}

/* A digit at a time, from the lowest of those that the words differ in. */
static int NAME(sort_by_radix)(WORD *line, WORD *spare, int64_t n, int low) {
    WORD *from = line, *to = spare;
    UNSIGNED differ = 0;
    int digit_bits = n < MANY ? 8 : 11;
    int64_t place[2048], digits = (int64_t)1 << digit_bits;
    for (int64_t i = 0; i < n; i++) differ |= (UNSIGNED)(line[i] ^ line[0]);
    for (int shift = low; shift < WORD_BITS; shift += digit_bits) {
        int64_t sum = 0;
        if (!(differ >> shift & (UNSIGNED)(digits - 1))) continue;
        memset(place, 0, (size_t)digits * sizeof *place);
        for (int64_t i = 0; i < n; i++) place[DIGIT(from[i])]++;
        for (int64_t d = 0; d < digits; d++) {
            int64_t here = place[d];
            place[d] = sum;
            sum += here;
        }
        if (NAME(spread)(to, from, n, shift, digits, place) < 0) return -1;
        WORD *other = from;
        from = to;
        to = other;
    }
    if (from != line) memcpy(line, from, (size_t)n * sizeof *line);
    return 0;
}

#ifdef BY_VECTORS
#include "cpu/sort_lanes.h"
#include "cpu/sort_vectors.h"
static int NAME(sort_line)(WORD *line, WORD *spare, int64_t n, int low) {
    return NAME(sort_by_parts)(line, spare, n, line + n, low, 2 * (64 - __builtin_clzll((uint64_t)n)));
}
#else
static void NAME(sort_by_rank)(WORD *line, WORD *spare, int64_t n) {
    memcpy(spare, line, (size_t)n * sizeof *line);
    for (int64_t i = 0; i < n; i++) {
        int64_t before = 0;
        WORD word = spare[i];
        for (int64_t j = 0; j < i; j++) before += spare[j] <= word;
        for (int64_t j = i + 1; j < n; j++) before += spare[j] < word;
        line[before] = word;
    }
}

static int NAME(sort_line)(WORD *line, WORD *spare, int64_t n, int low) {
    if (n > RANKED) return NAME(sort_by_radix)(line, spare, n, low);
    NAME(sort_by_rank)(line, spare, n);
    return 0;
}
#endif

static int NAME(sort_lines)(WORD *lines, WORD *spare, int64_t n, int64_t count, int low) {
    for (int64_t at = 0; n > 1 && at < count;) {
        WORD *line = lines + at * n;
        if (n <= SHORT && count - at >= SIDE_BY_SIDE / 4) {
            int64_t together = count - at < SIDE_BY_SIDE ? count - at : SIDE_BY_SIDE;
            NAME(sort_side_by_side)(line, spare, n, together);
            at += together;
            continue;
        }
        if (NAME(sort_line)(line, spare, n, low) < 0) return -1;
        at++;
    }
    return 0;
}

#undef SIDE_BY_SIDE
#undef DIGIT
