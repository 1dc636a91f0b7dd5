"""What programs that torchrun starts import from here: elastic.multiprocessing.errors.record."""
