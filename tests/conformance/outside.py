"""What strangers get, used as they would: with the installed files and nothing else of this tree. The
examples are built by their own Makefiles; a new module of each kind is written, built in both ways, and
passes as it stands."""

import json
import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import script


class Outside(script.Case):
    def setUp(self):
        super().setUp()
        self.prefix = self.place("prefix")
        self.run_well(script.build.cmake, "--install", script.build.folder, "--prefix", self.prefix)
        self.tenon = os.path.join(self.prefix, "bin", "tenon")
        flags = ["-fsanitize=" + kind for kind in script.build.sanitizers]
        if script.build.values.get("TENON_COVERAGE") == "ON":
            flags.append("--coverage")
        self.flags = " ".join(flags)
        libdir = os.path.join(self.prefix, script.build.values["CMAKE_INSTALL_LIBDIR"])
        self.env = script.environment(
            PKG_CONFIG_PATH=os.path.join(libdir, "pkgconfig"), PKG_CONFIG_LIBDIR=self.folder,
            PATH=os.path.join(self.prefix, "bin") + os.pathsep + os.environ["PATH"])

    def make(self, folder, *targets):
        """As the folder's README says, with warnings as errors and the host's sanitizer."""
        self.need("make")
        self.need("pkg-config")
        return self.run_well(
            "make", "-C", folder, *targets, "CC=" + script.build.compiler,
            "CFLAGS=-O2 -Wall -Wextra -Wpedantic -Werror " + self.flags, env=self.env)

    def check_result(self, folder, platform, *cases):
        """The cases passed, and nothing failed."""
        text = script.read_text(folder, "conformance", "result.txt")
        self.assertIn('outcome = "pass"\n', text)
        self.assertIn(f"[cases {platform}]\n", text)
        for case in cases or ["copy.2d"]:
            self.assertIn(f'\n{case} = "pass"\n', text)

    def new_module(self, name, kind="platform"):
        self.run_well(self.tenon, "new-module", name, f"--{kind}", "--dir", self.folder)
        return self.place("tenon-" + name)

    def cases(self, kernel, *aspects):
        return [f"kernels.{kernel}.{aspect}" for aspect in aspects]

    def read_rows(self, command, folder, *options, **variables):
        """The rows of `tenon COMMAND` by name, with the module of the folder."""
        env = dict(self.env, TENON_MODULE_PATH=folder, **variables)
        document = json.loads(self.run_well(self.tenon, command, *options, "--json", env=env))
        return {row["name"]: row for row in document[command]}

    def test_the_example(self):
        folder = self.place("ferry")
        shutil.copytree(script.source("examples", "out-of-tree"), folder)
        self.make(folder, "check")
        self.check_result(folder, "ferry")
        self.make(folder, "install")
        text = self.run_well(self.tenon, "devices", "--json", env=self.env)
        ids = [row["id"] for row in json.loads(text)["devices"]]
        self.assertIn("ferry:0", ids)
        self.make(folder, "clean")
        for name in ("tenon-ferry.so", "ferry-server", "run", "conformance/result.txt"):
            self.assertFalse(os.path.exists(os.path.join(folder, name)), name)

    def test_the_example_of_a_kernel(self):
        folder = self.place("tiles")
        shutil.copytree(os.path.join(self.prefix, "share", "tenon", "examples", "kernel"), folder)
        self.make(folder, "check")
        self.check_result(folder, "cpu", *self.cases(
            "cpu.tiles.matmul", "shapes", "pitches", "alignment", "batch", "broadcast", "transpose",
            "strides", "alpha", "beta", "bias", "together", "nonfinite"))
        self.make(folder, "clean")
        self.assertFalse(os.path.exists(os.path.join(folder, "tenon-tiles.so")))

    def test_a_new_module_by_make(self):
        folder = self.new_module("my-board_2")
        self.make(folder, "check")
        self.check_result(folder, "my-board_2")
        text = self.run_well(
            self.tenon, "devices", "--json", env=dict(self.env, TENON_MODULE_PATH=folder))
        self.assertIn("my-board_2:0", [row["id"] for row in json.loads(text)["devices"]])
        self.make(folder, "install")
        text = self.run_well(self.tenon, "modules", "--json", env=self.env)
        rows = {row["name"]: row for row in json.loads(text)["modules"]}
        self.assertEqual((rows["my-board_2"]["stage"], rows["my-board_2"]["origin"]),
                         ("ready", "module folder"))

    def test_a_new_kernel_by_make(self):
        """Every feature that its row declares has a case, and each passes."""
        folder = self.new_module("my-rows_2", "kernel")
        self.make(folder, "check")
        self.check_result(folder, "cpu", *self.cases(
            "cpu.my-rows_2.softmax", "shapes", "alignment", "strides", "broadcast", "in-place", "log",
            "nonfinite"))
        self.assertEqual(self.read_rows("modules", folder)["my-rows_2"]["stage"], "ready")
        self.make(folder, "explain")
        self.check_refusals(folder, "softmax:f32:", "cpu.my-rows_2.softmax", {
            "shape=16777217": ("shape", "size", 1 << 24, (1 << 24) + 1),
            "shape=9x11,si=22;2": ("stride", "in.stride", 1, 2),
            "shape=9x11,so=33;3": ("stride", "out.stride", 1, 3)})

    def check_refusals(self, folder, start, kernel, problems):
        """What the kernel's own `admit` refuses, and the words that it gives."""
        env = dict(self.env, TENON_MODULE_PATH=folder, LD_LIBRARY_PATH=folder)
        for problem, words in problems.items():
            document = json.loads(self.run_well(
                self.tenon, "explain", f"{start}{problem}@cpu:0", "--json", env=env))
            why, = (row["why"] for row in document["candidates"] if row["kernel"] == kernel)
            self.assertEqual((why["code"], why["what"], why["needed"], why["found"]), words, problem)

    def test_a_new_library_by_make(self):
        """With its file it is open, has a version and computes; without it, the reason is reported."""
        folder = self.new_module("vendor3", "library")
        self.make(folder, "check")
        self.check_result(folder, "cpu", *self.cases(
            "cpu.vendor3.matmul", "shapes", "pitches", "alignment", "transpose", "alpha", "beta",
            "together"))
        state = self.read_rows("libraries", folder, "--try", LD_LIBRARY_PATH=folder)["vendor3"]
        self.assertEqual((state["built"], state["available"], state["enabled"], state["version_text"],
                          state["version"], state["kernels"], state["module"]),
                         (True, "yes", True, "1.2.3", 10203, 1, "vendor3"))
        self.assertEqual(state["path"], os.path.join(folder, "libvendor3-stand-in.so.1"))
        state = self.read_rows("libraries", folder, "--try")["vendor3"]
        self.assertEqual((state["built"], state["available"]), (True, "no"))
        self.assertIn("libvendor3-stand-in.so.1", state["reason"])
        self.assertIn("LD_LIBRARY_PATH", state["remedy"])
        self.check_refusals(folder, "matmul:f32:", "cpu.vendor3.matmul", {
            "m=3000000000,n=2,k=2": ("shape", "m", (1 << 31) - 1, 3000000000),
            "m=2,n=2,k=2,sb=3000000000;1": ("stride", "b.stride", (1 << 31) - 1, 3000000000),
            "m=3,n=2,k=2,sc=-2;1": ("feature", "strides", 1, 0)})

    def test_a_new_module_by_cmake(self):
        for kind in ("platform", "kernel", "library"):
            with self.subTest(kind):
                self.build_by_cmake(self.new_module("by-" + kind, kind), self.place("built", kind))

    def build_by_cmake(self, folder, built):
        self.run_well(
            script.build.cmake, "-S", folder, "-B", built, "-DCMAKE_PREFIX_PATH=" + self.prefix,
            "-DCMAKE_C_COMPILER=" + script.build.compiler, "-DCMAKE_C_FLAGS=" + self.flags,
            env=self.env)
        self.run_well(script.build.cmake, "--build", built, env=self.env)
        self.run_well("ctest", "--test-dir", built, "--output-on-failure", env=self.env)


if __name__ == "__main__":
    script.main()
