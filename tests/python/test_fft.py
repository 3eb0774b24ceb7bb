"""tenon.fft against NumPy: every function, length, axis and norm, and what is refused."""
import itertools
import re

import numpy
import pytest
import tenon
from tenon import fft

LINES = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
BLOCKS = ("fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2")


def expect(found, wanted, about, bound=1e-10):
    wanted = wanted.astype("complex128" if wanted.dtype.kind == "c" else "float64")
    assert found.shape == wanted.shape, about
    numpy.testing.assert_allclose(found, wanted, rtol=0, atol=bound * max(1, abs(wanted).max()), err_msg=str(about))


def input_of(random, name, shape):
    real = name in ("rfft", "ihfft", "rfftn", "rfft2")
    return random.standard_normal(shape) + (0 if real else 1j * random.standard_normal(shape))


def test_lines(random):
    for name, n, axis, norm in itertools.product(LINES, (None, 1, 3, 9, 12), (-1, 0, 1), (None, "ortho", "forward")):
        a = input_of(random, name, (4, 6, 8))
        found = getattr(fft, name)(a, n, axis, norm)
        assert type(found) is numpy.ndarray
        expect(found, getattr(numpy.fft, name)(a, n, axis, norm), (name, n, axis, norm))


def test_lengths(random):
    for n in [*range(1, 70), 97, 128, 211, 360, 499, 512, 1000, 1009, 1024, 2048, 4093, 4096, 5000, 6561, 10007, 65536]:
        for name in ("fft", "rfft", "irfft"):
            a = input_of(random, name, (2, n if name != "irfft" else n // 2 + 1))
            expect(getattr(fft, name)(a, n), getattr(numpy.fft, name)(a, n), (name, n))


def test_blocks(random):
    places = [(None, None), ((3, 9), (0, 1)), ((2, 3, 7, 9), (2, 0, 1, 3)), ((5,), (0,)), ((3, 4, 5), (1, 0, 1)),
              (None, (-1, 0)), ((6, -1), (1, 2)), (None, (1, 1)), (None, (1, 0, 1)), (None, (3, 2, 1, 0, 1))]
    for name, (s, axes), norm in itertools.product(BLOCKS, places, (None, "ortho")):
        a = input_of(random, name, (4, 6, 5, 8))
        given = {"norm": norm, **({"s": s} if s else {}), **({"axes": axes} if axes else {})}
        found = getattr(fft, name)(a, **given)
        if s:  # NumPy 1 does not have -1
            given["s"] = [a.shape[axis] if size == -1 else size for size, axis in zip(s, axes)]
        expect(found, getattr(numpy.fft, name)(a, **given), (name, given))


def test_an_axis_three_times(random):
    for name in ("fftn", "ifftn", "irfftn", "irfft2"):  # NumPy 1 takes the axes of rfftn in another order
        a = input_of(random, name, (4, 6, 5))
        given = {"s": (3, 4, 7, 5), "axes": (1, 0, 1, 1)}
        expect(getattr(fft, name)(a, **given), getattr(numpy.fft, name)(a, **given), name)


def test_dtypes(random):
    for dtype, spectrum in (("float16", "complex64"), ("float32", "complex64"), ("float64", "complex128"),
                            ("int32", "complex128"), ("bool", "complex128"), ("complex64", "complex64")):
        a = (random.standard_normal((3, 10)) * 4).astype(dtype)
        found = fft.fft(a)
        assert found.dtype == spectrum
        expect(found, numpy.fft.fft(a), dtype, 1e-6)
        assert fft.irfft(a).dtype == ("float32" if spectrum == "complex64" else "float64")
    with pytest.raises(TypeError, match="a?.*expected real numbers, got c64; use fft for complex ones"):
        fft.rfft(numpy.ones(4, "complex64"))


def test_out_and_layouts(random):
    a = input_of(random, "fft", (6, 10, 12))[:, ::2, ::-1]
    for axis in range(3):
        out = numpy.empty((2, *a.shape), "complex128")[1]
        assert fft.fft(a, axis=axis, out=out) is out
        expect(out, numpy.fft.fft(a, axis=axis), axis)
    turned = numpy.asfortranarray(a)
    out = numpy.empty_like(turned)
    fft.ifftn(turned, out=out)
    expect(out, numpy.fft.ifftn(a), "ifftn")
    whole = a.copy()
    assert fft.fft(whole, out=whole) is whole
    expect(whole, numpy.fft.fft(a), "in place")
    with pytest.raises(tenon.Error, match="a shares memory with out"):
        fft.fft(whole[1:], out=whole[:-1])
    assert fft.fft(numpy.empty((0, 4))).shape == (0, 4)
    assert fft.fftn(numpy.ones((2, 3)), axes=()).tolist() == numpy.ones((2, 3)).tolist()


def test_out_does_not_choose_what_is_computed():
    real, spectrum = numpy.ones(8), numpy.ones(5, "complex128")
    for name, a, n, dtype, shape, wanted in (
            ("fft", spectrum, None, "float64", (8,), "c128 of (5,), got f64 of (8,)"),
            ("ifft", spectrum, None, "float64", (8,), "c128 of (5,), got f64 of (8,)"),
            ("irfft", spectrum, None, "complex128", (5,), "f64 of (8,), got c128 of (5,)"),
            ("irfft", spectrum, 9, "float64", (8,), "f64 of (9,), got f64 of (8,)"),
            ("hfft", spectrum, 9, "float64", (8,), "f64 of (9,), got f64 of (8,)"),
            ("rfft", real, None, "complex64", (5,), "c128 of (5,), got c64 of (5,)"),
            ("fft", numpy.ones((6, 12)), None, "complex128", (6, 5), "c128 of (6, 12), got c128 of (6, 5)"),
            ("irfft2", numpy.ones((3, 5), "complex128"), None, "complex128", (3, 5),
             "f64 of (3, 8), got c128 of (3, 5)"),
            ("fftn", numpy.ones((2,) * 4), None, "complex64", (2,) * 4, "c128 of (2, 2, 2, 2), got c64 of (2, 2, 2, 2)")):
        with pytest.raises(tenon.Error, match=re.escape(f"out: expected {wanted}")):
            getattr(fft, name)(a, n, out=numpy.empty(shape, dtype))
    for dtype, shape in (("float64", (2, 3)), ("complex128", (3, 2))):
        with pytest.raises(tenon.Error, match=re.escape("out: expected c128 of (2, 3), got ")):
            fft.fftn(numpy.ones((2, 3)), axes=(), out=numpy.empty(shape, dtype))


def test_refusals():
    a = numpy.ones((3, 4))
    for call, message in (
            (lambda: fft.fft(a, 0), "n: expected at least 1 point, got 0"),
            (lambda: fft.fft(a, -2), "n: expected at least 1 point, got -2"),
            (lambda: fft.irfft(numpy.ones(1)), "axis 0: expected at least 2 numbers, got 1; give the length"),
            (lambda: fft.irfft(numpy.ones((3, 0)), axis=-1), "axis 1: expected at least 2 numbers, got 0; give"),
            (lambda: fft.hfft(numpy.ones(1)), "axis 0: expected at least 2 numbers, got 1; give the length"),
            (lambda: fft.fft(a, 2 ** 31), "n: expected at most 2147483647 points, got 2147483648"),
            (lambda: fft.fft(a, axis=2), "axis: expected -2 to 1, got 2"),
            (lambda: fft.fft(numpy.float64(1)), "axis: expected an array with dimensions, got a scalar"),
            (lambda: fft.fft(a, norm="both"), 'no norm "both".*: backward, ortho, forward'),
            (lambda: fft.fftn(a, (2, 2), (0,)), "s: expected as many sizes as there are axes, 1, got 2"),
            (lambda: fft.rfftn(a, axes=()), "axes: expected at least one axis to transform, got none"),
            (lambda: fft.fft(numpy.ones((3, 0))), "expected at least 1 point, got 0"),
            (lambda: fft.fftfreq(0), "n: expected at least 1 point, got 0")):
        with pytest.raises(tenon.Error, match=message):
            call()
    with pytest.raises(TypeError, match="n: expected a whole number, got float"):
        fft.fft(a, 2.5)
    with pytest.raises(TypeError, match="fft\\(\\) has no option 'axes'; did you mean 'axis'"):
        fft.fft(a, axes=1)


def test_explanations():
    decision = tenon.explain(fft.fft2, numpy.ones((3, 4, 5), "complex64"), norm="ortho")
    assert decision.problem.startswith("fft:c64:shape=3x4x5,dims=2,norm=ortho")
    tenon.prepare(fft.rfft, numpy.ones((3, 4), "float32"))
    with tenon.settings.scope(rules="require:cpu.fft.ref"):
        assert tenon.explain(fft.fft, numpy.ones((3, 4), "complex64")).chosen.kernel == "cpu.fft.ref"


def test_helpers(random):
    for n in range(1, 12):
        numpy.testing.assert_allclose(fft.fftfreq(n, 0.3), numpy.fft.fftfreq(n, 0.3))
        numpy.testing.assert_allclose(fft.rfftfreq(n, 0.3), numpy.fft.rfftfreq(n, 0.3))
    a = random.standard_normal((4, 5, 1, 3))
    for axes in (None, 0, 1, -1, (0, 3), (1, 2), (1, 1), ()):
        assert numpy.array_equal(fft.fftshift(a, axes), numpy.fft.fftshift(a, axes))
        assert numpy.array_equal(fft.ifftshift(a, axes), numpy.fft.ifftshift(a, axes))


def test_tensors_of_pytorch():
    torch = pytest.importorskip("torch")
    a = torch.randn(3, 20)
    found = fft.rfft(a)
    assert type(found) is torch.Tensor and found.dtype == torch.complex64
    torch.testing.assert_close(found, torch.fft.rfft(a))
    torch.testing.assert_close(fft.fft(a[:, ::2], n=16), torch.fft.fft(a[:, ::2], n=16))
    torch.testing.assert_close(fft.ifftn(found), torch.fft.ifftn(found))
