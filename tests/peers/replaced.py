"""Runs a package's own tests as they are, then with Tenon's functions in their place, and compares: a test that passes with
the package's functions must pass with Tenon's, unless it is excused. What einsum_tests.py and scipy_fft_tests.py share."""
import collections
import importlib.util
import os
import subprocess
import sys
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))

# The plugin that replaces functions, the package, its tests, options of pytest.
Peer = collections.namedtuple("Peer", "plugin package tests options")


def run_tests(scratch, name, tests, options, **variables):
    """The names of the tests that passed, which begin with the package's name wherever this repository is."""
    results, log = (os.path.join(scratch, name + end) for end in (".xml", ".log"))
    site = tests.partition("site-packages")[0] + "site-packages"
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, "--junitxml", results,
               "--rootdir", site, "--continue-on-collection-errors", tests]
    with open(log, "w", encoding="utf-8") as to:
        subprocess.run(command, env={**os.environ, **variables}, cwd=scratch, stdout=to, stderr=to, check=False)
    if not os.path.exists(results):
        with open(log, encoding="utf-8") as written:
            raise SystemExit(written.read()[-4000:])
    cases = xml.etree.ElementTree.parse(results).getroot().iter("testcase")
    return {f'{case.get("classname")}.{case.get("name")}' for case in cases if case.get("classname") and len(case) == 0}


def compare(build, scratch, peer, excused_tests):
    """Runs both; returns the numbers of tests that passed, failed, and were excused."""
    plugin, package = peer.plugin, peer.package
    tests = os.path.join(os.path.dirname(importlib.util.find_spec(package).origin), peer.tests)
    before = run_tests(scratch, package, tests, peer.options)
    ours = os.pathsep.join((os.path.join(SOURCE, "bindings", "python"), HERE))
    after = run_tests(scratch, plugin, tests, ("-p", plugin, *peer.options), PYTHONPATH=ours,
                      TENON_LIBRARY=os.path.join(build, "libtenon.so.0"))
    reasons = {start: why for start, why in excused_tests.items() if start.startswith(package)}
    excused = {name for name in before if any(name.startswith(start) for start in reasons)} - after
    lost = sorted(before - after - excused)
    print(f"{package}: with its own functions {len(before)} tests pass, with Tenon's {len(after)}")
    for start, why in reasons.items():
        print(f"skipped: {sum(name.startswith(start) for name in excused)} of {start}: {why}")
    stale = [start for start, why in reasons.items()
             if not why.startswith("at times: ") and not any(name.startswith(start) for name in excused)]
    for name in lost:
        print(f"passes with {package}'s functions, fails with Tenon's: {name}")
    for start in stale:
        print(f"nothing of {start} fails with Tenon's functions: remove it from the list")
    return len(after), len(lost) + len(stale) + (not before), len(excused)


def main(peers, excused_tests):
    """With the build and a folder as the program's arguments. `excused_tests`: the start of tests' names, and why they fail,
    always or "at times: ". The last line is "counts: PASSED FAILED SKIPPED"."""
    build, scratch = (os.path.abspath(path) for path in sys.argv[1:3])
    counts = [compare(build, scratch, peer, excused_tests) for peer in peers]
    passed, failed, excused = (sum(column) for column in zip(*counts))
    print(f"counts: {passed} {failed} {excused}")
    return 1 if failed else 0
