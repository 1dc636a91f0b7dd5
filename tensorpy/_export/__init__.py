"""Export of programs to graphs is not here; `wrappers` has what classes of tensors say to it."""
