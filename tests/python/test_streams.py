"""Operands of several libraries in one call, each of which works on a stream of its own, on a stub of a GPU."""
import shutil
import subprocess

import pytest

ORDER = """
import sys, types
import tenon
from tenon._library import lib

order, current = [], []
for name in ("tn_stream_wait_stream", "tn_stream_synchronize", "tn_matmul", "tn_copy"):
    def noted(*given, name=name, function=getattr(lib, name)):
        if name == "tn_stream_wait_stream":
            order.append(("wait", lib.tn_stream_raw(given[0]), lib.tn_stream_raw(given[1])))
        else:
            order.append((name,) if name != "tn_stream_synchronize" else (name, lib.tn_stream_raw(given[0])))
        return function(*given)
    setattr(lib, name, noted)


class Array:
    asked = []

    def __init__(self, *shape):
        self.tensor = tenon.empty(shape, "f32", "cuda:0")

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, *, stream=None, **options):
        Array.asked.append(stream)
        return self.tensor.__dlpack__(stream=-1, **options)


class Other(Array):
    pass


Array.__module__, Other.__module__ = "cupy", "somebody"
theirs = types.SimpleNamespace(ptr=0)
sys.modules["cupy"] = types.SimpleNamespace(cuda=types.SimpleNamespace(get_current_stream=lambda: theirs))
tenon.settings.set("admission", "never")
mine, stream = tenon.Stream("cuda:0"), tenon.Stream("cuda:0")
theirs.ptr, raw = stream.raw, mine.raw
a, b, out = tenon.empty((4, 8), "f32", "cuda:0"), Array(8, 2), Array(4, 2)

with mine:
    order.clear()
    tenon.matmul(a, b)  # on Tenon's stream, behind theirs; theirs goes on behind it
    assert order == [("wait", raw, theirs.ptr), ("tn_matmul",), ("wait", theirs.ptr, raw)], order
    assert Array.asked == [theirs.ptr]
    order.clear()
    tenon.matmul(a, tenon.empty((8, 2), "f32", "cuda:0"), out=out)  # what is written is of another library, too
    assert order == [("wait", raw, theirs.ptr), ("tn_matmul",), ("wait", theirs.ptr, raw)], order
    order.clear()
    tenon.copy(a, Array(4, 8))  # on the target's
    assert order == [("wait", theirs.ptr, raw), ("tn_copy",), ("wait", raw, theirs.ptr)], order
    order.clear()
    tenon.matmul(a, Other(8, 2))  # a library whose stream is not known: it is waited for
    assert order == [("tn_matmul",), ("tn_stream_synchronize", raw)], order
    order.clear()
    tenon.matmul(a, tenon.empty((8, 2), "f32", "cuda:0"))  # one library alone has nothing to wait for
    assert order == [("tn_matmul",)], order
"""


INTERFACE = """
import tenon
from tenon import _arrays
from tenon._library import lib

order = []
for name in ("tn_stream_wait_stream", "tn_stream_synchronize", "tn_matmul"):
    def noted(*given, name=name, function=getattr(lib, name)):
        streams = () if name == "tn_matmul" else given[:-1]  # before the tn_error
        order.append((name, *map(lib.tn_stream_raw, streams)))
        return function(*given)
    setattr(lib, name, noted)


class Array:
    def __init__(self, *shape, on="cuda:1", **said):
        self.tensor = tenon.empty(shape, "f32", on)
        raw = self.tensor._owned.raw
        self.place = raw.data + raw.byte_offset
        self.__cuda_array_interface__ = dict(version=3, shape=shape, typestr="<f4", data=(self.place, False), **said)


tenon.settings.set("admission", "never")
given, one, two = Array(4, 8), Array(8, 2, stream=1), Array(8, 2, stream=2)
try:
    tenon.matmul(given, one)
    raise SystemExit("a device was guessed")
except tenon.errors.UnsupportedError as error:
    assert "which of 2 devices" in error.message and "DLPack" in error.message, error.message

where = {each.place: 1 for each in (given, one, two)}  # as the driver says, which the stub does not
_arrays.ask_cuda = where.get
assert _arrays.view(given).device_id == 1
mine, theirs = tenon.Stream("cuda:1"), tenon.Stream("cuda:1")
other = Array(8, 2, stream=theirs.raw)
where[other.place] = 1
with tenon.device("cuda:1"), mine:
    for array in (one, two, other):  # what it says it is written on comes first
        raw = array.__cuda_array_interface__["stream"]
        order.clear()
        out = tenon.matmul(given, array)
        assert order == [("tn_stream_wait_stream", mine.raw, raw), ("tn_matmul",),
                         ("tn_stream_synchronize", mine.raw)], order
        assert out.device.id == "cuda:1"
    order.clear()
    tenon.matmul(given, given, transpose_b=True)
    assert order == [("tn_matmul",), ("tn_stream_synchronize", mine.raw)], order  # None: there is nothing to wait for
for wrong, told in ((0, "expected 1 to"), (-1, "expected 1 to"), (2**70, "expected 1 to"), ("x", "got str")):
    one.__cuda_array_interface__["stream"] = wrong
    try:
        tenon.matmul(given, one)
        raise SystemExit(f"{wrong} was taken")
    except (tenon.errors.InvalidArgumentError, TypeError) as error:
        assert "stream: expected" in str(error) and told in str(error), error
"""

ONE_DEVICE = """
import tenon
from tenon import _arrays

memory = tenon.empty((4,), "f32", "cuda:0")
raw = memory._owned.raw
for place in (raw.data + raw.byte_offset, 0):
    size = 4 if place else 0
    said = dict(version=2, shape=(size,), typestr="<f4", data=(place, False))
    assert _arrays.view(type("Array", (), {"__cuda_array_interface__": said})()).device_id == 0
"""


DRIVER = """
int cuPointerGetAttribute(void *out, int attribute, unsigned long long address)
{
    if (attribute != 9 || address < 1ull << 40)
        return 1;
    *(int *)out = (int)(address >> 40);
    return 0;
}
"""


def test_the_driver_is_asked_for_the_device(tmp_path, monkeypatch):
    from tenon import _arrays

    compiler, source, made = shutil.which("cc"), tmp_path / "driver.c", tmp_path / "driver.so"
    if compiler is None:
        pytest.skip("no C compiler")
    source.write_text(DRIVER)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(made), str(source)], check=True)
    monkeypatch.setattr(_arrays, "CUDA_DRIVER", str(made))
    assert _arrays.ask_cuda(5 << 40) == 5 and _arrays.ask_cuda(1 << 63) == 1 << 23
    assert _arrays.ask_cuda(7) is None
    monkeypatch.setattr(_arrays, "CUDA_DRIVER", str(tmp_path / "absent.so"))
    assert _arrays.ask_cuda(5 << 40) is None


def test_arrays_that_say_their_stream(script, stubs):
    script(INTERFACE, **stubs)


def test_arrays_of_the_only_device(script, stubs):
    script(ONE_DEVICE, STUB_DEVICES="1", **stubs)


def test_each_waits_for_the_other(script, stubs):
    script(ORDER, **stubs)
