/* recurrent.c: one direction of one recurrent layer over all its steps, and its gradient; the layers are in
 * recurrent_layers.c, the gradient that is itself differentiated in recurrent_twice.c.
 *
 * The rows of all steps lie one after another; a step has as many as there are sequences that last so long, the first
 * ones. The states of all sequences are kept in one buffer each: a step changes its rows, the others wait, for their
 * turn or because they have ended. So packed sequences, in either direction, are like others. */
#include "native/nn/recurrent.h"

#include "NativeFunctions.h"
#include "Primitives.h"
#include "prim/panels.h"
#include "prim/plain.h"

#include <string.h>

int tp_recurrent_cell(const char *name, tp_recurrent *cell) {
    static const tp_recurrent all[] = {{TP_CELL_TANH, "tanh", 1, 1},
                                       {TP_CELL_RELU, "relu", 1, 1},
                                       {TP_CELL_LSTM, "lstm", 4, 5},
                                       {TP_CELL_GRU, "gru", 3, 4}};
    for (size_t i = 0; i < TP_COUNTOF(all); i++)
        if (!strcmp(all[i].name, name)) return *cell = all[i], 0;
    return tp_fail(TP_ValueError, "_recurrent_layer: no cell is named '%s'", name);
}

/* ---- the walk over the steps ---- */

typedef struct {
    tp_recurrent cell;
    tp_ints batch_sizes;
    bool reverse;
    int64_t step, first, rows; /* the current step: how many are after it, its first row, how many rows */
} walk;

static walk walk_of(tp_recurrent cell, tp_ints batch_sizes, bool from_last) {
    walk w = {.cell = cell, .batch_sizes = batch_sizes, .reverse = from_last};
    for (int64_t t = 0; from_last && t < batch_sizes.size; t++) w.first += batch_sizes.data[t];
    return w;
}

static bool next_step(walk *w) {
    int64_t last = w->batch_sizes.size - 1;
    if (w->step > last) return false;
    if (!w->reverse) w->first += w->rows;
    w->rows = w->batch_sizes.data[w->reverse ? last - w->step : w->step];
    if (w->reverse) w->first -= w->rows;
    w->step++;
    return true;
}

/* Rows of a matrix, a view without history; new. */
static tp_tensor *rows_at(const tp_tensor *t, int64_t first, int64_t count) {
    return t ? tp_new_alias(t, TP_INTS(count, t->sizes[1]), tp_strides(t),
                            t->byte_offset + first * t->strides[0] * tp_itemsize((tp_dtype)t->dtype))
             : NULL;
}
static tp_tensor *rows_of_step(const tp_tensor *t, const walk *w) { return rows_at(t, w->first, w->rows); }
static tp_tensor *turned(const tp_tensor *t) {
    return tp_new_alias(t, TP_INTS(t->sizes[1], t->sizes[0]), TP_INTS(t->strides[1], t->strides[0]), t->byte_offset);
}

/* ---- the product of each step: a weight that serves many is laid out in panels for it (prim/panels.h) ---- */

/* A matrix as the product of each step takes it; new. */
static tp_tensor *laid_out(tp_tensor *t, int64_t most, tp_ints batch_sizes) {
    int64_t k = t->sizes[0], n = t->sizes[1];
    const tp_product_shortcut *in_panels = tp_shortcut_at(&tp_prims[TP_PRIM_product], tp_backend_key(t->device.type));
    bool fits = in_panels && t->dtype == TP_FLOAT32 && n % TP_PANEL == 0 && t->numel > 0;
    if (!fits || batch_sizes.size < in_panels->products || most < in_panels->rows) return tp_retain(t);
    tp_autoref *panels = tp_new_alias(t, TP_INTS(n / TP_PANEL, k, TP_PANEL),
                                      TP_INTS(TP_PANEL * t->strides[1], t->strides[0], t->strides[1]), t->byte_offset);
    tp_autoref *made = panels ? tp_new_empty(tp_sizes(panels), (tp_dtype)t->dtype, t->device) : NULL;
    return made && tp_copy_data(made, panels) == 0 ? tp_take(made) : NULL;
}

/* out = a @ b, added to what is there if `add`; b as laid_out gives it. */
static int product(tp_tensor *a, tp_tensor *b, int add, tp_tensor *out) {
    if (b->ndim == 2) return tp_prim_product(a, b, TP_SCALAR_I(1), TP_SCALAR_I(add), out);
    int64_t panels = b->sizes[0];
    tp_autoref *rows = tp_new_alias(a, TP_INTS(panels, a->sizes[0], a->sizes[1]),
                                    TP_INTS(0, a->strides[0], a->strides[1]), a->byte_offset),
               *columns = tp_new_alias(out, TP_INTS(panels, out->sizes[0], TP_PANEL),
                                       TP_INTS(TP_PANEL, out->strides[0], 1), out->byte_offset);
    return rows && columns ? tp_prim_product(rows, b, TP_SCALAR_I(1), TP_SCALAR_I(add), columns) : -1;
}

static tp_tensor *new_matrix(int64_t rows, int64_t columns, const tp_tensor *like) {
    return tp_new_empty(TP_INTS(rows, columns), (tp_dtype)like->dtype, like->device);
}
/* A copy of `from` that may be written to, or zeros. */
static tp_tensor *started(const tp_tensor *from, int64_t rows, int64_t columns, const tp_tensor *like) {
    tp_autoref *made = new_matrix(rows, columns, like);
    if (!made || (from ? tp_copy_data(made, from) : tp_fill_data(made, TP_SCALAR_I(0))) < 0) return NULL;
    return tp_take(made);
}

static void release_all(tp_tensor5 *r) {
    for (int i = 0; i < 5; i++) {
        tp_release(r->v[i]);
        r->v[i] = NULL;
    }
}

static int check(const tp_recurrent *cell, const tp_tensor *input, const tp_tensor *hx, const tp_tensor *cx,
                 const tp_tensor *weight, const tp_tensor *extra, tp_ints batch_sizes) {
    int64_t rows = 0, most = 0, hidden = weight->ndim == 2 ? weight->sizes[0] / cell->gates : 0;
    bool lstm = cell->kind == TP_CELL_LSTM;
    for (int64_t t = 0; t < batch_sizes.size; t++) {
        if (batch_sizes.data[t] < 0 || hx->ndim != 2 || batch_sizes.data[t] > hx->sizes[0])
            return tp_fail(TP_RuntimeError, "_recurrent_layer: more sequences in a step than there are states");
        rows += batch_sizes.data[t];
        most = batch_sizes.data[t] > most ? batch_sizes.data[t] : most;
    }
    bool fits = most == hx->sizes[0] && input->ndim == 2 && hx->ndim == 2 && weight->ndim == 2 &&
                weight->sizes[0] % cell->gates == 0 && input->sizes[0] == rows && input->sizes[1] == weight->sizes[0] &&
                hx->sizes[1] == weight->sizes[1] && (cx != NULL) == lstm;
    if (fits && lstm) fits = cx->ndim == 2 && cx->sizes[0] == hx->sizes[0] && cx->sizes[1] == hidden;
    if (fits && lstm && extra) fits = extra->ndim == 2 && extra->sizes[0] == hx->sizes[1] && extra->sizes[1] == hidden;
    else if (fits && cell->kind == TP_CELL_GRU && extra) fits = extra->ndim == 1 && extra->sizes[0] == weight->sizes[0];
    if (fits && !(lstm && extra)) fits = hx->sizes[1] == hidden;
    if (!fits) return tp_fail(TP_RuntimeError, "_recurrent_layer: the sizes of gates, states and weights do not fit");
    const tp_tensor *const others[] = {hx, cx, weight, extra};
    for (int i = 0; i < 4; i++)
        if (others[i] && others[i]->dtype != input->dtype)
            return tp_fail(TP_RuntimeError, "_recurrent_layer: inputs are %s, but states or weights %s",
                           tp_dtype_names[input->dtype], tp_dtype_names[others[i]->dtype]);
    return tp_is_floating(input) ? 0
                                 : tp_fail(TP_NotImplementedError, "recurrent layers are not implemented for %s",
                                           tp_dtype_names[input->dtype]);
}

/* ---- forwards ---- */

typedef struct {
    tp_tensor *input, *weight, *extra;  /* the weight turned */
    tp_tensor *hidden, *made, *h, *c;   /* the product, what a projection is applied to, the states */
    tp_tensor *output, *saved, *before; /* of all steps */
} forward;

/* The simple cells: out = activation(input + hidden). */
static int simple_step(const tp_recurrent *cell, tp_tensor *input, tp_tensor *hidden, tp_tensor *h, tp_tensor *saved) {
    if (tp_add_out(input, hidden, TP_SCALAR_I(1), h) < 0) return -1;
    if ((cell->kind == TP_CELL_TANH ? tp_tanh_(h) : tp_relu_(h)) < 0) return -1;
    return saved ? tp_copy_data(saved, h) : 0;
}

static int forward_step(const forward *f, const walk *w) {
    tp_autoref *input = rows_of_step(f->input, w), *hidden = rows_at(f->hidden, 0, w->rows),
               *h = rows_at(f->h, 0, w->rows), *c = rows_at(f->c, 0, w->rows), *made = rows_at(f->made, 0, w->rows),
               *output = rows_of_step(f->output, w), *saved = rows_of_step(f->saved, w),
               *before = rows_of_step(f->before, w);
    if (!input || !hidden || !h || !output || (f->c && !c) || (f->made && !made) || (f->saved && (!saved || !before)))
        return -1;
    if ((before && tp_copy_data(before, h) < 0) || product(h, f->weight, 0, hidden) < 0) return -1;
    switch (w->cell.kind) {
    case TP_CELL_LSTM:
        if (tp_prim_recurrent_lstm(input, hidden, c, made ? made : h, saved) < 0) return -1;
        if (made && product(made, f->extra, 0, h) < 0) return -1;
        break;
    case TP_CELL_GRU:
        if (tp_prim_recurrent_gru(input, hidden, f->extra, h, saved) < 0) return -1;
        break;
    default:
        if (simple_step(&w->cell, input, hidden, h, saved) < 0) return -1;
    }
    return tp_copy_data(output, h);
}

/* _recurrent_layer(str cell, Tensor input, Tensor hx, Tensor? cx, Tensor weight, Tensor? extra, int[] batch_sizes, bool
 * reverse, bool keep) -> (Tensor, Tensor, Tensor, Tensor, Tensor) */
tp_tensor5 _recurrent_layer_dense(const char *cell_name, tp_tensor *input, tp_tensor *hx, tp_tensor *cx,
                                  tp_tensor *weight, tp_tensor *extra, tp_ints batch_sizes, bool reverse, bool keep) {
    tp_tensor5 r = {{NULL}};
    tp_recurrent cell;
    if (tp_recurrent_cell(cell_name, &cell) < 0 || check(&cell, input, hx, cx, weight, extra, batch_sizes) < 0)
        return r;
    tp_dtype dtype = tp_compute_dtype((tp_dtype)input->dtype);
    int64_t rows = input->sizes[0], most = hx->sizes[0], state = hx->sizes[1], hidden = weight->sizes[0] / cell.gates;
    bool projected = cell.kind == TP_CELL_LSTM && extra;
    tp_autoref *x = tp_plain(input, dtype), *wide = tp_plain(weight, dtype), *more = tp_plain(extra, dtype);
    if (!x || !wide || (extra && !more)) return r;
    tp_autoref *turned_hh = turned(wide), *w_hr = projected ? turned(more) : NULL;
    tp_autoref *w_hh = turned_hh ? laid_out(turned_hh, most, batch_sizes) : NULL;
    tp_autoref *product_room = new_matrix(most, weight->sizes[0], x),
               *made = projected ? new_matrix(most, hidden, x) : NULL;
    r.v[0] = new_matrix(rows, state, x);
    r.v[1] = started(hx, most, state, x);
    r.v[2] = cx ? started(cx, most, hidden, x) : new_matrix(0, 0, x);
    r.v[3] = new_matrix(keep ? rows : 0, cell.saved * hidden, x);
    r.v[4] = new_matrix(keep ? rows : 0, state, x);
    for (int i = 0; i < 5; i++)
        if (!r.v[i] || !w_hh || !product_room || (projected && (!w_hr || !made))) return release_all(&r), r;
    forward f = {x,
                 w_hh,
                 projected ? w_hr : more,
                 product_room,
                 made,
                 r.v[1],
                 cx ? r.v[2] : NULL,
                 r.v[0],
                 keep ? r.v[3] : NULL,
                 keep ? r.v[4] : NULL};
    walk w = walk_of(cell, batch_sizes, reverse);
    while (x->numel && state && next_step(&w))
        if (w.rows && forward_step(&f, &w) < 0) return release_all(&r), r;
    for (int i = 0; i < 5; i++)
        if (!(r.v[i] = tp_narrow_steal(r.v[i], (tp_dtype)input->dtype))) return release_all(&r), r;
    return r;
}

/* ---- backwards ---- */

typedef struct {
    tp_tensor *grad_output, *saved, *before, *weight, *extra;
    tp_tensor *h, *c, *made;                     /* the gradients of the states; of what a projection is applied to */
    tp_tensor *to_input, *to_hidden, *projected; /* of all steps */
} backward;

/* The simple cells' gradient by what was activated. */
static int simple_step_backward(const tp_recurrent *cell, tp_tensor *grad, tp_tensor *saved, tp_tensor *out) {
    return cell->kind == TP_CELL_TANH ? tp_tanh_backward_grad_input(grad, saved, out)
                                      : tp_threshold_backward_grad_input(grad, saved, TP_SCALAR_I(0), out);
}

static int backward_step(const backward *b, const walk *w) {
    tp_autoref *grad = rows_of_step(b->grad_output, w), *saved = rows_of_step(b->saved, w),
               *before = rows_of_step(b->before, w), *h = rows_at(b->h, 0, w->rows), *c = rows_at(b->c, 0, w->rows),
               *made = rows_at(b->made, 0, w->rows), *to_input = rows_of_step(b->to_input, w),
               *to_hidden = rows_of_step(b->to_hidden, w), *projected = rows_of_step(b->projected, w);
    if (!saved || !before || !h || !to_input || !to_hidden || (b->grad_output && !grad) || (b->c && !c) ||
        (b->made && (!made || !projected)))
        return -1;
    if (grad && tp_add__Tensor(h, grad, TP_SCALAR_I(1)) < 0) return -1;
    switch (w->cell.kind) {
    case TP_CELL_LSTM:
        if (made && (tp_copy_data(projected, h) < 0 || product(h, b->extra, 0, made) < 0)) return -1;
        if (tp_prim_recurrent_lstm_backward(made ? made : h, saved, c, to_hidden) < 0) return -1;
        break;
    case TP_CELL_GRU:
        if (tp_prim_recurrent_gru_backward(saved, before, h, to_input, to_hidden) < 0) return -1;
        break;
    default:
        if (simple_step_backward(&w->cell, h, saved, to_hidden) < 0) return -1;
    }
    return product(to_hidden, b->weight, w->cell.kind == TP_CELL_GRU, h);
}

tp_tensor *tp_recurrent_unprojected(tp_tensor *saved) {
    tp_autoseq *parts = tp_chunk(saved, 5, 1);
    if (!parts) return NULL;
    tp_tensor **p = parts->items;
    tp_autoref *kept = tp_mul_Tensor(p[1], p[4]);
    tp_autoref *cell = kept ? tp_addcmul(kept, p[0], p[2], TP_SCALAR_I(1)) : NULL;
    tp_autoref *level = cell ? tp_tanh(cell) : NULL;
    return level ? tp_mul_Tensor(p[3], level) : NULL;
}

/* The sum over all rows of what belongs to the weights: grad' @ x. */
static tp_tensor *weight_gradient(tp_tensor *grad, tp_tensor *x, const tp_tensor *like) {
    tp_autoref *out = new_matrix(like->sizes[0], like->sizes[1], grad), *by_gate = turned(grad);
    if (!out || !by_gate) return NULL;
    if (out->numel && (grad->sizes[0] ? product(by_gate, x, 0, out) : tp_fill_data(out, TP_SCALAR_I(0))) < 0)
        return NULL;
    return tp_take(out);
}

static tp_tensor *extra_gradient(const backward *b, tp_recurrent cell, tp_tensor *extra) {
    if (cell.kind == TP_CELL_GRU) return tp_sum_dim_IntList(b->to_hidden, TP_INTS(0), false, TP_NO_DTYPE);
    tp_autoref *x = tp_recurrent_unprojected(b->saved);
    return x ? weight_gradient(b->projected, x, extra) : NULL;
}

/* _recurrent_layer_backward(str cell, Tensor? grad_output, Tensor? grad_hy, Tensor? grad_cy, Tensor saved, Tensor
 * before, Tensor weight, Tensor? extra, int[] batch_sizes, bool reverse) -> (Tensor, Tensor, Tensor, Tensor, Tensor) */
tp_tensor5 _recurrent_layer_backward_dense(const char *cell_name, tp_tensor *grad_output, tp_tensor *grad_hy,
                                           tp_tensor *grad_cy, tp_tensor *saved, tp_tensor *before, tp_tensor *weight,
                                           tp_tensor *extra, tp_ints batch_sizes, bool reverse) {
    tp_tensor5 r = {{NULL}};
    tp_recurrent cell;
    if (tp_recurrent_cell(cell_name, &cell) < 0) return r;
    tp_dtype given = (tp_dtype)saved->dtype, dtype = tp_compute_dtype(given);
    int64_t rows = saved->sizes[0], state = before->sizes[1], gates = weight->sizes[0], hidden = gates / cell.gates;
    int64_t most = 0;
    for (int64_t t = 0; t < batch_sizes.size; t++) most = batch_sizes.data[t] > most ? batch_sizes.data[t] : most;
    if (grad_hy) most = grad_hy->sizes[0];
    bool lstm = cell.kind == TP_CELL_LSTM, projected = lstm && extra;
    tp_autoref *g = tp_plain(grad_output, dtype), *s = tp_plain(saved, dtype), *x = tp_plain(before, dtype),
               *wide = tp_plain(weight, dtype), *w_hr = projected ? tp_plain(extra, dtype) : NULL;
    tp_autoref *w_hh = wide ? laid_out(wide, most, batch_sizes) : NULL;
    if (!s || !x || !w_hh || (grad_output && !g) || (projected && !w_hr)) return r;
    tp_autoref *made = projected ? new_matrix(most, hidden, s) : NULL,
               *through = projected ? new_matrix(rows, state, s) : NULL, *to_hidden = new_matrix(rows, gates, s);
    r.v[0] = cell.kind == TP_CELL_GRU ? new_matrix(rows, gates, s) : tp_retain(to_hidden);
    r.v[1] = started(grad_hy, most, state, s);
    r.v[2] = lstm ? started(grad_cy, most, hidden, s) : NULL;
    if (!to_hidden || !r.v[0] || !r.v[1] || (lstm && !r.v[2]) || (projected && (!made || !through)))
        return release_all(&r), r;
    backward b = {g, s, x, w_hh, w_hr, r.v[1], r.v[2], made, r.v[0], to_hidden, through};
    walk w = walk_of(cell, batch_sizes, !reverse);
    while (s->numel && state && next_step(&w))
        if (w.rows && backward_step(&b, &w) < 0) return release_all(&r), r;
    r.v[3] = weight_gradient(to_hidden, x, weight);
    r.v[4] = extra ? extra_gradient(&b, cell, extra) : NULL;
    if (!r.v[3] || (extra && !r.v[4])) return release_all(&r), r;
    for (int i = 0; i < 5; i++)
        if (r.v[i] && !(r.v[i] = tp_narrow_steal(r.v[i], given))) return release_all(&r), r;
    return r;
}

/* The sum over the samples for each bias that there is. */
static int bias_gradients(tp_tensor5 *r, tp_tensor *gates, tp_tensor *of_hidden, bool wanted) {
    if (!wanted) return 0;
    r->v[3] = tp_sum_dim_IntList(gates, TP_INTS(0), false, TP_NO_DTYPE);
    r->v[4] = r->v[3] ? tp_sum_dim_IntList(of_hidden, TP_INTS(0), false, TP_NO_DTYPE) : NULL;
    if (r->v[4]) return 0;
    for (int i = 0; i < 5; i++) {
        tp_release(r->v[i]);
        r->v[i] = NULL;
    }
    return -1;
}
/* The gates with their biases. New. */
static tp_tensor *with_bias(tp_tensor *gates, tp_tensor *bias) {
    return bias ? tp_add_Tensor(gates, bias, TP_SCALAR_I(1)) : tp_retain(gates);
}
/* _thnn_differentiable_lstm_cell_backward(Tensor? grad_hy, Tensor? grad_cy, Tensor input_gates, Tensor hidden_gates,
 * Tensor? input_bias, Tensor? hidden_bias, Tensor cx, Tensor cy) -> (Tensor, Tensor, Tensor, Tensor, Tensor) */
tp_tensor5 _thnn_differentiable_lstm_cell_backward_composite(tp_tensor *grad_hy, tp_tensor *grad_cy,
                                                             tp_tensor *input_gates, tp_tensor *hidden_gates,
                                                             tp_tensor *input_bias, tp_tensor *hidden_bias,
                                                             tp_tensor *cx, tp_tensor *cy) {
    tp_tensor5 r = {{NULL}};
    if (!grad_hy && !grad_cy) return r;
    tp_autoref *a = with_bias(input_gates, input_bias), *b = a ? with_bias(hidden_gates, hidden_bias) : NULL,
               *gates = b ? tp_add_Tensor(a, b, TP_SCALAR_I(1)) : NULL;
    tp_tensor2 made = gates ? tp__lstm_gates_backward(grad_hy, grad_cy, gates, cx, cy) : (tp_tensor2){{NULL}};
    if (!made.v[0]) return r;
    r = (tp_tensor5){{made.v[0], tp_retain(made.v[0]), made.v[1]}};
    bias_gradients(&r, made.v[0], made.v[0], input_bias != NULL);
    return r;
}
/* _thnn_differentiable_gru_cell_backward(Tensor grad_hy, Tensor input_gates, Tensor hidden_gates, Tensor hx, Tensor?
 * input_bias, Tensor? hidden_bias) -> (Tensor, Tensor, Tensor, Tensor, Tensor) */
tp_tensor5 _thnn_differentiable_gru_cell_backward_composite(tp_tensor *grad_hy, tp_tensor *input_gates,
                                                            tp_tensor *hidden_gates, tp_tensor *hx,
                                                            tp_tensor *input_bias, tp_tensor *hidden_bias) {
    tp_tensor5 r = {{NULL}};
    tp_autoref *a = with_bias(input_gates, input_bias), *b = a ? with_bias(hidden_gates, hidden_bias) : NULL;
    tp_tensor3 made = b ? tp__gru_gates_backward(grad_hy, a, b, hx) : (tp_tensor3){{NULL}};
    if (!made.v[0]) return r;
    r = (tp_tensor5){{made.v[0], made.v[1], made.v[2]}};
    bias_gradients(&r, made.v[0], made.v[1], input_bias != NULL);
    return r;
}

/* ---- by what a fused step keeps ---- */

/* _thnn_fused_lstm_cell_backward(Tensor? grad_hy, Tensor? grad_cy, Tensor cx, Tensor cy, Tensor workspace, bool
 * has_bias) -> (Tensor, Tensor, Tensor, Tensor, Tensor) */
tp_tensor5 _thnn_fused_lstm_cell_backward_composite(tp_tensor *grad_hy, tp_tensor *grad_cy, tp_tensor *cx,
                                                    tp_tensor *cy, tp_tensor *workspace, bool has_bias) {
    tp_tensor5 r = {{NULL}};
    if (!grad_hy && !grad_cy) return r;
    tp_tensor2 made = tp__lstm_workspace_backward(grad_hy, grad_cy, cx, cy, workspace);
    if (!made.v[0]) return r;
    r = (tp_tensor5){{made.v[0], tp_retain(made.v[0]), made.v[1]}};
    bias_gradients(&r, made.v[0], made.v[0], has_bias);
    return r;
}
/* _thnn_fused_lstm_cell_backward_impl(Tensor? grad_hy, Tensor? grad_cy, Tensor cx, Tensor cy, Tensor workspace, bool
 * has_bias) -> (Tensor, Tensor, Tensor) */
tp_tensor3 _thnn_fused_lstm_cell_backward_impl_composite(tp_tensor *grad_hy, tp_tensor *grad_cy, tp_tensor *cx,
                                                         tp_tensor *cy, tp_tensor *workspace, bool has_bias) {
    tp_tensor5 all = tp__thnn_fused_lstm_cell_backward(grad_hy, grad_cy, cx, cy, workspace, has_bias);
    tp_release(all.v[1]);
    tp_release(all.v[4]);
    return (tp_tensor3){{all.v[0], all.v[2], all.v[3]}};
}
/* _thnn_fused_gru_cell_backward(Tensor grad_hy, Tensor workspace, bool has_bias) -> (Tensor, Tensor, Tensor, Tensor,
 * Tensor) */
tp_tensor5 _thnn_fused_gru_cell_backward_composite(tp_tensor *grad_hy, tp_tensor *workspace, bool has_bias) {
    tp_tensor3 made = tp__gru_workspace_backward(grad_hy, workspace);
    tp_tensor5 r = {{made.v[0], made.v[1], made.v[2]}};
    if (made.v[0]) bias_gradients(&r, made.v[0], made.v[1], has_bias);
    return r;
}
