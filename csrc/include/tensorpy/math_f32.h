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
#define TP_ROUNDER_f32 12582912.0f    /* 1.5 * 2**23 */

/* 2**n for -126 <= n <= 127, n as the low bits of an integer. */
TP_FN tp_f32 tp_two_to_f32(tp_i32 n) { return TP_FROM_BITS_f32((tp_u32)(n + 127) << 23); }

/* x * 2**n in two steps, so that results may be subnormal or overflow. */
TP_FN tp_f32 tp_scale_f32(tp_f32 x, tp_i32 n) {
    const tp_i32 part = n >> 1;
    return x * tp_two_to_f32(part) * tp_two_to_f32(n - part);
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

TP_FN tp_f32 tp_exp_f32(tp_f32 x) {
    tp_f32 c = x < -104.0f ? -104.0f : x;
    c = c > 89.0f ? 89.0f : c;
    const tp_f32 shifted = TP_FMA(c, TP_LOG2E_f32, TP_ROUNDER_f32);
    const tp_f32 n = shifted - TP_ROUNDER_f32;
    const tp_f32 r = TP_FMA(n, -TP_LN2_LO_f32, TP_FMA(n, -TP_LN2_HI_f32, c));
    return tp_scale_f32(tp_exp_reduced_f32(r), (tp_i32)(TP_BITS_f32(shifted) - TP_BITS_f32(TP_ROUNDER_f32)));
}

TP_FN tp_f32 tp_exp2_f32(tp_f32 x) {
    tp_f32 c = x < -151.0f ? -151.0f : x;
    c = c > 129.0f ? 129.0f : c;
    const tp_f32 shifted = c + TP_ROUNDER_f32;
    const tp_f32 r = c - (shifted - TP_ROUNDER_f32); /* exact */
    tp_f32 p = 0x1.417834p-13f;
    p = TP_FMA(p, r, 0x1.5f0f76p-10f);
    p = TP_FMA(p, r, 0x1.3b2ddcp-7f);
    p = TP_FMA(p, r, 0x1.c6af72p-5f);
    p = TP_FMA(p, r, 0x1.ebfbdcp-3f);
    p = TP_FMA(p, r, 0x1.62e430p-1f);
    p = TP_FMA(p, r, 1.0f);
    return tp_scale_f32(p, (tp_i32)(TP_BITS_f32(shifted) - TP_BITS_f32(TP_ROUNDER_f32)));
}

TP_FN tp_f32 tp_expm1_f32(tp_f32 x) {
    tp_f32 c = x < -18.0f ? -18.0f : x; /* -1 from there on */
    c = c > 89.0f ? 89.0f : c;
    const tp_f32 shifted = TP_FMA(c, TP_LOG2E_f32, TP_ROUNDER_f32);
    const tp_f32 n = shifted - TP_ROUNDER_f32;
    const tp_f32 r = TP_FMA(n, -TP_LN2_LO_f32, TP_FMA(n, -TP_LN2_HI_f32, c));
    const tp_f32 p = tp_expm1_reduced_f32(r);
    const tp_i32 k = (tp_i32)(TP_BITS_f32(shifted) - TP_BITS_f32(TP_ROUNDER_f32)) - 1;
    const tp_f32 half_power = tp_two_to_f32(k); /* 2**(n-1), since 2**128 is no float */
    const tp_f32 sum = TP_FMA(p, half_power, half_power - 0.5f);
    return n == 0.0f ? TP_FMA(x, 0.0f, p) + (x == 0.0f ? x : 0.0f) : sum + sum;
}

/* (exp(2x) - 1) / (exp(2x) + 1) */
TP_FN tp_f32 tp_tanh_f32(tp_f32 x) {
    const tp_f32 a = TP_ABS_f32(x);
    const tp_f32 c = a > 9.5f ? 9.5f : a; /* 1 from there on */
    const tp_f32 shifted = TP_FMA(c, 2.0f * TP_LOG2E_f32, TP_ROUNDER_f32);
    const tp_f32 n = shifted - TP_ROUNDER_f32;
    const tp_f32 r = TP_FMA(n, -TP_LN2_LO_f32, TP_FMA(n, -TP_LN2_HI_f32, 2.0f * c));
    const tp_f32 p = tp_expm1_reduced_f32(r);
    const tp_f32 power = tp_two_to_f32((tp_i32)(TP_BITS_f32(shifted) - TP_BITS_f32(TP_ROUNDER_f32)));
    const tp_f32 m = TP_FMA(p, power, power - 1.0f);
    return TP_COPYSIGN_f32(m / (m + 2.0f), x);
}

TP_FN tp_f32 tp_sigmoid_f32(tp_f32 x) {
    const tp_f32 e = tp_exp_f32(-TP_ABS_f32(x));
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
    const tp_bool tiny = x < 0x1p-126f;
    const tp_u32 bits = TP_BITS_f32(tiny ? x * 0x1p23f : x) - 0x3f3504f3u; /* sqrt(1/2) */
    *e = (tp_f32)((tp_i32)bits >> 23) - (tiny ? 23.0f : 0.0f);
    return TP_FROM_BITS_f32((bits & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
}

/* The logarithm's values at 0, below, at infinity and NaN; `value` elsewhere. */
TP_FN tp_f32 tp_log_ends_f32(tp_f32 x, tp_f32 value) {
    value = x < TP_INF_f32 ? value : x;
    value = x == 0.0f ? -TP_INF_f32 : value;
    return x < 0.0f ? TP_NAN_f32 : value;
}

TP_FN tp_f32 tp_log_f32(tp_f32 x) {
    tp_f32 e;
    const tp_f32 f = tp_log_split_f32(x, &e);
    const tp_f32 low = TP_FMA(e, TP_LN2_LO_f32, tp_log_tail_f32(f));
    return tp_log_ends_f32(x, TP_FMA(e, TP_LN2_HI_f32, f + low));
}

/* The products with 1/log(b) are carried in two parts: log(1+f) = hi + lo, hi with 12 bits less. */
TP_FN tp_f32 tp_log2_f32(tp_f32 x) {
    tp_f32 e;
    const tp_f32 f = tp_log_split_f32(x, &e), tail = tp_log_tail_f32(f);
    const tp_f32 hi = TP_FROM_BITS_f32(TP_BITS_f32(f + tail) & 0xfffff000u), lo = (f - hi) + tail;
    return tp_log_ends_f32(x, TP_FMA(lo, 0x1.715476p+0f, hi * 0x1.47652cp-12f) + hi * 0x1.714p+0f + e);
}
TP_FN tp_f32 tp_log10_f32(tp_f32 x) {
    tp_f32 e;
    const tp_f32 f = tp_log_split_f32(x, &e), tail = tp_log_tail_f32(f);
    const tp_f32 hi = TP_FROM_BITS_f32(TP_BITS_f32(f + tail) & 0xfffff000u), lo = (f - hi) + tail;
    const tp_f32 low = TP_FMA(lo, 0x1.bcb7b2p-2f, TP_FMA(hi, 0x1.7b1526p-14f, e * 0x1.3509f8p-18f));
    return tp_log_ends_f32(x, TP_FMA(e, 0x1.344p-2f, TP_FMA(hi, 0x1.bcap-2f, low)));
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

/* Below 0.96 an odd polynomial; above, 1 - 1 / p(|x|)**8, the shape of Hastings' approximations (Abramowitz and Stegun
 * 7.1.28); from 3.92 on the result rounds to 1. */
TP_FN tp_f32 tp_erf_f32(tp_f32 x) {
    const tp_f32 a = TP_ABS_f32(x), t = x * x;
    tp_f32 p = 0x1.4faa3ep-14f;
    p = TP_FMA(p, t, -0x1.a61840p-11f);
    p = TP_FMA(p, t, 0x1.544b0ap-8f);
    p = TP_FMA(p, t, -0x1.b80124p-6f);
    p = TP_FMA(p, t, 0x1.ce2d64p-4f);
    p = TP_FMA(p, t, -0x1.812740p-2f);
    p = TP_FMA(p, t, 0x1.06eba8p-3f); /* 2 / sqrt(pi) - 1 */
    const tp_f32 c = a > 3.93f ? 3.93f : a;
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
    return a < 0.96f ? TP_FMA(p, x, x) : large;
}

#endif
