"""Passes, what runs them in an order, and what cuts a graph into parts for somebody who computes some operators."""
