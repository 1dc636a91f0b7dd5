/* ctc.cl: connectionist temporal classification, by the steps of cpu/ctc.c: a work-group for each sample, whose
 * work-items share the states.
 *
 * Defined in front: T, and T_SINGLE if that is float; GROUP, the work-items of a group (1 on CPU devices). */
#include "tensorpy/math.h"

#ifdef T_SINGLE
#define EXP(x) tp_exp_f32(x)
#define LOG(x) tp_log_f32(x)
#else
#define EXP(x) exp(x)
#define LOG(x) log(x)
#endif
#if GROUP > 1
#define SAMPLE __kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
#define TOGETHER barrier(CLK_GLOBAL_MEM_FENCE);
#else
#define SAMPLE __kernel
#define TOGETHER
#endif
#define NONE ((T) - INFINITY)
#define STATES for (long s = get_local_id(0); s < states; s += GROUP)

typedef struct {
    long steps, batch, classes, room, blank; /* room: the states that each sample has a place for */
} plan;

/* The class of a state; of a label that is none, which the forward notes, the blank. */
static inline long class_of(const plan *p, __global const long *labels, long s) {
    long c = s % 2 ? labels[s / 2] : p->blank;
    return c >= 0 && c < p->classes ? c : p->blank;
}
/* Whether a path may come to a state from the last but one. */
static inline bool skips(const plan *p, __global const long *labels, long s) {
    return s % 2 && s > 2 && labels[s / 2] != labels[s / 2 - 1];
}
static inline T join(T x, T y, T z) {
    T most = max(max(x, y), z);
    most = most == NONE ? 0 : most;
    return LOG(EXP(x - most) + EXP(y - most) + EXP(z - most)) + most;
}

/* The sample of a group, and what belongs to it; lengths holds times, lengths and starts. */
#define START                                                                                  \
    const long n = get_group_id(0), times = lengths[lo + n], start = lengths[lo + 2 * p.batch + n]; \
    const long states = 2 * lengths[lo + p.batch + n] + 1;                                     \
    labels += ls + start, log_probs += po + n * p.classes, alpha += ao + n * p.steps * p.room;

SAMPLE void forward(plan p, __global const T *log_probs, long po, __global const long *labels, long ls,
                    __global const long *lengths, long lo, __global T *alpha, long ao, __global T *losses, long oo,
                    volatile __global int *fault, int kind) {
    START
    STATES {
        if (s % 2) checked(labels[s / 2], p.classes, 0, 0, fault, kind);
        if (s < 2 && times) alpha[s] = log_probs[class_of(&p, labels, s)];
    }
    for (long t = 1; t < times; t++, alpha += p.room) {
        log_probs += p.batch * p.classes;
        TOGETHER
        STATES {
            const T before = s > 0 ? alpha[s - 1] : NONE, skipped = skips(&p, labels, s) ? alpha[s - 2] : NONE;
            alpha[p.room + s] = join(alpha[s], before, skipped) + log_probs[class_of(&p, labels, s)];
        }
    }
    TOGETHER
    if (get_local_id(0)) return;
    T all = states == 1 ? 0 : NONE;
    if (times) all = join(alpha[states - 1], states > 1 ? alpha[states - 2] : NONE, NONE);
    losses[oo + n] = -all;
}

/* A state's place among those of its class: twice the next one (0: none), and one more for the first. */
static inline long link_of(__global const long *labels, long s, long states) {
    long next = s + 2;
    bool first = s < 2;
    if (s % 2 == 0) return 2 * (next < states ? next : 0) + first;
    while (next < states && labels[next / 2] != labels[s / 2]) next += 2;
    for (long before = s - 2; before > 0 && !first; before -= 2)
        if (labels[before / 2] == labels[s / 2]) return 2 * (next < states ? next : 0);
    return 2 * (next < states ? next : 0) + 1;
}

SAMPLE void backward(plan p, __global const T *log_probs, long po, __global const long *labels, long ls,
                     __global const long *lengths, long lo, __global const T *alpha, long ao, __global const T *losses,
                     long oo, __global const T *grads, long go, __global T *made, long mo, __global T *room, long ro,
                     __global long *links, long links_offset, int zero_infinity) {
    START
    const T loss = losses[oo + n], grad = grads[go + n];
    made += mo + n * p.classes, links += links_offset + n * p.room;
    __global T *next = room + ro + n * 2 * p.room, *shares = next + p.room;
    if (isinf(loss) && loss > 0) {
        for (long t = 0; !zero_infinity && t < times; t++)
            for (long c = get_local_id(0); c < p.classes; c += GROUP) made[t * p.batch * p.classes + c] = (T)NAN;
        return;
    }
    STATES links[s] = link_of(labels, s, states);
    for (long t = times - 1; t >= 0; t--) {
        __global const T *now = log_probs + t * p.batch * p.classes, *paths = alpha + t * p.room;
        __global T *to = made + t * p.batch * p.classes;
        for (long c = get_local_id(0); c < p.classes; c += GROUP) to[c] = EXP(now[c]) * grad;
        /* What is made of `next` waits in `shares` until all have read it. */
        STATES {
            T beta = s > states - 3 ? 0 : NONE;
            if (t < times - 1)
                beta = join(next[s], s + 1 < states ? next[s + 1] : NONE,
                            s + 2 < states && skips(&p, labels, s + 2) ? next[s + 2] : NONE);
            shares[s] = beta;
        }
        TOGETHER
        STATES {
            next[s] = shares[s] + now[class_of(&p, labels, s)];
            shares[s] = EXP(paths[s] + shares[s] + loss);
        }
        TOGETHER
        STATES {
            if (links[s] % 2 == 0) continue;
            const long c = class_of(&p, labels, s);
            T value = to[c];
            for (long k = s, more = 1; more; more = links[k] / 2, k = more) value -= grad * shares[k];
            to[c] = value;
        }
        TOGETHER
    }
}
