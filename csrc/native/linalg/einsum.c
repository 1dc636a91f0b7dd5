/* einsum.c: Einstein sums, read from their equation and computed by permutations, matrix products and sums.
 *
 * An operand in work is a tensor with one label per dimension, no label twice. Whatever broadcasts is gone before the
 * first product: a dimension of size 1 whose label has another size elsewhere is dropped from its operand, because a
 * product repeats it anyway. So two dimensions of one label always have one size, and a label is summed as soon as
 * neither the output nor an operand still to come has it. Every step is an operator, which autograd sees.
 *
 * Labels: 0-25 are A-Z, 26-51 a-z (the order of an implicit output), from 52 on the ellipsis' dimensions, counted from
 * the last one. */
#include "NativeFunctions.h"
#include "core/alloc.h"

#include <stdio.h>
#include <string.h>

enum { LETTERS = 52, LABELS = LETTERS + TP_MAX_DIMS, DOTS = -1 };

typedef struct {
    tp_tensor *tensor; /* owned */
    int labels[TP_MAX_DIMS];
} term;

typedef struct {
    term *terms;
    int64_t n, allocated;
    int64_t sizes[LABELS]; /* -1: not seen */
    int uses[LABELS];
    int dots; /* dimensions of the widest ellipsis */
    int out[LABELS], n_out;
    int order[LABELS], n_order; /* every label: the output's, then the summed ones; products list theirs in it */
    bool in_out[LABELS];
} sum_job;

static void job_end(sum_job *j) {
    for (int64_t i = 0; i < j->n; i++) tp_release(j->terms[i].tensor);
    if (j->terms) tp_free(j->terms, (size_t)j->allocated * sizeof *j->terms);
}

/* Puts another tensor, owned, in the place of a term's; -1 if there is none. */
static int replace_steal(term *t, tp_tensor *made) {
    if (!made) return -1;
    tp_release(t->tensor);
    t->tensor = made;
    return 0;
}

static int64_t size_of(const term *t, int label) {
    for (int d = 0; d < t->tensor->ndim; d++)
        if (t->labels[d] == label) return t->tensor->sizes[d];
    return -1;
}

/* ---- the equation ---- */

static int label_of(char c) { return c >= 'A' && c <= 'Z' ? c - 'A' : c >= 'a' && c <= 'z' ? c - 'a' + 26 : -2; }
static char letter_of(int label) { return (char)(label < 26 ? 'A' + label : 'a' + label - 26); }

/* Reads subscripts up to the next ',' or '->' or the end; labels, with DOTS for an ellipsis. Returns how many, or -1.
 */
static int read_subscripts(const char *equation, const char **at, const char *whose, bool is_output, int *labels) {
    int n = 0;
    bool dots = false;
    const char *p = *at;
    for (; *p; p++) {
        if (*p == ' ') continue;
        if (!is_output && (*p == ',' || (p[0] == '-' && p[1] == '>'))) break;
        if (n == LABELS) return tp_fail(TP_RuntimeError, "einsum(): more than %d subscripts for %s", LABELS, whose);
        if (*p == '.') {
            if (dots)
                return tp_fail(TP_RuntimeError, "einsum(): found '.' for %s %s was already found", whose,
                               is_output ? "but an ellipsis (...)" : "for which an ellipsis");
            if (p[1] != '.' || p[2] != '.')
                return tp_fail(TP_RuntimeError, "einsum(): found '.' for %s that is not part of any ellipsis%s", whose,
                               is_output ? " (...)" : "");
            p += 2;
            dots = true;
            labels[n++] = DOTS;
        } else if ((labels[n++] = label_of(*p)) < 0) {
            return tp_fail(TP_RuntimeError,
                           "einsum(): invalid subscript given at index %lld in the equation string, subscripts must be "
                           "in [a-zA-Z]",
                           (long long)(p - equation));
        }
    }
    *at = p;
    return n;
}

/* Gives each dimension of operand i its label and notes the sizes; a size of 1 gives way to any other. */
static int label_operand(sum_job *j, int64_t i, tp_tensor *tensor, const int *subscripts, int n) {
    int letters = 0, d = 0;
    bool dots = false;
    for (int s = 0; s < n; s++) subscripts[s] == DOTS ? (void)(dots = true) : (void)letters++;
    if (dots ? letters > tensor->ndim : letters != tensor->ndim)
        return tp_fail(TP_RuntimeError,
                       "einsum(): the number of subscripts in the equation (%d) %s the number of dimensions (%d) for "
                       "operand %lld%s",
                       letters, dots ? "is more than" : "does not match", tensor->ndim, (long long)i,
                       dots ? "" : " and no ellipsis was given");
    term *t = &j->terms[j->n++];
    t->tensor = tp_retain(tensor);
    int covered = tensor->ndim - letters;
    if (dots && covered > j->dots) j->dots = covered;
    for (int s = 0; s < n; s++) {
        if (subscripts[s] != DOTS) t->labels[d++] = subscripts[s];
        else
            for (int left = covered; left > 0; left--) t->labels[d++] = LETTERS + left - 1;
    }
    for (d = 0; d < tensor->ndim; d++) {
        int label = t->labels[d];
        int64_t size = tensor->sizes[d], *seen = &j->sizes[label];
        j->uses[label]++;
        for (int before = 0; before < d; before++)
            if (t->labels[before] == label && tensor->sizes[before] != size)
                return tp_fail(
                    TP_RuntimeError,
                    "einsum(): subscript %c is repeated for operand %lld but the sizes don't match, %lld != %lld",
                    letter_of(label), (long long)i, (long long)size, (long long)tensor->sizes[before]);
        if (*seen == size || size == 1) {
            if (*seen < 0) *seen = size;
        } else if (*seen < 0 || *seen == 1) {
            *seen = size;
        } else if (label < LETTERS) {
            return tp_fail(TP_RuntimeError,
                           "einsum(): subscript %c has size %lld for operand %lld which does not broadcast with "
                           "previously seen size %lld",
                           letter_of(label), (long long)size, (long long)i, (long long)*seen);
        } else {
            return tp_fail(TP_RuntimeError,
                           "einsum(): the ellipsis of operand %lld has size %lld which does not broadcast with "
                           "previously seen size %lld",
                           (long long)i, (long long)size, (long long)*seen);
        }
    }
    return 0;
}

static void put_dots(sum_job *j) {
    for (int left = j->dots; left > 0; left--) j->out[j->n_out++] = LETTERS + left - 1;
}

static int explicit_output(sum_job *j, const char *equation, const char *at) {
    int labels[LABELS], n = read_subscripts(equation, &at, "output", true, labels);
    for (int i = 0; i < n; i++) {
        int label = labels[i];
        if (label == DOTS) {
            put_dots(j);
            continue;
        }
        if (j->sizes[label] < 0)
            return tp_fail(TP_RuntimeError,
                           "einsum(): output subscript %c does not appear in the equation for any input operand",
                           letter_of(label));
        if (j->in_out[label])
            return tp_fail(TP_RuntimeError, "einsum(): output subscript %c appears more than once in the output",
                           letter_of(label));
        j->in_out[label] = true;
        j->out[j->n_out++] = label;
    }
    return n < 0 ? -1 : 0;
}

/* Reads the operands' subscripts, and with `j` gives each dimension its label; *at is behind them. */
static int read_operands(sum_job *j, const char *equation, const char **at, tp_tensors tensors) {
    int labels[LABELS];
    for (int64_t i = 0;; i++) {
        char whose[40];
        snprintf(whose, sizeof whose, "operand %lld", (long long)i);
        if (i == tensors.size)
            return tp_fail(TP_RuntimeError, "einsum(): fewer operands were provided than specified in the equation");
        int n = read_subscripts(equation, at, whose, false, labels);
        if (n < 0 || (j && label_operand(j, i, tensors.data[i], labels, n) < 0)) return -1;
        if (**at == ',') {
            ++*at;
            continue;
        }
        if (i + 1 == tensors.size) return 0;
        return tp_fail(TP_RuntimeError, "einsum(): more operands were provided than specified in the equation");
    }
}

static int read_equation(sum_job *j, const char *equation, tp_tensors tensors) {
    const char *at = equation;
    if (read_operands(NULL, equation, &at, tensors) < 0) return -1; /* before any operand is looked at */
    at = equation;
    if (read_operands(j, equation, &at, tensors) < 0) return -1;
    if (*at) {
        if (explicit_output(j, equation, at + 2) < 0) return -1;
    } else { /* the ellipsis, then every letter that occurs once */
        put_dots(j);
        for (int label = 0; label < LETTERS; label++)
            if (j->uses[label] == 1) j->out[j->n_out++] = label;
    }
    if (j->n_out > TP_MAX_DIMS)
        return tp_fail(TP_RuntimeError, "einsum(): an output of more than %d dimensions", TP_MAX_DIMS);
    for (int i = 0; i < j->n_out; i++) j->in_out[j->order[j->n_order++] = j->out[i]] = true;
    for (int label = 0; label < LABELS; label++)
        if (j->sizes[label] >= 0 && !j->in_out[label]) j->order[j->n_order++] = label;
    return 0;
}

/* ---- one operand ---- */

/* Takes dimension d's label out of the list; the tensor has lost the dimension already or is about to. */
static void drop_label(term *t, int d, int ndim) {
    memmove(t->labels + d, t->labels + d + 1, (size_t)(ndim - d - 1) * sizeof *t->labels);
}

/* The diagonals of repeated labels, and away with the dimensions that broadcast. */
static int simplify(sum_job *j, term *t) {
    for (int d = 0; d < t->tensor->ndim; d++) {
        for (int e = d + 1; e < t->tensor->ndim; e++) {
            if (t->labels[e] != t->labels[d]) continue;
            int label = t->labels[d], n = t->tensor->ndim;
            if (replace_steal(t, tp_diagonal(t->tensor, 0, d, e)) < 0) return -1;
            drop_label(t, e, n);
            drop_label(t, d, n - 1);
            t->labels[n - 2] = label;
            d--; /* another dimension is here now */
            break;
        }
    }
    for (int d = t->tensor->ndim - 1; d >= 0; d--) {
        if (t->tensor->sizes[d] != 1 || j->sizes[t->labels[d]] == 1) continue;
        int n = t->tensor->ndim;
        if (replace_steal(t, tp_squeeze_dim(t->tensor, d)) < 0) return -1;
        drop_label(t, d, n);
    }
    return 0;
}

/* Whether a label is still wanted after terms a and b have become one (b may be NULL). */
static bool wanted(const sum_job *j, int label, const term *a, const term *b) {
    if (j->in_out[label]) return true;
    for (int64_t i = 0; i < j->n; i++)
        if (&j->terms[i] != a && &j->terms[i] != b && size_of(&j->terms[i], label) >= 0) return true;
    return false;
}

/* Sums the dimensions of t that neither `other` nor anybody else wants. */
static int sum_alone(const sum_job *j, term *t, const term *other) {
    int64_t dims[TP_MAX_DIMS];
    int n = 0, kept = 0, ndim = t->tensor->ndim;
    for (int d = 0; d < ndim; d++) {
        if ((other && size_of(other, t->labels[d]) >= 0) || wanted(j, t->labels[d], t, other))
            t->labels[kept++] = t->labels[d];
        else dims[n++] = d;
    }
    return n == 0 ? 0 : replace_steal(t, tp_sum_dim_IntList(t->tensor, (tp_ints){dims, n}, false, TP_NO_DTYPE));
}

/* t's dimensions in the order of the labels, of which t has each; new. */
static tp_tensor *ordered(const term *t, const int *labels, int n) {
    int64_t order[TP_MAX_DIMS];
    bool same = true;
    for (int i = 0; i < n; i++)
        for (int d = 0; d < n; d++)
            if (t->labels[d] == labels[i]) {
                order[i] = d;
                same = same && d == i;
            }
    return same ? tp_retain(t->tensor) : tp_permute(t->tensor, (tp_ints){order, n});
}

/* ---- two operands ---- */

/* The labels of a product of two terms, each group in the job's order: batch | left | right are kept, inner ones are
 * summed. `made` are those of the product. */
typedef struct {
    int batch[TP_MAX_DIMS], left[TP_MAX_DIMS], right[TP_MAX_DIMS], inner[TP_MAX_DIMS], made[2 * TP_MAX_DIMS];
    int n_batch, n_left, n_right, n_inner, n_made;
    int64_t batches, rows, columns, depth;
    bool turned; /* the order has all of right before left */
} pairing;

static pairing pair_up(const sum_job *j, const term *a, const term *b) {
    pairing p = {.batches = 1, .rows = 1, .columns = 1, .depth = 1};
    for (int i = 0; i < j->n_order; i++) {
        int label = j->order[i];
        int64_t in_a = size_of(a, label), in_b = size_of(b, label);
        if (in_a < 0 && in_b < 0) continue;
        if (in_b < 0) p.left[p.n_left++] = label, p.rows *= in_a;
        else if (in_a < 0) p.right[p.n_right++] = label, p.columns *= in_b, p.turned = p.n_left == 0;
        else if (wanted(j, label, a, b)) p.batch[p.n_batch++] = label, p.batches *= in_a;
        else p.inner[p.n_inner++] = label, p.depth *= in_a;
    }
    return p;
}

/* t with the three groups of labels as one dimension each; without a batch, two dimensions. new. */
static tp_tensor *grouped(const term *t, const pairing *p, const int *second, int n_second, int64_t size_second,
                          const int *third, int n_third, int64_t size_third) {
    int labels[2 * TP_MAX_DIMS], n = 0;
    for (int i = 0; i < p->n_batch; i++) labels[n++] = p->batch[i];
    for (int i = 0; i < n_second; i++) labels[n++] = second[i];
    for (int i = 0; i < n_third; i++) labels[n++] = third[i];
    tp_autoref *turned = ordered(t, labels, n);
    if (!turned) return NULL;
    if (p->n_batch == 0)
        return n_second == 1 && n_third == 1 ? tp_take(turned) : tp_reshape(turned, TP_INTS(size_second, size_third));
    return p->n_batch == 1 && n_second == 1 && n_third == 1
               ? tp_take(turned)
               : tp_reshape(turned, TP_INTS(p->batches, size_second, size_third));
}

/* t's dimensions where the labels are, and size 1 where it has none; new. */
static tp_tensor *spread(const term *t, const int *labels, int n) {
    int own[2 * TP_MAX_DIMS], n_own = 0;
    int64_t sizes[2 * TP_MAX_DIMS];
    for (int i = 0; i < n; i++) {
        sizes[i] = size_of(t, labels[i]);
        if (sizes[i] < 0) sizes[i] = 1;
        else own[n_own++] = labels[i];
    }
    tp_autoref *turned = ordered(t, own, n_own);
    return !turned || n == n_own ? tp_take(turned) : tp_reshape(turned, (tp_ints){sizes, n});
}

/* Nothing is summed: a broadcast product, whose dimensions are in the job's order at once; new. */
static tp_tensor *outer_product(const sum_job *j, const term *a, const term *b, pairing *p) {
    for (int i = 0; i < j->n_order; i++)
        if (size_of(a, j->order[i]) >= 0 || size_of(b, j->order[i]) >= 0) p->made[p->n_made++] = j->order[i];
    tp_autoref *left = spread(a, p->made, p->n_made);
    tp_autoref *right = left ? spread(b, p->made, p->n_made) : NULL;
    return right ? tp_mul_Tensor(left, right) : NULL;
}

static tp_tensor *inner_product(const term *a, const term *b, pairing *p) {
    for (int i = 0; i < p->n_batch; i++) p->made[p->n_made++] = p->batch[i];
    for (int i = 0; i < p->n_left; i++) p->made[p->n_made++] = p->left[i];
    for (int i = 0; i < p->n_right; i++) p->made[p->n_made++] = p->right[i];
    tp_autoref *left = grouped(a, p, p->left, p->n_left, p->rows, p->inner, p->n_inner, p->depth);
    tp_autoref *right = left ? grouped(b, p, p->inner, p->n_inner, p->depth, p->right, p->n_right, p->columns) : NULL;
    tp_autoref *out = !right ? NULL : p->n_batch ? tp_bmm(left, right) : tp_mm(left, right);
    if (!out || (p->n_batch <= 1 && p->n_left == 1 && p->n_right == 1)) return tp_take(out);
    int64_t sizes[2 * TP_MAX_DIMS];
    for (int i = 0; i < p->n_made; i++) sizes[i] = size_of(i < p->n_made - p->n_right ? a : b, p->made[i]);
    return tp_reshape(out, (tp_ints){sizes, p->n_made});
}

/* Term a becomes the product of a and b. */
static int multiply(const sum_job *j, term *a, term *b) {
    if (sum_alone(j, a, b) < 0 || sum_alone(j, b, a) < 0) return -1;
    pairing p = pair_up(j, a, b);
    if (p.n_batch + p.n_left + p.n_right > TP_MAX_DIMS)
        return tp_fail(TP_RuntimeError, "einsum(): a product of more than %d dimensions", TP_MAX_DIMS);
    tp_tensor *made;
    if (p.n_inner == 0) made = outer_product(j, a, b, &p);
    else if (!p.turned) made = inner_product(a, b, &p);
    else {
        p = pair_up(j, b, a);
        made = inner_product(b, a, &p);
    }
    if (replace_steal(a, made) < 0) return -1;
    memcpy(a->labels, p.made, (size_t)p.n_made * sizeof *p.made);
    return 0;
}

/* ---- all operands ---- */

static void remove_term(sum_job *j, int64_t i) {
    tp_release(j->terms[i].tensor);
    memmove(j->terms + i, j->terms + i + 1, (size_t)(--j->n - i) * sizeof *j->terms);
}

/* From left to right, or pair after pair of the path; a pair's product goes to the end of the list then. */
static int contract(sum_job *j, tp_ints path) {
    if (path.size >= 0 && path.size != 2 * (j->n - 1))
        return tp_fail(TP_RuntimeError,
                       "einsum(): expected contraction path given in path parameter to have size %lld but got %lld",
                       (long long)(2 * (j->n - 1)), (long long)path.size);
    for (int64_t step = 0; j->n > 1; step++) {
        int64_t a = path.size < 0 ? 0 : path.data[2 * step], b = path.size < 0 ? 1 : path.data[2 * step + 1];
        if (a == b || a < 0 || b < 0 || a >= j->n || b >= j->n)
            return tp_fail(TP_RuntimeError, "einsum(): invalid contraction path (%lld, %lld) for %lld operands",
                           (long long)a, (long long)b, (long long)j->n);
        if (multiply(j, &j->terms[a], &j->terms[b]) < 0) return -1;
        if (path.size >= 0) {
            term product = j->terms[a];
            product.tensor = tp_retain(product.tensor);
            remove_term(j, a > b ? a : b);
            remove_term(j, a > b ? b : a);
            j->terms[j->n++] = product;
        } else {
            remove_term(j, b);
        }
    }
    return 0;
}

static tp_tensor *compute(sum_job *j, const char *equation, tp_tensors tensors, tp_ints path) {
    if (read_equation(j, equation, tensors) < 0) return NULL;
    for (int64_t i = 0; i < j->n; i++)
        if (simplify(j, &j->terms[i]) < 0) return NULL;
    if (contract(j, path) < 0 || sum_alone(j, &j->terms[0], NULL) < 0) return NULL;
    return ordered(&j->terms[0], j->out, j->n_out);
}

/* einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor */
tp_tensor *einsum_composite(const char *equation, tp_tensors tensors, tp_ints path) {
    if (tensors.size == 0) return tp_fail_null(TP_RuntimeError, "einsum(): must provide at least one operand");
    sum_job j = {.allocated = tensors.size, .terms = tp_alloc((size_t)tensors.size * sizeof(term))};
    if (!j.terms) return NULL;
    for (int i = 0; i < LABELS; i++) j.sizes[i] = -1;
    tp_tensor *out = compute(&j, equation, tensors, path);
    job_end(&j);
    return out;
}
