"""What strangers get, used as they would: with the installed files and nothing else of this tree. The
example is built by its own Makefile; a new module is written, built in both ways, and passes as it
stands."""

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

    def check_result(self, folder, platform):
        text = script.read_text(folder, "conformance", "result.txt")
        self.assertIn('outcome = "pass"\n', text)
        self.assertIn(f"[cases {platform}]\n", text)
        self.assertIn('\ncopy.2d = "pass"\n', text)

    def new_module(self, name):
        self.run_well(self.tenon, "new-module", name, "--platform", "--dir", self.folder)
        return self.place("tenon-" + name)

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

    def test_a_new_module_by_cmake(self):
        folder = self.new_module("board")
        built = self.place("built")
        self.run_well(
            script.build.cmake, "-S", folder, "-B", built, "-DCMAKE_PREFIX_PATH=" + self.prefix,
            "-DCMAKE_C_COMPILER=" + script.build.compiler, "-DCMAKE_C_FLAGS=" + self.flags,
            env=self.env)
        self.run_well(script.build.cmake, "--build", built, env=self.env)
        self.run_well("ctest", "--test-dir", built, "--output-on-failure", env=self.env)


if __name__ == "__main__":
    script.main()
