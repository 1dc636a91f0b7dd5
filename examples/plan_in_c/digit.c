/* digit.c: reads a handwritten digit, without Python: a saved plan of the demo's classifier (README.md).
 *
 *     digit digits.plan [device] < image.txt        64 numbers from 0 to 16, eight rows of eight
 */
#include "tensorpy/plan.h"

#include <stdio.h>

#define PIXELS 64
#define CLASSES 10

/* The images of the training set, 0 to 16, went in as 0 to 1. */
static int read_image(float *image) {
    for (int i = 0; i < PIXELS; i++) {
        if (scanf("%f", &image[i]) != 1) return -1;
        image[i] /= 16;
    }
    return 0;
}

static void draw(const float *image) {
    static const char shades[] = " .:-=+*#%@";
    for (int i = 0; i < PIXELS; i++) {
        int shade = (int)(image[i] * 9.99f);
        putchar(shades[shade < 0 ? 0 : shade > 9 ? 9 : shade]);
        if (i % 8 == 7) putchar('\n');
    }
}

static int is_classifier(const tp_plan *plan) {
    if (tp_plan_inputs(plan) != 1 || tp_plan_outputs(plan) != 1) return 0;
    tp_plan_tensor in = tp_plan_input(plan, 0), out = tp_plan_output(plan, 0);
    return in.dtype == TP_FLOAT32 && in.nbytes == PIXELS * sizeof(float) && out.dtype == TP_FLOAT32 &&
           out.nbytes == CLASSES * sizeof(float);
}

static int recognise(tp_plan *plan, const float *image) {
    float scores[CLASSES];
    const void *inputs[] = {image};
    void *outputs[] = {scores};
    if (tp_plan_run(plan, inputs, outputs) < 0) return -1;
    int best = 0;
    for (int i = 1; i < CLASSES; i++)
        if (scores[i] > scores[best]) best = i;
    return best;
}

static int run(tp_plan *plan) {
    float image[PIXELS];
    if (!is_classifier(plan)) return fputs("digit: the plan is not that of a classifier of digits\n", stderr), 1;
    if (read_image(image) < 0) return fputs("digit: an image is 64 numbers from 0 to 16\n", stderr), 1;
    int digit = recognise(plan, image);
    if (digit < 0) return fprintf(stderr, "digit: %s\n", tp_plan_error()), 1;
    draw(image);
    printf("this is a %d\n", digit);
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 2 && argc != 3) return fputs("usage: digit digits.plan [device] < image.txt\n", stderr), 2;
    tp_plan *plan = tp_plan_open_on(argv[1], argc > 2 ? argv[2] : "cpu");
    if (!plan) return fprintf(stderr, "digit: %s\n", tp_plan_error()), 1;
    int status = run(plan);
    tp_plan_close(plan);
    return status;
}
