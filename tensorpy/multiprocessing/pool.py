"""Python's pools of processes."""

from multiprocessing.pool import Pool, ThreadPool

__all__ = ["Pool", "ThreadPool"]
