"""_C.help: the docstrings of the extension module's functions, in a file of their own beside it.

They are more than a megabyte, which nothing but help() reads, and much of it is said again and again: what a function
says its method says too. So the file is packed, to a quarter: csrc/python/help.c unpacks it at import, which takes 0.7
ms, and has the rows of the method tables point into the text.

The file begins with a line that holds a digest of the names, by which the module knows that it is its own, how many
docstrings there are, and the size of the text, in which a NUL ends each. Steps that make the text follow. A step says
how many characters it has itself, how many of the text before come next, and how far back these begin (BACK digits);
then come its own. All digits are printable characters, of base BASE. First come the docstrings of the generated
functions, in the order of their tables (emit_python.py), then those of yaml/by_hand.yaml, by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .catalog import Catalog
from .emit_python import documented, help_digest
from .help_text import docstring

NAME = "_C.help"
DIGITS = 8
ZERO, BASE, BACK = 0x20, 95, 3
MOST = BASE - 1  # characters of one kind that a step has
SEEN = 10  # characters that are looked for: a step costs five
WORD = re.compile(r"(?<!\w)(?=.)", re.DOTALL)


def _repeats(text: str) -> Iterator[tuple[int, int, int]]:
    """Where words begin that stood in the text before, where they did last, and how many characters are the same."""
    last: dict[str, int] = {}
    end = 0
    for word in WORD.finditer(text):
        at = word.start()
        if at < end:
            continue
        key = text[at : at + SEEN]
        before = last.get(key)
        last[key] = at
        if before is None or at - before >= BASE**BACK or at - before < SEEN or len(key) < SEEN:
            continue
        same, step = SEEN, 64
        while step:
            while text[at + same : at + same + step] == text[before + same : before + same + step] != "":
                same += step
            step //= 2
        same = min(same, at - before, len(text) - at)
        yield at, before, same
        end = at + same


def _step(own: str, count: int, back: int) -> str:
    digits = (len(own), count, *(back // BASE**power % BASE for power in reversed(range(BACK))))
    return "".join(chr(ZERO + digit) for digit in digits) + own


def packed(text: str) -> str:
    """Steps that make a text of ASCII characters."""
    steps = []
    end = 0
    for at, before, same in [*_repeats(text), (len(text), len(text), 0)]:
        own = text[end:at]
        while len(own) > MOST:
            steps.append(_step(own[:MOST], 0, 0))
            own = own[MOST:]
        steps.append(_step(own, min(same, MOST), at - before))
        steps += [_step("", min(same - done, MOST), at - before) for done in range(MOST, same, MOST)]
        end = at + same
    return "".join(steps)


def emit_help(catalog: Catalog) -> str:
    texts = [*map(docstring, documented(catalog)), *(entry.docstring for entry in catalog.by_hand)]
    text = "".join(f"{text}\0" for text in texts)
    return f"tensorpy help {help_digest(catalog)} {len(texts):{DIGITS}} {len(text):{DIGITS}}\n{packed(text)}"
