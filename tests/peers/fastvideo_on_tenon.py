"""A plugin for pytest: FastVideo's code and tests import Tenon's platforms as fastvideo.platforms."""
import importlib
import sys

for part in ("", ".interface", ".cpu", ".cuda", ".rocm", ".mps", ".npu"):
    sys.modules["fastvideo.platforms" + part] = importlib.import_module("tenon.platforms" + part)

import fastvideo  # noqa: E402  # after its platforms were replaced

fastvideo.platforms = sys.modules["fastvideo.platforms"]
