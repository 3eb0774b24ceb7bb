"""Weights that are packed once: results, options, what is rejected."""

import gc
import weakref

import numpy
import pytest

import tenon

SHAPES = [(1, 64, 48), (7, 300, 200), (16, 513, 700), (65, 300, 310)]


def numbers(*shape):
    return numpy.random.default_rng(7).standard_normal(shape).astype("float32")


@pytest.mark.parametrize("m, k, n", SHAPES)
@pytest.mark.parametrize("transposed", [False, True])
def test_results_are_those_of_matmul(m, k, n, transposed):
    a, b, bias = numbers(m, k), numbers(*((n, k) if transposed else (k, n))), numbers(n)
    expected = numpy.maximum(a.astype("f8") @ (b.T if transposed else b) + bias, 0)
    packed = tenon.matmul_pack(a, b, transpose_b=transposed, bias=bias, activation="relu")
    b[:] = numpy.nan
    out = numpy.full((m, n), numpy.nan, "float32")
    assert packed(a, out=out) is out
    numpy.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-3)
    numpy.testing.assert_array_equal(packed(a), out)
    assert packed.kernel and packed.copy_bytes == 4 * n * k and packed.packed_bytes >= 0
    assert packed.kernel in repr(packed)


def test_weights_and_results_are_not_kept():
    a, b = numbers(2, 8), numbers(8, 4)
    packed = tenon.matmul_pack(a, b)
    gone = weakref.ref(b)
    del b
    gc.collect()
    assert gone() is None
    assert packed(a).shape == (2, 4)


def test_wrong_use_is_rejected():
    a, b = numbers(2, 8), numbers(8, 4)
    packed = tenon.matmul_pack(a, b)
    with pytest.raises(tenon.errors.InvalidArgumentError, match=r"a: expected the shape \(2, 8\).*pack b for this"):
        packed(numbers(3, 8))
    with pytest.raises(tenon.errors.InvalidArgumentError, match="expected at least 2 dimensions"):
        tenon.matmul_pack(a[0], b)
    with pytest.raises(tenon.errors.InvalidArgumentError, match="a: expected f32, for which b was packed, got f64; cast a, or"):
        packed(a.astype("f8"))
    with pytest.raises(tenon.Error, match="out"):
        packed(a, out=numbers(2, 5))
    added = tenon.matmul_pack(a, b, beta=1.0, out=numbers(2, 4))
    with pytest.raises(tenon.errors.InvalidArgumentError, match="beta: expected out too"):
        added(a)
    out = numbers(2, 4)
    numpy.testing.assert_allclose(added(a, out=out.copy()), a @ b + out, rtol=1e-5, atol=1e-5)
