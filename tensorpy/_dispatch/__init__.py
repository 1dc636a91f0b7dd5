"""PyTorch's dispatcher in Python, by its path: here tables in C are all that there is."""
