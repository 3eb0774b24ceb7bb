#!/usr/bin/env python3
"""Runs one of the Python package's suites on a build:

    python3 tests/python/run.py BUILD SUITE.py [pytest's options]

with the first Python here that has pytest and NumPy. Every skip says why on a line that begins with
"skipped: "; exit 77 when there is no such Python, or the suite skipped everything.
"""
import os
import shutil
import subprocess
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
NEEDS = "import numpy, pytest"


def pythons():
    """Those there are, the running one first."""
    names = [os.environ.get("TN_TEST_PYTHON"), sys.executable, shutil.which("python3"), "/usr/bin/python3"]
    seen = []
    for name in names:
        if name and os.path.exists(name) and name not in seen:
            seen.append(name)
    return seen


def has_needs(python):
    return subprocess.run([python, "-c", NEEDS], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, check=False).returncode == 0


def main():
    build, suite, *options = sys.argv[1:]
    python = next(filter(has_needs, pythons()), None)
    if python is None:
        print("skipped: no Python here has pytest and NumPy (Debian: python3-pytest python3-numpy)")
        return 77
    env = {k: v for k, v in os.environ.items() if not k.startswith("TENON_") or k == "TENON_CACHE"}
    env["TENON_CONFIG"] = ""
    env["TENON_LIBRARY"] = os.path.join(os.path.abspath(build), "libtenon.so")
    env["PYTHONPATH"] = os.path.join(FOLDER, "..", "..", "bindings", "python")
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    done = subprocess.run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull,
                           "--rootdir", FOLDER, os.path.join(FOLDER, suite), *options],
                          env=env, check=False)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
