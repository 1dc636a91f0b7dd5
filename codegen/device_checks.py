"""Tensors of one call are on one device: the check in front of a kernel, unless the entry says `device_check: NoCheck`.

Pointwise operators have it in the iterator, where a 0-dimensional CPU tensor goes with any device; composites leave it
to their parts.
"""

from __future__ import annotations

from .c_types import c_arguments, c_result
from .model import NativeFunction, OptionalType
from .text import c_string


def device_check(function: NativeFunction, failed: str | None = None) -> str:
    """Statements, or nothing where fewer than two tensors come in. `failed`: what they return, if not what the operator
    gives where it fails.
    """
    if function.device_check == "NoCheck":
        return ""
    tensors = [a for a in c_arguments(function.func) if a.c.member == "tensor"]
    lists = [a for a in c_arguments(function.func) if a.c.member == "tensors"]
    if len(tensors) + 2 * len(lists) < 2:
        return ""
    certain = next((a for a in tensors if not isinstance(a.argument.type, OptionalType)), None)
    differ = [f"tp_other_device({certain.name_in_c}, {a.name_in_c})" for a in tensors if certain and a is not certain]
    if certain is None or lists:
        differ = ["true"]  # the slow path looks at each
    singles = ", ".join(f"{{{c_string(a.name)}, {a.name_in_c}, {{NULL, 0}}}}" for a in tensors)
    several = ", ".join(f"{{{c_string(a.name)}, NULL, {a.name_in_c}}}" for a in lists)
    given = ", ".join(part for part in (singles, several) if part)
    return (
        f"    if ({' || '.join(differ)}) {{\n"
        f"        const tp_device_argument given[] = {{{given}}};\n"
        f"        if (tp_check_devices({c_string(str(function.name))}, given, TP_COUNTOF(given)) < 0) "
        f"return {failed or c_result(function.func).failed};\n    }}\n"
    )
