"""Operators on arrays of every sort, against NumPy."""
import array
import ctypes
import gc
import os
import pickle
import re
import subprocess
import sys
import weakref

import numpy
import pytest
import tenon
from tenon import _abi, _dlpack


def normal(random, *shape, dtype="float32"):
    return random.standard_normal(shape).astype(dtype)


def softmax(x, axis=-1):
    e = numpy.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def attend(q, k, v, mask=None, scale=None):
    """As the formula says, in f64, of [batch, heads, length, size]."""
    q, k, v = (x.astype("f8") for x in (q, k, v))
    k, v = (numpy.repeat(x, q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = q @ k.swapaxes(-1, -2) * (scale or q.shape[-1] ** -0.5)
    if mask is not None:
        scores = numpy.where(mask, scores, -numpy.inf)
    return softmax(scores) @ v


@pytest.mark.parametrize("dtype,bound", [("float32", 1e-5), ("float64", 1e-12), ("float16", 2e-2)])
def test_matmul(random, dtype, bound):
    for _ in range(20):
        m, n, k = random.integers(1, 40, 3)
        a, b = normal(random, m, k, dtype=dtype), normal(random, k, n, dtype=dtype)
        out = tenon.matmul(a, b)
        assert type(out) is numpy.ndarray and out.dtype == a.dtype
        wanted = a.astype("f8") @ b.astype("f8")
        assert numpy.abs(out - wanted).max() <= bound * (numpy.abs(a).astype("f8") @ numpy.abs(b)).max()


def test_matmul_of_integers(random):
    a, b = (random.integers(-128, 128, shape, "int8") for shape in ((7, 33), (33, 5)))
    out = tenon.matmul(a, b)
    assert out.dtype == numpy.int32
    numpy.testing.assert_array_equal(out, a.astype("i4") @ b.astype("i4"))


def test_matmul_options(random):
    a, b = normal(random, 6, 9), normal(random, 9, 4)
    bias, out = normal(random, 4), normal(random, 6, 4)
    wanted = numpy.maximum(2.0 * (a @ b) + 0.5 * out + bias, 0)
    given = out.copy()
    result = tenon.matmul(a, b, out=given, bias=bias, alpha=2.0, beta=0.5, activation="relu")
    assert result is given
    numpy.testing.assert_allclose(given, wanted, 1e-4, 1e-4)
    numpy.testing.assert_allclose(
        tenon.matmul(b, a, transpose_a=True, transpose_b=True), (a @ b).T, 1e-4, 1e-4)
    assert not tenon.matmul(a, b, alpha=0.0).any()


@pytest.mark.parametrize("factor, element", [(1e50, 1e-15), (1e-50, 1e19)])
def test_matmul_by_numbers_that_f32_does_not_hold(factor, element):
    a = numpy.full((20, 20), element, "f4")
    wanted = numpy.full((20, 20), 20 * float(a[0, 0]) ** 2 * factor)
    numpy.testing.assert_allclose(tenon.matmul(a, a, alpha=factor), wanted, 1e-5)
    zeros = numpy.zeros((20, 20), "f4")
    assert not tenon.matmul(a * 0, a, out=zeros, alpha=1e300, beta=1e300).any()
    told = tenon.explain("matmul:f32:m=20,n=20,k=20,alpha=%g@cpu" % factor)
    assert "far-factors" in str(told) and told.chosen.kernel.endswith(".ref")


def test_matmul_broadcasts_and_takes_vectors(random):
    a, b = normal(random, 3, 1, 5, 6), normal(random, 2, 6, 4)
    numpy.testing.assert_allclose(tenon.matmul(a, b), a @ b, 1e-4, 1e-4)
    for left, right in ((a, b[0, :, 0]), (a[0, 0, 0], b), (a[0, 0, 0], b[0, :, 0])):
        numpy.testing.assert_allclose(tenon.matmul(left, right), left @ right, 1e-4, 1e-4)


LAYOUTS = {
    "transposed": lambda x: numpy.ascontiguousarray(x.T).T,
    "reversed": lambda x: numpy.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
    "every second": lambda x: numpy.repeat(numpy.repeat(x, 2, 0), 3, 1)[::2, ::3],
    "fortran": numpy.asfortranarray,
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(random, layout):
    a, b = normal(random, 8, 6), normal(random, 6, 10)
    make = LAYOUTS[layout]
    numpy.testing.assert_allclose(tenon.matmul(make(a), make(b)), a @ b, 1e-4, 1e-4)
    out = make(numpy.full((8, 10), numpy.nan, "f4"))
    tenon.matmul(a, b, out=out)
    numpy.testing.assert_allclose(out, a @ b, 1e-4, 1e-4)


@pytest.mark.parametrize("layout", ["bhld", "blhd"])
@pytest.mark.parametrize("groups", [4, 2, 1])
@pytest.mark.parametrize("mask", [None, "causal", "causal-br"])
def test_attention(random, layout, groups, mask):
    queries, keys = 5, 9
    q = normal(random, 2, 4, queries, 8)
    k, v = normal(random, 2, groups, keys, 8), normal(random, 2, groups, keys, 8)
    shift = {"causal": 0, "causal-br": keys - queries}.get(mask)
    seen = None if mask is None else (
        numpy.arange(keys) <= numpy.arange(queries)[:, None] + shift)
    wanted = attend(q, k, v, seen)
    if layout == "blhd":
        q, k, v = (numpy.ascontiguousarray(x.swapaxes(1, 2)) for x in (q, k, v))
        wanted = wanted.swapaxes(1, 2)
    out, lse = tenon.attention(q, k, v, mask=mask, layout=layout, lse=True)
    numpy.testing.assert_allclose(out, wanted, 1e-4, 1e-4)
    assert lse.shape == (2, 4, queries) and lse.dtype == numpy.float32


def test_attention_masks_and_scale(random):
    q, k, v = (normal(random, 1, 2, 6, 4) for _ in range(3))
    seen = random.random((6, 6)) < 0.7
    seen[:, 0] = True
    numpy.testing.assert_allclose(tenon.attention(q, k, v, mask=seen, scale=0.3),
                                  attend(q, k, v, seen, 0.3), 1e-4, 1e-4)
    added = numpy.where(seen, 0, -numpy.inf).astype("f4")
    numpy.testing.assert_allclose(tenon.attention(q, k, v, mask_tensor=added),
                                  attend(q, k, v, seen), 1e-4, 1e-4)
    i, j = numpy.ogrid[:6, :6]
    numpy.testing.assert_allclose(tenon.attention(q, k, v, window=(2, 1)),
                                  attend(q, k, v, (j >= i - 2) & (j <= i + 1)), 1e-4, 1e-4)


def test_attention_causal(random):
    """causal=True is the mask "causal", alone or beside an array; with what contradicts it, it is refused."""
    q, k, v = (normal(random, 2, 4, 5, 8) for _ in range(3))
    seen = random.random((2, 1, 5, 5)) < 0.7
    out, lse = tenon.attention(q, k, v, mask="causal", lse=True)
    numpy.testing.assert_array_equal(tenon.attention(q, k, v, causal=True), out)
    numpy.testing.assert_array_equal(tenon.attention(q, k, v, causal=True, mask="causal"), out)
    numpy.testing.assert_array_equal(tenon.attention(q, k, v, causal=False), tenon.attention(q, k, v))
    wanted = tenon.attention(q, k, v, mask="causal", mask_tensor=seen)
    numpy.testing.assert_array_equal(tenon.attention(q, k, v, causal=True, mask=seen), wanted)
    numpy.testing.assert_array_equal(tenon.attention(q, k, v, causal=True, mask_tensor=seen, softcap=0.0), wanted)
    for one, other in zip(tenon.attention_backward(out, q, k, v, out, lse, causal=True),
                          tenon.attention_backward(out, q, k, v, out, lse, mask="causal")):
        numpy.testing.assert_array_equal(one, other)
    assert "mask=causal" in tenon.explain(tenon.attention, q, k, v, causal=True).problem
    for options, told in (({"mask": "causal-br"}, 'causal=True or the mask "causal-br", got both'),
                          ({"mask": "none"}, 'causal=True or the mask "none", got both'),
                          ({"window": (1, 0)}, r"causal=True or a window, got both; give window=\(left, 0\)"),
                          ({"mask": "window", "window": (1, 0)}, "got both")):
        with pytest.raises(tenon.errors.InvalidArgumentError, match=told):
            tenon.attention(q, k, v, causal=True, **options)
    with pytest.raises(TypeError, match="causal: expected True or False, got 'yes'"):
        tenon.attention(q, k, v, causal="yes")


def test_attention_backward_and_merge(random):
    q, k, v, dout = (normal(random, 1, 2, 6, 4, dtype="float64") for _ in range(4))
    out, lse = tenon.attention(q, k, v, lse=True)
    dq, _, dv = tenon.attention_backward(dout, q, k, v, out, lse)
    into = [numpy.empty_like(x) for x in (q, k, v)]
    again = tenon.attention_backward(dout, q, k, v, out, lse, into=into)
    assert all(one is other for one, other in zip(again, into))
    numpy.testing.assert_array_equal(into[0], dq)
    step = 1e-6
    for grad, operand in ((dq, q), (dv, v)):
        moved = operand.copy()
        moved[0, 1, 2, 3] += step
        other = tenon.attention(moved if operand is q else q, k, moved if operand is v else v)
        numpy.testing.assert_allclose(((other - out) * dout).sum() / step, grad[0, 1, 2, 3], 1e-3, 1e-6)
    parts = [tenon.attention(q, k[:, :, s], v[:, :, s], lse=True) for s in (slice(0, 2), slice(2, 6))]
    merged, sums = tenon.attention_merge(*parts[0], *parts[1])
    numpy.testing.assert_allclose(merged, out, 1e-9, 1e-14)
    numpy.testing.assert_allclose(sums, lse, 1e-9, 1e-14)


def test_attention_sparse(random):
    q, k, v = normal(random, 2, 4, 30, 16), normal(random, 2, 2, 41, 16), normal(random, 2, 2, 41, 24)
    seen = random.random((2, 4, 4, 6)) < 0.5
    dense = numpy.repeat(numpy.repeat(seen, 8, 2), 7, 3)[:, :, :30, :41]
    wanted, sums = tenon.attention(q, k, v, mask=dense, lse=True)
    out, lse = tenon.attention_sparse(q, k, v, seen, block=(8, 7), lse=True)
    numpy.testing.assert_allclose(out, wanted, 1e-5, 1e-6)
    numpy.testing.assert_allclose(lse, sums, 1e-5, 1e-6)
    starts = numpy.zeros((2, 4, 5), "int32")
    starts.reshape(-1, 5)[:, 1:] = numpy.cumsum(seen.sum(-1)).reshape(-1, 4)
    starts.reshape(-1, 5)[1:, 0] = starts.reshape(-1, 5)[:-1, 4]
    blocks = numpy.nonzero(seen)[3].astype("int32")
    listed = numpy.empty_like(wanted)
    assert tenon.attention_sparse(q, k, v, block=(8, 7), starts=starts, blocks=blocks, out=listed) is listed
    numpy.testing.assert_array_equal(listed, out)
    causal = tenon.attention_sparse(q, k, v, seen, block=(8, 7), causal=True, scale=0.5)
    numpy.testing.assert_allclose(causal, tenon.attention(q, k, v, mask=dense, causal=True, scale=0.5), 1e-5, 1e-6)
    sizes = numpy.array([7, 7, 0, 3, 7, 6], "int32")
    exist = (numpy.arange(7) < sizes[:, None]).reshape(-1)[:41]
    short = tenon.attention_sparse(q, k, v, seen, block=(8, 7), block_sizes=sizes)
    numpy.testing.assert_allclose(short, tenon.attention(q, k, v, mask=dense & exist), 1e-5, 1e-6)
    turned = tenon.attention_sparse(*(x.transpose(0, 2, 1, 3) for x in (q, k, v)), seen, block=(8, 7), layout="blhd")
    numpy.testing.assert_allclose(turned, out.transpose(0, 2, 1, 3), 1e-5, 1e-6)
    assert "bq=8,bk=7" in tenon.explain(tenon.attention_sparse, q, k, v, seen, block=(8, 7)).problem
    with pytest.raises(tenon.errors.InvalidArgumentError, match="expected at least 0 and below 6, got 6; list the"):
        tenon.attention_sparse(q, k, v, block=(8, 7), starts=starts, blocks=blocks + 6 * (blocks == 0).astype("int32"))
    with pytest.raises(tenon.errors.InvalidArgumentError, match="expected either block_mask, or starts and blocks"):
        tenon.attention_sparse(q, k, v, block=8)
    with pytest.raises(TypeError, match="mask: expected a word, got ndarray; give blocks in block_mask"):
        tenon.attention_sparse(q, k, v, block=8, mask=seen)


def test_attention_sparse_in_an_order(random):
    """Blocks of slots, some of them empty, against copies in the order of the slots."""
    q, k, v = (normal(random, 2, 3, 30, 16) for _ in range(3))
    order, sizes = numpy.zeros(40, "int32"), numpy.array([8, 6, 0, 8, 8], "int32")
    valid = (numpy.arange(8) < sizes[:, None]).reshape(-1)
    order[valid] = random.permutation(30)
    seen = random.random((3, 5, 5)) < 0.6
    copies = [x[:, :, order] for x in (q, k, v)]
    wanted = tenon.attention_sparse(*copies, seen, block=8, block_sizes=sizes)
    out, lse = tenon.attention_sparse(q, k, v, seen, block=8, block_sizes=sizes, order=order, lse=True)
    numpy.testing.assert_array_equal(out[:, :, order[valid]], wanted[:, :, valid])
    assert lse.shape == (2, 3, 30)
    assert "sizes=1,slots=40" in tenon.explain(tenon.attention_sparse, q, k, v, seen, block=8, block_sizes=sizes, order=order).problem
    order[0] = order[1]
    with pytest.raises(tenon.errors.InvalidArgumentError, match=r"order\[0\]\[1\]: expected each token once"):
        tenon.attention_sparse(q, k, v, seen, block=8, block_sizes=sizes, order=order)
    order[0] = 30
    with pytest.raises(tenon.errors.InvalidArgumentError, match=r"order\[0\]\[0\]: expected 0 to 29, a token, got 30"):
        tenon.attention_sparse(q, k, v, seen, block=8, block_sizes=sizes, order=order)


def off(out, wanted):
    """The mean error, relative to the mean size."""
    return numpy.abs(out - wanted).mean() / numpy.abs(wanted).mean()


def test_attention_quantized(random):
    q, k, v = normal(random, 2, 4, 150, 32), normal(random, 2, 2, 170, 32), normal(random, 2, 2, 170, 24)
    k += 10 * normal(random, 32)
    wanted, sums = tenon.attention(q, k, v, lse=True)
    for weights in ("f32", "f16", "f8_e4m3fn", "u8", "i8", numpy.float32):
        for scales in ("thread", "warp", "block"):
            out, lse = tenon.attention_quantized(q, k, v, weights=weights, scales=scales, lse=True)
            assert 0 < off(out, wanted) < (0.1 if weights == "f8_e4m3fn" else 0.05)
            assert abs(lse - sums).max() < 0.2
    assert off(tenon.attention_quantized(q, k, v, smooth=False), wanted) > off(tenon.attention_quantized(q, k, v), wanted)
    near = numpy.empty_like(wanted)
    assert tenon.attention_quantized(q, k, v, weights="u8", causal=True, scale=0.5, out=near) is near
    assert off(near, tenon.attention(q, k, v, causal=True, scale=0.5)) < 0.05
    window = tenon.attention_quantized(q, k, v, window=(9, 3))
    assert off(window, tenon.attention(q, k, v, window=(9, 3))) < 0.05
    turned = tenon.attention_quantized(*(x.transpose(0, 2, 1, 3) for x in (q, k, v)), weights="u8", layout="blhd")
    numpy.testing.assert_array_equal(turned.transpose(0, 2, 1, 3), tenon.attention_quantized(q, k, v, weights="u8"))
    text = tenon.explain(tenon.attention_quantized, q, k, v, weights="u8", scales="warp", smooth=False).problem
    assert "weights=u8,scales=warp,smoothing=none" in text
    with pytest.raises(tenon.errors.InvalidArgumentError, match="weights: expected f32, f16, f8_e4m3fn, u8 or i8, got bf16"):
        tenon.attention_quantized(q, k, v, weights="bf16")
    with pytest.raises(tenon.errors.InvalidArgumentError, match='no scales "row"'):
        tenon.attention_quantized(q, k, v, scales="row")
    with pytest.raises(TypeError, match="mask: expected a word, got ndarray; tenon.attention takes arrays"):
        tenon.attention_quantized(q, k, v, mask=numpy.ones((150, 170), bool))
    with pytest.raises(tenon.errors.UnsupportedError, match="q: expected f32, f16 or bf16, got f64"):
        tenon.attention_quantized(*(x.astype("f8") for x in (q, k, v)))


def test_helpers(random):
    x, y = normal(random, 4, 6), normal(random, 6)
    numpy.testing.assert_allclose(tenon.softmax(x, 0), softmax(x, 0), 1e-5, 1e-6)
    numpy.testing.assert_allclose(tenon.softmax(x, log=True), numpy.log(softmax(x)), 1e-4, 1e-5)
    numpy.testing.assert_allclose(tenon.binary("mul", x, y), x * y, 1e-6)
    numpy.testing.assert_allclose(tenon.unary("exp", x), numpy.exp(x), 1e-5)
    numpy.testing.assert_allclose(tenon.reduce("sum", x), x.sum(), 1e-4, 1e-5)
    numpy.testing.assert_allclose(tenon.reduce("max", x, -1, keepdims=True), x.max(-1, keepdims=True))
    numpy.testing.assert_array_equal(tenon.permute(x, (1, 0)), x.T)
    numpy.testing.assert_array_equal(tenon.permute(x, (-1, 0)), x.T)
    numpy.testing.assert_array_equal(tenon.cast(x, "float64"), x.astype("f8"))
    centred = (x - x.mean(-1, keepdims=True)) / numpy.sqrt(x.var(-1, keepdims=True) + 1e-5)
    numpy.testing.assert_allclose(tenon.layer_norm(x, y, y), centred * y + y, 1e-4, 1e-5)
    scaled = x / numpy.sqrt((x * x).mean(-1, keepdims=True) + 1e-3)
    numpy.testing.assert_allclose(tenon.rms_norm(x, epsilon=1e-3), scaled, 1e-4, 1e-5)
    cos, sin = normal(random, 4, 3), normal(random, 4, 3)
    turned = numpy.concatenate([x[:, :3] * cos - x[:, 3:] * sin, x[:, :3] * sin + x[:, 3:] * cos], -1)
    numpy.testing.assert_allclose(tenon.rotary(x, cos, sin), turned, 1e-4, 1e-5)
    out = numpy.empty_like(x)
    assert tenon.fill(out, 7) is out and (out == 7).all()
    assert tenon.copy(x, out) is out
    numpy.testing.assert_array_equal(out, x)


def test_empty_arrays():
    assert tenon.matmul(numpy.ones((0, 3), "f4"), numpy.ones((3, 4), "f4")).shape == (0, 4)
    assert not tenon.matmul(numpy.ones((2, 0), "f4"), numpy.ones((0, 4), "f4")).any()
    q = numpy.ones((1, 1, 0, 4), "f4")
    assert tenon.attention(q, q, q).shape == q.shape


def test_read_only(random):
    a = normal(random, 4, 4)
    a.flags.writeable = False
    numpy.testing.assert_allclose(tenon.matmul(a, a), a @ a, 1e-4, 1e-4)
    before = a.copy()
    with pytest.raises(tenon.errors.RefusedError, match="read-only"):
        tenon.matmul(before, before, out=a)
    numpy.testing.assert_array_equal(a, before)


def test_other_byte_order(random):
    a = normal(random, 4, 4)
    with pytest.raises(tenon.errors.InvalidArgumentError, match="byte order"):
        tenon.matmul(a.astype(a.dtype.newbyteorder()), a)
    with pytest.raises(tenon.errors.InvalidArgumentError, match="<f4"):
        tenon.matmul(Interface(a.astype(a.dtype.newbyteorder())), a)
    other = ctypes.c_float.__ctype_be__ if sys.byteorder == "little" else ctypes.c_float.__ctype_le__
    for given in (memoryview(a.astype(a.dtype.newbyteorder())), (other * 4)()):
        with pytest.raises(tenon.errors.InvalidArgumentError, match="byte order"):
            tenon.unary("neg", given)


def test_buffers_without_strides():
    """As ctypes' arrays are."""
    rows = ((ctypes.c_float * 3) * 2)((1, 2, 3), (4, 5, 6))
    numpy.testing.assert_array_equal(tenon.permute(rows, (1, 0)), [[1, 4], [2, 5], [3, 6]])
    assert numpy.asarray(tenon.unary("neg", ctypes.c_double(2))) == -2


def test_what_is_no_array():
    a = numpy.ones((2, 2), "f4")
    for wrong in ([[1.0]], 3, "text", None, object()):
        with pytest.raises(TypeError, match="expected an array"):
            tenon.matmul(wrong, a)
    with pytest.raises(tenon.errors.InvalidArgumentError, match="no dtype for NumPy's"):
        tenon.matmul(numpy.array([["x"]]), a)
    with pytest.raises(tenon.errors.InvalidArgumentError, match="masked"):
        tenon.matmul(numpy.ma.masked_array(a, a > 0), a)
    with pytest.raises(tenon.errors.InvalidArgumentError, match="whole numbers"):
        tenon.matmul(numpy.ndarray((2, 2), "f4", bytes(20), strides=(6, 4)), a)


def test_wrong_words():
    a = numpy.ones((2, 2), "f4")
    with pytest.raises(tenon.errors.InvalidArgumentError, match="\"relo\"; did you mean 'relu'. There are: .*relu"):
        tenon.matmul(a, a, activation="relo")
    with pytest.raises(tenon.errors.InvalidArgumentError, match="as many as a has columns"):
        tenon.matmul(a, numpy.ones((3, 2), "f4"))
    with pytest.raises(tenon.errors.InvalidArgumentError, match="broadcast"):
        tenon.binary("add", a, numpy.ones(3, "f4"))
    with pytest.raises(tenon.errors.NotFoundError, match="FLASH_ATTN"):
        tenon.attention(a[None, None], a[None, None], a[None, None], backend="FLASH_ATN")


@pytest.mark.parametrize("options,name", [
    ({"seed": -1}, "seed: expected 0 to 18446744073709551615, got -1"), ({"window": (1,)}, "window: expected two numbers"),
    ({"max_keys": 2**70}, "max_keys: expected -9223372036854775808 to 9223372036854775807, got"),
    ({"window": (2**70, 2)}, "window: expected"), ({"mask": "casual"}, "no mask \"casual\"; did you mean 'causal'.")])
def test_numbers_that_do_not_fit(options, name):
    q = numpy.ones((1, 1, 4, 4), "f4")
    with pytest.raises(tenon.errors.InvalidArgumentError, match=name):
        tenon.attention(q, q, q, **options)
    nowhere = type("Nowhere", (), {"__array_interface__": dict(q.__array_interface__, data=("x", False))})()
    with pytest.raises(tenon.errors.InvalidArgumentError, match="x. is no address"):
        tenon.matmul(nowhere, q)


class Interface:
    """Only the array interface."""

    def __init__(self, held):
        self.held = held

    __array_interface__ = property(lambda self: self.held.__array_interface__)


class Dlpack:
    """Only DLPack, in the form without a version."""

    def __init__(self, held):
        self.held = held

    def __dlpack__(self, stream=None):
        return self.held.__dlpack__()

    def __dlpack_device__(self):
        return self.held.__dlpack_device__()


class Lying:
    """A producer whose capsule says something else of its memory."""

    def __init__(self, **said):
        self.held, self.said = tenon.empty((2, 3), "f32", "cpu"), said

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, max_version=None, stream=None):
        capsule = self.held.__dlpack__(max_version=(1, 1))
        managed = _abi.DlpackVersioned.from_address(_dlpack._get(capsule, _dlpack.VERSIONED))
        for name, value in self.said.items():
            setattr(managed.tensor, name, value)
        return capsule


def test_producers_that_lie():
    """What a range check can find is refused; the capsule ends all the same."""
    for told, said in (("offset of 9223372036854775808", {"byte_offset": 2**63}), ("data is NULL", {"data": None}),
                       ("expected memory of this process", {"data": 64}), ("ndim: expected 0 to 32", {"ndim": 1000}),
                       ("its offset of 1152921504606846976 bytes", {"byte_offset": 2**60}),
                       ("expected f32 at a multiple of 4 bytes", {"byte_offset": 2}),
                       ("no dtype has code", {"dtype": 77}), ("DLPack's cpu .*id 9", {"device_id": 9})):
        with pytest.raises(tenon.errors.Error, match=told):
            tenon.softmax(Lying(**said))


def test_protocols(random):
    a, b = normal(random, 3, 4), normal(random, 4, 5)
    for wrap in (Interface, Dlpack, memoryview):
        out = tenon.matmul(wrap(a), wrap(b))
        assert isinstance(out, tenon.Tensor) and out.shape == (3, 5) and out.dtype == "f32"
        numpy.testing.assert_allclose(numpy.asarray(out), a @ b, 1e-4, 1e-4)
        numpy.testing.assert_allclose(numpy.from_dlpack(out), a @ b, 1e-4, 1e-4)
        numpy.testing.assert_allclose(tenon.matmul(out, wrap(b.T.copy())), (a @ b) @ b.T, 1e-3, 1e-3)
    row = array.array("d", [1, 2, 3])
    assert float(numpy.asarray(tenon.reduce("sum", row))) == 6.0
    with pytest.raises(tenon.errors.RefusedError, match="read-only"):
        tenon.fill(bytes(8), 1)


def test_jax_on_the_host(random):
    jax = pytest.importorskip("jax", reason="JAX is not here")
    host = jax.devices("cpu")[0]
    a, b = (jax.device_put(normal(random, 4, 4), host) for _ in range(2))
    out = tenon.matmul(a, b)
    assert isinstance(out, jax.Array) and out.devices() == {host}
    numpy.testing.assert_allclose(numpy.asarray(out), numpy.asarray(a) @ numpy.asarray(b), 1e-5, 1e-5)
    half = tenon.softmax(a.astype("bfloat16"))
    assert half.dtype == "bfloat16"
    numpy.testing.assert_allclose(half.astype("float32"), softmax(numpy.asarray(a)), 3e-2, 3e-2)
    before = numpy.asarray(b).copy()
    for write in (lambda: tenon.matmul(a, a, out=b), lambda: tenon.fill(b, 1), lambda: tenon.copy(a, b)):
        with pytest.raises(tenon.errors.RefusedError, match="read-only"):  # JAX's arrays do not change
            write()
    numpy.testing.assert_array_equal(numpy.asarray(b), before)


def test_memory_is_shared_and_freed(random):
    out = tenon.empty((2, 2), "f32", "cpu")
    seen = numpy.from_dlpack(out)
    tenon.fill(out, 3)
    assert (seen == 3).all()
    gone = weakref.ref(out)
    del out
    gc.collect()
    assert gone() is None and (seen == 3).all()
    a = normal(random, 4, 4)
    dead = weakref.ref(a)
    wrapped = tenon.matmul(Dlpack(a), Dlpack(a))
    del a
    gc.collect()
    assert dead() is None and wrapped.shape == (4, 4)


def test_nothing_leaks(random):
    """Memory does not grow with the number of calls."""
    import resource

    a = normal(random, 64, 64)

    def work(times):
        for _ in range(times):
            tenon.matmul(a, a)
            tenon.matmul(Dlpack(a), a)
            with tenon.settings.scope({"determinism": "run-to-run"}):
                tenon.softmax(a)
            with pytest.raises(tenon.Error):
                tenon.matmul(a, a[:3])

    work(100)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    work(1500)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4096  # KiB


def test_everything_is_given_back(random, tmp_path):
    """The library's own count of blocks stands where it stood."""
    from tenon._library import lib

    a = normal(random, 8, 8)
    path = tmp_path / "a.lock"

    def work():
        with tenon.settings.scope({"determinism": "run-to-run"}):
            tenon.matmul(Dlpack(a), a)
        tenon.explain(tenon.matmul, a, a)
        tenon.lock.write(path, ["matmul:f32:m=8,n=8,k=8@cpu"])
        tenon.lock.check(path)
        stream, event = tenon.Stream("cpu"), tenon.Event(on="cpu")
        event.record(stream)
        numpy.from_dlpack(tenon.empty((3, 3), device="cpu"))
        tenon.empty((2, 2), device="cpu").__dlpack__()
        tenon.doctor()

    for _ in range(3):
        work()
    gc.collect()
    before = lib.tn_allocator_blocks()
    for _ in range(10):
        work()
    gc.collect()
    assert lib.tn_allocator_blocks() <= before


def test_buffers_are_given_back():
    held = bytearray(32)
    tenon.reduce("sum", memoryview(held).cast("d"))
    tenon.fill(held, 7)
    held.extend(b"more")  # BufferError while someone holds it


def test_capsules_that_nobody_takes():
    from tenon import _dlpack

    t = tenon.empty((4, 4), device="cpu")
    for version in (None, (1, 1)):
        kept = t.__dlpack__(max_version=version)
        for _ in range(10):
            t.__dlpack__(max_version=version)
        assert len(_dlpack._given) <= 3
        taken = _dlpack.take_in(Taken(kept))
        assert taken.shape == (4, 4)
        with pytest.raises(tenon.errors.InvalidArgumentError, match="used"):
            _dlpack.take_in(Taken(kept))


class Taken:
    """Gives a capsule that it was given."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return 1, 0


def test_errors_are_whole(random):
    a = normal(random, 4, 4)
    with tenon.settings.scope({"rules": "require:matmul/cpu.matmul.bf16.*"}):
        with pytest.raises(tenon.errors.RefusedError) as caught:
            tenon.matmul(a, a)
    error = caught.value
    assert error.status == "refused" and error.where == "tn_matmul"
    assert error.problem.startswith("matmul:f32:m=4,n=4,k=4") and error.problem in error.message
    assert tenon.explain(error.problem).problem == error.problem
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and vars(again) == vars(error)


def test_explain(random):
    a = normal(random, 4, 4)
    decision = tenon.explain(tenon.matmul, a, a)
    assert decision.status == "ok" and decision.chosen == decision[0] == next(iter(decision))
    assert decision.problem.startswith("matmul:f32:m=4,n=4,k=4") and len(decision) > 2
    refused = next(c for c in decision if c.verdict == "refused")
    assert refused.why.code and refused.why.what
    shown = str(decision).splitlines()
    assert shown[0] == decision.problem and shown[2].split()[0] == decision.chosen.kernel
    assert decision._repr_html_().count("<tr>") == len(decision) + 1
    assert shown[-1] == f"runs now: {decision.runs_now.kernel}" and decision.runs_once_tested is None
    assert [c for c in decision if c.verdict == "chosen"] == [decision.runs_now]
    with tenon.settings.scope({"rules": "forbid:" + decision.chosen.kernel}):
        assert tenon.explain(tenon.matmul, a, a).chosen.kernel != decision.chosen.kernel
    tenon.prepare(tenon.matmul, a, a)
    with pytest.raises(TypeError, match="expected a problem's text or an operator"):
        tenon.explain(len, a)
    for function, instead in ((tenon.einsum, "tenon.einsum_path"), (tenon.matmul_pack, "tenon.matmul"),
                              (tenon.video.sliding_tile_attention, "tenon.attention_sparse"),
                              (tenon.video.video_sparse_attention, "tenon.attention_sparse")):
        for asked in (tenon.explain, tenon.prepare):
            with pytest.raises(TypeError, match=f"expected a problem's text or an operator .*; .*{instead}"):
                asked(function, a)


def test_cast_needs_a_dtype(random):
    """Or an array to write to: without either it would be a copy."""
    a = normal(random, 4, 4)
    with pytest.raises(TypeError, match="cast: expected dtype, or out of that dtype, got neither"):
        tenon.cast(a)
    assert tenon.cast(a, "f64").dtype == tenon.cast(a, out=a.astype("f8")).dtype == numpy.dtype("f8")


def test_messages_name_functions_of_python(random):
    a = normal(random, 4, 4)
    with pytest.raises(ValueError, match="f32, got f64; tenon.cast changes dtypes$"):
        tenon.einsum("ij,jk->ik", a, a.astype("f8"))


def test_explain_says_what_runs_now_and_once_tested(tmp_path):
    """In a process of its own, whose cache is empty."""
    program = """import platform
import tenon
problem = "softmax:f32:shape=8x64@cpu"
own = "cpu.softmax." + ("neon" if platform.machine() in ("aarch64", "arm64") else "plain")
with tenon.settings.scope({"admission": "always", "rules": "prefer:" + own}):
    decision = tenon.explain(problem)
    assert decision.runs_now.kernel == "cpu.softmax.ref" and decision.runs_now.verdict == "admitted"
    assert decision.runs_once_tested.kernel == own and decision.runs_once_tested.verdict == "untested"
    assert decision.chosen == decision.runs_once_tested and not [c for c in decision if c.verdict == "chosen"]
    told = "runs now: cpu.softmax.ref; runs once tested: " + own
    assert str(decision).splitlines()[-1] == told and told in repr(decision) and told in decision._repr_html_()
    tenon.prepare(problem)
    decision = tenon.explain(problem)
    assert decision.runs_now == decision.chosen == decision[0] and decision.runs_once_tested is None
with tenon.settings.scope({"rules": "forbid:softmax/platform:cpu"}):
    decision = tenon.explain(problem)
    assert decision.chosen is decision.runs_now is decision.runs_once_tested is None
"""
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, "TENON_CACHE": str(tmp_path)},
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_prepare_serves_memory_at_any_address(random):
    def lay(offset):
        room = numpy.zeros(8 * 8 * 4 + 128, numpy.uint8)
        first = -room.ctypes.data % 64 + offset
        made = room[first:first + 8 * 8 * 4].view(numpy.float32).reshape(8, 8)
        made[:] = normal(random, 8, 8)
        return made

    a, b = lay(0), lay(0)
    tenon.prepare(tenon.matmul, a, b)
    with tenon.settings.scope({"plan.only_prepared": True}):
        for i in range(300):
            a, b = lay(i * 4 % 64), lay(i // 16 * 4 % 64)
            numpy.testing.assert_allclose(tenon.matmul(a, b), a @ b, rtol=1e-4, atol=1e-5)


def test_lock(tmp_path):
    path, other = tmp_path / "a.lock", tmp_path / "b.lock"
    problem = "matmul:f32:m=8,n=8,k=8@cpu"
    tenon.lock.write(path, [problem], strict=True)
    chosen = tenon.explain(problem).chosen.kernel
    with tenon.settings.scope({"rules": "forbid:" + chosen}):
        report = tenon.lock.check(path)
        tenon.lock.write(other, [problem])
    assert report.differences == 1 and report.rows[0].locked == chosen and chosen in str(report)
    assert tenon.lock.diff(path, other).differences >= 1
    tenon.lock.use(path)
    try:
        assert tenon.lock.used() == str(path)
        with pytest.raises(tenon.errors.RefusedError):
            tenon.matmul(numpy.ones((3, 3), "f4"), numpy.ones((3, 3), "f4"))
    finally:
        tenon.lock.use(None)
    with pytest.raises(tenon.errors.Error):
        tenon.lock.check(tmp_path / "none.lock")


def test_numbers_of_numpy_are_read_and_not_written():
    assert numpy.asarray(tenon.binary("add", numpy.float32(1), numpy.float32(5))) == 6
    assert numpy.asarray(tenon.binary("sub", numpy.float64(10), numpy.float64(4))) == 6
    for write in (lambda: tenon.fill(numpy.float32(1), 5),
                  lambda: tenon.copy(numpy.zeros((), "f4"), numpy.float32(2))):
        with pytest.raises(tenon.Error, match="read-only"):
            write()


@pytest.mark.parametrize("shape, strides", [((2, 3, 4), (4,)), ((2,), (4, 4))])
def test_strides_are_as_many_as_dimensions(shape, strides):
    class Odd:
        memory = numpy.zeros(24, "f4")
        __array_interface__ = dict(typestr="<f4", shape=shape, strides=strides, version=3,
                                   data=(memory.ctypes.data, False))

    with pytest.raises(tenon.Error, match=f"{len(strides)} strides for {len(shape)} dimensions"):
        tenon.unary("neg", Odd())


def test_fill_refuses_integers_that_would_be_rounded():
    out = numpy.zeros(3, "i8")
    tenon.fill(out, 2**53)
    assert (out == 2**53).all()
    for value in (2**53 + 1, 2**62 + 1, 10**400):
        with pytest.raises(tenon.Error, match="double"):
            tenon.fill(out, value)


def test_flags_and_axes_are_what_they_should_be():
    a = numpy.arange(6, dtype="f4").reshape(2, 3)
    assert tenon.reduce("sum", a, numpy.int64(1), keepdims=numpy.bool_(True)).tolist() == [[3], [12]]
    assert tenon.reduce("sum", a, (0, -1)) == tenon.reduce("sum", a, numpy.array([0, 1])) == 15
    for wrong in (lambda: tenon.softmax(a, log="no"), lambda: tenon.reduce("sum", a, keepdims="no"),
                  lambda: tenon.reduce("sum", a, True), lambda: tenon.reduce("sum", a, "x"),
                  lambda: tenon.softmax(a, axis=None)):
        with pytest.raises(TypeError, match="expected"):
            wrong()


@pytest.mark.parametrize("dtype, number", [*((name, 3) for name in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")),
                                           ("f2", 0.1), ("f4", 0.1), ("f8", 0.1), ("f4", True), ("f4", float("inf"))])
def test_the_second_operand_may_be_a_number(dtype, number):
    """It is taken as the first one's dtype, in every library."""
    x = numpy.array([[1, 2], [3, 5]], dtype)
    scalar = numpy.asarray(number, dtype)
    for name in ("add", "sub", "mul", "maximum"):
        operator = getattr(tenon, name)
        numpy.testing.assert_array_equal(operator(x, number), operator(x, scalar))
    own = tenon.copy(x, tenon.empty(x.shape, x.dtype, "cpu"))
    numpy.testing.assert_array_equal(tenon.add(own, number).numpy(), tenon.add(x, scalar))
    kinds = [re.sub(",align=[0-9;]*", "", tenon.explain(tenon.add, x, other).problem) for other in (number, scalar)]
    assert kinds[0] == kinds[1]
    tenon.prepare(tenon.add, x, number)


def test_the_second_operand_of_pytorch_may_be_a_number():
    torch = pytest.importorskip("torch", reason="PyTorch is not here")
    for dtype in (torch.bfloat16, torch.float16, torch.float32, torch.int64):
        x = torch.tensor([1.0, 2.0, 3.0], dtype=dtype)
        for number in (3, 7.15625, 1.005859375, 1.00390625, 1.01171875, -0.1, float("nan")):
            if dtype.is_floating_point or number == 3:
                scalar = torch.tensor(number, dtype=dtype)
                torch.testing.assert_close(tenon.mul(x, number), tenon.mul(x, scalar), rtol=0, atol=0, equal_nan=True)
