"""tenon.integrations.scipy_fft: scipy.fft with Tenon as its backend gives what SciPy's own gives."""
import itertools

import numpy
import pytest

scipy_fft = pytest.importorskip("scipy.fft", reason="SciPy is not here")

import tenon  # noqa: E402
from tenon.integrations import scipy_fft as backend  # noqa: E402

LINES = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
BLOCKS = tuple(name + end for name in LINES for end in ("2", "n"))


def input_of(random, name, shape, dtype="float64"):
    x = random.standard_normal(shape)
    if not name.startswith(("rfft", "ihfft")):
        x = x + 1j * random.standard_normal(shape)
        dtype = {"float64": "complex128", "float32": "complex64"}[dtype]
    return x.astype(dtype)


def expect_same(name, x, *given, **options):
    wanted, before = getattr(scipy_fft, name)(x, *given, **options), backend.calls()
    with scipy_fft.set_backend(backend, only=True):
        found = getattr(scipy_fft, name)(x, *given, **options)
    assert backend.calls() == before + 1
    assert found.dtype == wanted.dtype and found.shape == wanted.shape, (name, given, options)
    bound = 1e-5 if wanted.dtype.itemsize <= (8 if wanted.dtype.kind == "c" else 4) else 1e-12
    numpy.testing.assert_allclose(found, wanted, rtol=0, atol=bound * max(1, abs(wanted).max()), err_msg=str((name, given, options)))


def test_lines(random):
    for name, n, axis, norm in itertools.product(LINES, (None, 4, 9), (-1, 0), (None, "ortho", "forward")):
        expect_same(name, input_of(random, name, (5, 6)), n, axis, norm)


def test_blocks(random):
    for name, norm, dtype in itertools.product(BLOCKS, (None, "ortho", "forward"), ("float32", "float64")):
        expect_same(name, input_of(random, name, (3, 4, 5), dtype), norm=norm)
        expect_same(name, input_of(random, name, (3, 4, 5), dtype), (5, 7), (2, 0), norm)
    for name in BLOCKS[1::2]:
        expect_same(name, input_of(random, name, (3, 4, 5)), 6)
        expect_same(name, input_of(random, name, (3, 4, 5)), s=6, axes=1)
        expect_same(name, input_of(random, name, (3, 4, 5)), axes=(0, -1), workers=2)
        expect_same(name, input_of(random, name, (2, 3, 2, 3, 4)))  # more dimensions than one call has


def test_what_is_no_array_of_a_float():
    for x in ([1, 2, 3, 4], (1.5, 2, 3), numpy.arange(6, dtype="int8"), numpy.ones(5, bool), numpy.ones(5, "float16"),
              numpy.arange(6, dtype=">f8"), numpy.arange(6, dtype=">c8"), numpy.ma.array([1.0, 2.0, 3.0])):
        expect_same("fft", x)
    expect_same("rfft", numpy.arange(12.0)[::-2])


def test_the_next_backend_computes_the_rest():
    x, before = numpy.arange(8.0), backend.calls()
    with scipy_fft.set_backend(backend):
        numpy.testing.assert_allclose(scipy_fft.idct(scipy_fft.dct(x)), x)
        if numpy.dtype("longdouble").itemsize > 8:
            assert scipy_fft.fft(x.astype("longdouble")).dtype == "clongdouble"
    assert backend.calls() == before
    with scipy_fft.set_backend(backend, only=True), pytest.raises(Exception, match="[Nn]o.*backend|NotImplemented"):
        scipy_fft.dct(x)


def test_the_whole_process(script):
    script("""
import numpy, scipy.fft
from tenon.integrations import scipy_fft
scipy.fft.set_global_backend(scipy_fft, only=True)
assert scipy.fft.fft(numpy.ones(4)).tolist() == [4, 0, 0, 0]
assert scipy_fft.calls() == 1
""")


def test_refusals():
    x = numpy.ones((3, 4))
    with scipy_fft.set_backend(backend, only=True):
        for call, message in (
                (lambda: scipy_fft.fft(x, 0), "n: expected at least 1 point, got 0"),
                (lambda: scipy_fft.fft(x, axis=2), "axis: expected -2 to 1, got 2"),
                (lambda: scipy_fft.fft2(x, axes=(0, -2)), r"axes: expected different dimensions, got \(0, -2\)"),
                (lambda: scipy_fft.fftn(x, (2,), (0, 1)), "s: expected as many sizes as there are axes, 2, got 1"),
                (lambda: scipy_fft.fft(x, workers=0), "workers: expected a number of threads"),
                (lambda: scipy_fft.fft(x, norm="both"), 'no norm "both"')):
            with pytest.raises(tenon.Error, match=message):
                call()
        with pytest.raises(TypeError, match="expected real numbers, got c128; use fft"):
            scipy_fft.rfft(x + 0j)
        with pytest.raises(NotImplementedError, match="plan: expected None"):
            scipy_fft.fft(x, plan=1)
