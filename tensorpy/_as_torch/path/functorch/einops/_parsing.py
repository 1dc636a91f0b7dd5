"""What reads rearrange's patterns, under its first name."""

from tensorpy.func.axes import ELLIPSIS as _ellipsis  # noqa: F401
from tensorpy.func.axes import (  # noqa: F401
    AnonymousAxis,
    ParsedExpression,
    parse_pattern,
    validate_rearrange_expressions,
)
