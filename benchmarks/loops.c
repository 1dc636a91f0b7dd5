/* The chains of bench_compile.py as one loop each, for a C compiler to make what it can of: the time without calls. */
#include <math.h>
#include <stddef.h>

void five(const float *restrict a, const float *restrict b, float *restrict out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = ((a[i] + b[i]) * a[i] - b[i]) * 0.5f + a[i];
}

void cheap(const float *restrict a, const float *restrict b, unsigned char *restrict out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = a[i] * b[i] + a[i] - b[i] > 0;
}

void dear(const float *restrict a, const float *restrict b, float *restrict out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = tanhf(a[i] * b[i] + a[i]) * (1 / (1 + expf(-b[i])));
}

void distance(const float *restrict a, const float *restrict b, float *restrict out, size_t n)
{
    float sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    *out = sum / (float)n;
}

void adam(float *restrict p, const float *restrict g, float *restrict m, float *restrict v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        m[i] = m[i] * 0.9f + g[i] * 0.1f;
        v[i] = v[i] * 0.999f + g[i] * g[i] * 0.001f;
        p[i] -= m[i] / 0.1f / (sqrtf(v[i] / 0.001f) + 1e-8f) * 1e-3f;
    }
}
