"""What `make bench DEVICE=opencl` measures: one file for each family, and a plain OpenCL program to compare with."""
