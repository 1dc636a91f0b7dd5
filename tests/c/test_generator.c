/* test_generator.c: Philox against the known answers of Random123, numbers made from words, and generator state. */
#include "check.h"

#include "core/generator.h"
#include "tensorpy/philox.h"

#include <pthread.h>

static uint64_t words(uint32_t low, uint32_t high) { return tp_random_u64(low, high); }

/* kat_vectors of Random123 1.14, philox4x32 with 10 rounds: counter words 0, 1 are the index, 2, 3 the offset. */
static void test_known_answers(void) {
    static const uint32_t vectors[3][10] = {
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d, 0x41c83b0e, 0xa20bc7c6,
         0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09, 0x94fdcceb, 0x5001e420,
         0x24126ea1},
    };
    for (int i = 0; i < 3; i++) {
        const uint32_t *v = vectors[i];
        uint32_t out[4];
        tp_philox(words(v[4], v[5]), words(v[2], v[3]), words(v[0], v[1]), out);
        for (int j = 0; j < 4; j++) CHECK_INT(out[j], v[6 + j]);
    }
}

static void test_uniform(void) {
    CHECK(tp_uniform_float(0) == 0 && tp_uniform_float(UINT32_MAX) == 1 - 0x1p-24f);
    CHECK(tp_uniform_double(0, 0) == 0 && tp_uniform_double(UINT32_MAX, UINT32_MAX) == 1 - 0x1p-53);
    enum { N = 1 << 18 };
    double sum = 0, squares = 0, normal_sum = 0, normal_squares = 0, tail = 0;
    for (uint64_t i = 0; i < N; i++) {
        uint32_t w[4];
        tp_philox(42, 7, i, w);
        double u = (double)tp_uniform_float(w[0]);
        sum += u;
        squares += u * u;
        float z[2];
        tp_normal_float(w[2], w[3], z);
        normal_sum += (double)z[0] + (double)z[1];
        normal_squares += (double)z[0] * (double)z[0] + (double)z[1] * (double)z[1];
        tail += fabs((double)z[0]) > 1.959964;
    }
    CHECK(fabs(sum / N - 0.5) < 0.003 && fabs(squares / N - 1.0 / 3) < 0.003);
    CHECK(fabs(normal_sum / (2 * N)) < 0.01 && fabs(normal_squares / (2 * N) - 1) < 0.01);
    CHECK(fabs(tail / N - 0.05) < 0.003);
    float z[2];
    tp_normal_float(UINT32_MAX, 0, z); /* the largest radius is finite */
    CHECK(isfinite(z[0]) && z[0] > 5);
    tp_normal_float(0, 0, z);
    CHECK(z[0] == 0 && z[1] == 0);
    double d[2];
    uint32_t w[4] = {UINT32_MAX, UINT32_MAX, 0, 0};
    tp_normal_double(w, d);
    CHECK(isfinite(d[0]) && d[0] > 8);
}

static void test_state(void) {
    tp_generator *g = tp_generator_new(TP_CPU);
    CHECK(tp_generator_initial_seed(g) == TP_DEFAULT_SEED);
    tp_philox_state s;
    CHECK_INT(tp_generator_reserve(g, 3, &s), 0);
    CHECK(s.seed == TP_DEFAULT_SEED && s.offset == 0);
    tp_generator_reserve(g, 1, &s);
    CHECK_INT(s.offset, 3);
    uint8_t bytes[TP_GENERATOR_STATE_BYTES];
    tp_generator_get_state(g, bytes);
    CHECK(bytes[0] == (uint8_t)TP_DEFAULT_SEED && bytes[8] == 4 && bytes[9] == 0);
    tp_generator *clone = tp_generator_clone(g);
    tp_generator_manual_seed(g, 5);
    tp_generator_reserve(g, 1, &s);
    CHECK(s.seed == 5 && s.offset == 0);
    CHECK_INT(tp_generator_set_state(g, bytes, sizeof bytes), 0);
    tp_generator_reserve(g, 1, &s);
    CHECK(s.seed == TP_DEFAULT_SEED && s.offset == 4);
    tp_generator_reserve(clone, 1, &s);
    CHECK(s.seed == TP_DEFAULT_SEED && s.offset == 4);
    CHECK_INT(tp_generator_set_state(g, bytes, 15), -1);
    CHECK_ERROR(RuntimeError, "wrong size");
    uint64_t seed = tp_generator_seed(g);
    CHECK(seed == tp_generator_initial_seed(g) && seed != tp_generator_seed(g));
    tp_generator_release(clone);
    tp_generator_release(g);
    tp_generator_release(NULL);
    CHECK_EACH_ALLOCATION((g = tp_generator_new(TP_CPU)) != NULL, tp_generator_release(g));
}

static void test_defaults(void) {
    tp_generator *cpu = tp_default_generator_borrow(TP_CPU);
    CHECK(cpu && cpu == tp_default_generator_borrow((tp_device){TP_DEVICE_CPU, 0}));
    tp_manual_seed(99);
    CHECK_INT(tp_generator_initial_seed(cpu), 99);
    CHECK_INT(tp_generator_initial_seed(tp_default_generator_borrow(TP_META)), 99); /* made after the seeding */
    CHECK(tp_default_generator_borrow((tp_device){TP_DEVICE_OPENCL, 0}) == NULL);
    CHECK_ERROR(RuntimeError, "opencl is not available");
    tp_philox_state s;
    CHECK_INT(tp_generator_reserve(NULL, 1, &s), 0);
    CHECK(s.seed == 99 && s.offset == 0);
}

static void *reserve_many(void *g) {
    tp_philox_state s;
    for (int i = 0; i < 10000; i++) tp_generator_reserve(g, 2, &s);
    return NULL;
}

static void test_threads(void) {
    tp_generator *g = tp_generator_new(TP_CPU);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, reserve_many, g);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    tp_philox_state s;
    tp_generator_reserve(g, 1, &s);
    CHECK_INT(s.offset, 80000);
    tp_generator_release(g);
}

int main(void) {
    test_known_answers();
    test_uniform();
    test_state();
    test_defaults();
    test_threads();
    return check_report();
}
