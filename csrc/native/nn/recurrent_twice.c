/* recurrent_twice.c: the gradient of a recurrent layer from operators, for a gradient that is itself differentiated.
 *
 * The states' gradients are values here, not buffers: a step takes its rows and gives new ones, and the others are put
 * after them. */
#include "native/nn/recurrent.h"

#include "NativeFunctions.h"

typedef struct {
    tp_recurrent cell;
    tp_tensor *grad_output, *grad_saved, *grad_before, *saved, *before, *weight, *extra;
    tp_tensor *h, *c; /* owned: the gradients of the states */
    tp_tensor_seq *to_input, *to_hidden, *projected;
    int64_t first, rows, step; /* of the step */
} work;

static tp_tensor *rows_of_step(tp_tensor *t, const work *w) { return tp_narrow(t, 0, w->first, w->rows); }

/* `to` with its first rows replaced by `rows` (stolen). */
static int put_rows(tp_tensor **to, tp_tensor *rows) {
    tp_autoref *made = rows;
    if (!made) return -1;
    int64_t count = made->sizes[0], all = (*to)->sizes[0];
    tp_autoref *rest = count < all ? tp_narrow(*to, 0, count, all - count) : NULL;
    if (count < all && !rest) return -1;
    tp_tensor *whole = rest ? tp_cat((tp_tensors){(tp_tensor *const[]){made, rest}, 2}, 0) : tp_take(made);
    if (!whole) return -1;
    tp_release(*to);
    *to = whole;
    return 0;
}

/* `a` and the step's rows of what may be None. */
static tp_tensor *plus_rows(tp_tensor *a, tp_tensor *all_or_null, const work *w) {
    if (!a || !all_or_null) return tp_retain(a);
    tp_autoref *rows = rows_of_step(all_or_null, w);
    return rows ? tp_add_Tensor(a, rows, TP_SCALAR_I(1)) : NULL;
}

/* The gradients of a step's gates and of what the cell gives back of the state, of h without a projection. */
static tp_tensor3 through_cell(const work *w, tp_tensor *h, tp_tensor *c, tp_tensor *saved, tp_tensor *before,
                               tp_tensor *grad_saved) {
    switch (w->cell.kind) {
    case TP_CELL_LSTM: return tp__lstm_step_backward(h, c, saved, grad_saved);
    case TP_CELL_GRU: return tp__gru_step_backward(h, before, saved, grad_saved);
    default: return tp__rnn_step_backward(w->cell.name, h, saved, grad_saved);
    }
}

static int one_step(work *w) {
    bool lstm = w->cell.kind == TP_CELL_LSTM, projected = lstm && w->extra;
    tp_autoref *own = tp_narrow(w->h, 0, 0, w->rows), *c = lstm ? tp_narrow(w->c, 0, 0, w->rows) : NULL,
               *saved = rows_of_step(w->saved, w), *before = rows_of_step(w->before, w);
    tp_autoref *h = plus_rows(own, w->grad_output, w);
    tp_autoref *grad_saved = w->grad_saved ? rows_of_step(w->grad_saved, w)
                             : saved ? tp_zeros_like(saved, TP_NO_DTYPE, TP_NO_LAYOUT, TP_NO_DEVICE, -1, TP_NO_FORMAT)
                                     : NULL;
    if (!h || !saved || !before || !grad_saved || (lstm && !c)) return -1;
    tp_autoref *made = projected ? tp_mm(h, w->extra) : tp_retain(h);
    if (projected) w->projected->items[w->step] = tp_retain(h);
    tp_tensor3 r = made ? through_cell(w, made, c, saved, before, grad_saved) : (tp_tensor3){{NULL}};
    tp_autoref *state = r.v[2];
    w->to_input->items[w->step] = r.v[0];
    w->to_hidden->items[w->step] = r.v[1];
    tp_autoref *through = r.v[1] ? tp_mm(r.v[1], w->weight) : NULL;
    tp_autoref *all = through && !lstm ? tp_add_Tensor(through, state, TP_SCALAR_I(1)) : tp_retain(through);
    if (!all || put_rows(&w->h, plus_rows(all, w->grad_before, w)) < 0) return -1;
    return lstm ? put_rows(&w->c, tp_take(state)) : 0;
}

static tp_tensor *started(tp_tensor *given, int64_t rows, int64_t columns, tp_tensor *like) {
    return given ? tp_retain(given)
                 : tp_new_zeros(like, TP_INTS(rows, columns), TP_NO_DTYPE, TP_NO_LAYOUT, TP_NO_DEVICE, -1);
}

/* grad' @ x, over all rows. */
static tp_tensor *weight_gradient(tp_tensor *grad, tp_tensor *x) {
    tp_autoref *turned = tp_t(grad);
    return turned ? tp_mm(turned, x) : NULL;
}

static tp_tensor *extra_gradient(const work *w, tp_tensor *to_hidden) {
    if (w->cell.kind == TP_CELL_GRU) return tp_sum_dim_IntList(to_hidden, TP_INTS(0), false, TP_NO_DTYPE);
    tp_autoref *grad = tp_cat(tp_tensor_seq_borrow(w->projected), 0),
               *x = grad ? tp_recurrent_unprojected(w->saved) : NULL;
    return x ? weight_gradient(grad, x) : NULL;
}

static int all_steps(work *w, tp_ints batch_sizes, bool reverse) {
    int64_t count = batch_sizes.size;
    w->first = reverse ? 0 : w->saved->sizes[0];
    for (int64_t i = 0; i < count; i++) {
        w->step = reverse ? i : count - 1 - i;
        w->rows = batch_sizes.data[w->step];
        if (!reverse) w->first -= w->rows;
        if (one_step(w) < 0) return -1;
        if (reverse) w->first += w->rows;
    }
    return 0;
}

/* _recurrent_layer_differentiable_backward(str cell, Tensor? grad_output, Tensor? grad_hy, Tensor? grad_cy, Tensor?
 * grad_saved, Tensor? grad_before, Tensor saved, Tensor before, Tensor weight, Tensor? extra, int[] batch_sizes, bool
 * reverse) -> (Tensor, Tensor, Tensor, Tensor, Tensor) */
tp_tensor5 _recurrent_layer_differentiable_backward_composite(const char *cell, tp_tensor *grad_output,
                                                              tp_tensor *grad_hy, tp_tensor *grad_cy,
                                                              tp_tensor *grad_saved, tp_tensor *grad_before,
                                                              tp_tensor *saved, tp_tensor *before, tp_tensor *weight,
                                                              tp_tensor *extra, tp_ints batch_sizes, bool reverse) {
    tp_tensor5 r = {{NULL}};
    work w = {.grad_output = grad_output,
              .grad_saved = grad_saved,
              .grad_before = grad_before,
              .saved = saved,
              .before = before,
              .weight = weight,
              .extra = extra};
    if (tp_recurrent_cell(cell, &w.cell) < 0) return r;
    bool lstm = w.cell.kind == TP_CELL_LSTM;
    int64_t most = 0, hidden = weight->sizes[0] / w.cell.gates;
    for (int64_t t = 0; t < batch_sizes.size; t++) most = batch_sizes.data[t] > most ? batch_sizes.data[t] : most;
    tp_autoseq *to_input = tp_tensor_seq_new(batch_sizes.size), *to_hidden = tp_tensor_seq_new(batch_sizes.size),
               *projected = tp_tensor_seq_new(batch_sizes.size);
    w.to_input = to_input, w.to_hidden = to_hidden, w.projected = projected;
    w.h = started(grad_hy, most, before->sizes[1], saved);
    w.c = lstm ? started(grad_cy, most, hidden, saved) : NULL;
    bool ready = to_input && to_hidden && projected && w.h && (!lstm || w.c);
    if (ready && all_steps(&w, batch_sizes, reverse) == 0) {
        tp_autoref *by_hidden = tp_cat(tp_tensor_seq_borrow(to_hidden), 0);
        r.v[0] = by_hidden ? tp_cat(tp_tensor_seq_borrow(to_input), 0) : NULL;
        r.v[3] = by_hidden ? weight_gradient(by_hidden, before) : NULL;
        r.v[4] = by_hidden && extra ? extra_gradient(&w, by_hidden) : NULL;
        if (r.v[0] && r.v[3] && (!extra || r.v[4])) {
            r.v[1] = w.h;
            r.v[2] = w.c;
            return r;
        }
    }
    for (int i = 0; i < 5; i++) {
        tp_release(r.v[i]);
        r.v[i] = NULL;
    }
    tp_release(w.h);
    tp_release(w.c);
    return r;
}
