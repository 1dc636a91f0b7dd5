/* sobol.c: steps of Sobol' sequences. The digits of point n are the sum modulo 2 of those direction numbers whose
 * places the Gray code of n has (I. A. Antonov and V. M. Saleev, 1979), so all points of a draw are made at once: place
 * by place, on any device. The direction numbers of S. Joe and F. Y. Kuo (2008) are a table of the host's. */
#include "NativeFunctions.h"
#include "Functions.h"
#include "core/error.h"
#include "core/host.h"
#include "native/common/checks.h"

#define PLACES 30

static int check_long(const char *what, const tp_tensor *t) {
    if (t->dtype == TP_INT64) return 0;
    return tp_fail(TP_RuntimeError, "%s needs to be of type Long", what);
}

static int check_state(const tp_tensor *state, int64_t dimension) {
    if (check_long("sobolstate", state) < 0) return -1;
    if (state->ndim == 2 && state->sizes[1] == PLACES && dimension >= 0 && dimension <= state->sizes[0]) return 0;
    return tp_fail(TP_RuntimeError, "sobolstate needs a row of %d numbers for each of %lld dimensions", PLACES,
                   (long long)dimension);
}

static int check_steps(const tp_tensor *quasi, const tp_tensor *state, int64_t dimension, int64_t n, int64_t from) {
    if (check_state(state, dimension) < 0 || check_long("quasi", quasi) < 0) return -1;
    if (quasi->ndim != 1 || quasi->sizes[0] != dimension || state->sizes[0] != dimension)
        return tp_fail(TP_RuntimeError, "quasi and sobolstate need to be of %lld dimensions", (long long)dimension);
    if (n >= 0 && from >= 0 && from < (INT64_C(1) << PLACES) && n < (INT64_C(1) << PLACES) - from) return 0;
    return tp_fail(TP_RuntimeError, "a sequence of %d digits has no points %lld to %lld", PLACES, (long long)from,
                   (long long)(from + n));
}

static int64_t gray(int64_t n) { return n ^ n >> 1; }

/* ---- points ---- */

/* For each of the next n points the places that differ from those of point `from`: a column. New. */
static tp_tensor *places_of(int64_t from, int64_t n, tp_device device) {
    tp_autoref *numbers =
        tp_arange_start(TP_SCALAR_I(from + 1), TP_SCALAR_I(from + n + 1), TP_INT64, TP_NO_LAYOUT, device, -1);
    tp_autoref *half = numbers ? tp___rshift___Scalar(numbers, TP_SCALAR_I(1)) : NULL;
    tp_autoref *codes = half ? tp_bitwise_xor_Tensor(numbers, half) : NULL;
    tp_autoref *places = codes ? tp_bitwise_xor_Scalar(codes, TP_SCALAR_I(gray(from))) : NULL;
    return places ? tp_unsqueeze(places, 1) : NULL;
}

/* Adds to the digits (n, dimension) the direction number of a place, where the points have it. */
static int add_place(tp_tensor *digits, tp_tensor *places, tp_tensor *state, int64_t place) {
    tp_autoref *shifted = tp___rshift___Scalar(places, TP_SCALAR_I(place)),
               *has = shifted ? tp_bitwise_and_Scalar(shifted, TP_SCALAR_I(1)) : NULL;
    tp_autoref *direction = has ? tp_select_int(state, 1, place) : NULL;
    tp_autoref *added = direction ? tp_mul_Tensor(has, direction) : NULL;
    return added ? tp_bitwise_xor__Tensor(digits, added) : -1;
}

static tp_tensor *digits_of(tp_tensor *quasi, tp_tensor *state, int64_t from, int64_t n) {
    tp_autoref *wide = tp_expand(quasi, TP_INTS(n, quasi->sizes[0]), false),
               *digits = wide ? tp_clone(wide, TP_CONTIGUOUS_FORMAT) : NULL,
               *places = digits ? places_of(from, n, quasi->device) : NULL;
    if (!places) return NULL;
    for (int64_t place = 0; place < PLACES && (from + n) >> place; place++)
        if (add_place(digits, places, state, place) < 0) return NULL;
    return tp_take(digits);
}

/* _sobol_engine_draw(Tensor quasi, int n, Tensor sobolstate, int dimension, int num_generated, ScalarType? dtype) ->
 * (Tensor, Tensor) */
tp_tensor2 _sobol_engine_draw_composite(tp_tensor *quasi, int64_t n, tp_tensor *sobolstate, int64_t dimension,
                                        int64_t num_generated, tp_dtype dtype) {
    tp_tensor2 r = {{NULL}};
    if (check_steps(quasi, sobolstate, dimension, n, num_generated) < 0) return r;
    tp_autoref *digits = digits_of(quasi, sobolstate, num_generated, n);
    tp_autoref *wide = digits ? tp_to_dtype(digits, dtype == TP_FLOAT64 ? TP_FLOAT64 : TP_FLOAT32, false, false,
                                            TP_NO_FORMAT)
                              : NULL,
               *points = wide ? tp_mul_Scalar(wide, TP_SCALAR_F(1.0 / (1 << PLACES))) : NULL;
    tp_autoref *made =
        points ? tp_to_dtype(points, dtype == TP_NO_DTYPE ? TP_FLOAT32 : dtype, false, false, TP_NO_FORMAT) : NULL;
    tp_autoref *last = made && n ? tp_select_int(digits, 0, n - 1) : tp_retain(quasi);
    tp_tensor *kept = made ? tp_clone(last, TP_CONTIGUOUS_FORMAT) : NULL;
    return kept ? (tp_tensor2){{tp_take(made), kept}} : r;
}

/* _sobol_engine_ff_(Tensor(a!) self, int n, Tensor sobolstate, int dimension, int num_generated) -> Tensor(a!) */
int _sobol_engine_ff__composite(tp_tensor *self, int64_t n, tp_tensor *sobolstate, int64_t dimension,
                                int64_t num_generated) {
    if (n < 0) return 0; /* as a loop of no steps */
    if (check_steps(self, sobolstate, dimension, n, num_generated) < 0) return -1;
    const int64_t places = gray(num_generated) ^ gray(num_generated + n);
    for (int64_t place = 0; place < PLACES; place++) {
        if (!(places >> place & 1)) continue;
        tp_autoref *direction = tp_select_int(sobolstate, 1, place);
        if (!direction || tp_bitwise_xor__Tensor(self, direction) < 0) return -1;
    }
    return 0;
}

/* ---- states ---- */

/* The places from the first digit on: [29, ..., 0]. New. */
static tp_tensor *shifts_on(tp_device device) {
    return tp_arange_start_step(TP_SCALAR_I(PLACES - 1), TP_SCALAR_I(-1), TP_SCALAR_I(-1), TP_INT64, TP_NO_LAYOUT,
                                device, -1);
}

static tp_tensor *with_unit_diagonal(tp_tensor *ltm) {
    tp_autoref *matrices = tp_clone(ltm, TP_CONTIGUOUS_FORMAT);
    tp_autoref *diagonal = matrices ? tp_diagonal(matrices, 0, -2, -1) : NULL;
    return diagonal && tp_fill__Scalar(diagonal, TP_SCALAR_I(1)) == 0 ? tp_take(matrices) : NULL;
}

/* The digits of each number of the rows, times the matrices modulo 2, as numbers. */
static tp_tensor *scrambled(tp_tensor *rows, tp_tensor *ltm) {
    tp_autoref *shifts = shifts_on(rows->device), *last = shifts ? tp_unsqueeze(rows, -1) : NULL;
    tp_autoref *shifted = last ? tp___rshift___Tensor(last, shifts) : NULL,
               *digits = shifted ? tp_bitwise_and_Scalar(shifted, TP_SCALAR_I(1)) : NULL;
    tp_autoref *matrices = digits ? with_unit_diagonal(ltm) : NULL,
               *turned = matrices ? tp_transpose_int(matrices, -2, -1) : NULL;
    tp_autoref *sums = turned ? tp_bmm(digits, turned) : NULL,
               *bits = sums ? tp_bitwise_and_Scalar(sums, TP_SCALAR_I(1)) : NULL,
               *placed = bits ? tp___lshift___Tensor(bits, shifts) : NULL;
    return placed ? tp_sum_dim_IntList(placed, TP_INTS(-1), false, TP_INT64) : NULL;
}

/* _sobol_engine_scramble_(Tensor(a!) self, Tensor ltm, int dimension) -> Tensor(a!) */
int _sobol_engine_scramble__composite(tp_tensor *self, tp_tensor *ltm, int64_t dimension) {
    if (check_state(self, dimension) < 0 || check_long("ltm", ltm) < 0) return -1;
    if (ltm->ndim != 3 || ltm->sizes[0] != dimension || ltm->sizes[1] != PLACES || ltm->sizes[2] != PLACES)
        return tp_fail(TP_RuntimeError, "ltm needs a matrix of %d x %d for each of %lld dimensions", PLACES, PLACES,
                       (long long)dimension);
    tp_autoref *rows = tp_narrow(self, 0, 0, dimension), *made = rows ? scrambled(rows, ltm) : NULL;
    return made ? tp_copy_(rows, made, false) : -1;
}

/* _sobol_engine_initialize_state_(Tensor(a!) self, int dimension) -> Tensor(a!) */
int _sobol_engine_initialize_state__composite(tp_tensor *self, int64_t dimension) {
    if (check_state(self, dimension) < 0) return -1;
    tp_autoref *numbers = tp_host_table("sobol", dimension);
    tp_autoref *rows = numbers ? tp_narrow(self, 0, 0, dimension) : NULL;
    return rows ? tp_copy_(rows, numbers, false) : -1;
}
