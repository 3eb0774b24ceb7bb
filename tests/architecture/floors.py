#!/usr/bin/env python3
"""Who may include whom: a room uses only rooms below it, and only src/os knows the system. And no two
source files of one library share a base name, because profilers and debuggers show only that.

    floors.py [ROOT]      checks a tree; one line for each fault, exit 1 if there is any
    floors.py --self-test builds trees that break each rule and expects to be told

Includes are read from the text, so what one platform's #if hides is checked on every other.
"""

import os
import re
import sys
import tempfile

# Lowest first. A floor that src/ gains is named here and in docs/architecture.md.
# The folders of the operators, src/op/NAME, are a floor of their own above dispatch.
OPERATORS = "op/NAME"
FLOORS = ["base", "os", "registry", "settings", "device", "op", "dispatch", "check", "policy", OPERATORS, "compat",
          "compose", "print", "tables"]

# C11's headers. <threads.h> is left out: not every C library has it, and src/os/thread.h is ours.
STANDARD = {
    name + ".h"
    for name in """assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp
    signal stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath
    time uchar wchar wctype""".split()
}

# (file, include as written or "*", why). One that nothing needs any longer is itself a fault.
EXCEPTIONS = [
    ("src/base/alloc.c", "malloc.h", "Windows aligns blocks by _aligned_malloc only"),
    ("cli/probe.c", "*", "tenon-probe is the loader itself, in a process of its own"),
    ("cli/new_module/platform/platform_module.c", "*", "a file that new-module writes: a module"),
    ("cli/new_module/kernel/kernel_module.c", "*", "a file that new-module writes: a module"),
    ("cli/new_module/library/library_module.c", "*", "a file that new-module writes: a module"),
    ("cli/options.c", "base/words.h", "the command suggests names the way the library does"),
    ("cli/json.c", "base/utf8.h", "one definition of UTF-8"),
    ("cli/page_tables.c", "base/words.h", "one way to compare words"),
    ("cli/html.c", "base/utf8.h", "one definition of UTF-8"),
    ("cli/einsum_tree.c", "base/utf8.h", "one definition of UTF-8"),
    ("cli/text.h", "print/line.h", "the command prints as the library does"),
    ("cli/candidates.h", "print/candidate_words.h", "the command prints as the library does"),
    ("cli/conformance/host.c", "pthread.h", "the suite runs threads and processes of its own"),
    ("cli/conformance/host.c", "sys/wait.h", "the suite runs threads and processes of its own"),
    ("cli/conformance/host.c", "sys/mman.h", "the suite runs threads and processes of its own"),
    ("cli/conformance/host.c", "sys/prctl.h", "the suite runs threads and processes of its own"),
    ("cli/conformance/host.c", "sys/resource.h", "the suite runs threads and processes of its own"),
    ("cli/conformance/host.c", "unistd.h", "the suite runs threads and processes of its own"),
    ("cli/conformance/result.c", "base/utf8.h", "one definition of UTF-8"),
    ("cli/system.c", "sys/stat.h", "a page is written whole or not at all; the library lends no files"),
    ("cli/system.c", "io.h", "the same on Windows"),
    ("cli/system.c", "sys/ioctl.h", "how wide the terminal is"),
    ("cli/system.c", "unistd.h", "whether people read what is printed"),
]

BUILT_IN = ("cpu", "ref")  # folders of backends/ that are part of libtenon
INTRINSICS = ("immintrin.h", "arm_neon.h")
SOURCES = (".c", ".h", ".inc", ".cu", ".cuh")
PLACES = ("src", "include", "backends", "cli", "bindings")
TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.S)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>|(\S+))', re.M)
ISA_LIST = re.compile(r"\bISA\b[^)]*\bplain\b")
MENTION = re.compile(r"\bsrc/([a-z0-9_]+)(?![\w.])")


def blank_comment(token):
    text = token.group(0)
    return re.sub(r"[^\n]", " ", text) if text.startswith("/") else text


def includes(path):
    """Yields (line, name, quoted); the name is None where a macro stands in its place."""
    with open(path, encoding="utf-8") as file:
        text = TOKEN.sub(blank_comment, file.read())
    for match in INCLUDE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield line, match.group(1) or match.group(2), match.group(1) is not None


def files(root):
    for place in PLACES:
        for folder, folders, names in os.walk(os.path.join(root, place)):
            folders.sort()
            for name in sorted(names):
                if name.endswith(SOURCES):
                    yield os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/")


def resolve(root, source, name, quoted):
    """The file of this tree that `name` means, or None for one of the system's."""
    own = os.path.normpath(os.path.join(os.path.dirname(source), name)).replace(os.sep, "/")
    seats = ([own] if quoted else []) + ["src/" + name, "include/" + name]
    for seat in seats:
        if os.path.isfile(os.path.join(root, seat)):
            return seat
    if name.startswith("tenon/"):
        return "include/" + name
    if name.split("/")[0] in FLOORS:
        return "src/" + name
    return own if quoted else None


def room(path):
    """("src", floor), ("backends", name), or the place alone with None."""
    parts = path.split("/")
    if path.startswith("include/tenon/module/"):
        return "module", None
    if path.startswith("src/op/") and len(parts) > 3:
        return "src", OPERATORS
    if parts[0] in ("src", "backends") and len(parts) > 2:
        return parts[0], parts[1]
    return parts[0], None


def fault_of_system(source, name):
    """Why `source` may not include the system's header `name`, or None."""
    place, part = room(source)
    if "/isa/" in source and name in INTRINSICS:  # the processor's instructions, not the system's
        return None
    if name in STANDARD or place in ("backends", "bindings") or (place, part) == ("src", "os"):
        return None
    return "<%s> is no header of C11, and only src/os knows the system" % name


def fault_of_tree(source, target):
    """Why `source` may not include `target`, a file of this tree, or None."""
    (place, part), (to, floor) = room(source), room(target)
    if place == "src":
        if to in ("include", "module"):
            return None
        if to != "src":
            return "src/ includes nothing of %s/" % to
        if floor in FLOORS and part in FLOORS and FLOORS.index(floor) > FLOORS.index(part):
            return "src/%s lies below src/%s" % (part, floor)
        return None
    if place == "module":
        return None if to == "module" else "include/tenon/module/ stands alone"
    if place == "include":
        return None if to in ("include", "module") else "public headers include public headers only"
    if place == "backends":
        if to == "module" or (to, floor) == (place, part):
            return None
        return "a module includes tenon/module/*.h, its own folder and the system's headers only"
    if to == "include" or to == place:
        return None
    return "%s/ includes the application's headers, tenon/*.h, only" % place


def check_includes(root, exceptions):
    faults, used = [], set()
    for source in files(root):
        for line, name, quoted in includes(os.path.join(root, source)):
            if name is None:
                fault = "the name of an included file is written out, not a macro"
            else:
                target = resolve(root, source, name, quoted)
                fault = fault_of_tree(source, target) if target else fault_of_system(source, name)
            if not fault:
                continue
            excused = [e for e in exceptions if e[0] == source and e[1] in (name, "*")]
            used.update(excused)
            if not excused:
                faults.append("%s:%d: includes %s: %s" % (source, line, name or "a macro", fault))
    for path, name, _ in [e for e in exceptions if e not in used]:
        faults.append("%s: the exception for %s is no longer needed" % (path, name))
    return faults


def check_folders(root):
    """src/ against FLOORS, and against what docs/architecture.md draws."""
    folders = {room(path)[1] for path in files(root) if path.startswith("src/")} - {None, OPERATORS}
    faults = ["src/%s: no floor of that name in %s" % (f, os.path.basename(__file__))
              for f in sorted(folders - set(FLOORS))]
    page = "docs/architecture.md"
    try:
        with open(os.path.join(root, page), encoding="utf-8") as file:
            named = set(MENTION.findall(file.read()))
    except FileNotFoundError:
        return faults, "%s is not written yet: not compared with src/" % page
    faults += ["%s: does not name src/%s" % (page, f) for f in sorted(folders - named)]
    faults += ["%s: names src/%s, which is not there" % (page, f) for f in sorted(named - folders)]
    return faults, None


def library(path):
    """The library or program that a source file is compiled into."""
    place, part = room(path)
    return "libtenon" if place == "src" or part in BUILT_IN else (place, part if place == "backends" else None)


def check_base_names(root):
    faults, seen = [], {}
    for path in files(root):
        first = seen.setdefault((library(path), os.path.basename(path)), path)
        if path.endswith((".c", ".cu")) and first != path:
            faults.append("%s: has the base name of %s, of the same library" % (path, first))
    return faults


def check_isa_lists(root):
    """On aarch64 no set of instructions is called plain, and a list that names it cannot be configured there."""
    faults = []
    for folder, _, names in os.walk(os.path.join(root, "backends")):
        for path in [os.path.join(folder, name) for name in names if name == "CMakeLists.txt"]:
            with open(path, encoding="utf-8") as file:
                text = file.read()
            faults += ["%s:%d: names plain; expected ${tenon_isa_base}"
                       % (os.path.relpath(path, root).replace(os.sep, "/"), text.count("\n", 0, match.end()) + 1)
                       for match in ISA_LIST.finditer(text)]
    return faults


def check(root, exceptions):
    faults, note = check_folders(root)
    return check_includes(root, exceptions) + check_base_names(root) + check_isa_lists(root) + faults, note


# File of the violating tree, its text, and the complaint it must draw; None: none.
BROKEN = [
    ("src/base/alloc.c", "#include <malloc.h>\n#include <string.h>\n", None),
    ("src/base/up.c", '#include "os/sys.h"\n', ":1: includes os/sys.h: src/base lies below src/os"),
    ("src/base/sideways.c", '\n#include "../registry/rows.h"\n', ":2: includes ../registry/rows.h"),
    ("src/base/system.c", "#include <unistd.h>\n", "only src/os knows the system"),
    ("src/base/hidden.c", "#if 0\n# include <windows.h>\n#endif\n", ":2: includes windows.h"),
    ("src/base/macro.c", "#include HEADER\n", "written out, not a macro"),
    ("src/base/comment.c", '/*\n#include "os/sys.h"\n*/\n// #include <dlfcn.h>\n', None),
    ("src/base/string.c", 'char *s = "/*";\n#include <sys/stat.h>\n', ":2: includes sys/stat.h"),
    ("src/os/sys.h", '#include <fcntl.h>\n#include "base/up.h"\n#include "own.h"\n', None),
    ("src/registry/rows.h", '#include "os/sys.h"\n#include "tenon/base.h"\n', None),
    ("src/op/op.h", '#include "registry/rows.h"\n', None),
    ("src/op/low.c", '#include "dispatch/call.h"\n', "src/op lies below src/dispatch"),
    ("src/op/sum/sum.c", '#include "dispatch/call.h"\n#include "op/op.h"\n', None),
    ("src/dispatch/call.h", '#include "op/op.h"\n', None),
    ("src/dispatch/named.c", '#include "op/sum/sum.h"\n', "src/dispatch lies below src/op/NAME"),
    ("src/registry/vendor.c", '#include "../../backends/ref/row.h"\n', "nothing of backends/"),
    ("src/base/text.c", "", None),
    ("src/op/text.c", "", ": has the base name of src/base/text.c"),
    ("backends/ref/text.c", "", ": has the base name of src/base/text.c"),
    ("backends/cuda/text.c", "", None),
    ("cli/text.c", "", None),
    ("src/attic/x.c", "", ": no floor of that name"),
    ("include/tenon/base.h", '#include "module/abi.h"\n#include <stdint.h>\n', None),
    ("include/tenon/inside.h", '#include "base/up.h"\n', "public headers include public headers"),
    ("include/tenon/system.h", "#include <pthread.h>\n", "only src/os knows the system"),
    ("include/tenon/module/abi.h", '#include <stddef.h>\n#include "row.h"\n', None),
    ("include/tenon/module/row.h", '#include "../base.h"\n', "stands alone"),
    ("backends/ref/row.h", '#include "tenon/module/abi.h"\n#include <unistd.h>\n', None),
    ("backends/ref/own.c", '#include "deep/own.h"\n', None),
    ("backends/ref/app.c", "#include <tenon/base.h>\n", "a module includes tenon/module/*.h"),
    ("backends/other/far.c", '#include "../ref/row.h"\n', "a module includes tenon/module/*.h"),
    ("backends/ref/CMakeLists.txt", "x(A ISA avx2 ${tenon_isa_base})\n", None),
    ("backends/cpu/CMakeLists.txt", "x(A ISA avx2\n  plain)\n", ":2: names plain"),
    ("cli/main.c", '#include "args.h"\n#include "tenon/base.h"\n', None),
    ("cli/all.c", '#include "base/up.h"\n#include "os/sys.h"\n', None),
    ("cli/inside.c", '#include "base/alloc.h"\n', "cli/ includes the application's headers"),
    ("cli/module.c", '#include "tenon/module/abi.h"\n', "cli/ includes the application's headers"),
    ("docs/architecture.md", "src/base/ `src/os` src/base/up.c src/registry src/op src/dispatch src/roof src/attic",
     ": names src/roof, which is not there"),
]
EXCUSED = [("src/base/alloc.c", "malloc.h", ""), ("cli/all.c", "*", "")]


def complaints(tree):
    with tempfile.TemporaryDirectory() as root:
        for path, text in tree:
            path = os.path.join(root, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return check(root, EXCUSED)


def self_test():
    """Every broken rule is told of once and nothing else is; the innocent half draws no word."""
    broken = [(path.replace("/x.c", ""), words) for path, _, words in BROKEN if words]
    clean = [(path, text) for path, text, words in BROKEN if not words]
    page = "docs/architecture.md"
    found, _ = complaints([(path, text) for path, text, _ in BROKEN])
    missed = [(path, words) for path, words in broken
              if sum(fault.startswith(path) and words in fault for fault in found) != 1]
    innocent, no_note = complaints(clean + [(page, "src/base src/os src/registry src/op src/dispatch")])
    unnamed, _ = complaints(clean + [(page, "src/base src/os src/op src/dispatch")])
    stale, note = complaints([("src/base/alloc.c", ""), ("cli/all.c", '#include "os/sys.h"\n')])
    ok = (not missed and len(found) == len(broken) and not innocent and not no_note and note
          and unnamed == [page + ": does not name src/registry"]
          and stale == ["src/base/alloc.c: the exception for malloc.h is no longer needed"])
    if not ok:
        print("missed: %r\nfound: %r\nfound in a clean tree: %r\nwith a page too short: %r\n"
              "with a stale exception: %r" % (missed, found, innocent, unnamed, stale))
    print("floors: self-test %s, %d rules broken on purpose"
          % ("ok" if ok else "FAILED", len(broken) + 2))
    return 0 if ok else 1


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) > 1 or (arguments and arguments[0].startswith("-")):
        print(__doc__, file=sys.stderr)
        return 2
    here = os.path.dirname(os.path.abspath(__file__))
    root = arguments[0] if arguments else os.path.join(here, "..", "..")
    faults, note = check(root, EXCEPTIONS)
    if note:
        print("floors: " + note)
    for fault in faults:
        print(fault)
    print("floors: %d files, %d faults" % (sum(1 for _ in files(root)), len(faults)))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
