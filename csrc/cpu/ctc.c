/* ctc.c: connectionist temporal classification on the CPU (A. Graves, S. Fernandez, F. Gomez, J. Schmidhuber,
 * "Connectionist temporal classification", 2006): forward and backward variables as logarithms; threads share the
 * batch.
 *
 * The states of a target of n labels are 2n + 1: a blank, and after each label another. From a state a path stays,
 * goes on by one, or by two where a blank between two different labels is left out. */
#include "cpu/ctc.h"

#include "PrimitiveKernels.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "cpu/kernels.h"
#include "prim/transfer.h"

#include <math.h>
#include <string.h>

#define AHEAD 2 /* states before the first and after the last one, which no path reaches */

typedef struct {
    const tp_ctc_loops *loops;
    const char *log_probs, *grad;
    char *losses, *log_alpha, *out, *room;
    const int64_t *labels, *times, *lengths, *starts;
    int64_t steps, batch, classes, states, blank, item, row; /* row: the bytes of a line of room */
    bool narrow, zero_infinity;
} job;

enum { EMITTED, SKIP, NOTHING, LINE, NEXT, LINES };

static double get(const job *j, const char *p, int64_t i) {
    return j->narrow ? (double)((const float *)p)[i] : ((const double *)p)[i];
}
static void put(const job *j, char *p, int64_t i, double v) {
    if (j->narrow) ((float *)p)[i] = (float)v;
    else ((double *)p)[i] = v;
}
static void put_all(const job *j, char *p, int64_t n, double v) {
    for (int64_t i = 0; i < n; i++) put(j, p, i, v);
}
/* Line `which` of a sample's room: the state that belongs to its first element comes after AHEAD others. */
static char *line_of(const job *j, int64_t n, int which) {
    return j->room + (n * LINES + which) * j->row + AHEAD * j->item;
}
static int64_t label_at(const job *j, int64_t n, int64_t state) {
    return state % 2 ? j->labels[j->starts[n] + state / 2] : j->blank;
}
static const char *probs_at(const job *j, int64_t t, int64_t n) {
    return j->log_probs + (t * j->batch + n) * j->classes * j->item;
}

/* What is emitted in each state at time t. */
static char *emit(const job *j, int64_t n, int64_t t, int64_t states) {
    char *to = line_of(j, n, EMITTED);
    const char *probs = probs_at(j, t, n);
    for (int64_t s = 0; s < states; s++) put(j, to, s, get(j, probs, label_at(j, n, s)));
    return to;
}

/* All lines of a sample without a path, and where a blank may be left out: 0, else minus infinity. */
static void start(const job *j, int64_t n, int64_t states) {
    for (int i = 0; i < LINES; i++) put_all(j, line_of(j, n, i) - AHEAD * j->item, j->states + 2 * AHEAD, -INFINITY);
    put_all(j, line_of(j, n, NOTHING) - AHEAD * j->item, j->states + 2 * AHEAD, 0);
    for (int64_t s = 3; s < states; s += 2)
        if (label_at(j, n, s) != label_at(j, n, s - 2)) put(j, line_of(j, n, SKIP), s, 0);
}

static char *alpha_at(const job *j, int64_t n, int64_t t) {
    return j->log_alpha + (n * j->steps + t) * j->states * j->item;
}

/* The logarithm of the sum of what ends in the last two states. */
static double ending(const job *j, const char *alpha, int64_t states) {
    double a = get(j, alpha, states - 1), b = states > 1 ? get(j, alpha, states - 2) : -INFINITY, most = a > b ? a : b;
    return most == -INFINITY ? most : most + log(exp(a - most) + exp(b - most));
}

static void run_alpha(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    for (int64_t n = begin; n < end; n++) {
        const int64_t states = 2 * j->lengths[n] + 1;
        char *before = line_of(j, n, LINE);
        start(j, n, states);
        for (int64_t t = 0; t < j->times[n]; t++) {
            char *alpha = alpha_at(j, n, t), *emitted = emit(j, n, t, states);
            if (t == 0) {
                for (int64_t s = 0; s < states && s < 2; s++) put(j, alpha, s, get(j, emitted, s));
            } else {
                j->loops->join(before, before - j->item, before - 2 * j->item, line_of(j, n, SKIP), emitted, states,
                               alpha);
            }
            memcpy(before, alpha, (size_t)(states * j->item));
        }
        double all = j->times[n] ? ending(j, before, states) : states == 1 ? 0 : -INFINITY;
        put(j, j->losses, n, -all);
    }
}

/* The gradient at one time: exp(log_probs) less the share of each class in all paths, times the loss's gradient. */
static void write_gradient(const job *j, int64_t n, int64_t t, int64_t states, const char *beta, double loss,
                           double grad) {
    char *to = j->out + (t * j->batch + n) * j->classes * j->item, *shares = line_of(j, n, EMITTED);
    j->loops->exponentials(probs_at(j, t, n), grad, j->classes, to);
    j->loops->shares(alpha_at(j, n, t), beta, loss, states, shares);
    for (int64_t s = 0; s < states; s++) {
        const int64_t c = label_at(j, n, s);
        put(j, to, c, get(j, to, c) - grad * get(j, shares, s));
    }
}

static void run_backward(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    for (int64_t n = begin; n < end; n++) {
        const int64_t states = 2 * j->lengths[n] + 1, last = j->times[n] - 1;
        const double loss = get(j, j->losses, n), grad = get(j, j->grad, n);
        if (isinf(loss) && loss > 0) {
            for (int64_t t = 0; !j->zero_infinity && t <= last; t++)
                put_all(j, j->out + (t * j->batch + n) * j->classes * j->item, j->classes, NAN);
            continue;
        }
        char *beta = line_of(j, n, LINE), *next = line_of(j, n, NEXT), *skip = line_of(j, n, SKIP);
        start(j, n, states);
        for (int64_t s = states - 1; s >= 0 && s > states - 3; s--) put(j, beta, s, 0);
        for (int64_t t = last; t >= 0; t--) {
            if (t < last) {
                j->loops->join(next, next + j->item, next + 2 * j->item, skip + 2 * j->item, line_of(j, n, NOTHING),
                               states, beta);
            }
            write_gradient(j, n, t, states, beta, loss, grad);
            const char *emitted = emit(j, n, t, states);
            for (int64_t s = 0; s < states; s++) put(j, next, s, get(j, beta, s) + get(j, emitted, s));
        }
    }
}

/* Refuses labels out of range, among those that are read. */
static int check_labels(const job *j) {
    for (int64_t n = 0; n < j->batch; n++)
        for (int64_t i = 0; i < j->lengths[n]; i++) {
            int64_t label = j->labels[j->starts[n] + i];
            if (label < 0 || label >= j->classes)
                return tp_fail(TP_RuntimeError, "ctc_loss: target %lld is out of range [0, %lld)", (long long)label,
                               (long long)j->classes);
        }
    return 0;
}

static int run(job *j, tp_tensor *log_probs, tp_tensor *labels, tp_ints times, tp_ints lengths, tp_ints starts,
               int64_t blank, tp_tensor *losses, tp_tensor *log_alpha, tp_range_fn fn) {
    j->narrow = log_probs->dtype == TP_FLOAT32;
    j->loops = j->narrow ? &tp_cpu.ctc->f32 : &tp_cpu.ctc->f64;
    j->item = j->narrow ? 4 : 8;
    j->log_probs = tp_data(log_probs), j->labels = labels->numel ? tp_data(labels) : NULL;
    j->losses = tp_data(losses), j->log_alpha = tp_data(log_alpha);
    j->times = times.data, j->lengths = lengths.data, j->starts = starts.data;
    j->steps = log_probs->sizes[0], j->batch = log_probs->sizes[1], j->classes = log_probs->sizes[2];
    j->states = log_alpha->sizes[2], j->blank = blank;
    j->row = (j->states + 2 * AHEAD) * j->item;
    if (check_labels(j) < 0) return -1;
    tp_autoref *room =
        tp_new_empty(TP_INTS(j->batch * LINES, j->states + 2 * AHEAD), (tp_dtype)log_probs->dtype, TP_CPU);
    if (!room) return -1;
    j->room = tp_data(room);
    int64_t work = 1 + j->steps * (8 * j->states + j->classes);
    return tp_parallel_unlocked(work * j->batch > TP_GRAIN, j->batch, 1 + TP_GRAIN / 4 / work, fn, j);
}

int ctc_forward_cpu(tp_tensor *log_probs, tp_tensor *labels, tp_ints times, tp_ints lengths, tp_ints starts,
                    int64_t blank, tp_tensor *out, tp_tensor *log_alpha) {
    job j = {0};
    return run(&j, log_probs, labels, times, lengths, starts, blank, out, log_alpha, run_alpha);
}
int ctc_backward_cpu(tp_tensor *grad, tp_tensor *log_probs, tp_tensor *labels, tp_ints times, tp_ints lengths,
                     tp_ints starts, tp_tensor *losses, tp_tensor *log_alpha, int64_t blank, bool zero_infinity,
                     tp_tensor *out) {
    job j = {.grad = tp_data(grad), .out = tp_data(out), .zero_infinity = zero_infinity};
    return run(&j, log_probs, labels, times, lengths, starts, blank, losses, log_alpha, run_backward);
}
