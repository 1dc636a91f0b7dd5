"""An operator of Python functions and an OpenCL kernel: a * x + y, on the CPU, on OpenCL and for shapes alone."""

import tensorpy as tp

kernel = tp.library.opencl_kernel(
    "axpy",
    """
kernel void axpy(float a, global const float *x, long x_at, global float *y, long y_at, long n) {
    long i = get_global_id(0);
    if (i < n) y[y_at + i] += a * x[x_at + i];
}""",
)


@tp.library.opencl_op("mine::axpy", mutates_args=())
def axpy(a: float, x: tp.Tensor, y: tp.Tensor) -> tp.Tensor:
    out = y.clone()
    kernel[x.numel()](a, x, out, x.numel())  # so many work-items
    return out


if __name__ == "__main__":
    x, y = tp.arange(4.0, device="opencl"), tp.ones(4, device="opencl")
    print(axpy(2.0, x, y))
