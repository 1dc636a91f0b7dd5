/* batching.h: how an operator is batched under vmap, as data. Since 1.2.
 *
 * The generator writes it (python -m tensorpy.codegen), for tensorpy and for libraries from outside. A rule is a kind,
 * and a role for each argument: a character in the order of the schema.
 *   tensors   T  has the batch in front, expanded to it if it is not batched
 *             A  has the batch in front, and dimensions of size 1 after it until it has as many as the others; stays
 *                as it is if it is not batched: it broadcasts
 *             U  may not be batched: the operator loops if it is
 *   numbers   d  a dimension, or dimensions, of the first tensor (or of the sizes s): one further back
 *             p  all dimensions in another order
 *             e  the same of a tensor with one dimension more, as unsqueeze counts
 *             a  as d; none are all
 *             w  as d; none is the whole tensor in one line
 *             s  sizes, or strides: the batch comes in front       x  the same, and the tensor has as many dimensions
 *             r  repeats: a 1 comes in front, and as x
 *             m  the number of samples in dimension 0, or sizes that begin with it: times the batch
 *             f  a memory format, which is of four or five dimensions: taken as preserving
 *             .  as it is */
#ifndef TENSORPY_BATCHING_H
#define TENSORPY_BATCHING_H

typedef enum {
    TP_BATCH_LOOP,     /* sample by sample, and one warning */
    TP_BATCH_LINES,    /* a dimension more in front */
    TP_BATCH_SAMPLES,  /* the batch and dimension 0, whose parts do not meet, are one dimension */
    TP_BATCH_WHOLE,    /* `other` reduces one dimension: all of a sample's */
    TP_BATCH_PARTS,    /* the backend's kernel calls operators only: those are batched */
    TP_BATCH_INPLACE,  /* `other` computes, and self is overwritten */
    TP_BATCH_GEOMETRY, /* `other` gives the view that self becomes */
    TP_BATCH_VALUES,   /* refused: what comes out depends on values, or is no tensor */
    TP_BATCH_OUT,      /* refused: an out= has one size */
} tp_batch_kind;
/* The characters of roles. */
#define TP_BATCH_ROLES_OF_TENSORS "TAU"
#define TP_BATCH_ROLES_OF_NUMBERS "dpeawsxrmf."

#endif
