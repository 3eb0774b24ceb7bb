"""Scopes of settings from C++: exceptions pass through them, destructors leave them."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import script

STRICT = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]


def compiler():
    """The one that goes with the library's, as sanitizers do not mix; else any."""
    clang = "clang" in os.path.basename(script.build.compiler)
    names = ["clang++", "c++", "g++"] if clang else ["g++", "c++", "clang++"]
    found = script.find_programs(os.environ.get("CXX"), *names)
    return found[0] if found else None


class Scopes(script.Case):
    def test_exceptions_leave_scopes(self):
        if not compiler():
            self.skipTest("no C++ compiler is here")
        flags = ["-fsanitize=" + kind for kind in script.build.sanitizers]
        program = self.place("scopes")
        self.run_well(
            compiler(), *STRICT, *flags, "-I" + script.source("include"),
            script.source("tests", "abi", "scopes.cc"), script.build.library,
            "-Wl,-rpath," + script.build.folder, "-pthread", "-o", program)
        self.assertEqual(self.run_well(program), "")


if __name__ == "__main__":
    script.main()
