"""NumPy's own tests of numpy.fft, which its package has, with tenon.fft in the place of its functions."""

import importlib.util
import os
import subprocess
import sys
import xml.etree.ElementTree

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
import script

numpy = harness.import_numpy()

# Tests that cannot pass: the start of their names, and why.
EXCLUDED = {
    "test_pocketfft.TestFFT1D.test_identity_long_short[longdouble]": "Tenon has no longdouble",
    "test_pocketfft.TestFFT1D.test_identity_long_short_reversed[longdouble]": "Tenon has no longdouble",
    "test_pocketfft.TestFFT1D.test_fft_inplace_out": "out that shares a part of the memory of a is refused",
    "test_pocketfft.TestFFT1D.test_fft_bad_out": "reads NumPy's messages; Tenon's differ",
    "test_pocketfft.TestFFT1D.test_ifft[": "reads NumPy's message about no points; Tenon's differs",
    "test_pocketfft.TestFFT1D.test_fftn_out_and_s_interaction": "reads NumPy's message about shapes; Tenon's differs",
    "test_pocketfft.TestFFT1D.test_s_axes_none": "expects a warning that NumPy will drop s without axes",
    "test_pocketfft.TestFFT1D.test_s_contains_none": "expects a warning that NumPy will drop None in s",
}
# Fewer mean that tests were not collected.
LEAST = 60


class Case(script.Case):
    def setUp(self):
        super().setUp()
        if numpy is None:
            self.skipTest("NumPy is not here (Debian: python3-numpy)")
        if int(numpy.__version__.split(".")[0]) < 2:
            self.skipTest(f"NumPy {numpy.__version__} has other dtypes of results than NumPy 2, whose Tenon's are")
        if script.build.sanitizers:
            self.skipTest("a library with a sanitizer cannot be opened by a Python without")
        if not importlib.util.find_spec("pytest"):
            self.skipTest("pytest is not here (Debian: python3-pytest)")
        self.tests = os.path.join(os.path.dirname(numpy.__file__), "fft", "tests")
        if not os.path.isdir(self.tests):
            self.skipTest("this NumPy was installed without its tests")

    def run_tests(self):
        """{name: passed}"""
        results = os.path.join(self.place("results"), "results.xml")
        os.makedirs(os.path.dirname(results), exist_ok=True)
        python = os.pathsep.join((script.source("bindings", "python"), os.path.dirname(os.path.abspath(__file__))))
        done = subprocess.run(
            [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--noconftest", "-p",
             "numpy_fft_on_tenon", "--junitxml", results, self.tests],
            env=script.environment(PYTHONPATH=python, TENON_LIBRARY=os.path.join(script.build.folder, "libtenon.so.0")),
            cwd=os.path.dirname(results), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.assertTrue(os.path.exists(results), done.stdout)
        cases = xml.etree.ElementTree.parse(results).getroot().iter("testcase")
        return {f'{case.get("classname").rpartition("tests.")[2]}.{case.get("name")}': len(case) == 0 for case in cases}

    def test_numpys_tests_pass_but_for_the_exclusions(self):
        found = self.run_tests()
        excluded = {name for name in found for start in EXCLUDED if name.startswith(start)}
        failed = sorted(name for name, passed in found.items() if not passed and name not in excluded)
        print(f"{sum(found.values())} of {len(found)} of NumPy's tests pass")
        self.assertEqual(failed, [])
        self.assertGreater(sum(found.values()), LEAST)
        for start, why in EXCLUDED.items():
            names = [name for name in found if name.startswith(start)]
            self.assertFalse(names and all(found[name] for name in names), f"{start} passes: {why}")


if __name__ == "__main__":
    script.main()
