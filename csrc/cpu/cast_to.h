/* cast_to.h: the loops from every dtype to one; included once per dtype by cast.c, with TO its enumerator, TO_TYPE its
 * C type and TO_VALUE(v) the conversion of a value (a 16-bit float comes as float). */

#define NAME(from) NAME_(TO, from)
#define NAME_(to, from) NAME__(to, from)
#define NAME__(to, from) to_##to##_from_##from
#define DTYPE(id) DTYPE_(id)
#define DTYPE_(id) TP_##id

#define LOOP_HEAD(id) static void NAME(id)(char *const *data, const int64_t *strides, int64_t n, const void *params)
#define DECLARE(id, name, ctype, category) LOOP_HEAD(id);
#define LOOP(id, name, ctype, category)                                                                \
    LOOP_HEAD(id) {                                                                                    \
        TO_TYPE *const to = (TO_TYPE *)data[0];                                                        \
        const ctype *const from = (const ctype *)data[1];                                              \
        if (has_two_steps(DTYPE(TO), TP_##id)) {                                                       \
            in_two_steps(to_FLOAT32_from_##id, NAME(FLOAT32), data, strides, n);                       \
        } else if (strides[0] == sizeof(TO_TYPE) && strides[1] == sizeof(ctype)) {                     \
            TP_IVDEP                                                                                   \
            for (int64_t i = by_instruction(DTYPE(TO), TP_##id, to, from, n); i < n; i++)              \
                to[i] = TO_VALUE(READ_##id(from[i]));                                                  \
        } else {                                                                                       \
            TP_OPERAND(data, strides, 0)                                                               \
            TP_OPERAND(data, strides, 1)                                                               \
            for (int64_t i = 0; i < n; i++) *TP_TO(TO_TYPE, 0) = TO_VALUE(READ_##id(TP_AT(ctype, 1))); \
        }                                                                                              \
    }
#define ENTRY(id, name, ctype, category) [TP_##id] = NAME(id),

TP_FORALL_COMPUTED_DTYPES(DECLARE)
TP_FORALL_COMPUTED_DTYPES(LOOP)
static const tp_loop_fn NAME(any)[TP_NUM_DTYPES] = {TP_FORALL_COMPUTED_DTYPES(ENTRY)};

#undef LOOP
#undef LOOP_HEAD
#undef DECLARE
#undef DTYPE
#undef DTYPE_
#undef ENTRY
#undef NAME
#undef NAME_
#undef NAME__
#undef TO
#undef TO_TYPE
#undef TO_VALUE
