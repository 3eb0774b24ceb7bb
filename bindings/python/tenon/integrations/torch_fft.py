"""Fourier transforms for PyTorch with gradients: the 18 transforms of torch.fft, without `out`, by Tenon's kernels.

Any derivative may be taken, as a gradient is another transform. Forward-mode derivatives, torch.vmap and one graph in
torch.compile are not supported: use torch.fft there.

>>> import torch
>>> from tenon.integrations import torch_fft
>>> x = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
>>> torch_fft.rfft(x).abs().square().sum().backward()
>>> x.grad
tensor([12., 20., 20., 28.])
"""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple, Union

import torch

from .. import _given, errors
from .. import fft as _fft

__all__ = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fft2", "ifft2", "rfft2", "irfft2", "hfft2", "ihfft2", "fftn",
           "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn"]

Tensor = torch.Tensor
Axes = Optional[Union[int, Sequence[int]]]

_COMPLEX, _TO_COMPLEX, _TO_REAL = range(3)
_OTHER = {"backward": "forward", "forward": "backward", "ortho": "ortho"}  # the norm of the opposite direction, same factor
_FUNCTIONS = {(_COMPLEX, False): _fft.fftn, (_COMPLEX, True): _fft.ifftn, (_TO_COMPLEX, False): _fft.rfftn,
              (_TO_REAL, True): _fft.irfftn, (_TO_COMPLEX, True): _fft.ihfftn, (_TO_REAL, False): _fft.hfftn}


def _inner(spectrum: Tensor, axis: int, points: int) -> Tensor:
    """The numbers of half a spectrum that also stand for their mirror images."""
    return spectrum.narrow(axis, 1, (points - 1) // 2)


def _scale_inner(spectrum: Tensor, axis: int, points: int, factor: float) -> Tensor:
    scaled = spectrum.clone()
    _inner(scaled, axis, points).mul_(factor)
    return scaled


class _Transform(torch.autograd.Function):
    """A transform of all of these axes, without padding. `points` is the length of the last one in real numbers."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, kind: int, inverse: bool, axes: Tuple[int, ...], points: int, norm: str) -> Tensor:
        ctx.kind, ctx.inverse, ctx.axes, ctx.points, ctx.norm = kind, inverse, axes, points, norm
        function = _FUNCTIONS[kind, inverse]
        x = x.detach().resolve_conj().resolve_neg()
        if kind == _TO_REAL:
            sizes = [x.shape[axis] for axis in axes[:-1]] + [points]
            return function(x, sizes, axes, norm)
        return function(x, None, axes, norm)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tuple[Any, ...]:
        axis, points = ctx.axes[-1], ctx.points
        kind = {_COMPLEX: _COMPLEX, _TO_COMPLEX: _TO_REAL, _TO_REAL: _TO_COMPLEX}[ctx.kind]
        if kind == _TO_REAL:
            gradient = _scale_inner(gradient, axis, points, 0.5)
        result = _Transform.apply(gradient, kind, not ctx.inverse, ctx.axes, points,  # type: ignore[no-untyped-call]
                                  _OTHER[ctx.norm])
        if kind == _TO_COMPLEX:
            result = _scale_inner(result, axis, points, 2.0)
        return result, None, None, None, None, None


def _fit(x: Tensor, axis: int, size: int) -> Tensor:
    """Cuts an axis, or pads it with zeros."""
    if size <= x.shape[axis]:
        return x.narrow(axis, 0, size)
    shape = list(x.shape)
    shape[axis] = size - x.shape[axis]
    return torch.cat((x, x.new_zeros(shape)), axis)


def _plan(x: Tensor, s: Any, dim: Any) -> Tuple[Tuple[int, ...], List[Optional[int]]]:
    if not isinstance(x, Tensor):
        raise TypeError(f"input: expected a torch.Tensor, got {type(x).__name__}; tenon.fft takes arrays of any library")
    sizes = None if s is None else [s] if isinstance(s, int) else [*s]
    if dim is None:
        dim = range(x.ndim) if sizes is None else range(-len(sizes), 0)
    places = [dim] if isinstance(dim, int) else [*dim]
    axes = tuple(_given.dimension("dim", place, x.ndim) for place in places)
    if len({*axes}) != len(axes) or not axes:
        raise errors.invalid(f"dim: expected different dimensions, at least one, got {tuple(places)}")
    if sizes is None:
        return axes, [None] * len(axes)
    if len(sizes) != len(axes):
        raise errors.invalid(f"s: expected {len(axes)} sizes, one for each dimension, got {len(sizes)}")
    return axes, [None if size is None or size == -1 else _given.number("a size", size, 1, 2**31 - 1) for size in sizes]


def _complex_of(x: Tensor) -> Tensor:
    if x.is_complex():
        return x
    real = x.dtype if x.is_floating_point() else torch.get_default_dtype()
    return x.to(torch.complex128 if real == torch.float64 else torch.complex64)


def _real_of(x: Tensor) -> Tensor:
    if x.is_complex():
        raise TypeError(f"input: expected real numbers, got {x.dtype}; use fft for complex ones")
    if not x.is_floating_point():
        return x.to(torch.get_default_dtype())
    return x if x.dtype in (torch.float32, torch.float64) else x.float()


def _transform(x: Tensor, kind: int, inverse: bool, s: Any, dim: Any, norm: Optional[str]) -> Tensor:
    axes, sizes = _plan(x, s, dim)
    norm = "backward" if norm is None else norm
    if norm not in _OTHER:
        raise errors.invalid(f'no norm "{norm}"; there are: backward, ortho, forward')
    x = _real_of(x) if kind == _TO_COMPLEX else _complex_of(x)
    points = sizes[-1] or (2 * (x.shape[axes[-1]] - 1) if kind == _TO_REAL else x.shape[axes[-1]])
    for axis, size in zip(axes[:-1], sizes):
        x = x if size is None else _fit(x, axis, size)
    last = points // 2 + 1 if kind == _TO_REAL else points
    if last != x.shape[axes[-1]]:
        x = _fit(x, axes[-1], last)
    return _Transform.apply(x, kind, inverse, axes, points, norm)  # type: ignore[no-any-return, no-untyped-call]


def fft(input: Tensor, n: Optional[int] = None, dim: int = -1, norm: Optional[str] = None) -> Tensor:
    """As torch.fft.fft."""
    return _transform(input, _COMPLEX, False, n, dim, norm)


def ifft(input: Tensor, n: Optional[int] = None, dim: int = -1, norm: Optional[str] = None) -> Tensor:
    """As torch.fft.ifft."""
    return _transform(input, _COMPLEX, True, n, dim, norm)


def rfft(input: Tensor, n: Optional[int] = None, dim: int = -1, norm: Optional[str] = None) -> Tensor:
    """As torch.fft.rfft."""
    return _transform(input, _TO_COMPLEX, False, n, dim, norm)


def irfft(input: Tensor, n: Optional[int] = None, dim: int = -1, norm: Optional[str] = None) -> Tensor:
    """As torch.fft.irfft."""
    return _transform(input, _TO_REAL, True, n, dim, norm)


def hfft(input: Tensor, n: Optional[int] = None, dim: int = -1, norm: Optional[str] = None) -> Tensor:
    """As torch.fft.hfft."""
    return _transform(input, _TO_REAL, False, n, dim, norm)


def ihfft(input: Tensor, n: Optional[int] = None, dim: int = -1, norm: Optional[str] = None) -> Tensor:
    """As torch.fft.ihfft."""
    return _transform(input, _TO_COMPLEX, True, n, dim, norm)


def fftn(input: Tensor, s: Optional[Sequence[int]] = None, dim: Axes = None, norm: Optional[str] = None) -> Tensor:
    """As torch.fft.fftn."""
    return _transform(input, _COMPLEX, False, s, dim, norm)


def ifftn(input: Tensor, s: Optional[Sequence[int]] = None, dim: Axes = None, norm: Optional[str] = None) -> Tensor:
    """As torch.fft.ifftn."""
    return _transform(input, _COMPLEX, True, s, dim, norm)


def rfftn(input: Tensor, s: Optional[Sequence[int]] = None, dim: Axes = None, norm: Optional[str] = None) -> Tensor:
    """As torch.fft.rfftn."""
    return _transform(input, _TO_COMPLEX, False, s, dim, norm)


def irfftn(input: Tensor, s: Optional[Sequence[int]] = None, dim: Axes = None, norm: Optional[str] = None) -> Tensor:
    """As torch.fft.irfftn."""
    return _transform(input, _TO_REAL, True, s, dim, norm)


def hfftn(input: Tensor, s: Optional[Sequence[int]] = None, dim: Axes = None, norm: Optional[str] = None) -> Tensor:
    """As torch.fft.hfftn."""
    return _transform(input, _TO_REAL, False, s, dim, norm)


def ihfftn(input: Tensor, s: Optional[Sequence[int]] = None, dim: Axes = None, norm: Optional[str] = None) -> Tensor:
    """As torch.fft.ihfftn."""
    return _transform(input, _TO_COMPLEX, True, s, dim, norm)


def fft2(input: Tensor, s: Optional[Sequence[int]] = None, dim: Axes = (-2, -1), norm: Optional[str] = None) -> Tensor:
    """As torch.fft.fft2."""
    return fftn(input, s, dim, norm)


def ifft2(input: Tensor, s: Optional[Sequence[int]] = None, dim: Axes = (-2, -1), norm: Optional[str] = None) -> Tensor:
    """As torch.fft.ifft2."""
    return ifftn(input, s, dim, norm)


def rfft2(input: Tensor, s: Optional[Sequence[int]] = None, dim: Axes = (-2, -1), norm: Optional[str] = None) -> Tensor:
    """As torch.fft.rfft2."""
    return rfftn(input, s, dim, norm)


def irfft2(input: Tensor, s: Optional[Sequence[int]] = None, dim: Axes = (-2, -1), norm: Optional[str] = None) -> Tensor:
    """As torch.fft.irfft2."""
    return irfftn(input, s, dim, norm)


def hfft2(input: Tensor, s: Optional[Sequence[int]] = None, dim: Axes = (-2, -1), norm: Optional[str] = None) -> Tensor:
    """As torch.fft.hfft2."""
    return hfftn(input, s, dim, norm)


def ihfft2(input: Tensor, s: Optional[Sequence[int]] = None, dim: Axes = (-2, -1), norm: Optional[str] = None) -> Tensor:
    """As torch.fft.ihfft2."""
    return ihfftn(input, s, dim, norm)


def __dir__() -> list[str]:
    return __all__
