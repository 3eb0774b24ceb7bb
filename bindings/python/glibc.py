"""Which glibc a file needs, and linking against an older one than the machine has.

A wheel runs where glibc has the versions of all symbols that its files need. `needed_version` reads these versions from
an ELF file, as auditwheel does; build_backend.py makes the wheel's tag of them.

A linker binds each symbol to its newest version, so that a file linked on Debian 12 (glibc 2.36) needs 2.34 for
pthread_create, though the same function has existed since 2.2.5. `write_stubs` writes libraries without code, which have
the symbols of this machine's glibc with the newest version that is not newer than the one asked for. What is linked
against them binds to these older versions, which every later glibc has too:

    python3 glibc.py FOLDER 2.28 [COMPILER]

CMake runs this for -DTENON_GLIBC=2.28 (cmake/TenonGlibc.cmake).
"""

from __future__ import annotations

import os
import pathlib
import re
import struct
import subprocess
import sys
from typing import Iterator, NamedTuple, Optional, Tuple

Version = Tuple[int, ...]

MACHINES = {62: "x86_64", 183: "aarch64"}
LOADERS = {"x86_64": "ld-linux-x86-64.so.2", "aarch64": "ld-linux-aarch64.so.1"}
DYNAMIC, DYNSYM, VERDEF, VERNEED, VERSYM = 6, 11, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF  # types of sections
OBJECT, FUNCTION, INDIRECT = 1, 2, 10  # types of symbols
NEEDED = 1  # a library, in the dynamic section
ABSOLUTE = 0xFFF1  # the section of symbols that stand for versions
RELR = (2, 36)  # the version with packed relative relocations, which files ask for by a name of its own

# Libraries of glibc and gcc, which every system of a manylinux tag has.
SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libgcc_s.so.1", *LOADERS.values()}


class Symbol(NamedTuple):
    """A symbol that a library defines, with the name of its version."""

    name: str
    version: str
    type: int
    address: int
    size: int


class Elf:
    """The dynamic part of a 64-bit little-endian ELF file. Raises ValueError for other files."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.data = pathlib.Path(path).read_bytes()
        if self.data[:6] != b"\x7fELF\x02\x01":
            raise ValueError(f"expected a 64-bit little-endian ELF file, got {path}")
        machine, = struct.unpack_from("<H", self.data, 18)
        start, = struct.unpack_from("<Q", self.data, 40)
        size, count = struct.unpack_from("<HH", self.data, 58)
        self.machine = MACHINES.get(machine, str(machine))
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", self.data, start + i * size) for i in range(count)]

    def _section(self, kind: int) -> Optional[tuple[int, ...]]:
        return next((one for one in self.sections if one[1] == kind), None)

    def _text(self, section: tuple[int, ...], offset: int) -> str:
        """A name in the section that the given one links to."""
        start = self.sections[section[6]][4] + offset
        return self.data[start:self.data.index(b"\0", start)].decode()

    def libraries(self) -> list[str]:
        """The libraries that it needs."""
        section = self._section(DYNAMIC)
        if section is None:
            return []
        entries = struct.iter_unpack("<qQ", self.data[section[4]:section[4] + section[5]])
        return [self._text(section, value) for tag, value in entries if tag == NEEDED]

    def _needs(self) -> Iterator[tuple[int, str]]:
        """Number and name of each version that it needs, of all libraries."""
        section = self._section(VERNEED)
        at = section[4] if section else 0
        for _ in range(section[7] if section else 0):
            _, count, _, first, following = struct.unpack_from("<HHIII", self.data, at)
            entry = at + first
            for _ in range(count):
                _, _, number, name, next_entry = struct.unpack_from("<IHHII", self.data, entry)
                yield number, self._text(section or (), name)
                entry += next_entry
            at += following

    def needed_versions(self) -> list[str]:
        """The names of the versions that it needs."""
        return [name for _, name in self._needs()]

    def _defined_versions(self) -> dict[int, str]:
        """The names of the versions that it defines, by number."""
        section, names = self._section(VERDEF), {}
        at = section[4] if section else 0
        for _ in range(section[7] if section else 0):
            _, _, number, _, _, first, following = struct.unpack_from("<HHHHIII", self.data, at)
            name, _ = struct.unpack_from("<II", self.data, at + first)
            names[number] = self._text(section or (), name)
            at += following
        return names

    def _table(self) -> Iterator[tuple[str, int, int, int, int, int]]:
        """Name, version's number, type, section, address and size of each dynamic symbol."""
        table, versions = self._section(DYNSYM), self._section(VERSYM)
        for i in range(table[5] // 24 if table and versions else 0):
            name, info, _, place, address, size = struct.unpack_from("<IBBHQQ", self.data, table[4] + 24 * i)
            number, = struct.unpack_from("<H", self.data, versions[4] + 2 * i)
            yield self._text(table, name), number & 0x7FFF, info & 15, place, address, size

    def symbols(self) -> Iterator[Symbol]:
        """Those that it defines, once for each version."""
        names = self._defined_versions()
        for name, number, kind, place, address, size in self._table():
            if place not in (0, ABSOLUTE) and number in names:
                yield Symbol(name, names[number], kind, address, size)

    def needed_symbols(self, versions: set[str]) -> list[str]:
        """The names of the symbols that it needs with one of these versions."""
        numbers = {number for number, name in self._needs() if name in versions}
        return sorted(name for name, number, _, place, _, _ in self._table() if not place and number in numbers)


def parse(name: str) -> Optional[Version]:
    """The numbers of "GLIBC_2.28"; None for the name of no version of glibc's."""
    if name == "GLIBC_ABI_DT_RELR":
        return RELR
    found = re.fullmatch(r"GLIBC_(\d+(?:\.\d+)+)", name)
    return tuple(map(int, found.group(1).split("."))) if found else None


def needed_version(elf: Elf) -> Version:
    """The oldest glibc that has all versions that the file needs, as two numbers; (0, 0) if it needs none."""
    found = [version for version in map(parse, elf.needed_versions()) if version]
    return max(found, default=(0, 0))[:2]


def other_libraries(elf: Elf) -> list[str]:
    """The libraries that it needs and that a system need not have."""
    return [name for name in elf.libraries() if name not in SYSTEM]


def choose_versions(symbols: Iterator[Symbol], newest: Version) -> dict[str, Symbol]:
    """Of each name the newest symbol that is not newer; if all are newer, the oldest. Thread-local ones and those that
    are private to glibc are left out."""
    chosen: dict[str, Symbol] = {}

    def rank(version: Version) -> tuple[bool, Version]:
        older = version[:2] <= newest
        return older, version if older else tuple(-number for number in version)

    for symbol in symbols:
        version = parse(symbol.version)
        if version is None or symbol.type not in (OBJECT, FUNCTION, INDIRECT):
            continue
        before = chosen.get(symbol.name)
        if before is None or rank(version) > rank(parse(before.version) or ()):
            chosen[symbol.name] = symbol
    return chosen


def write_assembly(symbols: dict[str, Symbol]) -> str:
    """Labels without code. Objects have their size, and several names of one object stay at one place, as a program may
    have a copy of it."""
    lines = [".text"]
    for symbol in symbols.values():
        if symbol.type != OBJECT:
            lines += [f".globl {symbol.name}", f".type {symbol.name}, %function", f"{symbol.name}:", ".zero 4"]
    lines.append(".data")
    by_address: dict[int, list[Symbol]] = {}
    for symbol in symbols.values():
        if symbol.type == OBJECT:
            by_address.setdefault(symbol.address, []).append(symbol)
    for same in by_address.values():
        lines.append(".balign 16")
        for symbol in same:
            lines += [f".globl {symbol.name}", f".type {symbol.name}, %object", f".size {symbol.name}, {symbol.size}",
                      f"{symbol.name}:"]
        lines.append(f".zero {max(max(symbol.size for symbol in same), 1)}")
    return "\n".join([*lines, '.section .note.GNU-stack,"",%progbits', ""])


def write_versions(symbols: dict[str, Symbol]) -> str:
    """The linker's version script."""
    nodes: dict[str, list[str]] = {}
    for symbol in symbols.values():
        nodes.setdefault(symbol.version, []).append(symbol.name)
    return "".join(f"{version} {{ global: {'; '.join(names)}; }};\n" for version, names in sorted(nodes.items()))


# Functions that this machine's headers make objects call and that an older glibc lacks. Each linked file gets hidden copies
# of them, which call functions that the older glibc has.
OWN = "#define OWN __attribute__((visibility(\"hidden\")))\n"

# libc.so.6 exports these since glibc 2.33; before, <sys/stat.h> defined them by __xstat and the like.
STAT = """
#include <sys/stat.h>
int __xstat(int version, const char *path, struct stat *out);
int __lxstat(int version, const char *path, struct stat *out);
int __fxstat(int version, int file, struct stat *out);
int __fxstatat(int version, int folder, const char *path, struct stat *out, int flags);
#if defined(__x86_64__)
enum { VERSION = 1 };
#else
enum { VERSION = 0 };
#endif
OWN int stat(const char *path, struct stat *out) { return __xstat(VERSION, path, out); }
OWN int lstat(const char *path, struct stat *out) { return __lxstat(VERSION, path, out); }
OWN int fstat(int file, struct stat *out) { return __fxstat(VERSION, file, out); }
OWN int fstatat(int folder, const char *path, struct stat *out, int flags)
{
    return __fxstatat(VERSION, folder, path, out, flags);
}
"""
STAT_NAMES = ("stat", "lstat", "fstat", "fstatat")

# Since glibc 2.38, <stdlib.h> and <stdio.h> redirect these to __isoc23_..., which also read C23's binary numbers.
C23 = """
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#define NUMBER(type, name) \\
    OWN type __isoc23_##name(const char *text, char **end, int base) { return name(text, end, base); }
NUMBER(long, strtol)
NUMBER(unsigned long, strtoul)
NUMBER(long long, strtoll)
NUMBER(unsigned long long, strtoull)
NUMBER(intmax_t, strtoimax)
NUMBER(uintmax_t, strtoumax)
OWN int __isoc23_sscanf(const char *text, const char *format, ...)
{
    va_list rest;
    va_start(rest, format);
    int count = vsscanf(text, format, rest);
    va_end(rest);
    return count;
}
"""
C23_NAMES = tuple(f"__isoc23_{name}" for name in ("strtol", "strtoul", "strtoll", "strtoull", "strtoimax", "strtoumax",
                                                   "sscanf"))
# Each row: the first glibc that has the functions, the source of the copies, the functions' names.
LACKING = (((2, 33), STAT, STAT_NAMES), ((2, 38), C23, C23_NAMES))


def write_stubs(folder: str | os.PathLike[str], newest: Version, compiler: str = "cc") -> None:
    """Writes the libraries to link against, for `-L folder`. Needs a compiler for this or another Linux with glibc."""
    out = pathlib.Path(folder)
    out.mkdir(parents=True, exist_ok=True)

    def find(name: str) -> str:
        told = subprocess.run([compiler, f"-print-file-name={name}"], check=True, stdout=subprocess.PIPE, text=True)
        return told.stdout.strip()

    def link(soname: str, to: str, *options: str) -> None:
        subprocess.run([compiler, "-shared", "-nostdlib", f"-Wl,-soname,{soname}", *options, "-o", str(out / to)],
                       check=True)

    machine = Elf(find("libc.so.6")).machine
    lacking = [row for row in LACKING if newest < row[0]]
    copied = {name for _, _, names in lacking for name in names}
    for soname, to in (("libc.so.6", "libc.so.6"), ("libm.so.6", "libm.so")):
        symbols = choose_versions(Elf(find(soname)).symbols(), newest)
        symbols = {name: symbol for name, symbol in symbols.items() if name not in copied}
        (out / f"{soname}.s").write_text(write_assembly(symbols))
        (out / f"{soname}.map").write_text(write_versions(symbols))
        link(soname, to, str(out / f"{soname}.s"), f"-Wl,--version-script={out / f'{soname}.map'}")
    for name in ("libpthread.so.0", "libdl.so.2", "librt.so.1"):  # whose functions moved to libc.so.6 in 2.34
        link(name, name.partition(".so")[0] + ".so", "-x", "c", os.devnull)
    (out / "own.c").write_text(OWN + "".join(text for _, text, _ in lacking))
    # C11 without _GNU_SOURCE: else the headers would replace what the copies call, too.
    subprocess.run([compiler, "-std=c11", "-D_DEFAULT_SOURCE", "-O2", "-fPIC", "-c", str(out / "own.c"), "-o",
                    str(out / "own.o")], check=True)
    (out / "libc.so").write_text(f"GROUP ( {out / 'own.o'} {out / 'libc.so.6'} {find('libc_nonshared.a')} "
                                 f"AS_NEEDED ( {find(LOADERS[machine])} ) )\n")


if __name__ == "__main__":
    write_stubs(os.path.abspath(sys.argv[1]), tuple(map(int, sys.argv[2].split("."))), *sys.argv[3:4])
