"""What the suites in Python share. Each is a unittest module, run on a built folder:

    python3 tests/FOLDER/NAME.py BUILD [CASE.TEST ...]

What else it needs to know stands in the folder's CMakeCache.txt. The standard library is enough.
Every skip says why on a line that begins with "skipped: "; a suite that skipped everything exits
with 77.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest


class Build:
    """The folder under test, once `main` has read it."""

    sanitizers = ()

    def read(self, folder):
        self.folder = os.path.realpath(folder)
        self.values = {}
        with open(os.path.join(self.folder, "CMakeCache.txt"), encoding="utf-8") as file:
            for line in file:
                match = re.match(r"([A-Za-z0-9_.-]+):[A-Z]+=(.*)", line)
                if match:
                    self.values[match.group(1)] = match.group(2)
        self.source = self.values["CMAKE_HOME_DIRECTORY"]
        self.compiler = self.values["CMAKE_C_COMPILER"]
        self.cmake = self.values["CMAKE_COMMAND"]
        self.sanitizers = [s for s in self.values.get("TENON_SANITIZE", "").split(";") if s]
        self.is_release = (
            self.values["CMAKE_BUILD_TYPE"] == "Release"
            and not self.sanitizers
            and self.values.get("TENON_COVERAGE", "OFF") != "ON"
        )
        self.library = os.path.join(self.folder, "libtenon.so")
        self.modules = os.path.join(self.folder, "backends")
        self.tenon = os.path.join(self.folder, "tenon")


build = Build()

# `make test-full` sets this: suites that sample their cases in `make test` then run all of them.
FULL = os.environ.get("TN_TEST_FULL") == "1"

# After this many seconds a command counts as one that hangs. It is less than the limit of a suite in
# tests/CMakeLists.txt, so that the report names the command; a slow or busy machine must never reach it.
HANG_SECONDS = 1500

# Seconds of `tenon conformance --patience` for a case that must pass; likewise.
PATIENCE = "600"


def source(*parts):
    return os.path.join(build.source, *parts)


def read_text(*parts):
    with open(os.path.join(*parts), encoding="utf-8") as file:
        return file.read()


def write_text(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def environment(**changes):
    """This process's, less what is Tenon's, with `changes`; None removes a variable."""
    values = {k: v for k, v in os.environ.items() if not k.startswith("TENON_")}
    if "TENON_CACHE" in os.environ:
        values["TENON_CACHE"] = os.environ["TENON_CACHE"]
    values["TENON_CONFIG"] = ""  # nobody's own file
    values.pop("DESTDIR", None)
    values["LC_ALL"] = "C"
    for name, value in changes.items():
        values.pop(name, None)
        if value is not None:
            values[name] = value
    return values


def run(*command, env=None, **options):
    """Runs to the end whatever the exit code; what was written is text. A command that hangs is ended after
    `timeout` or HANG_SECONDS."""
    options.setdefault("timeout", HANG_SECONDS)
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run(
        command, env=environment() if env is None else env, check=False, text=True, errors="replace",
        **options)


def base_isa():
    """The instruction set that every processor of this architecture has, as kernels are named for it."""
    return "neon" if os.uname().machine in ("aarch64", "arm64") else "plain"


def find_programs(*names):
    """Those there are, each once, however many names it has."""
    found = {}
    for name in names:
        path = name and shutil.which(name)
        if path:
            found.setdefault(os.path.realpath(path), path)
    return list(found.values())


def op_problems():
    """Test problems of every operator: a dictionary of lists of (aspect, fields)."""
    done = run(os.path.join(build.folder, "tests", "cli", "op_problems"), env=environment())
    assert done.returncode == 0, done.stderr
    found = {}
    for line in done.stdout.splitlines():
        op, aspect, fields = line.split()
        found.setdefault(op, []).append((aspect, fields))
    return found


class Case(unittest.TestCase):
    """A test with a folder of its own, `self.folder`."""

    maxDiff = None

    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix="tenon-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def place(self, *parts):
        return os.path.join(self.folder, *parts)

    def need(self, program):
        path = shutil.which(program)
        if not path:
            self.skipTest(f"{program} is not here")
        return path

    def run_well(self, *command, **options):
        """Runs a command that must exit with 0; gives what it wrote to stdout."""
        done = run(*command, **options)
        if done.returncode != 0:
            self.fail(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout


class Result(unittest.TextTestResult):
    passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        print(f"skipped: {os.path.basename(sys.argv[0])}: {reason}", flush=True)


def main():
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} BUILD [CASE.TEST ...]")
    build.read(sys.argv[1])
    runner = unittest.TextTestRunner(stream=sys.stdout, resultclass=Result, verbosity=2)
    program = unittest.main(argv=[sys.argv[0], *sys.argv[2:]], testRunner=runner, exit=False)
    result = program.result
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if result.skipped and not result.passed else 0)
