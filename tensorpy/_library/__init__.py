"""What tensorpy.library is made of: `schema` reads schemas from Python's annotations, `tags` has operators' tags."""
