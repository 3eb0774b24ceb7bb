#!/usr/bin/env python3
"""Runs every snippet of the pages: C is compiled, programs and shell lines are run, sample output is
compared with what the command prints now. A snippet that nobody here knows how to run is a failure."""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FULL = os.environ.get("TN_TEST_FULL") == "1"  # `make test-full` sets it
FENCE = re.compile(r"^```(\S*)[ ]*(.*?)\n(.*?)^```$", re.M | re.S)
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
PRELUDE = "".join(f"#include <tenon/{name}.h>\n" for name in (
    "tenon", "module/platform", "module/library", "module/kernel", "module/language",
    "module/communicator")) + "#include <inttypes.h>\n"


class Page:
    def __init__(self, source, build, release, folder):
        self.source, self.build, self.release, self.folder = source, build, release, folder
        self.include = f"-I{source / 'include'}"
        self.failures = []
        self.ran = self.skipped = 0

    def fail(self, where, text):
        self.failures.append(f"{where}: {text}")

    def run(self, where, command, **options):
        done = subprocess.run(command, cwd=self.folder, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=1500, **options)
        self.ran += 1
        if done.returncode != 0:
            self.fail(where, f"{command} gave {done.returncode}:\n{done.stdout[-3000:]}")
        return done.stdout

    def compile_fragment(self, where, text, compiler="cc", standard="c11", suffix=".c", prelude=""):
        if not shutil.which(compiler):
            print(f"{where}: no {compiler} here")
            self.skipped += 1
            return
        path = self.folder / ("fragment" + suffix)
        path.write_text(PRELUDE + prelude + text)
        self.run(where, [compiler, *WARNINGS, f"-std={standard}", "-Wno-unused-function",
                         "-Wno-unused-variable", "-Wno-unused-const-variable", "-fsyntax-only",
                         self.include, str(path)])

    def run_program(self, where, name):
        compiler, standard = ("c++", "c++17") if name.endswith(".cc") else ("cc", "c11")
        if not self.release or not shutil.which(compiler):
            self.skipped += 1
            return
        self.run(where, [compiler, f"-std={standard}", *WARNINGS, self.include, name, f"-L{self.build}", "-ltenon",
                         f"-Wl,-rpath,{self.build}", "-o", "program"])
        output = self.run(where, ["./program"])
        if "cpu:0" not in output:
            self.fail(where, f"the program does not show the cpu:\n{output}")

    def run_module(self, where, name):
        if not self.release:
            self.skipped += 1
            return
        output = name.replace(".c", ".so")
        folder = self.folder / "module"
        folder.mkdir()
        self.run(where, ["cc", "-std=c11", *WARNINGS, "-shared", "-fPIC", "-fvisibility=hidden", self.include,
                         name, "-o", str(folder / output)])
        text = self.run(where, [str(self.build / "tenon"), "modules", "--json"],
                        env=dict(os.environ, TENON_MODULE_PATH=str(folder)))
        rows = [m for m in json.loads(text)["modules"] if m["path"] == str(folder / output)]
        if not rows or rows[0]["stage"] != "ready" or rows[0]["devices"] != 1:
            self.fail(where, f"the module does not become ready with one device: {rows}")
        elif rows[0]["message"] not in (self.source / "docs/modules.md").read_text():
            self.fail(where, f"the page does not have the message \"{rows[0]['message']}\"")

    def check_make_lines(self, where, text):
        """What `make test` itself runs under: looked up, not run again."""
        for line in text.splitlines():
            self.run(where, ["make", "-C", str(self.source), "-n", line.split()[1]],
                     env=dict(os.environ, TENON_NO_SETUP="1"))

    def check_example(self, where, text, path):
        """A part of a program that a suite of its own builds and runs."""
        self.ran += 1
        if text not in path.read_text():
            self.fail(where, f"not a part of {path.name}")

    def check_dependency(self, where, text):
        """A crate that a Cargo.toml needs lies in the tree."""
        for path in re.findall(r'path = "tenon/([^"]+)"', text):
            self.ran += 1
            if not (self.source / path / "Cargo.toml").exists():
                self.fail(where, f"no crate in {path}")

    def check_presets(self, where, text):
        presets = json.loads((self.source / "CMakePresets.json").read_text())
        names = {p["name"]: p for p in presets["configurePresets"]}
        for name in re.findall(r"--preset (\S+)", text):
            if name not in names:
                self.fail(where, f"no preset {name}")
        for name in re.findall(r"--test-dir (\S+)", text):
            if not any(p.get("binaryDir", "").endswith("/" + name) for p in names.values()):
                self.fail(where, f"no preset builds in {name}")
        self.ran += 1

    def run_shell(self, where, text):
        """As a user would, with a home of its own and the build that exists."""
        if not self.release:
            self.skipped += 1
            return
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        script = text.replace("make install", f"make -C '{self.source}' install PACKAGE=release")
        if not FULL:  # what `make install` runs once the product is built; a report that times no kernel
            script = re.sub(r"make install PREFIX=(\S+)", rf"cmake --install '{self.build}' --prefix \1", text)
            script = re.sub(r"(?m)(?<= )doctor(?= |$)", "doctor --quick", script)
        prefix = (f"export PATH={home}/.local/bin:$PATH "
                  f"PKG_CONFIG_PATH={home}/.local/lib/pkgconfig LD_LIBRARY_PATH={home}/.local/lib\n")
        self.run(where, ["sh", "-euc", prefix + script],
                 env=dict(os.environ, HOME=str(home), TENON_NO_SETUP="1"))

    def run_config(self, where, text):
        """Every line of a configuration file is taken, each as the file's."""
        path = self.folder / "config"
        path.write_text(text)
        env = {k: v for k, v in os.environ.items() if not k.startswith("TENON_")}
        env["TENON_CONFIG"] = str(path)
        shown = self.run(where, [str(self.build / "tenon"), "settings"], env=env)
        lines = set(re.findall(rf"set by the file: {path}:(\d+)", " ".join(shown.split())))
        wanted = {str(i) for i, line in enumerate(text.splitlines(), 1) if re.match(r"[\w.]+ *=", line)}
        if not wanted or lines != wanted or "tenon: settings: " in shown:
            self.fail(where, f"lines {sorted(wanted ^ lines)} are not followed:\n{shown[:2000]}")

    def compare_output(self, where, text):
        """The sample against the command. What a machine has is its own affair; the labels of the lines and
        their order are everyone's."""
        if not self.release:
            self.skipped += 1
            return
        env = {k: v for k, v in os.environ.items() if not k.startswith("TENON_")}
        quick = [] if FULL else ["--set", "rules=forbid:platform:cpu"]  # no kernel is timed then
        now = self.run(where, [str(self.build / "tenon"), "doctor", *quick], env=env)

        def labels(s):
            return [label for label in re.findall(r"(?m)^(\w+)", s) if FULL or label not in ("kernels", "refused")]
        if labels(text) != labels(now):
            self.fail(where, f"the sample's labels are not those printed now:\n{now}")

    def snippet(self, where, language, attributes, text):
        if attributes.startswith("tutorial"):
            return  # tutorial.py follows them
        name = re.search(r"file=(\S+)", attributes)
        if language == "c" and name:
            (self.folder / name[1]).write_text(text)
            kind = self.run_module if name[1].startswith("tenon-") else self.run_program
            kind(where, name[1])
        elif language == "c":
            self.compile_fragment(where, text)
        elif language == "cpp" and name:
            (self.folder / name[1]).write_text(text)
            self.run_program(where, name[1])
        elif language == "cpp":
            self.compile_fragment(where, text, "c++", "c++17", ".cc", "#include <tenon/tenon.hpp>\n#include <vector>\n")
        elif language == "sh" and all(re.match(r"make \w", l) for l in text.splitlines()):
            self.check_make_lines(where, text)
        elif language == "sh" and "--preset" in text:
            self.check_presets(where, text)
        elif language == "sh":
            self.run_shell(where, text)
        elif language == "conf":
            self.run_config(where, text)
        elif text.startswith("verdict: "):
            self.compare_output(where, text)
        elif language == "python":
            pass  # tests/python/test_page.py runs them
        elif language == "rust":
            pass  # tests/rust/crate.py runs them, as `cargo test` does
        elif language == "zig":
            self.check_example(where, text, self.source / "examples/zig/product.zig")
        elif language == "toml":
            self.check_dependency(where, text)
        elif text.startswith("$ "):
            pass  # dispatch.py runs them again and compares
        elif not re.search(r"[─│]", text):  # drawings are drawings
            self.fail(where, "nobody knows how to run this snippet")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--release", action="store_true", help="the build has no sanitizer")
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="tenon-snippets-"))
    page = Page(args.source.resolve(), args.build.resolve(), args.release, folder)
    try:
        for path in [args.source / "README.md", args.source / "CONTRIBUTING.md",
                     *sorted((args.source / "docs").glob("*.md"))]:
            text = path.read_text()
            for match in FENCE.finditer(text):
                line = text[:match.start()].count("\n") + 1
                page.snippet(f"{path.name}:{line}", *match.groups())
    finally:
        shutil.rmtree(folder)
    for failure in page.failures:
        print("FAILED", failure)
    print(f"{page.ran} commands run, {page.skipped} snippets left to the release build, "
          f"{len(page.failures)} failed")
    return 1 if page.failures or page.ran == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
