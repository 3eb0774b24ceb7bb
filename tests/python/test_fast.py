"""The extension: the same results as through ctypes, everything unusual left to Python, nothing leaked."""
import gc
import sys

import numpy
import pytest
import tenon

pytestmark = pytest.mark.usefixtures("extension")


def normal(random, *shape, dtype="f4"):
    return random.standard_normal(shape).astype(dtype)


def test_it_is_taken(extension, random):
    a = normal(random, 5, 6)
    tenon.matmul(a, a.T)
    out = extension.matmul(None, a, a.T)
    assert type(out) is numpy.ndarray
    numpy.testing.assert_allclose(out, a @ a.T, 1e-4, 1e-4)


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2"])
def test_same_as_ctypes(monkeypatch, random, dtype):
    a, b = normal(random, 3, 7, 9, dtype=dtype), normal(random, 3, 9, 5, dtype=dtype)
    q, k = normal(random, 2, 4, 6, 8, dtype=dtype), normal(random, 2, 2, 7, 8, dtype=dtype)
    calls = [lambda: tenon.matmul(a, b), lambda: tenon.matmul(a[:, ::2], b[:, ::-1][:, ::-1]),
             lambda: tenon.matmul(a[0].T, a[0]), lambda: tenon.attention(q, k, k),
             lambda: tenon.attention(q, k, k, mask="causal", scale=0.3), lambda: tenon.attention(q, k, k, scale=0.0),
             lambda: tenon.einsum("bij,bjk->kib", a, b), lambda: tenon.einsum("...ij->j", a[:, ::2]),
             lambda: tenon.einsum("bij,bjk,bhqd,hkd->bq", a, b, q[:, :3, :5][[0, 1, 0]], k[0, [0, 1, 0], :5])]
    fast = [call() for call in calls]
    monkeypatch.setattr(tenon.operators, "_fast", None)
    for call, found in zip(calls, fast):
        wanted = call()
        assert found.dtype == wanted.dtype
        numpy.testing.assert_array_equal(found, wanted)


def test_the_unusual_is_left_alone(extension, random):
    a = normal(random, 4, 4)
    tenon.matmul(a, a)
    swapped = a.astype(a.dtype.newbyteorder())
    odd = numpy.ndarray((2, 2), "f4", bytes(20), strides=(6, 4))
    derived = a.view(type("Derived", (numpy.ndarray,), {}))
    for one, other in ((a, swapped), (swapped, a), (odd, odd), (derived, a), (a, derived), (a[0], a), (a, a[:3]),
                       (a, a.astype("f8")), (a, [[1.0]]), (a, None), (numpy.int8([[1]]), numpy.int8([[1]])),
                       (numpy.array([["x"]]), a), (a.astype("c8"), a.astype("c8"))):
        assert extension.matmul(None, one, other) is NotImplemented
    assert extension.matmul(None, a) is NotImplemented
    assert extension.attention(None, a, a, a, 0, None, None, 0, False, 0) is NotImplemented
    with pytest.raises(tenon.errors.InvalidArgumentError, match="as many as a has columns"):
        tenon.matmul(a, a[:3])
    with pytest.raises(TypeError):
        extension.matmul("no address", a, a)
    with pytest.raises(TypeError):
        extension.bind(1)
    with pytest.raises(TypeError):
        extension.teach((list,), list, None)


def test_einsum_is_served(extension, monkeypatch, random):
    a, b, out = normal(random, 3, 4), normal(random, 4, 5), numpy.empty((5, 3), "f4")
    before = extension.served()
    assert tenon.einsum("ij,jk->ki", a, b, out=out) is out
    numpy.testing.assert_allclose(out, (a @ b).T, 1e-4, 1e-4)
    numpy.testing.assert_allclose(tenon.einsum("\u03b1\u03b2,\u03b2\u03b3", a, b), a @ b, 1e-4, 1e-4)
    assert tenon.einsum("ij->", a).shape == ()
    assert extension.served() == before + 3
    wide = numpy.ones((1,) * 9, "f4")
    left = (("ij,jk", a, a), ("ij,jk", a), ("ij\0", a), ("\ud800", a), ("ij,jk", a, b.astype("f8")), ("abcdefghi", wide),
            (a, [0, 1]), ("i" + 8 * ",", a[0], *[numpy.float32(1)] * 8), (None, a), ("ij,jk", [a, b]), ("ij", None))
    for given in left:
        assert extension.einsum(None, given[0], None, *given[1:]) is NotImplemented, given
    assert extension.einsum(None, "ij") is NotImplemented and extension.einsum() is NotImplemented
    assert extension.einsum(None, "ij,jk->ik", out, a, b) is NotImplemented
    assert extension.einsum(None, "ij,jk->ki", a, a, b) is NotImplemented
    with pytest.raises(TypeError):
        extension.einsum("no address", "ij", None, a)
    with pytest.raises(tenon.errors.InvalidArgumentError, match="label 'j': expected one size"):
        tenon.einsum("ij,jk", a, a)
    assert extension.served() == before + 3


def test_settings_hold(random):
    a = normal(random, 4, 4)
    tenon.matmul(a, a)
    with tenon.settings.scope({"rules": "require:matmul/cpu.matmul.bf16.*"}):
        with pytest.raises(tenon.errors.RefusedError):
            tenon.matmul(a, a)


def test_nothing_is_kept(extension, random):
    a = normal(random, 16, 16)
    tenon.matmul(a, a)
    counts = sys.getrefcount(a), sys.getrefcount(numpy.ndarray), sys.getrefcount(NotImplemented)
    for _ in range(1000):
        tenon.matmul(a, a)
        extension.matmul(None, a, a[:3])
        extension.matmul(None, a, a[0])
    gc.collect()
    after = sys.getrefcount(a), sys.getrefcount(numpy.ndarray), sys.getrefcount(NotImplemented)
    assert all(abs(one - other) < 20 for one, other in zip(counts, after))
    memory = memoryview(a)
    del memory
    a.resize((8, 32), refcheck=False)  # fails while someone holds its buffer


def test_read_only_and_empty(random):
    a = normal(random, 4, 4)
    a.flags.writeable = False
    numpy.testing.assert_allclose(tenon.matmul(a, a), a @ a, 1e-4, 1e-4)
    assert tenon.matmul(numpy.ones((0, 3), "f4"), numpy.ones((3, 2), "f4")).shape == (0, 2)


def test_out_is_served(extension, monkeypatch, random):
    """What the caller gives to write to is written to, and failures are those of a call without the extension."""
    a, q = normal(random, 6, 6), normal(random, 1, 2, 5, 8)
    out, heads = numpy.empty((6, 6), "f4"), numpy.empty((1, 2, 5, 8), "f4")
    tenon.matmul(a, a)
    before = extension.served()
    for to in (out, out[::-1].T, numpy.zeros((6, 12), "f4")[:, ::2]):
        assert tenon.matmul(a, a, out=to) is to
        numpy.testing.assert_array_equal(to, tenon.matmul(a, a))
    assert tenon.attention(q, q, q, causal=True, out=heads) is heads
    numpy.testing.assert_array_equal(heads, tenon.attention(q, q, q, mask="causal"))
    assert extension.served() == before + 8
    memory = memoryview(out)
    del memory
    out.resize((4, 9), refcheck=False)  # fails while someone holds its buffer

    def refused(to):
        with pytest.raises((tenon.Error, TypeError)) as info:
            tenon.matmul(a, a, out=to)
        return type(info.value), str(info.value)

    locked = numpy.empty((6, 6), "f4")
    locked.flags.writeable = False
    wrong = (locked, numpy.empty((6, 5), "f4"), numpy.empty((6, 6), "f8"), numpy.empty(36, "f4"), [[1.0]], a)
    said = [refused(to) for to in wrong]
    assert extension.served() == before + 8
    monkeypatch.setattr(tenon.operators, "_fast", None)
    assert said == [refused(to) for to in wrong]


def test_out_of_torch_is_served(extension):
    """A write is counted, so that PyTorch refuses gradients by what was there before."""
    torch = pytest.importorskip("torch", reason="PyTorch is not here")
    if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        pytest.skip(f"PyTorch {torch.__version__} has no table of DLPack's functions")
    a, out = torch.randn(4, 4), torch.empty(4, 4)
    tenon.matmul(a, a)
    before, version = extension.served(), out._version
    assert tenon.matmul(a, a, out=out) is out and out._version == version + 1
    torch.testing.assert_close(out, a @ a)
    with torch.inference_mode():
        assert tenon.matmul(a, a, out=torch.empty(4, 4)).is_inference()
    assert extension.served() == before + 2
    weights = torch.empty(4, 4, requires_grad=True)
    with pytest.raises(tenon.errors.InvalidArgumentError, match="requires gradients"):
        tenon.matmul(a, a, out=weights)
    with torch.no_grad():
        assert tenon.matmul(a, a, out=weights) is weights
    assert extension.served() == before + 3 and tenon.matmul(a, a.numpy(), out=out) is out


def test_torch(extension):
    torch = pytest.importorskip("torch", reason="PyTorch is not here")
    if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        pytest.skip(f"PyTorch {torch.__version__} has no table of DLPack's functions")
    a, b = torch.randn(5, 6, dtype=torch.bfloat16), torch.randn(6, 7, dtype=torch.bfloat16)
    tenon.matmul(a, b)
    out = extension.matmul(None, a, b)
    assert type(out) is torch.Tensor and out.dtype == a.dtype
    torch.testing.assert_close(out, a @ b, atol=0.1, rtol=0.05)
    torch.testing.assert_close(extension.matmul(None, b.T, a.T), out.T, atol=0.1, rtol=0.05)
    grad = torch.randn(3, 3, requires_grad=True)
    assert extension.matmul(None, grad, grad) is NotImplemented
    assert extension.matmul(None, torch.empty(2, 2, device="meta"), torch.empty(2, 2)) is NotImplemented
    assert extension.matmul(None, torch.eye(3).to_sparse(), torch.eye(3)) is NotImplemented
    small = torch.ones(2, 16).to(torch.float8_e4m3fn)  # whose product is of another dtype
    assert extension.matmul(None, small, small.T) is NotImplemented
    lazy = torch.randn(3, 3, dtype=torch.complex64).conj()
    for unresolved in (lazy, lazy.imag):
        assert extension.matmul(None, unresolved, unresolved) is NotImplemented
    q = torch.randn(1, 2, 5, 8)
    torch.testing.assert_close(tenon.attention(q, q, q, mask="causal"),
                               torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True))


def test_masks_and_turned_results(extension, monkeypatch, random):
    """A mask that is an array, of bool or added, and a result that lies as [batch, length, heads, size]."""
    q, k = normal(random, 2, 4, 6, 8), normal(random, 2, 2, 7, 8)
    seen = random.random((2, 1, 6, 7)) < 0.7
    added = normal(random, 1, 4, 6, 7)
    calls = [lambda: tenon.attention(q, k, k, mask=seen), lambda: tenon.attention(q, k, k, mask_tensor=added),
             lambda: tenon.attention(q, k, k, mask="causal", mask_tensor=seen, scale=0.3)]
    tenon.attention(q, k, k)
    before = extension.served()
    fast = [call() for call in calls]
    assert extension.served() == before + len(calls)
    turned = extension.attention(None, q, k, k, 0, None, seen, 0, True, 0)
    assert turned.shape == (2, 6, 4, 8) and turned.flags.c_contiguous
    numpy.testing.assert_array_equal(turned.transpose(0, 2, 1, 3), fast[0])
    for odd in (seen.astype("i4"), seen[..., :3], q[0, 0].tolist(), "causal"):
        assert extension.attention(None, q, k, k, 0, None, odd, 0, False, 0) is NotImplemented
    for numbers in ((0, "wide", None, 0, False, 0), ("causal", None, None, 0, False, 0), (0, None, None, 0, False, "x")):
        assert extension.attention(None, q, k, k, *numbers) is NotImplemented
    named = tenon.attention(*(x.transpose(0, 2, 1, 3) for x in (q, k, k)), layout="blhd", mask_tensor=seen,
                            backend="FLASH_ATTN")
    assert extension.served() == before + len(calls) + 2 and named.flags.c_contiguous
    numpy.testing.assert_allclose(named.transpose(0, 2, 1, 3), fast[0], 1e-4, 1e-4)
    for options in ({"backend": "FLASH"}, {"layout": "dlbh"}, {"mask": "sideways"}):
        with pytest.raises(tenon.Error):
            tenon.attention(q, k, k, **options)
    with pytest.raises(TypeError, match="scale: expected a number, got str"):
        tenon.attention(q, k, k, scale="wide")
    with pytest.raises(tenon.errors.InvalidArgumentError, match="expected one array as mask, got two"):
        tenon.attention(q, k, k, mask=seen, mask_tensor=added)
    monkeypatch.setattr(tenon.operators, "_fast", None)
    for call, found in zip(calls, fast):
        numpy.testing.assert_array_equal(call(), found)


# A library with arrays on a GPU that is a stub, which computes nothing but tells the stream of each product.
STUB = '''
import ctypes, sys
import tenon
tenon.__path__.append(FOLDER)
from ctypes import POINTER, PYFUNCTYPE, byref, c_int, c_int32, c_int64, c_void_p, py_object
from tenon import _abi, _arrays, operators
from tenon._library import lib

fast, current, wraps, recorded, written = operators._fast, [0], [], [True], []
forward = type(sys)("forward")
forward._current_level = -1


class Product(ctypes.Structure):
    _fields_ = [("numbers", c_int * 6), ("scales", c_void_p * 2), ("stream", c_void_p),
                ("operands", c_void_p * 3), ("room", c_void_p), ("bytes", ctypes.c_size_t)]


class Seen(ctypes.Structure):
    _fields_ = [("handles", c_int), ("kept", c_void_p * 64), ("asked", c_int), ("crossed", c_int),
                ("answers", c_int * 8), ("count", c_int), ("calls", Product * 4096)]


def last():
    seen = Seen.in_dll(ctypes.CDLL("libcublasLt.so.13"), "stub_lt_seen")
    return seen.count, seen.calls[seen.count - 1].stream or 0


class Array:
    requires_grad, negative = False, False

    def __init__(self, *shape):
        self.memory = tenon.empty(shape, "f32", "cuda:0")
        self.steps = (c_int64 * 2)(shape[1], 1)
        self.first, self.bytes = 0, 4 * shape[0] * shape[1]

    def is_neg(self):
        return self.negative

    def storage_offset(self):
        return self.first

    def untyped_storage(self):
        return range(self.bytes)

    def new_empty_strided(self, shape, strides):
        assert strides == (shape[1], 1)
        return Array(*shape)


@PYFUNCTYPE(c_int, py_object, POINTER(_abi.DlpackTensor))
def tensor_of(array, out):
    ctypes.memmove(out, byref(array.memory._owned.raw), ctypes.sizeof(_abi.DlpackTensor))
    out.contents.strides = ctypes.addressof(array.steps)
    return 0


@PYFUNCTYPE(c_int, c_int32, c_int32, POINTER(c_void_p))
def stream(kind, index, out):
    out[0] = current[0]
    return 0 if (kind, index) == (2, 0) and current[0] != -1 else 1


def wrap(*given):
    wraps.append(given)
    return _arrays.stream_address(*given)


class Table(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32 * 2), *((name, c_void_p) for name in (
        "previous", "allocate", "from_object", "to_object", "tensor_of", "stream"))]


table = Table(version=(ctypes.c_uint32 * 2)(1, 3), tensor_of=ctypes.cast(tensor_of, c_void_p),
              stream=ctypes.cast(stream, c_void_p))
name = ctypes.create_string_buffer(b"dlpack_exchange_api")
new = PYFUNCTYPE(py_object, c_void_p, c_void_p, c_void_p)(("PyCapsule_New", ctypes.pythonapi))
Array.__dlpack_c_exchange_api__ = new(ctypes.addressof(table), ctypes.addressof(name), None)
addresses = [ctypes.cast(f, c_void_p).value for f in (lib.tn_matmul, lib.tn_attention)]
fast.bind(*addresses, 0, 0, wrap)
assert fast.teach((Array,), Array.new_empty_strided, lambda: recorded[0], forward, written.append, None)
tenon.settings.set({"admission": "never", "matmul.library": "cublaslt"})
a, b = Array(8, 16), Array(16, 4)
streams = [tenon.Stream("cuda:0") for _ in range(2)]

for turn, (raw, known) in enumerate([(0, 1), (streams[0].raw, 2), (streams[1].raw, 3), (streams[0].raw, 3), (0, 3)]):
    current[0] = raw
    out = fast.matmul(None, a, b)
    assert type(out) is Array and out.memory.shape == (8, 4), out
    assert last() == (turn + 1, raw) and len(wraps) == known and fast.served() == turn + 1, (turn, last(), wraps)
assert wraps == [(2, 0, 0), (2, 0, streams[0].raw), (2, 0, streams[1].raw)]
tenon.settings.set("cuda.cublaslt_workspace_size", "0")  # of which each stream has its own
many = [tenon.Stream("cuda:0") for _ in range(100)]  # more than are remembered: some are asked for again
for one in (*many, *reversed(many)):
    current[0] = one.raw
    assert type(fast.matmul(None, a, b)) is Array and last()[1] == one.raw
assert 103 <= len(wraps) <= 203 and fast.served() == 205

# What is left to Python, with nothing queued: no stream is known, one cannot be wrapped, or an array means more.
before = sys.getrefcount(a)
current[0] = -1
assert fast.matmul(None, a, b) is NotImplemented
current[0] = streams[0].raw
for wrong in (lambda *given: 1 / 0, lambda *given: "no address", lambda *given: 0):
    fast.bind(*addresses, 0, 0, wrong)
    current[0] = streams[1].raw + (1 << 40)
    assert fast.matmul(None, a, b) is NotImplemented
fast.bind(*addresses, 0, 0, wrap)
current[0] = 0
a.negative = True
assert fast.matmul(None, a, b) is NotImplemented
a.negative, a.requires_grad = False, True
assert fast.matmul(None, a, b) is NotImplemented
recorded[0] = False
assert type(fast.matmul(None, a, b)) is Array
a.requires_grad = False
for level in (0, 1, "no number", 1 << 80):
    forward._current_level = level
    assert fast.matmul(None, a, b) is NotImplemented
del forward._current_level
assert fast.matmul(None, a, b) is NotImplemented
forward._current_level = -1
whole = a.bytes
for a.first, a.bytes in ((0, whole - 1), (1, whole), (0, 0), (1 << 61, whole), (-1, whole), (1 << 80, whole)):
    assert fast.matmul(None, a, b) is NotImplemented
    assert fast.matmul(None, Array(4, 8), a, a) is NotImplemented
a.first, a.bytes = 0, whole
a.steps[0] = 1 << 62
assert fast.matmul(None, a, b) is NotImplemented
a.steps[0] = 16
assert fast.matmul(None, a, a) is NotImplemented and last()[0] == 206 and fast.served() == 206
assert sys.getrefcount(a) == before

# An array of the caller's is written to on the same stream, and its library is told.
made, current[0] = Array(8, 4), streams[1].raw
assert fast.matmul(None, a, b, made) is made and last() == (207, streams[1].raw) and written == [made]
made.requires_grad, recorded[0] = True, True
assert fast.matmul(None, a, b, made) is NotImplemented and fast.served() == 207 and written == [made]
'''


def test_arrays_on_a_gpu(built, script, stubs):
    """Are served on the stream of their library, which is wrapped once, and results are its own."""
    script(STUB.replace("FOLDER", repr(built)), **stubs)
