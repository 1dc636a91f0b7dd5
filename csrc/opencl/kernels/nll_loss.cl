/* nll_loss.cl: the negative log-likelihood of class indices and its gradient.
 *
 * Defined in front: X_* (self, or its gradient), WEIGHT_*, GIVEN_* (the gradient that is given, or the result), TOTAL_*,
 * all computing in T; S, what is summed in; MEAN or SUM; GROUP, the work-items that sum; WHOLE where a work-item does a
 * row of the gradient and not one element. */

/* The losses of rows and their weights, 0 for rows that do not count or are not there. */
__kernel void rows(__global const X_S *self, long so, __global const long *target, long to,
                   __global const WEIGHT_S *weight, long wo, int weighted, __global T *losses, long lo,
                   __global T *weights, long wso, long n, long classes, long ignored, volatile __global int *fault,
                   int kind) {
    long i = get_global_id(0);
    if (i >= n) return;
    long c = target[to + i];
    bool counts = c != ignored && checked(c, classes, 0, 1, fault, kind) >= 0;
    T w = !counts ? 0 : weighted ? (T)WEIGHT_LOAD(weight[wo + c]) : (T)1;
    losses[lo + i] = counts ? -w * (T)X_LOAD(self[so + i * classes + c]) : (T)0;
    weights[wso + i] = w;
}

/* The sums, and what is made of them. */
#if GROUP > 1
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
#else
__kernel
#endif
void sums(__global const T *losses, long lo, __global const T *weights, long wso, __global GIVEN_S *output, long oo,
          __global TOTAL_S *total, long tto, long n) {
    int id = get_local_id(0);
    S loss = 0, weight = 0;
    if (get_global_id(0) >= GROUP) return;
    for (long i = id; i < n; i += GROUP) loss += losses[lo + i], weight += weights[wso + i];
#if GROUP > 1
    __local S all_losses[GROUP], all_weights[GROUP];
    all_losses[id] = loss, all_weights[id] = weight;
    for (int width = GROUP / 2; width; width /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id < width) all_losses[id] += all_losses[id + width], all_weights[id] += all_weights[id + width];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    loss = all_losses[0], weight = all_weights[0];
    if (id) return;
#endif
#if defined(MEAN) || defined(SUM)
#ifdef MEAN
    loss /= weight;
#endif
    T sum = loss, weight_sum = weight;
    output[oo] = GIVEN_STORE(sum);
    total[tto] = TOTAL_STORE(weight_sum);
#else
    T none = 0;
    total[tto] = TOTAL_STORE(none);
#endif
}

__kernel void backward(__global const GIVEN_S *grad, long go, __global const long *target, long to,
                       __global const WEIGHT_S *weight, long wo, int weighted, __global const TOTAL_S *total, long tto,
                       __global X_S *made, long mo, long n, long classes, long ignored) {
    long i = get_global_id(0), row = WHOLE ? i : i / classes;
    if (row >= n) return;
    long c = target[to + row], first = WHOLE ? 0 : i % classes, last = WHOLE ? classes : first + 1;
    bool counts = c != ignored && c >= 0 && c < classes;
    T value = counts ? -(weighted ? (T)WEIGHT_LOAD(weight[wo + c]) : (T)1) : (T)0, zero = 0;
#ifdef MEAN
    value = value * (T)GIVEN_LOAD(grad[go]) / (T)TOTAL_LOAD(total[tto]);
#elif defined(SUM)
    value = value * (T)GIVEN_LOAD(grad[go]);
#else
    value = value * (T)GIVEN_LOAD(grad[go + row]);
#endif
    made += mo + row * classes;
    for (long j = first; j < last; j++) made[j] = X_STORE(zero);
    if (counts && c >= first && c < last) made[c] = X_STORE(value);
}
