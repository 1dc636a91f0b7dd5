"""The older name of what library.custom_op() is made with: tests of operators ask for its context."""
