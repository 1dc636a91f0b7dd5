"""What the package `packaging` has, where it is installed."""
