"""The generator: reads yaml/ and writes C, Python, stubs and pages. Imports as `codegen` from the tree and as
`tensorpy.codegen` once installed, so every import inside it is relative."""
