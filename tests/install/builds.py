"""Other builds of the same sources: the same bytes in another folder, without a module, without Ninja and
cmocka, with GPU kernels compiled ahead. Only the release build's run makes them. Whole builds take minutes: those are for
full runs (`make test-full`); others make two small modules, and one suite without cmocka."""

import glob
import hashlib
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import script

JOBS = str(os.cpu_count() or 2)
SMALL = ["tenon-described"]  # few sources


class Builds(script.Case):
    def setUp(self):
        super().setUp()
        if not script.build.is_release:
            self.skipTest("other builds are made by the release build's run only")

    def make(self, source, folder, generator, *settings, targets):
        env = script.environment(CMAKE_GENERATOR=None)
        self.run_well(
            script.build.cmake, "-S", source, "-B", folder, "-G", generator,
            "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_C_COMPILER=" + script.build.compiler, *settings,
            env=env)
        self.run_well(script.build.cmake, "--build", folder, "--parallel", JOBS, "--target", *targets, env=env)

    def digests(self, folder):
        """Of everything that is installed as it was built."""
        found = {}
        for name in ("tenon", "libtenon.so", "backends/tenon-probe", "backends/*.so"):
            for path in glob.glob(os.path.join(folder, name)):
                with open(path, "rb") as file:
                    digest = hashlib.sha256(file.read()).hexdigest()
                found[os.path.relpath(path, folder)] = digest
        self.assertGreaterEqual(len(found), 4 if script.FULL else 1)
        return found

    def test_two_folders_give_the_same_bytes(self):
        """The build that is tested, and one of a copy of the sources in another place."""
        folder, copy = self.place("second", "two"), self.place("a", "longer", "path")
        skip = shutil.ignore_patterns("build", "build-*", ".git", "__pycache__")
        shutil.copytree(script.build.source, copy, ignore=skip)
        kept = [f"-D{name}={script.build.values.get(name, '')}"
                for name in ("CMAKE_C_FLAGS", "TENON_CUDA_READY", "TENON_DESCRIBED")]
        self.make(copy, folder, script.build.values["CMAKE_GENERATOR"], "-DTENON_TESTS=OFF", "-DTENON_BENCH=OFF", *kept,
                  targets=["all"] if script.FULL else SMALL)
        made, tested = self.digests(folder), self.digests(script.build.folder)
        self.assertEqual(made, {path: tested.get(path) for path in made})

    def test_kernels_compiled_ahead(self):
        """The module is larger by them."""
        if not script.FULL:
            self.skipTest("NVIDIA's compiler takes half a minute: that is for `make test-full`")
        if not script.build.values.get("TENON_NVRTC_LIBRARY", "").startswith("/"):
            self.skipTest("NVIDIA's compiler is not here")
        folder = self.place("ahead")
        self.make(script.build.source, folder, script.build.values["CMAKE_GENERATOR"], "-DTENON_TESTS=OFF",
                  "-DTENON_BENCH=OFF", "-DTENON_CUDA_READY=sm_80", targets=["tenon-cuda"])
        sizes = [os.path.getsize(os.path.join(at, "backends", "tenon-cuda.so")) for at in (folder, script.build.folder)]
        self.assertGreater(sizes[0], sizes[1] + 100000)

    def make_plain(self, target):
        """Builds a target with makefiles, without cmocka and without a module."""
        self.need("make")
        folder = self.place("plain")
        self.make(
            script.build.source, folder, "Unix Makefiles", "-DTENON_BENCH=OFF", "-DTENON_TESTS=ON",
            "-DTENON_DESCRIBED=OFF", "-DTENON_CUDA=OFF",
            "-DCMOCKA_INCLUDE=", "-DCMOCKA_LIBRARY=",
            targets=[target])
        self.assertEqual(glob.glob(os.path.join(folder, "backends", "*.so")), [])
        return folder

    def test_a_module_by_makefiles(self):
        folder = self.make_plain("conformance_faulty")
        targets = self.run_well(script.build.cmake, "--build", folder, "--target", "help").split()
        self.assertIn("product", targets)
        self.assertFalse({"tenon-cuda", "tenon-described"} & set(targets))

    def test_a_suite_without_cmocka(self):
        """Against the library that is built already."""
        program = self.place("form")
        self.run_well(
            script.build.compiler, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE",
            "-I" + script.source("include"), "-I" + script.source("src"), "-I" + script.source("tests"),
            script.source("tests", "unit", "form.c"), os.path.join(script.build.folder, "src", "libtenon_inside.a"),
            "-lm", "-ldl", "-lpthread", "-o", program)
        self.assertIn("[==========] unit.form: Running ", self.run_well(program))  # the stand-in's words

    def test_everything_by_makefiles_without_cmocka(self):
        if not script.FULL:
            self.skipTest("a whole build is for `make test-full`")
        folder = self.make_plain("all")
        text = self.run_well(os.path.join(folder, "tests", "unit", "test_unit_form"))
        self.assertIn("[==========] unit.form: Running ", text)  # the stand-in's words
        chosen = r"^unit\.(base|form|registry|platforms|devices|current|tensor)$|^loader\."
        self.run_well("ctest", "--test-dir", folder, "-R", chosen, "-j", "2")
        document = json.loads(self.run_well(os.path.join(folder, "tenon"), "modules", "--json"))
        self.assertEqual([row["name"] for row in document["modules"]], ["cpu", "ref"])


if __name__ == "__main__":
    script.main()
