"""Averages of the parameters of processes that train on their own for some steps."""
