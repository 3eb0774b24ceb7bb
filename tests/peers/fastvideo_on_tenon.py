"""A plugin for pytest: FastVideo's code and tests import Tenon's platforms as fastvideo.platforms."""
import ctypes
import importlib
import sys

for part in ("", ".interface", ".cpu", ".cuda", ".rocm", ".mps", ".npu"):
    sys.modules["fastvideo.platforms" + part] = importlib.import_module("tenon.platforms" + part)

# platforms/test_unified_memory.py imports the one and replaces the other, for two of its eight tests.
cuda = sys.modules["fastvideo.platforms.cuda"]
cuda._CU_DEVICE_ATTRIBUTE_INTEGRATED, cuda.ctypes = 18, ctypes

import fastvideo  # noqa: E402  # after its platforms were replaced

fastvideo.platforms = sys.modules["fastvideo.platforms"]
