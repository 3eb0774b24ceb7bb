#!/usr/bin/env python3
"""Runs FastVideo's own tests with its platforms, then with Tenon's (fastvideo_on_tenon.py), and compares:

    python3 tests/peers/fastvideo_tests.py BUILD SCRATCH

in a Python that has FastVideo; scripts/peers makes one. A test that passes with FastVideo's platforms must pass with
Tenon's, unless UPSTREAM lists it. The last line is "counts: PASSED FAILED SKIPPED" of the run with Tenon's platforms.
"""
import importlib.util
import os
import subprocess
import sys
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
TESTS = os.path.join(os.path.dirname(importlib.util.find_spec("fastvideo").origin), "tests")
# Tests that use platforms and need neither weights nor packages that only GPUs have.
SUITES = ("platforms", "attention", "api/test_attention_selector_resolution.py",
          "api/test_attn_qat_infer_capability_gate.py", "stages/test_kandinsky5_attention_backend_guard.py",
          "pipelines/test_direct_pipeline_unified_memory.py", "loader/test_text_encoder_unified_memory_offload.py",
          "worker/test_gpu_worker.py", "ops/quantization/test_nvfp4_ltx2_wiring.py")
# Tests that cannot pass with Tenon's platforms: the start of their names, and why.
UPSTREAM = {
    "platforms.test_unified_memory.test_cuda_follows_driver_integrated_attribute":
        "replaces the driver calls that FastVideo's class of CUDA makes, for a device that is not here",
}


def run_tests(scratch, name, plugin, **variables):
    """The names of the tests that passed, without "AttentionBackendEnum.", which only the names of FastVideo's enum have."""
    results = os.path.join(scratch, name + ".xml")
    log = os.path.join(scratch, name + ".log")
    site = os.path.dirname(os.path.dirname(TESTS))  # names begin with fastvideo.tests wherever this repository is
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin, "--junitxml", results,
               "--rootdir", site, "--continue-on-collection-errors", *(os.path.join(TESTS, suite) for suite in SUITES)]
    with open(log, "w", encoding="utf-8") as to:
        subprocess.run(command, env={**os.environ, **variables}, cwd=scratch, stdout=to, stderr=to, check=False)
    if not os.path.exists(results):
        with open(log, encoding="utf-8") as written:
            raise SystemExit(written.read()[-4000:])
    cases = xml.etree.ElementTree.parse(results).getroot().iter("testcase")
    return {f'{case.get("classname").partition("fastvideo.tests.")[2]}.{case.get("name").replace("AttentionBackendEnum.", "")}'
            for case in cases if case.get("classname") and len(case) == 0}


def main():
    build, scratch = (os.path.abspath(path) for path in sys.argv[1:3])
    before = run_tests(scratch, "upstream", ())
    ours = os.pathsep.join((os.path.join(SOURCE, "bindings", "python"), HERE))
    after = run_tests(scratch, "tenon", ("-p", "fastvideo_on_tenon"), PYTHONPATH=ours,
                      TENON_LIBRARY=os.path.join(build, "libtenon.so.0"))
    excused = {name for name in before if any(name.startswith(start) for start in UPSTREAM)} - after
    lost = sorted(before - after - excused)
    print(f"with FastVideo's platforms {len(before)} tests pass, with Tenon's {len(after)}, "
          f"{len(after - before)} of these only with Tenon's")
    for start, why in UPSTREAM.items():
        print(f"skipped: {sum(name.startswith(start) for name in excused)} of {start}: {why}")
    stale = [start for start in UPSTREAM if not any(name.startswith(start) for name in excused)]
    for name in lost:
        print(f"passes with FastVideo's platforms, fails with Tenon's: {name}")
    for start in stale:
        print(f"nothing of {start} fails with Tenon's platforms: remove it from UPSTREAM")
    print(f"counts: {len(after)} {len(lost) + len(stale) + (not before)} {len(excused)}")
    return 1 if lost or stale or not before else 0


if __name__ == "__main__":
    sys.exit(main())
