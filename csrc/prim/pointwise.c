/* pointwise.c: see pointwise.h. A program's number has the operator's in its low 16 bits; above them are the choices of
 * its parameters, one after another in mixed radix: 0 for None (or a word that no expression knows), 1 and up. */
#include "prim/pointwise.h"
#include "core/memory.h"

#include "core/lock.h"

#include <stdlib.h>
#include <string.h>

/* ---- the operators, and those from outside ---- */

static const tp_pointwise *added[1024]; /* written under the lock Operators, then for ever the same */
static int64_t nadded;

const tp_pointwise *tp_pointwise_at(int64_t number) {
    if (tp_likely(number >= 0 && number < tp_pointwise_count)) return tp_pointwise_table[number];
    int64_t i = number - tp_pointwise_count;
    return i >= 0 && i < __atomic_load_n(&nadded, __ATOMIC_ACQUIRE) ? added[i] : NULL;
}

/* A library that was built when there were fewer dtypes has shorter tables: none of these has loops for stored ones. */
static int widen_table(tp_pointwise *p) {
    tp_loop_fn *loops = calloc(TP_NUM_DTYPES, sizeof *loops); /* for good, as the operator */
    if (!loops) return tp_fail_memory(TP_NUM_DTYPES * (int64_t)sizeof *loops);
    if (p->loops) memcpy(loops, p->loops, TP_COMPLEX32 * sizeof *loops);
    p->loops = loops;
    return 0;
}

int tp_add_pointwise(tp_pointwise *p) {
    bool known = tp_pointwise_at(p->number) == p;
    if (!known && widen_table(p) < 0) return -1;
    tp_lock(TP_LOCK_Operators);
    bool there = tp_pointwise_at(p->number) == p, full = nadded == TP_COUNTOF(added);
    if (!there && !full) {
        p->number = (uint16_t)(tp_pointwise_count + nadded);
        added[nadded] = p;
        __atomic_store_n(&nadded, nadded + 1, __ATOMIC_RELEASE);
    }
    tp_unlock(TP_LOCK_Operators);
    if (there || !full) return 0;
    return tp_fail(TP_RuntimeError, "%s: there are %d pointwise operators from outside already", p->name,
                   (int)TP_COUNTOF(added));
}

/* ---- programs ---- */

static bool is_none(const tp_value *v) { return v->tag == TP_NONE || (v->tag == TP_SCALAR && !v->scalar); }

static int64_t word_of(const tp_pointwise_param *p, const tp_value *v) {
    for (int64_t i = 0; v->tag == TP_STR && v->str && p->words[i]; i++)
        if (strcmp(v->str, p->words[i]) == 0) return i + 1;
    return 0;
}

/* How many choices a parameter leaves. */
static int64_t choices_of(const tp_pointwise_param *p) {
    int64_t n = p->optional ? 2 : 1;
    if (p->tag != TP_STR) return n;
    for (n = 1; p->words[n - 1]; n++) {
    }
    return n;
}

int64_t tp_program_of(const tp_pointwise *p, const tp_value *params) {
    int64_t choice = 0;
    if (tp_likely(p->nchoices == 1)) return p->number;
    for (int i = p->nparams - 1; i >= 0; i--) {
        const tp_pointwise_param *param = &p->params[i];
        int64_t chosen = param->tag == TP_STR ? word_of(param, &params[i]) : param->optional && !is_none(&params[i]);
        choice = choice * choices_of(param) + chosen;
    }
    return p->number | choice << 16;
}

tp_scalar tp_program_number(const tp_value *v) {
    if (v->tag == TP_SCALAR && v->scalar) return *v->scalar;
    if (v->tag == TP_FLOAT) return *TP_SCALAR_F(v->f);
    if (v->tag == TP_BOOL_) return *TP_SCALAR_B(v->b);
    return *TP_SCALAR_I(v->tag == TP_INT ? v->i : 0);
}

static tp_value param_of(const tp_pointwise_param *p, int64_t chosen, const tp_scalar *number) {
    if (p->tag == TP_STR) return chosen ? (tp_value){.tag = TP_STR, .str = p->words[chosen - 1]} : (tp_value){TP_NONE};
    if (p->optional && !chosen) return (tp_value){TP_NONE};
    if (p->tag == TP_FLOAT) return (tp_value){.tag = TP_FLOAT, .f = tp_scalar_double(number)};
    if (p->tag == TP_BOOL_) return (tp_value){.tag = TP_BOOL_, .b = tp_scalar_bool(number)};
    if (p->tag == TP_INT) return (tp_value){.tag = TP_INT, .i = tp_scalar_int(number)};
    return (tp_value){.tag = TP_SCALAR, .scalar = number};
}

static int fail_call(const char *what) { return tp_fail(TP_RuntimeError, "prim::map: %s", what); }

/* The operator of a program; NULL and the error set for a number that is none's, or another dtype. */
static const tp_pointwise *checked_at(int64_t program, tp_dtype compute) {
    int64_t number = program & 0xffff;
    const tp_pointwise *p = program >= 0 ? tp_pointwise_at(number) : NULL;
    if (!p || program >> 16 >= p->nchoices) return fail_call("there is no such program"), NULL;
    if (compute < 0 || compute >= TP_NUM_DTYPES || !(p->loop_mask >> compute & 1))
        return fail_call("a dtype that the program does not compute in"), NULL;
    return p;
}

/* What input i is converted to. */
static tp_dtype input_dtype(const tp_pointwise *p, int i, tp_dtype compute) {
    return p->input_dtype[i] != TP_NO_DTYPE ? (tp_dtype)p->input_dtype[i] : compute;
}

int tp_map_program_of(int64_t program, tp_dtype compute, tp_map_program *out) {
    const tp_pointwise *p = checked_at(program, compute);
    if (!p) return -1;
    tp_map_program found = {.size = out->size,
                            .name = p->name,
                            .program = &p->programs[tp_class_of(compute)],
                            .ninputs = p->ninputs,
                            .nparams = p->nparams,
                            .result = tp_promotion_result((tp_promotion)p->promotion, compute)};
    for (int i = 0; i < p->ninputs; i++) found.inputs[i] = input_dtype(p, i, compute);
    int64_t choice = program >> 16;
    for (int i = 0; i < p->nparams; i++) {
        int64_t n = p->nchoices == 1 ? 1 : choices_of(&p->params[i]), chosen = choice % n;
        found.none[i] = n > 1 && !chosen;
        found.word[i] = p->params[i].tag == TP_STR ? (int32_t)chosen - 1 : -1;
        choice /= n;
    }
    memcpy(out, &found, out->size < sizeof found ? out->size : sizeof found);
    return 0;
}

int tp_pointwise_refuse_params(const tp_pointwise *p, const tp_value *params, tp_dtype dtype) {
    for (int i = 0; i < p->nparams; i++)
        if (params[i].tag == TP_SCALAR && params[i].scalar && tp_scalar_check_fits(params[i].scalar, dtype) < 0)
            return tp_error_prefix("%s: ", p->name);
    return 0;
}

/* ---- plans ---- */

int tp_map_resolve(tp_map_call *call, int64_t program, const bool *absent, tp_scalars numbers, tp_dtype compute) {
    int64_t choice = program >> 16;
    const tp_pointwise *p = call->p = checked_at(program, compute);
    if (!p) return -1;
    int64_t wanted = p->nparams;
    for (int i = 0; i < p->ninputs; i++) wanted += absent[i];
    if (numbers.size != wanted) return fail_call("another number of numbers than the program has");
    call->result = tp_promotion_result((tp_promotion)p->promotion, compute);
    const tp_scalar *next = numbers.data;
    for (int i = 0; i < p->ninputs; i++) {
        call->wanted[i] = input_dtype(p, i, compute);
        if (absent[i]) tp_scalar_store(next++, call->wanted[i], &call->numbers[i]);
    }
    for (int i = 0; i < p->nparams; i++) {
        int64_t n = p->nchoices == 1 ? 1 : choices_of(&p->params[i]);
        call->params[i] = param_of(&p->params[i], n == 1 ? 0 : choice % n, next++);
        choice = n == 1 ? choice : choice / n;
    }
    return 0;
}

int tp_map_begin(tp_map_job *job, int64_t program, tp_tensors inputs, tp_scalars numbers, tp_dtype compute,
                 tp_tensor *out) {
    const tp_pointwise *p = checked_at(program, compute);
    bool absent[TP_MAP_INPUTS];
    if (!p) return -1;
    if (inputs.size != p->ninputs) return fail_call("another number of inputs than the program has");
    job->tensors[0] = out;
    for (int i = 0; i < p->ninputs; i++) {
        job->tensors[i + 1] = inputs.data[i];
        absent[i] = !inputs.data[i];
    }
    return tp_map_resolve(&job->call, program, absent, numbers, compute);
}

int tp_map_finish(tp_map_job *job) {
    int n = job->call.p->ninputs;
    if (tp_iter_plan(&job->it, job->tensors, 1, n + 1, tp_sizes(job->tensors[0])) < 0) return -1;
    job->it.loop_dtype[0] = job->call.result;
    for (int i = 0; i < n; i++) {
        job->it.loop_dtype[i + 1] = job->call.wanted[i];
        if (job->tensors[i + 1]) continue;
        job->it.data[i + 1] = (char *)&job->call.numbers[i];
        job->it.dtype[i + 1] = job->call.wanted[i];
    }
    return 0;
}

int tp_map_plan(tp_map_job *job, int64_t program, tp_tensors inputs, tp_scalars numbers, tp_dtype compute,
                tp_tensor *out) {
    return tp_map_begin(job, program, inputs, numbers, compute, out) < 0 ? -1 : tp_map_finish(job);
}

bool tp_map_lies_flat(const tp_map_job *job, char **data, int64_t *strides) {
    const tp_tensor *out = job->tensors[0];
    if (!tp_is_contiguous(out) || (tp_dtype)out->dtype != job->call.result) return false;
    data[0] = tp_data(out);
    strides[0] = tp_itemsize(job->call.result);
    for (int i = 0; i < job->call.p->ninputs; i++) {
        const tp_tensor *t = job->tensors[i + 1];
        data[i + 1] = t ? tp_data(t) : (char *)&job->call.numbers[i];
        strides[i + 1] = t && t->numel != 1 ? tp_itemsize((tp_dtype)t->dtype) : 0;
        if (!t) continue;
        if (!tp_is_contiguous(t) || (tp_dtype)t->dtype != job->call.wanted[i]) return false;
        if (t->numel != 1 && !tp_same_sizes(t, out)) return false;
    }
    return true;
}
