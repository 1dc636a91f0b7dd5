"""What the package tensorpy itself is: the table of its names, names with nothing to run, switches, older calls.

`names` says what `tensorpy.X` is and which module has it; `absent` makes the names of what is not here; `settings` has
the switches and questions of the package; `deprecated` takes calls in older orders of arguments.
"""
