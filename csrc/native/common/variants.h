/* variants.h: the out= and in-place variants of operators that only have a functional kernel. */
#pragma once

#include "core/tensor.h"

/* Resizes out to made's sizes and copies; RuntimeError if out is not of made's dtype. */
int tp_copy_into_out(tp_tensor *out, tp_tensor *made);
/* The same for any dtype that made may be cast to. */
int tp_cast_into_out(tp_tensor *out, tp_tensor *made);
/* The same of what is made of numbers alone, whose out= is resized without a warning, as in PyTorch; of a range, whose
 * out= keeps any shape of as many elements; and of a range whose length follows from its step, which warns. */
int tp_made_into_out(tp_tensor *out, tp_tensor *made);
int tp_range_into_out(tp_tensor *out, tp_tensor *made);
int tp_counted_into_out(tp_tensor *out, tp_tensor *made);
/* Gives out made's sizes, before it is asked where its memory lies; RuntimeError where its elements share memory. */
int tp_fit_out(tp_tensor *out, const tp_tensor *made);
/* RuntimeError where several elements of out lie at one address, or where out shares memory with what is read. */
int tp_check_out_apart(const tp_tensor *out, const tp_tensor *read);
/* Fails where an out= is a part of what is read, or that a part of it; one tensor's memory for both is right. NULLs are
 * skipped. */
int tp_check_out_whole(const tp_tensor *out, tp_tensor *const *read, int64_t n);
int tp_check_out_apart_of(const tp_tensor *out, tp_tensors read);
/* Casts without resizing; sizes must agree. */
int tp_copy_into_self(tp_tensor *self, tp_tensor *made);
/* The same for an operator that is differentiated by its parts: the copy goes through the layers and is one of them. */
int tp_copy_into_self_recorded(tp_tensor *self, tp_tensor *made);
/* What such an operator computes from: self, or where its parts are recorded for one of the n tensors, a copy, since
 * they may save it and self changes. NULLs are skipped. New. */
tp_tensor *tp_unwritten(tp_tensor *self, tp_tensor *const *read, int n);
/* For a list of outputs: as many as were made. */
int tp_copy_into_out_list(tp_tensors outs, const tp_tensor_seq *made);
int tp_cast_into_out_list(tp_tensors outs, const tp_tensor_seq *made);
/* Copies of a list's tensors, new; and the tensors of one list into those of another. */
tp_tensor_seq *tp_clone_list(tp_tensors list);
int tp_copy_list(tp_tensors outs, tp_tensors from);
/* -1, with the error of a call that gave no first result; where it left none (all its results are absent), with one
 * that says so. */
int tp_no_result(void);
/* For several outputs; releases the n tensors of made. What a mask leaves out is NULL, and its output is untouched. */
int tp_copy_into_outs_steal(tp_tensor *const *outs, tp_tensor *const *made, int n);
int tp_cast_into_outs_steal(tp_tensor *const *outs, tp_tensor *const *made, int n);
