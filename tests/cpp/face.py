"""tenon.hpp: what it does, what it refuses, that no compiler warns, and that it knows all of the C interface."""

import os
import re
import sys

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)
sys.path.append(os.path.join(os.path.dirname(TESTS), "bindings", "python", "tenon"))
import _headers
import script

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wundef", "-Werror"]
STANDARDS = ["c++17", "c++20"]
QUIET = ["-fno-exceptions", "-fno-rtti"]


def own_compiler():
    """The C++ compiler that goes with the library's, because sanitizers of different ones do not mix."""
    clang = "clang" in os.path.basename(script.build.compiler)
    names = ["clang++", "c++", "g++"] if clang else ["g++", "c++", "clang++"]
    return next(iter(script.find_programs(os.environ.get("CXX"), *names)), None)


class Face(script.Case):
    def setUp(self):
        super().setUp()
        self.compiler = own_compiler()
        if not self.compiler:
            self.skipTest("no C++ compiler is here")

    def parts(self):
        """(file, flags of its own) of the test program."""
        return [("throwing", []), ("nonthrowing", QUIET)]

    def compile(self, compiler, standard, name, *flags):
        file = script.source("tests", "cpp", name + ".cc")
        return script.run(compiler, f"-std={standard}", "-I" + script.source("include"), *flags, file)

    def run_program(self, standard):
        flags = [*WARNINGS, "-O1", *("-fsanitize=" + kind for kind in script.build.sanitizers)]
        objects = []
        for name, own in self.parts():
            objects.append(self.place(f"{name}.o"))
            done = self.compile(self.compiler, standard, name, *flags, *own, "-c", "-o", objects[-1])
            self.assertEqual(done.returncode, 0, done.stderr)
        program = self.place("face")
        self.run_well(self.compiler, *flags, *objects, script.build.library, "-Wl,-rpath," + script.build.folder,
                      "-pthread", "-o", program)
        self.assertEqual(self.run_well(program), "")

    def test_a_program_of_files_with_and_without_exceptions(self):
        for standard in STANDARDS if script.FULL else STANDARDS[:1]:
            self.run_program(standard)

    def test_no_compiler_warns(self):
        if script.build.sanitizers and not script.FULL:
            self.skipTest("warnings are those of the release build")
        pairs = [("g++", "c++20"), ("clang++", "c++17")]
        if script.FULL:
            pairs = [(compiler, standard) for compiler in ("g++", "clang++") for standard in STANDARDS]
        for compiler, standard in pairs:
            for name, own in self.parts() if script.find_programs(compiler) else []:
                done = self.compile(compiler, standard, name, *WARNINGS, *own, "-fsyntax-only")
                self.assertEqual((done.returncode, done.stderr), (0, ""), f"{compiler} {standard} {name}")

    def check_refused(self, wanted, *flags):
        """gcc names the line of the caller for every error in a template."""
        done = self.compile(self.need("g++"), "c++17", "refused", "-fsyntax-only", *flags)
        lines = {int(number) for number in re.findall(r"refused\.cc:(\d+):\d+", done.stderr)}
        self.assertEqual(sorted(lines), wanted, done.stderr)

    def test_what_must_not_compile(self):
        text = script.read_text(script.source("tests", "cpp", "refused.cc")).splitlines()
        marked = [number for number, line in enumerate(text, 1) if "// refused" in line]
        inside = text.index("#if !defined(__cpp_exceptions)")
        self.assertGreater(len(marked), 10)
        self.check_refused([n for n in marked if n <= inside])
        self.check_refused(marked, *QUIET)


class Complete(script.Case):
    """Lists of the header, against the C headers: a new type or operator is one line."""

    def setUp(self):
        super().setUp()
        self.functions = _headers.read(script.source("include", "tenon")).functions
        self.text = script.read_text(script.source("include", "tenon", "tenon.hpp"))

    def test_every_object_has_its_owner(self):
        released = {name[3:-8] for name, (_, parameters) in self.functions.items()
                    if name.endswith("_release") and parameters == [name[:-8] + " *"]}
        listed = re.findall(r"^ +X\((\w+)\)", self.text, re.M)
        self.assertGreater(len(listed), 10)
        self.assertEqual(sorted(listed), sorted(released - {"tensor"}))

    def test_every_operator_is_listed(self):
        operators = {name[3:-8] for name in set(self.functions) - {"tn_explain"}
                     if name.endswith("_explain") and name[:-8] + "_prepare" in self.functions}
        header = script.read_text(script.source("include", "tenon", "tenon.h"))
        listed = re.findall(r"^ +X\((\w+)\)", header, re.M)
        self.assertGreater(len(listed), 10)
        self.assertEqual(sorted(listed), sorted(operators))
        self.assertIn("TN_OPERATOR_LIST(TN_CPP_OPERATOR_)", self.text)


if __name__ == "__main__":
    script.main()
