/* recurrent.c: the primitives of recurrent cells on the CPU: threads share the rows; the loops are in
 * recurrent_loops.c. */
#include "PrimitiveKernels.h"
#include "core/parallel.h"
#include "cpu/kernels.h"
#include "core/memory.h"

#define ROW_GRAIN 4096 /* hidden units worth a thread: each takes some exponentials */

static const tp_recurrent_loops *loops_of(const tp_tensor *t) {
    return t->dtype == TP_FLOAT32 ? &tp_cpu.recurrent->f32 : &tp_cpu.recurrent->f64;
}
static void *data_of(const tp_tensor *t) { return t ? tp_data(t) : NULL; }

typedef struct {
    const tp_recurrent_loops *loops;
    const void *a, *b, *c;
    void *x, *y, *z;
    int64_t n;
} job;

static int run(job *j, const tp_tensor *state, tp_range_fn fn) {
    j->loops = loops_of(state);
    j->n = state->sizes[1];
    return tp_parallel_for(state->sizes[0], 1 + ROW_GRAIN / j->n, fn, j);
}

static void lstm_rows(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    j->loops->lstm(j->a, j->b, j->x, j->y, j->z, j->n, begin, end);
}
int recurrent_lstm_cpu(tp_tensor *input, tp_tensor *hidden, tp_tensor *cell, tp_tensor *out, tp_tensor *saved) {
    job j = {.a = tp_data(input), .b = tp_data(hidden), .x = tp_data(cell), .y = tp_data(out), .z = data_of(saved)};
    return run(&j, cell, lstm_rows);
}

static void lstm_backward_rows(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    j->loops->lstm_backward(j->a, j->b, j->x, j->y, j->n, begin, end);
}
int recurrent_lstm_backward_cpu(tp_tensor *grad, tp_tensor *saved, tp_tensor *grad_cell, tp_tensor *out) {
    job j = {.a = tp_data(grad), .b = tp_data(saved), .x = tp_data(grad_cell), .y = tp_data(out)};
    return run(&j, grad_cell, lstm_backward_rows);
}

static void gru_rows(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    j->loops->gru(j->a, j->b, j->c, j->x, j->y, j->n, begin, end);
}
int recurrent_gru_cpu(tp_tensor *input, tp_tensor *hidden, tp_tensor *bias, tp_tensor *state, tp_tensor *saved) {
    job j = {.a = tp_data(input), .b = tp_data(hidden), .c = data_of(bias), .x = tp_data(state), .y = data_of(saved)};
    return run(&j, state, gru_rows);
}

static void gru_backward_rows(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    j->loops->gru_backward(j->a, j->b, j->x, j->y, j->z, j->n, begin, end);
}
int recurrent_gru_backward_cpu(tp_tensor *saved, tp_tensor *before, tp_tensor *grad, tp_tensor *to_input,
                               tp_tensor *to_hidden) {
    job j = {
        .a = tp_data(saved), .b = tp_data(before), .x = tp_data(grad), .y = tp_data(to_input), .z = tp_data(to_hidden)};
    return run(&j, grad, gru_backward_rows);
}
