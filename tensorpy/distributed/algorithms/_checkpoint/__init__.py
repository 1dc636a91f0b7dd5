"""Modules that run their forward again in backward, as wrappers around modules of a model."""
