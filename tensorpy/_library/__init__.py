"""What tensorpy.library is made of.

`registration` keeps what Python declared and registered; `libraries`, `registering` and `custom_ops` are the three ways
to do so; `schema` reads schemas from annotations, `tags` has operators' tags.
"""
