"""What `cmake --install` lays down, used from outside the tree with nothing but those files."""

import json
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import script


def tree(root):
    found = []
    for folder, _, names in os.walk(root):
        found += [os.path.relpath(os.path.join(folder, name), root) for name in names]
    return sorted(found)


class Installed(script.Case):
    def setUp(self):
        super().setUp()
        self.prefix = self.place("prefix")
        self.libdir = script.build.values["CMAKE_INSTALL_LIBDIR"]
        self.run_well(script.build.cmake, "--install", script.build.folder, "--prefix", self.prefix)
        shutil.copytree(script.source("tests", "install", "outside"), self.place("outside"))
        self.flags = ["-fsanitize=" + kind for kind in script.build.sanitizers]
        if script.build.values.get("TENON_COVERAGE") == "ON":
            self.flags.append("--coverage")

    def there(self, *parts):
        return os.path.join(self.prefix, *parts)

    def check_listing(self, text):
        lines = text.splitlines()
        self.assertIn("cpu ready", lines)
        self.assertIn("ref ready", lines)
        if script.build.values.get("TENON_DESCRIBED") == "ON":
            self.assertIn("described ready", lines)

    def ask_modules(self, **changes):
        env = script.environment(**changes)
        text = self.run_well(self.there("bin", "tenon"), "modules", "--json", env=env, cwd="/")
        return {row["name"]: row for row in json.loads(text)["modules"]}

    def build_module(self):
        os.makedirs(self.place("modules"), exist_ok=True)
        file = self.place("modules", "tenon-outside.so")
        self.run_well(
            script.build.compiler, *self.flags, "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror",
            "-I" + self.there("include"), self.place("outside", "module.c"), "-o", file)
        return file

    def use_pkg_config(self):
        pkg_config = self.need("pkg-config")
        env = script.environment(
            PKG_CONFIG_PATH=self.there(self.libdir, "pkgconfig"), PKG_CONFIG_LIBDIR=self.folder)
        flags = self.run_well(pkg_config, "--cflags", "--libs", "tenon", env=env).split()
        folder = self.run_well(pkg_config, "--variable=moduledir", "tenon", env=env).strip()
        self.assertEqual(os.path.realpath(folder), self.there(self.libdir, "tenon"))
        program = self.place("by-pkg-config")
        self.run_well(
            script.build.compiler, *self.flags, "-std=c11", self.place("outside", "program.c"),
            *flags, "-o", program)
        env = script.environment(LD_LIBRARY_PATH=self.there(self.libdir))
        self.check_listing(self.run_well(program, env=env, cwd="/"))

    def use_cmake(self, folder):
        self.run_well(
            script.build.cmake, "-S", self.place("outside"), "-B", folder,
            "-DCMAKE_PREFIX_PATH=" + self.prefix, "-DCMAKE_C_COMPILER=" + script.build.compiler,
            "-DCMAKE_C_FLAGS=" + " ".join(self.flags))
        self.run_well(script.build.cmake, "--build", folder)
        self.check_listing(self.run_well(os.path.join(folder, "program"), cwd="/"))
        found = script.read_text(folder, "module_dir")
        self.assertEqual(os.path.realpath(found), self.there(self.libdir, "tenon"))

    def test_the_files(self):
        files = tree(self.prefix)
        modules = [n for n in os.listdir(script.build.modules) if n.startswith("tenon-")]
        headers = ["include/" + name for name in tree(script.source("include"))]
        for name in [
            "bin/tenon", f"{self.libdir}/libtenon.so", f"{self.libdir}/libtenon.so.0",
            f"{self.libdir}/pkgconfig/tenon.pc", f"{self.libdir}/cmake/Tenon/TenonConfig.cmake",
            f"{self.libdir}/cmake/Tenon/TenonConfigVersion.cmake",
            *[f"{self.libdir}/tenon/{n}" for n in modules], *headers,
        ]:
            self.assertIn(name, files)
        self.assertIn("tenon-probe", modules)
        self.assertEqual([name for name in files if name.startswith("include/")], headers)

    def test_links_and_pictures_of_the_pages(self):
        pages = [name for name in tree(self.prefix) if name.endswith(".md")]
        self.assertIn("README.md", map(os.path.basename, pages))
        for page in pages:
            prose = re.sub(r"^```.*?^```", "", script.read_text(self.there(page)), flags=re.M | re.S)
            for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)|<img src=\"([^\"]+)\"", prose):
                target = "".join(target)
                if "://" not in target:
                    path = os.path.join(self.there(os.path.dirname(page)), target)
                    self.assertTrue(os.path.exists(path), f"{page}: {target} is not installed")

    def test_no_file_knows_where_it_was_built(self):
        if not script.build.is_release:
            self.skipTest("debug information names the folders it was made in")
        for name in tree(self.prefix):
            with open(self.there(name), "rb") as file:
                data = file.read()
            for folder in (script.build.folder, script.build.source, self.folder):
                self.assertNotIn(os.fsencode(folder), data, name)

    def test_destdir(self):
        self.run_well(
            script.build.cmake, "--install", script.build.folder, "--prefix", "/opt/tenon",
            env=script.environment(DESTDIR=self.place("stage")))
        self.assertEqual(os.listdir(self.place("stage")), ["opt"])
        self.assertEqual(tree(self.place("stage", "opt", "tenon")), tree(self.prefix))
        shutil.rmtree(self.prefix)
        os.rename(self.place("stage", "opt", "tenon"), self.prefix)
        self.assertEqual(self.ask_modules()["ref"]["stage"], "ready")

    def test_a_program_through_pkg_config(self):
        self.use_pkg_config()

    def test_a_program_through_cmake(self):
        self.use_cmake(self.place("by-cmake"))

    def test_cmake_refuses_another_minor(self):
        done = script.run(
            script.build.cmake, "-S", self.place("outside"), "-B", self.place("refused"),
            "-DCMAKE_PREFIX_PATH=" + self.prefix, "-DCMAKE_C_COMPILER=" + script.build.compiler,
            "-DWANTED=0.0")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("TenonConfig.cmake, version: 0.1", done.stderr)

    def test_a_module_from_the_headers_alone(self):
        self.build_module()
        row = self.ask_modules(TENON_MODULE_PATH=self.place("modules"))["outside"]
        self.assertEqual((row["stage"], row["status"], row["devices"]), ("ready", "ok", 1), row)

    def test_a_module_beside_those_that_ship(self):
        shutil.copy(self.build_module(), self.there(self.libdir, "tenon"))
        row = self.ask_modules()["outside"]
        self.assertEqual((row["stage"], row["origin"]), ("ready", "module folder"), row)

    def test_the_tree_can_be_moved(self):
        os.mkdir(self.place("elsewhere"))
        os.rename(self.prefix, self.place("elsewhere", "moved"))
        self.prefix = self.place("elsewhere", "moved")
        self.build_module()
        rows = self.ask_modules(TENON_MODULE_PATH=self.place("modules"))
        self.assertEqual(rows["outside"]["stage"], "ready", rows["outside"])
        self.run_well(self.there("bin", "tenon"), "doctor", "--quick")
        self.run_well(self.there("bin", "tenon"), "check", "matmul:f32:m=8,n=8,k=8", "--all-kernels")
        self.use_pkg_config()
        self.use_cmake(self.place("by-cmake"))


if __name__ == "__main__":
    script.main()
