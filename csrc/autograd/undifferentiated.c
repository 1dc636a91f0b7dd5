/* undifferentiated.c: boxed kernels for operators without derivatives of their own; see undifferentiated.h. */
#include "autograd/undifferentiated.h"

#include "autograd/node.h"
#include "core/error.h"
#include "dispatch/entry.h"
#include "dispatch/schema.h"

static tp_tensors tensors_of(const tp_value *v) {
    if (v->tag == TP_TENSORS) return v->tensors;
    return v->tag == TP_TENSOR ? (tp_tensors){&v->tensor, 1} : (tp_tensors){0};
}

static int count_tensors(const tp_op *op, const tp_value *args) {
    int n = 0;
    for (int i = 0; i < op->info->nargs; i++) n += (int)tensors_of(&args[i]).size;
    return n;
}

bool tp_is_recorded(const tp_op *op, const tp_value *args) {
    bool wants = false;
    for (int i = 0; tp_grad_enabled() && i < op->info->nargs; i++) wants |= tp_wants_grad_list(tensors_of(&args[i]));
    return wants;
}

static int set_edges(tp_node *node, const tp_op *op, const tp_value *args) {
    int at = 0;
    for (int i = 0; i < op->info->nargs; i++) {
        tp_tensors list = tensors_of(&args[i]);
        if (tp_node_set_edges(node, at, list) < 0) return -1;
        at += (int)list.size;
    }
    return 0;
}

static bool is_argument(const tp_op *op, const tp_value *args, const tp_tensor *t) {
    for (int i = 0; i < op->info->nargs; i++) {
        tp_tensors list = tensors_of(&args[i]);
        for (int64_t k = 0; k < list.size; k++)
            if (list.data[k] == t) return true;
    }
    return false;
}

/* `what` of each argument that the operator writes. */
typedef int (*visitor)(tp_tensor *t, const tp_op *op, tp_node *node);

static int each_written(const tp_op *op, const tp_value *args, tp_node *node, visitor what) {
    for (int i = 0; i < op->info->nargs; i++) {
        if (!op->info->args[i].is_write) continue;
        tp_tensors list = tensors_of(&args[i]);
        for (int64_t k = 0; k < list.size; k++)
            if (list.data[k] && what(list.data[k], op, node) < 0) return -1;
    }
    return 0;
}

static int may_record_write(tp_tensor *t, const tp_op *op, tp_node *node) {
    (void)node;
    return tp_check_inplace(t, op->info->name, true);
}
static int record_write(tp_tensor *t, const tp_op *op, tp_node *node) {
    (void)op;
    return tp_rebase_history(t, node);
}

static int set_result(const tp_op *op, const tp_value *args, tp_tensor *t, tp_node *node) {
    if (!t || is_argument(op, args, t)) return tp_node_skip_output(node);
    return tp_node_set_output(node, t);
}

static int set_results(const tp_op *op, const tp_value *args, tp_value *results, tp_node *node) {
    for (int i = 0; i < op->info->nreturns; i++) {
        tp_value *v = &results[i];
        if (v->tag == TP_TENSOR && set_result(op, args, v->tensor, node) < 0) return -1;
        for (int64_t k = 0; v->tag == TP_TENSOR_SEQ && k < v->seq->size; k++)
            if (set_result(op, args, v->seq->items[k], node) < 0) return -1;
    }
    return 0;
}

int tp_undifferentiated(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    (void)context;
    int status;
    if (!tp_is_recorded(op, args)) return tp_redispatch_boxed(op, ks & TP_BELOW_AUTOGRAD, args, results);
    tp_autonode *node = tp_not_differentiable_node(op->info->name, count_tensors(op, args));
    if (!node || set_edges(node, op, args) < 0 || each_written(op, args, node, may_record_write) < 0) return -1;
    {
        tp_exclude_guard guard = tp_exclude(TP_AUTOGRAD_KEYS);
        status = tp_redispatch_boxed(op, ks & TP_BELOW_AUTOGRAD, args, results);
    }
    if (status == 0 && each_written(op, args, node, record_write) == 0 && set_results(op, args, results, node) == 0)
        return 0;
    for (int i = 0; status == 0 && i < op->info->nreturns; i++) tp_value_release(&results[i]);
    return -1;
}

static int may_write(tp_tensor *t, const tp_op *op, tp_node *node) {
    (void)node;
    return tp_check_writable(t, op->info->name) < 0 ? -1 : tp_may_write(t, op->info->name);
}
static int note_write(tp_tensor *t, const tp_op *op, tp_node *node) {
    (void)node;
    tp_note_write(t, op->info->name);
    return 0;
}

int tp_count_writes(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    (void)context;
    int status;
    if (each_written(op, args, NULL, may_write) < 0) return -1;
    {
        tp_exclude_guard guard = tp_exclude(TP_BIT(ADInplaceOrView));
        status = tp_redispatch_boxed(op, ks & TP_BELOW_ADINPLACEORVIEW, args, results);
    }
    return status < 0 ? status : each_written(op, args, NULL, note_write);
}

int tp_register_defaults(tp_op *op) {
    bool writes = false;
    for (int i = 0; i < op->info->nargs; i++) writes |= op->info->args[i].is_write;
    if (tp_register_default(op, TP_ALIAS_KEY(Autograd), tp_undifferentiated, "no derivative is registered") < 0)
        return -1;
    if (!writes) return 0;
    return tp_register_default(op, TP_KEY_ADInplaceOrView, tp_count_writes, "counts what is written") < 0 ? -1 : 0;
}
