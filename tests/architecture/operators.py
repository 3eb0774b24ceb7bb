#!/usr/bin/env python3
"""How many files know an operator: adding one must stay cheap.

    operators.py [ROOT]      counts for every folder of src/op; exit 1 if a limit is exceeded
    operators.py --self-test builds a tree that exceeds the limit and expects the fault

Outside its own folders and those of vendors' libraries, at most LIMIT hand-written product files may
contain TN_OP_X or tn_x as a whole word. Each operator has a unit test, tests/unit/op_X.c or a part of an
ops_*.c, unit.stack calls it, and TN_OPERATOR_LIST has it.
"""

import os
import re
import sys
import tempfile

LIMIT = 5
PLACES = ("src", "include", "backends", "cli", "bindings")
SOURCES = (".c", ".h", ".cu", ".cuh", ".py", ".pyi", ".hpp", ".rs", ".zig")


def files(root):
    for place in PLACES:
        for folder, folders, names in os.walk(os.path.join(root, place)):
            folders[:] = [f for f in folders if not f.startswith((".", "__"))]
            for name in names:
                if name.endswith(SOURCES):
                    yield os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/")


def family(noun, nouns):
    """The operator and those that it is a part of or that are parts of it: attention_backward is a
    part of attention."""
    return [n for n in nouns if (n + "_").startswith(noun + "_") or (noun + "_").startswith(n + "_")]


def is_own(path, noun):
    """Whether the file belongs to the operator: its folder in src or of a platform, or its header."""
    parts = path.split("/")
    if parts[0] == "include":
        return parts[-1] == noun + ".h"
    if parts[0] == "src":
        return parts[1] in ("op", "dispatch") and noun in parts[2:-1]
    if parts[0] == "backends":
        return "lib" in parts or noun in parts[2:-1] or bool(
            re.match(r"%s(_|\.)" % noun, parts[-1]))
    return False


def count(root):
    """{operator: files that know it and are not its own}"""
    texts = {path: read(os.path.join(root, path)) for path in files(root)}
    found = {}
    op = os.path.join(root, "src", "op")
    nouns = sorted(f for f in os.listdir(op) if os.path.isdir(os.path.join(op, f)))
    for noun in nouns:
        word = re.compile(r"\b(TN_OP_%s|tn_%s)\b" % (noun.upper(), noun))
        found[noun] = sorted(p for p, text in texts.items()
                             if word.search(text)
                             and not any(is_own(p, n) for n in family(noun, nouns)))
    return found


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def missing(root, nouns):
    """[(operator, missing test)]. Calls in tests have the form tn_x(...) or MACRO(x, ...)."""
    unit = os.path.join(root, "tests", "unit")
    suites = {n: read(os.path.join(unit, n)) for n in sorted(os.listdir(unit))
              if re.match(r"ops?_\w+\.c$", n)}
    stack = read(os.path.join(unit, "stack_calls.def")) + "".join(
        line for text in suites.values() for line in text.splitlines() if "unit.stack: OPERATOR" in line)
    listed = read(os.path.join(root, "include", "tenon", "tenon.h"))
    for noun in nouns:
        call = re.compile(r"\btn_%s\b|\(%s," % (noun, noun))
        if not any(call.search(text) for text in suites.values()):
            yield noun, "a unit test: add tests/unit/op_%s.c" % noun
        if not re.search(r"\bX\(%s\)" % noun, listed):
            yield noun, "a line of TN_OPERATOR_LIST: add X(%s) to include/tenon/tenon.h" % noun
        if not re.search(r"OPERATOR\(%s,|\btn_%s\(" % (noun, noun), stack):
            yield noun, 'a call in unit.stack: add "unit.stack: OPERATOR(%s, ...)" to its unit test' % noun


def report(root):
    found = count(root)
    faults = 0
    for noun, what in missing(root, found):
        faults += 1
        print("%s: expected %s" % (noun, what))
    for noun, paths in found.items():
        if len(paths) > LIMIT:
            faults += 1
            print("%s: %d files know it, at most %d may:" % (noun, len(paths), LIMIT))
            print("".join("    %s\n" % path for path in paths), end="")
    print("operators: %d, at most %d files outside an operator's folders, %d faults"
          % (len(found), max(map(len, found.values())), faults))
    return faults


def self_test():
    with tempfile.TemporaryDirectory() as root:
        for path in (["src/op/sum/sum.c", "backends/cpu/sum/x.c", "backends/gpu/lib/v/y.c",
                      "backends/ref/sum_ref.c", "include/tenon/sum.h"]
                     + ["src/dispatch/f%d.c" % i for i in range(LIMIT)]):
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            write(os.path.join(root, path), "tn_sum(TN_OP_SUM)")
        test = os.path.join(root, "tests", "unit", "op_sum.c")
        os.makedirs(os.path.dirname(test))
        write(os.path.join(root, "tests", "unit", "stack_calls.def"), "")
        write(os.path.join(root, "include", "tenon", "tenon.h"), "")
        is_missing = report(root)
        write(os.path.join(root, "include", "tenon", "tenon.h"), "X(sum)")
        write(test, "tn_sum(NULL);")
        has_no_stack = report(root)
        write(test, "/* unit.stack: OPERATOR(sum, .in = &in) */ tn_sum(NULL);")
        fits = report(root)
        os.makedirs(os.path.join(root, "cli"))
        write(os.path.join(root, "cli", "sum_too.c"), "x = TN_OP_SUM;")
        exceeds = report(root)
    ok = (is_missing, has_no_stack, fits, exceeds) == (3, 1, 0, 1)
    print("operators: self-test %s" % ("ok" if ok else "FAILED"))
    return 0 if ok else 1


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    here = os.path.dirname(os.path.abspath(__file__))
    return 1 if report(arguments[0] if arguments else os.path.join(here, "..", "..")) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
