/* train.c: trains a classifier of handwritten digits, without Python: a saved plan of a training step (README.md).
 *
 *     train train.plan weights.bin [device] < digits.txt        a line: 64 numbers from 0 to 16, and the digit
 *
 * The plan's inputs are images, labels and weights; its outputs the loss, how many digits were right, and the weights
 * after the step, which are the next step's inputs. */
#include "tensorpy/plan.h"

#include <stdio.h>
#include <stdlib.h>

#define PIXELS 64
#define MOST_ROWS 4096
#define MOST_WEIGHTS 16
#define EPOCHS 10

typedef struct {
    float images[MOST_ROWS][PIXELS];
    int64_t labels[MOST_ROWS];
    int64_t count;
} digits;

static void read_digits(digits *d) {
    long label;
    for (d->count = 0; d->count < MOST_ROWS; d->count++) {
        float *image = d->images[d->count];
        for (int i = 0; i < PIXELS; i++) {
            if (scanf("%f", &image[i]) != 1) return;
            image[i] /= 16;
        }
        if (scanf("%ld", &label) != 1) return;
        d->labels[d->count] = label;
    }
}

/* Two sets of weights: a step reads one and writes the other. */
typedef struct {
    void *sets[2][MOST_WEIGHTS];
    int count;
} weights;

static int read_weights(weights *w, const tp_plan *plan, FILE *from) {
    w->count = tp_plan_inputs(plan) - 2;
    if (!from || w->count < 1 || w->count > MOST_WEIGHTS || tp_plan_outputs(plan) != w->count + 2) return -1;
    for (int i = 0; i < w->count; i++) {
        size_t size = (size_t)tp_plan_input(plan, i + 2).nbytes;
        for (int set = 0; set < 2; set++)
            if (!(w->sets[set][i] = malloc(size))) return -1;
        if (fread(w->sets[0][i], 1, size, from) != size) return -1;
    }
    return 0;
}

static int run_epoch(tp_plan *plan, digits *d, weights *w, int64_t batch, int *set) {
    double sum = 0;
    int64_t right = 0, steps = d->count / batch;
    for (int64_t s = 0; s < steps; s++, *set = !*set) {
        float loss;
        int64_t hits;
        const void *in[MOST_WEIGHTS + 2] = {d->images[s * batch], &d->labels[s * batch]};
        void *out[MOST_WEIGHTS + 2] = {&loss, &hits};
        for (int i = 0; i < w->count; i++) {
            in[i + 2] = w->sets[*set][i];
            out[i + 2] = w->sets[!*set][i];
        }
        if (tp_plan_run(plan, in, out) < 0) return -1;
        sum += loss;
        right += hits;
    }
    printf("loss %.6f, right %.1f %%\n", sum / (double)steps, 100.0 * (double)right / (double)(steps * batch));
    return 0;
}

int main(int argc, char **argv) {
    static digits d;
    weights w;
    int set = 0;
    if (argc != 3 && argc != 4) return fputs("usage: train train.plan weights.bin [device] < digits.txt\n", stderr), 2;
    tp_plan *plan = tp_plan_open_on(argv[1], argc > 3 ? argv[3] : "cpu");
    if (!plan) return fprintf(stderr, "train: %s\n", tp_plan_error()), 1;
    if (read_weights(&w, plan, fopen(argv[2], "rb")) < 0) return fputs("train: these are not its weights\n", stderr), 1;
    read_digits(&d);
    int64_t batch = tp_plan_input(plan, 1).nbytes / (int64_t)sizeof(int64_t);
    if (d.count < batch) return fputs("train: there are too few digits for a step\n", stderr), 1;
    for (int epoch = 0; epoch < EPOCHS; epoch++)
        if (run_epoch(plan, &d, &w, batch, &set) < 0) return fprintf(stderr, "train: %s\n", tp_plan_error()), 1;
    tp_plan_close(plan);
    return 0;
}
