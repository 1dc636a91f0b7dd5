"""Passes for all devices."""
