"""Passes over graphs of operators (`make_fx`)."""
