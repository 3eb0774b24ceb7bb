#!/usr/bin/env python3
"""Records the binary interface as the headers have it now:

    python3 tests/abi/record.py [COMPILER]

writes tests/abi/recorded.def, which nobody edits: the size of every struct, offset and size of its fields, the value of
every constant, the type of every function. abi.layout then fails when one of them changes. A new operator needs no
record; what was added since the last one is checked once it is recorded. Run it

- when the version in version.h or the module ABI's rises (abi.layout fails until then),
- after a change of the interface that is on purpose and has its line in docs/abi-changes.md.

Needs a compiler for a machine with 64-bit longs and pointers.
"""

import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
INCLUDE = os.path.join(ROOT, "include")
sys.path.append(os.path.join(ROOT, "bindings", "python", "tenon"))
import _headers

RECORD = os.path.join(ROOT, "tests", "abi", "recorded.def")
NOT_RECORDED = {"TN_MODULE_BUILT_WITH"}  # depends on the sanitizers of the build
# What a macro that is a constant may consist of.
CONSTANT = r"(?:[\s()|<>+*~-]|\b(?:0x[0-9a-fA-F]+|\d+)[uUlL]*\b|\bTN_[A-Z0-9_]+\b|\bU?INT\d+_C\b)+"


def includes():
    names = [os.path.relpath(os.path.join(folder, name), INCLUDE)
             for folder, _, files in os.walk(INCLUDE) for name in files if name.endswith(".h")]
    return "".join(f'#include "{name}"\n' for name in sorted(names))


def run(*command, text=None):
    return subprocess.run(command, input=text, check=True, text=True, stdout=subprocess.PIPE).stdout


def constants(compiler):
    """Names of enumerators and of macros that are numbers."""
    read = [compiler, "-std=c11", "-I" + INCLUDE, "-xc", "-E"]
    bodies = re.findall(r"\benum(?: \w+)? ?\{([^}]*)\}", run(*read, "-P", "-", text=includes()))
    names = {one.partition("=")[0].strip() for body in bodies for one in body.split(",")}
    for line in run(*read, "-dM", "-", text=includes()).splitlines():
        macro = re.fullmatch(rf"#define (TN_[A-Z0-9_]+) ({CONSTANT})", line)
        if macro:
            names.add(macro.group(1))
    return sorted(name for name in names - NOT_RECORDED if name.startswith("TN_"))


def program(headers, names):
    """A C program that prints the record, without the functions."""
    lines = [includes(), "#include <stdio.h>\nint main(void)\n{"]
    for struct, fields in sorted(headers.structs.items()):
        lines.append(f'printf("STRUCT({struct}, %zu)\\n", sizeof({struct}));')
        lines += [f'printf("FIELD({struct}, {name}, %zu, %zu)\\n", offsetof({struct}, {name}), '
                  f'sizeof((({struct} *)0)->{name}));' for name, _ in fields]
    names = [*(f"sizeof({name})" for name in sorted(headers.types)), *names]
    lines += [f'printf("NUMBER({name}, %llu)\\n", (unsigned long long)({name}));' for name in names]
    return "\n".join([*lines, "return sizeof(void *) != 8 || sizeof(long) != 8;\n}\n"])


def measure(compiler, text):
    with tempfile.TemporaryDirectory() as folder:
        built = os.path.join(folder, "record")
        run(compiler, "-std=c11", "-I" + INCLUDE, "-xc", "-", "-o", built, text=text)
        return run(built)


def main():
    compiler = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("CC", "cc")
    headers = _headers.read(os.path.join(INCLUDE, "tenon"))
    text = "/* Written by tests/abi/record.py; see there. */\n"
    text += measure(compiler, program(headers, constants(compiler)))
    for name, (result, parameters) in sorted(headers.functions.items()):
        text += f"FUNCTION({result}, {name}, ({', '.join(parameters) or 'void'}))\n"
    with open(RECORD, "w", encoding="utf-8") as file:
        file.write(text)
    print(f"{os.path.relpath(RECORD)}: {text.count(chr(10)) - 1} lines")


if __name__ == "__main__":
    main()
