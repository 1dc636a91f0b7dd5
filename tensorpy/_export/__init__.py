"""What classes of tensors say to export: `wrappers`. `tensorpy.export` is what exports."""
