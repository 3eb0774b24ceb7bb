"""The example in Zig: built by its Makefile, it prints a product and the kernels for it."""

import importlib.util
import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import script


def find_zig():
    """A Zig in the path, or that of the Python package ziglang."""
    if shutil.which("zig"):
        return "zig"
    return f"{sys.executable} -m ziglang" if importlib.util.find_spec("ziglang") else None


class Example(script.Case):
    def test_the_product(self):
        zig = find_zig()
        if not zig:
            self.skipTest("neither zig nor the Python package ziglang is here")
        if not script.build.is_release:
            self.skipTest("Zig programs cannot link a library with sanitizers")
        shutil.copytree(script.source("examples", "zig"), self.place("zig"))
        env = script.environment(ZIG_LOCAL_CACHE_DIR=self.place("cache"))
        self.run_well("make", "-C", self.place("zig"), "ZIG=" + zig, "CFLAGS=-I" + script.source("include"),
                      f"LIBS=-L{script.build.folder} -ltenon -rpath {script.build.folder}", env=env)
        done = script.run(self.place("zig", "product"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"^32 on \S+ \(.*\)\n")
        self.assertRegex(done.stderr, r"\n\w+\.matmul\.\w+: chosen\n")


if __name__ == "__main__":
    script.main()
