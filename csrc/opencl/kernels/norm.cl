/* norm.cl: normalisations of rows and their gradients (tp_norm_rows of prim/norm.h).
 *
 * Defined in front: KERNEL_<name>, for the one that is wanted; T; S, what statistics are summed in (double where there
 * is one); EACH where weight and bias belong to the elements of a row and not to its runs; ABOUT_ZERO, 1 where rows have
 * no mean taken off and `mean` is not there; GROUP, the work-items that share a row, and index, an integer that counts its elements. With GROUP 1 (CPU devices) a row is read in vectors: W elements, V and VS their types, VLOAD, VSTORE, WIDEN
 * (V to VS). A row that is read more than once is in the cache by then. */
typedef struct {
    long rows, runs, length, first, next;
    long groups, per_row, per_run;
    long frozen, parts;
} geometry;

#define HAS_WEIGHT 1
#define HAS_BIAS 2
#define HAS_OUT 4
#define HAS_TO_WEIGHT 8
#define HAS_TO_BIAS 16
#define HAS_RUNNING_MEAN 32
#define HAS_RUNNING_VAR 64

#if GROUP > 1
#define JOIN(a, b)                                    \
    first[id] = a, second[id] = b;                    \
    for (int width = GROUP / 2; width; width /= 2) {  \
        barrier(CLK_LOCAL_MEM_FENCE);                 \
        if (id < width) {                             \
            first[id] += first[id + width];           \
            second[id] += second[id + width];         \
        }                                             \
    }                                                 \
    barrier(CLK_LOCAL_MEM_FENCE);                     \
    a = first[0], b = second[0];                      \
    barrier(CLK_LOCAL_MEM_FENCE);
#define ROW                                               \
    __local S first[GROUP], second[GROUP];                \
    long row = get_group_id(0);                           \
    int id = get_local_id(0);
/* All elements of the row, each by one work-item: run, i (inside of it), at. */
#define FOR_EACH(body)                                                                    \
    for (index e = id, length = g.length, all = g.runs * g.length; e < all; e += GROUP) { \
        const index run = g.runs == 1 ? 0 : e / length, i = e - run * length;             \
        const long at = run * g.next + i;                                                 \
        body                                                                              \
    }
#else
#define JOIN(a, b)
#define ROW                        \
    long row = get_global_id(0);   \
    if (row >= g.rows) return;
/* The runs of the row, W elements at a time by `vectors` and the rest by `body`. */
#define FOR_EACH_VECTOR(vectors, body)            \
    for (long run = 0; run < g.runs; run++) {     \
        long i = 0, at = run * g.next;            \
        FEW_TURNS                                 \
        for (; i + W <= g.length; i += W, at += W) { \
            vectors                               \
        }                                         \
        FEW_TURNS                                 \
        for (; i < g.length; i++, at++) {         \
            body                                  \
        }                                         \
    }
static inline S total(VS v) {
    S lane[W];
    VSTORE_S(v, 0, lane);
    for (int width = W / 2; width; width /= 2)
        for (int k = 0; k < width; k++) lane[k] += lane[k + width];
    return lane[0];
}
#endif

#define OF_RUN (row % g.groups * g.per_row + run * g.per_run)

#ifdef KERNEL_forward
__kernel void forward(geometry g, __global const T *input, long io, __global const T *weight, long wo,
                      __global const T *bias, long bo, __global T *mean, long mo, __global T *rstd, long ro,
                      __global T *running_mean, long rmo, __global T *running_var, long rvo, __global T *out, long oo,
                      S eps, S momentum, int has) {
    ROW
    input += io + row * g.first, out += oo + row * g.first, weight += wo, bias += bo;
    const S count = (S)(g.runs * g.length);
    S center, spread;
    if (g.frozen) {
        center = running_mean[rmo + row], spread = running_var[rvo + row];
    } else {
        S sum = 0, square = 0;
#if GROUP > 1
        S unused = 0;
        FOR_EACH(sum += input[at];)
        JOIN(sum, unused)
        center = ABOUT_ZERO ? 0 : sum / count;
        FOR_EACH(S d = input[at] - center; square += d * d;)
        JOIN(square, unused)
#else
        VS sums = (VS)(0), squares = (VS)(0);
        FOR_EACH_VECTOR(sums += WIDEN(VLOAD(0, input + at));, sum += input[at];)
        sum += total(sums);
        center = ABOUT_ZERO ? 0 : sum / count;
        FOR_EACH_VECTOR(VS d = WIDEN(VLOAD(0, input + at)) - (VS)(center); squares += d * d;
                        , S d = input[at] - center; square += d * d;)
        square += total(squares);
#endif
        spread = square / count;
    }
    const S scale = 1 / sqrt(spread + eps);
    const T m = center, r = scale; /* r: where no weight is in it */
#if GROUP > 1
#ifdef EACH
    FOR_EACH(T w = has & HAS_WEIGHT ? weight[i] : 1; T b = has & HAS_BIAS ? bias[i] : 0;
             out[at] = (input[at] - m) * r * w + b;)
#else
    FOR_EACH(T w = has & HAS_WEIGHT ? weight[OF_RUN] : 1; T b = has & HAS_BIAS ? bias[OF_RUN] : 0;
             out[at] = (input[at] - m) * (T)(scale * w) + b;)
#endif
    if (id) return;
#else
#ifdef EACH
    if ((has & 3) == 3) {
        FOR_EACH_VECTOR(VSTORE((VLOAD(0, input + at) - m) * r * VLOAD(0, weight + i) + VLOAD(0, bias + i), 0, out + at);
                        , out[at] = (input[at] - m) * r * weight[i] + bias[i];)
    } else {
        FOR_EACH_VECTOR(V y = (VLOAD(0, input + at) - m) * r; if (has & HAS_WEIGHT) y *= VLOAD(0, weight + i);
                        if (has & HAS_BIAS) y += VLOAD(0, bias + i); VSTORE(y, 0, out + at);
                        , T y = (input[at] - m) * r; if (has & HAS_WEIGHT) y *= weight[i];
                        if (has & HAS_BIAS) y += bias[i]; out[at] = y;)
    }
#else
    for (long run = 0; run < g.runs; run++) {
        const T a = has & HAS_WEIGHT ? (T)(scale * weight[OF_RUN]) : r, b = has & HAS_BIAS ? bias[OF_RUN] : 0;
        __global const T *x = input + run * g.next;
        __global T *y = out + run * g.next;
        long i = 0;
        FEW_TURNS
        for (; i + W <= g.length; i += W) VSTORE((VLOAD(0, x + i) - m) * a + b, 0, y + i);
        FEW_TURNS
        for (; i < g.length; i++) y[i] = (x[i] - m) * a + b;
    }
#endif
#endif
    if (g.frozen) return;
    if (!ABOUT_ZERO) mean[mo + row] = center;
    rstd[ro + row] = scale;
    if (has & HAS_RUNNING_MEAN)
        running_mean[rmo + row] = (1 - momentum) * (S)running_mean[rmo + row] + momentum * (S)m;
    if (has & HAS_RUNNING_VAR) {
        T sample = count > 1 ? spread * count / (count - 1) : spread;
        running_var[rvo + row] = (1 - momentum) * (S)running_var[rvo + row] + momentum * (S)sample;
    }
}
#endif

/* The gradient of the input and, where a row has one weight, those of weight and bias. frozen: rstd is the variance. */
#ifdef KERNEL_backward
__kernel void backward(geometry g, __global const T *grad, long go, __global const T *input, long io,
                       __global const T *weight, long wo, __global const T *mean, long mo, __global const T *rstd,
                       long ro, __global T *out, long oo, __global T *to_weight, long two, __global T *to_bias, long tbo,
                       S eps, int has) {
    ROW
    grad += go + row * g.first, input += io + row * g.first, out += oo + row * g.first, weight += wo;
    const S center = ABOUT_ZERO ? 0 : mean[mo + row], kept = rstd[ro + row], scale = g.frozen ? 1 / sqrt(kept + eps) : kept;
    const S count = (S)(g.runs * g.length);
    const T m = center;
    /* A row with one weight takes it at the end, since the weight's own gradient is without it. */
    const bool single = !g.per_run && g.groups == g.rows;
    const S factor = single && has & HAS_WEIGHT ? (S)weight[row * g.per_row] : (S)1;
    S sum = 0, product = 0;
#ifdef EACH
#define WEIGHT_AT (has & HAS_WEIGHT ? weight[i] : (T)1)
#else
#define WEIGHT_AT (has & HAS_WEIGHT && !single ? weight[OF_RUN] : (T)1)
#endif
#if GROUP > 1
    FOR_EACH(S v = (S)grad[at] * (S)WEIGHT_AT; sum += v; product += v * ((S)input[at] - center);)
    JOIN(sum, product)
#elif defined(EACH)
    VS sums = (VS)(0), products = (VS)(0);
    if (has & HAS_WEIGHT) {
        FOR_EACH_VECTOR(VS v = WIDEN(VLOAD(0, grad + at)) * WIDEN(VLOAD(0, weight + i)); sums += v;
                        products += v * (WIDEN(VLOAD(0, input + at)) - (VS)(center));
                        , S v = (S)grad[at] * (S)weight[i]; sum += v; product += v * ((S)input[at] - center);)
    } else {
        FOR_EACH_VECTOR(VS v = WIDEN(VLOAD(0, grad + at)); sums += v;
                        products += v * (WIDEN(VLOAD(0, input + at)) - (VS)(center));
                        , S v = (S)grad[at]; sum += v; product += v * ((S)input[at] - center);)
    }
    sum += total(sums), product += total(products);
#else
    VS sums = (VS)(0), products = (VS)(0);
    for (long run = 0; run < g.runs; run++) {
        const S w = WEIGHT_AT;
        __global const T *x = input + run * g.next, *d = grad + run * g.next;
        long i = 0;
        FEW_TURNS
        for (; i + W <= g.length; i += W) {
            VS v = WIDEN(VLOAD(0, d + i)) * (VS)(w);
            sums += v, products += v * (WIDEN(VLOAD(0, x + i)) - (VS)(center));
        }
        FEW_TURNS
        for (; i < g.length; i++) {
            S v = (S)d[i] * w;
            sum += v, product += v * ((S)x[i] - center);
        }
    }
    sum += total(sums), product += total(products);
#endif
    if (has & HAS_OUT) {
        const S shift = g.frozen || ABOUT_ZERO ? 0 : factor * scale * sum / count;
        const S slope = g.frozen ? 0 : factor * scale * scale * scale * product / count;
        const T b = shift, c = slope;
#if GROUP > 1
        FOR_EACH(T a = (T)(factor * scale * (S)WEIGHT_AT); out[at] = a * grad[at] - b - c * (input[at] - m);)
#elif defined(EACH)
        const T a = scale;
        if (has & HAS_WEIGHT) {
            FOR_EACH_VECTOR(VSTORE(a * VLOAD(0, grad + at) * VLOAD(0, weight + i) - b - c * (VLOAD(0, input + at) - m),
                                   0, out + at);
                            , out[at] = a * grad[at] * weight[i] - b - c * (input[at] - m);)
        } else {
            FOR_EACH_VECTOR(VSTORE(a * VLOAD(0, grad + at) - b - c * (VLOAD(0, input + at) - m), 0, out + at);
                            , out[at] = a * grad[at] - b - c * (input[at] - m);)
        }
#else
        for (long run = 0; run < g.runs; run++) {
            const T a = (T)(factor * scale * (S)WEIGHT_AT);
            __global const T *x = input + run * g.next, *d = grad + run * g.next;
            __global T *y = out + run * g.next;
            long i = 0;
            FEW_TURNS
            for (; i + W <= g.length; i += W)
                VSTORE(a * VLOAD(0, d + i) - b - c * (VLOAD(0, x + i) - m), 0, y + i);
            FEW_TURNS
        for (; i < g.length; i++) y[i] = a * d[i] - b - c * (x[i] - m);
        }
#endif
    }
#if GROUP > 1
    if (id) return;
#endif
    if (has & HAS_TO_WEIGHT) to_weight[two + row] = product * scale;
    if (has & HAS_TO_BIAS) to_bias[tbo + row] = sum;
}
#endif

/* The gradients of weight and bias of rows with a weight for each element: part p of the sums over the rows. */
#if GROUP > 1
#define COLUMNS 1
#else
#define COLUMNS 64
#endif
#ifdef KERNEL_columns
__kernel void columns(geometry g, __global const T *grad, long go, __global const T *input, long io,
                      __global const T *mean, long mo, __global const T *rstd, long ro, __global T *to_weight, long two,
                      __global T *to_bias, long tbo, int has) {
    long blocks = (g.length + COLUMNS - 1) / COLUMNS, block = get_global_id(0) % blocks;
    long part = get_global_id(0) / blocks, from = block * COLUMNS;
    if (part >= g.parts) return;
    int width = g.length - from < COLUMNS ? g.length - from : COLUMNS;
    T weights[COLUMNS], biases[COLUMNS];
    for (int k = 0; k < COLUMNS; k++) weights[k] = biases[k] = 0;
    grad += go + from, input += io + from, mean += mo, rstd += ro;
    for (long row = part * g.rows / g.parts; row < (part + 1) * g.rows / g.parts; row++) {
        __global const T *d = grad + row * g.first, *x = input + row * g.first;
        const T m = mean[row], r = rstd[row];
        if (width == COLUMNS) {
#if GROUP > 1
            weights[0] += d[0] * ((x[0] - m) * r), biases[0] += d[0];
#else
            for (int k = 0; k < COLUMNS; k += W) {
                V v = VLOAD(0, d + k);
                VSTORE(VLOAD(0, weights + k) + v * ((VLOAD(0, x + k) - m) * r), 0, weights + k);
                VSTORE(VLOAD(0, biases + k) + v, 0, biases + k);
            }
#endif
        } else {
            for (int k = 0; k < width; k++) weights[k] += d[k] * ((x[k] - m) * r), biases[k] += d[k];
        }
    }
    for (int k = 0; k < width; k++) {
        if (has & HAS_TO_WEIGHT) to_weight[two + part * g.length + from + k] = weights[k];
        if (has & HAS_TO_BIAS) to_bias[tbo + part * g.length + from + k] = biases[k];
    }
}
#endif

/* The gradients of weight and bias of channels in groups: a row is a channel in all images, its runs have statistics
 * of their own: those of image * groups + channel / per_row. */
#ifdef KERNEL_channels
__kernel void channels(geometry g, __global const T *grad, long go, __global const T *input, long io,
                       __global const T *mean, long mo, __global const T *rstd, long ro, __global T *to_weight, long two,
                       __global T *to_bias, long tbo, int has) {
    ROW
    grad += go + row * g.first, input += io + row * g.first, mean += mo + row / g.per_row, rstd += ro + row / g.per_row;
    S weights = 0, biases = 0;
#if GROUP > 1
    FOR_EACH(S v = grad[at]; biases += v;
             weights += v * ((S)input[at] - (S)mean[run * g.groups]) * (S)rstd[run * g.groups];)
    JOIN(weights, biases)
    if (id) return;
#else
    VS all = (VS)(0), products = (VS)(0);
    for (long run = 0; run < g.runs; run++) {
        const S center = mean[run * g.groups], scale = rstd[run * g.groups];
        __global const T *x = input + run * g.next, *d = grad + run * g.next;
        long i = 0;
        FEW_TURNS
        for (; i + W <= g.length; i += W) {
            VS v = WIDEN(VLOAD(0, d + i));
            all += v, products += v * (WIDEN(VLOAD(0, x + i)) - (VS)(center)) * (VS)(scale);
        }
        FEW_TURNS
        for (; i < g.length; i++) {
            S v = d[i];
            biases += v, weights += v * ((S)x[i] - center) * scale;
        }
    }
    weights += total(products), biases += total(all);
#endif
    if (has & HAS_TO_WEIGHT) to_weight[two + row] = weights;
    if (has & HAS_TO_BIAS) to_bias[tbo + row] = biases;
}
#endif
