"""Packages that PyTorch carries copies of: here they are those that are installed."""
