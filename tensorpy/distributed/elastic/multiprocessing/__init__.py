"""What programs that torchrun starts import from here: errors.record."""
