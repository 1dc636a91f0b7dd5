/* convolution_int8.c: convolutions of bytes: the windows of widened lines of an image are the rows of a product.
 *
 * A piece of the work is a band of lines of one plane of the result. The lines of the image that its windows reach are
 * put into one block, as bytes or widened, with zeros for what is outside; a window's rows are runs of that block, so
 * that no window is written out. Bands depend on the number of threads; sums are exact, and do not. */
#include "cpu/product_int8.h"

#include "PrimitiveKernels.h"
#include "core/alloc.h"
#include "core/parallel.h"
#include "cpu/kernels.h"
#include "core/memory.h"

#include <string.h>

#define ALIASED 512 /* bytes: places so far apart share sets of the L1 cache, which costs a tenth */
#define SHIFT 64
#define SPARE 64       /* zeros behind a block: numbers without a weight are read there */
#define NEAR (1 << 14) /* bytes of lines that stay in the L1 cache while the panels go by */
#define ROOM (1 << 18) /* bytes that a block has at most, where a line's windows fit: it stays in the L2 cache */

typedef struct {
    tp_int8_result to;
    const uint8_t *x;
    const int8_t *panels;
    int64_t in[3], out[3], window[3], padding[3], dilation[3], stride[3];
    int64_t channels, groups, each; /* `each`: channels of a group in the input, */
    int64_t features;               /* in the result */
    int64_t item, pixel;            /* bytes of a number of a block, from one of its places to the next */
    int64_t columns;                /* places of a widened line */
    int64_t band, bands;            /* lines at once, of which a plane has so many */
    int64_t pieces, numbers;        /* of a window: its runs */
    bool apart;                     /* a group is one channel */
} job;

/* Lines of the image that `lines` lines of windows reach. */
static int64_t reach(const job *j, int64_t lines) {
    return (lines - 1) * j->stride[1] + (j->window[1] - 1) * j->dilation[1] + 1;
}

static size_t block_bytes(const job *j) {
    int64_t lines = j->window[0] * reach(j, j->band);
    return (size_t)(lines * j->columns * j->pixel + SPARE);
}

/* ---- a block ---- */

static void take_numbers(const job *j, const uint8_t *from, int64_t n, char *to) {
    if (j->to.bytes) memcpy(to, from, (size_t)n);
    else tp_cpu.product_int8->widen(from, j->to.is_signed, n, (int32_t)j->to.zero_point, (int16_t *)to);
}

static void take_places(const job *j, const uint8_t *from, int64_t places, char *to) {
    if (j->channels * j->item == j->pixel) {
        take_numbers(j, from, places * j->channels, to);
        return;
    }
    for (int64_t i = 0; i < places; i++, from += j->channels, to += j->pixel) take_numbers(j, from, j->channels, to);
}

/* One line of the image, or NULL, with its border. */
static void take_line(const job *j, const uint8_t *from, char *to) {
    int64_t left = j->padding[2] < j->columns ? j->padding[2] : j->columns, room = j->columns - left;
    int64_t inside = !from ? 0 : room < j->in[2] ? room : j->in[2];
    if (!from) left = 0;
    int border = j->to.bytes ? (int)j->to.zero_point : 0;
    memset(to, border, (size_t)(left * j->pixel));
    to += left * j->pixel;
    if (inside) take_places(j, from, inside, to);
    memset(to + inside * j->pixel, border, (size_t)((j->columns - left - inside) * j->pixel));
}

static void take_block(const job *j, int64_t image, int64_t plane, int64_t line, int64_t lines, char *to) {
    int64_t size = j->columns * j->pixel;
    for (int64_t k = 0; k < j->window[0]; k++) {
        int64_t z = plane * j->stride[0] - j->padding[0] + k * j->dilation[0];
        for (int64_t i = 0; i < reach(j, lines); i++, to += size) {
            int64_t y = line * j->stride[1] - j->padding[1] + i;
            bool there = z >= 0 && z < j->in[0] && y >= 0 && y < j->in[1];
            take_line(j, there ? j->x + ((image * j->in[0] + z) * j->in[1] + y) * j->in[2] * j->channels : NULL, to);
        }
    }
    memset(to, 0, SPARE);
}

/* Where the runs of a window begin in a block of so many lines, from its first place on. */
static void find_pieces(const job *j, int64_t lines, int64_t *offsets) {
    int64_t across = j->pieces / (j->window[0] * j->window[1]);
    for (int64_t k = 0; k < j->window[0]; k++)
        for (int64_t y = 0; y < j->window[1]; y++)
            for (int64_t x = 0; x < across; x++)
                *offsets++ = ((k * reach(j, lines) + y * j->dilation[1]) * j->columns + x * j->dilation[2]) * j->pixel;
}

/* ---- its products ---- */

/* A panel's columns, of one group or of channels that are groups, with all lines of a block. */
static void run_panel(const job *j, tp_int8_part *part, int64_t p, const char *block, const int64_t *offsets,
                      int64_t row, int64_t lines) {
    int64_t all = j->apart ? j->to.n : j->features, in_group = (all + TP_INT8_COLUMNS - 1) / TP_INT8_COLUMNS;
    int64_t group = p / in_group, from = p % in_group * TP_INT8_COLUMNS;
    int64_t n = all - from < TP_INT8_COLUMNS ? all - from : TP_INT8_COLUMNS;
    int64_t quads = (j->numbers + 3) / 4;
    const int8_t *panel = j->panels + p * j->pieces * TP_INT8_COLUMNS * (j->apart ? 1 : 4 * quads);
    const tp_int8_rows rows = {block + (j->apart ? from : group * j->each) * j->item,
                               j->stride[2] * j->pixel,
                               offsets,
                               j->pieces,
                               quads,
                               j->numbers};
    const tp_int8_lines a = {rows, j->out[2], lines, j->stride[1] * j->columns * j->pixel};
    tp_int8_panel(part, &a, panel, p, j->apart, row, group * all + from, n);
}

static int64_t panels_of(const job *j) {
    return j->apart ? (j->to.n + TP_INT8_COLUMNS - 1) / TP_INT8_COLUMNS
                    : j->groups * ((j->features + TP_INT8_COLUMNS - 1) / TP_INT8_COLUMNS);
}

static void run_bands(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    size_t bytes = block_bytes(j), list = (size_t)j->pieces * sizeof(int64_t);
    int64_t panels = panels_of(j), fit = NEAR / (j->stride[1] * j->columns * j->pixel);
    int64_t at_once = fit < 1 ? 1 : fit;
    int64_t *offsets = tp_alloc(list);
    char *block = offsets ? tp_alloc(bytes) : NULL;
    tp_int8_part part;
    tp_int8_begin(&part, &j->to);
    for (int64_t b = begin; block && b < end; b++) {
        int64_t line = b % j->bands * j->band, plane = b / j->bands % j->out[0], image = b / j->bands / j->out[0];
        int64_t lines = j->out[1] - line < j->band ? j->out[1] - line : j->band;
        int64_t row = ((image * j->out[0] + plane) * j->out[1] + line) * j->out[2];
        take_block(j, image, plane, line, lines, block);
        find_pieces(j, lines, offsets);
        for (int64_t y = 0, n; y < lines; y += n) {
            n = lines - y < at_once ? lines - y : at_once;
            const char *from = block + y * j->stride[1] * j->columns * j->pixel;
            for (int64_t p = 0; p < panels; p++) run_panel(j, &part, p, from, offsets, row + y * j->out[2], n);
        }
    }
    tp_int8_done(&part);
    tp_free(block, bytes);
    tp_free(offsets, list);
}

/* ---- what is worked off at once ---- */

static void divide(job *j, int64_t planes) {
    int64_t line = j->columns * j->pixel * j->window[0], fit = ROOM / line - reach(j, 1);
    int64_t most = fit < 1 ? 1 : 1 + fit / j->stride[1], threads = tp_get_num_threads();
    int64_t bands = (j->out[1] + most - 1) / most, wanted = (threads + planes - 1) / planes;
    if (bands < wanted) bands = wanted < j->out[1] ? wanted : j->out[1];
    j->band = (j->out[1] + bands - 1) / bands;
    j->bands = (j->out[1] + j->band - 1) / j->band;
}

int convolution_int8_cpu(tp_tensor *x, tp_tensor *panels, tp_tensor *scales, tp_tensor *zero_points, tp_tensor *bias,
                         tp_ints window, tp_ints stride, tp_ints padding, tp_ints dilation, int64_t groups,
                         double scale, int64_t zero_point, double out_scale, int64_t out_zero_point, bool relu,
                         tp_tensor *out) {
    job j = {.to =
                 tp_int8_result_of(scales, zero_points, bias, scale, zero_point, out_scale, out_zero_point, relu, out),
             .x = tp_data(x),
             .panels = tp_data(panels),
             .channels = x->sizes[4],
             .groups = groups,
             .each = x->sizes[4] / groups,
             .features = out->sizes[4] / groups,
             .apart = panels->sizes[4] == 1};
    for (int d = 0; d < 3; d++) {
        j.in[d] = x->sizes[d + 1], j.out[d] = out->sizes[d + 1], j.window[d] = window.data[d];
        j.stride[d] = stride.data[d], j.padding[d] = padding.data[d], j.dilation[d] = dilation.data[d];
    }
    if (!j.apart) tp_int8_stay_bytes(&j.to, x, panels, zero_points, out->numel / out->sizes[4]);
    j.item = j.to.bytes ? 1 : 2;
    j.pixel = j.channels * j.item;
    /* A line of a window is one run, but where places must be moved apart. */
    bool joined = groups == 1 && !j.apart && j.dilation[2] == 1;
    if (j.pixel * j.stride[2] % ALIASED == 0) j.pixel += SHIFT, joined = false;
    j.pieces = j.window[0] * j.window[1] * (joined ? 1 : j.window[2]);
    j.numbers = j.apart ? 1 : j.each * (joined ? j.window[2] : 1);
    j.columns = (j.out[2] - 1) * j.stride[2] + (j.window[2] - 1) * j.dilation[2] + 1;
    divide(&j, x->sizes[0] * j.out[0]);
    int64_t work = 1 + j.band * j.out[2] * j.pieces * j.numbers * (out->sizes[4] + TP_INT8_COLUMNS), few = 1 << 18;
    int64_t bands = x->sizes[0] * j.out[0] * j.bands;
    if (tp_int8_make_starts(&j.to, j.panels, panels_of(&j), j.pieces * ((j.numbers + 3) / 4)) < 0) return -1;
    int status = tp_parallel_unlocked((double)work * (double)bands > 1 << 16, bands, 1 + few / work, run_bands, &j);
    tp_int8_free_starts(&j.to);
    return status;
}
