/* sort.cl: lines of elements in order: sorts, selections, and groups of equal items.
 *
 * Defined in front: X_* (element.h) of the elements; KEY (uint or ulong) and KEY_BITS; KEY_FLOAT with AS_KEY, or
 * KEY_WHOLE, the unsigned type of the elements, with KEY_SIGN, its bit of the sign (0: none); INDEX, which counts the
 * elements of a line; GROUP; CHUNK, how many elements a work-item merges; FEW, how many it keeps in order; PAIRS where
 * lines are keys and places already.
 *
 * The order of elements is that of keys, unsigned: NaN is greater than all and has the key ~0, -0 equals 0. `flip`, all
 * ones, turns it round. Places go along, and of equal keys the lower place comes first. With a GROUP of 1 a work-item
 * does a whole block or line, by radix; else a work-group does, in local memory. */
static inline KEY key_of(X_S x) {
#ifdef KEY_FLOAT
    KEY bits = AS_KEY(x == 0 ? (X_S)0 : x), sign = (KEY)1 << (KEY_BITS - 1);
    return x == x ? bits ^ (bits & sign ? ~(KEY)0 : sign) : ~(KEY)0;
#else
    return (KEY)(KEY_WHOLE)X_LOAD(x) ^ (KEY)(KEY_SIGN); /* a bool of any byte is 0 or 1 */
#endif
}

/* ---- sorting ---- */

#define BYTES (KEY_BITS / 8)
#define ENTRIES                                                                                           \
    __global KEY *keys, long keys_offset, __global INDEX *places, long places_offset, __global KEY *more_keys, \
        long more_keys_offset, __global INDEX *more_places, long more_places_offset

#if GROUP == 1
static inline void insert(__global KEY *keys, __global INDEX *places, long n) {
    for (long i = 1; i < n; i++) {
        KEY key = keys[i];
        INDEX place = places[i];
        long k = i;
        for (; k > 0 && keys[k - 1] > key; k--) {
            keys[k] = keys[k - 1];
            places[k] = places[k - 1];
        }
        keys[k] = key;
        places[k] = place;
    }
}

/* Blocks of lines by themselves; `more` has as much room. */
__kernel void sort_blocks(__global const X_S *in, long in_offset, ENTRIES, long n, long block, long blocks, long lines,
                          KEY flip) {
    long id = get_global_id(0);
    if (id >= lines * blocks) return;
    long start = id % blocks * block, first = id / blocks * n + start, m = min(block, n - start);
    in += in_offset + first;
    __global KEY *from = keys + keys_offset + first, *to = more_keys + more_keys_offset + first;
    __global INDEX *from_places = places + places_offset + first, *to_places = more_places + more_places_offset + first;
    INDEX count[BYTES][256];
#ifndef PAIRS
    for (long i = 0; i < m; i++) {
        from[i] = key_of(in[i]) ^ flip;
        from_places[i] = (INDEX)(start + i);
    }
#endif
    if (m <= 32) {
        insert(from, from_places, m);
        return;
    }
    for (int b = 0; b < BYTES; b++)
        for (int v = 0; v < 256; v++) count[b][v] = 0;
    for (long i = 0; i < m; i++)
        for (int b = 0; b < BYTES; b++) count[b][(from[i] >> (8 * b)) & 255]++;
    bool moved = false;
    for (int b = 0; b < BYTES; b++) {
        INDEX at = 0;
        if (count[b][(from[0] >> (8 * b)) & 255] == (INDEX)m) continue;
        for (int v = 0; v < 256; v++) {
            INDEX c = count[b][v];
            count[b][v] = at;
            at += c;
        }
        for (long i = 0; i < m; i++) {
            KEY key = from[i];
            INDEX k = count[b][(key >> (8 * b)) & 255]++;
            to[k] = key;
            to_places[k] = from_places[i];
        }
        __global KEY *k = from;
        from = to;
        to = k;
        __global INDEX *p = from_places;
        from_places = to_places;
        to_places = p;
        moved = !moved;
    }
    if (moved)
        for (long i = 0; i < m; i++) {
            to[i] = from[i];
            to_places[i] = from_places[i];
        }
}
#else
/* The same for blocks of 2 * GROUP, bitonic (Batcher, 1968); what is after a line's end sorts after all. */
__kernel void sort_blocks(__global const X_S *in, long in_offset, ENTRIES, long n, long block, long blocks, long lines,
                          KEY flip) {
    __local KEY k[2 * GROUP];
    __local INDEX p[2 * GROUP];
    long unit = get_group_id(0), start = unit % blocks * block, line = unit / blocks * n;
    uint id = get_local_id(0);
    keys += keys_offset + line;
    places += places_offset + line;
    for (uint t = id; t < 2 * GROUP; t += GROUP) {
        long i = start + t;
        k[t] = ~(KEY)0;
        p[t] = ~(INDEX)0;
        if (i >= n) continue;
#ifdef PAIRS
        k[t] = keys[i];
        p[t] = places[i];
#else
        k[t] = key_of(in[in_offset + line + i]) ^ flip;
        p[t] = (INDEX)i;
#endif
    }
    for (uint size = 2; size <= 2 * GROUP; size *= 2)
        for (uint stride = size / 2; stride; stride /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            uint a = 2 * id - (id & (stride - 1)), b = a + stride;
            bool later = k[a] > k[b] || (k[a] == k[b] && p[a] > p[b]);
            if (later == ((a & size) == 0)) {
                KEY key = k[a];
                INDEX place = p[a];
                k[a] = k[b];
                p[a] = p[b];
                k[b] = key;
                p[b] = place;
            }
        }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint t = id; t < 2 * GROUP; t += GROUP)
        if (start + t < n) {
            keys[start + t] = k[t];
            places[start + t] = p[t];
        }
}
#endif

/* Sorted runs become runs of twice the length in `more`. A work-item writes CHUNK elements, and finds out by bisection
 * where they begin in both runs (Green, McColl and Bader, "GPU merge path", 2012). */
__kernel void merge_runs(ENTRIES, long n, long run, long chunks, long lines) {
    long id = get_global_id(0);
    if (id >= lines * chunks) return;
    long begin = id % chunks * CHUNK, end = min(n, begin + CHUNK), line = id / chunks * n;
    long pair = begin / (2 * run) * (2 * run), na = min(run, n - pair), nb = min(run, n - pair - na);
    __global const KEY *a = keys + keys_offset + line + pair, *b = a + na;
    __global const INDEX *from = places + places_offset + line + pair;
    long d = begin - pair, low = max(0L, d - nb), high = min(d, na);
    while (low < high) {
        long middle = (low + high) / 2;
        if (a[middle] <= b[d - 1 - middle]) low = middle + 1;
        else high = middle;
    }
    more_keys += more_keys_offset + line;
    more_places += more_places_offset + line;
    long i = low, j = d - low;
    for (long o = begin; o < end; o++) {
        bool left = j >= nb || (i < na && a[i] <= b[j]);
        long at = left ? i : na + j;
        more_keys[o] = a[at];
        more_places[o] = from[at];
        i += left;
        j += !left;
    }
}

/* The first k places of each line of n. */
__kernel void take_places(__global const INDEX *places, long places_offset, __global long *out, long out_offset,
                          long n, long k, long lines) {
    long id = get_global_id(0);
    if (id < lines * k) out[out_offset + id] = (long)places[places_offset + id / k * n + id % k];
}

/* What select_place gives, of sorted lines. */
__kernel void place_in_order(__global const KEY *keys, long keys_offset, __global const INDEX *places,
                             long places_offset, __global long *out, long out_offset, long n, long lines, long k,
                             int median, int skip_nan) {
    long line = get_global_id(0);
    if (line >= lines) return;
    keys += keys_offset + line * n;
    places += places_offset + line * n;
    if (median) {
        long numbers = n;
#ifdef KEY_FLOAT
        long low = 0; /* NaNs have the largest key, and come last */
        while (low < numbers) {
            long middle = (low + numbers) / 2;
            if (keys[middle] == ~(KEY)0) numbers = middle;
            else low = middle + 1;
        }
#endif
        k = numbers < n && (!skip_nan || numbers == 0) ? numbers : (numbers - 1) / 2;
    }
    out[out_offset + line] = (long)places[k];
}

/* The smallest of the most frequent elements of sorted lines, at its last place. */
__kernel void mode(__global const KEY *keys, long keys_offset, __global const INDEX *places, long places_offset,
                   __global long *out, long out_offset, long n, long lines, int nan_apart) {
    long id = get_global_id(0), start = 0, longest = 0, best = 0;
    if (id >= lines) return;
    keys += keys_offset + id * n;
    places += places_offset + id * n;
    for (long i = 0; i < n; i++) {
        if (keys[i] != keys[start] || (nan_apart && keys[i] == ~(KEY)0)) start = i;
        if (i - start + 1 > longest) {
            longest = i - start + 1;
            best = i;
        }
    }
    out[out_offset + id] = (long)places[best];
}

/* ---- selection ---- */

#if GROUP > 1
#define LINE get_group_id(0)
#define ID get_local_id(0)
#define SHARED __local
#define SYNC barrier(CLK_LOCAL_MEM_FENCE)
#define COUNT(at) atomic_inc(&(at))
#else
#define LINE get_global_id(0)
#define ID 0
#define SHARED
#define SYNC
#define COUNT(at) (at)++
#endif

/* The element at place k of a line's order: its key, how many are before it, its place in the line. The key is found
 * byte by byte from the top, by counting. median: the place is that of the lower median; skip_nan: of the numbers. */
__kernel void select_place(__global const X_S *in, long in_offset, __global KEY *bounds, long bounds_offset,
                           __global long *less, long less_offset, __global long *out, long out_offset, long n,
                           long lines, long k, KEY flip, int median, int skip_nan) {
    long line = LINE, id = ID;
    SHARED INDEX count[256];
    SHARED INDEX missing, first_missing;
    if (line >= lines) return;
    in += in_offset + line * n;
    if (median) {
        k = (n - 1) / 2;
#ifdef KEY_FLOAT
        if (id == 0) {
            missing = 0;
            first_missing = ~(INDEX)0;
        }
        SYNC;
        for (long i = id; i < n; i += GROUP)
            if (in[i] != in[i]) {
#if GROUP > 1
                atomic_min(&first_missing, (INDEX)i);
#else
                first_missing = min(first_missing, (INDEX)i);
#endif
                COUNT(missing);
            }
        SYNC;
        if (missing && (!skip_nan || (long)missing == n)) {
            if (id == 0) out[out_offset + line] = (long)first_missing;
            return;
        }
        k = (n - (long)missing - 1) / 2;
#endif
    }
    KEY bound = 0, mask = 0;
    long place = k;
    for (int shift = KEY_BITS - 8; shift >= 0; shift -= 8) {
        for (int v = id; v < 256; v += GROUP) count[v] = 0;
        SYNC;
        for (long i = id; i < n; i += GROUP) {
            KEY key = key_of(in[i]) ^ flip;
            if ((key & mask) == bound) COUNT(count[(key >> shift) & 255]);
        }
        SYNC;
        int bucket = 0;
        for (; k >= (long)count[bucket]; bucket++) k -= (long)count[bucket];
        bound |= (KEY)bucket << shift;
        mask |= (KEY)255 << shift;
        SYNC;
    }
    if (id == 0) {
        bounds[bounds_offset + line] = bound;
        less[less_offset + line] = place - k;
    }
    /* The k-th of those with the key: every work-item counts in a part of the line. */
    long part = (n + GROUP - 1) / GROUP, begin = min(n, id * part), end = min(n, begin + part), found = 0;
#if GROUP > 1
    __local long before[GROUP];
    for (long i = begin; i < end; i++) found += (key_of(in[i]) ^ flip) == bound;
    before[id] = found;
    SYNC;
    found = 0;
    for (int i = 0; i < id; i++) found += before[i];
#endif
    for (long i = begin; i < end; i++)
        if ((key_of(in[i]) ^ flip) == bound) {
            if (found == k) out[out_offset + line] = i;
            found++;
        }
}

/* The k first of a line's order, not yet in order: all before the bound, and the first ones with its key. */
__kernel void collect(__global const X_S *in, long in_offset, __global const KEY *bounds, long bounds_offset,
                      __global const long *less, long less_offset, __global KEY *keys, long keys_offset,
                      __global INDEX *places, long places_offset, long n, long lines, long k, KEY flip) {
    long line = LINE, id = ID, at = 0;
    if (line >= lines) return;
    KEY bound = bounds[bounds_offset + line];
    long equal = less[less_offset + line];
    in += in_offset + line * n;
    keys += keys_offset + line * k;
    places += places_offset + line * k;
#if GROUP > 1
    __local uint sums[GROUP]; /* of those before the bound and, shifted, of those at it */
    for (long base = 0; base < n; base += GROUP) {
        long i = base + id;
        KEY key = i < n ? key_of(in[i]) ^ flip : 0;
        uint mine = i < n ? (uint)(key < bound) | (uint)(key == bound) << 16 : 0, sum = mine;
        sums[id] = sum;
        for (int reach = 1; reach < GROUP; reach *= 2) {
            SYNC;
            uint other = id >= reach ? sums[id - reach] : 0;
            SYNC;
            sums[id] = sum += other;
        }
        SYNC;
        long to = mine & 1 ? at + (sum & 0xffff) - 1 : equal + (sum >> 16) - 1;
        if (mine && to < k) {
            keys[to] = key;
            places[to] = (INDEX)i;
        }
        at += sums[GROUP - 1] & 0xffff;
        equal += sums[GROUP - 1] >> 16;
        SYNC;
    }
#else
    for (long i = 0; i < n; i++) {
        KEY key = key_of(in[i]) ^ flip;
        if (key > bound || (key == bound && equal >= k)) continue;
        long to = key < bound ? at++ : equal++;
        keys[to] = key;
        places[to] = (INDEX)i;
    }
#endif
}

/* The first k <= FEW, in order, from each part of a line, by blocks: what of a block is not before the last of them is
 * passed over, the rest is sorted and merged into them. */
#define AT_ONCE 32
__kernel void take_few(__global const X_S *in, long in_offset, __global KEY *keys, long keys_offset,
                       __global INDEX *places, long places_offset, long n, long part, long parts, long lines, int k,
                       KEY flip) {
    long id = get_global_id(0);
    if (id >= lines * parts) return;
    long begin = id % parts * part, end = min(n, begin + part);
    in += in_offset + id / parts * n;
    KEY best[FEW + AT_ONCE], fresh[AT_ONCE];
    INDEX at[FEW + AT_ONCE], fresh_at[AT_ONCE];
    int kept = 0;
    for (long i = begin; i < end; i += AT_ONCE) {
        int m = (int)min(end - i, (long)AT_ONCE), found = 0;
        KEY bound = kept == k ? best[k - 1] : ~(KEY)0;
        if (kept == k) {
            int any = 0;
            for (int j = 0; j < m; j++) any |= (key_of(in[i + j]) ^ flip) < bound;
            if (!any) continue;
        }
        for (int j = 0; j < m; j++) {
            KEY key = key_of(in[i + j]) ^ flip;
            if (kept == k && key >= bound) continue;
            int p = found++;
            for (; p > 0 && fresh[p - 1] > key; p--) {
                fresh[p] = fresh[p - 1];
                fresh_at[p] = fresh_at[p - 1];
            }
            fresh[p] = key;
            fresh_at[p] = (INDEX)(i + j);
        }
        /* From the back; of equals the one that was there first stays in front. */
        for (int to = kept + found - 1, old = kept - 1, new = found - 1; new >= 0; to--) {
            bool behind = old < 0 || fresh[new] >= best[old];
            best[to] = behind ? fresh[new] : best[old];
            at[to] = behind ? fresh_at[new] : at[old];
            if (behind) new--;
            else old--;
        }
        kept = min(k, kept + found);
    }
    for (int j = 0; j < k; j++) {
        keys[keys_offset + id * k + j] = j < kept ? best[j] : ~(KEY)0;
        places[places_offset + id * k + j] = j < kept ? at[j] : ~(INDEX)0;
    }
}

/* ---- items of several elements ---- */

static inline int compare_items(__global const X_S *in, long width, long a, long b) {
    for (long i = 0; i < width; i++) {
        KEY x = key_of(in[a * width + i]), y = key_of(in[b * width + i]);
        if (x != y) return x < y ? -1 : 1;
    }
    return 0;
}

/* Runs of CHUNK items, by insertion. */
__kernel void sort_items(__global const X_S *in, long in_offset, __global long *order, long order_offset, long n,
                         long width) {
    long begin = get_global_id(0) * CHUNK, end = min(n, begin + CHUNK);
    in += in_offset;
    order += order_offset;
    for (long i = begin; i < end; i++) {
        long k = i;
        for (; k > begin && compare_items(in, width, order[k - 1], i) > 0; k--) order[k] = order[k - 1];
        order[k] = i;
    }
}

__kernel void merge_items(__global const X_S *in, long in_offset, __global const long *order, long order_offset,
                          __global long *to, long to_offset, long n, long width, long run) {
    long begin = get_global_id(0) * CHUNK, end = min(n, begin + CHUNK);
    if (begin >= n) return;
    long pair = begin / (2 * run) * (2 * run), na = min(run, n - pair), nb = min(run, n - pair - na);
    __global const long *a = order + order_offset + pair, *b = a + na;
    long d = begin - pair, low = max(0L, d - nb), high = min(d, na);
    in += in_offset;
    while (low < high) {
        long middle = (low + high) / 2;
        if (compare_items(in, width, a[middle], b[d - 1 - middle]) <= 0) low = middle + 1;
        else high = middle;
    }
    long i = low, j = d - low;
    for (long o = begin; o < end; o++) {
        bool left = j >= nb || (i < na && compare_items(in, width, a[i], b[j]) <= 0);
        to[to_offset + o] = left ? a[i++] : b[j++];
    }
}

/* Whether an item differs from the one before it; no NaN equals another. */
__kernel void begin_groups(__global const X_S *in, long in_offset, __global const long *order, long order_offset,
                           __global uchar *begins, long begins_offset, long n, long width, int ordered) {
    long i = get_global_id(0);
    if (i >= n) return;
    in += in_offset;
    order += order_offset;
    bool begins_here = i == 0;
    if (i) {
        __global const X_S *a = in + (ordered ? order[i] : i) * width;
        __global const X_S *b = in + (ordered ? order[i - 1] : i - 1) * width;
        for (long k = 0; k < width && !begins_here; k++) begins_here = !(X_LOAD(a[k]) == X_LOAD(b[k]));
    }
    begins[begins_offset + i] = begins_here;
}
