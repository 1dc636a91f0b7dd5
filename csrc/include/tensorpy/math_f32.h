/* math_f32.h: float's elementary functions as branch-free polynomials (part of math.h). On OpenCL only for CPU
 * devices, whose compilers vectorise them and no built-in function; a GPU has its own.
 *
 * The polynomials are near-minimax fits in the measure of relative error, their coefficients rounded to float one after
 * the other. exp and its kin reduce x = n log 2 + r with log 2 in two parts (Cody and Waite, Software Manual for the
 * Elementary Functions, 1980). No function converts a float that may be NaN or large to an integer: n comes out of the
 * low bits of n + 1.5 * 2**23. Errors: benchmarks/ulp.py. */
#if !defined(TP_OPENCL) || defined(TP_CPU_DEVICE)

#define TP_LOG2E_f32 0x1.715476p+0f
#define TP_LN2_HI_f32 0x1.62e4p-1f    /* 15 bits: n * hi is exact */
#define TP_LN2_LO_f32 0x1.7f7d1cp-20f /* log 2 - hi */
#define TP_LN2_f32 0x1.62e430p-1f
#define TP_ROUNDER_f32 12582912.0f /* 1.5 * 2**23 */

/* 2**n for -126 <= n <= 127, n as the low bits of an integer. */
TP_FN tp_f32 tp_two_to_f32(tp_i32 n) { return TP_FROM_BITS_f32((tp_u32)(n + 127) << 23); }

/* x * 2**n in two steps, so that results may be subnormal or overflow. */
TP_FN tp_f32 tp_scale_f32(tp_f32 x, tp_i32 n) {
    const tp_u32 exponents = (tp_u32)(n + 254),
                 first = exponents >> 1; /* the two factors', which are biased by 127 each */
    return x * TP_FROM_BITS_f32(first << 23) * TP_FROM_BITS_f32((exponents - first) << 23);
}

/* x, at most `high`, and x between low < 0 and high > 0: as integers, for which every CPU has a minimum, while one of
 * floats that says what a NaN becomes takes two to six instructions more. A NaN becomes one of the ends. */
TP_FN tp_f32 tp_at_most_f32(tp_f32 x, tp_f32 high) {
    const tp_i32 at_most = (tp_i32)TP_BITS_f32(high), bits = (tp_i32)TP_BITS_f32(x);
    return TP_FROM_BITS_f32((tp_u32)(bits < at_most ? bits : at_most));
}
TP_FN tp_f32 tp_clamp_f32(tp_f32 x, tp_f32 low, tp_f32 high) {
    const tp_u32 at_least = TP_BITS_f32(low), below = TP_BITS_f32(tp_at_most_f32(x, high));
    return TP_FROM_BITS_f32(below < at_least ? below : at_least); /* negative floats grow with their bits, downwards */
}

/* exp(r) for |r| <= log(2) / 2 */
TP_FN tp_f32 tp_exp_reduced_f32(tp_f32 r) {
    tp_f32 p = 0x1.6a4b98p-10f;
    p = TP_FMA(p, r, 0x1.123e5cp-7f);
    p = TP_FMA(p, r, 0x1.5558bap-5f);
    p = TP_FMA(p, r, 0x1.55548cp-3f);
    p = TP_FMA(p, r, 0x1.fffffcp-2f);
    p = TP_FMA(p, r, 1.0f);
    return TP_FMA(p, r, 1.0f);
}

/* exp(r) - 1 for |r| <= log(2) / 2 */
TP_FN tp_f32 tp_expm1_reduced_f32(tp_f32 r) {
    tp_f32 p = 0x1.9e8f4ep-13f;
    p = TP_FMA(p, r, 0x1.6d4050p-10f);
    p = TP_FMA(p, r, 0x1.1112cep-7f);
    p = TP_FMA(p, r, 0x1.5554f4p-5f);
    p = TP_FMA(p, r, 0x1.555554p-3f);
    p = TP_FMA(p, r, 0.5f);
    return TP_FMA(p * r, r, r);
}

/* exp(x) * 2**k for -104 <= x <= 90, and 0 for x = -176: there the factors are 0. */
TP_FN tp_f32 tp_exp_times_f32(tp_f32 x, tp_i32 k) {
    const tp_f32 shifted = TP_FMA(x, TP_LOG2E_f32, TP_ROUNDER_f32);
    const tp_f32 n = shifted - TP_ROUNDER_f32;
    const tp_f32 r = TP_FMA(n, -TP_LN2_LO_f32, TP_FMA(n, -TP_LN2_HI_f32, x));
    return tp_scale_f32(tp_exp_reduced_f32(r), (tp_i32)(TP_BITS_f32(shifted) - TP_BITS_f32(TP_ROUNDER_f32)) + k);
}
/* What exp rounds to 0, exactly: CPUs take a hundred times as long for a product that is no normal number, and masked
 * scores are -inf by the row. */
TP_FN tp_f32 tp_exp_floor_f32(tp_f32 x) { return x < -104.0f ? -176.0f : x; }
TP_FN tp_f32 tp_exp_f32(tp_f32 x) {
    const tp_f32 value = tp_exp_times_f32(tp_exp_floor_f32(tp_at_most_f32(x, 89.0f)), 0);
    return x == x ? value : x;
}

TP_FN tp_f32 tp_exp2_f32(tp_f32 x) {
    const tp_f32 above = tp_at_most_f32(x, 129.0f), c = x < -151.0f ? -254.0f : above; /* as tp_exp_floor_f32 */
    const tp_f32 shifted = c + TP_ROUNDER_f32;
    const tp_f32 r = c - (shifted - TP_ROUNDER_f32); /* exact */
    tp_f32 p = 0x1.417834p-13f;
    p = TP_FMA(p, r, 0x1.5f0f76p-10f);
    p = TP_FMA(p, r, 0x1.3b2ddcp-7f);
    p = TP_FMA(p, r, 0x1.c6af72p-5f);
    p = TP_FMA(p, r, 0x1.ebfbdcp-3f);
    p = TP_FMA(p, r, 0x1.62e430p-1f);
    p = TP_FMA(p, r, 1.0f);
    const tp_f32 value = tp_scale_f32(p, (tp_i32)(TP_BITS_f32(shifted) - TP_BITS_f32(TP_ROUNDER_f32)));
    return x == x ? value : x;
}

TP_FN tp_f32 tp_expm1_f32(tp_f32 x) {
    const tp_f32 c = tp_clamp_f32(x, -18.0f, 89.0f); /* -1 from there on */
    const tp_f32 shifted = TP_FMA(c, TP_LOG2E_f32, TP_ROUNDER_f32);
    const tp_f32 n = shifted - TP_ROUNDER_f32;
    const tp_f32 r = TP_FMA(n, -TP_LN2_LO_f32, TP_FMA(n, -TP_LN2_HI_f32, c));
    const tp_f32 p = tp_expm1_reduced_f32(r);
    const tp_i32 k = (tp_i32)(TP_BITS_f32(shifted) - TP_BITS_f32(TP_ROUNDER_f32)) - 1;
    const tp_f32 half_power = tp_two_to_f32(k); /* 2**(n-1), since 2**128 is no float */
    const tp_f32 sum = TP_FMA(p, half_power, half_power - 0.5f);
    const tp_f32 value = n == 0.0f ? TP_COPYSIGN_f32(p, x) : sum + sum; /* -0 too */
    return x == x ? value : x;
}

/* (exp(2x) - 1) / (exp(2x) + 1) */
TP_FN tp_f32 tp_tanh_f32(tp_f32 x) {
    const tp_f32 a = TP_ABS_f32(x), twice = a + a;
    const tp_f32 c = twice > 19.0f ? 19.0f : twice; /* 1 from there on */
    const tp_f32 shifted = TP_FMA(c, TP_LOG2E_f32, TP_ROUNDER_f32);
    const tp_f32 n = shifted - TP_ROUNDER_f32;
    const tp_f32 r = TP_FMA(n, -TP_LN2_LO_f32, TP_FMA(n, -TP_LN2_HI_f32, c));
    const tp_f32 p = tp_expm1_reduced_f32(r);
    const tp_f32 power = tp_two_to_f32((tp_i32)(TP_BITS_f32(shifted) - TP_BITS_f32(TP_ROUNDER_f32)));
    const tp_f32 m = TP_FMA(p, power, power - 1.0f);
    return TP_COPYSIGN_f32(m / (m + 2.0f), x);
}

TP_FN tp_f32 tp_sigmoid_f32(tp_f32 x) {
    const tp_f32 a = -TP_ABS_f32(x);
    const tp_f32 e = tp_exp_times_f32(tp_exp_floor_f32(a), 0);
    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

/* log(1 + f) - f for 1/sqrt(2) <= 1 + f <= sqrt(2) */
TP_FN tp_f32 tp_log_tail_f32(tp_f32 f) {
    tp_f32 p = 0x1.16a74cp-4f;
    p = TP_FMA(p, f, -0x1.e02110p-4f);
    p = TP_FMA(p, f, 0x1.e6d1b6p-4f);
    p = TP_FMA(p, f, -0x1.fbbf34p-4f);
    p = TP_FMA(p, f, 0x1.233318p-3f);
    p = TP_FMA(p, f, -0x1.555fbep-3f);
    p = TP_FMA(p, f, 0x1.99a524p-3f);
    p = TP_FMA(p, f, -0x1.fffff8p-3f);
    p = TP_FMA(p, f, 0x1.555546p-2f);
    const tp_f32 square = f * f;
    return TP_FMA(p * f, square, -0.5f * square);
}

/* x = 2**e * (1 + f) for positive finite x */
TP_FN tp_f32 tp_log_split_f32(tp_f32 x, tp_f32 *e) {
    const tp_u32 normal = TP_BITS_f32(x), tiny = TP_BITS_f32(x * 0x1p23f) - (23u << 23);
    const tp_u32 bits = (x < 0x1p-126f ? tiny : normal) - 0x3f3504f3u; /* sqrt(1/2) */
    *e = (tp_f32)((tp_i32)bits >> 23);
    return TP_FROM_BITS_f32((bits & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
}

/* The logarithm's values at 0, below, at infinity and NaN; `value` elsewhere. */
TP_FN tp_f32 tp_log_ends_f32(tp_f32 x, tp_f32 value) {
    value = x < TP_INF_f32 ? value : x;
    value = x == 0.0f ? -TP_INF_f32 : value;
    return x < 0.0f ? TP_NAN_f32 : value;
}

TP_FN tp_f32 tp_log_f32(tp_f32 x) {
#ifdef TP_VECTOR_MATH
    return tp_vector_log(x);
#else
    tp_f32 e;
    const tp_f32 f = tp_log_split_f32(x, &e);
    const tp_f32 low = TP_FMA(e, TP_LN2_LO_f32, tp_log_tail_f32(f));
    return tp_log_ends_f32(x, TP_FMA(e, TP_LN2_HI_f32, f + low));
#endif
}

/* The products with 1/log(b) are carried in two parts: log(1+f) = hi + lo, hi with 12 bits less. */
TP_FN tp_f32 tp_log2_f32(tp_f32 x) {
#ifdef TP_VECTOR_MATH
    return tp_vector_log2(x);
#else
    tp_f32 e;
    const tp_f32 f = tp_log_split_f32(x, &e), tail = tp_log_tail_f32(f);
    const tp_f32 hi = TP_FROM_BITS_f32(TP_BITS_f32(f + tail) & 0xfffff000u), lo = (f - hi) + tail;
    return tp_log_ends_f32(x, TP_FMA(lo, 0x1.715476p+0f, hi * 0x1.47652cp-12f) + hi * 0x1.714p+0f + e);
#endif
}
TP_FN tp_f32 tp_log10_f32(tp_f32 x) {
#ifdef TP_VECTOR_MATH
    return tp_vector_log10(x);
#else
    tp_f32 e;
    const tp_f32 f = tp_log_split_f32(x, &e), tail = tp_log_tail_f32(f);
    const tp_f32 hi = TP_FROM_BITS_f32(TP_BITS_f32(f + tail) & 0xfffff000u), lo = (f - hi) + tail;
    const tp_f32 low = TP_FMA(lo, 0x1.bcb7b2p-2f, TP_FMA(hi, 0x1.7b1526p-14f, e * 0x1.3509f8p-18f));
    return tp_log_ends_f32(x, TP_FMA(e, 0x1.344p-2f, TP_FMA(hi, 0x1.bcap-2f, low)));
#endif
}

/* With 1 + x = 2**e * (1 + f): f = x / 2**e + (1 / 2**e - 1), where nothing of x is lost. */
TP_FN tp_f32 tp_log1p_f32(tp_f32 x) {
    const tp_f32 u = 1.0f + x;
    const tp_u32 power = (TP_BITS_f32(u) - 0x3f3504f3u) & 0xff800000u; /* e << 23 */
    const tp_f32 e = (tp_f32)((tp_i32)power >> 23);
    const tp_bool large = x > 0x1p60f;
    const tp_f32 inverse = TP_FROM_BITS_f32(0x3f800000u - power);
    const tp_f32 f = large ? TP_FROM_BITS_f32(TP_BITS_f32(x) - power) - 1.0f : TP_FMA(x, inverse, inverse - 1.0f);
    const tp_f32 low = TP_FMA(e, TP_LN2_LO_f32, tp_log_tail_f32(f));
    tp_f32 value = TP_FMA(e, TP_LN2_HI_f32, f + low);
    value = x < TP_INF_f32 ? value : x;
    value = x == 0.0f ? x : value;
    value = x == -1.0f ? -TP_INF_f32 : value;
    return x < -1.0f ? TP_NAN_f32 : value;
}

/* erf(x) for |x| < 0.96 */
TP_FN tp_f32 tp_erf_reduced_f32(tp_f32 x) {
    const tp_f32 t = x * x;
    tp_f32 p = 0x1.4faa3ep-14f;
    p = TP_FMA(p, t, -0x1.a61840p-11f);
    p = TP_FMA(p, t, 0x1.544b0ap-8f);
    p = TP_FMA(p, t, -0x1.b80124p-6f);
    p = TP_FMA(p, t, 0x1.ce2d64p-4f);
    p = TP_FMA(p, t, -0x1.812740p-2f);
    p = TP_FMA(p, t, 0x1.06eba8p-3f); /* 2 / sqrt(pi) - 1 */
    return TP_FMA(p, x, x);
}
/* Above, 1 - 1 / p(|x|)**8, the shape of Hastings' approximations (Abramowitz and Stegun 7.1.28); from 3.92 on the
 * result rounds to 1. */
TP_FN tp_f32 tp_erf_f32(tp_f32 x) {
    const tp_f32 a = TP_ABS_f32(x), c = tp_at_most_f32(a, 3.93f);
    tp_f32 q = 0x1.0b4e7cp-11f;
    q = TP_FMA(q, c, -0x1.d7f7fep-9f);
    q = TP_FMA(q, c, 0x1.021046p-6f);
    q = TP_FMA(q, c, -0x1.c445cep-6f);
    q = TP_FMA(q, c, 0x1.0a88e4p-4f);
    q = TP_FMA(q, c, 0x1.d78b6ep-5f);
    q = TP_FMA(q, c, 0x1.3d82bep-3f);
    q = TP_FMA(q, c, 0x1.fea9b8p-1f);
    const tp_f32 q2 = q * q, q4 = q2 * q2;
    const tp_f32 large = TP_COPYSIGN_f32(1.0f - 1.0f / (q4 * q4), x);
    return a >= 0.96f ? large : tp_erf_reduced_f32(x); /* a NaN is one there */
}

/* ---- what libmvec has as well, as fast ---- */
#ifdef TP_VECTOR_MATH
TP_FN tp_f32 tp_pow_f32(tp_f32 x, tp_f32 y) { return tp_vector_pow(x, y); }
#endif

#ifndef TP_LIBMVEC

/* 1 - erf(x) up to 1/2. Beyond, exp(-x*x) q(t) / (1 + 2x) with t = (x - 2) / (x + 2), the shape of Shepherd and
 * Laframboise (Mathematics of Computation 36, 1981); x*x in two parts. */
TP_FN tp_f32 tp_erfc_f32(tp_f32 x) {
    const tp_f32 a = TP_ABS_f32(x), c = tp_at_most_f32(a, 11.0f); /* 0 from there on */
    const tp_f32 t = (c - 2.0f) / (c + 2.0f), square = c * c;
    const tp_f32 high = TP_FROM_BITS_f32(TP_BITS_f32(c) & 0xfffff000u); /* its square is exact */
    const tp_f32 rest = (high * high - square) + (c - high) * (c + high);
    tp_f32 q = -0x1.ec07d8p-13f;
    q = TP_FMA(q, t, -0x1.50d6e8p-10f);
    q = TP_FMA(q, t, 0x1.3079a8p-10f);
    q = TP_FMA(q, t, 0x1.1c4716p-7f);
    q = TP_FMA(q, t, -0x1.068ee2p-7f);
    q = TP_FMA(q, t, -0x1.bc22d0p-5f);
    q = TP_FMA(q, t, 0x1.4ff964p-3f);
    q = TP_FMA(q, t, -0x1.5407bap-3f);
    q = TP_FMA(q, t, -0x1.7bf5eap-4f);
    q = TP_FMA(q, t, 0x1.46e80ep+0f);
    const tp_f32 power = tp_exp_f32(-square);
    const tp_f32 tail = TP_FMA(power, -rest, power) * q / TP_FMA(2.0f, c, 1.0f);
    const tp_f32 far = x < 0.0f ? 2.0f - tail : tail;
    return a >= 0.5f ? far : 1.0f - tp_erf_reduced_f32(x);
}

/* exp(a) / 2 for a >= 0: finite a little longer than exp(a) */
TP_FN tp_f32 tp_half_exp_f32(tp_f32 a) { return tp_exp_times_f32(a > 90.0f ? 90.0f : a, -1); }

TP_FN tp_f32 tp_sinh_f32(tp_f32 x) {
    const tp_f32 a = TP_ABS_f32(x), t = x * x, h = tp_half_exp_f32(a);
    tp_f32 p = 0x1.75a184p-19f;
    p = TP_FMA(p, t, 0x1.a0216ap-13f);
    p = TP_FMA(p, t, 0x1.1110e2p-7f);
    p = TP_FMA(p, t, 0x1.555556p-3f);
    const tp_f32 large = TP_COPYSIGN_f32(h - 0.25f / h, x);
    return a < 1.0f ? TP_FMA(x * t, p, x) : large;
}
TP_FN tp_f32 tp_cosh_f32(tp_f32 x) {
    const tp_f32 h = tp_half_exp_f32(TP_ABS_f32(x));
    return h + 0.25f / h;
}

/* Through log1p; from 2**30 on log(2x), where nothing of x*x + 1 is left but x*x. */
TP_FN tp_f32 tp_asinh_f32(tp_f32 x) {
    const tp_f32 a = TP_ABS_f32(x), square = a * a;
    const tp_bool large = a > 0x1p30f;
    const tp_f32 near = a + square / (1.0f + TP_SQRT_f32(1.0f + square));
    const tp_f32 value = tp_log1p_f32(large ? a : near) + (large ? TP_LN2_f32 : 0.0f);
    return TP_COPYSIGN_f32(value, x);
}
TP_FN tp_f32 tp_acosh_f32(tp_f32 x) {
    const tp_f32 t = x - 1.0f;
    const tp_bool large = x > 0x1p30f;
    const tp_f32 near = t + TP_SQRT_f32(t * (t + 2.0f));
    const tp_f32 value = tp_log1p_f32(large ? x : near) + (large ? TP_LN2_f32 : 0.0f);
    return x < 1.0f ? TP_NAN_f32 : value;
}
TP_FN tp_f32 tp_atanh_f32(tp_f32 x) {
    const tp_f32 a = TP_ABS_f32(x);
    return TP_COPYSIGN_f32(0.5f * tp_log1p_f32((a + a) / (1.0f - a)), x);
}

/* ---- angles; pi / 2 is in two parts, hi + lo, and three where it is taken away many times ---- */

#define TP_HALF_PI_HI_f32 0x1.921fb6p+0f
#define TP_HALF_PI_LO_f32 -0x1.777a5cp-25f
#define TP_HALF_PI_LEAST_f32 -0x1.ee59dap-50f

TP_FN tp_f32 tp_half_pi_minus_f32(tp_f32 v) { return (TP_HALF_PI_HI_f32 - v) + TP_HALF_PI_LO_f32; }
TP_FN tp_f32 tp_pi_minus_f32(tp_f32 v) { return (2.0f * TP_HALF_PI_HI_f32 - v) + 2.0f * TP_HALF_PI_LO_f32; }

/* atan(z) for 0 <= z <= 1 */
TP_FN tp_f32 tp_atan_reduced_f32(tp_f32 z) {
    const tp_f32 t = z * z;
    tp_f32 p = 0x1.7e8f54p-9f;
    p = TP_FMA(p, t, -0x1.0c0bc0p-6f);
    p = TP_FMA(p, t, 0x1.61e4b6p-5f);
    p = TP_FMA(p, t, -0x1.354cb2p-4f);
    p = TP_FMA(p, t, 0x1.b4dcdep-4f);
    p = TP_FMA(p, t, -0x1.230a62p-3f);
    p = TP_FMA(p, t, 0x1.9978e8p-3f);
    p = TP_FMA(p, t, -0x1.5554dcp-2f);
    return TP_FMA(z * t, p, z);
}
TP_FN tp_f32 tp_atan_f32(tp_f32 x) {
    const tp_f32 a = TP_ABS_f32(x), inverse = 1.0f / a, v = tp_atan_reduced_f32(a > 1.0f ? inverse : a);
    return TP_COPYSIGN_f32(a > 1.0f ? tp_half_pi_minus_f32(v) : v, x);
}
TP_FN tp_f32 tp_atan2_f32(tp_f32 y, tp_f32 x) {
    const tp_f32 a = TP_ABS_f32(y), b = TP_ABS_f32(x), low = a > b ? b : a, high = a > b ? a : b;
    const tp_f32 same = high == 0.0f ? 0.0f : 1.0f, ratio = low / high;
    const tp_f32 v = tp_atan_reduced_f32(low == high ? same : ratio);
    const tp_f32 right = a > b ? tp_half_pi_minus_f32(v) : v;
    return TP_COPYSIGN_f32((tp_i32)TP_BITS_f32(x) < 0 ? tp_pi_minus_f32(right) : right, y);
}

#ifdef TP_HAVE_F64
/* The squares of floats are no infinities in double. */
TP_FN tp_f32 tp_hypot_f32(tp_f32 x, tp_f32 y) {
    const tp_f64 wide = sqrt((tp_f64)x * (tp_f64)x + (tp_f64)y * (tp_f64)y);
    const tp_bool endless = (TP_ABS_f32(x) == TP_INF_f32) | (TP_ABS_f32(y) == TP_INF_f32);
    return endless ? TP_INF_f32 : (tp_f32)wide;
}
#endif

/* asin(a) for 0 <= a <= 1/2, and asin(sqrt((1 - a) / 2)) above. */
TP_FN tp_f32 tp_asin_folded_f32(tp_f32 a) {
    const tp_f32 halved = TP_FMA(-0.5f, a, 0.5f), t = a > 0.5f ? halved : a * a;
    const tp_f32 s = a > 0.5f ? TP_SQRT_f32(halved) : a;
    tp_f32 p = 0x1.595666p-5f;
    p = TP_FMA(p, t, 0x1.8c44dap-6f);
    p = TP_FMA(p, t, 0x1.747b26p-5f);
    p = TP_FMA(p, t, 0x1.330208p-4f);
    p = TP_FMA(p, t, 0x1.5555c8p-3f);
    return TP_FMA(s * t, p, s);
}
/* Above 1/2: asin(x) = pi / 2 - 2 asin(sqrt((1 - x) / 2)). */
TP_FN tp_f32 tp_asin_f32(tp_f32 x) {
    const tp_f32 a = TP_ABS_f32(x), v = tp_asin_folded_f32(a);
    return TP_COPYSIGN_f32(a > 0.5f ? tp_half_pi_minus_f32(2.0f * v) : v, x);
}
TP_FN tp_f32 tp_acos_f32(tp_f32 x) {
    const tp_f32 a = TP_ABS_f32(x), v = tp_asin_folded_f32(a);
    const tp_f32 small = TP_HALF_PI_HI_f32 - (TP_COPYSIGN_f32(v, x) - TP_HALF_PI_LO_f32);
    const tp_f32 large = x < 0.0f ? tp_pi_minus_f32(2.0f * v) : 2.0f * v;
    return a > 0.5f ? large : small;
}

#endif /* TP_LIBMVEC */

/* ---- quick forms: exact to a few ULP or NaN; pointwise.c computes a block with a NaN again, with the built-in
 * functions, which take every argument but no vectors ---- */
#ifdef TP_OPENCL

/* n pi / 2 is taken away in three steps, the first two exact up to n = 2**16. Without fma they would not be. */
#ifdef TP_FUSED
#define TP_QUICK_LIMIT_f32 1e5f
#else
#define TP_QUICK_LIMIT_f32 0.0f
#endif

/* sin(r) and cos(r) where x = n pi / 2 + r and |r| <= pi / 4; gives n, of which the low bits are right */
TP_FN tp_u32 tp_sin_cos_f32(tp_f32 x, tp_f32 *sine, tp_f32 *cosine) {
    const tp_f32 shifted = TP_FMA(x, 0x1.45f306p-1f, TP_ROUNDER_f32), n = shifted - TP_ROUNDER_f32;
    tp_f32 r = TP_FMA(-n, TP_HALF_PI_HI_f32, x);
    r = TP_FMA(-n, TP_HALF_PI_LO_f32, r);
    r = TP_FMA(-n, TP_HALF_PI_LEAST_f32, r);
    const tp_f32 t = r * r;
    tp_f32 p = TP_FMA(t, -0x1.99257ep-13f, 0x1.1106d8p-7f), q = TP_FMA(t, 0x1.99e42cp-16f, -0x1.6c0c20p-10f);
    p = TP_FMA(p, t, -0x1.555544p-3f);
    q = TP_FMA(q, t, 0x1.55554ap-5f);
    *sine = TP_FMA(r * t, p, r);
    *cosine = TP_FMA(t * t, q, TP_FMA(-0.5f, t, 1.0f));
    return TP_BITS_f32(shifted);
}
TP_FN tp_f32 tp_quick_f32(tp_f32 x, tp_f32 value) { return TP_ABS_f32(x) < TP_QUICK_LIMIT_f32 ? value : TP_NAN_f32; }

TP_FN tp_f32 tp_quick_sin_f32(tp_f32 x) {
    tp_f32 s, c;
    const tp_u32 n = tp_sin_cos_f32(x, &s, &c);
    const tp_f32 v = n & 1 ? c : s, turned = n & 2 ? -v : v;
    return tp_quick_f32(x, x == 0.0f ? x : turned);
}
TP_FN tp_f32 tp_quick_cos_f32(tp_f32 x) {
    tp_f32 s, c;
    const tp_u32 n = tp_sin_cos_f32(x, &s, &c);
    const tp_f32 v = n & 1 ? s : c;
    return tp_quick_f32(x, (n + 1) & 2 ? -v : v);
}
TP_FN tp_f32 tp_quick_tan_f32(tp_f32 x) {
    tp_f32 s, c;
    const tp_u32 n = tp_sin_cos_f32(x, &s, &c);
    const tp_f32 v = n & 1 ? -c : s, by = n & 1 ? s : c;
    return tp_quick_f32(x, x == 0.0f ? x : v / by);
}

#endif

#endif
