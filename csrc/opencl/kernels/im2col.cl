/* im2col.cl: columns added up as the windows of images: a work-item for each pixel, in the order of the window.
 *
 * Defined in front: T. */
typedef struct {
    long planes, in[2], out[2], window[2], dilation[2], padding[2], stride[2];
} geometry;

__kernel void col2im(geometry g, __global const T *columns, long co, __global T *images, long io) {
    long i = get_global_id(0), x = i % g.in[1], y = i / g.in[1] % g.in[0], plane = i / g.in[1] / g.in[0];
    if (plane >= g.planes) return;
    columns += co + plane * g.window[0] * g.window[1] * g.out[0] * g.out[1];
    T sum = (T)(0);
    for (long ky = 0; ky < g.window[0]; ky++) {
        long ty = y + g.padding[0] - ky * g.dilation[0], oy = ty / g.stride[0];
        if (ty < 0 || ty % g.stride[0] || oy >= g.out[0]) continue;
        for (long kx = 0; kx < g.window[1]; kx++) {
            long tx = x + g.padding[1] - kx * g.dilation[1], ox = tx / g.stride[1];
            if (tx < 0 || tx % g.stride[1] || ox >= g.out[1]) continue;
            sum += columns[((ky * g.window[1] + kx) * g.out[0] + oy) * g.out[1] + ox];
        }
    }
    images[io + i] = sum;
}
