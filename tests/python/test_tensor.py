"""Arrays of Tenon's own: indices, shapes, NumPy's protocols, and the dtypes of ml_dtypes."""
import itertools

import numpy
import pytest
import tenon


def tensor_of(array):
    return tenon.copy(array, tenon.empty(array.shape, array.dtype, "cpu"))


@pytest.fixture
def pair(random):
    """An array of NumPy's and a tensor of the same elements."""
    array = random.standard_normal((2, 3, 4)).astype("f4")
    return array, tensor_of(array)


PARTS = [0, -1, numpy.int64(1), slice(None), slice(1, None), slice(None, None, -1), slice(5, 0, -2), slice(3, 1), None,
         Ellipsis]


def outcome(array, key):
    """What an index selects, or that it is refused."""
    try:
        return array[key]
    except IndexError:
        return IndexError


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_indices_are_numpys(pair, count):
    """Every combination of parts selects the same elements and refuses the same."""
    array, tensor = pair
    for key in itertools.product(PARTS, repeat=count):
        wanted, found = outcome(array, key), outcome(tensor, key)
        if wanted is IndexError or found is IndexError:
            assert wanted is found, key
            continue
        numpy.testing.assert_array_equal(found.numpy(), wanted, str(key))
        assert found.shape == wanted.shape


def test_views_share_memory(pair):
    _, tensor = pair
    whole = tensor.numpy()
    tenon.fill(tensor[1, ::2, None], 7)
    assert (whole[1, ::2] == 7).all() and not (whole[0] == 7).any()
    part = tensor[:, ::-1].T[1:]
    tenon.copy(numpy.zeros(part.shape, "f4"), part)
    assert not whole[:, :, 1:].any()
    assert numpy.shares_memory(part.numpy(), whole) and numpy.shares_memory(numpy.asarray(part), whole)
    del tensor, part
    assert (whole[1, ::2, 0] == 7).all()  # the memory lives as long as a view of it


def test_operators_take_views(pair):
    array, tensor = pair
    found = tenon.matmul(tensor[0, ::-1], tensor[1].T)
    assert isinstance(found, tenon.Tensor)
    numpy.testing.assert_allclose(found.numpy(), array[0, ::-1] @ array[1].T, 1e-5, 1e-5)
    numpy.testing.assert_array_equal(numpy.from_dlpack(tensor[:, ::-1, 1:]), array[:, ::-1, 1:])


@pytest.mark.parametrize("key", ["x", 1.0, [0, 1], True, (0, False), numpy.array([True, False])])
def test_other_indices_are_refused(pair, key):
    with pytest.raises(TypeError, match=r"index: expected integers, slices, None or an ellipsis, got \w+; use numpy\(\)"):
        pair[1][key]


def test_indices_that_are_out_of_range(pair):
    with pytest.raises(IndexError, match="index 2 is out of range for a dimension of size 2"):
        pair[1][2]
    with pytest.raises(IndexError, match="expected at most 3 indices for 3 dimensions, got 4"):
        pair[1][0, 0, 0, 0]
    with pytest.raises(IndexError, match="at most one ellipsis"):
        pair[1][..., ...]


def test_length_and_iteration(pair):
    array, tensor = pair
    assert len(tensor) == 2 and tensor.ndim == 3
    assert all((one.numpy() == other).all() for one, other in zip(tensor, array, strict=True))
    with pytest.raises(TypeError, match="no length"):
        len(tensor[0, 0, 0])
    with pytest.raises(TypeError, match="no truth value"):
        bool(tensor)


SHAPES = [(24,), (4, 6), (2, 12), (3, 2, 4), (2, 3, 2, 2), (1, 24, 1), (-1, 8), (2, -1, 1, 4), (6, 4)]


def test_shapes(pair):
    """A view where NumPy has one, else a copy with the same elements."""
    array, tensor = pair
    for cut in (lambda x: x, lambda x: x[:, :2], lambda x: x.T, lambda x: x[::-1], lambda x: x[:, 1:2], lambda x: x[0:0],
                lambda x: x[..., ::2], lambda x: x[1, 1, 1, ...]):
        base, given = cut(array), cut(tensor)
        for shape in {*SHAPES, base.shape, (-1,), (1, *base.shape), (base.size, 1)}:
            try:
                wanted = base.reshape(shape)
            except ValueError:
                with pytest.raises(tenon.errors.InvalidArgumentError, match="expected a shape of"):
                    given.reshape(shape)
                continue
            found = given.reshape(*shape)
            numpy.testing.assert_array_equal(found.numpy(), wanted)
            if base.size:
                assert numpy.shares_memory(found.numpy(), tensor.numpy()) == numpy.shares_memory(wanted, array)
    numpy.testing.assert_array_equal(tensor.permute((2, 0, 1)).numpy(), array.transpose(2, 0, 1))
    numpy.testing.assert_array_equal(tensor.permute(-1, 0, 1).numpy(), array.transpose(-1, 0, 1))
    numpy.testing.assert_array_equal(tensor.transpose(0, -1).numpy(), array.swapaxes(0, -1))
    for wrong in ((0, 1), (0, 1, 1), (0, 1, 3)):
        with pytest.raises(tenon.errors.InvalidArgumentError, match="order: expected each of the 3 dimensions once"):
            tensor.permute(*wrong)
    with pytest.raises(tenon.errors.InvalidArgumentError, match="transpose: expected -3 to 2, got 3"):
        tensor.transpose(3, 0)


def test_array_protocol(pair):
    array, tensor = pair
    assert numpy.asarray(tensor, dtype="f8").dtype == numpy.float64
    copied = numpy.array(tensor)
    assert not numpy.shares_memory(copied, tensor.numpy())
    numpy.testing.assert_array_equal(copied, array)
    assert tenon.empty((2, 0, 3), "i32", "cpu").numpy().shape == (2, 0, 3)


def test_memory_of_a_device(script, stubs):
    """numpy() copies it; NumPy's own functions do not, unasked."""
    script("""
import numpy, tenon
there = tenon.copy(numpy.arange(6, dtype="f4").reshape(2, 3), tenon.empty((2, 3), "f32", "cuda:0"))
assert (there.numpy() == numpy.arange(6).reshape(2, 3)).all()
assert (there[1].numpy() == [3, 4, 5]).all()
try:
    numpy.asarray(there)
    raise SystemExit("an array of device memory was made")
except TypeError as error:
    assert "not in host memory; use its numpy()" in str(error), error
""", **stubs)


@pytest.fixture
def ml():
    return pytest.importorskip("ml_dtypes", reason="the package ml_dtypes is not here")


DTYPES = {"bf16": "bfloat16", "f8_e4m3fn": "float8_e4m3fn", "f8_e4m3fnuz": "float8_e4m3fnuz", "f8_e5m2": "float8_e5m2",
          "f8_e5m2fnuz": "float8_e5m2fnuz"}


@pytest.mark.parametrize("word, name", DTYPES.items())
def test_ml_dtypes(ml, random, word, name):
    """Arrays of these dtypes are accepted, written to and returned."""
    dtype = numpy.dtype(getattr(ml, name))
    wide = random.standard_normal((5, 7)).astype("f4")
    small = wide.astype(dtype)
    found = tenon.cast(wide, word)
    assert found.dtype == dtype and found.tobytes() == small.tobytes()
    assert tenon.cast(wide, dtype).dtype == tenon.cast(wide, getattr(ml, name)).dtype == dtype
    numpy.testing.assert_array_equal(tenon.cast(small[::-1, ::2], "f32"), small[::-1, ::2].astype("f4"))
    out = numpy.zeros((5, 7), dtype)
    assert tenon.cast(wide, out=out) is out and out.tobytes() == small.tobytes()
    made = tenon.copy(small, tenon.empty((5, 7), word, "cpu"))
    assert made.numpy().dtype == numpy.asarray(made).dtype == dtype and made.numpy().tobytes() == small.tobytes()
    assert tenon.cast(small[0, 0], "f32") == small[0, 0].astype("f4")
    small.flags.writeable = False
    with pytest.raises(tenon.Error, match="read-only"):
        tenon.fill(small, 0)


def test_products_of_ml_dtypes(ml, random):
    a = random.standard_normal((6, 8)).astype("f4")
    half, byte = a.astype(ml.bfloat16), a.astype(ml.float8_e4m3fn)
    assert tenon.matmul(half, half.T).dtype == ml.bfloat16
    numpy.testing.assert_allclose(tenon.matmul(half, half.T).astype("f4"), half.astype("f4") @ half.astype("f4").T, 1e-2, 1e-2)
    numpy.testing.assert_allclose(tenon.matmul(byte, byte.T), byte.astype("f4") @ byte.astype("f4").T, 1e-4, 1e-4)
    q = random.standard_normal((1, 2, 4, 8)).astype(ml.bfloat16)
    wanted = tenon.attention(*(q.astype("f4"),) * 3, causal=True)
    numpy.testing.assert_allclose(tenon.attention(q, q, q, causal=True).astype("f4"), wanted, 2e-2, 2e-2)


def test_dtypes_that_are_nobodys(ml):
    with pytest.raises(tenon.errors.InvalidArgumentError, match="x: no dtype for NumPy's int4; there are: .*, and of "
                                                                "ml_dtypes: bf16, f8_e4m3fn"):
        tenon.neg(numpy.zeros(3, ml.int4))


def test_without_ml_dtypes(script):
    script("""
import sys
sys.modules["ml_dtypes"] = None
import numpy, tenon
for call in (lambda: tenon.cast(numpy.ones(3, "f4"), "bf16"), tenon.empty(3, "bf16", "cpu").numpy):
    try:
        call()
        raise SystemExit("an array was made")
    except tenon.errors.InvalidArgumentError as error:
        assert "install the package ml_dtypes" in error.message, error
""")


def test_copies_and_pickles():
    """A shallow copy is a view, a deep copy has memory of its own; pickling says what to pickle."""
    import copy
    import pickle

    t = tensor_of(numpy.arange(12, dtype="f4").reshape(3, 4)).T[1:]
    view, own = copy.copy(t), copy.deepcopy(t)
    tenon.fill(t[0], 7)
    assert view.numpy()[0].tolist() == [7, 7, 7] and own.numpy()[0].tolist() == [1, 5, 9]
    assert copy.deepcopy(t[:, :0]).shape == (3, 0) and copy.deepcopy(t[0, 0]).numpy() == 7
    with pytest.raises(TypeError, match=r"pickle its numpy\(\)"):
        pickle.dumps(t)
