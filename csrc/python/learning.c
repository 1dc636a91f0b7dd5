/* learning.c: calls are written down, and compared with the call before, until one may be replayed (replay.c). */
#include "python/region.h"
#include "python/replay_parts.h"

#include "autocast/autocast.h"
#include "autograd/node.h"
#include "core/tls.h"
#include "dispatch/key.h"

#include <string.h>

static int count_writing; /* threads that write a call down */

/* ---- writing a call down ---- */

void tp_py_end_writing(tp_py_replays *r) {
    if (tp_py_writing == r && !--count_writing) tp_autograd_host.arrived = NULL;
    tp_py_writing = NULL;
    tp_py_facts_clear(&r->arguments);
    tp_py_tensors_clear(&r->given);
    Py_CLEAR(r->met);
    Py_CLEAR(r->lines);
    for (Py_ssize_t i = 0; i < r->nleaves; i++) tp_release(r->leaves[i]);
    r->nleaves = 0;
    Py_CLEAR(r->began);
    PyMem_Free(r->starts_none);
    r->starts_none = NULL;
    r->current = NULL;
}

static void note_leaf(tp_tensor *t, bool in_place) {
    tp_py_replays *r = tp_py_writing; /* NULL: another thread's gradient */
    for (Py_ssize_t i = 0; r && i < r->nleaves; i++)
        if (r->leaves[i] == t) {
            r->added[i] &= in_place;
            return;
        }
    if (!r) return;
    if (r->nleaves == r->leaf_room) {
        Py_ssize_t room = r->leaf_room ? 2 * r->leaf_room : 16;
        tp_tensor **leaves = PyMem_Realloc(r->leaves, (size_t)room * sizeof *leaves);
        if (leaves) r->leaves = leaves;
        bool *added = leaves ? PyMem_Realloc(r->added, (size_t)room * sizeof *added) : NULL;
        if (added) r->added = added;
        if (!leaves || !added) {
            tp_region_spoil(tp_tape_no_memory);
            return;
        }
        r->leaf_room = room;
    }
    r->added[r->nleaves] = in_place;
    r->leaves[r->nleaves++] = tp_retain(t);
}

void tp_py_grad_is_set(tp_tensor *t) {
    if (tp_unlikely(tp_py_writing != NULL)) note_leaf(t, false);
}

/* The line that a call of an audit came from. Where there is no memory for one, none is said. */
static void note_line(void *replays, int64_t call) {
    tp_py_replays *r = replays;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *line = r->lines ? tp_py_place_of_program() : NULL; /* in the place of a call that was none */
    if (!line || PyList_SetSlice(r->lines, (Py_ssize_t)call, PY_SSIZE_T_MAX, NULL) < 0 ||
        PyList_Append(r->lines, line) < 0)
        Py_CLEAR(r->lines);
    Py_XDECREF(line);
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
}

static int remember_starts(tp_py_replays *r, const variant *v) {
    r->starts_none = PyMem_Calloc((size_t)v->nleaves + 1, sizeof *r->starts_none);
    if (!r->starts_none) return -1;
    for (Py_ssize_t i = 0; i < v->nleaves; i++) {
        tp_autoref *grad = tp_grad(v->leaves[i].tensor);
        r->starts_none[i] = !grad;
    }
    return 0;
}

/* What the settings that are known are before a call. */
static int remember_settings(tp_py_replays *r, const variant *v) {
    if (!(r->began = PyList_New(0))) return -1;
    for (Py_ssize_t i = 0; i < v->nsettings; i++) {
        PyObject *now = tp_py_setting_now(&v->settings[i]);
        if (!now && PyErr_Occurred()) return -1;
        int status = PyList_Append(r->began, now ? now : Py_None);
        Py_XDECREF(now);
        if (status < 0) return -1;
    }
    return 0;
}

/* Positional arguments, then those by name, whose names are facts too. */
static int note_arguments(tp_py_replays *r, PyObject *const *args, size_t n, PyObject *names) {
    Py_ssize_t nargs = PyVectorcall_NARGS(n), nnames = names ? PyTuple_GET_SIZE(names) : 0;
    for (Py_ssize_t i = 0; i < nargs + nnames; i++) {
        if (i >= nargs && !tp_py_facts_add(&r->arguments, TP_FACT_CONSTANT, PyTuple_GET_ITEM(names, i - nargs)))
            return -1;
        if (tp_py_facts_note(&r->arguments, &r->given, args[i]) < 0) return -1;
    }
    return 0;
}

struct tp_tape *tp_py_replay_begin(tp_py_replays *r, PyObject *const *args, size_t n, PyObject *names) {
    if (tp_autocast_remembers()) return NULL; /* one call's casts are another's inputs */
    if (tp_py_writing || r->current || tp_py_is_seen() || r->written > r->replayed + MOST_IN_VAIN) return NULL;
    variant *v = tp_py_find_variant(r, &r->given, args, n, names);
    tp_tape *tape = NULL;
    if (!v) tp_py_tensors_empty(&r->given);
    if (!v && (PyErr_Occurred() || note_arguments(r, args, n, names) < 0 || !(v = tp_py_new_variant(r)))) goto fail;
    if (v->failures >= MOST_FAILURES || v->running) goto fail;
    if (!(tape = tp_tape_new(TP_CPU)) || remember_starts(r, v) < 0 || remember_settings(r, v) < 0) goto fail;
    for (Py_ssize_t i = 0; i < r->given.count; i++)
        if (tp_tape_argument(tape, r->given.items[i]) < 0) goto fail;
    r->current = v;
    r->audits = tp_py_is_audit(v) && tp_tape_fits(v->tape, r->given.items);
    r->modules = tp_py_modules_version;
    if (!(r->met = PyList_New(0)) || (r->audits && !(r->lines = PyList_New(0)))) goto fail;
    if (r->audits) tp_tape_tell(tape, note_line, r);
    tp_py_writing = r;
    if (!count_writing++) tp_autograd_host.arrived = note_leaf;
    return tape;
fail: /* the call goes on as if nothing had been asked */
    tp_tape_free(tape);
    PyErr_Clear();
    tp_error_clear();
    tp_py_end_writing(r);
    return NULL;
}

/* ---- what a call leaves behind ---- */

static bool has_attributes(PyObject *o) {
    PyObject **dict = _PyObject_GetDictPtr(o);
    return dict && *dict && PyDict_GET_SIZE(*dict);
}

/* A result of the function, and its parts. The tensors so far: `objects`. */
static int note_result(tp_py_replays *r, variant *v, tp_tape *tape, PyObject *o, PyObject *objects) {
    if (tp_py_is_tensor(o)) {
        for (Py_ssize_t i = 0; i < r->given.count; i++)
            if (r->given.objects[i] == o) {
                tp_py_fact *known = tp_py_facts_add(&v->results, TP_FACT_TENSOR, o);
                if (known) known->size = -1 - i;
                return known ? 0 : -1;
            }
        Py_ssize_t number = 0;
        while (number < PyList_GET_SIZE(objects) && PyList_GET_ITEM(objects, number) != o) number++;
        tp_py_fact *known = tp_py_facts_add(&v->results, TP_FACT_TENSOR, (PyObject *)Py_TYPE(o));
        if (!known) return -1;
        known->size = number;
        if (number < PyList_GET_SIZE(objects)) return 0;
        const tp_tensor *t = tp_py_tensor_borrow(o);
        tp_node *fn = t->autograd ? t->autograd->grad_fn : NULL;
        if (Py_TYPE(o) != &tp_py_tensor_type) tp_tape_spoil(tape, "it gives a tensor of another class");
        if (has_attributes(o)) tp_tape_spoil(tape, "it gives a tensor that has attributes");
        if (tp_requires_grad(t) && (!fn || !fn->released))
            tp_tape_spoil(tape, "it gives a tensor whose gradient is still to be computed");
        tp_edge *nodes = PyMem_Realloc(v->nodes, sizeof *nodes * (size_t)(number + 1));
        if (!nodes) return (void)PyErr_NoMemory(), -1;
        v->nodes = nodes;
        bool wants = tp_requires_grad(t);
        v->nodes[v->nnodes++] = (tp_edge){wants ? tp_node_retain(fn) : NULL, wants ? t->autograd->output_nr : 0};
        if (PyList_Append(objects, o) < 0) return -1;
        return tp_py_check(tp_tape_result(tape, t));
    }
    if (tp_py_is_constant(o)) return tp_py_facts_add(&v->results, TP_FACT_CONSTANT, o) ? 0 : -1;
    if (!tp_py_is_container(o)) {
        tp_tape_spoil(tape, "it gives an object that cannot be made again");
        return 0;
    }
    tp_py_fact *made = tp_py_facts_add(&v->results, TP_FACT_CONTAINER, (PyObject *)Py_TYPE(o));
    if (!made || Py_EnterRecursiveCall(" in a result of a compiled function")) return -1;
    made->size = PyObject_Size(o);
    int status = 0;
    PyObject *key, *value;
    Py_ssize_t at = 0;
    if (PyDict_CheckExact(o))
        while (status == 0 && PyDict_Next(o, &at, &key, &value))
            status = note_result(r, v, tape, key, objects) < 0 ? -1 : note_result(r, v, tape, value, objects);
    else
        for (Py_ssize_t i = 0; status == 0 && i < PySequence_Fast_GET_SIZE(o); i++)
            status = note_result(r, v, tape, PySequence_Fast_GET_ITEM(o, i), objects);
    Py_LeaveRecursiveCall();
    return status;
}

static int note_leaves(tp_py_replays *r, variant *v, const variant *before, tp_tape *tape) {
    v->leaves = PyMem_Calloc((size_t)r->nleaves + 1, sizeof *v->leaves);
    if (!v->leaves) return (void)PyErr_NoMemory(), -1;
    Py_ssize_t results = v->nnodes;
    for (Py_ssize_t i = 0; i < r->nleaves; i++) {
        leaf *l = &v->leaves[v->nleaves++];
        *l = (leaf){.tensor = tp_retain(r->leaves[i]), .result = -1};
        bool known = i < before->nleaves && before->leaves[i].tensor == r->leaves[i];
        l->starts_none = !known || r->starts_none[i];
        tp_autoref *grad = tp_grad(l->tensor);
        if (r->added[i] && grad) l->kept = tp_storage_retain(grad->storage);
        else if (r->added[i]) tp_tape_spoil(tape, "a gradient is added to and then taken away");
        else if (grad) {
            if (tp_requires_grad(grad)) tp_tape_spoil(tape, "gradients have gradients");
            l->result = results++;
            if (tp_py_check(tp_tape_result(tape, grad)) < 0) return -1;
        }
    }
    v->nresults = results;
    return 0;
}

static int add_setting(variant *v, PyObject *group, PyObject *key, PyObject *value) {
    setting *more = value ? PyMem_Realloc(v->settings, sizeof *more * (size_t)(v->nsettings + 1)) : NULL;
    if (!more) return PyErr_Occurred() ? -1 : ((void)PyErr_NoMemory(), -1);
    v->settings = more;
    more[v->nsettings++] = (setting){Py_NewRef(group), Py_XNewRef(key), Py_NewRef(value)};
    return 0;
}

static int add_length(variant *v, PyObject *list) {
    PyObject *length = PyLong_FromSsize_t(PyList_GET_SIZE(list));
    int status = add_setting(v, list, NULL, length);
    Py_XDECREF(length);
    return status;
}

/* The tensors of a parameter's state, and the dictionary that has them. */
static int note_state(variant *v, PyObject *state, PyObject *parameter) {
    PyObject *own = PyDict_GetItem(state, parameter), *key, *value;
    Py_ssize_t at = 0;
    if (!own || !PyDict_Check(own)) return 0;
    int status = add_setting(v, state, parameter, own);
    while (status == 0 && PyDict_Next(own, &at, &key, &value))
        if (tp_py_is_tensor(value)) status = add_setting(v, own, key, value);
    return status;
}

static int note_group(variant *v, PyObject *group, PyObject *state) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    int status = 0;
    while (status == 0 && PyDict_Check(group) && PyDict_Next(group, &at, &key, &value)) {
        status = add_setting(v, group, key, value);
        if (!PyList_CheckExact(value)) continue; /* else parameters, or their names */
        if (status == 0) status = add_length(v, value);
        for (Py_ssize_t i = 0; status == 0 && state && i < PyList_GET_SIZE(value); i++)
            if (tp_py_is_tensor(PyList_GET_ITEM(value, i))) status = note_state(v, state, PyList_GET_ITEM(value, i));
    }
    return status;
}

static int note_optimizer(variant *v, PyObject *optimizer) {
    PyObject *own = PyObject_GetAttrString(optimizer, "__dict__");
    PyObject *key = NULL, *value;
    Py_ssize_t at = 0;
    PyObject *state = own ? PyDict_GetItemString(own, "state") : NULL;
    PyObject *groups = own ? PyDict_GetItemString(own, "param_groups") : NULL;
    int status = own ? 0 : -1;
    while (status == 0 && PyDict_Next(own, &at, &key, &value))
        if (value == state || value == groups) status = add_setting(v, own, key, value);
    if (state && !PyDict_Check(state)) state = NULL;
    if (status == 0 && groups && PyList_CheckExact(groups)) {
        status = add_length(v, groups);
        for (Py_ssize_t k = 0; status == 0 && k < PyList_GET_SIZE(groups); k++)
            status = note_group(v, PyList_GET_ITEM(groups, k), state);
    }
    Py_XDECREF(own);
    return status;
}

static int note_settings(variant *v, PyObject *met) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(met); i++)
        if (note_optimizer(v, PyList_GET_ITEM(met, i)) < 0) return -1;
    return 0;
}

/* Whether the call has left them so: one that sets a learning rate sets another one each time. */
static bool leaves_settings(const tp_py_replays *r, const variant *v) {
    for (Py_ssize_t i = 0; i < v->nsettings && i < PyList_GET_SIZE(r->began); i++) {
        PyObject *now = tp_py_setting_now(&v->settings[i]), *began = PyList_GET_ITEM(r->began, i);
        bool same = now ? tp_py_same_constant(now, began) || now == began : began == Py_None && !PyErr_Occurred();
        Py_XDECREF(now);
        if (!same) return PyErr_Clear(), false;
    }
    return true;
}

/* ---- comparing with the call before ---- */

static bool same_leaves(const variant *a, const variant *b) {
    if (a->nleaves != b->nleaves) return false;
    for (Py_ssize_t i = 0; i < a->nleaves; i++) {
        const leaf *x = &a->leaves[i], *y = &b->leaves[i];
        if (x->tensor != y->tensor || x->kept != y->kept || x->result != y->result) return false;
    }
    return true;
}

static bool same_nodes(const variant *a, const variant *b) {
    if (a->nnodes != b->nnodes) return false;
    for (Py_ssize_t i = 0; i < a->nnodes; i++)
        if (!a->nodes[i].node != !b->nodes[i].node) return false;
    return true;
}

/* The numbers that differ become inputs, where the settings changed in the same way. */
static bool bind_numbers(variant *now, const variant *before, const tp_tape_number *numbers, int count) {
    if (now->nsettings != before->nsettings) return count == 0;
    input *inputs = PyMem_Malloc(sizeof *inputs * (size_t)(before->ninputs + count + 1));
    if (!inputs) return false;
    Py_ssize_t n = before->ninputs;
    if (n) memcpy(inputs, before->inputs, sizeof *inputs * (size_t)n);
    for (int i = 0; i < count; i++) {
        const tp_tape_number *d = &numbers[i];
        Py_ssize_t at = -1;
        int sign = 0;
        for (Py_ssize_t k = 0; k < now->nsettings && at < 0; k++) {
            PyObject *a = before->settings[k].value, *b = now->settings[k].value;
            if (!PyFloat_CheckExact(a) || !PyFloat_CheckExact(b)) continue;
            double was = PyFloat_AS_DOUBLE(a), is = PyFloat_AS_DOUBLE(b);
            sign = was == d->before && is == d->now ? 1 : was == -d->before && is == -d->now ? -1 : 0;
            if (sign) at = k;
        }
        bool known = false;
        for (Py_ssize_t k = 0; k < before->ninputs; k++)
            known |= inputs[k].place.call == d->call && inputs[k].place.argument == d->argument &&
                     inputs[k].place.place == d->place;
        if (at < 0) {
            PyMem_Free(inputs);
            return false;
        }
        if (!known) inputs[n++] = (input){*d, at, sign};
    }
    PyMem_Free(now->inputs);
    now->inputs = inputs;
    now->ninputs = n;
    return true;
}

/* If not, `what` says why, and `parted` is the call where they part; -1: it is none. */
static bool went_as_before(variant *now, const variant *before, char *what, size_t size, int64_t *parted) {
    tp_tape_number numbers[MOST_NUMBERS];
    int count = 0;
    bool follows = tp_tape_follows(now->tape, before->tape, numbers, MOST_NUMBERS, &count, what, size);
    *parted = follows && count ? numbers[0].call : tp_tape_parted(now->tape);
    if (!follows) return false;
    const char *difference = !tp_py_facts_same(&now->results, &before->results) ? "it gives something else"
                             : !same_nodes(now, before)                         ? "it gives something else"
                             : !same_leaves(now, before)                        ? "other gradients are computed"
                             : !bind_numbers(now, before, numbers, count)
                                 ? "a number of a call is another one than before, and no setting of an optimizer"
                                 : NULL;
    if (difference) snprintf(what, size, "%s", difference);
    return !difference;
}

static PyObject *refuse(const char *what) {
    PyObject *module = PyImport_ImportModule("tensorpy.compiler");
    PyObject *type = module ? PyObject_GetAttrString(module, "ReplayError") : NULL;
    if (type)
        PyErr_Format(type,
                     "compile(mode=\"reduce-overhead\"): the function does something else than what is replayed: %s. "
                     "What changes has to be an argument of the function; mode=\"default\" follows every call",
                     what);
    Py_XDECREF(type);
    Py_XDECREF(module);
    return NULL;
}

static int describe(tp_py_replays *r, variant *now, tp_tape *tape, PyObject *result) {
    PyObject *objects = PyList_New(0);
    int status = objects ? note_result(r, now, tape, result, objects) : -1;
    Py_XDECREF(objects);
    if (status == 0) status = note_leaves(r, now, r->current, tape);
    return status == 0 ? note_settings(now, r->met) : -1;
}

/* What the call was is what the next one is compared with. */
static void take(variant *v, variant *now) {
    tp_py_forget_call(v);
    PyMem_Free(v->inputs);
    v->results = now->results;
    v->settings = now->settings, v->nsettings = now->nsettings;
    v->leaves = now->leaves, v->nleaves = now->nleaves;
    v->nodes = now->nodes, v->nnodes = now->nnodes;
    v->inputs = now->inputs, v->ninputs = now->ninputs;
    v->nresults = now->nresults;
    v->tape = now->tape;
}

/* Why the call cannot be replayed, as far as it alone tells; NULL: nothing is against it. */
static const char *against(tp_py_replays *r, variant *now, PyObject *result) {
    if (!result) return "it has raised";
    if (describe(r, now, now->tape, result) < 0) {
        PyErr_Clear();
        return tp_tape_no_memory;
    }
    if (r->modules != tp_py_modules_version) return "an attribute of a module is set";
    if (!leaves_settings(r, r->current)) return "a setting of an optimizer is changed";
    tp_py_call_modes modes = tp_py_modes_now();
    if (!tp_py_same_modes(&modes, &r->current->modes)) return "it leaves another mode than it has found";
    if (tp_tape_spoiled(now->tape)) return tp_tape_spoiled(now->tape);
    return r->changes_arguments ? "it changes an argument in another way than by its elements" : NULL;
}

/* Calls whose numbers are inputs stay alone. */
static bool close_tape(const variant *v) {
    bool *alone = PyMem_Calloc((size_t)tp_tape_calls(v->tape) + 1, sizeof *alone);
    if (!alone) return tp_tape_spoil(v->tape, tp_tape_no_memory), false;
    for (Py_ssize_t i = 0; i < v->ninputs; i++) alone[v->inputs[i].place.call] = true;
    bool closed = tp_tape_close(v->tape, alone);
    PyMem_Free(alone);
    return closed;
}

/* Says where in the program the calls part, if that is known. */
static void add_line(const tp_py_replays *r, int64_t parted, char *what, size_t size) {
    PyObject *line = r->lines && parted >= 0 ? PyList_GetItem(r->lines, (Py_ssize_t)parted) : NULL;
    PyObject *said = line ? tp_py_said_place(line) : NULL;
    const char *text = said && said != Py_None ? PyUnicode_AsUTF8(said) : NULL;
    size_t used = strlen(what);
    if (text) snprintf(what + used, size - used, ", at %s", text);
    Py_XDECREF(said);
    PyErr_Clear();
}

/* Compares, and decides what becomes of the variant; whether the call may be the one before, again. */
static bool learn(tp_py_replays *r, variant *v, variant *now, PyObject *result) {
    char what[sizeof r->why] = "";
    const char *why = against(r, now, result);
    bool first = !v->tape;
    int64_t parted = -1;
    bool alike = !why && !first && went_as_before(now, v, what, sizeof what, &parted);
    if (*what) add_line(r, parted, what, sizeof what);
    if (!why && alike) why = tp_tape_outlived(now->tape);
    alike = alike && !why;
    v->alike = alike ? v->alike + 1 : 0;
    v->failures = alike || (first && !why) ? 0 : v->failures + 1;
    bool ready = alike && v->alike >= 2, was_ready = v->ready;
    if (r->audits && was_ready && ready && !v->ninputs && !now->ninputs) { /* what is replayed is this */
        v->calls++;
        return tp_py_forget_call(now), true;
    }
    if (ready && !close_tape(now)) {
        why = tp_tape_spoiled(now->tape);
        v->failures = MOST_FAILURES;
        ready = false;
    }
    if (why || *what || ready) snprintf(r->why, sizeof r->why, "%s", why ? why : what);
    if (why) tp_py_forget_call(now), tp_py_forget_call(v);
    else take(v, now);
    v->ready = ready;
    v->modules = tp_py_modules_version;
    v->calls = was_ready && ready ? v->calls + 1 : 4; /* three were written down */
    return alike || why == tp_tape_no_memory;
}

/* Whether the call has left its arguments other sizes, other items or other wishes for gradients. */
static bool changes_arguments(const tp_py_replays *r, PyObject *const *args, size_t n, PyObject *names) {
    tp_py_tensors given;
    tp_py_tensors_begin(&given);
    bool fit = tp_py_arguments_fit(r->current, &given, args, n, names) == 1;
    PyErr_Clear();
    tp_py_tensors_clear(&given);
    return !fit;
}

PyObject *tp_py_replay_end(tp_py_replays *r, struct tp_tape *tape, PyObject *const *args, size_t n, PyObject *names,
                           PyObject *result) {
    PyObject *type = NULL, *value = NULL, *traceback = NULL;
    if (!result) PyErr_Fetch(&type, &value, &traceback);
    variant now = {.tape = tape};
    bool audits = r->audits && result;
    r->written++;
    r->changes_arguments = result && changes_arguments(r, args, n, names);
    bool alike = learn(r, r->current, &now, result);
    tp_py_end_writing(r);
    if (!result) PyErr_Restore(type, value, traceback);
    if (!audits || alike) return result;
    Py_DECREF(result);
    return refuse(r->why);
}
