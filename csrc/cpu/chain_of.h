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
#define SQRT(k) x##k = ROOT(x##k);
#define STORE(k) *(V *)(to + (k) * LANES) = x##k;
#define NEXT goto *code_of[(++l)->op]
#define OF_TWO(name)                          \
    of_##name : {                             \
        const T *const y = (T *)l->data + at; \
        EACH(name)                            \
        NEXT;                                 \
    }                                         \
    of_##name##_ONE : {                       \
        const T one = *(const T *)l->data;    \
        EACH(name##_ONE)                      \
        NEXT;                                 \
    }
#define OF_ONE(name) \
    of_##name : {    \
        EACH(name)   \
        NEXT;        \
    }
#define PLACE_OF_TWO(name) &&of_##name, &&of_##name##_ONE,
#define PLACE_OF_ONE(name) &&of_##name,
#define COUNT(k) +1

/* Elements [at, n) as long as whole groups of vectors are left; where it ended. Each link goes to the next one's code
 * by a jump of its own, so that the CPU foresees it by the link that it leaves. */
static int64_t NAME(const tp_link *links, int64_t at, int64_t n) {
    static const void *const code_of[] = {
        TP_FORALL_LINKS_OF_TWO(PLACE_OF_TWO) TP_FORALL_LINKS_OF_ONE(PLACE_OF_ONE) && of_STORE,
        &&of_END,
    };
    const int64_t group = (0 EACH(COUNT)) * LANES;
    EACH(DECLARE)
    for (; at + group <= n; at += group) {
        const tp_link *l = links - 1;
        NEXT;
        TP_FORALL_LINKS_OF_TWO(OF_TWO)
        TP_FORALL_LINKS_OF_ONE(OF_ONE)
    of_STORE:
        {
            T *const to = (T *)l->data + at;
            EACH(STORE)
            NEXT;
        }
    of_END:;
    }
    return at;
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
#undef SQRT
#undef STORE
#undef NEXT
#undef OF_TWO
#undef OF_ONE
#undef PLACE_OF_TWO
#undef PLACE_OF_ONE
#undef COUNT
#undef NAME
#undef V
#undef EACH
#undef ROOT
