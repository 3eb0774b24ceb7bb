"""Damaged modules: the library says what is wrong with a module, or uses it; it never crashes or hangs.

    python3 tests/attack/modules.py BUILD SEED

The module is the one that `tenon new-module` writes. Its code is left as it is: what runs in a process can do
anything there. Everything that is read before any of it runs is damaged.
"""

import json
import os
import random
import struct
import subprocess
import sys
import tempfile

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(FOLDER))
import script  # noqa: E402

ROUNDS = 30
SHF_EXECINSTR = 4


class Found(Exception):
    pass


def make_module(build, folder):
    """Builds a sound module; gives its path."""
    script.run(build.tenon, "new-module", "acme", "--platform", "--dir", folder)
    made = os.path.join(folder, "tenon-acme.so")
    flags = [f"-fsanitize={kind}" for kind in build.sanitizers]
    done = script.run(build.compiler, "-shared", "-fPIC", "-O1", *flags,
                      "-I", os.path.join(build.source, "include"),
                      os.path.join(folder, "tenon-acme", "tenon-acme.c"), "-o", made)
    if done.returncode:
        sys.exit(f"the module of new-module does not compile:\n{done.stderr}")
    return made


def code_ranges(data):
    """(start, end) of each section with instructions, in a 64-bit little-endian ELF file."""
    offset, = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    ranges = []
    for i in range(count):
        flags, = struct.unpack_from("<Q", data, offset + i * size + 8)
        start, length = struct.unpack_from("<QQ", data, offset + i * size + 24)
        if flags & SHF_EXECINSTR:
            ranges.append((start, start + length))
    return ranges


def damage(dice, whole):
    data = bytearray(whole)
    code = code_ranges(data)
    way = dice.randrange(5)
    if way == 0:
        return data[:dice.randrange(len(data))]
    if way == 1:
        return bytearray(dice.randbytes(dice.randrange(0, 2000)))
    if way == 2:
        return data + dice.randbytes(dice.randrange(1, 9000))
    reach = 64 if way == 3 else 4096 if dice.randrange(2) else len(data)
    for _ in range(dice.randrange(1, 9)):
        at = dice.randrange(reach)
        if not any(start <= at < end for start, end in code):
            data[at] ^= 1 << dice.randrange(8)
    return data


def look(build, env):
    done = subprocess.run([build.tenon, "modules", "--json"], env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=600)
    if done.returncode not in (0, 1, 3):
        raise Found(f"tenon modules: exit {done.returncode}: {done.stderr[-2000:]!r}")
    rows = [m for m in json.loads(done.stdout)["modules"] if "tenon-acme" in (m["path"] or "")]
    if not rows:
        raise Found("tenon modules does not list the module")
    if rows[0]["status"] != "ok" and not rows[0]["message"]:
        raise Found(f"tenon modules gives no reason: {rows[0]}")


def main():
    build = script.Build()
    build.read(sys.argv[1])
    dice = random.Random(int(sys.argv[2]))
    with tempfile.TemporaryDirectory(prefix="tenon-modules-") as folder:
        with open(make_module(build, folder), "rb") as file:
            whole = file.read()
        place = os.path.join(folder, "damaged")
        os.mkdir(place)
        env = script.environment(TENON_MODULE_PATH=place, TENON_CACHE=os.path.join(folder, "cache"))
        for turn in range(ROUNDS):
            with open(os.path.join(place, "tenon-acme.so"), "wb") as file:
                file.write(damage(dice, whole) if turn else whole)
            try:
                look(build, env)
            except (Found, subprocess.TimeoutExpired) as found:
                sys.exit(f"FOUND by modules {sys.argv[2]}, round {turn}: {found}")


if __name__ == "__main__":
    main()
