"""What export asks of operators and programs (`verifier`), and what classes of tensors say to it (`wrappers`).

`tensorpy.export` is what exports.
"""
