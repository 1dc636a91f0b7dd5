/* pickle.c: the storage object, and through it copy, deepcopy and pickle.
 *
 * A storage has one Python object as long as that lives, so that a pickle or a deepcopy, which remember objects, finds
 * out by itself which tensors share memory. */
#include "python/methods.h"
#include "prim/transfer.h"
#include "conjugate/conjugate.h"
#include "python/help.h"
#include "python/overrides.h"
#include "python/python_key.h"
#include "python/storage.h"

#include "autograd/node.h"
#include "batched/batched.h"
#include "core/host.h"
#include "core/layout.h"
#include "core/memory.h"
#include "core/parallel.h"

#include <string.h>

typedef struct {
    PyObject_HEAD tp_storage *storage; /* owned */
} storage_object;

static PyObject *live_objects; /* {address of the tp_storage: storage_object}, the values not counted */
static PyTypeObject storage_type;

#define STORAGE(o) (((storage_object *)(o))->storage)

/* That of a wrapper (Note [Wrappers]) has a size and an identity, by which one tells who views whom, and no bytes. */
static bool has_bytes(const tp_storage *s) {
    return s->data || !s->nbytes || s->later || s->device.type == TP_DEVICE_META;
}
static int need_bytes(const tp_storage *s, const char *what) {
    if (tp_likely(has_bytes(s))) return 0;
    PyErr_Format(PyExc_RuntimeError,
                 "%s: the tensor of this storage has no elements of its own, its class answers for it "
                 "(__torch_dispatch__)",
                 what);
    return -1;
}

/* ---- the object ---- */

static PyObject *storage_key(const tp_storage *s) { return PyLong_FromVoidPtr((void *)s); }

/* The object of a storage; takes over the reference. */
static PyObject *wrap_storage_steal(tp_storage *s) {
    if (!s) return tp_py_raise();
    PyObject *key = storage_key(s), *known = key ? PyDict_GetItemWithError(live_objects, key) : NULL, *o = NULL;
    if (known) o = Py_NewRef(PyLong_AsVoidPtr(known));
    else if (key && !PyErr_Occurred()) {
        storage_object *fresh = PyObject_New(storage_object, &storage_type);
        PyObject *address = fresh ? PyLong_FromVoidPtr(fresh) : NULL;
        if (fresh) fresh->storage = tp_storage_retain(s);
        if (address && PyDict_SetItem(live_objects, key, address) == 0) o = (PyObject *)fresh;
        else Py_XDECREF(fresh);
        Py_XDECREF(address);
    }
    Py_XDECREF(key);
    tp_storage_release(s);
    return o;
}

static void storage_dealloc(PyObject *o) {
    PyObject *type, *value, *trace, *key;
    PyErr_Fetch(&type, &value, &trace);
    key = storage_key(STORAGE(o));
    if (!key || PyDict_DelItem(live_objects, key) < 0) PyErr_Clear();
    Py_XDECREF(key);
    PyErr_Restore(type, value, trace);
    tp_storage_release(STORAGE(o));
    PyObject_Free(o);
}

static PyObject *storage_nbytes(PyObject *o, PyObject *unused) {
    (void)unused;
    return PyLong_FromSize_t(STORAGE(o)->nbytes);
}
static PyObject *storage_resizable(PyObject *o, PyObject *unused) {
    (void)unused;
    return PyBool_FromLong((STORAGE(o)->traits & TP_STORAGE_RESIZABLE) != 0);
}
static PyObject *storage_data_ptr(PyObject *o, PyObject *unused) {
    (void)unused;
    if (need_bytes(STORAGE(o), "data_ptr()") < 0) return NULL;
    if (tp_check_address(STORAGE(o), "data_ptr()") < 0) return tp_py_raise();
    return PyLong_FromVoidPtr(STORAGE(o)->data);
}
static Py_ssize_t storage_length(PyObject *o) { return (Py_ssize_t)STORAGE(o)->nbytes; }
static PyObject *storage_device(PyObject *o, void *unused) {
    (void)unused;
    return tp_py_device_object(STORAGE(o)->device);
}

/* ---- its content, on any device ---- */

typedef int (*copier)(tp_device d, void *dst, const void *src, size_t nbytes);

/* Copies n bytes by one of the device's ways, without the interpreter: a device may have to finish something first. */
static int move(copier copy, tp_device device, void *to, const void *from, size_t n) {
    if (!n) return 0;
    void *lock = tp_host_lock_release();
    int status = copy(device, to, from, n);
    tp_host_lock_acquire(lock);
    return status;
}

/* A storage on the device with n bytes of the host, or, by `copy_inside`, of the device. */
static tp_storage *storage_of(tp_device device, copier copy, const void *data, size_t n) {
    tp_storage *s = tp_storage_new(device, n);
    if (!s || move(copy, device, s->data, data, n) == 0) return s;
    tp_storage_release(s);
    return NULL;
}

static PyObject *bytes_of(tp_storage *s) {
    if (need_bytes(s, "a storage's bytes") < 0) return NULL;
    if (tp_settle_to_read(s) < 0) return tp_py_raise();
    const tp_device_ops *ops = tp_device_get_ops((tp_device_type)s->device.type);
    PyObject *bytes = ops ? PyBytes_FromStringAndSize(NULL, (Py_ssize_t)s->nbytes) : tp_py_raise();
    if (!bytes || move(ops->copy_to_host, s->device, PyBytes_AS_STRING(bytes), s->data, s->nbytes) == 0) return bytes;
    Py_DECREF(bytes);
    return tp_py_raise();
}

static PyObject *storage_deepcopy(PyObject *o, PyObject *memo) {
    (void)memo; /* copy.deepcopy remembers the result */
    tp_storage *s = STORAGE(o);
    if (need_bytes(s, "deepcopy()") < 0) return NULL;
    if (tp_settle_to_read(s) < 0) return tp_py_raise();
    const tp_device_ops *ops = tp_device_get_ops((tp_device_type)s->device.type);
    return wrap_storage_steal(ops ? storage_of(s->device, ops->copy_inside, s->data, s->nbytes) : NULL);
}

static PyObject *module_function(const char *name) {
    PyObject *module = PyImport_ImportModule("tensorpy._C"),
             *function = module ? PyObject_GetAttrString(module, name) : NULL;
    Py_XDECREF(module);
    return function;
}

static PyObject *storage_reduce(PyObject *o, PyObject *unused) {
    (void)unused;
    PyObject *bytes = bytes_of(STORAGE(o)), *rebuild = bytes ? module_function("_rebuild_storage") : NULL;
    if (!rebuild) {
        Py_XDECREF(bytes);
        return NULL;
    }
    return Py_BuildValue("N(NN)", rebuild, bytes, tp_py_device_object(STORAGE(o)->device));
}

/* _adopt(other): the content moves into the other storage's memory, which is this one's from then on. */
static PyObject *storage_adopt(PyObject *o, PyObject *other) {
    if (!Py_IS_TYPE(other, &storage_type)) return PyErr_Format(PyExc_TypeError, "_adopt() takes a storage");
    if (need_bytes(STORAGE(o), "_adopt()") < 0 || need_bytes(STORAGE(other), "_adopt()") < 0) return NULL;
    if (tp_py_check(tp_storage_adopt(STORAGE(o), STORAGE(other))) < 0) return NULL;
    Py_RETURN_NONE;
}

/* Parts are Python's: tensorpy/storage/methods.py. */
static PyObject *storage_item(PyObject *o, PyObject *index) {
    PyObject *module = PyImport_ImportModule("tensorpy.storage");
    PyObject *item = module ? PyObject_CallMethod(module, "_item", "OO", o, index) : NULL;
    Py_XDECREF(module);
    return item;
}

static int storage_set_item(PyObject *o, PyObject *index, PyObject *value) {
    if (!value) return PyErr_SetString(PyExc_TypeError, "the bytes of a storage cannot be deleted"), -1;
    PyObject *module = PyImport_ImportModule("tensorpy.storage");
    PyObject *done = module ? PyObject_CallMethod(module, "_set_item", "OOO", o, index, value) : NULL;
    Py_XDECREF(module);
    Py_XDECREF(done);
    return done ? 0 : -1;
}
static PyObject *storage_text(PyObject *o) {
    PyObject *module = PyImport_ImportModule("tensorpy.storage");
    PyObject *text = module ? PyObject_CallMethod(module, "_text", "O", o) : NULL;
    Py_XDECREF(module);
    return text;
}
static PyObject *storage_iterate(PyObject *o) {
    PyObject *module = PyImport_ImportModule("tensorpy.storage");
    PyObject *list = module ? PyObject_CallMethod(module, "tolist", "O", o) : NULL;
    PyObject *iterator = list ? PyObject_GetIter(list) : NULL;
    Py_XDECREF(module);
    Py_XDECREF(list);
    return iterator;
}
static PyObject *storage_new(PyTypeObject *type TP_UNUSED, PyObject *args, PyObject *kwargs) {
    PyObject *module = PyImport_ImportModule("tensorpy.storage");
    PyObject *make = module ? PyObject_GetAttrString(module, "_new") : NULL;
    PyObject *made = make ? PyObject_Call(make, args, kwargs) : NULL;
    Py_XDECREF(module);
    Py_XDECREF(make);
    return made;
}

static PyMethodDef storage_methods[] = {
    {"_adopt", storage_adopt, METH_O, NULL},
    {"resizable", storage_resizable, METH_NOARGS,
     "resizable($self, /)\n--\n\nWhether it may get more memory: not if the memory is somebody else's.\n\n"
     "Returns: bool."},
    {"nbytes", storage_nbytes, METH_NOARGS, "nbytes($self, /)\n--\n\nThe number of bytes.\n\nReturns: int."},
    {"size", storage_nbytes, METH_NOARGS, "size($self, /)\n--\n\nThe number of bytes.\n\nReturns: int."},
    {"data_ptr", storage_data_ptr, METH_NOARGS,
     "data_ptr($self, /)\n--\n\nThe address of the first byte.\n\nReturns: int."},
    {"__deepcopy__", storage_deepcopy, METH_O, NULL},
    {"__reduce__", storage_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyObject *storage_cdata(PyObject *o, void *unused TP_UNUSED) { return PyLong_FromVoidPtr(STORAGE(o)); }
static PyGetSetDef storage_getset[] = {{"device", storage_device, NULL, "Where the memory is.", NULL},
                                       {"_cdata", storage_cdata, NULL, NULL, NULL},
                                       {NULL, NULL, NULL, NULL, NULL}};
static PySequenceMethods storage_sequence = {.sq_length = storage_length};
static PyMappingMethods storage_mapping = {
    .mp_length = storage_length, .mp_subscript = storage_item, .mp_ass_subscript = storage_set_item};
static PyTypeObject storage_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tensorpy.UntypedStorage",
    .tp_basicsize = sizeof(storage_object),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = storage_new,
    .tp_iter = storage_iterate,
    .tp_repr = storage_text,
    .tp_dealloc = storage_dealloc,
    .tp_methods = storage_methods,
    .tp_getset = storage_getset,
    .tp_as_sequence = &storage_sequence,
    .tp_as_mapping = &storage_mapping,
};

PyObject *tp_py_tensor_storage(PyObject *self, PyObject *unused) {
    if (tp_check_unbatched(tp_py_tensor_borrow(self), "a storage") < 0) return tp_py_raise();
    (void)unused;
    if (tp_py_asks(self)) return tp_py_ask_method("untyped_storage", self, NULL, 0, NULL);
    tp_autoref *t = tp_memory_of(tp_py_tensor_borrow(self));
    if (!t) return tp_py_raise();
    if (!tp_is_wrapper(t) && tp_py_refuse_wrapper(t, "untyped_storage()") < 0) return NULL;
    return wrap_storage_steal(tp_storage_retain(t->storage));
}

static PyObject *storage_as_object(tp_storage *s) { return wrap_storage_steal(tp_storage_retain(s)); }
static tp_storage *storage_of_object(PyObject *o) {
    return Py_IS_TYPE(o, &storage_type) && has_bytes(STORAGE(o)) ? STORAGE(o) : NULL;
}

/* ---- tensors ---- */

/* _rebuild_storage(bytes, device=cpu) */
static PyObject *rebuild_storage(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *bytes, *device_object = NULL;
    tp_device device = TP_CPU;
    if (!PyArg_ParseTuple(args, "S|O:_rebuild_storage", &bytes, &device_object)) return NULL;
    if (device_object && tp_py_to_device(device_object, &device) <= 0)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "_rebuild_storage() takes a device");
    const tp_device_ops *ops =
        tp_device_resolve(device, &device) < 0 ? NULL : tp_device_get_ops((tp_device_type)device.type);
    return wrap_storage_steal(
        ops ? storage_of(device, ops->copy_from_host, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes))
            : NULL);
}

static int read_ints(PyObject *tuple, int64_t *out) {
    if (PyTuple_GET_SIZE(tuple) > TP_MAX_DIMS) return PyErr_SetString(PyExc_ValueError, "too many dimensions"), -1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++) {
        out[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i));
        if (out[i] == -1 && PyErr_Occurred()) return -1;
    }
    return 0;
}

/* The storage is None for a device without data (Meta). */
static tp_tensor *rebuild(PyObject *storage, tp_dtype dtype, tp_ints sizes, tp_ints strides, int64_t offset,
                          tp_device device) {
    if (storage == Py_None) return tp_new_empty_strided(sizes, strides, dtype, device);
    if (__builtin_mul_overflow(offset, tp_itemsize(dtype), &offset) || tp_checked_numel(sizes) < 0)
        return tp_error_pending() ? NULL : tp_fail_null(TP_ValueError, "the storage offset is too large");
    if (tp_check_in_storage(sizes, strides, offset, dtype, STORAGE(storage)->nbytes) < 0) return NULL;
    return tp_new_on_storage(STORAGE(storage), sizes, strides, offset, dtype);
}

/* _rebuild_tensor(cls, storage, dtype, sizes, strides, offset, device, requires_grad, pending=0): 1 for a conjugate, 2
 * for negatives (Note [Pending math]) */
static PyObject *rebuild_tensor(PyObject *module, PyObject *args) {
    (void)module;
    PyTypeObject *cls;
    PyObject *storage, *dtype_object, *sizes, *strides, *device_object;
    long long offset;
    int requires_grad, pending = 0;
    int64_t size_data[TP_MAX_DIMS], stride_data[TP_MAX_DIMS];
    tp_dtype dtype;
    tp_device device;
    if (!PyArg_ParseTuple(args, "O!OOO!O!LOp|i:_rebuild_tensor", &PyType_Type, &cls, &storage, &dtype_object,
                          &PyTuple_Type, &sizes, &PyTuple_Type, &strides, &offset, &device_object, &requires_grad,
                          &pending))
        return NULL;
    if (!PyType_IsSubtype(cls, &tp_py_tensor_type) || (storage != Py_None && !Py_IS_TYPE(storage, &storage_type)) ||
        PyTuple_GET_SIZE(sizes) != PyTuple_GET_SIZE(strides) || tp_py_to_dtype(dtype_object, &dtype) <= 0 ||
        pending < 0 || pending > 3 || (pending & 1 && tp_dtype_categories[dtype] < TP_COMPLEX) ||
        (pending & 2 && dtype == TP_BOOL) || tp_py_to_device(device_object, &device) <= 0)
        return PyErr_Occurred()
                   ? NULL
                   : PyErr_Format(PyExc_TypeError, "_rebuild_tensor() got arguments that no tensor was saved with");
    if (storage != Py_None && need_bytes(STORAGE(storage), "a tensor over a storage") < 0) return NULL;
    if (read_ints(sizes, size_data) < 0 || read_ints(strides, stride_data) < 0) return NULL;
    Py_ssize_t ndim = PyTuple_GET_SIZE(sizes);
    tp_tensor *t = rebuild(storage, dtype, (tp_ints){size_data, ndim}, (tp_ints){stride_data, ndim}, offset, device);
    if (t && pending & 1) t->keys |= TP_BIT(Conjugate);
    if (t && pending & 2) t->keys |= TP_BIT(Negative);
    if (t && requires_grad && tp_set_requires_grad(t, true) < 0) {
        tp_release(t);
        t = NULL;
    }
    return tp_py_wrap_as_steal(cls, t);
}

/* The arguments of _rebuild_tensor, over a storage object that is taken over (NULL: an exception is set). */
static PyObject *rebuild_arguments_steal(PyObject *self, PyObject *storage) {
    const tp_tensor *t = tp_py_tensor_borrow(self);
    if (!storage) return NULL;
    return Py_BuildValue("(ONNNNLNOi)", Py_TYPE(self), storage, tp_py_dtype_object((tp_dtype)t->dtype),
                         tp_py_ints_tuple(tp_sizes(t)), tp_py_ints_tuple(tp_strides(t)),
                         (long long)tp_storage_offset(t), tp_py_device_object(t->device),
                         tp_requires_grad(t) ? Py_True : Py_False,
                         (t->keys & TP_BIT(Conjugate) ? 1 : 0) | (t->keys & TP_BIT(Negative) ? 2 : 0));
}

static PyObject *storage_or_none(PyObject *self) {
    return tp_py_tensor_borrow(self)->device.type == TP_DEVICE_META ? Py_NewRef(Py_None)
                                                                    : tp_py_tensor_storage(self, NULL);
}

/* A wrapper (Note [Wrappers]) is made again without elements; what it holds are its attributes. */
static PyObject *wrapper_arguments(PyObject *self) {
    const tp_tensor *t = tp_py_tensor_borrow(self);
    return Py_BuildValue("(ONNLNNO)", Py_TYPE(self), tp_py_ints_tuple(tp_sizes(t)), tp_py_ints_tuple(tp_strides(t)),
                         (long long)tp_storage_offset(t), tp_py_dtype_object((tp_dtype)t->dtype),
                         tp_py_device_object(t->device), tp_requires_grad(t) ? Py_True : Py_False);
}

/* _rebuild_wrapper(cls, sizes, strides, offset, dtype, device, requires_grad) */
static PyObject *rebuild_wrapper(PyObject *module TP_UNUSED, PyObject *args) {
    PyObject *v[7];
    if (!PyArg_ParseTuple(args, "OOOOOOO", &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6])) return NULL;
    PyObject *names = Py_BuildValue("(ssss)", "storage_offset", "dtype", "device", "requires_grad");
    PyObject *made = names ? tp_py_make_wrapper(NULL, v, 3, names) : NULL;
    Py_XDECREF(names);
    return made;
}

/* Tensors of other layouts are written, and copied, as their parts are. */
static PyObject *of_layout(const char *function, PyObject *self) {
    const tp_tensor *t = tp_py_tensor_borrow(self);
    PyObject *module = PyImport_ImportModule(tp_is_quantized(t) ? "tensorpy._tensor.quantized"
                                             : tp_is_nested(t)  ? "tensorpy._tensor.nested"
                                                                : "tensorpy.sparse._make");
    PyObject *made = module ? PyObject_CallMethod(module, function, "O", self) : NULL;
    Py_XDECREF(module);
    return made;
}

PyObject *tp_py_tensor_reduce_ex(PyObject *self, PyObject *protocol) {
    if (tp_py_asks(self)) return tp_py_ask_method("__reduce_ex__", self, &protocol, 1, NULL);
    if (tp_check_unbatched(tp_py_tensor_borrow(self), "a pickle") < 0) return tp_py_raise();
    if (tp_py_refuse_traced(self, "a pickle") < 0) return NULL;
    if (tp_py_tensor_borrow(self)->keys & TP_BIT(ZeroTensor))
        return PyErr_Format(PyExc_RuntimeError, "a ZeroTensor is not serializable: clone() gives one with elements");
    if (tp_layout_of(tp_py_tensor_borrow(self)) != TP_STRIDED) return of_layout("reduced", self);
    bool wrapper = tp_is_wrapper(tp_py_tensor_borrow(self));
    PyObject *dict = ((tp_py_tensor *)self)->dict;
    PyObject *function = module_function(wrapper ? "_rebuild_wrapper" : "_rebuild_tensor");
    PyObject *args = !function ? NULL
                     : wrapper ? wrapper_arguments(self)
                               : rebuild_arguments_steal(self, storage_or_none(self));
    if (!args) {
        Py_XDECREF(function);
        return NULL;
    }
    return Py_BuildValue("NNO", function, args, dict && PyDict_GET_SIZE(dict) ? dict : Py_None);
}

/* ---- deepcopy ---- */

static PyObject *deepcopy(PyObject *o, PyObject *memo) {
    PyObject *copy = PyImport_ImportModule("copy"),
             *result = copy ? PyObject_CallMethod(copy, "deepcopy", "OO", o, memo) : NULL;
    Py_XDECREF(copy);
    return result;
}

/* Attributes that a subclass has in __slots__. */
static int copy_slots(PyObject *self, PyObject *fresh, PyObject *memo) {
    PyObject *copyreg = PyImport_ImportModule("copyreg");
    PyObject *names = copyreg ? PyObject_CallMethod(copyreg, "_slotnames", "O", Py_TYPE(self)) : NULL;
    int status = names ? 0 : -1;
    for (Py_ssize_t i = 0; status == 0 && i < PyList_GET_SIZE(names); i++) {
        PyObject *name = PyList_GET_ITEM(names, i), *value = PyObject_GetAttr(self, name);
        if (!value) { /* a slot that nothing was put into */
            PyErr_Clear();
            continue;
        }
        PyObject *copied = deepcopy(value, memo);
        status = copied ? PyObject_SetAttr(fresh, name, copied) : -1;
        Py_XDECREF(copied);
        Py_DECREF(value);
    }
    Py_XDECREF(names);
    Py_XDECREF(copyreg);
    return status;
}

/* What hangs on the tensor: its attributes and its gradient. */
static int copy_belongings(PyObject *self, PyObject *fresh, PyObject *memo) {
    PyObject *dict = ((tp_py_tensor *)self)->dict;
    int status = 0;
    if (dict && PyDict_GET_SIZE(dict)) {
        PyObject *copied = deepcopy(dict, memo), *own = copied ? PyObject_GetAttrString(fresh, "__dict__") : NULL;
        status = own ? PyDict_Update(own, copied) : -1;
        Py_XDECREF(own);
        Py_XDECREF(copied);
    }
    if (status == 0 && Py_TYPE(self) == Py_TYPE(fresh)) status = copy_slots(self, fresh, memo);
    tp_tensor *own_grad = status < 0 ? NULL : tp_grad(tp_py_tensor_borrow(self));
    if (!own_grad) return status;
    PyObject *grad = tp_py_wrap_steal(own_grad), *copied = grad ? deepcopy(grad, memo) : NULL;
    status = copied ? PyObject_SetAttrString(fresh, "grad", copied) : -1;
    Py_XDECREF(copied);
    Py_XDECREF(grad);
    return status;
}

static PyObject *fresh_copy(PyObject *self, PyObject *memo) {
    bool wrapper = tp_is_wrapper(tp_py_tensor_borrow(self));
    PyObject *storage = wrapper ? NULL : storage_or_none(self), *copied = storage ? deepcopy(storage, memo) : NULL;
    PyObject *args = wrapper ? wrapper_arguments(self) : rebuild_arguments_steal(self, copied);
    PyObject *fresh = !args ? NULL : wrapper ? rebuild_wrapper(NULL, args) : rebuild_tensor(NULL, args);
    Py_XDECREF(args);
    Py_XDECREF(storage);
    return fresh;
}

PyObject *tp_py_tensor_deepcopy(PyObject *self, PyObject *memo) {
    if (tp_py_asks(self)) return tp_py_ask_method("__deepcopy__", self, &memo, 1, NULL);
    if (!PyDict_Check(memo))
        return PyErr_Format(PyExc_TypeError, "__deepcopy__() takes the dictionary of copy.deepcopy");
    if (tp_py_refuse_traced(self, "deepcopy()") < 0) return NULL;
    if (!tp_is_leaf(tp_py_tensor_borrow(self)))
        return PyErr_Format(
            PyExc_RuntimeError,
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
            "protocol at the moment. If you were attempting to deepcopy a module, this may be because of a value "
            "that was computed with gradients; detach() it first.");
    bool strided = tp_layout_of(tp_py_tensor_borrow(self)) == TP_STRIDED;
    bool zero = tp_py_tensor_borrow(self)->keys & TP_BIT(ZeroTensor);
    PyObject *fresh = zero      ? PyObject_CallMethod(self, "clone", NULL)
                      : strided ? fresh_copy(self, memo)
                                : of_layout("copied", self);
    PyObject *key = fresh ? PyLong_FromVoidPtr(self) : NULL;
    if (fresh && (!key || PyDict_SetItem(memo, key, fresh) < 0 || copy_belongings(self, fresh, memo) < 0))
        Py_CLEAR(fresh);
    Py_XDECREF(key);
    return fresh;
}

/* _has_storage(t): whether it has memory to show; not on a device that is opaque. */
static PyObject *has_storage(PyObject *self, PyObject *arg) {
    (void)self;
    if (!tp_py_is_tensor(arg)) return PyErr_Format(PyExc_TypeError, "_has_storage() takes a Tensor");
    return PyBool_FromLong(!tp_is_opaque(tp_py_tensor_borrow(arg)->storage));
}

/* _is_cow_tensor(t): whether its memory is another's too until it is written to. */
static PyObject *is_cow_tensor(PyObject *self, PyObject *arg) {
    (void)self;
    if (!tp_py_is_tensor(arg)) return PyErr_Format(PyExc_TypeError, "_is_cow_tensor() takes a Tensor");
    return PyBool_FromLong(tp_py_tensor_borrow(arg)->storage->writes == TP_WRITES_COPY);
}

/* Memory moves out of the storage's struct, as for a late copy (Note [Late copies]), which leaves it where it is then.
 */
static int keep_address(tp_storage *s) {
    if (s->writes != TP_WRITES_GO || !tp_storage_can_share(s)) return 0;
    tp_storage *sharer = tp_storage_share(s);
    if (!sharer) return -1;
    tp_storage_release(sharer);
    return tp_storage_own(s);
}

/* _data_address(t): the address of the first element, to look at: what lies there is not to be written to. */
static PyObject *data_address(PyObject *self, PyObject *arg) {
    (void)self;
    if (!tp_py_is_tensor(arg)) return PyErr_Format(PyExc_TypeError, "_data_address() takes a Tensor");
    tp_autoref *t = tp_memory_of(tp_py_tensor_borrow(arg));
    if (!t || tp_settle(t->storage) < 0 || keep_address(t->storage) < 0) return tp_py_raise();
    return PyLong_FromVoidPtr(t->storage->data && !tp_is_opaque(t->storage) ? tp_data(t) : NULL);
}

static PyMethodDef functions[] = {
    {"_data_address", data_address, METH_O, NULL},
    {"_is_cow_tensor", is_cow_tensor, METH_O, NULL},
    {"_has_storage", has_storage, METH_O, NULL},
    {"_rebuild_storage", rebuild_storage, METH_VARARGS, NULL},
    {"_rebuild_wrapper", rebuild_wrapper, METH_VARARGS, NULL},
    {"_rebuild_tensor", rebuild_tensor, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int tp_py_init_pickle(PyObject *m) {
    live_objects = PyDict_New();
    tp_py_storages = (tp_py_storage_class){storage_as_object, storage_of_object};
    tp_py_help_type(&storage_type);
    if (!live_objects || PyModule_AddType(m, &storage_type) < 0) return -1;
    return PyModule_AddFunctions(m, functions);
}
