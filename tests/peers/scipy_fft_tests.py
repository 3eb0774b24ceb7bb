#!/usr/bin/env python3
"""Runs SciPy's tests of scipy.fft, as they are, then with Tenon as its backend (scipy_fft_on_tenon.py), and compares:

    python3 tests/peers/scipy_fft_tests.py BUILD SCRATCH

in a Python that has SciPy and pytest; scripts/peers makes one. Transforms of longdouble, dct, dst and fht are SciPy's in both
runs: Tenon's backend leaves them to it.
"""
import sys

import replaced

PEERS = (replaced.Peer("scipy_fft_on_tenon", "scipy", "fft", ()),)
# Tests that cannot pass with Tenon's functions: the start of their names, and why.
BASIC, MESSAGE = "scipy.fft._pocketfft.tests.test_basic.", "reads SciPy's message; Tenon's differs"
NEAR_ZERO = "compares numbers that are nearly 0 by the distance of doubles"
EXCUSED = {
    BASIC + "TestRFFTDouble.test_complex_input": MESSAGE,
    BASIC + "TestRFFTSingle.test_complex_input": MESSAGE,
    BASIC + "TestFftn.test_shape_argument_more": MESSAGE,
    BASIC + "TestFftn.test_invalid_sizes": MESSAGE,
    BASIC + "TestIfftn.test_invalid_sizes": MESSAGE,
    BASIC + "TestRfftn.test_invalid_sizes": MESSAGE,
    BASIC + "TestRfftn.test_no_axes": MESSAGE,
    BASIC + "TestRfftn.test_complex_input": MESSAGE,
    BASIC + "test_invalid_norm": MESSAGE,
    "scipy.fft.tests.test_multithreading.test_invalid_workers": MESSAGE,
    BASIC + "TestFftnSingle.test_definition": NEAR_ZERO,
    BASIC + "TestIfftn.test_definition[float64": "at times: " + NEAR_ZERO,
    "scipy.fft.tests.test_basic.test_multiprocess": "its new processes have no Tenon, and it " + NEAR_ZERO,
}

if __name__ == "__main__":
    sys.exit(replaced.main(PEERS, EXCUSED))
