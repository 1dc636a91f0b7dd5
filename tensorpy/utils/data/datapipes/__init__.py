"""Pipes of data: datasets made of others, which also are methods of them: `pipe.map(f).shuffle().batch(8)`."""
