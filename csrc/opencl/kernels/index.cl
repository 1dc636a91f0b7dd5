/* index.cl: indices into several dimensions as row numbers. */
__kernel void next_rows(__global const long *index, long index_offset, __global long *rows, long rows_offset, long n,
                        long size, long dim, int first, volatile __global int *fault, int kind) {
    long i = get_global_id(0);
    if (i >= n) return;
    long at = checked(index[index_offset + i], size, 1, dim, fault, kind);
    long before = first ? 0 : rows[rows_offset + i];
    rows[rows_offset + i] = before < 0 || at < 0 ? -1 : before * size + at;
}
