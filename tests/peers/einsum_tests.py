#!/usr/bin/env python3
"""Runs the tests of opt_einsum and those of NumPy's einsum, as they are, then with Tenon's functions in their place
(opt_einsum_on_tenon.py, numpy_einsum_on_tenon.py), and compares:

    python3 tests/peers/einsum_tests.py BUILD SCRATCH

in a Python that has both packages and pytest; scripts/peers makes one.
"""
import os
import sys

import replaced

PEERS = (replaced.Peer("opt_einsum_on_tenon", "opt_einsum", "tests", ("--noconftest",)),
         replaced.Peer("numpy_einsum_on_tenon", "numpy", os.path.join("_core", "tests", "test_einsum.py"), ("--noconftest",)))
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
}


if __name__ == "__main__":
    sys.exit(replaced.main(PEERS, EXCUSED))
