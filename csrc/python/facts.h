/* facts.h: what a call is known by: the classes and sizes of its tensors, the values of numbers and words, containers
 * by their class and size, other objects themselves; in a row, containers before what is in them. */
#pragma once

#include "python/common.h"

#define TP_FEW_TENSORS 16 /* of a call, that need no memory to be looked at */

typedef enum { TP_FACT_TENSOR, TP_FACT_CONTAINER, TP_FACT_CONSTANT, TP_FACT_OBJECT } tp_py_fact_kind;

typedef struct {
    tp_py_fact_kind kind;
    PyObject *object; /* the class of a tensor or container, the constant, the object; owned */
    Py_ssize_t size;  /* of a container; of a result: the number of the tensor, or minus one minus the argument's */
    bool requires_grad;
    uint8_t dtype, ndim;
    tp_keyset keys;
    int64_t *geometry; /* sizes and strides */
} tp_py_fact;

typedef struct {
    tp_py_fact *items;
    Py_ssize_t count, room;
} tp_py_facts;

/* The tensors of a call's arguments, in the order of the facts. */
typedef struct {
    tp_tensor **items;  /* the first ones lie in `few` */
    PyObject **objects; /* theirs; owned */
    Py_ssize_t count, room;
    tp_tensor *few[TP_FEW_TENSORS];
    PyObject *few_objects[TP_FEW_TENSORS];
} tp_py_tensors;

void tp_py_facts_clear(tp_py_facts *f);
/* With a reference to the object; NULL raised. */
tp_py_fact *tp_py_facts_add(tp_py_facts *f, tp_py_fact_kind kind, PyObject *object);
void tp_py_tensors_begin(tp_py_tensors *t);
void tp_py_tensors_empty(tp_py_tensors *t);
void tp_py_tensors_clear(tp_py_tensors *t); /* its memory, too */
/* None, a bool, an int, a float or a str. */
bool tp_py_is_constant(PyObject *o);
/* The same object, or such a constant of the same class and value; a float by its bits. */
bool tp_py_same_constant(PyObject *a, PyObject *b);
/* A tuple, list or dict. */
bool tp_py_is_container(PyObject *o);
/* Adds what is known of an argument, and its tensors; -1 raised. */
int tp_py_facts_note(tp_py_facts *f, tp_py_tensors *t, PyObject *o);
/* Whether an argument is as noted, from a place on, which moves: 1, 0, or -1 raised. */
int tp_py_facts_fit(const tp_py_facts *f, Py_ssize_t *at, tp_py_tensors *t, PyObject *o);
/* Whether two results are made alike: containers, constants, the places of tensors. */
bool tp_py_facts_same(const tp_py_facts *a, const tp_py_facts *b);
