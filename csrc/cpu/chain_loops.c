/* chain_loops.c: chains of arithmetic over a block, compiled once per capability: eight vectors at a time pass all
 * links (chain_of.h), then single vectors, then single elements. */
#include "cpu/chain.h"
#include "cpu/kernels.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#define WIDTH 64
#define ROOT_f32(v) ((vector_f32)_mm512_sqrt_ps((__m512)(v)))
#define ROOT_f64(v) ((vector_f64)_mm512_sqrt_pd((__m512d)(v)))
#elif defined(__AVX__)
#include <immintrin.h>
#define WIDTH 32
#define ROOT_f32(v) ((vector_f32)_mm256_sqrt_ps((__m256)(v)))
#define ROOT_f64(v) ((vector_f64)_mm256_sqrt_pd((__m256d)(v)))
#elif defined(__SSE2__)
#include <emmintrin.h>
#define WIDTH 16
#define ROOT_f32(v) ((vector_f32)_mm_sqrt_ps((__m128)(v)))
#define ROOT_f64(v) ((vector_f64)_mm_sqrt_pd((__m128d)(v)))
#elif defined(__aarch64__)
#include <arm_neon.h>
#define WIDTH 16
#define ROOT_f32(v) ((vector_f32)vsqrtq_f32((float32x4_t)(v)))
#define ROOT_f64(v) ((vector_f64)vsqrtq_f64((float64x2_t)(v)))
#endif

#define ONE_VECTOR(X) X(0)
#ifdef WIDTH
#define EIGHT_VECTORS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
typedef float vector_f32 __attribute__((vector_size(WIDTH), aligned(4), may_alias));
typedef double vector_f64 __attribute__((vector_size(WIDTH), aligned(8), may_alias));
#endif

#define T float
#ifdef WIDTH
#define NAME eight_vectors_f32
#define V vector_f32
#define EACH EIGHT_VECTORS
#define ROOT ROOT_f32
#include "cpu/chain_of.h"
#define NAME one_vector_f32
#define V vector_f32
#define EACH ONE_VECTOR
#define ROOT ROOT_f32
#include "cpu/chain_of.h"
#endif
#define NAME one_f32
#define V float
#define EACH ONE_VECTOR
#define ROOT __builtin_sqrtf
#include "cpu/chain_of.h"
#undef T

#define T double
#ifdef WIDTH
#define NAME eight_vectors_f64
#define V vector_f64
#define EACH EIGHT_VECTORS
#define ROOT ROOT_f64
#include "cpu/chain_of.h"
#define NAME one_vector_f64
#define V vector_f64
#define EACH ONE_VECTOR
#define ROOT ROOT_f64
#include "cpu/chain_of.h"
#endif
#define NAME one_f64
#define V double
#define EACH ONE_VECTOR
#define ROOT __builtin_sqrt
#include "cpu/chain_of.h"
#undef T

#ifdef WIDTH
#define RUN_VECTORS(suffix) one_vector_##suffix(links, eight_vectors_##suffix(links, 0, n), n)
#else
#define RUN_VECTORS(suffix) 0
#endif
#define RUN(suffix) \
    static void run_##suffix(const tp_link *links, int64_t n) { one_##suffix(links, RUN_VECTORS(suffix), n); }
RUN(f32)
RUN(f64)

const tp_chain_kernels TP_CAP(tp_chain) = {run_f32, run_f64};
