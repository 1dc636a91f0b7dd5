/* optimizer.cl: a step of an optimizer for one parameter, as cpu/optimizer_of.h has it.
 *
 * Defined in front: X_* (element.h), computing in T; RULE_sgd, RULE_adam or RULE_adagrad; HAS_<list> for each state that
 * there is; NESTEROV, STARTS, SCALED, GUARDED; EACH, how many elements a work-item has: side by side on CPU devices, on
 * GPUs as far apart as there are work-items. */
typedef struct {
    T sign, shrink, decay, lr, first, beta, second, eps, log1, log2; /* opencl/kernels/optimizer.c */
} settings;

/* A number that lies on the device, or was read on the host. */
#define NUMBER(name) __global const float *name##_at, long name##_offset, float name##_given, int name##_there
#define READ(name) ((T)(name##_there ? name##_at[name##_offset] : name##_given))

__kernel void advance(settings s, __global X_S *p, long po, __global X_S *g, long go, __global X_S *a, long ao,
                      __global X_S *b, long bo, __global X_S *c, long co, NUMBER(count), NUMBER(scale), NUMBER(found),
                      long n) {
#ifdef GUARDED
    if (READ(found) == 1) return;
#endif
#ifdef TP_CPU_DEVICE
    long first = (long)get_global_id(0) * EACH, last = min(first + EACH, n);
    const long stride = 1;
#else
    long first = get_global_id(0), last = n;
    const long stride = get_global_size(0);
#endif
    p += po, g += go, a += ao, b += bo, c += co;
    T size = s.lr;
#if defined(RULE_adam)
    const T count = READ(count), correction = 1 / sqrt(-expm1(count * s.log2));
    size /= -expm1(count * s.log1);
#elif defined(RULE_adagrad)
    size /= 1 + (READ(count) - 1) * s.second;
#endif
#ifdef SCALED
    const T inverse = 1 / READ(scale);
#endif
    OVER_VECTORS
    for (long i = first; i < last; i += stride) {
        T param = X_LOAD(p[i]), grad = X_LOAD(g[i]);
#ifdef SCALED
        grad *= inverse;
        g[i] = X_STORE(grad);
#endif
#if defined(RULE_adam)
        param *= s.shrink;
        grad = s.sign * grad + s.decay * param;
        T mean = X_LOAD(a[i]), square = s.beta * X_LOAD(b[i]) + s.second * grad * grad;
        mean += s.first * (grad - mean);
        a[i] = X_STORE(mean);
        b[i] = X_STORE(square);
#ifdef HAS_c
        const T top = X_LOAD(c[i]);
        square = square > top || square != square ? square : top;
        c[i] = X_STORE(square);
#endif
        param -= size * mean / (sqrt(square) * correction + s.eps);
#elif defined(RULE_adagrad)
        grad = s.sign * grad + s.decay * param;
        const T sum = X_LOAD(a[i]) + grad * grad;
        a[i] = X_STORE(sum);
        param -= size * grad / (sqrt(sum) + s.eps);
#else
        grad = s.sign * grad + s.decay * param;
#ifdef HAS_a
#ifdef STARTS
        const T velocity = s.first * grad; /* what was there is no momentum */
#else
        const T velocity = s.beta * X_LOAD(a[i]) + s.first * grad;
#endif
        a[i] = X_STORE(velocity);
#ifdef NESTEROV
        grad += s.beta * velocity;
#else
        grad = velocity;
#endif
#endif
        param -= size * grad;
#endif
        p[i] = X_STORE(param);
    }
}
