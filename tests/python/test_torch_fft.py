"""tenon.integrations.torch_fft against torch.fft: results, first and second derivatives, and what is refused."""
import itertools

import pytest

torch = pytest.importorskip("torch")

import tenon
from tenon.integrations import torch_fft

LINES = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
BLOCKS = ("fft2", "ifft2", "rfft2", "irfft2", "hfft2", "ihfft2", "fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn")


def input_of(name, shape):
    real = name.startswith(("rfft", "ihfft"))
    return torch.randn(shape, dtype=torch.float64 if real else torch.complex128, requires_grad=True)


def expect_same(name, x, *given, **options):
    ours = getattr(torch_fft, name)(x, *given, **options)
    theirs = getattr(torch.fft, name)(x, *given, **options)
    torch.testing.assert_close(ours, theirs)
    weight = torch.randn_like(ours)
    gradients = []
    for result in (ours, theirs):
        size = (result * weight).abs().square().sum()
        first, = torch.autograd.grad(size, x, create_graph=True)
        second, = torch.autograd.grad((first.abs() ** 3).sum(), x)
        gradients.append((first.detach(), second))
    torch.testing.assert_close(gradients[0], gradients[1])


def test_lines():
    torch.manual_seed(0)
    for name, n, dim, norm in itertools.product(LINES, (None, 4, 9), (-1, 0), (None, "forward")):
        expect_same(name, input_of(name, (5, 6)), n, dim, norm)


def test_blocks():
    torch.manual_seed(1)
    for name, norm in itertools.product(BLOCKS, (None, "ortho")):
        expect_same(name, input_of(name, (3, 4, 5)), norm=norm)
        expect_same(name, input_of(name, (3, 4, 5)), (5, 7), (2, 0), norm)


def test_derivatives_by_differences():
    for name in LINES:
        x = input_of(name, (2, 5))
        assert torch.autograd.gradcheck(lambda x: getattr(torch_fft, name)(x), x)
    assert torch.autograd.gradgradcheck(torch_fft.rfft, input_of("rfft", (2, 4)))


def test_dtypes():
    for dtype in (torch.float16, torch.bfloat16, torch.int32, torch.float32):
        x = (torch.randn(3, 8) * 8).to(dtype)
        for name in ("fft", "rfft", "irfft"):
            wanted = getattr(torch.fft, name)(x.float())
            found = getattr(torch_fft, name)(x)
            assert found.dtype == wanted.dtype
            torch.testing.assert_close(found, wanted)
    x = torch.randn(4, dtype=torch.complex64)
    torch.testing.assert_close(torch_fft.fft(x.conj()), torch.fft.fft(x.conj()))
    torch.testing.assert_close(torch_fft.irfft(x.conj()), torch.fft.irfft(x.conj()))


def test_refusals():
    x = torch.ones(3, 4)
    for call, message in (
            (lambda: torch_fft.fft(x, 0), "a size: expected 1 to 2147483647, got 0"),
            (lambda: torch_fft.fft(x, dim=2), "dim: expected -2 to 1, got 2"),
            (lambda: torch_fft.fftn(x, dim=(0, 0)), "dim: expected different dimensions"),
            (lambda: torch_fft.fftn(x, (2,), (0, 1)), "s: expected 2 sizes, one for each dimension, got 1"),
            (lambda: torch_fft.fft(x, norm="both"), 'no norm "both"; there are: backward, ortho, forward')):
        with pytest.raises(tenon.Error, match=message):
            call()
    with pytest.raises(TypeError, match="input: expected real numbers, got torch.complex64; use fft"):
        torch_fft.rfft(x.to(torch.complex64))
    with pytest.raises(TypeError, match="input: expected a torch.Tensor, got list"):
        torch_fft.fft([1.0, 2.0])
