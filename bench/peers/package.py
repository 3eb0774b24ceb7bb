"""Importing this makes `import tenon` give the package of this repository, with the library of the build folder that the
first argument names, in a Python that has NumPy."""

import os
import sys

if len(sys.argv) < 2:
    raise SystemExit(f"usage: {sys.argv[0]} BUILD")
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [os.path.join(HERE, "..", "..", "tests"), os.path.join(HERE, "..", "..", "bindings", "python")]
os.environ["TENON_LIBRARY"] = os.path.join(os.path.abspath(sys.argv[1]), "libtenon.so")
import harness  # noqa: E402  # after its folder was added

if harness.import_numpy() is None:
    print("lacking: NumPy (Debian: python3-numpy); not reached: nothing to call with")
    raise SystemExit
