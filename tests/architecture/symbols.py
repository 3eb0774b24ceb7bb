#!/usr/bin/env python3
"""Which object file uses which: no cycles, and no use of a higher layer.

    symbols.py BUILD       checks the object files of a build folder; one line for each fault, exit 1 if
                           there is any, 77 if the objects do not show their files
    symbols.py --self-test builds a graph that breaks each rule and expects the faults

floors.py reads #include lines; two files can still call each other through declarations of one header.
This test asks `nm` which symbols each object file defines and uses. It fails for

  - a cycle: files that use each other's symbols, directly or through others;
  - a file that uses a symbol of a layer above its own (the order is that of floors.py), or of a module;
  - a function in src/tables, the layer of tables through which lower layers reach the rows of higher ones: its
    data may be used from everywhere, and counts neither as upward nor for cycles;
  - an exception below that is no longer needed.

The build folder must have tests/architecture/objects.txt, written by CMake: the library, a tab and an
object file on each line, and the command `nm` on the first.
"""

import fnmatch
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import floors

DATA = "src/tables"

# (file, symbol pattern, why): further tables of rows, as those of src/tables.
TABLES = [
    ("src/registry/builtin.c", "tni_*_module_entry", "the modules that are built in"),
]

# Layers that still have cycles. Remove a line as soon as the test says that it is no longer needed; add none.
CYCLES = []

UNITY = re.compile(r"/unity_\d+_c(xx)?\.")
SLIM_LTO = "__gnu_lto_slim"


def source_of(build, target):
    """The source file of an object: build/src/CMakeFiles/core.dir/__/backends/x.c.o is backends/x.c."""
    path = os.path.relpath(target, build).replace(os.sep, "/")
    folder, _, rest = path.partition("CMakeFiles/")
    rest = rest.partition(".dir/")[2].replace("__/", "../")
    return os.path.normpath(folder + re.sub(r"\.(o|obj)$", "", rest)).replace(os.sep, "/")


def layer(path):
    """The layer of a source file, or None for a generated file of no layer."""
    place, part = floors.room(path)
    return "%s/%s" % (place, part) if place in ("src", "backends") and part else None


def is_above(one, other):
    """Whether a file of layer `other` may not use layer `one`: it is above it, or another module."""
    names = ["src/" + floor for floor in floors.FLOORS]
    if one == other or one is None or other is None:
        return False
    if one in names and other in names:
        return names.index(one) > names.index(other)
    return True


def read_symbols(nm, objects):
    """{object: ({defined: kind}, {used})} of the external symbols."""
    found = {path: ({}, set()) for path in objects}
    for first in range(0, len(objects), 200):
        output = subprocess.run([nm, "-A", "-P", "-g"] + objects[first:first + 200], check=True,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                universal_newlines=True).stdout
        for line in output.splitlines():
            path, _, rest = line.partition(": ")
            name, kind = rest.split()[:2]
            if kind in "Uwv":
                found[path][1].add(name)
            else:
                found[path][0][name] = kind
    return found


def graph_of(symbols):
    """{file: {other file that it uses: symbols}} of {file: ({defined: kind}, {used})}."""
    where = {name: path for path, (defined, _) in symbols.items() for name in defined}
    graph = {path: {} for path in symbols}
    for path, (defined, used) in symbols.items():
        for name in used.difference(defined):
            if name in where:
                graph[path].setdefault(where[name], set()).add(name)
    return graph


def components(graph):
    """The strongly connected components of more than one file (Tarjan's algorithm, without recursion)."""
    index, low, stack, on_stack, found = {}, {}, [], set(), []
    for root in sorted(graph):
        work = [(root, iter(sorted(graph[root])))] if root not in index else []
        while work:
            node, rest = work[-1]
            if node not in index:
                index[node] = low[node] = len(index)
                stack.append(node)
                on_stack.add(node)
            new = next((n for n in rest if n not in index), None)
            if new is not None:
                work.append((new, iter(sorted(graph[new]))))
                continue
            work.pop()
            low[node] = min([index[node]] + [low[n] for n in graph[node] if n in on_stack])
            if low[node] == index[node]:
                at = stack.index(node)
                if len(stack) - at > 1:
                    found.append(sorted(stack[at:]))
                on_stack.difference_update(stack[at:])
                del stack[at:]
    return found


def shortest_cycle(graph, files):
    """The files of a shortest cycle of the component, in order."""
    best = None
    for start in files:
        came, queue = {start: None}, [start]
        while queue:
            node = queue.pop(0)
            if start in graph[node]:
                cycle = []
                while node is not None:
                    cycle.insert(0, node)
                    node = came[node]
                if best is None or len(cycle) < len(best):
                    best = cycle
                break
            for other in sorted(graph[node]):
                if other in files and other not in came:
                    came[other] = node
                    queue.append(other)
    return best


def describe_cycle(graph, files):
    cycle = shortest_cycle(graph, files)
    lines = ["%s: %d files form a cycle: %s" % (layer(files[0]), len(files), " ".join(files))]
    for one, other in zip(cycle, cycle[1:] + cycle[:1]):
        lines.append("    %s uses %s of %s" % (one, ", ".join(sorted(graph[one][other])), other))
    return "\n".join(lines)


class Exceptions:
    """The lists of exceptions, and which of them were used."""

    def __init__(self, tables, cycles):
        self.tables, self.cycles = tables, cycles
        self.used = set()

    def find(self, items, holds):
        found = [item for item in items if holds(item)]
        self.used.update(found)
        return bool(found)

    def has_table(self, path, name):
        return self.find(self.tables, lambda t: t[0] == path and fnmatch.fnmatch(name, t[1]))

    def unused(self):
        for item in self.tables:
            if item not in self.used:
                yield "%s: the exception for %s is no longer needed" % item[:2]
        for item in self.cycles:
            if item not in self.used:
                yield "%s: has no cycle any more; remove it from CYCLES" % item


def check_uses(graph, exceptions):
    """Faults of single uses; removes from the graph those that do not count for cycles."""
    faults = []
    for path, uses in sorted(graph.items()):
        for other in sorted(uses):
            uses[other] = {n for n in uses[other] if not exceptions.has_table(path, n)}
            upward = uses[other] and layer(other) != DATA and is_above(layer(other), layer(path))
            if upward:
                faults.append("%s: uses %s of %s, and %s is above %s" % (
                    path, ", ".join(sorted(uses[other])), other, layer(other), layer(path)))
            if upward or not uses[other] or layer(other) == DATA:
                del uses[other]
    return faults


def check_library(symbols, exceptions):
    graph = graph_of(symbols)
    faults = ["%s: defines the function %s; %s has data only" % (path, name, DATA)
              for path, (defined, _) in sorted(symbols.items()) if layer(path) == DATA
              for name, kind in sorted(defined.items()) if kind in "TW"]
    faults += check_uses(graph, exceptions)
    for files in components(graph):
        if not exceptions.find(exceptions.cycles, lambda f: f == layer(files[0])):
            faults.append(describe_cycle(graph, files))
    return faults


def check(libraries, exceptions):
    """Faults of {library: {file: ({defined: kind}, {used})}}."""
    faults = []
    for _, symbols in sorted(libraries.items()):
        faults += check_library(symbols, exceptions)
    return faults + list(exceptions.unused())


def read_objects(build):
    """The command nm, and {library: [object file]}."""
    with open(os.path.join(build, "tests", "architecture", "objects.txt"), encoding="utf-8") as file:
        lines = file.read().splitlines()
    libraries = {}
    for line in lines[1:]:
        library, _, path = line.partition("\t")
        libraries.setdefault(library, []).append(path)
    return lines[0], libraries


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    build = os.path.abspath(arguments[0])
    nm, objects = read_objects(build)
    count, libraries = 0, {}
    for library, paths in objects.items():
        missing = [path for path in paths if not os.path.exists(path)]
        if missing:
            print("%s: %d object files are not built, such as %s" % (library, len(missing), missing[0]))
            return 1
        symbols = read_symbols(nm, paths)
        if any(UNITY.search(path) for path in paths):
            print("skipped: %s is a unity build, whose objects contain several files" % library)
            return 77
        if any(SLIM_LTO in defined for defined, _ in symbols.values()):
            print("skipped: %s is built for link-time optimization" % library)
            return 77
        libraries[library] = {source_of(build, path): symbols[path] for path in paths}
        if len(libraries[library]) != len(paths):
            print("%s: two objects have the same source file" % library)
            return 1
        count += len(paths)
    faults = check(libraries, Exceptions(TABLES, CYCLES))
    for fault in faults:
        print(fault)
    print("symbols: %d object files, %d faults" % (count, len(faults)))
    return 1 if faults else 0


# File, the symbols that it defines (functions with a star), and those that it uses.
CLEAN = [
    ("src/base/text.c", "text*", "strlen"),
    ("src/os/file.c", "file*", "text open"),
    ("src/registry/builtin.c", "", "tni_ref_module_entry"),
    ("src/op/op_classes.c", "classes*", "tni_op_classes text"),
    ("src/op/sum/sum.c", "tni_sum_class sum*", "run"),
    ("src/tables/op_table.c", "tni_op_classes", "tni_sum_class"),
    ("src/dispatch/run.c", "run*", "classes file"),
    ("backends/ref/module.c", "tni_ref_module_entry*", "ref_sum"),
    ("backends/ref/sum_ref.c", "ref_sum*", "memcpy"),
    ("src/settings/known.c", "known*", "known_too"),
    ("src/settings/known_too.c", "known_too*", "known"),
    ("src/generated.c", "embedded", ""),
]
# The same, each with the fault that it must cause besides.
BROKEN = [
    ("src/os/a.c", "a*", "b c", "src/os: 3 files form a cycle: src/os/a.c src/os/b.c src/os/c.c\n"
                                "    src/os/a.c uses b of src/os/b.c\n"
                                "    src/os/b.c uses a of src/os/a.c"),
    ("src/os/b.c", "b*", "a", None),
    ("src/os/c.c", "c*", "a", None),
    ("src/base/up.c", "", "file", "src/base/up.c: uses file of src/os/file.c, and src/os is above src/base"),
    ("src/dispatch/up.c", "", "sum", "src/dispatch/up.c: uses sum of src/op/sum/sum.c, and"),
    ("src/op/op_list.c", "", "tni_sum_class", "src/op/op_list.c: uses tni_sum_class of src/op/sum/sum.c, and"),
    ("src/op/mean/mean.c", "mean*", "median",
     "src/op/NAME: 2 files form a cycle: src/op/mean/mean.c src/op/median/median.c"),
    ("src/op/median/median.c", "median*", "mean", None),
    ("src/os/vendor.c", "", "ref_sum", "src/os/vendor.c: uses ref_sum of backends/ref/sum_ref.c"),
    ("src/tables/code.c", "code*", "", "src/tables/code.c: defines the function code; src/tables has data only"),
    ("backends/ref/inside.c", "", "text", "backends/ref/inside.c: uses text of src/base/text.c"),
    ("backends/cpu/far.c", "", "ref_sum", "backends/cpu/far.c: uses ref_sum of backends/ref/sum_ref.c"),
]


def rows_of(files):
    return {file[0]: ({name.rstrip("*"): "T" if name.endswith("*") else "D" for name in file[1].split()},
                      set(file[2].split())) for file in files}


def self_test():
    lists = ([("src/registry/builtin.c", "tni_*_entry", "")], ["src/settings"])
    clean = check({"core": rows_of(CLEAN)}, Exceptions(*lists))
    found = check({"core": rows_of(CLEAN + BROKEN)}, Exceptions(*lists))
    expected = [words for _, _, _, words in BROKEN if words]
    missed = [words for words in expected if sum(f.startswith(words) for f in found) != 1]
    stale = check({"core": rows_of([("src/base/text.c", "", "")])}, Exceptions(*lists))
    name = source_of("/b", "/b/src/CMakeFiles/core.dir/__/backends/x/y.c.o")
    ok = (not clean and not missed and len(found) == len(expected) and len(stale) == 2
          and name == "backends/x/y.c")
    if not ok:
        print("clean: %r\nmissed: %r\nfound: %r\nstale: %r\nname: %r" % (clean, missed, found, stale, name))
    print("symbols: self-test %s, %d rules broken on purpose" % ("ok" if ok else "FAILED", len(expected)))
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
