"""What the built objects show the dynamic loader: symbols, versions, names, needs, search paths."""

import glob
import os
import re
import sys

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)
sys.path.append(os.path.join(os.path.dirname(TESTS), "bindings", "python", "tenon"))
import _headers
import script

LIBC = r"(libc|libm|libpthread|libdl)\.so\.\d+|ld-linux.*\.so\.\d+"
SANITIZERS = r"|lib(a|ub|t|clang_rt\.[a-z_]*)san.*\.so(\.\d+)?"
POINTER = 8


class Exports(script.Case):
    def setUp(self):
        super().setUp()
        self.readelf = self.need("readelf")
        self.modules = [file for folder in (script.build.modules, os.path.join(script.build.folder, "apart"))
                        for file in glob.glob(os.path.join(folder, "tenon-*.so"))]

    def symbols(self, file):
        """name -> version ("" without one) of every symbol that others can bind to."""
        found = {}
        for line in self.run_well(self.readelf, "-W", "--dyn-syms", file).splitlines():
            fields = line.split()
            if len(fields) < 8 or fields[4] not in ("GLOBAL", "WEAK", "UNIQUE"):
                continue
            if fields[6] == "UND" or fields[5] in ("HIDDEN", "INTERNAL"):
                continue
            name, _, version = fields[7].partition("@")
            found[name] = version.lstrip("@")
        return found

    def dynamic(self, file):
        """tag -> list of values of the dynamic section."""
        found = {}
        for line in self.run_well(self.readelf, "-W", "-d", file).splitlines():
            match = re.match(r" *0x[0-9a-f]+ \((\w+)\) +(.*)", line)
            if match:
                tag, text = match.groups()
                inner = re.search(r"\[(.*)\]", text)
                found.setdefault(tag, []).append(inner.group(1) if inner else text)
        return found

    def check_needs(self, file):
        allowed = LIBC + (SANITIZERS if script.build.sanitizers else "")
        for name in self.dynamic(file).get("NEEDED", []):
            self.assertRegex(name, f"^({allowed})$", f"{file} needs {name}")

    def constructors(self, file):
        sizes = self.dynamic(file).get("INIT_ARRAYSZ", ["0 (bytes)"])
        return int(sizes[0].split()[0]) // POINTER

    def allowed_constructors(self, file):
        """What the compiler's own start files add: frame_dummy, and on Arm the look at the processor's
        atomic instructions (libgcc's outline atomics)."""
        names = self.run_well(self.readelf, "-W", "-s", file)
        return 1 + len(re.findall(r" init_have_lse_atomics$", names, re.MULTILINE))

    def check_constructors(self, file):
        """Sanitizers and coverage add one to each object."""
        if script.build.sanitizers or script.build.values.get("TENON_COVERAGE") == "ON":
            self.skipTest("instrumented objects have constructors of the compiler's")
        self.assertLessEqual(self.constructors(file), self.allowed_constructors(file),
                             f"{file} runs code when it is opened")

    def test_no_static_thread_local_storage(self):
        """The loader has little room for static TLS: a library that needs it cannot always be opened. clang's
        coverage for fuzzers has a variable there."""
        if script.build.values.get("TENON_FUZZ") == "ON":
            self.skipTest("objects for fuzzers have a thread-local variable of the compiler's")
        for file in [script.build.library, *self.modules]:
            flags = " ".join(self.dynamic(file).get("FLAGS", []))
            self.assertNotIn("STATIC_TLS", flags, file)

    def test_the_library_exports_what_the_headers_declare(self):
        """abi.layout has the functions that must not vanish from the headers."""
        declared = sorted(_headers.read(script.source("include", "tenon")).functions)
        self.assertGreater(len(declared), 300)
        found = self.symbols(script.build.library)
        found.pop("TENON_0", None)  # the version itself, which GNU's linker exports and LLVM's does not
        self.assertEqual(sorted(found), declared)
        self.assertEqual({n: v for n, v in found.items() if v != "TENON_0"}, {})

    def test_every_function_of_the_headers_is_found(self):
        text = ""
        for file in glob.glob(script.source("include", "tenon", "**", "*.h"), recursive=True):
            text += script.read_text(file)
        marks = len(re.findall(r"^TN_API ", text, re.M))
        self.assertEqual(marks, len(_headers.read(script.source("include", "tenon")).functions))

    def test_the_library_is_called_and_kept(self):
        found = self.dynamic(script.build.library)
        self.assertEqual(found["SONAME"], ["libtenon.so.0"])
        self.assertIn("NODELETE", found["FLAGS_1"][0])

    def test_the_library_needs_libc_only(self):
        self.check_needs(script.build.library)

    def test_the_library_runs_nothing_when_opened(self):
        self.check_constructors(script.build.library)

    def test_modules_export_their_entry_only(self):
        self.assertTrue(self.modules or script.build.values.get("TENON_DESCRIBED") == "OFF")
        for file in self.modules:
            self.assertEqual(self.symbols(file), {"tn_module_entry": ""}, file)

    def test_modules_need_libc_only(self):
        for file in self.modules:
            self.check_needs(file)

    def test_modules_run_nothing_when_opened(self):
        for file in self.modules:
            self.check_constructors(file)

    def test_nothing_is_sought_in_the_current_folder(self):
        programs = [script.build.tenon, os.path.join(script.build.modules, "tenon-probe")]
        for file in [script.build.library, *programs, *self.modules]:
            found = self.dynamic(file)
            for path in found.get("RUNPATH", []) + found.get("RPATH", []):
                for folder in path.split(":"):
                    self.assertRegex(folder, r"^(/|\$ORIGIN)", f"{file} has the search path {path}")

    def test_the_stack_is_not_executable(self):
        for file in [script.build.library, *self.modules]:
            headers = self.run_well(self.readelf, "-W", "-l", file)
            stack = re.search(r"GNU_STACK .*", headers).group(0)
            self.assertNotIn("RWE", stack, file)


if __name__ == "__main__":
    script.main()
