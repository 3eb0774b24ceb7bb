#!/usr/bin/env python3
"""Runs the tests of opt_einsum and those of NumPy's einsum, as they are, then with Tenon's functions in their place
(opt_einsum_on_tenon.py, numpy_einsum_on_tenon.py), and compares:

    python3 tests/peers/einsum_tests.py BUILD SCRATCH

in a Python that has both packages and pytest; scripts/peers makes one. A test that passes with the package's own functions
must pass with Tenon's, unless EXCUSED lists it. The last line is "counts: PASSED FAILED SKIPPED".
"""
import importlib.util
import os
import subprocess
import sys
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
# The plugin, the package, and its tests.
PEERS = (("opt_einsum_on_tenon", "opt_einsum", "tests"),
         ("numpy_einsum_on_tenon", "numpy", os.path.join("_core", "tests", "test_einsum.py")))
# Tests that cannot pass with Tenon's functions: the start of their names, and why.
NUMPY, OPT_EINSUM = "numpy._core.tests.test_einsum.TestEinsum.", "opt_einsum.tests."
EXCUSED = {
    NUMPY + "test_einsum_object_errors": "arrays of Python objects, which Tenon has no dtype for",
    NUMPY + "test_einsum_sums_object": "arrays of Python objects, which Tenon has no dtype for",
    NUMPY + "test_object_loop": "arrays of Python objects, which Tenon has no dtype for",
    NUMPY + "test_einsum_sums_longdouble": "longdouble, which Tenon has no dtype for",
    NUMPY + "test_einsum_sums_clongdouble": "complex longdouble, which Tenon has no dtype for",
    NUMPY + "test_different_paths[g]": "longdouble, which Tenon has no dtype for",
    NUMPY + "test_different_paths[G]": "complex longdouble, which Tenon has no dtype for",
    NUMPY + "test_einsum_views": "expects views of the operand where nothing is summed; Tenon's results have memory of their own",
    NUMPY + "test_einsum_0d_out": "expects f64 results in an out of i64 although casting is 'safe'",
    NUMPY + "test_subscript_range": "expects integer labels from 52 on to be refused; Tenon has 50001",
    NUMPY + "test_output_order": "expects a result whose memory order follows the operands; Tenon's is C without order='F' or 'A'",
    OPT_EINSUM + "test_backends.test_object_arrays_backend": "arrays of Python objects, which Tenon has no dtype for",
    OPT_EINSUM + "test_paths.test_dp_edge_cases_dimension_1": "counts labels of size 1 in the steps of a path whose steps all cost 1",
    OPT_EINSUM + "test_paths.test_dp_errors_when_no_contractions_found":
        "expects dp to search within the limit; a path of Tenon's ends in one step at the first result beyond it",
    OPT_EINSUM + "test_paths.test_optimal_edge_cases":
        "expects a search within the limit; a path of Tenon's ends in one step at the first result beyond it",
    OPT_EINSUM + "test_sharing.test_partial_sharing": "counts the results that two equations share along opt_einsum's own paths",
}


def run_tests(scratch, name, tests, plugin, **variables):
    """The names of the tests that passed."""
    results, log = (os.path.join(scratch, name + end) for end in (".xml", ".log"))
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--noconftest", *plugin, "--junitxml", results,
               "--continue-on-collection-errors", tests]
    with open(log, "w", encoding="utf-8") as to:
        subprocess.run(command, env={**os.environ, **variables}, cwd=scratch, stdout=to, stderr=to, check=False)
    if not os.path.exists(results):
        with open(log, encoding="utf-8") as written:
            raise SystemExit(written.read()[-4000:])
    cases = xml.etree.ElementTree.parse(results).getroot().iter("testcase")
    return {f'{name.partition("site-packages.")[2] or name}.{case.get("name")}'
            for case in cases if (name := case.get("classname")) and len(case) == 0}


def compare(build, scratch, plugin, package, tests):
    """Runs both; returns the numbers of tests that passed, failed, and were excused."""
    tests = os.path.join(os.path.dirname(importlib.util.find_spec(package).origin), tests)
    before = run_tests(scratch, package, tests, ())
    ours = os.pathsep.join((os.path.join(SOURCE, "bindings", "python"), HERE))
    after = run_tests(scratch, plugin, tests, ("-p", plugin), PYTHONPATH=ours,
                      TENON_LIBRARY=os.path.join(build, "libtenon.so.0"))
    reasons = {start: why for start, why in EXCUSED.items() if start.startswith(package)}
    excused = {name for name in before if any(name.startswith(start) for start in reasons)} - after
    lost = sorted(before - after - excused)
    print(f"{package}: with its own functions {len(before)} tests pass, with Tenon's {len(after)}")
    for start, why in reasons.items():
        print(f"skipped: {sum(name.startswith(start) for name in excused)} of {start}: {why}")
    stale = [start for start in reasons if not any(name.startswith(start) for name in excused)]
    for name in lost:
        print(f"passes with {package}'s functions, fails with Tenon's: {name}")
    for start in stale:
        print(f"nothing of {start} fails with Tenon's functions: remove it from EXCUSED")
    return len(after), len(lost) + len(stale) + (not before), len(excused)


def main():
    build, scratch = (os.path.abspath(path) for path in sys.argv[1:3])
    counts = [compare(build, scratch, *peer) for peer in PEERS]
    passed, failed, excused = (sum(column) for column in zip(*counts))
    print(f"counts: {passed} {failed} {excused}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
