/* storage.h: tensorpy.UntypedStorage as an argument of an operator. The class stands above the operators, which its
 * methods call (pickle.c), and says here what it is. */
#pragma once

#include "python/common.h"

typedef struct {
    PyObject *(*object)(tp_storage *s); /* the one object of a storage, new reference */
    tp_storage *(*borrow)(PyObject *o); /* NULL for what is no storage */
} tp_py_storage_class;
extern tp_py_storage_class tp_py_storages; /* set by tp_py_init_pickle */
