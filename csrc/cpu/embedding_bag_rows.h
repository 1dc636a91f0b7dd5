/* embedding_bag_rows.h: the loops over bags for one dtype T, named by OF. */

static void OF(add_row)(T *restrict to, const T *restrict row, int64_t n, T factor) {
    for (int64_t c = 0; c < n; c++) to[c] += factor * row[c];
}

/* The larger of what is there and a row; a NaN is largest. */
static void OF(max_row)(T *restrict to, int64_t *restrict at, const T *restrict row, int64_t n, int64_t place,
                        bool first) {
    for (int64_t c = 0; c < n; c++)
        if (first || row[c] > to[c] || (row[c] != row[c] && to[c] == to[c])) to[c] = row[c], at[c] = place;
}

static void OF(forward)(int64_t begin, int64_t end, void *context) {
    const bags *b = context;
    const T *table = b->table, *each = b->each;
    for (int64_t i = begin; i < end; i++) {
        T *out = (T *)b->out + i * b->columns;
        int64_t count = 0, last = end_of(b, i);
        for (int64_t j = b->begins[i]; j < last; j++) {
            const int64_t place = b->places[j];
            b->bag[j] = i;
            if (place == b->padding) continue;
            const T *row = table + place * b->columns;
            if (b->mode == MAX) OF(max_row)(out, b->at + i * b->columns, row, b->columns, place, count == 0);
            else OF(add_row)(out, row, b->columns, each ? each[j] : 1);
            count++;
        }
        b->size[i] = count;
        if (b->mode == MEAN && count > 1)
            for (int64_t c = 0; c < b->columns; c++) out[c] /= (T)count;
    }
}

/* Rows begin up to end of the table's gradient. */
static void OF(backward)(int64_t begin, int64_t end, void *context) {
    const bags *b = context;
    const T *grad = b->table, *each = b->each;
    for (int64_t j = 0; j < b->n; j++) {
        const int64_t place = b->places[j], i = b->bag[j];
        if (place < begin || place >= end || place == b->padding || i < 0 || b->size[i] == 0) continue;
        T factor = each ? each[j] : 1;
        if (b->mode == MEAN) factor /= (T)b->size[i];
        if (b->counts) factor /= (T)b->counts[place];
        OF(add_row)((T *)b->out + place * b->columns, grad + i * b->columns, b->columns, factor);
    }
}

static void OF(backward_of_maxima)(const bags *b) {
    const T *grad = b->table;
    for (int64_t i = 0; i < b->bags; i++)
        for (int64_t c = 0; b->size[i] && c < b->columns; c++)
            ((T *)b->out)[b->at[i * b->columns + c] * b->columns + c] += grad[i * b->columns + c];
}

/* The product of an index's row and its bag's gradient. */
static void OF(weights)(int64_t begin, int64_t end, void *context) {
    const bags *b = context;
    for (int64_t j = begin; j < end; j++) {
        const int64_t place = b->places[j], i = b->bag[j];
        const T *row = (const T *)b->table + place * b->columns, *grad = (const T *)b->each;
        T sum = 0;
        for (int64_t c = 0; c < b->columns && place != b->padding && i >= 0; c++)
            sum += row[c] * grad[i * b->columns + c];
        ((T *)b->out)[j] = sum;
    }
}
