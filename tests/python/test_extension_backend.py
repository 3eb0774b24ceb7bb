"""A device of one's own in PyTorch's compiler, with C++ kernels, as PyTorch's tests of extension backends have it: a
scheduling of one's own, and functions that are compiled and run, by a wrapper in Python and by one in C++."""
import os
import pathlib
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not here")
pytest.importorskip("triton", reason="Triton is not here")
if not os.environ.get("TN_TEST_FULL"):
    pytest.skip("compiles C++ for half a minute: TN_TEST_FULL=1", allow_module_level=True)
if not hasattr(torch._C, "_acc"):
    pytest.skip("this PyTorch takes no guard from Python", allow_module_level=True)

MODULE = pathlib.Path(os.environ["TENON_LIBRARY"]).parent / "tests/conformance/modules/tenon-seed-sample.so"
if not MODULE.exists():
    pytest.skip(f"{MODULE} is not built", allow_module_level=True)

PROGRAM = f"""
import torch, tenon
from tenon import device_interface
from tenon._handles import call
from tenon._library import lib
from torch._inductor import config
from torch._inductor.codegen.cpp import CppScheduling
from torch._inductor.scheduler import BaseScheduling
from torch._inductor.utils import run_and_get_code

call(lib.tn_module_file_add, {str(MODULE).encode()!r}, 1)


class Scheduling(BaseScheduling):
    def __init__(self, scheduler):
        super().__init__(scheduler)
        self._cpp = CppScheduling(scheduler)

    def get_backend_features(self, device):
        return self._cpp.get_backend_features(torch.device("cpu"))

    def can_fuse_vertical(self, node1, node2):
        return True

    def can_fuse_horizontal(self, node1, node2):
        return True

    def group_fn(self, sizes):
        return self._cpp.group_fn(sizes)

    def codegen_template(self, template_node, epilogue_nodes, prologue_nodes=()):
        pass

    def codegen_node(self, node):
        self._cpp.codegen_node(node)

    def codegen_sync(self):
        pass

    def flush(self):
        self._cpp.flush()


device_interface.register("sample", scheduling=Scheduling)
x, y, z = (torch.empty(2, 16).fill_(value).to("sample:0") for value in (1, 2, 3))
for cpp_wrapper, mark in ((False, "async_compile.cpp_pybinding"), (True, "inductor_entry_impl")):
    with config.patch(cpp_wrapper=cpp_wrapper):
        torch._dynamo.reset()
        found, code = run_and_get_code(torch.compile(lambda a, b, c: a * b + c), x, y, z)
    assert found.device == torch.device("sample", 0)
    assert found.cpu().tolist() == [[5.0] * 16] * 2
    assert mark in code[0] and "cpp_fused" in code[0], code[0]
"""


def test_functions_are_compiled_and_run():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=1500, check=False)
    assert done.returncode == 0, done.stderr
