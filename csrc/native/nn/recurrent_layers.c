/* recurrent_layers.c: recurrent networks of several layers and directions, and single cells: a product of all inputs
 * with their weights for each direction of each layer, and _recurrent_layer for the rest. */
#include "native/nn/recurrent.h"

#include "NativeFunctions.h"
#include "native/common/host_ints.h"
#include "prim/table.h"

#include <string.h>

typedef struct {
    tp_recurrent cell;
    tp_tensor *hx, *cx; /* [layers * directions, batch, features] */
    tp_tensors params;
    bool has_biases, projected, bidirectional;
    int64_t layers, per; /* parameters of a direction of a layer */
    double dropout;      /* 0 outside of training */
    tp_ints batch_sizes;
} network;

/* ---- one direction of a layer ---- */

/* Weights of one direction: w_ih, w_hh, and b_ih, b_hh, w_hr where they are there. */
typedef struct {
    tp_tensor *w_ih, *w_hh, *b_ih, *b_hh, *w_hr;
} weights;

static weights weights_of(const network *net, int64_t i) {
    tp_tensor *const *p = net->params.data + i * net->per;
    weights w = {.w_ih = p[0], .w_hh = p[1]};
    if (net->has_biases) w.b_ih = p[2], w.b_hh = p[3];
    if (net->projected) w.w_hr = p[net->per - 1];
    return w;
}

static tp_tensor *met(tp_tensor *t, const tp_tensor *gates, bool lowered) {
    return t && lowered ? tp_to_dtype(t, (tp_dtype)gates->dtype, false, false, TP_NO_FORMAT) : tp_retain(t);
}

static int check_dtypes(const tp_recurrent *cell, const weights *w) {
    const tp_tensor *others[] = {w->w_hh, w->b_ih, w->b_hh, w->w_hr};
    for (int i = 0; i < 4; i++)
        if (others[i] && others[i]->dtype != w->w_ih->dtype)
            return tp_fail(TP_RuntimeError, "%s: expected all weights to have dtype %s, but one has %s", cell->name,
                           tp_dtype_names[w->w_ih->dtype], tp_dtype_names[others[i]->dtype]);
    return 0;
}

static tp_tensor5 run_direction(const tp_recurrent *cell, tp_tensor *input, tp_tensor *hx, tp_tensor *cx,
                                const weights *w, tp_ints batch_sizes, bool reverse) {
    tp_tensor5 none = {{NULL}};
    if (check_dtypes(cell, w) < 0) return none;
    bool gru = cell->kind == TP_CELL_GRU; /* whose candidate scales the hidden product with its bias */
    tp_autoref *bias = w->b_ih && w->b_hh && !gru ? tp_add_Tensor(w->b_ih, w->b_hh, TP_SCALAR_I(1))
                                                  : tp_retain(w->b_ih ? w->b_ih
                                                              : gru   ? NULL
                                                                      : w->b_hh);
    if ((w->b_ih || (w->b_hh && !gru)) && !bias) return none;
    tp_autoref *gates = tp_linear(input, w->w_ih, bias);
    if (!gates) return none;
    /* Where autocast has lowered the product, what meets it is lowered too. */
    bool lowered = gates->dtype != w->w_ih->dtype;
    tp_autoref *h = met(hx, gates, lowered), *c = met(cx, gates, lowered), *w_hh = met(w->w_hh, gates, lowered),
               *extra = met(gru ? w->b_hh : w->w_hr, gates, lowered);
    if (!h || !w_hh || (cx && !c)) return none;
    bool keep = !tp_tls.grad_disabled || tp_tls.forward;
    return tp__recurrent_layer(cell->name, gates, h, c, w_hh, extra, batch_sizes, reverse, keep);
}

/* ---- layers ---- */

/* A layer's outputs; its last states go to their places in `h` and `c`. */
static tp_tensor *run_layer(const network *net, tp_tensor *input, int64_t layer, tp_tensor_seq *h, tp_tensor_seq *c) {
    int directions = net->bidirectional ? 2 : 1;
    tp_autoseq *outputs = tp_tensor_seq_new(directions);
    for (int d = 0; outputs && d < directions; d++) {
        int64_t i = layer * directions + d;
        weights w = weights_of(net, i);
        tp_autoref *hx = tp_select_int(net->hx, 0, i), *cx = net->cx ? tp_select_int(net->cx, 0, i) : NULL;
        if (!hx || (net->cx && !cx)) return NULL;
        tp_tensor5 r = run_direction(&net->cell, input, hx, cx, &w, net->batch_sizes, d == 1);
        outputs->items[d] = r.v[0];
        h->items[i] = r.v[1];
        c->items[i] = r.v[2];
        tp_release(r.v[3]);
        tp_release(r.v[4]);
        if (!r.v[0]) return NULL;
    }
    if (!outputs) return NULL;
    return directions == 1 ? tp_retain(outputs->items[0]) : tp_cat(tp_tensor_seq_borrow(outputs), 1);
}

/* The outputs of the last layer as rows, and the states of all. */
static tp_tensor3 run_layers(const network *net, tp_tensor *rows) {
    tp_tensor3 r = {{NULL}};
    int64_t states = net->layers * (net->bidirectional ? 2 : 1);
    tp_autoseq *h = tp_tensor_seq_new(states), *c = tp_tensor_seq_new(states);
    tp_tensor *x = h && c ? tp_retain(rows) : NULL;
    for (int64_t layer = 0; x && layer < net->layers; layer++) {
        tp_autoref *input = x, *output = run_layer(net, input, layer, h, c);
        bool drops = output && net->dropout != 0 && layer < net->layers - 1;
        x = drops ? tp_dropout(output, net->dropout, true) : tp_retain(output);
    }
    tp_autoref *hy = x ? tp_stack(tp_tensor_seq_borrow(h), 0) : NULL;
    tp_autoref *cy = hy && net->cx ? tp_stack(tp_tensor_seq_borrow(c), 0) : NULL;
    if (!hy || (net->cx && !cy)) return tp_release(x), r;
    r.v[0] = x;
    r.v[1] = tp_take(hy);
    r.v[2] = tp_take(cy);
    return r;
}

/* ---- what is asked of the arguments ---- */

static int check_state(const network *net, const tp_tensor *state, const char *name, int64_t batch) {
    int64_t wanted = net->layers * (net->bidirectional ? 2 : 1);
    if (state->ndim == 3 && state->sizes[0] == wanted && state->sizes[1] == batch) return 0;
    tp_autotext sizes = {0};
    tp_text_ints(&sizes, tp_sizes(state));
    return tp_fail(TP_RuntimeError, "%s: expected %s of size [%lld, %lld, features], but got %s", net->cell.name, name,
                   (long long)wanted, (long long)batch, sizes.text);
}

static int check_weights(const network *net, int64_t i, int64_t features) {
    weights w = weights_of(net, i);
    int64_t gates = w.w_hh->ndim == 2 ? w.w_hh->sizes[0] : -1, state = net->hx->sizes[2];
    if (w.w_ih->ndim != 2 || w.w_ih->sizes[0] != gates)
        return tp_fail(TP_RuntimeError, "%s: the weights of inputs and states have different numbers of gates",
                       net->cell.name);
    if (w.w_ih->sizes[1] != features)
        return tp_fail(TP_RuntimeError, "input has inconsistent input_size: got %lld expected %lld",
                       (long long)features, (long long)w.w_ih->sizes[1]);
    if (w.w_hh->sizes[1] != state)
        return tp_fail(TP_RuntimeError, "hidden0 has inconsistent hidden_size: got %lld, expected %lld",
                       (long long)state, (long long)w.w_hh->sizes[1]);
    return 0;
}

static int check_network(network *net, const tp_tensor *input, int64_t steps, int64_t batch) {
    int64_t directions = net->bidirectional ? 2 : 1, states = net->layers * directions;
    if (steps <= 0) return tp_fail(TP_RuntimeError, "Expected sequence length to be larger than 0 in RNN");
    if (check_state(net, net->hx, "hx", batch) < 0 || (net->cx && check_state(net, net->cx, "cx", batch) < 0))
        return -1;
    net->projected = net->cx && net->cx->sizes[2] != net->hx->sizes[2];
    net->per = (net->has_biases ? 4 : 2) + net->projected;
    if (net->layers < 1 || net->params.size != states * net->per)
        return tp_fail(TP_RuntimeError, "%s: expected %lld parameters, but got %lld", net->cell.name,
                       (long long)(states * net->per), (long long)net->params.size);
    for (int64_t i = 0; i < states; i++) {
        int64_t features = i < directions ? input->sizes[input->ndim - 1] : net->hx->sizes[2] * directions;
        if (check_weights(net, i, features) < 0) return -1;
    }
    return 0;
}

/* ---- sequences ---- */

static tp_tensor3 over_input(network *net, tp_tensor *input, bool batch_first) {
    tp_tensor3 r = {{NULL}};
    if (input->ndim != 3)
        return tp_fail(TP_RuntimeError, "%s: expected an input of 3 dimensions, but got %lld", net->cell.name,
                       (long long)input->ndim),
               r;
    tp_autoref *turned = batch_first ? tp_transpose_int(input, 0, 1) : tp_retain(input);
    if (!turned) return r;
    int64_t steps = turned->sizes[0], batch = turned->sizes[1], *sizes;
    if (check_network(net, turned, steps, batch) < 0) return r;
    tp_autoref *table = tp_table_int64(TP_INTS(steps), &sizes),
               *rows = table ? tp_reshape(turned, TP_INTS(steps * batch, turned->sizes[2])) : NULL;
    if (!rows) return r;
    for (int64_t t = 0; t < steps; t++) sizes[t] = batch;
    net->batch_sizes = (tp_ints){sizes, steps};
    r = run_layers(net, rows);
    if (!r.v[0]) return r;
    tp_autoref *flat = r.v[0], *output = tp_reshape(flat, TP_INTS(steps, batch, flat->sizes[1]));
    r.v[0] = output && batch_first ? tp_transpose_int(output, 0, 1) : tp_retain(output);
    if (r.v[0]) return r;
    tp_release(r.v[1]);
    tp_release(r.v[2]);
    return (tp_tensor3){{NULL}};
}

static tp_tensor3 over_data(network *net, tp_tensor *data, tp_tensor *batch_sizes) {
    tp_tensor3 r = {{NULL}};
    tp_autoref *table = tp_host_ints(batch_sizes);
    const int64_t *sizes = table ? tp_table_values(table) : NULL;
    if (!table || (table->numel && !sizes)) return r;
    if (batch_sizes->dtype != TP_INT64)
        return tp_fail(TP_RuntimeError, "%s: batch_sizes are int64, but got %s", net->cell.name,
                       tp_dtype_names[batch_sizes->dtype]),
               r;
    if (data->ndim != 2 || table->ndim != 1)
        return tp_fail(TP_RuntimeError, "%s: packed data has 2 dimensions and batch_sizes 1, but got %lld and %lld",
                       net->cell.name, (long long)data->ndim, (long long)table->ndim),
               r;
    if (check_network(net, data, table->numel, table->numel ? sizes[0] : 0) < 0) return r;
    for (int64_t t = 1; t < table->numel; t++)
        if (sizes[t] > sizes[t - 1])
            return tp_fail(TP_RuntimeError, "%s: batch_sizes have to descend", net->cell.name), r;
    net->batch_sizes = (tp_ints){sizes, table->numel};
    return run_layers(net, data);
}

static int start(network *net, const char *cell, tp_tensor *hx, tp_tensor *cx, tp_tensors params, bool has_biases,
                 int64_t layers, double dropout, bool train, bool bidirectional) {
    *net = (network){.hx = hx,
                     .cx = cx,
                     .params = params,
                     .has_biases = has_biases,
                     .layers = layers,
                     .dropout = train ? dropout : 0,
                     .bidirectional = bidirectional};
    return tp_recurrent_cell(cell, &net->cell);
}

static int check_pair(const char *op, tp_tensors hx) {
    return hx.size == 2 ? 0 : tp_fail(TP_RuntimeError, "%s expects two hidden states", op);
}

/* lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train,
 * bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor) */
tp_tensor3 lstm_input_composite(tp_tensor *input, tp_tensors hx, tp_tensors params, bool has_biases, int64_t num_layers,
                                double dropout, bool train, bool bidirectional, bool batch_first) {
    network net;
    if (check_pair("lstm", hx) < 0 ||
        start(&net, "lstm", hx.data[0], hx.data[1], params, has_biases, num_layers, dropout, train, bidirectional) < 0)
        return (tp_tensor3){{NULL}};
    return over_input(&net, input, batch_first);
}

/* lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float
 * dropout, bool train, bool bidirectional) -> (Tensor, Tensor, Tensor) */
tp_tensor3 lstm_data_composite(tp_tensor *data, tp_tensor *batch_sizes, tp_tensors hx, tp_tensors params,
                               bool has_biases, int64_t num_layers, double dropout, bool train, bool bidirectional) {
    network net;
    if (check_pair("lstm", hx) < 0 ||
        start(&net, "lstm", hx.data[0], hx.data[1], params, has_biases, num_layers, dropout, train, bidirectional) < 0)
        return (tp_tensor3){{NULL}};
    return over_data(&net, data, batch_sizes);
}

static tp_tensor2 first_two(tp_tensor3 r) { return (tp_tensor2){{r.v[0], r.v[1]}}; }

/* gru.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool
 * bidirectional, bool batch_first) -> (Tensor, Tensor), and .data for packed sequences; rnn_tanh and rnn_relu likewise.
 */
#define NETWORK(op, cell)                                                                                     \
    tp_tensor2 op##_input_composite(tp_tensor *input, tp_tensor *hx, tp_tensors params, bool has_biases,      \
                                    int64_t num_layers, double dropout, bool train, bool bidirectional,       \
                                    bool batch_first) {                                                       \
        network net;                                                                                          \
        if (start(&net, cell, hx, NULL, params, has_biases, num_layers, dropout, train, bidirectional) < 0)   \
            return (tp_tensor2){{NULL}};                                                                      \
        return first_two(over_input(&net, input, batch_first));                                               \
    }                                                                                                         \
    tp_tensor2 op##_data_composite(tp_tensor *data, tp_tensor *batch_sizes, tp_tensor *hx, tp_tensors params, \
                                   bool has_biases, int64_t num_layers, double dropout, bool train,           \
                                   bool bidirectional) {                                                      \
        network net;                                                                                          \
        if (start(&net, cell, hx, NULL, params, has_biases, num_layers, dropout, train, bidirectional) < 0)   \
            return (tp_tensor2){{NULL}};                                                                      \
        return first_two(over_data(&net, data, batch_sizes));                                                 \
    }
NETWORK(gru, "gru")
NETWORK(rnn_tanh, "tanh")
NETWORK(rnn_relu, "relu")

/* ---- cells ---- */

static int check_cell(const tp_recurrent *cell, const tp_tensor *input, const tp_tensor *const states[2],
                      const weights *w) {
    int64_t features = w->w_ih->ndim == 2 ? w->w_ih->sizes[1] : -1,
            hidden = w->w_hh->ndim == 2 ? w->w_hh->sizes[1] : -1;
    if (input->ndim != 2 || states[0]->ndim != 2 || (states[1] && states[1]->ndim != 2))
        return tp_fail(TP_RuntimeError, "%s: a cell takes inputs and states of 2 dimensions", cell->name);
    if (input->sizes[1] != features)
        return tp_fail(TP_RuntimeError, "input has inconsistent input_size: got %lld expected %lld",
                       (long long)input->sizes[1], (long long)features);
    for (int i = 0; i < 2 && states[i]; i++) {
        if (states[i]->sizes[0] != input->sizes[0])
            return tp_fail(TP_RuntimeError, "Input batch size %lld doesn't match hidden%d batch size %lld",
                           (long long)input->sizes[0], i, (long long)states[i]->sizes[0]);
        if (states[i]->sizes[1] != hidden)
            return tp_fail(TP_RuntimeError, "hidden%d has inconsistent hidden_size: got %lld, expected %lld", i,
                           (long long)states[i]->sizes[1], (long long)hidden);
    }
    return 0;
}

static tp_tensor2 run_cell(const char *name, tp_tensor *input, tp_tensor *hx, tp_tensor *cx, const weights *w) {
    tp_tensor2 r = {{NULL}};
    tp_recurrent cell;
    if (tp_recurrent_cell(name, &cell) < 0 || check_cell(&cell, input, (const tp_tensor *const[]){hx, cx}, w) < 0)
        return r;
    tp_tensor5 made = run_direction(&cell, input, hx, cx, w, TP_INTS(input->sizes[0]), false);
    for (int i = 0; i < 5; i++)
        if (i != 1 && !(i == 2 && cx)) tp_release(made.v[i]);
    r.v[0] = made.v[1];
    if (cx) r.v[1] = made.v[2];
    return r;
}

/* lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> (Tensor,
 * Tensor) */
tp_tensor2 lstm_cell_composite(tp_tensor *input, tp_tensors hx, tp_tensor *w_ih, tp_tensor *w_hh, tp_tensor *b_ih,
                               tp_tensor *b_hh) {
    const weights w = {w_ih, w_hh, b_ih, b_hh, NULL};
    if (check_pair("lstm_cell", hx) < 0) return (tp_tensor2){{NULL}};
    return run_cell("lstm", input, hx.data[0], hx.data[1], &w);
}

/* gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor; rnn_tanh
 * and rnn_relu likewise. */
#define CELL(op, cell)                                                                                            \
    tp_tensor *op##_composite(tp_tensor *input, tp_tensor *hx, tp_tensor *w_ih, tp_tensor *w_hh, tp_tensor *b_ih, \
                              tp_tensor *b_hh) {                                                                  \
        const weights w = {w_ih, w_hh, b_ih, b_hh, NULL};                                                         \
        return run_cell(cell, input, hx, NULL, &w).v[0];                                                          \
    }
CELL(gru_cell, "gru")
CELL(rnn_tanh_cell, "tanh")
CELL(rnn_relu_cell, "relu")
