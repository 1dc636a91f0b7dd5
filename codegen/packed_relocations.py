"""Pointers of tables as bits, in a module for loaders that know no such relocations: glibc before 2.36.

The linker notes where the pointers are in the section .relr.dyn, a bit each instead of 24 bytes of .rela.dyn: 0.03 MB
of the module, not 2.9. The loader is not told, whatever its version: the tags of that section get numbers of tensorpy's
own (`hide`), which a loader passes over, and a function of the module (RELOCATE), which runs before its constructors,
adds the address of the module to each pointer. So there is one way, and every test of a wheel goes it.
"""

from __future__ import annotations

import shlex
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

LINK = "-Wl,-z,pack-relative-relocs"

OWN = 0x60545000  # added to a tag of the table for the loader: in the range that is a system's own

# The function uses no pointer that it has yet to mend: what it names is found from where it is itself.
RELOCATE = """\
#include <link.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define HIDDEN __attribute__((visibility("hidden")))
extern const ElfW(Ehdr) __ehdr_start HIDDEN;
HIDDEN void tp_relocate(void);

static const ElfW(Phdr) *segment(uintptr_t base, unsigned type) {
    const ElfW(Phdr) *found = (const ElfW(Phdr) *)(base + __ehdr_start.e_phoff);
    for (int i = 0; i < __ehdr_start.e_phnum; i++, found++)
        if (found->p_type == type)
            return found;
    return 0;
}

// The part that the loader has made read-only by now.
static void protect(uintptr_t base, int protection) {
    const ElfW(Phdr) *part = segment(base, PT_GNU_RELRO);
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = part ? (base + part->p_vaddr) & -page : 0;
    uintptr_t end = part ? (base + part->p_vaddr + part->p_memsz) & -page : 0;
    if (begin < end && mprotect((void *)begin, end - begin, protection) != 0)
        __builtin_trap();
}

// An even word is the place of a pointer; an odd one has a bit for each of the 63 words behind the last one named.
void tp_relocate(void) {
    uintptr_t base = (uintptr_t)&__ehdr_start, words = 0, count = 0, *next = 0;
    for (const ElfW(Dyn) *tag = (const ElfW(Dyn) *)(base + segment(base, PT_DYNAMIC)->p_vaddr); tag->d_tag; tag++) {
        if (tag->d_tag == TENSORPY_RELR)
            words = base + tag->d_un.d_ptr;
        if (tag->d_tag == TENSORPY_RELRSZ)
            count = tag->d_un.d_val / sizeof(uintptr_t);
    }
    protect(base, PROT_READ | PROT_WRITE);
    for (const uintptr_t *word = (const uintptr_t *)words; count; word++, count--) {
        if ((*word & 1) == 0) {
            next = (uintptr_t *)(base + *word);
            *next++ += base;
            continue;
        }
        uintptr_t *at = next;
        for (uintptr_t bits = *word >> 1; bits != 0; bits >>= 1, at++)
            if (bits & 1)
                *at += base;
        next += 63;
    }
    protect(base, PROT_READ);
}
"""

PT_LOAD, PT_DYNAMIC, PT_TLS = 1, 2, 7
DT_NULL, DT_STRTAB, DT_RELRSZ, DT_RELR, DT_RELRENT, DT_VERNEED, DT_VERNEEDNUM = 0, 5, 35, 36, 37, 0x6FFFFFFE, 0x6FFFFFFF
VERSION = b"GLIBC_ABI_DT_RELR"


def write(folder: Path, compiler: str) -> list[str]:
    """What relocates, into a folder; the flags that link it. What is as it should be stays."""
    folder.mkdir(parents=True, exist_ok=True)
    source, made = folder / "relocate.c", folder / "relocate.o"
    if not made.exists() or source.read_text() != RELOCATE:
        source.write_text(RELOCATE)
        tags = [f"-DTENSORPY_RELR={OWN + DT_RELR}", f"-DTENSORPY_RELRSZ={OWN + DT_RELRSZ}"]
        flags = ["-O2", "-fPIC", "-fno-stack-protector", *tags, "-c"]
        subprocess.run([*shlex.split(compiler), *flags, str(source), "-o", str(made)], check=True)
    return [LINK, "-Wl,-init=tp_relocate", str(made)]


def _places(words: tuple[int, ...]) -> Iterator[int]:
    """The addresses that the words of .relr.dyn name."""
    at = 0
    for word in words:
        if word & 1:
            yield from (at + 8 * i for i in range(63) if word >> (i + 1) & 1)
            at += 8 * 63
        else:
            yield word
            at = word + 8


class Module:
    """A linked 64-bit little-endian module, to be changed in place."""

    def __init__(self, path: Path) -> None:
        self.data = bytearray(path.read_bytes())
        offset, each, count = *self.read("Q", 32), *self.read("HH", 54)
        self.segments = [self.read("IIQQQQQQ", offset + each * i) for i in range(count)]
        (self.dynamic,) = (s[2] for s in self.segments if s[0] == PT_DYNAMIC)
        self.tags: list[tuple[int, int]] = []
        while not self.tags or self.tags[-1][0] != DT_NULL:
            tag, value = self.read("QQ", self.dynamic + 16 * len(self.tags))
            self.tags.append((tag, value))

    def read(self, form: str, at: int) -> tuple[int, ...]:
        return struct.unpack_from("<" + form, self.data, at)

    def write(self, form: str, at: int, *values: int) -> None:
        struct.pack_into("<" + form, self.data, at, *values)

    def offset(self, address: int) -> int:
        return next(s[2] + address - s[3] for s in self.segments if s[0] == PT_LOAD and 0 <= address - s[3] < s[5])

    def tag(self, wanted: int) -> int:
        return next(value for tag, value in self.tags if tag == wanted)

    def forget_version(self) -> None:
        """Takes the version that says "this loader knows .relr.dyn" out of the list of what is needed of glibc."""
        need, names = self.offset(self.tag(DT_VERNEED)), self.offset(self.tag(DT_STRTAB))
        for _ in range(self.tag(DT_VERNEEDNUM)):
            _, count, _, first, following = self.read("HHIII", need)
            link, at = need + 8, need + first  # where the distance to this entry is written
            for _ in range(count):
                *_, name, distance = self.read("IHHII", at)
                if self.data[names + name :].startswith(VERSION + b"\0"):
                    (before,) = self.read("I", link)
                    self.write("I", link, before + distance if distance else 0)
                    self.write("H", need + 2, count - 1)
                    return
                link, at = at + 12, at + distance
            need += following


def hide(path: Path) -> None:
    """The loader is no longer told of .relr.dyn; the module is, by tags of its own."""
    module = Module(path)
    size, address = module.tag(DT_RELRSZ), module.tag(DT_RELR)
    tls = [(s[3], s[3] + s[5]) for s in module.segments if s[0] == PT_TLS]
    words = module.read(f"{size // 8}Q", module.offset(address))
    if found := [place for place in _places(words) if any(begin <= place < end for begin, end in tls)]:
        sys.exit(f"{path}: the loader copies variables of threads before {len(found)} pointers in them are mended")
    for number, (tag, value) in enumerate(module.tags):
        if tag in (DT_RELR, DT_RELRSZ, DT_RELRENT):
            module.write("QQ", module.dynamic + 16 * number, OWN + tag, value)
    module.forget_version()
    path.write_bytes(module.data)


if __name__ == "__main__":
    hide(Path(sys.argv[1]))
