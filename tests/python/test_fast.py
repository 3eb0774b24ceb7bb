"""The extension: the same results as through ctypes, everything unusual left to Python, nothing leaked."""
import gc
import importlib
import os
import sys

import numpy
import pytest
import tenon

HERE = os.path.dirname(os.path.abspath(__file__))


@pytest.fixture(scope="module", autouse=True)
def extension(tmp_path_factory):
    """Built by this Python's compiler, and found beside the package."""
    sys.path.insert(0, os.path.join(HERE, "..", "..", "bindings", "python"))
    backend = importlib.import_module("build_backend")
    folder = tmp_path_factory.mktemp("extension")
    if sys.version_info < (3, 11) or backend.make_extension(folder) is None:
        pytest.skip("no extension: it needs a C compiler and the headers of Python 3.11 or later")
    tenon.__path__.append(str(folder))
    from tenon import _arrays, operators

    operators._fast = operators._load_fast()
    _arrays._kinds.clear(), _arrays._made.clear()
    assert operators._fast is not None
    return operators._fast


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
             lambda: tenon.attention(q, k, k, mask="causal", scale=0.3), lambda: tenon.attention(q, k, k, scale=0.0)]
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
    assert extension.attention(None, a, a, a, 0, None) is NotImplemented
    with pytest.raises(tenon.errors.InvalidArgumentError, match="columns need as many"):
        tenon.matmul(a, a[:3])
    with pytest.raises(TypeError):
        extension.matmul("no address", a, a)
    with pytest.raises(TypeError):
        extension.bind(1)


def test_settings_hold(random):
    a = normal(random, 4, 4)
    tenon.matmul(a, a)
    with tenon.settings.scope({"rules": "require:matmul/cpu.matmul.bf16.plain"}):
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
    lazy = torch.randn(3, 3, dtype=torch.complex64).conj()
    for unresolved in (lazy, lazy.imag):
        assert extension.matmul(None, unresolved, unresolved) is NotImplemented
    q = torch.randn(1, 2, 5, 8)
    torch.testing.assert_close(tenon.attention(q, q, q, mask="causal"),
                               torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True))


def test_wheel(tmp_path):
    """It carries all that is needed, and its names are where they belong."""
    import zipfile

    backend = importlib.import_module("build_backend")
    names = zipfile.ZipFile(tmp_path / backend.build_wheel(str(tmp_path))).namelist()
    assert "tenon/__init__.py" in names and "tenon/_fast.abi3.so" in names and "tenon/py.typed" in names
    assert f"tenon-{tenon.__version__}.dist-info/RECORD" in names
    assert not [name for name in names if "__pycache__" in name]
