"""PyTorch's spare type of devices for a platform: its name, its tensors, and compilations of everything else. Each test
is a program of its own, as PyTorch takes one name and one guard for a process."""
import os
import pathlib
import shutil

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not here")
pytest.importorskip("triton", reason="Triton is not here")
if not hasattr(torch._C, "_acc"):
    pytest.skip("this PyTorch takes no guard from Python", allow_module_level=True)

MODULE = pathlib.Path(os.environ["TENON_LIBRARY"]).parent / "tests/conformance/modules/tenon-seed-sample.so"
if not MODULE.exists():
    pytest.skip(f"{MODULE} is not built", allow_module_level=True)

START = f"""
import torch, tenon
from tenon import device_interface
from torch._inductor.codegen.common import get_device_op_overrides
from tenon._handles import call
from tenon._library import lib
call(lib.tn_module_file_add, {str(MODULE).encode()!r}, 1)
"""


def test_a_name_of_ones_own(script):
    """After it, whatever else is compiled runs."""
    script(START + """
torch.utils.rename_privateuse1_backend("acme")
made = device_interface.register("sample", "acme")
assert "CUDA" in get_device_op_overrides("cuda").cpp_stream_guard()          # PyTorch's own types keep their texts
compiled = torch.compile(lambda x: x.sin() + 1, backend="eager")
assert compiled(torch.zeros(3)).tolist() == [1.0] * 3
assert str(torch.accelerator.current_accelerator()) == "acme" and torch.accelerator.current_device_index() == 0
assert made.Stream().device == made.Event().device == torch.device("acme", 0)
x = torch.empty(2, 3, device="acme").fill_(2)
assert x.device == torch.device("acme", 0) and x.cpu().tolist() == [[2.0] * 3] * 2
assert tenon.copy(x, torch.empty(2, 3)).tolist() == [[2.0] * 3] * 2          # Tenon sees its own memory
assert device_interface.register("sample") is made                           # the name that there is
try:
    device_interface.register("sample", "other")
    raise SystemExit("two names")
except tenon.errors.AlreadyExistsError as error:
    assert 'the name "acme" already' in str(error), error
""")


def test_the_platforms_own_name(script):
    """A type that PyTorch did not know becomes the name of its spare one; tensors have all that programs use."""
    script(START + """
made = device_interface.register("sample")
assert str(torch.device("sample:0")) == "sample:0"
a = torch.arange(6.0, device="sample").reshape(2, 3)
assert a.t().cpu().tolist() == [[0, 3], [1, 4], [2, 5]] and not a.t().is_contiguous()
torch.testing.assert_close((a @ a.t()).cpu(), torch.tensor([[5.0, 14.0], [14.0, 50.0]]))
a[1] = 7                                                                     # a view is written to
assert a.cpu().tolist() == [[0, 1, 2], [7, 7, 7]] and a.sum().item() == 24
column = a[:, 1]
column.add_(1)
assert a.cpu().tolist() == [[0, 2, 2], [7, 8, 7]]
assert a.t().contiguous().to("cpu", torch.int64).tolist() == [[0, 7], [2, 8], [2, 7]]
assert a.to(torch.bfloat16).device.type == "sample" and torch.empty(0, device="sample").numel() == 0
assert torch.empty(2, 3, 4, 5, device="sample", memory_format=torch.channels_last).stride() == (60, 1, 15, 3)
b = torch.ones(2, 3, device="sample", requires_grad=True)
(a * b).sum().backward()
assert b.grad.device == a.device and b.grad.cpu().tolist() == a.cpu().tolist()
layer = torch.nn.Linear(3, 2).to("sample")
torch.testing.assert_close(layer(a).cpu(), layer.cpu()(a.cpu()))
assert "tensor" in repr(a) and "sample:0" in repr(a)
""")


TWO = """
import pathlib, threading
import torch, tenon
from tenon import device_interface
from tenon._handles import call
from tenon._library import lib
pathlib.Path("{folder}/two.device").write_text("[device two]\\nplatform = described\\nmemory = 64 MiB\\ncount = 2\\n")
call(lib.tn_device_file_add, b"{folder}/two.device")
made = device_interface.register("described")
"""


@pytest.mark.skipif(shutil.which("c++") is None or shutil.which("ninja") is None, reason="no C++ compiler and Ninja")
def test_a_platform_of_two_devices(script, tmp_path):
    """The second device can be current, also by PyTorch's guards; a backward pass runs on its tensors."""
    script(TWO.format(folder=tmp_path) + """
assert torch.accelerator.current_device_index() == made.current_device() == 0
torch.accelerator.set_device_index(1)
assert torch.accelerator.current_device_index() == made.current_device() == torch.described.current_device() == 1
assert torch.empty(2, device="described").device == torch.device("described", 1)
others = []
thread = threading.Thread(target=lambda: others.append(made.current_device()))
thread.start(), thread.join()
assert others == [0]                                                         # each thread has its own
with made.device(0):
    assert torch.accelerator.current_device_index() == 0 and torch.empty(1, device="described").device.index == 0
x = torch.full((3,), 2.0, device="described:1", requires_grad=True)
(x * x).sum().backward()                                                     # on a thread that PyTorch starts
assert x.grad.device == x.device and x.grad.tolist() == [4.0] * 3
assert x.detach().to("described:0").cpu().tolist() == [2.0] * 3 and torch.accelerator.current_device_index() == 1
try:
    torch.accelerator.set_device_index(2)
    raise SystemExit("a third device")
except RuntimeError as error:
    assert "no device described:2" in str(error), error
""", TORCH_EXTENSIONS_DIR=str(tmp_path / "extensions"))


def test_two_devices_without_a_compiler(script, tmp_path):
    """The first device works as before, and the log says what does not."""
    script(TWO.format(folder=tmp_path).replace("made =", """
import logging
logging.getLogger("torch.utils.cpp_extension").setLevel(logging.CRITICAL)    # which says what it thinks of compilers
lines = []
handler = logging.Handler()
handler.emit = lambda record: lines.append(record.getMessage())
logging.getLogger("tenon").addHandler(handler)
made =""") + """
assert lines and lines[0].startswith("PyTorch knows only the first device of described: "), lines
assert torch.ones(3, device="described").tolist() == torch.ones(3, device="described:1").tolist() == [1.0] * 3
""", CXX="/nowhere/c++", TORCH_EXTENSIONS_DIR=str(tmp_path / "extensions"))


def test_an_interface_in_python(script):
    script(START + """
from torch._dynamo.device_interface import DeviceInterface, get_interface_for_device
from torch._inductor.codegen.common import get_scheduling_for_device


class Mine(DeviceInterface):
    class Worker:
        get_device_properties = staticmethod(lambda device=None: None)

    get_raw_stream = staticmethod(lambda index: 42)
    is_available = staticmethod(lambda: True)


assert device_interface.register(Mine, "privateuseone") is Mine
assert get_interface_for_device("privateuseone") is Mine and get_scheduling_for_device("privateuseone") is not None
names = {}
exec(get_device_op_overrides("privateuseone").import_get_raw_stream_as("get_raw_stream"), names)
assert names["get_raw_stream"](0) == 42
""")
