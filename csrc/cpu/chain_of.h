/* chain_of.h: a chain over some elements, whose values stay in registers; chain_loops.c includes it for each dtype and
 * number of vectors.
 *
 * NAME: of the function; T: the dtype's C type; V: a vector of them that may lie anywhere, or T itself; EACH(X): X(k)
 * for each vector's number; ROOT(v): the square root of a V. */

#define LANES ((int64_t)(sizeof(V) / sizeof(T)))
#define DECLARE(k) V x##k = {0};
#define Y(k) (*(const V *)(y + (k) * LANES))
#define SET(k) x##k = Y(k);
#define SET_ONE(k) x##k = one - (V){0}; /* -0 stays */
#define ADD(k) x##k = x##k + Y(k);
#define ADD_ONE(k) x##k = x##k + one;
#define SUBTRACT(k) x##k = x##k - Y(k);
#define SUBTRACT_ONE(k) x##k = x##k - one;
#define SUBTRACT_FROM(k) x##k = Y(k) - x##k;
#define SUBTRACT_FROM_ONE(k) x##k = one - x##k;
#define MULTIPLY(k) x##k = x##k * Y(k);
#define MULTIPLY_ONE(k) x##k = x##k * one;
#define DIVIDE(k) x##k = x##k / Y(k);
#define DIVIDE_ONE(k) x##k = x##k / one;
#define DIVIDE_INTO(k) x##k = Y(k) / x##k;
#define DIVIDE_INTO_ONE(k) x##k = one / x##k;
#define NEGATE(k) x##k = -x##k;
#define SQUARE(k) x##k = x##k * x##k;
#define TWICE(k) x##k = x##k + x##k;
#define TO_ROOT(k) x##k = ROOT(x##k);
#define STORE(k) *(V *)(to + (k) * LANES) = x##k;
#define OF_TWO(name)                          \
    case TP_LINK_##name: {                    \
        const T *const y = (T *)l->data + at; \
        EACH(name)                            \
        break;                                \
    }                                         \
    case TP_LINK_##name##_ONE: {              \
        const T one = *(const T *)l->data;    \
        EACH(name##_ONE)                      \
        break;                                \
    }

static inline void NAME(const tp_link *links, int64_t count, int64_t at) {
    EACH(DECLARE)
    for (const tp_link *l = links; l < links + count; l++) switch (l->op) {
            TP_FORALL_LINKS_OF_TWO(OF_TWO)
        case TP_LINK_NEGATE: EACH(NEGATE) break;
        case TP_LINK_SQUARE: EACH(SQUARE) break;
        case TP_LINK_TWICE: EACH(TWICE) break;
        case TP_LINK_SQRT: EACH(TO_ROOT) break;
        case TP_LINK_STORE: {
            T *const to = (T *)l->data + at;
            EACH(STORE)
            break;
        }
        default: __builtin_unreachable();
        }
}

#undef LANES
#undef DECLARE
#undef Y
#undef SET
#undef SET_ONE
#undef ADD
#undef ADD_ONE
#undef SUBTRACT
#undef SUBTRACT_ONE
#undef SUBTRACT_FROM
#undef SUBTRACT_FROM_ONE
#undef MULTIPLY
#undef MULTIPLY_ONE
#undef DIVIDE
#undef DIVIDE_ONE
#undef DIVIDE_INTO
#undef DIVIDE_INTO_ONE
#undef NEGATE
#undef SQUARE
#undef TWICE
#undef TO_ROOT
#undef STORE
#undef OF_TWO
#undef NAME
#undef V
#undef EACH
#undef ROOT
