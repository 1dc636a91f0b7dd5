/* missing.c: what is said where an operator has no kernel for what it was called with. */
#include "core/layout.h"
#include "dispatch/op.h"

#include <stdio.h>

static void describe_tensor_arguments(const tp_op *op, const tp_value *args, tp_text *text) {
    const char *comma = "";
    for (int i = 0; i < op->info->nargs; i++) {
        if (args[i].tag != TP_TENSOR) continue;
        char device[40];
        tp_text_add(text, "%s%s: %s on %s", comma, op->info->args[i].name, tp_dtype_names[args[i].tensor->dtype],
                    tp_device_print(args[i].tensor->device, device));
        comma = ", ";
    }
    if (!*comma) tp_text_add(text, "no tensors");
}

static void list_backends(const tp_op *op, tp_text *text) {
    const char *comma = "";
    for (int k = TP_KEY_CPU; k <= TP_KEY_ZeroTensor; k++) {
        tp_origin origin; /* a fallback has just refused, or would ask another backend's kernel */
        if (tp_find_origin(op, (tp_key)k, &origin) && !origin.is_fallback && !origin.is_fallthrough) {
            tp_text_add(text, "%s%s", comma, tp_key_name((tp_key)k));
            comma = ", ";
        }
    }
    if (!*comma) tp_text_add(text, "none");
}

/* A tensor of another layout among the arguments, or NULL. */
static const tp_tensor *of_a_layout(const tp_op *op, const tp_value *args) {
    for (int i = 0; i < op->info->nargs; i++) {
        int64_t n = args[i].tag == TP_TENSORS ? args[i].tensors.size : args[i].tag == TP_TENSOR;
        for (int64_t k = 0; k < n; k++) {
            const tp_tensor *t = args[i].tag == TP_TENSORS ? args[i].tensors.data[k] : args[i].tensor;
            if (t && t->keys & TP_LAYOUT_KEYS) return t;
        }
    }
    return NULL;
}

int tp_refuse_layout(const tp_op *op, const tp_tensor *t) {
    char name[128];
    return tp_fail(TP_NotImplementedError,
                   "%s: there is no kernel for tensors of the layout %s. %s gives a dense one, whose "
                   "operators all others are",
                   tp_op_name(op, name), tp_layouts[tp_layout_of(t)].name,
                   tp_is_quantized(t) ? "Tensor.dequantize()" : "Tensor.to_dense()");
}

int tp_missing_kernel(const tp_op *op, tp_keyset ks, const tp_value *args) {
    char name[128];
    tp_key key = tp_live_key(op, ks);
    tp_autotext arguments = {0}, backends = {0};
    if ((ks & TP_BIT(Meta)) && tp_needs_values(op))
        return tp_fail(
            TP_NotImplementedError, "%s: not possible on Meta tensors, which have no values: the operator is tagged %s",
            tp_op_name(op, name),
            op->info->tag_bits & TP_TAG_DYNAMIC_OUTPUT_SHAPE ? "dynamic_output_shape" : "data_dependent_output");
    for (int i = 0; key == TP_KEY_Undefined && i < op->info->nargs; i++)
        if (args[i].tag == TP_TENSORS && args[i].tensors.size == 0)
            return op->info->empty_list == TP_RuntimeError
                       ? tp_fail(TP_RuntimeError, "%s expects a non-empty input tensor list", op->info->name)
                   : op->info->empty_list == TP_ValueError
                       ? tp_fail(TP_ValueError, "torch.%s(): expected a non-empty list of Tensors, %s is empty",
                                 op->info->name, op->info->args[i].name)
                   : op->info->empty_list == TP_IndexError
                       ? tp_fail(TP_RuntimeError, "Tensor list must have at least one tensor.")
                       : tp_fail(TP_RuntimeError,
                                 "%s expects a non-empty TensorList: expected a non-empty list of Tensors, %s is empty",
                                 op->info->name, op->info->args[i].name);
    const tp_tensor *other = TP_LAYOUT_KEYS >> key & 1 ? of_a_layout(op, args) : NULL;
    if (other) return tp_refuse_layout(op, other);
    if (op->info->registered_by)
        return tp_fail(TP_NotImplementedError, "Could not run '%s': its kernels come with %s. next step: import %s",
                       tp_op_name(op, name), op->info->registered_by, op->info->registered_by);
    describe_tensor_arguments(op, args, &arguments);
    list_backends(op, &backends);
    return tp_fail(TP_NotImplementedError,
                   "Could not run '%s' on %s: it has no kernel for that backend.\n"
                   "  arguments: %s\n"
                   "  backends that have one: %s\n"
                   "  next step: move the tensors to one of these devices, or register a kernel "
                   "(tensorpy.dispatch.table(\"%s\") shows what is there)",
                   tp_op_name(op, name), key == TP_KEY_Undefined ? "no backend" : tp_key_name(key),
                   arguments.text ? arguments.text : "", backends.text ? backends.text : "", tp_op_name(op, name));
}
