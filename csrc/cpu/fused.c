/* fused.c: the primitives fused.map and fused.reduce on the CPU: several calls of map in blocks that stay in the L1
 * cache.
 *
 * The space of the outputs is cut into blocks of 2 KB. Each block passes all calls, through the loops that map itself
 * runs: a value that is no output lies in a buffer of the size of a block, which another value takes over when nothing
 * reads it any more. An input that is broadcast, or a slice of short rows, is laid out for the block. An element's bits
 * do not depend on where its block begins (Note [Blocks]), so they are those of map.
 *
 * fused.reduce makes one of the values as it is reduced, a leaf of the reduction at a time (reduction.h). */
#include "PrimitiveKernels.h"
#include "core/clock.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "core/tls.h"
#include "cpu/kernels.h"
#include "cpu/run.h"
#include "prim/fused.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define BLOCK_BYTES 2048
#define ROOM                                                                                                          \
    (TP_FUSED_CALLS + TP_FUSED_TENSORS + TP_MAP_INPUTS + 1) /* buffers of a thread: all values, and what is converted \
                                                             */
#define NO_BUFFER -1
#define CHAIN_LINKS 96        /* of all chains: calls after these are run one by one */
#define CHAINED 256           /* elements from which on chains are looked for */
#define LINE 64               /* bytes of a cache line */
#define SHARES 6              /* in which a block asks for lines: a step of many does not do it for one line */
#define FAR_WRITE (512 << 10) /* bytes of memory that is not in the L2 cache, */
#define FAR_READ (8 << 20)    /* of memory that is in no cache, */
#define STREAMED (32 << 20)   /* and of outputs that are written past the caches */

/* Where a value's elements are. */
typedef struct {
    char *base;   /* of memory, */
    int buffer;   /* or of a buffer, */
    bool is_made; /* or where a reduction wants them */
    tp_dtype dtype;
    tp_fused_walk walk;          /* of an input; its run is 0 where it lies as the outputs do */
    const tp_fused_lines *lines; /* of an input that has no walk; else NULL */
    bool in_lines;               /* a line has one element of it, or neighbours */
    char *streamed;              /* where the elements of an output's buffer go; else NULL */
} place;

/* Memory in no near cache. */
typedef struct {
    const char *base, *end;
    int64_t size; /* bytes of an element */
    bool is_written;
} far_value;

/* An operand of a plain step: element `begin` of memory, or of a buffer, which has the block from its beginning. */
typedef struct {
    char *base;      /* NULL: a buffer, */
    int64_t advance; /* at this byte of the room; else bytes to the next element of memory */
} operand;

typedef struct {
    tp_map_call map;
    tp_loop_fn loop;                    /* of a copy: the conversion; NULL: bytes are copied */
    tp_loop_fn cast[TP_MAP_INPUTS + 1]; /* of the result, then of the inputs; NULL: none */
    int scratch[TP_MAP_INPUTS + 1];
    bool is_plain; /* nothing is converted, laid out or reduced: the operands and their strides are these */
    operand operands[TP_MAP_INPUTS + 1];
    int64_t strides[TP_MAP_INPUTS + 1];
    int chain;                    /* of a chain's first call: how many calls it has, as they run; else 0 */
    int first_link, end_of_links; /* of it, among the job's */
} step;

/* A link of a chain for all blocks. */
typedef struct {
    uint8_t op; /* TP_LINK_... */
    operand where;
    const place *value; /* NULL, or locate() looks for it */
    tp_element number;  /* what `where` may point to */
} link;

typedef struct {
    const tp_fused *f;
    int64_t numel, block, line; /* elements: no block crosses a multiple of `line` */
    int nvalues, nfar;
    bool reduces;          /* the last value is reduced */
    bool streams;          /* some outputs are written past the caches */
    bool has_chains;       /* calls of arithmetic may follow each other in registers */
    tp_fused_times *times; /* or NULL */
    int64_t look;          /* nanoseconds of a look at the clock, if there are times */
    far_value far[TP_FUSED_TENSORS + TP_FUSED_CALLS];
    place values[TP_FUSED_TENSORS + TP_FUSED_CALLS];
    tp_fused_lines lines[TP_FUSED_TENSORS];
    step steps[TP_FUSED_CALLS];
    uint8_t order[TP_FUSED_CALLS];     /* the calls as they run, */
    int64_t share_end[TP_FUSED_CALLS]; /* and elements of a block up to which each of these asks for lines */
    int nlinks;
    link links[CHAIN_LINKS];
} job;

static int fail(const char *what) { return tp_fail(TP_RuntimeError, "prim::fused.map: %s", what); }

/* ---- the order of the calls ---- */

static bool is_plain_arithmetic(const job *j, int c, tp_dtype compute) {
    const tp_fused_call *call = &j->f->calls[c];
    if (call->program < 0 || call->compute != compute) return false;
    for (int i = 0; i <= call->ninputs; i++)
        if (j->steps[c].cast[i]) return false;
    return true;
}

/* The call that may come right after `c`, whose value it reads: the first that is left, unless it also reads what is
 * not there yet. One with an output stays where it is, since those before it may read that memory; -1: none. */
static int follower(const job *j, int c, const bool *placed) {
    const tp_fused *f = j->f;
    bool is_next = true; /* nothing is left before it */
    for (int d = c + 1; d < f->ncalls; d++) {
        bool reads = false, is_ready = true;
        for (int i = 0; i < f->calls[d].ninputs && !placed[d]; i++) {
            const int from = f->calls[d].in[i] - f->ninputs;
            reads |= from == c;
            is_ready &= from < 0 || placed[from];
        }
        if (reads) {
            const place *v = &j->values[f->ninputs + d];
            const bool may_move = is_next || !(v->base || v->is_made);
            return is_ready && may_move && is_plain_arithmetic(j, d, (tp_dtype)f->calls[c].compute) ? d : -1;
        }
        is_next &= placed[d];
    }
    return -1;
}

/* A call of arithmetic comes right after the one whose value it reads, where it may: chains are longer so. */
static void find_order(job *j) {
    bool placed[TP_FUSED_CALLS] = {false};
    for (int c = 0; c < j->f->ncalls; c++) j->order[c] = (uint8_t)c;
    j->has_chains = j->numel >= CHAINED && tp_fusion_has(TP_FUSION_CHAINS);
    if (!j->has_chains) return;
    for (int first = 0, at = 0; first < j->f->ncalls; first++)
        for (int c = placed[first] ? -1 : first; c >= 0; c = follower(j, c, placed)) {
            placed[c] = true;
            j->order[at++] = (uint8_t)c;
        }
}

/* ---- buffers ---- */

typedef struct {
    bool taken[ROOM];
} buffers;

/* There is room for all. */
static int take(buffers *b) {
    for (int i = 0; i < ROOM; i++)
        if (!b->taken[i]) {
            b->taken[i] = true;
            return i;
        }
    return NO_BUFFER;
}

/* The last call that reads each value, by its place in the order. */
static void find_last_uses(const job *j, int *last) {
    const tp_fused *f = j->f;
    for (int i = 0; i < f->ninputs + f->ncalls; i++) last[i] = -1;
    for (int at = 0; at < f->ncalls; at++) {
        const tp_fused_call *call = &f->calls[j->order[at]];
        for (int i = 0; i < call->ninputs; i++)
            if (call->in[i] >= 0) last[call->in[i]] = at;
    }
}

/* `last`: the last uses of the values. */
static int give_buffers(job *j, const int *last) {
    const tp_fused *f = j->f;
    buffers b = {{false}};
    for (int i = 0; i < f->ninputs; i++) {
        j->values[i].buffer = NO_BUFFER;
        const place *v = &j->values[i];
        bool laid_out = !v->in_lines && (v->lines || (v->walk.run && v->walk.period > 1));
        if (laid_out && (j->values[i].buffer = take(&b)) < 0) return fail("too many values at a time");
    }
    for (int at = 0; at < f->ncalls; at++) {
        const int c = j->order[at];
        step *s = &j->steps[c];
        place *made = &j->values[f->ninputs + c];
        for (int i = 0; i <= f->calls[c].ninputs; i++)
            if (s->cast[i] && (s->scratch[i] = take(&b)) < 0) return fail("too many values at a time");
        made->buffer = NO_BUFFER;
        if ((!made->base || made->streamed) && !made->is_made && (made->buffer = take(&b)) < 0)
            return fail("too many values at a time");
        for (int i = 0; i <= f->calls[c].ninputs; i++)
            if (s->cast[i]) b.taken[s->scratch[i]] = false;
        for (int i = 0; i < f->calls[c].ninputs; i++) {
            int v = f->calls[c].in[i];
            if (v >= f->ninputs && last[v] == at && j->values[v].buffer >= 0) b.taken[j->values[v].buffer] = false;
        }
        if (made->buffer >= 0 && last[f->ninputs + c] < 0) b.taken[made->buffer] = false;
    }
    return 0;
}

/* Bytes from one element of a value to the next; 0: there is one for all of a block. */
static inline int64_t stride_of(const place *v) {
    const int64_t size = tp_itemsize(v->dtype);
    if (v->buffer >= 0 || v->is_made) return size;
    if (v->lines) return size * v->lines->strides[0];
    return !v->walk.run || (v->walk.run == 1 && v->walk.period > 1) ? size : 0;
}

/* False: locate() looks for it, block by block. */
static bool find_operand(const place *v, operand *o) {
    const int64_t stride = stride_of(v);
    const bool is_one = v->walk.run && v->walk.period == 1; /* element for all */
    *o = v->buffer >= 0 ? (operand){NULL, v->buffer * BLOCK_BYTES} : (operand){v->base, stride};
    return v->buffer >= 0 || (!v->is_made && !v->lines && (is_one || !v->walk.run));
}

static void find_operands(job *j, int c) {
    const tp_fused_call *call = &j->f->calls[c];
    step *s = &j->steps[c];
    const place *made = &j->values[j->f->ninputs + c];
    s->strides[0] = stride_of(made);
    s->is_plain = s->loop && !s->cast[0] && find_operand(made, &s->operands[0]);
    for (int i = 0; s->is_plain && i < call->ninputs; i++) {
        s->operands[i + 1] = (operand){(char *)&s->map.numbers[i], 0};
        s->strides[i + 1] = 0;
        if (call->in[i] < 0) continue;
        const place *v = &j->values[call->in[i]];
        s->strides[i + 1] = stride_of(v);
        s->is_plain = !s->cast[i + 1] && find_operand(v, &s->operands[i + 1]);
    }
}

/* ---- chains ---- */

static void add_value(job *j, int op, const place *v) {
    link *l = &j->links[j->nlinks++];
    l->value = find_operand(v, &l->where) ? NULL : v;
    l->op = (uint8_t)(op + (op != TP_LINK_STORE && !stride_of(v)));
}

static void add_number(job *j, int op, tp_element number) {
    link *l = &j->links[j->nlinks++];
    *l = (link){(uint8_t)(op < TP_LINK_NEGATE ? op + 1 : op), {(char *)&l->number, 0}, NULL, number};
}

/* Adds what call `c` computes to a chain whose value so far is `former`, or which it begins if that is -1: false and
 * nothing added if it cannot. */
static bool add_call(job *j, int c, int former, tp_dtype compute) {
    const tp_fused_call *call = &j->f->calls[c];
    tp_link_of_call links[TP_LINKS_OF_CALL];
    unsigned carried = 0;
    for (int i = 0; i < call->ninputs && former >= 0; i++) carried |= (unsigned)(call->in[i] == former) << i;
    if ((former >= 0 && !carried) || !is_plain_arithmetic(j, c, compute)) return false;
    const int n = tp_links_of(&j->steps[c].map, compute, carried, links);
    if (!n || j->nlinks + n + 2 > CHAIN_LINKS) return false; /* two that store: the former value, and this one */
    for (int i = 0; i < n; i++) {
        const int input = links[i].input, value = input == TP_LINK_NUMBER ? -1 : call->in[input];
        tp_element number;
        if (input == TP_LINK_NUMBER) tp_scalar_store(TP_SCALAR_F(links[i].number), compute, &number);
        else if (value < 0) number = j->steps[c].map.numbers[input];
        if (value < 0) add_number(j, links[i].op, number);
        else add_value(j, links[i].op, &j->values[value]);
    }
    return true;
}

/* Adds to a chain the calls at `at` and after it, as long as each reads the value of the one before: where it ends. A
 * value that is needed besides is stored on the way; one that is written past the caches is the last of its chain,
 * since its buffer may be another's after it. */
static int add_calls_after(job *j, int at, const int *last, tp_dtype compute) {
    for (; at < j->f->ncalls; at++) {
        const int former = j->f->ninputs + j->order[at - 1], before = j->nlinks;
        const place *v = &j->values[former];
        if (v->streamed) break;
        if (v->base || last[former] > at) add_value(j, TP_LINK_STORE, v);
        if (add_call(j, j->order[at], former, compute)) continue;
        j->nlinks = before;
        break;
    }
    return at;
}

static void find_chains(job *j, const int *last) {
    for (int c = 0; c < j->f->ncalls; c++) j->steps[c].chain = 0;
    j->nlinks = 0;
    if (!j->has_chains) return;
    for (int at = 0, end; at < j->f->ncalls; at = end) {
        step *s = &j->steps[j->order[at]];
        const tp_dtype compute = (tp_dtype)j->f->calls[j->order[at]].compute;
        s->first_link = j->nlinks;
        end = at + 1;
        if (!add_call(j, j->order[at], -1, compute)) continue;
        end = add_calls_after(j, end, last, compute);
        if (end == at + 1) {
            j->nlinks = s->first_link;
            continue;
        }
        add_value(j, TP_LINK_STORE, &j->values[j->f->ninputs + j->order[end - 1]]);
        s->chain = end - at;
        s->end_of_links = j->nlinks;
    }
}

/* ---- a block ---- */

typedef struct {
    alignas(64) char room[ROOM][BLOCK_BYTES];
    const job *j;
    char *made; /* where the block of the value goes that is reduced */
} worker;

/* Where an operand's block is. */
static inline char *operand_at(worker *w, const operand *o, int64_t begin) {
    return o->base ? o->base + begin * o->advance : w->room[0] + o->advance;
}

static inline void repeat(char *to, const char *element, int64_t count, int64_t size) {
    for (int64_t i = 0; i < count; i++) memcpy(to + i * size, element, (size_t)size);
}

/* Where element `number` of an input in lines is, and how many of its line begin there. */
static inline char *in_line(const place *v, int64_t number, int64_t *left) {
    const tp_fused_lines *l = v->lines;
    int64_t inside = number % l->sizes[0], at = inside * l->strides[0];
    *left = l->sizes[0] - inside;
    number /= l->sizes[0];
    for (int d = 1; d < l->ndim; d++) {
        at += number % l->sizes[d] * l->strides[d];
        number /= l->sizes[d];
    }
    return v->base + at * tp_itemsize(v->dtype);
}

static void lay_lines_out(const place *v, char *to, int64_t begin, int64_t n) {
    int64_t size = tp_itemsize(v->dtype), left;
    for (int64_t at = 0; at < n;) {
        const char *from = in_line(v, begin + at, &left);
        int64_t count = left < n - at ? left : n - at;
        if (v->lines->strides[0]) memcpy(to + at * size, from, (size_t)(count * size));
        else repeat(to + at * size, from, count, size);
        at += count;
    }
}

/* Lays an input out for elements [begin, begin + n). */
static void lay_out(const place *v, char *to, int64_t begin, int64_t n) {
    if (v->lines) return lay_lines_out(v, to, begin, n);
    int64_t size = tp_itemsize(v->dtype), run = v->walk.run, period = v->walk.period;
    for (int64_t at = 0; at < n;) {
        int64_t here = begin + at, element = here / run % period, inside = here % run;
        if (run == 1) {
            int64_t count = period - element < n - at ? period - element : n - at;
            memcpy(to + at * size, v->base + element * size, (size_t)(count * size));
            at += count;
            continue;
        }
        int64_t count = run - inside < n - at ? run - inside : n - at;
        repeat(to + at * size, v->base + element * size, count, size);
        at += count;
    }
}

/* Where a value's elements from `begin` on are. */
static inline char *locate(worker *w, const place *v, int64_t begin) {
    const int64_t size = tp_itemsize(v->dtype);
    if (v->buffer >= 0) return w->room[v->buffer];
    if (v->is_made) return w->made;
    if (v->lines) {
        int64_t left;
        return in_line(v, begin, &left);
    }
    return v->base + (v->walk.run ? begin / v->walk.run % v->walk.period : begin) * size;
}

static void run_step_by_parts(worker *w, int c, int64_t begin, int64_t n) {
    const job *j = w->j;
    const tp_fused_call *call = &j->f->calls[c];
    const step *s = &j->steps[c];
    const place *made = &j->values[j->f->ninputs + c];
    char *data[TP_MAP_INPUTS + 1], *target;
    int64_t strides[TP_MAP_INPUTS + 1], step_of_target;
    target = data[0] = locate(w, made, begin);
    step_of_target = strides[0] = stride_of(made);
    if (s->cast[0]) {
        data[0] = w->room[s->scratch[0]];
        strides[0] = tp_itemsize(s->map.result);
    }
    for (int i = 0; i < call->ninputs; i++) {
        if (call->in[i] < 0) {
            data[i + 1] = (char *)&s->map.numbers[i];
            strides[i + 1] = 0;
            continue;
        }
        const place *v = &j->values[call->in[i]];
        data[i + 1] = locate(w, v, begin);
        strides[i + 1] = stride_of(v);
        if (!s->cast[i + 1]) continue;
        int64_t wide = tp_itemsize(s->map.wanted[i]);
        char *const both[] = {w->room[s->scratch[i + 1]], data[i + 1]};
        s->cast[i + 1](both, (const int64_t[]){wide, strides[i + 1]}, strides[i + 1] ? n : 1, NULL);
        data[i + 1] = both[0];
        strides[i + 1] = strides[i + 1] ? wide : 0;
    }
    if (s->loop) s->loop(data, strides, n, s->map.params);
    else memmove(data[0], data[1], (size_t)(n * strides[0]));
    if (!s->cast[0]) return;
    char *const both[] = {target, data[0]};
    s->cast[0](both, (const int64_t[]){step_of_target, strides[0]}, n, NULL);
}

static inline void run_step(worker *w, int c, int64_t begin, int64_t n) {
    const step *s = &w->j->steps[c];
    char *data[TP_MAP_INPUTS + 1];
    if (!s->is_plain) return run_step_by_parts(w, c, begin, n);
    for (int i = 0; i <= w->j->f->calls[c].ninputs; i++) {
        const operand *o = &s->operands[i];
        data[i] = operand_at(w, o, begin);
    }
    s->loop(data, s->strides, n, s->map.params);
}

static void run_chain(worker *w, const step *s, tp_dtype compute, int64_t begin, int64_t n) {
    tp_link links[CHAIN_LINKS + 1];
    const int count = s->end_of_links - s->first_link;
    for (int i = 0; i < count; i++) {
        const link *l = &w->j->links[s->first_link + i];
        links[i] = (tp_link){l->op, l->value ? locate(w, l->value, begin) : operand_at(w, &l->where, begin)};
    }
    links[count].op = TP_LINK_END;
    (compute == TP_FLOAT32 ? tp_cpu.chain->run_f32 : tp_cpu.chain->run_f64)(links, n);
}

/* A store past the caches reads no line before it writes it. */
#ifdef __SSE2__
#define HAS_STREAMS true
TP_INLINE void stream_line(char *to, const char *from) {
    for (int i = 0; i < LINE / 16; i++) _mm_stream_si128((__m128i *)to + i, _mm_load_si128((const __m128i *)from + i));
}
/* What was streamed is there before anything that follows. */
TP_INLINE void end_streams(void) { _mm_sfence(); }
#else
#define HAS_STREAMS false
TP_INLINE void stream_line(char *to, const char *from) { memcpy(to, from, LINE); }
TP_INLINE void end_streams(void) {}
#endif

static void stream(const place *made, const char *from, int64_t begin, int64_t n) {
    const int64_t size = tp_itemsize(made->dtype), bytes = n * size;
    char *to = made->streamed + begin * size;
    int64_t at = 0;
    for (; (uintptr_t)to % LINE == 0 && at + LINE <= bytes; at += LINE) stream_line(to + at, from + at);
    memcpy(to + at, from + at, (size_t)(bytes - at));
}

/* The call at a place of the order asks for its share of the next block's lines. Inline, since gcc takes a call that
 * does nothing else for one that does nothing. */
TP_INLINE void ask_for_lines(const job *j, int64_t next, int at_call) {
    int64_t first = next + (at_call ? j->share_end[at_call - 1] : 0);
    int64_t last = next + j->share_end[at_call];
    if (first == last) return;
    for (int i = 0; i < j->nfar; i++) {
        const far_value *v = &j->far[i];
        const char *at = v->base + first * v->size, *end = v->base + last * v->size;
        if (end > v->end) end = v->end;
        if (v->is_written)
            for (; at < end; at += LINE) __builtin_prefetch(at, 1, 3);
        else
            for (; at < end; at += LINE) __builtin_prefetch(at, 0, 2);
    }
}

#define TIMED_BLOCKS 8 /* of so many one is timed: a look at the clock takes as long as a light call */

static bool times_block(const job *j, int64_t begin) {
    bool is_timed = begin / j->block % TIMED_BLOCKS == 0;
    atomic_fetch_add_explicit(&j->times->blocks, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&j->times->timed, is_timed, memory_order_relaxed);
    return is_timed;
}

static void run_step_timed(worker *w, int c, int64_t begin, int64_t n) {
    int64_t before = tp_clock_ns();
    run_step(w, c, begin, n);
    int64_t spent = tp_clock_ns() - before - w->j->look;
    if (spent > 0) atomic_fetch_add_explicit(&w->j->times->spent[c], spent, memory_order_relaxed);
}

static void run_block(worker *w, int64_t begin, int64_t n) {
    const job *j = w->j;
    for (int i = 0; i < j->f->ninputs; i++)
        if (j->values[i].buffer >= 0) lay_out(&j->values[i], w->room[j->values[i].buffer], begin, n);
    const bool is_timed = tp_unlikely(j->times != NULL) && times_block(j, begin);
    for (int at = 0, chained = 0; at < j->f->ncalls; at++) {
        const int c = j->order[at];
        if (tp_unlikely(is_timed)) run_step_timed(w, c, begin, n);
        else if (j->steps[c].chain) {
            run_chain(w, &j->steps[c], (tp_dtype)j->f->calls[c].compute, begin, n);
            chained = at + j->steps[c].chain;
        } else if (at >= chained) run_step(w, c, begin, n);
        const place *made = &j->values[j->f->ninputs + c];
        if (made->streamed) stream(made, w->room[made->buffer], begin, n);
        if (j->nfar) ask_for_lines(j, begin + n, at);
    }
}

/* Elements [begin, end), in blocks; `made` moves along. */
static void run_range(worker *w, int64_t begin, int64_t end) {
    const job *j = w->j;
    int64_t item = tp_itemsize(j->values[j->nvalues - 1].dtype);
    while (begin < end && tp_likely(tp_tls.error_class == TP_NoError)) { /* a signal ends a recurrence */
        int64_t n = j->line - begin % j->line;
        if (n > j->block) n = j->block;
        if (n > end - begin) n = end - begin;
        run_block(w, begin, n);
        if (w->made) w->made += n * item;
        begin += n;
    }
}

static void run_blocks(int64_t first, int64_t end, void *context) {
    const job *j = context;
    worker w;
    w.j = j;
    w.made = NULL;
    run_range(&w, first * j->block, end * j->block < j->numel ? end * j->block : j->numel);
    if (j->streams) end_streams();
}

/* ---- a call ---- */

static int place_inputs(job *j, tp_tensors inputs, const tp_tensor *out) {
    for (int i = 0; i < j->f->ninputs; i++) {
        const tp_tensor *t = inputs.data[i];
        place *v = &j->values[i];
        *v = (place){.base = tp_data(t), .dtype = (tp_dtype)t->dtype};
        if (!tp_fused_walk_of(t, out, &v->walk)) {
            if (!tp_fused_lines_of(t, out, &j->lines[i]))
                return fail("an input that lies in another way than the output");
            v->lines = &j->lines[i];
            v->walk.run = 0;
        }
        if (v->walk.run == 1 && v->walk.period == out->numel) v->walk.run = 0;
    }
    return 0;
}

static int start_step(job *j, int c, tp_scalars numbers) {
    const tp_fused_call *call = &j->f->calls[c];
    step *s = &j->steps[c];
    bool absent[TP_MAP_INPUTS] = {false};
    tp_dtype made = (tp_dtype)call->dtype;
    memset(s->cast, 0, sizeof s->cast);
    if (call->program < 0) {
        tp_dtype from = j->values[call->in[0]].dtype;
        s->loop = from == made ? NULL : tp_cast_loop(from, made);
        return 0;
    }
    for (int i = 0; i < call->ninputs; i++) absent[i] = call->in[i] < 0;
    if (tp_map_resolve(&s->map, call->program, absent, numbers, (tp_dtype)call->compute) < 0) return -1;
    s->loop = s->map.p->loops[call->compute];
    if (s->map.result != made) s->cast[0] = tp_cast_loop(s->map.result, made);
    for (int i = 0; i < call->ninputs; i++) {
        if (absent[i] || j->values[call->in[i]].dtype == s->map.wanted[i]) continue;
        s->cast[i + 1] = tp_cast_loop(j->values[call->in[i]].dtype, s->map.wanted[i]);
    }
    return 0;
}

#define SHORT_LINE 128

/* Lines are the rows of inputs that are broadcast along or across them, if these are long: such inputs need not be laid
 * out. */
static void find_lines(job *j) {
    j->line = 0;
    for (int i = 0; i < j->f->ninputs; i++) {
        const place *v = &j->values[i];
        int64_t run = v->lines ? v->lines->sizes[0] : v->walk.period > 1 ? v->walk.run : 0;
        if (run >= SHORT_LINE && (!j->line || run < j->line)) j->line = run;
    }
    for (int i = 0; !j->line && i < j->f->ninputs; i++)
        if (j->values[i].walk.run == 1 && j->values[i].walk.period >= SHORT_LINE) j->line = j->values[i].walk.period;
    if (!j->line) {
        j->line = j->numel + 1;
        return;
    }
    for (int i = 0; i < j->f->ninputs; i++) {
        place *v = &j->values[i];
        int64_t of = v->lines ? v->lines->sizes[0] : v->walk.run == 1 ? v->walk.period : v->walk.run;
        v->in_lines = of && of % j->line == 0;
    }
}

static void add_far(job *j, const tp_tensor *t, const place *v, bool is_written) {
    const char *end = (const char *)t->storage->data + t->storage->nbytes;
    j->far[j->nfar++] = (far_value){v->base, end, tp_itemsize(v->dtype), is_written};
}

/* What is read as well has its lines in the caches, and a reduction reads what it stores. */
static bool is_streamed(const job *j, const tp_tensor *out, tp_tensors inputs) {
    if (!HAS_STREAMS || j->reduces) return false;
    for (int64_t i = 0; i < inputs.size; i++)
        if (inputs.data[i]->storage == out->storage) return false;
    return !tp_fusion_has(TP_FUSION_NEAR) || out->numel * tp_itemsize((tp_dtype)out->dtype) > STREAMED;
}

/* What is asked for: the CPU's own look ahead ends with each block, and stores wait for their lines. What counts is the
 * whole memory, of which a tile of rows is a part. */
static void find_far_values(job *j, tp_tensors inputs, tp_tensors out) {
    const tp_fused *f = j->f;
    for (int o = 0; o < f->noutputs; o++) {
        place *v = &j->values[f->outputs[o]];
        if (is_streamed(j, out.data[o], inputs)) v->streamed = v->base, j->streams = true;
        else if (out.data[o]->storage->nbytes > FAR_WRITE) add_far(j, out.data[o], v, true);
    }
    int written = j->nfar;
    for (int i = 0; i < f->ninputs; i++) {
        const place *v = &j->values[i];
        bool is_changed = false;
        for (int o = 0; o < written; o++) is_changed |= j->far[o].base == v->base;
        if (inputs.data[i]->storage->nbytes <= FAR_READ || v->lines || v->walk.run || is_changed) continue;
        add_far(j, inputs.data[i], v, false);
    }
}

/* The largest element that a buffer holds; blocks of smaller ones than 4 bytes are no longer. */
static int64_t widest(const job *j) {
    int64_t most = 1;
    for (int i = 0; i < j->nvalues; i++) {
        int64_t size = tp_itemsize(j->values[i].dtype);
        if (size > most) most = size;
    }
    for (int c = 0; c < j->f->ncalls; c++) {
        const tp_map_call *map = &j->steps[c].map;
        for (int i = 0; j->f->calls[c].program >= 0 && i < j->f->calls[c].ninputs; i++)
            if (tp_itemsize(map->wanted[i]) > most) most = tp_itemsize(map->wanted[i]);
        if (j->f->calls[c].program >= 0 && tp_itemsize(map->result) > most) most = tp_itemsize(map->result);
    }
    return most < 4 ? 4 : most;
}

/* `like` lies as the outputs do. How much a call costs, in units of a light one, goes to `shift`. */
static int start(job *j, int64_t program, tp_tensors inputs, tp_scalars numbers, tp_tensors out, const tp_tensor *like,
                 int made, int64_t *shift) {
    j->f = tp_fused_at(program);
    j->numel = like->numel;
    j->nfar = 0;
    j->streams = false;
    if (tp_unlikely((j->times = tp_fused_timed) != NULL)) {
        int64_t begin = tp_clock_ns();
        j->look = tp_clock_ns() - begin;
    }
    if (!j->f || inputs.size != j->f->ninputs || out.size != j->f->noutputs) return fail("another program's arguments");
    j->nvalues = j->f->ninputs + j->f->ncalls;
    if (place_inputs(j, inputs, like) < 0) return -1;
    for (int c = 0; c < j->f->ncalls; c++)
        j->values[j->f->ninputs + c] = (place){.dtype = (tp_dtype)j->f->calls[c].dtype};
    for (int i = 0; i < j->f->noutputs; i++) j->values[j->f->outputs[i]].base = tp_data(out.data[i]);
    if (made >= 0) j->values[made].is_made = true;
    for (int c = 0; c < j->f->ncalls; c++) {
        int64_t n = j->f->calls[c].nnumbers;
        if (numbers.size < n) return fail("too few numbers");
        if (start_step(j, c, (tp_scalars){numbers.data, n}) < 0) return -1;
        if (j->steps[c].loop && j->f->calls[c].program >= 0) *shift += 1 + j->steps[c].map.p->grain_shift;
        numbers = (tp_scalars){numbers.data + n, numbers.size - n};
    }
    j->block = BLOCK_BYTES / widest(j);
    if (tp_fusion.block && tp_fusion.block < j->block) j->block = tp_fusion.block;
    find_lines(j);
    int64_t most = j->block < j->line ? j->block : j->line;
    for (int c = 0; c < j->f->ncalls; c++) j->share_end[c] = (c + 1) * SHARES / j->f->ncalls * most / SHARES;
    find_far_values(j, inputs, out);
    find_order(j);
    int last[TP_FUSED_TENSORS + TP_FUSED_CALLS];
    find_last_uses(j, last);
    if (give_buffers(j, last) < 0) return -1;
    for (int c = 0; c < j->f->ncalls; c++) find_operands(j, c);
    find_chains(j, last);
    return 0;
}

/* fused.map(int program, Tensor[] inputs, Scalar[] numbers, *, Tensor(a!)[] out) -> () */
int fused_map_cpu(int64_t program, tp_tensors inputs, tp_scalars numbers, tp_tensors out) {
    job j;
    int64_t shift = 0;
    j.reduces = false;
    if (start(&j, program, inputs, numbers, out, out.data[0], -1, &shift) < 0) return -1;
    int64_t blocks = (j.numel + j.block - 1) / j.block, grain = TP_GRAIN / j.block / (shift ? shift : 1);
    return tp_parallel_unlocked(true, blocks, grain < 1 ? 1 : grain, run_blocks, &j);
}

/* ---- into a reduction ---- */

static const char *make(const void *context, void *state, char *buffer, int64_t first, int64_t n) {
    worker *w = state;
    w->j = context;
    w->made = buffer;
    run_range(w, first, first + n);
    return buffer;
}

static const char *make_stored(const void *context, void *state, char *buffer, int64_t first, int64_t n) {
    const place *last = &((const job *)context)->values[((const job *)context)->nvalues - 1];
    make(context, state, buffer, first, n);
    return last->base + first * tp_itemsize(last->dtype);
}

/* fused.reduce(int program, Tensor[] inputs, Scalar[] numbers, int fold, int reduction, ScalarType compute,
 *              Tensor made, Tensor x, int[] dim, *, Tensor(a!) result, Tensor(b!)[] out) -> () */
int fused_reduce_cpu(int64_t program, tp_tensors inputs, tp_scalars numbers, int64_t fold, int64_t reduction,
                     tp_dtype compute, tp_tensor *made, tp_tensor *x, tp_ints dim, tp_tensor *result, tp_tensors out) {
    const tp_reduction *r = tp_reduction_row((tp_fold)fold, reduction, compute, x, result);
    const tp_fused *f = tp_fused_at(program);
    if (!r || !f) return r ? fail("no such program") : -1;
    int last = f->ninputs + f->ncalls - 1, status;
    bool is_stored = false;
    for (int i = 0; i < f->noutputs; i++) is_stored |= f->outputs[i] == last;
    job j;
    int64_t shift = 0;
    j.reduces = true;
    if (start(&j, program, inputs, numbers, out, made, is_stored ? -1 : last, &shift) < 0) return -1;
    tp_reduce_source source = {sizeof(worker), out.size > 0, is_stored ? make_stored : make, &j};
    if (tp_reduce_made(r, x, &source, dim, result, &status)) return status;
    /* As it lies in memory. */
    tp_autoref *values = is_stored ? tp_retain(x) : tp_new_empty(tp_sizes(x), (tp_dtype)x->dtype, x->device);
    if (!values) return -1;
    j.values[last].is_made = false;
    j.values[last].base = tp_data(values);
    int64_t blocks = (j.numel + j.block - 1) / j.block;
    if (tp_parallel_unlocked(true, blocks, 1, run_blocks, &j) < 0) return -1;
    return tp_reduce(r, values, dim, result, NULL);
}
