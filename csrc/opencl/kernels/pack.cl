/* pack.cl: what lies after the true bytes of a mask, in order: numbered, packed, unpacked.
 *
 * A mask's bytes may be any, all but 0 being true; nothing is written outside of what the sizes allow, whatever it says.
 *
 * Defined in front: OP_PACK (elements E), OP_UNPACK (elements E), OP_NONZERO (NDIM), OP_GROUPS; GROUP.
 *
 * The mask is cut into parts of `part` bytes. count_parts counts the true ones of each; offsets turns the counts into
 * where each part begins, and writes the total after them; walk_parts goes over the parts once more, each from where
 * it begins. With a GROUP of 1 a work-item goes over a part, else a work-group. */
__kernel void count_parts(__global const uchar *mask, long mask_offset, __global long *counts, long counts_offset,
                          long n, long part, long parts) {
#if GROUP > 1
    __local int shared[GROUP];
    long unit = get_group_id(0), id = get_local_id(0);
#else
    long unit = get_global_id(0), id = 0;
    if (unit >= parts) return;
#endif
    long begin = unit * part, end = min(n, begin + part);
    int sum = 0;
    mask += mask_offset;
    for (long i = begin + id; i < end; i += GROUP) sum += mask[i] != 0;
#if GROUP > 1
    shared[id] = sum;
    for (int width = GROUP / 2; width; width /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id < width) shared[id] += shared[id + width];
    }
    if (id == 0) counts[counts_offset + unit] = shared[0];
#else
    counts[counts_offset + unit] = sum;
#endif
}

/* One work-group. */
__kernel void offsets(__global long *counts, long counts_offset, long parts) {
    counts += counts_offset;
#if GROUP > 1
    __local long shared[GROUP];
    int id = get_local_id(0);
    long base = 0;
    for (long first = 0; first < parts; first += GROUP) {
        long i = first + id, mine = i < parts ? counts[i] : 0, sum = mine;
        shared[id] = sum;
        for (int reach = 1; reach < GROUP; reach *= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            long other = id >= reach ? shared[id - reach] : 0;
            barrier(CLK_LOCAL_MEM_FENCE);
            shared[id] = sum += other;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (i < parts) counts[i] = base + sum - mine;
        base += shared[GROUP - 1];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (id == 0) counts[parts] = base;
#else
    if (get_global_id(0)) return;
    long sum = 0;
    for (long i = 0; i < parts; i++) {
        long count = counts[i];
        counts[i] = sum;
        sum += count;
    }
    counts[parts] = sum;
#endif
}

#if defined(OP_PACK)
#define PARAMETERS __global const E *from, long from_offset, __global E *out, long out_offset
#define BEGIN from += from_offset, out += out_offset;
#define WRITE(i, k) out[k] = from[i];
#elif defined(OP_UNPACK)
#define PARAMETERS                                                                                        \
    __global const E *from, long from_offset, __global E *out, long out_offset, long room, \
        volatile __global int *fault, int kind
#define BEGIN from += from_offset, out += out_offset;
#define WRITE(i, k)                              \
    if ((k) < room) out[i] = from[k];            \
    else if ((k) == room) report(fault, kind, k, 0, room);
#elif defined(OP_NONZERO)
typedef struct {
    long size[NDIM];
} shape;
#define PARAMETERS __global long *out, long out_offset, long total, shape s
#define BEGIN out += out_offset;
#define WRITE(i, k)                                     \
    long rest = (i);                                    \
    for (int d = NDIM - 1; d > 0; d--) {                \
        out[d * total + (k)] = rest % s.size[d];        \
        rest /= s.size[d];                              \
    }                                                   \
    out[k] = rest;
#elif defined(OP_GROUPS)
/* A group begins at each true byte. */
#define PARAMETERS                                                                                            \
    __global const long *order, long order_offset, __global long *first, long first_offset,                 \
        __global long *start, long start_offset, __global long *inverse, long inverse_offset, int ordered, long total
#define BEGIN order += order_offset, first += first_offset, start += start_offset, inverse += inverse_offset;
#define WRITE(i, k)                              \
    first[k] = ordered ? order[i] : (i);         \
    start[k] = i;
#define EACH(i, k) inverse[ordered ? order[i] : (i)] = (k);
#endif

#ifdef PARAMETERS
__kernel void walk_parts(__global const uchar *mask, long mask_offset, __global const long *counts, long counts_offset,
                         long n, long part, long parts, PARAMETERS) {
    mask += mask_offset;
    counts += counts_offset;
    BEGIN
#if GROUP > 1
    __local int shared[GROUP];
    long unit = get_group_id(0);
    int id = get_local_id(0);
    long begin = unit * part, end = min(n, begin + part), base = counts[unit], last = counts[unit + 1];
    for (long first_i = begin; first_i < end; first_i += GROUP) {
        long i = first_i + id;
        int mine = i < end && mask[i], sum = mine;
        shared[id] = sum;
        for (int reach = 1; reach < GROUP; reach *= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            int other = id >= reach ? shared[id - reach] : 0;
            barrier(CLK_LOCAL_MEM_FENCE);
            shared[id] = sum += other;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (mine && base + sum <= last) {
            WRITE(i, base + sum - 1)
        }
#ifdef EACH
        if (i < end) EACH(i, base + sum - 1)
#endif
        base += shared[GROUP - 1];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
#else
    long unit = get_global_id(0);
    if (unit >= parts) return;
    long begin = unit * part, end = min(n, begin + part), k = counts[unit], last = counts[unit + 1];
#if defined(EACH) || defined(OP_UNPACK)
    for (long i = begin; i < end; i++) {
        if (mask[i]) {
            WRITE(i, k)
            k++;
        }
#ifdef EACH
        EACH(i, k - 1)
#endif
    }
#elif defined(OP_NONZERO) && NDIM > 1
    for (long i = begin; k < last && i < end; i++)
        if (mask[i]) {
            WRITE(i, k)
            k++;
        }
#else
    /* Without a branch, since masks have no pattern; up to the place where the next part begins. */
    for (long i = begin; k < last && i < end; i++) {
        WRITE(i, k)
        k += mask[i] != 0;
    }
#endif
#endif
#ifdef OP_GROUPS
    if (get_global_id(0) == 0) start[total] = n;
#endif
}
#endif
