"""The public headers: each alone, in both languages, without padding; the module's without ours."""

import os
import re
import shutil
import sys

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)
sys.path.append(os.path.join(os.path.dirname(TESTS), "bindings", "python", "tenon"))
import _headers
import script

STRICT = ["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Wpadded", "-Wundef", "-Wshadow",
          "-Wconversion", "-Werror"]


def headers(root):
    """Paths below `root`, as an #include names them."""
    found = []
    for folder, _, names in os.walk(root):
        for name in names:
            if name.endswith(".h"):
                found.append(os.path.relpath(os.path.join(folder, name), root))
    return sorted(found)


def c_compilers():
    return script.find_programs(script.build.compiler, "gcc", "clang")


def languages():
    """(compiler, flags, suffix of its sources) for every compiler there is."""
    found = [(c, ["-std=c11", "-Wstrict-prototypes"], ".c") for c in c_compilers()]
    plus = script.find_programs(os.environ.get("CXX"), "c++", "g++", "clang++")
    if not plus:
        print("skipped: headers.py: no C++ compiler is here, so the headers were tried as C only")
    return found + [(c, ["-std=c++17"], ".cc") for c in plus]


class Headers(script.Case):
    def compile(self, compiler, flags, suffix, texts):
        """All of them, each a unit of its own."""
        files = []
        for number, text in enumerate(texts):
            files.append(script.write_text(self.place(f"unit{number}{suffix}"), text))
        return script.run(compiler, *flags, *STRICT, *files, cwd=self.folder)

    def check(self, include, names):
        """Every name alone and twice, then all of them from the last to the first."""
        texts = [f'#include "{n}"\n#include "{n}"\nextern int use;\n' for n in names]
        texts.append("".join(f'#include "{n}"\n' for n in reversed(names)) + "extern int use;\n")
        for compiler, flags, suffix in languages():
            done = self.compile(compiler, [*flags, "-I" + include], suffix, texts)
            if done.returncode != 0:
                self.fail(f"{compiler} {' '.join(flags)}:\n{done.stderr}")

    def test_each_compiles_alone(self):
        include = script.source("include")
        names = headers(include)
        self.assertIn("tenon/tenon.h", names)
        self.assertIn("tenon/module/module.h", names)
        self.check(include, names)

    def test_the_modules_folder_stands_alone(self):
        shutil.copytree(script.source("include", "tenon", "module"), self.place("alone"))
        self.check(self.place("alone"), headers(self.place("alone")))

    def test_a_shipped_module_needs_that_folder_only(self):
        shutil.copytree(script.source("include", "tenon", "module"), self.place("tenon", "module"))
        folder = script.source("backends", "described")
        sources = [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".c")]
        for compiler in c_compilers():
            self.run_well(
                compiler, "-std=c11", "-D_GNU_SOURCE", "-shared", "-fPIC", "-I" + self.folder,
                *sources, "-o", self.place("tenon-described.so"))

    def test_padding_would_be_noticed(self):
        text = "struct loose { char a; int b; };\nextern char use[sizeof(struct loose)];\n"
        for compiler, flags, suffix in languages():
            done = self.compile(compiler, flags, suffix, [text])
            self.assertNotEqual(done.returncode, 0, compiler)
            self.assertIn("padd", done.stderr)

    def test_tenon_h_includes_all(self):
        text = script.read_text(script.source("include", "tenon", "tenon.h"))
        there = {n for n in os.listdir(script.source("include", "tenon")) if n.endswith(".h")}
        self.assertEqual(set(re.findall(r'#include "(.+)"', text)), there - {"tenon.h"})

    def test_operators_have_numbers_of_their_own(self):
        folder = script.source("include", "tenon", "module")
        most = int(re.search(r"#define TN_OP_KIND_MAX (\d+)", script.read_text(folder, "op.h")).group(1))
        numbers = []
        for name in sorted(os.listdir(os.path.join(folder, "op"))):
            text = script.read_text(folder, "op", name)
            numbers += re.findall(r"\bTN_OP_\w+ = (\d+)", text)
        self.assertGreaterEqual(len(numbers), 13)
        self.assertEqual(len(numbers), len(set(numbers)))
        self.assertTrue(all(0 < int(number) < most for number in numbers))

    def test_every_header_says_how_threads_may_use_it(self):
        include = script.source("include")
        for name in set(headers(include)) - {"tenon/tenon.h"}:
            self.assertIn("Thread-safety: ", script.read_text(include, name), name)


class Pages(script.Case):
    def number(self, header, name):
        text = script.read_text(script.source("include", "tenon", header))
        return re.search(rf"#define {name} (\d+)", text).group(1)

    def test_the_abi_of_now_is_written_down(self):
        page = script.source("docs", "abi-changes.md")
        if not os.path.exists(page):
            self.skipTest("docs/abi-changes.md is not there")
        text = script.read_text(page)
        abi = [self.number("module/module.h", f"TN_MODULE_ABI_{n}") for n in ("MAJOR", "MINOR")]
        version = [self.number("version.h", f"TN_VERSION_{n}") for n in ("MAJOR", "MINOR", "PATCH")]
        modules, library = text.split("## Library")
        self.assertIn(f"| {'.'.join(abi)} |", modules)
        self.assertIn(f"| {'.'.join(version)} |", library)


# Structs of the public headers that never grow, and so need no struct_size. Parameters of operators (module/op/) are
# copied whole and are not listed.
FROZEN = {
    "tn_capability", "tn_change", "tn_check_aspect", "tn_device_guard", "tn_dlpack_managed", "tn_dlpack_tensor",
    "tn_dlpack_versioned", "tn_error", "tn_event_handle", "tn_fact", "tn_layout", "tn_scope", "tn_sdpa_check",
    "tn_sdpa_tensor", "tn_sequence", "tn_sparse_row", "tn_step", "tn_stream_guard", "tn_symbol", "tn_tensor", "tn_walk"}


class Structs(script.Case):
    def setUp(self):
        super().setUp()
        self.headers = _headers.read(script.source("include", "tenon"))

    def test_structs_that_grow_begin_with_their_size(self):
        text = _headers.read_text(script.source("include", "tenon", "module", "op"))
        parameters = re.findall(r"^typedef struct (tn_\w+_op) \{", text, re.M)
        self.assertIn("tn_matmul_op", parameters)
        for name, fields in self.headers.structs.items():
            if name not in FROZEN and name not in parameters:
                self.assertEqual(fields[0], ("struct_size", "size_t"), name)
        self.assertEqual(FROZEN - set(self.headers.structs), set())

    def test_the_reader_finds_every_struct(self):
        text = _headers.read_text(script.source("include", "tenon"))
        self.assertEqual(sorted(re.findall(r"\bstruct (tn_\w+) \{", text)), sorted(self.headers.structs))

    def test_the_reader_agrees_with_the_compiler(self):
        """The fields that it reads fill each struct, and each function has the type that it reads."""
        include = script.source("include")
        lines = [f'#include "{name}"' for name in headers(include)]
        for name, fields in self.headers.structs.items():
            sizes = " + ".join(f"sizeof((({name} *)0)->{field})" for field, _ in fields)
            lines.append(f'_Static_assert({sizes} == sizeof({name}), "{name}");')
        for name, (result, parameters) in self.headers.functions.items():
            kind = f"{result} (*)({', '.join(parameters) or 'void'})"
            lines.append(f'_Static_assert(_Generic(&{name}, {kind}: 1, default: 0), "{name}");')
        unit = script.write_text(self.place("reader.c"), "\n".join([*lines, ""]))
        for compiler in c_compilers():
            self.run_well(compiler, "-std=c11", "-fsyntax-only", "-I" + include, unit)


if __name__ == "__main__":
    script.main()
