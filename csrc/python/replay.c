/* replay.c: which calls are replayed: what they depend on, compared before; what they leave behind, set after.
 *
 * A call is known by its arguments (the classes and sizes of tensors, the values of numbers and words, other objects
 * themselves), by the modes that are on, by the settings of modules and optimizers, and by which gradients there are.
 * A call that nothing is known of is followed and written down. After three that went one way it is replayed; now and
 * then it is followed again and compared (an audit), since a Python program may depend on what nobody looks at. */
#include "python/replay_parts.h"

#include "autocast/autocast.h"
#include "autograd/node.h"
#include "core/determinism.h"
#include "core/dtype.h"
#include "core/parallel.h"
#include "core/tls.h"
#include "dispatch/op.h"

#include <string.h>

/* ---- what else a call depends on ---- */

int64_t tp_py_modules_version;
__thread tp_py_replays *tp_py_writing;

#define BYTE(value, at) ((uint64_t)(uint8_t)(value) << 8 * (at))

tp_py_call_modes tp_py_modes_now(void) {
    uint64_t dtypes = BYTE(tp_autocast_dtype(TP_DEVICE_CPU), 0) | BYTE(tp_default_dtype(), 1);
    uint64_t device = BYTE(tp_tls.scoped_type, 2) | BYTE(tp_tls.scoped_index, 3);
    uint64_t gradients = BYTE(tp_tls.grad_disabled, 0) | BYTE(tp_tls.inference_mode, 1) | BYTE(tp_anomaly_mode(), 2);
    uint64_t others = BYTE(tp_tls.functions_off, 4) | BYTE(tp_autocast_remembers(), 5) |
                      BYTE(tp_fill_unset_wanted() + 2 * tp_fills_unset(), 6) | BYTE(tp_determinism(), 7);
    return (tp_py_call_modes){{tp_tls.include, tp_tls.exclude, dtypes | device, gradients | others,
                               (uint64_t)tp_get_num_threads(), (uint64_t)tp_kernel_changes()}};
}

/* ---- variants ---- */

static void clear_settings(variant *v) {
    for (Py_ssize_t i = 0; i < v->nsettings; i++) {
        Py_DECREF(v->settings[i].group);
        Py_XDECREF(v->settings[i].key);
        Py_DECREF(v->settings[i].value);
    }
    PyMem_Free(v->settings);
    v->settings = NULL;
    v->nsettings = 0;
}

static void clear_leaves(variant *v) {
    for (Py_ssize_t i = 0; i < v->nleaves; i++) {
        tp_release(v->leaves[i].tensor);
        tp_storage_release(v->leaves[i].kept);
    }
    PyMem_Free(v->leaves);
    v->leaves = NULL;
    v->nleaves = 0;
}

static void clear_nodes(variant *v) {
    for (Py_ssize_t i = 0; i < v->nnodes; i++) tp_node_release(v->nodes[i].node);
    PyMem_Free(v->nodes);
    v->nodes = NULL;
    v->nnodes = 0;
}

/* What was learned of the last call; the arguments stay. */
void tp_py_forget_call(variant *v) {
    tp_py_facts_clear(&v->results);
    clear_settings(v);
    clear_leaves(v);
    clear_nodes(v);
    tp_tape_free(v->tape);
    v->tape = NULL;
    v->ready = false;
}

static void free_variant(variant *v) {
    if (!v) return;
    tp_py_forget_call(v);
    tp_py_facts_clear(&v->arguments);
    PyMem_Free(v->inputs);
    PyMem_Free(v);
}

tp_py_replays *tp_py_replays_new(void) {
    tp_py_replays *r = PyMem_Calloc(1, sizeof *r);
    if (r) tp_py_tensors_begin(&r->given);
    else PyErr_NoMemory();
    return r;
}

void tp_py_replays_free(tp_py_replays *r) {
    if (!r) return;
    for (int i = 0; i < MOST_VARIANTS; i++) free_variant(r->variants[i]);
    PyMem_Free(r->leaves);
    PyMem_Free(r->added);
    PyMem_Free(r);
}

static int visit_facts(const tp_py_facts *f, visitproc visit, void *arg) {
    for (Py_ssize_t i = 0; i < f->count; i++) Py_VISIT(f->items[i].object);
    return 0;
}

int tp_py_replays_traverse(tp_py_replays *r, visitproc visit, void *arg) {
    for (int i = 0; r && i < MOST_VARIANTS && r->variants[i]; i++) {
        const variant *v = r->variants[i];
        int status = visit_facts(&v->arguments, visit, arg);
        if (status) return status;
        for (Py_ssize_t k = 0; k < v->nsettings; k++) {
            Py_VISIT(v->settings[k].group);
            Py_VISIT(v->settings[k].key);
            Py_VISIT(v->settings[k].value);
        }
    }
    return 0;
}

/* 1, 0, or -1 raised. */
int tp_py_arguments_fit(const variant *v, tp_py_tensors *given, PyObject *const *args, size_t n, PyObject *names) {
    Py_ssize_t at = 0, nargs = PyVectorcall_NARGS(n), nnames = names ? PyTuple_GET_SIZE(names) : 0;
    tp_py_tensors_empty(given);
    for (Py_ssize_t i = 0; i < nargs + nnames; i++) {
        if (i >= nargs) {
            if (at == v->arguments.count) return 0;
            const tp_py_fact *name = &v->arguments.items[at++];
            if (name->kind != TP_FACT_CONSTANT ||
                !tp_py_same_constant(name->object, PyTuple_GET_ITEM(names, i - nargs)))
                return 0;
        }
        int same = tp_py_facts_fit(&v->arguments, &at, given, args[i]);
        if (same <= 0) return same;
    }
    return at == v->arguments.count;
}

variant *tp_py_find_variant(tp_py_replays *r, tp_py_tensors *given, PyObject *const *args, size_t n, PyObject *names) {
    tp_py_call_modes now = tp_py_modes_now();
    for (int i = 0; i < MOST_VARIANTS && r->variants[i]; i++) {
        variant *v = r->variants[i];
        if (!tp_py_same_modes(&now, &v->modes)) continue;
        int same = tp_py_arguments_fit(v, given, args, n, names);
        if (same < 0) return NULL;
        if (!same) continue;
        if (i) memmove(r->variants + 1, r->variants, sizeof *r->variants * (size_t)i);
        return r->variants[0] = v;
    }
    return NULL;
}

variant *tp_py_new_variant(tp_py_replays *r) {
    variant *v = PyMem_Calloc(1, sizeof *v);
    if (!v) return (void)PyErr_NoMemory(), NULL;
    v->modes = tp_py_modes_now();
    v->arguments = r->arguments;
    r->arguments = (tp_py_facts){0};
    if (r->variants[MOST_VARIANTS - 1] && r->variants[MOST_VARIANTS - 1]->running) {
        free_variant(v);
        return PyErr_SetString(PyExc_RuntimeError, "another thread runs the oldest"), NULL;
    }
    free_variant(r->variants[MOST_VARIANTS - 1]);
    memmove(r->variants + 1, r->variants, sizeof *r->variants * (MOST_VARIANTS - 1));
    return r->variants[0] = v;
}

/* ---- what is compared before a replay ---- */

PyObject *tp_py_setting_now(const setting *s) {
    if (!s->key) return PyLong_FromSsize_t(PyList_GET_SIZE(s->group));
    return Py_XNewRef(PyDict_GetItem(s->group, s->key));
}

static bool same_length(const setting *s) { return PyLong_AsSsize_t(s->value) == PyList_GET_SIZE(s->group); }

/* Whether the settings are as they were, or only those differ that are inputs of the tape, which get them. */
static bool settings_fit(variant *v) {
    for (Py_ssize_t i = 0; i < v->nsettings; i++) {
        setting *s = &v->settings[i];
        if (!s->key && same_length(s)) continue;
        if (!s->key) return false;
        PyObject *now = PyDict_GetItem(s->group, s->key); /* borrowed */
        if (!now) return false;
        if (tp_py_same_constant(now, s->value)) continue;
        bool is_input = false;
        for (Py_ssize_t k = 0; k < v->ninputs && PyFloat_CheckExact(now); k++) {
            const input *in = &v->inputs[k];
            if (in->setting != i) continue;
            is_input = true;
            tp_tape_set_number(v->tape, &in->place, in->sign * PyFloat_AS_DOUBLE(now));
        }
        if (!is_input) return false;
        Py_SETREF(s->value, Py_NewRef(now));
    }
    return true;
}

static bool leaves_fit(const variant *v) {
    for (Py_ssize_t i = 0; i < v->nleaves; i++) {
        const leaf *l = &v->leaves[i];
        tp_autoref *grad = tp_grad(l->tensor);
        if (l->kept ? !grad || grad->storage != l->kept : l->starts_none && grad) return false;
    }
    return true;
}

static bool is_audited(const variant *v) {
    return (v->calls >= 8 && !(v->calls & (v->calls - 1))) || v->calls % AUDIT_EVERY == 0;
}

/* Whether all that is looked at beside the arguments is as it was. */
static bool fits_else(variant *v) { return v->modules == tp_py_modules_version && settings_fit(v) && leaves_fit(v); }

bool tp_py_is_audit(variant *v) { return v->ready && is_audited(v) && fits_else(v); }

/* ---- replaying ---- */

/* Whether the function is called instead of a replay that has failed because of values: it may catch the error. */
static bool may_catch(const variant *v) {
    tp_error_class is = tp_tls.error_class;
    return (is == TP_RuntimeError || is == TP_IndexError || is == TP_ValueError) && !tp_tape_writes(v->tape);
}

static PyObject *build(const tp_py_facts *f, Py_ssize_t *at, const tp_py_tensors *given, PyObject **objects) {
    const tp_py_fact *known = &f->items[(*at)++];
    if (known->kind == TP_FACT_TENSOR)
        return Py_NewRef(known->size < 0 ? given->objects[-1 - known->size] : objects[known->size]);
    if (known->kind == TP_FACT_CONSTANT) return Py_NewRef(known->object);
    PyObject *made = known->object == (PyObject *)&PyDict_Type   ? PyDict_New()
                     : known->object == (PyObject *)&PyList_Type ? PyList_New(known->size)
                                                                 : PyTuple_New(known->size);
    for (Py_ssize_t i = 0; made && i < known->size; i++) {
        PyObject *item = build(f, at, given, objects), *value = NULL;
        if (item && PyDict_Check(made)) {
            value = build(f, at, given, objects);
            if (!value || PyDict_SetItem(made, item, value) < 0) Py_CLEAR(made);
            Py_XDECREF(value);
            Py_DECREF(item);
        } else if (!item) Py_CLEAR(made);
        else if (PyList_Check(made)) PyList_SET_ITEM(made, i, item);
        else PyTuple_SET_ITEM(made, i, item);
    }
    return made;
}

/* The gradient's graph has been run in the call: it is the one of the call that was written down, and refuses. */
static int give_node(tp_tensor *t, const tp_edge *edge) {
    tp_autograd_meta *m = tp_autograd_meta_ensure(t);
    if (!m) return -1;
    m->grad_fn = tp_node_retain(edge->node);
    m->output_nr = edge->input_nr;
    t->flags |= TP_FLAG_REQUIRES_GRAD;
    return 0;
}

static int put_grads(const variant *v, tp_tensor **made) {
    for (Py_ssize_t i = 0; i < v->nleaves; i++) {
        const leaf *l = &v->leaves[i];
        if (!l->kept) tp_put_grad_steal(l->tensor, l->result < 0 ? NULL : tp_retain(made[l->result]));
    }
    return 0;
}

static PyObject *give(const variant *v, const tp_py_tensors *given, tp_tensor **made, Py_ssize_t nmade) {
    PyObject *objects[nmade + 1], *result = NULL;
    Py_ssize_t count = 0, at = 0;
    put_grads(v, made);
    for (; count < v->nnodes; count++) { /* the tape's first results are those that the function gives */
        if (v->nodes[count].node && give_node(made[count], &v->nodes[count]) < 0) break;
        objects[count] = tp_py_wrap(made[count]);
        if (!objects[count]) break;
    }
    if (count == v->nnodes) result = build(&v->results, &at, given, objects);
    else if (!PyErr_Occurred()) tp_py_raise();
    while (count--) Py_DECREF(objects[count]);
    return result;
}

bool tp_py_is_seen(void) { return tp_tls.include & TP_BIT(Profiler) || tp_tls.asked || tp_tls.saved_hooks; }

bool tp_py_replay(tp_py_replays *r, PyObject *const *args, size_t n, PyObject *names, PyObject **result) {
    if (tp_unlikely(tp_py_is_seen())) return false;
    tp_py_tensors given;
    tp_py_tensors_begin(&given);
    variant *v = tp_py_find_variant(r, &given, args, n, names);
    *result = NULL;
    bool done = false;
    if (!v) {
        tp_py_tensors_clear(&given);
        return PyErr_Occurred() != NULL;
    }
    if (v->ready && v != r->current && !is_audited(v) && fits_else(v)) {
        Py_ssize_t nmade = v->nresults;
        tp_tensor *made[nmade + 1];
        v->running++; /* kernels may give the host lock up */
        int status = tp_tape_run(v->tape, given.items, made);
        v->running--;
        if (status == 0) {
            r->replayed++;
            v->calls++;
            *result = give(v, &given, made, nmade);
            for (Py_ssize_t i = 0; i < nmade; i++) tp_release(made[i]);
        }
        done = status <= 0;
        if (status < 0 && may_catch(v)) {
            tp_error_clear();
            done = false;
        } else if (status < 0) tp_py_raise();
    }
    tp_py_tensors_clear(&given);
    return done;
}

PyObject *tp_py_replays_report(const tp_py_replays *r) {
    return Py_BuildValue("{s:L,s:L,s:s}", "replayed", (long long)r->replayed, "written", (long long)r->written, "why",
                         r->why);
}

void tp_py_parameter_changes(PyObject *tensor) { tp_py_modules_version += Py_TYPE(tensor) != &tp_py_tensor_type; }

void tp_py_memory_changes(void) { tp_py_modules_version++; }

/* _module_changed(): an attribute of a module has been set, or a hook has come or gone. */
static PyObject *module_changed(PyObject *self TP_UNUSED, PyObject *unused TP_UNUSED) {
    tp_py_modules_version++;
    Py_RETURN_NONE;
}

/* _met_optimizer(optimizer, hooked): it takes a step. */
static PyObject *met_optimizer(PyObject *self TP_UNUSED, PyObject *const *args, Py_ssize_t n) {
    if (n != 2) return PyErr_Format(PyExc_TypeError, "_met_optimizer() takes an optimizer and a bool");
    if (tp_likely(!tp_py_writing)) Py_RETURN_NONE;
    if (args[1] == Py_True) tp_region_spoil("a hook of an optimizer runs");
    return PyList_Append(tp_py_writing->met, args[0]) < 0 ? NULL : Py_NewRef(Py_None);
}

static PyMethodDef functions[] = {
    {"_module_changed", module_changed, METH_NOARGS, NULL},
    {"_met_optimizer", (PyCFunction)(void (*)(void))met_optimizer, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

int tp_py_init_replay(PyObject *m) { return PyModule_AddFunctions(m, functions); }
