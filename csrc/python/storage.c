/* storage.c: see storage.h. */
#include "python/storage.h"

tp_py_storage_class tp_py_storages;
