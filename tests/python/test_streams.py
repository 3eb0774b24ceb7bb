"""Operands of several libraries in one call, each of which works on a stream of its own, on a stub of a GPU."""

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


def test_each_waits_for_the_other(script, stubs):
    script(ORDER, **stubs)
