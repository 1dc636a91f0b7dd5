#include "dispatch/boxing.h"

#include <stdarg.h>

/* A code of one letter, or of two. Of variadic arguments what is smaller than an int comes as an int. */
#define KIND(letter, second) ((letter) | (second) << 8)
#define TAKE(code, kind, passed) \
    case kind: tp_put_##code(value, va_arg(*given, passed)); break

static void take(tp_value *value, int kind, va_list *given) {
    switch (kind) {
        TAKE(T, 'T', tp_tensor *);
        TAKE(S, 'S', const tp_scalar *);
        TAKE(J, 'J', int64_t);
        TAKE(F, 'F', double);
        TAKE(B, 'B', int);
        TAKE(Z, 'Z', const char *);
        TAKE(D, 'D', int);
        TAKE(L, 'L', int);
        TAKE(M, 'M', int);
        TAKE(G, 'G', struct tp_generator *);
        TAKE(O, 'O', tp_storage *);
        TAKE(V, 'V', tp_device);
        TAKE(Q, 'Q', tp_stream);
        TAKE(Tl, KIND('T', 'l'), tp_tensors);
        TAKE(Sl, KIND('S', 'l'), tp_scalars);
        TAKE(Jl, KIND('J', 'l'), tp_ints);
        TAKE(Fl, KIND('F', 'l'), tp_floats);
        TAKE(Bl, KIND('B', 'l'), tp_bools);
        TAKE(Jo, KIND('J', 'o'), tp_opt_int);
        TAKE(Fo, KIND('F', 'o'), tp_opt_float);
        TAKE(Bo, KIND('B', 'o'), int);
    }
}

int tp_box_and_call(const tp_op *op, tp_keyset ks, tp_value *results, const char *codes, ...) {
    tp_value args[TP_MOST_ARGUMENTS];
    va_list given;
    va_start(given, codes);
    for (int i = 0; *codes; i++) {
        int kind = *codes++;
        if (*codes && *codes != '_') kind = KIND(kind, *codes++);
        if (*codes) codes++;
        take(&args[i], kind, &given);
    }
    va_end(given);
    return tp_redispatch_boxed(op, ks, args, results);
}
