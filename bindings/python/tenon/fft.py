"""Discrete Fourier transforms with the names and arguments of numpy.fft, on anyone's arrays; and hfft2, ihfft2, hfftn and
ihfftn, which scipy.fft and torch.fft have, too.

Complex results are c64 of f32 and of 16-bit floats, else c128; integers are transformed as f64. A dimension may be cut or
padded with zeros to `n`, or `s`. `norm` says which direction is divided by the number of points: "backward" (the default),
"forward", or "ortho", which divides both by its square root.

>>> import numpy, tenon
>>> wave = numpy.cos(2 * numpy.pi * 3 * numpy.arange(16) / 16)
>>> abs(tenon.fft.rfft(wave)).round(3)          # all of it has the frequency 3
array([0., 0., 0., 8., 0., 0., 0., 0., 0.])
"""

from __future__ import annotations

from ctypes import addressof, c_int32, c_int64
from itertools import product

from . import _abi, _buffers, _dtypes, _given, errors
from ._arrays import kind_of, make_tensor, reference, view
from ._calls import Call, make_args, operator, run, target, word_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

    Shape = tuple[int, ...]

__all__ = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fft2", "ifft2", "rfft2", "irfft2", "hfft2", "ihfft2", "fftn",
           "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn", "fftfreq", "rfftfreq", "fftshift", "ifftshift"]

_NORMS = {None: 0, "backward": 0, "ortho": 1, "forward": 2}
_MOST = 2 ** 31 - 1  # points of a dimension
_TOGETHER = 3  # dimensions that one call transforms
_COMPLEX, _TO_COMPLEX, _TO_REAL = range(3)

# What numbers of a dtype are transformed as, real and complex.
_REAL = {"f16": "f32", "bf16": "f32", "f32": "f32", "c64": "f32"}
_SPECTRUM = {"f32": "c64", "f64": "c128"}


def _real_word(tensor: _abi.Tensor) -> str:
    return _REAL.get(_dtypes.WORD[tensor.dtype], "f64")


def _strides(tensor: _abi.Tensor) -> Shape:
    if not tensor.strides:
        return _buffers.dense_strides(tensor.dims)
    return tuple((c_int64 * tensor.ndim).from_address(tensor.strides))


def _part(tensor: _abi.Tensor, starts: Sequence[int], sizes: Sequence[int]) -> _abi.Tensor:
    """A window of a tensor: the same memory."""
    strides, bytes_each = _strides(tensor), _dtypes.BYTES[_dtypes.WORD[tensor.dtype]]
    offset = sum(start * stride for start, stride in zip(starts, strides)) * bytes_each
    made = make_tensor((tensor.data or 0) + offset, tuple(sizes), strides, 1, tensor.dtype, tensor, tensor.flags,
                       tensor.device_type, tensor.device_id)
    if hasattr(tensor, "source"):
        made.source = tensor.source
    return made


def _copy_call(x: Any, given: _abi.Tensor, to: _abi.Tensor, name: str = "tn_permute", cls: Any = _abi.PermuteArgs,
               result: Any = None, out: Any = None) -> Call:
    args = make_args(cls, x, given, **{"in": reference(given)}, out=reference(to))
    return Call(name, args, result, (given, x, to), (out,))


def _copy(x: Any, given: _abi.Tensor, to: _abi.Tensor) -> None:
    run(_copy_call(x, given, to))


class _Operand:
    """An array on its way: `array` is whose library and stream it is of, `tensor` what is transformed."""

    def __init__(self, array: Any) -> None:
        self.array, self.tensor = array, view(array)
        self.kind = kind_of(array)

    def target(self, out: Any, shape: Shape, word: str) -> tuple[Any, _abi.Tensor]:
        """`out`, or a new array. In C the output's dtype and shape say what is computed; here the function and n do."""
        result, to = target(self.kind, self.array, self.tensor, out, shape, word)
        if _dtypes.WORD[to.dtype] != word or to.dims != shape:
            raise errors.invalid(f"out: expected {word} of {shape}, got {_dtypes.WORD[to.dtype]} of {to.dims}")
        return result, to

    def new(self, shape: Shape, word: str) -> tuple[Any, _abi.Tensor]:
        return self.target(None, shape, word)

    def take(self, made: tuple[Any, _abi.Tensor]) -> None:
        made[1].keep = (made[1].keep, made[0])
        self.array, self.tensor = made

    def cast(self, word: str) -> None:
        """Another dtype, in new memory, unless it is that already."""
        if _dtypes.WORD[self.tensor.dtype] != word:
            made = self.new(self.tensor.dims, word)
            run(_copy_call(self.array, self.tensor, made[1], "tn_cast", _abi.CastArgs))
            self.take(made)

    def resize(self, sizes: Shape) -> None:
        """Cuts dimensions, and pads others with zeros in new memory."""
        dims = self.tensor.dims
        kept = tuple(map(min, dims, sizes))
        part = _part(self.tensor, (0,) * len(dims), kept) if kept != dims else self.tensor
        if kept != sizes:
            made = self.new(sizes, _dtypes.WORD[self.tensor.dtype])
            zeros = make_args(_abi.FillArgs, made[0], made[1], out=reference(made[1]))
            run(Call("tn_fill", zeros, None, (made[1],)))
            if 0 not in kept:
                _copy(self.array, part, _part(made[1], (0,) * len(dims), kept))
            self.take(made)
        else:
            self.tensor = part


def _length(what: str, value: Any) -> int:
    found = _given.number(what, value, *_given.INT64)
    if found < 1:
        raise errors.invalid(f"{what}: expected at least 1 point, got {found}")
    if found > _MOST:
        raise errors.invalid(f"{what}: expected at most {_MOST} points, got {found}")
    return found


def _plan_axes(a: Any, s: Any, axes: Any) -> tuple[list[int], list[int | None]]:
    """The axes in their order, and the size of each: None for the usual one. In s, -1 is the array's own size."""
    dims = view(a).dims
    rank = len(dims)
    if s is not None and not hasattr(s, "__len__"):
        raise TypeError(f"s: expected a size for each axis, got {type(s).__name__}")
    if axes is None:
        axes = range(rank) if s is None else range(-len(s), 0)
    elif not hasattr(axes, "__iter__"):
        raise TypeError(f"axes: expected the numbers of dimensions, got {type(axes).__name__}")
    places = [_given.dimension("axes", one, rank) for one in axes]
    if s is None:
        return places, [None] * len(places)
    if len(s) != len(places):
        raise errors.invalid(f"s: expected as many sizes as there are axes, {len(places)}, got {len(s)}")
    return places, [None if one is None else dims[place] if one == -1 else _length("s", one)
                    for place, one in zip(places, s)]


def _sizes_in(a: Any, places: Sequence[int], sizes: Sequence[int | None]) -> list[int | None]:
    """The sizes with those of the array itself where none is given: an axis that is there twice may change on the way."""
    dims = view(a).dims
    return [dims[place] if size is None else size for place, size in zip(places, sizes)]


def _transform(operand: _Operand, axes: Sequence[int], kind: int, points: int, inverse: bool, norm: Any,
               out: Any) -> Call:
    """The call for at most three dimensions. `points` is the length of the last one in real numbers."""
    shape = list(operand.tensor.dims)
    word = _dtypes.WORD[operand.tensor.dtype]
    if kind == _TO_COMPLEX:
        shape[axes[-1]], word = points // 2 + 1, _SPECTRUM[word]
    elif kind == _TO_REAL:
        shape[axes[-1]], word = points, _REAL.get(word, "f64")
    result, to = operand.target(out, tuple(shape), word)
    numbers = (c_int32 * len(axes))(*axes)
    args = make_args(_abi.FftArgs, operand.array, operand.tensor, **{"in": reference(operand.tensor)},
                     out=reference(to), axes=addressof(numbers), axes_count=len(axes), direction=int(inverse),
                     norm=word_number("norm", _NORMS, norm))
    return Call("tn_fft", args, result, (operand.tensor, operand.array, to, numbers), (out,))


def _groups(axes: Sequence[int]) -> list[list[int]]:
    """The axes in groups for one call each: at most three, none twice. The last axis is the last of the last group."""
    groups: list[list[int]] = [[]]
    for axis in reversed(axes):
        if len(groups[-1]) == _TOGETHER or axis in groups[-1]:
            groups.append([])
        groups[-1].append(axis)
    return [group[::-1] for group in reversed(groups)]


def _prepare(a: Any, places: Sequence[int], sizes: Sequence[int | None], real: bool = False) -> _Operand:
    """An array as what is transformed: real or complex numbers, with the dimensions cut or padded to their sizes."""
    operand = _Operand(a)
    dims = list(operand.tensor.dims)
    for place, size in zip(places, sizes):
        dims[place] = dims[place] if size is None else size
        _length(f"dimension {place}", dims[place])
    word = _real_word(operand.tensor)
    operand.cast(word if real else _SPECTRUM[word])
    if tuple(dims) != operand.tensor.dims:
        operand.resize(tuple(dims))
    return operand


def _complex_call(a: Any, places: list[int], sizes: list[int | None], inverse: bool, norm: Any, out: Any) -> Call:
    """Complex to complex. An axis that is there twice is transformed twice, each time with its own size."""
    word_number("norm", _NORMS, norm)
    groups, first = _groups(places), len(places)
    call, operand = None, None
    for group in reversed(groups) if places else ():
        first -= len(group)
        if call:
            run(call)
        operand = _prepare(call.result if call else a, group, sizes[first:first + len(group)])
        call = _transform(operand, group, _COMPLEX, 0, inverse, norm, out if first == 0 else None)
    if call is None:  # nothing is transformed: a copy
        operand = _prepare(a, (), ())
        result, to = operand.target(out, operand.tensor.dims, _dtypes.WORD[operand.tensor.dtype])
        return _copy_call(operand.array, operand.tensor, to, result=result, out=out)
    return call


def _forward_real(a: Any, places: list[int], sizes: list[int | None], inverse: bool, norm: Any, out: Any) -> Call:
    """Real to complex along the last axis, then complex along the others."""
    if not places:
        raise errors.invalid("axes: expected at least one axis to transform, got none")
    word = _dtypes.WORD[view(a).dtype]
    if word in ("c64", "c128"):
        raise TypeError(f"expected real numbers, got {word}; use fft for complex ones")
    word_number("norm", _NORMS, norm)
    group = _groups(places)[-1]
    rest = len(places) - len(group)
    operand = _prepare(a, group, sizes[rest:], real=True)
    call = _transform(operand, group, _TO_COMPLEX, operand.tensor.dims[group[-1]], inverse, norm, None if rest else out)
    if not rest:
        return call
    run(call)
    return _complex_call(call.result, places[:rest], _sizes_in(a, places[:rest], sizes[:rest]), inverse, norm, out)


def _backward_real(a: Any, places: list[int], sizes: list[int | None], inverse: bool, norm: Any, out: Any) -> Call:
    """Complex along all axes but the last, then to real numbers along that."""
    if not places:
        raise errors.invalid("axes: expected at least one axis to transform, got none")
    group = _groups(places)[-1]
    rest = len(places) - len(group)
    sizes = [*_sizes_in(a, places[:-1], sizes[:-1]), sizes[-1]]
    if rest:  # from the first to the last, unlike fftn
        call = _complex_call(a, places[:rest][::-1], sizes[:rest][::-1], inverse, norm, None)
        run(call)
        a = call.result
    dims = view(a).dims
    points = sizes[-1] if sizes[-1] is not None else 2 * (dims[places[-1]] - 1)
    if points < 1:
        raise errors.invalid(f"axis {places[-1]}: expected at least 2 numbers, got {dims[places[-1]]}; give the length")
    _length(f"dimension {places[-1]}", points)
    halves = [*sizes[rest:-1], points // 2 + 1]
    operand = _prepare(a, group, halves)
    return _transform(operand, group, _TO_REAL, points, inverse, norm, out)


def _one(a: Any, n: Any, axis: Any) -> tuple[list[int], list[int | None]]:
    return [_given.dimension("axis", axis, len(view(a).dims))], [None if n is None else _length("n", n)]


@operator
def fft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Call:
    """The transform of one dimension.

    >>> import numpy, tenon
    >>> tenon.fft.fft(numpy.array([1.0, 2.0, 3.0, 4.0]))
    array([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j])
    """
    return _complex_call(a, *_one(a, n, axis), False, norm, out)


@operator
def ifft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Call:
    """The inverse of `fft`.

    >>> import numpy, tenon
    >>> tenon.fft.ifft(tenon.fft.fft(numpy.array([1.0, 2.0, 3.0, 4.0]))).real
    array([1., 2., 3., 4.])
    """
    return _complex_call(a, *_one(a, n, axis), True, norm, out)


@operator
def rfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Call:
    """The transform of real numbers: the first n // 2 + 1 of its n frequencies, as the others are their conjugates.

    >>> import numpy, tenon
    >>> tenon.fft.rfft(numpy.array([1.0, 2.0, 3.0, 4.0]))
    array([10.+0.j, -2.+2.j, -2.+0.j])
    """
    return _forward_real(a, *_one(a, n, axis), False, norm, out)


@operator
def irfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Call:
    """The inverse of `rfft`: n real numbers; without n, an even number of them.

    >>> import numpy, tenon
    >>> tenon.fft.irfft(tenon.fft.rfft(numpy.array([1.0, 2.0, 3.0, 4.0])))
    array([1., 2., 3., 4.])
    """
    return _backward_real(a, *_one(a, n, axis), True, norm, out)


@operator
def hfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Call:
    """The transform of numbers that are conjugates of each other from both ends, given by the first half: real.

    >>> import numpy, tenon
    >>> tenon.fft.hfft(numpy.array([1.0, 2.0, 3.0]))
    array([ 8., -2.,  0., -2.])
    """
    return _backward_real(a, *_one(a, n, axis), False, norm, out)


@operator
def ihfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Call:
    """The inverse of `hfft`.

    >>> import numpy, tenon
    >>> tenon.fft.ihfft(tenon.fft.hfft(numpy.array([1.0, 2.0, 3.0]))).real
    array([1., 2., 3.])
    """
    return _forward_real(a, *_one(a, n, axis), True, norm, out)


@operator
def fftn(a: Any, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None,
         out: Any = None) -> Call:
    """The transform of several dimensions, by default all.

    >>> import numpy, tenon
    >>> complex(tenon.fft.fftn(numpy.ones((2, 2, 2)))[0, 0, 0])
    (8+0j)
    """
    return _complex_call(a, *_plan_axes(a, s, axes), False, norm, out)


@operator
def ifftn(a: Any, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None,
          out: Any = None) -> Call:
    """The inverse of `fftn`.

    >>> import numpy, tenon
    >>> tenon.fft.ifftn(numpy.ones((2, 2))).real
    array([[1., 0.],
           [0., 0.]])
    """
    return _complex_call(a, *_plan_axes(a, s, axes), True, norm, out)


@operator
def rfftn(a: Any, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None,
          out: Any = None) -> Call:
    """The transform of several dimensions of real numbers: the first half of the last one.

    >>> import numpy, tenon
    >>> tenon.fft.rfftn(numpy.ones((4, 6))).shape
    (4, 4)
    """
    return _forward_real(a, *_plan_axes(a, s, axes), False, norm, out)


@operator
def irfftn(a: Any, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None,
           out: Any = None) -> Call:
    """The inverse of `rfftn`; without s, an even number of the last dimension.

    >>> import numpy, tenon
    >>> tenon.fft.irfftn(tenon.fft.rfftn(numpy.ones((4, 6)))).shape
    (4, 6)
    """
    return _backward_real(a, *_plan_axes(a, s, axes), True, norm, out)


@operator
def hfftn(a: Any, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None,
          out: Any = None) -> Call:
    """`hfft` of several dimensions: of numbers that are conjugates of each other from opposite corners, given by the first
    half of the last dimension. Real.

    >>> import numpy, tenon
    >>> tenon.fft.hfftn(numpy.ones((2, 2)))
    array([[4., 0.],
           [0., 0.]])
    """
    return _backward_real(a, *_plan_axes(a, s, axes), False, norm, out)


@operator
def ihfftn(a: Any, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None,
           out: Any = None) -> Call:
    """The inverse of `hfftn`.

    >>> import numpy, tenon
    >>> tenon.fft.ihfftn(tenon.fft.hfftn(numpy.ones((2, 2)))).real
    array([[1., 1.],
           [1., 1.]])
    """
    return _forward_real(a, *_plan_axes(a, s, axes), True, norm, out)


@operator
def fft2(a: Any, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None,
         out: Any = None) -> Call:
    """`fftn` of the last two dimensions.

    >>> import numpy, tenon
    >>> complex(tenon.fft.fft2(numpy.ones((2, 2)))[0, 0])
    (4+0j)
    """
    return _complex_call(a, *_plan_axes(a, s, axes), False, norm, out)


@operator
def ifft2(a: Any, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None,
          out: Any = None) -> Call:
    """`ifftn` of the last two dimensions.

    >>> import numpy, tenon
    >>> complex(tenon.fft.ifft2(numpy.ones((2, 2)))[0, 0])
    (1+0j)
    """
    return _complex_call(a, *_plan_axes(a, s, axes), True, norm, out)


@operator
def rfft2(a: Any, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None,
          out: Any = None) -> Call:
    """`rfftn` of the last two dimensions.

    >>> import numpy, tenon
    >>> tenon.fft.rfft2(numpy.ones((2, 4))).shape
    (2, 3)
    """
    return _forward_real(a, *_plan_axes(a, s, axes), False, norm, out)


@operator
def irfft2(a: Any, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None,
           out: Any = None) -> Call:
    """`irfftn` of the last two dimensions.

    >>> import numpy, tenon
    >>> tenon.fft.irfft2(tenon.fft.rfft2(numpy.ones((2, 4))))
    array([[1., 1., 1., 1.],
           [1., 1., 1., 1.]])
    """
    return _backward_real(a, *_plan_axes(a, s, axes), True, norm, out)


@operator
def hfft2(a: Any, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None,
          out: Any = None) -> Call:
    """`hfftn` of the last two dimensions.

    >>> import numpy, tenon
    >>> tenon.fft.hfft2(numpy.ones((2, 3))).shape
    (2, 4)
    """
    return _backward_real(a, *_plan_axes(a, s, axes), False, norm, out)


@operator
def ihfft2(a: Any, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None,
           out: Any = None) -> Call:
    """`ihfftn` of the last two dimensions.

    >>> import numpy, tenon
    >>> tenon.fft.ihfft2(numpy.ones((2, 4))).shape
    (2, 3)
    """
    return _forward_real(a, *_plan_axes(a, s, axes), True, norm, out)


def _numbers(values: list[float]) -> Any:
    """A NumPy array; without NumPy one of the module array."""
    try:
        from numpy import array as numpy_array
    except ModuleNotFoundError:
        from array import array

        return array("d", values)
    return numpy_array(values)


def _frequencies(n: Any, d: Any, half: bool) -> Any:
    count = _length("n", n)
    step = 1.0 / (count * _given.real("d", d))
    numbers = range(count // 2 + 1) if half else [*range((count + 1) // 2), *range(-(count // 2), 0)]
    return _numbers([number * step for number in numbers])


def fftfreq(n: int, d: float = 1.0) -> Any:
    """The frequencies of `fft` of n points that are d apart.

    >>> import tenon
    >>> tenon.fft.fftfreq(4, 0.5)
    array([ 0. ,  0.5, -1. , -0.5])
    """
    return _frequencies(n, d, False)


def rfftfreq(n: int, d: float = 1.0) -> Any:
    """The frequencies of `rfft` of n points that are d apart.

    >>> import tenon
    >>> tenon.fft.rfftfreq(4, 0.5)
    array([0. , 0.5, 1. ])
    """
    return _frequencies(n, d, True)


def _roll(x: Any, axes: Any, sign: int) -> Any:
    """Moves the second half of each axis before the first: a copy of each block."""
    operand = _Operand(x)
    dims = operand.tensor.dims
    places = range(len(dims)) if axes is None else [axes] if not hasattr(axes, "__iter__") else axes
    shift = [0] * len(dims)
    for place in places:
        at = _given.dimension("axes", place, len(dims))
        shift[at] += sign * (dims[at] // 2)
    result, to = operand.new(dims, _dtypes.WORD[operand.tensor.dtype])
    shift = [by % size if size else 0 for by, size in zip(shift, dims)]
    for block in product(*(((0, size - by, by), (size - by, by, 0)) for by, size in zip(shift, dims))):
        begins, sizes, ends = (tuple(one) for one in zip(*block)) if block else ((), (), ())
        if 0 not in sizes:
            _copy(operand.array, _part(operand.tensor, begins, sizes), _part(to, ends, sizes))
    return result


def fftshift(x: Any, axes: int | Sequence[int] | None = None) -> Any:
    """Puts the frequency 0 into the middle of the axes, by default of all.

    >>> import tenon
    >>> tenon.fft.fftshift(tenon.fft.fftfreq(4, 0.25))
    array([-2., -1.,  0.,  1.])
    """
    return _roll(x, axes, 1)


def ifftshift(x: Any, axes: int | Sequence[int] | None = None) -> Any:
    """The inverse of `fftshift`.

    >>> import tenon
    >>> tenon.fft.ifftshift(tenon.fft.fftshift(tenon.fft.fftfreq(5, 0.2)))
    array([ 0.,  1.,  2., -2., -1.])
    """
    return _roll(x, axes, -1)


def __dir__() -> list[str]:
    return __all__
