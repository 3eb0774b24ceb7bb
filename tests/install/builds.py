"""Other builds of the same sources: twice the same bytes, without a module, without Ninja and
cmocka. They take a while, so only the release build's run does them."""

import glob
import hashlib
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import script

JOBS = str(os.cpu_count() or 2)


class Builds(script.Case):
    def setUp(self):
        super().setUp()
        if not script.build.is_release:
            self.skipTest("other builds are made by the release build's run only")

    def make(self, source, folder, generator, *settings, targets=()):
        env = script.environment(CMAKE_GENERATOR=None)
        self.run_well(
            script.build.cmake, "-S", source, "-B", folder, "-G", generator,
            "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_C_COMPILER=" + script.build.compiler, *settings,
            env=env)
        command = [script.build.cmake, "--build", folder, "--parallel", JOBS]
        if targets:
            command += ["--target", *targets]
        self.run_well(*command, env=env)

    def digests(self, folder):
        """Of everything that is installed as it was built."""
        found = {}
        for name in ("tenon", "libtenon.so", "backends/tenon-probe", "backends/*.so"):
            for path in glob.glob(os.path.join(folder, name)):
                with open(path, "rb") as file:
                    digest = hashlib.sha256(file.read()).hexdigest()
                found[os.path.relpath(path, folder)] = digest
        self.assertGreaterEqual(len(found), 3)
        return found

    def test_two_folders_give_the_same_bytes(self):
        first, second = self.place("one"), self.place("second", "two")
        copy = self.place("a", "longer", "path")
        skip = shutil.ignore_patterns("build", "build-*", ".git", "__pycache__")
        shutil.copytree(script.build.source, copy, ignore=skip)
        generator = script.build.values["CMAKE_GENERATOR"]
        settings = ["-DTENON_TESTS=OFF", "-DTENON_BENCH=OFF"]
        self.make(script.build.source, first, generator, *settings)
        self.make(copy, second, generator, *settings)
        self.assertEqual(self.digests(first), self.digests(second))

    def test_makefiles_without_cmocka_and_without_a_module(self):
        self.need("make")
        folder = self.place("plain")
        self.make(
            script.build.source, folder, "Unix Makefiles", "-DTENON_BENCH=OFF", "-DTENON_TESTS=ON",
            "-DTENON_DESCRIBED=OFF", "-DTENON_CUDA=OFF",
            "-DCMOCKA_INCLUDE=", "-DCMOCKA_LIBRARY=",
            targets=["all"])
        text = self.run_well(os.path.join(folder, "tests", "unit", "test_unit_form"))
        self.assertIn("[==========] unit.form: Running ", text)  # the stand-in's words
        chosen = r"^unit\.(base|form|registry|platforms|devices|current|tensor)$|^loader\."
        self.run_well("ctest", "--test-dir", folder, "-R", chosen, "-j", "2")
        self.assertEqual(glob.glob(os.path.join(folder, "backends", "*.so")), [])
        document = json.loads(self.run_well(os.path.join(folder, "tenon"), "modules", "--json"))
        self.assertEqual([row["name"] for row in document["modules"]], ["cpu", "ref"])


if __name__ == "__main__":
    script.main()
