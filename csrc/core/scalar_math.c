/* scalar_math.c: arithmetic on numbers of any kind, and int lists; see scalar_math.h for the rules. */
#include "core/scalar_math.h"

#include <complex.h>

/* An int beyond int64 takes part as a float, so that no sum of large ints turns negative by accident. */
static tp_scalar_kind common_kind(const tp_scalar *a, const tp_scalar *b) {
    tp_scalar_kind kind = a->kind > b->kind ? a->kind : b->kind;
    if (kind == TP_SCALAR_UINT) return TP_SCALAR_FLOAT;
    return kind == TP_SCALAR_BOOL ? TP_SCALAR_INT : kind;
}
static tp_scalar from_int(uint64_t i) { return (tp_scalar){.kind = TP_SCALAR_INT, .i = (int64_t)i}; }
static tp_scalar from_double(double f) { return (tp_scalar){.kind = TP_SCALAR_FLOAT, .f = f}; }
static tp_scalar from_complex(tp_complex128 c) { return (tp_scalar){.kind = TP_SCALAR_COMPLEX, .c = c}; }

#define ARITHMETIC(name, op)                                                                       \
    tp_scalar tp_scalar_##name(const tp_scalar *a, const tp_scalar *b) {                           \
        switch (common_kind(a, b)) {                                                               \
        case TP_SCALAR_COMPLEX: return from_complex(tp_scalar_complex(a) op tp_scalar_complex(b)); \
        case TP_SCALAR_FLOAT: return from_double(tp_scalar_double(a) op tp_scalar_double(b));      \
        default: return from_int((uint64_t)tp_scalar_int(a) op(uint64_t) tp_scalar_int(b));        \
        }                                                                                          \
    }
ARITHMETIC(add, +)
ARITHMETIC(sub, -)
ARITHMETIC(mul, *)
#undef ARITHMETIC

static bool is_complex(const tp_scalar *a) { return a->kind == TP_SCALAR_COMPLEX; }

tp_scalar tp_scalar_div(const tp_scalar *a, const tp_scalar *b) {
    if (is_complex(a) || is_complex(b)) return from_complex(tp_scalar_complex(a) / tp_scalar_complex(b));
    return from_double(tp_scalar_double(a) / tp_scalar_double(b));
}

tp_scalar tp_scalar_pow(const tp_scalar *a, const tp_scalar *b) {
    if (is_complex(a) || is_complex(b)) return from_complex(cpow(tp_scalar_complex(a), tp_scalar_complex(b)));
    return from_double(pow(tp_scalar_double(a), tp_scalar_double(b)));
}

tp_scalar tp_scalar_neg(const tp_scalar *a) {
    switch (a->kind) {
    case TP_SCALAR_COMPLEX: return from_complex(-a->c);
    case TP_SCALAR_FLOAT: return from_double(-a->f);
    case TP_SCALAR_UINT: return from_double(-(double)a->u);
    default: return from_int(0 - (uint64_t)tp_scalar_int(a));
    }
}

tp_scalar tp_scalar_conj(const tp_scalar *a) { return is_complex(a) ? from_complex(conj(a->c)) : *a; }

#define FUNCTION(name)                                         \
    tp_scalar tp_scalar_##name(const tp_scalar *a) {           \
        if (is_complex(a)) return from_complex(c##name(a->c)); \
        return from_double(name(tp_scalar_double(a)));         \
    }
FUNCTION(exp)
FUNCTION(log)
FUNCTION(sqrt)
#undef FUNCTION

bool tp_scalar_equal(const tp_scalar *a, const tp_scalar *b) {
    switch (common_kind(a, b)) {
    case TP_SCALAR_COMPLEX: return tp_scalar_complex(a) == tp_scalar_complex(b);
    case TP_SCALAR_FLOAT: return tp_scalar_double(a) == tp_scalar_double(b);
    default: return tp_scalar_int(a) == tp_scalar_int(b);
    }
}

bool tp_scalar_less(const tp_scalar *a, const tp_scalar *b) {
    if (common_kind(a, b) == TP_SCALAR_INT) return tp_scalar_int(a) < tp_scalar_int(b);
    return tp_scalar_double(a) < tp_scalar_double(b);
}

bool tp_scalar_less_equal(const tp_scalar *a, const tp_scalar *b) {
    if (common_kind(a, b) == TP_SCALAR_INT) return tp_scalar_int(a) <= tp_scalar_int(b);
    return tp_scalar_double(a) <= tp_scalar_double(b);
}

bool tp_ints_equal(tp_ints a, tp_ints b) {
    if (a.size != b.size) return false;
    return a.size <= 0 || memcmp(a.data, b.data, (size_t)a.size * sizeof(int64_t)) == 0;
}

int64_t tp_ints_numel(tp_ints sizes) {
    int64_t n = 1;
    for (int64_t i = 0; i < sizes.size; i++) n *= sizes.data[i];
    return n;
}

int64_t tp_list_index(int64_t size, int64_t i) {
    if (i >= -size && i < size) return i < 0 ? i + size : i;
    return tp_fail(TP_IndexError, "list index %lld out of range for %lld items", (long long)i, (long long)size);
}

tp_ints tp_ints_slice(tp_ints v, int64_t low, int64_t high) {
    if (v.size <= 0) return TP_EMPTY_INTS;
    low = low < 0 ? tp_max_int(low + v.size, 0) : tp_min_int(low, v.size);
    high = high < 0 ? tp_max_int(high + v.size, 0) : tp_min_int(high, v.size);
    return (tp_ints){v.data + low, tp_max_int(high - low, 0)};
}

tp_ints tp_ints_join(int64_t *room, tp_ints a, tp_ints b) {
    int64_t na = tp_max_int(a.size, 0), nb = tp_max_int(b.size, 0);
    if (na + nb > TP_MAX_DIMS) {
        tp_fail(TP_RuntimeError, "a list of %lld sizes; at most %d are allowed", (long long)(na + nb), TP_MAX_DIMS);
        return TP_NO_INTS;
    }
    if (na) memmove(room, a.data, (size_t)na * sizeof(int64_t));
    if (nb) memcpy(room + na, b.data, (size_t)nb * sizeof(int64_t));
    return (tp_ints){room, na + nb};
}
